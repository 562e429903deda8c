"""Loops whose iterations do not need each other: reductions, conditions, filled arrays, nested loops, draws."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def weigh(w: ut.f64[3], n: ut.i64) -> ut.f64:
    """A sum of floats, in the program's order."""
    if n <= 0:
        return w[0] + 0.1
    total = w[1]
    for k in range(n):
        total += weigh(w * 0.7, k) / (k + 1)
    return total


@ut.function
def minimax(board: ut.i64[6], player: ut.i64, left: ut.i64) -> ut.i64:
    """A condition, and a board for each call; the loop is unrolled."""
    if left == 0:
        return board[0] + 3 * board[1] - board[2] + 2 * board[3] * board[4] - board[5]
    best = -100
    for i in range(6):
        if board[i] == 0:
            after = board.copy()
            after[i] = player
            best = max(best, -minimax(after, 3 - player, left - 1))
    return best


@ut.function
def minimax_to(board: ut.i64[6], player: ut.i64, left: ut.i64, size: ut.i64) -> ut.i64:
    """The same with a bound known at run time; the place of the best move counts, too."""
    if left == 0:
        return board[0] + 3 * board[1] - board[2] + 2 * board[3] * board[4] - board[5]
    best, at = -100, -1
    for i in range(size):
        if board[i] == 0:
            after = board.copy()
            after[i] = player
            score = -minimax_to(after, 3 - player, left - 1, size)
            if score > best:
                best, at = score, i
    return best + at


@ut.function
def fill_table(w: ut.f64[2], n: ut.i64) -> ut.f64:
    """An array filled by calls, backwards, and what is left of the variables afterwards."""
    if n <= 1:
        return w[0]
    table = np.zeros(8)
    last = w[1]
    k = n - 1
    while k >= 0:
        table[k] = fill_table(w + 0.5, k - 1)
        last = table[k] - last
        k -= 2
    return table.sum() + last + k


@ut.function
def any_and_all_in_a_loop(w: ut.i64[2], n: ut.i64) -> ut.bool:
    """Flags; the second is asked only where the first says so."""
    if n <= 0:
        return w[0] % 2 == 0
    found, each, count = False, True, 0
    for k in range(n):
        odd = any_and_all_in_a_loop(w + k, k)
        found = found or odd
        if k % 2 == 1 and odd:
            each = each and any_and_all_in_a_loop(w - k, k - 2)
            count += 1
    return (found and not each) or count == 2


@ut.function
def pairs(w: ut.i64[2], n: ut.i64) -> ut.i64:
    """Nested loops, the inner as long as the outer says."""
    if n <= 0:
        return w[0] - w[1]
    total = 1
    for i in range(1, n + 1):
        for j in range(i):
            if (i + j) % 2 == 0:
                total += pairs(w * 2 + j, i - 2)
            total = total * 3 % 1009
    return total


@ut.function
def waiting(w: ut.i64[2], n: ut.i64) -> ut.i64:
    """Some calls need what iterations before gave, or happen only because of it."""
    if n <= 0:
        return w.sum()
    total = n
    for k in range(0, n, 2):
        first = waiting(w + 1, k)
        if total % 2 == 0:
            total += waiting(w, k - 1)
        total += first + waiting(w + total % 3, k - 2)
    return total


@ut.function
def added_rows(w: ut.f64[2], n: ut.i64) -> ut.f64[2]:
    """Results that are arrays; a call in the test of a conditional expression."""
    if n <= 0:
        return w
    total = w * 0.5
    for k in range(n):
        row = added_rows(w[::-1] + k, k - 1) if added_rows(w, k - 2)[0] > 0.5 else w
        total = total + row * 0.25
    return total


@ut.function
def dice(n: ut.i64) -> ut.f64:
    """Draws in and beside the calls."""
    if n <= 0:
        return ut.random.uniform()
    total = ut.random.uniform()
    for k in range(n - 1, -1, -1):
        if ut.random.uniform() < 0.7:
            total += dice(k) * ut.random.uniform()
    return total


@ut.function
def two_branches(w: ut.i64[2], n: ut.i64) -> ut.i64:
    """Calls in branches that hand a value on."""
    if n <= 0:
        return w[0]
    total = w[1]
    if n % 3 != 0:
        total = total * 2 + two_branches(w + 1, n - 1)
    if n % 2 == 0:
        total = total * 3 - two_branches(w - 1, n - 2)
        if n % 4 == 0:
            total += two_branches(w * 2, n - 3) + two_branches(w + total, n - 4)
    if total % 2 == 0:
        total += two_branches(w, n - 3)
    return total


_W, _B, _P = np.array([0.5, 1.25, -2.0]), np.zeros(6, np.int64), np.array([3, 4])

PROGRAMS = [
    program(weigh, (_W, 0), (_W, 1), (_W, 6), tags="loop recursive arrays"),
    program(minimax, (_B, 1, 4), (np.array([0, 1, 0, 2, 0, 0]), 1, 4), tags="loop recursive arrays branch"),
    program(minimax_to, (_B, 1, 3, 6), (_B, 2, 2, 0), tags="loop recursive arrays branch"),
    program(fill_table, (_W[:2], 1), (_W[:2], 8), (_W[:2], 7), tags="loop recursive arrays"),
    program(
        any_and_all_in_a_loop,
        (np.array([1, 2]), 0),
        (np.array([1, 2]), 6),
        (np.array([4, 0]), 5),
        tags="loop recursive arrays",
    ),
    program(pairs, (_P, 0), (_P, 5), tags="loop recursive arrays branch"),
    program(waiting, (_P, 1), (_P, 6), tags="loop recursive arrays branch"),
    program(added_rows, (_W[:2], 0), (_W[:2], 5), tags="loop recursive arrays"),
    program(dice, (0,), (5,), tags="loop recursive random", seed=7),
    program(two_branches, (_P, 0), (_P, 9), tags="recursive arrays branch"),
]
