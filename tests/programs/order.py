"""What Python evaluates, and when: generators, any and all, chains, messages, special methods; and copies."""

from __future__ import annotations

import copy
import dataclasses
import functools
import math

import numpy as np
from tests.programs.program import program

import undertow as ut


def shown(tag, value):
    print(tag, value)
    return value


@ut.function
def lazy_items(n: ut.i64) -> tuple[list, ut.i64]:
    """A generator makes an item when it is asked for one, with what its names hold then."""
    factor = n
    items = (shown("item", factor * i) for i in range(4))
    print("made")
    first = next(items)
    factor = 10
    second = next(items)
    never = map(print, [n, n])
    print("asked twice", second)
    doubled = (i * factor for i in [n, 1])
    factor = 100
    return [first, second, *doubled], len([never])


@ut.function
def delegated(n: ut.i64) -> list:
    """What a generator returns is the value of `yield from`."""

    def inner():
        print("inner")
        yield n
        return n * 7

    def outer():
        returned = yield from inner()
        yield from (returned + i for i in range(2))

    return list(outer())


@ut.function
def decided_early(n: ut.i64) -> tuple[bool, bool, bool]:
    """`any` and `all` ask for no more items than they need."""
    found = any(shown("any", v) > n for v in [0, 1, 2, 3])
    kept = all(shown("all", v) < n for v in [0, 1, 2, 3])
    safe = any(6 // (v - n) > 2 for v in [n + 1, n])
    return found, kept, safe


@ut.function
def long_chain(a: ut.i64, b: ut.i64, c: ut.i64) -> tuple[bool, bool]:
    """Each operand of a chain is evaluated once, and only if all before it hold."""
    talks = a < shown("b", b) < shown("c", c) < shown("last", 10)
    return talks, a < b < 60 // b < 60 // (b - a)


@ut.function
def told_if_wrong(n: ut.i64) -> ut.i64:
    """The message of an assertion is evaluated only if it fails."""
    assert n > 0, shown("message", f"{n} is not positive")
    if n > 5:
        assert n > 7, f"six or seven: {n}"
        if n == 9:
            assert False, "never nine"  # noqa: B011, PT015 - a condition known at capture, in a branch
    return n


@ut.function
def layouts(n: ut.i64, p: bool, x: ut.f32[2]) -> str:
    """A conversion makes a text, which is laid out as one; `str` of an f32 has fewer digits than its float."""
    print(x[0], str(x[1]), [x[0]])
    return f"{n!s:6}|{n!r:>6}|{n:6}|{p!s:>6}|{p:>6}|{x[0]}|{x[0]!s:>8}"


@ut.function
def rows_of_lists(n: ut.i64, m: ut.i64) -> tuple[list, tuple, ut.i64, bool, str]:
    """A row of a nested list is a list, at an index known at run time too."""
    table = [[1, 2], [3, 4]]
    named = [("a", 1, 2.5), ("a", 7, 0.5)][n]
    chosen = [np.zeros(2), np.ones(2)][n]
    return table[n] + [5, 6], named, table[n][m], bool([10, 0][n > 0]), str(chosen)


class Default(dict):
    def __missing__(self, key):
        print("missing", key)
        self[key] = len(self)
        return self[key]


class Sized:
    def __init__(self, size):
        self.size, self.asked = size, []

    def __len__(self):
        return self.size

    @property
    def twice(self):
        self.asked.append(self.size)
        return self.size * 2

    def __getattr__(self, name):
        return self.size + len(name)

    def __format__(self, spec):
        return f"<{self.size:{spec}}>"

    def __lt__(self, other):
        return [self.size, other.size]


@ut.function
def special_methods(n: ut.i64) -> tuple[bool, bool, list, ut.i64, list]:
    sized = Sized(n)
    table = Default()
    print(f"{sized:3} {table['a']} {table['b']} {table['a']}")
    both = sized.twice + sized.other
    return bool(sized), any([sized, Sized(0)]), sized.asked, both, Sized(1) < sized < Sized(n + 1)


class Kept:
    def __init__(self, size):
        self.size = size

    @functools.cached_property
    def twice(self):
        print("computed")
        return self.size * 2

    def __call__(self, by):
        return self.size + by

    def __delattr__(self, name):
        print("del", name)
        object.__delattr__(self, name)


class Below(Kept):
    """It inherits what it is called with."""


class Clipped:
    """A descriptor that checks what it is given."""

    def __get__(self, owner, kind=None):
        return owner.held

    def __set__(self, owner, value):
        if value < 0:
            print("clipped", value)
        owner.held = max(value, 0)


@dataclasses.dataclass
class Doubling:
    x: float

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)


class WithClipped:
    limit = Clipped()


@ut.function
def objects_in_order(n: ut.i64) -> tuple[ut.i64, ut.i64, ut.f64, ut.i64, bool]:
    """A cached property is computed once; `__call__` may be inherited; descriptors and `__setattr__` are captured."""
    kept = Below(n)
    first = kept.twice
    kept.size = 100
    second = kept.twice + kept(1)
    del kept.size
    held = WithClipped()
    held.limit = n
    return first, second, Doubling(n * 0.5).x, held.limit, hasattr(kept, "size")


@ut.function
def wide_floats(x: ut.f32[2], k: ut.i32[2]) -> tuple[ut.f64, ut.f64, ut.f32, ut.f32[2], ut.i64, ut.i32[2]]:
    """`math`, float() and x.item() give Python's floats: of 53 bits, and an f32 beside one."""
    narrow = float(x[0]) + x[1]
    return math.exp(x[0]), x[0].item() + 1e-9, narrow, math.sqrt(x[1]) * x, k[0].item() * 2**33, k[1].item() * k


@ut.function
def copies(n: ut.i64, x: ut.f64[2]) -> tuple[list, list, ut.f64[2], ut.f64[2]]:
    """Copies are of their own."""
    items = [[n], x]
    deep = copy.deepcopy(items)
    items[0].append(5)
    deep[1] += 1
    other = copy.copy(x)
    other *= 3
    return items[0], deep[0], deep[1] - x, other


PROGRAMS = [
    program(lazy_items, (3,), (-2,), tags="effects containers"),
    program(delegated, (3,), (-2,), tags="effects containers"),
    program(decided_early, (1,), (0,), (5,), tags="effects branch"),
    program(long_chain, (1, 2, 3), (2, 1, 3), (1, 5, 3), (1, 2, 0), tags="effects branch"),
    program(told_if_wrong, (1,), (8,), tags="effects branch"),
    program(told_if_wrong, (6,), name="told_six", tags="effects branch fault"),
    program(told_if_wrong, (9,), name="told_nine", tags="effects branch fault"),
    program(told_if_wrong, (0,), name="told_nothing_positive", tags="effects branch fault"),
    program(
        layouts, (12, True, np.array([0.1, 1e10], np.float32)), (-5, False, np.ones(2, np.float32)), tags="effects"
    ),
    program(rows_of_lists, (0, 1), (1, 0), (-1, -2), tags="containers arrays"),
    program(special_methods, (0,), (3,), tags="effects containers"),
    program(objects_in_order, (3,), (-2,), tags="effects containers branch"),
    program(wide_floats, (np.array([0.1, 0.3], np.float32), np.array([3, -4], np.int32)), tags="arrays"),
    program(copies, (3, np.array([1.0, 2.0])), tags="containers arrays"),
]
