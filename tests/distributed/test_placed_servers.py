"""Graphs of compat.v1 in parts on servers: all that a program may place on tasks gives what it gives in one process."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.support.servers import PATIENCE, Servers, becomes, serving

import undertow as ut
import undertow.compat.v1 as tf
from undertow.cluster.shared_key import VARIABLE
from undertow.compat.v1 import function
from undertow.engines.waves.placed import PlacedPlan

pytestmark = pytest.mark.slow

FIRST, SECOND = "/job:local/replica:0/task:0/device:CPU:0", "/job:local/task:1"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("servers") / "key"))
        with serving() as there:
            yield there


@pytest.fixture
def session(servers: Servers) -> Iterator[tf.Session]:
    """One on the servers, for a graph of its own."""
    tf.reset_default_graph()
    with tf.Session(servers.target) as session:
        yield session


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The firings of each run, by part."""
    runs: list[list[int]] = []
    call = PlacedPlan.call

    def noted(plan: PlacedPlan, *arguments: Any) -> Any:
        results = call(plan, *arguments)
        runs.append(plan.fired)
        return results

    monkeypatch.setattr(PlacedPlan, "call", noted)
    return runs


def both(session: tf.Session, fetches: Any, feed: Any = None) -> Any:
    """The values, which are those of a session without a cluster."""
    with tf.Session(graph=session.graph) as here:
        expected = here.run(fetches, feed)
    found = session.run(fetches, feed)
    assert repr(found) == repr(expected)
    return found


def declared_power() -> Any:
    """x to the power of n: the base case is told on one task, products are made on the other."""
    power = function.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("ret", tf.float32)])

    @function.Defun(tf.float32, tf.int32, func_name="Power", out_names=["ret"])
    def body(x: Any, n: Any) -> Any:
        def step() -> Any:
            with tf.device(SECOND):
                return x * power(x, n - 1)

        with tf.device(FIRST):
            is_base = tf.less_equal(n, 0)
        return tf.cond(is_base, lambda: tf.constant(1.0), step)

    body.add_to_graph(tf.get_default_graph())
    return power


def test_both_tasks_work(session: tf.Session, fired: list[list[int]]) -> None:
    """A recursion whose body is on both: each token of it crosses."""
    x = tf.placeholder(tf.float32)
    y = declared_power()(x, 10)
    assert session.run(y, {x: 2.0}) == 1024.0
    ((_, first, second),) = fired
    assert (first, second) == (11, 20)  # comparisons; differences and products
    workers = session._connection._pool  # type: ignore[union-attr]
    assert becomes(lambda: all(worker.activations > 10 for worker in workers.stats()))


def test_gradients_of_a_placed_body(session: tf.Session, fired: list[list[int]]) -> None:
    """The way back is where the way there was, and of several fetches each comes from its part."""
    x = tf.placeholder(tf.float32)
    y = declared_power()(x, 5)
    (slope,) = tf.gradients(y, [x])
    found = both(session, {"y": y, "more": (slope, [x])}, {x: 1.5})
    assert found == {"y": 7.59375, "more": (25.3125, [1.5])}
    assert min(fired[-1][1:]) > 5


def test_training_on_tasks(servers: Servers, fired: list[list[int]]) -> None:
    """Variables and their updates are in the session's process; what computes them is on tasks."""
    tf.reset_default_graph()
    w, b = tf.Variable(0.5), tf.Variable([0.1, 0.2])
    data = tf.placeholder(tf.float32, shape=[2])
    with tf.device(FIRST):
        hidden = tf.tanh(data * w + b)
    with tf.device(SECOND):
        loss = tf.reduce_sum(tf.square(hidden - 1.0))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)

    def fit(session: tf.Session) -> list[Any]:
        session.run(tf.global_variables_initializer())
        losses = [session.run([step, loss], {data: [0.1 * k, 1.0]})[1] for k in range(5)]
        return [losses, *session.run([w, b])]

    with tf.Session(servers.target) as there, tf.Session() as here:
        found = fit(there)
        for one, other in zip(found, fit(here), strict=True):
            np.testing.assert_array_equal(one, other)
    assert found[0][-1] < found[0][0] and len(fired) == 5 and all(min(run) > 0 for run in fired)


def test_loops_and_branches(session: tf.Session, fired: list[list[int]]) -> None:
    """A loop on a task makes its iterations there: nothing of them comes back but the result."""
    n = tf.placeholder(tf.int32)
    with tf.device(SECOND):
        start = [tf.constant(0), tf.constant(0)]
        _, total = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t + i * i), start)
    with tf.device(FIRST):
        chosen = tf.cond(total > 10, lambda: total * 2, lambda: total - n)
    for number in (0, 3, 100):
        own = sum(k * k for k in range(number))
        assert both(session, [total, chosen], {n: number}) == [own, own * 2 if own > 10 else own - number]
    (_, first, second) = fired[-1]
    assert first == 2 and second == 401


def test_variables_and_order_across_tasks(session: tf.Session, fired: list[list[int]]) -> None:
    """A read on a task's behalf comes after the assignment that it depends on; what is assigned comes from a task."""
    v = tf.Variable(3)
    with tf.device(FIRST):
        add = v.assign_add(4)
    with tf.device(SECOND), tf.control_dependencies([add]):
        later = tf.identity(v) * 2
    with tf.device(FIRST):
        far = tf.constant(5) * later
    with tf.control_dependencies([far]):
        again = v.assign(far + 1)
    with tf.Session() as here:
        for each in (session, here):
            each.run(tf.global_variables_initializer())
            assert each.run([later, again]) == [14, 71] and each.run(v) == 71
            assert each.run(far) == 750 and each.run(v) == 75
    assert fired and all(min(run) > 0 for run in fired)


def test_faults_of_tasks(session: tf.Session, capsys: pytest.CaptureFixture[str]) -> None:
    """With the user's line; the session goes on."""
    a = tf.placeholder(tf.int32)
    with tf.device(SECOND):
        doubled = a * 2
        with tf.control_dependencies([tf.Assert(doubled > 0, ["too small", doubled])]):
            result = doubled + 1
    told = tf.Print(result, [result], "it is ")
    assert session.run(told, {a: 3}) == 7
    with pytest.raises(ut.Fault, match=r"too small \[-6\]") as caught:
        session.run(told, {a: -3})
    assert caught.value.span is not None and caught.value.span.file == __file__
    assert session.run(told, {a: 4}) == 9
    assert capsys.readouterr().out == "it is [7]\nit is [9]\n"


def endless(n: Any) -> Any:
    """A loop on the second task, of as many steps as are fed; its result goes to the first."""
    with tf.device(SECOND):
        start = [tf.constant(0), tf.constant(0.5)]
        _, total = tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * 0.5 + 1.0), start)
    with tf.device(FIRST):
        return total + 1.0


class Background:
    """A run on a thread."""

    def __init__(self, session: tf.Session, fetch: Any, feed: Any) -> None:
        self.outcome: Any = None
        known = parts_runs()

        def work() -> None:
            try:
                self.outcome = session.run(fetch, feed)
            except ut.UndertowError as error:
                self.outcome = error

        self.thread = threading.Thread(target=work)
        self.thread.start()
        assert becomes(lambda: bool(parts_runs() - known))

    def result(self) -> Any:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.outcome


def parts_runs() -> set[threading.Thread]:
    """The threads that wait for parts that run."""
    return {thread for thread in threading.enumerate() if thread.name == "undertow parts"}


def test_a_server_that_is_killed_while_it_runs_a_part(servers: Servers, session: tf.Session) -> None:
    n = tf.placeholder(tf.int32)
    result = endless(n)
    assert session.run(result, {n: 60}) == 3.0
    run = Background(session, result, {n: 2_000_000_000})
    began = time.monotonic()
    servers.end(1, signal.SIGKILL)
    lost = run.result()
    assert time.monotonic() - began < 6.0 and isinstance(lost, ut.WorkerLost)
    assert servers.spec["local"][1] in str(lost)
    servers.start(1)
    assert session.run(result, {n: 60}) == 3.0


def test_a_worker_that_is_killed_while_it_runs_a_part(servers: Servers, session: tf.Session) -> None:
    """Its server starts another one, and all parts run again."""
    n = tf.placeholder(tf.int32)
    result = endless(n)
    assert session.run(result, {n: 60}) == 3.0
    run = Background(session, result, {n: 5_000_000})
    (worker,) = servers.workers(1)
    servers.kill(worker)
    assert run.result() == 3.0
    assert servers.workers(1) not in ([], [worker])
