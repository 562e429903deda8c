"""`run_metadata` is filled as `options` ask; `timeline` shows it; `FileWriter` writes it."""

from __future__ import annotations

import pytest
from tests.support.chrome import checked, named
from tests.support.wire import decoded, events, one, texts

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1 import function, timeline

FULL = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)


def power():
    declared = function.Declare("Power", [("x", tf.float32), ("n", tf.int32)], [("y", tf.float32)])

    @function.Defun(tf.float32, tf.int32, func_name="Power", out_names=["y"])
    def define(x, n):
        return tf.cond(tf.equal(n, 0), lambda: 1.0, lambda: x * declared(x, n - 1))

    define.add_to_graph(tf.get_default_graph())
    return declared


def test_a_full_trace_of_waves():
    y = power()(tf.constant(2.0), 3)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        assert session.run(y, options=FULL, run_metadata=metadata) == 8.0
    (device,) = metadata.step_stats.dev_stats
    assert device.device.endswith("CPU:0")
    assert [node.node_name for node in device.node_stats] == ["main"] + ["Power"] * 4
    ends = [node.all_start_micros + node.all_end_rel_micros for node in device.node_stats]
    assert all(abs(end - node.all_start_micros) <= 1 for end, node in zip(ends, device.node_stats[1:], strict=False))
    assert "lanes 1, depth 3" in device.node_stats[3].timeline_label


def test_a_full_trace_of_nodes():
    x = tf.placeholder(tf.float32, name="x")
    y = tf.multiply(x, 2.0, name="y")
    metadata = tf.RunMetadata()
    with tf.Session(engine="reference") as session:
        session.run(tf.add(y, y, name="z"), {x: 1.0}, options=FULL, run_metadata=metadata)
    (device,) = metadata.step_stats.dev_stats
    labels = {node.node_name: node.timeline_label for node in device.node_stats}
    assert labels.keys() >= {"x", "y", "z"} and labels["z"] == "z = add(y, y)"
    graph = tf.get_default_graph().as_graph_def()
    assert {"x", "y", "z"} <= {node.name for node in graph.node}  # so TensorBoard finds the times of each


def test_times_only_when_asked_for():
    x = tf.constant(1.0)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(x, run_metadata=metadata)
        assert not metadata.step_stats.dev_stats and metadata.partition_graphs == []
        session.run(x, options=FULL, run_metadata=metadata)
        assert metadata.HasField("step_stats")
        session.run(x, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
        assert not metadata.step_stats.dev_stats and metadata.partition_graphs[0].node[0].op == "Const"
        assert session.run(x, options=FULL) == 1.0


def test_a_run_that_fails_has_times():
    x = tf.placeholder(tf.int32)
    metadata = tf.RunMetadata()
    with tf.Session() as session, pytest.raises(ut.Fault):
        session.run(1 // x, {x: 0}, options=FULL, run_metadata=metadata)
    assert metadata.step_stats.dev_stats


def test_the_modules_of_tensorflow():
    from undertow.compat.v1.core.framework.graph_pb2 import GraphDef
    from undertow.compat.v1.core.framework.summary_pb2 import Summary
    from undertow.compat.v1.core.protobuf.config_pb2 import RunMetadata

    from undertow.compat.v1.python.client import timeline as theirs
    from undertow.compat.v1.python.summary import summary

    assert (theirs, summary, RunMetadata) == (timeline, tf.summary, tf.RunMetadata)
    assert (GraphDef, Summary) == (tf.GraphDef, tf.Summary)


def test_timeout_in_ms():
    loop = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 10, [tf.constant(0)])
    with tf.Session() as session, pytest.raises(ut.Timeout):
        session.run(loop, options=tf.RunOptions(timeout_in_ms=50))


@pytest.mark.parametrize("engine", ["waves", "reference"])
def test_a_timeline(engine):
    y = power()(tf.constant(2.0), 3)
    metadata = tf.RunMetadata()
    with tf.Session(engine=engine) as session:
        session.run(y, options=FULL, run_metadata=metadata)
    shown = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
    found = checked(shown)
    assert named(found, "M")["process_name"][0]["args"]["name"].endswith("CPU:0 Compute")
    (device,) = metadata.step_stats.dev_stats
    slices = [event for event in found if event["ph"] == "X"]
    assert len(slices) == len(device.node_stats) and min(event["ts"] for event in slices) == 0
    if engine == "reference":
        assert len(named(found, "X")["multiply"]) == 3
        assert named(found, "s")["call"]
        plain = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_dataflow=False)
        assert not named(checked(plain), "s")


def test_an_event_file_has_it(tmp_path):
    metadata = tf.RunMetadata()
    with tf.Session() as session, tf.summary.FileWriter(tmp_path, session.graph) as writer:
        session.run(tf.constant(1.0), options=FULL, run_metadata=metadata)
        writer.add_run_metadata(metadata, "step3", 3)
    (file,) = tmp_path.iterdir()
    event = events(file)[-1]
    tagged = decoded(one(event, 8))
    assert texts(tagged, 1) == ["step3"] and event[2] == [3]
    (device,) = decoded(one(decoded(one(tagged, 2)), 1))[1]
    assert texts(decoded(device), 1)[0].startswith("/job:localhost")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda s, x: s.run(x, options=3), "options of a run must be tf.RunOptions, not 3"),
        (lambda s, x: s.run(x, run_metadata={}), "run_metadata must be tf.RunMetadata"),
        (lambda s, x: tf.RunOptions(trace_level=7), "no trace_level 7"),
        (lambda s, x: timeline.Timeline(None), "and None is none"),
        (lambda s, x: timeline.Timeline(tf.RunMetadata().step_stats), "have no times"),
    ],
)
def test_what_is_refused(call, says):
    x = tf.constant(1.0)
    with tf.Session() as session, pytest.raises(ut.TypeMismatch, match=says) as caught:
        call(session, x)
    assert caught.value.hint and caught.value.span.file == __file__


def test_one_trace_a_run(tmp_path):
    with tf.Session(trace=tmp_path / "run.json") as session:
        assert session.run(tf.constant(1.0)) == 1.0
        checked((tmp_path / "run.json").read_text())
        with pytest.raises(ut.GraphError, match="one trace"):
            session.run(tf.constant(1.0), options=FULL, run_metadata=tf.RunMetadata())
