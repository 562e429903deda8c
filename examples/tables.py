"""Dynamic programming with tables, and other loops over arrays: sieve, edit distance, knapsack, shortest paths."""

import numpy as np

import undertow as ut


@ut.function
def primes(n: int):
    """The sieve of Eratosthenes."""
    is_prime = np.ones(n + 1, dtype=bool)
    is_prime[:2] = False
    for k in range(2, int(n**0.5) + 1):
        if is_prime[k]:
            is_prime[k * k :: k] = False
    return np.nonzero(is_prime)[0]


@ut.function
def distance(a: ut.i64[None], b: ut.i64[None]):
    """Levenshtein's: how many letters to insert, delete or change, to make b of a."""
    table = np.zeros((len(a) + 1, len(b) + 1), dtype=int)
    table[:, 0] = np.arange(len(a) + 1)
    table[0] = np.arange(len(b) + 1)
    for i in range(len(a)):
        for j in range(len(b)):
            change = table[i, j] + (a[i] != b[j])
            table[i + 1, j + 1] = min(table[i, j + 1] + 1, table[i + 1, j] + 1, change)
    return table[-1, -1]


@ut.function
def knapsack(weights: ut.i64[None], values: ut.i64[None], room: int):
    """The largest value of things that fit into the room."""
    best = np.zeros(room + 1, dtype=int)
    for k in range(len(weights)):
        for left in range(room, weights[k] - 1, -1):
            best[left] = max(best[left], best[left - weights[k]] + values[k])
    return best[room]


@ut.function
def shortest(distances: ut.f64[None, None]):
    """Floyd and Warshall's: the shortest way between any two places."""
    n = len(distances)
    for via in range(n):
        for i in range(n):
            for j in range(n):
                distances[i, j] = min(distances[i, j], distances[i, via] + distances[via, j])
    return distances


assert primes(30).tolist() == [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]
edits = distance(np.array([ord(c) for c in "kitten"]), np.array([ord(c) for c in "sitting"]))
value = knapsack(np.array([1, 3, 4, 5]), np.array([1, 4, 5, 7]), 7)
roads = shortest(np.array([[0, 3, np.inf], [np.inf, 0, 1], [1, np.inf, 0]]))
assert (edits, value, roads.tolist()) == (3, 9, [[0, 3, 4], [2, 0, 1], [1, 4, 0]])
print(primes(30), f"distance {edits}, value {value}", roads, sep="\n")
