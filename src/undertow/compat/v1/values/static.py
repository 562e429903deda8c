"""What is known of a tensor's value while the graph is being built: constants, and the sizes in a stacked shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.compat.v1.tensor import Tensor, is_tensor_like
from undertow.frontend.trace.builder import Builder
from undertow.ir.graph import Const, Operand


def constant_value(tensor: Any) -> Any:
    """The NumPy value of a tensor that is a constant, or a stack of constants; None of any other."""
    if not is_tensor_like(tensor):
        return np.asarray(tensor)
    if not isinstance(tensor, Tensor):
        return None
    return _value(tensor.builder, tensor.port)


def _value(builder: Builder, operand: Operand) -> Any:
    if isinstance(operand, Const):
        return operand.value
    node = builder.nodes[operand.node]
    return _value(builder, node.inputs[0]) if node.op == "identity" and isinstance(node.inputs[0], Const) else None


def known_sizes(shape: Any) -> list[Any]:
    """The sizes of a shape, None where they are tensors."""
    if isinstance(shape, Tensor):
        whole = constant_value(shape)
        if whole is not None:
            return [int(size) for size in whole]
        node = shape.builder.nodes[shape.port.node]
        if node.op == "stack":
            return [_size(_value(shape.builder, part)) for part in node.inputs]
        (length,) = shape.type.shape
        return [None] * (length if isinstance(length, int) else 0)
    return [_size(constant_value(size)) for size in shape]


def _size(value: Any) -> int | None:
    return None if value is None or value.ndim else int(value)
