"""Trees and orders: Catalan's numbers by a sum over splits, and all permutations in a list."""

import numpy as np

import undertow as ut


@ut.function
def catalan(n: int) -> int:
    """The number of binary trees with n nodes: one is the root, and the others are divided among its sides."""
    if n == 0:
        return 1
    return sum(catalan(k) * catalan(n - 1 - k) for k in range(n))


@ut.function
def permute(items, k, found):
    """Append every order of the items that keeps the first k."""
    if k == len(items):
        found.append(items.copy())
        return
    for i in range(k, len(items)):
        items[k], items[i] = items[i], items[k]
        permute(items, k + 1, found)
        items[k], items[i] = items[i], items[k]


@ut.function
def permutations(items):
    found = []
    permute(items.copy(), 0, found)
    return found


numbers = [int(catalan(n)) for n in range(9)]
assert numbers == [1, 1, 2, 5, 14, 42, 132, 429, 1430]
orders = permutations(np.array([1, 2, 3]))
assert sorted(tuple(map(int, order)) for order in orders) == [
    (1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)
]  # fmt: skip
print(numbers)
for order in orders:
    print(order)
