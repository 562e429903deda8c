"""What a run counts is what the source says: calls made, calls nested, nodes fired."""

from __future__ import annotations

import pytest
from tests.programs import find
from tests.support.engines import EVERY

# Counted by hand-instrumented Python, which knows nothing of how programs are loaded: (name, arguments, calls, depth).


def count_fibonacci(n: int) -> tuple[int, int]:
    calls = deepest = 0

    def fibonacci(n: int, depth: int) -> int:
        nonlocal calls, deepest
        calls, deepest = calls + 1, max(deepest, depth)
        return n if n < 2 else fibonacci(n - 1, depth + 1) + fibonacci(n - 2, depth + 1)

    fibonacci(n, 1)
    return calls, deepest


def count_ackermann(m: int, n: int) -> tuple[int, int]:
    calls = deepest = 0

    def ackermann(m: int, n: int, depth: int) -> int:
        nonlocal calls, deepest
        calls, deepest = calls + 1, max(deepest, depth)
        if m == 0:
            return n + 1
        if n == 0:
            return ackermann(m - 1, 1, depth + 1)
        return ackermann(m - 1, ackermann(m, n - 1, depth + 1), depth + 1)

    ackermann(m, n, 1)
    return calls, deepest


def count_takeuchi(x: int, y: int, z: int) -> tuple[int, int]:
    calls = deepest = 0

    def takeuchi(x: int, y: int, z: int, depth: int) -> int:
        nonlocal calls, deepest
        calls, deepest = calls + 1, max(deepest, depth)
        if x <= y:
            return z
        inner = depth + 1
        return takeuchi(takeuchi(x - 1, y, z, inner), takeuchi(y - 1, z, x, inner), takeuchi(z - 1, x, y, inner), inner)

    takeuchi(x, y, z, 1)
    return calls, deepest


COUNTERS = {"fibonacci": count_fibonacci, "ackermann": count_ackermann, "takeuchi": count_takeuchi}


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("name", COUNTERS)
def test_activations_and_depth(name: str, engine: str) -> None:
    program = find(name)
    for case, args in enumerate(program.cases):
        _, stats = program.run(case, engine=engine)
        assert (stats.activations, stats.max_depth) == COUNTERS[name](*args)


@pytest.mark.parametrize("engine", EVERY)
def test_loops_and_maps_add_no_depth(engine: str) -> None:
    for name in ("triangle", "table", "squares"):
        program = find(name)
        _, stats = program.run(0, engine=engine)
        assert (stats.activations, stats.max_depth) == (1, 1)


@pytest.mark.parametrize("options", [{"scheduler": s, "schedule_seed": 4} for s in ("fifo", "lifo", "random")], ids=str)
def test_a_call_fires_each_of_its_nodes_once(options: dict[str, object]) -> None:
    """In the reference engine: as many starts as calls, and no node of a body fires more often than it is entered."""
    program = find("fibonacci")
    _, static = program.capture(0)
    _, stats = program.run(3, engine="reference", **options)
    starts = [node.name for node in static.nodes if node.op == "call_start"]
    assert sum(stats.per_node[name] for name in starts) == stats.activations
    assert max(stats.per_node.values()) == stats.activations
    assert sum(stats.per_node.values()) == stats.firings
    assert stats.peak_frames <= stats.activations + 1
