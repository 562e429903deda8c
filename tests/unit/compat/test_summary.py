"""tf.summary: summaries are computed by runs and serialized by the host; writers make event files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from tests.support.wire import decoded, events, one, texts

import undertow as ut
import undertow.compat.v1 as tf


def values(data: bytes) -> dict[str, dict]:
    found = [decoded(value) for value in decoded(data).get(1, [])]
    return {one(value, 1).decode(): value for value in found}


def single(value: float) -> bytes:
    return struct.pack("<f", value)


def test_a_scalar_is_the_value_of_its_tensor():
    x = tf.placeholder(tf.float32, name="x")
    loss = tf.summary.scalar("loss", x * 2.0)
    with tf.Session() as session:
        data = session.run(loss, {x: 1.5})
    assert isinstance(data, bytes) and values(data) == {"loss": {1: [b"loss"], 2: [single(3.0)]}}


def test_fetched_with_other_things_in_any_structure():
    x = tf.placeholder(tf.float32, [None])
    mean = tf.summary.scalar("mean", tf.reduce_mean(x))
    merged = tf.summary.merge([mean, tf.summary.histogram("all", x)])
    with tf.Session() as session:
        found = session.run({"a": [merged, x], "b": (x.op, mean)}, {x: [1.0, 2.0]})
        assert merged.eval({x: [1.0, 2.0]}) == found["a"][0]
    assert values(found["a"][0]).keys() == {"mean", "all"} and found["a"][1].tolist() == [1.0, 2.0]
    assert values(found["b"][1]) == {"mean": {1: [b"mean"], 2: [single(1.5)]}}


def test_what_is_merged_is_computed_once():
    """Both summaries and the fetch share one assignment."""
    v = tf.Variable(0.0)
    bumped = v.assign_add(1.0)
    tf.summary.scalar("one", bumped)
    tf.summary.scalar("two", bumped)
    merged = tf.summary.merge_all()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        data, value = session.run([merged, bumped])
        assert {one(v, 2) for v in values(data).values()} == {single(1.0)} and value == 1.0
        assert session.run(v) == 1.0


def test_merge_all_takes_the_collection():
    assert tf.summary.merge_all() is None
    x = tf.constant(1.0)
    tf.summary.scalar("a", x)
    tf.summary.scalar("b", x, collections=["other"])
    tf.summary.scalar("c", x, collections=[])
    tf.summary.text("d", ["one", "two"])
    with tf.Session() as session:
        assert values(session.run(tf.summary.merge_all())).keys() == {"a", "d"}
        assert values(session.run(tf.summary.merge_all("other"))).keys() == {"b"}
    with tf.Graph().as_default():
        assert tf.summary.merge_all() is None


def test_tags_are_unique_and_have_scopes_and_families():
    x = tf.constant(1.0)
    made = [tf.summary.scalar("loss", x), tf.summary.scalar("loss", x), tf.summary.scalar("a loss", x)]
    with tf.name_scope("layer"):
        made += [tf.summary.scalar("loss", x), tf.summary.scalar("loss", x, family="train")]
    tags = ["loss", "loss_1", "a_loss", "layer/loss", "train/layer/train/loss"]
    assert [summary.name for summary in made] == [f"{tag.removeprefix('train/')}:0" for tag in tags]
    with tf.Session() as session:
        assert values(session.run(tf.summary.merge_all())).keys() == {*tags}
        assert values(session.run(tf.summary.merge_all(scope="l"))).keys() == {*tags} - {"a_loss"}
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == made


def test_kinds_of_values():
    x = tf.placeholder(tf.float32, [2, 2])
    tf.summary.histogram("h", tf.cast(x, tf.int32))
    tf.summary.image("i", tf.reshape(x, [1, 2, 2, 1]))
    tf.summary.text("t", "*text*")
    tf.summary.text("u", tf.constant(["one", "two"]))
    with tf.Session() as session:
        found = values(session.run(tf.summary.merge_all(), {x: [[1, 2], [3, 4]]}))
    assert found.keys() == {"h", "i/image/0", "t", "u"}
    assert one(decoded(one(found["h"], 5)), 4) == struct.pack("<d", 10.0)
    assert texts(decoded(one(found["t"], 8)), 8) == ["*text*"]
    assert texts(decoded(one(found["u"], 8)), 8) == ["one", "two"]


def test_a_training_in_an_event_file(tmp_path):
    x = tf.Variable(4.0, name="x")
    loss = x * x
    step = tf.train.GradientDescentOptimizer(0.25).minimize(loss)
    tf.summary.scalar("loss", loss)
    merged = tf.summary.merge_all()
    with tf.Session() as session, tf.summary.FileWriter(tmp_path, session.graph) as writer:
        session.run(tf.global_variables_initializer())
        for number in range(3):
            data, _ = session.run([merged, step])
            writer.add_summary(data, number)
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="mine", simple_value=0.5)]), global_step=9)
    (file,) = tmp_path.iterdir()
    _, graph, *steps = events(file)
    operators = {one(decoded(node), 2) for node in decoded(one(graph, 4))[1]}
    assert {b"ReadVariableOp", b"AssignVariableOp", b"Mul"} <= operators
    found = [(event.get(2, [0])[0], values(one(event, 5))) for event in steps]
    assert [(at, one(value["loss"], 2)) for at, value in found[:3]] == [
        (0, single(16.0)), (1, single(4.0)), (2, single(1.0))
    ]  # fmt: skip
    assert found[3] == (9, {"mine": {1: [b"mine"], 2: [single(0.5)]}})


def test_the_cache_has_one_writer_for_each_folder(tmp_path):
    first = tf.summary.FileWriterCache.get(tmp_path / "a")
    assert tf.summary.FileWriterCache.get(tmp_path / "a") is first
    assert tf.summary.FileWriterCache.get(tmp_path / "b") is not first
    tf.summary.FileWriterCache.clear()
    with pytest.raises(ut.UndertowError, match="is closed"):
        first.add_summary(tf.Summary())
    first.reopen()
    first.add_summary(tf.Summary())
    first.close()
    assert len(list((tmp_path / "a").iterdir())) == 2 and first.get_logdir() == str(tmp_path / "a")


def test_a_summary_inside_a_branch_is_refused():
    x = tf.placeholder(tf.float32)
    made = []
    tf.cond(x > 0.0, lambda: made.append(tf.summary.scalar("x", x + 1.0)) or x, lambda: x)
    with tf.Session() as session, pytest.raises(ut.GraphError, match=r"inside a branch .* cannot be fetched"):
        session.run(made[0], {x: 1.0})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tf.summary.scalar("", tf.constant(1.0)), "the name of a summary is ''"),
        (lambda: tf.summary.merge([]), "cannot be merged"),
        (lambda: tf.summary.merge([tf.constant(1.0)]), "cannot be merged"),
        (lambda: tf.summary.text("x", tf.constant(1.0)), "is no text"),
        (lambda: tf.summary.text("x", 3), "the text 'x' is 3"),
        (lambda: tf.Session().run(tf.summary.scalar("x", tf.constant([1.0, 2.0]))), "the scalar 'x' is"),
        (lambda: tf.Session().run(tf.summary.histogram("x", tf.log(tf.constant([0.0])))), "with inf"),
    ],
)
def test_what_is_refused(call, says):
    with pytest.raises(ut.UndertowError, match=says) as caught:
        call()
    assert caught.value.hint


def test_writers_refuse_what_has_no_value(tmp_path):
    summary = tf.summary.scalar("x", tf.constant(1.0))
    with tf.summary.FileWriter(tmp_path) as writer:
        with pytest.raises(ut.TypeMismatch, match="has no value yet"):
            writer.add_summary(summary)
        with pytest.raises(ut.TypeMismatch, match="is not a graph"):
            writer.add_graph(3)


def test_summaries_of_two_graphs():
    first = tf.summary.scalar("x", tf.constant(1.0))
    with tf.Graph().as_default():
        second = tf.summary.scalar("x", tf.constant(np.float32(1.0)))
    with pytest.raises(ut.GraphError, match="several graphs"):
        tf.summary.merge([first, second])
    with tf.Session() as session, pytest.raises(ut.GraphError, match="another graph"):
        session.run(second)
