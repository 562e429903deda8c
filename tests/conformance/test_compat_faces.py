"""One program, two faces: `@ut.function` and `compat.v1` write the same library, letter by letter.

Each program is there twice, alike on purpose. Its library is compared as text; then both run on every engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.programs.numbers import ackermann, fibonacci_pair, takeuchi
from tests.support.engines import EVERY

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function
from undertow.ir import spec, text


@dataclass(frozen=True)
class Case:
    """A program: as a function, as a builder of fetches and placeholders, and what it gives for some arguments."""

    function: ut.Function
    build: Callable[[], tuple[Any, list[Any]]]
    args: tuple[Any, ...]
    expected: Any


def int32(*names: str) -> list[Any]:
    return [tf.placeholder(tf.int32, [], name) for name in names]


def fed(function: Any, *feeds: Any) -> tuple[Any, list[Any]]:
    return function(*feeds), list(feeds)


def define(*types: Any, **names: Any) -> Callable[[Any], None]:
    """Add the body of a declared function to the graph."""
    return lambda body: function.Defun(*types, **names)(body).add_to_graph(tf.get_default_graph())


def ints(*names: str) -> list[tuple[str, Any]]:
    return [(name, tf.int32) for name in names]


# -- numbers -----------------------------------------------------------------------------------------------


@ut.function
def fac(n: ut.i32) -> ut.i32:
    if n <= 1:
        return 1
    return n * fac(n - 1)


def build_fac():
    fac = function.Declare("fac", ints("n"), ints("r"))

    @define(tf.int32, func_name="fac", out_names=["r"])
    def body(n):
        return tf.cond(n <= 1, lambda: 1, lambda: n * fac(n - 1))

    return fed(fac, *int32("n"))


@ut.function
def fib(n: ut.i32) -> ut.i32:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


def declare_fib():
    fib = function.Declare("fib", ints("n"), ints("r"))

    @define(tf.int32, func_name="fib")
    def body(n):
        return tf.cond(tf.less_equal(n, 1), lambda: 1, lambda: tf.add(fib(n - 1), fib(n - 2)))

    return fib


def build_fib():
    return fed(declare_fib(), *int32("n"))


def build_ackermann():
    ack = function.Declare("ackermann", [("m", tf.int64), ("n", tf.int64)], [("r", tf.int64)])

    @define(tf.int64, tf.int64, func_name="ackermann")
    def body(m, n):
        def deeper():
            return tf.cond(tf.equal(n, 0), lambda: ack(m - 1, 1), lambda: ack(m - 1, ack(m, n - 1)))

        return tf.cond(tf.equal(m, 0), lambda: n + 1, deeper)

    return fed(ack, *(tf.placeholder(tf.int64, [], name) for name in ("m", "n")))


def build_takeuchi():
    tak = function.Declare("takeuchi", ints("x", "y", "z"), ints("r"))

    @define(tf.int32, tf.int32, tf.int32, func_name="takeuchi")
    def body(x, y, z):
        again = lambda: tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))  # noqa: E731
        return tf.cond(x <= y, lambda: z, again)

    return fed(tak, *int32("x", "y", "z"))


@ut.function
def collatz(n: ut.i64, steps: ut.i64) -> ut.i64:
    if n == 1:
        return steps
    return collatz(ut.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1), steps + 1)


def build_collatz():
    long = [("n", tf.int64), ("steps", tf.int64)]
    collatz = function.Declare("collatz", long, [("r", tf.int64)])

    @define(tf.int64, tf.int64, func_name="collatz")
    def body(n, steps):
        def step():
            after = tf.cond(tf.equal(tf.mod(n, 2), 0), lambda: n // 2, lambda: 3 * n + 1)
            return collatz(after, steps + 1)

        return tf.cond(tf.equal(n, 1), lambda: steps, step)

    return fed(collatz, *(tf.placeholder(tf.int64, [], name) for name in ("n", "steps")))


@ut.function
def power(x: ut.f32, n: ut.i32) -> ut.f32:
    if n == 0:
        return 1.0
    if n % 2 == 0:
        return ut.square(power(x, n // 2))
    return x * power(x, n - 1)


def build_power():
    power = function.Declare("power", [("x", tf.float32), ("n", tf.int32)], [("r", tf.float32)])

    @define(tf.float32, tf.int32, func_name="power")
    def body(x, n):
        def halve():
            return tf.cond(tf.equal(n % 2, 0), lambda: tf.square(power(x, n // 2)), lambda: x * power(x, n - 1))

        return tf.cond(tf.equal(n, 0), lambda: 1.0, halve)

    return fed(power, tf.placeholder(tf.float32, [], "x"), *int32("n"))


# -- several functions -------------------------------------------------------------------------------------


@ut.function
def even(n: ut.i32) -> ut.bool:
    return ut.cond(n == 0, lambda: True, lambda: odd(n - 1))


@ut.function
def odd(n: ut.i32) -> ut.bool:
    return ut.cond(n == 0, lambda: False, lambda: even(n - 1))


def build_even():
    even = function.Declare("even", ints("n"), [("r", tf.bool)])
    odd = function.Declare("odd", ints("n"), [("r", tf.bool)])

    @define(tf.int32, func_name="even")
    def even_body(n):
        return tf.cond(tf.equal(n, 0), lambda: True, lambda: odd(n - 1))

    @define(tf.int32, func_name="odd")
    def odd_body(n):
        return tf.cond(tf.equal(n, 0), lambda: False, lambda: even(n - 1))

    return fed(even, *int32("n"))


@ut.function
def divides(n: ut.i32, d: ut.i32) -> ut.bool:
    if d * d > n:
        return False
    return ut.cond(n % d == 0, lambda: True, lambda: divides(n, d + 1))


@ut.function
def prime(k: ut.i32, n: ut.i32) -> ut.i32:
    if divides(n, 2):
        return prime(k, n + 1)
    return ut.cond(k == 0, lambda: n, lambda: prime(k - 1, n + 1))


def build_prime():
    divides = function.Declare("divides", ints("n", "d"), [("r", tf.bool)])
    prime = function.Declare("prime", ints("k", "n"), ints("r"))

    @define(tf.int32, tf.int32, func_name="divides")
    def divides_body(n, d):
        rest = lambda: tf.cond(tf.equal(n % d, 0), lambda: True, lambda: divides(n, d + 1))  # noqa: E731
        return tf.cond(tf.greater(d * d, n), lambda: False, rest)

    @define(tf.int32, tf.int32, func_name="prime")
    def prime_body(k, n):
        found = lambda: tf.cond(tf.equal(k, 0), lambda: n, lambda: prime(k - 1, n + 1))  # noqa: E731
        return tf.cond(divides(n, 2), lambda: prime(k, n + 1), found)

    return fed(prime, *int32("k", "n"))


def build_fibonacci_pair():
    fibs = function.Declare("fibonacci_pair", [("n", tf.int64)], [("a", tf.int64), ("b", tf.int64)])

    @define(tf.int64, func_name="fibonacci_pair", out_names=["a", "b"])
    def body(n):
        def step():
            a, b = fibs(n - 1, name="b")
            return b, a + b

        return tf.cond(tf.equal(n, 0), lambda: (0, 1), step)

    feed = tf.placeholder(tf.int64, [], "n")
    return tuple(fibs(feed)), [feed]


@ut.function
def hypotenuse(a: ut.f64, b: ut.f64) -> ut.f64:
    return ut.sqrt(squares(a, b))


@ut.function
def squares(a: ut.f64, b: ut.f64) -> ut.f64:
    return ut.square(a) + ut.square(b)


def build_hypotenuse():
    @function.Defun(tf.float64, tf.float64)
    def squares(a, b):
        return tf.square(a) + tf.square(b)

    @function.Defun(tf.float64, tf.float64)
    def hypotenuse(a, b):
        return tf.sqrt(squares(a, b))

    return fed(hypotenuse, *(tf.placeholder(tf.float64, [], name) for name in ("a", "b")))


# -- arrays ------------------------------------------------------------------------------------------------

#        0
#      1   2
#     3 4
LEFT = np.array([1, 3, -1, -1, -1], np.int32)
RIGHT = np.array([2, 4, -1, -1, -1], np.int32)
VALUE = np.array([10, 20, 30, 40, 50], np.int32)


@ut.function
def tree_sum(left: ut.i32[None], right: ut.i32[None], value: ut.i32[None], node: ut.i32) -> ut.i32:
    if node < 0:
        return 0
    return value[node] + tree_sum(left, right, value, left[node]) + tree_sum(left, right, value, right[node])


def build_tree_sum():
    arrays = [(name, tf.int32[None]) for name in ("left", "right", "value")]
    tree_sum = function.Declare("tree_sum", [*arrays, ("node", tf.int32)], ints("r"))

    @define(tf.int32[None], tf.int32[None], tf.int32[None], tf.int32, func_name="tree_sum")
    def body(left, right, value, node):
        def inner():
            here = tf.gather(value, node)
            below = tree_sum(left, right, value, tf.gather(left, node))
            return here + below + tree_sum(left, right, value, right[node])

        return tf.cond(node < 0, lambda: 0, inner)

    return fed(tree_sum, *(tf.placeholder(tf.int32, [None], name) for name, _ in arrays), *int32("node"))


WORDS = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)
WEIGHTS = np.linspace(-0.5, 0.5, 18, dtype=np.float32).reshape(6, 3)


@ut.function
def encode(left: ut.i32[5], right: ut.i32[5], words: ut.f32[5, 3], w: ut.f32[6, 3], node: ut.i32) -> ut.f32[3]:
    if left[node] < 0:
        return ut.tanh(words[node])
    return ut.tanh(
        ut.concat([encode(left, right, words, w, left[node]), encode(left, right, words, w, right[node])]) @ w
    )


def build_encode():
    types = [tf.int32[5], tf.int32[5], tf.float32[5, 3], tf.float32[6, 3], tf.int32]
    names = ["left", "right", "words", "w", "node"]
    encode = function.Declare("encode", list(zip(names, types, strict=True)), [("r", tf.float32[3])])

    @define(*types, func_name="encode")
    def body(left, right, words, w, node):
        def inner():
            children = [encode(left, right, words, w, tf.gather(side, node)) for side in (left, right)]
            return tf.tanh(tf.matmul(tf.concat(children, 0), w))

        return tf.cond(tf.gather(left, node) < 0, lambda: tf.tanh(tf.gather(words, node)), inner)

    dtypes, shapes = [tf.int32, tf.int32, tf.float32, tf.float32, tf.int32], [[5], [5], [5, 3], [6, 3], []]
    return fed(encode, *map(tf.placeholder, dtypes, shapes, names))


# -- loops -------------------------------------------------------------------------------------------------


@ut.function
def digits(n: ut.i32) -> ut.i32:
    """The digital root: a loop in a recursive function."""
    if n < 10:
        return n
    rest, total = n, n - n
    while rest > 0:
        total = total + rest % 10
        rest = rest // 10
    return digits(total)


def build_digits():
    digits = function.Declare("digits", ints("n"), ints("r"))

    @define(tf.int32, func_name="digits")
    def body(n):
        def again():
            zero = tf.subtract(n, n, name="total")
            step = lambda rest, total: [  # noqa: E731
                *reversed([tf.add(total, rest % 10, name="total"), tf.floordiv(rest, 10, name="rest")])
            ]
            return digits(tf.while_loop(lambda rest, total: rest > 0, step, [n, zero])[1])

        return tf.cond(n < 10, lambda: n, again)

    return fed(digits, *int32("n"))


@ut.function
def sum_of_fibs(i: ut.i32, n: ut.i32, total: ut.i32) -> ut.i32:
    while i < n:
        total = total + fib(i)
        i = i + 1
    return total


def build_sum_of_fibs():
    fib = declare_fib()

    @function.Defun(tf.int32, tf.int32, tf.int32)
    def sum_of_fibs(i, n, total):
        def step(i, total):
            more = tf.add(total, fib(i), name="total")
            return tf.add(i, 1, name="i"), more

        return tf.while_loop(lambda i, total: i < n, step, (i, total))[1]

    return fed(sum_of_fibs, *int32("i", "n", "total"))


@ut.function
def all_fibs(ns: ut.i32[None]) -> ut.i32[None]:
    return ut.map(lambda x: fib(x), ns)


def build_all_fibs():
    fib = declare_fib()

    @function.Defun(tf.int32[None])
    def all_fibs(ns):
        return tf.map_fn(fib, ns)

    return fed(all_fibs, tf.placeholder(tf.int32, [None], "ns"))


CASES = {
    "factorial": Case(fac, build_fac, (6,), 720),
    "fibonacci": Case(fib, build_fib, (9,), 55),
    "ackermann": Case(ackermann, build_ackermann, (2, 2), 7),
    "takeuchi": Case(takeuchi, build_takeuchi, (5, 3, 1), 2),
    "collatz": Case(collatz, build_collatz, (6, 0), 8),
    "power": Case(power, build_power, (2.0, 10), 1024.0),
    "mutual": Case(even, build_even, (7,), False),
    "primes": Case(prime, build_prime, (5, 2), 13),
    "several results": Case(fibonacci_pair, build_fibonacci_pair, (6,), (8, 13)),
    "a function calls a function": Case(hypotenuse, build_hypotenuse, (3.0, 4.0), 5.0),
    "tree sum": Case(tree_sum, build_tree_sum, (LEFT, RIGHT, VALUE, 0), 150),
    "tree network": Case(encode, build_encode, (LEFT, RIGHT, WORDS, WEIGHTS, 0), None),
    "a loop in a recursion": Case(digits, build_digits, (9875,), 2),
    "a recursion in a loop": Case(sum_of_fibs, build_sum_of_fibs, (0, 7, 0), 33),
    "a recursion in a map": Case(all_fibs, build_all_fibs, ([3, 4, 5],), [3, 5, 8]),
}


@pytest.mark.parametrize("name", CASES)
def test_libraries_are_equal(name: str) -> None:
    case = CASES[name]
    with tf.Graph().as_default() as graph:
        fetch, _ = case.build()
        library = graph.library(fetch)
    spec.check(library)
    assert text.dump(library, spans=False) == text.dump(case.function.library(*case.args), spans=False)


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("name", CASES)
def test_values_are_equal(name: str, engine: str) -> None:
    case = CASES[name]
    with tf.Graph().as_default():
        fetch, feeds = case.build()
        with tf.Session(engine=engine) as session:
            found = session.run(fetch, dict(zip(feeds, case.args, strict=True)))
    ours = case.function.run(*case.args, engine=engine)
    for a, b in zip(*([x] if not isinstance(x, tuple) else x for x in (found, ours)), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.array_equal(a, b)
    assert case.expected is None or np.array_equal(found, case.expected)
