"""Indices, segments, shapes, matrices and counts, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(3, 4, 2))
M = RANDOM.normal(size=(3, 4))
S = RANDOM.normal(size=(3, 3)) + 3 * np.eye(3)
PLACES = np.array([[2, 1], [0, 3], [2, 1]])


def test_gather_nd(check, run):
    check(lambda x: tf.gather_nd(x, PLACES), [X], X[PLACES[:, 0], PLACES[:, 1]])
    check(lambda x: tf.gather_nd(x, [[1], [1]]), [M], M[[1, 1]])
    check(lambda x: tf.gather_nd(x, [1, 2]), [M], M[1, 2])
    check(lambda x: tf.gather_nd(x, [[[0, 0]], [[2, 3]]]), [M], M[[[0], [2]], [[0], [3]]])
    x = tf.placeholder(tf.float64, [None, None])
    places = tf.placeholder(tf.int32, [None, 2])
    picked = tf.gather_nd(x, places)
    assert np.array_equal(run(picked, {x: M, places: PLACES}), M[PLACES[:, 0], PLACES[:, 1]])
    with pytest.raises(ut.RunError):
        run(picked, {x: M, places: [[0, 4]]})  # which must not be the element [1, 0]
    with pytest.raises(ut.TypeMismatch, match="too many"):
        tf.gather_nd(M, [[1, 2, 3]])


def test_scatter_nd(check, run):
    rows = RANDOM.normal(size=(3, 2))
    expected = np.zeros_like(X)
    np.add.at(expected, (PLACES[:, 0], PLACES[:, 1]), rows)
    check(lambda r: tf.scatter_nd(PLACES, r, [3, 4, 2]), [rows], expected)
    assert run(tf.scatter_nd([[1], [3]], [5, 6], tf.constant([4]))).tolist() == [0, 5, 0, 6]


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (lambda v: tf.scatter_add(v, [0, 2, 0], [1.0, 2.0, 3.0]), [5, 2, 5, 4]),
        (lambda v: tf.scatter_sub(v, [0, 2], [1.0, 2.0]), [0, 2, 1, 4]),
        (lambda v: tf.scatter_mul(v, [1, 2], [10.0, 20.0]), [1, 20, 60, 4]),
        (lambda v: tf.scatter_div(v, [1], [2.0]), [1, 1, 3, 4]),
        (lambda v: tf.scatter_update(v, tf.constant(3), 7.0), [1, 2, 3, 7]),
        (lambda v: tf.scatter_nd_add(v, [[0], [0]], [1.0, 1.0]), [3, 2, 3, 4]),
        (lambda v: tf.scatter_nd_sub(v, [[1]], [1.0]), [1, 1, 3, 4]),
        (lambda v: tf.scatter_nd_update(v, [[3], [1]], [1.0, 0.0]), [1, 0, 3, 1]),
    ],
)
def test_rows_of_variables(update, expected):
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    changed = update(v)
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(changed).tolist() == expected == session.run(v).tolist()


def test_masks(check, run):
    rows = np.array([True, False, True])
    check(lambda x: tf.boolean_mask(x, rows), [X], X[rows])
    check(lambda x: tf.boolean_mask(x, X[..., 0] > 0), [X], X[X[..., 0] > 0])
    check(lambda x: tf.boolean_mask(x, [True, False, False, True], axis=1), [X], X[:, [0, 3]])
    x = tf.placeholder(tf.float64, [None, None])
    assert np.array_equal(run(tf.boolean_mask(x, x > 0), {x: M}), M[M > 0])
    assert run(tf.where([[True, False], [True, True]])).tolist() == [[0, 0], [1, 0], [1, 1]]
    assert run(tf.where(x > 100), {x: M}).shape == (0, 2)
    check(lambda a, b: tf.where(rows, a, b), [M, -M], np.where(rows[:, None], M, -M))
    assert run(tf.sequence_mask([1, 0, 3])).tolist() == [[1, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert run(tf.sequence_mask([[1], [2]], 2, tf.float32)).tolist() == [[[1, 0]], [[1, 1]]]
    with pytest.raises(ut.TypeMismatch, match="not a mask"):
        tf.boolean_mask(x, [1, 0])


def test_partitions(check, run):
    parts = tf.dynamic_partition([10, 20, 30, 40], [1, 0, 1, 2], 4)
    assert [part.tolist() for part in run(parts)] == [[20], [10, 30], [40], []]
    check(lambda x: tf.dynamic_partition(x, [1, 0, 1], 2)[1], [M], M[[0, 2]])
    stitched = tf.dynamic_stitch([[0, 2], [3, 1]], [[1.0, 3.0], [4.0, 2.0]])
    assert run(stitched).tolist() == [1, 2, 3, 4]
    places = tf.placeholder(tf.int32, [None])
    both = tf.dynamic_stitch(
        tf.dynamic_partition(tf.range(4), places, 2), tf.dynamic_partition(tf.constant([5, 6, 7, 8]), places, 2)
    )
    assert run(both, {places: [1, 0, 0, 1]}).tolist() == [5, 6, 7, 8]
    assert run(tf.invert_permutation([2, 0, 1])).tolist() == [1, 2, 0]


def test_sets(run):
    y, idx, count = run(tf.unique_with_counts([4, 2, 4, 9, 2, 4]))
    assert y.tolist() == [4, 2, 9] and idx.tolist() == [0, 1, 0, 2, 1, 0] and count.tolist() == [3, 2, 1]
    assert tf.unique([1, 2]).idx.dtype == tf.int32
    out, idx = run(tf.setdiff1d([5, 1, 6, 2, 1], [2, 1]))
    assert out.tolist() == [5, 6] and idx.tolist() == [0, 2]


IDS = np.array([0, 0, 2])


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (lambda x: tf.segment_sum(x, IDS), [M[0] + M[1], 0 * M[0], M[2]]),
        (lambda x: tf.segment_mean(x, IDS), [(M[0] + M[1]) / 2, 0 * M[0], M[2]]),
        (lambda x: tf.segment_max(x, IDS), [np.maximum(M[0], M[1]), 0 * M[0], M[2]]),
        (lambda x: tf.segment_min(x, IDS), [np.minimum(M[0], M[1]), 0 * M[0], M[2]]),
        (lambda x: tf.segment_prod(x, IDS), [M[0] * M[1], 0 * M[0], M[2]]),
        (lambda x: tf.unsorted_segment_sum(x, [3, 0, 3], 4), [M[1], 0 * M[0], 0 * M[0], M[0] + M[2]]),
        (lambda x: tf.unsorted_segment_max(x, [1, 0, 1], 2), [M[1], np.maximum(M[0], M[2])]),
        (lambda x: tf.unsorted_segment_sum(x, PLACES[:, [0, 1, 0, 1]], tf.constant(4)), None),
        (lambda x: tf.sparse_segment_sum(x, [2, 1, 2], [0, 1, 1]), [M[2], M[1] + M[2]]),
        (lambda x: tf.sparse_segment_mean(x, [2, 1, 2], [0, 1, 1]), [M[2], (M[1] + M[2]) / 2]),
    ],
)
def test_segments(check, operation, expected):
    check(operation, [M], None if expected is None else np.array(expected))


def test_segments_that_a_run_knows(run):
    ids = tf.placeholder(tf.int32, [None])
    assert run(tf.segment_sum([1.0, 2.0, 3.0], ids), {ids: [0, 1, 1]}).tolist() == [1, 5]
    with pytest.raises(ut.TypeMismatch, match="number of its segment"):
        tf.segment_sum([1.0, 2.0], [0.0, 1.0])


def test_padding(check, run):
    check(lambda x: tf.pad(x, [[1, 0], [2, 1]]), [M], np.pad(M, [(1, 0), (2, 1)]))
    check(lambda x: tf.pad(x, [[1, 2], [0, 3]], "REFLECT"), [M], np.pad(M, [(1, 2), (0, 3)], "reflect"))
    check(lambda x: tf.pad(x, [[1, 2], [0, 3]], "symmetric"), [M], np.pad(M, [(1, 2), (0, 3)], "symmetric"))
    assert run(tf.pad([1, 2], [[1, 1]], constant_values=9)).tolist() == [9, 1, 2, 9]
    amounts = tf.placeholder(tf.int32, [2, 2])
    assert np.array_equal(run(tf.pad(M, amounts), {amounts: [[1, 0], [2, 1]]}), np.pad(M, [(1, 0), (2, 1)]))


def test_slices(check):
    check(lambda x: tf.strided_slice(x, [0, 3], [3, 0], [2, -1]), [M], M[0:3:2, 3:0:-1])
    check(
        lambda x: tf.strided_slice(x, [1, 0, 0], [2, 2, 9], begin_mask=2, end_mask=4, shrink_axis_mask=1), [X], X[1, :2]
    )
    lengths = [3, 0, 2]
    expected = M.copy()
    for row, length in zip(expected, lengths, strict=True):
        row[:length] = row[:length][::-1]
    check(lambda x: tf.reverse_sequence(x, lengths, seq_axis=1, batch_axis=0), [M], expected)
    check(lambda x: tf.roll(x, 1, axis=1), [M], np.roll(M, 1, 1))
    check(lambda x: tf.split(x, [1, -1], axis=1)[1], [M], M[:, 1:])


def test_grids_and_ones(run):
    grids = run(tf.meshgrid([1, 2, 3], [4, 5]))
    assert all(np.array_equal(a, b) for a, b in zip(grids, np.meshgrid([1, 2, 3], [4, 5]), strict=True))
    assert np.array_equal(run(tf.one_hot([1, 0], 3, axis=0)), np.eye(3)[[1, 0]].T)
    assert run(tf.one_hot([1, 5], 3, on_value=7, off_value=-1)).tolist() == [[-1, 7, -1], [-1, -1, -1]]
    assert run(tf.one_hot([1], 2, 5.0, 0.0, -1)).dtype == np.float32
    assert run(tf.eye(2, batch_shape=[3])).shape == (3, 2, 2)
    times = tf.placeholder(tf.int32, [2])
    assert np.array_equal(run(tf.tile([[1, 2]], times), {times: [2, 3]}), np.tile([[1, 2]], (2, 3)))
    image = np.arange(16.0).reshape(1, 4, 4, 1)
    assert run(tf.space_to_depth(image, 2))[0, 0, 0].tolist() == [0, 1, 4, 5]
    assert np.array_equal(run(tf.depth_to_space(tf.space_to_depth(image, 2), 2)), image)
    assert [v.tolist() for v in run(tf.shape_n([image, [1, 2]]))] == [[1, 4, 4, 1], [2]]


def test_diagonals(check):
    check(tf.diag, [[1, 2, 3]], np.diag([1, 2, 3]))
    check(tf.matrix_diag, [M], M[:, :, None] * np.eye(4))
    check(tf.diag_part, [S], np.diag(S))
    check(tf.matrix_diag_part, [M], np.diag(M))
    for low, high in ((0, -1), (-1, 0), (1, 1), (0, 0)):
        k = np.subtract.outer(range(3), range(4))
        inside = ((low < 0) | (k <= low)) & ((high < 0) | (-k <= high))
        check(lambda x, a=low, b=high: tf.matrix_band_part(x, a, b), [M], np.where(inside, M, 0))
    replaced = S.copy()
    np.fill_diagonal(replaced, [7, 8, 9])
    check(tf.matrix_set_diag, [S, [7, 8, 9]], replaced)


@pytest.mark.slow
def test_matrices(check, run):
    positive = S @ S.T + np.eye(3)
    b = RANDOM.normal(size=(3, 2))
    check(tf.matrix_inverse, [S], np.linalg.inv(S))
    check(tf.matrix_determinant, [S], np.linalg.det(S))
    check(tf.matrix_solve, [S, b], np.linalg.solve(S, b))
    check(lambda a, c: tf.matrix_solve(a, c, adjoint=True), [S, b], np.linalg.solve(S.T, b))
    check(tf.matrix_triangular_solve, [S, b], np.linalg.solve(np.tril(S), b))
    check(lambda c: tf.cholesky_solve(np.linalg.cholesky(positive), c), [b], np.linalg.solve(positive, b))
    assert np.allclose(run(tf.cholesky(positive)), np.linalg.cholesky(positive))
    check(tf.trace, [S], np.trace(S))
    check(tf.norm, [S], np.linalg.norm(S))
    check(lambda x: tf.norm(x, axis=1), [S], np.linalg.norm(S, axis=1))
    check(lambda x: tf.norm(x, ord=1, axis=1), [S], abs(S).sum(1))
    check(tf.cross, [S, S.T], np.cross(S, S.T))
    s, u, v = run(tf.svd(M))
    assert np.allclose(u @ np.diag(s) @ v.T, M)
    q, r = run(tf.qr(S))
    assert np.allclose(q @ r, S)
    values, vectors = run(tf.self_adjoint_eig(positive))
    assert np.allclose(vectors @ np.diag(values) @ vectors.T, positive)
    assert np.allclose(run(tf.linalg.logdet(positive)), np.log(np.linalg.det(positive)))
    check(lambda a, c: tf.matmul(a, c, transpose_a=True, transpose_b=True), [b, M.T], b.T @ M)


def test_running_sums_and_products(check):
    before = np.cumsum(M, 1) - M
    check(lambda x: tf.cumsum(x, 1, exclusive=True), [M], before)
    check(lambda x: tf.cumsum(x, 1, reverse=True), [M], np.cumsum(M[:, ::-1], 1)[:, ::-1])
    check(lambda x: tf.cumprod(x, 1), [M], np.cumprod(M, 1))
    ahead = np.concatenate([np.cumprod(M[:, :0:-1], 1)[:, ::-1], np.ones((3, 1))], 1)
    check(lambda x: tf.cumprod(x, 1, exclusive=True, reverse=True), [M], ahead)


def test_counts(run):
    assert run(tf.bincount([1, 1, 3])).tolist() == [0, 2, 0, 1]
    assert run(tf.bincount([1, 1, 3], minlength=5, weights=[1.0, 2.0, 3.0])).tolist() == [0, 3, 0, 3, 0]
    assert run(tf.bincount([1, 1, 3], maxlength=2)).tolist() == [0, 2]
    assert run(tf.confusion_matrix([0, 1, 1, 2], [0, 2, 1, 2])).tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert run(tf.confusion_matrix([0, 1], [1, 1], 2, weights=[3, 4])).tolist() == [[0, 3], [0, 4]]
    assert run(tf.count_nonzero([[1, 0], [2, 3]], axis=0)).tolist() == [2, 1]
    assert run(tf.histogram_fixed_width([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], [0.0, 5.0], nbins=5)).tolist() == [
        2,
        1,
        1,
        0,
        2,
    ]


def test_numbers(run, check):
    x, y = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    assert run(tf.truncatediv(x, y)).tolist() == [3, -3, -3, 3]
    assert run(tf.truncatemod(x, y)).tolist() == [1, -1, 1, -1]
    assert run(tf.floordiv(x, y)).tolist() == [3, -4, -4, 3] and run(tf.floormod(x, y)).tolist() == [1, 1, -1, -1]
    assert run(tf.saturate_cast([1e20, -1e20, 3.7], tf.int32)).tolist() == [2147483520, -2147483648, 3]
    check(tf.digamma, [[1.0, 2.0]], [-0.5772156649015329, 0.42278433509846714])
    check(tf.log_sigmoid, [M], -np.log1p(np.exp(-M)))
    check(tf.erfc, [[0.0, 1.0]])
    check(lambda a, b: tf.accumulate_n([a, b]), [M, M], 2 * M)
    check(tf.lbeta, [[2.0, 3.0]], np.log(1 / 12))
    assert run(tf.scalar_mul(2, tf.constant([1.0, 2.0]))).tolist() == [2, 4]
    assert run(tf.rint([0.5, 1.5])).tolist() == [0, 2] and run(tf.lin_space(0.0, 1.0, 3)).tolist() == [0, 0.5, 1]


def test_checks(run):
    x = tf.placeholder(tf.float32, [2])
    sound = tf.check_numerics(x, "x is not finite")
    assert run(sound, {x: [1, 2]}).tolist() == [1, 2]
    for bad in (np.nan, np.inf):
        with pytest.raises(ut.RunError, match="x is not finite"):
            run(sound, {x: [1, bad]})
    with tf.control_dependencies([tf.assert_less(x, 5.0), tf.assert_non_negative(x, message="negative")]):
        y = tf.identity(x)
    assert run(y, {x: [0, 4]}).tolist() == [0, 4]
    with pytest.raises(ut.RunError, match="x < y does not hold"):
        run(y, {x: [0, 5]})
    with pytest.raises(ut.RunError, match="negative"):
        run(y, {x: [0, -1]})
    for make, what in [
        (lambda: tf.assert_rank(x, 2), "rank 2"),
        (lambda: tf.assert_rank_at_least(x, 2), "below 2"),
        (lambda: tf.assert_scalar(x), "rank 0"),
        (lambda: tf.assert_type(x, tf.int32), "is not i32"),
        (lambda: tf.assert_integer(x), "hold integers"),
    ]:
        with pytest.raises(ut.TypeMismatch, match=what):
            make()
    orders = [tf.is_non_decreasing([1, 1, 2]), tf.is_strictly_increasing([1, 1, 2]), tf.is_strictly_increasing([1, 2])]
    assert run(orders) == [True, False, True]
