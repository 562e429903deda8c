"""What is not here says what to use instead."""

from __future__ import annotations

import operator

import pytest

import undertow.compat.v1 as tf


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("train.Coordinator", "tf.data.Dataset"),
        ("train.start_queue_runners", "tf.data.Dataset"),
        ("train.shuffle_batch", "tf.data.Dataset"),
        ("FIFOQueue", "tf.data.Dataset"),
        ("TFRecordReader", "from_generator"),
        ("data.TextLineDataset", "from_generator"),
        ("train.import_meta_graph", "build the graph again"),
        ("train.StopAtStepHook", "write the loop"),
        ("train.FtrlOptimizer", "AdagradOptimizer"),
        ("estimator", "run it in a loop"),
        ("keras", "tf.layers"),
        ("contrib.layers", "tf.layers"),
        ("contrib.slim", "tf.layers"),
        ("contrib.seq2seq", "TensorArray"),
        ("nn.raw_rnn", "dynamic_rnn"),
        ("sparse_placeholder", "tf.scatter_nd"),
        ("string_split", "number"),
        ("nn.rnn_cell.LSTMCel", "did you mean tf.nn.rnn_cell.LSTMCell"),
        ("data.Datase", "did you mean tf.data.Dataset"),
    ],
)
def test_names_that_are_refused(name, says):
    with pytest.raises(AttributeError, match=says):
        operator.attrgetter(name)(tf)
