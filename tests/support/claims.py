"""What the bits of each operator's results do not depend on, of floats. Integers and booleans have one right result.

docs/design/0006-kernels.md says why; unit/core/test_bits.py and conformance/test_edges.py hold every operator to it. In
the last class alone, lanes beside a lane may change its bits.
"""

from __future__ import annotations

REFERENCE = "the bits of the reference kernel: for any number of lanes, on every instruction set"
EVERYWHERE = "the same bits for any number of lanes, on every instruction set; NumPy rounds otherwise"
FUSED = "the same bits for any number of lanes, on every instruction set with fused multiply-add"
PRODUCT = "the same bits for any number of threads"

CLAIMS: dict[str, str] = {
    **dict.fromkeys(("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "negative"), REFERENCE),
    **dict.fromkeys(("minimum", "maximum", "abs", "sign", "square", "reciprocal", "sqrt", "relu"), REFERENCE),
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "round_decimal", "to_integer", "cast", "where"), REFERENCE),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"), REFERENCE),
    **dict.fromkeys(("isnan", "isinf", "isfinite", "real", "imag", "conj", "complex"), REFERENCE),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor", "logical_not", "any", "all"), REFERENCE),
    **dict.fromkeys(("assert", "raise"), REFERENCE),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert"), REFERENCE),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "within"), REFERENCE),
    **dict.fromkeys(("max", "min", "argmax", "argmin", "sort", "argsort", "cumsum", "prod_others"), REFERENCE),
    **dict.fromkeys(("identity", "stop_gradient", "reshape", "broadcast_to", "transpose", "expand_dims"), REFERENCE),
    **dict.fromkeys(("squeeze", "flip", "dim", "concat", "stack", "slice", "slice_at", "slice_between"), REFERENCE),
    **dict.fromkeys(("index", "take", "take_along_axis", "unslice", "scatter_add", "add_along_axis"), REFERENCE),
    **dict.fromkeys(("put", "put_slice", "put_between", "put_rows", "compress"), REFERENCE),
    **dict.fromkeys(("fill", "arange", "fold_in", "random_bits", "random_uniform"), REFERENCE),
    **dict.fromkeys(("sum", "sum_to", "prod"), EVERYWHERE),
    **dict.fromkeys(("log10", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh"), EVERYWHERE),
    **dict.fromkeys(("asinh", "acosh", "atanh", "erf", "power"), EVERYWHERE),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tanh"), FUSED),
    **dict.fromkeys(("sigmoid", "softplus", "softmax", "log_softmax", "logsumexp", "random_normal"), FUSED),
    **dict.fromkeys(("cbrt", "erfc", "gamma", "lgamma", "polygamma"), EVERYWHERE),
    **dict.fromkeys(("solve", "slogdet", "cholesky", "qr", "eigh", "svd", "pinv"), EVERYWHERE),
    **dict.fromkeys(("copysign", "nextafter", "gcd", "recurrence"), REFERENCE),
    "matmul": PRODUCT,
    "fft": PRODUCT,
}
