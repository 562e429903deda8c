"""Sources nested thousands deep capture, print, check and run with Python's recursion limit at 200."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from tests.support.written import load_file

import undertow as ut
from undertow.ir import spec, text

BRANCHES = 5_000
OPERATORS = 10_000
HEAD = "import undertow as ut\n\n\n@ut.function\ndef f(n: ut.i64) -> ut.i64:\n"


def elif_chain() -> str:
    lines = ["    if n == 0:", "        return 7"]
    for k in range(1, BRANCHES):
        lines += [f"    elif n == {k}:", f"        return n * 2 + {k}"]
    return HEAD + "\n".join([*lines, "    else:", "        return -1"]) + "\n"


def early_returns() -> str:
    lines = [f"    if n == {k}:\n        return n * 2 + {k}" for k in range(1_000)]
    return HEAD + "\n".join([*lines, "    return -1"]) + "\n"


def operators() -> str:
    return HEAD + "    return " + " + ".join(["n"] * OPERATORS) + "\n"


def conditional_expressions() -> str:
    # CPython parses a nest of conditional expressions recursively: 1,000 is what its own parser takes.
    return HEAD + "    return " + "".join(f"{k} if n == {k} else " for k in range(1_000)) + "-1\n"


def on_large_stack(work: Callable[[], ModuleType]) -> ModuleType:
    """Python's own compiler recurses: it gets a large stack and a high limit, for the import only."""
    done: list[ModuleType] = []
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    try:
        threading.stack_size(512 << 20)
        sys.setrecursionlimit(100_000)
        thread = threading.Thread(target=lambda: done.append(work()))
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    return done[0]


def load(path: Path) -> ModuleType:
    return on_large_stack(lambda: load_file(path))


@contextmanager
def recursion_limit(limit: int) -> Iterator[None]:
    """A low limit above whatever the test runner itself stands on."""
    before = sys.getrecursionlimit()
    depth = 0
    frame = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(limit + depth)
    try:
        yield
        assert sys.getrecursionlimit() == limit + depth
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="CPython's own compiler has a fixed depth limit from 3.12 on")
@pytest.mark.parametrize(
    ("source", "cases"),
    [
        (elif_chain, [(0, 7), (4321, 4321 * 3), (BRANCHES + 1, -1)]),
        (early_returns, [(3, 9), (999, 999 * 3), (-5, -1)]),
        (operators, [(3, 3 * OPERATORS)]),
        (conditional_expressions, [(0, 0), (999, 999), (1000, -1)]),
    ],
    ids=["elif", "early returns", "operators", "conditional expressions"],
)
def test_deep_source(source: Callable[[], str], cases: list[tuple[int, int]], tmp_path: Path) -> None:
    path = tmp_path / "deep_source.py"
    path.write_text(source())
    function: ut.Function = load(path).f
    with recursion_limit(200):
        for argument, expected in cases:
            assert function(argument) == expected
        view = function.graph(0)
        printed = view.text()
        spec.check(view.library)
        spec.check(view.static)
    assert text.parse(printed) == view.static


@pytest.mark.slow
def test_deep_graph_from_a_shallow_source(tmp_path: Path) -> None:
    """Python runs the loop during capture: ten thousand operators in a chain, from three lines."""
    path = tmp_path / "unrolled.py"
    path.write_text(HEAD + f"    for k in range({OPERATORS}):\n        n = n + k\n    return n\n")
    function: ut.Function = load(path).f
    with recursion_limit(200):
        assert function(1) == 1 + sum(range(OPERATORS))
        assert function.run(1, simplify=False) == function(1)
        assert len(function.graph(0, simplify=False)) > OPERATORS
        assert str(function.graph(0, simplify=False))


def test_many_functions_that_call_each_other(tmp_path: Path) -> None:
    """A chain of calls through five hundred functions is captured without the host's stack."""
    count = 500
    parts = ["import undertow as ut\n"]
    for k in range(count):
        call = f"f{k + 1}(n + 1)" if k + 1 < count else "n"
        parts.append(f"\n@ut.function\ndef f{k}(n: ut.i64):\n    return {call}\n")
    path = tmp_path / "chain.py"
    path.write_text("\n".join(parts))
    function: ut.Function = load(path).f0
    with recursion_limit(200):
        assert function(0) == count - 1


@pytest.mark.parametrize("depth", [40, 5000, None])
def test_lists_that_nest_too_deep_are_refused(depth: int | None) -> None:
    """Depth is user data; a list that contains itself is endless."""

    @ut.function
    def f(x):
        nested = [x]
        for _ in range(depth or 1):
            nested = [nested]
        if depth is None:
            nested.append(nested)
        return ut.asarray(nested)

    with pytest.raises(ut.UndertowError, match="nested more than 32 deep"):
        f(1.0)
