"""Declare and Defun: names, types, order of definition, several graphs."""

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


def define_power(name="Power"):
    power = function.Declare(name, [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @function.Defun(tf.float32, tf.int32, func_name=name, out_names=["y"])
    def impl(x, n):
        return tf.cond(tf.equal(n, 0), lambda: tf.constant(1.0), lambda: x * power(x, n - 1))

    return power, impl


@pytest.mark.parametrize("engine", ENGINES)
def test_a_recursive_function(engine, graph):
    power, impl = define_power()
    impl.add_to_graph(graph)
    x = tf.placeholder(tf.float32, [])
    found = run(power(x, 10), {x: 2}, engine=engine)
    assert found == 1024 and found.dtype == np.float32


def test_the_definition_can_be_called_like_the_declaration():
    power, impl = define_power()
    assert run([power(3.0, 2), impl(3.0, 2)]) == [9, 9]


def test_called_before_it_is_defined(graph):
    double = function.Declare("Double", [("x", tf.int32)], [("y", tf.int32)])
    result = double(21)

    @function.Defun(tf.int32, func_name="Double")
    def impl(x):
        return x * 2

    impl.add_to_graph(graph)
    assert run(result) == 42


def test_mutual_recursion_in_any_order():
    even = function.Declare("Even", [("n", tf.int32)], [("r", tf.bool)])
    odd = function.Declare("Odd", [("n", tf.int32)], [("r", tf.bool)])

    @function.Defun(tf.int32, func_name="Even")
    def even_impl(n):
        return tf.cond(tf.equal(n, 0), lambda: True, lambda: odd(n - 1))

    result = [even(10), odd(10)]

    @function.Defun(tf.int32, func_name="Odd")
    def odd_impl(n):
        return tf.cond(tf.equal(n, 0), lambda: tf.constant(False), lambda: even_impl(n - 1))

    assert run(result) == [True, False]


def test_functions_survive_a_new_graph():
    power, impl = define_power("Survivor")
    assert run(power(2.0, 3)) == 8
    tf.reset_default_graph()
    assert run(power(2.0, 4)) == 16
    tf.reset_default_graph()
    assert run(impl(2.0, 5)) == 32
    with tf.Graph().as_default():
        assert run(power(2.0, 6)) == 64


def test_graphs_may_have_other_functions_of_the_same_name():
    graphs = []
    for factor in (2, 3):
        with tf.Graph().as_default() as graph:
            times = function.Declare("Times", [("x", tf.int32)], [("y", tf.int32)])

            @function.Defun(tf.int32, func_name="Times")
            def impl(x, factor=factor):
                return x * factor

            impl.add_to_graph(graph)
            graphs.append((graph, times(10)))
    for (graph, result), expected in zip(graphs, (20, 30), strict=True):
        with tf.Session(graph=graph) as session:
            assert session.run(result) == expected


def test_functions_without_a_name_may_be_called_alike():
    functions = []
    for factor in (2, 3):

        @function.Defun(tf.int32)
        def times(x, factor=factor):
            return x * factor

        functions.append(times)
    functions.append(function.Defun(tf.int32)(lambda x: x + 1))
    functions.append(function.Defun(tf.int32)(lambda x: x + 2))
    assert run([f(10) for f in functions]) == [20, 30, 11, 12]


def test_a_function_called_main():
    main = function.Declare("main", [("n", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32, func_name="main")
    def impl(n):
        return tf.cond(n > 0, lambda: main(n - 1), lambda: n)

    assert run(main(3)) == 0


def test_several_results():
    @function.Defun(tf.int32, tf.int32, out_names=["q", "r"])
    def divide(a, b):
        return a // b, tf.mod(a, b)

    quotient, rest = divide(17, 5)
    assert run([quotient, rest]) == [3, 2]
    assert run(rest) == 2


def test_arrays_as_arguments_and_results():
    @function.Defun(tf.float32[2, 3], tf.float32[3])
    def product(matrix, vector):
        return tf.reduce_sum(matrix * vector, axis=1)

    assert run(product(np.ones((2, 3)), [1, 2, 3])).tolist() == [6, 6]


def test_any_length():
    total = function.Declare("Total", [("x", tf.int32[None]), ("k", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32[None], tf.int32, func_name="Total")
    def impl(x, k):
        return tf.cond(k < tf.size(x), lambda: x[k] + total(x, k + 1), lambda: 0)

    assert run([total([1, 2, 3], 0), total([4, 5, 6, 7], 1)]) == [6, 18]


def test_types_of_the_call_where_none_are_given():
    @function.Defun()
    def double(x):
        return x + x

    whole, real = double(tf.constant(4)), double(tf.constant([1.5, 2.5]))
    assert whole.dtype == tf.int32 and real.dtype == tf.float32
    found = run([whole, real])
    assert found[0] == 8 and found[1].tolist() == [3, 5]


def test_without_arguments():
    @function.Defun()
    def answer():
        return tf.constant(42)

    assert run(answer()) == 42


def test_varargs_and_defaults():
    @function.Defun(tf.int32, tf.int32, tf.int32)
    def total(*values):
        return tf.add_n(values)

    @function.Defun(tf.int32)
    def scaled(x, by=3):
        return x * by

    assert run([total(1, 2, 3), scaled(5)]) == [6, 15]


def test_defaults_without_types_and_keywords_are_refused():
    with pytest.raises(ValueError, match=r"are not supported: `by=3` of `scaled`"):

        @function.Defun()
        def scaled(x, by=3):
            return x * by

    with pytest.raises(ValueError, match=r"are not supported: `\*\*more` of `total`"):

        @function.Defun(tf.int32)
        def total(x, **more):
            return x


def test_constants_and_variables_from_outside():
    three = tf.constant(3)
    state = tf.Variable(100)

    @function.Defun(tf.int32)
    def add_all(x):
        return x + three + state

    result = tf.constant(10) * add_all(1)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(result) == 1040


def test_the_body_is_traced_once():
    count = []

    @function.Defun(tf.int32)
    def once(x):
        count.append(x)
        return x + 1

    result = once(once(once(0)))
    assert len(count) == 1
    with tf.Session() as session:
        assert [session.run(result) for _ in range(3)] == [3, 3, 3]
    assert len(count) == 1


@pytest.mark.slow
def test_a_long_chain_of_functions():
    """A chain of declared functions needs no host stack, however long."""
    links = [function.Declare(f"Link{k}", [("x", tf.int32)], [("y", tf.int32)]) for k in range(1200)]

    def define(k):
        @function.Defun(tf.int32, func_name=f"Link{k}")
        def link(x):
            return links[k + 1](x + 1) if k + 1 < len(links) else x

    for k in range(len(links)):
        define(k)
    library = tf.get_default_graph().library(links[0](0))
    assert len(library.functions) == 1201


@pytest.mark.slow
def test_a_chain_of_undeclared_functions_that_is_too_long_says_so():
    functions = []

    def define(k):
        @function.Defun(tf.int32)
        def link(x):
            return functions[k + 1](x + 1) if k + 1 < 2000 else x

        return link

    functions += [define(k) for k in range(2000)]
    with pytest.raises(ut.CaptureError, match=r"too many undeclared functions") as caught:
        functions[0](1)
    assert "Declare" in caught.value.hint


def test_a_failed_body_leaves_the_graph_usable():
    @function.Defun(tf.int32)
    def bad(x):
        return x if x > 0 else -x

    with pytest.raises(ut.CaptureError, match="cannot be tested in Python"):
        bad(3)
    assert run(tf.constant(1) + 1) == 2


def test_base_cases_are_asked_for():
    forever = function.Declare("Forever", [("n", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32, func_name="Forever")
    def impl(n):
        return forever(n + 1)

    with pytest.raises(ut.CaptureError, match="no path through `Forever`"):
        run(forever(0))


@pytest.mark.slow
def test_depth_is_user_data():
    down = function.Declare("Down", [("n", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32, func_name="Down")
    def impl(n):
        return tf.cond(n > 0, lambda: 1 + down(n - 1), lambda: 0)

    assert run(down(5000)) == 5000
    with pytest.raises(ut.RecursionLimit) as caught:
        run(down(5000), max_depth=100)
    assert len(caught.value.calls) >= 100


def test_devices_are_recorded(graph):
    @function.Defun(tf.int32)
    def placed(n):
        with tf.device("/job:local/task:1"):
            below = tf.while_loop(lambda i: i > 0, lambda i: i - 2, [n])
            with tf.device("/cpu:0"):
                return below * 2

    with tf.device("/job:local"):
        result = placed(5)
    with tf.device("/job:a"), tf.device(None):
        free = result + 1
    text = str(graph.library(free))
    assert 'call 5:i32 callee="placed" device="/job:local"' in text
    assert 'subtract i.if#0, 2:i32 device="/job:local/task:1"' in text
    assert 'multiply loop, 2:i32 device="/job:local/task:1/device:CPU:0"' in text
    assert "add placed, 1:i32\n" in text
    assert result.device == "/job:local" and free.device == ""
    assert run(free) == -1


def test_ut_device_around_a_call():
    """The name of a device is not taken for that of a function."""

    @ut.function
    def inner(x: ut.i64) -> ut.i64:
        return x + 1

    @ut.function
    def outer(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            while x < 10:
                x = inner(x)
        return x

    text = str(outer.library(3))
    assert 'inner" device="worker:1"\n' in text
    assert outer(3) == 10


def test_an_older_function_of_the_same_name_is_not_meant():
    """As in a notebook: what was defined for another declaration, with other types, is not taken for this one's."""
    function.Declare("Again", [("x", tf.float32)], [("y", tf.float32)])
    function.Defun(tf.float32, func_name="Again")(lambda x: x)
    tf.reset_default_graph()
    again = function.Declare("Again", [("x", tf.int32)], [("y", tf.int32)])
    result = again(5)
    with pytest.raises(ut.GraphError, match="never defined"):
        run(result)
    function.Defun(tf.int32, func_name="Again")(lambda x: x + 1)
    assert run(result) == 6


@ut.function
def fib(n: ut.i32) -> ut.i32:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def halves(x: ut.f32) -> tuple[ut.f32, ut.f32]:
    bad = x / 0 if x < 0 else x
    return bad / 2, x - bad / 2


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_of_the_other_face(engine, graph):
    """@ut.function is called from a graph like any function: programs can be moved one function at a time."""

    @function.Defun(tf.int32)
    def twice(n):
        return tf.cond(n > 100, lambda: 0, lambda: fib(n) * 2)

    n = tf.placeholder(tf.int32, name="n")
    total = tf.while_loop(lambda i, total: i < n, lambda i, total: (i + 1, total + fib(i)), (0, 0))[1]
    result = fib(n)
    assert isinstance(result, tf.Tensor) and all(isinstance(x, tf.Tensor) for x in halves(tf.constant(1.0)))
    assert run([result, twice(n), total, ut.sqrt(result)], {n: 7}, engine=engine)[:3] == [21, 42, 33]
    assert str(graph.library(result)) == str(fib.library(7))
    lines = {node.span.line for node in graph.library(result).functions["fib"].nodes if node.span is not None}
    assert lines <= set(range(fib.__wrapped__.__code__.co_firstlineno, fib.__wrapped__.__code__.co_firstlineno + 6))


def test_a_tensor_is_handed_to_the_other_face_as_an_argument():
    x = tf.placeholder(tf.int32, name="x")

    @ut.function
    def add(n: ut.i32) -> ut.i32:
        return n + x

    with pytest.raises(ut.UndertowError, match="belongs to another graph"):
        add(3)
    assert run(add(x), {x: 4}) == 8


def test_declared_after_it_was_traced():
    @function.Defun(tf.int32, func_name="Late")
    def late(x):
        return x / 2

    assert run(late(3)) == 1.5
    with pytest.raises(
        ut.GraphError, match=r"declared with results \(tf.int32\), but defined with \(tf.float64\) on line \d+"
    ):
        function.Declare("Late", [("x", tf.int32)], [("y", tf.int32)])
    tf.reset_default_graph()
    assert run(late(3)) == 1.5
    assert run(function.Declare("Late", [("x", tf.int32)], [("y", tf.float64)])(5)) == 2.5


def test_a_definition_that_was_refused_can_be_corrected(graph):
    double = function.Declare("Corrected", [("x", tf.int32)], [("y", tf.int32)])
    with pytest.raises(ut.GraphError, match="is defined with arguments"):
        function.Defun(tf.float32, func_name="Corrected")(lambda x: x * 2).add_to_graph(graph)
    function.Defun(tf.int32, func_name="Corrected")(lambda x: x * 2).add_to_graph(graph)
    assert run(double(4)) == 8
