"""Random programs with signed zeros, nan, infinities and constants among traced values: every bit is NumPy's.

`python -m tests.fuzz --kind programs` looks further, for as long as it is told to.
"""

from __future__ import annotations

from random import Random

import pytest
from tests.fuzz.programs import exact_run


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NumPy, about its constants
@pytest.mark.parametrize("seed", range(4))
def test_every_engine_gives_the_bits_of_numpy(seed: int) -> None:
    for number in range(5):
        case = exact_run(Random(f"{seed}:{number}"))
        try:
            case.run()
        except AssertionError as error:
            raise AssertionError(f"{error}\n{case.text}") from error
