"""`control_flow_ops`: switch and merge by themselves, and order between operations."""

from __future__ import annotations

from builtins import tuple as builtin_tuple
from collections.abc import Sequence
from typing import Any, NamedTuple

from undertow.compat.v1.array import constant, sizes_of, where
from undertow.compat.v1.control import control_dependencies, group, identity
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable
from undertow.compat.v1.tensor import Operation, Tensor, as_tensor, named, writing
from undertow.errors import GraphError
from undertow.ir.graph import Port

__all__ = [
    "enter",
    "exit",
    "loop_cond",
    "merge",
    "next_iteration",
    "strided_slice",
    "switch",
    "tuple",
    "with_dependencies",
]


class Switched(NamedTuple):
    """The two outputs of `switch`."""

    output_false: Any
    output_true: Any


class Merged(NamedTuple):
    """The value of `merge`, and which of its inputs it is."""

    output: Any
    value_index: Any


def switch(data: Any, pred: Any, dtype: Any = None, name: str | None = None) -> Switched:
    """The data where `pred` is false, and where it is true. Operations on one of them run only on that side."""
    with writing(data, pred) as graph:
        builder = graph.ctx.open_builder
        value, truth = as_tensor(data, dtype), as_tensor(pred)
        then, other = builder.branch(graph.writer.resolve(truth))
        return Switched(*(Tensor(builder, builder.use(value.port, region)) for region in (other, then)))


def merge(inputs: Sequence[Any], name: str | None = None) -> Merged:
    """Of values from both sides of a `switch`, the one that is there; and its number."""
    with writing() as graph:
        builder = graph.ctx.open_builder
        values = [as_tensor(value) for value in inputs]
        homes = [builder.regions[builder.home(value.port)] for value in values]
        if (
            len(values) != 2
            or {home.side for home in homes} != {True, False}
            or homes[0].pred != homes[1].pred
            or homes[0].parent != homes[1].parent
        ):
            raise GraphError(
                "merge takes two values, one from each side of the same switch",
                here(),
                hint="choose with tf.cond, repeat with tf.while_loop",
            )
        assert homes[0].parent is not None and homes[0].pred is not None
        first = 0 if homes[0].side else 1
        ports = values[first].port, values[1 - first].port
        number = builder.add("merge", ports, (values[first].type,), span=here(), name="Merge", region=homes[0].parent)
        merged = named(Tensor(builder, Port(number)), name)
        truth = Tensor(builder, homes[0].pred)
        return Merged(merged, where(truth, constant(first), constant(1 - first)))


def enter(data: Any, frame_name: str, is_constant: bool = False, parallel_iterations: int = 10, **_: Any) -> Any:
    """The same value. Loops are written with tf.while_loop; without a merge there is none to enter."""
    return data if isinstance(data, Variable) else identity(data)


def exit(data: Any, name: str | None = None) -> Any:
    """The same value: see `enter`."""
    return identity(data, name=name)


def next_iteration(data: Any, name: str | None = None) -> Any:
    """Refused: a loop is written as a whole."""
    raise GraphError("loops cannot be written edge by edge", here(), hint="write tf.while_loop(cond, body, loop_vars)")


loop_cond = next_iteration


def ref_identity(input: Any, name: str | None = None) -> Any:
    """The same value; a variable stays one."""
    return input if isinstance(input, Variable) else identity(input, name=name)


def strided_slice(
    input_: Any, begin: Any, end: Any, strides: Any = None, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0, var: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """The elements from `begin` to `end` along each of the first axes: `x[a:b, c:d]`."""
    first, last = sizes_of(begin), sizes_of(end)
    steps = sizes_of(strides) if strides is not None else (1,) * len(first)
    key: list[Any] = []
    for axis, (start, stop, step) in enumerate(zip(first, last, steps, strict=True)):
        bit = 1 << axis
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(start)
        else:
            key.append(slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return named(as_tensor(input_)[builtin_tuple(key)], name)


def with_dependencies(dependencies: Sequence[Any], output_tensor: Any, name: str | None = None) -> Any:
    """The same value, once these operations are done."""
    with control_dependencies(list(dependencies)):
        return identity(output_tensor, name=name)


def tuple(tensors: Sequence[Any], name: str | None = None, control_inputs: Any = None) -> list[Any]:
    """The same values, each once all are there."""
    given = [tensor for tensor in tensors if tensor is not None]
    with control_dependencies([group(*given, *(control_inputs or ()))]):
        return [
            None if tensor is None else group(tensor) if isinstance(tensor, Operation) else identity(tensor)
            for tensor in tensors
        ]


boundaries(globals(), __all__)
