"""Convolutions and pooling, compared with loops over places in NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.normal(size=(2, 4, 5, 2))
FILTER = RANDOM.normal(size=(3, 2, 2, 3))


def windows(images, size, stride, padding, filler, dilation=1):
    """(place, window, which of its elements are in the image), for each place."""
    spatial = images.shape[1:3]
    reach = [(k - 1) * dilation + 1 for k in size]
    if padding == "SAME":
        places = [-(-d // stride) for d in spatial]
        missing = [max(0, (n - 1) * stride + r - d) for n, r, d in zip(places, reach, spatial, strict=True)]
    else:
        places = [-(-(d - r + 1) // stride) for d, r in zip(spatial, reach, strict=True)]
        missing = [0, 0]
    pads = [(0, 0), *((m // 2, m - m // 2) for m in missing), (0, 0)]
    wide = np.pad(images, pads, constant_values=filler)
    inside = np.pad(np.ones(images.shape), pads)
    for y, x in itertools.product(*map(range, places)):
        cut = np.s_[:, y * stride : y * stride + reach[0] : dilation, x * stride : x * stride + reach[1] : dilation]
        yield (y, x), wide[cut], inside[cut]


def by_places(images, size, stride, padding, compute, filler=0.0, dilation=1):
    results = {
        place: compute(window, inside)
        for place, window, inside in windows(images, size, stride, padding, filler, dilation)
    }
    height, width = (max(place[k] for place in results) + 1 for k in (0, 1))
    return np.stack([np.stack([results[y, x] for x in range(width)], 1) for y in range(height)], 1)


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_conv2d(check, padding, stride):
    expected = by_places(IMAGES, (3, 2), stride, padding, lambda w, _: np.tensordot(w, FILTER, ([1, 2, 3], [0, 1, 2])))
    check(lambda x, f: tf.nn.conv2d(x, f, [1, stride, stride, 1], padding), [IMAGES, FILTER], expected)


def test_layouts_and_dilations(run):
    x, f = tf.constant(IMAGES), tf.constant(FILTER)
    plain = run(tf.nn.conv2d(x, f, strides=[1, 2, 1, 1], padding="SAME"))
    turned = tf.nn.conv2d(tf.transpose(x, [0, 3, 1, 2]), f, [1, 1, 2, 1], "SAME", data_format="NCHW")
    assert np.allclose(run(tf.transpose(turned, [0, 2, 3, 1])), plain)
    kernel = FILTER[:2]
    expected = by_places(
        IMAGES, (2, 2), 1, "VALID", lambda w, _: np.tensordot(w, kernel, ([1, 2, 3], [0, 1, 2])), dilation=2
    )
    assert np.allclose(run(tf.nn.atrous_conv2d(x, tf.constant(kernel), 2, "VALID")), expected)


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_pooling(check, padding):
    largest = by_places(IMAGES, (2, 3), 2, padding, lambda w, _: w.max((1, 2)), filler=-np.inf)
    check(lambda x: tf.nn.max_pool(x, [1, 2, 3, 1], [1, 2, 2, 1], padding), [IMAGES], largest)
    mean = by_places(IMAGES, (2, 3), 2, padding, lambda w, inside: w.sum((1, 2)) / inside.sum((1, 2)))
    check(lambda x: tf.nn.avg_pool(x, [1, 2, 3, 1], [1, 2, 2, 1], padding), [IMAGES], mean)


def test_the_first_of_equal_elements_gets_the_gradient(run):
    x = tf.constant(np.zeros((1, 2, 2, 1)))
    (gradient,) = tf.gradients(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"), x)
    assert run(gradient).ravel().tolist() == [1, 0, 0, 0]


def test_places_of_the_largest(run):
    values, places = run(tf.nn.max_pool_with_argmax(IMAGES, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
    flat = IMAGES.reshape(2, -1)
    assert np.array_equal(values, np.stack([flat[k][places[k]] for k in range(2)]))


def test_the_transpose_is_the_gradient_of_conv2d(run, check):
    """conv2d_transpose(y, f) is what tf.gradients gives for the images of conv2d, for each stride and padding."""
    for padding, stride in itertools.product(["SAME", "VALID"], [1, 2, 3]):
        x = tf.constant(IMAGES)
        y = tf.nn.conv2d(x, FILTER, [1, stride, stride, 1], padding)
        weights = RANDOM.normal(size=y.shape.as_list())
        (expected,) = tf.gradients(y, x, weights)
        back = tf.nn.conv2d_transpose(weights, FILTER, IMAGES.shape, [1, stride, stride, 1], padding)
        assert np.allclose(*run([back, expected]))
    small = RANDOM.normal(size=(1, 2, 2, 1))
    check(
        lambda x, f: tf.nn.conv2d_transpose(x, f, [1, 4, 4, 2], [1, 2, 2, 1]), [small, RANDOM.normal(size=(3, 3, 2, 1))]
    )
    batch = tf.placeholder(tf.float32, [None, 2, 2, 1])
    shape = tf.stack([tf.shape(batch)[0], 4, 4, 2])
    grown = tf.nn.conv2d_transpose(batch, tf.ones([3, 3, 2, 1]), shape, [1, 2, 2, 1])
    assert grown.shape.as_list() == [None, 4, 4, 2] and run(grown, {batch: np.ones((3, 2, 2, 1))}).shape == (3, 4, 4, 2)


def test_depthwise_and_separable(run, check):
    own = RANDOM.normal(size=(2, 2, 2, 2))
    expected = by_places(
        IMAGES, (2, 2), 1, "VALID", lambda w, _: np.einsum("bhwi,hwim->bim", w, own).reshape(len(w), -1)
    )
    assert np.allclose(run(tf.nn.depthwise_conv2d(IMAGES, own, [1, 1, 1, 1], "VALID")), expected)
    points = RANDOM.normal(size=(1, 1, 4, 3))
    assert np.allclose(run(tf.nn.separable_conv2d(IMAGES, own, points, [1, 1, 1, 1], "VALID")), expected @ points[0, 0])
    check(lambda f: tf.nn.depthwise_conv2d(IMAGES, f, [1, 1, 1, 1], "SAME"), [own])


def test_conv1d(run):
    rows, kernel = RANDOM.normal(size=(2, 7, 2)), RANDOM.normal(size=(3, 2, 4))
    expected = np.stack([np.tensordot(rows[:, k : k + 3], kernel, 2) for k in range(0, 5, 2)], 1)
    assert np.allclose(run(tf.nn.conv1d(rows, kernel, 2, "VALID")), expected)
    assert np.allclose(run(tf.nn.convolution(rows, kernel, "VALID", strides=[2])), expected)


def test_bad_input_is_told():
    x = tf.placeholder(tf.float32, [None, 4, 5, 2])
    f = tf.ones([3, 3, 2, 1])
    open_height = tf.placeholder(tf.float32, [1, None, 5, 2])
    for make, what in [
        (lambda: tf.nn.conv2d(x, tf.ones([3, 3, 1, 1]), [1, 1, 1, 1], "SAME"), "filter"),
        (lambda: tf.nn.conv2d(x, f, [1, 1, 1, 1], "same"), "padding"),
        (lambda: tf.nn.conv2d(x, f, [2, 1, 1, 1], "SAME"), "strides"),
        (lambda: tf.nn.conv2d(tf.placeholder(tf.float32, [4, 5]), f, [1, 1, 1, 1], "SAME"), "takes images"),
        (lambda: tf.nn.conv2d(open_height, f, [1, 1, 1, 1], "SAME"), "height and width"),
        (lambda: tf.nn.max_pool(x, [1, 9, 9, 1], [1, 1, 1, 1], "VALID"), "does not fit"),
        (lambda: tf.nn.conv2d_transpose(x, tf.ones([3, 3, 1, 2]), [1, 9, 9, 1], [1, 2, 2, 1]), "does not fit"),
    ]:  # fmt: skip
        with pytest.raises(ut.TypeMismatch, match=what) as fault:
            make()
        assert fault.value.hint and fault.value.span is not None
