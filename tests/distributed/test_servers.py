"""Sessions of compat.v1 on servers that are processes of this machine: the papers' distributed programs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from tests.support.servers import PATIENCE, Servers, becomes, children, serving

import undertow as ut
import undertow.compat.v1 as tf
from undertow.cluster import shared_key
from undertow.cluster.shared_key import VARIABLE
from undertow.compat.v1 import function

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "key"))
    tf.reset_default_graph()


@pytest.fixture
def servers(key: None) -> Iterator[Servers]:
    with serving() as there:
        yield there


def distributed_factorial() -> tuple[Any, Any]:
    """As the papers distribute it: the base case on one task, all else on the other."""
    fac = function.Declare("Fac", [("n", tf.int32)], [("ret", tf.int32)])
    first, second = (f"/job:local/replica:0/task:{task}/device:CPU:0" for task in range(2))

    @function.Defun(tf.int32, func_name="Fac", out_names=["ret"])
    def body(n: Any) -> Any:
        def base() -> Any:
            with tf.device(first):
                return tf.constant(1)

        def step() -> Any:
            with tf.device(second):
                return n * fac(n - 1)

        with tf.device(second):
            is_base = tf.less_equal(n, 1)
        return tf.cond(is_base, base, step)

    body.add_to_graph(tf.get_default_graph())
    n = tf.placeholder(tf.int32, shape=[])
    return n, fac(n)


def test_a_session_after_a_session(servers: Servers) -> None:
    """Each has workers of its own, which end with it; servers stay."""
    n, result = distributed_factorial()
    used = set()
    for number, product in ((5, 120), (6, 720)):
        with tf.Session(servers.target) as session:
            assert session.run(result, feed_dict={n: number}) == product
            workers = [*servers.workers(0), *servers.workers(1)]
            assert len(workers) == 2 and not used & set(workers)
            assert session.run(result, feed_dict={n: 3}) == 6 and [*servers.workers(0), *servers.workers(1)] == workers
            used |= set(workers)
        assert not servers.workers(0) and not servers.workers(1)
    assert all(not Path(f"/proc/{worker}").exists() for worker in used)


def test_two_sessions_at_once(servers: Servers) -> None:
    n, result = distributed_factorial()
    count = tf.Variable(0)
    add = count.assign_add(2)
    other = f"grpc://{servers.spec['local'][1]}"  # any of the servers will do
    with tf.Session(servers.target) as a, tf.Session(other, graph=tf.get_default_graph()) as b:
        a.run(tf.global_variables_initializer())
        b.run(tf.global_variables_initializer())
        assert (a.run(add), a.run(add), b.run(add)) == (2, 4, 2)  # variables are each session's
        assert a.run(result, {n: 5}) == b.run(result, {n: 5}) == 120
        assert len(servers.workers(0)) == len(servers.workers(1)) == 2
        a.close()
        assert len(servers.workers(0)) == len(servers.workers(1)) == 1
        assert b.run(result, {n: 7}) == 5040


def test_a_worker_that_is_killed_is_started_again(servers: Servers) -> None:
    n, result = distributed_factorial()
    with tf.Session(servers.target) as session:
        session.run(result, {n: 5})
        (worker,) = servers.workers(1)
        os.kill(worker, signal.SIGKILL)
        assert becomes(lambda: servers.workers(1) not in ([], [worker]))
        assert session.run(result, {n: 5}) == 120


def test_a_server_that_is_killed(servers: Servers) -> None:
    """It is noticed within three seconds, its workers end with it, and one that is back is used."""
    n, result = distributed_factorial()
    with tf.Session(servers.target) as session:
        session.run(result, {n: 5})
        pool = session._connection._pool
        (worker,) = servers.workers(1)
        servers.end(1, signal.SIGKILL)
        assert becomes(lambda: len(pool.workers()) == 1, 3.0)
        assert becomes(lambda: not Path(f"/proc/{worker}").exists())
        servers.start(1)
        assert session.run(result, {n: 6}) == 720
        assert len(servers.workers(0)) == len(servers.workers(1)) == 1


def test_a_server_that_does_not_come_back(servers: Servers) -> None:
    n, result = distributed_factorial()
    with tf.Session(servers.target) as session:
        session.run(result, {n: 5})
        servers.end(1, signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(ut.RunError, match=servers.spec["local"][1]) as caught:
            session.run(result, {n: 5})
        assert time.monotonic() - began < 10.0 and "start all servers" in caught.value.hint
    assert not servers.workers(0)


PROGRAM = """
import sys
import undertow.compat.v1 as tf
session = tf.Session(sys.argv[1])
print(session.run(tf.constant(7)), flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "input()"])
def test_a_program_that_ends_without_closing(servers: Servers, end: str) -> None:
    """It says so if it can; else its silence does."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(end=end), servers.target],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with program:
        assert program.stdout is not None and program.stdout.readline() == "7\n"
        if end == "input()":
            program.kill()
        program.wait(PATIENCE)
    assert becomes(lambda: not servers.workers(0) and not servers.workers(1), 15.0 if end == "input()" else 3.0)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_how_a_server_ends(servers: Servers, how: signal.Signals) -> None:
    """With its workers, however it ends."""
    with tf.Session(servers.target) as session:
        assert session.run(tf.constant(1)) == 1
        (worker,) = servers.workers(0)
        assert servers.end(0, how) == (-signal.SIGKILL if how == signal.SIGKILL else 130)
        assert becomes(lambda: not Path(f"/proc/{worker}").exists())


def test_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever lacks the key: other protocols, no key, keys of their own. All are counted."""
    server = tf.train.Server.create_local_server()
    try:
        host, port = server.target.removeprefix("grpc://").split(":")
        with socket.create_connection((host, int(port))) as way:
            way.sendall(b"GET / HTTP/1.1\r\n\r\n")
        ours = shared_key.shared_keys(zmq_keys)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        plain, unknown = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
        unknown.curve_serverkey = ours.public  # public keys are no secrets
        unknown.curve_publickey, unknown.curve_secretkey = zmq.curve_keypair()
        for each in (plain, unknown):
            each.connect(f"tcp://127.0.0.1:{port}")
            with contextlib.suppress(zmq.Again):
                each.send_multipart([b"UTsv1", b'{"say": "hello"}'], zmq.DONTWAIT)
        assert becomes(lambda: server._server.refused >= 3)
        assert not plain.poll(0) and not unknown.poll(0)
        context.destroy(linger=0)
        monkeypatch.setenv(VARIABLE, str(tmp_path / "another key"))
        with (
            tf.Session(server.target) as session,
            pytest.raises(ut.UndertowError, match="does not take this") as caught,
        ):
            session.run(tf.constant(1))
        assert VARIABLE in caught.value.hint and caught.value.span is not None
    finally:
        server.close()


def zmq_keys() -> Any:
    raise AssertionError("the server has made the keys")


def test_a_server_and_a_session_in_one_process() -> None:
    server = tf.train.Server.create_local_server()
    with tf.Session(server.target) as session, tf.device("/job:local/task:0"):
        assert session.run(tf.constant(3) * 2) == 6
        with tf.device("/task:1"):
            wrong = tf.constant(3) + 1
        with pytest.raises(ut.GraphError, match="Cannot assign a device"):
            session.run(wrong)
    workers = children(os.getpid())
    server.close()
    server.join()  # it is over
    assert not workers
    with pytest.raises(ut.UndertowError, match="cannot listen"):
        tf.train.Server({"a": ["192.0.2.1:2222"]})


def test_a_server_that_is_another_task(servers: Servers) -> None:
    """One of another cluster has its address."""
    servers.end(1, signal.SIGKILL)
    there = servers.spec["local"][1]
    says = f"the server at {there} is /job:local/task:7, not /job:local/task:1"
    lost = pytest.raises(ut.WorkerLost, match=says)
    with contextlib.closing(tf.train.Server({"local": {7: there}})), tf.Session(servers.target) as s, lost:
        s.run(tf.constant(1))
