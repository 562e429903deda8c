"""Central finite differences, and a check of gradients against them on every engine, simplified and not.

Also that what `extend` makes is valid: as a library, simplified, hoisted, and flattened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import undertow as ut
from undertow.api.function import Function
from undertow.api.options import ENGINES
from undertow.frontend.values import tree
from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import dump, dump_constants, parse
from undertow.ops.vet import type_rule
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library

WAYS: list[dict[str, Any]] = [
    {"engine": engine, "simplify": is_simple} for engine in ENGINES for is_simple in (True, False)
]
SCHEDULES: list[dict[str, Any]] = [
    {"engine": "reference", "scheduler": "lifo"},
    *({"engine": "reference", "scheduler": "random", "schedule_seed": seed} for seed in (1, 22)),
]


def leaves(value: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in tree.flatten(value)[0]]


def changed(value: Any, leaf: int, at: tuple[int, ...], by: float) -> Any:
    """A container like this one, with one element of one leaf moved."""
    found, structure = tree.flatten(value)
    moved = [np.array(x) for x in found]
    moved[leaf][at] += by
    return tree.unflatten(structure, [x[()] for x in moved])


def differences(function: Callable[..., Any], args: Sequence[Any], argnum: int, step: float = 1e-6) -> list[Any]:
    """The gradient of a scalar function with respect to the leaves of one argument, numerically."""
    found: list[Any] = []
    for number, leaf in enumerate(leaves(args[argnum])):
        out = np.zeros(leaf.shape)
        for at in np.ndindex(leaf.shape):
            ends = [
                np.asarray(function(*args[:argnum], changed(args[argnum], number, at, by), *args[argnum + 1 :]))
                for by in (step, -step)
            ]
            out[at] = float(ends[0] - ends[1]) / (2 * step)
        found.append(out)
    return found


def assert_close(found: Any, expected: Any, tolerance: float = 1e-6) -> None:
    """Leaf by leaf."""
    mine, theirs = leaves(found), leaves(expected)
    assert len(mine) == len(theirs)
    for one, other in zip(mine, theirs, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def libraries(library: Library) -> Iterator[Library]:
    """What engines may be given of a captured library."""
    for takes_hoisted in (True, False):
        for is_simple in (True, False):
            yield make_library(library, takes_hoisted, is_simple)


def assert_valid(function: Any, *args: Any) -> None:
    """Every library that engines may be given is valid, printable, and so is its static graph."""
    captured = function.library(*args)
    check(captured, type_rule)
    for made in libraries(captured):
        check(made, type_rule)
        assert parse(dump(made), dump_constants(made)) == made
        check(flatten(made), type_rule)


def check_gradient(
    function: Callable[..., Any],
    *args: Any,
    argnums: int | tuple[int, ...] = 0,
    tolerance: float = 1e-6,
    order: int = 1,
    ways: Sequence[dict[str, Any]] = WAYS,
    expected: Any = None,
) -> Any:
    """The gradient, after comparing it with finite differences and between engines; `order` derivatives of scalars."""
    value = function if isinstance(function, Function) else ut.function(function)
    made = ut.grad(function, argnums)
    found = made(*args)
    if expected is not None:
        assert_close(found, expected, 1e-9)
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    numeric = [out for n in numbers for out in differences(value, args, n)]
    assert_close(found, numeric, tolerance)
    for way in (*ways, *SCHEDULES):
        assert_close(made.run(*args, **way), found, 1e-9)
    both = ut.value_and_grad(function, argnums).run(*args)
    assert_close(both, (value(*args), found), 1e-9)
    assert_valid(made, *args)
    if order > 1:
        check_gradient(made, *args, argnums=argnums, tolerance=tolerance, order=order - 1, ways=ways)
    return found
