"""Masks: how many elements they choose is known only at run time."""

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def quicksort(x: ut.i64[None]) -> ut.i64[None]:
    """As in every textbook."""
    if len(x) <= 1:
        return x
    p = x[len(x) // 2]
    return np.concatenate([quicksort(x[x < p]), x[x == p], quicksort(x[x > p])])


@ut.function
def quicksort_rows(x: ut.f64[None, 2]) -> ut.f64[None, 2]:
    """By the first column."""
    if len(x) <= 1:
        return x
    keys = x[:, 0]
    p = keys[0]
    return np.vstack([quicksort_rows(x[keys < p]), x[keys == p], quicksort_rows(x[keys > p])])


@ut.function
def sieve(x: ut.i64[None]) -> ut.i64[None]:
    if len(x) == 0:
        return x
    return np.concatenate([x[:1], sieve(x[x % x[0] != 0])])


@ut.function
def chosen_by_masks(x: ut.f64[2, 3], k: ut.f64) -> tuple[ut.f64[None], ut.f64[None, 3], ut.f64[2, None], ut.i64]:
    """Masks of the whole, of rows and of columns."""
    return x[x > k], x[x[:, 0] > k], x[:, x[0] > k], np.count_nonzero(x > k)


@ut.function
def places(x: ut.i64[2, None]) -> tuple[ut.i64[None], ut.i64[None], ut.i64[None], ut.i64[None, 2]]:
    rows, columns = np.nonzero(x > 1)
    return rows, columns, np.flatnonzero(x), np.argwhere(x == 0)


@ut.function
def primes_by_mask(n: ut.i64) -> ut.i64[None]:
    is_prime = np.ones(n, bool)
    is_prime[:2] = False
    k = 2
    while k * k < n:
        if is_prime[k]:
            is_prime[k * k :: k] = False
        k += 1
    return np.flatnonzero(is_prime)


@ut.function
def replaced(x: ut.f64[None]) -> ut.f64[None]:
    """As many new values as the mask is true."""
    y = x.copy()
    y[x < 0] = np.sqrt(-x[x < 0])
    y[y > 5] = 5
    return y


@ut.function
def run_lengths(x: ut.i64[None]) -> tuple[ut.i64[None], ut.i64[None], ut.i64[None]]:
    values, counts = np.unique(x, return_counts=True)
    return values, counts, np.repeat(values, counts)


@ut.function
def sizes_by_class(x: ut.i64[None], k: ut.i64) -> ut.i64:
    """Masks of different counts, side by side."""
    if k == 0:
        return len(x[x == 0])
    return sizes_by_class(x[x != k], k - 1) * 10 + len(x[x == k]) + sizes_by_class(x[x > k], k - 1)


@ut.function
def misfit(x: ut.f64[None], y: ut.f64[None]) -> ut.f64[None]:
    return x[y > 0]


@ut.function
def surprise(scores: ut.f64[None, None], wanted: ut.i64[None]) -> ut.f64:
    """The cross entropy of a batch: an element of each row."""
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    odds = odds / odds.sum(axis=1, keepdims=True)
    return -np.mean(np.log(odds[np.arange(len(wanted)), wanted]))


@ut.function
def several_arrays(x: ut.f64[None, None, 3], rows: ut.i64[None], columns: ut.i64[None]):
    """Arrays in one key name elements together; where they stand apart, their axes come first."""
    y = x.copy()
    y[rows, columns] = 0.5
    y[:, columns, 1] *= 2
    y[np.ix_(rows, columns)] += 1
    y[rows, :, -1] -= 3
    y[y[..., 0] > 2, 1:] = -1
    return (
        x[rows, columns],
        x[rows, :, [0, -1, 2]],
        x[0, :, [2, 1]],
        x[rows[:, None], columns, 0],
        x[:, None, rows, 0],
        y,
    )


@ut.function
def swapped(x: ut.i64[None, None], n: ut.i64) -> ut.i64[None, None]:
    """Elements along the diagonal change places with those of a row, and so on."""
    if n == 0:
        return x
    k = np.arange(len(x))
    y = x.copy()
    y[k, k], y[n - 1, k] = x[n - 1, k], x[k, k]
    return swapped(y, n - 1)


@ut.function
def outside_of_an_axis(x: ut.f64[None, None], rows: ut.i64[None]) -> ut.f64[None]:
    return x[rows, rows + 1]


NUMBERS = np.array([5, 2, 9, -1, 2, 7, 0, 3, 5, 5])
PROGRAMS = [
    program(quicksort, (np.zeros(0, np.int64),), (NUMBERS,), (NUMBERS[:1],), tags="recursive arrays"),
    program(quicksort_rows, (np.stack([NUMBERS, np.arange(10)], axis=1) * 0.5,), tags="recursive arrays"),
    program(sieve, (np.arange(2, 30),), tags="recursive arrays"),
    program(chosen_by_masks, (np.arange(6.0).reshape(2, 3), 2.5), (np.ones((2, 3)), 3.0), tags="arrays"),
    program(places, (np.array([[0, 3, 0, 1], [2, 0, 5, 0]]),), (np.zeros((2, 0), np.int64),), tags="arrays"),
    program(primes_by_mask, (30,), (2,), tags="loop arrays"),
    program(replaced, (np.array([-4.0, 9.0, -1.0, 3.0]),), (np.zeros(0),), tags="arrays"),
    program(run_lengths, (NUMBERS,), (np.zeros(0, np.int64),), tags="arrays"),
    program(sizes_by_class, (np.array([0, 1, 2, 3, 1, 0, 2, 2]), 3), tags="recursive arrays"),
    program(surprise, (np.arange(12.0).reshape(4, 3) % 5, np.array([2, 0, 1, 1])), tags="arrays"),
    program(
        several_arrays,
        (np.arange(36.0).reshape(3, 4, 3) % 7, np.array([2, 0, 2]), np.array([1, -1, 0])),
        (np.arange(27.0).reshape(3, 3, 3) % 7, np.array([1, 0, -1]), np.array([2, 2, 0])),
        tags="arrays",
    ),
    program(swapped, (np.arange(9).reshape(3, 3), 3), tags="recursive arrays"),
    program(outside_of_an_axis, (np.ones((3, 3)), np.array([0, 2])), tags="fault arrays"),
    program(misfit, (np.ones(3), np.ones(4)), tags="fault arrays"),
]
