"""Sparse rows: an array that is zero except in some rows, such as the gradient of a row lookup.

It is a container of two values, the indices of the rows and the rows, that knows the shape of the whole. So captured
functions can take and return it, and it may hold traced values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import plain
from undertow.frontend.functions import reduction as reduce
from undertow.frontend.functions.creation import zeros
from undertow.frontend.values import tree
from undertow.frontend.values.operands import as_operand, convert, dims, integers, is_static_int, type_of
from undertow.frontend.values.traced import Traced
from undertow.frontend.values.tree import Token
from undertow.tracebacks import guarded
from undertow.types import DType, Type, dtype_of, i64, show_shape

_BEFORE = np.full(1, np.iinfo(np.int64).min)  # sorts before the index of any row


@guarded
@dataclass(frozen=True, eq=False, repr=False, slots=True)
class IndexedRows:
    """An array that is zero except in some rows: `rows[k]` belongs to row `indices[k]`; repeated ones add up.

    `rows` has the axes of `indices`, then those of a row. Negative indices count from the end.

    >>> some = IndexedRows([0, 2, 2], [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]], shape=(3, 2))
    >>> some
    <IndexedRows f64[3,2]: rows [0 2 2]>
    >>> some.dense()
    array([[1., 1.],
           [0., 0.],
           [5., 5.]])
    >>> np.ones((3, 2)) - some * 10
    array([[ -9.,  -9.],
           [  1.,   1.],
           [-49., -49.]])
    """

    indices: Any
    rows: Any
    shape: Any  # of the whole: integers, and traced i64 scalars where known only at run time

    def __post_init__(self) -> None:
        shape = _checked_shape(self.shape)
        indices = integers(self.indices, "the indices of IndexedRows")
        rows = as_operand(self.rows)
        wanted = (*type_of(indices).shape, *_static(shape[1:]))
        type_ = type_of(rows)
        if type_.dtype.kind == "bool":
            raise TypeMismatch(
                "the rows of IndexedRows must be numbers, not bool", hint="convert them with ut.astype(rows, ut.f64)"
            )
        if len(wanted) != type_.rank or any(
            a != b and a is not None and b is not None for a, b in zip(wanted, type_.shape, strict=True)
        ):
            raise TypeMismatch(
                f"rows {type_} at indices {type_of(indices)} do not fit the shape {show_shape(_static(shape))}",
                hint=f"the rows must have the shape {show_shape(wanted)}: the axes of the indices, then those of a row",
            )
        arrays.check_static_indices(indices, shape[0], 0)
        _set(self, indices, rows, shape)

    # -- what it is ----------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self.type.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the whole array."""
        return len(self.shape)

    @property
    def type(self) -> Type:
        """The type of the whole array."""
        return Type(type_of(self.rows).dtype, _static(self.shape))

    def __repr__(self) -> str:
        if isinstance(self.indices, Traced):
            return f"<IndexedRows {self.type}: rows {self.indices!r}>"
        return f"<IndexedRows {self.type}: rows {np.array2string(np.asarray(self.indices), threshold=20)}>"

    # -- as a container (see tree) -------------------------------------------------------------------------

    def __undertow_parts__(self) -> tuple[Token, list[Any]]:
        known = _static(self.shape)
        return token_of(known), [self.indices, self.rows, *(d for d in self.shape if not isinstance(d, int))]

    @classmethod
    def __undertow_whole__(cls, known: tuple[int | None, ...], parts: Sequence[Any]) -> IndexedRows:
        sparse = object.__new__(cls)
        shape: tuple[Any, ...] = known
        if len(parts) > 2:
            sizes = iter(parts[2:])
            dimensions = [next(sizes) if d is None else d for d in known]
            shape = tuple(int(d) if isinstance(d, np.generic) else d for d in dimensions)
        _set(sparse, parts[0], parts[1], shape)
        return sparse

    @staticmethod
    def __undertow_token__(known: Sequence[Any]) -> Token:
        """The token that a file describes; a ValueError if there can be none."""
        if not known or not all(d is None or (type(d) is int and d >= 0) for d in known):
            raise ValueError(known)
        return token_of(tuple(known))

    # -- as an array ---------------------------------------------------------------------------------------

    def dense(self) -> Any:
        """The whole array, zeros included."""
        return arrays.scatter_add(zeros(self.shape, dtype=self.dtype), self.indices, self.rows)

    __undertow_read__ = dense  # what functions of ut compute with

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.dense(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        left, *right = inputs
        name = f"{'' if isinstance(left, IndexedRows) else 'r'}{_OPERATORS.get(ufunc, '?')}"
        operator = getattr(left if isinstance(left, IndexedRows) else self, f"__{name}__", None)
        if operator is not None and method == "__call__" and not kwargs:
            return operator(*(right if isinstance(left, IndexedRows) else [left]))
        whole = [x.dense() if isinstance(x, IndexedRows) else x for x in inputs]
        return getattr(ufunc, method)(*whole, **kwargs)

    def astype(self, dtype: Any) -> IndexedRows:
        """The same rows in another dtype."""
        return self._with(self.indices, convert(self.rows, dtype_of(dtype)))

    def coalesce(self) -> IndexedRows:
        """The same array with each row once: indices sorted in a vector, counting from 0; repeated rows summed.

        How many are left is known only at run time, if the indices are.
        """
        count, indices, rows = _flat(self)
        indices, length = convert(indices, i64), self.shape[0]
        # An index out of range is left unchanged, for the error that will name it.
        is_from_end = plain.logical_and(plain.less(indices, 0), plain.greater_equal(indices, plain.negative(length)))
        numbers = plain.where(is_from_end, plain.add(indices, length), indices)
        if isinstance(count, int) and count <= 1:
            return self._with(numbers, rows)
        order = plain.argsort(numbers)
        ordered = arrays.take(numbers, order)
        after = arrays.concat([_BEFORE, ordered])
        is_new = convert(plain.not_equal(ordered, after[:count]), i64)
        which = plain.subtract(reduce.cumulative_sum(is_new), 1)  # the place of each among the distinct indices
        left = reduce.sum(is_new)
        first = plain.multiply(ordered, is_new)
        distinct = arrays.scatter_add(zeros((count,), dtype=i64), which, first)
        sums = arrays.scatter_add(
            zeros((count, *self.shape[1:]), dtype=self.dtype), which, arrays.take(rows, order, axis=0)
        )
        return self._with(arrays.slice_between(distinct, 0, left), arrays.slice_between(sums, 0, left))

    def _with(self, indices: Any, rows: Any) -> IndexedRows:
        return self.__undertow_whole__((None,) * len(self.shape), [indices, rows, *self.shape])

    # -- arithmetic ----------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, IndexedRows):
            value = as_operand(other)
            if type_of(value).shape == self.type.shape:
                return arrays.scatter_add(value, self.indices, self.rows)
            return plain.add(self.dense(), value)
        if self.type.shape != other.type.shape:
            raise TypeMismatch(
                f"IndexedRows of shapes {show_shape(self.type.shape)} and {show_shape(other.type.shape)} do not add",
                hint="the shapes are those of the whole arrays, and must be equal",
            )
        (_, mine, my_rows), (_, its, its_rows) = _flat(self), _flat(other)
        return self._with(arrays.concat([mine, its]), arrays.concat([my_rows, its_rows]))

    __radd__ = __add__

    def __neg__(self) -> IndexedRows:
        return self._with(self.indices, plain.negative(self.rows))

    def __sub__(self, other: Any) -> Any:
        return self + (-other if isinstance(other, IndexedRows) else plain.negative(other))

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> IndexedRows:
        return self._with(self.indices, plain.multiply(self.rows, _scalar(other, "multiplied")))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> IndexedRows:
        return self._with(self.indices, plain.divide(self.rows, _scalar(other, "divided")))


_OPERATORS = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv", np.negative: "neg"}


def token_of(known: tuple[int | None, ...]) -> Token:
    """The token of sparse rows in structures; `known` is the shape of the whole, None where a size is a leaf."""
    names = ("indices", "rows", *(f"shape[{axis}]" for axis, size in enumerate(known) if size is None))
    return "object", len(names), IndexedRows, names, known


def all_dense(value: Any) -> Any:
    """A value with whole arrays in place of the sparse rows that it holds.

    Lanes give whole arrays: the number of rows differs from lane to lane, and the rows of several arrays are not the
    sparse rows of one.
    """
    leaves, structure = tree.flatten(value, lambda v: isinstance(v, (Traced, IndexedRows)))
    return tree.unflatten(structure, [x.dense() if isinstance(x, IndexedRows) else x for x in leaves])


def _set(sparse: IndexedRows, indices: Any, rows: Any, shape: Any) -> None:
    put = object.__setattr__
    put(sparse, "indices", indices)
    put(sparse, "rows", rows)
    put(sparse, "shape", shape)


def _static(shape: Sequence[Any]) -> tuple[int | None, ...]:
    return tuple(d if isinstance(d, int) else None for d in shape)


def _checked_shape(shape: Any) -> tuple[Any, ...]:
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    static_sizes = tuple(int(d) if is_static_int(d) else d for d in sizes)
    for size in static_sizes:
        is_size = size >= 0 if isinstance(size, int) else isinstance(size, Traced) and size.type == Type(i64)
        if not is_size:
            raise TypeMismatch(
                f"{size!r} cannot be a size in the shape of IndexedRows", hint="the shape is that of the whole array"
            )
    if not static_sizes:
        raise TypeMismatch(
            "IndexedRows cannot have the shape []", hint="the shape is that of the whole array, which must have rows"
        )
    return static_sizes


def _flat(sparse: IndexedRows) -> tuple[Any, Any, Any]:
    """The number of rows, their indices as a vector, and the rows along one axis."""
    lengths = dims(sparse.indices)
    if len(lengths) == 1:
        return lengths[0], sparse.indices, sparse.rows
    count = 1
    for size in lengths:
        count = count * size
    return count, arrays.reshape(sparse.indices, (count,)), arrays.reshape(sparse.rows, (count, *sparse.shape[1:]))


def _scalar(value: Any, done: str) -> Any:
    found = value if isinstance(value, (bool, int, float)) else as_operand(value)
    if not isinstance(found, (bool, int, float)) and type_of(found).rank:
        raise TypeMismatch(
            f"IndexedRows cannot be {done} by {type_of(found)}",
            hint="only scalars keep them sparse; .dense() gives the whole array",
        )
    return found
