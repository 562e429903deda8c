"""Types of values: a dtype and a shape, and how dtypes promote.

>>> f32[3, None]
f32[3,?]
>>> promote(i32, f32)
f32
>>> broadcast((3, 1), (None,))
(3, None)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, NoReturn, TypeGuard

import numpy as np
import numpy.typing as npt

from undertow.errors import TypeMismatch, brief

INEXACT = ("float", "complex")  # kinds of dtypes

Array = np.ndarray  # the public name of arrays; `Annotated[ut.Array, ut.f32["n"]]` says of which type
Dim = int | str | None
Shape = tuple[Dim, ...]


class _Annotation:
    """What stands in annotations. `typing` of Python 3.10 takes there only what can be called."""

    __slots__ = ()

    if sys.version_info < (3, 11):

        def __call__(self, *_: object) -> NoReturn:
            raise TypeMismatch(
                f"`{self}` is a type, and no function", hint="write ut.astype(x, ut.f32), or np.float32(x)"
            )


@dataclass(frozen=True, slots=True)
class DType(_Annotation):
    """An element type. Indexing makes a type: `f32[3, None]`, `f32["n"]`; alone it means a scalar."""

    name: str
    kind: str  # one of "bool", "int", "float", "complex", "ctl"
    size: int  # bytes

    # Without these, Python would take `__getitem__` for a sequence that never ends.
    __iter__ = None
    __contains__ = None

    def __getitem__(self, shape: Dim | tuple[Dim, ...]) -> Type:
        dims = shape if isinstance(shape, tuple) else (shape,)
        for dim in dims:
            if not (dim is None or isinstance(dim, str) or (is_integer(dim) and dim >= 0)):
                raise TypeMismatch(
                    f"{brief(dim)} is not a dimension",
                    hint=f"write ut.{self.name}[3], ut.{self.name}[None] (known only at run time) "
                    f"or ut.{self.name}['n'] (named)",
                )
        return Type(self, tuple(int(d) if isinstance(d, np.integer) else d for d in dims))

    def __or__(self, other: object) -> OrNone:
        return _or_none(self, other)

    def __ror__(self, other: object) -> OrNone:
        return _or_none(self, other)

    @property
    def is_inexact(self) -> bool:
        """Is it float or complex? Of such values there are derivatives, and sums of them."""
        return self.kind in INEXACT

    @property
    def real(self) -> DType:
        """The dtype of the parts of complex numbers; that of others is their own."""
        return {"c64": f32, "c128": f64}.get(self.name, self)

    @property
    def numpy(self) -> np.dtype[np.generic]:
        """The NumPy dtype that holds such elements."""
        return _NUMPY[self.name]

    dtype = numpy  # NumPy takes an object with this attribute for a dtype

    def __reduce__(self) -> str:
        return {"bool": "bool_"}.get(self.name, self.name)  # the one of this module

    def __repr__(self) -> str:
        return self.name


bool_ = DType("bool", "bool", 1)
i32 = DType("i32", "int", 4)
i64 = DType("i64", "int", 8)
f32 = DType("f32", "float", 4)
f64 = DType("f64", "float", 8)
c64 = DType("c64", "complex", 8)
c128 = DType("c128", "complex", 16)
# Carries order only: start tokens, pivots, effect tokens. Never promoted, never fed to arithmetic.
ctl = DType("ctl", "ctl", 0)

_DATA = (bool_, i32, i64, f32, f64, c64, c128)
DTYPES: dict[str, DType] = {d.name: d for d in (*_DATA, ctl)}
_NUMPY: dict[str, np.dtype[np.generic]] = {
    "bool": np.dtype(np.bool_),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "c64": np.dtype(np.complex64),
    "c128": np.dtype(np.complex128),
    "ctl": np.dtype(np.bool_),
}
_FROM_NUMPY: dict[np.dtype[np.generic], DType] = {d.numpy: d for d in _DATA}


@dataclass(frozen=True, slots=True)
class Type(_Annotation):
    """A dtype and a shape. A dimension is a number, or None: known only at run time.

    In annotations a dimension may also be a name; graphs hold `erased()` types.
    """

    dtype: DType
    shape: Shape = ()

    def __or__(self, other: object) -> OrNone:
        return _or_none(self, other)

    def __ror__(self, other: object) -> OrNone:
        return _or_none(self, other)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_static(self) -> bool:
        """Is every dimension a number?"""
        return all(isinstance(d, int) for d in self.shape)

    def erased(self) -> Type:
        """The same type without dimension names."""
        return Type(self.dtype, tuple(None if isinstance(d, str) else d for d in self.shape))

    def with_dtype(self, dtype: DType) -> Type:
        return Type(dtype, self.shape)

    def with_shape(self, shape: Shape) -> Type:
        return Type(self.dtype, shape)

    def accepts(self, other: Type) -> bool:
        """Is a value of type `other` accepted where this type is declared? (Run-time dimensions match all.)"""
        return (
            self.dtype == other.dtype
            and len(self.shape) == len(other.shape)
            and all(not isinstance(a, int) or a == b for a, b in zip(self.shape, other.shape, strict=True))
        )

    def __repr__(self) -> str:
        if not self.shape:
            return self.dtype.name
        return f"{self.dtype.name}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


@dataclass(frozen=True, slots=True)
class OrNone(_Annotation):
    """The annotation `ut.i64 | None`: a value of a type, or None."""

    type: DType | Type

    def __or__(self, other: object) -> OrNone:
        return self if _is_none(other) else _or_none(self, other)

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"{self.type} | None"


def _is_none(note: object) -> bool:
    return note is None or note is type(None)


def _or_none(one: DType | Type | OrNone, other: object) -> OrNone:
    if _is_none(other) and not isinstance(one, OrNone):
        return OrNone(one)
    raise TypeMismatch(
        f"{brief(one)} | {brief(other)}: an annotation is one type, or one and None",
        hint="leave the annotation out: None, numbers and arrays of each type are captured by themselves",
    )


CTL = Type(ctl)


def as_type(spec: DType | Type) -> Type:
    """`f32` as an annotation means a scalar."""
    return Type(spec) if isinstance(spec, DType) else spec


def dtype_of(spec: object) -> DType:
    """The dtype for a user's spec: one of ours, a NumPy dtype, a Python type or a string.

    >>> dtype_of(np.float32), dtype_of("int64"), dtype_of(bool)
    (f32, i64, bool)
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str) and spec in DTYPES:
        return DTYPES[spec]
    try:
        found = np.dtype(spec)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        found = None
    if found in _FROM_NUMPY:
        return _FROM_NUMPY[found]
    known = "ut.bool, ut.i32, ut.i64, ut.f32, ut.f64, ut.c64 or ut.c128"
    raise TypeMismatch(f"unknown dtype {brief(spec)}", hint=f"use {known}")


def type_of(value: npt.NDArray[np.generic] | np.generic) -> Type:
    """The type of a NumPy value."""
    return Type(dtype_of(value.dtype), tuple(int(n) for n in value.shape))


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Is it an integer of Python's or NumPy's? (np.timedelta64 is one of NumPy's classes of integers.)"""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


_RANK = {"bool": 0, "i32": 1, "i64": 2, "f32": 3, "f64": 4, "c64": 5, "c128": 6}
_KINDS = ("bool", "int", "float", "complex")


def promote(a: DType, b: DType) -> DType:
    """NumPy 2 promotion, except that an integer with a float gives the float's dtype, with a complex number its.

    >>> promote(f64, c64), promote(f32, c64), promote(i64, c64)
    (c128, c64, c64)
    """
    if "ctl" in (a.kind, b.kind):
        raise TypeMismatch("an order token cannot be an operand")
    if {a, b} == {f64, c64}:
        return c128
    return a if _RANK[a.name] >= _RANK[b.name] else b


def weak_dtype(value: bool | int | float | complex, other: DType | None = None) -> DType:
    """The dtype that a Python number takes beside `other`, or alone.

    >>> weak_dtype(2, f32), weak_dtype(2.5, i32), weak_dtype(2), weak_dtype(True, i32), weak_dtype(1j, f32)
    (f32, f64, i64, i32, c64)
    """
    if isinstance(value, (bool, np.bool_)):
        return weak_kind("bool", other)
    return weak_kind("int" if isinstance(value, int) else "complex" if isinstance(value, complex) else "float", other)


def weak_kind(kind: str, other: DType | None = None) -> DType:
    """The dtype that a weak number of some kind takes beside `other`, or alone."""
    if other is not None and _KINDS.index(kind) <= _KINDS.index(other.kind):
        return other
    if kind == "complex" and other is f32:
        return c64
    return {"bool": bool_, "int": i64, "float": f64, "complex": c128}[kind]


def broadcast(a: Shape, b: Shape) -> Shape:
    """The shape of an element-wise result. A run-time dimension beside n > 1 is taken to be n or 1."""
    rank = max(len(a), len(b))
    out: list[Dim] = []
    for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True):
        if x == y or y == 1:
            out.append(x)
        elif x == 1:
            out.append(y)
        elif x is None or y is None:
            out.append(y if x is None else x)
        else:
            raise TypeMismatch(
                f"shapes {show_shape(a)} and {show_shape(b)} do not broadcast",
                hint="dimensions must be equal, or one of them 1; `ut.expand_dims` or `x[:, None]` adds one",
            )
    return tuple(out)


def join(a: Type, b: Type) -> Type | None:
    """The type that holds values of both: unequal dimensions become run-time ones. None if there is none."""
    if a.dtype != b.dtype or len(a.shape) != len(b.shape):
        return None
    return Type(a.dtype, tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)))


def said(spec: DType | Type) -> str:
    """A type with its article, for messages.

    >>> said(f32[3]), said(bool_)
    ('an f32[3]', 'a bool')
    """
    return f"{'a' if str(spec).startswith(('bool', 'c')) else 'an'} {spec}"


def show_shape(shape: Shape) -> str:
    return "[" + ", ".join("?" if d is None else str(d) for d in shape) + "]"
