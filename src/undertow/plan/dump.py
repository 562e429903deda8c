"""Print a plan as text, one item a line; `parse` reads it back. docs/reference/plan_text.md is the grammar."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from undertow.ir.graph import Array
from undertow.ir.literal import INLINE, digest, quote, show_attr, show_const, show_string
from undertow.plan import plan as data
from undertow.plan.plan import NO_SLOT, Operand, Plan
from undertow.plan.walk import going_on

VERSION = 1
# Keywords of the text: a name that equals one is written in quotes.
_WORDS = frozenset((
    "_", "ahead", "at", "below", "collect", "collected", "column", "count", "deferred", "drop", "else", "end", "enter",
    "entry", "for", "group", "last", "like", "next", "node", "of", "on", "or", "order", "over", "pass", "phase",
    "replica", "resume_group", "select", "send", "shared", "sibling", "stage", "then", "unordered", "visit", "visits",
    "wait", "while", "with",
))  # fmt: skip
_REGISTER = re.compile(r"r[0-9]+")
LEGEND = """\
# A body has a program for each phase, a side of a branch one for each visit. Stages run in order: operators first, then
# everything under `enter`, together. Calls or resumes under one `enter` that go into one group and have the same number
# behind `resume_group` (they ask for later phases at the same points) are the lanes of one wave. `resume#k` continues
# `call#k` in a later phase; @n is the call site, its label in tags; `visits` says how many phases a callee will have if
# its caller has one, two, ...; `last` is the last visit to a branch in its phase. Columns stay from phase to phase.
# `drop` frees columns that are not read again; those of at most 64 bytes a lane are freed with their table, after
# its last visit. A pass runs the operators listed first as one loop over the lanes, by registers r; what it alone reads
# has no column. `deferred` steps wait for those of other waves, in tables of fewer lanes. `host` columns are looked at
# by the schedule, `lanes` by kernels only.
"""


def dump(plan: Plan, legend: bool = True) -> str:
    """The text of a plan; `parse` gives an equal plan, but for the numbering of constants and kernels."""
    lines = [f"plan {VERSION} {_name(plan.name)}"]
    if legend:
        lines += LEGEND.splitlines()
    for number, group in enumerate(plan.groups):
        marks = [word for word in ("narrow", "scalar", "free") if getattr(group, f"is_{word}")]
        if group.grain:
            marks.append(f"grain={group.grain}")
        bodies = [_name(r.name) for r in plan.regions if r.group == number and r.kind != "branch"]
        lines.append(" ".join(["group", str(number), group.schedule, *marks]) + ": " + ", ".join(bodies))
    for number in range(len(plan.regions)):
        lines += ["", *_Printer(plan, number).region()]
    return "\n".join(lines) + "\n"


def dump_constants(plan: Plan) -> dict[str, Array]:
    """The arrays that the text of a plan only refers to, by digest: what `parse` takes as `constants`."""
    return {digest(const.value): const.value for const in plan.constants if const.value.size > INLINE}


class _Printer:
    """Prints one region."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan = plan
        self.own: data.Region = plan.regions[number]

    def region(self) -> Iterator[str]:
        own = self.own
        if own.kind == "branch":
            head = f"branch {_name(own.name)} of {_name(self.plan.regions[own.body].name)}"
        else:
            head = f"{own.kind} {_name(own.name)}" + (f" hoisted={own.hoisted}" if own.hoisted else "")
        yield head
        width = min(max([len(_name(slot.name)) for slot in own.slots], default=0), 40)
        for slot in own.slots:
            yield "  column " + _column(slot, width)
        for number, program in enumerate(own.programs):
            if own.kind == "branch":
                yield f"  visit {number} in phase {program.phase}"
            else:
                params, results = self.slots(own.params[number]), self.slots(own.results[number])
                yield f"  phase {program.phase}({params}) -> ({results})"
            yield from self.program(program)

    def program(self, program: data.Program) -> Iterator[str]:
        if program.unordered:
            yield "    unordered"
            for item in program.unordered:
                yield from self.item(item)
            for earlier, later in program.after:
                yield f"      wait {later} for {earlier}"
        for stage in program.stages:
            yield "    stage"
            yield from self.stage(stage)

    def stage(self, stage: data.Stage) -> Iterator[str]:
        for item in stage.straight:
            yield from self.item(item)
        if stage.deferred:
            yield f"      deferred {stage.deferred_kind} below {stage.wide}"
            first = 0
            for deferred in stage.deferred:
                ahead = [k - first for k in stage.ahead]
                yield from self.item(deferred, "        ", ahead)
                first += len(deferred.ops) if isinstance(deferred, data.Fused) else 1
        if stage.drops:
            yield f"      drop {self.slots(stage.drops)}"
        if stage.entered:
            yield "      enter"
            for entered in stage.entered:
                yield from self.item(entered, "        ")

    # -- items ---------------------------------------------------------------------------------------------

    def item(self, item: data.Item, indent: str = "      ", ahead: Sequence[int] = ()) -> Iterator[str]:
        if isinstance(item, data.Fused):
            yield from (indent + line for line in self.fused(item, ahead))
            return
        notes = [*self.notes(item), *(["ahead"] if 0 in ahead else [])]
        yield indent + self.line(item) + (f" ; {' '.join(notes)}" if notes else "")

    def notes(self, item: data.Item) -> Iterator[str]:
        if isinstance(item, (data.Op, data.Collect)) and item.node != self.default_node(item):
            yield f"node={_name(item.node)}"
        if isinstance(item, data.Op) and item.last:
            yield f"last={','.join(map(str, item.last))}"

    def default_node(self, item: data.Op | data.Collect) -> str:
        """The name that a node has if the text gives none: its region and first result."""
        first = item.outputs[0] if isinstance(item, data.Op) and item.outputs else NO_SLOT
        return f"{self.own.name}/{self.own.slots[first].name}" if first != NO_SLOT else ""

    def line(self, item: data.Straight | data.Entered) -> str:
        if isinstance(item, data.Op):
            return f"{self.outputs(item.outputs)} = {self.operator(item.kernel)} {self.operands(item.inputs)}".rstrip()
        if isinstance(item, data.Read):
            source = _name(self.plan.regions[0].slots[item.index].name) if item.is_shared else str(item.index)
            return f"{self.slot(item.to)} = {'shared' if item.is_shared else 'entry'} {source}"
        if isinstance(item, data.Replica):
            return f"{self.slot(item.to)} = replica {item.count} salt {item.salt}"
        if isinstance(item, data.Collect):
            return f"collect {item.index} {item.kind} {self.operands(item.values)}"
        if isinstance(item, data.Collected):
            like = self.operand(item.like)
            return f"{self.outputs(item.to)} = collected call#{item.call} {item.index} like {like}"
        entered: dict[type, Callable[[Any], str]] = {
            data.Branch: self.branch,
            data.Call: self.call,
            data.Loop: self.loop,
            data.Map: self.map,
            data.Send: self.send,
            data.Recv: self.recv,
        }
        return entered[type(item)](item)

    def operator(self, number: int) -> str:
        if number < 0:
            return "order"
        kernel = self.plan.kernels[number]
        attrs = "".join(f"{quote(key)}={show_attr(value)}, " for key, value in kernel.attrs.items())
        return quote(kernel.op) + (f"({attrs[:-2]})" if attrs else "")

    def fused(self, item: data.Fused, ahead: Sequence[int]) -> Iterator[str]:
        yield f"pass {item.width}"
        for number, op in enumerate(item.ops):
            yield from self.item(op, "  ", [k - number for k in ahead])
        for number, input_ in enumerate(item.inputs):
            part = f" at {input_.offset}" if input_.offset else ""
            yield f"  r{number} = {self.operand(input_.source)}{part} count {input_.count}"
        for number, step in enumerate(item.instructions, len(item.inputs)):
            registers = ", ".join(f"r{k}" for k in step.inputs)
            name = quote(self.plan.kernels[step.kernel].op)
            yield f"  r{number} = {step.kind} {name} {registers} for {self.slot(step.to)}"
        for output in item.outputs:
            part = f" at {output.offset}" if output.offset else ""
            yield f"  {self.slot(output.to)}{part} = r{output.source}"
        yield "end"

    def branch(self, item: data.Branch) -> str:
        sides = [
            f"{self.region_name(region)}({self.transfers(region, transfers)})"
            for region, transfers in zip(item.regions, item.transfers, strict=True)
        ]
        merges = "; ".join(
            f"{self.slot(merge.to)} = {self.operand(merge.sides[0], item.regions[0])}, "
            f"{self.operand(merge.sides[1], item.regions[1])}"
            for merge in item.merges
        )
        head = f"branch#{item.branch} on {self.slot(item.pred)} visit {item.visit}" + (" last" if item.is_last else "")
        return f"{head} then {sides[0]} else {sides[1]} -> ({merges})" + self.dropped(item.drops)

    def call(self, item: data.Call) -> str:
        head = f"{'resume' if item.phase else 'call'}#{item.call} @{item.site}"
        head += f" phase {item.phase}" if item.phase else ""
        callees = " or ".join(map(self.region_name, item.callees))
        text = f"{head} {callees}({self.operands(item.arguments)})"
        if item.selector != NO_SLOT:
            text += f" select {self.operand(item.selector)}"
        if item.hoists:
            text += f" entry ({self.operands(item.hoists)})"
        text += f" -> ({self.slots(item.results)}) resume_group {item.resume_group}"
        if item.phase == 0:
            text += f" visits {', '.join(map(str, item.visits))}"
        if item.siblings > 1:
            text += f" sibling {item.sibling} of {item.siblings} with @{item.family}"
        return text + self.dropped(item.drops)

    def loop(self, item: data.Loop) -> str:
        body, going = item.body, going_on(self.plan, item)
        arguments = f"{self.transfers(body, item.variables)}; {self.transfers(body, item.outers)}"
        after = ", ".join(self.operand(x, going) for x in item.next)
        head = f"loop#{item.loop} @{item.site} {self.region_name(body)}({arguments})"
        text = f"{head} while branch#{item.branch} next ({after}) -> ({self.exits(body, item.exits)})"
        return text + self.dropped(item.drops)

    def map(self, item: data.Map) -> str:
        arguments = f"{self.transfers(item.body, item.mapped)}; {self.transfers(item.body, item.outers)}"
        text = f"map#{item.map} @{item.site} phase {item.phase} {self.region_name(item.body)}({arguments})"
        if item.phase == 0:
            text += f" over {self.operand(item.counted)}"
        text += f" -> ({self.exits(item.body, item.results)})"
        return text + (f" visits {', '.join(map(str, item.visits))}" if item.phase == 0 else "")

    def send(self, item: data.Send) -> str:
        return f"send#{item.edge} to {item.part} {'()' if item.source == NO_SLOT else self.operand(item.source)}"

    def recv(self, item: data.Recv) -> str:
        return f"recv#{item.edge} from {item.part} -> ({self.slot(item.to)})"

    # -- parts ---------------------------------------------------------------------------------------------

    def dropped(self, drops: Sequence[int]) -> str:
        return f" drop {self.slots(drops)}" if drops else ""

    def region_name(self, number: int) -> str:
        return _name(self.plan.regions[number].name)

    def transfers(self, region: int, transfers: Iterable[data.Transfer]) -> str:
        slots = self.plan.regions[region].slots
        return ", ".join(f"{_name(slots[t.to].name)} = {self.operand(t.source)}" for t in transfers)

    def exits(self, region: int, exits: Iterable[data.Exit]) -> str:
        return ", ".join(f"{self.slot(exit_.to)} = {self.operand(exit_.source, region)}" for exit_ in exits)

    def slot(self, number: int, region: int | None = None) -> str:
        slots = self.own.slots if region is None else self.plan.regions[region].slots
        return "_" if number == NO_SLOT else _name(slots[number].name)

    def slots(self, numbers: Iterable[int]) -> str:
        return ", ".join(map(self.slot, numbers))

    def outputs(self, numbers: Sequence[int]) -> str:
        return self.slots(numbers) if numbers else "()"

    def operand(self, x: Operand, region: int | None = None) -> str:
        return show_const(self.plan.constants[~x]) if x < 0 else self.slot(x, region)

    def operands(self, operands: Iterable[Operand]) -> str:
        return ", ".join(map(self.operand, operands))


def _name(name: str) -> str:
    return show_string(name) if name in _WORDS or _REGISTER.fullmatch(name) else quote(name)


def _column(slot: data.Slot, width: int) -> str:
    marks = [slot.home, *(word for word in ("shared", "passed") if getattr(slot, f"is_{word}"))]
    if slot.kind != "value":
        marks.append(slot.kind)
    return f"{_name(slot.name) + ':':<{width + 1}} {slot.type} {' '.join(marks)}"
