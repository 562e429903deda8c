"""`tf.Tensor` and `tf.Operation`, and the conversion of arguments to tensors.

Python numbers and lists take the dtype of the other operand; alone they are int32, float32 and bool.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.graph import Graph, NativeContext, another_graph, get_default_graph
from undertow.compat.v1.place import here
from undertow.errors import CaptureError, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced, capturing, context, operand, read
from undertow.frontend.values.traced import constant as as_numpy
from undertow.ir.graph import Attrs, Const, Port
from undertow.ops.op import CATALOGUE, find
from undertow.types import DType, bool_, dtype_of, f32, i32, type_of

_KINDS = ("bool", "int", "float")
# What hints of the library call by its own names: rows know those of operators.
_WORDS = {
    **{row.public: row.names("tf.")[0] for row in CATALOGUE.values() if row.names("tf.")},
    **{name: name for name in ("bool", "broadcast_to", "concat", "cond", "expand_dims", "stack", "where", "zeros")},
    "astype": "cast", "while_loop": "while_loop", "f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64",
}  # fmt: skip


def in_tensorflow_words(hint: str) -> str:
    """A hint of the library with the names that it has here."""
    return re.sub(r"\but\.(\w+)", lambda match: f"tf.{_WORDS[match[1]]}" if match[1] in _WORDS else match[0], hint)


class TensorShape(tuple[int | None, ...]):
    """The dimensions of a tensor as they are known before a run; None for one that is not."""

    __slots__ = ()

    def as_list(self) -> list[int | None]:
        """The dimensions as a list."""
        return list(self)

    @property
    def ndims(self) -> int:
        """How many dimensions there are."""
        return len(self)

    rank = ndims

    def is_fully_defined(self) -> bool:
        """Is every dimension known?"""
        return None not in self

    def num_elements(self) -> int | None:
        """How many elements there are, if that is known."""
        return None if None in self else int(np.prod([d for d in self if d is not None], dtype=np.int64))


class Tensor(Traced):
    """A value of a graph. Operators on it write nodes; `Session.run` computes it."""

    __slots__ = ()

    __hash__ = object.__hash__  # a tensor is a key of feed_dict

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to."""
        context = self.builder.context
        assert isinstance(context, NativeContext)
        return context.graph

    @property
    def name(self) -> str:
        """`add:0`: the name of its operation, and which of the outputs."""
        graph, number = self.graph, self.port.node
        name = graph.unique_name(number) if self.builder is graph.main else self.builder.nodes[number].name
        return f"{name}:{self.port.index}"

    @property
    def op(self) -> Operation:
        """The operation that gives it."""
        return Operation(self)

    @property
    def shape(self) -> TensorShape:
        """The dimensions that are known before a run; `tf.shape(x)` tells them all, at run time."""
        return TensorShape(d if isinstance(d, int) else None for d in self.type.shape)

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    @property
    def device(self) -> str:
        """Where it is placed."""
        return str(self.builder.nodes[self.port.node].attrs.get("device", ""))

    @property
    def span(self) -> Span | None:
        """The line that made it."""
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

    def __getitem__(self, key: Any) -> Any:
        with writing(self):
            return wrap(getitem(self, given(key)))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        with writing(self):
            return wrap(super().__array_ufunc__(ufunc, method, *(given(x) for x in inputs), **kwargs))

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        with writing(self):
            return wrap(super().__array_function__(func, types, args, kwargs))

    def set_shape(self, shape: Any) -> None:
        """Accepted and ignored: the graph infers shapes."""


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
        """The name of its operator."""
        return self.token.builder.nodes[self.token.port.node].op

    @property
    def device(self) -> str:
        """Where it is placed."""
        return self.token.device

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that it gives."""
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
    """The graph that an operation on these goes to: theirs, or the default one."""
    found: Graph | None = None
    for value in values:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, Tensor) or hasattr(type(item), "__undertow_read__"):
                graph = getattr(item, "graph", None)
                if found is not None and isinstance(graph, Graph) and graph is not found:
                    raise another_graph(item, here())
                found = found or graph
    return found or get_default_graph()


@contextlib.contextmanager
def writing(*values: Any) -> Iterator[Graph]:
    """Nodes are written to the graph of these values; errors get the user's line."""
    graph = graph_of(values)
    with graph.lock, capturing(graph.ctx):
        try:
            yield graph
        except UndertowError as fault:
            fault.span = fault.span or here()
            fault.hint = in_tensorflow_words(fault.hint)
            raise


def wrap(value: Any) -> Any:
    """The results of a library function as tensors."""
    if isinstance(value, Traced):
        return value if isinstance(value, Tensor) else Tensor(value.builder, value.port)
    if isinstance(value, (list, tuple)):
        return [wrap(item) for item in value]
    return write_constant(value)


def named(value: Any, name: str | None) -> Any:
    """Give the node of a tensor that was just written a name."""
    if name is not None and isinstance(value, Tensor):
        if not isinstance(name, str) or not name:
            raise TypeMismatch(f"invalid name={brief(name)}", here(), hint='write name="x"')
        value.builder.rename(value.port, name)
    return value


def given(value: Any) -> Any:
    """An argument with the variables in it read."""
    if isinstance(value, Operation):
        raise TypeMismatch(f"{value!r} has no value", here(), hint="use it in tf.control_dependencies, or fetch it")
    if isinstance(value, (list, tuple, dict)):
        leaves, structure = tree.flatten(value, is_tensor_like)
        return tree.unflatten(structure, [read(leaf) for leaf in leaves])
    return read(value)


def is_tensor_like(value: Any) -> bool:
    """Is it a tensor, or a variable, which is read where it is used?"""
    return isinstance(value, (Traced, Operation)) or hasattr(type(value), "__undertow_read__")


def default_dtype(value: Any) -> DType | None:
    """The dtype of Python values here: bool, int32 (int64 if they are large), float32. None for what has its own."""
    if isinstance(value, (np.ndarray, np.generic)):
        return None
    found = np.asarray(as_numpy(value))
    leaves = tree.flatten(value)[0] if isinstance(value, (list, tuple)) else ()
    if any(isinstance(leaf, (np.ndarray, np.generic)) for leaf in leaves):
        return None
    if found.dtype.kind == "i" and np.array_equal(found, found.astype(np.int32)):
        return i32
    return {"b": bool_, "f": f32}.get(found.dtype.kind)


def as_constant(value: Any, dtype: DType | None = None) -> Any:
    """A Python or NumPy value as a NumPy value of that dtype, or of the one that it has here."""
    wanted = default_dtype(value) if dtype is None else dtype
    found = np.asarray(as_numpy(value))
    if wanted is not None and wanted.kind == "int" and found.dtype.kind == "i" and found.size:
        bounds = np.iinfo(wanted.numpy)  # type: ignore[type-var]
        for bound in (found.min(), found.max()):
            if not bounds.min <= bound <= bounds.max:
                raise TypeMismatch(f"{bound} does not fit in {wanted}", here(), hint="use dtype=tf.int64, or a float")
    if wanted is not None and _KINDS.index(type_of(found).dtype.kind) > _KINDS.index(wanted.kind):
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
    """An operand beside one of this dtype: numbers, lists and arrays take it where it can hold their kind."""
    if isinstance(value, Traced) or is_weak(value):
        return value
    found = np.asarray(as_numpy(value))
    fits = _KINDS.index(type_of(found).dtype.kind) <= _KINDS.index(dtype.kind)
    return np.asarray(as_numpy(value, dtype)) if fits else as_constant(value)


def _stacked(value: Any) -> Any:
    """A list that holds tensors is a tensor."""
    if not isinstance(value, (list, tuple)):
        return value
    leaves = tree.flatten(value, is_tensor_like)[0]
    return functions.asarray(value) if any(isinstance(leaf, Traced) for leaf in leaves) else value


def operands(values: Sequence[Any]) -> list[Any]:
    """Arguments of an operation, at least one of them a tensor, the others fitted to it."""
    if not values:
        raise TypeMismatch("there is no tensor to compute with", here(), hint="give at least one, and not only None")
    found = [_stacked(given(value)) for value in values]
    tensors = [value for value in found if isinstance(value, Traced)]
    if not tensors:
        found[0] = write_constant(found[0])
        tensors = [found[0]]
    return [fitted(value, tensors[0].dtype) for value in found]


def apply(function: Callable[..., Any], args: Sequence[Any], name: str | None = None, **options: Any) -> Any:
    """A library function applied to the user's arguments, as tensors."""
    with writing(*args):
        return named(wrap(function(*operands(args), **options)), name)


def as_tensor(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A tensor as it is, a variable's value, anything else as a constant."""
    wanted = None if dtype is None else dtype_of(dtype)
    with writing(value):
        found = _stacked(given(value))
        if not isinstance(found, Traced):
            return write_constant(found, wanted, name or "Const")
        if wanted is not None and found.dtype != wanted:
            raise TypeMismatch(
                f"{found!r} is not {wanted}", here(), hint=f"convert it with tf.cast(x, tf.{wanted.numpy.name})"
            )
        made: Tensor = wrap(found)
        return made
