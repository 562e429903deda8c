"""NumPy's Fourier transforms, made of one operator: complex to complex along an axis, without a factor.

Transforms of real numbers are those of complex ones without the half that is the mirror image of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, parts, plain
from undertow.frontend.values.operands import (
    as_operand,
    convert,
    dim,
    dims,
    floats,
    integers,
    is_static_int,
    one_axis,
    promote_complex,
    type_of,
)
from undertow.frontend.values.traced import effect, emit

_NORMS = (None, "backward", "ortho", "forward")


def transform(name: str, is_inverse: bool) -> Callable[[Any, Any, Any, Any], Any]:
    """np.fft.fft or np.fft.ifft."""

    def run(a: Any, n: Any, axis: Any, norm: Any) -> Any:
        value = promote_complex(a)
        at = one_axis(axis, type_of(value).rank, name)
        return _scaled(name, _along(_fitted(value, n, at), at, is_inverse), at, is_inverse, norm)

    return run


def of_real(a: Any, n: Any, axis: Any, norm: Any) -> Any:
    """np.fft.rfft: the first half of the transform, the middle included."""
    parts.refuse_complex("np.fft.rfft", a, instead="use np.fft.fft, or take x.real")
    value = floats(a)[0]
    at = one_axis(axis, type_of(value).rank, "np.fft.rfft")
    fitted = _fitted(value, n, at)
    whole = _scaled("np.fft.rfft", _along(promote_complex(fitted), at, False), at, False, norm)
    return arrays.slice_between(whole, 0, _half(dim(fitted, at)), axis=at)


def to_real(a: Any, n: Any, axis: Any, norm: Any) -> Any:
    """np.fft.irfft: of the first half; the second is its mirror image, conjugated."""
    value = promote_complex(a)
    at = one_axis(axis, type_of(value).rank, "np.fft.irfft")
    length = 2 * (dim(value, at) - 1) if n is None else n
    half = _fitted(value, _half(length), at)
    mirrored = arrays.flip(arrays.slice_between(half, 1, length - (_half(length) - 1), axis=at), axis=at)
    whole = _along(arrays.concat([half, parts.conj(mirrored)], axis=at), at, True)
    return _scaled("np.fft.irfft", parts.real(whole), at, True, norm)


def _half(length: Any) -> Any:
    return length // 2 + 1


def _along(value: Any, axis: int, is_inverse: bool) -> Any:
    return emit("fft", [value], axis=axis, inverse=is_inverse)[0]


def _scaled(name: str, value: Any, axis: int, is_inverse: bool, norm: Any) -> Any:
    """Divided by the length, by its root, or not at all."""
    if norm not in _NORMS:
        raise TypeMismatch(f"{name} with norm={brief(norm)}", hint='norm is "backward", "ortho" or "forward"')
    if norm != "ortho" and (norm == "forward") == is_inverse:
        return value
    length = dim(value, axis)
    if is_static_int(length):
        return plain.multiply(value, 1 / (length**0.5 if norm == "ortho" else length))
    size = convert(as_operand(length), type_of(value).dtype.real)
    return plain.divide(value, plain.sqrt(size) if norm == "ortho" else size)


def _fitted(value: Any, n: Any, axis: int) -> Any:
    """The first n elements along an axis; zeros follow where it has fewer."""
    if n is None:
        return value
    length = dim(value, axis)
    if is_static_int(n) and n < 1:
        raise TypeMismatch(f"a Fourier transform of {n} elements", hint="n must be at least 1")
    size = n if is_static_int(n) else integers(n, "the length of a Fourier transform")
    if is_static_int(size) and is_static_int(length):
        if size == length:
            return value
        lacking: Any = max(size - length, 0)
    else:
        lacking = plain.maximum(plain.subtract(size, length), 0)
    kept = arrays.slice_between(value, 0, size, axis=axis)
    if is_static_int(lacking) and lacking == 0:
        return kept
    shape = [lacking if k == axis else d for k, d in enumerate(dims(value))]
    return arrays.concat([kept, creation.zeros(shape, dtype=type_of(value).dtype)], axis=axis)


# -- along several axes ------------------------------------------------------------------------------------


def _steps(name: str, a: Any, s: Any, axes: Any) -> list[tuple[int, Any]]:
    """Each axis with its length, in NumPy's order of transforms: from the last one on."""
    rank = type_of(as_operand(a)).rank
    if axes is None:
        count = rank if s is None else len(s)
        axes = range(rank - count, rank)
    lengths: Sequence[Any] = [None] * len(axes) if s is None else list(s)
    if len(lengths) != len(axes):
        raise TypeMismatch(f"{name} of {len(axes)} axes with {len(lengths)} lengths", hint="s has a length for each")
    return [(one_axis(axis, rank, name), n) for axis, n in reversed(list(zip(axes, lengths, strict=True)))]


def several(name: str, first: Callable[..., Any], others: Callable[..., Any], is_last_first: bool = True) -> Any:
    """A transform along several axes: `first` along the last of them, which comes first, or last of all."""

    def run(a: Any, s: Any, axes: Any, norm: Any) -> Any:
        value = a
        steps = _steps(name, a, s, axes)
        ordered = [(first, step) for step in steps[:1]] + [(others, step) for step in steps[1:]]
        for compute, (axis, n) in ordered if is_last_first else [*ordered[1:], *ordered[:1]]:
            value = compute(value, n, axis, norm)
        return value

    return run


# -- frequencies -------------------------------------------------------------------------------------------


def frequencies(n: Any, d: Any) -> Any:
    """np.fft.fftfreq: 0, 1, ... and then the negative ones, over n * d."""
    whole = _whole(n, d)
    _require(plain.greater_equal(n, 0), "negative dimensions are not allowed", "ValueError")
    k = creation.arange(n)
    is_low = plain.less(k, plain.floor_divide(plain.add(n, 1), 2))
    return plain.divide(plain.where(is_low, k, plain.subtract(k, n)), whole)


def _whole(n: Any, d: Any) -> Any:
    """The product n * d, by which all is divided."""
    whole = plain.multiply(n, elementwise.astype(d, float))
    _require(plain.not_equal(whole, 0), "float division by zero", "ZeroDivisionError")
    return whole


def _require(condition: Any, message: str, error: str) -> None:
    effect("raise", [as_operand(condition)], template=message, error=error)


def frequencies_of_real(n: Any, d: Any) -> Any:
    whole = _whole(n, d)
    return plain.divide(creation.arange(_half(n)), whole)


def shifted(way: int) -> Callable[[Any, Any], Any]:
    """np.fft.fftshift (1) and its inverse (-1): the zero frequency moves to the middle, or back."""

    def shift(x: Any, axes: Any) -> Any:
        value = as_operand(x)
        rank = type_of(value).rank
        chosen = range(rank) if axes is None else axes if isinstance(axes, (tuple, list)) else (axes,)
        for axis in chosen:
            at = one_axis(axis, rank, "np.fft.fftshift")
            length = dim(value, at)
            value = arrays.roll(value, length // 2 if way > 0 else -(length // 2), axis=at)
        return value

    return shift


_FORWARD, _BACKWARD = transform("np.fft.fft", False), transform("np.fft.ifft", True)
_ONE, _TWO, _MANY = (
    "a n=None axis=-1 norm=None !out",
    "a s=None axes=(-2,-1) norm=None !out",
    ("a s=None axes=None norm=None !out"),
)
FOURIER: dict[str, tuple[str, Callable[..., Any]]] = {
    "fft.fft": (_ONE, _FORWARD), "fft.ifft": (_ONE, _BACKWARD), "fft.rfft": (_ONE, of_real),
    "fft.irfft": (_ONE, to_real),
    "fft.fft2": (_TWO, several("np.fft.fft2", _FORWARD, _FORWARD)),
    "fft.ifft2": (_TWO, several("np.fft.ifft2", _BACKWARD, _BACKWARD)),
    "fft.rfft2": (_TWO, several("np.fft.rfft2", of_real, _FORWARD)),
    "fft.irfft2": (_TWO, several("np.fft.irfft2", to_real, _BACKWARD, False)),
    "fft.fftn": (_MANY, several("np.fft.fftn", _FORWARD, _FORWARD)),
    "fft.ifftn": (_MANY, several("np.fft.ifftn", _BACKWARD, _BACKWARD)),
    "fft.rfftn": (_MANY, several("np.fft.rfftn", of_real, _FORWARD)),
    "fft.irfftn": (_MANY, several("np.fft.irfftn", to_real, _BACKWARD, False)),
    "fft.fftfreq": ("n d=1.0 !device", frequencies), "fft.rfftfreq": ("n d=1.0 !device", frequencies_of_real),
    "fft.fftshift": ("x axes=None", shifted(1)), "fft.ifftshift": ("x axes=None", shifted(-1)),
}  # fmt: skip
