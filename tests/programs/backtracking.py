"""Backtracking: arrays that are changed, handed down and restored, and such as only look like it."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def place(cols: ut.bool[8], d1: ut.bool[15], d2: ut.bool[15], row: ut.i64, n: ut.i64) -> ut.i64:
    if row == n:
        return 1
    count = 0
    for c in range(n):
        if not cols[c] and not d1[row + c] and not d2[row - c + n - 1]:
            cols[c] = True
            d1[row + c] = True
            d2[row - c + n - 1] = True
            count += place(cols, d1, d2, row + 1, n)
            cols[c] = False
            d1[row + c] = False
            d2[row - c + n - 1] = False
    return count


@ut.function
def nqueens(cols: ut.bool[8], d1: ut.bool[15], d2: ut.bool[15], n: ut.i64):
    return place(cols, d1, d2, 0, n), cols, d1, d2


@ut.function
def place_or_continue(cols: ut.bool[8], d1: ut.bool[15], d2: ut.bool[15], row: ut.i64, n: ut.i64) -> ut.i64:
    if row == n:
        return 1
    count = 0
    for c in range(n):
        if cols[c] or d1[row + c] or d2[row - c + n - 1]:
            continue
        cols[c] = d1[row + c] = d2[row - c + n - 1] = True
        count += place_or_continue(cols, d1, d2, row + 1, n)
        cols[c] = d1[row + c] = d2[row - c + n - 1] = False
    return count


@ut.function
def nqueens_continue(cols: ut.bool[8], d1: ut.bool[15], d2: ut.bool[15], n: ut.i64):
    return place_or_continue(cols, d1, d2, 0, n), cols, d1, d2


@ut.function
def permute(a: ut.i64[4], k: ut.i64) -> ut.i64:
    if k == 4:
        return a[0] * 64 + a[1] * 16 + a[2] * 4 + a[3]
    best = 0
    for i in range(k, 4):
        a[i], a[k] = a[k], a[i]
        v = permute(a, k + 1)
        if v % 7 != 3:
            best = best * 3 % 1009 + v
        a[i], a[k] = a[k], a[i]
    return best


@ut.function
def perms(a: ut.i64[4]):
    return permute(a, 0), a


@ut.function
def pay(left: ut.i64[3], total: ut.i64, n: ut.i64) -> ut.i64:
    if total == 0:
        return 1
    if total < 0:
        return 0
    ways = 0
    for i in range(n):
        if left[i] > 0:
            left[i] -= 1
            ways += pay(left, total - i - 1, n)
            left[i] += 1
    return ways


@ut.function
def coin_ways(left: ut.i64[3], total: ut.i64, n: ut.i64):
    return pay(left, total, n), left


@ut.function
def choose(x: ut.i64[6], chosen: ut.i64[6], k: ut.i64, left: ut.i64) -> ut.i64:
    if k == 6:
        return ut.sum(chosen) if left == 0 else 0
    old = chosen[k]
    chosen[k] = 1
    a = choose(x, chosen, k + 1, left - x[k])
    chosen[k] = old
    b = choose(x, chosen, k + 1, left)
    return a + b


@ut.function
def subsets(x: ut.i64[6], chosen: ut.i64[6], left: ut.i64):
    return choose(x, chosen, 0, left), chosen


@ut.function
def solve(g: ut.i64[4, 4], p: ut.i64, n: ut.i64) -> ut.i64:
    if p == n * n:
        return 1
    r, c = p // n, p % n
    if g[r, c] != 0:
        return solve(g, p + 1, n)
    count = 0
    for v in range(1, n + 1):
        ok = True
        for k in range(n):
            if g[r, k] == v or g[k, c] == v or g[r // 2 * 2 + k // 2, c // 2 * 2 + k % 2] == v:
                ok = False
        if ok:
            g[r, c] = v
            count += solve(g, p + 1, n)
            g[r, c] = 0
    return count


@ut.function
def sudoku(g: ut.i64[4, 4], n: ut.i64):
    return solve(g, 0, n), g


@ut.function
def step(seen: ut.bool[3, 3], r: ut.i64, c: ut.i64, left: ut.i64) -> ut.i64:
    if r < 0 or c < 0 or r >= 3 or c >= 3:
        return 0
    if seen[r, c]:
        return 0
    if left == 0:
        return 1
    seen[r, c] = True
    t = step(seen, r + 1, c, left - 1) + step(seen, r - 1, c, left - 1)
    t += step(seen, r, c + 1, left - 1) + step(seen, r, c - 1, left - 1)
    seen[r, c] = False
    return t


@ut.function
def walks(seen: ut.bool[3, 3], r: ut.i64, c: ut.i64, left: ut.i64):
    return step(seen, r, c, left), seen


@ut.function
def visit(adj: ut.bool[5, 5], seen: ut.bool[5], v: ut.i64, left: ut.i64, n: ut.i64) -> ut.i64:
    if left == 0:
        return 1
    t = 0
    for u in range(n):
        if adj[v, u] and not seen[u]:
            seen[u] = True
            t += visit(adj, seen, u, left - 1, n)
            seen[u] = False
    return t


@ut.function
def hpaths(adj: ut.bool[5, 5], seen: ut.bool[5], n: ut.i64):
    return visit(adj, seen, 0, 4, n), seen


# -- not restored, or not always --------------------------------------------------------------------------------


@ut.function
def restored_sometimes(x: ut.i64[5], n: ut.i64) -> ut.i64:
    if n == 0:
        return x[0] + 2 * x[1] + 4 * x[2]
    t = 0
    for i in range(5):
        if x[i] == 0:
            x[i] = n
            t += restored_sometimes(x, n - 1)
            x[i] = 0 if n > 1 else 1
    return t


@ut.function
def not_always(x: ut.i64[5], n: ut.i64):
    return restored_sometimes(x, n), x


@ut.function
def restored_to_another(x: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return x[0] + 2 * x[1] + 4 * x[2]
    t = 0
    for i in range(m):
        x[i] = n
        t += restored_to_another(x, n - 1, m)
        x[i] = 0
    return t


@ut.function
def unknown_before(x: ut.i64[5], n: ut.i64, m: ut.i64):
    return restored_to_another(x, n, m), x


@ut.function
def restored_to_zero(x: ut.f64[5], n: ut.i64, m: ut.i64) -> ut.f64:
    if n == 0:
        return x[0] + 1.0 / (x[1] + 1e-300)
    t = 0.0
    for i in range(m):
        if x[i] == 0.0:
            x[i] = n * 0.5
            t += restored_to_zero(x, n - 1, m)
            x[i] = 0.0
    return t


@ut.function
def negative_zeros(x: ut.f64[5], n: ut.i64, m: ut.i64):
    return restored_to_zero(x, n, m), x


@ut.function
def in_two_places(x: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return x[0] + 2 * x[1] + 4 * x[2]
    t = 0
    for i in range(m):
        j = (i * n) % 5
        a, b = x[i], x[j]
        x[i] = n
        x[j] = n + 1
        t += in_two_places(x, n - 1, m)
        x[j] = b
        x[i] = a
        t = t * 3 % 1009
    return t


@ut.function
def two_places(x: ut.i64[5], n: ut.i64, m: ut.i64):
    return in_two_places(x, n, m), x


@ut.function
def restored_in_the_wrong_order(x: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return x[0] + 2 * x[1] + 4 * x[2]
    t = 0
    for i in range(m):
        j = (i * n) % 5
        a = x[i]
        x[i] = n
        b = x[j]
        x[j] = n + 1
        t += restored_in_the_wrong_order(x, n - 1, m)
        x[i] = a
        x[j] = b
        t = t * 3 % 1009
    return t


@ut.function
def wrong_order(x: ut.i64[5], n: ut.i64, m: ut.i64):
    return restored_in_the_wrong_order(x, n, m), x


@ut.function
def changed_by_leaves(x: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        x[4] += 1
        return x[0] + 2 * x[1] + 4 * x[2] + x[4]
    t = 0
    for i in range(m):
        if x[i] == 0:
            x[i] = n
            t += changed_by_leaves(x, n - 1, m)
            x[i] = 0
    return t


@ut.function
def counts_leaves(x: ut.i64[5], n: ut.i64, m: ut.i64):
    return changed_by_leaves(x, n, m), x


@ut.function
def left_changed(x: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.bool:
    if n == 0:
        return x[0] > x[1]
    for i in range(m):
        if x[i] == 0:
            x[i] = n
            if left_changed(x, n - 1, m):
                return True
            x[i] = 0
    return False


@ut.function
def stops(x: ut.i64[5], n: ut.i64, m: ut.i64):
    return left_changed(x, n, m), x


@ut.function
def upper(x: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return x.sum()
    t = 0
    for i in range(m):
        x[i] += n
        t += lower(x, n - 1, m)
        x[i] -= n
    return t


@ut.function
def lower(y: ut.i64[5], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return y[0] * y[1]
    t = 1
    for i in range(m - 1):
        o = y[i + 1]
        y[i + 1] = t
        t += upper(y, n - 1, m)
        y[i + 1] = o
    return t


@ut.function
def mutual_boards(x: ut.i64[5], n: ut.i64, m: ut.i64):
    return upper(x, n, m), x


@ut.function
def weigh_down(x: ut.f64[5], w: ut.f64, n: ut.i64, m: ut.i64) -> ut.f64:
    if n == 0:
        return (x * x).sum()
    t = 0.0
    for i in range(m):
        o = x[i]
        x[i] = o * w
        t += weigh_down(x, w, n - 1, m)
        x[i] = o
    return t


@ut.function
def floats(x: ut.f64[5], w: ut.f64, n: ut.i64, m: ut.i64):
    return weigh_down(x, w, n, m), x


@ut.function
def slice_up(x: ut.i64[6], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return x[0] * 3 + x[3] * 5 - x[5]
    t = 0
    for i in range(m):
        old = x[1:4].copy()
        x[1:4] = x[1:4] * 2 + i
        t += slice_up(x, n - 1, m)
        x[1:4] = old
    return t


@ut.function
def sliced(x: ut.i64[6], n: ut.i64, m: ut.i64):
    return slice_up(x, n, m), x


_ZEROS = np.zeros(5, np.int64)
_FREE = np.zeros(8, np.bool_), np.zeros(15, np.bool_), np.zeros(15, np.bool_)
_DOWN = np.array([5, 4, 3, 2, 1])
_SUDOKU = np.array([[1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 3, 0], [0, 0, 0, 0]])

PROGRAMS = [
    program(nqueens, (*_FREE, 0), (*_FREE, 5), tags="loop recursive arrays branch"),
    program(nqueens_continue, (*_FREE, 5), tags="loop recursive arrays branch"),
    program(perms, (np.arange(4),), tags="recursive arrays"),
    program(coin_ways, (np.array([2, 3, 1]), 5, 3), tags="loop recursive arrays branch"),
    program(subsets, (np.array([1, 2, 3, 4, 5, 6]), np.zeros(6, np.int64), 9), tags="recursive arrays branch"),
    program(sudoku, (_SUDOKU, 4), tags="loop recursive arrays branch"),
    program(walks, (np.zeros((3, 3), np.bool_), 1, 1, 5), tags="recursive arrays branch"),
    program(hpaths, (~np.eye(5, dtype=bool), np.arange(5) == 0, 5), tags="loop recursive arrays branch"),
    program(not_always, (_ZEROS, 3), tags="recursive arrays branch"),
    program(unknown_before, (_DOWN, 3, 4), (_ZEROS, 2, 5), tags="loop recursive arrays"),
    program(negative_zeros, (np.array([-0.0, -0.0, 0.0, -0.0, 1.0]), 3, 4), tags="loop recursive arrays branch"),
    program(two_places, (_DOWN, 3, 4), tags="loop recursive arrays"),
    program(wrong_order, (_DOWN, 3, 4), tags="loop recursive arrays"),
    program(counts_leaves, (_ZEROS, 2, 5), tags="loop recursive arrays branch"),
    program(stops, (_ZEROS, 2, 5), tags="loop recursive arrays branch"),
    program(mutual_boards, (_DOWN, 4, 3), tags="loop recursive arrays"),
    program(floats, (np.array([0.5, 4, 3, 2, 1]), 0.5, 3, 3), tags="loop recursive arrays"),
    program(sliced, (np.arange(6), 3, 3), tags="loop recursive arrays"),
]
