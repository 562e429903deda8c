"""Losses of logits, lookups, best classes, moments and norms."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

RANDOM = np.random.default_rng(1)
LOGITS = RANDOM.normal(size=(4, 3)) * 3
CHANCES = RANDOM.dirichlet(np.ones(3), size=4)
LOG = LOGITS - np.log(np.exp(LOGITS).sum(1, keepdims=True))
CLASSES = np.array([2, 0, 1, 2])
TARGETS = (CHANCES > 0.3).astype(float)
SIGMOID = 1 / (1 + np.exp(-LOGITS))


def test_softmax_cross_entropies(check, run):
    expected = -(CHANCES * LOG).sum(1)
    for function in (tf.nn.softmax_cross_entropy_with_logits, tf.nn.softmax_cross_entropy_with_logits_v2):
        check(lambda x, f=function: f(labels=CHANCES, logits=x), [LOGITS], expected)
    check(lambda x, z: tf.nn.softmax_cross_entropy_with_logits_v2(labels=z, logits=x, dim=0), [LOGITS, CHANCES])
    labels = tf.constant(CHANCES)
    loss = tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=tf.constant(LOGITS))
    assert not run(tf.gradients(loss, labels, unconnected_gradients="zero")[0]).any()
    check(
        lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(labels=CLASSES, logits=x),
        [LOGITS],
        -LOG[range(4), CLASSES],
    )


def test_sigmoid_cross_entropies(check, run):
    expected = -TARGETS * np.log(SIGMOID) - (1 - TARGETS) * np.log(1 - SIGMOID)
    check(lambda x: tf.nn.sigmoid_cross_entropy_with_logits(labels=TARGETS, logits=x), [LOGITS], expected)
    weighted = -3 * TARGETS * np.log(SIGMOID) - (1 - TARGETS) * np.log(1 - SIGMOID)
    check(lambda x: tf.nn.weighted_cross_entropy_with_logits(TARGETS, x, 3.0), [LOGITS], weighted)
    far = tf.nn.sigmoid_cross_entropy_with_logits(labels=[0.0, 1.0], logits=[1000.0, 1000.0])
    assert run(far).tolist() == [1000, 0]
    check(lambda x: tf.nn.log_poisson_loss(TARGETS, x), [LOGITS], np.exp(LOGITS) - LOGITS * TARGETS)


def test_arguments_are_named():
    with pytest.raises(ut.TypeMismatch, match="by name"):
        tf.nn.softmax_cross_entropy_with_logits(LOGITS, CHANCES)
    with pytest.raises(ut.TypeMismatch, match="labels are"):
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant(CHANCES), logits=tf.constant(LOGITS))


def test_sampled_losses(run):
    """With given samples, they are formulas."""
    w, b, x = RANDOM.normal(size=(6, 2)), RANDOM.normal(size=6), RANDOM.normal(size=(3, 2))
    labels, sampled = np.array([[1], [4], [2]]), np.array([0, 4, 5])
    counts = np.array([[0.5], [0.2], [0.3]]), np.array([0.9, 0.2, 0.1])
    true = (x * w[labels[:, 0]]).sum(1) + b[labels[:, 0]] - np.log(counts[0][:, 0])
    other = x @ w[sampled].T + b[sampled] - np.log(counts[1])
    logits = np.column_stack([true, other])
    soft = lambda v: np.log1p(np.exp(v))  # noqa: E731
    found = tf.nn.nce_loss(
        tf.constant(w), tf.constant(b), labels, tf.constant(x), 3, 6, sampled_values=(sampled, *counts)
    )
    assert np.allclose(run(found), soft(-true) + soft(other).sum(1))
    found = tf.nn.sampled_softmax_loss(
        tf.constant(w), tf.constant(b), labels, tf.constant(x), 3, 6, sampled_values=(sampled, *counts)
    )
    logits[1, 2] = -np.inf  # example 1 has drawn its own class
    assert np.allclose(run(found), np.log(np.exp(logits).sum(1)) - true)


def test_classes_are_drawn_by_zipfs_law(run):
    sampled, _, expected = tf.nn.log_uniform_candidate_sampler([[0]], 1, 20_000, False, 10)
    drawn, counts = run([sampled, expected])
    assert drawn.min() == 0 and drawn.max() == 9
    chances = np.log((np.arange(10) + 2) / (np.arange(10) + 1)) / np.log(11)
    assert np.allclose(np.bincount(drawn) / 20_000, chances, atol=0.015)
    assert np.allclose(counts, 20_000 * chances[drawn], rtol=1e-4)


def test_lookups(check, run):
    table = RANDOM.normal(size=(5, 2))
    check(lambda t: tf.nn.embedding_lookup(t, [[1, 4], [1, 0]]), [table], table[[[1, 4], [1, 0]]])
    parts = [tf.constant(table[0::2]), tf.constant(table[1::2])]
    assert np.array_equal(run(tf.nn.embedding_lookup(parts, [4, 3, 0])), table[[4, 3, 0]])
    halves = [tf.constant(table[:3]), tf.constant(table[3:])]
    assert np.array_equal(run(tf.nn.embedding_lookup(halves, [4, 3, 0], "div")), table[[4, 3, 0]])
    short = run(tf.nn.embedding_lookup(table, [0, 1], max_norm=0.1))
    assert np.allclose(np.linalg.norm(short, axis=1), 0.1)


def test_best_classes(check, run):
    best = tf.nn.top_k([[1.0, 5.0, 5.0, 2.0]], k=3)
    values, indices = run(best)
    assert values.tolist() == [[5, 5, 2]] and indices.tolist() == [[1, 2, 3]] and best.indices.dtype == tf.int32
    check(lambda x: tf.nn.top_k(x, 2).values, [LOGITS], -np.sort(-LOGITS)[:, :2])
    assert run(tf.nn.in_top_k(LOGITS, np.argmax(LOGITS, 1), 1)).all()
    assert not run(tf.nn.in_top_k(LOGITS, np.argmin(LOGITS, 1), 2)).any()


def test_moments_and_batch_normalization(check):
    for axes, keep in ([0], False), ([0, 1], False), ([1], True):
        arguments = {"axis": tuple(axes), "keepdims": keep}
        check(lambda x, a=axes, k=keep: tf.nn.moments(x, a, keep_dims=k)[0], [LOGITS], LOGITS.mean(**arguments))
        check(lambda x, a=axes, k=keep: tf.nn.moments(x, a, keep_dims=k)[1], [LOGITS], LOGITS.var(**arguments))
    mean, variance, offset, scale = LOGITS.mean(0), LOGITS.var(0), np.arange(3.0), np.arange(3.0) + 1
    check(
        lambda *given: tf.nn.batch_normalization(*given, 1e-3),
        [LOGITS, mean, variance, offset, scale],
        (LOGITS - mean) / np.sqrt(variance + 1e-3) * scale + offset,
    )
    check(
        lambda x: tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3),
        [LOGITS],
        (LOGITS - mean) / np.sqrt(variance + 1e-3),
    )
    weights = np.arange(4.0)[:, None]
    expected = np.average(LOGITS, 0, weights[:, 0])
    check(lambda x: tf.nn.weighted_moments(x, [0], weights)[0], [LOGITS], expected)


def test_fused_batch_norm(run):
    images = RANDOM.normal(size=(2, 3, 3, 2))
    y, mean, variance = run(tf.nn.fused_batch_norm(images, np.ones(2), np.zeros(2)))
    assert np.allclose(mean, images.mean((0, 1, 2))) and np.allclose(variance, images.var((0, 1, 2), ddof=1))
    assert np.allclose(y, (images - mean) / np.sqrt(images.var((0, 1, 2)) + 0.001))
    turned, *_ = run(tf.nn.fused_batch_norm(images.transpose(0, 3, 1, 2), np.ones(2), np.zeros(2), data_format="NCHW"))
    assert np.allclose(turned.transpose(0, 2, 3, 1), y)


def test_norms(check, run):
    check(tf.nn.l2_loss, [LOGITS], (LOGITS**2).sum() / 2)
    unit = LOGITS / np.linalg.norm(LOGITS, axis=1, keepdims=True)
    check(lambda x: tf.nn.l2_normalize(x, dim=1), [LOGITS], unit)
    check(lambda x: tf.nn.l2_normalize(x, axis=[0, 1]), [LOGITS], LOGITS / np.linalg.norm(LOGITS))
    assert run(tf.nn.zero_fraction([0.0, 1.0, 0.0, 2.0])) == 0.5
    squares = np.pad(LOGITS**2, [(0, 0), (1, 1)])
    near = squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]
    check(lambda x: tf.nn.lrn(x, 1, 1.0, 0.5, 0.75), [LOGITS], LOGITS / (1 + 0.5 * near) ** 0.75)
