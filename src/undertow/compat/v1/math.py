"""Arithmetic, comparisons, logic, reductions and products, by their TensorFlow names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undertow.compat.v1.tensor import apply, as_tensor, named, operands, wrap, writing
from undertow.frontend.functions import public as functions
from undertow.types import dtype_of

__all__ = [
    "abs", "acos", "add", "add_n", "argmax", "argmin", "asin", "atan", "atan2", "ceil", "clip_by_global_norm",
    "clip_by_norm", "clip_by_value", "cos", "cosh", "cumsum", "div", "divide", "einsum", "equal", "erf", "exp",
    "expm1", "floor", "floor_div", "floordiv", "floormod", "global_norm", "greater", "greater_equal", "is_finite",
    "is_inf", "is_nan", "less", "less_equal", "log", "log1p", "logical_and", "logical_not", "logical_or",
    "logical_xor", "matmul", "maximum", "minimum", "mod", "mul", "multiply", "neg", "negative", "not_equal", "pow",
    "reciprocal", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_prod", "reduce_sum", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "squared_difference", "stop_gradient", "sub", "subtract", "tan", "tanh", "tensordot", "truediv",
]  # fmt: skip

Op = Callable[..., Any]


def _one(ours: Op, says: str) -> Op:
    def operation(x: Any, name: str | None = None) -> Any:
        return apply(ours, [x], name)

    operation.__doc__ = says
    return operation


def _two(ours: Op, says: str) -> Op:
    def operation(x: Any, y: Any, name: str | None = None) -> Any:
        return apply(ours, [x, y], name)

    operation.__doc__ = says
    return operation


def _over(ours: Op, says: str) -> Op:
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
        return apply(ours, [input_tensor], name, axis=axes, keepdims=bool(keepdims or keep_dims))

    reduction.__doc__ = says
    return reduction


def _same(ours: Op) -> Op:
    """A reduction that keeps the dtype: TensorFlow sums int32 in int32."""
    return lambda x, axis, keepdims: ours(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


add = _two(functions.add, "x + y.")
subtract = sub = _two(functions.subtract, "x - y.")
multiply = mul = _two(functions.multiply, "x * y.")
divide = truediv = _two(functions.divide, "x / y; of integers a float64.")
floordiv = floor_div = _two(functions.floor_divide, "x / y, rounded down.")
mod = floormod = _two(functions.remainder, "What x leaves when divided by y; has the sign of y.")
pow = _two(functions.pow, "x to the power of y.")
maximum = _two(functions.maximum, "The larger of both.")
minimum = _two(functions.minimum, "The smaller of both.")
atan2 = _two(functions.atan2, "The angle of the point (y, x).")
equal = _two(functions.equal, "Is x equal to y?")
not_equal = _two(functions.not_equal, "Is x not equal to y?")
less = _two(functions.less, "Is x below y?")
less_equal = _two(functions.less_equal, "Is x at most y?")
greater = _two(functions.greater, "Is x above y?")
greater_equal = _two(functions.greater_equal, "Is x at least y?")
logical_and = _two(functions.logical_and, "Are both true?")
logical_or = _two(functions.logical_or, "Is one of them true?")
logical_xor = _two(functions.logical_xor, "Is just one of them true?")
squared_difference = _two(lambda x, y: functions.square(functions.subtract(x, y)), "The square of x - y.")

logical_not = _one(functions.logical_not, "Is it false?")
negative = neg = _one(functions.negative, "-x.")
abs = _one(functions.abs, "x without its sign.")
sign = _one(functions.sign, "-1, 0 or 1.")
square = _one(functions.square, "x times itself.")
stop_gradient = _one(functions.stop_gradient, "The same value, which gradients take for a constant.")
sqrt = _one(functions.sqrt, "The square root.")
rsqrt = _one(lambda x: functions.reciprocal(functions.sqrt(x)), "One over the square root.")
reciprocal = _one(functions.reciprocal, "1 / x.")
exp = _one(functions.exp, "e to the power of x.")
expm1 = _one(functions.expm1, "exp(x) - 1, exact for small x.")
log = _one(functions.log, "The natural logarithm.")
log1p = _one(functions.log1p, "log(1 + x), exact for small x.")
sin = _one(functions.sin, "The sine.")
cos = _one(functions.cos, "The cosine.")
tan = _one(functions.tan, "The tangent.")
asin = _one(functions.asin, "The angle with that sine.")
acos = _one(functions.acos, "The angle with that cosine.")
atan = _one(functions.atan, "The angle with that tangent.")
sinh = _one(functions.sinh, "The hyperbolic sine.")
cosh = _one(functions.cosh, "The hyperbolic cosine.")
tanh = _one(functions.tanh, "The hyperbolic tangent.")
erf = _one(functions.erf, "The error function.")
sigmoid = _one(functions.sigmoid, "1 / (1 + exp(-x)).")
floor = _one(functions.floor, "Rounded down.")
ceil = _one(functions.ceil, "Rounded up.")
round = _one(functions.round, "Rounded; halves to the even neighbour.")
is_nan = _one(functions.isnan, "Is it not a number?")
is_inf = _one(functions.isinf, "Is it infinite?")
is_finite = _one(functions.isfinite, "Is it finite?")

reduce_sum = _over(_same(functions.sum), "The sum over some axes, or over all.")
reduce_mean = _over(functions.mean, "The mean over some axes, or over all.")
reduce_prod = _over(_same(functions.prod), "The product over some axes, or over all.")
reduce_max = _over(functions.max, "The largest element over some axes, or over all.")
reduce_min = _over(functions.min, "The smallest element over some axes, or over all.")
reduce_any = _over(functions.any, "Is any element true?")
reduce_all = _over(functions.all, "Are all elements true?")
reduce_logsumexp = _over(functions.logsumexp, "The logarithm of the sum of exponentials, without overflow.")


def div(x: Any, y: Any, name: str | None = None) -> Any:
    """X / y as in Python 2: of integers rounded down."""
    with writing(x, y):
        a, b = operands([x, y])
        is_float = any(as_tensor(v).dtype.kind == "float" for v in (a, b))
        return named(wrap((functions.divide if is_float else functions.floor_divide)(a, b)), name)


def add_n(inputs: Any, name: str | None = None) -> Any:
    """The sum of all these tensors."""
    with writing(inputs):
        total, *rest = operands(list(inputs))
        for value in rest:
            total = functions.add(total, value)
        return named(wrap(total), name)


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None) -> Any:
    """The matrix product."""
    with writing(a, b):
        left, right = operands([a, b])
        left = functions.matrix_transpose(left) if transpose_a else left
        right = functions.matrix_transpose(right) if transpose_b else right
        return named(wrap(functions.matmul(left, right)), name)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Any:
    """The sum of products over some axes of both."""
    return apply(functions.tensordot, [a, b], name, axes=axes)


def einsum(equation: str, *inputs: Any, name: str | None = None) -> Any:
    """Products and sums by the letters of their axes, as in "ij,jk->ik"."""
    return apply(lambda *values: functions.einsum(equation, *values), inputs, name)


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Not below the one, not above the other."""
    return apply(functions.clip, [t, clip_value_min, clip_value_max], name)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scaled down, where its length is above `clip_norm`, to that length."""
    length = sqrt(reduce_sum(square(t), axis=axes, keepdims=True))
    return multiply(t, divide(clip_norm, maximum(length, clip_norm)), name)


def global_norm(t_list: Any, name: str | None = None) -> Any:
    """The length of all these tensors together, as one vector; None counts nothing."""
    return sqrt(add_n([reduce_sum(square(t)) for t in t_list if t is not None]), name)


def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None) -> Any:
    """The tensors, all scaled down by one factor if their length together is above `clip_norm`; and that length."""
    length = global_norm(t_list) if use_norm is None else use_norm
    factor = divide(clip_norm, maximum(length, clip_norm))
    return [None if t is None else multiply(t, factor) for t in t_list], length


def cumsum(x: Any, axis: int = 0, name: str | None = None) -> Any:
    """The sums of all elements up to each."""
    return apply(lambda v: functions.cumulative_sum(v, axis=axis, dtype=v.dtype), [x], name)


def argmax(
    input: Any, axis: int | None = None, name: str | None = None, dimension: int | None = None, output_type: Any = "i64"
) -> Any:
    """The index of the largest element along an axis, by default the first."""
    return _arg(functions.argmax, input, axis, dimension, output_type, name)


def argmin(
    input: Any, axis: int | None = None, name: str | None = None, dimension: int | None = None, output_type: Any = "i64"
) -> Any:
    """The index of the smallest element along an axis, by default the first."""
    return _arg(functions.argmin, input, axis, dimension, output_type, name)


def _arg(ours: Op, input: Any, axis: int | None, dimension: int | None, output_type: Any, name: str | None) -> Any:
    chosen = axis if axis is not None else dimension if dimension is not None else 0
    with writing(input):
        found = ours(as_tensor(input), axis=chosen)
        return named(wrap(functions.astype(found, dtype_of(output_type))), name)
