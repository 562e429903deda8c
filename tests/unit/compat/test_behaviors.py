"""The examples of Abadi, Isard and Murray in the face that they were written for: only the user's edges order state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow.compat.v1 as tf


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def outcomes(session: Any, fetches: Any, **budget: int) -> list[Any]:
    found = session.behaviors(fetches, **budget)
    assert found.is_complete
    return sorted(np.asarray(one.result).tolist() for one in found)


def test_write_and_read(session: Any) -> None:
    x = tf.Variable(1, name="x")
    session.run(tf.global_variables_initializer())
    write = tf.assign(x, 7)
    assert outcomes(session, [write, x.read_value()]) == [[7, 1], [7, 7]]
    with tf.control_dependencies([write]):
        after = x.read_value()
    assert outcomes(session, after) == [7]
    assert session.run(x) == 1  # looking changes nothing


def test_two_assign_adds(session: Any) -> None:
    x = tf.Variable(10, name="x")
    session.run(tf.global_variables_initializer())
    both = [tf.assign_add(x, 1), tf.assign_add(x, 2)]
    with tf.control_dependencies(both):
        after = x.read_value()
    assert outcomes(session, after) == [13]
    assert outcomes(session, both) == [[11, 13], [13, 12]]


def test_read_add_write_loses_an_update(session: Any) -> None:
    x = tf.Variable(10, name="x")
    session.run(tf.global_variables_initializer())
    both = [tf.assign(x, x.read_value() + 1), tf.assign(x, x.read_value() + 2)]
    with tf.control_dependencies(both):
        after = x.read_value()
    assert outcomes(session, after) == [11, 12, 13]


def test_every_run_is_one_of_them(session: Any) -> None:
    x = tf.Variable(10, name="x")
    session.run(tf.global_variables_initializer())
    fetches = [tf.assign(x, x.read_value() * 2), tf.assign_add(x, 3)]
    found = session.behaviors(fetches)
    assert found.is_complete and len(found) > 1
    start = tf.assign(x, 10)
    for seed in range(20):
        session.run(start)
        with tf.Session(graph=session.graph, scheduler="random", schedule_seed=seed) as other:
            other.run(tf.global_variables_initializer())
            got = [int(value) for value in other.run(fetches)]
        assert got in [[int(value) for value in one.result] for one in found]
