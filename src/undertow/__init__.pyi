"""Written by `python docs/manual.py public`; do not edit."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from undertow import _random as random
from undertow import data as data
from undertow import models as models
from undertow import ray as ray
from undertow import train as train
from undertow._annotations import Array as Array
from undertow._annotations import Function as Function
from undertow._annotations import Variable as Variable
from undertow._annotations import bool as bool
from undertow._annotations import c64 as c64
from undertow._annotations import c128 as c128
from undertow._annotations import checkpoint as checkpoint
from undertow._annotations import f32 as f32
from undertow._annotations import f64 as f64
from undertow._annotations import function as function
from undertow._annotations import grad as grad
from undertow._annotations import i32 as i32
from undertow._annotations import i64 as i64
from undertow._annotations import jvp as jvp
from undertow._annotations import options as options
from undertow._annotations import value_and_grad as value_and_grad
from undertow._annotations import vjp as vjp
from undertow.api import optim as optim
from undertow.api.behaviors import Behavior as Behavior
from undertow.api.behaviors import Behaviors as Behaviors
from undertow.api.behaviors import behaviors as behaviors
from undertow.api.check_grads import check_grads as check_grads
from undertow.api.custom import custom_jvp as custom_jvp
from undertow.api.custom import custom_vjp as custom_vjp
from undertow.api.grad import hessian as hessian
from undertow.api.grad import jacobian as jacobian
from undertow.api.load import load as load
from undertow.api.reap import reap as reap
from undertow.api.save import save as save
from undertow.errors import CaptureError as CaptureError
from undertow.errors import DataError as DataError
from undertow.errors import Fault as Fault
from undertow.errors import FrameLimit as FrameLimit
from undertow.errors import GradientMismatch as GradientMismatch
from undertow.errors import GraphError as GraphError
from undertow.errors import InternalError as InternalError
from undertow.errors import LoadError as LoadError
from undertow.errors import Raised as Raised
from undertow.errors import RecursionLimit as RecursionLimit
from undertow.errors import RunError as RunError
from undertow.errors import SaveError as SaveError
from undertow.errors import Timeout as Timeout
from undertow.errors import TypeMismatch as TypeMismatch
from undertow.errors import UndertowError as UndertowError
from undertow.errors import UnknownName as UnknownName
from undertow.errors import WorkerLost as WorkerLost
from undertow.frontend.control.forms import shared as shared
from undertow.frontend.functions import matrices as linalg
from undertow.frontend.functions.debug import assert_ as assert_
from undertow.frontend.functions.debug import print as print
from undertow.frontend.functions.sowing import sow as sow
from undertow.frontend.functions.standard import can_cast as can_cast
from undertow.frontend.functions.standard import isdtype as isdtype
from undertow.frontend.functions.standard import result_type as result_type
from undertow.frontend.values.device import device as device
from undertow.frontend.values.rows import IndexedRows as IndexedRows
from undertow.frontend.values.scopes import control_dependencies as control_dependencies
from undertow.frontend.values.static import static as static
from undertow.subgraph import SubGraph as SubGraph
from undertow.types import DType as DType
from undertow.types import Type as Type
from undertow.viz.event_file import EventWriter as EventWriter

__all__ = [
    "Array",
    "Behavior",
    "Behaviors",
    "CaptureError",
    "DType",
    "DataError",
    "EventWriter",
    "Fault",
    "FrameLimit",
    "Function",
    "GradientMismatch",
    "GraphError",
    "IndexedRows",
    "InternalError",
    "LoadError",
    "Raised",
    "RecursionLimit",
    "RunError",
    "SaveError",
    "SubGraph",
    "Timeout",
    "Type",
    "TypeMismatch",
    "UndertowError",
    "UnknownName",
    "Variable",
    "WorkerLost",
    "abs",
    "acos",
    "acosh",
    "add",
    "all",
    "angle",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "asarray",
    "asin",
    "asinh",
    "assert_",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "behaviors",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "c128",
    "c64",
    "can_cast",
    "cbrt",
    "ceil",
    "check_grads",
    "checkpoint",
    "clip",
    "concat",
    "cond",
    "conj",
    "control_dependencies",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "custom_jvp",
    "custom_vjp",
    "device",
    "diff",
    "divide",
    "dot",
    "einsum",
    "empty",
    "empty_like",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "eye",
    "f32",
    "f64",
    "finfo",
    "flip",
    "floor",
    "floor_divide",
    "full",
    "full_like",
    "function",
    "gamma",
    "gather",
    "gcd",
    "grad",
    "greater",
    "greater_equal",
    "hessian",
    "hvp",
    "hypot",
    "i32",
    "i64",
    "iinfo",
    "imag",
    "isdtype",
    "isfinite",
    "isinf",
    "isnan",
    "jacobian",
    "jvp",
    "length",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "log",
    "log10",
    "log1p",
    "log2",
    "log_softmax",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsumexp",
    "map",
    "matmul",
    "matrix_transpose",
    "max",
    "maximum",
    "mean",
    "meshgrid",
    "min",
    "minimum",
    "moveaxis",
    "multiply",
    "negative",
    "nextafter",
    "nonzero",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "optim",
    "options",
    "outer",
    "permute_dims",
    "positive",
    "pow",
    "print",
    "prod",
    "random",
    "real",
    "reap",
    "reciprocal",
    "relu",
    "remainder",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "round",
    "save",
    "scatter_add",
    "searchsorted",
    "shape",
    "shared",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "size",
    "slice_at",
    "slice_between",
    "softmax",
    "softplus",
    "sort",
    "sow",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "static",
    "std",
    "stop_gradient",
    "subtract",
    "sum",
    "take",
    "take_along_axis",
    "tan",
    "tanh",
    "tensordot",
    "tile",
    "transpose",
    "tril",
    "triu",
    "trunc",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "value_and_grad",
    "var",
    "vecdot",
    "vjp",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
    "data",
    "models",
    "ray",
    "train",
]
__version__: str

def abs(x: Any, /) -> Array:
    """The absolute value, a float of a complex number; flat at 0."""

def acos(x: Any, /) -> Array:
    """The inverse cosine."""

def acosh(x: Any, /) -> Array:
    """The inverse hyperbolic cosine."""

def add(x: Any, y: Any, /) -> Array:
    """`x + y`; integers wrap."""

def all(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """Are all true along an axis, several, or all?"""

def angle(x: Any, /) -> Array:
    """The angle of a complex number with the positive real axis, from -pi to pi."""

def any(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """Is any true along an axis, several, or all?"""

def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """The numbers from start (or 0) up to but not including stop."""

def argmax(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The index of the (first) largest along an axis, or in all elements row by row, an i64."""

def argmin(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The index of the (first) smallest along an axis, or in all elements row by row, an i64."""

def argsort(x: Any, /, axis: int = -1, descending: builtins.bool = False) -> Array:
    """The indices that sort x along an axis, for `take_along_axis`; stable."""

def asarray(x: Any, /, dtype: Any = None) -> Array:
    """A list, number or array (that may contain traced values) as an array that traced values can index."""

def asin(x: Any, /) -> Array:
    """The inverse sine."""

def asinh(x: Any, /) -> Array:
    """The inverse hyperbolic sine."""

def astype(x: Any, dtype: Any, /) -> Array:
    """Converted to another dtype. Floats lose their fraction and saturate, nan becomes 0; integers wrap."""

def atan(x: Any, /) -> Array:
    """The inverse tangent."""

def atan2(y: Any, x: Any, /) -> Array:
    """The angle of the point (x, y)."""

def atanh(x: Any, /) -> Array:
    """The inverse hyperbolic tangent."""

def bitwise_and(x: Any, y: Any, /) -> Array:
    """`x & y`, of integers or booleans."""

def bitwise_invert(x: Any, /) -> Array:
    """~x, of integers or booleans."""

def bitwise_left_shift(x: Any, y: Any, /) -> Array:
    """`x << y`; 0 if y is the width of x or more; y must not be negative."""

def bitwise_or(x: Any, y: Any, /) -> Array:
    """`x | y`, of integers or booleans."""

def bitwise_right_shift(x: Any, y: Any, /) -> Array:
    """`x >> y`, keeping the sign; 0 or -1 if y is the width of x or more; y must not be negative."""

def bitwise_xor(x: Any, y: Any, /) -> Array:
    """`x ^ y`, of integers or booleans."""

def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """The arrays, each repeated to the shape of all together."""

def broadcast_to(x: Any, /, shape: Any) -> Array:
    """Repeated to fill a shape: axes of length 1 stretch, new ones come in front."""

def cbrt(x: Any, /) -> Array:
    """The cube root."""

def ceil(x: Any, /) -> Array:
    """The smallest whole number not below x."""

def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """Limited to the range from min to max."""

def concat(arrays: Any, /, axis: Any = 0) -> Array:
    """Arrays joined along an axis; with axis=None, all their elements."""

def cond(pred: Any, then: Callable[..., Any], other: Callable[..., Any], *operands: Any) -> Array:
    """`then(*operands)` where `pred` is true, else `other(*operands)`; only that one runs."""

def conj(x: Any, /) -> Array:
    """The complex conjugate; of numbers that are not complex, themselves."""

def copysign(x: Any, y: Any, /) -> Array:
    """The size of x with the sign of y."""

def cos(x: Any, /) -> Array:
    """The cosine."""

def cosh(x: Any, /) -> Array:
    """The hyperbolic cosine."""

def count_nonzero(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The number of nonzero elements."""

def cumsum(x: Any, /, axis: Any = None, dtype: Any = None, include_initial: builtins.bool = False) -> Array:
    """The running sum along an axis; only vectors may omit the axis. `include_initial` puts a 0 in front."""

def cumulative_prod(x: Any, /, axis: Any = None, dtype: Any = None, include_initial: builtins.bool = False) -> Array:
    """The running product along an axis; only vectors may omit the axis. `include_initial` puts a 1 in front."""

def cumulative_sum(x: Any, /, axis: Any = None, dtype: Any = None, include_initial: builtins.bool = False) -> Array:
    """The running sum along an axis; only vectors may omit the axis. `include_initial` puts a 0 in front."""

def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """The differences of neighbours along an axis, n times; `prepend` and `append` are joined to it first."""

def divide(x: Any, y: Any, /) -> Array:
    """`x / y`."""

def dot(x: Any, y: Any, /) -> Array:
    """NumPy's dot: matmul for vectors and matrices, a product with scalars, else a tensordot."""

def einsum(subscripts: str, /, *operands: Any) -> Array:
    """Einstein summation: a letter for each axis; letters missing from the result are summed over."""

def empty(shape: Any, /, dtype: Any = None) -> Array:
    """An array to be filled: here, of zeros."""

def empty_like(x: Any, /, dtype: Any = None) -> Array:
    """An array to be filled, with the shape (and dtype) of x: here, of zeros."""

def equal(x: Any, y: Any, /) -> Array:
    """`x == y`."""

def erf(x: Any, /) -> Array:
    """The error function."""

def erfc(x: Any, /) -> Array:
    """1 - erf(x), exact where that is small."""

def exp(x: Any, /) -> Array:
    """`e ** x`."""

def exp2(x: Any, /) -> Array:
    """`2 ** x`."""

def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """A new axis of length 1 (or several), where the result has `axis`."""

def expm1(x: Any, /) -> Array:
    """exp(x) - 1, exact near 0."""

def eye(n_rows: Any, n_cols: Any = None, /, k: int = 0, dtype: Any = None) -> Array:
    """Ones on the diagonal (the k-th above the main one), zeros elsewhere."""

def finfo(x: Any, /) -> Array:
    """The limits of a float dtype, or of that of an array: NumPy's `finfo`."""

def flip(x: Any, /, axis: Any = None) -> Array:
    """Reversed along an axis, several, or all."""

def floor(x: Any, /) -> Array:
    """The largest whole number not above x."""

def floor_divide(x: Any, y: Any, /) -> Array:
    """`x // y`, rounded down; an integer y must not be 0."""

def full(shape: Any, /, fill_value: Any, dtype: Any = None) -> Array:
    """An array of that shape with the same scalar everywhere."""

def full_like(x: Any, /, fill_value: Any, dtype: Any = None) -> Array:
    """An array with the shape (and dtype) of x and the same scalar everywhere."""

def gamma(x: Any, /) -> Array:
    """The gamma function: of n, the factorial of n - 1."""

def gather(x: Any, indices: Any, /, axis: int = -1) -> Array:
    """For each index in `indices`, the element of x at the same position, but at that index along the axis."""

def gcd(x: Any, y: Any, /) -> Array:
    """The greatest common divisor."""

def greater(x: Any, y: Any, /) -> Array:
    """`x > y`."""

def greater_equal(x: Any, y: Any, /) -> Array:
    """`x >= y`."""

def hvp(f: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Array:
    """The Hessian-vector product of a function that returns one number: how its gradient changes along the tangents."""

def hypot(x: Any, y: Any, /) -> Array:
    """sqrt(x * x + y * y), without overflow."""

def iinfo(x: Any, /) -> Array:
    """The limits of an integer dtype, or of that of an array: NumPy's `iinfo`."""

def imag(x: Any, /) -> Array:
    """The imaginary part; of numbers that are not complex, zeros."""

def isfinite(x: Any, /) -> Array:
    """Is it neither nan nor infinite?"""

def isinf(x: Any, /) -> Array:
    """Is it infinite?"""

def isnan(x: Any, /) -> Array:
    """Is it not a number?"""

def length(x: Any, /, axis: int = 0) -> Array:
    """The length of an axis: a Python integer, or a traced i64 scalar if known only at run time."""

def less(x: Any, y: Any, /) -> Array:
    """`x < y`."""

def less_equal(x: Any, y: Any, /) -> Array:
    """`x <= y`."""

def lgamma(x: Any, /) -> Array:
    """The logarithm of the absolute value of gamma(x)."""

def linspace(start: Any, stop: Any, /, num: int = 50, dtype: Any = None, endpoint: builtins.bool = True) -> Array:
    """`num` numbers from start to stop, evenly spaced; between arrays, `num` arrays."""

def log(x: Any, /) -> Array:
    """The natural logarithm."""

def log10(x: Any, /) -> Array:
    """The logarithm to base 10."""

def log1p(x: Any, /) -> Array:
    """log(1 + x), exact near 0."""

def log2(x: Any, /) -> Array:
    """The logarithm to base 2."""

def log_softmax(x: Any, /, axis: Any = -1) -> Array:
    """The logarithm of softmax along an axis, several, or all, without overflow."""

def logaddexp(x: Any, y: Any, /) -> Array:
    """log(exp(x) + exp(y)), without overflow."""

def logical_and(x: Any, y: Any, /) -> Array:
    """Are both true?"""

def logical_not(x: Any, /) -> Array:
    """Is it false?"""

def logical_or(x: Any, y: Any, /) -> Array:
    """Is either true?"""

def logical_xor(x: Any, y: Any, /) -> Array:
    """Is exactly one of them true?"""

def logsumexp(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """log(sum(exp(x))) along an axis, several, or all, without overflow."""

def map(function: Callable[..., Any], *arrays: Any) -> Array:
    """`function` applied to every element along the leading axis of the arrays, in parallel; results are stacked."""

def matmul(x: Any, y: Any, /) -> Array:
    """The matrix product x @ y; a vector is a row on the left and a column on the right; leading axes are batches."""

def matrix_transpose(x: Any, /) -> Array:
    """The last two axes swapped."""

def max(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The largest along an axis, several, or all; a fault if empty; nan if any is; 0.0 is above -0.0; equal ones share the gradient."""

def maximum(x: Any, y: Any, /) -> Array:
    """The larger of x and y; nan if either is; 0.0 is above -0.0; equal ones share the gradient."""

def mean(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The mean along an axis, several, or all; of integers, a f64; of no elements, nan."""

def meshgrid(*arrays: Any, indexing: str = ...) -> tuple[Array, ...]:
    """The coordinates of a grid: for each vector an array of the shape of the grid."""

def min(x: Any, /, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The smallest along an axis, several, or all; a fault if empty; nan if any is; -0.0 is below 0.0; equal ones share the gradient."""

def minimum(x: Any, y: Any, /) -> Array:
    """The smaller of x and y; nan if either is; -0.0 is below 0.0; equal ones share the gradient."""

def moveaxis(x: Any, source: int, destination: int, /) -> Array:
    """One axis moved to another place; the others keep their order."""

def multiply(x: Any, y: Any, /) -> Array:
    """`x * y`."""

def negative(x: Any, /) -> Array:
    """-x."""

def nextafter(x: Any, y: Any, /) -> Array:
    """The float next to x in the direction of y."""

def nonzero(x: Any, /) -> tuple[Array, ...]:
    """The indices of the elements that are not 0: an array for each axis."""

def not_equal(x: Any, y: Any, /) -> Array:
    """`x != y`."""

def one_hot(indices: Any, n: Any, /, dtype: Any = None) -> Array:
    """A new last axis of length n, with 1 at the index and 0 elsewhere; all 0 for an index not in range."""

def ones(shape: Any, /, dtype: Any = None) -> Array:
    """An array of ones, of f64 if no dtype is given."""

def ones_like(x: Any, /, dtype: Any = None) -> Array:
    """An array of ones with the shape (and dtype) of x."""

def outer(x: Any, y: Any, /) -> Array:
    """Every element of x times every element of y."""

def permute_dims(x: Any, /, axes: Any) -> Array:
    """The axes in another order: axis k of the result is axis axes[k] of x."""

def positive(x: Any, /) -> Array:
    """+x: x itself, booleans as integers."""

def pow(x: Any, y: Any, /) -> Array:
    """`x ** y`; an integer to a negative integer power is a fault."""

def prod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
    """The product along an axis, several, or all."""

def real(x: Any, /) -> Array:
    """The real part; of numbers that are not complex, themselves."""

def reciprocal(x: Any, /) -> Array:
    """1 / x."""

def relu(x: Any, /) -> Array:
    """x where it is positive, else 0; nan of nan; flat at 0."""

def remainder(x: Any, y: Any, /) -> Array:
    """`x % y`, with the sign of y; an integer y must not be 0."""

def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Array:
    """Each element of an axis so often, or as often as its count says; without an axis, of all elements."""

def reshape(x: Any, /, shape: Any) -> Array:
    """The same elements, in row-major order, in another shape; one size may be -1, which is inferred."""

def roll(x: Any, shift: Any, /, axis: Any = None) -> Array:
    """Shifted along an axis, or through all elements; elements that leave at the end re-enter at the start."""

def round(x: Any, /, decimals: int = 0) -> Array:
    """Rounded to this many decimals, halves to even; integers stay as they are."""

def scatter_add(x: Any, indices: Any, updates: Any, /, axis: int = 0) -> Array:
    """Updates added to x at the elements that `take` reads; repeated indices add up."""

def searchsorted(x: Any, values: Any, /, *, side: str = ..., sorter: Any = None) -> Array:
    """How many elements of a sorted vector come before each value."""

def shape(x: Any, /) -> tuple[Array, ...]:
    """The lengths of the axes: Python integers, and traced i64 scalars where known only at run time."""

def sigmoid(x: Any, /) -> Array:
    """1 / (1 + exp(-x))."""

def sign(x: Any, /) -> Array:
    """-1, 0 or 1; nan of nan."""

def signbit(x: Any, /) -> Array:
    """Is the sign bit set? That of -0.0 is."""

def sin(x: Any, /) -> Array:
    """The sine."""

def sinh(x: Any, /) -> Array:
    """The hyperbolic sine."""

def size(x: Any, /) -> Array:
    """The number of elements: a Python integer, or a traced i64 if known only at run time."""

def slice_at(x: Any, start: Any, size: int, /, axis: int = 0) -> Array:
    """`size` elements of an axis, from `start`, which may be traced; a fault if they are out of range."""

def slice_between(x: Any, start: Any, stop: Any, /, axis: int = 0, step: int = 1) -> Array:
    """x[start:stop:step] along an axis. Bounds may be None or traced: then the length is known at run time."""

def softmax(x: Any, /, axis: Any = -1) -> Array:
    """exp(x), scaled so that it sums to 1 along an axis, several, or all."""

def softplus(x: Any, /) -> Array:
    """log(1 + exp(x)), without overflow."""

def sort(x: Any, /, axis: int = -1, descending: builtins.bool = False) -> Array:
    """x sorted along an axis, largest first if `descending`; nan counts as largest."""

def split(x: Any, parts: Any, /, axis: int = 0) -> list[Array]:
    """`parts` equal parts along an axis, or the parts between those indices (static or traced)."""

def sqrt(x: Any, /) -> Array:
    """The square root."""

def square(x: Any, /) -> Array:
    """`x * x`."""

def squeeze(x: Any, /, axis: Any = None) -> Array:
    """Without axes of length 1: the given ones, or all that are known to have length 1."""

def stack(arrays: Any, /, axis: int = 0) -> Array:
    """Arrays of one shape joined along a new axis."""

def std(x: Any, /, axis: Any = None, correction: float = 0, keepdims: builtins.bool = False) -> Array:
    """The standard deviation along an axis, several, or all."""

def stop_gradient(x: Any, /) -> Array:
    """The same value, or container of values, treated as a constant by derivatives."""

def subtract(x: Any, y: Any, /) -> Array:
    """`x - y`."""

def sum(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
    """The sum along an axis, several, or all; of i32 and booleans, an i64."""

def take(x: Any, indices: Any, /, axis: Any = None) -> Array:
    """The elements of an axis at these indices; only vectors may omit the axis."""

def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Array:
    """For each index in `indices`, the element of x at the same position, but at that index along the axis."""

def tan(x: Any, /) -> Array:
    """The tangent."""

def tanh(x: Any, /) -> Array:
    """The hyperbolic tangent."""

def tensordot(x: Any, y: Any, /, axes: Any = 2) -> Array:
    """The sum of products over pairs of axes: the last `axes` of x with the first of y, or the given axes of each."""

def tile(x: Any, repetitions: Any, /) -> Array:
    """The whole array so often along each axis."""

def transpose(x: Any, /, axes: Any = None) -> Array:
    """The axes in reverse order, or in the given order."""

def tril(x: Any, /, k: int = 0) -> Array:
    """The elements up to the diagonal (the k-th above the main one); 0 above it."""

def triu(x: Any, /, k: int = 0) -> Array:
    """The elements from the diagonal (the k-th above the main one) on; 0 below it."""

def trunc(x: Any, /) -> Array:
    """The whole part, without the fraction."""

def unique_all(x: Any, /) -> Array:
    """The elements in order, each once; where each is first, which of them stands at each place, and their counts."""

def unique_counts(x: Any, /) -> Array:
    """The elements in order, each once, and how often each occurs."""

def unique_inverse(x: Any, /) -> Array:
    """The elements in order, each once, and which of them stands at each place."""

def unique_values(x: Any, /) -> Array:
    """The elements in order, each once; nan differs from nan."""

def unstack(x: Any, /, axis: int = 0) -> tuple[Array, ...]:
    """The parts along an axis, which must have a known length."""

def var(x: Any, /, axis: Any = None, correction: float = 0, keepdims: builtins.bool = False) -> Array:
    """The variance along an axis, several, or all; `correction=1` is that of a sample."""

def vecdot(x: Any, y: Any, /, axis: int = -1) -> Array:
    """The sum of conj(x) * y along an axis."""

def where(condition: Any, x: Any, y: Any, /) -> Array:
    """x where the condition is true, else y; both are computed."""

def while_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], initial: Any) -> Array:
    """Apply `body` to the value while `test` of it is true."""

def zeros(shape: Any, /, dtype: Any = None) -> Array:
    """An array of zeros, of f64 if no dtype is given."""

def zeros_like(x: Any, /, dtype: Any = None) -> Array:
    """An array of zeros with the shape (and dtype) of x."""
