"""Creating, reshaping and indexing tensors: `tf.placeholder`, `tf.constant`, `tf.reshape`, `tf.gather`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.hosted import Text, is_text
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.graphs.seeds import seeded
from undertow.compat.v1.graphs.shapes import dims_of
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import (
    Tensor,
    apply,
    as_constant,
    as_tensor,
    named,
    operands,
    with_reads,
    wrap,
    write_constant,
    writing,
)
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.selecting import arg_where
from undertow.frontend.values import random
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.traced import Traced, emit
from undertow.types import DType, Type, f32, f64, i32, i64

__all__ = [
    "broadcast_to", "cast", "concat", "constant", "convert_to_tensor", "expand_dims", "eye", "fill",
    "gather", "linspace", "one_hot", "ones", "ones_like", "placeholder", "placeholder_with_default", "random_normal",
    "random_uniform", "range", "rank", "reshape", "reverse", "shape", "size", "slice", "split", "squeeze", "stack",
    "tile", "to_double", "to_float", "to_int32", "to_int64", "transpose", "unstack", "where", "zeros", "zeros_like",
]  # fmt: skip


# -- creation --------------------------------------------------------------------------------------------------


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that every run must feed. A dimension of any size is None; without a shape, it takes any."""
    graph = get_default_graph()
    builder = graph.ctx.open_builder
    if builder is not graph.main or builder.region != 0:
        raise TypeMismatch(
            "a placeholder cannot be created inside a function, a branch or a loop", here(), hint="create it outside"
        )
    dims = dims_of(shape)
    type = Type(dtype_of(dtype), () if dims is None else dims)
    with graph.lock:
        made = Tensor(graph.main, graph.param(type, name or "Placeholder", here()))
        if dims is None:
            graph.late.add(made.port)
        return made


def placeholder_with_default(input: Any, shape: Any = None, name: str | None = None) -> Any:
    """A tensor that a run may feed; its default value is `input`."""
    with writing(input):
        return named(wrap(emit("identity", [as_tensor(input)])[0]), name or "PlaceholderWithDefault")


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str | None = None, verify_shape: bool = False
) -> Any:
    """A constant; Python integers are int32 and floats float32 unless a dtype is given."""
    with writing():
        if isinstance(value, Traced):
            raise TypeMismatch(f"{value!r} is not a constant", here(), hint="use the tensor itself, or tf.identity")
        if dtype in ("string", str) or is_text(value):
            return Text(value, name)
        array = as_constant(value, None if dtype is None else dtype_of(dtype))
        if shape is not None:
            wanted = tuple(int(d) for d in (shape if isinstance(shape, (list, tuple)) else [shape]))
            if array.size not in (1, int(np.prod(wanted, dtype=np.int64))):
                raise TypeMismatch(
                    f"{array.size} values do not fill the shape {list(wanted)}", here(), hint="pass as many, or one"
                )
            array = np.broadcast_to(array, wanted) if array.size == 1 else array.reshape(wanted)
        return write_constant(array, name=name or "Const")


def convert_to_tensor(value: Any, dtype: Any = None, name: str | None = None, preferred_dtype: Any = None) -> Tensor:
    """A tensor as it is; anything else as a constant."""
    made: Tensor = as_tensor(value, dtype, name)
    return made


def sizes_of(shape: Any) -> Any:
    """The sizes of a shape that may be a tensor, or contain some."""
    sizes = with_reads(shape)
    if isinstance(sizes, Traced) and sizes.type.rank:
        length = sizes.type.shape[0]
        if not isinstance(length, int):
            raise TypeMismatch(
                "the length of the shape is unknown",
                here(),
                hint="the number of dimensions must be known when the graph is built",
            )
        return tuple(getitem(sizes, k) for k in np.arange(length).tolist())
    return tuple(sizes) if isinstance(sizes, (list, tuple, np.ndarray)) else (sizes,)


def fill(dims: Any, value: Any, name: str | None = None) -> Any:
    """A tensor of this shape filled with one value."""
    with writing(dims, value):
        element = with_reads(value)
        return named(_filled(dims, element if isinstance(element, Traced) else as_constant(element)[()]), name)


def _filled(dims: Any, value: Any) -> Any:
    sizes = sizes_of(dims)
    if any(isinstance(size, Traced) for size in sizes) or isinstance(value, Traced):
        return wrap(functions.full(sizes, value))
    return write_constant(np.full([int(size) for size in sizes], value))


def zeros(shape: Any, dtype: Any = f32, name: str | None = None) -> Any:
    """A tensor full of zeros."""
    with writing(shape):
        return named(_filled(shape, dtype_of(dtype).numpy.type(0)), name)


def ones(shape: Any, dtype: Any = f32, name: str | None = None) -> Any:
    """A tensor full of ones."""
    with writing(shape):
        return named(_filled(shape, dtype_of(dtype).numpy.type(1)), name)


def zeros_like(tensor: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Zeros in the shape of a tensor."""
    return apply(functions.zeros_like, [tensor], name, dtype=dtype)


def ones_like(tensor: Any, dtype: Any = None, name: str | None = None) -> Any:
    """Ones in the shape of a tensor."""
    return apply(functions.ones_like, [tensor], name, dtype=dtype)


def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = f32, name: str | None = None
) -> Any:
    """The matrix with ones on its diagonal; with a batch_shape, so many of it."""
    if batch_shape is not None:
        one = eye(num_rows, num_columns, dtype=dtype)
        return broadcast_to(one, [*batch_shape, *functions.shape(one)], name)
    with writing(num_rows, num_columns):
        rows, columns = with_reads(num_rows), with_reads(num_columns)
        if isinstance(rows, Traced) or isinstance(columns, Traced):
            return named(wrap(functions.eye(rows, columns, dtype=dtype_of(dtype))), name)
        return write_constant(np.eye(num_rows, num_columns, dtype=dtype_of(dtype).numpy), name=name or "eye")


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = None) -> Any:
    """The numbers from `start` up to but not including `limit`."""
    with writing(start, limit, delta):
        first, last, step = with_reads(start), with_reads(limit), with_reads(delta)
        if last is None:
            first, last = 0, first
        if not any(isinstance(v, Traced) for v in (first, last, step)):
            return write_constant(np.arange(first, last, step).tolist(), None if dtype is None else dtype_of(dtype))
        beside = next(v.dtype for v in (first, last, step) if isinstance(v, Traced))
        return named(wrap(functions.arange(first, last, step, dtype=beside if dtype is None else dtype)), name)


def linspace(start: Any, stop: Any, num: int, name: str | None = None) -> Any:
    """`num` evenly spaced numbers, both ends included."""
    with writing(start, stop):
        values = [with_reads(start), with_reads(stop)]
        if not any(isinstance(v, Traced) for v in values):
            return write_constant(np.linspace(values[0], values[1], num).tolist())
        first, last = operands(values)
        return named(wrap(functions.linspace(first, last, num)), name)


def drawn(draw: Any, shape: Any, a: Any, b: Any, dtype: Any, name: str | None = None, seed: Any = None) -> Any:
    """Random numbers, new in every run; seeds, or `ut.options(seed=...)`, make runs reproducible."""
    with writing(shape, a, b) as graph, seeded(graph, seed):
        return named(wrap(draw(with_reads(a), with_reads(b), sizes_of(shape), dtype_of(dtype))), name)


def random_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = f32, seed: Any = None, name: str | None = None
) -> Any:
    """Normal numbers, new ones in every run."""
    return drawn(random.normal, shape, mean, stddev, dtype, name, seed)


def _integers(low: Any, high: Any, size: Any, dtype: DType) -> Any:
    return random.integers(low, high, size, dtype)


def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = f32, seed: Any = None, name: str | None = None
) -> Any:
    """Uniform numbers, new ones in every run."""
    if dtype_of(dtype).kind == "int":
        if maxval is None:
            raise TypeMismatch("maxval must be given for integers", here(), hint="write maxval=10")
        return drawn(_integers, shape, minval, maxval, dtype, name, seed)
    return drawn(random.uniform, shape, minval, 1.0 if maxval is None else maxval, dtype, name, seed)


# -- rearrangement --------------------------------------------------------------------------------------------


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """The same numbers with another dtype."""
    return apply(lambda tensor: functions.astype(tensor, dtype_of(dtype)), [x], name)


def _cast_to(dtype: DType) -> Callable[..., Any]:
    convert = lambda x, name=None: cast(x, dtype, name)  # noqa: E731
    convert.__doc__ = f"As {dtype.numpy.name}."
    return convert


to_float, to_double, to_int32, to_int64 = map(_cast_to, (f32, f64, i32, i64))


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Any:
    """The same elements in another shape; one size may be -1, which is inferred."""
    return _shaped(functions.reshape, tensor, shape, name)


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Any:
    """Repeated to fill a shape."""
    return _shaped(functions.broadcast_to, input, shape, name)


def _shaped(ours: Callable[..., Any], tensor: Any, shape: Any, name: str | None) -> Any:
    with writing(tensor, shape):
        return named(wrap(ours(as_tensor(tensor), sizes_of(shape))), name)


def transpose(a: Any, perm: Any = None, name: str | None = None) -> Any:
    """The axes in reverse order, or in the given order."""
    return apply(functions.transpose, [a], name, axes=None if perm is None else tuple(perm))


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    """A new axis of length 1."""
    return apply(functions.expand_dims, [input], name, axis=dim if axis is None else axis)


def squeeze(input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    """Without the axes of length 1, or without those given."""
    axis = squeeze_dims if axis is None else axis
    return apply(functions.squeeze, [input], name, axis=tuple(axis) if isinstance(axis, list) else axis)


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Any:
    """The elements reversed along some axes."""
    return apply(functions.flip, [tensor], name, axis=tuple(axis) if isinstance(axis, list) else axis)


def concat(values: Any, axis: int, name: str | None = None) -> Any:
    """Tensors joined along an axis."""
    with writing(values):
        parts = values if isinstance(values, (list, tuple)) else [values]
        return named(wrap(functions.concat(operands(parts), axis=axis)), name)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors joined along a new axis."""
    with writing(values):
        return named(wrap(functions.stack(operands(list(values)), axis=axis)), name)


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str | None = None) -> Any:
    """The parts of a tensor along an axis."""
    return apply(functions.unstack, [value], None, axis=axis)


def split(value: Any, num_or_size_splits: Any, axis: int = 0, num: Any = None, name: str | None = None) -> Any:
    """Cut into equal parts, or into parts of these sizes."""
    with writing(value):
        sizes, whole = num_or_size_splits, as_tensor(value)
        if isinstance(sizes, (list, tuple, np.ndarray)):
            known = [int(size) for size in sizes]
            if -1 in known:
                known[known.index(-1)] = functions.shape(whole)[axis] - sum(size for size in known if size != -1)
            cuts = itertools.pairwise([0, *itertools.accumulate(known)])
            return wrap([functions.slice_between(whole, start, end, axis=axis) for start, end in cuts])
        return wrap(functions.split(whole, sizes, axis=axis))


def tile(input: Any, multiples: Any, name: str | None = None) -> Any:
    """Repeated this many times along each axis."""
    with writing(input, multiples):
        tiled = as_tensor(input)
        counts = sizes_of(multiples)
        for axis, times in enumerate(counts):
            if isinstance(times, Traced):
                tiled = wrap(_repeated(tiled, axis, times))
                continue
            tiled = wrap(functions.concat([tiled] * int(times), axis=axis)) if times != 1 else tiled
        return named(tiled, name)


def _repeated(value: Any, axis: int, times: Any) -> Any:
    """An axis repeated as often as a tensor says."""
    sizes = functions.shape(value)
    spread = functions.broadcast_to(functions.expand_dims(value, axis=axis), (*sizes[:axis], times, *sizes[axis:]))
    return functions.reshape(spread, (*sizes[:axis], functions.multiply(times, sizes[axis]), *sizes[axis + 1 :]))


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """The block that starts there and has that size; -1 means up to the end."""
    with writing(input_, begin, size):
        block = as_tensor(input_)
        for axis, (first, count) in enumerate(zip(sizes_of(begin), sizes_of(size), strict=True)):
            last = None if not isinstance(count, Traced) and count == -1 else first + count
            block = functions.slice_between(block, first, last, axis=axis)
        return named(wrap(block), name)


# -- selection and sizes --------------------------------------------------------------------------------------


def gather(params: Any, indices: Any, validate_indices: Any = None, name: str | None = None, axis: int = 0) -> Any:
    """The slices of `params` at these indices."""
    with writing(params, indices):
        source, chosen = as_tensor(params), as_tensor(indices)
        if chosen.type.rank == 0:
            return named(wrap(getitem(source, (*([np.s_[:]] * axis), chosen) if axis else chosen)), name)
        return named(wrap(functions.take(source, chosen, axis=axis)), name)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Elements of `x` where the condition is true, of `y` elsewhere; a vector chooses rows. Alone: where it is true."""
    if x is None and y is None:
        return apply(lambda truth: functions.astype(arg_where(truth), i64), [condition], name)
    if x is None or y is None:
        raise TypeMismatch("tf.where takes both values, or none", here(), hint="pass both: tf.where(c, x, y)")
    with writing(condition, x, y):
        chosen = operands([x, y])
        truth = as_tensor(condition)
        rank = max(as_tensor(value).type.rank for value in chosen)
        if truth.type.rank == 1 and rank > 1:
            truth = wrap(functions.reshape(truth, (-1, *(1,) * (rank - 1))))
        return named(wrap(functions.where(truth, *chosen)), name)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Any:
    """A one at each index, in a new axis of length `depth`, by default the last."""
    with writing(indices, depth):
        places, count = as_tensor(indices), with_reads(depth)
        kind = dtype
        if kind is None:
            given = next((value for value in (on_value, off_value) if value is not None), None)
            kind = f32 if given is None else as_tensor(given).dtype
        chosen = wrap(functions.one_hot(places, count, dtype=dtype_of(kind)))
        if on_value is not None or off_value is not None:
            one, zero = 1 if on_value is None else on_value, 0 if off_value is None else off_value
            one, zero = (cast(value, kind) for value in (one, zero))
            chosen = where(cast(chosen, "bool"), one, zero)
        if axis is not None and axis not in (-1, places.type.rank):
            chosen = wrap(functions.moveaxis(chosen, -1, axis))
        return named(chosen, name)


def shape(input: Any, name: str | None = None, out_type: Any = i32) -> Any:
    """The dimensions of a tensor, as a tensor."""
    with writing(input):
        dims = functions.shape(as_tensor(input))
        if not any(isinstance(d, Traced) for d in dims):
            return named(write_constant(np.asarray(dims, dtype_of(out_type).numpy)), name)
        return named(wrap(functions.astype(functions.stack(list(dims)), dtype_of(out_type))), name)


def size(input: Any, name: str | None = None, out_type: Any = i32) -> Any:
    """The number of elements, as a tensor."""
    with writing(input):
        count = functions.size(as_tensor(input))
        number = functions.astype(count, dtype_of(out_type)) if isinstance(count, Traced) else np.int32(count)
        return named(wrap(number), name)


def rank(input: Any, name: str | None = None) -> Any:
    """The number of dimensions, as a tensor."""
    return apply(lambda x: np.int32(x.type.rank), [input], name)


boundaries(globals(), __all__, besides=("placeholder",))
