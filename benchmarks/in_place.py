"""Arrays that change in place: filling one in a loop, n-queens on a board, merge sort, flood fill.

Claims: the time for each element that a loop fills does not grow with the array; nor does that of a call with the board
that it is handed. CPython runs the same functions, and Numba where it is installed.
Usage: python benchmarks/in_place.py [--quick] [--repeat N] [--json FILE]
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np

import undertow as ut

try:
    import numba
except ImportError:
    numba = None

RIVALS = ("waves", "CPython", "Numba")
BAR = 1.5  # what grows by less is constant, but for caches


@ut.function
def fill(x: ut.f64[None]):
    for k in range(len(x)):
        x[k] = k * 2.0
    return x


@ut.function
def queens(board: ut.i64[None], row: ut.i64, n: ut.i64) -> ut.i64:
    if row == n:
        return 1
    count = 0
    for column in range(n):
        is_free = True
        for k in range(row):
            ahead = board[k] - column
            if ahead == 0 or ahead == row - k or ahead == k - row:
                is_free = False
        if is_free:
            board[row] = column
            count += queens(board, row + 1, n)
            board[row] = -1
    return count


@ut.function
def count_queens(board: ut.i64[None]):
    return queens(board, 0, 6), board


@ut.function
def sort(x: ut.f64[None], low: ut.i64, high: ut.i64) -> None:
    if high - low < 2:
        return
    middle = (low + high) // 2
    sort(x, low, middle)
    sort(x, middle, high)
    left, right = x[low:middle].copy(), x[middle:high].copy()
    i, j = 0, 0
    for k in range(low, high):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            x[k] = left[i]
            i += 1
        else:
            x[k] = right[j]
            j += 1


@ut.function
def merge_sort(x: ut.f64[None]):
    sort(x, 0, len(x))
    return x


@ut.function
def flood(grid: ut.i64[None, None], i: ut.i64, j: ut.i64) -> None:
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1]:
        return
    if grid[i, j] != 0:
        return
    grid[i, j] = 2
    flood(grid, i + 1, j)
    flood(grid, i - 1, j)
    flood(grid, i, j + 1)
    flood(grid, i, j - 1)


@ut.function
def flooded(grid: ut.i64[None, None]):
    flood(grid, 0, 0)
    return grid


def plain_fill(x: Any) -> Any:
    for k in range(len(x)):
        x[k] = k * 2.0
    return x


def main() -> None:
    options = common.parser(__doc__, 5).parse_args()
    sys.setrecursionlimit(100_000)
    random = np.random.default_rng(0)
    cases: list[tuple[str, int, Any, Callable[[], Any]]] = [
        (f"fill {n:,}", n, fill, partial(np.zeros, n)) for n in (1_000, 10_000, 100_000, 1_000_000)
    ]
    for size in (8, 1_000, 100_000):
        cases.append((f"6 queens, board of {size:,}", 149, count_queens, partial(np.zeros, size, np.int64)))
    for n in (100, 1_000, 10_000):
        cases.append((f"merge sort {n:,}", n, merge_sort, random.normal(size=n).copy))
    for n in (8, 32, 64):
        cases.append((f"flood fill {n} x {n}", n * n, flooded, partial(np.zeros, (n, n), np.int64)))
    # The recursive programs need declared types in Numba.
    compiled = None if numba is None else numba.njit(plain_fill)
    rows, figures = [], {}
    each: dict[Any, list[float]] = {}
    for name, count, function, make in cases:
        if options.quick and count > 10_000:
            continue
        given = make()
        works = {"waves": partial(function, given)}
        if compiled is not None and function is fill:
            works["Numba"] = partial(compiled, make())
        for work in works.values():
            work()
        times = common.measure(works, options.repeat)
        slow = common.Times()
        slow.add(lambda function=function, make=make: function.run(make(), engine="python"))
        found = {rival: 1e9 * known.best / count for rival, known in [*times.items(), ("CPython", slow)]}
        figures[name] = found
        rows.append([name, *(f"{found[rival]:,.1f}" if rival in found else "-" for rival in RIVALS)])
        each.setdefault(function, []).append(found["waves"])
    common.table("Nanoseconds for each element or call", ["program", *RIVALS], rows)
    for function, said in ((fill, "An element that is filled"), (count_queens, "A call with the board")):
        growth = each[function][-1] / min(each[function])
        print(
            f"{said}: {growth:.2f} times as long in the largest array, {'under' if growth < BAR else 'OVER'} {BAR:g}."
        )
    common.write(options.json, {"nanoseconds": figures})


if __name__ == "__main__":
    main()
