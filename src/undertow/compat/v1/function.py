"""`function.Declare` and `function.Defun`: named functions, which may call each other before they are defined.

A call uses the declared types; a body is traced when it is first needed. Arguments and results are scalars
unless a shape is given: `tf.float32[3]`.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from undertow.compat.v1.closing import hidden_of, may_draw
from undertow.compat.v1.graph import NEWEST, Graph, get_default_graph
from undertow.compat.v1.place import here, line_of
from undertow.compat.v1.tensor import (
    Operation,
    Tensor,
    as_constant,
    as_tensor,
    fitted,
    in_tensorflow_words,
    is_tensor_like,
    named,
    with_reads,
    writing,
)
from undertow.errors import CaptureError, GraphError, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.leaves import port_in
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced, operand
from undertow.ir.graph import Attrs, Operand, Port
from undertow.tracebacks import boundaries
from undertow.types import Type, dtype_of, said, weak_dtype
from undertow.types import type_of as numpy_type_of

__all__ = ["Declare", "Defun"]

# Keywords of Defun. Every function has a gradient, so there is none to create; `shape_func` and those after it are
# accepted and ignored.
_OPTIONS = frozenset((
    "func_name", "out_names", "create_grad_func", "grad_func", "python_grad_func", "shape_func", "capture_by_value",
    "noinline",
))  # fmt: skip


_NUMBERS = itertools.count()  # declarations and definitions in the order in which they are made


def _type(spec: Any, what: str, span: Span | None) -> Type:
    if isinstance(spec, Type):
        return spec.erased()
    try:
        return Type(dtype_of(spec))
    except UndertowError:
        raise TypeMismatch(
            f"{what} must be a type, not {brief(spec)}", span, hint="write tf.int32, or tf.float32[3] for an array"
        ) from None


def _written(type: Type) -> str:
    shape = f"[{', '.join(map(str, type.shape))}]" if type.shape else ""
    return f"tf.{type.dtype.numpy.name}{shape}"


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
        self.param_names, self.params = self._pairs(inputs, "argument")
        self.result_names, self.results = self._pairs(outputs, "result")
        if not self.results:
            raise TypeMismatch(
                f"`{func_name}` is declared without results", self.span, hint='list them: [("ret", tf.int32)]'
            )
        declare_in(get_default_graph(), self)

    def _pairs(self, pairs: Sequence[Any], what: str) -> tuple[list[str], list[Type]]:
        try:
            names, types = [str(name) for name, _ in pairs], [type for _, type in pairs]
        except (TypeError, ValueError):
            raise TypeMismatch(
                f"the {what}s of `{self.name}` must be declared by a list of pairs, not {brief(pairs)}",
                self.span,
                hint='write names and types: [("n", tf.int32)]',
            ) from None
        return names, [_type(t, f"{what} `{n}` of `{self.name}`", self.span) for n, t in zip(names, types, strict=True)]

    def shown_params(self) -> str:
        """The argument types as the user writes them."""
        return ", ".join(map(_written, self.params))

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        with writing(*args) as graph:
            declare_in(graph, self)
            newest = NEWEST.get(self.name)
            if newest is not None and newest.number > self.number:
                graph.candidates[self.name] = newest
            return _write_call(graph, self.name, args, self.param_names, self.params, self.results, name)

    def __repr__(self) -> str:
        return f"<function.Declare {self.name}({self.shown_params()})>"


def declare_in(graph: Graph, declared: Declare) -> None:
    """Check that a graph has one declaration for each name."""
    known = graph.declared.get(declared.name, declared)
    if (known.params, known.results) != (declared.params, declared.results):
        raise _conflict(
            f"`{declared.name}` is declared as {_signature(declared.params, declared.results)}, but as "
            f"{_signature(known.params, known.results)}",
            declared,
            known,
            "make them equal, rename one of them, or start over with tf.reset_default_graph()",
        )
    defined = graph.defined.get(declared.name)
    if defined is not None:
        _check_params(declared, defined)
        traced = graph.writer.graphs.get(graph.callee(declared.name))
        found = declared.results if traced is None else [traced.type_of(port) for port in traced.results]
        if len(found) != len(declared.results) or not all(map(Type.accepts, declared.results, found)):
            shown = f"`{declared.name}` is declared with results {_signature(declared.results)}"
            raise _conflict(
                f"{shown}, but defined with {_signature(found)}", declared, defined, "change the declaration"
            )
    graph.declared[declared.name] = known


def _signature(params: Sequence[Type], results: Sequence[Type] | None = None) -> str:
    shown = f"({', '.join(map(_written, params))})"
    return shown if results is None else f"{shown} -> ({', '.join(map(_written, results))})"


class Defun:
    """Decorates a Python function: its body becomes a function graph with these argument types."""

    def __init__(self, *types: Any, **options: Any) -> None:
        self.span = here()
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            raise TypeMismatch(
                f"Defun has no option {unknown[0]!r}",
                self.span,
                hint="its options are func_name, out_names, create_grad_func",
            )
        own = [option for option in ("grad_func", "python_grad_func") if options.get(option) is not None]
        if own:
            raise GraphError(
                f"Defun does not take a custom gradient, {own[0]}",
                self.span,
                hint="remove it: tf.gradients differentiates the body",
            )
        if len(types) == 1 and isinstance(types[0], FunctionType):
            raise TypeMismatch(
                "Defun takes the types of the arguments, not a function",
                self.span,
                hint="write @function.Defun(tf.int32) above it; without types, @function.Defun()",
            )
        self.types = [_type(t, f"argument {k + 1} of Defun", self.span) for k, t in enumerate(types)]
        self.options = options

    def __call__(self, python: Callable[..., Any]) -> Any:
        if not callable(python):
            raise CaptureError(f"Defun decorates functions, not {brief(python)}", self.span, hint="decorate a `def`")
        if not self.types and _arity(python)[1]:
            return Overloaded(python, self.options)
        return Defined(python, self.types, self.options)


def _arity(python: Callable[..., Any]) -> tuple[int, float]:
    """How many arguments a function needs and takes, by position."""
    parameters = inspect.signature(python).parameters.values()
    fixed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in fixed)
    return needed, float("inf") if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(fixed)


class Defined:
    """A function that Defun made. Call it on tensors; `add_to_graph` lets calls by its name find it."""

    def __init__(self, python: Callable[..., Any], types: list[Type], options: dict[str, Any]) -> None:
        code = getattr(python, "__code__", None)
        self.span = here() if code is None else line_of(code)
        self.python = python
        plain = getattr(python, "__name__", type(python).__name__).replace("<lambda>", "lambda")
        self.is_named = options.get("func_name") is not None
        self.name = str(options["func_name"]) if self.is_named else plain
        self.params = types
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
            raise GraphError(
                f"`{self.name}` takes {takes} argument{'' if takes == '1' else 's'}, but Defun was given {count} "
                f"type{'' if count == 1 else 's'}",
                self.span,
                hint="write one type per argument: @function.Defun(tf.int32, tf.int32)",
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

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        with writing(*args) as graph:
            known = self._join(graph)
            results = self._results(graph, known)
            return _write_call(graph, known, args, self.param_names, self.params, results, name)

    def _results(self, graph: Graph, known: str) -> list[Type]:
        """The types of the results: declared, or those of the body."""
        if known in graph.declared:
            return graph.declared[known].results
        callee = graph.callee(known)
        if known in graph.tracing:
            names = [*graph.tracing[graph.tracing.index(known) :], known]
            through = "" if len(names) < 3 else f" ({' -> '.join(f'`{n}`' for n in names)})"
            pairs = ", ".join(f'("{n}", {_written(t)})' for n, t in zip(self.param_names, self.params, strict=True))
            raise GraphError(
                f"`{known}` calls itself{through}, so it must be declared",
                here(),
                hint=f'declare it first: {known.lower()} = function.Declare("{known}", [{pairs}], [("ret", tf.int32)])'
                ", and call that",
            )
        if callee not in graph.writer.graphs:
            self.trace(graph)
        traced = graph.writer.graphs[callee]
        return [traced.type_of(port) for port in traced.results]

    # -- the body ------------------------------------------------------------------------------------------

    def trace(self, graph: Graph) -> None:
        """Write the function's graph, by running its Python body on tensors."""
        known = self._join(graph)
        callee = graph.callee(known)
        builder = Builder(callee, "function", self.span, context=graph.ctx)
        args = [Tensor(builder, builder.param(t, n)) for t, n in zip(self.params, self.param_names, strict=True)]
        graph.tracing.append(known)
        try:
            with graph.lock, graph.writing_to(builder), writing(*args):
                values = self._leaves(self.python(*args))
                declared = graph.declared.get(known)
                if declared is not None:
                    self._check_results(declared, values)
                dtypes = [None] * len(values) if declared is None else [type.dtype for type in declared.results]
                results = [
                    value if isinstance(value, Traced) else as_constant(value, dtype)[()]
                    for value, dtype in zip(values, dtypes, strict=True)
                ]
                graph.writer.graphs[callee] = builder.finish([port_in(value, 0, graph.ctx) for value in results])
                graph.hidden[callee] = {w: builder.finished(port) for w, port in hidden_of(builder).items()}
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
                    f"`{self.name}` returns {'nothing' if leaf is None else brief(leaf)}",
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
        for name, wanted, value in zip(declared.result_names, declared.results, values, strict=True):
            if is_weak(value) and not wanted.shape and weak_dtype(value, wanted.dtype) == wanted.dtype:
                continue
            found = value.type if isinstance(value, Traced) else numpy_type_of(as_constant(value))
            static = not isinstance(value, Traced)
            if not (static and not found.shape and found.dtype == wanted.dtype) and not wanted.accepts(found):
                raise _conflict(
                    f"result `{name}` of `{self.name}` is {_said(found)}, but is declared as {_written(wanted)}",
                    self,
                    declared,
                    "change the declaration, or convert the result with tf.cast or tf.reshape",
                )

    def __repr__(self) -> str:
        return f"<function.Defun {self.name}{_signature(self.params)}>"


def _said(type: Type) -> str:
    return said(type).replace(str(type), _written(type)).replace("an tf.", "a tf.")


def _results(count: int) -> str:
    return f"{count} result{'' if count == 1 else 's'}"


def _check_params(declared: Declare, defined: Defined) -> None:
    if declared.params != defined.params:
        raise _conflict(
            f"`{declared.name}` is defined with arguments {_signature(defined.params)}, but declared with "
            f"{_signature(declared.params)}",
            defined,
            declared,
            "use the same types in function.Declare and function.Defun",
        )


class Overloaded:
    """A function that Defun made without types: one function for the types of each call."""

    def __init__(self, python: Callable[..., Any], options: dict[str, Any]) -> None:
        self.python = python
        self.options = options
        self._by_types: dict[tuple[Type, ...], Defined] = {}
        functools.update_wrapper(self, python, updated=())

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        with writing(*args):
            tensors = [as_tensor(arg) for arg in args]
            types = tuple(tensor.type for tensor in tensors)
            if types not in self._by_types:
                options = self.options
                if self._by_types and options.get("func_name") is not None:
                    options = {**options, "func_name": f"{options['func_name']}_{len(self._by_types) + 1}"}
                self._by_types[types] = Defined(self.python, list(types), options)
            return self._by_types[types](*tensors, name=name)


# -- calls -------------------------------------------------------------------------------------------------


def _write_call(
    graph: Graph,
    function: str,
    args: Sequence[Any],
    names: Sequence[str],
    params: Sequence[Type],
    results: Sequence[Type],
    name: str | None,
) -> Any:
    """A call node: one tensor, or a list of them."""
    builder = graph.ctx.open_builder
    if len(args) != len(params):
        raise TypeMismatch(
            f"`{function}` takes {len(params)} argument{'' if len(params) == 1 else 's'} ({', '.join(names)}), "
            f"not {len(args)}",
            here(),
            hint=f"its types are {_signature(params)}",
        )
    inputs = [
        _argument(arg, t, f"argument `{n}` of `{function}`") for arg, t, n in zip(args, params, names, strict=True)
    ]
    if builder.body is not None and may_draw(graph, graph.callee(function)):
        graph.writer.key()  # once the loop is written, it is too late
        graph.keys[builder.name] = builder
    short = function.rsplit(".", 1)[-1]
    number = builder.add("call", inputs, tuple(results), Attrs(callee=graph.callee(function)), here(), short)
    values = [Tensor(builder, Port(number, k)) for k in range(len(results))]
    if name is not None:
        named(values[0], name)
    return values[0] if len(values) == 1 else values


def _argument(value: Any, wanted: Type, what: str) -> Operand:
    """An argument as an operand of the type of the parameter."""
    value = with_reads(value)
    if not isinstance(value, Traced):
        if not is_weak(value) and not is_tensor_like(value):
            value = fitted(value, wanted.dtype)
        elif weak_dtype(value, wanted.dtype) == wanted.dtype:
            value = as_constant(value, wanted.dtype)[()]
        else:
            value = as_constant(value)[()]
    actual = value.type if isinstance(value, Traced) else numpy_type_of(np.asarray(value))
    if not wanted.accepts(actual):
        raise TypeMismatch(
            f"{what} must be {_written(wanted)}, not {_said(actual)}",
            here(),
            hint=in_tensorflow_words(_how_to_fit(actual, wanted)),
        )
    return operand(value)


def _how_to_fit(actual: Type, wanted: Type) -> str:
    if actual.dtype != wanted.dtype:
        return f"convert it with tf.cast(x, {_written(Type(wanted.dtype))})"
    if not wanted.shape:
        return (
            f"a bare type is one number; for arrays declare {_written(actual)}, or tf.{wanted.dtype.numpy.name}[None]"
        )
    return f"change the argument, or declare {_written(actual)}"


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__)
