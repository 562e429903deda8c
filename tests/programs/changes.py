"""What a function makes, it may change: lists, dicts, sets, deques, objects and arrays, as in Python."""

import functools
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
from tests.programs.program import program

import undertow as ut


class Account:
    """A plain class: its methods are captured where they are called."""

    fee = 1

    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance
        self.history = []

    @property
    def is_empty(self):
        return self.balance <= 0

    def pay(self, amount):
        self.balance -= amount + self.fee
        self.history.append(amount)
        return self


class Savings(Account):
    def __init__(self, owner, balance, rate):
        super().__init__(owner, balance)
        self.rate = rate

    def pay(self, amount):
        return super().pay(amount + self.rate)


@dataclass
class Tally:
    start: ut.i64
    seen: list = field(default_factory=list)
    total: ut.i64 = 0

    def __post_init__(self):
        self.total = self.start * 2

    def add(self, value):
        self.seen.append(value)
        self.total += value


def note(items, value):
    """A helper that changes the list of its caller."""
    items.append(value)


class Vector:
    """A class with operators, whose methods are captured, too."""

    def __init__(self, *parts):
        self.parts = list(parts)

    def __add__(self, other):
        return Vector(*[a + b for a, b in zip(self.parts, other.parts, strict=True)])

    def __rmul__(self, factor):
        return Vector(*[factor * part for part in self.parts])

    def __iadd__(self, part):
        self.parts.append(part)
        return self

    def __getitem__(self, k):
        return self.parts[k]

    def __setitem__(self, k, value):
        self.parts[k] = value

    def __len__(self):
        return len(self.parts)

    def __contains__(self, part):
        return any(part == p for p in self.parts)

    def __iter__(self):
        for part in self.parts:
            yield part
            yield -2 * part


def running_sums(values):
    total = 0
    for value in values:
        total = total + value
        yield total


def naturals():
    n = 0
    while True:
        yield n
        n += 1


@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@ut.function
def changed_lists(n: ut.i64) -> ut.i64:
    items = [3]
    note(items, n)
    note(items, 2 * n)
    items += [4]
    items[0] -= 1
    items.insert(1, 7)
    del items[2]
    rest = items[1:]
    rest.reverse()
    return items[0] + 10 * rest[0] + 100 * rest[1] + 1000 * len(items)


@ut.function
def changed_in_branches(n: ut.i64) -> ut.i64:
    queue, table = deque([1, 2]), {"a": 1, "b": n}
    account = Account("me", 10)
    if n > 3:
        queue.append(n)
        table["a"] += n
        account.pay(n)
    else:
        queue.append(7)
        table["b"] = 5
        account.history.append(0)
        account.balance = n
    return queue.popleft() + queue[-1] + table["a"] * table["b"] + account.balance + account.history[0]


@ut.function
def objects(n: ut.i64) -> tuple[ut.i64, ut.bool, ut.i64]:
    account = Savings("me", 100, 2).pay(n)
    tally = Tally(n)
    tally.add(3)
    for value in range(3):
        tally.add(value * n)
    tally.start = 5
    return account.balance + account.history[0], account.is_empty, tally.total + len(tally.seen) + tally.start


@ut.function
def standard_containers(n: ut.i64) -> ut.i64:
    groups = defaultdict(list)
    for k in range(5):
        groups[k % 2].append(k * n)
    counts = Counter("abracadabra")
    counts["a"] += 1
    rows = list(map(list, zip([1, 2], [n, 4], strict=True)))
    rows[1][0] += n
    items = iter([1, 2, 3])
    return sum(groups[1]) + counts["a"] + rows[1][0] + next(items) + 10 * next(items) + fib(30) + sum(map(abs, [n, -1]))


@ut.function
def arrays_in_place(x: ut.f64[3], n: ut.i64) -> tuple[ut.f64[3], ut.f64[3], ut.f64[3]]:
    total = np.zeros(3)
    copy = x.copy()
    for _ in range(n):
        total += x
        total *= 0.5
    if n > 2:
        copy -= 1
    parts = [2 * x, x]
    parts[0] /= 4
    half = np.ones(3, np.float32)
    half += copy  # stays f32
    return total, copy + parts[0], half.astype(np.float64)


@ut.function
def operators(n: ut.i64) -> tuple[ut.i64, ut.bool]:
    a, b = Vector(n, 1), Vector(2, 3)
    c = 3 * (a + b)
    c[0] = c[0] - 1
    c += n
    return c[0] + 10 * c[-1] + len(c) + sum(c), 2 in c


@ut.function
def generators(n: ut.i64) -> ut.i64:
    total = 0
    for sum_so_far in running_sums([n, 2, n]):
        if sum_so_far > 6:
            break
        total += sum_so_far
    for k in naturals():
        if k == 4:
            break
        total += k * n
    first, *_ = running_sums([n, 1])
    items = running_sums([n, 10, 100])
    return total + first + next(items) + 2 * next(items)


@ut.function
def arrays_like_others(x: ut.f64[3], n: ut.i64):
    """Arrays that are made from a traced one are new, and may change."""
    total, twos = np.zeros_like(x), np.full_like(x, 2.0)
    twos *= x
    for k in range(n):
        total += x * k
    ones = ut.ones(3)
    ones -= x
    return total, twos, ones


PROGRAMS = [
    program(arrays_like_others, (np.array([1.0, 2.0, 4.0]), 3), tags="arrays loop"),
    program(operators, (1,), (5,), tags="containers"),
    program(generators, (1,), (5,), tags="branch"),
    program(changed_lists, (1,), (5,), tags="containers"),
    program(changed_in_branches, (1,), (5,), tags="containers branch"),
    program(objects, (1,), (200,), tags="containers"),
    program(standard_containers, (3,), tags="containers"),
    program(arrays_in_place, (np.array([1.0, 2.0, 4.0]), 0), (np.array([1.0, 2.0, 4.0]), 4), tags="arrays loop"),
]
