"""`tf.contrib.rnn`: the cells of `tf.nn.rnn_cell`, and the networks that are unrolled step by step."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.missing import explain
from undertow.compat.v1.neural.rnn import static_bidirectional_rnn, static_rnn
from undertow.compat.v1.neural.rnn_cell import (
    BasicLSTMCell,
    BasicRNNCell,
    DeviceWrapper,
    DropoutWrapper,
    GRUCell,
    LSTMCell,
    LSTMStateTuple,
    MultiRNNCell,
    ResidualWrapper,
    RNNCell,
)

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple",
    "MultiRNNCell", "RNNCell", "ResidualWrapper", "static_bidirectional_rnn", "static_rnn",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"contrib.rnn.{name}", [f"contrib.rnn.{known}" for known in __all__]))
