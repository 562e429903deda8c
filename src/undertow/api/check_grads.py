"""`ut.check_grads`: compares derivatives with central differences, and the two modes with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.api.grad import vjp
from undertow.api.jvp import jvp
from undertow.api.options import repeating, settings
from undertow.errors import GradientMismatch, UndertowError, brief
from undertow.frontend.values import tree
from undertow.tracebacks import boundary

Floats = npt.NDArray[np.inexact[Any]]
MODES = ("fwd", "rev")
# For each dtype: the step of differences, and their tolerance. The step balances rounding and curvature.
_STEPS = {"float64": (1e-5, 1e-6), "float32": (1e-2, 1e-2)}


@boundary
def check_grads(
    f: Any,
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = MODES,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
) -> None:
    """Raise `ut.GradientMismatch` unless the derivatives of a function are correct at these arguments.

    Along a random direction for each argument, "fwd" compares `ut.jvp` with central differences, and "rev" compares
    `ut.vjp` with `ut.jvp`. With `order=2` it does the same with the derivative along the direction, and so on. Steps
    and tolerances default to values that fit the dtypes. If the function draws random numbers, check only "fwd":
    the two modes draw different ones.
    """
    if isinstance(modes, str) or not modes or not set(modes) <= set(MODES):
        raise UndertowError(
            f"modes must contain 'fwd', 'rev' or both, not {brief(modes)}", hint='write modes=("fwd", "rev")'
        )
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise UndertowError(f"order must be a positive integer, not {brief(order)}", hint="write order=1, or 2")
    if not isinstance(args, (tuple, list)):
        hint = "write ut.check_grads(f, (x, y))"
        raise UndertowError(f"ut.check_grads takes the arguments as a tuple, not {brief(args)}", hint=hint)
    if not _floats(tuple(args)):
        hint = "pass floats, as in 3.0; the value of a variable is v.read()"
        raise UndertowError("none of the arguments is a float, so there is no derivative to check", hint=hint)
    random = np.random.default_rng(0)
    seed = settings().limits.seed
    with repeating(0 if seed is None else seed):  # random draws are the same in every run
        is_single = any(leaf.real.dtype == np.float32 for leaf in _floats(tuple(args)))
        step, tolerance = _STEPS["float32" if is_single else "float64"]
        eps, atol, rtol = (b if a is None else a for a, b in ((eps, step), (atol, tolerance), (rtol, tolerance)))
        _check(_Checked(f, tuple(args), random, eps, atol, rtol), tuple(modes), order)


@dataclass(frozen=True, eq=False)
class _Checked:
    """A function at a point: values, differences and derivatives along directions."""

    f: Any
    args: tuple[Any, ...]
    random: np.random.Generator
    eps: float  # the step of differences
    atol: float
    rtol: float

    def direction(self, number: int) -> Any:
        """A random direction for one argument; None if it holds no floats."""
        leaves, structure = tree.flatten(self.args[number])
        made = [self._random(leaf) for leaf in leaves]
        return None if all(leaf is None for leaf in made) else tree.unflatten(structure, made)

    def _random(self, leaf: Any) -> Any:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fc":
            return None
        made: Any = self.random.standard_normal(array.shape)
        if array.dtype.kind == "c":
            made = made + 1j * self.random.standard_normal(array.shape)
        return np.asarray(made, array.dtype)[()]

    def alone(self, number: int, direction: Any) -> tuple[Any, ...]:
        """A direction that changes one argument only."""
        return tuple(direction if at == number else None for at in range(len(self.args)))

    def difference(self, number: int, direction: Any) -> list[Floats]:
        """The central difference of the float results along a direction, in double precision."""
        # A jvp along zero is a plain call, with the same random draws as the jvp that it is compared with.
        still = (None,) * len(self.args)
        ends = [_floats(jvp(self.f, self._moved(number, direction, sign), still)[0]) for sign in (1, -1)]
        return [(_wide(a) - _wide(b)) / (2 * self.eps) for a, b in zip(*ends, strict=True)]

    def _moved(self, number: int, direction: Any, sign: int) -> tuple[Any, ...]:
        leaves, structure = tree.flatten(self.args[number])
        steps, _ = tree.flatten(direction, lambda v: v is None)
        moved = [
            x if d is None else (_wide(np.asarray(x)) + sign * self.eps * d).astype(np.asarray(x).dtype)[()]
            for x, d in zip(leaves, steps, strict=True)
        ]
        args = list(self.args)
        args[number] = tree.unflatten(structure, moved)
        return tuple(args)

    def compare(self, number: int, actual: Sequence[Floats], wanted: Sequence[Floats], what: str, other: str) -> None:
        """Raise an error if two derivatives differ."""
        for at, (a, b) in enumerate(zip(actual, wanted, strict=True)):
            if not np.allclose(a, b, rtol=self.rtol, atol=self.atol, equal_nan=True):
                worst = np.unravel_index(np.argmax(np.abs(a - b)), np.shape(a)) if np.ndim(a) else ()
                result = f"result {at} " if len(actual) > 1 else "the result "
                place = f"at {list(map(int, worst))} " if worst else ""
                raise GradientMismatch(
                    f"the derivative of {result}{place}along argument {number} is {a[worst]:.9g} by {what}, "
                    f"but {b[worst]:.9g} by {other}",
                    hint="a rule is wrong if the function is smooth there; if not, choose other arguments, "
                    "or set eps=, atol= and rtol=",
                )


def _check(checked: _Checked, modes: Sequence[str], order: int) -> None:
    for number in range(len(checked.args)):
        direction = checked.direction(number)
        if direction is None:
            continue
        along = checked.alone(number, direction)
        value, tangent = jvp(checked.f, checked.args, along)
        pushed = [b for a, b in zip(*map(_arrays, (value, tangent)), strict=True) if a.dtype.kind in "fc"]
        if "fwd" in modes:
            checked.compare(number, pushed, checked.difference(number, direction), "ut.jvp", "differences")
        if "rev" in modes:
            _, back = vjp(checked.f, *checked.args)
            leaves, structure = tree.flatten(value)
            weights = [checked._random(leaf) for leaf in leaves]
            pulled = back(tree.unflatten(structure, weights))[number]
            forwards = _inner([w for w in weights if w is not None], pushed)
            checked.compare(number, [_inner(_floats(direction), _floats(pulled))], [forwards], "ut.vjp", "ut.jvp")
        if order > 1:
            _check(replace(checked, f=_slope(checked.f, along)), modes, order - 1)


def _slope(f: Any, along: tuple[Any, ...]) -> Any:
    """The derivative along a direction, as a function."""
    return lambda *args: jvp(f, args, along)[1]


def _inner(one: Sequence[Floats], other: Sequence[Floats]) -> Floats:
    """The sum of all products, in f64; of complex ones, the real part: that is what a cotangent says of a change."""
    return np.asarray(sum(float(np.sum(_wide(a) * b).real) for a, b in zip(one, other, strict=True)))


def _wide(array: Floats) -> Floats:
    """In double precision."""
    return array.astype(np.result_type(array.dtype, np.float64))


def _arrays(value: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in tree.flatten(value)[0]]


def _floats(value: Any) -> list[Floats]:
    return [array for array in _arrays(value) if array.dtype.kind in "fc"]
