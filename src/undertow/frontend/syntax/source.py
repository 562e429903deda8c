"""From a Python function to its syntax tree, and the closures that capture builds from both.

Python's own parser recurses; for deep sources `parse` raises the recursion limit while it runs, on a thread with a
large enough stack. Everything else here is loops.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import linecache
import sys
import textwrap
import threading
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any, ClassVar

from undertow.elsewhere import reason
from undertow.errors import CaptureError, Span, UndertowError
from undertow.tracebacks import inside

FunctionNode = ast.FunctionDef | ast.Lambda
_PARSER_STACK = 512 << 20  # bytes of address space, committed only where used
_PARSER_DEPTH = 200_000


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

    def outwards(self) -> Iterator[Env]:
        """This activation, then the enclosing ones."""
        at: Env | None = self
        while at is not None:
            yield at
            at = at.parent


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


def parse(source: str, filename: str) -> ast.Module:
    """`ast.parse`, whatever the depth of the source."""
    try:
        return ast.parse(source, filename)
    except RecursionError:
        return _on_large_stack(lambda: ast.parse(source, filename))


def _on_large_stack(work: Callable[[], ast.Module]) -> ast.Module:
    outcome: list[Any] = []

    def target() -> None:
        try:
            outcome.append(work())
        except BaseException as fault:
            outcome.append(fault)

    def helper() -> None:
        limit, size = sys.getrecursionlimit(), threading.stack_size()
        try:
            threading.stack_size(_PARSER_STACK)
            sys.setrecursionlimit(_PARSER_DEPTH)
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        except (RuntimeError, ValueError):  # no room for such a stack
            outcome.append(RecursionError("the source is nested too deeply"))
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)

    # Ctrl-C stops only the main thread: wait until the helper has restored the recursion limit.
    outer = threading.Thread(target=helper)
    outer.start()
    try:
        outer.join()
    finally:
        outer.join()
    if isinstance(outcome[0], ast.Module):
        return outcome[0]
    raise outcome[0]


@functools.lru_cache(maxsize=64)
def _module(source: str, filename: str, first_line: int = 1) -> dict[int, list[FunctionNode]]:
    """The functions of a source text, by the line that Python says they start at."""
    by_line: dict[int, list[FunctionNode]] = {}
    tree = parse(source, filename)
    if first_line > 1:
        ast.increment_lineno(tree, first_line - 1)
    for node in walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = node.lineno
            if isinstance(node, ast.FunctionDef) and node.decorator_list:
                first = node.decorator_list[0].lineno
            by_line.setdefault(first, []).append(node)
    return by_line


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """This node and every node below it, in source order; a loop, unlike recursive visitors."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))


def closure_of(function: FunctionType) -> Closure:
    """The syntax tree of a Python function, with the values of its free names."""
    function = inside(function)
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise CaptureError(
            f"cannot find the source of `{function.__name__}` ({code.co_filename})",
            hint="define it in a file or a notebook cell; functions made by exec or at a plain prompt "
            "have no source to capture",
        )
    if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise CaptureError(
            f"`{function.__name__}` is an `async def`, which cannot be captured",
            _definition_span(function, lines),
            hint="use an ordinary `def`: graphs run in parallel on their own",
        )
    source = "".join(lines)
    try:
        functions = _module(source, code.co_filename)
    except (SyntaxError, RecursionError, ValueError):
        functions = _module_of_block(lines, code.co_firstlineno, code.co_filename, function.__name__)
    matches = [n for n in functions.get(code.co_firstlineno, []) if _is_same(n, code)]
    if len(matches) != 1:
        place = Span(code.co_filename, code.co_firstlineno)
        if matches:
            raise CaptureError(
                f"two functions `{function.__name__}` on one line cannot be told apart",
                place,
                hint="put each lambda on its own line, or use `def`",
            )
        raise CaptureError(
            f"the source of `{function.__name__}` is not where Python says it is",
            place,
            hint="if the file was edited after it was imported, reload it",
        )
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    name = function.__qualname__.replace("<locals>.", "").replace("<lambda>", "lambda")
    return Closure(
        matches[0], name, code.co_filename, function.__globals__, cells, None,
        inspect.signature(function), function, _annotations(function, cells, _definition_span(function, lines)),
    )  # fmt: skip


def _definition_span(function: FunctionType, lines: list[str]) -> Span:
    """The line of the `def`, below its decorators."""
    first = function.__code__.co_firstlineno
    for number, line in enumerate(lines[first - 1 : first + 20], first):
        if line.lstrip().startswith(("def ", "async def ")):
            first = number
            break
    name = function.__qualname__.replace("<locals>.", "")
    return Span(function.__code__.co_filename, first, function=name)


def _module_of_block(lines: list[str], first: int, filename: str, name: str) -> dict[int, list[FunctionNode]]:
    """The function's own block alone, if the whole file does not parse (a notebook with magics)."""
    try:
        block = "".join(inspect.getblock(lines[first - 1 :]))
        return _module(textwrap.dedent(block), filename, first)
    except (SyntaxError, RecursionError, ValueError, tokenize.TokenError) as fault:
        raise CaptureError(
            f"cannot parse the source of `{name}`: {fault}",
            Span(filename, first),
            hint="if the file was edited after it was imported, reload it",
        ) from None


def _is_same(node: FunctionNode, code: CodeType) -> bool:
    """Is it the definition of this code? The function may have been renamed since."""
    if isinstance(node, ast.Lambda):
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        count = code.co_argcount + code.co_kwonlyargcount
        return code.co_name == "<lambda>" and tuple(names) == code.co_varnames[:count]
    return node.name == code.co_name


def _annotations(function: FunctionType, cells: dict[str, Any], span: Span) -> dict[str, Any]:
    """Annotations as objects; strings (`from __future__ import annotations`) are evaluated."""
    annotations = dict(function.__annotations__)
    known = {name: cell.cell_contents for name, cell in cells.items() if _is_filled(cell)}
    for name, value in annotations.items():
        if isinstance(value, str):
            try:
                annotations[name] = eval(value, function.__globals__, known)
            except Exception as fault:
                visible = "names in annotations must be globals of the file or variables that the body uses"
                why, hint = reason(fault, visible)
                raise CaptureError(
                    f"the annotation {value!r} of `{name}` in `{function.__name__}` cannot be evaluated: {why}",
                    span,
                    hint,
                ) from fault
    return annotations


def _is_filled(cell: Any) -> bool:
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
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        stack.extend(ast.iter_child_nodes(node))
    return names
