"""Tests of values while a graph runs: `tf.assert_equal` and its kind, `tf.check_numerics`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undertow.compat.v1.control import Assert, control_dependencies, group, identity
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation, apply, as_tensor, operands, wrap, writing
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.types import said

__all__ = [
    "assert_equal", "assert_greater", "assert_greater_equal", "assert_integer", "assert_less", "assert_less_equal",
    "assert_negative", "assert_non_negative", "assert_non_positive", "assert_positive", "assert_rank",
    "assert_rank_at_least", "assert_scalar", "assert_type", "check_numerics", "is_non_decreasing",
    "is_strictly_increasing", "verify_tensor_all_finite",
]  # fmt: skip


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Any:
    """The same value; computing it fails if an element is infinite or not a number."""
    with writing(tensor):
        value = as_tensor(tensor)
        finite = wrap(functions.all(functions.isfinite(value)))
        with control_dependencies([Assert(finite, [message])]):
            return identity(value, name)


def verify_tensor_all_finite(t: Any, msg: str, name: str | None = None) -> Any:
    """The same value; computing it fails if an element is infinite or not a number."""
    return check_numerics(t, msg, name)


def _of_two(what: str, holds: Callable[[Any, Any], Any]) -> Any:
    def check(
        x: Any, y: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
    ) -> Operation:
        with writing(x, y):
            a, b = (as_tensor(value) for value in operands([x, y]))
            shown = [message or f"x {what} y does not hold", a, b] if data is None else data
            return Assert(apply(lambda p, q: functions.all(holds(p, q)), [a, b]), shown, summarize, name)

    check.__doc__ = f"An operation that fails unless x {what} y for all elements."
    return check


assert_equal = _of_two("==", functions.equal)
assert_less = _of_two("<", functions.less)
assert_less_equal = _of_two("<=", functions.less_equal)
assert_greater = _of_two(">", functions.greater)
assert_greater_equal = _of_two(">=", functions.greater_equal)


def _of_one(what: str, holds: Callable[[Any, Any], Any]) -> Any:
    def check(
        x: Any, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
    ) -> Operation:
        value = as_tensor(x)
        shown = [message or f"x {what} 0 does not hold", value] if data is None else data
        return Assert(apply(lambda p: functions.all(holds(p, 0)), [value]), shown, summarize, name)

    check.__doc__ = f"An operation that fails unless x {what} 0 for all elements."
    return check


assert_positive = _of_one(">", functions.greater)
assert_negative = _of_one("<", functions.less)
assert_non_negative = _of_one(">=", functions.greater_equal)
assert_non_positive = _of_one("<=", functions.less_equal)


def assert_rank(
    x: Any, rank: int, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
) -> Operation:
    """An error now, unless x has so many axes; ranks are known when the graph is built."""
    value = as_tensor(x)
    if value.type.rank != rank:
        raise TypeMismatch(f"{said(value.type)} has not the rank {rank}", here(), hint=message or "reshape it")
    return group(name=name or "assert_rank")


def assert_rank_at_least(
    x: Any, rank: int, data: Any = None, summarize: Any = None, message: str | None = None, name: str | None = None
) -> Operation:
    """An error now, unless x has at least so many axes."""
    value = as_tensor(x)
    if value.type.rank < rank:
        raise TypeMismatch(f"{said(value.type)} has a rank below {rank}", here(), hint=message or "reshape it")
    return group(name=name or "assert_rank_at_least")


def assert_scalar(tensor: Any, name: str | None = None) -> Any:
    """The same tensor, if it is a single number; an error otherwise."""
    assert_rank(tensor, 0)
    return as_tensor(tensor)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> Operation:
    """An error now, unless the tensor has this dtype."""
    value = as_tensor(tensor)
    if value.dtype != dtype_of(tf_type):
        raise TypeMismatch(f"{said(value.type)} is not {dtype_of(tf_type)}", here(), hint=message or "use tf.cast")
    return group(name=name or "assert_type")


def _steps(compare: Callable[[Any, Any], Any], meaning: str) -> Any:
    def question(x: Any, name: str | None = None) -> Any:
        def answer(value: Any) -> Any:
            row = functions.reshape(value, (-1,))
            return functions.all(compare(functions.slice_between(row, 1, None), functions.slice_between(row, None, -1)))

        return apply(answer, [x], name)

    question.__doc__ = meaning
    return question


is_non_decreasing = _steps(functions.greater_equal, "Is no element smaller than the one before?")
is_strictly_increasing = _steps(functions.greater, "Is each element larger than the one before?")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """An error now, unless x holds integers."""
    value = as_tensor(x)
    if value.dtype.kind != "int":
        raise TypeMismatch(f"{said(value.type)} does not hold integers", here(), hint=message or "use tf.cast")
    return group(name=name or "assert_integer")


boundaries(globals(), __all__)
