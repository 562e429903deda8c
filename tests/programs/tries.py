"""`try` and `with`: `finally` on every way out, exceptions that are known at capture, contexts that mean nothing."""

from __future__ import annotations

import contextlib
from contextlib import nullcontext

import numpy as np
from tests.programs.program import program

import undertow as ut


class Own(Exception):
    pass


@ut.function
def told_on_leaving(n: ut.i64):
    y = 0
    try:
        if n > 0:
            y = 1
            return n
        y = 2
        if n == 0:
            y = 3
    finally:
        print("leaving", y, n)
    return y


@ut.function
def counted_in_a_loop(n: ut.i64):
    t = c = 0
    for i in range(n):
        try:
            if i % 3 == 1:
                continue
            if i > 5:
                break
            t += i
        finally:
            c += 1
    return t, c


@ut.function
def counted_in_an_unrolled_loop(n: ut.i64):
    t = c = 0
    for i in range(4):
        try:
            if i == 1:
                continue
            if i > n:
                break
            t += n
        finally:
            c += 1
    return t, c


@ut.function
def one_inside_another(n: ut.i64):
    log = 0
    try:
        try:
            if n > 3:
                return log
            log = log * 10 + 1
        finally:
            log = log * 10 + 2
            print("inner", log)
    finally:
        log = log * 10 + 3
        print("outer", log)
    return log


@ut.function
def out_of_two_loops(n: ut.i64):
    t = c = 0
    for i in range(n):
        try:
            for j in range(i):
                try:
                    if j == 2:
                        break
                    if i + j == 6:
                        return t, c
                    t += i
                finally:
                    c += 1
            else:
                continue
        finally:
            c += 100
    return t, c


@ut.function
def keys_known_at_capture(n: ut.i64):
    d = {"a": n}
    try:
        x = d["b"]
    except KeyError:
        x = -n
    try:
        y = d["a"]
    except KeyError:
        y = 0
    else:
        y = y + 100
    return x, y


@ut.function
def cannot_raise(n: ut.i64):
    try:
        x = n + 1
        if n > 0:
            x = 5
    except (ValueError, KeyError):
        x = 0
    finally:
        x = x * 2
    return x


@ut.function
def own_errors_at_capture(n: ut.i64):
    def check(kind):
        if kind != "ok":
            raise Own(kind)
        return n

    try:
        a = check("bad")
    except Own:
        a = -1
    try:
        a += check("ok")
    except Own:
        a = -5
    return a


@ut.function
def skipped_where_missing(n: ut.i64):
    d = {0: 5, 2: 7}
    t = 0
    for k in range(4):
        try:
            t += d[k] * n
        except KeyError:
            continue
        t += 1
    return t


@ut.function
def contexts_that_mean_nothing(n: ut.i64):
    t = 0
    with nullcontext():
        t = n
    with np.errstate(all="ignore"):
        t += 1
        if n > 0:
            return t
    with contextlib.nullcontext(5) as k, np.errstate(divide="ignore"):
        t += k
    for i in range(3):
        with nullcontext():
            if i == 2:
                break
            t += 10
    return t


@ut.function
def down_to_nothing(n: ut.i64) -> ut.i64:
    try:
        if n == 0:
            return 0
        return n + down_to_nothing(n - 1)
    finally:
        n = 5


@ut.function
def left_from_within(n: ut.i64):
    k = 0
    while True:
        try:
            k += 1
            if k > n:
                return k
        finally:
            k += 10


@ut.function
def board_restored(n: ut.i64):
    board = np.zeros(4, dtype=np.int64)

    def go(k):
        board[k] = 1
        try:
            if n > k:
                return board.sum()
            return -board.sum()
        finally:
            board[k] = 0

    return go(0) + go(1), board


PROGRAMS = [
    program(told_on_leaving, (3,), (-1,), (0,), tags="effects branch"),
    program(counted_in_a_loop, (7,), (0,), tags="loop"),
    program(counted_in_an_unrolled_loop, (7,), (2,), tags="branch"),
    program(one_inside_another, (7,), (2,), tags="effects branch"),
    program(out_of_two_loops, (7,), (2,), tags="loop"),
    program(keys_known_at_capture, (3,), tags="containers"),
    program(cannot_raise, (3,), (-3,), tags="branch"),
    program(own_errors_at_capture, (3,), tags="closure"),
    program(skipped_where_missing, (3,), (-2,), tags="containers"),
    program(contexts_that_mean_nothing, (3,), (-2,), tags="branch"),
    program(down_to_nothing, (3,), (0,), tags="recursive"),
    program(left_from_within, (3,), (0,), tags="loop"),
    program(board_restored, (3,), (0,), tags="arrays closure"),
]
