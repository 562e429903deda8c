"""Changes of arrays that nobody else holds are made where they are; all others are made in a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.graphs import optimized

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.waves import WavesPlan

N = 40  # elements: more than what shares the memory of a table


def copies(f: Any, *arguments: Any, width: int = 4096) -> int:
    """How many arrays a run copied to change them. Its results are those of CPython."""
    plan = WavesPlan(optimized(f, *arguments), width)
    changed = 0
    run = plan.core.run

    class Core:
        def run(self, *args: Any, **named: Any) -> Any:
            nonlocal changed
            results, stats = run(*args, **named)
            changed = stats.changed
            return results, stats

    plan.core = Core()  # type: ignore[assignment]
    given = [np.asarray(x) for x in arguments]
    results, stats = plan.run(given, Options())
    fresh = [x.copy() if isinstance(x, np.ndarray) else x for x in arguments]
    wanted = f.run(*fresh, engine="python")
    for one, other in zip(results, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    puts = sum(count for node, count in stats.per_node.items() if "put" in node.rpartition("/")[2])
    return puts - changed


@ut.function
def fill(x: ut.f64[N], n: ut.i64):
    for k in range(n):
        x[k] = k * 2.0
    return x


@ut.function
def fill_open(x: ut.f64[None], n: ut.i64):
    for k in range(n):
        x[k] = k * 2.0
    x[n : n + 2] = x[:2]
    return x


def test_a_loop_copies_once() -> None:
    """The array of the caller is never changed: that is the copy."""
    assert copies(fill, np.zeros(N), 30) == 1
    assert copies(fill_open, np.zeros(500), 30) == 1


@ut.function
def queens(board: ut.i64[N], row: ut.i64, n: ut.i64) -> ut.i64:
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
def count_queens(board: ut.i64[N], n: ut.i64):
    return queens(board, 0, n), board


def test_a_board_that_is_handed_down_and_restored_is_not_copied() -> None:
    assert copies(count_queens, np.zeros(N, np.int64), 5) == 1


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
def sorted_array(x: ut.f64[None]):
    sort(x, 0, len(x))
    return x


def test_merge_sort_copies_once() -> None:
    assert copies(sorted_array, np.random.default_rng(3).normal(size=50)) == 1


@ut.function
def kept(x: ut.f64[N], n: ut.i64):
    """The old value is used afterwards."""
    before = x
    y = x.copy()
    y[n] = 1.0
    z = y.copy()
    z[n + 1] = 2.0
    y[0] = 3.0
    return before, y, z


@ut.function
def shared_by_lanes(x: ut.f64[N]):
    def own(k):
        y = x.copy()
        y[0] = k
        y[1] = y[0] + 1.0
        return y

    return ut.map(own, x[:4])


@ut.function
def some_lanes(x: ut.f64[N]):
    """Some lanes change theirs, and some leave their loop earlier."""

    def own(k):
        y = x * 1.0
        if k > 2.0:
            y[0] = k
        else:
            y[1] = k
        i = 0
        while i < k:
            y[i] += 1.0
            i += 1
        return y

    return ut.map(own, x[:5]), x


@ut.function
def sibling_calls(x: ut.f64[N], n: ut.i64) -> ut.f64:
    """Both calls are given one array, and each changes its own."""
    if n == 0:
        return ut.sum(x)
    a, b = x.copy(), x.copy()
    a[n] = 1.0
    b[n] = 2.0
    x[0] += 1.0
    return sibling_calls(a, n - 1) * 0.5 + sibling_calls(b, n - 1) + x[0]


@ut.function
def constant(n: ut.i64):
    x = np.zeros(N)
    x[n] = 1.0
    return x, np.zeros(N)


@ut.function
def early(x: ut.f64[N], n: ut.i64):
    """What a loop exits with."""
    y = x * 2.0
    for k in range(n):
        if y[k] > 8.0:
            return x, y, k
        y[k] = -1.0
    return x, y, n


NUMBERS = np.arange(float(N))


@pytest.mark.parametrize("width", [1, 2, 4096])
def test_arrays_that_others_hold_are_copied(width: int) -> None:
    assert copies(kept, NUMBERS, 3, width=width) > 0
    assert copies(shared_by_lanes, NUMBERS, width=width) > 0
    copies(some_lanes, NUMBERS, width=width)
    copies(constant, 3, width=width)
    copies(early, NUMBERS, 20, width=width)

    @ut.function
    def start(x: ut.f64[N], n: ut.i64):
        return sibling_calls(x, n), x

    copies(start, NUMBERS, 3, width=width)


def test_gradients() -> None:
    @ut.function
    def loss(x: ut.f64[N], n: ut.i64) -> ut.f64:
        y = x * 1.0
        for k in range(n):
            y[k + 1] = y[k] * y[k + 1]
        return ut.sum(y * y)

    ut.check_grads(loss, (NUMBERS / N, 5))


def test_a_fault_is_that_of_its_lane() -> None:
    """Lanes before it may have changed; what is told is its own index."""

    @ut.function
    def f(x: ut.f64[N], ks: ut.i64[3]):
        def own(k):
            y = x * 1.0
            y[0] = 5.0
            y[k] = 1.0
            y[np.array([1, 2])] = 7.0
            return y

        return ut.map(own, ks)

    with pytest.raises(ut.RunError, match="index 41"):
        f(NUMBERS, np.array([1, 41, 2]))


def test_a_plan_that_reads_what_was_overwritten_stops() -> None:
    @ut.function
    def f(x: ut.f64[N], n: ut.i64):
        y = x * 2.0
        z = ut.cumsum(y)
        y[n] = 1.0
        return ut.flip(y) + z

    plan = f.plan(NUMBERS, 3)
    text = str(plan)
    line = next(line for line in text.splitlines() if " = put(" in line)
    assert line.endswith("; last=0")
    made, changed = line.split(" = ")[0].strip(), line.split(") ")[1].split(",")[0]
    flipped = next(line for line in text.splitlines() if " = flip(" in line)
    wrong = text.replace(flipped, flipped.replace(f" {made}", f" {changed}"))
    np.testing.assert_array_equal(plan.parse(text).run(NUMBERS, 3), f(NUMBERS, 3))
    with pytest.raises(ut.GraphError, match="reads a column that was dropped"):
        plan.parse(wrong).run(NUMBERS, 3)


def test_a_plan_that_overwrites_no_operand_is_refused() -> None:
    @ut.function
    def f(x: ut.f64[N], n: ut.i64) -> ut.f64:
        return ut.sum(x) if n > 0 else 1.0

    plan = f.plan(NUMBERS, 1)
    text = str(plan)
    line = next(line for line in text.splitlines() if " = greater " in line)
    with pytest.raises(ut.UndertowError, match="the number of an operand is out of range"):
        plan.parse(text.replace(line, f"{line} ; last=7")).run(NUMBERS, 1)


# -- textbook programs --------------------------------------------------------------------------------------------


@ut.function
def partition_and_sort(a: ut.f64[None], lo: ut.i64, hi: ut.i64) -> None:
    if hi - lo < 2:
        return
    p = a[hi - 1]
    i = lo
    for j in range(lo, hi - 1):
        if a[j] < p:
            a[i], a[j] = a[j], a[i]
            i += 1
    a[i], a[hi - 1] = a[hi - 1], a[i]
    partition_and_sort(a, lo, i)
    partition_and_sort(a, i + 1, hi)


@ut.function
def quicksort(a: ut.f64[None]):
    partition_and_sort(a, 0, len(a))
    return a


@ut.function
def sift(a: ut.f64[None], i: ut.i64, n: ut.i64) -> None:
    while 2 * i + 1 < n:
        c = 2 * i + 1
        if c + 1 < n and a[c + 1] > a[c]:
            c += 1
        if a[i] >= a[c]:
            break
        a[i], a[c] = a[c], a[i]
        i = c


@ut.function
def heapsort(a: ut.f64[None]):
    n = len(a)
    for i in range(n // 2 - 1, -1, -1):
        sift(a, i, n)
    for e in range(n - 1, 0, -1):
        a[0], a[e] = a[e], a[0]
        sift(a, 0, e)
    return a


@ut.function
def find_root(p: ut.i64[None], x: ut.i64) -> ut.i64:
    if p[x] == x:
        return x
    r = find_root(p, p[x])
    p[x] = r
    return r


@ut.function
def unite(edges: ut.i64[None, 2], n: ut.i64):
    p = np.arange(n)
    rank = np.zeros(n, int)
    for k in range(len(edges)):
        a, b = find_root(p, edges[k, 0]), find_root(p, edges[k, 1])
        if a != b:
            if rank[a] < rank[b]:
                a, b = b, a
            p[b] = a
            if rank[a] == rank[b]:
                rank[a] += 1
    return p, rank


@ut.function
def order_from(adj: ut.i64[None, None], seen: ut.bool[None], order: ut.i64[None], v: ut.i64, t: ut.i64) -> ut.i64:
    if seen[v]:
        return t
    seen[v] = True
    for k in range(adj.shape[1]):
        t = order_from(adj, seen, order, adj[v, k], t)
    order[t] = v
    return t + 1


@ut.function
def toposort(adj: ut.i64[None, None]):
    seen = np.zeros(len(adj), bool)
    order = np.zeros(len(adj), int)
    t = order_from(adj, seen, order, 0, 0)
    return seen, order, t


@ut.function
def decompose(a: ut.f64[None, None]):
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    return a


@ut.function
def shortest_paths(d: ut.f64[14, 14]):
    for k in range(14):
        for i in range(len(d)):
            for j in range(len(d)):
                d[i, j] = min(d[i, j], d[i, k] + d[k, j])
    return d


@ut.function
def levenshtein(a: ut.i64[None], b: ut.i64[None]):
    d = np.zeros((len(a) + 1, len(b) + 1), int)
    for i in range(len(a) + 1):
        d[i, 0] = i
    for j in range(len(b) + 1):
        d[0, j] = j
    for i in range(len(a)):
        for j in range(len(b)):
            c = 0 if a[i] == b[j] else 1
            d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + c)
    return d


@ut.function
def life(g: ut.i64[None, None], steps: ut.i64):
    n = len(g)
    for _ in range(steps):
        h = g.copy()
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                s = g[i - 1 : i + 2, j - 1 : j + 2].sum() - g[i, j]
                if s == 3 or (s == 2 and g[i, j] == 1):
                    h[i, j] = 1
                else:
                    h[i, j] = 0
        g = h
    return g


@ut.function
def fill_square(g: ut.i64[None, None], p: ut.i64) -> ut.bool:
    n = g.shape[0]
    if p == n * n:
        return True
    r, c = p // n, p % n
    if g[r, c] != 0:
        return fill_square(g, p + 1)
    for v in range(1, n + 1):
        ok = True
        for k in range(n):
            if g[r, k] == v or g[k, c] == v:
                ok = False
        if ok:
            g[r, c] = v
            if fill_square(g, p + 1):
                return True
            g[r, c] = 0
    return False


@ut.function
def latin_square(g: ut.i64[None, None]):
    return fill_square(g, 0), g


@ut.function
def permute(a: ut.i64[None], k: ut.i64) -> ut.i64:
    if k == 4:
        return a[0] * 3 + a[1] * 2 + a[2]
    t = 0
    for i in range(k, 4):
        a[i], a[k] = a[k], a[i]
        t = t * 3 % 1009 + permute(a, k + 1)
        a[i], a[k] = a[k], a[i]
    return t


@ut.function
def permutations(a: ut.i64[None]):
    return permute(a, 0), a


@ut.function
def remember(n: ut.i64, seen: ut.i64[None]) -> ut.i64:
    if n < 2:
        return n
    if seen[n] != 0:
        return seen[n]
    v = remember(n - 1, seen) + remember(n - 2, seen)
    seen[n] = v
    return v


@ut.function
def fibonacci(n: ut.i64):
    seen = np.zeros(n + 200, int)
    return remember(n, seen), seen


_RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("function", "arguments", "most"),
    [
        (quicksort, (_RANDOM.normal(size=300),), 1),
        (heapsort, (_RANDOM.normal(size=300),), 1),
        (unite, (_RANDOM.integers(0, 200, (150, 2)), 200), 0),
        (toposort, (_RANDOM.integers(0, 200, (200, 3)),), 0),
        (decompose, (_RANDOM.uniform(1, 2, size=(14, 14)),), 1),
        (shortest_paths, (_RANDOM.uniform(size=(14, 14)),), 1),
        (levenshtein, (_RANDOM.integers(0, 5, 30), _RANDOM.integers(0, 5, 25)), 0),
        (life, (_RANDOM.integers(0, 2, (12, 12)), 3), 3),
        (latin_square, (np.eye(9, dtype=np.int64),), 1),
        (permutations, (np.arange(200),), 1),
        (fibonacci, (60,), 0),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_programs_copy_what_they_were_given_at_most(function: Any, arguments: tuple[Any, ...], most: int) -> None:
    """The caller's own array once, and what the program copies itself (`life` does in each step)."""
    assert copies(function, *arguments) == most


@ut.function
def fill_back(x: ut.i64[None], n: ut.i64) -> None:
    """The call comes before the change, so it hands on what it was given."""
    if n > 0:
        fill_back(x, n - 1)
        x[n] = n


@ut.function
def filled_often(x: ut.i64[None]):
    for k in range(len(x) // 10):
        fill_back(x, k % 5)
    return x


def test_an_entry_does_not_hold_an_array_that_is_changed() -> None:
    assert copies(filled_often, np.zeros(300, np.int64)) == 1
