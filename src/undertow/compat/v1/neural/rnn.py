"""Recurrent networks: a cell along a sequence, by a loop (`tf.nn.dynamic_rnn`) or step by step (`static_rnn`)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from undertow.compat.v1.array import concat, reverse, transpose, where, zeros, zeros_like
from undertow.compat.v1.arrays.arranging import reverse_sequence
from undertow.compat.v1.control import while_loop
from undertow.compat.v1.graphs.scopes import variable_scope
from undertow.compat.v1.place import here
from undertow.compat.v1.repetition.tensor_array import TensorArray
from undertow.compat.v1.tensor import Tensor, as_tensor, is_tensor_like, wrap, writing
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.frontend.values.indexing import getitem
from undertow.tracebacks import boundaries
from undertow.types import said

__all__ = ["bidirectional_dynamic_rnn", "dynamic_rnn", "static_bidirectional_rnn", "static_rnn"]


def _first_state(cell: Any, initial_state: Any, batch: Any, dtype: Any) -> Any:
    if initial_state is not None:
        return initial_state
    if dtype is None:
        raise TypeMismatch("without initial_state, the dtype must be given", here(), hint="write dtype=tf.float32")
    return cell.zero_state(batch, dtype)


def _chosen(is_on: Any, after: Any, before: Any) -> Any:
    """For examples that have not ended the first, for others the second; both are structures of tensors."""
    new, structure = tree.flatten(after, is_tensor_like)
    old, other = tree.flatten(before, is_tensor_like)
    if structure != other:
        raise TypeMismatch("a cell returns another structure of states than it takes", here(), hint="return the same")
    return tree.unflatten(structure, [where(is_on, a, b) for a, b in zip(new, old, strict=True)])


def dynamic_rnn(
    cell: Any, inputs: Any, sequence_length: Any = None, initial_state: Any = None, dtype: Any = None,
    parallel_iterations: int | None = None, swap_memory: bool = False, time_major: bool = False, scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The outputs of a cell along sequences, and its last state; beyond the end of a sequence, the outputs are 0."""
    if isinstance(inputs, (list, tuple)):
        raise TypeMismatch(
            "dynamic_rnn takes one tensor [batch, time, units]", here(), hint="tf.stack them, or use tf.nn.static_rnn"
        )
    with writing(inputs, sequence_length), variable_scope(scope or "rnn") as opened:
        whole = as_tensor(inputs)
        if whole.type.rank < 2:
            raise TypeMismatch(f"{said(whole.type)} is not a batch of sequences", here(), hint="use tf.expand_dims")
        steps = whole if time_major else _swapped(whole)
        count, batch = functions.shape(steps)[:2]
        ends = None if sequence_length is None else as_tensor(sequence_length)
        start = _first_state(cell, initial_state, batch, dtype)
        leaves, kind = tree.flatten(start, is_tensor_like)
        start = tree.unflatten(kind, [as_tensor(leaf) for leaf in leaves])
        # The body may be written more than once: its variables are new the first time only.
        writings = itertools.count()

        def body(i: Any, outputs: Any, state: Any) -> Any:
            x = wrap(getitem(steps, i))
            with variable_scope(opened, reuse=True if next(writings) else None):
                output, after = cell(x, state)
            if ends is not None:
                is_on = wrap(functions.less(i, ends))
                output, after = where(is_on, output, zeros_like(output)), _chosen(is_on, after, state)
            return i + 1, outputs.write(i, output), after

        size = cell.output_size
        element = [batch, *size] if isinstance(size, (list, tuple)) else [batch, int(size)]
        dtype = as_tensor(leaves[0]).dtype if leaves else whole.dtype
        outputs = TensorArray(dtype, count).unstack(zeros([count, *element], dtype))
        _, written, final = while_loop(lambda i, *_: i < count, body, [0, outputs, start], shape_invariants=())
        result = written.stack()
        return (result if time_major else _swapped(result)), final


def _swapped(value: Tensor) -> Any:
    """Batch and time exchanged."""
    return transpose(value, [1, 0, *range(2, value.type.rank)])


def static_rnn(
    cell: Any, inputs: Sequence[Any], initial_state: Any = None, dtype: Any = None, sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:  # fmt: skip
    """The outputs of a cell for each of a list of inputs, and its last state; the graph has the cell once for each."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise TypeMismatch(
            f"static_rnn takes a list of inputs, not {brief(inputs)}",
            here(),
            hint="tf.unstack(x, axis=1), or dynamic_rnn",
        )
    with writing(*inputs, sequence_length), variable_scope(scope or "rnn") as opened:
        steps = [as_tensor(x) for x in inputs]
        state = _first_state(cell, initial_state, functions.shape(steps[0])[0], dtype)
        ends = None if sequence_length is None else as_tensor(sequence_length)
        outputs = []
        for number, x in enumerate(steps):
            with variable_scope(opened, reuse=True if number else None):
                output, after = cell(x, state)
            if ends is not None:
                is_on = wrap(functions.less(number, ends))
                output, after = where(is_on, output, zeros_like(output)), _chosen(is_on, after, state)
            outputs.append(output)
            state = after
        return outputs, state


def bidirectional_dynamic_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Any, sequence_length: Any = None, initial_state_fw: Any = None,
    initial_state_bw: Any = None, dtype: Any = None, parallel_iterations: int | None = None, swap_memory: bool = False,
    time_major: bool = False, scope: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Two cells, the second from the end to the beginning: a pair of outputs, and a pair of last states."""
    time, batch = (0, 1) if time_major else (1, 0)

    def turned(value: Any) -> Any:
        if sequence_length is None:
            return reverse(value, [time])
        return reverse_sequence(value, sequence_length, seq_axis=time, batch_axis=batch)

    with variable_scope(scope or "bidirectional_rnn"):
        ahead, state = dynamic_rnn(
            cell_fw, inputs, sequence_length, initial_state_fw, dtype, time_major=time_major, scope="fw"
        )
        back, other = dynamic_rnn(
            cell_bw, turned(inputs), sequence_length, initial_state_bw, dtype, time_major=time_major, scope="bw"
        )
        return (ahead, turned(back)), (state, other)


def static_bidirectional_rnn(
    cell_fw: Any, cell_bw: Any, inputs: Sequence[Any], initial_state_fw: Any = None, initial_state_bw: Any = None,
    dtype: Any = None, sequence_length: Any = None, scope: Any = None,
) -> tuple[list[Any], Any, Any]:  # fmt: skip
    """The same step by step: the outputs of both side by side, and both last states."""
    if sequence_length is not None:
        raise TypeMismatch(
            "static_bidirectional_rnn takes no sequence_length", here(), hint="use tf.nn.bidirectional_dynamic_rnn"
        )
    with variable_scope(scope or "bidirectional_rnn"):
        ahead, state = static_rnn(cell_fw, inputs, initial_state_fw, dtype, scope="fw")
        back, other = static_rnn(cell_bw, list(inputs)[::-1], initial_state_bw, dtype, scope="bw")
        return [concat([a, b], 1) for a, b in zip(ahead, back[::-1], strict=True)], state, other


boundaries(globals(), __all__)
