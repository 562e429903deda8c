"""`tf.variable_scope` and `tf.get_variable`: variables that are found again by name, and what they have by default."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from undertow.compat.v1.control import control_dependencies, graph_name_scope
from undertow.compat.v1.errors import of_graph
from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable, glorot_uniform_initializer, is_tensor, zeros_initializer
from undertow.compat.v1.values.initializers import INITIALIZERS
from undertow.errors import GraphError, TypeMismatch, UndertowError, brief
from undertow.tracebacks import boundaries
from undertow.types import f32

__all__ = [
    "AUTO_REUSE", "VariableScope", "add_to_collection", "get_collection", "get_collection_ref", "get_local_variable",
    "get_variable", "get_variable_scope", "variable_scope",
]  # fmt: skip

AUTO_REUSE = "auto"


def add_to_collection(name: Any, value: Any) -> None:
    """Append a value to a collection of the default graph."""
    get_default_graph().add_to_collection(name, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """A copy of a collection of the default graph; with a scope, those of its items whose names begin with it."""
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """A collection of the default graph itself."""
    return get_default_graph().get_collection_ref(key)


@dataclass(eq=False)
class VariableScope:
    """What variables made by `tf.get_variable` in a scope have by default."""

    name: str = ""
    original_name_scope: str = ""
    reuse: Any = False  # True, False or AUTO_REUSE
    initializer: Any = None
    regularizer: Any = None
    dtype: Any = f32
    custom_getter: Any = None

    def reuse_variables(self) -> None:
        """From now on, `get_variable` gives variables that there are already."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """The default initializer, from now on."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Any) -> None:
        """The default regularizer, from now on."""
        self.regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """The default dtype, from now on."""
        self.dtype = dtype

    def get_variable(self, name: str, **options: Any) -> Variable:
        """`tf.get_variable`, in this scope."""
        with variable_scope(self, auxiliary_name_scope=False):
            return get_variable(name, **options)

    def get_collection(self, name: Any) -> list[Any]:
        """Those items of a collection whose names begin with that of the scope."""
        return get_default_graph().get_collection(name, f"{self.name}/" if self.name else None)

    def global_variables(self) -> list[Any]:
        """The global variables of the scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def trainable_variables(self) -> list[Any]:
        """The trainable variables of the scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)


def _current(graph: Graph) -> VariableScope:
    if not graph.variable_scopes:
        graph.variable_scopes.append(VariableScope())
    scope: VariableScope = graph.variable_scopes[-1]
    return scope


def get_variable_scope() -> VariableScope:
    """The innermost scope."""
    return _current(get_default_graph())


def _default_name(graph: Graph, outer: str, stem: str) -> str:
    """A name for a scope without one: `dense`, then `dense_1`, ..."""
    count = graph.default_scopes.get((outer, stem), 0)
    graph.default_scopes[outer, stem] = count + 1
    return f"{stem}_{count}" if count else stem


@contextlib.contextmanager
def variable_scope(
    name_or_scope: Any,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: Any = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Prefixes the names of variables and operations made inside; with `reuse`, get_variable finds existing ones."""
    graph = get_default_graph()
    outer = _current(graph)
    if reuse not in (None, True, False, AUTO_REUSE):
        raise TypeMismatch(f"invalid reuse={brief(reuse)}", here(), hint="write reuse=True, or tf.AUTO_REUSE")
    if isinstance(name_or_scope, VariableScope):  # again
        base, full = name_or_scope, name_or_scope.name
        opened = full.rsplit("/", 1)[-1]
    else:
        if name_or_scope is None and default_name is None:
            raise TypeMismatch("a variable scope needs a name", here(), hint='write tf.variable_scope("layer")')
        prefix = f"{outer.name}/" if outer.name else ""
        opened = (
            str(name_or_scope) if name_or_scope is not None else _default_name(graph, outer.name, str(default_name))
        )
        base, full = outer, prefix + opened
        if name_or_scope is None and reuse:
            raise TypeMismatch(
                "reuse=True cannot be used without a name_or_scope", here(), hint='write tf.variable_scope("layer")'
            )
    inherited = outer.reuse or base.reuse
    changes = {
        "initializer": initializer, "regularizer": regularizer, "dtype": dtype, "custom_getter": custom_getter,
    }  # fmt: skip
    scope = replace(
        base, name=full, reuse=reuse if reuse else inherited, **{k: v for k, v in changes.items() if v is not None}
    )
    with contextlib.ExitStack() as stack:
        if auxiliary_name_scope and opened:
            scope.original_name_scope = stack.enter_context(graph_name_scope(graph, opened))
        graph.variable_scopes.append(scope)
        try:
            yield scope
        finally:
            graph.variable_scopes.remove(scope)
            # When it is opened again, scopes without a name in it are numbered from the start.
            counts = graph.default_scopes.items()
            graph.default_scopes = {key: n for key, n in counts if not f"{key[0]}/".startswith(f"{full}/")}


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: Any = None,
    custom_getter: Any = None,
    constraint: Any = None,
) -> Variable:
    """A new variable of this name, or, inside a scope with `reuse`, the existing one."""
    scope = get_variable_scope()
    getter = custom_getter or scope.custom_getter
    settings = {
        "shape": shape, "dtype": dtype, "initializer": initializer, "regularizer": regularizer, "trainable": trainable,
        "collections": collections, "validate_shape": validate_shape,
    }  # fmt: skip
    full = f"{scope.name}/{name}" if scope.name else name
    try:
        if getter is None:
            return _find_or_make(scope, full, **settings)
        found: Variable = getter(
            lambda full_name, **options: _find_or_make(scope, full_name, **options), full, **settings
        )
        return found
    except UndertowError as fault:
        of_graph(fault)
        raise


def _find_or_make(
    scope: VariableScope,
    full: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    validate_shape: bool = True,
    **_: Any,
) -> Variable:
    graph = get_default_graph()
    known: Variable | None = graph.by_get_variable.get(full)
    size = None if shape is None else [None if d is None else int(d) for d in _dims(shape)]
    if known is not None:
        line = known.span.line if known.span else "?"
        if not scope.reuse:
            raise GraphError(
                f"Variable {full} already exists, disallowed: `{full}` was created on line {line}",
                here(),
                hint="reuse it with tf.variable_scope(..., reuse=True), or choose another name",
            )
        if size is not None and not callable(initializer) and list(known.shape) != size:
            raise TypeMismatch(
                f"Trying to share variable {full}, but specified shape {size} and found shape {list(known.shape)}",
                here(),
                hint="ask for the shape that it has",
            )
        return known
    if scope.reuse is True:
        raise GraphError(
            f"Variable {full} does not exist, or was not created with tf.get_variable()",
            here(),
            hint="create it first, or use reuse=tf.AUTO_REUSE",
        )
    wanted = dtype_of(scope.dtype if dtype is None else dtype)
    make = scope.initializer if initializer is None else initializer
    with graph.outside(), graph_name_scope(graph, None), control_dependencies(None):
        if isinstance(make, type) or any(
            make is known for known in INITIALIZERS
        ):  # not called yet: `initializer=tf.zeros_initializer`
            make = make()
        if (callable(make) and not is_tensor(make)) or make is None:
            if size is None:
                raise TypeMismatch(f"variable `{full}` needs a shape", here(), hint="write shape=[2, 3]")
            make = make or (glorot_uniform_initializer() if wanted.kind == "float" else zeros_initializer())
            value = _made(make, size, wanted)
        else:
            value = make
            if dtype is None and is_tensor(make):
                wanted = make.dtype
        variable = Variable(value, trainable, collections, validate_shape, name=full, dtype=wanted)
        graph.by_get_variable[full] = variable
        penalize = scope.regularizer if regularizer is None else regularizer
        if penalize is not None:
            with graph_name_scope(graph, f"{full}/Regularizer/"):
                loss = penalize(variable)
            if loss is not None:
                graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _made(make: Callable[..., Any], size: Any, dtype: Any) -> Any:
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    if "dtype" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return make(size, dtype=dtype)
    return make(size, dtype) if len(parameters) > 1 else make(size)


def _dims(shape: Any) -> list[Any]:
    return list(shape) if isinstance(shape, (list, tuple)) else [shape]


def get_local_variable(name: str, *args: Any, **options: Any) -> Variable:
    """A variable of the collection LOCAL_VARIABLES, which is not trained."""
    return get_variable(name, *args, **{"collections": [GraphKeys.LOCAL_VARIABLES], "trainable": False, **options})


boundaries(globals(), __all__)
