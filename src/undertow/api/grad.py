"""Derivatives of functions: `grad`, `value_and_grad`, `jacobian`, `hessian`, `vjp`, and `checkpoint`, as in JAX.

The results are functions again: they can be called, mapped, shown as graphs and differentiated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.api.function import Function
from undertow.errors import CaptureError, brief
from undertow.frontend.interpret.drive import drive
from undertow.frontend.trace.definition import Definition
from undertow.frontend.trace.derivative import (
    Checkpointed,
    Derived,
    PulledBack,
    definition_of,
    flatten_targets,
    write_differentiable,
)
from undertow.frontend.trace.jacobian import Jacobian
from undertow.frontend.trace.pullback import Pullback
from undertow.frontend.values import tree
from undertow.frontend.values.operands import flags_of, is_weak
from undertow.frontend.values.traced import capturing, context
from undertow.tracebacks import boundary
from undertow.types import is_integer


def _cached(
    function: Any,
    key: Any,
    make: Callable[[Definition], Definition],
    what: str,
    origin: tuple[Callable[..., Function], tuple[Any, ...]] | None = None,
) -> Function:
    """The derived function, from the cache or new; `origin` is the call that makes it."""
    definition, bound = definition_of(function, what)
    cached: Function | None = definition.derived.get(key)
    if cached is None:
        derived = make(definition)
        new = Function(derived, origin=origin)
        new.__name__ = new.__qualname__ = derived.name  # type: ignore[attr-defined]
        cached = definition.derived.setdefault(key, new)
    return Function(cached.__undertow_definition__, bound, cached.__undertow_programs__, origin) if bound else cached


def _argnums(argnums: int | Sequence[int] | None, variables: Any, what: str) -> int | tuple[int, ...]:
    if argnums is None:
        return 0 if variables is None else ()
    if is_integer(argnums):
        return int(argnums)
    if isinstance(argnums, (tuple, list)) and all(map(is_integer, argnums)):
        if len(set(argnums)) != len(argnums):
            raise CaptureError(f"argnums={brief(argnums)} lists an argument twice", hint="list each argument once")
        return tuple(map(int, argnums))
    raise CaptureError(
        f"argnums must be an integer or a tuple of integers, not {brief(argnums)}",
        hint=f"write {what}(f, argnums=0) or {what}(f, argnums=(0, 2))",
    )


def _derived(
    function: Any,
    argnums: int | Sequence[int] | None,
    has_aux: bool,
    variables: Any,
    keeps_value: bool,
    sparse_rows: bool,
    what: str,
) -> Function:
    numbers = _argnums(argnums, variables, what)
    skipped = len(definition_of(function, what)[1])

    def make(definition: Definition) -> Definition:
        return Derived(definition, numbers, bool(has_aux), variables, keeps_value, bool(sparse_rows), skipped)

    # Variables and arrays are keyed by id; the derived function holds them, so that no other object gets the same id.
    targets, structure = flatten_targets(variables)
    held = None if variables is None else (structure, tuple(map(id, targets)))
    key = (keeps_value, numbers, bool(has_aux), bool(sparse_rows), held, skipped)
    origin = value_and_grad if keeps_value else grad, (function, argnums, has_aux, variables, sparse_rows)
    return _cached(function, key, make, what, origin)


@boundary
def grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    variables: Any = None,
    sparse_rows: bool = False,
) -> Function:
    """The gradient of a function that returns one float, with respect to its first argument or `argnums`.

    >>> cube = grad(lambda x: x * x * x)
    >>> cube(2.0)
    np.float64(12.0)

    `argnums` is a number, or a tuple of them: then the gradients come in a tuple. An argument may be a container;
    its gradient is one like it, with None for numbers that are no floats. With `has_aux` the function returns a pair,
    the float and anything else, and the result is a pair too. `variables` are ut.Variables, or arrays that the function
    uses, in a container: the gradients with respect to them come in one like it (and after those of arguments, where
    `argnums` names some).

    With `sparse_rows` the gradient of an array that is only looked up by rows, as in `table[i]` or `ut.take(table, i)`,
    is `ut.IndexedRows`: a row for each look-up, and nothing of the size of the table. Optimizers take that.

    >>> import numpy as np
    >>> grad(lambda table: table[1] * table[3], sparse_rows=True)(np.arange(5.0))
    <IndexedRows f64[5]: rows [3 1]>
    """
    return _derived(function, argnums, has_aux, variables, False, sparse_rows, "ut.grad")


@boundary
def value_and_grad(
    function: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    variables: Any = None,
    sparse_rows: bool = False,
) -> Function:
    """The value of a function and its gradient, in one run: nothing is computed twice. See `grad`.

    >>> square = value_and_grad(lambda x: x * x)
    >>> square(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    return _derived(function, argnums, has_aux, variables, True, sparse_rows, "ut.value_and_grad")


@boundary
def jacobian(
    function: Callable[..., Any],
    argnums: int | Sequence[int] | None = None,
    has_aux: bool = False,
    variables: Any = None,
    mode: str = "rev",
) -> Function:
    """The derivatives of every element of a function's results by every element of its first argument, or `argnums`.

    >>> import numpy as np
    >>> jacobian(lambda x: np.array([x[0] * x[1], x[1]]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [0., 1.]])

    Its shape is that of the result, then that of the argument. If they are containers, it is a container like the
    result, of containers like the argument. The other options are those of `grad`. One run computes all derivatives,
    as a map: with mode="rev" over the elements of the results, with "fwd" over those of the arguments. Choose "fwd" if
    the results have at least as many elements as the arguments.
    """
    numbers = _argnums(argnums, variables, "ut.jacobian")
    if mode not in ("fwd", "rev"):
        raise CaptureError(f"mode must be 'fwd' or 'rev', not {brief(mode)}", hint='write ut.jacobian(f, mode="fwd")')
    skipped = len(definition_of(function, "ut.jacobian")[1])

    def make(definition: Definition) -> Definition:
        return Jacobian(mode, definition, numbers, bool(has_aux), variables, False, False, skipped)

    targets, structure = flatten_targets(variables)
    held = None if variables is None else (structure, tuple(map(id, targets)))
    key = ("jacobian", mode, numbers, bool(has_aux), held, skipped)
    origin = jacobian, (function, argnums, has_aux, variables, mode)
    return _cached(function, key, make, "ut.jacobian", origin)


@boundary
def hessian(
    function: Callable[..., Any], argnums: int | Sequence[int] | None = None, has_aux: bool = False
) -> Function:
    """The second derivatives of a function by its first argument, or `argnums`: forward mode over reverse mode.

    >>> import numpy as np
    >>> hessian(lambda x: x[0] * x[0] * x[1])(np.array([2.0, 3.0]))
    array([[6., 4.],
           [4., 0.]])

    Its shape is that of the result, then twice that of the argument; containers nest in the same order. `ut.hvp` gives
    products with it, without making it.
    """
    return jacobian(jacobian(function, argnums, has_aux), argnums, has_aux, mode="fwd")


@boundary
def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """The value of a function, and a function that maps its cotangent to a tuple of cotangents of the arguments.

    >>> value, back = vjp(lambda x, y: x * y, 3.0, 5.0)
    >>> value, back(1.0)
    (np.float64(15.0), (np.float64(5.0), np.float64(3.0)))

    What is no float has None for a cotangent, an object a namespace of those of its float attributes. In what `back` is
    given, None stands for zero. Inside a captured function the value and its pullback share one call; outside, the
    pullback is a run of its own and computes the value again.
    """
    definition, bound = definition_of(function, "ut.vjp")
    primals = (*bound, *primals)
    current = context(primals)
    if current is not None and current.builder is not None:
        with capturing(current):
            written = drive(write_differentiable(current.session, definition, primals, {}, primals))
        return written.call.value, Pullback(written.call, len(bound), written.shapes(primals))
    called = function if isinstance(function, Function) else _cached(function, "call", lambda d: d, "ut.vjp")
    back = _cached(function, "vjp", PulledBack, "ut.vjp")
    pulled = Function(back.__undertow_definition__, (), back.__undertow_programs__)
    # Positional arguments, bound ones included, in the dtypes of the function's parameters.
    arguments = called.__undertow_arguments__(primals[len(bound) :], {})
    arguments.refuse_objects("ut.vjp", "write ut.grad(f), or pass the numbers in arrays, as a forest does")
    value = called(*primals[len(bound) :])
    flags = flags_of(arguments.weak, arguments.leaves)
    leaves = [leaf.item() if flag else leaf for leaf, flag in zip(arguments.leaves, flags, strict=True)]
    typed = tuple(arguments.passed(called.__undertow_definition__.closure.signature, leaves)[0])[: len(primals)]

    @boundary
    def pull(cotangents: Any) -> tuple[Any, ...]:
        pulled_back: tuple[Any, ...] = pulled(typed, _fitting(cotangents, value))
        return pulled_back[len(bound) :]

    return value, pull


def _fitting(cotangents: Any, value: Any) -> Any:
    """Python numbers have no dtype of their own: as cotangents they take the dtype of the value."""
    leaves, structure = tree.flatten(value)
    matched = tree.along(structure, cotangents)
    if matched is None:
        return cotangents  # refused later, with a better message
    typed = [
        np.asarray(leaf, dtype)[()] if is_weak(leaf) and dtype.kind in "fc" else leaf
        for leaf, dtype in zip(matched, (np.asarray(leaf).dtype for leaf in leaves), strict=True)
    ]
    return tree.unflatten(structure, typed)


@boundary
def checkpoint(function: Callable[..., Any]) -> Function:
    """The same function, except that gradients recompute its forward values instead of keeping them.

    This costs a second forward run of each call, and lowers peak memory.
    """
    return _cached(function, "checkpoint", Checkpointed, "ut.checkpoint", (checkpoint, (function,)))
