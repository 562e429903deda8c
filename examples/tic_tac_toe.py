"""Tic-tac-toe, played perfectly: minimax over a board that is changed, handed on and restored."""

import numpy as np

import undertow as ut

LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))


def winner(board):
    """1 or -1, who has three in a row; else 0."""
    for i, j, k in LINES:
        if board[i] != 0 and board[i] == board[j] == board[k]:
            return board[i]
    return 0


@ut.function
def value(board: ut.i64[9], player: int) -> int:
    """Who wins if this player is next, and both play as well as they can."""
    won = winner(board)
    if won != 0 or 0 not in board:
        return won
    best = -player
    for move in range(9):
        if board[move] == 0:
            board[move] = player
            best = max(best * player, value(board, -player) * player) * player
            board[move] = 0
    return best


@ut.function
def best_move(board: ut.i64[9], player: int):
    """The first of the best moves."""
    best, chosen = -2, -1
    for move in range(9):
        if board[move] == 0:
            after = board.copy()
            after[move] = player
            gain = value(after, -player) * player
            if gain > best:
                best, chosen = gain, move
    return chosen


board, player = np.zeros(9, dtype=int), 1
board[0], board[4] = 1, -1
while winner(board) == 0 and 0 in board:
    board[best_move(board, player)] = player
    player = -player
print("\n".join("".join(".xo"[mark] for mark in row) for row in board.reshape(3, 3)))
assert winner(board) == 0
