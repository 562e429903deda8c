"""Searches as one writes them in Python: inner functions that call themselves, with lists and counts around them."""

import undertow as ut


@ut.function
def combinations_to(target: int, coins: list[int]):
    """Every way to pay a sum, and how many calls it took to find them."""
    ways = []
    calls = 0

    def pay(start, rest, chosen):
        nonlocal calls
        calls += 1
        if rest == 0:
            ways.append(chosen[:])
        for i in range(start, len(coins)):
            if coins[i] <= rest:
                chosen.append(coins[i])
                pay(i, rest - coins[i], chosen)
                chosen.pop()

    pay(0, target, [])
    return ways, calls


@ut.function
def components(n: int, edges: list[tuple[int, int]]):
    """The smallest node of each node's component: union-find, with short paths."""
    parent = list(range(n))

    def find(x):
        if parent[x] != x:
            parent[x] = find(parent[x])
        return parent[x]

    for a, b in edges:
        parent[max(find(a), find(b))] = min(find(a), find(b))
    return [find(x) for x in range(n)]


@ut.function
def best_load(weights, values, room):
    """The knapsack, without a table and without an annotation."""

    def best(i, room):
        if i == len(weights):
            return 0
        without = best(i + 1, room)
        return without if weights[i] > room else max(without, values[i] + best(i + 1, room - weights[i]))

    return best(0, room)


ways, calls = combinations_to(11, [2, 3, 5])
assert all(sum(way) == 11 for way in ways) and len(ways) == 4
assert components(6, [(0, 1), (4, 5), (1, 3)]) == [0, 0, 2, 0, 4, 4]
assert best_load([1, 3, 4, 2], [15, 20, 30, 14], 6) == 49
print(*[[int(coin) for coin in way] for way in ways], "in", calls, "calls")
