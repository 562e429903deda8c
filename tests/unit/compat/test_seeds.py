"""Seeds of graphs and operations: which numbers are the same in which runs and sessions."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.api.options import ENGINES
from undertow.compat.v1 import function


def sequence(fetch, runs=3, **options):
    """What several runs of one new session give."""
    with tf.Session(**options) as session:
        session.run(tf.global_variables_initializer())
        return [np.asarray(session.run(fetch)).tolist() for _ in range(runs)]


def test_without_seeds_every_session_has_other_numbers():
    x = tf.random_uniform([2])
    one, other = sequence(x), sequence(x)
    assert one != other and one[0] != one[1]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_own_seed_gives_the_same_sequence_in_every_session(engine):
    x = tf.random_normal([2], seed=1)
    one, other = sequence(x, engine=engine), sequence(x, engine=engine)
    assert one == other and one[0] != one[1] != one[2]


def test_the_seed_of_the_graph_is_enough():
    tf.set_random_seed(5)
    x, y = tf.random_uniform([2]), tf.random_uniform([2])
    assert sequence([x, y]) == sequence([x, y])
    assert sequence(x) != sequence(y)  # each operation has a number of its own


def test_both_seeds_make_the_sequence():
    def of(graph_seed, seed):
        with tf.Graph().as_default():
            if graph_seed is not None:
                tf.set_random_seed(graph_seed)
            return sequence(tf.random_uniform([2], seed=seed))

    assert of(1, 2) == of(1, 2)
    assert len({str(of(*seeds)) for seeds in ((1, 2), (2, 2), (1, 3), (None, 2))}) == 4


def test_an_operation_counts_its_own_runs():
    tf.set_random_seed(1234)
    a, b = tf.random_uniform([1]), tf.random_normal([1])
    with tf.Session() as session:
        first = [session.run(x).tolist() for x in (a, a, b, b)]
    with tf.Session() as session:
        second = [session.run(x).tolist() for x in (b, a, b, a)]
    assert [second[k] for k in (1, 3, 0, 2)] == first


@pytest.mark.parametrize("engine", ENGINES)
def test_in_loops_and_functions(engine):
    @function.Defun(tf.int32)
    def noise(k):
        return tf.random_uniform([], seed=7) + tf.cast(k, tf.float32)

    _, values = tf.while_loop(
        lambda k, x: k < 3,
        lambda k, x: (k + 1, tf.concat([x, [tf.random_uniform([], seed=3)]], 0)),
        [0, tf.zeros([0])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    drawn = [values, noise(0), noise(0)]
    with tf.Session(engine=engine) as one, tf.Session(engine=engine) as other:
        first, second, again = one.run(drawn), one.run(drawn), other.run(drawn)
    assert len(set(first[0].tolist())) == 3 and first[1] != first[2]
    assert first[0].tolist() == again[0].tolist() and first[1:] == again[1:]
    assert first[0].tolist() != second[0].tolist()


def test_initial_values():
    tf.set_random_seed(3)
    w = tf.get_variable("w", [4])
    v = tf.Variable(tf.random_normal([2]))
    u = tf.get_variable("u", [2], initializer=tf.random_uniform_initializer(seed=8))
    assert sequence(w, 1) == sequence(w, 1) and sequence(v, 1) == sequence(v, 1) and sequence(u, 1) == sequence(u, 1)


def test_integers_and_ranges():
    x = tf.random_uniform([200], 3, 7, dtype=tf.int32, seed=1)
    (drawn,) = sequence(x, 1)
    assert set(drawn) == {3, 4, 5, 6}
    with pytest.raises(ValueError, match="maxval"):
        tf.random_uniform([2], dtype=tf.int32)


def test_the_seeds_of_the_library_still_hold():
    x = tf.random_uniform([2])
    with ut.options(seed=1):
        one = sequence(x)
    with ut.options(seed=1):
        other = sequence(x)
    assert one == other


@pytest.mark.parametrize("wrong", ["a", 1.5, True])
def test_a_seed_is_an_integer(wrong):
    with pytest.raises(ut.TypeMismatch, match="a seed must be an integer"):
        tf.set_random_seed(wrong)


def test_get_seed():
    assert tf.get_seed(None) == (None, None)
    tf.set_random_seed(4)
    assert tf.get_seed(9) == (4, 9) and tf.get_seed(None)[0] == 4
