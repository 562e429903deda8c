"""Recursive calls in loops, as written, against the same calls in a map.

Claim: iterations that do not need each other share waves, so a loop as one would write it for Python forms as many
waves as `ut.map`, and takes about as long. Tic-tac-toe is searched without pruning, from the empty board and from one
with a stone; n-queens and sudoku change a board, hand it down and restore it; an
unbalanced tree has a random number of children at each node. Each function also runs with
its loops as written (`simplify=False`), where that does not take too long.
Usage: python benchmarks/loops.py [--quick] [--repeat N] [--json FILE]
"""

from functools import partial
from typing import Any

import common
import numpy as np

import undertow as ut

LINES = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]])
GRID = np.array([[1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
BAR = 3.0  # a loop may take this many times as long as the map


@ut.function
def has_won(board: ut.i64[9], player: ut.i64) -> ut.bool:
    return ut.any(ut.all(board[LINES] == player, axis=1))


@ut.function
def play(board: ut.i64[9], player: ut.i64, left: ut.i64) -> ut.i64:
    """Tic-tac-toe; Python unrolls the loop."""
    if has_won(board, 3 - player):
        return -1
    if left == 0:
        return 0
    best = -2
    for i in range(9):
        if board[i] == 0:
            after = board.copy()
            after[i] = player
            best = max(best, -play(after, 3 - player, left - 1))
    return best


@ut.function
def play_on(board: ut.i64[9], player: ut.i64, left: ut.i64, size: ut.i64) -> ut.i64:
    """The same with a bound known at run time: a loop of the graph."""
    if has_won(board, 3 - player):
        return -1
    if left == 0:
        return 0
    best = -2
    for i in range(size):
        if board[i] == 0:
            after = board.copy()
            after[i] = player
            best = max(best, -play_on(after, 3 - player, left - 1, size))
    return best


@ut.function
def play_mapped(board: ut.i64[9], player: ut.i64, left: ut.i64) -> ut.i64:
    if has_won(board, 3 - player):
        return -1
    if left == 0:
        return 0

    def move(i):
        if board[i] != 0:
            return -2
        after = board.copy()
        after[i] = player
        return -play_mapped(after, 3 - player, left - 1)

    return ut.max(ut.map(move, ut.arange(9)))


@ut.function
def tree(depth: ut.i64) -> ut.i64:
    """The number of nodes of an unbalanced tree."""
    children = ut.random.integers(0, 5) if depth > 0 else 0
    count = 1
    for _ in range(children):
        count += tree(depth - 1)
    return count


@ut.function
def tree_mapped(depth: ut.i64) -> ut.i64:
    children = ut.random.integers(0, 5) if depth > 0 else 0
    return 1 + ut.sum(ut.map(lambda k: tree_mapped(depth - 1), ut.arange(children)))


@ut.function
def catalan(n: ut.i64) -> ut.i64:
    if n == 0:
        return 1
    total = 0
    for k in range(n):
        total += catalan(k) * catalan(n - 1 - k)
    return total


@ut.function
def catalan_mapped(n: ut.i64) -> ut.i64:
    if n == 0:
        return 1
    return ut.sum(ut.map(lambda k: catalan_mapped(k) * catalan_mapped(n - 1 - k), ut.arange(n)))


@ut.function
def play_restored(board: ut.i64[9], player: ut.i64, left: ut.i64, size: ut.i64) -> ut.i64:
    """Tic-tac-toe on one board, which is changed, handed down and restored."""
    if has_won(board, 3 - player):
        return -1
    if left == 0:
        return 0
    best = -2
    for i in range(size):
        if board[i] == 0:
            board[i] = player
            best = max(best, -play_restored(board, 3 - player, left - 1, size))
            board[i] = 0
    return best


@ut.function
def play_on_copy(board: ut.i64[9], player: ut.i64, left: ut.i64, size: ut.i64) -> ut.i64:
    return play_restored(board.copy(), player, left, size)


@ut.function
def place(columns: ut.bool[16], up: ut.bool[32], down: ut.bool[32], row: ut.i64, n: ut.i64) -> ut.i64:
    if row == n:
        return 1
    count = 0
    for c in range(n):
        if not columns[c] and not up[row + c] and not down[row - c + n]:
            columns[c] = up[row + c] = down[row - c + n] = True
            count += place(columns, up, down, row + 1, n)
            columns[c] = up[row + c] = down[row - c + n] = False
    return count


@ut.function
def queens(n: ut.i64) -> ut.i64:
    return place(np.zeros(16, bool), np.zeros(32, bool), np.zeros(32, bool), 0, n)


@ut.function
def place_mapped(columns: ut.bool[16], up: ut.bool[32], down: ut.bool[32], row: ut.i64, n: ut.i64) -> ut.i64:
    if row == n:
        return 1

    def at(c):
        if columns[c] or up[row + c] or down[row - c + n]:
            return 0
        return place_mapped(
            columns.at[c].set(True), up.at[row + c].set(True), down.at[row - c + n].set(True), row + 1, n
        )

    return ut.sum(ut.map(at, ut.arange(n)))


@ut.function
def queens_mapped(n: ut.i64) -> ut.i64:
    return place_mapped(np.zeros(16, bool), np.zeros(32, bool), np.zeros(32, bool), 0, n)


@ut.function
def may_be(grid: ut.i64[4, 4], row: ut.i64, column: ut.i64, value: ut.i64) -> ut.bool:
    first, left = row // 2 * 2, column // 2 * 2
    for k in range(4):
        if grid[row, k] == value or grid[k, column] == value or grid[first + k // 2, left + k % 2] == value:
            return False
    return True


@ut.function
def solve(grid: ut.i64[4, 4], at: ut.i64, size: ut.i64) -> ut.i64:
    """The number of solutions of a small sudoku."""
    if at == size * size:
        return 1
    row, column = at // size, at % size
    if grid[row, column] != 0:
        return solve(grid, at + 1, size)
    count = 0
    for value in range(1, size + 1):
        if may_be(grid, row, column, value):
            grid[row, column] = value
            count += solve(grid, at + 1, size)
            grid[row, column] = 0
    return count


@ut.function
def sudoku(given: ut.i64[4, 4], size: ut.i64) -> ut.i64:
    return solve(given.copy(), 0, size)


@ut.function
def solve_mapped(grid: ut.i64[4, 4], at: ut.i64, size: ut.i64) -> ut.i64:
    if at == size * size:
        return 1
    row, column = at // size, at % size
    if grid[row, column] != 0:
        return solve_mapped(grid, at + 1, size)

    def with_value(value):
        if not may_be(grid, row, column, value):
            return 0
        return solve_mapped(grid.at[row, column].set(value), at + 1, size)

    return ut.sum(ut.map(with_value, ut.arange(1, size + 1)))


def main() -> None:
    options = common.parser(__doc__, repeat=5).parse_args()
    board, left, depth, size = np.zeros(9, np.int64), 9, 12, 11
    if options.quick:
        board[0], left, depth, size = 1, 8, 9, 8
    player = 1 if left == 9 else 2
    kinds: dict[str, dict[str, Any]] = {
        "tic-tac-toe": {
            "map": partial(play_mapped.run, board, player, left),
            "unrolled": partial(play.run, board, player, left),
            "loop": partial(play_on.run, board, player, left, 9),
            "restored": partial(play_on_copy.run, board, player, left, 9),
        },
        "n-queens": {
            "map": partial(queens_mapped.run, size - 3),
            "restored": partial(queens.run, size - 3),
            "loop as written": partial(queens.run, size - 3, simplify=False),
        },
        "sudoku": {
            "map": partial(solve_mapped.run, GRID, 0, 4),
            "restored": partial(sudoku.run, GRID, 4),
            "loop as written": partial(sudoku.run, GRID, 4, simplify=False),
        },
        "unbalanced tree": {
            "map": partial(tree_mapped.run, depth, seed=3),
            "loop": partial(tree.run, depth, seed=3),
            "loop as written": partial(tree.run, depth, seed=3, simplify=False),
        },
        "Catalan numbers": {
            "map": partial(catalan_mapped.run, size),
            "loop": partial(catalan.run, size),
            "loop as written": partial(catalan.run, size, simplify=False),
        },
    }
    rows, figures = [], {}
    with ut.options(engine="waves", **common.on_threads(1)):
        for kind, works in kinds.items():
            runs = {name: work(stats=True) for name, work in works.items()}
            if len({int(value) for value, _ in runs.values()}) > 1:
                common.fail(f"{kind}: the results differ")
            times = common.measure(works, options.repeat)
            for name in works:
                _, stats = runs[name]
                calls, each = stats.activations, times[name].best / stats.activations
                figures[f"{kind}, {name}"] = {"seconds": times[name].best, "waves": stats.waves, "activations": calls}
                shown = common.seconds(times[name].best), f"{calls:,}", f"{stats.waves:,}", f"{each * 1e9:.0f} ns"
                rows.append([kind, name, *shown])
                bar = times["map"].best / runs["map"][1].activations * BAR
                if name in ("unrolled", "loop", "restored") and each > bar:
                    common.fail(f"{kind}, {name}: {each / bar * BAR:.1f} times as long as the map")
    common.table("Calls in loops", ["program", "written as", "time", "activations", "waves", "per activation"], rows)
    common.write(options.json, figures)


if __name__ == "__main__":
    main()
