"""Lists whose length is known only at run time: stacks, queues, work lists, results that are collected."""

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def evens(n: ut.i64):
    found = []
    for i in range(n):
        if i % 2 == 0:
            found.append(i)
    return found, sum(found, start=100)


@ut.function
def stack_of_work(n: ut.i64) -> ut.i64:
    stack = [n]
    total = 0
    while stack:
        v = stack.pop()
        total += v
        if v > 1:
            stack.append(v // 2)
            stack.append(v - 2)
    return total


@ut.function
def queue_of_pairs(n: ut.i64):
    queue = [(0, n)]
    seen = []
    while len(queue) > 0:
        depth, v = queue.pop(0)
        seen.append(depth * 100 + v)
        if v > 2:
            queue.append((depth + 1, v - 2))
            queue.append((depth + 1, v // 3))
    return seen, len(seen), sum(seen), max(seen)


@ut.function
def longer_in_one_branch(n: ut.i64):
    items = [1]
    if n > 3:
        items.append(n)
    items.append(7)
    for v in items:
        n += v
    return items, n, 7 in items, 8 in items, items[-1], items[1:], items[:-1]


@ut.function
def added_up(n: ut.i64):
    items = []
    for i in range(n):
        items = items + [i * 2]  # noqa: RUF005
    same = items
    items += [9]
    return items, same


@ut.function
def swapped_items(n: ut.i64):
    items = [1, 2, 3, 4]
    for i in range(n):
        items[i], items[3 - i] = items[3 - i], items[i]
    return items


@ut.function
def walk(n: ut.i64, out) -> None:
    if n > 0:
        walk(n - 1, out)
        out.append(n)
        walk(n - 2, out)


@ut.function
def in_order(n: ut.i64):
    out = []
    walk(n, out)
    return out


@ut.function
def permute(items, k: ut.i64, out) -> None:
    if k == 3:
        out.append(items[0] * 100 + items[1] * 10 + items[2])
    else:
        for i in range(k, 3):
            items[k], items[i] = items[i], items[k]
            permute(items, k + 1, out)
            items[k], items[i] = items[i], items[k]


@ut.function
def permutations(n: ut.i64):
    out = []
    permute([1, 2, n], 0, out)
    return out


@ut.function
def primes_collected(n: ut.i64):
    primes = [2]
    for k in range(3, n):
        is_prime = True
        for p in primes:
            if k % p == 0:
                is_prime = False
                break
        if is_prime:
            primes.append(k)
    return primes


@ut.function
def pascal(n: ut.i64):
    row = [1]
    for _ in range(n):
        new = [1]
        for i in range(len(row) - 1):
            new.append(row[i] + row[i + 1])
        new.append(1)
        row = new
    return row


@ut.function
def rows_collected(x: ut.f64[3], n: ut.i64):
    rows = []
    for i in range(n):
        rows.append(x * i)
    total = 0.0
    for row in rows:
        total += ut.sum(row * row)
    return np.array(rows).sum() + total, rows


@ut.function
def inserted_and_extended(n: ut.i64):
    items = []
    items.insert(0, n)
    items.insert(1, n + 1)
    while items:
        v = items.pop()
        if v > 3:
            items.insert(0, v - 3)
        n += v
    items.extend([1, 2, n])
    copy = items.copy()
    copy.clear()
    return items, len(copy)


@ut.function
def beyond_the_end(n: ut.i64) -> ut.i64:
    items = []
    for i in range(n):
        items.append(i)
    return items[n]


@ut.function
def reverse_polish(tokens: ut.i64[None]):
    """The branches that take items come before the one that appends them."""
    stack = []
    for t in tokens:
        if t == -1:
            b, a = stack.pop(), stack.pop()
            stack.append(a + b)
        elif t == -2:
            b, a = stack.pop(), stack.pop()
            stack.append(a * b)
        else:
            stack.append(t)
    return stack[0]


@ut.function
def doubled_from_the_last(n: ut.i64):
    items = []
    for i in range(n):
        last = items[-1] if i > 0 else 1
        items.append(last * 2)
    return items


@ut.function
def never_longer(n: ut.i64):
    items = []
    for _ in range(n):
        items.pop()
    return len(items)


@ut.function
def largest_of_arrays(x: ut.f64[None]):
    items = list(x)
    items.append(2.0)
    return max(x, default=-1.0), max(items, key=abs), min(x, key=lambda v: -v, default=0.5), sorted(x), items


PROGRAMS = [
    program(evens, (11,), (0,), tags="containers loop branch"),
    program(stack_of_work, (9,), (1,), tags="containers loop"),
    program(queue_of_pairs, (7,), tags="containers loop"),
    program(longer_in_one_branch, (5,), (2,), tags="containers branch"),
    program(added_up, (5,), tags="containers loop"),
    program(swapped_items, (2,), tags="containers loop"),
    program(in_order, (4,), tags="containers recursive"),
    program(permutations, (3,), tags="containers recursive loop"),
    program(primes_collected, (30,), tags="containers loop branch"),
    program(pascal, (5,), tags="containers loop"),
    program(rows_collected, (np.array([1.0, 2.0, 3.0]), 4), tags="containers arrays loop"),
    program(inserted_and_extended, (5,), tags="containers loop"),
    program(beyond_the_end, (3,), tags="containers fault"),
    program(reverse_polish, (np.array([2, 3, -1, 4, -2]),), (np.array([2]),), tags="containers loop branch"),
    program(reverse_polish, (np.array([-1]),), tags="containers fault", name="reverse_polish_of_nothing"),
    program(doubled_from_the_last, (5,), (0,), tags="containers loop branch"),
    program(never_longer, (0,), tags="containers loop"),
    program(never_longer, (2,), tags="containers fault", name="never_long_enough"),
    program(largest_of_arrays, (np.array([3.0, -5.0, 2.0]),), (np.zeros(0),), tags="containers loop"),
]
