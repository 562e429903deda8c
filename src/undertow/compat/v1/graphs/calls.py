"""Calls of functions: arguments, and the types of results, which may not be known yet.

A bare type takes any shape: such a function is traced once for each combination of shapes. The result of a call
inside a function that is being traced is guessed, and the function is traced again if the guess was wrong. What is
only declared, and not defined yet, gives single numbers where its results have bare types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.compat.v1.graphs.closing import captured_by, may_draw
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import (
    Tensor,
    as_constant,
    fitted,
    in_tensorflow_words,
    is_tensor_like,
    named,
    with_reads,
)
from undertow.errors import GraphError, TypeMismatch, UndertowError
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced, operand
from undertow.ir.graph import Attrs, Operand, Port
from undertow.types import Type, join, said, weak_dtype
from undertow.types import type_of as numpy_type_of

if TYPE_CHECKING:
    from undertow.compat.v1.function import Declare, Defined
    from undertow.compat.v1.graph import Graph

_MOST_SHAPES = 64  # of one function, while it is being traced
_MOST_GUESSES = 8

Types = Sequence[Type]


def written(type: Type) -> str:
    """A type as the user writes it."""
    shape = f"[{', '.join(map(str, type.shape))}]" if type.shape else ""
    return f"tf.{type.dtype.numpy.name}{shape}"


def signature(params: Types, results: Types | None = None) -> str:
    """Types of arguments, and of results, as the user writes them."""
    shown = f"({', '.join(map(written, params))})"
    return shown if results is None else f"{shown} -> ({', '.join(map(written, results))})"


def said_as(type: Type) -> str:
    """A type with its article."""
    return said(type).replace(str(type), written(type)).replace("an tf.", "a tf.")


def misfits(wanted: Types, is_open: Sequence[bool], found: Types) -> bool:
    """Is one of these results not of its declared type?"""
    return not all(
        one.dtype == other.dtype and (opens or one.accepts(other))
        for one, opens, other in zip(wanted, is_open, found, strict=True)
    )


def result_types(graph: Graph, function: str) -> Iterator[list[Type]]:
    """The types of the results of a function, for each combination of shapes that it is traced for."""
    for callee in graph.callees_of(function):
        body = graph.writer.graphs.get(callee)
        if body is not None:
            yield [body.type_of(port) for port in body.results]


# -- writing -----------------------------------------------------------------------------------------------


def write_call(graph: Graph, function: str, called: Declare | Defined, args: Sequence[Any], name: str | None) -> Any:
    """A call node: one tensor, or a list of them."""
    builder, params, names = graph.ctx.open_builder, called.params, called.param_names
    if len(args) != len(params):
        raise TypeMismatch(
            f"`{function}` takes other arguments ({', '.join(names) or 'none'}). "
            f"Expected number of arguments: {len(params)}, received: {len(args)}",
            here(),
            hint=f"its types are {signature(params)}",
        )
    inputs: list[Operand] = []
    types: list[Type] = []
    for arg, wanted, opens, arg_name in zip(args, params, called.open_params, names, strict=True):
        given, type = _argument(arg, wanted, opens, f"argument `{arg_name}` of `{function}`")
        inputs.append(given)
        types.append(type if opens else wanted)
    known = _widened(graph, function, types)
    callee = graph.callee(function, known)
    results = _results(graph, function, callee)
    if graph.late.made_by and _captures_late(graph, callee) and graph.late.images is not None:
        callee = graph.callee(function, known, graph.late.variant())
        if callee not in graph.writer.graphs and callee not in graph.tracing:
            graph.trace(callee, here())  # while the images are in use
        results = _results(graph, function, callee)
    if builder.body is not None and may_draw(graph, callee):
        graph.writer.key()  # once the loop is written, it is too late
        graph.keys[builder.name] = builder
    short = function.rsplit(".", 1)[-1]
    number = builder.add("call", inputs, tuple(results), Attrs(callee=callee), here(), short)
    values = [Tensor(builder, Port(number, k)) for k in range(len(results))]
    if name is not None:
        named(values[0], name)
    return values[0] if len(values) == 1 else values


def _captures_late(graph: Graph, callee: str) -> bool:
    """Does a function capture tensors whose shapes only a run knows? They are noted as used by the current call."""
    ports = [port for port in captured_by(graph, callee, graph.main) if port in graph.late.made_by]
    for port in ports:
        graph.late.met(Tensor(graph.main, port))
    return bool(ports)


def _argument(value: Any, wanted: Type, opens: bool, what: str) -> tuple[Operand, Type]:
    """An argument as an operand of the type of the parameter, and its own type."""
    value = with_reads(value)
    if not isinstance(value, Traced):
        if isinstance(value, (list, tuple)) and opens:
            value = as_constant(value, wanted.dtype)
        elif not is_weak(value) and not is_tensor_like(value):
            value = fitted(value, wanted.dtype)
        elif weak_dtype(value, wanted.dtype) == wanted.dtype:
            value = as_constant(value, wanted.dtype)[()]
        else:
            value = as_constant(value)[()]
    actual = (value.type if isinstance(value, Traced) else numpy_type_of(np.asarray(value))).erased()
    if actual.dtype != wanted.dtype or not (opens or wanted.accepts(actual)):
        raise TypeMismatch(
            f"{what} must be {written(wanted)}, not {said_as(actual)}",
            here(),
            hint=in_tensorflow_words(_how_to_fit(actual, wanted)),
        )
    return operand(value), actual


def _how_to_fit(actual: Type, wanted: Type) -> str:
    if actual.dtype != wanted.dtype:
        return f"convert it with tf.cast(x, {written(Type(wanted.dtype))})"
    return f"change the argument, or declare {written(actual)}"


def _widened(graph: Graph, function: str, types: list[Type]) -> tuple[Type, ...]:
    """The types for a call of a function that may be being traced: a dimension that changes there is any."""
    under_way = [graph.types_of(callee) for callee in graph.callees_of(function) if callee in graph.tracing]
    if len(under_way) > _MOST_SHAPES:
        raise GraphError(
            f"`{function}` calls itself with ever other shapes: {signature(under_way[0])}, {signature(under_way[1])}",
            here(),
            hint="the number of dimensions must not change at a recursive call",
        )
    for known in reversed(under_way):
        both = [join(a, b) for a, b in zip(known, types, strict=True)]
        if all(type is not None for type in both):
            return tuple(type for type in both if type is not None)
    return tuple(types)


# -- results -----------------------------------------------------------------------------------------------


def _results(graph: Graph, function: str, callee: str) -> list[Type]:
    """The types of the results of a call: declared, those of the body, or guessed."""
    declared = graph.declared.get(function)
    if declared is not None and not any(declared.open_results):
        return list(declared.results)
    body = graph.writer.graphs.get(callee)
    if body is not None and callee not in graph.tracing:
        return [body.type_of(port) for port in body.results]
    if callee in graph.tracing:
        guess = graph.guesses.get(callee, None if declared is None else list(declared.results))
        if guess is None:
            raise _undeclared(graph, function, callee)
        graph.guessed.add(callee)
        return guess
    are_numbers = not any(type.rank for type in graph.types_of(callee))
    if declared is not None and (are_numbers or not graph.is_defined(function)):
        graph.assumed.setdefault(callee, list(declared.results))
        return list(declared.results)
    graph.trace(callee, here())
    body = graph.writer.graphs[callee]
    return [body.type_of(port) for port in body.results]


def _undeclared(graph: Graph, function: str, callee: str) -> GraphError:
    under_way = graph.tracing[graph.tracing.index(callee) :]
    names = [*(graph.function_of(name) for name in under_way), function]
    through = "" if len(names) < 3 else f" ({' -> '.join(f'`{n}`' for n in names)})"
    defined = graph.defined[function]
    pairs = ", ".join(f'("{n}", {written(t)})' for n, t in zip(defined.param_names, defined.params, strict=True))
    return GraphError(
        f"`{function}` calls itself{through}, so it must be declared",
        here(),
        hint=f'declare it first: {function.lower()} = function.Declare("{function}", [{pairs}], [("ret", tf.int32)])'
        ", and call that",
    )


def trace(graph: Graph, callee: str, defined: Defined, types: Types) -> None:
    """Write the graph of a function; again, with another guess, where a call of itself gives something else."""
    declared = graph.declared.get(graph.function_of(callee))
    first: UndertowError | None = None
    guesses = iter([]) if declared is None else _guesses(declared, types)
    for _ in range(_MOST_GUESSES):
        known = set(graph.writer.graphs)
        graph.guessed.discard(callee)
        try:
            defined.trace(graph, callee, types)
        except UndertowError as fault:
            first = first or fault
            guess = next(guesses, None)
            if callee not in graph.guessed or guess is None:
                raise first from None
            _forget(graph, known)
            graph.guesses[callee] = guess
            continue
        found = [graph.writer.graphs[callee].type_of(port) for port in graph.writer.graphs[callee].results]
        if declared is None:
            return
        guess = graph.guesses.get(callee, list(declared.results))
        if callee not in graph.guessed or all(map(Type.accepts, guess, found)):
            _check_assumed(graph, callee, declared, defined, found)
            return
        _forget(graph, known)
        wider = [join(a, b) for a, b in zip(guess, found, strict=True)]
        graph.guesses[callee] = [b if a is None else a for a, b in zip(wider, found, strict=True)]
    raise first or GraphError(
        f"the shape of what `{graph.function_of(callee)}` returns cannot be found: it is another one at each call",
        defined.span,
        hint='declare it: function.Declare(..., [("y", tf.float32[None])])',
    )


def _guesses(declared: Declare, types: Types) -> Iterator[list[Type]]:
    """What the results may be, where numbers do not do: of the shape of an argument."""
    for shape in dict.fromkeys(type.shape for type in types if type.rank):
        yield [
            type.with_shape(shape) if opens else type
            for type, opens in zip(declared.results, declared.open_results, strict=True)
        ]


def _forget(graph: Graph, known: set[str]) -> None:
    """Remove what was traced on a wrong guess."""
    for name in set(graph.writer.graphs) - known:
        del graph.writer.graphs[name]
        graph.hidden.pop(name, None)
    graph.captures.clear()


def _check_assumed(graph: Graph, callee: str, declared: Declare, defined: Defined, found: Types) -> None:
    for name, wanted, type in zip(declared.result_names, graph.assumed.get(callee, found), found, strict=True):
        if not wanted.accepts(type):
            raise GraphError(
                f"result `{name}` of `{declared.name}` is {said_as(type)}, but was taken for {written(wanted)} where "
                "it was called before it was defined",
                defined.span,
                hint=f"declare its shape, {written(type)}, or define the function before it is called",
            )
