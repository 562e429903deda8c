"""Containers as arguments and results: tuples, named tuples, dicts, lists, dataclasses, one inside the other.

Subclasses of the user's keep their class and its methods.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from tests.programs.program import program

import undertow as ut


@dataclass(frozen=True)
class Box:
    low: ut.f64
    high: ut.f64


class Summary(NamedTuple):
    count: ut.i64
    total: ut.f64


@dataclass
class Account:
    owner: ut.i64
    box: Box
    history: tuple[ut.i64, ut.i64]


@ut.function
def bisect(box: Box, depth: ut.i64) -> Box:
    if depth == 0:
        return box
    middle = (box.low + box.high) / 2.0
    if middle * middle * middle > 2.0:
        return bisect(Box(box.low, middle), depth - 1)
    return bisect(replace(box, low=middle), depth - 1)


@ut.function
def summarise(n: ut.i64, scale: ut.f64) -> Summary:
    if n == 0:
        return Summary(0, 0.0)
    rest = summarise(n - 1, scale)
    return Summary(rest.count + 1, rest.total + n * scale)


@ut.function
def account(start: Account, n: ut.i64) -> Account:
    """A dataclass of a dataclass and a tuple."""
    if n == 0:
        return start
    older, newer = start.history
    moved = Account(start.owner + 1, Box(start.box.low - n, start.box.high + n), (newer, older + n))
    return account(moved, n - 1)


@ut.function
def dict_of_lists(state, n: ut.i64) -> {"sums": [ut.i64, ut.i64], "last": ut.i64}:  # noqa: F821 - keys
    if n <= 0:
        return state
    a, b = state["sums"]
    following = {"sums": [b, a + b], "last": n}
    if n % 3 == 0:
        following["last"] = -n
    return dict_of_lists(following, n - 1)


@ut.function
def built_up(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    """Lists and dicts that are changed in place, in branches too, and stay inside."""
    items = [n, n + 1]
    items.append(n * 2)
    table = {"a": 1}
    if n > 3:
        items[0] = 7
        table["a"] = n
    else:
        items[1] += 100
    for k in range(2):
        items.append(items[-1] + k)
    return sum(items), table["a"]


@ut.function
def passed_through(pair: tuple[ut.i64, ut.i64], n: ut.i64) -> tuple[tuple[ut.i64, ut.i64], list]:
    return pair, [n, (pair[0] + n, {"k": 3})]


@ut.function
def unannotated(config, n):
    """Types of the actual call; strings and None in containers are part of the signature."""
    value = config["scale"] * n
    if config["mode"] == "double":
        value = value * 2
    return {"value": value, "mode": config["mode"], "none": None, "size": config["weights"].sum()}


@ut.function
def loop_over_container(n: ut.i64) -> tuple[ut.i64, ut.f64]:
    """A container is a variable of a loop."""
    state = {"k": 0, "box": Box(0.0, 1.0)}
    while state["k"] < n:
        state = {"k": state["k"] + 1, "box": Box(state["box"].high, state["box"].low + 0.5)}
    return state["k"], state["box"].low - state["box"].high


class Vec(tuple):
    """Adds by elements, where a tuple is joined with the other."""

    def __add__(self, other):
        return Vec(a + b for a, b in zip(self, other, strict=True))


class Scaled(dict):
    scale = 10.0

    def __getitem__(self, key):
        return Scaled.scale * dict.__getitem__(self, key)

    __getattr__ = dict.__getitem__


class Backwards(list):
    def __iter__(self):
        return reversed([list.__getitem__(self, k) for k in range(len(self))])


@ut.function
def vector_walk(at, step, n: ut.i64) -> ut.f64:
    return at[0] - at[1] if n == 0 else vector_walk(at + step, step, n - 1)


@ut.function
def read_by_methods(table, items):
    total = 0.0
    for item in items:
        total = 10.0 * total + item
    return table["a"] + table.b, total, items


@dataclass(order=True)
class Version:
    major: ut.i64
    minor: ut.i64
    note: str = field(default="", compare=False)


@ut.function
def compared(a: ut.i64, b: ut.f64):
    """Containers compare item by item."""
    pair, known = (a, b), (2, 0.5)
    return (
        pair == known, pair != known, pair < known, pair <= known, pair > (2,), [a, "x"] >= [2, "w"],
        {"a": a, "b": [b]} == {"b": [0.5], "a": 2}, {"a": a} == {"b": a}, (a, (b, None)) == (2, (0.5, None)),
        pair in [(1, 1.5), known], [a] not in ([2], None), pair == [a, b], ("x", a) < ("y", "z"),
        Version(a, 3, "new") == Version(2, 3), Version(a, a) < Version(2, 3), Version(a, 1) in [Version(2, 1)],
    )  # fmt: skip


@ut.function
def to_the_origin(x: ut.i64, y: ut.i64) -> ut.i64:
    if (x, y) == (0, 0):
        return 0
    return 1 + to_the_origin(*((x - 1, y) if (x, 0) > (0, y) else (x, y - 1)))


class Cons(NamedTuple):
    head: ut.f64
    tail: object


CHAIN = Cons(1.0, Cons(2.0, Cons(3.0, None)))


@ut.function
def item_of_chain(chain, n: ut.i64) -> ut.f64:
    """The graph has a function for the end of the chain, too, which raises on every path and is not reached."""
    if n == 0:
        return chain.head
    return item_of_chain(chain.tail, n - 1)


@ut.function
def item_of_pairs(pairs, x: ut.f64) -> ut.f64:
    first = pairs[0]
    return item_of_pairs(pairs[1], x - 1.0) if x > first else first


PROGRAMS = [
    program(item_of_chain, (CHAIN, 0), (CHAIN, 2), tags="containers recursive"),
    program(item_of_chain, (CHAIN, 5), tags="containers recursive fault", name="item_behind_a_chain"),
    program(item_of_pairs, ((1.0, (2.0, (3.0, None))), 2.5), tags="containers recursive"),
    program(compared, (2, 0.5), (2, 1.5), (1, 0.5), (3, 0.0), (1, 1.5), (2, np.nan), tags="containers"),
    program(to_the_origin, (0, 0), (3, 4), tags="containers recursive"),
    program(bisect, (Box(0.0, 2.0), 0), (Box(0.0, 2.0), 20), tags="containers recursive"),
    program(summarise, (0, 2.0), (7, 0.5), tags="containers recursive"),
    program(account, (Account(1, Box(0.0, 1.0), (2, 3)), 4), tags="containers recursive"),
    program(dict_of_lists, ({"sums": [1, 1], "last": 0}, 8), tags="containers recursive"),
    program(built_up, (0,), (5,), tags="containers branch"),
    program(passed_through, ((1, 2), 3), tags="containers"),
    program(
        unannotated,
        ({"scale": 1.5, "mode": "double", "weights": np.ones(3)}, 4),
        ({"scale": 1.5, "mode": "once", "weights": np.ones(3)}, 4),
        tags="containers",
    ),
    program(loop_over_container, (0,), (5,), tags="containers loop"),
    program(vector_walk, (Vec((1.0, 2.0)), Vec((0.5, -1.0)), 3), tags="containers recursive"),
    program(read_by_methods, (Scaled(a=1.0, b=2.0), Backwards([3.0, 4.0])), tags="containers"),
]
