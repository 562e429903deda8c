"""Runs a source twice, with plain Python and captured, and compares everything that can be compared."""

from __future__ import annotations

import contextlib
import io
import itertools
import linecache
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.programs.program import Plain, TooManyCalls, assert_same, import_plain
from tests.support.placed import Placed, type_rule
from tests.support.sources import Source
from tests.support.written import load_file

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.contract import Options
from undertow.engines.reference import ReferencePlan
from undertow.frontend.trace.library import capture_call
from undertow.frontend.values import tree
from undertow.ir import text
from undertow.ir.spec import check
from undertow.passes.flatten import flatten

MOST_CALLS = 150  # of one run
SCHEDULES = (
    Options(scheduler="fifo"), Options(scheduler="lifo"),
    Options(scheduler="random", schedule_seed=1), Options(scheduler="random", schedule_seed=2),
)  # fmt: skip
_NUMBERS = itertools.count()


def compare(source: Source, arguments: Sequence[tuple[Any, ...]], folder: Path) -> None:
    """Assert that the captured program does what Python does, for each tuple of arguments (fuel left out)."""
    number = next(_NUMBERS)
    path = folder / f"program_{number}.py"
    path.write_text(source.text, encoding="utf-8")
    name = f"random_program_{number}~plain"
    try:
        plain = import_plain(str(path), name)
        _compare(getattr(load_file(path), source.main), getattr(plain, source.main), arguments)
    finally:
        sys.modules.pop(name, None)
        linecache.cache.pop(str(path), None)
        path.unlink()


def _compare(function: ut.Function, plain: Plain, arguments: Sequence[tuple[Any, ...]]) -> None:
    definition = function.__undertow_definition__
    captured = capture_call(definition, function.__undertow_arguments__((0, *arguments[0]), {}))
    static = flatten(captured.library, definition.name)
    for graph in (captured.library, static):
        check(graph, type_rule)
        assert text.parse(text.dump(graph), text.dump_constants(graph)) == graph
    plan = ReferencePlan(static)
    others = [engine.plan(static) for name, engine in ENGINES.items() if name != "reference"]
    others += [Placed(number, parts).plan(static) for number, parts in ((len(static.nodes), 2), (len(static.sites), 4))]
    for args in arguments:
        for fuel in (0, 1, 2, 3, 5):
            Plain.calls, Plain.most_calls = 0, MOST_CALLS
            try:
                with contextlib.redirect_stdout(io.StringIO()) as expected_print:
                    expected = plain(fuel, *args)
            except TooManyCalls:
                break
            finally:
                Plain.most_calls = float("inf")
            calls = Plain.calls
            inputs = function.__undertow_arguments__((fuel, *args), {}).leaves
            for options in SCHEDULES:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    values, stats, frames = plan.drain(inputs, options)
                assert (stats.activations, frames) == (calls, 0)
                assert_same(tree.unflatten(captured.result, values[: captured.result_count]), expected)
                assert printed.getvalue() == expected_print.getvalue()
            for other in others:
                with contextlib.redirect_stdout(io.StringIO()) as printed:
                    values, stats = other.run(inputs)
                assert stats.activations <= calls  # what the result does not need may be left out
                assert_same(tree.unflatten(captured.result, values[: captured.result_count]), expected)
                assert printed.getvalue() == expected_print.getvalue()
