"""`tf.layers`: the variables that layers make, what they compute, and how scopes name and share them."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

RANDOM = np.random.default_rng(3)
IMAGES = RANDOM.normal(size=(2, 6, 6, 3)).astype(np.float32)


def names():
    return [v.name.partition(":")[0] for v in tf.global_variables()]


def of(name):
    (found,) = (v for v in tf.global_variables() if v.name.partition(":")[0] == name)
    return found


def test_dense(run):
    x = tf.placeholder(tf.float32, [None, 3])
    data = RANDOM.normal(size=(5, 3))
    first = tf.layers.dense(x, 4, tf.nn.relu, bias_initializer=tf.constant_initializer(0.5))
    second = tf.layers.dense(first, 2, use_bias=False, name="out")
    third = tf.layers.dense(tf.expand_dims(x, 0), 2)
    assert names() == ["dense/kernel", "dense/bias", "out/kernel", "dense_1/kernel", "dense_1/bias"]
    assert first.shape.as_list() == [None, 4] and third.shape.as_list() == [1, None, 2]
    values = run([first, second, of("dense/kernel"), of("out/kernel")], {x: data})
    assert np.allclose(values[0], np.maximum(data @ values[2] + 0.5, 0), atol=1e-5)
    assert np.allclose(values[1], values[0] @ values[3], atol=1e-5)


def test_layers_are_shared_by_name_or_by_object(run):
    x = tf.ones([1, 3])
    first = tf.layers.dense(x, 4, name="a")
    again = tf.layers.dense(x, 4, name="a", reuse=True)
    with pytest.raises(ut.GraphError, match="already exists"):
        tf.layers.dense(x, 4, name="a")
    layer = tf.layers.Dense(4)
    one, other = layer(x), layer(x * 2)
    assert len(names()) == 4 and [v.op.name for v in layer.trainable_variables] == names()[2:]
    values = run([first, again, one, other])
    assert np.array_equal(values[0], values[1]) and np.allclose(2 * values[2], values[3])
    assert layer.name == "dense" and layer.built


def test_a_scope_that_is_opened_again_numbers_from_the_start():
    x = tf.ones([1, 3])
    for reuse in (None, True):
        with tf.variable_scope("net", reuse=reuse):
            tf.layers.dense(tf.layers.dense(x, 4), 5)
    assert names() == ["net/dense/kernel", "net/dense/bias", "net/dense_1/kernel", "net/dense_1/bias"]


def test_templates_share_their_variables(run):
    def scaled(x, start):
        return x * tf.get_variable("w", [], initializer=tf.constant_initializer(start))

    double = tf.make_template("scale", scaled, start=2.0)
    values = [double(3.0), double(4.0), tf.make_template("scale", scaled, True, start=5.0)(1.0)]
    assert names() == ["scale/w", "scale_1/w"] and run(values) == [6, 8, 5]


def test_regularizers():
    tf.layers.dense(tf.ones([1, 3]), 4, kernel_regularizer=tf.nn.l2_loss, activity_regularizer=tf.nn.l2_loss)
    assert len(tf.losses.get_regularization_losses()) == 2


def test_convolutions(run):
    x = tf.constant(IMAGES)
    plain = tf.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu)
    turned = tf.layers.conv2d(
        tf.transpose(x, [0, 3, 1, 2]), 4, 3, padding="same", activation=tf.nn.relu, data_format="channels_first",
        name="conv2d", reuse=True,
    )  # fmt: skip
    expected = tf.nn.relu(tf.nn.conv2d(x, of("conv2d/kernel"), [1, 1, 1, 1], "SAME"))
    values = run([plain, expected, tf.transpose(turned, [0, 2, 3, 1])])
    assert np.allclose(values[0], values[1]) and np.allclose(values[0], values[2], atol=1e-5)
    big = tf.layers.conv2d_transpose(x, 5, 3, strides=2, padding="same")
    wide = tf.layers.conv2d_transpose(x, 5, 3, strides=2)
    apart = tf.layers.separable_conv2d(x, 7, [3, 3])
    rows = tf.layers.conv1d(x[:, 0], 4, 2, strides=2)
    shapes = [v.shape for v in run([big, wide, apart, rows])]
    assert shapes == [(2, 12, 12, 5), (2, 13, 13, 5), (2, 4, 4, 7), (2, 3, 4)]
    assert [list(v.shape) for v in (big, wide, apart, rows)] == [list(shape) for shape in shapes]


def test_pooling_and_flatten(run):
    x = tf.constant(IMAGES)
    blocks = IMAGES.reshape(2, 3, 2, 3, 2, 3)
    pooled = run([tf.layers.max_pooling2d(x, 2, 2), tf.layers.average_pooling2d(x, [2, 2], [2, 2])])
    assert np.allclose(pooled[0], blocks.max((2, 4))) and np.allclose(pooled[1], blocks.mean((2, 4)), atol=1e-6)
    row = run([tf.layers.max_pooling1d(x[:, 0], 2, 2), tf.layers.average_pooling1d(x[:, 0], 2, 2)])
    pairs = IMAGES[:, 0].reshape(2, 3, 2, 3)
    assert np.allclose(row[0], pairs.max(2)) and np.allclose(row[1], pairs.mean(2), atol=1e-6)
    flat = tf.layers.flatten(tf.placeholder(tf.float32, [None, 6, 6, 3]))
    assert flat.shape.as_list() == [None, 108]
    assert np.array_equal(run(tf.layers.flatten(x)), IMAGES.reshape(2, -1))


def test_dropout_is_for_training(run):
    x, training = tf.ones([50, 50]), tf.placeholder(tf.bool, [])
    assert run(tf.layers.dropout(x, 0.4)).all()
    assert 0.3 < (run(tf.layers.dropout(x, 0.4, training=True)) == 0).mean() < 0.5
    either = tf.layers.dropout(x, 0.4, training=training)
    assert run(either, {training: False}).all() and not run(either, {training: True}).all()


@pytest.mark.parametrize("rank", [2, 4])
@pytest.mark.parametrize("is_fed", [False, True])
def test_batch_normalization(rank, is_fed):
    data = IMAGES if rank == 4 else IMAGES.reshape(-1, 3)
    axes = tuple(range(rank - 1))
    training = tf.placeholder_with_default(True, []) if is_fed else True
    y = tf.layers.batch_normalization(tf.constant(data), momentum=0.9, training=training, name="norm")
    moved = tf.group(*tf.get_collection(tf.GraphKeys.UPDATE_OPS))
    mean, variance = data.mean(axes), data.var(axes)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert np.allclose(session.run(y), (data - mean) / np.sqrt(variance + 1e-3), atol=1e-5)
        session.run(moved)
        averages = session.run([of("norm/moving_mean"), of("norm/moving_variance")])
        seen = data.var(axes, ddof=1) if rank == 4 else variance
        assert np.allclose(averages[0], 0.1 * mean, atol=1e-6)
        assert np.allclose(averages[1], 0.9 + 0.1 * seen, atol=1e-5)
        if is_fed:
            session.run(moved, {training: False})
            assert np.allclose(session.run(of("norm/moving_mean")), averages[0])
            still = session.run(y, {training: False})
        else:
            still = session.run(
                tf.layers.batch_normalization(tf.constant(data), training=False, name="norm", reuse=True)
            )
        assert np.allclose(still, (data - averages[0]) / np.sqrt(averages[1] + 1e-3), atol=1e-5)


def test_bad_input_is_told():
    with pytest.raises(ut.TypeMismatch, match="needs to know axis -1"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3)
    with pytest.raises(ut.TypeMismatch, match="data_format"):
        tf.layers.conv2d(tf.constant(IMAGES), 4, 3, data_format="NHWC")
    with pytest.raises(ut.TypeMismatch, match="kernel_size"):
        tf.layers.conv2d(tf.constant(IMAGES), 4, [1, 2, 3])
    with pytest.raises(AttributeError, match="did you mean"):
        _ = tf.layers.dens
