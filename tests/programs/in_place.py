"""Arrays that change in place: elements, slices, masks and views, in branches, loops, helpers and recursion."""

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def squares_filled_in(n: ut.i64):
    x = np.zeros(10)
    for i in range(n):
        x[i] = i * i
    return x


@ut.function
def names_and_views(n: ut.i64):
    """Every name of an array, and every view of it, sees its changes."""
    x = np.zeros((3, 4))
    same, row, columns = x, x[1], x.T
    x[1, 2] = n
    row[0] += 7
    same[:, 3] = 9
    columns[0, 2] = 5
    row += 1
    flat = x.reshape(12)
    flat[0] = -1
    return x, same, row, columns, flat


@ut.function
def in_both_branches(x: ut.f64[5], n: ut.i64):
    tail = x[1:]
    if n > 0:
        tail[0] = 1
        if n > 1:
            x[0] = 2
            return x, tail
    else:
        x[2:4] = n
    tail += 1
    return x, tail


@ut.function
def left_early(x: ut.f64[None], n: ut.i64):
    for i in range(n):
        x[i] = 1
        if x[i] + i > 3:
            return x
        if i == 2:
            continue
        x[i] += 1
    return x


@ut.function
def while_it_is_small(x: ut.f64[3]):
    while x[0] < 3:
        x[0] += 1
        if x[0] == 2:
            x[1] = 7
    return x


@ut.function
def bubble_sort(x: ut.f64[None]):
    n = len(x)
    for i in range(n):
        for j in range(n - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return x


def first_or_second(x, chosen):
    """A helper that changes the array of its caller, and returns early."""
    if chosen > 0:
        x[0] = 3
        return 1
    x[1] = 4
    return 2


@ut.function
def changed_by_a_helper(x: ut.f64[3], n: ut.i64):
    y = x.copy()
    found = first_or_second(x, n)
    return x, y, found


@ut.function
def merge_sort(x: ut.f64[None], lo: ut.i64, hi: ut.i64) -> None:
    """A recursive procedure: what it changes, its caller sees."""
    if hi - lo < 2:
        return
    mid = (lo + hi) // 2
    merge_sort(x, lo, mid)
    merge_sort(x, mid, hi)
    old = x.copy()
    i, j = lo, mid
    for k in range(lo, hi):
        if i < mid and (j >= hi or old[i] <= old[j]):
            x[k] = old[i]
            i += 1
        else:
            x[k] = old[j]
            j += 1


@ut.function
def sorted_in_place(x: ut.f64[None]):
    merge_sort(x, 0, len(x))
    return x


@ut.function
def flood(grid: ut.i64[None, None], i: ut.i64, j: ut.i64) -> ut.i64:
    if i < 0 or i >= grid.shape[0] or j < 0 or j >= grid.shape[1] or grid[i, j] != 0:
        return 0
    grid[i, j] = 2
    return 1 + flood(grid, i + 1, j) + flood(grid, i - 1, j) + flood(grid, i, j + 1) + flood(grid, i, j - 1)


@ut.function
def flood_fill(grid: ut.i64[None, None]):
    count = flood(grid, 0, 0)
    return grid, count


@ut.function
def queens(n: ut.i64) -> ut.i64:
    """The board belongs to the function around the one that changes it."""
    board = np.zeros(6, dtype=np.int64)

    @ut.function
    def place(row: ut.i64) -> ut.i64:
        if row == n:
            return 1
        count = 0
        for column in range(n):
            is_free = True
            for other in range(row):
                if board[other] == column or abs(board[other] - column) == row - other:
                    is_free = False
            if is_free:
                board[row] = column
                count += place(row + 1)
        return count

    return place(0)


@ut.function
def crossed_out(n: ut.i64):
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    i = 2
    while i * i <= n:
        if is_prime[i]:
            is_prime[i * i :: i] = False
        i += 1
    return is_prime


@ut.function
def by_masks_and_rows(x: ut.f64[6], where: ut.i64[3]):
    x[x > 3] = 0
    x[where] = np.arange(3.0)
    x[where] += 1
    x[[0, -1]] *= 2
    whole = np.zeros(6, dtype=np.int64)
    whole[:] = x
    whole[0] = 2.7
    return x, whole


@ut.function
def in_lists_and_objects(n: ut.i64):
    grid = [np.zeros(3) for _ in range(2)]
    grid[0][1] = n
    table = {"row": np.ones(2)}
    table["row"][0] += n
    table["row"] += 1
    return grid, table["row"]


@ut.function
def set_at(x: ut.f64[3], n: ut.i64) -> ut.f64[3]:
    if n < 0:
        return x
    x[n] = n
    return set_at(x, n - 1) if n > 1 else set_at(x, n - 2)


@ut.function
def lanes_of_their_own(x: ut.f64[None, 3]):
    def filled(row):
        row = row.copy()
        row[0] = 9
        return set_at(row, 2)

    return ut.map(filled, x)


@ut.function
def count_up(x: ut.i64[None], i: ut.i64):
    """What has no result needs no annotation for it."""
    if i == len(x):
        return
    x[i] += i
    count_down(x, i + 1)


@ut.function
def count_down(x: ut.i64[None], i: ut.i64):
    if i < len(x):
        x[i] -= i
        count_up(x, i + 1)


@ut.function
def by_procedures(x: ut.i64[None]):
    count_up(x, 0)
    return x


@ut.function
def views_of_new_arrays(n: ut.i64):
    """The array is a constant until a view of it changes."""
    by_row, by_column, flat, turned, moved = (np.zeros((2, 3)) for _ in range(5))
    row, column, line = by_row[1], by_column[:, 1], flat.reshape(6)
    row[0] = n
    row += 1
    column[0] = n
    line[4] = n
    back = np.flip(turned)
    back[0] = n
    moved.T[2] = n
    for each in moved:
        each[0] += 1
    return by_row, by_column, flat, turned, back, moved


@ut.function
def turned_around(x: ut.f64[2, 3], n: ut.i64):
    back, upside_down = np.flip(x), np.flipud(x)
    back[0, 0] = n
    upside_down[0] += 1
    np.fliplr(x)[:, 0] = -1
    return x, back, upside_down


@ut.function
def numpys_writers(x: ut.f64[4], k: ut.i64[2], n: ut.i64) -> tuple[ut.f64[4], ut.f64[4], ut.f64[3, 3], ut.f64[4]]:
    """Functions and methods of NumPy's that write into an array: all of its names see it, in loops and branches too."""
    y, z = x.copy(), np.zeros(4)
    alias = y
    for _ in range(n):
        y.sort()
        y[0] += 5
    np.put(z, k, [7.0, 8.0])
    np.putmask(z, z == 0, n)
    m = np.zeros((3, 3))
    m.fill(2)
    np.fill_diagonal(m, x[:3])
    w = np.ones(4)
    if n > 1:
        np.copyto(w, x, where=x > 1)
    else:
        w[:] = 7
        np.place(w, x > 0, [4, 5])
    return alias, z, m, w


PROGRAMS = [
    program(views_of_new_arrays, (3,), tags="arrays"),
    program(turned_around, (np.arange(6.0).reshape(2, 3), 7), tags="arrays"),
    program(squares_filled_in, (7,), (0,), tags="arrays loop"),
    program(names_and_views, (7,), tags="arrays"),
    program(in_both_branches, *((np.zeros(5), n) for n in (0, 1, 2)), tags="arrays branch"),
    program(left_early, (np.zeros(6), 6), (np.zeros(6), 2), tags="arrays loop branch"),
    program(while_it_is_small, (np.zeros(3),), (np.full(3, 5.0),), tags="arrays loop"),
    program(bubble_sort, (np.array([3.0, 1.0, 2.0, 5.0, 4.0]),), tags="arrays loop branch"),
    program(changed_by_a_helper, (np.zeros(3), 1), (np.zeros(3), -1), tags="arrays branch"),
    program(sorted_in_place, (np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.0]),), tags="arrays recursive"),
    program(flood_fill, (np.array([[0, 0, 1], [1, 0, 1], [0, 0, 0]]),), tags="arrays recursive"),
    program(queens, (4,), (5,), tags="arrays recursive closure"),
    program(crossed_out, (30,), (3,), tags="arrays loop"),
    program(by_masks_and_rows, (np.arange(6.0), np.array([1, 1, 4])), tags="arrays"),
    program(in_lists_and_objects, (3,), tags="arrays containers"),
    program(set_at, (np.zeros(3), 2), tags="arrays recursive"),
    program(by_procedures, (np.zeros(5, np.int64),), (np.zeros(0, np.int64),), tags="arrays recursive mutual"),
    program(lanes_of_their_own, (np.zeros((2, 3)),), tags="arrays map recursive"),
    program(
        numpys_writers, (np.array([3.0, 1.0, 2.0, -1.0]), np.array([3, 1]), 0),
        (np.array([3.0, 1.0, 2.0, -1.0]), np.array([3, 1]), 3), tags="loop arrays",
    ),
]  # fmt: skip
