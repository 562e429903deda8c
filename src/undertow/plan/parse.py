"""Read the text of a plan: the inverse of `dump`.

Columns of all regions are read first, since items refer to columns of the regions that they enter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args

from undertow.errors import GraphError, UndertowError, brief
from undertow.ir.graph import EMPTY, Array, Attr, Attrs, Const, Node
from undertow.ir.line import Line, fail
from undertow.ir.literal import RESERVED
from undertow.ir.parse import big_constant
from undertow.ops.op import CATALOGUE
from undertow.ops.vet import type_rule
from undertow.plan import plan as data
from undertow.plan.dump import VERSION
from undertow.plan.lower import ORDERS_ONLY, acts_on_world, signature
from undertow.plan.plan import NO_SLOT, Kernel, Plan, Program, Region, Slot, Stage
from undertow.plan.shapes import count_of, part_at
from undertow.types import DTYPES, Type

_ENTERED = ("branch", "call", "resume", "loop", "map", "recv")
_HEADS = get_args(data.RegionKind)
_Key = TypeVar("_Key")


def parse(text: str, constants: Mapping[str, Array] | None = None) -> Plan:
    """The plan that a text describes. `constants` are the arrays that it refers to by digest."""
    if not isinstance(text, str):
        raise GraphError(f"{brief(text)} is not a plan", hint="pass the text of str(f.plan(...))")
    lines = [Line(number, line) for number, line in enumerate(text.splitlines(), 1)]
    lines = [line for line in lines if line.tokens]
    if not lines:
        fail(1, "the text is empty")
    first = lines[0]
    if first.past("plan").integer() != VERSION:
        fail(first.number, f"expected a plan of version {VERSION}", first.text)
    name = first.name()
    first.end()
    return _Reader(name, lines[1:], constants or {}).run()


@dataclass(slots=True, eq=False)
class _Block:
    """The lines of a region."""

    head: Line
    kind: str
    name: str
    body: str = ""
    hoisted: int = 0
    slots: list[Slot] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)


class _Numbered(dict[_Key, int]):
    """Numbers values in the order of their first use."""

    def __init__(self) -> None:
        self.listed: list[_Key] = []

    def __missing__(self, key: _Key) -> int:
        self[key] = len(self.listed)
        self.listed.append(key)
        return self[key]


class _Reader:
    def __init__(self, name: str, lines: Sequence[Line], constants: Mapping[str, Array]) -> None:
        self.name = name
        self.arrays = constants
        self.big: dict[str, Const] = {}
        self.groups: list[data.Group] = []
        self.group_of: dict[str, int] = {}
        self.blocks: list[_Block] = []
        self.regions: dict[str, int] = {}
        self.constants: _Numbered[Const] = _Numbered()
        self.kernels: _Numbered[Kernel] = _Numbered()
        for line in lines:
            if line.peek() == "group":
                self.group(line)
            elif line.peek() in _HEADS and not line.text.startswith(" "):
                self.head(line)
            elif not self.blocks:
                line.fail("a group or a region")
            elif line.peek() == "column":
                self.column(line)
            else:
                self.blocks[-1].lines.append(line)

    def run(self) -> Plan:
        if not self.blocks:
            fail(1, "the plan has no regions")
        regions = tuple(_RegionReader(self, number).read() for number in range(len(self.blocks)))
        return Plan(self.name, tuple(self.constants), tuple(self.kernels), tuple(self.groups), regions)

    def group(self, line: Line) -> None:
        if line.past("group").integer() != len(self.groups):
            fail(line.number, "groups must be numbered in order", line.text)
        schedule = line.expect(*get_args(data.Schedule))
        marks: dict[str, bool | int] = {}
        while mark := line.take("narrow", "scalar", "free", "grain"):
            if mark == "grain":
                marks["grain"] = line.past("=").integer()
            else:
                marks[f"is_{mark}"] = True
        for body in line.past(":").items(line.name):
            self.group_of[body] = len(self.groups)
        line.end()
        self.groups.append(data.Group(schedule, **marks))  # type: ignore[arg-type]

    def head(self, line: Line) -> None:
        block = _Block(line, line.expect(*_HEADS), line.name())
        if block.kind == "branch":
            block.body = line.past("of").name()
        else:
            block.body = block.name
            if line.take("hoisted"):
                block.hoisted = line.past("=").integer()
        line.end()
        if block.name in self.regions:
            fail(line.number, "duplicate region name", line.text)
        self.regions[block.name] = len(self.blocks)
        self.blocks.append(block)

    def column(self, line: Line) -> None:
        block, name = self.blocks[-1], line.past("column").name()
        type_ = line.past(":").type()
        home = line.expect(*get_args(data.Home))
        is_shared, is_passed = bool(line.take("shared")), bool(line.take("passed"))
        kind = line.take(*get_args(data.SlotKind)) or "value"
        line.end()
        if name in block.numbers:
            fail(line.number, "duplicate column name", line.text)
        block.numbers[name] = len(block.slots)
        block.slots.append(Slot(name, type_, kind, home, is_shared, is_passed))  # type: ignore[arg-type]

    def region(self, line: Line) -> int:
        name = line.name("the name of a region")
        return self.regions[name] if name in self.regions else fail(line.number, f"no region {name}", line.text)

    def slot(self, line: Line, region: int) -> int:
        if line.take("_"):
            return NO_SLOT
        name = line.name("the name of a column")
        numbers = self.blocks[region].numbers
        return numbers[name] if name in numbers else fail(line.number, f"no column {name}", line.text)

    def operand(self, line: Line, region: int) -> int:
        if line.peek() in DTYPES and line.peek(1) == "[":
            const = big_constant(line, self.arrays, self.big)
        elif line.kind() == "string" or (line.kind() == "word" and line.peek() not in RESERVED):
            return self.slot(line, region)
        else:
            const = line.const()
        return ~self.constants[const]


class _RegionReader:
    """Reads the programs of one region."""

    def __init__(self, reader: _Reader, number: int) -> None:
        self.reader = reader
        self.number = number
        self.block = reader.blocks[number]
        self.lines = self.block.lines
        self.at = 0
        self.written: dict[int, data.Op] = {}  # by slot: the operators so far

    def read(self) -> Region:
        block, reader = self.block, self.reader
        if block.body not in reader.regions:
            fail(block.head.number, f"no region {block.body}", block.head.text)
        body = reader.regions[block.body]
        if block.body not in reader.group_of:
            fail(block.head.number, f"{block.body} is in no group", block.head.text)
        programs: list[Program] = []
        params: list[tuple[int, ...]] = []
        results: list[tuple[int, ...]] = []
        while (line := self.next()) is not None:
            if block.kind == "branch":
                if line.past("visit").integer() != len(programs):
                    fail(line.number, "visits must be numbered in order", line.text)
                phase = line.past("in", "phase").integer()
            else:
                phase = line.past("phase").integer()
                params.append(self.slots(line.past("("), ")"))
                results.append(self.slots(line.past("->", "("), ")"))
            line.end()
            programs.append(self.program(phase))
        kind: Any = block.kind
        own = block.name, kind, body, reader.group_of[block.body], reader.blocks[body].hoisted
        return Region(*own, tuple(block.slots), tuple(programs), tuple(params), tuple(results))

    def peek(self) -> str:
        return self.lines[self.at].peek() if self.at < len(self.lines) else ""

    def next(self) -> Line | None:
        self.at += 1
        return self.lines[self.at - 1] if self.at <= len(self.lines) else None

    def take(self, word: str) -> Line | None:
        """The rest of the next line, if it begins with this word."""
        if self.peek() != word:
            return None
        self.at += 1
        return self.lines[self.at - 1].past(word)

    # -- programs ------------------------------------------------------------------------------------------

    def program(self, phase: int) -> Program:
        unordered: list[data.Item] = []
        after: list[tuple[int, int]] = []
        if (line := self.take("unordered")) is not None:
            line.end()
            while self.peek() not in ("", "phase", "visit", "wait"):
                unordered.append(self.item()[0])
            while (line := self.take("wait")) is not None:
                later = line.integer()
                after.append((line.past("for").integer(), later))
                line.end()
        stages: list[Stage] = []
        while (line := self.take("stage")) is not None:
            line.end()
            stages.append(self.stage())
        return Program(phase, tuple(stages), tuple(unordered), tuple(after))

    def stage(self) -> Stage:
        straight: list[data.Straight] = []
        deferred: list[data.Straight] = []
        ahead: list[int] = []
        entered: list[data.Entered] = []
        drops: tuple[int, ...] = ()
        kind, wide, count = "none", 0, 0
        ends = ("", "stage", "phase", "visit", "deferred", "drop", "enter")
        while self.peek() not in ends:
            straight.append(self.item()[0])  # type: ignore[arg-type]
        if (line := self.take("deferred")) is not None:
            kind = line.expect(*get_args(data.DeferredKind)[1:])
            wide = line.past("below").integer()
            line.end()
            while self.peek() not in ends:
                item, belongs = self.item()
                deferred.append(item)  # type: ignore[arg-type]
                ahead += [count + k for k, is_ahead in enumerate(belongs) if is_ahead]
                count += len(belongs)
        if (line := self.take("drop")) is not None:
            drops = self.slots(line)
            line.end()
        if (line := self.take("enter")) is not None:
            line.end()
            while self.peek() in _ENTERED:
                entered.append(self.item()[0])  # type: ignore[arg-type]
        return Stage(tuple(straight), tuple(deferred), tuple(ahead), kind, wide, drops, tuple(entered))  # type: ignore[arg-type]

    # -- items ---------------------------------------------------------------------------------------------

    def item(self) -> tuple[data.Item, list[bool]]:
        """An item; and whether it, or each operator of a pass, belongs to the next phase."""
        if (line := self.take("pass")) is not None:
            return self.fused(line)
        line = self.next()
        assert line is not None
        kinds: dict[str, Callable[[Line], data.Item]] = {
            "branch": self.branch,
            "call": self.call,
            "resume": self.call,
            "loop": self.loop,
            "map": self.map,
            "send": self.send,
            "recv": self.recv,
        }
        first = line.peek()
        if first in kinds and line.peek(1).startswith("#"):
            item = kinds[first](line)
            line.end()
            return item, [False]
        if first == "collect":
            return self.collect(line)
        return self.straight(line)

    def notes(self, line: Line) -> tuple[str, tuple[int, ...], bool]:
        """The notes after an item: its node, the operands that it reads last, whether it is ahead of its phase."""
        node, is_ahead = "", False
        last: tuple[int, ...] = ()
        if line.take(";"):
            while line.peek():
                word = line.expect("node", "last", "ahead")
                if word == "ahead":
                    is_ahead = True
                elif word == "node":
                    node = line.past("=").name()
                else:
                    last = tuple(line.past("=").items(line.integer))
        line.end()
        return node, last, is_ahead

    def collect(self, line: Line) -> tuple[data.Item, list[bool]]:
        index, kind = line.past("collect").integer(), line.expect(*get_args(data.CollectKind))
        values = self.operands(line)
        node, _, is_ahead = self.notes(line)
        return data.Collect(node, index, kind, values), [is_ahead]  # type: ignore[arg-type]

    def straight(self, line: Line) -> tuple[data.Item, list[bool]]:
        """An operator, a read or a collected sum."""
        outputs: tuple[int, ...] = ()
        if line.take("("):
            line.expect(")")
        else:
            outputs = self.slots(line)
        line.expect("=")
        if source := line.take("entry", "shared"):
            index = self.reader.slot(line, 0) if source == "shared" else line.integer()
            _, _, is_ahead = self.notes(line)
            return data.Read(outputs[0], index, source == "shared"), [is_ahead]
        if line.take("replica"):
            count = line.integer()
            return data.Replica(outputs[0], count, line.past("salt").integer()), [False]
        if line.take("collected"):
            call, index = self.numbered(line, "call"), line.integer()
            like = self.operand(line.past("like"))
            self.notes(line)
            return data.Collected(call, index, like, outputs), [False]
        op = line.name("an operator")
        attrs = self.attrs(line)
        inputs = self.operands(line) if line.peek() not in ("", ";") else ()
        node, last, is_ahead = self.notes(line)
        if not node and outputs and outputs[0] != NO_SLOT:
            node = f"{self.block.name}/{self.block.slots[outputs[0]].name}"
        if op == "order":
            return data.Op(node, ORDERS_ONLY, (), ()), [is_ahead]
        written = data.Op(node, self.kernel(line, op, attrs, inputs, outputs), inputs, outputs, last)
        self.written.update(dict.fromkeys(outputs, written))
        return written, [is_ahead]

    def attrs(self, line: Line) -> Attrs:
        if not line.take("("):
            return EMPTY

        def attr() -> tuple[str, Attr]:
            key = line.name("an attribute")
            return key, line.past("=").attr()

        return Attrs(**dict(line.items(attr, ")")))

    def kernel(self, line: Line, op: str, attrs: Attrs, inputs: Sequence[int], outputs: Sequence[int]) -> int:
        def signatures(operands: Sequence[int]) -> tuple[tuple[str, int], ...]:
            return tuple(("ctl", 0) if x == NO_SLOT else signature(self.type_of(x)) for x in operands)

        self.check_types(line, op, attrs, inputs, outputs)
        return self.reader.kernels[Kernel(op, attrs, signatures(inputs), signatures(outputs), acts_on_world(op))]

    def check_types(self, line: Line, op: str, attrs: Attrs, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Check an operator by the type rule of its row: kernels do not check again."""
        if op in CATALOGUE and CATALOGUE[op].state is not None:
            return  # the type of its variable is known to the process only
        try:
            types = type_rule(Node(op, (), (), "", attrs=attrs), [self.type_of(x) for x in inputs])
        except UndertowError as wrong:
            fail(line.number, wrong.what, line.text, wrong.hint)
        for to, type_ in zip(outputs, types, strict=False):
            if to != NO_SLOT and not self.type_of(to).accepts(type_):
                fail(line.number, f"{op} returns {type_}, which does not fit {self.block.slots[to].name}", line.text)
        if len(outputs) != len(types):
            fail(line.number, f"{op} returns {len(types)} results", line.text)

    def type_of(self, x: int) -> Type:
        return self.reader.constants.listed[~x].type if x < 0 else self.block.slots[x].type

    def fused(self, line: Line) -> tuple[data.Item, list[bool]]:
        width = line.integer()
        line.end()
        ops: list[data.Op] = []
        ahead: list[bool] = []
        inputs: list[data.FusedInput] = []
        instructions: list[data.Instruction] = []
        outputs: list[data.FusedOutput] = []
        while self.take("end") is None:
            if (line_ := self.next()) is None:
                fail(line.number, "the pass is not closed", line.text)
            if self.is_register(line_) and line_.peek(1) == "=":
                self.register(line_, len(inputs) + len(instructions))
                is_step = line_.past("=").peek() in get_args(data.InstructionKind)
                if is_step and line_.peek(1) not in ("", "at", "count"):
                    instructions.append(self.instruction(line_, ops))
                else:
                    inputs.append(self.input(line_))
                line_.end()
            elif self.is_output(line_):
                outputs.append(self.output(line_))
            else:
                item, belongs = self.straight(line_)
                assert isinstance(item, data.Op)
                ops.append(item)
                ahead += belongs
        fused = data.Fused(tuple(ops), width, tuple(inputs), tuple(instructions), tuple(outputs))
        self.check_pass(line, fused)
        return fused, ahead

    def check_pass(self, line: Line, fused: data.Fused) -> None:
        """Check that the instructions of a pass compute what its operators do: a run may use either."""
        kernels, written = self.reader.kernels.listed, self.written
        registers = {step.to: len(fused.inputs) + k for k, step in enumerate(fused.instructions)}

        def register_of(x: int) -> int | None:
            """The register of a value: of an instruction, or of an input that it is, or is a part of."""
            at, count = 0, count_of(self.type_of(x))
            while x not in registers:
                wanted = data.FusedInput(x, at, count)
                if wanted in fused.inputs:
                    return fused.inputs.index(wanted)
                if x not in written or len(written[x].inputs) != 1:
                    return None
                kernel, x = kernels[written[x].kernel], written[x].inputs[0]
                if kernel.op == "broadcast_to":
                    count = count_of(self.type_of(x))
                else:
                    at = part_at(kernel, self.type_of(x))
            return registers[x]

        for step in fused.instructions:
            op = written[step.to]
            same = step.kind in ("fold", "place") or kernels[step.kernel].op == kernels[op.kernel].op
            if not same or step.inputs != tuple(map(register_of, op.inputs)):
                name = self.block.slots[step.to].name
                fail(line.number, f"the instruction for {name} does not compute what its operator says", line.text)

    def is_register(self, line: Line, ahead: int = 0) -> bool:
        word = line.peek(ahead)
        return word[:1] == "r" and word[1:].isdigit()

    def is_output(self, line: Line) -> bool:
        """Is it the line of an output: a column, maybe an offset, and a register?"""
        at = 1 if line.peek(1) == "=" else 3
        return line.peek(at) == "=" and self.is_register(line, at + 1) and line.peek(at + 2) == ""

    def register(self, line: Line, expected: int | None = None) -> int:
        number = line.read("a register such as r0", "word", lambda word: int(word.removeprefix("r")))
        if expected is not None and number != expected:
            fail(line.number, "registers must be numbered in order, inputs first", line.text)
        return number

    def input(self, line: Line) -> data.FusedInput:
        source = self.operand(line)
        offset = line.integer() if line.take("at") else 0
        return data.FusedInput(source, offset, line.past("count").integer())

    def instruction(self, line: Line, ops: Sequence[data.Op]) -> data.Instruction:
        kind = line.expect(*get_args(data.InstructionKind))
        name = line.name("an operator")
        registers = tuple(line.items(lambda: self.register(line)))
        to = self.slot(line.past("for"))
        own = next((op for op in ops if op.outputs[0] == to), None)
        if own is None:
            fail(line.number, "the pass has no operator with this result", line.text)
        kernel = self.reader.kernels.listed[own.kernel]
        if kind in ("fold", "place"):
            dtype = kernel.inputs[0][0]
            kernel = Kernel(name, EMPTY, ((dtype, 0), (dtype, 0)), ((dtype, 0),))
        elif name != kernel.op:
            kernel = Kernel(name, EMPTY, kernel.inputs, kernel.outputs)
        return data.Instruction(kind, self.reader.kernels[kernel], to, registers)  # type: ignore[arg-type]

    def output(self, line: Line) -> data.FusedOutput:
        to = self.slot(line)
        offset = line.integer() if line.take("at") else 0
        source = self.register(line.past("="))
        line.end()
        return data.FusedOutput(to, offset, source)

    def branch(self, line: Line) -> data.Branch:
        number = self.numbered(line, "branch")
        pred = self.slot(line.past("on"))
        visit, is_last = line.past("visit").integer(), bool(line.take("last"))
        regions: list[int] = []
        transfers: list[tuple[data.Transfer, ...]] = []
        for word in ("then", "else"):
            regions.append(self.reader.region(line.past(word)))
            transfers.append(self.transfers(line.past("("), regions[-1], ")"))

        def merge() -> data.Merge:
            to = self.slot(line)
            yes = self.operand(line.past("="), regions[0])
            return data.Merge(to, (yes, self.operand(line.past(","), regions[1])))

        merges = line.past("->", "(").items(merge, ")", between=";")
        sides = (regions[0], regions[1]), (transfers[0], transfers[1])
        return data.Branch(number, pred, visit, is_last, *sides, tuple(merges), self.drops(line))

    def call(self, line: Line) -> data.Call:
        number = self.numbered(line, line.peek())
        site = self.site(line)
        phase = line.integer() if line.take("phase") else 0
        callees = [self.reader.region(line)]
        while line.take("or"):
            callees.append(self.reader.region(line))
        arguments = self.operands(line.past("("), ")")
        selector = self.operand(line) if line.take("select") else NO_SLOT
        hoists = self.operands(line.past("("), ")") if line.take("entry") else ()
        results = self.slots(line.past("->", "("), ")")
        resume_group = line.past("resume_group").integer()
        visits = self.visits(line)
        family, sibling, siblings = -1, 0, 1
        if line.take("sibling"):
            sibling, siblings = line.integer(), line.past("of").integer()
            family = self.site(line.past("with"))
        return data.Call(
            site, number, phase, tuple(callees), selector, resume_group, arguments, hoists, results, visits,
            family, sibling, siblings, self.drops(line),
        )  # fmt: skip

    def loop(self, line: Line) -> data.Loop:
        number, site = self.numbered(line, "loop"), self.site(line)
        body = self.reader.region(line)
        variables = self.transfers(line.past("("), body, ";")
        outers = self.transfers(line, body, ")")
        branch = self.numbered(line.past("while"), "branch")
        going = self.going_on(line.past("next", "("), body, branch)
        after = self.operands(line, ")", going)
        exits = self.exits(line, body)
        return data.Loop(site, number, body, branch, variables, outers, after, exits, self.drops(line))

    def going_on(self, line: Line, body: int, branch: int) -> int:
        """The region that continues a loop, from the lines of its body."""
        for other in self.reader.blocks[body].lines:
            words = [token.group() for token in other.tokens]
            if words[:2] == ["branch", f"#{branch}"] and "then" in words:
                inner = Line(other.number, other.text)
                inner.at = words.index("then") + 1
                return self.reader.region(inner)
        fail(line.number, "no branch decides whether the loop continues", line.text)

    def map(self, line: Line) -> data.Map:
        number, site = self.numbered(line, "map"), self.site(line)
        phase, body = line.past("phase").integer(), self.reader.region(line)
        mapped = self.transfers(line.past("("), body, ";")
        outers = self.transfers(line, body, ")")
        counted = self.operand(line) if line.take("over") else 0
        results = self.exits(line, body)
        return data.Map(site, number, phase, body, counted, mapped, outers, results, self.visits(line))

    def send(self, line: Line) -> data.Send:
        edge, part = self.numbered(line, "send"), line.past("to").integer()
        if line.take("("):
            line.expect(")")
            return data.Send(edge, part, NO_SLOT)
        return data.Send(edge, part, self.operand(line))

    def recv(self, line: Line) -> data.Recv:
        edge, part = self.numbered(line, "recv"), line.past("from").integer()
        to, *more = self.slots(line.past("->", "("), ")")
        if more:
            fail(line.number, "a recv has one result", line.text)
        return data.Recv(edge, part, to)

    # -- parts ---------------------------------------------------------------------------------------------

    def slot(self, line: Line) -> int:
        return self.reader.slot(line, self.number)

    def slots(self, line: Line, close: str = "") -> tuple[int, ...]:
        return tuple(line.items(lambda: self.slot(line), close))

    def operand(self, line: Line, region: int | None = None) -> int:
        return self.reader.operand(line, self.number if region is None else region)

    def operands(self, line: Line, close: str = "", region: int | None = None) -> tuple[int, ...]:
        return tuple(line.items(lambda: self.operand(line, region), close))

    def numbered(self, line: Line, word: str) -> int:
        number = line.past(word).index()
        return number if number is not None else line.fail("a number such as #0")

    def site(self, line: Line) -> int:
        return line.past("@").integer()

    def visits(self, line: Line) -> tuple[int, ...]:
        return tuple(line.items(line.integer)) if line.take("visits") else ()

    def drops(self, line: Line) -> tuple[int, ...]:
        return self.slots(line) if line.take("drop") else ()

    def transfers(self, line: Line, region: int, close: str) -> tuple[data.Transfer, ...]:
        def transfer() -> data.Transfer:
            to = self.reader.slot(line, region)
            return data.Transfer(self.operand(line.past("=")), to)

        return tuple(line.items(transfer, close))

    def exits(self, line: Line, region: int) -> tuple[data.Exit, ...]:
        def exit_() -> data.Exit:
            to = self.slot(line)
            return data.Exit(self.operand(line.past("="), region), to)

        return tuple(line.past("->", "(").items(exit_, ")"))
