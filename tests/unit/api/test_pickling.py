"""Functions, derivatives, variables and errors are pickled and copied, and work in other processes and threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.scripts import run_python

import undertow as ut
from undertow.api.options import settings

PROGRAM = """
import concurrent.futures, copy, multiprocessing, pickle
import undertow as ut

@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)

def square(x):
    return x * x

decorated = ut.function(square)
slope = ut.grad(square)

class Model:
    def __init__(self, w):
        self.w = ut.Variable(w)
        self.again = self.w

    @ut.function
    def times(self, x):
        return self.w * x

    @classmethod
    @ut.function
    def kind(cls, x):
        return x + 1

    @staticmethod
    @ut.function
    def alone(x):
        return x + 2

@ut.function
def fails(x):
    return 1 // x

def through(function):
    return pickle.loads(pickle.dumps(function))
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("program")
    (folder / "pickled_program.py").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        import pickled_program  # type: ignore[import-not-found]

        yield pickled_program


def test_by_reference(program: Any) -> None:
    for function in (program.fib, program.slope, program.Model.times, program.Model.alone, ut.checkpoint(program.fib)):
        assert program.through(function) is function
    again = program.through(program.decorated)
    assert again(3.0) == 9.0 and program.through(program.decorated) is again
    assert program.through(program.Model.kind)(1) == 2
    assert program.through(ut.value_and_grad(program.decorated))(3.0) == (9.0, 6.0)
    assert program.through(ut.grad(ut.grad(program.square)))(3.0) == 2.0


def test_methods_carry_their_object(program: Any) -> None:
    model = program.Model(2.0)
    times = program.through(model.times)
    model.w.assign(5.0)
    assert times(3.0) == 6.0 and model.times(3.0) == 15.0
    assert program.through(ut.grad(model.times))(3.0) == 5.0
    times = copy.deepcopy(model.times)
    slope = copy.deepcopy(ut.grad(model.times))
    assert copy.copy(model.times)(3.0) == 15.0
    model.w.assign(7.0)
    assert times(3.0) == 15.0 and slope(3.0) == 5.0 and model.times(3.0) == 21.0


def test_functions_are_copied_like_functions(program: Any) -> None:
    local = ut.function(lambda x: x + 1)
    for function in (program.fib, program.decorated, program.slope, local):
        assert copy.copy(function) is function and copy.deepcopy([function])[0] is function


def test_variables(program: Any) -> None:
    variable = ut.Variable(np.arange(3.0), shape=(None,), name="w")
    for again in (pickle.loads(pickle.dumps(variable)), copy.copy(variable), copy.deepcopy(variable)):
        assert repr(again) == "<Variable w: f64[?] = [0. 1. 2.]>"
        assert again.assign_concat([3.0]).tolist() == [0.0, 1.0, 2.0, 3.0] and not again.value.flags.writeable
        assert variable.value.tolist() == [0.0, 1.0, 2.0]
    for model in (program.through(program.Model(1.0)), copy.deepcopy(program.Model(1.0))):
        assert model.w is model.again
        model.w.assign_add(1.0)
        assert model.times(2.0) == 4.0


def test_local_functions_cannot_be_found() -> None:
    @ut.function
    def local(x: Any) -> Any:
        return x

    with pytest.raises(pickle.PicklingError, match=r"local` cannot be pickled(.|\n)*top level of a module") as caught:
        pickle.dumps(local)
    assert isinstance(caught.value, ut.UndertowError)


def test_errors(program: Any) -> None:
    with pytest.raises(ut.Fault) as caught:
        program.fails(0)
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)
    for kind in (ut.CaptureError, ut.TypeMismatch, ut.RecursionLimit, ut.Timeout, ut.DataError):
        assert str(pickle.loads(pickle.dumps(kind("what", hint="how")))) == "what\n\nhint: how"


MAIN = """
if __name__ == "__main__":
    assert ut.grad(square)(3.0) == 6.0
    for how in ("spawn", "fork"):
        context = multiprocessing.get_context(how)
        with context.Pool(2) as pool:
            assert pool.map(fib, range(10)) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
            assert pool.map(Model(2.0).times, [1.0, 2.0]) == [2.0, 4.0]
            assert pool.map(slope, [1.0, 2.0]) == [2.0, 4.0]
            try:
                pool.map(fails, [0])
            except ut.Fault as fault:
                assert "integer division by zero" in str(fault)
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
            assert list(executor.map(decorated, [1.0, 2.0])) == [1.0, 4.0]
    print("done")
"""


@pytest.mark.slow
def test_processes(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(PROGRAM + MAIN)
    done = run_python("-W", "ignore", "main.py", folder=tmp_path)
    assert done.stdout == "done\n", done.stderr


BY_VALUE = """
import cloudpickle, subprocess, sys

def helper(x):
    return x + 1

@ut.function
def uses(n: ut.i64) -> ut.i64:
    return helper(fib(n)) if n < 5 else uses(n - 1)

def local(k):
    return ut.function(lambda x: x * k + 1)

data = cloudpickle.dumps((uses, local(3), Model(2.0).times, ut.grad(square)))
script = "import sys, pickle; u, l, t, s = pickle.load(sys.stdin.buffer); print(u(9), l(2), t(4.0), s(3.0))"
print(subprocess.run([sys.executable, "-c", script], input=data, capture_output=True).stdout.decode().strip())
"""


@pytest.mark.slow
def test_cloudpickle(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    (tmp_path / "main.py").write_text(PROGRAM + BY_VALUE)
    done = run_python("main.py", folder=tmp_path)
    assert done.stdout == "4 7 8.0 6.0\n", done.stderr


# -- threads, coroutines, forks ----------------------------------------------------------------------------


def test_many_threads_call_it_first() -> None:
    @ut.function
    def fib(n: ut.i64) -> ut.i64:
        if n < 2:
            return n
        return fib(n - 1) + fib(n - 2)

    results: list[int] = []
    ready = threading.Barrier(8)

    def call() -> None:
        ready.wait()
        results.append(fib(12))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [144] * 8


def test_options_belong_to_a_task() -> None:
    double = ut.function(lambda x: x * 2)

    async def task(engine: str) -> list[Any]:
        with ut.options(engine=engine):
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                there = await loop.run_in_executor(pool, double, 2)
                # Executors do not hand the context on; asyncio.to_thread does.
                engines = [settings().engine, (await asyncio.to_thread(settings)).engine]
            return [engines == [engine] * 2, double(1), there, ut.function(lambda x: x + 1)(1)]

    async def all_tasks() -> list[Any]:
        return await asyncio.gather(*map(task, ("reference", "waves", "demand")))

    assert asyncio.run(all_tasks()) == [[True, 2, 4, 2]] * 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child(program: Any) -> None:
    """It runs what its parent has captured, while other threads of the parent run, and captures anew."""
    over = threading.Event()
    program.fib(18)

    def keep_busy() -> None:
        while not over.is_set():
            program.fib(16)

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for number in range(3):
            child = os.fork()
            if child == 0:
                is_right = program.fib(18) == 2584 and ut.function(lambda x, k=number: x * k)(3) == 3 * number
                os._exit(0 if is_right else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        over.set()
        busy.join()


def test_dtypes_stay_themselves() -> None:
    for dtype in (ut.bool, ut.i32, ut.i64, ut.f32, ut.f64):
        assert pickle.loads(pickle.dumps(dtype)) is dtype and copy.deepcopy(dtype[3]).dtype is dtype
