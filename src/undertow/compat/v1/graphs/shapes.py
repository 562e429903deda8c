"""`tf.TensorShape` and `tf.Dimension`: what is known of a shape before a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np

from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch, brief

__all__ = ["Dimension", "TensorShape"]


class Dimension(int):
    """A dimension that is known: a number, which has itself as `value`."""

    __slots__ = ()

    def __new__(cls, value: Any) -> Any:
        return _AnyDimension() if getattr(value, "value", value) is None else super().__new__(cls, int(value))

    @property
    def value(self) -> int:
        """The number."""
        return int(self)

    def is_compatible_with(self, other: Any) -> bool:
        """May both be the same?"""
        other = getattr(other, "value", other)
        return other is None or int(other) == int(self)


class _AnyDimension:
    """A dimension that is known only at run time: its `value` is None."""

    __slots__ = ()
    value = None

    def is_compatible_with(self, other: Any) -> bool:
        """Everything is."""
        return True

    def __eq__(self, other: object) -> bool:
        return other is None or isinstance(other, _AnyDimension)

    def __hash__(self) -> int:
        return hash(None)

    def __repr__(self) -> str:
        return "Dimension(None)"


class TensorShape(tuple[int | None, ...]):
    """The dimensions of a tensor as known before a run; None where unknown. `TensorShape(None)`: not even how many."""

    __slots__ = ()

    def __new__(cls, dims: Any) -> TensorShape:
        if dims is None or isinstance(dims, _AnyShape):
            return tuple.__new__(_AnyShape)
        if not isinstance(dims, (list, tuple)):
            dims = [dims]
        return tuple.__new__(cls, [_plain(dim) for dim in dims])

    def as_list(self) -> list[int | None]:
        """The dimensions as a list."""
        return list(self)

    @property
    def dims(self) -> list[Any] | None:
        """The dimensions, each with its `value`."""
        return [Dimension(dim) for dim in self]

    @property
    def ndims(self) -> int | None:
        """The number of dimensions; None if it is unknown."""
        return len(self)

    rank = ndims

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else Dimension(found)

    def is_fully_defined(self) -> bool:
        """Is every dimension known?"""
        return None not in tuple(self)

    def num_elements(self) -> int | None:
        """The number of elements, if it is known."""
        return None if None in tuple(self) else int(np.prod([d for d in self if d is not None], dtype=np.int64))

    def is_compatible_with(self, other: Any) -> bool:
        """May both be the shape of one tensor?"""
        other = TensorShape(other)
        if self.ndims is None or other.ndims is None:
            return True
        return len(self) == len(other) and all(
            a is None or b is None or a == b for a, b in zip(self, other, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise an error if they cannot be."""
        if not self.is_compatible_with(other):
            raise TypeMismatch(
                f"Shapes {self!r} and {TensorShape(other)!r} are incompatible: one is not compatible with the other",
                here(),
                hint="reshape one of them",
            )

    def assert_has_rank(self, rank: int) -> None:
        """Raise an error if it has another number of dimensions."""
        if self.ndims not in (None, rank):
            raise TypeMismatch(f"Shape {self!r} must have rank {rank}", here(), hint="reshape the tensor")

    def assert_is_fully_defined(self) -> None:
        """Raise an error if some dimension is unknown."""
        if not self.is_fully_defined():
            raise TypeMismatch(f"Shape {self!r} is not fully defined", here(), hint="give the placeholder a shape")

    def with_rank(self, rank: int) -> TensorShape:
        """The same, of this number of dimensions."""
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self.ndims is None else self

    def merge_with(self, other: Any) -> TensorShape:
        """What is known of either."""
        other = TensorShape(other)
        self.assert_is_compatible_with(other)
        if self.ndims is None or other.ndims is None:
            return other if self.ndims is None else self
        return TensorShape([b if a is None else a for a, b in zip(self, other, strict=True)])

    def concatenate(self, other: Any) -> TensorShape:
        """The dimensions of one, then those of the other."""
        other = TensorShape(other)
        return TensorShape(None) if None in (self.ndims, other.ndims) else TensorShape([*self, *other])

    def __repr__(self) -> str:
        return f"TensorShape([{', '.join(map(str, self))}])"


class _AnyShape(TensorShape):
    """A shape of which nothing is known."""

    __slots__ = ()

    @property
    def dims(self) -> None:
        return None

    @property
    def ndims(self) -> None:
        return None

    rank = ndims

    def is_fully_defined(self) -> bool:
        return False

    def num_elements(self) -> None:
        return None

    def _refuse(self) -> TypeMismatch:
        return TypeMismatch(
            "nothing is known of this shape before a run, not even the number of dimensions",
            here(),
            hint="give the placeholder a shape: tf.placeholder(tf.float32, [None, 3])",
        )

    def as_list(self) -> list[int | None]:
        raise self._refuse()

    def __iter__(self) -> Iterator[int | None]:
        raise self._refuse()

    def __len__(self) -> int:
        raise self._refuse()

    def __bool__(self) -> bool:
        return False

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        return TensorShape(None) if isinstance(key, slice) else Dimension(None)

    def __repr__(self) -> str:
        return "TensorShape(None)"


def _plain(dim: Any) -> int | None:
    value = getattr(dim, "value", dim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeMismatch(f"{brief(dim)} is not a dimension", here(), hint="write None where it is unknown")
    return None if value < 0 else int(value)


def unknown_shape(ndims: int | None = None) -> TensorShape:
    """A shape of which only the number of dimensions is known, or not even that."""
    return TensorShape(None if ndims is None else [None] * ndims)


def dims_of(shape: Any) -> tuple[int | None, ...] | None:
    """A shape as the user gives it; None if nothing is known of it."""
    known = TensorShape(shape)
    return None if known.ndims is None else tuple(known)
