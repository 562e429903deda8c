"""Arithmetic, comparisons, logic, reductions and products, by their TensorFlow names.

Operations that are a single operator are made from its row in `ops`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.missing import explain
from undertow.compat.v1.tensor import apply, as_tensor, named, operands, wrap, writing
from undertow.frontend.functions import public as functions
from undertow.ops.op import CATALOGUE

Op = Callable[..., Any]


def _one(ours: Op) -> Op:
    return lambda x, name=None: apply(ours, [x], name)


def _two(ours: Op) -> Op:
    return lambda x, y, name=None: apply(ours, [x, y], name)


def _over(ours: Op, keeps_dtype: bool = False) -> Op:
    """A reduction. Sums keep the dtype: TensorFlow sums int32 in int32."""

    def reduction(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Any:
        chosen = reduction_indices if axis is None else axis
        axes = tuple(chosen) if isinstance(chosen, list) else chosen
        options = {"axis": axes, "keepdims": bool(keepdims or keep_dims)}
        return apply(lambda x: ours(x, **options, **({"dtype": x.dtype} if keeps_dtype else {})), [input_tensor], name)

    return reduction


def from_rows(prefix: str) -> dict[str, Op]:
    """The operations whose rows have a TensorFlow name with this prefix."""
    operations: dict[str, Op] = {}
    for row in CATALOGUE.values():
        for name in row.names(prefix):
            ours = getattr(functions, row.public)
            is_sum = row.name in ("sum", "prod")
            operation = _over(ours, is_sum) if row.attrs else (_one if row.arity == 1 else _two)(ours)
            operation.__name__ = operation.__qualname__ = name
            operation.__doc__ = row.sentence()
            operations[name] = operation
    return operations


_FROM_ROWS = {name: operation for name, operation in from_rows("tf.").items() if "." not in name}
globals().update(_FROM_ROWS)

squared_difference = _two(lambda x, y: functions.square(functions.subtract(x, y)))
squared_difference.__doc__ = "The square of x - y."
rsqrt = _one(lambda x: functions.reciprocal(functions.sqrt(x)))
rsqrt.__doc__ = "One over the square root."
reduce_mean = _over(functions.mean)
reduce_mean.__doc__ = "The mean over some axes, or over all."


def div(x: Any, y: Any, name: str | None = None) -> Any:
    """X / y as in Python 2: integers are divided with floor."""
    with writing(x, y):
        a, b = operands([x, y])
        is_float = any(as_tensor(v).dtype.kind == "float" for v in (a, b))
        return named(wrap((functions.divide if is_float else functions.floor_divide)(a, b)), name)


def atan2(y: Any, x: Any, name: str | None = None) -> Any:
    """The angle of the point (x, y)."""
    return apply(functions.atan2, [y, x], name)


def _total(*values: Any) -> Any:
    return functools.reduce(functions.add, values)


def add_n(inputs: Any, name: str | None = None) -> Any:
    """The sum of all these tensors."""
    return apply(_total, list(inputs), name)


def matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The matrix product."""
    turns = transpose_a or adjoint_a, transpose_b or adjoint_b
    turned = [functions.matrix_transpose if turn else lambda x: x for turn in turns]
    return apply(lambda left, right: functions.matmul(turned[0](left), turned[1](right)), [a, b], name)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Any:
    """The sum of products over some axes of both."""
    return apply(functions.tensordot, [a, b], name, axes=axes)


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Any:
    """Products and sums by the letters of their axes, as in "ij,jk->ik"."""
    return apply(lambda *values: functions.einsum(equation, *values), inputs, name)


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Limited to the range from `clip_value_min` to `clip_value_max`."""
    return apply(functions.clip, [t, clip_value_min, clip_value_max], name)


def _shrinking(length: Any, most: Any) -> Any:
    """The factor that scales a length down to `most`; 1 if it is not longer."""
    return functions.divide(most, functions.maximum(length, most))


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scaled down to the norm `clip_norm` if its norm is larger."""

    def clipped(x: Any, most: Any) -> Any:
        length = functions.sqrt(functions.sum(functions.square(x), axis=axes, keepdims=True))
        return functions.multiply(x, _shrinking(length, most))

    return apply(clipped, [t, clip_norm], name)


def global_norm(t_list: Any, name: str | None = None) -> Any:
    """The norm of all these tensors together, as one vector; None is skipped."""
    squares = [apply(lambda x: functions.sum(functions.square(x), dtype=x.dtype), [t]) for t in t_list if t is not None]
    return apply(lambda *values: functions.sqrt(_total(*values)), squares, name)


def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None) -> Any:
    """The tensors, scaled down by one factor if their global norm is above `clip_norm`; and that norm."""
    length = global_norm(t_list) if use_norm is None else use_norm
    factor = apply(_shrinking, [length, clip_norm])
    return [None if t is None else apply(functions.multiply, [t, factor]) for t in t_list], length


def cumsum(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """Running sums along an axis; `exclusive` leaves out the element itself, `reverse` begins at the end."""

    def sums(v: Any) -> Any:
        turned = functions.flip(v, axis=axis) if reverse else v
        result = functions.cumulative_sum(turned, axis=axis, dtype=v.dtype)
        result = functions.subtract(result, turned) if exclusive else result
        return functions.flip(result, axis=axis) if reverse else result

    return apply(sums, [x], name)


def _index_of(which: str, ours: Op) -> Op:
    def index(input: Any, axis: Any = None, name: Any = None, dimension: Any = None, output_type: Any = "i64") -> Any:
        chosen = axis if axis is not None else dimension if dimension is not None else 0
        return apply(lambda x: functions.astype(ours(x, axis=chosen), dtype_of(output_type)), [input], name)

    index.__doc__ = f"The index of the {which} element along an axis, by default the first."
    return index


argmax, argmin = _index_of("largest", functions.argmax), _index_of("smallest", functions.argmin)
arg_max, arg_min = argmax, argmin


__all__ = sorted([
    *_FROM_ROWS, "add_n", "arg_max", "arg_min", "argmax", "argmin", "atan2", "clip_by_global_norm", "clip_by_norm",
    "clip_by_value", "cumsum", "div", "einsum", "global_norm", "matmul", "reduce_mean", "rsqrt",
    "squared_difference", "tensordot",
])  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"math.{name}", [f"math.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__)
