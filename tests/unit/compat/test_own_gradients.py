"""Gradients of the user's own: of functions, and of operations by their types."""

from __future__ import annotations

import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function


def run(fetches, feed_dict=None, **options):
    with tf.Session(**options) as session:
        return session.run(fetches, feed_dict)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_function_as_gradient(engine):
    @function.Defun(tf.float32, tf.float32)
    def slope(x, dy):
        return x * dy * 10.0

    @function.Defun(tf.float32, grad_func=slope)
    def sinh(x):
        return tf.exp(x) - tf.exp(-x)

    x = tf.constant([1.0, 2.0])
    y = sinh(x)
    found = run([y, tf.gradients(y, x)[0]], engine=engine)
    assert found[0] == pytest.approx([2.3504024, 7.2537208]) and found[1].tolist() == [10, 20]
    assert sinh.grad_func_name == "slope"


def test_python_as_gradient():
    @function.Defun(
        tf.float32, tf.int32, python_grad_func=lambda op, dy: [7.0 * dy * op.inputs[0] + op.outputs[0], None]
    )
    def scaled(x, n):
        return x * tf.cast(n, tf.float32)

    x = tf.placeholder(tf.float32, [])
    y = scaled(x, 3)
    assert run([y, tf.gradients(y, x)[0]], {x: 2.0}) == [6, 20]


def test_in_a_recursive_function(graph):
    """Each activation's gradient is the rule's: 2 ** n where the function is the identity."""
    down = function.Declare("Down", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @function.Defun(tf.float32, python_grad_func=lambda op, dy: dy * 2.0)
    def doubled(x):
        return tf.identity(x)

    @function.Defun(tf.float32, tf.int32, func_name="Down")
    def impl(x, n):
        return tf.cond(n < 1, lambda: x, lambda: down(doubled(x), n - 1))

    impl.add_to_graph(graph)
    x = tf.placeholder(tf.float32, [])
    y = down(x, 5)
    assert run([y, tf.gradients(y, x)[0]], {x: 3.0}) == [3, 32]


def test_a_gradient_of_the_wrong_number():
    @function.Defun(tf.float32, python_grad_func=lambda op, dy: [dy, dy])
    def f(x):
        return x * 2.0

    x = tf.placeholder(tf.float32, [])
    y = f(x)
    assert run(y, {x: 1.0}) == 2
    slope = tf.gradients(y, x)[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"expects to return 1 .* but get 2 instead"):
        run(slope, {x: 1.0})


def test_misuse():
    with pytest.raises(ut.GraphError, match="twice"):
        function.Defun(tf.float32, grad_func=lambda x, dy: dy, python_grad_func=lambda op, dy: dy)
    with pytest.raises(ut.TypeMismatch, match="must be a function"):
        function.Defun(tf.float32, grad_func=3)
    with (
        pytest.raises(LookupError, match="No gradient defined"),
        tf.get_default_graph().gradient_override_map({"Round": "?"}),
    ):
        tf.round(tf.constant(1.0))
    with pytest.raises(ut.TypeMismatch, match="must be a string"):
        tf.RegisterGradient(3)


@pytest.mark.parametrize("engine", ENGINES)
def test_operations_in_a_block(engine, graph):
    x = tf.constant([0.4, 1.6])
    name = f"Guided{engine}"

    @tf.RegisterGradient(name)
    def guided(op, dy):
        return tf.where(op.outputs[0] > 0, dy * 100.0, tf.zeros_like(dy))

    with graph.gradient_override_map({"Round": "Identity", "Relu": name}):
        rounded, positive = tf.round(x, name="rounded"), tf.nn.relu(x - 1.0)
    free = tf.round(x) * x
    slopes = [tf.gradients(y, x)[0] for y in (rounded, positive, free)]
    found = run([rounded, positive, *slopes], engine=engine)
    assert found[0].tolist() == [0, 2] and found[1] == pytest.approx([0, 0.6])
    assert found[2].tolist() == [1, 1] and found[3].tolist() == [0, 100] and found[4].tolist() == [0, 2]
    assert rounded.name == "rounded:0"
    with pytest.raises(KeyError, match="Registering two"):
        tf.RegisterGradient(name)(guided)


def test_twice():
    """The second derivative goes through the rule: of 3 * x ** 2, 6 * x."""

    @function.Defun(tf.float32, python_grad_func=lambda op, dy: dy * 3.0 * tf.square(op.inputs[0]))
    def cube(x):
        return x * x * x

    x = tf.placeholder(tf.float32, [])
    (first,) = tf.gradients(cube(x), x)
    assert run([first, tf.gradients(first, x)[0]], {x: 2.0}) == [12, 12]
