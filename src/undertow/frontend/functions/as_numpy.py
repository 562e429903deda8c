"""NumPy's functions and methods on traced values, with NumPy's parameters: the tables, and how calls get there.

What has no row (`numpy_rows.py`) is refused: nothing of NumPy's runs on traced values.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, linalg, matrices, parts, plain, selecting, standard
from undertow.frontend.functions import numpy_arranging as arranging
from undertow.frontend.functions import numpy_meanings as meanings
from undertow.frontend.functions import numpy_numbers as rarer
from undertow.frontend.functions import numpy_ordering as ordering
from undertow.frontend.functions import numpy_reductions as reductions
from undertow.frontend.functions import numpy_series as series
from undertow.frontend.functions import reduction as along
from undertow.frontend.functions.numpy_fft import FOURIER
from undertow.frontend.functions.numpy_rows import Row, row
from undertow.frontend.functions.numpy_ufuncs import COMPOSED, apply
from undertow.frontend.values.operands import as_operand, as_weak
from undertow.frontend.values.traced import FUNCTIONS, NUMPY, Traced, numpy_names

_REDUCED = "a axis=None !out keepdims=False initial=None where=True"
_SUMMED = "a axis=None dtype=None !out keepdims=False initial=None where=True"
_MAX = (_REDUCED, reductions.extreme(plain.max, plain.maximum, "max"))
_MIN = (_REDUCED, reductions.extreme(plain.min, plain.minimum, "min"))
_NAN_REDUCED = "a axis=None !out keepdims=False !initial !where"
_QUANTILE = "axis=None !out !overwrite_input method='linear' keepdims=False !weights"
_FUNCTIONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "sum": (_SUMMED, reductions.summing(along.sum, plain.add, 0)),
    "prod": (_SUMMED, reductions.summing(along.prod, plain.multiply, 1)),
    "mean": ("a axis=None dtype=None !out keepdims=False where=True", reductions.mean),
    "average": ("a axis=None weights=None !returned keepdims=False", meanings.average),
    "std": ("a axis=None dtype=None !out ddof=0 keepdims=False !where !mean correction=None", reductions.spread(
        along.std)),
    "var": ("a axis=None dtype=None !out ddof=0 keepdims=False !where !mean correction=None", reductions.spread(
        along.var)),
    "max": _MAX, "min": _MIN, "amax": _MAX, "amin": _MIN,
    "ptp": ("a axis=None !out keepdims=False", meanings.no_booleans("np.ptp", lambda a, axis, keepdims: plain.subtract(
        plain.max(a, axis=axis, keepdims=keepdims), plain.min(a, axis=axis, keepdims=keepdims)))),
    "all": ("a axis=None !out keepdims=False where=True", reductions.testing(plain.all, True)),
    "any": ("a axis=None !out keepdims=False where=True", reductions.testing(plain.any, False)),
    "argmax": ("a axis=None !out keepdims=False", meanings.reduced(plain.argmax)),
    "argmin": ("a axis=None !out keepdims=False", meanings.reduced(plain.argmin)),
    "count_nonzero": ("a axis=None keepdims=False", meanings.reduced(along.count_nonzero)),
    "cumsum": ("a axis=None dtype=None !out", series.whole_scan(along.cumulative_sum)),
    "cumprod": ("a axis=None dtype=None !out", series.whole_scan(along.cumulative_prod)),
    "nancumsum": ("a axis=None dtype=None !out", series.nan_scan(along.cumulative_sum, 0)),
    "nancumprod": ("a axis=None dtype=None !out", series.nan_scan(along.cumulative_prod, 1)),
    "cumulative_sum": ("x axis=None dtype=None !out include_initial=False", along.cumulative_sum),
    "cumulative_prod": ("x axis=None dtype=None !out include_initial=False", along.cumulative_prod),
    "sort": ("a axis=-1 !kind !order !stable", meanings.in_sorted_order),
    "argsort": ("a axis=-1 !kind !order !stable", meanings.ordered(plain.argsort)),
    "clip": ("a a_min=None a_max=None !out min=None max=None !where !dtype !casting", meanings.clipped),
    "round": ("a decimals=0 !out", meanings.rounded),
    "diff": ("a n=1 axis=-1 prepend=None append=None", lambda a, n, axis, prepend, append: standard.diff(
        a, axis=axis, n=n, prepend=prepend, append=append)),
    "reshape": ("a shape order='C' !newshape !copy", meanings.reshaped_in),
    "ravel": ("a order='C'", meanings.flattened_in), "copy": ("a !order !subok", as_operand),
    "squeeze": ("a axis=None", arrays.squeeze), "expand_dims": ("a axis", arrays.expand_dims),
    "transpose": ("a axes=None", meanings.transposed), "matrix_transpose": ("x", arrays.matrix_transpose),
    "swapaxes": ("a axis1 axis2", meanings.swapped), "moveaxis": ("a source destination", meanings.moved),
    "flip": ("m axis=None", arrays.flip),
    "fliplr": ("m", lambda m: arrays.flip(m, axis=1)), "flipud": ("m", lambda m: arrays.flip(m, axis=0)),
    "roll": ("a shift axis=None", meanings.rolled), "broadcast_to": ("array shape !subok", arrays.broadcast_to),
    "atleast_1d": ("*arys", meanings.each(lambda a: arranging.at_least(a, 1))),
    "atleast_2d": ("*arys", meanings.each(lambda a: arranging.at_least(a, 2))),
    "atleast_3d": ("*arys", meanings.each(arranging.deep)),
    "concatenate": ("arrays axis=0 !out dtype=None !casting", meanings.of_dtype(arrays.concat)),
    "stack": ("arrays axis=0 !out dtype=None !casting", meanings.of_dtype(arrays.stack)),
    "hstack": ("tup dtype=None !casting", meanings.of_dtype(meanings.beside)),
    "vstack": ("tup dtype=None !casting", meanings.of_dtype(
        lambda tup: arrays.concat(meanings.in_rows(tup, 2), axis=0))),
    "column_stack": ("tup", meanings.columns), "append": ("arr values axis=None", meanings.appended),
    "split": ("ary indices_or_sections axis=0", meanings.split_up),
    "unstack": ("x axis=0", arrays.unstack),
    "repeat": ("a repeats axis=None", selecting.repeated), "tile": ("A reps", arranging.tiled),
    "take": ("a indices axis=None !out mode='raise'", meanings.taken),
    "take_along_axis": ("arr indices axis=-1", meanings.taken_along),
    "nonzero": ("a", selecting.nonzero), "flatnonzero": ("a", selecting.flat_nonzero),
    "argwhere": ("a", selecting.arg_where), "compress": ("condition a axis=None !out", selecting.compress),
    "extract": ("condition arr", selecting.extract),
    "unique": (
        "ar return_index=False return_inverse=False return_counts=False axis=None equal_nan=True !sorted",
        selecting.unique),
    "where": ("condition x=None y=None", meanings.chosen),
    "tril": ("m k=0", arrays.tril), "triu": ("m k=0", arrays.triu),
    "diag": ("v k=0", arranging.diag), "diagonal": ("a offset=0 axis1=0 axis2=1", arranging.diagonal),
    "trace": ("a offset=0 axis1=0 axis2=1 dtype=None !out", lambda a, offset, axis1, axis2, dtype: along.sum(
        arranging.diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)),
    "dot": ("a b !out", meanings.product("np.dot", linalg.dot)),
    "vdot": ("a b", meanings.product("np.vdot", meanings.vdot)),
    "inner": ("a b", meanings.product("np.inner", meanings.inner)),
    "outer": ("a b !out", meanings.product("np.outer", linalg.outer)),
    "tensordot": ("a b axes=2", meanings.product("np.tensordot", linalg.tensordot)),
    "einsum": ("subscripts *operands !out !optimize !dtype !order !casting", meanings.no_booleans(
        "np.einsum", linalg.einsum, 1)),
    "linalg.matrix_power": ("a n", matrices.matrix_power),
    "linalg.multi_dot": ("arrays !out", lambda given: matrices.multi_dot(
        meanings.without_booleans("np.linalg.multi_dot", arranging.listed(given)))),
    "linalg.solve": ("a b", matrices.solve), "linalg.inv": ("a", matrices.inv),
    "linalg.pinv": ("a rcond=None !hermitian rtol=None", matrices.pinv),
    "linalg.lstsq": ("a b rcond=None", matrices.lstsq), "linalg.det": ("a", matrices.det),
    "linalg.slogdet": ("a", matrices.slogdet),
    "linalg.cholesky": ("a upper=False", lambda a, upper: matrices.cholesky(a, upper=upper)),
    "linalg.qr": ("a mode='reduced'", matrices.qr), "linalg.eigh": ("a UPLO='L'", matrices.eigh),
    "linalg.eigvalsh": ("a UPLO='L'", matrices.eigvalsh), "linalg.eig": ("a", meanings.no_eigenvalues("eig", "eigh")),
    "linalg.eigvals": ("a", meanings.no_eigenvalues("eigvals", "eigvalsh")),
    "linalg.svd": ("a full_matrices=True compute_uv=True !hermitian", matrices.svd),
    "linalg.svdvals": ("x", matrices.svdvals),
    "linalg.matrix_rank": (
        "A tol=None !hermitian rtol=None", lambda a, tol, rtol: matrices.matrix_rank(a, tol, rtol=rtol)),
    "linalg.cond": ("x p=None", matrices.cond), "linalg.tensorsolve": ("a b axes=None", matrices.tensorsolve),
    "linalg.tensorinv": ("a ind=2", matrices.tensorinv),
    "linalg.matrix_norm": ("x keepdims=False ord='fro'", matrices.matrix_norm),
    "linalg.vector_norm": ("x axis=None keepdims=False ord=2", matrices.vector_norm),
    "linalg.matmul": ("x1 x2", meanings.product("np.linalg.matmul", plain.matmul)),
    "linalg.vecdot": ("x1 x2 axis=-1", meanings.product(
        "np.linalg.vecdot", lambda a, b, axis: linalg.vecdot(a, b, axis=axis))),
    "linalg.outer": ("x1 x2", meanings.product("np.linalg.outer", linalg.outer)),
    "linalg.matrix_transpose": ("x", arrays.matrix_transpose),
    "linalg.tensordot": ("x1 x2 axes=2", meanings.product("np.linalg.tensordot", linalg.tensordot)),
    "linalg.diagonal": ("x offset=0", matrices.diagonal), "linalg.trace": ("x offset=0 dtype=None", matrices.trace),
    "linalg.cross": ("x1 x2 axis=-1", matrices.cross),
    "linalg.norm": ("x ord=None axis=None keepdims=False", matrices.norm),
    "zeros": ("shape dtype=None !order !device !like", meanings.like(creation.zeros)),
    "ones": ("shape dtype=None !order !device !like", meanings.like(creation.ones)),
    "full": ("shape fill_value dtype=None !order !device !like", meanings.filled),
    "zeros_like": ("a dtype=None !order !subok shape=None !device", meanings.shaped_like(creation.zeros)),
    "ones_like": ("a dtype=None !order !subok shape=None !device", meanings.shaped_like(creation.ones)),
    "full_like": ("a fill_value dtype=None !order !subok shape=None !device", meanings.filled_like),
    "eye": ("N M=None k=0 dtype=None !order !device !like", creation.eye),
    "identity": ("n dtype=None !like", lambda n, dtype: creation.eye(n, dtype=dtype)),
    "arange": ("start stop=None step=None dtype=None !device !like", meanings.counted),
    "linspace": ("start stop num=50 endpoint=True !retstep dtype=None !axis !device", meanings.spaced),
    "array": ("object dtype=None !copy !order !subok ndmin=0 !ndmax !like", meanings.as_array),
    "asarray": ("a dtype=None !order !device !copy !like", meanings.as_array),
    "asanyarray": ("a dtype=None !order !device !copy !like", meanings.as_array),
    "astype": ("x dtype !copy !device", meanings.converted),
    "shape": ("a", arrays.shape), "size": ("a axis=None", meanings.size_of), "ndim": ("a", arranging.rank_of),
    "isclose": ("a b rtol=1e-05 atol=1e-08 equal_nan=False", meanings.is_close),
    "allclose": ("a b rtol=1e-05 atol=1e-08 equal_nan=False", lambda *given: plain.all(meanings.is_close(*given))),
    "around": ("a decimals=0 !out", meanings.rounded),
    "dstack": ("tup !dtype !casting", arranging.in_depth), "block": ("arrays", arranging.block),
    "array_split": ("ary indices_or_sections axis=0", arranging.array_split),
    "hsplit": ("ary indices_or_sections", arranging.split_along(1, "np.hsplit")),
    "vsplit": ("ary indices_or_sections", arranging.split_along(0, "np.vsplit")),
    "dsplit": ("ary indices_or_sections", arranging.split_along(2, "np.dsplit")),
    "pad": ("array pad_width mode='constant' constant_values=0", arranging.padded),
    "resize": ("a new_shape", arranging.resized), "rot90": ("m k=1 axes=(0,1)", arranging.turned),
    "delete": ("arr obj axis=None", arranging.deleted), "insert": ("arr obj values axis=None", arranging.inserted),
    "meshgrid": ("*xi !copy sparse=False indexing='xy'", arranging.grids),
    "broadcast_arrays": ("*args !subok", arranging.broadcast_arrays),
    "tri": ("N M=None k=0 dtype=None !like", arranging.triangle),
    "tril_indices": ("n k=0 m=None", arranging.triangle_indices(False)),
    "triu_indices": ("n k=0 m=None", arranging.triangle_indices(True)),
    "diagflat": ("v k=0", lambda v, k: arranging.diag(arranging.flattened(v), k)),
    "kron": ("a b", arranging.kron),
    "cross": ("a b axisa=-1 axisb=-1 axisc=-1 axis=None", meanings.no_booleans("np.cross", arranging.cross)),
    "convolve": ("a v mode='full'", arranging.convolved),
    "searchsorted": ("a v side='left' sorter=None", ordering.search),
    "digitize": ("x bins right=False", ordering.digitized),
    "bincount": ("x weights=None minlength=0", ordering.bin_counts),
    "histogram": ("a bins=10 range=None density=None !weights", ordering.histogram),
    "median": ("a axis=None !out !overwrite_input keepdims=False", ordering.median),
    "quantile": (f"a q {_QUANTILE}", ordering.quantiles(1.0, "np.quantile")),
    "percentile": (f"a q {_QUANTILE}", ordering.quantiles(100.0, "np.percentile")),
    "interp": ("x xp fp left=None right=None !period", ordering.interpolated),
    "isin": ("element test_elements !assume_unique invert=False !kind", ordering.is_in),
    "union1d": ("ar1 ar2", ordering.union), "intersect1d": ("ar1 ar2 !assume_unique !return_indices", ordering.common),
    "setdiff1d": ("ar1 ar2 !assume_unique", ordering.difference),
    "unravel_index": ("indices shape !order", ordering.unravel),
    "select": ("condlist choicelist default=0", ordering.select),
    "polyval": ("p x", meanings.no_booleans("np.polyval", ordering.polynomial, 1)),
    "trapezoid": ("y x=None dx=1.0 axis=-1", meanings.no_booleans("np.trapezoid", ordering.area)),
    "nansum": ("a axis=None !dtype !out keepdims=False !initial !where", ordering.without_nan(along.sum, 0)),
    "nanprod": ("a axis=None !dtype !out keepdims=False !initial !where", ordering.without_nan(along.prod, 1)),
    "nanmax": (_NAN_REDUCED, ordering.without_nan(plain.max, -np.inf)),
    "nanmin": (_NAN_REDUCED, ordering.without_nan(plain.min, np.inf)),
    "nanmean": ("a axis=None !dtype !out keepdims=False !where", ordering.nan_mean),
    "nan_to_num": ("x !copy nan=0.0 posinf=None neginf=None", ordering.nan_to_number),
    "logspace": ("start stop num=50 endpoint=True base=10.0 dtype=None !axis", meanings.spaced_by_powers),
    "ascontiguousarray": ("a dtype=None !like", lambda a, dtype: meanings.as_array(a, dtype, 1)),
    "empty": ("shape dtype=None !order !device !like", meanings.like(creation.zeros)),
    "empty_like": ("prototype dtype=None !order !subok shape=None !device", meanings.shaped_like(creation.zeros)),
    "fix": ("x !out", rarer.fix), "sinc": ("x", rarer.sinc),
    "isposinf": ("x !out", rarer.is_infinite(1)), "isneginf": ("x !out", rarer.is_infinite(-1)),
    "choose": ("a choices !out mode='raise'", rarer.choose),
    "piecewise": ("x condlist funclist *args", rarer.piecewise),
    "gradient": ("f *varargs axis=None edge_order=1", meanings.no_booleans("np.gradient", series.slopes)),
    "unwrap": ("p discont=None axis=-1 period=6.283185307179586", series.unwrapped),
    "ediff1d": ("ary to_end=None to_begin=None", meanings.no_booleans("np.ediff1d", series.differences)),
    "trim_zeros": ("filt trim='fb' !axis", series.trimmed),
    "apply_along_axis": ("func1d axis arr *args", series.along_each), "lexsort": ("keys axis=-1", series.lex_order),
    "cov": ("m y=None rowvar=True bias=False ddof=None !fweights !aweights !dtype", series.covariance),
    "corrcoef": ("x y=None rowvar=True !dtype", series.correlation),
    "correlate": ("a v mode='valid'", series.correlated),
    "nanstd": ("a axis=None !dtype !out ddof=0 keepdims=False !where !mean correction=None", series.nan_spread(True)),
    "nanvar": ("a axis=None !dtype !out ddof=0 keepdims=False !where !mean correction=None", series.nan_spread(False)),
    "nanargmax": ("a axis=None !out keepdims=False", series.nan_place(plain.argmax, -np.inf)),
    "nanargmin": ("a axis=None !out keepdims=False", series.nan_place(plain.argmin, np.inf)),
    "nanmedian": ("a axis=None !out !overwrite_input keepdims=False", ordering.nan_median),
    **{name: ("M", series.window(shape)) for name, shape in series.WINDOWS.items()},
    "geomspace": ("start stop num=50 endpoint=True dtype=None !axis", series.spaced_by_factors),
    "indices": ("dimensions dtype=None sparse=False", series.indices),
    "diag_indices": ("n ndim=2", series.diagonal_indices), "diag_indices_from": ("arr", series.diagonal_indices_from),
    "tril_indices_from": ("arr k=0", series.triangle_indices_from(False)),
    "triu_indices_from": ("arr k=0", series.triangle_indices_from(True)),
    "ix_": ("*args", series.open_grid), "ndenumerate": ("arr", series.places_and_values),
    "vander": ("x N=None increasing=False", series.powers), "poly": ("seq_of_zeros", series.from_roots),
    "polyadd": ("a1 a2", meanings.no_booleans("np.polyadd", series.sum_of_polynomials(plain.add))),
    "polysub": ("a1 a2", meanings.no_booleans("np.polysub", series.sum_of_polynomials(plain.subtract))),
    "polyder": ("p m=1", series.derivative),
    "polyint": ("p m=1 k=None", series.integral), "polyfit": ("x y deg rcond=None !full !w !cov", series.fitted),
    "setxor1d": ("ar1 ar2 !assume_unique", lambda ar1, ar2: series.set_of_either(ar1, ar2, ordering.unique)),
    "histogram_bin_edges": ("a bins=10 range=None !weights", series.bin_edges(ordering.edges_between)),
    "unique_all": ("x", standard.unique_all), "unique_counts": ("x", standard.unique_counts),
    "unique_inverse": ("x", standard.unique_inverse),
    "result_type": ("*arrays_and_dtypes", lambda *given: standard.result_type(*given).numpy),
    "can_cast": ("from_ to !casting", standard.can_cast),
    "asfortranarray": ("a dtype=None !like", lambda a, dtype: meanings.as_array(a, dtype, 1)),
    "asarray_chkfinite": ("a dtype=None !order", meanings.finite_array),
    "array_equiv": ("a1 a2", lambda a1, a2: plain.all(plain.equal(a1, a2))),
    "iterable": ("y", lambda y: arranging.rank_of(y) > 0), "rollaxis": ("a axis start=0", meanings.rolled_axis),
    "array_equal": ("a1 a2 !equal_nan", meanings.is_equal),
    "real": ("val", meanings.real), "imag": ("val", meanings.imaginary), "angle": ("z deg=False", meanings.angle),
    "iscomplexobj": ("x", parts.is_complex), "isrealobj": ("x", lambda x: not parts.is_complex(x)),
    "isreal": ("x", lambda x: plain.equal(parts.imag(x), 0)),
    "iscomplex": ("x", lambda x: plain.not_equal(parts.imag(x), 0)),
    "isscalar": ("element", lambda element: arranging.rank_of(element) == 0),
}  # fmt: skip
# Methods that are not the function of their name with the array in front.
_METHODS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "reshape": ("a *shape order='C' !copy", meanings.reshaped), "transpose": ("a *axes", meanings.turned),
    "astype": ("a dtype !order !casting !subok !copy", meanings.converted),
    "flatten": ("a order='C'", meanings.flattened_in),
    "item": ("a *at", meanings.item_of), "tolist": ("a", meanings.nested),
    "choose": ("a choices !out mode='raise'", rarer.choose),
    "compress": ("a condition axis=None !out", lambda a, condition, axis: selecting.compress(condition, a, axis)),
    "conj": ("a", meanings.conjugate), "conjugate": ("a", meanings.conjugate),
    "is_integer": ("a", lambda a: plain.equal(plain.floor(a), a)),
}  # fmt: skip
_SHARED = (
    "all", "any", "argmax", "argmin", "argsort", "clip", "copy", "cumprod", "cumsum", "diagonal", "dot", "max", "mean",
    "min", "nonzero", "prod", "ravel", "repeat", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes", "take",
    "trace", "var",
)  # fmt: skip
_IN_PLACE = {
    "fill": "x = ut.full_like(x, value)", "sort": "x = ut.sort(x)", "partition": "x = ut.sort(x)",
    "put": "x = ut.where(ut.arange(n) == i, value, x)", "resize": "x = ut.reshape(x, shape)",
    "itemset": "x = ut.where(ut.arange(n) == i, value, x)",
}  # fmt: skip


# -- how calls get here --------------------------------------------------------------------------------


def _named(name: str) -> Any:
    return operator.attrgetter(name)(np)


def _weakly(part: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Of Python's numbers, the result is one too."""
    return lambda x: as_weak(part(x)) if x.is_weak else part(x)


# Attributes of arrays and of Python's numbers.
_ATTRIBUTES: Mapping[str, Callable[[Any], Any]] = {
    "real": _weakly(meanings.real), "imag": _weakly(meanings.imaginary), "mT": arrays.matrix_transpose,
    "itemsize": lambda x: x.type.dtype.size, "nbytes": lambda x: plain.multiply(along.size(x), x.type.dtype.size),
}  # fmt: skip


def _install() -> None:
    """Fill the table of NumPy's functions, and give traced values NumPy's methods."""
    for name, (parameters, compute) in {**_FUNCTIONS, **FOURIER}.items():
        NUMPY[_named(name)] = row(f"np.{name}", parameters, compute)
    for name, (parameters, compute) in {**{n: _FUNCTIONS[n] for n in _SHARED}, **_METHODS}.items():
        method = _method(row(f"x.{name}", parameters, compute))
        method.__name__ = name
        setattr(Traced, name, method)
    for name, attribute in _ATTRIBUTES.items():
        setattr(Traced, name, property(attribute))
    for name, instead in _IN_PLACE.items():
        setattr(Traced, name, _refused(name, instead))
    ours = {ufunc: FUNCTIONS[name] for ufunc, name in numpy_names().items() if isinstance(ufunc, np.ufunc)}
    for ufunc, function in {**{_named(name): function for name, function in COMPOSED.items()}, **ours}.items():
        NUMPY[ufunc] = partial(apply, ufunc, function)
    for scalar in (np.bool_, np.int32, np.int64, np.float32, np.float64, np.complex64, np.complex128):
        NUMPY[scalar] = row(f"np.{scalar.__name__}", "x", partial(_of_type, scalar))


FUNCTIONS["ufunc_method"] = partial(reductions.ufunc_method, lambda ufunc, *given: NUMPY[ufunc](*given))


def _of_type(scalar: type, x: Any) -> Any:
    return elementwise.astype(x, scalar)


def _method(row: Row) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: row(self, *args, **kwargs)


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def refuse(self: Traced, *args: Any, **kwargs: Any) -> Any:
        raise CaptureError(f"x.{name}() changes an array in place, which a graph cannot do", hint=f"write {instead}")

    refuse.__name__ = name
    return refuse


_install()
