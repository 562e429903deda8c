"""ClusterSpec, arguments of Server, and devices as a session places them. On processes: distributed/test_servers.py."""

from __future__ import annotations

import pytest

import undertow as ut
import undertow.compat.v1 as tf
from undertow.cluster.jobs import Jobs
from undertow.compat.v1 import function
from undertow.compat.v1.devices import Cluster, worker_of
from undertow.compat.v1.fetches import flatten_fetches, make_fetched

LOCAL = {"local": ["localhost:2222", "localhost:2223"]}
SEVERAL = {"worker": ["a:1", "b:2"], "ps": {3: "c:3", 1: "d:4"}}


def test_cluster_specs():
    spec = tf.train.ClusterSpec(SEVERAL)
    assert spec.jobs == ["worker", "ps"] and spec.as_dict() == SEVERAL
    assert (spec.num_tasks("ps"), spec.task_indices("ps"), spec.task_address("ps", 3)) == (2, [1, 3], "c:3")
    assert spec.job_tasks("ps") == [None, "d:4", None, "c:3"] and spec.job_tasks("worker") == ["a:1", "b:2"]
    assert spec == tf.train.ClusterSpec(spec) and hash(spec) == hash(tf.train.ClusterSpec(spec))
    assert spec != tf.train.ClusterSpec(LOCAL) and spec != SEVERAL
    assert repr(tf.train.ClusterSpec(LOCAL)) == "ClusterSpec({'local': ['localhost:2222', 'localhost:2223']})"
    assert spec and not tf.train.ClusterSpec({})
    assert tf.train.ClusterSpec({"a": {0: "h:1", 1: "h:2"}}).as_dict() == {"a": ["h:1", "h:2"]}
    assert tf.train.ClusterSpec({"a": []}).jobs == ["a"]


@pytest.mark.parametrize(
    "ask", [lambda s: s.num_tasks("x"), lambda s: s.job_tasks("x"), lambda s: s.task_address("x", 0)]
)
def test_jobs_that_are_not_there(ask):
    with pytest.raises(ValueError, match="No such job in cluster: 'x'") as caught:
        ask(tf.train.ClusterSpec(SEVERAL))
    assert "worker, ps" in caught.value.hint and caught.value.span is not None


def test_tasks_that_are_not_there():
    with pytest.raises(ValueError, match="No task with index 0 in job 'ps'"):
        tf.train.ClusterSpec(SEVERAL).task_address("ps", 0)


@pytest.mark.parametrize(
    ("cluster", "says"),
    [
        (3, "a dict from jobs to addresses"),
        (["localhost:1"], "a dict from jobs to addresses"),
        ({"a": "localhost:1"}, "the tasks of job 'a' are"),
        ({3: ["localhost:1"]}, "the name of a job is 3"),
        ({"a/b": ["localhost:1"]}, "no name of a job"),
        ({"a": [3]}, "an address of job 'a' is 3"),
        ({"a": ["localhost"]}, "no address"),
        ({"a": ["localhost:99999"]}, "no address"),
        ({"a": {"0": "localhost:1"}}, "has a task '0'"),
        ({"a": {-1: "localhost:1"}}, "has a task -1"),
    ],
)
def test_clusters_that_are_none(cluster, says):
    with pytest.raises(ut.UndertowError, match=says) as caught:
        tf.train.ClusterSpec(cluster)
    assert caught.value.hint and caught.value.span is not None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("localhost:1",), "a server needs the cluster"),
        ((SEVERAL,), "which job"),
        ((SEVERAL, "ps"), "which task of job 'ps'"),
        ((SEVERAL, "x", 0), "no job 'x'"),
        ((SEVERAL, "ps", 0), "job 'ps' has no task 0"),
        ((SEVERAL, "ps", "1"), "has a task '1'"),
        ((SEVERAL, 3, 0), "the name of a job is 3"),
        ((SEVERAL, "ps", 1, "grpc+verbs"), "speaks no 'grpc\\+verbs'"),
    ],
)
def test_servers_that_cannot_be(arguments, says):
    with pytest.raises(ut.UndertowError, match=says) as caught:
        tf.train.Server(*arguments)
    assert caught.value.hint and caught.value.span is not None


def test_a_server_that_has_not_started():
    server = tf.train.Server(tf.train.ClusterSpec(LOCAL), "local", 1, start=False)
    assert server.target == "grpc://localhost:2223"
    server.close()
    with pytest.raises(ut.UndertowError, match="is closed"):
        server.start()


# -- devices -----------------------------------------------------------------------------------------------

JOBS = Jobs.of(SEVERAL)  # ps 1, ps 3, worker 0, worker 1


@pytest.mark.parametrize(
    ("device", "worker"),
    [
        ("/job:worker/replica:0/task:1/device:CPU:0", "worker:3"),
        ("/job:ps/task:3", "worker:1"),
        ("/job:ps", "worker:0"),
        ("/task:1", "worker:3"),
        ("/job:worker/task:0/cpu:0", "worker:2"),
        ("/job:worker/task:0/device:CPU:*", "worker:2"),
        ("/cpu:0", ""),
        ("/device:CPU:0", ""),
        ("/replica:0", ""),
        ("worker:7", "worker:7"),  # of ut.device
        ("/job:ps/task:0", None),
        ("/job:other", None),
        ("/task:2", None),
        ("/job:worker/replica:1/task:0", None),
        ("/job:worker/task:0/gpu:0", None),
        ("/job:worker/task:0/cpu:1", None),
        ("/gpu:0", None),
    ],
)
def test_devices_of_workers(device, worker):
    assert worker_of(device, JOBS, "worker") == worker


def test_soft_placement():
    for device, worker in (("/job:worker/task:0/gpu:0", "worker:2"), ("/gpu:0", ""), ("/job:x/gpu:0", None)):
        assert worker_of(device, JOBS, "worker", is_soft=True) == worker


def declared():
    """A function that calls itself, on two tasks."""
    down = function.Declare("Down", [("n", tf.int32)], [("r", tf.int32)])

    @function.Defun(tf.int32, func_name="Down", out_names=["r"])
    def body(n):
        def more():
            with tf.device("/job:local/task:1"):
                return n * down(n - 1)

        with tf.device("/job:local"):
            is_last = tf.less_equal(n, 1)
        return tf.cond(is_last, lambda: tf.constant(1), more)

    body.add_to_graph(tf.get_default_graph())
    return down


def placed(fetch, cluster):
    graph = tf.get_default_graph()
    leaves, _ = flatten_fetches(graph, fetch, None)
    return str(make_fetched(graph, leaves, (), cluster).program.captured.library)


def test_programs_are_placed_for_their_cluster(graph):
    with tf.device("/job:local/task:1/gpu:0"):
        called = declared()(4)
    soft = placed(called, Cluster(Jobs.of(LOCAL), "local", is_soft=True))
    assert 'device="worker:0"' in soft and 'device="worker:1"' in soft and "/job" not in soft
    other_way = placed(called, Cluster(Jobs.of({"a": ["h:1"], **LOCAL}), "local", is_soft=True))
    assert 'device="worker:1"' in other_way and 'device="worker:2"' in other_way and "worker:0" not in other_way
    assert "device" not in placed(called, Cluster())
    assert 'device="/job:local/task:1/device:GPU:0"' in str(graph.library(called))  # as it was written
    assert called.device == "/job:local/task:1/device:GPU:0"
    with pytest.raises(ut.GraphError, match=r"Cannot assign a device .*GPU:0, but available") as caught:
        placed(called, Cluster(Jobs.of(LOCAL), "local"))
    assert "allow_soft_placement" in caught.value.hint and caught.value.span is not None
    with tf.Session() as session:
        assert session.run(called) == 24


def test_devices_without_a_cluster_are_those_of_ut():
    with tf.device("worker:0"):
        x = tf.constant(3) * 2
    assert 'device="worker:0"' in placed(x, Cluster())


def test_replica_device_setter():
    cluster = tf.train.ClusterSpec({"ps": ["a:1"], "worker": ["b:1", "c:1"]})
    with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:1", cluster=cluster)):
        v = tf.Variable(1.0)
        x = v * 2.0
        with tf.device("/task:0"):
            y = x + 1.0
    assert x.device == "/job:worker/task:1" and y.device == "/job:worker/task:0"
    assert tf.train.replica_device_setter(ps_tasks=0) is None
    assert tf.train.replica_device_setter(cluster={"worker": ["b:1"]}) is None
    with pytest.raises(ut.TypeMismatch, match="a device must be a name") as caught:
        tf.device(lambda op: "/cpu:0")
    assert "replica_device_setter" in caught.value.hint
