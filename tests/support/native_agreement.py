"""Runs of a graph on waves, in several widths, schedules, limits and threads, and on expand: what reference does.

Compared are values, faults with their tag tracebacks, prints and counts.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
from tests.support.mixed import MixedPlan

import undertow as ut
from undertow.engines.contract import SCHEDULERS, Options, Plan
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import ReferencePlan
from undertow.engines.waves import WavesPlan
from undertow.errors import RunError
from undertow.ir.graph import StaticGraph

WIDTHS = (1, 2, 3, 7, 64, 4096)
FRAMES = (5, 20, 100, 1000, 1 << 21)  # limits, which make waves narrow; with the last there may be several threads
THREADS = (1, 2, 3)
REASONABLE = Options(timeout=20.0)


def outcome(run: Callable[[], Any]) -> tuple[Any, str]:
    """What a run gives or raises, and what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            found = run()
        except RunError as error:
            found = error
    return found, printed.getvalue()


def assert_equal(found: Sequence[Any], expected: Sequence[Any], tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (np.asarray(one).dtype, np.shape(one)) == (np.asarray(other).dtype, np.shape(other))
        if np.asarray(one).dtype.kind == "f":
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(one, other)


def assert_same_error(found: Any, expected: RunError) -> None:
    """The same class, message, place, and calls that led there."""
    assert type(found) is type(expected)
    assert str(found) == str(expected)
    assert found.calls == expected.calls and found.span == expected.span


def agree(
    graph: StaticGraph, inputs: Sequence[Any], chance: Random, tolerance: float = 1e-12, ordered: bool = True
) -> Any:
    """Run on waves in several ways, on expand and the reference engine, and compare all that can be compared."""
    expected, expected_print = outcome(lambda: ReferencePlan(graph).drain(inputs, REASONABLE))
    if isinstance(expected, ut.Timeout):
        return expected
    ways: list[tuple[int, str, int | None]] = [(width, "lockstep", None) for width in chance.sample(WIDTHS, 2)]
    ways += [(chance.choice(WIDTHS), schedule, None) for schedule in ("agenda", "mixed")]
    ways += [(chance.choice(WIDTHS), "auto", chance.choice(FRAMES)), (0, "expand", None)]
    for width, schedule, frames in ways:
        if schedule == "mixed":
            groups = len(WavesPlan(graph).plan.groups)
            plan: Plan = MixedPlan(graph, [group for group in range(groups) if chance.random() < 0.5], width)
        else:
            plan = ExpandPlan(graph) if schedule == "expand" else WavesPlan(graph, width, schedule)
        options = replace(REASONABLE, frames=frames, threads=chance.choice(THREADS))
        if schedule == "agenda":
            options = replace(options, scheduler=chance.choice((None, "depth", "longest_path")))
        elif schedule == "expand":
            options = replace(options, scheduler=chance.choice([None, *SCHEDULERS]), schedule_seed=chance.randrange(99))
        found, printed = outcome(lambda plan=plan, options=options: plan.run(inputs, options))
        if frames is not None and isinstance(found, ut.FrameLimit):
            continue  # depth alone needs more, or what later phases keep
        if isinstance(expected, RunError):
            assert_same_error(found, expected)
            continue
        if isinstance(found, RunError):
            raise found
        assert_equal(found[0], expected[0], tolerance)
        assert frames is None or found[1].peak_frames <= frames
        counted, wanted = found[1], expected[1]
        if schedule == "expand":  # it abandons what no fetch needs, while the reference engine runs on here
            assert counted.activations <= wanted.activations and counted.max_depth <= wanted.max_depth
        else:
            assert (counted.activations, counted.max_depth) == (wanted.activations, wanted.max_depth)
        assert len([label for label in counted.deepest_tag if isinstance(label, int)]) == counted.max_depth
        lines = [text if ordered else sorted(text.split("\n")) for text in (printed, expected_print)]
        assert lines[0] == lines[1]  # the lanes of a map have no order
    return expected
