"""What runs in the core promise whatever they do: they stop soon, leave nothing behind, let others work meanwhile.

Of waves with either schedule, and of expand. Times are those of the processor, which other work on the machine does not
add to.
"""

from __future__ import annotations

import resource
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.engines import EVERY, FORCED, forced
from tests.support.graphs import optimized, plain
from tests.support.recursions import count, fib, grows, halves, invert, spin
from tests.support.scripts import run_script
from tests.support.threads import in_threads
from tests.support.validity import parse_library

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.waves import WavesPlan
from undertow.errors import InternalError
from undertow.passes.flatten import flatten

WAYS = ("waves:lockstep", "waves:agenda", "expand")


@pytest.fixture(autouse=True)
def schedules() -> Iterator[None]:
    with forced():
        yield


# --------------------------------------------------------------------------------------------------------------
# The end, at any moment

HEAVY = '''
import signal, sys, time
import numpy as np
from tests.support.engines import EVERY
from tests.support.recursions import count, fib, spin
import undertow as ut
from undertow.api.options import ENGINES

ENGINE = sys.argv[1]
ENGINES.update(EVERY)

@ut.function
def wide(x: ut.f64[64, 64], n: ut.i64) -> ut.f64:
    """Long operators on many lanes."""
    return ut.sum(x) if n == 0 else wide(ut.tanh(x @ x), n - 1) + wide(ut.exp(-x @ x), n - 1)

@ut.function
def long(x: ut.f64[None], n: ut.i64) -> ut.f64:
    """Long arrays in one lane."""
    while n != 0:
        x = ut.sin(x) + ut.cos(x * 2.0)
        n = n - 1
    return ut.sum(x)

@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    return 1.0 if n == 0 else x * power(x, n - 1)

@ut.function
def tree(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n == 0 else tree(x * 0.5, n - 1) * tree(x + 1.0, n - 1)

@ut.function
def net(w: ut.f64[32, 32], x: ut.f64[32], n: ut.i64) -> ut.f64[32]:
    return x if n == 0 else ut.tanh(w @ (net(w, x, n - 1) + net(w, x * 0.5, n - 1)))

X, W = np.ones((64, 64)) / 64, np.eye(32)
CASES = {  # what it is, what never ends, what does
    "spin": (spin, (-1,), (3,)),
    "count": (count, (-1,), (3,)),
    "fib": (fib, (60,), (5,)),
    "wide": (wide, (X, 60), (X, 2)),
    "long": (long, (np.ones(1_000_000), -1), (np.ones(3), 2)),
    "gradient of power": (ut.grad(power), (1.0, -1), (1.0, 3)),
    "gradient of tree": (ut.grad(tree), (1.0, 60), (1.0, 3)),
    "gradient of net": (ut.grad(lambda w, x, n: ut.sum(net(w, x, n))), (W, W[0], 60), (W, W[0], 2)),
}
'''


@pytest.mark.slow
@pytest.mark.parametrize("engine", WAYS)
@pytest.mark.parametrize("by", ["timeout", "Ctrl-C"])
def test_runs_stop_at_once(tmp_path: Path, engine: str, by: str) -> None:
    """A tenth of a second is meant, and twice that allowed. An error has its tag traceback by then.

    Forced on numbers, an agenda has a hundred thousand frames to clear away; by itself it takes arrays only.
    """
    run_script(
        tmp_path,
        HEAVY,
        f"""
        BY = {by!r}
        AFTER = 0.1
        signal.signal(signal.SIGPROF, signal.default_int_handler)  # a clock of the processor, for what Ctrl-C does
        for name, (function, args, small) in CASES.items():
            for threads in (1, 2) if ENGINE == "waves:lockstep" else (1,):
                with ut.options(engine=ENGINE, threads=threads, memory=4 << 30, max_depth=None):
                    expected = function(*small)
                    # Where millions of frames are alive, giving back their memory takes time as well.
                    is_deep = name in ("count", "gradient of power")
                    most = AFTER * threads + (0.5 if is_deep or ENGINE == "waves:agenda" else 0.2)
                    for attempt in range(3):  # memory may come and go slowly where others use the machine
                        began = time.process_time()
                        try:
                            if BY == "timeout":
                                function.run(*args, timeout=AFTER)
                            else:
                                signal.setitimer(signal.ITIMER_PROF, AFTER)
                                function(*args)
                            raise SystemExit("it ended")
                        except (KeyboardInterrupt, ut.Timeout) as error:
                            took = time.process_time() - began
                            assert isinstance(error, ut.Timeout) == (BY == "timeout")
                            if BY == "timeout":  # with threads, the main graph may just wait for them
                                assert (error.calls or threads > 1) and len(str(error).splitlines()) < 200
                        finally:
                            signal.setitimer(signal.ITIMER_PROF, 0)
                        if took < most:
                            break
                    assert took < most, (name, threads, took)
                    np.testing.assert_array_equal(function(*small), expected)
        """,
        engine,
        timeout=300,
    )


# One operator each that takes a tenth of a second or more, and what it is given.
LONG: dict[str, tuple[Any, tuple[int, ...]]] = {
    "sort": (lambda x: ut.sort(x)[0], (1_500_000,)),
    "argsort": (lambda x: ut.argsort(x)[0], (1_000_000,)),
    "sort rows": (lambda x: ut.sort(x, axis=0)[0], (2000, 800)),
    "cumsum": (lambda x: ut.cumsum(x)[-1], (30_000_000,)),
    "softmax": (lambda x: ut.softmax(x)[0], (15_000_000,)),
    "log_softmax": (lambda x: ut.log_softmax(x)[0], (15_000_000,)),
    "logsumexp": (lambda x: ut.logsumexp(x[:, None] + x[None, :]), (8000,)),
    "transpose": (lambda x: ut.transpose(x)[1, 0], (5000, 4000)),
    "broadcast": (lambda x: (x[:, None] + x[None, :])[1, 0], (8000,)),
    "take": (lambda x: ut.take(x, ut.astype(ut.abs(x), ut.i64), axis=0)[1], (15_000_000,)),
    "product": (lambda x: (x @ x)[0, 0], (1500, 1500)),
    "product of integers": (lambda x: (ut.astype(x, ut.i64) @ ut.astype(x, ut.i64))[0, 0], (700, 700)),
    "normal": (lambda x: ut.random.normal(size=(10_000_000,))[0] + x[0], (1,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["waves", "expand"])
@pytest.mark.parametrize("name", LONG)
def test_one_long_operator_stops_when_the_time_is_over(name: str, engine: str) -> None:
    program, shape = LONG[name]
    x = np.random.default_rng(0).normal(size=shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f = ut.function(program)

    def seconds(**limits: float) -> float:
        began = time.process_time()
        try:
            f.run(x, engine=engine, **limits)
        except ut.Timeout:
            assert limits
        else:
            assert not limits
        return time.process_time() - began

    seconds()
    whole = seconds()
    # What comes before the operator and after it (values are copied in, memory is given back) takes its time, too, and
    # fresh memory now and then a multiple of that: the best of three counts.
    assert any(seconds(timeout=whole / 4) < 0.75 * whole for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize("engine", WAYS)
def test_out_of_memory_is_an_error_of_ours(tmp_path: Path, engine: str) -> None:
    """What is known before it is allocated, by `memory`; the rest by the system, where that says no."""
    run_script(
        tmp_path,
        HEAVY,
        """
        import resource

        @ut.function
        def vast(n: ut.i64) -> ut.f64:
            return ut.sum(ut.zeros(n) + 1.0)

        @ut.function
        def piles(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
            return x if n == 0 else piles(x + 1.0, n - 1) * x

        slope = ut.grad(lambda x, n: ut.sum(piles(x, n)))
        pile = np.ones(1_000_000), 1000
        cases = (vast, (1 << 29,)), (piles, pile), (slope, pile), (count, (-1,))
        with ut.options(engine=ENGINE, memory=1 << 28, max_depth=None):
            for function, args in cases:
                try:
                    function(*args)
                    raise SystemExit("it ended")
                except ut.FrameLimit as error:
                    assert "more than memory=268,435,456" in str(error) and error.calls, error
        with ut.options(engine=ENGINE, memory=None, max_depth=None):
            assert vast(3) == 3.0 and piles(np.ones(2), 1)[0] == 2.0 and slope(np.ones(2), 1)[0] == 3.0
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
            for function, args in cases:
                try:
                    function(*args)
                    raise SystemExit("it ended")
                except ut.FrameLimit as error:
                    assert "out of memory" in str(error), error
                    assert function is not piles or error.calls
            assert vast(3) == 3.0
        """,
        engine,
        timeout=300,
    )


# --------------------------------------------------------------------------------------------------------------
# Many runs, one after the other and at the same time


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells")
@pytest.mark.parametrize("engine", WAYS)
def test_nothing_is_left_behind(engine: str) -> None:
    """Neither by runs that succeed, nor by those that fail in the middle."""

    def loss(x: Any) -> Any:
        return halves(x, 6) + grows(x[:3], 4)

    gradient, x = ut.grad(loss), np.ones(100)
    fails: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (fib, (12,), {"max_depth": 5}),
        (count, (100,), {"max_depth": 50}),
        (count, (100,), {"frames": 8}),
        (halves, (x, 10), {"memory": 2_000}),
        (invert, (4, 1), {}),
        (grows, (x[:4], 9), {"timeout": 0.0}),
        (gradient, (x,), {"max_depth": 4}),
        (gradient, (x,), {"memory": 9_000}),
    ]

    def some_runs() -> None:
        fib(8)
        count(50)
        spin(20)
        halves(x, 6)
        grows(x[:4], 5)
        gradient(x)
        fib.map([3, 4, 5, 6])
        for function, args, options in fails:
            with pytest.raises(ut.RunError):
                function.run(*args, **options)

    with ut.options(engine=engine):
        for _ in range(40):
            some_runs()
        before = resident()
        for _ in range(150):  # 2,250 runs
            some_runs()
        assert resident() - before < 6 << 20


@pytest.mark.parametrize("engine", WAYS)
def test_runs_at_once(engine: str) -> None:
    """Several threads run one function at the same time, and each gets its own result or fault."""
    slope = ut.grad(lambda x: halves(x, 5))
    x = np.linspace(0, 1, 100)
    with ut.options(engine=engine):
        expected = {n: fib(n) for n in (11, 12, 13)}
        wanted = slope(x)

    def work(first: int) -> None:
        with ut.options(engine=engine):
            for k in range(20):
                n = 11 + (first + k) % 3
                assert fib(n) == expected[n]
                np.testing.assert_array_equal(slope(x), wanted)
                with pytest.raises(ut.Fault):
                    invert(4, 1)

    in_threads(work, 3)


@pytest.mark.slow
@pytest.mark.parametrize("engine", WAYS)
def test_the_interpreter_is_free_while_a_run_goes_on(engine: str) -> None:
    """Another thread of Python gets on during one run: it counts, and never waits for the run."""
    ticks = 0
    is_over = threading.Event()

    def watch() -> None:
        nonlocal ticks
        while not is_over.is_set():
            ticks += 1
            time.sleep(0.001)

    fib.run(3, engine=engine)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        with pytest.raises(ut.Timeout):
            fib.run(60, engine=engine, timeout=1.0, memory=4 << 30)
        during = ticks
    finally:
        is_over.set()
        thread.join()
    assert during > 20  # of a thousand, on a machine that does nothing else


# --------------------------------------------------------------------------------------------------------------
# The same bits


@ut.function
def scaled(w: ut.f64, n: ut.i64) -> ut.f64:
    """Every lane of a map that calls it is an entry of its own, which is given `w`."""
    if n <= 1:
        return ut.sin(w)
    return scaled(w, n - 1) * 0.3 + ut.exp(-scaled(w, n - 2)) * w


@ut.function
def lanes(ws: ut.f64[64], n: ut.i64) -> ut.f64[64]:
    return ut.map(lambda w: scaled(w, n), ws)


@ut.function
def spread(x: ut.f32[5], n: ut.i64) -> ut.f32[5]:
    """Sums inside lanes, not across them."""
    if n <= 1:
        return x / (1 + ut.sum(x * x))
    return ut.tanh(spread(x * 0.7, n - 1) + spread(x + 0.1, n - 2))


@ut.function
def jagged(x: ut.f64[None], n: ut.i64) -> ut.f64:
    if n <= 1:
        return ut.sum(ut.sqrt(ut.abs(x)))
    return jagged(ut.concat([x, x[:1] * 0.3]), n - 1) / 3 + jagged(x * 1.7, n - 2)


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "lanes": (lanes, (np.linspace(-1, 1, 64), 9)),
    "spread": (spread, (np.linspace(0, 1, 5, dtype=np.float32), 14)),
    "jagged": (jagged, (np.linspace(0.1, 1, 3), 11)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_width_and_threads_change_no_bit(name: str) -> None:
    """Where no product and no sum over lanes is involved: any width, schedule and number of threads."""
    function, args = PROGRAMS[name]
    graph, inputs = optimized(function, *args), plain(args)
    first, _ = WavesPlan(graph, 1).run(inputs, Options(threads=1))
    for width in (2, 7, 64, 4096):
        for schedule in ("lockstep", "agenda"):
            plan = WavesPlan(graph, width, schedule)
            for threads in (1, 2, 3) if schedule == "lockstep" else (1,):
                found, _ = plan.run(inputs, Options(threads=threads))
                np.testing.assert_array_equal(found[0], first[0], strict=True)


@ut.function
def encode(w: ut.f32[8, 8], x: ut.f32[8], n: ut.i64) -> ut.f32[8]:
    if n <= 1:
        return x
    return ut.tanh(w @ (encode(w, x * 0.9, n - 1) + encode(w, x, n - 2)))


def test_threads_change_no_bit_of_products_and_sums() -> None:
    """A product or a sum over lanes may depend on the width, but not on how many threads share the work."""
    random = np.random.default_rng(1)
    w, xs = (random.normal(size=shape).astype(np.float32) / 3 for shape in ((8, 8), (40, 8)))

    @ut.function
    def total(w, xs):
        return ut.sum(ut.map(lambda x: ut.sum(encode(w, x, 7)), xs))

    slope = ut.grad(total, argnums=(0, 1))
    for function in (total, slope):
        graph = optimized(function, w, xs)
        for width in (8, 4096):
            plan = WavesPlan(graph, width)
            one, _ = plan.run([w, xs], Options(threads=1))
            for threads in (2, 3):
                several, _ = plan.run([w, xs], Options(threads=threads))
                for found, wanted in zip(several, one, strict=True):
                    np.testing.assert_array_equal(found, wanted, strict=True)


FALSE_LENGTHS = {
    "read behind the end": """
library 1 main=main
main main(v: f64[?]) -> (r)
  y: f64[4096]  = map v body="b"
  q: f64[64,64] = reshape y shape=[64, 64]
  r: f64        = sum q axes=[0, 1] keepdims=false
map b(x: f64) -> (m) carried=1
  m: f64 = multiply x, 2.0:f64
""",
    "written behind the end": """
library 1 main=main
main main(v: f64[?]) -> (r)
  y: f64[1] = map v body="b"
  q: f64[2] = concat y, y axis=0
  r: f64    = sum q axes=[0] keepdims=false
map b(x: f64) -> (m) carried=1
  m: f64 = multiply x, 2.0:f64
""",
    "rows of lanes": """
library 1 main=main
main main(v: f64[?]) -> (r)
  y: f64[2,64] = map v body="b"
  q: f64[128]  = reshape y shape=[128]
  r: f64       = sum q axes=[0] keepdims=false
map b(x: f64) -> (m) carried=1
  m: f64[64] = broadcast_to x shape=[64]
""",
    "a kernel": """
library 1 main=main
main main(v: f64[?]) -> (r)
  y: f64[4096] = multiply v, 2.0:f64
  r: f64       = sum y axes=[0] keepdims=false
""",
    "one axis of two": """
library 1 main=main
main main(v: f64[?]) -> (r)
  y: f64[?,64] = expand_dims v axes=[1]
  r: f64[?]    = map y body="b"
map b(x: f64[64]) -> (m) carried=1
  m: f64 = sum x axes=[0] keepdims=false
""",
}


@pytest.mark.parametrize("engine", ["expand", "waves", *FORCED])
@pytest.mark.parametrize("text", FALSE_LENGTHS.values(), ids=FALSE_LENGTHS)
def test_no_run_trusts_a_length(text: str, engine: str) -> None:
    """Graphs that `ir.spec` would refuse: types are compared with what is there before a kernel relies on them."""
    plan = EVERY[engine].plan(flatten(parse_library(text)))
    with pytest.raises(InternalError, match="the core stopped"):
        plan.run([np.ones(1000)])


def test_templates_state_what_kernels_give() -> None:
    """Where types state all lengths, that is seen before anything runs."""
    graph = flatten(
        parse_library("""
library 1 main=main
main main(v: f64[3]) -> (y)
  y: f64[4096] = multiply v, 2.0:f64
""")
    )
    for engine in ("expand", "waves"):
        with pytest.raises(ValueError, match=r"the result of a kernel does not have the shape of its (slot|column)"):
            EVERY[engine].plan(graph)


@pytest.mark.parametrize("engine", ["expand", "waves"])
def test_arguments_need_not_be_aligned(engine: str) -> None:
    @ut.function
    def doubled(x: ut.f64[None]) -> ut.f64[None]:
        return x * 2.0

    shifted = np.frombuffer(b"." + np.arange(64.0).tobytes(), np.float64, offset=1)
    assert not shifted.flags.aligned
    np.testing.assert_array_equal(doubled.run(shifted, engine=engine), np.arange(64.0) * 2)
