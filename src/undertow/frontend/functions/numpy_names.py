"""Which function of ours a function of NumPy means when it meets a traced value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# Those with the same name, then those without.
UFUNCS: dict[np.ufunc, str] = {
    getattr(np, name): name
    for name in (
        "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "negative", "positive", "sign", "square",
        "minimum", "maximum", "floor", "ceil", "trunc", "sqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2",
        "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "equal", "not_equal", "less", "less_equal",
        "greater", "greater_equal", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_xor",
        "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "matmul",
    )
}  # fmt: skip
UFUNCS |= {
    np.power: "pow",
    np.absolute: "abs",
    np.rint: "round",
    np.arcsin: "asin",
    np.arccos: "acos",
    np.arctan: "atan",
    np.arctan2: "atan2",
    np.arcsinh: "asinh",
    np.arccosh: "acosh",
    np.arctanh: "atanh",
    np.invert: "bitwise_invert",
    np.left_shift: "bitwise_left_shift",
    np.right_shift: "bitwise_right_shift",
}
if hasattr(np, "vecdot"):
    UFUNCS[np.vecdot] = "vecdot"

ARRAY_FUNCTIONS: dict[Callable[..., Any], str] = {
    getattr(np, name): name
    for name in (
        "all", "any", "argmax", "argmin", "argsort", "broadcast_to", "clip", "count_nonzero", "cumsum", "dot",
        "einsum", "expand_dims", "flip", "full_like", "max", "mean", "min", "moveaxis", "ones_like", "outer", "prod",
        "reshape", "roll", "round", "shape", "size", "sort", "split", "squeeze", "stack", "std", "sum", "take",
        "take_along_axis", "tensordot", "transpose", "tril", "triu", "var", "where", "zeros_like",
    )
}  # fmt: skip
ARRAY_FUNCTIONS |= {np.concatenate: "concat"}
