"""Random recursive programs do what plain Python does, under every schedule; their graphs are valid and printable.

`UNDERTOW_PROPERTY_EXAMPLES=5000 pytest tests/property` looks further, at other programs each time.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.support.oracle import compare
from tests.support.sources import Source, argument, write

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
QUARTERS = st.integers(-12, 12).map(lambda k: k / 4)
VALUES = {
    "i": st.integers(-6, 20), "x": QUARTERS, "p": st.booleans(),
    "v": st.lists(QUARTERS, min_size=1, max_size=4).map(np.array),
}  # fmt: skip
# Of so many programs out of a hundred, at least.
WANTED = {
    "recursive": 60, "mutual": 15, "nested call": 10, "loop in call": 30, "call in loop": 25,
    "several results": 25, "recursive closure": 10, "map": 15,
}  # fmt: skip


@st.composite
def programs(draw: st.DrawFn) -> tuple[Source, list[tuple[Any, ...]]]:
    """A program and two tuples of arguments for it."""
    source = write(draw(st.randoms(use_true_random=False)))
    arguments = [tuple(draw(VALUES[letter]) for letter in source.params) for _ in range(2)]
    return source, arguments


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES or 60,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_small_programs(
    tmp_path_factory: pytest.TempPathFactory, program: tuple[Source, list[tuple[Any, ...]]]
) -> None:
    """Hypothesis likes simple programs, and makes those that fail simpler still."""
    source, arguments = program
    note(f"{source.text}\n# {source.main}(fuel, ...) for fuel up to 5 and {arguments}")
    compare(source, arguments, Path(tmp_path_factory.getbasetemp()))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_large_programs(shard: int, tmp_path: Path) -> None:
    """Programs of any size, from seeds."""
    first = Random().randrange(1 << 40) if EXAMPLES else 1000 * shard
    for seed in range(first, first + (EXAMPLES // 4 or 20)):
        random = Random(seed)
        source = write(random)
        arguments = [tuple(argument(random, letter) for letter in source.params) for _ in range(2)]
        try:
            compare(source, arguments, tmp_path)
        except Exception as fault:
            raise AssertionError(f"seed {seed}:\n{source.text}\n# {source.main}(fuel, ...) for {arguments}") from fault


def test_the_generator_makes_what_matters() -> None:
    """Among many programs enough have each of the features that recursion makes hard."""
    found = Counter(feature for seed in range(200) for feature in write(Random(seed)).features)
    lacking = {feature: found[feature] for feature, least in WANTED.items() if found[feature] < 2 * least}
    assert not lacking


def test_the_generator_is_a_function_of_its_seed() -> None:
    assert write(Random(5)) == write(Random(5))
    assert len({write(Random(seed)).text for seed in range(50)}) == 50
