"""The programs of the annexes of Kostopoulou's thesis, in the face of TensorFlow 1: results are those of its tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import undertow.compat.v1 as tf
from undertow.compat.v1 import function

Declared = Callable[..., Any]


def declare(name: str, parameters: str, result: Any = tf.int32) -> Declared:
    """A function of numbers, to be defined later."""
    return function.Declare(name, [(letter, tf.int32) for letter in parameters], [("ret", result)])


def define(name: str, body: Callable[..., Any]) -> None:
    count = body.__code__.co_argcount
    made = function.Defun(*[tf.int32] * count, func_name=name, out_names=["ret"])(body)
    made.add_to_graph(tf.get_default_graph())


def fibonacci() -> Declared:
    fib = declare("Fib", "n")

    def body(n: Any) -> Any:
        return tf.cond(tf.less_equal(n, 1), lambda: tf.constant(1), lambda: fib(n - 1) + fib(n - 2))

    define("Fib", body)
    return fib


def ackermann() -> Declared:
    ack = declare("Ack", "mn")

    def body(m: Any, n: Any) -> Any:
        def above() -> Any:
            return tf.cond(tf.equal(n, 0), lambda: ack(m - 1, 1), lambda: ack(m - 1, ack(m, n - 1)))

        return tf.cond(tf.equal(m, 0), lambda: n + 1, above)

    define("Ack", body)
    return ack


def takeuchi() -> Declared:
    tak = declare("Tak", "xyz")

    def body(x: Any, y: Any, z: Any) -> Any:
        def inner() -> Any:
            return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))

        return tf.cond(tf.less(y, x), inner, lambda: z)

    define("Tak", body)
    return tak


def primes() -> Declared:
    """Four functions, two of which call each other. Both look at 6i - 1, as printed."""
    count, minus, plus = declare("primes", "x"), declare("PrimeMinus", "ni"), declare("PrimePlus", "ni")
    test = declare("test", "ni", tf.bool)

    def count_body(n: Any) -> Any:
        return tf.cond(
            tf.less_equal(n, 0), lambda: 2, lambda: tf.cond(tf.equal(n, 1), lambda: 3, lambda: minus(n - 2, 1))
        )

    def minus_body(n: Any, i: Any) -> Any:
        def found() -> Any:
            return tf.cond(tf.equal(n, 0), lambda: 6 * i - 1, lambda: plus(n - 1, i))

        return tf.cond(test(6 * i - 1, 1), found, lambda: plus(n, i))

    def plus_body(n: Any, i: Any) -> Any:
        def found() -> Any:
            return tf.cond(tf.equal(n, 0), lambda: 6 * i - 1, lambda: minus(n - 1, i + 1))

        return tf.cond(test(6 * i - 1, 1), found, lambda: minus(n, i + 1))

    def test_body(n: Any, i: Any) -> Any:
        divisor = 6 * i - 1

        def smaller() -> Any:
            return tf.cond(tf.equal(tf.mod(n, divisor), 0), lambda: False, lambda: test(n, i + 1))

        return tf.cond(tf.greater(divisor * divisor, n), lambda: True, smaller)

    for name, body in (
        ("primes", count_body),
        ("PrimeMinus", minus_body),
        ("PrimePlus", plus_body),
        ("test", test_body),
    ):
        define(name, body)
    return count


# The first line of each table (and one of those that follow), whose results do not depend on the machine.
TABLES = [
    (fibonacci, (24,), 75025),
    (fibonacci, (27,), 317811),
    (ackermann, (3, 3), 61),
    (ackermann, (3, 5), 253),
    (takeuchi, (24, 16, 8), 9),
    (takeuchi, (25, 16, 8), 16),
    (primes, (7500,), 42209),
    (primes, (10000,), 57077),
]


@pytest.mark.parametrize(("build", "args", "result"), TABLES)
def test_results_of_the_tables(build: Callable[[], Declared], args: tuple[int, ...], result: int) -> None:
    with tf.Graph().as_default():
        called = build()
        feeds = [tf.placeholder(tf.int32, shape=[]) for _ in args]
        value = called(*feeds)
        with tf.Session() as sess:
            assert sess.run(value, feed_dict=dict(zip(feeds, args, strict=True))) == result


@pytest.mark.parametrize("engine", ["reference", "demand", "expand", "waves"])
@pytest.mark.parametrize(
    ("build", "args", "result"),
    [(fibonacci, (6,), 13), (ackermann, (1, 3), 5), (takeuchi, (4, 2, 1), 2), (primes, (4,), 11)],
)
def test_small_ones_on_every_engine(
    build: Callable[[], Declared], args: tuple[int, ...], result: int, engine: str
) -> None:
    with tf.Graph().as_default():
        value = build()(*args)
        with tf.Session(engine=engine) as sess:
            assert sess.run(value) == result
