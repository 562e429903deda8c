"""`tf.CriticalSection`, checked over all behaviors: no interleaving comes in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as found:
        yield found


def initialized(session: Any, *values: int) -> list[Any]:
    variables = [tf.Variable(value, name=name) for value, name in zip(values, "xyz", strict=False)]
    session.run(tf.global_variables_initializer())
    return variables


def outcomes(session: Any, fetches: Any) -> list[Any]:
    found = session.behaviors(fetches)
    assert found.is_complete
    return sorted(np.asarray(one.result).tolist() for one in found)


@pytest.mark.parametrize("is_critical", [True, False])
def test_read_add_write_loses_no_update(session: Any, is_critical: bool) -> None:
    (x,) = initialized(session, 10)
    section = tf.CriticalSection(name="cs")
    run = section.execute if is_critical else lambda write: write()
    both = [run(lambda k=k: tf.assign(x, x.read_value() + k)) for k in (1, 2)]
    with tf.control_dependencies(both):
        after = x.read_value()
    assert outcomes(session, after) == ([13] if is_critical else [11, 12, 13])


def test_several_variables_change_together(session: Any) -> None:
    """Every state between two executions has the same sum; a section may act on any variables."""
    x, y = initialized(session, 100, 5)
    section = tf.CriticalSection()

    def move(amount: int) -> Any:
        left = tf.assign(x, x.read_value() - amount)
        return left, tf.assign(y, y.read_value() + amount)

    moved = [section.execute(lambda: move(10)), section.execute(lambda: move(20))]
    found = session.behaviors(moved, traces=True)
    assert outcomes(session, moved) == [[[90, 15], [70, 35]]]
    histories = {tuple((int(v["x"]), int(v["y"])) for v in trace.history) for trace in found.traces}
    assert histories == {((100, 5), (90, 5), (90, 15), (70, 15), (70, 35))}
    assert session.run(section.execute(lambda: x.read_value() + y.read_value())) == 105


def test_program_order_inside(session: Any) -> None:
    (x,) = initialized(session, 1)
    section = tf.CriticalSection()

    def body() -> Any:
        first = x.read_value()
        tf.assign(x, 7)
        tf.assign_add(x, 1)
        return first, x.read_value()

    assert outcomes(session, section.execute(body)) == [[1, 8]]
    assert session.run(x) == 1  # it was only looked at


def test_what_no_fetch_needs_is_not_executed(session: Any) -> None:
    (x,) = initialized(session, 1)
    section = tf.CriticalSection()
    section.execute(lambda: tf.assign(x, 100))
    second = section.execute(lambda: tf.assign_add(x, 1))
    assert session.run(second) == 2


def test_other_sections_do_not_wait(session: Any) -> None:
    x, y = initialized(session, 1, 1)
    one = tf.CriticalSection(name="one").execute(lambda: tf.assign(x, y.read_value() + 1))
    two = tf.CriticalSection(name="two").execute(lambda: tf.assign(y, x.read_value() + 1))
    assert len(outcomes(session, [one, two])) == 3
    inner, outer = tf.CriticalSection(), tf.CriticalSection()
    assert inner.name != outer.name
    nested = outer.execute(lambda: inner.execute(lambda: tf.assign_add(x, 1)))
    again = inner.execute(lambda: outer.execute(lambda: tf.assign_add(x, 1)))
    assert outcomes(session, [nested, again]) == [[2, 3]]


def test_operations_and_nothing(session: Any) -> None:
    (x,) = initialized(session, 1)
    section = tf.CriticalSection()
    done = section.execute(lambda: tf.assign(x, 5).op)
    session.run(done)
    assert session.run(x) == 5
    assert section.execute(lambda: None) is None


def test_what_is_refused(session: Any) -> None:
    (x,) = initialized(session, 1)
    section = tf.CriticalSection(name="cs")
    with pytest.raises(ut.GraphError, match="inside of itself"):
        section.execute(lambda: section.execute(lambda: tf.assign_add(x, 1)))
    with pytest.raises(ut.TypeMismatch, match="executes a function, not 3"):
        section.execute(3)  # type: ignore[arg-type]
    with pytest.raises(ut.GraphError, match="inside a function, a branch or a loop"):
        tf.cond(x.read_value() > 0, lambda: section.execute(lambda: tf.assign_add(x, 1)), lambda: x.read_value())

    @function.Defun(tf.int32, func_name="step", out_names=["r"])
    def step(n: Any) -> Any:
        return section.execute(lambda: tf.assign_add(x, n))

    with pytest.raises(ut.GraphError, match="inside a function, a branch or a loop"):
        step(1)
    assert session.run(section.execute(lambda: tf.assign_add(x, 1))) == 2  # and works afterwards
