"""Dimensions that classes declare to be known only at run time: calls with other sizes use the same capture."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import undertow as ut


@dataclass(frozen=True)
class Sentence:
    words: ut.i64["n"]  # noqa: F821
    pair: tuple[ut.f64[None, 2], ut.f64[2]]
    scale: float = 2.0


class Row(NamedTuple):
    values: ut.f64[None]


def test_declared_dimensions_are_open() -> None:
    @ut.function
    def total(sentence, rows):
        return (ut.sum(sentence.words) + ut.sum(sentence.pair[0])) * sentence.scale + ut.sum(rows[0].values)

    def call(length: int) -> Any:
        pair = np.ones((length + 1, 2)), np.ones(2)
        return total(Sentence(np.arange(length), pair), [Row(np.ones(length))])

    assert [call(n) for n in (3, 5, 0)] == [2 * (3 + 8) + 3, 2 * (10 + 12) + 5, 4.0]
    (program,) = [program for _, program in total.__undertow_programs__.items()]
    assert [str(t) for t in program.captured.types] == ["i64[?]", "f64[?,2]", "f64[2]", "f64", "f64[?]"]
    rows = [[Row(np.ones(4))]] * 3
    total.map(Sentence(np.ones((3, 2), int), (np.ones((3, 2, 2)), np.ones((3, 2))), np.ones(3)), rows)
    with pytest.raises(ut.TypeMismatch, match="different lengths"):
        total.map(Sentence(np.ones(3, int), (np.ones((4, 2)), np.ones((3, 2))), np.ones(3)), rows)
