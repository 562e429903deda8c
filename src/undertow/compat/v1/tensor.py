"""`tf.Tensor` and `tf.Operation`, and the conversion of arguments to tensors.

Python numbers and lists take the dtype of the other operand; alone they are int32, float32 and bool.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.compat.v1.errors import of_graph, of_kind
from undertow.compat.v1.graph import Graph, NativeContext, another_graph, get_default_graph
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import recorded
from undertow.compat.v1.graphs.shapes import TensorShape
from undertow.compat.v1.place import here
from undertow.errors import CaptureError, GraphError, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced, capturing, context, emit, operand, read
from undertow.frontend.values.traced import constant as as_numpy
from undertow.ir.graph import Attrs, Const, Port
from undertow.ops.op import CATALOGUE, find
from undertow.types import DType, bool_, f32, i32, type_of
from undertow.viz.graphdef import operator_name

_KINDS = ("bool", "int", "float")
# The TensorFlow names of functions in hints; those of operators are in their rows.
_WORDS = {
    **{row.public: row.names("tf.")[0] for row in CATALOGUE.values() if row.names("tf.")},
    **{name: name for name in ("bool", "broadcast_to", "concat", "cond", "expand_dims", "stack", "where", "zeros")},
    "astype": "cast", "while_loop": "while_loop", "f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64",
}  # fmt: skip


def in_tensorflow_words(hint: str) -> str:
    """A hint with the TensorFlow names of functions."""
    return re.sub(r"\but\.(\w+)", lambda match: f"tf.{_WORDS[match[1]]}" if match[1] in _WORDS else match[0], hint)


class Tensor(Traced):
    """A value of a graph. Operators on it write nodes; `Session.run` computes it."""

    __slots__ = ()

    __hash__ = object.__hash__  # tensors are keys of feed_dict

    if TYPE_CHECKING:  # rows install the operators; by this one checkers know a number

        def __float__(self) -> float: ...

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        context = self.builder.context
        assert isinstance(context, NativeContext)
        return context.graph

    @property
    def name(self) -> str:
        """The name of its operation and the number of the output: `add:0`."""
        graph, number = self.graph, self.port.node
        name = graph.name_of(number) if self.builder is graph.main else self.builder.nodes[number].name
        return f"{name}:{self.port.index}"

    @property
    def op(self) -> Operation:
        """The operation that computes it."""
        return Operation(self)

    @property
    def shape(self) -> TensorShape:
        """The dimensions as known before a run; `tf.shape(x)` has them all, at run time."""
        own = self.graph.late.met(self) if self.builder.kind == "main" else self
        if self.builder.kind == "main" and own is self and self.graph.late.is_late(self):
            return TensorShape(None)
        return TensorShape([d if isinstance(d, int) else None for d in own.type.shape])

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    @property
    def device(self) -> str:
        """Where it is placed."""
        return str(self.builder.nodes[self.port.node].attrs.get("device", ""))

    @property
    def span(self) -> Span | None:
        """The source line that created it."""
        return self.builder.nodes[self.port.node].span

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value in a session, by default that of the innermost `with`."""
        from undertow.compat.v1.session import session_for

        return session_for(session, self).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r}: {self.type}>"

    def _unknown(self, what: str, hint: str) -> CaptureError:
        fault = super()._unknown(what.replace("traced ", "tensor of "), in_tensorflow_words(hint))
        fault.span = fault.span or here()
        return fault

    def __bool__(self) -> bool:
        raise self._unknown(
            f"a tensor ({self.type}) cannot be tested in Python: its value is known only when the graph runs",
            "branch with tf.cond(x, lambda: ..., lambda: ...), loop with tf.while_loop, combine with tf.logical_and",
        )

    def _apply(self, name: str, *operands: Any) -> Any:
        return apply(getattr(functions, name), operands)

    @recorded
    def __getitem__(self, key: Any) -> Any:
        with writing(self):
            return wrap(getitem(self, with_reads(key)))

    @recorded
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        with writing(self):
            return wrap(super().__array_ufunc__(ufunc, method, *(with_reads(x) for x in inputs), **kwargs))

    @recorded
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with writing(self):
            return wrap(super().__array_function__(func, types, args, kwargs))

    def set_shape(self, shape: Any) -> None:
        """Accepted: the graph infers shapes. One that does not fit is an error."""
        self.shape.assert_is_compatible_with(shape)

    def consumers(self) -> list[Operation]:
        """The operations that take it."""
        nodes = self.builder.nodes
        numbers = (number for number, node in enumerate(nodes) if self.port in node.inputs)
        return [Operation(Tensor(self.builder, Port(number))) for number in numbers]

    @property
    def value_index(self) -> int:
        """The number of the output of its operation."""
        return self.port.index


class Operation:
    """A node that is run for its effect: fetching it returns None."""

    def __init__(self, token: Tensor) -> None:
        self.token = token  # arrives when the operation is done

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operation) and (self.token.builder, self.token.port.node) == (
            other.token.builder,
            other.token.port.node,
        )

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        return self.token.graph

    @property
    def name(self) -> str:
        """Its name in the graph."""
        return self.token.name.rsplit(":", 1)[0]

    @property
    def type(self) -> str:
        """The name of its operator, as TensorFlow writes it: "Add"; of a call, the function's."""
        node = self.token.builder.nodes[self.token.port.node]
        if node.op == "identity" and isinstance(node.inputs[0], Const):
            return "Const" if node.controls[:1] == (Port(0),) or not node.controls else "NoOp"
        if node.op == "call":
            return node.attrs.text("callee")
        return "While" if node.op == "loop" else operator_name(node.op)

    @property
    def _id(self) -> int:
        return self.token.port.node

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that run before it because a control edge says so."""
        builder = self.token.builder
        ports = builder.nodes[self.token.port.node].controls
        return [Operation(Tensor(builder, port)) for port in ports if builder.nodes[port.node].op != "start"]

    @property
    def traceback(self) -> list[tuple[str, int, str, str]]:
        """The user's line that made it."""
        span = self.token.span
        return [] if span is None else [(span.file, span.line, span.function, span.source().strip())]

    @property
    def device(self) -> str:
        """Where it is placed."""
        return self.token.device

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that it computes."""
        builder, number = self.token.builder, self.token.port.node
        kinds = builder.nodes[number].types
        return [Tensor(builder, Port(number, k)) for k, type in enumerate(kinds) if type.dtype.kind != "ctl"]

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that it takes."""
        builder = self.token.builder
        return [Tensor(builder, x) for x in builder.nodes[self.token.port.node].inputs if isinstance(x, Port)]

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Run it in a session, by default that of the innermost `with`."""
        from undertow.compat.v1.session import session_for

        session_for(session, self).run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


# -- writing -----------------------------------------------------------------------------------------------


def graph_of(values: Sequence[Any]) -> Graph:
    """The graph that an operation on these values is added to: theirs, or the default graph."""
    chosen: Graph | None = None
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Tensor) or hasattr(type(item), "__undertow_read__"):
                graph = getattr(item, "graph", None)
                if chosen is not None and isinstance(graph, Graph) and graph is not chosen:
                    raise another_graph(item, here())
                chosen = chosen or graph
    return chosen or get_default_graph()


@contextlib.contextmanager
def writing(*values: Any) -> Iterator[Graph]:
    """Write nodes to the graph of these values; errors get the user's line."""
    graph = graph_of(values)
    if graph.finalized:
        raise of_kind(
            GraphError("Graph is finalized and cannot be modified.", here(), hint="add everything before finalize()"),
            RuntimeError,
        )
    builder = graph.ctx.open_builder
    outside, builder.region = builder.region, _innermost(builder, values)
    with graph.lock, capturing(graph.ctx):
        try:
            yield graph
        except UndertowError as fault:
            fault.span = fault.span or here()
            fault.hint = in_tensorflow_words(fault.hint)
            of_graph(fault)
            raise
        finally:
            builder.region = outside


def _innermost(builder: Builder, values: Sequence[Any]) -> int:
    """The region for an operation: the current one, or a side of a `switch` inside it that one of the values is on."""
    region = builder.region
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Tensor) and item.builder is builder:
                at = inside = builder.home(item.port)
                while at != region and (parent := builder.regions[at].parent) is not None:
                    at = parent
                if at == region:
                    region = inside
    return region


def wrap(value: Any) -> Any:
    """The results of a library function as tensors."""
    if isinstance(value, Traced):
        return value if isinstance(value, Tensor) else Tensor(value.builder, value.port)
    if isinstance(value, (list, tuple)):
        return [wrap(item) for item in value]
    return write_constant(value)


def named(value: Any, name: str | None) -> Any:
    """Name the node of a tensor that was just written."""
    if name is not None and isinstance(value, Tensor):
        if not isinstance(name, str) or not name:
            raise TypeMismatch(f"invalid name={brief(name)}", here(), hint='write name="x"')
        builder, number = value.builder, value.port.node
        if number == len(builder.nodes) - 1 and builder.nodes[number].op != "param":
            _rename(builder, value.port, name)
        elif builder is open_builder():  # an operation that gives what is there already
            value = wrap(emit("identity", [value])[0])
            _rename(builder, value.port, name)
    return value


def _rename(builder: Builder, port: Port, name: str) -> None:
    if name.endswith("/"):  # a scope's: the name is complete
        builder.scope, before = "", builder.scope
        builder.rename(port, name[:-1])
        builder.scope = before
        if builder.kind == "main":
            builder.context.graph.exact.add(port.node)
    else:
        builder.rename(port, name)


def with_reads(value: Any) -> Any:
    """An argument with its variables replaced by reads."""
    if isinstance(value, Operation):
        raise TypeMismatch(f"{value!r} has no value", here(), hint="use it in tf.control_dependencies, or fetch it")
    if isinstance(value, (list, tuple, dict)):
        leaves, structure = tree.flatten(value, is_tensor_like)
        return tree.unflatten(structure, [_met(read(leaf)) for leaf in leaves])
    return _met(read(value))


def _met(value: Any) -> Any:
    """A tensor, or its image while calls are repeated: see late.py."""
    if not isinstance(value, Tensor) or value.builder.kind != "main":
        return value
    found = value.graph.late.met(value)
    return found if found is value else wrap(found)


def is_tensor_like(value: Any) -> bool:
    """Is it a tensor, or a variable, which is read where it is used?"""
    return isinstance(value, (Traced, Operation)) or hasattr(type(value), "__undertow_read__")


def default_dtype(value: Any) -> DType | None:
    """The default dtype of a Python value: bool, int32 (int64 if it is large), float32; None if it has its own."""
    if isinstance(value, (np.ndarray, np.generic)):
        return None
    array = np.asarray(as_numpy(value))
    leaves = tree.flatten(value)[0] if isinstance(value, (list, tuple)) else ()
    if any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in leaves):
        return None
    if array.dtype.kind == "i" and np.array_equal(array, array.astype(np.int32)):
        return i32
    return {"b": bool_, "f": f32}.get(array.dtype.kind)


def as_constant(value: Any, dtype: DType | None = None) -> Any:
    """A Python or NumPy value as a NumPy value of this dtype, by default that of `default_dtype`."""
    wanted = default_dtype(value) if dtype is None else dtype
    array = np.asarray(as_numpy(value))
    if wanted is not None and wanted.kind == "int" and array.dtype.kind == "i" and array.size:
        bounds = np.iinfo(wanted.numpy)  # type: ignore[type-var]
        for bound in (array.min(), array.max()):
            if not bounds.min <= bound <= bounds.max:
                raise TypeMismatch(f"{bound} does not fit in {wanted}", here(), hint="use dtype=tf.int64, or a float")
    if wanted is not None and _KINDS.index(type_of(array).dtype.kind) > _KINDS.index(wanted.kind):
        raise TypeMismatch(
            f"{brief(value)} cannot be {'an' if str(wanted)[0] == 'i' else 'a'} {wanted}",
            here(),
            hint="convert it with tf.cast, or leave out dtype=",
        )
    return np.asarray(as_numpy(value, wanted))


def write_constant(value: Any, dtype: DType | None = None, name: str = "Const") -> Tensor:
    """A constant as a node of the graph that is being written."""
    builder = open_builder()
    return Tensor(builder, builder.gate(Const(as_constant(value, dtype)), here(), name))


def open_builder() -> Builder:
    """The builder of the graph that is being written."""
    current = context()
    return (current if isinstance(current, NativeContext) else get_default_graph().ctx).open_builder


def add_node(op: str, values: Sequence[Any], attrs: Attrs, name: str = "") -> Tensor:
    """A node with one output, ordered only by the current control dependencies."""
    builder, inputs = open_builder(), [operand(value) for value in values]
    types = find(op).type([builder.type_of(port) for port in inputs], attrs)
    return Tensor(builder, Port(builder.add(op, inputs, types, attrs, here(), name)))


def fitted(value: Any, dtype: DType) -> Any:
    """An operand beside one of this dtype: numbers, lists and arrays are converted to it if their kind fits."""
    if isinstance(value, Traced) or is_weak(value):
        return value
    array = np.asarray(as_numpy(value))
    fits = _KINDS.index(type_of(array).dtype.kind) <= _KINDS.index(dtype.kind)
    return np.asarray(as_numpy(value, dtype)) if fits else as_constant(value)


def _stacked(value: Any) -> Any:
    """A list that contains tensors, stacked to one tensor."""
    if not isinstance(value, (list, tuple)):
        return value
    leaves = tree.flatten(value, is_tensor_like)[0]
    return functions.asarray(value) if any(isinstance(leaf, Traced) for leaf in leaves) else value


def operands(values: Sequence[Any]) -> list[Any]:
    """Arguments of an operation, at least one of them a tensor, the others fitted to it."""
    if not values:
        raise TypeMismatch("there is no tensor to compute with", here(), hint="give at least one, and not only None")
    arguments = [_stacked(with_reads(value)) for value in values]
    tensors = [value for value in arguments if isinstance(value, Traced)]
    if not tensors:
        arguments[0] = write_constant(arguments[0])
        tensors = [arguments[0]]
    return [fitted(value, tensors[0].dtype) for value in arguments]


@recorded
def apply(function: Callable[..., Any], args: Sequence[Any], name: str | None = None, **options: Any) -> Any:
    """A library function applied to the user's arguments, as tensors."""
    with writing(*args):
        return named(wrap(function(*operands(args), **options)), name)


@recorded
def as_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor as it is, a variable's value, anything else as a constant."""
    wanted = None if dtype is None else dtype_of(dtype)
    with writing(value):
        argument = _stacked(with_reads(value))
        if not isinstance(argument, Traced):
            return write_constant(argument, wanted, name or "Const")
        if wanted is not None and argument.dtype != wanted:
            raise TypeMismatch(
                f"{argument!r} is not {wanted}", here(), hint=f"convert it with tf.cast(x, tf.{wanted.numpy.name})"
            )
        tensor: Tensor = wrap(argument)
        return tensor
