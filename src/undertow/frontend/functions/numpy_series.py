"""NumPy's functions of series: slopes, phases, windows, statistics of several, polynomials, grids of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, matrices, parts, plain, selecting
from undertow.frontend.functions import numpy_arranging as arranging
from undertow.frontend.functions import reduction as along_axes
from undertow.frontend.functions.debug import assert_
from undertow.frontend.functions.numpy_arranging import at_least, flattened, listed, rank_of
from undertow.frontend.values.operands import (
    along,
    as_bool,
    as_operand,
    dim,
    dims,
    floats,
    integers,
    is_static_int,
    numbers,
    one_axis,
    static_int,
    type_of,
)
from undertow.frontend.values.traced import effect
from undertow.types import f64, i32

# -- along one axis ----------------------------------------------------------------------------------------


def _part(x: Any, start: Any, stop: Any, axis: int) -> Any:
    return arrays.slice_between(x, start, stop, axis=axis)


def _steps(x: Any, axis: int = 0) -> Any:
    return plain.subtract(_part(x, 1, None, axis), _part(x, None, -1, axis))


def slopes(f: Any, *given: Any) -> Any:
    """np.gradient: by central differences, and one-sided ones at both ends."""
    *spacings, axis, edge_order = given
    value = floats(f)[0]
    rank = type_of(value).rank
    axes = range(rank) if axis is None else [one_axis(a, rank, "np.gradient") for a in np.atleast_1d(axis).tolist()]
    if len(spacings) not in (0, 1, len(axes)) or (len(spacings) == 1 and rank_of(spacings[0]) and len(axes) > 1):
        raise TypeMismatch("np.gradient takes one distance, or one for each axis", hint="name the axes: axis=0")
    if edge_order not in (1, 2):
        raise TypeMismatch("np.gradient takes edge_order=1 or 2", hint="leave it out for 1")
    each = spacings if len(spacings) == len(axes) else (spacings or [1.0]) * len(axes)
    found = tuple(_slope(value, a, h, edge_order) for a, h in zip(axes, each, strict=True))
    return found[0] if len(found) == 1 else found


def _slope(value: Any, axis: int, spacing: Any, edge_order: int) -> Any:
    count = type_of(value).shape[axis]
    if isinstance(count, int) and count <= edge_order:
        raise TypeMismatch("np.gradient needs more elements than that", hint=f"at least {edge_order + 1} on the axis")
    if rank_of(spacing):
        beside = type_of(value).rank - 1 - axis
        gaps = _steps(elementwise.astype(spacing, f64))
        gaps = arrays.expand_dims(gaps, tuple(range(1, 1 + beside))) if beside else gaps
        before, after = _part(gaps, None, -1, 0), _part(gaps, 1, None, 0)
    else:
        gaps = before = after = None
    low, middle, high = _part(value, None, -2, axis), _part(value, 1, -1, axis), _part(value, 2, None, axis)
    if gaps is None:
        inner = plain.divide(plain.subtract(high, low), plain.multiply(spacing, 2.0))
    else:
        both = plain.add(before, after)
        a = plain.negative(plain.divide(after, plain.multiply(before, both)))
        b = plain.divide(plain.subtract(after, before), plain.multiply(before, after))
        c = plain.divide(before, plain.multiply(after, both))
        inner = plain.add(plain.add(plain.multiply(a, low), plain.multiply(b, middle)), plain.multiply(c, high))
    ends = [_end(value, axis, gaps, spacing, edge_order, is_last) for is_last in (False, True)]
    return elementwise.astype(arrays.concat([ends[0], inner, ends[1]], axis=axis), type_of(value).dtype)


def _end(value: Any, axis: int, gaps: Any, spacing: Any, edge_order: int, is_last: bool) -> Any:
    """The slope at one end, seen from there: at the last one, all goes backwards."""

    def at(x: Any, k: int, where: int) -> Any:
        start = -1 - k if is_last else k
        return _part(x, start, start + 1 if start != -1 else None, where)

    h = spacing if gaps is None else at(gaps, 0, 0)
    sign = -1.0 if is_last else 1.0
    if edge_order == 1:
        return plain.divide(plain.multiply(plain.subtract(at(value, 1, axis), at(value, 0, axis)), sign), h)
    g = spacing if gaps is None else at(gaps, 1, 0)
    both = plain.add(h, g)
    a = plain.negative(plain.divide(plain.add(plain.multiply(h, 2.0), g), plain.multiply(h, both)))
    b = plain.divide(both, plain.multiply(h, g))
    c = plain.negative(plain.divide(h, plain.multiply(g, both)))
    terms = [plain.multiply(factor, at(value, k, axis)) for k, factor in enumerate((a, b, c))]
    return plain.multiply(plain.add(plain.add(terms[0], terms[1]), terms[2]), sign)


def unwrapped(p: Any, discont: Any, axis: Any, period: Any) -> Any:
    """np.unwrap: phases without jumps of more than half a period."""
    value, at = along(floats(p)[0], axis, "np.unwrap")
    half = period / 2 if isinstance(period, (int, float)) else plain.divide(period, 2.0)
    jumps = _steps(value, at)
    near = plain.subtract(plain.remainder(plain.add(jumps, half), period), half)
    is_unclear = plain.logical_and(plain.equal(near, -half), plain.greater(jumps, 0))
    right = plain.subtract(plain.where(is_unclear, half, near), jumps)
    if discont is None:
        least = half
    else:
        are_static = isinstance(discont, (int, float)) and isinstance(half, float)
        least = max(discont, half) if are_static else plain.maximum(discont, half)
    right = plain.where(plain.less(plain.abs(jumps), least), 0.0, right)
    moved = plain.add(_part(value, 1, None, at), along_axes.cumulative_sum(right, axis=at))
    return arrays.concat([_part(value, None, 1, at), moved], axis=at)


def differences(ary: Any, to_end: Any, to_begin: Any) -> Any:
    """np.ediff1d."""
    steps = _steps(flattened(numbers(ary)[0]))
    parts = [to_begin, steps, to_end]
    return arrays.concat([flattened(elementwise.astype(p, type_of(steps).dtype)) for p in parts if p is not None])


def trimmed(filt: Any, trim: Any) -> Any:
    """np.trim_zeros, of a vector."""
    value = as_operand(filt)
    if isinstance(filt, (list, tuple)):
        raise CaptureError("np.trim_zeros of a list is a list of run-time length", hint="pass np.array(x)")
    if type_of(value).rank != 1 or not isinstance(trim, str) or not set(trim.lower()) <= {"f", "b"}:
        raise CaptureError("np.trim_zeros takes a vector, and trim='f', 'b' or 'fb'", hint="call it for each row")
    count = dim(value, 0)
    places = selecting.places(as_bool(value))
    marks = arrays.concat([places, np.array([-1])])
    is_none = plain.equal(dim(places, 0), 0)
    first = plain.where(is_none, count, arrays.take(marks, 0, axis=0)) if "f" in trim.lower() else None
    last = plain.add(plain.max(marks), 1) if "b" in trim.lower() else None
    return arrays.slice_between(value, first, last)


def along_each(func1d: Any, axis: Any, arr: Any, *args: Any) -> Any:
    """np.apply_along_axis: the function of each line, whose number is known at capture."""
    value, at = along(arr, axis, "np.apply_along_axis")
    others = [n for k, n in enumerate(dims(value)) if k != at]
    if not all(map(is_static_int, others)):
        raise CaptureError(
            "np.apply_along_axis over axes of run-time length cannot be captured", hint="write ut.map(f, x)"
        )
    lines = arrays.moveaxis(value, at, -1)
    found = [as_operand(func1d(_line(lines, place), *args)) for place in np.ndindex(*others)]
    if not found:
        raise TypeMismatch("Cannot apply_along_axis when any iteration dimensions are 0", hint="test the shape first")
    made = arrays.stack(found)
    inner = dims(found[0])
    made = arrays.reshape(made, (*others, *inner))
    order = [*range(at), *range(len(others), len(others) + len(inner)), *range(at, len(others))]
    return arrays.permute_dims(made, order)


def _line(lines: Any, place: tuple[int, ...]) -> Any:
    for k in place:
        lines = arrays.take(lines, k, axis=0)
    return lines


def lex_order(keys: Any, axis: Any) -> Any:
    """np.lexsort: by the last key, then by the one before it, and so on."""
    order: Any = None
    for key in listed(keys):
        value, at = along(key, axis, "np.lexsort")
        if order is None:
            order = plain.argsort(value, axis=at)
        else:
            among = plain.argsort(arrays.take_along_axis(value, order, axis=at), axis=at)
            order = arrays.take_along_axis(order, among, axis=at)
    return order


# -- statistics --------------------------------------------------------------------------------------------


def covariance(m: Any, y: Any, rowvar: Any, bias: Any, ddof: Any) -> Any:
    """np.cov."""
    rows = [_variables(v, rowvar) for v in (m, y) if v is not None]
    values = rows[0] if len(rows) == 1 else arrays.concat(rows, axis=0)
    correction = static_int(ddof, "ddof") if ddof is not None else int(not bias)
    count = plain.subtract(dim(values, 1), correction)
    apart = plain.subtract(values, along_axes.mean(values, axis=1, keepdims=True))
    product = plain.matmul(apart, arrays.transpose(apart))
    return arrays.squeeze(plain.divide(product, elementwise.astype(plain.maximum(count, 0), f64)))


def _variables(x: Any, rowvar: Any) -> Any:
    value = at_least(elementwise.astype(x, f64), 2)
    return value if rowvar or rank_of(x) < 2 else arrays.transpose(value)


def correlation(x: Any, y: Any, rowvar: Any) -> Any:
    """np.corrcoef."""
    c = covariance(x, y, rowvar, False, None)
    if not rank_of(c):
        return plain.divide(c, c)
    spread = plain.sqrt(arranging.diagonal(c, 0, 0, 1))
    c = plain.divide(plain.divide(c, arrays.expand_dims(spread, 1)), spread)
    return elementwise.clip(c, -1, 1)


def correlated(a: Any, v: Any, mode: Any) -> Any:
    """np.correlate."""
    left, right = as_operand(a), parts.conj(v)
    n, m = (dim(at_least(x, 1), 0) for x in (left, right))
    if mode == "same" and not (is_static_int(n) and is_static_int(m)):
        raise CaptureError("np.correlate with mode='same' needs known lengths", hint="annotate them: ut.f64[3]")
    if mode == "same" and n < m:  # NumPy exchanges them, and then what is in the middle is another part
        return arrays.flip(arranging.convolved(right, arrays.flip(left), mode))
    return arranging.convolved(left, arrays.flip(right), mode)


def nan_spread(is_root: bool) -> Callable[..., Any]:
    """np.nanstd, np.nanvar."""

    def spread(a: Any, axis: Any, ddof: Any, keepdims: bool, correction: Any) -> Any:
        ddof = ddof if correction is None else correction
        value = floats(a)[0]
        known = plain.logical_not(plain.isnan(value))
        count = elementwise.astype(along_axes.sum(known, axis=axis, keepdims=True), type_of(value).dtype)
        center = plain.divide(along_axes.sum(plain.where(known, value, 0), axis=axis, keepdims=True), count)
        apart = plain.where(known, plain.square(plain.subtract(value, center)), 0)
        count = along_axes.sum(known, axis=axis, keepdims=keepdims)
        free = elementwise.astype(plain.subtract(count, ddof), type_of(value).dtype)
        found = plain.divide(along_axes.sum(apart, axis=axis, keepdims=keepdims), free)
        found = plain.where(plain.less_equal(free, 0), np.nan, found)
        return plain.sqrt(found) if is_root else found

    return spread


def nan_place(function: Callable[..., Any], instead: float) -> Callable[..., Any]:
    """np.nanargmax, np.nanargmin."""

    def place(a: Any, axis: Any, keepdims: bool) -> Any:
        value = as_operand(a)
        if type_of(value).dtype.kind == "float":
            missing = plain.isnan(value)
            effect(
                "raise", [plain.logical_not(plain.any(plain.all(missing, axis=axis)))],
                template="All-NaN slice encountered", error="ValueError",
            )  # fmt: skip
            value = plain.where(missing, instead, value)
        return function(value, axis=axis, keepdims=keepdims)

    return place


def nan_scan(function: Callable[..., Any], instead: float) -> Callable[..., Any]:
    """np.nancumsum, np.nancumprod."""

    def scan(a: Any, axis: Any, dtype: Any) -> Any:
        value = as_operand(a)
        if type_of(value).dtype.kind == "float":
            value = plain.where(plain.isnan(value), instead, value)
        return whole_scan(function)(value, axis, dtype)

    return scan


def whole_scan(function: Callable[..., Any]) -> Callable[..., Any]:
    """np.cumsum, np.cumprod: without an axis, of all elements."""

    def scan(a: Any, axis: Any, dtype: Any) -> Any:
        return function(flattened(a) if axis is None else a, axis=0 if axis is None else axis, dtype=dtype)

    return scan


# -- windows and sequences ---------------------------------------------------------------------------------


def window(shape: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """np.hanning and its kin: a function of places from -1 to 1."""

    def made(M: Any) -> Any:
        count = integers(M, "the length of a window")
        ends = plain.subtract(count, 1)
        places = creation.arange(plain.negative(ends), plain.maximum(count, plain.negative(ends)), 2)
        found = shape(plain.divide(places, plain.maximum(ends, 1)))
        return plain.where(plain.equal(count, 1), 1.0, found)

    return made


def _cosine(x: Any, times: float) -> Any:
    return plain.cos(plain.multiply(x, times * np.pi))


WINDOWS: dict[str, Callable[[Any], Any]] = {
    "hanning": lambda x: plain.add(plain.multiply(_cosine(x, 1), 0.5), 0.5),
    "hamming": lambda x: plain.add(plain.multiply(_cosine(x, 1), 0.46), 0.54),
    "blackman": lambda x: plain.add(
        plain.add(plain.multiply(_cosine(x, 1), 0.5), 0.42), plain.multiply(_cosine(x, 2), 0.08)
    ),
    "bartlett": lambda x: plain.subtract(1.0, plain.abs(x)),
}


def spaced_by_factors(start: Any, stop: Any, num: Any, endpoint: Any, dtype: Any) -> Any:
    """np.geomspace."""
    first, last = floats(start, stop)
    signs = plain.multiply(plain.sign(first), plain.sign(last))
    assert_(plain.greater(signs, 0), "np.geomspace goes between numbers of one sign\nhint: make both positive")
    count = static_int(num, "num")
    powers = creation.linspace(plain.log10(plain.abs(first)), plain.log10(plain.abs(last)), count, endpoint=endpoint)
    inner = plain.multiply(elementwise.pow(10.0, powers), plain.sign(first))
    places = np.arange(count)
    found = plain.where(places == 0, first, inner)
    found = plain.where(places == len(places) - 1, last, found) if endpoint and len(places) > 1 else found
    return found if dtype is None else elementwise.astype(found, dtype)


def indices(dimensions: Any, dtype: Any, sparse: Any) -> Any:
    """np.indices."""
    for n in dimensions:
        inside = plain.greater_equal(integers(n, "a length"), 0)
        effect("raise", [inside], template="negative dimensions are not allowed", error="ValueError")
    vectors = [elementwise.astype(creation.arange(n), np.int64 if dtype is None else dtype) for n in dimensions]
    made = arranging.grids(*vectors, bool(sparse), "ij")
    return made if sparse else arrays.stack(list(made))


def diagonal_indices(n: Any, ndim: Any) -> tuple[Any, ...]:
    """np.diag_indices."""
    return (creation.arange(integers(n, "a length")),) * static_int(ndim, "ndim")


def diagonal_indices_from(arr: Any) -> tuple[Any, ...]:
    """np.diag_indices_from."""
    return diagonal_indices(dim(as_operand(arr), 0), rank_of(arr))


def triangle_indices_from(is_upper: bool) -> Callable[..., Any]:
    """np.tril_indices_from, np.triu_indices_from."""

    def made(arr: Any, k: Any) -> Any:
        rows, columns = dims(as_operand(arr))
        return arranging.triangle_indices(is_upper)(rows, k, columns)

    return made


def open_grid(*given: Any) -> tuple[Any, ...]:
    """np.ix_."""
    vectors = [as_operand(v) for v in given]
    vectors = [selecting.nonzero(v)[0] if type_of(v).dtype.kind == "bool" else v for v in vectors]
    return tuple(
        arrays.reshape(v, tuple(-1 if k == axis else 1 for k in range(len(vectors)))) for axis, v in enumerate(vectors)
    )


def places_and_values(arr: Any) -> list[tuple[tuple[int, ...], Any]]:
    """np.ndenumerate: pairs of places and elements."""
    value = as_operand(arr)
    lengths = dims(value)
    if not all(map(is_static_int, lengths)):
        raise CaptureError("np.ndenumerate needs a shape that is known at capture", hint="loop over range(len(x))")
    return [(place, _line(value, place)) for place in np.ndindex(*lengths)]


# -- polynomials -------------------------------------------------------------------------------------------


def powers(x: Any, N: Any, increasing: Any) -> Any:
    """np.vander: a column for each power."""
    value = as_operand(x)
    if type_of(value).rank != 1:
        raise TypeMismatch("np.vander takes a vector", hint="flatten it")
    count = static_int(dim(value, 0) if N is None else N, "the number of columns of np.vander")
    value = numbers(value)[0]
    if type_of(value).dtype == i32:
        value = elementwise.astype(value, np.int64)
    columns = [creation.ones_like(value)]
    for _ in range(count - 1):
        columns.append(plain.multiply(columns[-1], value))
    columns = columns[:count] if increasing else columns[:count][::-1]
    return arrays.stack(columns, axis=1) if columns else creation.zeros((dim(value, 0), 0), dtype=type_of(value).dtype)


def sum_of_polynomials(operator: Callable[..., Any]) -> Callable[..., Any]:
    """np.polyadd, np.polysub: the constants stand last."""

    def added(a1: Any, a2: Any) -> Any:
        one, other = at_least(a1, 1), at_least(a2, 1)
        counts = [dim(v, 0) for v in (one, other)]
        longest = plain.maximum(*counts) if not all(map(is_static_int, counts)) else max(counts)
        return operator(*(_in_front(v, longest) for v in (one, other)))

    return added


def _in_front(vector: Any, count: Any) -> Any:
    missing = plain.subtract(count, dim(vector, 0))
    missing = int(missing) if is_static_int(missing) else missing
    return arrays.concat([creation.zeros((missing,), dtype=type_of(vector).dtype), vector])


def derivative(p: Any, m: Any) -> Any:
    """np.polyder."""
    value = at_least(numbers(p)[0], 1)
    if type_of(value).dtype == i32:
        value = elementwise.astype(value, np.int64)
    for _ in range(static_int(m, "the order of np.polyder")):
        last = plain.subtract(dim(value, 0), 1)
        degrees = arrays.flip(plain.add(creation.arange(plain.maximum(last, 0)), 1))
        value = plain.multiply(_part(value, None, -1, 0), elementwise.astype(degrees, type_of(value).dtype))
    return value


def integral(p: Any, m: Any, k: Any) -> Any:
    """np.polyint."""
    order = static_int(m, "the order of np.polyint")
    constants = [0] * order if k is None else list(k) if isinstance(k, (list, tuple, np.ndarray)) else [k] * order
    value = at_least(numbers(p)[0], 1) if constants else as_operand(p)
    for constant in constants:
        degrees = arrays.flip(plain.add(creation.arange(dim(value, 0)), 1))
        parts = plain.divide(value, degrees)
        value = arrays.concat([parts, flattened(elementwise.astype(constant, type_of(parts).dtype))])
    return value


def from_roots(seq_of_zeros: Any) -> Any:
    """np.poly: the coefficients of the polynomial with these zeros."""
    zeros = as_operand(seq_of_zeros)
    if type_of(zeros).rank != 1 or not is_static_int(dim(zeros, 0)):
        raise CaptureError("np.poly takes a vector whose length is known at capture", hint="the zeros, one by one")
    zeros = floats(zeros)[0]
    found: Any = np.ones(1, type_of(zeros).dtype.numpy)
    for zero in arrays.unstack(zeros) if dim(zeros, 0) else ():
        inner = plain.subtract(_part(found, 1, None, 0), plain.multiply(zero, _part(found, None, -1, 0)))
        last = plain.negative(plain.multiply(zero, _part(found, -1, None, 0)))
        found = arrays.concat([_part(found, None, 1, 0), inner, last])
    return found


def fitted(x: Any, y: Any, deg: Any, rcond: Any) -> Any:
    """np.polyfit: the polynomial of least squares."""
    order = static_int(deg, "the degree of np.polyfit") + 1
    points, values = plain.add(elementwise.astype(x, f64), 0.0), plain.add(elementwise.astype(y, f64), 0.0)
    left = powers(points, order, False)
    scale = plain.sqrt(along_axes.sum(plain.square(left), axis=0))
    if rcond is None:
        rcond = plain.multiply(elementwise.astype(dim(points, 0), f64), np.finfo(np.float64).eps)
    found = matrices.lstsq(plain.divide(left, scale), values, rcond)[0]
    return plain.divide(found, arrays.expand_dims(scale, 1) if type_of(found).rank == 2 else scale)


def set_of_either(ar1: Any, ar2: Any, unique: Callable[..., Any]) -> Any:
    """np.setxor1d: what is in one of two sets."""
    both = arrays.concat([flattened(unique(v)) for v in (ar1, ar2)])
    values, counts = selecting.unique(both, False, False, True, None, False)  # every nan is another
    return selecting.picked(values, plain.equal(counts, 1), 0)


def bin_edges(edges: Callable[..., Any]) -> Callable[..., Any]:
    """np.histogram_bin_edges."""

    def made(a: Any, bins: Any, limits: Any) -> Any:
        if not is_static_int(bins):
            raise CaptureError(
                f"np.histogram_bin_edges with bins={brief(bins)} cannot be captured", hint="give a number"
            )
        return edges(plain.sort(flattened(a), axis=0), static_int(bins, "bins"), limits)

    return made
