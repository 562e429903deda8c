"""Random programs in parts on the core give what they give whole, under random placements and orders of arrival.

`UNDERTOW_PROPERTY_EXAMPLES=500 pytest tests/property/test_parts.py` looks further, at so many programs of each kind.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tests.support.native_agreement import assert_equal
from tests.support.parts import InParts
from tests.support.placed_trials import KINDS, Trial

import undertow as ut
from undertow.api.options import ENGINES
from undertow.frontend.values import tree
from undertow.frontend.values.traced import is_traced

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
FIRST = int(os.environ.get("UNDERTOW_PROPERTY_FIRST", "0"))  # of the seeds


def outcome(trial: Trial, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """Results with the variables after them, or the class of an error; and the lines printed, which maps' lanes mix."""
    for variable in trial.variables:
        variable.assign(0.0)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            found = trial.function.run(*copy.deepcopy(args), seed=trial.seed, timeout=60.0, **options)
        except ut.RunError as error:
            return [type(error).__name__], []
    results = tree.flatten(found, is_traced)[0]
    return [*results, *(variable.read() for variable in trial.variables)], sorted(printed.getvalue().splitlines())


def compare(kind: str, seed: int, folder: Path) -> int:
    """Run the calls of a program whole and in parts; how many there were."""
    chance = Random(f"{kind} {seed}")
    trial = KINDS[kind](chance, folder)
    engine = InParts(seed, 2 + seed % 4)
    engine.forms_waves = chance.random() < 0.5
    options = {"simplify": chance.random() < 0.8, "threads": chance.choice((1, 2))}
    try:
        for args in trial.calls:
            wanted, said = outcome(trial, args, options)
            with patch.dict(ENGINES, {engine.name: engine}):
                found, printed = outcome(trial, args, {**options, "engine": engine.name})
            assert printed == said
            if wanted and isinstance(wanted[0], str):
                assert found == wanted
                continue
            assert_equal([np.asarray(x) for x in found], [np.asarray(x) for x in wanted], trial.tolerance)
    except Exception as error:
        raise AssertionError(f"{kind}, seed {seed}, {options}, {trial.calls}:\n{trial.text}") from error
    return len(trial.calls)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about constants
@pytest.mark.parametrize("kind", KINDS)
def test_programs(kind: str, tmp_path: Path) -> None:
    assert sum(compare(kind, seed, tmp_path) for seed in range(FIRST, FIRST + (EXAMPLES or 8))) > 0
