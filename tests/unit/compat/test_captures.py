"""Functions that use tensors from around them, draw random numbers, or take arguments of any shape.

s = tf.placeholder(...)        main:  y = call 5.0, s callee="Fac"
def Fac(n): ... s ...          Fac(n, s): ... call n - 1, s callee="Fac" ...
"""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function


def run(fetches, feed_dict=None, **options):
    with tf.Session(**options) as session:
        return session.run(fetches, feed_dict)


def declare(name, kind=tf.float32, result=tf.float32):
    return function.Declare(name, [("n", kind)], [("r", result)])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_recursive_function_captures(engine, graph):
    s = tf.placeholder(tf.float32, [], name="s")
    fac = declare("Fac")

    @function.Defun(tf.float32, func_name="Fac")
    def impl(n):
        return tf.cond(n < 1.0, lambda: s, lambda: n * fac(n - 1.0))

    impl.add_to_graph(graph)
    y = fac(5.0)
    slope = tf.gradients(y, s)[0]
    in_branch = tf.cond(s > 0.0, lambda: fac(3.0) + s, lambda: s)
    in_loop = tf.while_loop(lambda k, a: k < 3, lambda k, a: (k + 1, a + fac(2.0)), [0, 0.0])[1]
    found = run([y, slope, in_branch, in_loop], {s: 2.0}, engine=engine)
    assert found == [240, 120, 14, 12]
    assert [t.name for t in impl.captured_inputs] == ["s:0"]


@pytest.mark.parametrize("engine", ENGINES)
def test_mutual_recursion_captures_in_one_of_them(engine, graph):
    s = tf.placeholder(tf.int32, [], name="s")
    even, odd = declare("Even", tf.int32, tf.int32), declare("Odd", tf.int32, tf.int32)

    @function.Defun(tf.int32, func_name="Even")
    def even_impl(n):
        return tf.cond(n < 1, lambda: s * 10, lambda: odd(n - 1))

    result = [even(4), odd(4)]  # before Odd is defined

    @function.Defun(tf.int32, func_name="Odd")
    def odd_impl(n):
        return tf.cond(n < 1, lambda: -s, lambda: even(n - 1))

    even_impl.add_to_graph(graph)
    odd_impl.add_to_graph(graph)
    assert run(result, {s: 3}, engine=engine) == [30, -3]


def test_a_function_in_a_function_in_a_loop():
    s = tf.placeholder(tf.float32, [], name="s")

    @function.Defun(tf.float32)
    def outer(x):
        t = x * 3.0

        @function.Defun(tf.float32)
        def inner(y):
            return y + t + s

        return tf.while_loop(lambda k, a: k < 2, lambda k, a: (k + 1, a + inner(x) * a), [0, 1.0])[1]

    y = outer(1.0)
    assert run([y, tf.gradients(y, s)[0]], {s: 1.0}) == [36, 12]


def test_what_is_captured_can_be_fed_and_may_be_a_result_of_control_flow():
    x = tf.placeholder(tf.float32, [], name="x")
    middle = tf.cond(x > 0.0, lambda: x * 2.0, lambda: -x)

    @function.Defun(tf.float32)
    def add(y):
        return y + middle

    y = add(1.0)
    assert run(y, {x: 3.0}) == 7 and run(y, {middle: 10.0}) == 11


def test_a_tensor_of_another_function_is_refused():
    kept = []

    @function.Defun(tf.float32)
    def first(x):
        kept.append(x * 2.0)
        return x

    first(1.0)

    @function.Defun(tf.float32)
    def second(x):
        return x + kept[0]

    with pytest.raises(ut.UndertowError, match=r"used after its function|belongs to"):
        run(second(1.0))


def test_order_is_not_captured():
    x = tf.identity(tf.constant(1.0) * 2.0)

    @function.Defun(tf.float32)
    def ordered(y):
        with tf.control_dependencies([x]):
            return y * 2.0

    with pytest.raises(ValueError, match="not an element of this graph"):
        ordered(1.0)


@pytest.mark.parametrize("engine", ENGINES)
def test_random_numbers_in_recursive_functions(engine, graph):
    walk = declare("Walk", tf.int32)

    @function.Defun(tf.int32, func_name="Walk")
    def impl(n):
        return tf.cond(n < 1, lambda: 0.0, lambda: tf.random_uniform([]) + walk(n - 1))

    before = walk(20)
    looped = tf.while_loop(lambda k, a: k < 3, lambda k, a: (k + 1, a + walk(2)), [0, 0.0])[1]
    impl.add_to_graph(graph)
    one, other = run([before, looped], engine=engine), run([before, looped], engine=engine)
    assert 4 < one[0] < 16 and one != other
    both = run([walk(1), walk(1)], engine=engine)
    assert both[0] != both[1]  # two calls, two numbers
    with ut.options(seed=3):
        first = run([before, looped], engine=engine)
    with ut.options(seed=3):
        assert run([before, looped], engine=engine) == first


def test_gradients_through_random_numbers():
    x = tf.placeholder(tf.float32, [], name="x")

    @function.Defun(tf.float32)
    def noisy(y):
        return y * tf.random_uniform([], seed=5)

    y = noisy(x)
    value, slope = run([y, tf.gradients(y, x)[0]], {x: 2.0})
    assert value == pytest.approx(2 * slope)


# -- shapes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bare_type_takes_any_shape(engine, graph):
    double = function.Declare("Double", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @function.Defun(tf.float32, tf.int32, func_name="Double")
    def impl(x, n):
        return tf.cond(n < 1, lambda: x, lambda: double(x * 2.0, n - 1))

    impl.add_to_graph(graph)
    calls = [double([1.0, 2.0], 3), double(tf.ones([2, 2]), 2), double(1.0, 4), impl(np.ones(3, np.float32), 1)]
    found = run(calls, engine=engine)
    assert found[0].tolist() == [8, 16] and found[1].tolist() == [[4, 4], [4, 4]] and found[2] == 16
    assert found[3].tolist() == [2, 2, 2] and [call.shape.ndims for call in calls] == [1, 2, 0, 1]


def test_shapes_that_change_at_the_recursive_call(graph):
    total = function.Declare("Total", [("x", tf.float32)], [("y", tf.float32)])

    @function.Defun(tf.float32, func_name="Total")
    def impl(x):
        return tf.cond(tf.size(x) < 2, lambda: tf.reduce_sum(x), lambda: x[0] + total(x[1:]))

    impl.add_to_graph(graph)
    x = tf.placeholder(tf.float32, [None])
    assert run([total([1.0, 2.0, 3.0]), total(x)], {x: np.ones(7)}) == [6, 7]


def test_each_combination_of_shapes_is_traced_once():
    traced = []

    @function.Defun(tf.float32, tf.float32)
    def product(a, b):
        traced.append((a.shape.as_list(), b.shape.as_list()))
        return tf.matmul(a, b)

    a, b = tf.ones([2, 3]), tf.ones([3, 1])
    assert product(a, b).shape.as_list() == [2, 1] and run(product(a, b)).tolist() == [[3], [3]]
    assert run(product(b, tf.transpose(b))).shape == (3, 3)
    assert traced == [([2, 3], [3, 1]), ([3, 1], [1, 3])]


def test_a_result_that_was_taken_for_a_number():
    half = function.Declare("Half", [("x", tf.float32)], [("y", tf.float32)])
    y = half([1.0, 2.0])  # nobody knows yet what it gives

    @function.Defun(tf.float32, func_name="Half")
    def impl(x):
        return x / 2.0

    impl.add_to_graph(tf.get_default_graph())
    with pytest.raises(ut.GraphError, match=r"is a tf.float32\[2\], but was taken for tf.float32 where it was called"):
        run(y)
    assert run(half([1.0, 2.0])).tolist() == [0.5, 1.0]
