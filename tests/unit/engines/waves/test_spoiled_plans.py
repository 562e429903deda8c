"""Plans that are no plans: whatever the rows say, the core refuses them, or runs to some end; it never crashes."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from tests.support.spoiled import Program, mutate, plans

from undertow import _core
from undertow.engines.native import Encoded, Host, traits_of
from undertow.engines.waves.encode import encode as encode_plan
from undertow.ir.graph import StaticGraph
from undertow.plan.pipeline import make_plan

FIRST = 5  # version, hash of the fields, nodes, constants, the number of kernels


def encode(graph: StaticGraph) -> Encoded:
    return encode_plan(make_plan(graph, traits_of), [node.name for node in graph.nodes])


def run(program: Program, rows: npt.NDArray[np.int64], chance: random.Random) -> str:
    """Decode and run under small limits; how it ended."""
    try:
        plan = _core.decode(rows, program.words, program.constants)
    except ValueError:
        return "refused"
    host = Host(program.graph, {})
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            plan.run(
                program.inputs,
                host.apply,
                [],
                chance.choice((1, 3, 4096)),
                chance.choice((50, 2000)),
                60,
                1 << 22,
                0.05,
                chance.random() < 0.2,
                chance.random() < 0.4,
                chance.choice((1, 1, 2)),
            )
    except Exception as error:
        return "stopped" if isinstance(error, _core.Stopped) else type(error).__name__
    return "ran"


def attack(programs: Sequence[Program], chance: random.Random) -> str:
    program = chance.choice(programs)
    return run(program, mutate(program, chance), chance)


def test_plans_that_are_plans_run() -> None:
    for program in plans(encode, FIRST):
        for seed in range(4):
            assert run(program, program.rows, random.Random(seed)) in ("ran", "stopped")


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_plans(seed: int) -> None:
    """Mutations of rows; `wrong` ones are refused, or come to some end."""
    programs = plans(encode, FIRST)
    found = [attack(programs, random.Random(1000 * seed + k)) for k in range(150)]
    assert "refused" in found and set(found) - {"refused"}


def test_what_is_said() -> None:
    program = plans(encode, FIRST)[0]
    for rows, said in (
        ([], "it ends too early"),
        (program.rows[:-1], "it ends too early"),
        ([*program.rows, 0], "numbers are left over at its end"),
        ([99, *program.rows[1:]], "another version of the encoding.* rebuild it: `make core`"),
        ([program.rows[0], 99, *program.rows[2:]], "or for other fields; rebuild it: `make core`"),
    ):
        with pytest.raises(ValueError, match=said):
            _core.decode(np.array(rows, np.int64), program.words, program.constants)
    with pytest.raises(ValueError, match="too few constants"):
        _core.decode(program.rows, program.words, [])
