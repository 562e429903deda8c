"""Splits loops: calls that no iteration needs from another one are made in a map before the loop, so they share waves.

What is computed from the counter and from values around the loop alone does not depend on the order of iterations. If
that includes calls that form waves (`width`), a map computes their results for all iterations, each where the loop
would make it: under the same conditions, with the same random keys. The loop that is left reads these results, and does
all else in the same order as before; so values are the same, bit for bit.

The number of iterations must be known before the first: the loop counts, up or down by a constant, to a bound that
stays. Loops that print, assign variables or end early are left as they are; so are calls whose results differ in shape
or are large, and calls that depend on variables of the loop.

Devices: the map and the counting of iterations are where the loop is; what moves into the map keeps its own.

>>> from undertow.ir.text import dump, parse
>>> library, count = split_loops(parse('''
... library 1 main=main
... main main(x: f64[2], n: i64) -> (y)
...   y: f64 = call x, n callee="f"
... function f(x: f64[2], n: i64) -> (t#1)
...   m: f64 = max x axes=[0] keepdims=false
...   t: i64, f64 = loop 0:i64, m, n, x body="f.loop"
... loop f.loop(k: i64, t: f64, n: i64, x: f64[2]) -> (p, if1.then/m, if1.then/s) carried=2
...   p: bool = less k, n
...   branch if1 p
...   k.if: i64, i64 = switch p, k
...   t.if: f64, f64 = switch p, t
...   x.if: f64[2], f64[2] = switch p, x
...   if1.then/d: f64[2] = add x.if#0, x.if#0
...   if1.then/c: f64 = call if1.then/d, k.if#0 callee="f"
...   if1.then/s: f64 = add t.if#0, if1.then/c
...   if1.then/m: i64 = add k.if#0, 1:i64
... '''))
>>> print(dump(library).partition("function ")[2], end="")
f(x: f64[2], n: i64) -> (t#1)
  m: f64         = max x axes=[0] keepdims=false
  counts: i64[?] = arange 0:i64, n, 1:i64
  map: f64[?]    = map counts, x body="f.map"
  t: i64, f64    = loop 0:i64, m, map, n body="f.loop"
<BLANKLINE>
loop f.loop(k: i64, t: f64, c: f64[?], n: i64) -> (p, if1.then/m, if1.then/s) carried=2
  p: bool              = less k, n
  branch if1 p
  k.if: i64, i64       = switch p, k
  t.if: f64, f64       = switch p, t
  c.if: f64[?], f64[?] = switch p, c
  index.if: i64, i64   = switch p, k
  if1.then/c: f64      = index c.if#0, index.if#0 axes=[0]
  if1.then/s: f64      = add t.if#0, if1.then/c
  if1.then/m: i64      = add k.if#0, 1:i64
<BLANKLINE>
map f.map(index: i64, x: f64[2]) -> (c) carried=1
  d: f64[2] = add x, x
  c: f64    = call d, index callee="f"
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.names import Names, in_scope
from undertow.ir.structure import ENTERS, LINKED
from undertow.ir.walk import bodies_last, entered_by, grouped, origin, placed_like, ports_of, reachable
from undertow.ops.effects import acts, is_stateful, is_tagged
from undertow.passes.dead import remove_dead
from undertow.passes.width import wide_graphs
from undertow.types import CTL, Type, i32, i64

_LARGEST = 1024  # elements of a result that is kept for each iteration
_MOST_CONSTANT = 256  # iterations whose numbers are written as a constant
_BOUNDS = {"less": (1, 0), "less_equal": (1, 1), "greater": (-1, 0), "greater_equal": (-1, 1)}  # direction, inclusive
_TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
_REDUCED = {"add": "sum", "multiply": "prod"}
_FAULTING = ("assert", "raise")
_ZERO = Const(np.int64(0))
_UNMOVED = frozenset({*LINKED, "tangent", "resume", "gradient"})


def split_loops(library: Library, reorders: bool = False) -> tuple[Library, Counter[str]]:
    """The library with its loops split where that lets calls share waves, and how many were.

    With `reorders`, what a loop only adds up or multiplies is reduced at once, in another order.
    """
    count: Counter[str] = Counter()
    if not any(node.op == "loop" for graph in library.functions.values() for node in graph.nodes):
        return library, count
    wide, ordered = wide_graphs(library), _ordered_graphs(library)
    functions = dict(library.functions)
    names = Names(functions, separator="~")
    times = Counter(name for graph in functions.values() for name in entered_by(graph))
    for name in reversed(bodies_last(functions)):
        for node in functions[name].nodes:
            body = node.attrs.text("body") if node.op == "loop" else ""
            loop = _understand(functions[body], node, body in ordered) if times[body] == 1 else None
            if loop is not None and (parts := _divide(loop, wide)) is not None:
                lanes = names.fresh(f"{name}.map")
                wide.add(lanes)
                functions[lanes] = _write_map(loop, parts, lanes)
                functions[body] = _write_loop(loop, parts)
                functions[name] = _enter(
                    functions[name], loop, parts, lanes, _reductions(loop, parts) if reorders else {}
                )
                count["split loop"] += 1
    if not count:
        return library, count
    return remove_dead(Library(functions, library.main))[0], count


def _ordered_graphs(library: Library) -> Container[str]:
    """The graphs that act in a way whose order can be told, in themselves or in what they enter.

    Asserting and raising is not: of several faults, the one that Python reaches first is searched for afterwards.
    """
    callers = grouped((other, name) for name, graph in library.functions.items() for other in entered_by(graph))
    acting = [name for name, graph in library.functions.items() if any(_is_ordered(node) for node in graph.nodes)]
    return reachable(acting, lambda name: callers.get(name, ()))


def _is_ordered(node: Node) -> bool:
    return (acts(node.op) or is_stateful(node.op)) and node.op not in _FAULTING


# --------------------------------------------------------------------------------------------------------------
# Loops that count


@dataclass(frozen=True, slots=True, eq=False)
class _Loop:
    """A loop whose number of iterations is known before the first."""

    body: FunctionGraph
    given: tuple[Operand, ...]  # in the graph that enters it: the first values of variables, and values that stay
    pred: Port
    then: int  # the region of an iteration
    steps: dict[int, int]  # variables that count, by index: what is added each time
    counter: int  # the variable that is compared with the bound
    bound: Operand  # a constant, or a parameter that stays
    is_inclusive: bool
    token: int | None  # the node of the variable that orders what asserts or raises

    @property
    def params(self) -> dict[int, int]:
        """Nodes of parameters -> their indices."""
        return {number: index for index, number in enumerate(self.body.params)}

    @property
    def index(self) -> int | None:
        """A variable that is the number of the iteration."""
        return next((k for k, step in self.steps.items() if step == 1 and self.given[k] == _ZERO), None)


def _understand(body: FunctionGraph, node: Node, is_ordered: bool) -> _Loop | None:
    """The loop, if it counts."""
    pred, *following = body.results
    sides = body.branches().get((pred, 0))
    tokens = [param for param in body.params if body.nodes[param].types[0] == CTL]
    if sides is None or is_ordered or len(tokens) > 1 or not {*tokens} <= {*body.params[: body.carried]}:
        return None
    if body.group or any(node.op in _UNMOVED for node in body.nodes):
        return None
    steps = {index: step for index, port in enumerate(following) if (step := _step(body, pred, index, port))}
    test, variable = body.nodes[pred.node], {Port(body.params[index]): index for index in steps}
    if test.op not in _BOUNDS:
        return None
    (x, y), op = test.inputs, test.op
    if x not in variable:
        x, y, op = y, x, _TURNED[op]
    direction, inclusive = _BOUNDS[op]
    stays = isinstance(y, Const) or y.node in body.params[body.carried :]
    if not isinstance(x, Port) or x not in variable or not stays or steps[variable[x]] * direction < 0:
        return None
    return _Loop(
        body, node.inputs, pred, sides[0], steps, variable[x], y, bool(inclusive), tokens[0] if tokens else None
    )


def _step(body: FunctionGraph, pred: Port, index: int, following: Port) -> int | None:
    """What is added to a variable in each iteration, if that is always the same integer."""
    node, param = body.nodes[following.node], Port(body.params[index])
    if node.op not in ("add", "subtract") or node.types[0] not in (Type(i64), Type(i32)):
        return None
    x, step = node.inputs if isinstance(node.inputs[1], Const) or node.op == "subtract" else node.inputs[::-1]
    if not isinstance(x, Port) or not isinstance(step, Const) or x.index:
        return None
    switch = body.nodes[x.node]
    if switch.op != "switch" or switch.inputs != (pred, param):
        return None
    return int(step.value) if node.op == "add" else -int(step.value)


# --------------------------------------------------------------------------------------------------------------
# What moves


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """The nodes of an iteration that the map computes, those that the loop still does, and what it reads of the map."""

    lane: list[int]
    kept: list[int]
    handed: list[Port]

    def values(self, body: FunctionGraph) -> list[Port]:
        """What is handed on, order tokens left aside."""
        return [port for port in self.handed if body.type_of(port) != CTL]


def _divide(loop: _Loop, wide: Container[str]) -> _Parts | None:
    """The parts of a loop, if the map would make calls that form waves."""
    staying: set[int] = set()
    while True:
        moved = _moved(loop, wide, staying)
        if not moved:
            return None
        kept, handed = _kept(loop, moved)
        unfit = {port.node for port in handed if not _is_small(loop.body.type_of(port))}
        if not unfit:
            break
        staying |= unfit
    outside, _ = _regions(loop, ())
    both = (number for number in _lane(loop, handed) if number in kept)
    twice = {number for number in both if _is_once(node := loop.body.nodes[number]) and node.region not in outside}
    if twice:  # calls in a test before the others, say: the loop would make them again
        kept, handed = _kept(loop, moved | twice)
    return _Parts(_lane(loop, handed), kept, handed)


def _is_once(node: Node) -> bool:
    """Should it not be computed in both? A call costs something; what depends on the tag would be something else."""
    return is_tagged(node.op) or (node.op in ENTERS and all(map(_is_small, node.types)))


def _is_small(type_: Type) -> bool:
    return type_.is_static and np.prod([d for d in type_.shape if isinstance(d, int)], dtype=float) <= _LARGEST


def _moved(loop: _Loop, wide: Container[str], staying: Container[int]) -> set[int]:
    """The calls that need nothing of other iterations, and what is computed from their results alone."""
    body, counting = loop.body, {loop.body.params[index] for index in loop.steps}
    bound = {*body.params[: body.carried]} - counting - {loop.token}
    outside, tied = _regions(loop, bound)
    tests = {region.pred.node for region in body.regions if region.pred is not None}
    moved: set[int] = set()
    for number, node in enumerate(body.nodes):
        used = {port.node for port in (*ports_of(node.inputs), *node.controls)}
        if number in bound or number in staying or node.region in tied or used & bound:
            bound.add(number)
            if number in tests:
                outside, tied = _regions(loop, bound)
        elif node.region not in outside and (
            used & moved or (node.op in ENTERS and node.attrs.text(ENTERS[node.op]) in wide)
        ):
            moved.add(number)
    return moved


def _regions(loop: _Loop, bound: Container[int]) -> tuple[set[int], set[int]]:
    """The regions that are not in an iteration, and those in one whose predicate is computed by some nodes."""
    outside, tied = {0}, set[int]()
    for number, region in enumerate(loop.body.regions):
        if number == loop.then or region.parent is None or region.pred is None:
            continue
        if region.parent in outside:
            outside.add(number)
        elif region.parent in tied or region.pred.node in bound:
            tied.add(number)
    return outside, tied


def _kept(loop: _Loop, moved: Container[int]) -> tuple[list[int], list[Port]]:
    """What the loop still does, and the results of moved nodes that it reads for that. It switches them itself."""
    nodes, handed = loop.body.nodes, dict[Port, None]()

    def needed(port: Port) -> Iterable[Port]:
        node = nodes[port.node]
        if port.node in moved and node.op != "switch":
            handed[port] = None
            return _predicates(loop.body, node.region)
        return (*ports_of(node.inputs), *node.controls, *_predicates(loop.body, node.region))

    reached = reachable(loop.body.results, needed)
    return sorted({port.node for port in reached if port not in handed}), sorted(handed)


def _lane(loop: _Loop, handed: Iterable[Port]) -> list[int]:
    """What a lane of the map computes to give some results."""

    def needed(port: Port) -> Iterable[Port]:
        node = loop.body.nodes[port.node]
        if node.op == "switch" and node.inputs[0] == loop.pred and node.region == 0:
            return ports_of(node.inputs[1:])
        return (*ports_of(node.inputs), *node.controls, *_predicates(loop.body, node.region, loop.then))

    return sorted({port.node for port in reachable(handed, needed)})


def _predicates(body: FunctionGraph, region: int, top: int = 0) -> list[Port]:
    """The predicates of the branches around a region."""
    found: list[Port] = []
    while region != top and (row := body.regions[region]).pred is not None and row.parent is not None:
        found.append(row.pred)
        region = row.parent
    return found


# --------------------------------------------------------------------------------------------------------------
# Writing


def _write_map(loop: _Loop, parts: _Parts, name: str) -> FunctionGraph:
    """The map: a lane computes what an iteration would."""
    body = loop.body
    copy = Copy(body, Draft("map", name))
    copy.places[loop.then] = 0
    draft, params = copy.draft, loop.params
    copy.add(body.regions[0].starts[0].node)
    index = draft.add(param_node(0, 0, "index", Type(i64), body.span))
    numbers = [index]
    for number in _taken(loop, parts):
        node = body.nodes[number]
        numbers.append(draft.add(param_node(0, len(numbers), node.name, node.types[0], node.span)))
        copy.ports[Port(number)] = Port(numbers[-1])
    for number in parts.lane:
        if (step := loop.steps.get(params.get(number, -1))) is not None:
            given = loop.given[params[number]]
            first = given if isinstance(given, Const) else copy.ports[Port(number)]
            copy.ports[Port(number)] = _count(draft, Port(index), first, step, body.nodes[number])
    for number in parts.lane:
        node = body.nodes[number]
        if node.op in ("start", "param"):
            continue
        if node.op == "switch" and node.inputs[0] == loop.pred and node.region == 0:
            copy.ports[Port(number)] = copy.operand(node.inputs[1])  # type: ignore[assignment]
        else:
            copy.add(number, replace(node, name=_unscoped(loop, node)))
    results = tuple(_bring_out(draft, copy.ports[port]) for port in parts.handed)
    made = draft.freeze(body, [Phase(tuple(numbers), results)], 1)
    return replace(made, name=name, kind="map")


def _taken(loop: _Loop, parts: _Parts) -> list[int]:
    """The parameters of the loop that lanes of the map take, too; not constants from which they count."""
    return [
        number
        for number, index in loop.params.items()
        if number in parts.lane and not (index in loop.steps and isinstance(loop.given[index], Const))
    ]


def _unscoped(loop: _Loop, node: Node) -> str:
    """The name of a node without the branch that an iteration is."""
    return node.name.removeprefix(f"{loop.body.regions[loop.then].name}/")


def _count(draft: Draft, index: Port, first: Operand, step: int, param: Node) -> Port:
    """The value of a variable that counts in iteration `index`."""
    (type_,) = param.types

    def add(op: str, *inputs: Operand, **attrs: str) -> Port:
        return Port(draft.add(Node(op, inputs, (type_,), param.name, attrs=Attrs(**attrs), span=param.span)))

    if type_.dtype != i64:
        index = add("cast", index, dtype=type_.dtype.name)
    if step != 1:
        index = add("multiply", index, Const(type_.dtype.numpy.type(step)))
    return index if first == _ZERO else add("add", first, index)


def _bring_out(draft: Draft, port: Port) -> Port:
    """A value as one of the body: zeros, or a pivot, where the branches are not taken in which it is computed."""
    type_, maker = draft.type_of(port), draft.nodes[port.node]
    while home := draft.home(port):
        region = draft.regions[home]
        assert region.pred is not None and region.parent is not None
        sides = draft.pairs[region.pred, region.parent]
        other = sides[1] if region.side else sides[0]
        if type_ == CTL:
            zero = draft.make_pivot(other)
        else:
            zeros = Const(np.zeros(type_.shape, type_.dtype.numpy))  # type: ignore[arg-type]
            name = in_scope("none", draft.regions, other)
            made = Node("identity", (zeros,), (type_,), name, other, span=maker.span)
            zero = Port(draft.add(draft.triggered(made, 0)))
        inputs = (port, zero) if region.side else (zero, port)
        name = in_scope(maker.short_name, draft.regions, region.parent)
        port = Port(draft.add(Node("merge", inputs, (type_,), name, region.parent, span=maker.span)))
    return port


def _write_loop(loop: _Loop, parts: _Parts) -> FunctionGraph:
    """The loop that is left. Without a variable that is the number of the iteration, it gets one, its last."""
    body, place = loop.body, loop.index
    copy = Copy(body)
    draft = copy.draft
    copy.add(body.regions[0].starts[0].node)
    numbers: list[int] = []

    def take(number: int) -> None:
        numbers.append(copy.add(number, replace(body.nodes[number], attrs=Attrs(index=len(numbers)))))

    def give(name: str, type_: Type) -> Port:
        numbers.append(draft.add(param_node(0, len(numbers), name, type_, body.span)))
        return Port(numbers[-1])

    for number in body.params[: body.carried]:
        take(number)
    index = {0: give("index", Type(i64)) if place is None else Port(numbers[place])}
    arrays: dict[Port, dict[int, Port]] = {}
    token = {} if loop.token is None else {0: Port(numbers[loop.params[loop.token]])}
    for port in parts.values(body):
        type_ = body.type_of(port)
        arrays[port] = {0: give(body.nodes[port.node].short_name, type_.with_shape((None, *type_.shape)))}
    for number in body.params[body.carried :]:
        take(number)
    handed = {port.node: [other for other in parts.handed if other.node == port.node] for port in parts.handed}
    for number in sorted({*parts.kept, *handed}):
        node = body.nodes[number]
        if number in handed:
            region = copy.place(node.region)
            for port in handed[number]:
                if port not in arrays:  # the map has acted already
                    copy.ports[port] = draft.bring(token, region, node.short_name)
                    continue
                inputs = (draft.bring(arrays[port], region, node.short_name), draft.bring(index, region, "index"))
                read = Node("index", inputs, (body.type_of(port),), node.name, region, Attrs(axes=(0,)), span=node.span)
                copy.ports[port] = Port(draft.add(placed_like(read, node)))
        elif node.op not in ("start", "param"):
            copy.add(number)
    results = [copy.ports[port] for port in body.results]
    carried = body.carried
    if place is None:
        then = copy.place(loop.then)
        following = draft.bring(index, then, "index"), Const(np.int64(1))
        name = in_scope("index", draft.regions, then)
        results.append(Port(draft.add(Node("add", following, (Type(i64),), name, then, span=body.span))))
        carried += 1
    return draft.freeze(body, [Phase(tuple(numbers), tuple(results))], carried)


def _reductions(loop: _Loop, parts: _Parts) -> dict[int, Port]:
    """The variables to which each iteration adds what the map gives, or which it multiplies by that; by index."""
    body, found = loop.body, dict[int, Port]()
    for index, port in enumerate(body.results[1:]):
        node, variable = body.nodes[port.node], Port(body.params[index])
        if node.op in _REDUCED and node.region == loop.then and body.type_of(port).rank == 0:
            given = [x for x in ports_of(node.inputs) if x in parts.handed and body.nodes[x.node].region == loop.then]
            others = [x for x in node.inputs if x not in given]
            if len(given) == 1 and [origin(body, x) for x in others] == [variable]:
                found[index] = given[0]
    return found


def _enter(
    graph: FunctionGraph, loop: _Loop, parts: _Parts, lanes: str, reductions: Mapping[int, Port]
) -> FunctionGraph:
    """A graph that enters the map before the loop, and has some results of the loop from the map."""
    copy = Copy(graph)
    draft, params = copy.draft, loop.params
    for number, node in enumerate(graph.nodes):
        if node.op != "loop" or node.attrs.text("body") != loop.body.name:
            copy.add(number)
            continue
        region = copy.place(node.region)
        given = [copy.operand(operand) for operand in node.inputs]
        bound = loop.bound if isinstance(loop.bound, Const) else given[params[loop.bound.node]]
        phase = copy.phases[number]
        counts = _counts(draft, node, phase, region, loop, given[loop.counter], bound)
        taken = [given[params[number]] for number in _taken(loop, parts)]
        length = draft.type_of(counts).shape[0]
        types = [loop.body.type_of(port) for port in parts.handed]
        entered = Node(
            "map",
            (counts, *taken),
            tuple(type_ if type_ == CTL else type_.with_shape((length, *type_.shape)) for type_ in types),
            in_scope("map", draft.regions, region),
            region,
            Attrs(body=lanes),
            tuple(x for x in taken if isinstance(x, Port) and draft.type_of(x) == CTL),
            node.span,
        )
        made = draft.add(draft.triggered(placed_like(entered, node), phase))
        ports = {port: Port(made, k) for k, port in enumerate(parts.handed)}
        arrays = [ports[port] for port in parts.values(loop.body)]
        more = [] if loop.index is not None else [_ZERO]
        done = [port for port in ports.values() if draft.type_of(port) == CTL]
        if done and loop.token is not None:  # the loop acts after the map
            given[params[loop.token]] = done[-1]
        inputs = (*given[: loop.body.carried], *more, *arrays, *given[loop.body.carried :])
        types = [*node.types, *(Type(i64) for _ in more)]
        controls = (*map(copy.port, node.controls), *done[:-1])
        left = replace(node, inputs=inputs, types=tuple(types), region=region, controls=controls)
        made = draft.add(draft.triggered(left, phase))
        copy.ports.update({Port(number, k): Port(made, k) for k in range(len(node.types))})
        for index, port in reductions.items():
            copy.ports[Port(number, index)] = _reduced(draft, loop, node, region, index, given[index], ports[port])
    return copy.freeze()


def _reduced(draft: Draft, loop: _Loop, entered: Node, region: int, index: int, first: Operand, values: Port) -> Port:
    """What a variable is after the loop."""
    node = loop.body.nodes[loop.body.results[1 + index].node]
    name = in_scope(node.short_name, draft.regions, region)
    attrs = Attrs(axes=(0,), keepdims=False)
    total = Node(_REDUCED[node.op], (values,), node.types, name, region, attrs, span=node.span)
    inputs = first, Port(draft.add(placed_like(placed_like(total, node), entered)))
    last = Node(node.op, inputs, node.types, name, region, span=node.span)
    return Port(draft.add(placed_like(placed_like(last, node), entered)))


def _counts(draft: Draft, node: Node, phase: int, region: int, loop: _Loop, first: Operand, bound: Operand) -> Operand:
    """The numbers of all iterations."""
    step, is_up = abs(loop.steps[loop.counter]), loop.steps[loop.counter] > 0
    more = step if loop.is_inclusive else step - 1
    if isinstance(first, Const) and isinstance(bound, Const):
        distance = int(bound.value) - int(first.value)
        total = max(0, ((distance if is_up else -distance) + more) // step)
        if total <= _MOST_CONSTANT:
            return Const(np.arange(total))

    def add(op: str, *inputs: Operand, shape: tuple[None, ...] = (), **attrs: str) -> Operand:
        name = in_scope("counts", draft.regions, region)
        made = Node(op, inputs, (Type(i64, shape),), name, region, Attrs(**attrs), span=node.span)
        return Port(draft.add(draft.triggered(placed_like(made, node), phase)))

    def whole(x: Operand) -> Operand:
        if draft.type_of(x).dtype == i64:
            return x
        return Const(x.value.astype(np.int64)) if isinstance(x, Const) else add("cast", x, dtype="i64")

    def number(value: int) -> Const:
        return Const(np.int64(value))

    low, high = (whole(first), whole(bound)) if is_up else (whole(bound), whole(first))
    total_port = high if low == number(0) else add("subtract", high, low)
    if more:
        total_port = add("add", total_port, number(more))
    if step > 1:
        total_port = add("floor_divide", total_port, number(step))
    return add("arange", number(0), total_port, number(1), shape=(None,))
