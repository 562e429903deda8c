"""Comprehensions over run-time lengths, lists of lists, and recursive functions that take and return lists."""

from collections import deque

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def squares_collected(n: ut.i64):
    return (
        [i * i for i in range(n)],
        [i * i for i in range(n) if i % 2 == 1],
        [(i, j) for i in range(n) for j in range(i)],
    )


@ut.function
def from_arrays(x: ut.f64[None]):
    doubled = [v * 2 for v in x if v > 0]
    return doubled, sum([v for v in x]), [i + v for i, v in enumerate(x)], [a * b for a, b in zip(x, reversed(x))]  # noqa: B905, C416


@ut.function
def every_way_to_list(n: ut.i64):
    chosen = [x for x in [3, 1, 2] if x > n % 3]
    pairs = list(enumerate(range(n)))
    return (
        list(range(n)), list(map(lambda v: v + 1, range(n))), list(filter(lambda v: v % 3, range(n))), pairs,  # noqa: C417
        sorted(chosen), sorted(chosen, reverse=True), chosen[::-1], len(chosen), [x for x, _ in pairs],
    )  # fmt: skip


@ut.function
def every_method(n: ut.i64):
    items = [0] * n
    for i in range(n):
        items[i] += i * i % 5
    ordered = [*range(3)] * 2
    by_hand = items.copy()
    by_hand.sort(reverse=True)
    by_hand.reverse()
    by_hand.remove(1)
    del by_hand[0]
    cut = items[:]
    cut[1:3] = [7, 7, 7]
    del cut[-2:]
    return (
        items,
        by_hand,
        cut,
        items.count(4),
        items.index(4),
        items == cut,
        items != items[:],
        4 in items,
        ordered,
        [1, 2] * n,
    )


@ut.function
def tuples(n: ut.i64):
    points = [(i, (i - 2) * (i - 2)) for i in range(n)]
    total = 0
    for a, b in points:
        total += a * 2 + b
    nearest = min(points, key=lambda p: p[1])
    points.sort(key=lambda p: (p[1], -p[0]))
    return points, total, max(points), nearest, (1, 1) in points, (1, 2) in points, np.array(points)


@ut.function
def common_subsequence(a: ut.i64[None], b: ut.i64[None]) -> ut.i64:
    n, m = len(a), len(b)
    table = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                table[i][j] = table[i - 1][j - 1] + 1
            else:
                table[i][j] = max(table[i - 1][j], table[i][j - 1])
    return table[n][m]


@ut.function
def lists_of_lists(n: ut.i64, m: ut.i64):
    a = [[i * m + j for j in range(m)] for i in range(n)]
    b = [[a[i][j] for i in range(n)] for j in range(m)]
    a[0], a[1] = a[1], a[0]
    row = a[1]
    row[0] = 77
    a[-1].append(5)
    triangle = []
    for i in range(n):
        new = [1]
        for j in range(1, i):
            new.append(triangle[i - 1][j - 1] + triangle[i - 1][j])
        if i > 0:
            new.append(1)
        triangle.append(new)
    return a, b, triangle, [len(row) for row in triangle], sum(a[0]), np.array(b)


@ut.function
def distances(edges: list[tuple[int, int]], n: ut.i64, start: ut.i64):
    near = [[] for _ in range(n)]
    for u, v in edges:
        near[u].append(v)
        near[v].append(u)
    found = [-1] * n
    found[start] = 0
    queue = deque([start])
    while queue:
        u = queue.popleft()
        for v in near[u]:
            if found[v] == -1:
                found[v] = found[u] + 1
                queue.append(v)
    return found


@ut.function
def visit(u: ut.i64, near: list[list[int]], seen: list[bool], order: list[int]) -> None:
    seen[u] = True
    for v in near[u]:
        if not seen[v]:
            visit(v, near, seen, order)
    order.append(u)


@ut.function
def depth_first(near: list[list[int]]):
    seen = [False] * len(near)
    order = []
    for u in range(len(near)):
        if not seen[u]:
            visit(u, near, seen, order)
    return order[::-1]


@ut.function
def quicksort_of_a_list(xs: list[ut.i64]) -> list[ut.i64]:
    if len(xs) <= 1:
        return xs
    first = xs[0]
    before = quicksort_of_a_list([x for x in xs[1:] if x < first])
    return before + [first] + quicksort_of_a_list([x for x in xs[1:] if x >= first])  # noqa: RUF005


@ut.function
def merge_sort_of_a_list(a: list[float]) -> list[float]:
    if len(a) <= 1:
        return a
    left, right = merge_sort_of_a_list(a[: len(a) // 2]), merge_sort_of_a_list(a[len(a) // 2 :])
    out = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            out.append(left[i])
            i += 1
        else:
            out.append(right[j])
            j += 1
    return out + left[i:] + right[j:]


@ut.function
def orders(xs: list[int]) -> list[list[int]]:
    if len(xs) == 0:
        return [[]]
    out = []
    for i in range(len(xs)):
        for rest in orders(xs[:i] + xs[i + 1 :]):
            out.append([xs[i]] + rest)  # noqa: RUF005
    return out


@ut.function
def powerset(xs: list[int]) -> list[list[int]]:
    if not xs:
        return [[]]
    rest = powerset(xs[1:])
    return rest + [[xs[0]] + s for s in rest]  # noqa: RUF005


@ut.function
def sums(numbers: list[int], target: ut.i64, start: ut.i64, path: list[int], out: list[list[int]]) -> None:
    if target == 0:
        out.append(path[:])
        return
    for i in range(start, len(numbers)):
        if numbers[i] <= target:
            path.append(numbers[i])
            sums(numbers, target - numbers[i], i, path, out)
            path.pop()


@ut.function
def combination_sums(numbers: list[int], target: ut.i64):
    out = []
    sums(numbers, target, 0, [], out)
    return out


@ut.function
def queens_in_lists(n: ut.i64, row: ut.i64, columns: list[int]) -> list[list[int]]:
    if row == n:
        return [columns]
    out = []
    for c in range(n):
        if all(d != c and abs(d - c) != row - r for r, d in enumerate(columns)):
            out.extend(queens_in_lists(n, row + 1, columns + [c]))  # noqa: RUF005
    return out


@ut.function
def moves(n: ut.i64, a: ut.i64, b: ut.i64, c: ut.i64) -> list[tuple[int, int]]:
    if n == 0:
        return []
    return moves(n - 1, a, c, b) + [(a, c)] + moves(n - 1, b, a, c)  # noqa: RUF005


@ut.function
def two_that_make(xs: list[int], total: ut.i64):
    for i in range(len(xs)):
        for j in range(i + 1, len(xs)):
            if xs[i] + xs[j] == total:
                return [i, j]
    return []


@ut.function
def tree_sums(n: ut.i64) -> ut.i64:
    if n <= 1:
        return n
    parts = [tree_sums(n - k) for k in range(1, 4) if k < n]
    return sum(parts) % 1000 + len(parts)


@ut.function
def squares_of_positive(x: ut.f64[None]) -> ut.f64:
    return sum([v * v for v in x if v > 0])


@ut.function
def powers(x: ut.f64, n: ut.i64) -> list[float]:
    if n == 0:
        return [x]
    return powers(x * 2, n - 1) + [x * x] + powers(x * 3, n - 1)  # noqa: RUF005


@ut.function
def sum_of_powers(x: ut.f64, n: ut.i64) -> ut.f64:
    return sum(powers(x, n))


@ut.function
def weighted_table(x: ut.f64) -> ut.f64:
    table = [[x * i * j for j in range(3)] for i in range(3)]
    table[1][1] = x * x
    ordered = sorted([row[-1] for row in table], reverse=True)
    return sum(sum(row) for row in table) + ordered[0] * 3.0


@ut.function
def not_there(n: ut.i64):
    items = [i for i in range(n)]  # noqa: C416
    items.remove(n)
    return items


@ut.function
def popped_too_often(n: ut.i64):
    items = [i for i in range(n)]  # noqa: C416
    items.pop()
    items.pop()
    return items


@ut.function
def compared_items(items, n: ut.i64):
    """Lists of known length whose items the run compares."""
    largest_first = sorted(items, key=lambda item: -item), sorted([(2, n), (1, 0.5 * n)])
    ranked = sorted(enumerate(items), key=lambda pair: pair[1])
    pairs = sorted((x % 3, x) for x in items)
    place, often = items.index(n), items.count(n)
    items.remove(n)
    items.sort(reverse=True)
    return largest_first, ranked, pairs, sorted(zip(items, items[2:], strict=False)), place, often, items


@ut.function
def chosen_with_places(x: ut.i64[5], n: ut.i64):
    """Which of the items of an iterator over known ones stay, the run decides."""
    falling = [a - b for a, b in zip(x, x[2:], strict=False) if a > b]
    return [(i, v) for i, v in enumerate(x) if v > n], falling, [v for v in reversed(x) if v > n], len(range(2, n))


PROGRAMS = [
    program(compared_items, ([5, 3, 8, 1, 3], 3), tags="containers"),
    program(chosen_with_places, (np.array([5, 3, 8, 1, 9]), 3), tags="containers arrays"),
    program(squares_collected, (5,), (0,), tags="containers loop branch"),
    program(from_arrays, (np.array([1.0, -2.0, 3.0]),), (np.zeros(0),), tags="containers arrays loop"),
    program(every_way_to_list, (7,), tags="containers loop"),
    program(every_method, (6,), tags="containers loop"),
    program(tuples, (5,), tags="containers loop"),
    program(common_subsequence, (np.array([1, 2, 3, 4]), np.array([2, 4, 1, 3])), tags="containers arrays loop"),
    program(lists_of_lists, (4, 3), tags="containers loop"),
    program(distances, ([(0, 1), (1, 2), (3, 4), (2, 3)], 6, 0), tags="containers loop"),
    program(depth_first, ([[1, 2], [3], [3], []],), tags="containers loop recursive"),
    program(quicksort_of_a_list, ([3, 1, 2, 5, 4, 3],), ([],), tags="containers recursive"),
    program(merge_sort_of_a_list, ([3.0, 1.0, 2.0, -1.0, 7.0],), tags="containers recursive loop"),
    program(orders, ([1, 2, 3],), ([],), tags="containers recursive loop"),
    program(powerset, ([1, 2, 3],), tags="containers recursive loop"),
    program(combination_sums, ([2, 3, 5], 8), tags="containers recursive loop"),
    program(queens_in_lists, (4, 0, []), tags="containers recursive loop"),
    program(moves, (3, 1, 2, 3), tags="containers recursive"),
    program(two_that_make, ([2, 7, 11], 9), ([1, 2], 9), tags="containers loop"),
    program(tree_sums, (6,), tags="containers recursive loop"),
    program(squares_of_positive, (np.array([1.0, -2.0, 3.0]),), tags="containers arrays loop"),
    program(sum_of_powers, (1.5, 3), tags="containers recursive"),
    program(weighted_table, (2.0,), tags="containers loop"),
    program(not_there, (3,), tags="containers fault"),
    program(popped_too_often, (1,), tags="containers fault"),
]
