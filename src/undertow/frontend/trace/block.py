"""The implementation of `ut.SubGraph`: a function written by a block of plain Python that runs once.

The block is not captured from its source. Operations on traced values write nodes, as in a captured function, and the
functions that it passes to `ut.cond`, `ut.while_loop` and `ut.map` are captured. Calls of unfinished SubGraphs are
completed later: see link.py.
"""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import Any

from undertow.errors import CaptureError, Span, UndertowError, brief
from undertow.frontend.control.restart import Halted
from undertow.frontend.control.termination import refuse_endless
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.syntax.annotations import Annotation, read
from undertow.frontend.syntax.calling import signature_with
from undertow.frontend.syntax.source import Closure, NoSource
from undertow.frontend.trace.block_session import BlockSession, here, numbers, user_frame
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.definition import Arguments, Definition, Specialization
from undertow.frontend.trace.graft import Ready, renamed, with_callees
from undertow.frontend.trace.learned import must_be_declared, refuse_other_output
from undertow.frontend.trace.library import raised_by_python
from undertow.frontend.trace.link import PROVISIONAL, WrittenBlock, called_by, link
from undertow.frontend.trace.scope import name_of
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Traced, capturing, context
from undertow.ir.graph import FunctionGraph, Library, Port
from undertow.ir.names import Names
from undertow.ops.effects import acts, variables_of
from undertow.tracebacks import is_library_file
from undertow.types import CTL, Type


@dataclass(slots=True, eq=False)
class _Input:
    value: Any  # what the user's variable holds
    note: Annotation
    params: list[int]
    name: str  # "": not known yet


class Block(Definition):
    """A function whose block is to run, is running, or has run."""

    is_python = False

    def __init__(self, owner: object, name: str, returns: Any, span: Span) -> None:
        super().__init__(NoSource(name or "subgraph", inspect.Signature(), span))
        self._owner = owner  # the object that the user's variable holds
        self._is_named = bool(name)
        self._notes = {}
        if returns is not None:
            note = read(returns)
            if note is None:
                raise CaptureError(
                    f"returns= must be a type or several types, not {brief(returns)}",
                    span,
                    hint="write returns=ut.i64, or returns=(ut.f32[3], ut.f32[3])",
                )
            self._notes["return"] = note
        self.state = "declared"  # then "open", "written", "linked"; or "failed"
        self.builder = Builder(name, "function", span, is_open=False, is_block=True)
        self.callers: set[Block] = set()  # those that called it before it was finished
        self.learned: Annotation | None = None  # what it returns, by its own branches: see learned.py
        self.asked_at: Span | None = None  # where its block called it before that was known
        self._inputs: list[_Input] = []
        self._named: set[int] = set()  # nodes that have the name of a variable
        self._specialization: Specialization | None = None
        self._written: WrittenBlock | None = None
        self._ready: Ready | None = None
        self._session: BlockSession | None = None
        self._frame: FrameType | None = None  # in which the block runs
        self._ports: list[Port] | None = None
        self._exits = contextlib.ExitStack()

    # -- names, taken from the user's variables ------------------------------------------------------------

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
        """Name this SubGraph and its inputs after the variables that hold them."""
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
        item.name = Names(other.name for other in self._inputs).fresh(name)
        sample = tree.unflatten(item.note.structure, item.note.types)
        paths = tree.paths(sample, item.name, lambda leaf: isinstance(leaf, Type))
        for param, path in zip(item.params, paths, strict=True):
            self.builder.nodes[param] = replace(self.builder.nodes[param], name=path)
        self._declare()

    def _declare(self) -> None:
        assert self._closure is not None and self._notes is not None
        names = [item.name or f"x{number}" for number, item in enumerate(self._inputs)]
        self._closure.signature = signature_with(names)
        results = {"return": self._notes["return"]} if "return" in self._notes else {}
        self._notes = {**{name: item.note for name, item in zip(names, self._inputs, strict=True)}, **results}

    def name_values(self) -> None:
        """Name nodes after the block's variables that hold their results, as in a captured function."""
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
        """Begin the block: from here on, operations write into it."""
        if self.state != "declared":
            said = {"open": "is already open", "failed": "raised an error and cannot be opened again"}
            raise CaptureError(
                f"the block of `{self.name}` {said.get(self.state, 'is already complete')}",
                here(),
                hint="create a new SubGraph for another function: with ut.SubGraph() as ...",
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
        """End the block, and link it if all that it calls is finished."""
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
                        hint=f"end it with {self.name}.output(...) and the results",
                    )
                visible = [param for item in self._inputs for param in item.params]
                self._written = WrittenBlock(self.specialization, self.builder, visible, self._ports, session)
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
        """Name the inputs that no variable holds x0, x1, ..."""
        for number, item in enumerate(self._inputs):
            if not item.name:
                self._name_input(item, f"x{number}")
        self._is_named = True

    def _explain(self, fault: BaseException, trace: TracebackType | None) -> None:
        """Add to an error where it happened: in a captured function, or on a line of the block."""
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
        """Declare one more parameter: a traced value, or a container of them."""
        note = read(spec)
        if note is None or not note.types:
            raise CaptureError(
                f"an input of `{self.name}` must be a type or a container of types, not {brief(spec)}",
                here(),
                hint="write a type, as in ut.i32 or ut.f32[3]",
            )
        if self.state not in ("declared", "open") or self._ports is not None or self._specialization is not None:
            after = "its block" if self.state not in ("declared", "open") else "its output"
            after = after if self._specialization is None else "it was called"
            raise CaptureError(
                f"an input of `{self.name}` is declared after {after}",
                here(),
                hint="declare all inputs at the top of the block",
            )
        if name and (not name.isidentifier() or name in (item.name for item in self._inputs)):
            raise CaptureError(
                f"{name!r} cannot name an input of `{self.name}`",
                here(),
                hint="use a Python identifier that no other input has",
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
        """Declare the results of the function."""
        session = self._session
        is_here = self.state == "open" and session is not None and session.ctx.builder is self.builder
        if not is_here or self.builder.region != 0 or self._ports is not None:
            what = "already has an output" if self._ports is not None else "is given an output outside its block"
            raise CaptureError(
                f"`{self.name}` {what}",
                here(),
                hint="call output once, in the block itself, with all results: output(a, b)",
            )
        assert session is not None
        self.name_values()
        self._ports = session.result_ports(self.specialization, value)
        assert self.specialization.results is not None
        refuse_other_output(self, self.specialization.results)

    # -- calls ---------------------------------------------------------------------------------------------

    @property
    def specialization(self) -> Specialization:
        """The function as the sessions that call it see it."""
        if self._specialization is None:
            types = tuple(type.erased() for item in self._inputs for type in item.note.types)
            name, hidden = f"{self.name}~b{next(numbers)}", dict.fromkeys(PROVISIONAL)
            arguments = Arguments([], types, (), [], ())
            self._specialization = Specialization(self, name, types, arguments, hidden, self.note("return"))
        return self._specialization

    @property
    def knows_results(self) -> bool:
        return self.note("return") is not None or self.learned is not None

    def learn(self, results: Annotation) -> None:
        """Take this for what it returns."""
        self.learned = self.specialization.results = results

    def sole_specialization(self, session: Session) -> Specialization | None:
        if self._ready is not None:
            return None
        if self.state == "linked":
            for what in self.specialization.hidden:
                if not isinstance(what, str) and (session is not self._session or not what[0].is_open):
                    name = name_of(what)
                    raise CaptureError(
                        f"`{self.name}` uses `{name}` of `{what[0].name}`, but is called outside that block",
                        hint=f"make `{name}` an input of `{self.name}`, or call it in the block",
                    )
            return self.specialization
        if not isinstance(session, BlockSession) or self.state == "failed":
            raise self._unfinished()
        if self.specialization.results is None:
            self.asked_at = session.ctx.span
            if session.learner is self:
                raise Halted  # the branches without this call say what it returns
            raise must_be_declared(self, is_own=session.blocks[-1] is self)
        session.unfinished[self.specialization.name] = self
        self.callers.add(session.blocks[-1])
        return self.specialization

    def ready(self, arguments: Arguments) -> Ready | None:
        return self._ready

    def _unfinished(self) -> CaptureError:
        said = {"declared": "has no block", "failed": "raised an error", "open": "has not ended"}
        missing = self if self.state in said else next(b for b in self._group() if b.state in said)
        through = "" if missing is self else f" calls `{missing.name}`, which"
        what = said[missing.state] if missing.state == "declared" else f"has a block that {said[missing.state]}"
        return CaptureError(
            f"`{self.name}`{through} {what}",
            self.closure.span,
            hint=f"fill it first: `with {missing.name}:`, and {missing.name}.output(...) in it"
            if missing.state == "declared"
            else "in its block, call it like a function, without `.run` or `.graph`"
            if missing.state == "open"
            else "fix the error, and define it again",
        )

    # -- linking -------------------------------------------------------------------------------------------

    def _group(self) -> list[Block]:
        """This SubGraph and all that it must be linked with: those that call each other unfinished."""
        group: dict[Block, None] = {self: None}
        worklist: list[Block] = [self]
        while worklist:
            block = worklist.pop()
            reached = set(block.callers)
            if block._written is not None:
                assert block._session is not None
                names = called_by(block._written)
                reached |= {other for name, other in block._session.unfinished.items() if name in names}
            for other in sorted(reached - group.keys(), key=lambda b: b.specialization.name):
                if other.state != "linked":
                    group[other] = None
                    worklist.append(other)
        return list(group)

    def _link(self) -> None:
        group = self._group()
        if any(block._written is None for block in group):
            return
        link([block._written for block in group if block._written is not None])
        sessions = [block._session for block in group if block._session is not None]
        graphs = {name: graph for session in sessions for name, graph in session.graphs.items()}
        names = {name: variable for session in sessions for variable, name in session.variables.items()}
        try:
            for block in group:
                block.state = "linked"
                reached = with_callees(graphs, block.specialization.name)
                try:
                    refuse_endless(Library(reached, block.specialization.name))
                except CaptureError as fault:
                    fault.hint = "add a base case: ut.cond(test, base, other), where only `other` calls it again"
                    raise
                if all(isinstance(what, str) for what in block.specialization.hidden):
                    block._make_ready(reached, names)
        except CaptureError:
            for block in group:
                block.state, block._ready = "failed", None
            raise

    def _make_ready(self, graphs: dict[str, FunctionGraph], names: dict[str, Any]) -> None:
        function = self.specialization
        assert function.results is not None
        structures = tuple(item.note.structure for item in self._inputs)
        # Each session has its own name for a variable, and SubGraphs that call each other may be of several.
        one = {variable: name for name, variable in names.items()}
        same, unchanged = {name: one[variable] for name, variable in names.items()}, {name: name for name in graphs}
        graphs = {name: renamed(graph, unchanged, same) for name, graph in graphs.items()}
        nodes = [node for graph in graphs.values() for node in graph.nodes]
        written = {name for node in nodes if acts(node.op) for name in variables_of(node.attrs)}
        used = dict.fromkeys(name for node in nodes for name in variables_of(node.attrs))
        variables = {name: (names[name], name in written) for name in used}
        signature = function.types, structures, function.results
        self._ready = Ready(*signature, function.name, tuple(function.hidden), graphs, variables, is_shared=True)
        self._session = self._written = None
