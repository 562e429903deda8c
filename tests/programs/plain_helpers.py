"""Plain helpers that call themselves, in a function or beside it; recursive functions without annotated results."""

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def towers(n: int):
    moves = []

    def move(n, a, b, c):
        if n == 0:
            return
        move(n - 1, a, c, b)
        moves.append((a, c))
        move(n - 1, b, a, c)

    move(n, 0, 1, 2)
    return moves


@ut.function
def queens_on_a_board(n: int):
    boards = []
    columns = [0] * n

    def is_free(r, c):
        return all(columns[i] != c and abs(columns[i] - c) != r - i for i in range(r))

    def place(r):
        if r == n:
            boards.append(columns[:])
            return
        for c in range(n):
            if is_free(r, c):
                columns[r] = c
                place(r + 1)

    place(0)
    return boards


@ut.function
def sums_to(coins: list[int], target: int):
    """A list that is longer at each call."""
    found = []

    def search(start, total, path):
        if total == target:
            found.append(path)
            return
        if total > target:
            return
        for i in range(start, len(coins)):
            search(i, total + coins[i], path + [coins[i]])  # noqa: RUF005

    search(0, 0, [])
    return found


@ut.function
def balanced(n: int):
    """A list of the caller's that changes and is restored."""
    found = []

    def write(path, opened, closed):
        if len(path) == 2 * n:
            found.append(path[:])
            return
        if opened < n:
            path.append(1)
            write(path, opened + 1, closed)
            path.pop()
        if closed < opened:
            path.append(0)
            write(path, opened, closed + 1)
            path.pop()

    write([], 0, 0)
    return found


@ut.function
def union_find(n: int, edges: list[tuple[int, int]]):
    parent = list(range(n))

    def find(x):
        if parent[x] != x:
            parent[x] = find(parent[x])
        return parent[x]

    for a, b in edges:
        parent[find(a)] = find(b)
    return parent


@ut.function
def painted(grid, r: int, c: int):
    """Rows of an argument whose length is known."""

    def paint(r, c):
        if 0 <= r < len(grid) and 0 <= c < len(grid[0]) and grid[r][c] == 1:
            grid[r][c] = 2
            paint(r + 1, c)
            paint(r - 1, c)
            paint(r, c + 1)
            paint(r, c - 1)

    paint(r, c)
    return grid


def power(x, n):
    return 1 if n == 0 else x * power(x, n - 1)


@ut.function
def powers(x: ut.f64, n: ut.i64) -> ut.f64:
    return power(x, n) + power(2, n)


def is_even(n):
    return True if n == 0 else is_odd(n - 1)


def is_odd(n):
    return False if n == 0 else is_even(n - 1)


@ut.function
def parity(n: ut.i64):
    return is_even(n), is_odd(n)


@ut.function
def by_lambda(n: ut.i64):
    factorial = lambda k: 1 if k == 0 else k * factorial(k - 1)  # noqa: E731
    return factorial(n)


class Search:
    def __init__(self, limit):
        self.limit = limit

    def count(self, n):
        if n >= self.limit:
            return 1
        return self.count(n + 1) + self.count(n + 2)


@ut.function
def by_method(n: ut.i64):
    return Search(5).count(n)


def along(x, tree):
    """A recursion that ends at capture, though the run decides which way it goes."""
    if isinstance(tree, str):
        return len(tree)
    return along(x, tree[1]) if x > tree[0] else along(x - 1, tree[2])


@ut.function
def decided(x: ut.i64):
    return along(x, (3, (5, "abc", "b"), (1, "ab", "")))


@ut.function
def catalan_untyped(n):
    return 1 if n <= 1 else sum(catalan_untyped(k) * catalan_untyped(n - 1 - k) for k in range(n))


@ut.function
def hailstones(n):
    if n == 1:
        return 0
    elif n % 2 == 0:
        return 1 + hailstones(n // 2)
    return 1 + hailstones(3 * n + 1)


@ut.function
def both_extremes(x, lo, hi):
    if hi - lo == 1:
        return x[lo], x[lo]
    middle = (lo + hi) // 2
    a, b = both_extremes(x, lo, middle)
    c, d = both_extremes(x, middle, hi)
    return min(a, c), max(b, d)


@ut.function
def index_of(x, value, i):
    if i == len(x):
        return None
    if x[i] == value:
        return i
    return index_of(x, value, i + 1)


@ut.function
def sorted_by_masks(x):
    if len(x) <= 1:
        return x
    first = x[0]
    return np.concatenate([sorted_by_masks(x[x < first]), x[x == first], sorted_by_masks(x[x > first])])


@ut.function
def sum_of_calls(n):
    """Loops around calls whose result is not known yet."""
    total = 0
    for k in range(n):
        total += sum_of_calls(k)
    return total + 1


@ut.function
def largest_of_calls(n):
    """Reductions all of whose items are such calls."""
    if n == 0:
        return 1
    best = max(i + largest_of_calls(n - i - 1) for i in range(n))
    return best + min((largest_of_calls(i), i) for i in range(n))[1] + len([largest_of_calls(i) for i in range(n)])


@ut.function
def one_more_than_all(n):
    """No path is without such calls, but lists of them may be empty."""
    return 1 + sum([one_more_than_all(k) for k in range(n)])


@ut.function
def smooth(x, n):
    return x if n == 0 else np.sin(smooth(x * x, n - 1)) * x


@ut.function
def counted_calls(n: ut.i64):
    """Variables that inner functions assign."""
    count = 0
    deepest: int = 0

    def call(k, depth):
        nonlocal count, deepest
        count += 1
        deepest = max(deepest, depth)
        if k > 1:
            call(k - 1, depth + 1)
            call(k - 2, depth + 1)

    call(n, 1)
    count = count * 10
    return count, deepest


@ut.function
def cheapest(costs: list[list[int]]):
    best = 10**9
    paths = 0

    def walk(r, c, cost):
        nonlocal best, paths
        cost += costs[r][c]
        if r == len(costs) - 1 and c == len(costs[0]) - 1:
            best = min(best, cost)
            paths += 1
            return
        if r + 1 < len(costs):
            walk(r + 1, c, cost)
        if c + 1 < len(costs[0]):
            walk(r, c + 1, cost)

    walk(0, 0, 0)
    return best, paths


@ut.function
def in_turns(x: ut.f64, n: ut.i64):
    """Through two functions, of which one is inside of the other; a parameter, and two variables at once."""
    a, b = 0, 1

    def step():
        nonlocal x, b

        def swap():
            nonlocal a, b
            a, b = b, a + b

        swap()
        x = x * x + b

    for _ in range(n):
        step()
    return [a for _ in range(2)], (lambda: b + 1)(), x


@ut.function
def names_of_their_own(n: ut.i64):
    """Comprehensions, defaults and functions that have a variable of the same name."""
    count = 1

    def count_on(step=count):
        nonlocal count
        items = [2 * count for count in range(3)]
        shown = [count * k for k in range(count + 2)]
        others = [-count for count in range(count + 1)]
        count += len(items) + sum(shown) + len(others) + step

        def own():
            count = 7
            return count

        return own() + count

    first = count_on()
    count = count + n
    return first, count_on(2), count, [3 * count for count in (1, 2)], (lambda count: count + 1)(n)


@ut.function
def squared_twice(x: ut.f64) -> ut.f64:
    y = x

    def square():
        nonlocal y
        y = y * y

    square()
    square()
    return y


_GRID = [[1, 1, 0], [0, 1, 0], [1, 0, 1]]

PROGRAMS = [
    program(towers, (3,), tags="helpers recursive containers"),
    program(queens_on_a_board, (4,), tags="helpers recursive containers loop"),
    program(sums_to, ([2, 3, 5], 8), tags="helpers recursive containers loop"),
    program(balanced, (3,), tags="helpers recursive containers"),
    program(union_find, (5, [(0, 1), (1, 2), (3, 4)]), tags="helpers recursive containers loop"),
    program(painted, (_GRID, 0, 0), (_GRID, 2, 0), tags="helpers recursive containers"),
    program(powers, (1.5, 3), tags="helpers recursive gradient"),
    program(parity, (7,), tags="helpers mutual"),
    program(by_lambda, (5,), tags="helpers recursive"),
    program(by_method, (0,), tags="helpers recursive"),
    program(decided, (1,), (4,), (9,), tags="helpers branch"),
    program(catalan_untyped, (6,), tags="recursive loop"),
    program(hailstones, (27,), tags="recursive"),
    program(both_extremes, (np.array([3, 1, 4, 1, 5]), 0, 5), tags="recursive arrays"),
    program(index_of, (np.array([3, 1, 4]), 4, 0), (np.array([3, 1, 4]), 9, 0), tags="recursive arrays"),
    program(sorted_by_masks, (np.array([3.5, 1.0, 4.0, 1.0, 5.0]),), tags="recursive arrays"),
    program(sum_of_calls, (6,), tags="recursive loop"),
    program(largest_of_calls, (4,), tags="recursive loop"),
    program(one_more_than_all, (5,), tags="recursive loop"),
    program(counted_calls, (5,), tags="recursive helpers"),
    program(cheapest, ([[1, 3, 1], [1, 5, 1], [4, 2, 1]],), tags="recursive containers helpers"),
    program(in_turns, (0.5, 4), tags="loop"),
    program(names_of_their_own, (5,), tags="closure"),
    program(squared_twice, (1.5,), tags="gradient"),
    program(smooth, (0.75, 3), tags="recursive gradient"),
]
