"""Tasks elsewhere: the same bits, counts and faults as here, whatever is lost on the way."""

from __future__ import annotations

import contextlib
import random
import threading
from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program
from tests.support.elsewhere import Elsewhere, elsewhere
from tests.support.graphs import optimized
from tests.support.shared_out import (
    D,
    cut_everywhere,
    fails,
    grown_by_all,
    is_plain,
    leaves,
    lengths,
    loss,
    same_back,
    trees,
)

import undertow as ut
from undertow import _core
from undertow.engines.waves import WavesPlan
from undertow.engines.waves.plan_bytes import pack, unpack


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call into a group from outside is cut, from two lanes on."""
    cut_everywhere(monkeypatch)


def same(a: Any, b: Any) -> None:
    for x, y in zip(leaves(a), leaves(b), strict=True):
        np.testing.assert_array_equal(x, y)
        assert np.asarray(x).dtype == np.asarray(y).dtype


def agree(f: Any, *arguments: Any, seeds: int = 3, **options: Any) -> Elsewhere:
    """The same bits here, elsewhere, and with losses."""
    f.clear()  # it may have been planned for tasks of the usual size
    here, counted = f.run(*arguments, stats=True, threads=2, **options)
    for seed in range(seeds):
        with elsewhere(seed, losses=30 if seed else 0) as outside:
            there, stats = f.run(*arguments, stats=True, **options)
        same(here, there)
        assert outside.phases > 0 and outside.activations > 0
        for name in ("activations", "max_depth"):
            assert getattr(stats, name) == getattr(counted, name), name
        assert len(stats.deepest_tag) == len(counted.deepest_tag)
    f.clear()
    return outside


@ut.function
def fib(n: ut.i64) -> ut.i64:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@ut.function
def lopsided(n: ut.i64, x: ut.f64[4]) -> ut.f64[4]:
    """One branch is much deeper than the other, and nothing is summed over lanes."""
    if n <= 1:
        return ut.tanh(x + n)
    return lopsided(n - 1, x * 0.5) + lopsided(n // 3, x + 1.0)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_trees_and_their_gradients(order: int) -> None:
    f: Any = loss
    if order == 1:
        f = ut.value_and_grad(loss, argnums=(0, 1))
    if order == 2:
        f = ut.grad(lambda w, table, roots: ut.sum(ut.grad(loss)(w, table, roots) ** 2))
    agree(f, *trees(9))


def test_arrays_of_run_time_shape() -> None:
    x, ns = np.arange(5.0), np.arange(7)
    agree(grown_by_all, x, ns)
    agree(lengths, ns)
    agree(ut.function(lambda x, ns: ut.map(lambda n: same_back(x, n), ns)), x, ns)


def test_one_call_is_spread() -> None:
    """Lanes that no wave has begun are given away, by the run and by its tasks."""
    outside = agree(fib, 21)
    assert outside.nested > 0
    agree(lopsided, 25, np.arange(4.0))


def test_values_that_all_share_are_sent_once() -> None:
    w = np.random.default_rng(0).normal(size=(D, D * 200))  # 900 kB

    @ut.function
    def down(w: ut.f64[D, D * 200], n: ut.i64) -> ut.f64:
        return ut.sum(w[n % D]) if n <= 0 else down(w, n - 3) * 0.5 + w[n % D, n]

    f = ut.function(lambda w, ns: ut.map(lambda n: down(w, n), ns))
    outside = agree(f, w, np.arange(40))
    assert outside.phases > 2 and outside.sent < w.nbytes / 4


def test_the_first_lane_at_fault_is_reported() -> None:
    f = ut.function(lambda x, ns: ut.sum(ut.map(lambda n: fails(x, n), ns)))
    ns = np.array([1, 2, 3, 33, 4, 25, 1])
    with pytest.raises(ut.RunError) as here:
        f.run(np.ones(D), ns, engine="reference")
    for seed in range(4):
        with elsewhere(seed, losses=20), pytest.raises(ut.RunError) as there:
            f(np.ones(D), ns)
        assert there.value.what == here.value.what
        assert [str(call) for call in there.value.calls] == [str(call) for call in here.value.calls]


def test_limits_hold_elsewhere() -> None:
    arguments = trees(9)
    f = ut.value_and_grad(loss, argnums=(0, 1))
    _, free = f.run(*arguments, stats=True)
    with elsewhere():
        with pytest.raises(ut.FrameLimit):
            f.run(*arguments, memory=free.peak_bytes // 8)
        with pytest.raises(ut.RecursionLimit):
            f.run(*arguments, max_depth=2)
        f.run(*arguments, memory=8 * free.peak_bytes)


# Mapped, its board has a run-time size, so its recursion is unrolled until capture gives up, after minutes.
UNROLLED = {"queens_on_a_board"}


@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in PROGRAMS if is_plain(p) and p.name not in UNROLLED][1::4], ids=str)
def test_programs_elsewhere(program: Program) -> None:
    """A quarter of all programs: each a map of five equal calls, so a task for each."""
    f = program.function
    lanes = [[x] * 5 for x in program.cases[0]]
    f.clear()
    try:
        here = f.map(*lanes, engine="waves")
    except ut.UndertowError as error:
        pytest.skip(f"not for maps: {error.what}")
    for seed in range(2):
        with elsewhere(seed, losses=15):
            same(here, f.map(*lanes, engine="waves"))
    f.clear()


# --------------------------------------------------------------------------------------------------------------
# What comes from elsewhere is not believed


def test_a_plan_as_bytes() -> None:
    plan = WavesPlan(optimized(loss, *trees(2)))
    _, data = plan.shipped
    encoded = unpack(data)
    assert pack(encoded) == data
    _core.decode(encoded.rows, encoded.words, encoded.constants)
    rng = random.Random(1)
    for _ in range(300):
        spoiled = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            spoiled[rng.randrange(min(len(spoiled), 2000))] = rng.randrange(256)
        with contextlib.suppress(ValueError):
            encoded = unpack(bytes(spoiled[: rng.choice([len(spoiled), rng.randrange(len(spoiled))])]))
            _core.decode(encoded.rows, encoded.words, encoded.constants)


@pytest.mark.parametrize(("f", "arguments"), [(loss, trees(9)), (lopsided, None)], ids=["trees", "scalars"])
def test_hostile_messages(f: Any, arguments: Any) -> None:
    if arguments is None:
        f, arguments = ut.function(lambda ns, x: ut.map(lambda n: lopsided(n, x), ns)), [np.arange(9), np.arange(4.0)]
    f.clear()
    with elsewhere() as outside:
        f(*arguments)
    f.clear()
    data = next(iter(outside.plans.values()))
    encoded = unpack(data)
    plan = _core.decode(encoded.rows, encoded.words, encoded.constants)
    rng = random.Random(2)
    refused = ran = 0
    for _ in range(1000):
        message = bytearray(rng.choice(outside.messages))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(min(len(message), rng.choice([150, 600, len(message)])))
            message[at] = rng.choice([0, 1, 2, 127, 128, 255, message[at] ^ 1, rng.randrange(256)])
        if rng.random() < 0.2:
            del message[rng.randrange(len(message)) :]
        message[36:60] = message[36:60] if rng.random() < 0.5 else outside.messages[0][36:60]
        guest = _core.Guest(plan)
        stopper = threading.Timer(0.05, guest.stop)  # some ask for more than anybody can wait for
        stopper.start()
        try:
            guest.run(bytes(message), [b"x" * 100], None)
            ran += 1
        except ValueError as error:
            refused += "not a message" in str(error)
        finally:
            stopper.cancel()
    assert refused > 200 and ran > 10
