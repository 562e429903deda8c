"""Arrays that change in place: filling one in a loop, n-queens on a board, merge sort, flood fill.

Claims: the time for each element that a loop fills does not grow with the array; nor does that of a call with the board
that it is handed. CPython runs the same functions, and Numba where it is installed.
Usage: python benchmarks/in_place.py [--quick] [--repeat N]
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import undertow as ut

try:
    import numba
except ImportError:
    numba = None


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
def count_queens(board: ut.i64[None], n: ut.i64):
    return queens(board, 0, n), board


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


def seconds(work: Callable[[], Any], repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return best


def compiled(function: Any) -> Any:
    """The filling loop by Numba; the recursive programs need declared types there."""
    return None if numba is None else numba.njit(function)


def plain_fill(x: Any) -> Any:
    for k in range(len(x)):
        x[k] = k * 2.0
    return x


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    sys.setrecursionlimit(100_000)
    random = np.random.default_rng(0)
    cases: list[tuple[str, int, Any, Callable[[], tuple[Any, ...]]]] = [
        (f"fill {n:,}", n, fill, lambda n=n: (np.zeros(n),)) for n in (1_000, 10_000, 100_000, 1_000_000)
    ]
    for size in (8, 1_000, 100_000):
        cases.append((f"6 queens, board of {size:,}", 149, count_queens, lambda s=size: (np.zeros(s, np.int64), 6)))
    for n in (100, 1_000, 10_000):
        values = random.normal(size=n)
        cases.append((f"merge sort {n:,}", n, merge_sort, lambda values=values: (values.copy(),)))
    for n in (8, 32, 64):
        cases.append((f"flood fill {n} x {n}", n * n, flooded, lambda n=n: (np.zeros((n, n), np.int64),)))
    fast = compiled(plain_fill)
    print(f"{'':28}{'waves':>12}{'CPython':>12}{'Numba':>12}   ns for each element or call")
    for name, count, function, arguments in cases:
        if options.quick and count > 10_000:
            continue
        given = arguments()
        function(*given)
        ours = seconds(lambda f=function, given=given: f(*given), options.repeat)
        python = seconds(lambda f=function, make=arguments: f.run(*make(), engine="python"), 1)
        shown = f"{name:28}{ours / count * 1e9:12.0f}{python / count * 1e9:12.0f}"
        if fast is not None and function is fill:
            own = given[0].copy()
            fast(own)
            shown += f"{seconds(lambda x=own: fast(x), options.repeat) / count * 1e9:12.1f}"
        print(shown, flush=True)


if __name__ == "__main__":
    main()
