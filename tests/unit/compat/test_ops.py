"""Operations by their TensorFlow names: dtypes, operators, arrays, conditions, loops; and names that are not here."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function

A = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


def run(fetches, feed_dict=None):
    with tf.Session() as session:
        return session.run(fetches, feed_dict)


# -- dtypes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: tf.constant(1), tf.int32),
        (lambda: tf.constant(1.0), tf.float32),
        (lambda: tf.constant([1, 2.5]), tf.float32),
        (lambda: tf.constant(True), tf.bool),
        (lambda: tf.constant(1, tf.int64), tf.int64),
        (lambda: tf.constant(1, dtype=tf.float64), tf.float64),
        (lambda: tf.constant(np.float64(1)), tf.float64),
        (lambda: tf.constant(np.ones(2, np.int64)), tf.int64),
        (lambda: tf.add(1, 2), tf.int32),
        (lambda: tf.add(1.5, 2), tf.float32),
        (lambda: tf.constant(1.0) + np.ones(3), tf.float32),
        (lambda: tf.constant(1.0) * [1, 2], tf.float32),
        (lambda: 2 * tf.constant(1), tf.int32),
        (lambda: tf.constant(1) / 2, tf.float64),
        (lambda: tf.constant(1.0) / 2, tf.float32),
        (lambda: tf.div(tf.constant(7), 2), tf.int32),
        (lambda: tf.range(3), tf.int32),
        (lambda: tf.zeros([2]), tf.float32),
        (lambda: tf.zeros([2], tf.int32), tf.int32),
        (lambda: tf.fill([2], 7), tf.int32),
        (lambda: tf.reduce_sum([1, 2]), tf.int32),
        (lambda: tf.reduce_mean([1.0, 2.0]), tf.float32),
        (lambda: tf.argmax([1, 2]), tf.int64),
        (lambda: tf.shape([1, 2]), tf.int32),
        (lambda: tf.cast(1.5, tf.int32), tf.int32),
        (lambda: tf.equal(1, 2), tf.bool),
        (lambda: tf.cond(tf.constant(True), lambda: 1, lambda: 2), tf.int32),
        (lambda: tf.cond(tf.constant(True), lambda: 1.0, lambda: 2), tf.float32),
        (lambda: tf.convert_to_tensor([[1.0]]), tf.float32),
    ],
)
def test_dtypes(make, dtype):
    tensor = make()
    assert isinstance(tensor, tf.Tensor)
    assert tensor.dtype == dtype
    assert run(tensor).dtype == dtype.numpy


def test_constants():
    assert run(tf.constant(3, shape=[2, 2])).tolist() == [[3, 3], [3, 3]]
    assert run(tf.constant([1, 2, 3, 4], shape=[2, 2])).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ut.TypeMismatch, match="do not fill"):
        tf.constant([1, 2, 3], shape=[2, 2])
    with pytest.raises(ut.TypeMismatch, match="cannot be"):
        tf.constant(1.5, tf.int32)
    assert tf.constant(2**40).dtype == tf.int64  # it would not fit
    with pytest.raises(ut.TypeMismatch, match="does not fit in i32"):
        tf.constant(2**40, tf.int32)
    with pytest.raises(ut.TypeMismatch, match="not a value"):
        tf.constant(object())


# -- tensors -----------------------------------------------------------------------------------------------


def test_what_a_tensor_tells():
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    assert x.name == "x:0" and x.op.name == "x" and x.dtype == tf.float32
    assert x.shape.as_list() == [None, 3] == x.get_shape().as_list()
    assert x.shape.ndims == 2 and not x.shape.is_fully_defined()
    assert x.shape.num_elements() is None and x.shape[1] == 3
    y = x + 1
    assert y.op.type == "Add" and y.op.inputs[0].name == "x:0" and y.op.outputs[0].name == y.name
    assert y.graph is tf.get_default_graph() and repr(y) == "<tf.Tensor 'add:0': f32[?,3]>"
    assert len({x, y, x}) == 2 and x.op == x.op and x.op != y.op


def test_operators():
    x = tf.constant(A)
    pairs = [
        (x + 1, A + 1), (1 - x, 1 - A), (x * x, A * A), (x / 2, A / 2), (2 / x, 2 / A), (x // 2, A // 2),
        (x % 2, A % 2), (x**2, A**2), (-x, -A), (abs(x), abs(A)), (x < 1, A < 1), (x <= 1, A <= 1), (x > 1, A > 1),
        (x >= 1, A >= 1), (tf.equal(x, 1), A == 1), (x != 1, A != 1), (x[0], A[0]), (x[:, 1], A[:, 1]),
        (x[..., None], A[..., None]), (x[tf.constant(1), 0], A[1, 0]), ((x > 0) & (x < 4), (A > 0) & (A < 4)),
        ((x > 4) | (x < 0), (A > 4) | (A < 0)), (~(x > 0), ~(A > 0)), (x @ A.T, A @ A.T), (A + x, A + A),
        (np.float32(2) * x, 2 * A), (np.maximum(x, 0), np.maximum(A, 0)),
    ]  # fmt: skip
    for found, (_, expected) in zip(run([tensor for tensor, _ in pairs]), pairs, strict=True):
        assert found.dtype == expected.dtype and np.allclose(found, expected)
    assert all(isinstance(tensor, tf.Tensor) for tensor, _ in pairs)


def test_functions():
    x, y = tf.constant(A), tf.constant(A + 2)
    pairs = [
        (tf.add(x, y), A + A + 2), (tf.subtract(x, y), A - A - 2), (tf.multiply(x, 2), A * 2), (tf.divide(x, 2), A / 2),
        (tf.mod(x, 3), A % 3), (tf.floordiv(x, 2), A // 2), (tf.pow(x, 2), A**2), (tf.maximum(x, 1), np.maximum(A, 1)),
        (tf.minimum(x, 1), np.minimum(A, 1)), (tf.tanh(x), np.tanh(A)), (tf.sigmoid(x), 1 / (1 + np.exp(-A))),
        (tf.exp(x), np.exp(A)), (tf.log(tf.abs(x)), np.log(abs(A))), (tf.sqrt(tf.square(x)), abs(A)),
        (tf.negative(x), -A), (tf.sign(x), np.sign(A)), (tf.squared_difference(x, y), np.full_like(A, 4)),
        (tf.reduce_sum(x), A.sum()), (tf.reduce_sum(x, 0), A.sum(0)), (tf.reduce_mean(x, [0, 1]), A.mean()),
        (tf.reduce_max(x, axis=1, keepdims=True), A.max(1, keepdims=True)), (tf.reduce_min(x), A.min()),
        (tf.reduce_prod(x, axis=-1), A.prod(-1)), (tf.reduce_any(x > 4), True), (tf.reduce_all(x > 4), False),
        (tf.argmax(x, 1), A.argmax(1)), (tf.argmin(x), A.argmin(0)), (tf.add_n([x, x, y]), 3 * A + 2),
        (tf.matmul(x, y, transpose_b=True), A @ (A + 2).T), (tf.matmul(x, y, transpose_a=True), A.T @ (A + 2)),
        (tf.tensordot(x, y, [[1], [1]]), A @ (A + 2).T), (tf.einsum("ij,kj->ik", x, y), A @ (A + 2).T),
        (tf.clip_by_value(x, -1.0, 3.0), np.clip(A, -1, 3)), (tf.cumsum(x, 1), A.cumsum(1)),
        (tf.where(x > 0, x, y), np.where(A > 0, A, A + 2)), (tf.where(x > 0, x, 0), np.where(A > 0, A, 0)),
        (tf.logical_and(x > 0, x < 4), (A > 0) & (A < 4)), (tf.logical_or(x > 4, x < 0), (A > 4) | (A < 0)),
        (tf.logical_not(x > 0), ~(A > 0)), (tf.not_equal(x, 1), A != 1), (tf.greater(x, 1), A > 1),
        (tf.reshape(x, [3, -1]), A.reshape(3, 2)), (tf.reshape(x, [tf.size(x)]), A.reshape(-1)),
        (tf.reshape(x, tf.constant([3, 2])), A.reshape(3, 2)), (tf.transpose(x), A.T), (tf.transpose(x, [1, 0]), A.T),
        (tf.expand_dims(x, 0), A[None]), (tf.squeeze(x[:1]), A[0]), (tf.concat([x, y], 1), np.hstack([A, A + 2])),
        (tf.stack([x, y], axis=1), np.stack([A, A + 2], 1)), (tf.unstack(x)[1], A[1]),
        (tf.tile(x, [2, 1]), np.tile(A, (2, 1))),
        (tf.split(x, 3, 1)[2], A[:, 2:]), (tf.split(x, [1, 2], 1)[1], A[:, 1:]),
        (tf.slice(x, [0, 1], [-1, 2]), A[:, 1:]),
        (tf.gather(x, 1), A[1]), (tf.gather(x, [1, 0, 1]), A[[1, 0, 1]]), (tf.gather(x, 2, axis=1), A[:, 2]),
        (tf.gather(x, [0, 2], axis=1), A[:, [0, 2]]), (tf.reverse(x, [1]), A[:, ::-1]),
        (tf.cast(x, tf.int32), A.astype(np.int32)), (tf.zeros_like(x), A * 0), (tf.ones_like(x), A * 0 + 1),
        (tf.ones([2], tf.int64), np.ones(2, np.int64)), (tf.eye(2), np.eye(2, dtype=np.float32)),
        (tf.range(2, 8, 2), np.arange(2, 8, 2)), (tf.linspace(0.0, 1.0, 3), [0, 0.5, 1]),
        (tf.one_hot([0, 2], 3), np.eye(3, dtype=np.float32)[[0, 2]]), (tf.shape(x), [2, 3]),
        (tf.rank(x), 2), (tf.size(x), 6),
        (tf.broadcast_to(tf.constant(1), [2, 2]), np.ones((2, 2))), (tf.to_float(1), 1.0),
        (tf.fill([2], 3.5), [3.5, 3.5]),
        (tf.nn.relu(x), np.maximum(A, 0)), (tf.nn.softmax(x), np.exp(A) / np.exp(A).sum(-1, keepdims=True)),
        (tf.nn.embedding_lookup(x, [1]), A[[1]]), (tf.nn.bias_add(x, [1.0, 2.0, 3.0]), A + np.arange(1, 4)),
        (tf.nn.l2_loss(x), (A * A).sum() / 2), (tf.math.tanh(x), np.tanh(A)), (tf.identity(x), A),
    ]  # fmt: skip
    for found, (tensor, expected) in zip(run([tensor for tensor, _ in pairs]), pairs, strict=True):
        assert isinstance(tensor, tf.Tensor)
        assert np.allclose(found, expected, rtol=1e-5), tensor


def test_sizes_known_at_run_time():
    x = tf.placeholder(tf.float32, [None, 3])
    rows = tf.shape(x)[0]
    fetches = [rows, tf.zeros([rows, 2]), tf.reshape(x, tf.stack([3, rows])), tf.range(rows), tf.fill(tf.shape(x), 1.0)]
    found = run(fetches, {x: A})
    assert found[0] == 2 and found[1].shape == (2, 2) and found[2].shape == (3, 2)
    assert found[3].tolist() == [0, 1] and found[4].shape == (2, 3)


def test_lists_of_tensors_are_stacked():
    a = tf.constant(1)
    assert run(tf.reduce_sum([a, a, 5])) == 7
    assert run(tf.convert_to_tensor([a, 2])).tolist() == [1, 2]


@pytest.mark.parametrize(
    "use",
    [
        lambda x: bool(x),
        lambda x: 1 if x > 0 else 2,
        lambda x: x and True,
        lambda x: [1, 2, 3][x],
        lambda x: int(x),
        lambda x: float(x),
        lambda x: list(x),
        lambda x: np.array(x),
        lambda x: np.fft.fft(x),
        lambda x: x + "a",
        lambda x: x + None,
        lambda x: x + x.op,
        lambda x: tf.matmul(x, x),
        lambda x: tf.reshape(x, "a"),
        lambda x: tf.concat([x, [1.0]], 0),
        lambda x: tf.add(x, 1, name=3),
        lambda x: tf.where(x > 0),
        lambda x: tf.constant(x),
        lambda x: tf.cond(x, 1, 2),
        lambda x: tf.cond(tf.constant([True]), lambda: 1, lambda: 2),
        lambda x: tf.cond(x > 0, lambda: None, lambda: 2),
        lambda x: tf.cond(x > 0, lambda: [1, 2], lambda: 2),
        lambda x: tf.cond(x > 0, lambda: tf.constant(1.5), lambda: x),
        lambda x: tf.while_loop(lambda: True, lambda: [], []),
        lambda x: tf.while_loop(lambda i: i < 3, lambda i: [i, i], [x]),
        lambda x: tf.while_loop(lambda i: i < 3, lambda i: tf.stack([i]), [x]),
        lambda x: tf.control_dependencies(x),
        lambda x: tf.control_dependencies([3]).__enter__(),
        lambda x: tf.device(3),
        lambda x: tf.placeholder(tf.int32, ["a"]),
        lambda x: tf.random_uniform([2], dtype=tf.int32),
        lambda x: function.Declare(3, [], []),
        lambda x: function.Declare("F", [("a", "b")], [("r", tf.int32)]),
        lambda x: function.Declare("F", ["a"], [("r", tf.int32)]),
        lambda x: function.Declare("F", [], []),
        lambda x: function.Defun(tf.int32, name="x"),
        lambda x: function.Defun("no type"),
        lambda x: function.Defun(lambda y: y),
        lambda x: function.Defun(tf.int32)(3),
    ],
)
def test_misuse_is_told_with_a_line(use):
    x = tf.placeholder(tf.int32, [])
    with pytest.raises(ut.UndertowError) as caught:
        use(x)
    error = caught.value
    assert not isinstance(error, ut.InternalError)
    assert error.span is not None and error.span.file == __file__
    assert error.hint and "Traced" not in str(error)


# -- control -----------------------------------------------------------------------------------------------


def test_cond():
    x = tf.placeholder(tf.int32, [])
    choice = tf.cond(x > 0, lambda: x * 2, lambda: -x)
    nested = tf.cond(x > 0, lambda: tf.cond(x > 10, lambda: 3, lambda: 2), lambda: x)
    several = tf.cond(x > 0, lambda: {"a": x, "b": [1.5]}, lambda: {"a": 0, "b": [x / 2]})
    same = tf.cond(x > 0, lambda: x, lambda: x)
    single = tf.cond(x > 0, lambda: [x], lambda: [1])
    assert single.shape.as_list() == [] and same.dtype == tf.int32
    assert tf.cond(x > 0, lambda: [x], lambda: [1], strict=True)[0].dtype == tf.int32
    for value, expected in ((20, [40, 3, 20, 1.5]), (5, [10, 2, 5, 1.5]), (-4, [4, -4, 0, -2])):
        assert run([choice, nested, several["a"], several["b"][0]], {x: value}) == expected
    assert run(tf.cond(tf.constant(True), lambda: 1, lambda: 2) + tf.constant(0)) == 1
    with pytest.raises(TypeError, match="must not be a Python bool"):
        tf.cond(True, lambda: 1, lambda: 2)


def test_only_the_branch_that_is_taken_runs():
    x = tf.placeholder(tf.int32)
    assert run(tf.cond(tf.equal(x, 0), lambda: 0, lambda: 10 // x), {x: 0}) == 0


def test_case():
    x = tf.placeholder(tf.int32)
    size = tf.case([(x < 10, lambda: 1), (x < 100, lambda: 2)], default=lambda: 3)
    assert [run(size, {x: k}) for k in (5, 50, 500)] == [1, 2, 3]


def test_while_loop():
    n = tf.placeholder(tf.int32)
    i, total = tf.while_loop(lambda i, total: i < n, lambda i, total: (i + 1, total + i), (0, 0))
    doubled = tf.while_loop(lambda x: x < 100, lambda x: x * 2, [n])
    pair, k = tf.while_loop(lambda p, k: k < 2, lambda p, k: ([p[1], p[0] + p[1]], k + 1), [[n, n], 0])
    few = tf.while_loop(lambda x: x < 100, lambda x: x * 2, [n], maximum_iterations=2)
    assert run([i, total, doubled, pair, k, few], {n: 5}) == [5, 10, 160, [10, 15], 2, 20]
    assert run([i, total], {n: 0}) == [0, 0]
    alone = tf.while_loop(lambda x: x < 100, lambda x: x * 2, n)
    array = tf.while_loop(lambda x: x[0] < 4, lambda x: x + 1, np.zeros(2, np.int32))
    assert run([alone, tf.reduce_sum(array)], {n: 5}) == [160, 8]
    assert run([doubled, few], {n: 300}) == [300, 300]


def test_loops_in_loops_and_branches():
    n = tf.placeholder(tf.int32)

    def outer(i, total):
        inner = tf.while_loop(lambda j, _: j < i, lambda j, s: [j + 1, s + n], [0, 0])[1]
        return i + 1, total + tf.cond(inner > n, lambda: inner, lambda: 0)

    total = tf.while_loop(lambda i, _: i < n, outer, [0, 0])[1]
    assert run(total, {n: 4}) == 8 + 12


def test_growing_arrays_in_loops():
    start = tf.constant([1])
    test, twice = lambda x: tf.size(x) < 5, lambda x: tf.concat([x, x], 0)
    grown = tf.while_loop(test, twice, [start], shape_invariants=[tf.TensorShape([None])])
    assert run(grown).tolist() == [1] * 8
    with pytest.raises(ValueError, match=r"x is not an invariant for the loop. It enters the loop with shape \[1\]"):
        tf.while_loop(test, twice, [start])


def test_map_fn():
    x = tf.placeholder(tf.int32, [None])
    squares = tf.map_fn(lambda v: v * v, x)
    sums = tf.map_fn(lambda pair: pair[0] + pair[1], (x, squares))
    assert run(squares, {x: [1, 2, 3]}).tolist() == [1, 4, 9]
    assert run(sums, {x: [1, 2, 3]}).tolist() == [2, 6, 12]


def test_scopes_are_accepted():
    with tf.name_scope("a") as scope, tf.name_scope(None, "b"):
        x = tf.constant(1)
    assert scope == "a/" and run(x) == 1


# -- the module --------------------------------------------------------------------------------------------


def test_the_module_holds_itself():
    assert tf.compat.v1 is tf
    assert tf.compat.v1.Session is tf.Session
    tf.compat.v1.disable_eager_execution()
    tf.disable_control_flow_v2()
    tf.compat.v1.disable_v2_behavior()
    assert tf.function.Defun is function.Defun


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("GradientTape", "tf.gradients"),
        ("reduce_summ", "did you mean tf.reduce_sum"),
        ("nn.relu5", "did you mean tf.nn.relu"),
        ("nn.fractional_max_pool", "undertow.compat.v1 has no nn.fractional_max_pool; .* lists what is supported"),
        ("float16", "the dtypes are"),
        ("no_such_thing_at_all", "lists what is supported"),
    ],
)
def test_names_that_are_not_here(name, says):
    with pytest.raises(AttributeError, match=says):
        operator.attrgetter(name)(tf)
    assert not hasattr(tf, name)


def test_everything_public_is_documented():
    for name, value in vars(tf).items():
        if not name.startswith("_") and callable(value):
            assert value.__doc__, name


@pytest.mark.parametrize("make", [lambda: tf.global_norm([]), lambda: tf.global_norm([None]), lambda: tf.add_n([])])
def test_an_operation_on_nothing_is_refused(make):
    with pytest.raises(ut.TypeMismatch, match="no tensor") as caught:
        make()
    assert caught.value.hint
