"""Arrays that their last reader may overwrite (`Op.last`).

One is an array with one owner: an operator computes it, and only operators of the same frame read it. (A slice may be a
view of its operand, and so may the parts of a concatenated row: operands and results of views are not owned.) The other
is the array that a `put` changes, wherever it comes from, if nothing in the region reads it afterwards: whether another
region still holds it, such as a caller, is known when the `put` runs. Then it is copied.
"""

from __future__ import annotations

from dataclasses import replace

from undertow.plan.lifetimes import last_reads
from undertow.plan.plan import Fused, Op, Plan, Program, Stage, Straight
from undertow.plan.shapes import CHANGES, COPIES, count_of, is_row, part_at
from undertow.plan.walk import Place, items_in, places, reads, run_of, singly, use_counts, with_programs

_VIEWS = {*COPIES, "slice", "concat", "stack"}


def find_owners(plan: Plan) -> Plan:
    """The plan with the last reader of each owned array marked."""
    if not any(slot.type.shape for region in plan.regions for slot in region.slots):
        return plan
    uses = use_counts(plan)
    changed: dict[Place, Program] = {}
    changes = _changes(plan)
    for number, region in enumerate(plan.regions):
        readers: dict[int, list[Op]] = {}  # array that an operator computes -> its readers, in order
        for step in singly(items_in(region)):
            if isinstance(step, Op) and not _is_view(plan, number, step):
                for x in step.inputs:
                    if x in readers:
                        readers[x].append(step)
                for to in step.outputs:
                    if to >= 0 and region.slots[to].type.shape and not region.slots[to].is_shared:
                        readers[to] = []
        last = changes.get(number, {})  # by node: slots that it owns
        for x, ops in readers.items():
            if ops and len(ops) == uses[number][x]:
                last.setdefault(ops[-1].node, set()).add(x)
        if last:
            for k, program in enumerate(region.programs):
                changed[number, k] = Program(program.phase, tuple(_marked(stage, last) for stage in program.stages))
    return with_programs(plan, changed)


def _changes(plan: Plan) -> dict[int, dict[str, set[int]]]:
    """The slots that a `put` changes and nothing reads afterwards, by region and node."""
    found: dict[int, dict[str, set[int]]] = {}
    if not any(kernel.op in CHANGES for kernel in plan.kernels):
        return found
    lasts = last_reads(plan)
    for number, p, program in places(plan):
        for s, stage in enumerate(program.stages):
            read: set[int] = set()  # by what comes later in this stage
            steps = list(singly(stage.straight))
            for step in (*singly(stage.deferred), *stage.entered):
                read.update(reads(step))
            for step in reversed(steps):
                if isinstance(step, Op) and step.kernel >= 0 and plan.kernels[step.kernel].op in CHANGES:
                    x, *others = step.inputs
                    is_read = x in read or x in others or (x >= 0 and not lasts[number][x].is_at((p, s)))
                    if x >= 0 and not is_read and not plan.regions[number].slots[x].is_shared:
                        found.setdefault(number, {}).setdefault(step.node, set()).add(x)
                read.update(reads(step))
    return found


def _is_view(plan: Plan, region: int, op: Op) -> bool:
    """May the result share memory with an operand?"""
    kernel = plan.kernels[op.kernel]
    if kernel.op not in _VIEWS:
        return False
    if kernel.op in ("concat", "stack"):
        return is_row(kernel, plan.type_of(region, op.outputs[0]))
    type_ = plan.type_of(region, op.inputs[0])
    return count_of(type_) < 0 or part_at(kernel, type_) >= 0


def _marked(stage: Stage, last: dict[str, set[int]]) -> Stage:
    if not any(isinstance(step, Op) and step.node in last for step in singly(run_of(stage))):
        return stage
    straight = tuple(_owning(step, last) for step in stage.straight)
    return replace(stage, straight=straight, deferred=tuple(_owning(step, last) for step in stage.deferred))


def _owning(step: Straight, last: dict[str, set[int]]) -> Straight:
    if isinstance(step, Fused):
        return replace(step, ops=tuple(_owning_op(op, last) for op in step.ops))
    return _owning_op(step, last) if isinstance(step, Op) else step


def _owning_op(op: Op, last: dict[str, set[int]]) -> Op:
    owned = last.get(op.node)
    return op if owned is None else replace(op, last=tuple(k for k, x in enumerate(op.inputs) if x in owned))
