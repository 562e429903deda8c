"""Fuses operators that run together in one pass over their lanes.

The straight run of a stage is reordered, within its dependences: operators that cannot be fused go first, as far as
possible, then as many of the others as fit into one pass, until none is left. An operator that the host runs keeps its
place among the others. A slot that only its pass reads needs no column.

A pass works on rows of one width. In each lane a register is a row or one element; where an instruction reduces a row
to one element, rows are short, and several lanes at a time are laid out as planes (core/include/undertow/fused.h).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from undertow.ir.budget import check, paced
from undertow.ir.graph import EMPTY
from undertow.plan import plan as data
from undertow.plan.kernels import TraitsOf
from undertow.plan.plan import Kernel, Op, Operand, Plan, Program, Region, Stage, Straight
from undertow.plan.shapes import count_of, part_at
from undertow.plan.walk import reads, singly, use_counts, writes

MOST_PLANES = 16  # elements of a short row
MOST_REGISTERS = 256
MOST_INPUTS = 64
_FOLDS = {"sum": "add", "max": "maximum", "min": "minimum"}
_COMPLEX = {"c64", "c128"}  # no registers hold them
_SHORT_ROWS = {"sum", "max", "min", "index", "scatter_add"}


class _Role(NamedTuple):
    """How an operator takes part in a pass: as an instruction; or as a part, spread or join, which costs nothing."""

    kind: str
    width: int  # elements of the rows
    kernel: int = -1  # of an instruction: the operator on elements, or the one that folds a row


_NONE = _Role("", 0)


def fuse(plan: Plan, traits_of: TraitsOf) -> Plan:
    """The plan with passes in place of the operators that they fuse."""
    return _Fusing(plan, traits_of).run()


class _Fusing:
    """What all regions need: kernels, and how often each slot is read."""

    def __init__(self, plan: Plan, traits_of: TraitsOf) -> None:
        self.plan = plan
        self.traits_of = traits_of
        self.kernels = list(plan.kernels)
        self.numbers = {kernel: number for number, kernel in enumerate(plan.kernels)}
        self.traits = [traits_of(kernel) for kernel in plan.kernels]
        self.uses = use_counts(plan)
        self.constants = [count_of(constant.type) for constant in plan.constants]

    def run(self) -> Plan:
        regions = tuple(self.region(number, region) for number, region in enumerate(self.plan.regions))
        return replace(self.plan, regions=regions, kernels=tuple(self.kernels))

    def region(self, number: int, region: Region) -> Region:
        if not any(len(s.straight) > 1 or len(s.deferred) > 1 for p in region.programs for s in p.stages):
            return region
        here = _InRegion(self, number, region)
        programs = [Program(p.phase, tuple([here.stage(stage) for stage in p.stages])) for p in region.programs]
        return region.with_programs(tuple(programs))

    def folding(self, op: str, dtype: str) -> int:
        """The kernel that folds two elements of a dtype into one; -1 where there is none."""
        kernel = Kernel(op, EMPTY, ((dtype, 0), (dtype, 0)), ((dtype, 0),))
        if kernel not in self.numbers:
            if not self.traits_of(kernel).is_each:
                return -1
            self.numbers[kernel] = len(self.kernels)
            self.kernels.append(kernel)
        return self.numbers[kernel]


class _InRegion:
    def __init__(self, fusing: _Fusing, number: int, region: Region) -> None:
        self.fusing = fusing
        self.number = number
        self.slots = region.slots
        self.counts = [count_of(slot.type) for slot in region.slots]
        self.uses = fusing.uses[number]

    def count(self, x: Operand) -> int:
        return self.counts[x] if x >= 0 else self.fusing.constants[~x]

    def stage(self, stage: Stage) -> Stage:
        if len(stage.straight) < 2 and len(stage.deferred) < 2:
            return stage
        next_phase = {stage.deferred[k] for k in stage.ahead}
        straight, deferred = self.straight(stage.straight), self.straight(stage.deferred)
        ahead = tuple(k for k, op in enumerate(singly(deferred)) if op in next_phase) if next_phase else ()
        return replace(stage, straight=straight, deferred=deferred, ahead=ahead)

    def straight(self, items: Sequence[Straight]) -> tuple[Straight, ...]:
        """A straight run, fused between the operators that the host runs."""
        if len(items) < 2:
            return tuple(items)
        out: list[Straight] = []
        first = 0
        traits = self.fusing.traits
        for last, item in enumerate(items):
            if isinstance(item, Op) and not traits[item.kernel].is_native:
                out += _Segment(self, items[first:last]).order()
                out.append(item)
                first = last + 1
        return (*out, *_Segment(self, items[first:]).order())

    def role(self, item: Straight) -> _Role:
        """How an item takes part in a pass; `_NONE` if it cannot."""
        if not isinstance(item, Op) or len(item.outputs) != 1 or not item.inputs:
            return _NONE
        kernel, traits = self.fusing.kernels[item.kernel], self.fusing.traits[item.kernel]
        if any(dtype in _COMPLEX for dtype, _ in (*kernel.inputs, *kernel.outputs)):
            return _NONE
        width, count = self.counts[item.outputs[0]], self.count(item.inputs[0])
        if not traits.is_native or width < 1 or count < 1:
            return _NONE
        if traits.is_each:
            rank = kernel.outputs[0][1]
            for x, (_, own_rank) in zip(item.inputs, kernel.inputs, strict=True):
                if (own := self.count(x)) != 1 and (own != width or own_rank > rank):
                    return _NONE
            return _Role("each", width, item.kernel)
        if any(self.count(x) < 0 for x in item.inputs):
            return _NONE
        if len(item.inputs) == 1:
            type_ = self.fusing.plan.type_of(self.number, item.inputs[0])
            if part_at(kernel, type_) >= 0:
                return _Role("part", width)
            if kernel.op == "broadcast_to" and count == 1 < width:
                return _Role("spread", width)
        if kernel.op == "concat" and kernel.outputs[0][1] == 1 and count > 1:
            return _Role("join", count) if all(self.count(x) == count for x in item.inputs) else _NONE
        if kernel.op in _SHORT_ROWS and 2 <= count <= MOST_PLANES:
            return self.short_row(item, kernel, count)
        return _NONE

    def short_row(self, item: Op, kernel: Kernel, count: int) -> _Role:
        """The role of a fold of a short row, of indexing into it, or of adding to one of its elements."""
        dtype, rank = kernel.inputs[0]
        if kernel.op in _FOLDS:
            if self.counts[item.outputs[0]] != 1 or kernel.outputs[0][0] != dtype or len(item.inputs) != 1:
                return _NONE
            folding = self.fusing.folding(_FOLDS[kernel.op], dtype)
            return _NONE if folding < 0 else _Role("fold", count, folding)
        if rank != 1 or kernel.inputs[1] not in (("i32", 0), ("i64", 0)):
            return _NONE
        if kernel.op == "index":
            return _Role("pick", count, item.kernel) if len(item.inputs) == 2 else _NONE
        if len(item.inputs) != 3 or kernel.inputs[2][1] != 0:
            return _NONE
        adding = self.fusing.folding("add", dtype)
        return _NONE if adding < 0 else _Role("place", count, adding)


class _Pass:
    """A pass under construction. A register is the number of an input, or ~number of an instruction."""

    def __init__(self, here: _InRegion) -> None:
        self.here = here
        self.ops: list[tuple[Op, _Role]] = []
        self.inputs: dict[tuple[Operand, int, int], int] = {}  # operand, offset, count
        self.input_rows: list[bool] = []  # is it a row, or one element?
        self.instructions: list[tuple[_Role, int, list[int]]] = []
        self.instruction_rows: list[bool] = []
        self.registers: dict[int, int] = {}  # slot -> register
        self.joined: set[int] = set()
        self.width = 1

    def is_full(self) -> bool:
        inputs = len(self.inputs)
        return inputs + 3 > MOST_INPUTS or inputs + len(self.instructions) + 4 > MOST_REGISTERS

    def is_row(self, register: int) -> bool:
        return self.input_rows[register] if register >= 0 else self.instruction_rows[~register]

    def add(self, item: Op, role: _Role) -> bool:
        """Add an operator; False if it does not fit."""
        to, kind = item.outputs[0], role.kind
        if kind == "join":
            if len(item.inputs) + len(self.inputs) > MOST_INPUTS:
                return False
            for x in item.inputs:
                self.use(x)
            self.joined.add(to)
        elif kind == "part":
            self.registers[to] = self.part(item)
        elif kind == "spread":
            self.registers[to] = self.use(item.inputs[0])
        else:
            first = self.registers.get(item.inputs[0])
            if kind != "each" and first is not None and not self.is_row(first):
                return False
            operands = [self.use(x) for x in item.inputs]
            is_row = kind == "place" or (
                kind == "each" and (role.width > MOST_PLANES or any(map(self.is_row, operands)))
            )
            self.registers[to] = ~len(self.instructions)
            self.instructions.append((role, to, operands))
            self.instruction_rows.append(is_row)
        self.ops.append((item, role))
        self.width = max(self.width, role.width)
        return True

    def must_wait(self, item: Op, role: _Role) -> bool:
        """Must an operator wait until the pass is done? Concatenated rows are not a register, nor is part of one."""
        if self.joined and any(x in self.joined for x in item.inputs):
            return True
        if role.kind != "part":
            return False
        x = item.inputs[0]
        return x in self.registers and self.here.count(x) != self.here.counts[item.outputs[0]]

    def input(self, x: Operand, offset: int, count: int) -> int:
        key = x, offset, count
        if key not in self.inputs:
            self.inputs[key] = len(self.inputs)
            self.input_rows.append(count > 1)
        return self.inputs[key]

    def use(self, x: Operand) -> int:
        return self.registers[x] if x in self.registers else self.input(x, 0, self.here.count(x))

    def part(self, item: Op) -> int:
        x = item.inputs[0]
        if x in self.registers:
            return self.registers[x]
        fusing = self.here.fusing
        at = part_at(fusing.kernels[item.kernel], fusing.plan.type_of(self.here.number, x))
        return self.input(x, at, self.here.counts[item.outputs[0]])

    def finish(self) -> list[Straight]:
        """The pass, if it pays, after the operators that must run alone; otherwise all operators."""
        inside = Counter(x for item, _ in self.ops for x in item.inputs)
        uses = self.here.uses
        wanted = {to for item, _ in self.ops if uses[to := item.outputs[0]] > inside[to]}  # outside the pass
        members: list[tuple[Op, _Role]] = []
        alone: list[Straight] = []
        for item, role in reversed(self.ops):
            # A part of an input that is also wanted outside runs alone: the pass itself does not need it.
            if role.kind == "join":
                is_alone = not any(x in self.registers and self.registers[x] < 0 for x in item.inputs)
            else:
                is_alone = self.registers[item.outputs[0]] >= 0 and item.outputs[0] in wanted
            if is_alone:
                alone.append(item)
                wanted.update(item.inputs)
            else:
                members.append((item, role))
        if not self.instructions or len(members) < 2:
            return [item for item, _ in self.ops]
        return [*reversed(alone), self.written(members[::-1], wanted)]

    def written(self, members: Sequence[tuple[Op, _Role]], wanted: set[int]) -> data.Fused:
        count = len(self.inputs)

        def number(register: int) -> int:
            return register if register >= 0 else count + ~register

        outputs: list[data.FusedOutput] = []
        for item, role in members:
            to = item.outputs[0]
            if role.kind == "join":
                offset = 0
                for x in item.inputs:
                    outputs.append(data.FusedOutput(to, offset, number(self.use(x))))
                    offset += self.here.count(x)
            elif to in wanted:
                outputs.append(data.FusedOutput(to, 0, number(self.registers[to])))
        instructions = [
            data.Instruction(role.kind, role.kernel, to, tuple(map(number, operands)))  # type: ignore[arg-type]
            for role, to, operands in self.instructions
        ]
        inputs = [data.FusedInput(*key) for key in self.inputs]
        ops = tuple([item for item, _ in members])
        return data.Fused(ops, self.width, tuple(inputs), tuple(instructions), tuple(outputs))


class _Segment:
    """Consecutive items of a stage, none of which the host runs."""

    def __init__(self, here: _InRegion, items: Sequence[Straight]) -> None:
        self.here = here
        self.items = items
        self.roles = [here.role(item) for item in paced(items)]
        self.missing = [0] * len(items)
        self.after: list[list[int]] = [[] for _ in items]
        self.ready: dict[int, list[int]] = {}  # width -> heap of items, in their old order
        self.plain: list[int] = []
        self.waiting: list[int] = []

    def order(self) -> Iterable[Straight]:
        if sum(role is not _NONE for role in self.roles) < 2:
            return self.items  # nothing to fuse
        self.connect()
        for k, count in enumerate(self.missing):
            if count == 0:
                self.make_ready(k)
        out: list[Straight] = []
        while True:
            if self.plain:
                k = heapq.heappop(self.plain)
                out.append(self.items[k])
                self.release(k, None)
            elif (width := self.earliest(1, None)) is not None:
                out += self.gather(width)
            else:
                return out

    def connect(self) -> None:
        """Find which items wait for which."""
        makers: dict[int, int] = {}
        for k, item in enumerate(self.items):
            before = {makers[x] for x in reads(item) if x in makers}
            for other in before:
                self.after[other].append(k)
            self.missing[k] = len(before)
            for to in writes(item):
                makers[to] = k

    def make_ready(self, k: int) -> None:
        role = self.roles[k]
        heapq.heappush(self.plain if role is _NONE else self.ready.setdefault(role.width, []), k)

    def release(self, k: int, current: _Pass | None) -> None:
        """An item has run, or joined the current pass: its followers are ready, or must wait until the pass ends."""
        for follower in self.after[k]:
            self.missing[follower] -= 1
            if self.missing[follower] > 0:
                continue
            item = self.items[follower]
            if current is not None and isinstance(item, Op) and current.must_wait(item, self.roles[follower]):
                self.waiting.append(follower)
            else:
                self.make_ready(follower)

    def earliest(self, low: int, high: int | None) -> int | None:
        """The width, within a range, of the first item that is ready."""
        best: int | None = None
        for width, heap in self.ready.items():
            fits = width >= low and (high is None or width <= high)
            if fits and heap and (best is None or heap[0] < self.ready[best][0]):
                best = width
        return best

    def gather(self, first: int) -> list[Straight]:
        """A pass that starts with the first ready item and is as large as possible."""
        check()
        current = _Pass(self.here)
        refused: list[int] = []
        width = 1
        chosen: int | None = first
        while chosen is not None and not current.is_full():
            k = heapq.heappop(self.ready[chosen])
            item, role = self.items[k], self.roles[k]
            assert isinstance(item, Op)
            if current.add(item, role):
                width = max(width, role.width)
                self.release(k, current)
            else:
                refused.append(k)
            if width == 1:
                chosen = self.earliest(1, MOST_PLANES)
            elif width > MOST_PLANES or (chosen := self.earliest(1, 1)) is None:
                chosen = self.earliest(width, width)
        for k in refused:
            heapq.heappush(self.plain, k)
        for k in self.waiting:
            self.make_ready(k)
        self.waiting.clear()
        return current.finish()
