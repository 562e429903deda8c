"""Collatz: a `while` loop becomes Enter, Next and Exit nodes, whose tags count the iterations."""

import numpy as np

import undertow as ut


@ut.function
def steps(n: ut.i64) -> ut.i64:
    """How many steps it takes from n to 1."""
    count = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    return count


assert steps(27) == 111

numbers = np.arange(1, 60)
found = steps.map(numbers)  # every element loops as often as it needs to: no padding, no masks
for n in (1, 7, 27, 54):
    print(f"{n:3} {'#' * int(found[n - 1])} {found[n - 1]}")

longest = numbers[np.argmax(found)]
assert longest == 54
print(f"\nBelow {len(numbers) + 1}, the longest way to 1 is that from {longest}: {found.max()} steps.")

loops = [node.op for node in steps.graph(1).static.nodes if node.op in ("enter", "next", "exit")]
print("What the loop became:", *sorted(set(loops)))
