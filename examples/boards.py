"""Searches on a board that is changed, handed on and restored: queens, sudoku and flood fill."""

import numpy as np

import undertow as ut


@ut.function
def queens(columns: ut.i64[None], row: int) -> int:
    """In how many ways can queens stand on the rows from this one on? The queen of each row before has a column."""
    if row == len(columns):
        return 1
    ways = 0
    for column in range(len(columns)):
        if all(columns[r] != column and abs(columns[r] - column) != row - r for r in range(row)):
            columns[row] = column
            ways += queens(columns, row + 1)
    return ways


@ut.function
def solve(board: ut.i64[9, 9]) -> bool:
    """Fill a sudoku; False if there is no way to do that."""
    rows, columns = np.where(board == 0)
    if len(rows) == 0:
        return True
    r, c = rows[0], columns[0]
    box = board[r // 3 * 3 : r // 3 * 3 + 3, c // 3 * 3 : c // 3 * 3 + 3]
    for digit in range(1, 10):
        if digit not in board[r] and digit not in board[:, c] and digit not in box:
            board[r, c] = digit
            if solve(board):
                return True
            board[r, c] = 0
    return False


@ut.function
def fill(image: ut.i64[None, None], r: int, c: int, old: int, new: int):
    """Paint the area of one colour around a place."""
    if 0 <= r < len(image) and 0 <= c < len(image[0]) and image[r, c] == old:
        image[r, c] = new
        for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            fill(image, r + down, c + right, old, new)


number_of_queens = ut.function(lambda n: queens(np.zeros(n, dtype=int), 0))
solved = ut.function(lambda board: board if solve(board) else np.zeros_like(board))
filled = ut.function(lambda image, r, c, new: (fill(image, r, c, image[r, c], new), image)[1])

given = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
board = solved(np.array([int(c) for c in given]).reshape(9, 9))
assert [sum(row) for row in (*board.tolist(), *board.T.tolist())] == [45] * 18
image = filled(np.array([[1, 1, 0], [1, 0, 0], [1, 1, 1]]), 0, 0, 7)
assert image.tolist() == [[7, 7, 0], [7, 0, 0], [7, 7, 7]]
assert number_of_queens(6) == 4
print(board, image, f"{number_of_queens(6)} ways to place 6 queens", sep="\n\n")
