"""tf.gradients: closed forms, differences, and what a run shares between values and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function
from undertow.errors import GraphError, TypeMismatch
from undertow.ir.spec import check
from undertow.ops.op import find


def run(fetches, feed_dict=None, **options):
    """Run, after a check that the library is valid."""
    library = tf.get_default_graph().library(fetches)
    check(library, lambda node, types: find(node.op).type(types, node.attrs))
    with tf.Session(**options) as session:
        if tf.global_variables():
            session.run(tf.global_variables_initializer())
        return session.run(fetches, feed_dict)


def scalar(name="x", dtype=tf.float64):
    return tf.placeholder(dtype, [], name=name)


def define_power(name="Power", dtype=tf.float64):
    power = function.Declare(name, [("x", dtype), ("n", tf.int32)], [("y", dtype)])

    @function.Defun(dtype, tf.int32, func_name=name, create_grad_func=True, out_names=["y"])
    def impl(x, n):
        return tf.cond(tf.equal(n, 0), lambda: tf.constant(1.0, dtype), lambda: x * power(x, n - 1))

    return impl


def difference(y, feed, x, step=1e-6):
    """The derivative of a tensor by a placeholder, from two runs for each element."""
    base = np.asarray(feed[x], float)
    found = np.zeros_like(base)
    with tf.Session() as session:
        if tf.global_variables():
            session.run(tf.global_variables_initializer())
        for place in np.ndindex(base.shape):
            ends = []
            for sign in (1, -1):
                moved = base.copy()
                moved[place] += sign * step
                ends.append(np.sum(session.run(y, {**feed, x: moved})))
            found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


# -- what it gives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_polynomial(engine):
    x = scalar()
    y = x * x * x + 2.0 * x
    (dx,) = tf.gradients(y, x)
    assert isinstance(dx, tf.Tensor) and dx.dtype == tf.float64 and dx.shape == ()
    assert run([y, dx], {x: 3.0}, engine=engine) == [33, 29]


def test_several_xs_keep_their_order_and_types():
    x, w, n = scalar(), tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    y = tf.reduce_sum(tf.cast(w, tf.float64)) * x * tf.cast(n, tf.float64)
    dw, dx, dn = tf.gradients(y, [w, x, n])
    assert dn is None and dw.dtype == tf.float32 and dw.shape == (2,)
    found = run([dw, dx], {x: 3.0, w: [1, 2], n: 5})
    np.testing.assert_array_equal(found[0], [15, 15])
    assert found[1] == 15


def test_none_where_nothing_depends():
    x, z = scalar("x"), scalar("z")
    y = tf.stop_gradient(x) * z + tf.cast(tf.floor(tf.cast(tf.cast(x, tf.int32), tf.float64)), tf.float64)
    assert tf.gradients(y, [x])[0] is None
    assert tf.gradients(y, [scalar("other"), z])[0] is None
    assert run(tf.gradients(y, z), {x: 4.0, z: 1.0}) == [4]
    (zero,) = tf.gradients(y, [x], unconnected_gradients="zero")
    assert run(zero, {x: 4.0}) == 0


def test_ys_are_summed():
    x = scalar()
    a, b = x * x, tf.stack([x, 3.0 * x])
    assert run(tf.gradients([a, b], x), {x: 5.0}) == [10 + 4]
    assert run(tf.gradients([a, a], x), {x: 5.0}) == [20]
    assert run(tf.gradients([a, x], x), {x: 5.0}) == [11]


def test_grad_ys():
    x = tf.placeholder(tf.float64, [3])
    y = x * x
    (dx,) = tf.gradients(y, x, [np.array([1.0, 0.0, 2.0])])
    np.testing.assert_array_equal(run(dx, {x: [1, 2, 3]}), [2, 0, 12])
    np.testing.assert_array_equal(run(tf.gradients([y, x], x, [None, 3.0 * x]), {x: [1, 2, 3]})[0], [5, 10, 15])


def test_a_run_time_shape():
    x = tf.placeholder(tf.float64, [None, 2])
    y = tf.matmul(x, tf.constant([[1.0], [2.0]], tf.float64))
    np.testing.assert_array_equal(run(tf.gradients(tf.square(y), x), {x: [[1, 1]]})[0], [[6, 12]])
    assert run(tf.gradients(y, x), {x: np.zeros((0, 2))})[0].shape == (0, 2)


def test_constants_and_tensors_in_the_middle():
    c = tf.constant(3.0)
    h = c * c
    y = h * c
    dc, dh = tf.gradients(y, [c, h])
    assert run([dc, dh, y, h]) == [27, 3, 27, 9]
    assert run([dh]) == [3]


def test_a_middle_of_run_time_shape():
    x = tf.placeholder(tf.float64, [None])
    h = tf.sin(x)
    y = tf.reduce_sum(h * h)
    dx, dh = run(tf.gradients(y, [x, h]), {x: [0.5, 1.0]})
    np.testing.assert_allclose(dx, np.sin([1.0, 2.0]))
    np.testing.assert_allclose(dh, 2 * np.sin([0.5, 1.0]))


def test_what_is_fed_instead_of_computed():
    x = scalar()
    h = x * x
    y = h * h
    dx, dh = tf.gradients(y, x)[0], tf.gradients(y, h)[0]
    assert run([y, dh], {h: 5.0}) == [25, 10]
    assert run([dx, dh], {x: 2.0}) == [32, 8]


def test_names_and_operations():
    x = scalar()
    (dx,) = tf.gradients(x * x, x, name="slope")
    assert dx.name == "slope:0" and tf.get_default_graph().get_tensor_by_name("slope:0").name == dx.name
    assert run("slope:0", {x: 2.0}) == 4


# -- through everything ------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_a_condition(engine):
    x = scalar()
    y = tf.cond(x > 1.0, lambda: x * x * x, lambda: 5.0 * x) + tf.cond(x > 1.0, lambda: x, lambda: x * x)
    (dx,) = tf.gradients(y, x)
    assert run([y, dx], {x: 2.0}, engine=engine) == [10, 13]
    assert run([y, dx], {x: 0.5}, engine=engine) == [2.75, 6]


def test_half_of_a_condition():
    x, z = scalar("x"), scalar("z")
    a, b = tf.cond(z > 0.0, lambda: (x * z, z + 1.0), lambda: (x, z * z))
    (dx,) = tf.gradients(a, x)
    assert run([a, b, dx], {x: 2.0, z: 3.0}) == [6, 4, 3]
    dx, db = tf.gradients(a * b, [x, b])
    assert run([dx, db], {x: 2.0, z: -3.0}) == [9, 2]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loop(engine):
    x = scalar()
    _, y = tf.while_loop(lambda i, w: i < 4, lambda i, w: (i + 1, w * x), [0, tf.constant(1.0, tf.float64)])
    (dx,) = tf.gradients(y, x)
    assert run([y, dx], {x: 3.0}, engine=engine) == [81, 108]


def test_a_map():
    x = tf.placeholder(tf.float64, [3])
    y = tf.map_fn(lambda e: tf.sin(e) * e, x)
    (dx,) = tf.gradients(y, x)
    at = np.array([0.1, 0.7, 2.0])
    np.testing.assert_allclose(run(dx, {x: at}), np.cos(at) * at + np.sin(at))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
def test_a_recursive_function(engine, dtype):
    power = define_power(dtype=dtype)
    x = scalar(dtype=dtype)
    y = power(x, 10)
    (dx,) = tf.gradients(y, x)
    found = run([y, dx], {x: 1.5}, engine=engine)
    np.testing.assert_allclose(found, [1.5**10, 10 * 1.5**9], rtol=1e-6)
    assert all(value.dtype == dtype.numpy for value in found)


def test_functions_that_call_each_other():
    up = function.Declare("Up", [("x", tf.float64), ("n", tf.int32)], [("y", tf.float64)])
    down = function.Declare("Down", [("x", tf.float64), ("n", tf.int32)], [("y", tf.float64)])

    @function.Defun(tf.float64, tf.int32, func_name="Up")
    def up_impl(x, n):
        return tf.cond(n <= 0, lambda: tf.exp(x), lambda: x * down(x, n - 1))

    @function.Defun(tf.float64, tf.int32, func_name="Down")
    def down_impl(x, n):
        return tf.cond(n <= 0, lambda: x, lambda: tf.sin(up(x, n - 1)))

    x = scalar()
    y = up_impl(x, 5) + down_impl(x, 4)
    (dx,) = tf.gradients(y, x)
    np.testing.assert_allclose(run(dx, {x: 0.7}), difference(y, {x: 0.7}, x), rtol=1e-6)


def test_a_function_that_is_declared_and_not_yet_defined():
    later = function.Declare("Later", [("x", tf.float64)], [("y", tf.float64)])
    x, v = scalar(), tf.Variable(2.0, dtype=tf.float64)
    unread = tf.Variable([1.0, 2.0], dtype=tf.float64)
    dx, dv, du = tf.gradients(later(x), [x, v, unread])

    @function.Defun(tf.float64, func_name="Later")
    def impl(x):
        return x * x * v

    found = run([dx, dv, du], {x: 3.0})
    assert found[:2] == [12, 9]
    np.testing.assert_array_equal(found[2], [0, 0])


def test_a_gradient_inside_of_a_function():
    slope = function.Declare("Slope", [("x", tf.float64), ("n", tf.int32)], [("y", tf.float64)])
    v = tf.Variable(2.0, dtype=tf.float64)

    @function.Defun(tf.float64, tf.int32, func_name="Slope")
    def impl(x, n):
        (dx,) = tf.gradients(x * x * x * v, x)
        return tf.cond(n <= 0, lambda: dx, lambda: dx + slope(x, n - 1))

    x = scalar()
    y = impl(x, 2)
    assert run([y, *tf.gradients(y, [x, v])], {x: 2.0}) == [72, 72, 36]


def test_a_gradient_inside_of_branches_and_loops():
    x = scalar()

    def inside():
        h = x * 3.0
        return tf.gradients(h * h, h)[0]

    y = tf.cond(x > 0.0, inside, lambda: x)
    assert run([y, *tf.gradients(y, x)], {x: 2.0}) == [12, 6]
    assert run([y, *tf.gradients(y, x)], {x: -2.0}) == [-2, 1]

    def descend(i, w):
        (dw,) = tf.gradients(w * w, w)
        return i + 1, w - 0.25 * dw

    _, w = tf.while_loop(lambda i, w: i < 3, descend, [0, x])
    assert run([w, *tf.gradients(w, x)], {x: 8.0}) == [1, 0.125]


def test_functions_of_ut():
    @ut.function
    def cube(x):
        return x * x * x

    x = scalar()
    y = cube(x) * 2.0
    assert run([y, *tf.gradients(y, x)], {x: 2.0}) == [16, 24]


def test_gradients_of_gradients():
    x = scalar()
    y = tf.sin(x) * x
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    third = tf.gradients(second, x)[0]
    at = 0.6
    wanted = [
        np.sin(at) * at,
        np.cos(at) * at + np.sin(at),
        2 * np.cos(at) - np.sin(at) * at,
        -3 * np.sin(at) - np.cos(at) * at,
    ]
    np.testing.assert_allclose(run([y, first, second, third], {x: at}), wanted)
    np.testing.assert_allclose(run(third, {x: at}), wanted[3])


def test_a_penalty_on_a_gradient():
    power = define_power()
    x, w = scalar(), tf.Variable(1.5, dtype=tf.float64)
    y = power(w * x, 3)
    (dx,) = tf.gradients(y, x)
    loss = tf.square(dx - 1.0) + y
    # y = w^3 x^3, dx = 3 w^3 x^2
    w0, x0 = 1.5, 0.8
    slope = 3 * w0**3 * x0**2
    wanted = 2 * (slope - 1) * 9 * w0**2 * x0**2 + 3 * w0**2 * x0**3
    np.testing.assert_allclose(run([*tf.gradients(loss, w), dx], {x: x0}), [wanted, slope])


# -- variables ---------------------------------------------------------------------------------------------


def test_variables_wherever_they_are_read():
    v, x = tf.Variable(2.0, dtype=tf.float64, name="v"), scalar()

    @function.Defun(tf.float64)
    def outer(a):
        return inner(a) * v

    @function.Defun(tf.float64)
    def inner(a):
        return tf.while_loop(lambda i, w: i < 2, lambda i, w: (i + 1, w * v), [0, a])[1]

    y = v * outer(x) + tf.cond(x > 0.0, lambda: v * v, lambda: inner(x))  # x v^4 + v^2, or x v^4 + x v^2
    dv, dx = tf.gradients(y, [v, x])
    assert run([y, dv, dx], {x: 3.0}) == [52, 3 * 32 + 4, 16]
    assert run([y, dv, dx], {x: -3.0}) == [-60, -3 * 32 - 12, 20]


def test_a_function_is_read_elsewhere_too():
    v, x = tf.Variable(2.0, dtype=tf.float64), scalar()

    @function.Defun(tf.float64)
    def scaled(a):
        return a * v

    beside = tf.cond(x > 0.0, lambda: scaled(x), lambda: scaled(-x))
    assert run([beside, *tf.gradients(scaled(scaled(x)), v)], {x: 3.0}) == [6, 12]


def test_a_read_after_an_assignment():
    v = tf.Variable(2.0)
    before = v * v
    with tf.control_dependencies([before]):
        changed = v.assign(5.0)
    with tf.control_dependencies([changed]):
        after = v * v
    assert run([*tf.gradients(after, v), *tf.gradients(after * before, v)]) == [10, 10 * 4 + 25 * 4]


def test_a_read_that_is_given():
    v = tf.Variable(3.0)
    x = v.read_value()
    y = x * x * v
    assert run(tf.gradients(y, [x, v])) == [18, 27]


def test_a_hidden_read_after_an_assignment_is_refused():
    v, x = tf.Variable(2.0), scalar(dtype=tf.float32)

    @function.Defun(tf.float32)
    def scaled(a):
        return a * v

    with tf.control_dependencies([v.assign(4.0)]):
        y = scaled(x)
    with pytest.raises(GraphError, match="follows an assignment"):
        run(tf.gradients(y, v), {x: 1.0})


# -- what a run shares -------------------------------------------------------------------------------------


def printed(capsys, fetches, feed):
    capsys.readouterr()
    run(fetches, feed)
    return capsys.readouterr().out.count("here")


def test_the_forward_part_runs_once(capsys):
    x = scalar()
    h = tf.Print(x * x, [x], "here")
    y = h * h
    (dx,) = tf.gradients(y, x)
    assert printed(capsys, [y, h, dx], {x: 2.0}) == 1
    assert printed(capsys, [dx], {x: 2.0}) == 1
    assert printed(capsys, [x * 2.0], {x: 2.0}) == 0


def test_the_same_ys_in_several_calls_are_one_gradient(capsys):
    x, z = scalar("x"), scalar("z")
    y = tf.Print(x * z, [x], "here") * x
    dx, dz = tf.gradients(y, x)[0], tf.gradients(y, z)[0]
    assert printed(capsys, [y, dx, dz], {x: 2.0, z: 3.0}) == 1
    assert run([dx, dz], {x: 2.0, z: 3.0}) == [12, 4]
    assert sum(node.op == "gradient" for node in library_nodes([dx, dz])) == 1


def library_nodes(fetches):
    library = tf.get_default_graph().library(fetches)
    return [node for graph in library.functions.values() for node in graph.nodes]


def test_what_is_differentiated_becomes_a_function(graph):
    """x -> h -> y, and dx; h is used elsewhere."""
    x = scalar()
    h = tf.sin(x)
    y = h * h
    assert (
        str(graph.library([y, h + 1.0, *tf.gradients(y, x)]))
        == """\
library 1 main=main

main main(x: f64) -> (differentiated#0, add, gradients)
  differentiated: f64, f64 = call x callee="main.differentiated"
  add: f64                 = add differentiated#1, 1.0:f64
  gradients: f64           = gradient differentiated#0, 1.0:f64 given=[0] wanted=[0]

function main.differentiated(x: f64) -> (multiply, sin)
  sin: f64      = sin x
  multiply: f64 = multiply sin, sin
"""
    )


def test_conditions_on_one_predicate_are_moved_one_by_one(capsys):
    x, z = scalar("x"), scalar("z")
    positive = z > 0.0
    a = tf.cond(positive, lambda: tf.Print(x, [x], "here") * x, lambda: x)
    b = tf.cond(positive, lambda: tf.Print(z, [z], "here") * z, lambda: z)
    assert printed(capsys, [a, b, tf.gradients(a, x), tf.gradients(b, z)], {x: 2.0, z: 3.0}) == 2
    assert run([tf.gradients(a, x), tf.gradients(b, z)], {x: 2.0, z: 3.0}) == [[4], [6]]


def test_second_gradients_share_too(capsys):
    x = scalar()
    y = tf.Print(x * x, [x], "here") * x
    first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    assert printed(capsys, [y, first, second], {x: 2.0}) == 1


def test_what_is_not_fetched_does_not_run(capsys):
    x = scalar()
    tf.gradients(tf.Print(x, [x], "here") * x, x)
    assert printed(capsys, x + 1.0, {x: 2.0}) == 0
    assert not any(node.op == "gradient" for node in library_nodes(x + 1.0))


def test_gradients_of_different_ys():
    x = tf.placeholder(tf.float64, [3])
    y = tf.sin(x) * x[0]
    jacobian = [tf.gradients(y[k], x)[0] for k in range(3)]
    at = np.array([0.3, 0.5, 0.7])
    wanted = np.diag(np.cos(at) * at[0])
    wanted[:, 0] += np.sin(at)
    np.testing.assert_allclose(run(jacobian, {x: at}), wanted)


def test_two_gradients_through_what_prints_are_refused():
    x = scalar()
    h = tf.Print(x, [x], "here") * x
    a, b = tf.gradients(h * h, x)[0], tf.gradients(h * 3.0, x)[0]
    assert run(a, {x: 2.0}) == 32
    with pytest.raises(GraphError, match="cannot be computed twice"):
        run([a, b], {x: 2.0})


def test_control_dependencies_order_gradients():
    v = tf.Variable(1.0)
    x = tf.constant(2.0)
    y = x * x
    with tf.control_dependencies([v.assign_add(1.0)]):
        (dx,) = tf.gradients(y, x)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(dx) == 4 and session.run(v) == 2


def test_a_gradient_as_a_control_dependency():
    x, v = tf.constant(3.0), tf.Variable(1.0)
    (dx,) = tf.gradients(x * x * v, x)
    with tf.control_dependencies([dx]):
        later = v.assign_add(1.0)
    assert run([later, dx.op]) == [2, None]
    assert run([later, dx]) == [2, 6]


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda x: tf.gradients(tf.cast(x, tf.int32), x), "only floats have gradients"),
        (lambda x: tf.gradients(x, 3.0), "must be tensors"),
        (lambda x: tf.gradients(3.0, x), "must be tensors"),
        (lambda x: tf.gradients([], x), "no ys"),
        (lambda x: tf.gradients(x, []), "no xs"),
        (lambda x: tf.gradients(x, x, [1.0, 2.0]), "1 ys, but 2 grad_ys"),
        (lambda x: tf.gradients(x, x, tf.constant([1.0, 2.0])), "the grad_ys of"),
        (lambda x: tf.gradients(x, tf.group(x)), "must be tensors"),
    ],
)
def test_what_is_no_gradient(wrong, says):
    with pytest.raises(TypeMismatch, match=says):
        wrong(scalar())


def test_an_x_of_another_graph():
    other = tf.Graph()
    with other.as_default():
        far = scalar()
    with pytest.raises(GraphError, match="another graph"):
        tf.gradients(scalar() * 2.0, far)


def test_an_x_outside_of_the_function_or_loop():
    x = scalar()

    @function.Defun(tf.float64)
    def inner(a):
        return tf.gradients(a * a, x)[0]

    with pytest.raises(GraphError, match="belongs to `main`"):
        inner(x)
    square = x * x
    with pytest.raises(GraphError, match="belongs to `main`"):
        tf.while_loop(lambda w: w < 3.0, lambda w: tf.gradients(w * square, x)[0], [x])


def test_an_x_outside_of_a_loop_whose_body_uses_it():
    x = scalar("x")
    last = tf.while_loop(lambda w: w < 3.0, lambda w: tf.gradients(w * x * x, x)[0], [x])
    assert run(last, {"x:0": 1.5}) == 4.5  # 2 * w * x


def test_a_branch_that_reaches_outside():
    x = scalar()
    h = x * x
    with pytest.raises(GraphError, match="depends on operations outside it"):
        tf.cond(x > 0.0, lambda: tf.gradients(h * x, x)[0], lambda: x)


def test_stop_gradients():
    session = tf.Session()
    a = tf.constant(2.0)
    b = 3 * a
    assert session.run(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1, 1]
    assert session.run(tf.gradients(a * b, [a, b])) == [12, 2]
    assert session.run(tf.gradients(a * b, [a], stop_gradients=b)) == [6]
    (both, none) = tf.gradients(tf.sin(b) * b, [b, a], stop_gradients=[b])
    assert none is None and np.isclose(session.run(both), np.cos(6) * 6 + np.sin(6))
    v = tf.Variable(3.0)
    first, second = v * 2.0, v * v
    session.run(v.initializer)
    assert session.run(tf.gradients(first + second, [v])) == [8]
    assert session.run(tf.gradients(first * second, [first], stop_gradients=[second])) == [9]
    with pytest.raises(GraphError, match="does not go through"):
        tf.gradients(tf.cond(a > 0, lambda: b * 2, lambda: b), a, stop_gradients=[b])


def test_hessians():
    session = tf.Session()
    x = tf.constant([1.0, 2.0, 3.0])
    m = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    (second,) = tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x)
    assert session.run(second).tolist() == [[6, 1, 0], [1, 12, 0], [0, 0, 18]]
    (square,) = tf.hessians(tf.reduce_prod(m[0]) + tf.reduce_sum(m), [m])
    expected = np.zeros((2, 2, 2, 2))
    expected[0, 0, 0, 1] = expected[0, 1, 0, 0] = 1
    assert np.array_equal(session.run(square), expected)
    with pytest.raises(TypeMismatch, match="needs its shape"):
        tf.hessians(tf.reduce_sum(p := tf.placeholder(tf.float32, [None])), p)


def test_slices_stand_for_tables():
    session = tf.Session()
    table = tf.Variable([[1.0], [2.0], [3.0]])
    rows = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([2, 0, 2]), tf.constant([3, 1]))
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    step = optimizer.apply_gradients([(rows, table)])
    session.run(table.initializer)
    assert session.run(tf.convert_to_tensor(rows)).tolist() == [[2], [0], [5]]
    assert session.run(tf.global_norm([rows])) == np.sqrt(np.float32(29))
    session.run(step)
    assert session.run(table).tolist() == [[-1], [2], [-2]]
    assert session.run(rows).indices.tolist() == [2, 0, 2]
    with pytest.raises(TypeMismatch, match="shape of the table"):
        tf.convert_to_tensor(tf.IndexedSlices(rows.values, rows.indices))


def test_a_derivative_of_itself():
    loop = function.Declare("Self", [("x", tf.float64)], [("y", tf.float64)])

    @function.Defun(tf.float64, func_name="Self")
    def impl(x):
        return tf.cond(x > 0.0, lambda: tf.gradients(loop(x - 1.0), x)[0], lambda: x)

    with pytest.raises(ut.UndertowError, match=r"needs its own derivative|outside it"):
        run(impl(scalar("z") * 1.0 + 3.0), {"z:0": 1.0})
