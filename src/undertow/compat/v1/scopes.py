"""`tf.variable_scope` and `tf.get_variable`: variables by name, made once and found again where a scope reuses them."""

from __future__ import annotations

import contextlib
import enum
import itertools
from collections.abc import Iterator
from typing import Any

from undertow.compat.v1.collections import GraphKeys
from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.initializers import made_from
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable, glorot_uniform_initializer, zeros_initializer
from undertow.compat.v1.tensor import is_tensor_like
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.tracebacks import boundaries
from undertow.types import dtype_of, f32

__all__ = ["AUTO_REUSE", "VariableScope", "get_variable", "get_variable_scope", "no_regularizer", "variable_scope"]


class _Reuse(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _Reuse.AUTO_REUSE


def no_regularizer(_: Any) -> None:
    """Keeps a variable from the regularizer of its scope."""


class VariableScope:
    """What `tf.variable_scope` opens: the prefix of names, and what variables get that do not say otherwise."""

    def __init__(
        self, reuse: Any, name: str = "", initializer: Any = None, regularizer: Any = None, dtype: Any = f32, **_: Any
    ) -> None:
        self._reuse = reuse
        self._name = name
        self.initializer = initializer
        self.regularizer = regularizer
        self.dtype = dtype

    @property
    def name(self) -> str:
        """The full name."""
        return self._name

    @property
    def original_name_scope(self) -> str:
        """The full name with a slash at its end."""
        return f"{self._name}/" if self._name else ""

    @property
    def reuse(self) -> Any:
        """Does get_variable find variables, and make none? AUTO_REUSE: does it do either?"""
        return self._reuse

    def reuse_variables(self) -> None:
        """From here on, get_variable finds existing variables."""
        self._reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """The initializer of variables that are given none."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """The regularizer of variables that are given none."""
        self.regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """The dtype of variables that are given none."""
        self.dtype = dtype

    def global_variables(self) -> list[Variable]:
        """The variables of this scope."""
        return [v for v in get_default_graph().variables if v.name.startswith(self.original_name_scope)]

    def trainable_variables(self) -> list[Variable]:
        """The variables of this scope that optimizers update."""
        return [v for v in self.global_variables() if v.trainable]

    def __repr__(self) -> str:
        return f"<tf.VariableScope {self._name!r}>"


def _scopes(graph: Graph) -> list[VariableScope]:
    if not graph.variable_scopes:
        graph.variable_scopes.append(VariableScope(False))
    return graph.variable_scopes


def get_variable_scope() -> VariableScope:
    """The innermost scope; outside of all, one without a name."""
    return _scopes(get_default_graph())[-1]


@contextlib.contextmanager
def variable_scope(
    name_or_scope: Any, default_name: str | None = None, values: Any = None, initializer: Any = None,
    regularizer: Any = None, caching_device: Any = None, partitioner: Any = None, custom_getter: Any = None,
    reuse: Any = None, dtype: Any = None, use_resource: Any = None, **_: Any,
) -> Iterator[VariableScope]:  # fmt: skip
    """Prefixes the names of variables created inside; `reuse` lets get_variable find existing ones."""
    graph = get_default_graph()
    scopes = _scopes(graph)
    around = scopes[-1]
    if isinstance(name_or_scope, VariableScope):  # its name is whole already
        full, base = name_or_scope.name, name_or_scope
    elif name_or_scope is not None and (not isinstance(name_or_scope, str) or not name_or_scope):
        raise TypeMismatch(f"{brief(name_or_scope)} is not a scope", here(), hint='write tf.variable_scope("layer")')
    elif name_or_scope is None and not default_name:
        raise TypeMismatch("a variable scope needs a name", here(), hint='write tf.variable_scope("layer")')
    else:
        own = name_or_scope if name_or_scope is not None else _free(graph, around, str(default_name))
        full, base = around.original_name_scope + own, around
    graph.scope_counts[full] = graph.scope_counts.get(full, 0) + 1
    scope = VariableScope(
        reuse or base.reuse,
        full,
        base.initializer if initializer is None else initializer,
        base.regularizer if regularizer is None else regularizer,
        base.dtype if dtype is None else dtype_of(dtype),
    )
    scopes.append(scope)
    try:
        yield scope
    finally:
        scopes.remove(scope)
        # When it is opened again, the scopes in it are numbered from the start.
        graph.scope_counts = {k: n for k, n in graph.scope_counts.items() if not k.startswith(f"{full}/")}


def _free(graph: Graph, around: VariableScope, stem: str) -> str:
    """A name that no scope has yet, since the one around it was opened: dense, dense_1, ..."""
    names = (f"{stem}_{k}" if k else stem for k in itertools.count())
    return next(name for name in names if not graph.scope_counts.get(around.original_name_scope + name))


def get_variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: bool = True, collections: Any = None, caching_device: Any = None, partitioner: Any = None,
    validate_shape: bool = True, use_resource: Any = None, custom_getter: Any = None, **_: Any,
) -> Variable:  # fmt: skip
    """A new variable of this name, or, inside a scope with `reuse`, the existing one."""
    graph = get_default_graph()
    scope = _scopes(graph)[-1]
    full = scope.original_name_scope + name
    known: Variable | None = next((v for v in graph.variables if v.name.partition(":")[0] == full), None)
    if known is not None:
        if not scope.reuse:
            raise GraphError(
                f"variable `{full}` already exists, created on line {known.span.line if known.span else '?'}",
                here(),
                hint="reuse it with tf.variable_scope(..., reuse=True), or choose another name",
            )
        _check_known(known, full, shape, dtype)
        return known
    if scope.reuse is True:
        raise GraphError(
            f"variable `{full}` does not exist, and this scope makes no variables",
            here(),
            hint="make it first, in a scope without reuse=True, or use reuse=tf.AUTO_REUSE",
        )
    wanted = dtype_of(scope.dtype if dtype is None else dtype)
    start = made_from(scope.initializer if initializer is None else initializer)
    if start is None:
        start = glorot_uniform_initializer() if wanted.kind == "float" else zeros_initializer()
    if callable(start) and not is_tensor_like(start):
        if shape is None:
            raise TypeMismatch(f"variable `{full}` needs a shape", here(), hint="write shape=[2, 3]")
        start = start(_sizes(full, shape), wanted)
    elif is_tensor_like(start) and dtype is None:
        wanted = start.dtype
    with _named_whole(graph, full):
        made = Variable(start, trainable=trainable, name=full, dtype=wanted, collections=collections)
    penalty = scope.regularizer if regularizer is None else regularizer
    if penalty is not None:
        loss = penalty(made)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return made


@contextlib.contextmanager
def _named_whole(graph: Graph, full: str) -> Iterator[None]:
    """A name that is whole already gets no prefix."""
    outer, graph.variable_scopes = graph.variable_scopes, []
    try:
        yield
    finally:
        graph.variable_scopes = outer


def _sizes(full: str, shape: Any) -> list[int]:
    sizes = list(shape) if isinstance(shape, (list, tuple)) else [shape]
    if any(size is None for size in sizes):
        raise TypeMismatch(
            f"variable `{full}` has the shape {brief(sizes)}, which leaves a size open", here(), hint="give all sizes"
        )
    return [int(size) for size in sizes]


def _check_known(known: Variable, full: str, shape: Any, dtype: Any) -> None:
    """Is a variable that is reused the one that is asked for?"""
    if shape is not None and list(known.shape) != _sizes(full, shape):
        raise GraphError(
            f"variable `{full}` is {known.type}, but is reused with the shape {_sizes(full, shape)}",
            here(),
            hint="ask for the shape that it has, or choose another name",
        )
    if dtype is not None and dtype_of(dtype) != known.dtype:
        raise GraphError(
            f"variable `{full}` is {known.type}, but is reused as {dtype_of(dtype)}", here(), hint="choose another name"
        )


boundaries(globals(), __all__)
