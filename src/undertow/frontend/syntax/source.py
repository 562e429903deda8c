"""Closures: the syntax tree of a Python function with the values of its free names; the variables of activations."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, ClassVar

from undertow.elsewhere import reason
from undertow.errors import CaptureError, Span, UndertowError
from undertow.frontend.syntax.locate import Located, locate
from undertow.frontend.syntax.match import FunctionNode
from undertow.frontend.syntax.parse import walk
from undertow.frontend.syntax.shared import with_shared_variables
from undertow.tracebacks import inside


@dataclass(frozen=True, slots=True, eq=False)
class Undefined:
    """What a name holds before it is assigned, or when only one branch assigned it; reading it raises `why`.

    If the cause is elsewhere (two branches assigned different types), `span` is where the error is reported.
    """

    why: str
    hint: str = ""
    span: Span | None = None
    kind: type[UndertowError] = CaptureError
    __undertow_static__: ClassVar[bool] = True  # no container of values, though a dataclass

    def error(self, read_at: Span | None) -> UndertowError:
        return self.kind(self.why, self.span or read_at, self.hint)


@dataclass(frozen=True, slots=True, eq=False)
class Unsure(Undefined):
    """What the variable of a `for` holds after a loop that may not run: `read` gives it, or a fault at run time."""

    read: Callable[[], Any] = lambda: None


births = itertools.count()  # orders activations by age


@dataclass(slots=True, eq=False)
class Env:
    """The variables of one Python-level activation during capture, and where its free names are found."""

    closure: Closure
    local: frozenset[str]
    parent: Env | None
    vars: dict[str, Any] = field(default_factory=dict)
    is_comprehension: bool = False
    born: int = field(default_factory=births.__next__)
    result: Callable[[Any], Any] | None = None  # checks what is returned against the annotation
    called_at: Span | None = None  # if it is a helper that is captured inline
    made: int = 0  # how many things the capture had made when it began
    region: Any = None  # of a helper that is captured inline: the graph and branch in which it is, and ...
    given: Mapping[str, Any] = field(default_factory=dict)  # ... its arguments

    def outwards(self) -> Iterator[Env]:
        """This activation, then the enclosing ones."""
        at: Env | None = self
        while at is not None:
            yield at
            at = at.parent


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """The names that annotations of a class or function may use."""

    globals: dict[str, Any]
    local: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Closure:
    """A Python function for capture: its syntax, where its free names are looked up, its defaults."""

    node: FunctionNode
    name: str
    file: str
    globals: dict[str, Any]
    cells: dict[str, Any]  # cell contents by name, for real Python closures
    env: Env | None  # the enclosing activation, for functions made during capture
    signature: inspect.Signature
    python: Callable[..., Any] | None = None  # the function itself, if there is one
    annotations: dict[str, Any] = field(default_factory=dict)
    call: Callable[..., Any] | None = None  # runs it when native code calls it
    local: frozenset[str] = frozenset()  # names that the body binds, parameters included
    device: str | None = None  # where it is placed, if `ut.device` decorates a function without `python`
    __undertow_static__: ClassVar[bool] = True  # no container of values, though a dataclass

    def __post_init__(self) -> None:
        arguments = self.node.args
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        names = {a.arg for a in every if a is not None}
        body = self.node.body
        self.local = frozenset(names | assigned_names(body if isinstance(body, list) else [ast.Expr(body)]))

    @property
    def span(self) -> Span:
        return Span(self.file, self.node.lineno, self.node.col_offset + 1, self.name)

    @property
    def names(self) -> Names:
        """What strings in its annotations may name."""
        return Names(self.globals, {name: cell.cell_contents for name, cell in self.cells.items() if is_filled(cell)})

    def __repr__(self) -> str:
        return f"<function {self.name}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is None:
            raise CaptureError(f"`{self.name}` was created during a capture that has ended", self.span)
        return self.call(self, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


class NoSource(Closure):
    """A function without source: what capture must know of it is its name and its parameters."""

    def __init__(self, name: str, signature: inspect.Signature, span: Span) -> None:
        node = ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Constant(None))
        super().__init__(node, name, span.file, {}, {}, None, signature)
        self._span = span

    @property
    def span(self) -> Span:
        return self._span


def closure_of(function: FunctionType, located: Located | None = None) -> Closure:
    """The syntax tree of a Python function, with the values of its free names; `located` if it is known."""
    function = inside(function)
    code = function.__code__
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CaptureError(
            f"`{function.__name__}` is an `async def`, which cannot be captured",
            _definition_span(function),
            hint="use an ordinary `def`: graphs run in parallel on their own",
        )
    located = located or locate(function)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    name = function.__qualname__.replace("<locals>.", "").replace("<lambda>", "lambda")
    node = with_shared_variables(located.node)
    annotations = _annotations(function, Span(located.file, node.lineno, function=name))
    return Closure(
        node, name, located.file, function.__globals__, cells, None, _signature(function), function, annotations
    )


def _signature(function: FunctionType) -> inspect.Signature:
    """The parameters that its code has: not those of a function that it wraps, or that it claims to have."""
    bare = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    bare.__kwdefaults__, bare.__annotations__ = function.__kwdefaults__, function.__annotations__
    return inspect.signature(bare)


def _definition_span(function: FunctionType) -> Span:
    """The line of the `def`, below its decorators."""
    code = function.__code__
    first = code.co_firstlineno
    lines = linecache.getlines(code.co_filename, function.__globals__)
    for number, line in enumerate(lines[first - 1 : first + 20], first):
        if line.lstrip().startswith(("def ", "async def ")):
            first = number
            break
    return Span(code.co_filename, first, function=function.__qualname__.replace("<locals>.", ""))


def _annotations(function: FunctionType, span: Span) -> dict[str, Any]:
    """Annotations as objects; strings (`from __future__ import annotations`) are evaluated."""
    annotations = dict(function.__annotations__)
    owner = inspect.unwrap(function)  # functools.wraps copies annotations, which mean what they mean where written
    if not isinstance(owner, FunctionType) or owner.__annotations__ != annotations:
        owner = function
    cells = dict(zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=True))
    known = {name: cell.cell_contents for name, cell in cells.items() if is_filled(cell)}
    for name, value in annotations.items():
        if isinstance(value, str):
            try:
                annotations[name] = eval(value, owner.__globals__, known)
            except Exception as fault:
                visible = "names in annotations must be globals of the file or variables that the body uses"
                why, hint = reason(fault, visible)
                raise CaptureError(
                    f"the annotation {value!r} of `{name}` in `{function.__name__}` cannot be evaluated: {why}",
                    span,
                    hint,
                ) from fault
    return annotations


def is_filled(cell: Any) -> bool:
    """Has the variable of a closure a value?"""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def assigned_names(statements: list[ast.stmt]) -> set[str]:
    """The names that these statements bind, not those bound inside functions that they define."""
    names: set[str] = set()
    stack: list[ast.AST] = list(statements)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            continue
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            # The variables of a comprehension stay inside; only `:=` leaks out.
            stack.extend(n for n in walk(node) if isinstance(n, ast.NamedExpr))
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) and node.name is not None:
            names.add(node.name)
        if isinstance(node, ast.MatchMapping) and node.rest is not None:
            names.add(node.rest)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))
    return names
