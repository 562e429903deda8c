"""`tf.data`: datasets, what is made of them, and iterators."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf

Dataset = tf.data.Dataset


def elements(dataset, most=100):
    """All elements of a dataset, as a session gets them."""
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with tf.Session() as session:
        for _ in range(most):
            try:
                found.append(session.run(following))
            except tf.errors.OutOfRangeError:
                return found
    return found


def flat(dataset, most=100):
    return [np.asarray(value).tolist() for value in elements(dataset, most)]


def test_sources():
    assert flat(Dataset.range(2, 8, 3)) == [2, 5]
    assert flat(Dataset.from_tensors([1, 2])) == [[1, 2]]
    rows = elements(Dataset.from_tensor_slices(({"a": np.arange(4).reshape(2, 2), "b": [0.5, 1.5]}, [7, 8])))
    assert [(row["a"].tolist(), float(row["b"]), int(n)) for row, n in rows] == [([0, 1], 0.5, 7), ([2, 3], 1.5, 8)]
    made = Dataset.from_tensor_slices(({"a": np.zeros((2, 3), np.int64)}, [0.5, 1.5]))
    assert made.output_types == ({"a": tf.int64}, tf.float32) and made.output_shapes[0]["a"].as_list() == [3]
    with pytest.raises(ut.TypeMismatch, match="no slices"):
        Dataset.from_tensor_slices(3)


def test_generators():
    def pairs():
        for k in range(3):
            yield k, [k * 0.5] * (k + 1)

    dataset = Dataset.from_generator(pairs, (tf.int64, tf.float32), (tf.TensorShape([]), tf.TensorShape([None])))
    assert [(int(k), row.tolist()) for k, row in elements(dataset)] == [(0, [0]), (1, [0.5, 0.5]), (2, [1, 1, 1])]
    assert flat(Dataset.from_generator(lambda: iter([1, 2]), tf.int32).repeat(2)) == [1, 2, 1, 2]
    with pytest.raises(ut.TypeMismatch, match="yields"):
        elements(Dataset.from_generator(lambda: iter([0.5]), tf.int32))
    with pytest.raises(ut.TypeMismatch, match="without"):
        Dataset.from_generator(pairs(), tf.int32)


def test_parts():
    ten = Dataset.range(10)
    assert flat(ten.take(3)) == [0, 1, 2] and flat(ten.skip(8)) == [8, 9] and flat(ten.take(-1)) == list(range(10))
    assert flat(ten.shard(4, 1)) == [1, 5, 9] and flat(ten.skip(-1)) == []
    assert flat(ten.filter(lambda x: tf.equal(x % 3, 0))) == [0, 3, 6, 9]
    assert flat(ten.take(2).repeat(2).concatenate(Dataset.range(1))) == [0, 1, 0, 1, 0]
    assert flat(ten.repeat(), most=25) == [k % 10 for k in range(25)]
    assert flat(ten.take(2).prefetch(1).cache().repeat(2).apply(lambda d: d.skip(1))) == [1, 0, 1]
    with pytest.raises(ut.TypeMismatch, match="predicate"):
        ten.filter(lambda x: x)


def test_batches():
    assert flat(Dataset.range(5).batch(2)) == [[0, 1], [2, 3], [4]]
    whole = Dataset.range(5).batch(2, drop_remainder=True)
    assert flat(whole) == [[0, 1], [2, 3]] and whole.output_shapes.as_list() == [2]
    rows = Dataset.range(1, 4).map(lambda n: tf.fill([n], n))
    assert flat(rows.padded_batch(2, [None])) == [[[1, 0], [2, 2]], [[3, 3, 3]]]
    assert flat(rows.padded_batch(3, [4], padding_values=-1)) == [[[1, -1, -1, -1], [2, 2, -1, -1], [3, 3, 3, -1]]]
    with pytest.raises(ut.TypeMismatch, match="different shapes"):
        elements(rows.batch(2))
    with pytest.raises(ut.TypeMismatch, match="batch_size"):
        Dataset.range(5).batch(0)


def test_map_and_zip():
    both = Dataset.zip((Dataset.range(3), {"x": Dataset.range(10, 20)}))
    assert [(int(a), int(b["x"])) for a, b in elements(both)] == [(0, 10), (1, 11), (2, 12)]
    assert flat(both.map(lambda a, b: a * b["x"])) == [0, 11, 24]
    squares = Dataset.range(4).map(lambda x: (x, tf.cast(x, tf.float32) ** 2), num_parallel_calls=4)
    assert squares.output_types == (tf.int64, tf.float32)
    assert [float(y) for _, y in elements(squares)] == [0, 1, 4, 9]
    assert flat(Dataset.range(1, 4).flat_map(lambda n: Dataset.range(int(n)))) == [0, 0, 1, 0, 1, 2]
    turns = Dataset.range(1, 3).interleave(lambda n: Dataset.from_tensors(n).repeat(2), 2)
    assert flat(turns) == [1, 2, 1, 2]


def test_shuffle():
    ten = Dataset.range(10)
    one = flat(ten.shuffle(10, seed=3).repeat(2))
    assert sorted(one[:10]) == list(range(10)) == sorted(one[10:]) and one[:10] != one[10:] != list(range(10))
    assert flat(ten.shuffle(10, seed=3).repeat(2)) == one
    same = flat(ten.shuffle(10, reshuffle_each_iteration=False).repeat(2))
    assert same[:10] == same[10:]
    near = flat(Dataset.range(100).shuffle(5))
    assert sorted(near) == list(range(100)) and all(value < place + 5 for place, value in enumerate(near))
    tf.set_random_seed(4)
    assert flat(ten.shuffle(10, seed=1)) == flat(ten.shuffle(10, seed=1))


def test_each_session_and_each_get_next_has_its_own_place():
    iterator = Dataset.range(10).make_one_shot_iterator()
    following, other = iterator.get_next(), iterator.get_next()
    twice = following * 2
    with tf.Session() as session:
        assert session.run([following, twice]) == [0, 0]  # one element for the whole run
        assert sorted(session.run([following, other])) == [1, 2]
        assert session.run(twice, {following: 50}) == 100 and session.run(following) == 3  # a feed takes none
    with tf.Session() as session:
        assert session.run(following) == 0


def test_initializable_iterators():
    data, size = tf.placeholder(tf.float32, [None]), tf.placeholder(tf.int64, [])
    iterator = Dataset.from_tensor_slices(data).batch(size).make_initializable_iterator()
    following = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="not been initialized"):
            session.run(following)
        for values in ([1.0, 2.0, 3.0], [4.0]):
            session.run(iterator.initializer, {data: values, size: 2})
            assert session.run(following).tolist() == values[:2]
    with pytest.raises(ut.TypeMismatch, match="one-shot"):
        Dataset.from_tensor_slices(data).make_one_shot_iterator()


def test_iterators_for_several_datasets():
    train, test = Dataset.range(3).batch(2), Dataset.range(100, 102).batch(1)
    iterator = tf.data.Iterator.from_structure(train.output_types, train.output_shapes)
    following = iterator.get_next()
    begin_training, begin_test = iterator.make_initializer(train), iterator.make_initializer(test)
    with tf.Session() as session:
        session.run(begin_training)
        assert session.run(following).tolist() == [0, 1]
        session.run(begin_test)
        assert session.run(following).tolist() == [100]
    with pytest.raises(ut.TypeMismatch, match="other types"):
        iterator.make_initializer(Dataset.range(3))


def test_training_from_a_dataset():
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 3)).astype(np.float32)
    y = x @ np.float32([1, -2, 3])
    inputs, targets = (
        Dataset.from_tensor_slices((x, y)).shuffle(64, seed=1).repeat().batch(16).make_one_shot_iterator().get_next()
    )
    w = tf.Variable(tf.zeros([3, 1]))
    loss = tf.losses.mean_squared_error(targets, tf.squeeze(tf.matmul(inputs, w), 1))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(step)
        assert np.allclose(session.run(w)[:, 0], [1, -2, 3], atol=1e-2)
