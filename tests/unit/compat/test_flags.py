"""`tf.app.flags`."""

from __future__ import annotations

import sys

import pytest

import undertow.compat.v1 as tf


def test_flags(monkeypatch):
    flags = tf.app.flags
    monkeypatch.setattr(sys, "argv", ["program", "--steps=7", "--rate", "0.5", "--nofast", "--other=1", "file"])
    flags.DEFINE_integer("steps", 100, "how many")
    flags.DEFINE_float("rate", 0.1, "how fast")
    flags.DEFINE_boolean("fast", True, "is it fast?")
    flags.DEFINE_boolean("slow", False, "is it slow?")
    flags.DEFINE_string("name", "none", "who")
    FLAGS = flags.FLAGS
    assert (FLAGS.steps, FLAGS.rate, FLAGS.fast, FLAGS.slow, FLAGS.name) == (7, 0.5, False, False, "none")
    FLAGS.name = "me"
    assert FLAGS.name == "me" and FLAGS.flag_values_dict()["steps"] == 7
    with pytest.raises(AttributeError, match="no flag 'stepz'"):
        _ = FLAGS.stepz
