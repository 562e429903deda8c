"""Threads and schedulers of the expand engine: the same bits, the same errors, the same limits, whatever the order."""

from __future__ import annotations

import contextlib
import io
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program, assert_same
from tests.support.bits import same
from tests.support.differentiable import power
from tests.support.threads import in_threads

import undertow as ut
from undertow.engines.contract import SCHEDULERS
from undertow.ir.index import StaticIndex
from undertow.ir.longest_path import nodes_ahead
from undertow.ir.structure import STARTS

WAYS = [{"threads": threads, "scheduler": scheduler} for threads in (1, 2, 4) for scheduler in (None, *SCHEDULERS)]
SEVERAL = [way for way in WAYS if way["threads"] != 1]
N = ut.f64["n"]


def sample() -> Iterator[Any]:
    """Some programs, each with one number of threads and one scheduler, in turns: between them programs meet all."""
    ways = itertools.cycle(SEVERAL)
    for program in PROGRAMS[::3]:
        if not {"lazy", "deep"} & set(program.tags):
            way = next(ways)
            yield pytest.param(program, way, id="-".join(map(str, (program, *way.values()))))


@pytest.mark.slow
@pytest.mark.parametrize(("program", "way"), [*sample()])
def test_programs_do_what_python_does(program: Program, way: dict[str, Any]) -> None:
    for case in range(len(program.cases)):
        expected = program.expected(case)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            if "fault" in program.tags:
                with pytest.raises(ut.Fault) as fault:
                    program.run(case, engine="expand", **way)
                assert fault.value.calls
            else:
                result, stats = program.run(case, engine="expand", **way)
                assert_same(result, expected.value)
                assert expected.calls is None or stats.activations <= expected.calls
        assert printed.getvalue() == expected.printed


# --------------------------------------------------------------------------------------------------------------
# Sums


@ut.function
def weighed(w: ut.f64[8, 8], b: ut.f64[8], table: ut.f64[5, 8], node: ut.i64) -> ut.f64[8]:
    """A tree: below an even node two children, below an odd one three, as lanes of a map."""
    x = table[node % 5]
    if node > 200:
        return ut.tanh(w @ x + b)
    if node % 2 == 0:
        below = weighed(w, b, table, 2 * node + 1) * 0.7 + weighed(w, b, table, 2 * node + 2)
    else:
        below = ut.sum(ut.map(lambda k: weighed(w, b, table, 3 * node + k), ut.arange(3)), axis=0)
    return ut.tanh(w @ below + b * x)


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
def test_sums_have_the_same_bits(sparse: bool) -> None:
    rng = np.random.default_rng(5)
    w, b, table = rng.normal(size=(8, 8)), rng.normal(size=8), rng.normal(size=(5, 8))
    slopes = ut.grad(lambda *args: ut.sum(weighed(*args)), (0, 1, 2), sparse_rows=sparse)
    wanted = slopes.run(w, b, table, 1, engine="expand", threads=1)
    for mine, other in zip(wanted, slopes.run(w, b, table, 1, engine="reference"), strict=True):
        np.testing.assert_allclose(np.asarray(mine), np.asarray(other), rtol=1e-9)
    for way in WAYS:
        found = slopes.run(w, b, table, 1, engine="expand", **way)
        for mine, other in zip(found, wanted, strict=True):
            if isinstance(mine, ut.IndexedRows):
                assert same(mine.indices, other.indices) and same(mine.rows, other.rows), way
            else:
                assert same(mine, other), way


def test_sums_do_not_wait_for_each_other() -> None:
    """The lanes of a map hand their sums up in their order, whichever ends first."""

    @ut.function
    def total(w: ut.f64, xs: N) -> ut.f64:
        return ut.sum(ut.map(lambda x: ut.sin(w * x) * power(w, 3), xs))

    xs = np.random.default_rng(1).normal(size=300)
    slope = ut.grad(total)
    wanted = slope.run(0.5, xs, engine="expand", threads=1)
    for way in WAYS:
        assert same(slope.run(0.5, xs, engine="expand", **way), wanted)


# --------------------------------------------------------------------------------------------------------------
# What fails first


@ut.function
def divided(n: ut.i64, by: ut.i64) -> ut.i64:
    return 10 // by if n == 0 else divided(n - 1, by) + 1


@ut.function
def several_faults(n: ut.i64, k: ut.i64) -> ut.i64:
    """Python comes to the first line first, although the others fail sooner."""
    first = divided(n, k)
    second = 7 // k
    return first + second + divided(0, k)


@ut.function
def everywhere(n: ut.i64) -> ut.i64:
    return 1 // n if n == 0 else everywhere(n - 1) + everywhere(n - 1)


@ut.function
def told(n: ut.i64, k: ut.i64) -> ut.i64:
    """An assertion is the host's: the owner's thread runs it."""
    ut.assert_(divided(n, 1) < 0, "the first")  # noqa: PT009
    ut.assert_(k > 0, "the second")  # noqa: PT009
    return 5 // k


@ut.function
def of_many_lanes(n: ut.i64, k: ut.i64) -> ut.i64:
    return ut.sum(ut.map(lambda i: divided(n - i, k * (i - 5) * (i - 2)), ut.arange(9)))


@ut.function
def unequal(n: ut.i64, k: ut.i64) -> ut.f64:
    """Lanes of unequal lengths, and one that fails after it has given its result: that comes first."""

    def lane(i: ut.i64) -> N:
        found = ut.zeros(i + k)
        ut.assert_(divided(n, 1) + i < n + 8, "too far")  # noqa: PT009
        return found

    return ut.sum(ut.map(lane, ut.arange(3)))


@ut.function
def without_end(n: ut.i64) -> ut.i64:
    if n < 0:
        return 0
    return without_end(n + 1) + without_end(n + 2)


@ut.function
def after_a_fault(n: ut.i64, k: ut.i64) -> ut.i64:
    return divided(n, k) + without_end(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "args", "line"),
    [
        (several_faults, (40, 0), "first = divided"),
        (everywhere, (7,), "everywhere(n - 1) + everywhere"),
        (told, (20, 0), "the first"),
        (of_many_lanes, (30, 1), "lane 2"),
        (unequal, (25, 1), "too far"),
        (after_a_fault, (50, 0), "divided(n, k) + without_end(0)"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_failure_that_python_meets_first(function: Any, args: tuple[Any, ...], line: str) -> None:
    messages = set()
    for way in WAYS:
        if function is after_a_fault and way["scheduler"] in ("fifo", "random"):
            continue  # they try all calls that there are at each depth
        for _ in range(2):
            with pytest.raises(ut.RunError) as failed:
                function.run(*args, engine="expand", max_depth=300, **way)
            messages.add((str(failed.value), tuple(failed.value.calls), failed.value.span))
    assert len(messages) == 1, messages
    assert line in repr(messages)


@pytest.mark.parametrize("scheduler", [None, "lifo", "depth", "longest_path"])
def test_runaway_recursion_is_told(scheduler: str | None) -> None:
    for threads in (1, 2, 3):
        with pytest.raises(ut.RecursionLimit) as limit:
            without_end.run(0, engine="expand", threads=threads, scheduler=scheduler, max_depth=2000)
        assert len(limit.value.calls) == 2000


# --------------------------------------------------------------------------------------------------------------
# Limits


@ut.function
def fibonacci(n: ut.i64) -> ut.i64:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@pytest.mark.parametrize("way", SEVERAL, ids=lambda way: "-".join(map(str, way.values())))
def test_limits_hold(way: dict[str, Any]) -> None:
    with pytest.raises(ut.FrameLimit):
        fibonacci.run(25, engine="expand", frames=10, **way)
    with pytest.raises(ut.RecursionLimit):
        fibonacci.run(25, engine="expand", max_depth=10, **way)
    with pytest.raises(ut.FrameLimit):
        ut.grad(power).run(1.0, 3000, engine="expand", memory=50_000, **way)
    with pytest.raises(ut.Timeout):
        fibonacci.run(60, engine="expand", timeout=0.05, frames=1_000_000, **way)
    result, stats = fibonacci.run(12, engine="expand", stats=True, **way)
    assert (result, stats.activations, stats.max_depth) == (144, 465, 12)
    assert len([label for label in stats.deepest_tag if isinstance(label, int)]) == 12


def test_ctrl_c_ends_all_threads() -> None:
    import signal

    alarm = threading.Timer(0.1, lambda: signal.raise_signal(signal.SIGINT))
    alarm.start()
    with pytest.raises(KeyboardInterrupt):
        fibonacci.run(60, engine="expand", threads=3, timeout=30.0)
    alarm.join()
    assert fibonacci.run(10, engine="expand", threads=3) == 55


def test_depth_is_data() -> None:
    for way in ({"threads": 2}, {"threads": 1, "scheduler": "fifo"}, {"threads": 2, "scheduler": "longest_path"}):
        assert divided.run(200_000, 1, engine="expand", **way) == 200_010


@ut.function
def in_lanes(n: ut.i64) -> ut.i64:
    return ut.sum(ut.map(lambda i: divided(1, i + 1), ut.arange(n)))


def test_copies_that_one_thread_makes_and_another_frees() -> None:
    """Their memory comes back to who makes more."""
    for scheduler in SCHEDULERS:
        _, stats = in_lanes.run(20_000, engine="expand", threads=2, scheduler=scheduler, stats=True)
        assert stats.activations == 40_001
        assert stats.peak_bytes < 20_000_000


def test_runs_at_once_do_not_meet() -> None:
    """Several Python threads, each with runs of several threads."""
    slope = ut.grad(power)
    wanted = slope.run(1.1, 60, engine="expand", threads=1)

    def work(number: int) -> None:
        for scheduler in SCHEDULERS:
            assert same(slope.run(1.1, 60, engine="expand", threads=1 + number, scheduler=scheduler), wanted)

    in_threads(work, 3)


# --------------------------------------------------------------------------------------------------------------
# Schedulers


def test_depth_first_needs_few_frames() -> None:
    frames = {}
    for scheduler in SCHEDULERS:
        _, stats = fibonacci.run(16, engine="expand", threads=1, scheduler=scheduler, stats=True)
        frames[scheduler] = stats.peak_frames
    assert frames["lifo"] == frames["depth"] == 17
    assert frames["longest_path"] < 50 < frames["fifo"]


def test_the_longest_path_goes_first() -> None:
    """What a call is made of has more nodes behind it than what is only added to its result; ends have none.

    main -> both -> chain -> * -> +
                 -> * ----------> +
    """

    @ut.function
    def chain(n: ut.i64) -> ut.i64:
        return n if n <= 0 else chain(n - 1) + 1

    @ut.function
    def both(n: ut.i64) -> ut.i64:
        return chain(n) * 2 + n * 3

    static = both.graph(6).static
    ahead = nodes_ahead(index := StaticIndex(static))
    inside = next(node.region for _, node in index.of("multiply"))
    own = [(number, node.op) for number, node in enumerate(static.nodes) if node.region == inside]
    call = max(ahead[number] for number, op in own if op in STARTS)
    doubled, tripled = (ahead[number] for number, op in own if op == "multiply")
    (added,) = (ahead[number] for number, op in own if op == "add")
    assert call > doubled == tripled == added + 1
    for engine in ("reference", "expand"):
        for scheduler in ("longest_path", "depth"):
            result, stats = both.run(6, engine=engine, scheduler=scheduler, stats=True)
            assert (result, stats.activations) == (30, 8)
