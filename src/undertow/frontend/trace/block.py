"""A function that is written by a block of plain Python, which runs once: what is behind `ut.SubGraph`.

The block is not captured from its source. What it does with traced values writes nodes, like a captured function does,
and the functions that it hands to `ut.cond`, `ut.while_loop` and `ut.map` are captured. Calls of SubGraphs that are not
finished are made whole later: see link.py.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import sys
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import Any

from undertow.errors import CaptureError, Span, UndertowError, brief
from undertow.frontend.control.termination import refuse_endless
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.syntax.annotations import Annotation, read
from undertow.frontend.syntax.calling import is_library_file
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.capture import Arguments, Definition, Session, Unit, raised_by_python
from undertow.frontend.trace.graft import Ready
from undertow.frontend.trace.link import PROVISIONAL, Written, called_by, callee_of, link
from undertow.frontend.trace.loaded import NoSource
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Context, Traced, capturing, context, used_too_late
from undertow.ir.graph import FunctionGraph, Library, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.types import CTL, Type

# Graphs of blocks have names that no other graph has, in any session: what stands behind the ~ is not shown.
_numbers = itertools.count(1)


_HOW_TO_INDEX = (
    "in the block of a SubGraph write ut.asarray(x)[i], and use the functions of ut; "
    "a `def` that is given to ut.cond may index arrays and lists as they are"
)


def user_frame() -> FrameType | None:
    """The innermost frame that runs the user's code; where all of it is installed, the innermost that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    installed: FrameType | None = None
    while frame is not None and is_library_file(frame.f_code.co_filename):
        if installed is None and not str(frame.f_globals.get("__name__")).startswith("undertow."):
            installed = frame
        frame = frame.f_back
    return frame or installed


class BlockContext(Context):
    """Knows the line of the block that is running: it asks Python, unless a function is being captured."""

    def __init__(self, session: Any) -> None:
        self.captured: Span | None = None  # where the captured function is, or was when it failed
        super().__init__(session)

    @property
    def is_plain_python(self) -> bool:  # type: ignore[override]
        return not self.session.interpreter.depth

    @property
    def span(self) -> Span | None:
        if not self.is_plain_python:
            return self.captured
        frame = user_frame()
        if frame is None:
            return None
        return Span(frame.f_code.co_filename, frame.f_lineno, function=self.session.block_name)

    @span.setter
    def span(self, span: Span | None) -> None:
        self.captured = span

    @property
    def truth_hint(self) -> str:  # type: ignore[override]
        if not self.is_plain_python:
            return Context.truth_hint
        return (
            "the block of a SubGraph runs once, as plain Python: choose with ut.cond(test, then, other) or ut.where, "
            "repeat with ut.while_loop"
        )

    @property
    def index_hint(self) -> str:  # type: ignore[override]
        return _HOW_TO_INDEX if self.is_plain_python else Context.index_hint

    @property
    def array_hint(self) -> str:  # type: ignore[override]
        return _HOW_TO_INDEX if self.is_plain_python else Context.array_hint


class BlockSession(Session):
    """What the outermost block of a SubGraph writes, with the blocks and functions inside of it."""

    ctx: BlockContext

    def __init__(self) -> None:
        self.blocks: list[Block] = []  # those that are open, the innermost last
        self.unfinished: dict[str, Block] = {}  # those that were called before they were finished
        super().__init__(context=BlockContext)

    @property
    def block_name(self) -> str:
        return self.blocks[-1].name if self.blocks else ""

    def fresh_name(self, name: str) -> str:
        return f"{name}~b{next(_numbers)}"

    def variable_name(self, variable: Any) -> str:
        """One that no other variable has, in any session: a graph that it goes into finds a better one."""
        return self.variables.setdefault(variable, f"{variable.name}~v{variable.number}")

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """The block runs once, so whatever touches a variable stands in program order."""
        if writes:
            self.written |= {variable}
        return True

    def resolve(self, value: Traced) -> Operand:
        if not value.builder.is_open:
            raise used_too_late(value)
        builder = self.ctx.open_builder
        owner = next((block for block in self.blocks if block.builder is value.builder), None)
        if owner is not None:
            if value.builder is not builder and (value.builder, value.port) not in builder.lifted:
                owner.name_values()  # the parameter that it becomes has the name of the user's variable
            elif owner.has_unnamed:
                owner.learn_names()
        return super().resolve(value)


@dataclass(slots=True, eq=False)
class _Input:
    value: Any  # what the user's variable holds
    note: Annotation
    params: list[int]
    name: str  # "": not known yet


class Block(Definition):
    """A function whose block is to run, is running, or has run."""

    def __init__(self, owner: object, name: str, returns: Any, span: Span) -> None:
        super().__init__(NoSource(name or "subgraph", inspect.Signature(), span))
        self._owner = owner  # the object that the user's variable holds
        self._is_named = bool(name)
        self._notes = {}
        if returns is not None:
            note = read(returns)
            if note is None:
                raise CaptureError(
                    f"{brief(returns)} says nothing about what a SubGraph gives",
                    span,
                    hint="give a type or several: returns=ut.i64, returns=(ut.f32[3], ut.f32[3])",
                )
            self._notes["return"] = note
        self.state = "declared"  # then "open", "written", "linked"; or "failed"
        self.builder = Builder(name, "function", span, is_open=False, is_block=True)
        self.callers: set[Block] = set()  # those that called it when it was not finished
        self._inputs: list[_Input] = []
        self._named: set[int] = set()  # nodes that have the name of a variable
        self._unit: Unit | None = None
        self._written: Written | None = None
        self._ready: Ready | None = None
        self._session: BlockSession | None = None
        self._frame: FrameType | None = None  # that the block runs in
        self._ports: list[Port] | None = None
        self._exits = contextlib.ExitStack()

    # -- names: the user's variables have them -------------------------------------------------------------

    @property
    def closure(self) -> Closure:
        if self.has_unnamed:
            self.learn_names()
        assert self._closure is not None
        return self._closure

    @property
    def has_unnamed(self) -> bool:
        return not self._is_named or any(not item.name for item in self._inputs)

    def learn_names(self) -> None:
        """Look for variables that hold this SubGraph, and its inputs."""
        frame = self._frame or user_frame()
        assert self._closure is not None
        variables = {} if frame is None or self.state in ("written", "linked") else dict(frame.f_locals)
        waiting = {id(item.value): item for item in self._inputs if not item.name}
        for name, value in variables.items():
            if name.startswith("_"):
                continue
            if value is self._owner and not self._is_named:
                self._closure.name, self._is_named = name, True
            elif id(value) in waiting:
                self._name_input(waiting.pop(id(value)), name)
        self.builder.name = self._closure.name

    def _name_input(self, item: _Input, name: str) -> None:
        taken = {other.name for other in self._inputs}
        numbered = (name if k == 1 else f"{name}_{k}" for k in itertools.count(1))
        item.name = next(n for n in numbered if n not in taken)
        sample = tree.unflatten(item.note.structure, item.note.types)
        paths = tree.paths(sample, item.name, lambda leaf: isinstance(leaf, Type))
        for param, path in zip(item.params, paths, strict=True):
            self.builder.nodes[param] = replace(self.builder.nodes[param], name=path)
        self._declare()

    def _declare(self) -> None:
        assert self._closure is not None and self._notes is not None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [item.name or f"x{number}" for number, item in enumerate(self._inputs)]
        self._closure.signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        given = {name: item.note for name, item in zip(names, self._inputs, strict=True)}
        self._notes = {**given, **({"return": self._notes["return"]} if "return" in self._notes else {})}

    def name_values(self) -> None:
        """Nodes get the names of the variables of the block that hold what they give, as in a captured function."""
        self.learn_names()
        if self._frame is None:
            return
        nodes = self.builder.nodes
        renamed: set[int] = set()
        for name, value in dict(self._frame.f_locals).items():
            if isinstance(value, Traced) and value.builder is self.builder and not name.startswith("_"):
                number, node = value.port.node, nodes[value.port.node]
                if node.region == 0 and node.op not in ("param", "switch") and number not in self._named:
                    nodes[number] = replace(node, name=name)
                    renamed.add(number)
        self._named |= renamed
        for number, node in enumerate(nodes):  # a Switch is named after what goes through it
            if renamed and node.op == "switch" and (origin := self.builder.origin(Port(number)).node) in renamed:
                scope = node.name.rpartition("/")
                nodes[number] = replace(node, name=f"{scope[0]}{scope[1]}{nodes[origin].name}.if")

    # -- the block -----------------------------------------------------------------------------------------

    def enter(self) -> None:
        """The block begins: from here on traced values write into it."""
        if self.state != "declared":
            said = {"open": "is open already", "failed": "ended in an error, and cannot be opened again"}
            raise CaptureError(
                f"the block of `{self.name}` {said.get(self.state, 'has been written already')}",
                _here(),
                hint="make a new one for another function: with ut.SubGraph() as ...",
            )
        current = context()
        session: BlockSession
        if current is None or current.builder is None:
            session = BlockSession()
            self._exits.enter_context(capturing(session.ctx))
        elif isinstance(current.session, BlockSession):
            session = current.session
            session.blocks[-1].name_values()
        else:
            raise CaptureError(
                "a SubGraph cannot be defined while a function is captured",
                hint="define the SubGraph before the function, and call it there",
            )
        self._session, self._frame, self.state = session, user_frame(), "open"
        self._exits.callback(setattr, session.ctx, "builder", session.ctx.builder)
        session.ctx.builder = self.builder
        session.blocks.append(self)
        self.builder.is_open = True
        self.builder.entry_effect = self.builder.param(CTL, "effect")

    def leave(self, fault: BaseException | None, trace: TracebackType | None) -> None:
        """The block is over. Links it, if nothing that it calls is still to be written."""
        session = self._session
        assert session is not None
        try:
            if fault is not None:
                self._explain(fault, trace)
            else:
                self.name_values()
                if self._ports is None:
                    raise CaptureError(
                        f"the block of `{self.name}` ends without an output",
                        self.closure.span,
                        hint=f"end it with {self.name}.output(...), and what it gives",
                    )
                visible = [param for item in self._inputs for param in item.params]
                self._written = Written(self.unit, self.builder, visible, self._ports, session)
        finally:
            self.state = "failed" if self._written is None else "written"
            self._number_inputs()
            self.builder.is_open = False
            session.blocks.remove(self)
            self._frame = None
            self._exits.close()
        if self._written is not None:
            self._link()

    def _number_inputs(self) -> None:
        """Inputs that no variable holds are x0, x1, ..."""
        for number, item in enumerate(self._inputs):
            if not item.name:
                self._name_input(item, f"x{number}")
        self._is_named = True

    def _explain(self, fault: BaseException, trace: TracebackType | None) -> None:
        """Say where an error happened: in a function that is captured, or in a line of the block."""
        assert self._session is not None
        span: Span | None = None
        is_capturing = False
        while trace is not None:
            code = trace.tb_frame.f_code
            if code is Interpreter.invoke.__code__:
                is_capturing = True
            elif not is_library_file(code.co_filename):
                span, is_capturing = Span(code.co_filename, trace.tb_lineno, function=self.name), False
            trace = trace.tb_next
        if is_capturing:
            span = self._session.ctx.captured
        if isinstance(fault, UndertowError):
            fault.span = fault.span or span
        elif is_capturing and isinstance(fault, (Exception, SystemExit)):
            raise raised_by_python(fault, span) from fault

    def input(self, spec: Any, name: str) -> Any:
        """One more parameter: a traced value, or a container of them."""
        note = read(spec)
        if note is None or not note.types:
            raise CaptureError(
                f"{brief(spec)} says nothing about an input of `{self.name}`",
                _here(),
                hint="give a type, as in ut.i32 or ut.f32[3], or a container of types",
            )
        if self.state not in ("declared", "open") or self._ports is not None or self._unit is not None:
            after = "its block" if self.state not in ("declared", "open") else "its output"
            raise CaptureError(
                f"an input of `{self.name}` is declared after {after if self._unit is None else 'it was called'}",
                _here(),
                hint="declare all inputs first",
            )
        if name and (not name.isidentifier() or name in (item.name for item in self._inputs)):
            raise CaptureError(
                f"{name!r} cannot be the name of an input of `{self.name}`",
                _here(),
                hint="names are like those of Python's variables, each taken once",
            )
        self.learn_names()
        ports = [self.builder.param(type.erased(), f"x{len(self._inputs)}") for type in note.types]
        value = tree.unflatten(note.structure, [Traced(self.builder, port) for port in ports])
        item = _Input(value, note, [port.node for port in ports], "")
        self._inputs.append(item)
        if name:
            self._name_input(item, name)
        self._declare()
        return value

    def output(self, value: Any) -> None:
        """What the function gives."""
        session = self._session
        is_here = self.state == "open" and session is not None and session.ctx.builder is self.builder
        if not is_here or self.builder.region != 0 or self._ports is not None:
            what = "has an output already" if self._ports is not None else "gets its output outside of its block"
            raise CaptureError(
                f"`{self.name}` {what}",
                _here(),
                hint="call output once, in the block itself, with all that it gives: output(a, b)",
            )
        assert session is not None
        self.name_values()
        unit = self.unit
        self._ports = session.result_ports(unit, value)

    # -- calls ---------------------------------------------------------------------------------------------

    @property
    def unit(self) -> Unit:
        """The function as the sessions that call it see it."""
        if self._unit is None:
            types = tuple(type.erased() for item in self._inputs for type in item.note.types)
            given = Arguments([], types, (), [], (), ())
            name = f"{self.name}~b{next(_numbers)}"
            self._unit = Unit(self, name, types, given, dict.fromkeys(PROVISIONAL), self.note("return"))
        return self._unit

    def standing(self, session: Session) -> Unit | None:
        if self._ready is not None:
            return None
        if self.state == "linked":
            for what in self.unit.hidden:
                if not isinstance(what, str) and (session is not self._session or not what[0].is_open):
                    name = what[0].nodes[what[1].node].name.rsplit("/", 1)[-1]
                    raise CaptureError(
                        f"`{self.name}` uses `{name}` of `{what[0].name}`, and is called outside of the block of that",
                        hint=f"make `{name}` an input of `{self.name}`, or call it in the block",
                    )
            return self.unit
        if not isinstance(session, BlockSession) or self.state == "failed":
            raise self._unfinished()
        if self.unit.results is None:
            raise CaptureError(
                f"`{self.name}` is called before its block is over, so what it gives must be declared",
                hint="write the type of its output: ut.SubGraph(returns=ut.i64), or ut.f32[3], or a tuple of types",
            )
        session.unfinished[self.unit.name] = self
        self.callers.add(session.blocks[-1])
        return self.unit

    def ready(self, given: Arguments) -> Ready | None:
        return self._ready

    def _unfinished(self) -> CaptureError:
        said = {"declared": "has no block", "failed": "ended in an error", "open": "is not over"}
        missing = self if self.state in said else next(b for b in self._group() if b.state in said)
        through = "" if missing is self else f" calls `{missing.name}`, which"
        what = said[missing.state] if missing.state == "declared" else f"has a block that {said[missing.state]}"
        return CaptureError(
            f"`{self.name}`{through} {what}",
            self.closure.span,
            hint=f"fill it first: `with {missing.name}:`, and {missing.name}.output(...) in it"
            if missing.state == "declared"
            else "in its block call it like a function, without `.run` or `.graph`"
            if missing.state == "open"
            else "write it anew, with the error corrected",
        )

    # -- linking -------------------------------------------------------------------------------------------

    def _group(self) -> list[Block]:
        """All SubGraphs that call each other before they are finished, this one among them."""
        found: dict[Block, None] = {self: None}
        waiting: list[Block] = [self]
        while waiting:
            block = waiting.pop()
            reached = set(block.callers)
            if block._written is not None:
                assert block._session is not None
                names = called_by(block._written)
                reached |= {other for name, other in block._session.unfinished.items() if name in names}
            for other in sorted(reached - found.keys(), key=lambda b: b.unit.name):
                if other.state != "linked":
                    found[other] = None
                    waiting.append(other)
        return list(found)

    def _link(self) -> None:
        group = self._group()
        if any(block._written is None for block in group):
            return
        link([block._written for block in group if block._written is not None])
        graphs: dict[str, FunctionGraph] = {}
        for block in group:
            assert block._session is not None
            graphs |= block._session.graphs
        try:
            for block in group:
                block.state = "linked"
                reached = _reached(block.unit.name, graphs)
                try:
                    refuse_endless(Library(reached, block.unit.name))
                except CaptureError as fault:
                    fault.hint = "give it a base case: ut.cond(test, base, other), and only `other` calls it again"
                    raise
                if all(isinstance(what, str) for what in block.unit.hidden):
                    block._make_ready(reached)
        except CaptureError:
            for block in group:
                block.state, block._ready = "failed", None
            raise

    def _make_ready(self, graphs: dict[str, FunctionGraph]) -> None:
        unit = self.unit
        assert unit.results is not None
        structures = tuple(item.note.structure for item in self._inputs)
        session = self._session
        assert session is not None
        used = {node.attrs["variable"] for graph in graphs.values() for node in graph.nodes if "variable" in node.attrs}
        variables = {
            name: (variable, variable in session.written)
            for variable, name in session.variables.items()
            if name in used
        }
        self._ready = Ready(
            unit.types, structures, unit.results, unit.name, tuple(unit.hidden), graphs, variables, is_shared=True
        )
        self._session = self._written = None


def _reached(name: str, graphs: dict[str, FunctionGraph]) -> dict[str, FunctionGraph]:
    """A graph and all that it needs."""
    found = {name: graphs[name]}
    waiting = [name]
    while waiting:
        for node in found[waiting.pop()].nodes:
            if node.op in ENTERS and callee_of(node) not in found:
                found[callee_of(node)] = graphs[callee_of(node)]
                waiting.append(callee_of(node))
    return found


def _here() -> Span | None:
    current = context()
    if current is not None:
        return current.span
    frame = user_frame()
    return None if frame is None else Span(frame.f_code.co_filename, frame.f_lineno)
