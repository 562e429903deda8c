"""Which steps may wait, so that those of many waves run as one.

*Held* steps: a side of a branch that makes no calls, where the other side does. Nobody needs its results before those
calls come back, so it waits until the deepest wave has nobody left to call: the leaves of all levels of a tree run
together. *Kept* steps: what leads to nothing but collects. Sums are complete when their entry is over, and until then
these steps may come at any time; their operands are kept meanwhile.

Only steps that make arrays are worth it: numbers run in wide waves anyway. What acts on the world never waits; what can
fail waits only where its tables do.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

from undertow.engines.waves.items import BRANCH, COLLECT, OP, READ, Item, Items, Key, Stage
from undertow.ir.graph import Port
from undertow.ops.op import CATALOGUE

_FEW = 4  # operators
Place = tuple[int, int]  # a region, and which of its programs


def put_off(items: Items, recursive: Set[int]) -> dict[Place, list[Stage]]:
    """The stages of all programs, with the steps that may wait at the ends of straight runs.

    `recursive` says which bodies call themselves, alone or through others: elsewhere there is nobody to wait for.
    """
    held = set(_held(items))
    users = _users(items)
    found = {}
    for at, stages in items.stages.items():
        if items.owner[at[0]] not in recursive:
            found[at] = stages
        elif at in held:
            found[at] = [_hold(items, stage) for stage in stages]
        else:
            found[at] = _keep(items, stages, users)
    return found


def _held(items: Items) -> Iterator[Place]:
    """Sides of branches without calls, the other side having some; and what stands inside of them."""
    for item in items.items.values():
        if item.kind != BRANCH or not item.is_blocking:
            continue
        todo = items.inner(item)
        while todo:
            at = todo.pop()
            inside = items.of_region.get(at, [])
            if any(other.is_blocking for other in inside):
                continue
            yield at
            todo += [place for other in inside if other.kind == BRANCH for place in items.inner(other)]


def _hold(items: Items, stage: Stage) -> Stage:
    steps = stage.straight
    if not all(_is_pure(items, step) for step in steps) or not _is_worth_it(items, steps):
        return stage
    return Stage([], stage.entered, steps, is_held=True)


def _keep(items: Items, stages: list[Stage], users: dict[int, set[Key | None]]) -> list[Stage]:
    """Move what only collects need to the end of the last stage that has some of it."""
    late: set[Key] = set()
    for stage in reversed(stages):
        for step in reversed(stage.straight):
            is_needed = step.kind != COLLECT and not users.get(step.key[1], set()) <= late
            if not is_needed and step.kind in (OP, COLLECT) and _may_be_kept(items, step):
                late.add(step.key)
    if not any(key[0] == COLLECT and _takes_array(items, items.items[key]) for key in late):
        return stages
    kept = [step for stage in stages for step in stage.straight if step.key in late]
    last = max(n for n, stage in enumerate(stages) for step in stage.straight if step.key in late)
    return [
        Stage([s for s in stage.straight if s.key not in late], stage.entered, kept if n == last else [])
        for n, stage in enumerate(stages)
    ]


def _users(items: Items) -> dict[int, set[Key | None]]:
    """Who reads what a node gives, or waits for it; None where that is no step."""
    found: dict[int, set[Key | None]] = {}
    for number, node in enumerate(items.graph.nodes):
        key = (OP, number) if node.op in CATALOGUE else (COLLECT, number) if node.op.startswith("collect") else None
        for x in (*node.inputs, *node.controls):
            if isinstance(x, Port):
                found.setdefault(x.node, set()).add(key)
    for port in items.graph.fetches:
        found.setdefault(port.node, set()).add(None)
    for region in items.graph.regions:
        if region.pred is not None:
            found.setdefault(region.pred.node, set()).add(None)
    return found


def _is_pure(items: Items, step: Item) -> bool:
    if step.kind != OP:
        return step.kind in (READ, COLLECT)
    op = CATALOGUE[items.graph.nodes[step.key[1]].op]
    return not op.effect and op.state is None


def _may_be_kept(items: Items, step: Item) -> bool:
    """It cannot fail, and its operands are of known size."""
    node = items.graph.nodes[step.key[1]]
    if step.kind == OP and (not _is_pure(items, step) or CATALOGUE[node.op].faults):
        return False
    return all(items.graph.type_of(x).is_static for x in node.inputs) and all(t.is_static for t in node.types)


def _is_worth_it(items: Items, steps: list[Item]) -> bool:
    """A product, or several operators of which some make arrays: to wait costs as much as two or three of them."""
    nodes = [items.graph.nodes[step.key[1]] for step in steps if step.kind == OP]
    makes_arrays = any(type_.rank > 0 for node in nodes for type_ in node.types)
    return makes_arrays and (len(nodes) >= _FEW or any(node.op == "matmul" for node in nodes))


def _takes_array(items: Items, step: Item) -> bool:
    return any(items.graph.type_of(x).rank > 0 for x in items.graph.nodes[step.key[1]].inputs)
