"""`function.Declare` and `function.Defun`: named functions, which may call each other before they are defined.

A bare type, `tf.float32`, takes values of any shape, and the body is traced once for each combination of shapes;
`tf.float32[3]` takes that shape. Calls between functions, and what they do not know yet of each other, are in calls.py.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, SimpleNamespace
from typing import Any

from undertow.compat.v1.errors import of_graph, of_kind
from undertow.compat.v1.graph import NEWEST, Graph, get_default_graph
from undertow.compat.v1.graphs.calls import misfits, result_types, said_as, signature, write_call, written
from undertow.compat.v1.graphs.closing import entered, hidden_of
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import recorded
from undertow.compat.v1.graphs.rules import check_rule, write_rule
from undertow.compat.v1.place import here, line_of
from undertow.compat.v1.tensor import Operation, Tensor, as_constant, as_tensor, with_reads, writing
from undertow.errors import CaptureError, GraphError, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.leaves import port_in
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced
from undertow.tracebacks import boundaries
from undertow.types import Type, weak_dtype
from undertow.types import type_of as numpy_type_of

__all__ = ["Declare", "Defun"]

# Keywords of Defun. Every function has a gradient, so there is none to create; `shape_func` and those after it are
# accepted and ignored.
_OPTIONS = frozenset((
    "func_name", "out_names", "create_grad_func", "grad_func", "python_grad_func", "shape_func", "capture_by_value",
    "noinline",
))  # fmt: skip


_MOST_RANK = 5  # of arguments that are tried where nobody says which a function takes
_NUMBERS = itertools.count()  # declarations and definitions in the order in which they are made


def _type(spec: Any, what: str, span: Span | None) -> tuple[Type, bool]:
    """The type that the user means; and whether it says nothing of the shape."""
    if isinstance(spec, Type):
        return spec.erased(), False
    try:
        return Type(dtype_of(spec)), True
    except UndertowError:
        raise TypeMismatch(
            f"{what} must be a type, not {brief(spec)}", span, hint="write tf.int32, or tf.float32[3] for an array"
        ) from None


def _conflict(what: str, one: Declare | Defined, other: Declare | Defined, hint: str) -> GraphError:
    """The error for two statements about a function that disagree; it names the line of the other."""
    where = ""
    if other.span is not None:
        is_near = one.span is not None and one.span.file == other.span.file
        where = f" on line {other.span.line}" if is_near else f" in {other.span.file}:{other.span.line}"
    return GraphError(f"{what}{where}", one.span, hint=hint)


class Declare:
    """The name and types of a function that is defined elsewhere. Call it like the function itself."""

    def __init__(self, func_name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.span = here()
        self.number = next(_NUMBERS)
        if not isinstance(func_name, str) or not func_name:
            raise TypeMismatch(
                f"the name of a declared function must be a string, not {brief(func_name)}",
                self.span,
                hint='write function.Declare("Fac", [("n", tf.int32)], [("ret", tf.int32)])',
            )
        self.name = func_name
        self.param_names, self.params, self.open_params = self._pairs(inputs, "argument")
        self.result_names, self.results, self.open_results = self._pairs(outputs, "result")
        if not self.results:
            raise TypeMismatch(
                f"`{func_name}` is declared without results", self.span, hint='list them: [("ret", tf.int32)]'
            )
        declare_in(get_default_graph(), self)

    def _pairs(self, pairs: Sequence[Any], what: str) -> tuple[list[str], list[Type], list[bool]]:
        try:
            names, types = [str(name) for name, _ in pairs], [type for _, type in pairs]
        except (TypeError, ValueError):
            raise TypeMismatch(
                f"the {what}s of `{self.name}` must be declared by a list of pairs, not {brief(pairs)}",
                self.span,
                hint='write names and types: [("n", tf.int32)]',
            ) from None
        read = [_type(t, f"{what} `{n}` of `{self.name}`", self.span) for n, t in zip(names, types, strict=True)]
        return names, [type for type, _ in read], [is_open for _, is_open in read]

    def shown_params(self) -> str:
        """The argument types as the user writes them."""
        return ", ".join(map(written, self.params))

    @recorded
    def __call__(self, *args: Any, name: str | None = None) -> Any:
        with writing(*args) as graph:
            declare_in(graph, self)
            newest = NEWEST.get(self.name)
            if newest is not None and newest.number > self.number:
                graph.candidates[self.name] = newest
            return write_call(graph, self.name, self, args, name)

    def __repr__(self) -> str:
        return f"<function.Declare {self.name}({self.shown_params()})>"


def declare_in(graph: Graph, declared: Declare) -> None:
    """Check that a graph has one declaration for each name."""
    known = graph.declared.get(declared.name, declared)
    if (known.params, known.results) != (declared.params, declared.results):
        raise _conflict(
            f"`{declared.name}` is declared as {signature(declared.params, declared.results)}, but as "
            f"{signature(known.params, known.results)}",
            declared,
            known,
            "make them equal, rename one of them, or start over with tf.reset_default_graph()",
        )
    defined = graph.defined.get(declared.name)
    if defined is not None:
        _check_params(declared, defined)
        for found in result_types(graph, declared.name):
            if len(found) == len(declared.results) and not misfits(declared.results, declared.open_results, found):
                continue
            shown = f"`{declared.name}` is declared with results {signature(declared.results)}"
            raise _conflict(
                f"{shown}, but defined with {signature(found)}", declared, defined, "change the declaration"
            )
    graph.declared[declared.name] = known


class Defun:
    """Decorates a Python function: its body becomes a function graph with these argument types."""

    def __init__(self, *types: Any, **options: Any) -> None:
        self.span = here()
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            raise TypeMismatch(
                f"Defun has no option {unknown[0]!r}",
                self.span,
                hint="its options are func_name, out_names, grad_func, python_grad_func, noinline",
            )
        if len(types) == 1 and isinstance(types[0], FunctionType):
            raise TypeMismatch(
                "Defun takes the types of the arguments, not a function",
                self.span,
                hint="write @function.Defun(tf.int32) above it; without types, @function.Defun()",
            )
        self.types = [_type(t, f"argument {k + 1} of Defun", self.span) for k, t in enumerate(types)]
        check_rule(options, self.span)
        self.options = options

    def __call__(self, python: Callable[..., Any]) -> Any:
        if not callable(python):
            raise CaptureError(f"Defun decorates functions, not {brief(python)}", self.span, hint="decorate a `def`")
        _check_parameters(python, bool(self.types))
        if not self.types and _arity(python)[1]:
            return Overloaded(python, self.options)
        return Defined(python, self.types, self.options)


def _check_parameters(python: Callable[..., Any], has_types: bool) -> None:
    """Refuse keywords, and defaults where the types do not say which of them are meant."""
    for parameter in inspect.signature(python).parameters.values():
        is_keyword = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        if is_keyword or (parameter.default is not parameter.empty and not has_types):
            code = getattr(python, "__code__", None)
            raise TypeMismatch(
                f"Functions with default arguments or keyword arguments are not supported: `{parameter}` of "
                f"`{getattr(python, '__name__', 'this function')}`",
                here() if code is None else line_of(code),
                hint="take all arguments by position, and give Defun their types",
            )


def _arity(python: Callable[..., Any]) -> tuple[int, float]:
    """How many arguments a function needs and takes, by position."""
    parameters = inspect.signature(python).parameters.values()
    fixed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in fixed)
    return needed, float("inf") if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(fixed)


# The functions whose bodies are being written, innermost last.
_INNERMOST: list[tuple[Any, Graph]] = []


@contextlib.contextmanager
def innermost(defined: Any, graph: Graph) -> Iterator[None]:
    """In the block, the body of this function is written."""
    _INNERMOST.append((defined, graph))
    try:
        yield
    finally:
        _INNERMOST.pop()


class Defined:
    """A function that Defun made. Call it on tensors; `add_to_graph` lets calls by its name find it."""

    def __init__(self, python: Callable[..., Any], types: list[tuple[Type, bool]], options: dict[str, Any]) -> None:
        code = getattr(python, "__code__", None)
        self.span = here() if code is None else line_of(code)
        self.python = python
        plain = getattr(python, "__name__", type(python).__name__).replace("<lambda>", "lambda")
        self.is_named = options.get("func_name") is not None
        self.name = str(options["func_name"]) if self.is_named else plain
        self.params, self.open_params = [type for type, _ in types], [is_open for _, is_open in types]
        self.options = options
        self.grad_func = options.get("grad_func")
        self.python_grad_func = options.get("python_grad_func")
        self.out_names = None if options.get("out_names") is None else [str(n) for n in options["out_names"]]
        functools.update_wrapper(self, python, updated=())
        self.param_names = self._names()
        self.number = next(_NUMBERS)
        NEWEST[self.name] = self

    def _names(self) -> list[str]:
        needed, most = _arity(self.python)
        count = len(self.params)
        if not needed <= count <= most:
            takes = f"{needed}" if most == needed else f"{needed} to {most}" if most != float("inf") else "more"
            raise of_kind(
                GraphError(
                    f"`{self.name}` takes {takes} argument{'' if takes == '1' else 's'}, but the specified input types "
                    f"are {count}",
                    self.span,
                    hint="write one type per argument: @function.Defun(tf.int32, tf.int32)",
                ),
                ValueError,
            )
        parameters = inspect.signature(self.python).parameters.values()
        fixed = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:count]
        rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "x")
        return fixed + [f"{rest}{k}" for k in range(count - len(fixed))]

    def add_to_graph(self, graph: Graph | None = None) -> None:
        """Let calls by its name find this function in a graph."""
        graph = get_default_graph() if graph is None else graph
        if not isinstance(graph, Graph):
            raise TypeMismatch(
                f"add_to_graph takes a graph, not {brief(graph)}", here(), hint="give tf.get_default_graph()"
            )
        self._join(graph)

    def _join(self, graph: Graph) -> str:
        """Register the function in a graph, and return its name there."""
        name, count = self.name, 1
        while graph.defined.get(name, self) is not self:
            if self.is_named:
                raise _conflict(
                    f"`{name}` is defined twice in this graph, first",
                    self,
                    graph.defined[name],
                    "change one func_name, or start over with tf.reset_default_graph()",
                )
            count += 1
            name = f"{self.name}~{count}"  # functions without a func_name may share a name
        if name in graph.declared:
            _check_params(graph.declared[name], self)
        graph.defined[name] = self
        return name

    @recorded
    def __call__(self, *args: Any, name: str | None = None, **others: Any) -> Any:
        refuse_keywords(self.name, others)
        with writing(*args) as graph:
            return write_call(graph, self._join(graph), self, args, name)

    # -- the body ------------------------------------------------------------------------------------------

    def trace(self, graph: Graph, callee: str, types: Sequence[Type]) -> None:
        """Write the function's graph for arguments of these types, by running its Python body on tensors."""
        known = self._join(graph)
        body = callee
        if self.grad_func is not None or self.python_grad_func is not None:
            body = graph.writer.fresh_name(f"{callee}.plain")
        builder = Builder(body, "function", self.span, context=graph.ctx)
        args = [Tensor(builder, builder.param(t, n)) for t, n in zip(types, self.param_names, strict=True)]
        graph.tracing.append(callee)
        try:
            with graph.lock, graph.writing_to(builder), writing(*args), innermost(self, graph):
                values = self._leaves(self.python(*args))
                declared = graph.declared.get(known)
                if declared is not None:
                    self._check_results(declared, values)
                dtypes = [None] * len(values) if declared is None else [type.dtype for type in declared.results]
                results = [
                    value if isinstance(value, Traced) else as_constant(value, dtype)[()]
                    for value, dtype in zip(values, dtypes, strict=True)
                ]
                graph.writer.graphs[body] = builder.finish([port_in(value, 0, graph.ctx) for value in results])
                graph.hidden[body] = {w: builder.finished(port) for w, port in hidden_of(builder).items()}
            if body != callee:
                write_rule(graph, callee, body, self)
        except RecursionError:
            raise CaptureError(
                f"the body of `{known}` cannot be traced: too many undeclared functions call each other",
                self.span,
                hint="declare them with function.Declare: calling a declared function does not need its body",
            ) from None
        finally:
            builder.is_open = False
            graph.tracing.pop()

    def _leaves(self, value: Any) -> list[Any]:
        leaves = list(value) if isinstance(value, (list, tuple)) else [value]
        for leaf in leaves:
            if leaf is None or isinstance(leaf, (Operation, str, dict)):
                raise GraphError(
                    f"`{self.name}` returns {'nothing' if leaf is None else brief(leaf)}: a function can not return "
                    "None, operations or texts",
                    self.span,
                    hint="return tensors: one, or a tuple of them; `tf.identity` under control_dependencies makes one",
                )
        if not leaves:
            raise GraphError(f"`{self.name}` returns an empty list", self.span, hint="return at least one tensor")
        if self.out_names is not None and len(self.out_names) != len(leaves):
            raise GraphError(
                f"`{self.name}` returns {_results(len(leaves))}, but has {len(self.out_names)} out_names",
                self.span,
                hint="write one name per result",
            )
        return [with_reads(leaf) for leaf in leaves]

    def _check_results(self, declared: Declare, values: list[Any]) -> None:
        if len(values) != len(declared.results):
            raise _conflict(
                f"`{self.name}` returns {_results(len(values))}, but is declared with {len(declared.results)}",
                self,
                declared,
                "make function.Declare match the function",
            )
        if self.out_names is not None and self.out_names != declared.result_names:
            raise _conflict(
                f"the results of `{self.name}` are called {', '.join(self.out_names)}, but declared as "
                f"{', '.join(declared.result_names)}",
                self,
                declared,
                "use the same names in out_names and function.Declare",
            )
        for name, wanted, is_open, value in zip(
            declared.result_names, declared.results, declared.open_results, values, strict=True
        ):
            if is_weak(value) and not wanted.shape and weak_dtype(value, wanted.dtype) == wanted.dtype:
                continue
            found = value.type if isinstance(value, Traced) else numpy_type_of(as_constant(value))
            static = not isinstance(value, Traced)
            if static and not found.shape and found.dtype == wanted.dtype:
                continue
            if found.dtype != wanted.dtype or (not is_open and not wanted.accepts(found)):
                raise _conflict(
                    f"result `{name}` of `{self.name}` is {said_as(found)}, but is declared as {written(wanted)}",
                    self,
                    declared,
                    "change the declaration, or convert the result with tf.cast or tf.reshape",
                )

    # -- what TensorFlow tells of a function ---------------------------------------------------------------

    @property
    def declared_input_types(self) -> tuple[Any, ...]:
        """The dtypes of its arguments."""
        return tuple(type.dtype for type in self.params)

    @property
    def captured_inputs(self) -> list[Any]:
        """The tensors from around it that it uses, in the default graph, where it was called."""
        graph = get_default_graph()
        outers = (outer for callee in graph.callees_of(self.name) for outer in graph.hidden.get(callee, ()))
        return list(dict.fromkeys(Tensor(*outer) for outer in outers if outer != "key"))

    @property
    def grad_func_name(self) -> str | None:
        """The name of the function that is its gradient."""
        return None if self.grad_func is None else getattr(self.grad_func, "name", None)

    @property
    def definition(self) -> Definition:
        """What is known of it without a call. Its body is traced for arguments of the declared types."""
        kinds = self._result_kinds()
        names = self.out_names or [f"output{k}" for k in range(len(kinds))]
        return Definition(
            self.name,
            list(zip(self.param_names, self.declared_input_types, strict=True)),
            list(zip(names, [kind.dtype for kind in kinds], strict=True)),
            bool(self.options.get("noinline")),
        )

    def _result_kinds(self) -> list[Type]:
        """The types of its results for single numbers; if it takes none, for arrays."""
        first: UndertowError | None = None
        for rank in range(_MOST_RANK):
            types = [
                t.with_shape((None,) * rank) if o else t for t, o in zip(self.params, self.open_params, strict=True)
            ]
            with Graph().as_default() as scratch:
                callee = scratch.callee(self._join(scratch), tuple(types))
                try:
                    scratch.trace(callee, self.span)
                except UndertowError as fault:
                    first = first or fault
                    continue
                body = scratch.writer.graphs[callee]
                return [body.type_of(port) for port in body.results]
        assert first is not None
        of_graph(first)
        raise first

    def __repr__(self) -> str:
        return f"<function.Defun {self.name}{signature(self.params)}>"


def _results(count: int) -> str:
    return f"{count} result{'' if count == 1 else 's'}"


def _check_params(declared: Declare, defined: Defined) -> None:
    if (declared.params, declared.open_params) != (defined.params, defined.open_params):
        raise _conflict(
            f"`{declared.name}` is defined with arguments {signature(defined.params)}, but declared with "
            f"{signature(declared.params)}",
            defined,
            declared,
            "use the same types in function.Declare and function.Defun",
        )


@dataclass(frozen=True)
class Definition:
    """A function as others see it: names and dtypes of its arguments and results."""

    name: str
    inputs: list[tuple[str, Any]]
    outputs: list[tuple[str, Any]]
    noinline: bool

    @property
    def attr(self) -> dict[str, Any]:
        """Attributes: "_noinline"."""
        return {"_noinline": SimpleNamespace(b=self.noinline)}

    @property
    def signature(self) -> Any:
        """As in a FunctionDef: `name`, `input_arg`, `output_arg`."""
        args = [[SimpleNamespace(name=n, type=t) for n, t in row] for row in (self.inputs, self.outputs)]
        return SimpleNamespace(name=self.name, input_arg=args[0], output_arg=args[1])


def refuse_keywords(name: str, others: dict[str, Any]) -> None:
    """Functions take arguments by position, and a name."""
    if others:
        raise TypeMismatch(
            f"Unknown keyword arguments of `{name}`: {', '.join(others)}", here(), hint="pass all by position"
        )


class Overloaded:
    """A function that Defun made without types: one function for the types of each call."""

    def __init__(self, python: Callable[..., Any], options: dict[str, Any]) -> None:
        self.python = python
        self.options = options
        self._by_types: dict[tuple[tuple[Type, bool], ...], Defined] = {}
        functools.update_wrapper(self, python, updated=())

    @recorded
    def __call__(self, *args: Any, name: str | None = None, **others: Any) -> Any:
        refuse_keywords(getattr(self, "__name__", "this function"), others)
        with writing(*args):
            tensors = [as_tensor(arg) for arg in args]
            return self.instantiate([tensor.dtype for tensor in tensors])(*tensors, name=name)

    def instantiate(self, input_types: Sequence[Any]) -> Defined:
        """The function for arguments of these dtypes."""
        types = tuple(_type(t, f"argument {k + 1}", here()) for k, t in enumerate(input_types))
        if types not in self._by_types:
            options = dict(self.options)
            if self._by_types and options.get("func_name") is not None:
                options = {**options, "func_name": f"{options['func_name']}_{len(self._by_types) + 1}"}
            self._by_types[types] = Defined(self.python, list(types), options)
        return self._by_types[types]


def newest(name: str) -> Any:
    """The newest function of this name in this process; None if there is none."""
    return NEWEST.get(name)


def _of_innermost() -> tuple[Graph, Builder]:
    if not _INNERMOST:
        raise GraphError("this is asked in the body of a function", here(), hint="call it inside of a Defun")
    graph = _INNERMOST[-1][1]
    return graph, graph.ctx.open_builder


def get_extra_vars() -> list[Any]:
    """In the body of a function: the variables that it, or what it calls, has read so far."""
    graph, builder = _of_innermost()
    keys: dict[str, None] = {}
    todo: list[Any] = [builder]
    for body in todo:
        for node in body.nodes:
            if node.op == "read":
                keys[node.attrs.text("variable")] = None
        below = (graph.writer.graphs.get(name) for _, name in entered(body))
        todo += (other for other in below if other is not None and other not in todo)
    return [variable for key in keys for variable in graph.variables if variable.key == key]


def get_extra_inputs() -> list[Any]:
    """In the body of a function: the variables and tensors from around it that it has used so far."""
    return [*get_extra_vars(), *(Tensor(*outer) for outer in _of_innermost()[1].lifted)]


def get_extra_args() -> list[Any]:
    """In the body of a function: what stands there for these, to differentiate with respect to."""
    builder = _of_innermost()[1]
    return [*get_extra_vars(), *(Tensor(builder, port) for port in builder.lifted.values())]


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__)
_DefinedFunction, _OverloadedFunction = Defined, Overloaded  # as programs name them
