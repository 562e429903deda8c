"""`typing.Annotated` in annotations: the type that it carries counts, in containers too, and nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import undertow as ut

Vector = Annotated[ut.Array, ut.f32["n"]]


@dataclass
class Layer:
    w: Annotated[ut.Array, ut.f64["m"]]
    b: Annotated[float, "the bias"]


class Pair(NamedTuple):
    x: Vector
    n: Annotated[int, "how often"]


@ut.function
def add(x: Vector, y: Vector) -> Vector:
    return x + y


@ut.function
def last(pair: Pair, at: tuple[Annotated[ut.i64, "an index"], Vector]) -> tuple[Vector, Annotated[ut.Array, ut.i64]]:
    return pair.x + at[1], pair.n + at[0]


@ut.function
def apply(layer: Layer, x: float) -> float:
    return ut.sum(layer.w) * x + layer.b


def test_the_type_is_converted_to() -> None:
    assert add([1, 2], [3, 4]).dtype == np.float32
    with pytest.raises(ut.TypeMismatch, match=r"`y` of `add` is an f32\[2,1\], but annotated as f32\[n\]"):
        add(np.ones(2, np.float32), np.ones((2, 1), np.float32))
    with pytest.raises(ut.TypeMismatch, match="the dimension 'n' is 3 in argument `y` of `add`, but 2 in"):
        add(np.ones(2, np.float32), np.ones(3, np.float32))


def test_in_containers() -> None:
    x, n = last(Pair(np.ones(2, np.float32), 3), (4, np.ones(2, np.float32)))
    assert (x.tolist(), n) == ([2.0, 2.0], 7)


def test_fields_may_declare_open_dimensions() -> None:
    graphs: list[Any] = [apply.graph(Layer(np.ones(size), 1), 2.0) for size in (2, 3)]
    assert apply(Layer(np.ones(3), 1), 2.0) == 7.0
    assert str(graphs[0]) == str(graphs[1])


def test_recursion_knows_its_result() -> None:
    @ut.function
    def halved(x: Vector, n: int) -> Vector:
        return x if n == 0 else halved(x / 2, n - 1)

    assert halved(np.ones(2, np.float32), 3).tolist() == [0.125, 0.125]
