"""`tf.Variable`: a handle in the graph. Its value lives in each session, from its initializer on.

A variable that is used as a tensor is read there, after the current control dependencies; nothing else orders reads
and assignments.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.array import drawn
from undertow.compat.v1.control import control_dependencies, group
from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import recorded
from undertow.compat.v1.graphs.shapes import TensorShape
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation, Tensor, add_node, as_tensor, fitted, named, with_reads, writing
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.frontend.syntax.annotations import convert
from undertow.frontend.values import random
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.state import acts_as_its_value
from undertow.frontend.values.traced import Traced
from undertow.ir.graph import Attrs
from undertow.passes.markers.paths import UPDATE
from undertow.tracebacks import boundaries
from undertow.types import Type
from undertow.types import type_of as numpy_type_of

__all__ = [
    "Variable", "all_variables", "assert_variables_initialized", "assign", "assign_add", "assign_sub",
    "constant_initializer", "global_variables", "global_variables_initializer", "glorot_uniform_initializer",
    "initialize_all_variables", "initialize_local_variables", "is_variable_initialized", "local_variables",
    "local_variables_initializer", "model_variables", "ones_initializer", "random_normal_initializer",
    "random_uniform_initializer", "report_uninitialized_variables", "trainable_variables", "variables_initializer",
    "zeros_initializer",
]  # fmt: skip


_ASSIGNS = {"set": "Assign", "add": "AssignAdd", "subtract": "AssignSub", "concat": "AssignConcat"}


@acts_as_its_value
class Variable:
    """A value that a session keeps between runs."""

    def __init__(
        self,
        initial_value: Any = None,
        trainable: bool = True,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        dtype: Any = None,
        shape: Any = None,
        **_: Any,
    ) -> None:
        if initial_value is None:
            raise TypeMismatch("a variable needs an initial value", here(), hint="write tf.Variable(0.0)")
        value = initial_value() if callable(initial_value) and not is_tensor(initial_value) else initial_value
        place = contextlib.nullcontext() if is_tensor(value) else get_default_graph().outside()
        with place, writing(value) as graph:
            builder = graph.ctx.open_builder
            if builder is not graph.main or builder.region != 0:
                raise GraphError(
                    "a variable cannot be created inside a function, a branch or a loop",
                    here(),
                    hint="create it outside, or give a function that computes its value; it may be read there",
                )
            self.graph = graph
            self.trainable = bool(trainable)
            self.span = here()
            self.key = graph.unique_name(name or "Variable")  # what nodes, and values in sessions, know it by
            with control_dependencies(None), graph.scoped(builder, ""):  # its first value depends on nothing around it
                self.initial_value: Tensor = as_tensor(value, dtype if not is_tensor(value) else None)
                if dtype is not None and self.initial_value.dtype != dtype_of(dtype):
                    raise TypeMismatch(
                        f"variable `{self.key}` is declared as {dtype_of(dtype)}, but its initial value is "
                        f"{self.initial_value.type}",
                        here(),
                        hint="convert it with tf.cast, or change dtype=",
                    )
                self.type = self._type_of(shape, validate_shape)
                self.initializer = self.assigned("set", self.initial_value).op
            self._fetched: Tensor | None = None
            graph.variables.append(self)
            chosen = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
            if trainable and GraphKeys.TRAINABLE_VARIABLES not in chosen:
                chosen.append(GraphKeys.TRAINABLE_VARIABLES)
            graph.add_to_collections(chosen, self)

    def _type_of(self, shape: Any, validate_shape: bool) -> Type:
        """The type of the variable: that of its initial value, unless a shape leaves dimensions open."""
        initial = self.initial_value.type
        if shape is None:
            return initial if validate_shape else initial.with_shape((None,) * initial.rank)
        wanted = initial.with_shape(tuple(None if d is None else int(d) for d in shape))
        if not wanted.accepts(initial):
            raise TypeMismatch(
                f"variable `{self.key}` is declared as {wanted}, but its initial value is {initial}",
                here(),
                hint="change the value, or leave out shape=",
            )
        return wanted

    # -- properties ----------------------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        return self.type.dtype

    @property
    def shape(self) -> TensorShape:
        """The dimensions as known before a run."""
        return TensorShape([d if isinstance(d, int) else None for d in self.type.shape])

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    @property
    def name(self) -> str:
        """Its name as a tensor: `w:0`; that of its operation is `w`."""
        return f"{self.key}:0"

    @property
    def op(self) -> Operation:
        """The operation that reads it, ordered by nothing."""
        return VariableOperation(self.fetched(), self.key)

    def __repr__(self) -> str:
        return f"<tf.Variable {self.name!r}: {self.type}>"

    __hash__ = object.__hash__  # == compares values, as for tensors
    __array_ufunc__ = None  # so that NumPy leaves `array + variable` to us

    # -- reading and assigning -----------------------------------------------------------------------------

    @recorded
    def read_value(self) -> Tensor:
        """The value at this point, after the current control dependencies."""
        with writing(self):
            return self._read()

    value = read_value
    __undertow_read__ = read_value

    def _read(self) -> Tensor:
        with self.graph.scoped(self.graph.ctx.open_builder, ""):
            return add_node("read", (), self._attrs(), f"{self.key}/read")

    def fetched(self) -> Tensor:
        """The read that fetches of the variable itself share: in the main graph, ordered by nothing."""
        if self._fetched is None:
            main = self.graph.main
            with self.graph.lock, self.graph.writing_to(main):
                saved = main.region, main.controls, main.device
                main.region, main.controls, main.device = 0, (), None
                try:
                    self._fetched = self._read()
                finally:
                    main.region, main.controls, main.device = saved
        return self._fetched

    def _ref(self) -> Variable:
        """Itself: there are no references to its memory."""
        return self

    @property
    def handle(self) -> Variable:
        """Itself, for operations that take a handle."""
        return self

    @property
    def device(self) -> str:
        """Where it is placed: in the process of the session."""
        return ""

    def initialized_value(self) -> Tensor:
        """Its initial value, for use in initial values of other variables."""
        return self.initial_value

    def eval(self, session: Any = None) -> Any:
        """Its value in a session, by default that of the innermost `with`."""
        return self.fetched().eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Set its value in a session, immediately."""
        from undertow.compat.v1.session import session_for

        session_for(session, self).run(self.initializer, {self.initial_value: value})

    @recorded
    def assign(self, value: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True) -> Any:
        """Replace the value; returns the new one."""
        return named(self.assigned("set", value), name)

    @recorded
    def assign_add(self, delta: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True) -> Any:
        """Add to the value, atomically; returns the new one."""
        return named(self.assigned("add", delta), name)

    @recorded
    def assign_sub(self, delta: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True) -> Any:
        """Subtract from the value, atomically; returns the new one."""
        return named(self.assigned("subtract", delta), name)

    @recorded
    def updated(self, how: str, value: Any) -> Tensor:
        """The new value after an update, which follows all reads of the run that no control edge puts after it."""
        return self.assigned(how, value, **{UPDATE: True})

    def assigned(self, how: str, value: Any, **more: Any) -> Tensor:
        """The new value after x := f(x, value), where `how` names f."""
        with writing(self, value) as graph:
            fitting = self._fitting(with_reads(value))
            with graph.scoped(graph.ctx.open_builder, ""):
                return add_node(
                    "assign", [fitting], self._attrs(how=how, **more), f"{self.key}/{_ASSIGNS.get(how, how)}"
                )

    def _fitting(self, value: Any) -> Any:
        """The assigned value in the variable's dtype; the type rule checks its shape."""
        what, dtype = f"the value for variable `{self.key}`", self.type.dtype
        converted = value if isinstance(value, Traced) or is_weak(value) else fitted(value, dtype)
        rank = (
            converted.type.rank
            if isinstance(converted, Traced)
            else 0
            if is_weak(converted)
            else numpy_type_of(converted).rank
        )
        try:
            return convert(converted, Type(dtype, (None,) * rank), what, {})[0]
        except TypeMismatch as fault:
            fault.what = fault.what.replace("but annotated as", "but it holds")
            fault.hint = f"convert it with tf.cast(x, tf.{dtype.numpy.name})"
            raise

    def _attrs(self, **more: Any) -> Attrs:
        return Attrs(variable=self.key, dtype=self.type.dtype.name, shape=tuple(self.shape), **more)


def is_tensor(value: Any) -> bool:
    """Is it a tensor or a variable?"""
    return isinstance(value, (Traced, Variable))


class VariableOperation(Operation):
    """The operation of a variable: it has the variable's name."""

    def __init__(self, token: Tensor, key: str) -> None:
        super().__init__(token)
        self._key = key

    @property
    def name(self) -> str:
        """The name of the variable."""
        return self._key

    @property
    def type(self) -> str:
        """As in TensorFlow."""
        return "VariableV2"


# -- functions -----------------------------------------------------------------------------------------------


def assign(ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: str | None = None) -> Any:
    """Replace the value of a variable; returns the new value."""
    return variable_of(ref).assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Add to a variable, atomically; returns the new value."""
    return variable_of(ref).assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: str | None = None) -> Any:
    """Subtract from a variable, atomically; returns the new value."""
    return variable_of(ref).assign_sub(value, name=name)


def variable_of(ref: Any) -> Variable:
    """What an assignment is to; an error if it is no variable."""
    if not isinstance(ref, Variable):
        raise TypeMismatch(f"{brief(ref)} is not a variable and cannot be assigned to", here(), "use tf.Variable")
    return ref


def _collected(key: str, scope: str | None) -> list[Variable]:
    return get_default_graph().get_collection(key, scope)


def global_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the default graph, without local ones."""
    return _collected(GraphKeys.GLOBAL_VARIABLES, scope)


all_variables = global_variables


def trainable_variables(scope: str | None = None) -> list[Variable]:
    """The variables that optimizers update."""
    return _collected(GraphKeys.TRAINABLE_VARIABLES, scope)


def local_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the collection LOCAL_VARIABLES."""
    return _collected(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Variable]:
    """The variables of the collection MODEL_VARIABLES."""
    return _collected(GraphKeys.MODEL_VARIABLES, scope)


def is_variable_initialized(variable: Variable) -> Tensor:
    """Has it a value in the session that runs this?"""
    graph = variable_of(variable).graph
    with writing(variable):
        return Tensor(graph.main, graph.initialized(variable).port)


def report_uninitialized_variables(var_list: Sequence[Variable] | None = None, name: str | None = None) -> Any:
    """A tensor with the names, as bytes, of the variables that have no value in the session that runs it."""
    from undertow.compat.v1.graphs.hosted import UninitializedNames

    return UninitializedNames([*global_variables(), *local_variables()] if var_list is None else list(var_list))


def assert_variables_initialized(var_list: Sequence[Variable] | None = None) -> Operation:
    """Fails in a session where some of these variables have no value."""
    chosen = [*global_variables(), *local_variables()] if var_list is None else list(var_list)
    return group(*(variable.fetched() for variable in chosen), name="assert_variables_initialized")


def variables_initializer(var_list: Sequence[Variable], name: str = "init") -> Operation:
    """An operation that gives these variables their initial values."""
    return group(*(variable.initializer for variable in var_list), name=name)


def global_variables_initializer() -> Operation:
    """An operation that gives every variable of the default graph its initial value."""
    return variables_initializer(global_variables())


initialize_all_variables = global_variables_initializer


def local_variables_initializer() -> Operation:
    """An operation that gives every variable of the collection LOCAL_VARIABLES its initial value."""
    return variables_initializer(local_variables())


initialize_local_variables = local_variables_initializer


# -- initial values -----------------------------------------------------------------------------------------

Initializer = Callable[[Sequence[int], Any], Any]


def constant_initializer(value: Any = 0) -> Initializer:
    """Fills a variable with this value."""
    return lambda shape, dtype: np.broadcast_to(np.asarray(value, dtype_of(dtype).numpy), tuple(shape))


def zeros_initializer() -> Initializer:
    """Fills a variable with zeros."""
    return constant_initializer(0)


def ones_initializer() -> Initializer:
    """Fills a variable with ones."""
    return constant_initializer(1)


def random_normal_initializer(mean: float = 0.0, stddev: float = 1.0, seed: Any = None) -> Initializer:
    """Fills a variable with normal numbers."""
    return lambda shape, dtype: drawn(random.normal, shape, mean, stddev, dtype, seed=seed)


def random_uniform_initializer(minval: float = 0.0, maxval: float = 1.0, seed: Any = None) -> Initializer:
    """Fills a variable with uniform numbers."""
    return lambda shape, dtype: drawn(random.uniform, shape, minval, maxval, dtype, seed=seed)


def fans_of(shape: Sequence[int]) -> tuple[float, float]:
    """How many inputs and how many outputs each unit has: the last two sizes, times the others for a convolution."""
    if len(shape) < 2:
        return float(sum(shape) or 1), float(sum(shape) or 1)
    window = float(np.prod(shape[:-2]))
    return window * shape[-2], window * shape[-1]


def glorot_uniform_initializer(seed: Any = None) -> Initializer:
    """Uniform numbers in a range that preserves the variance of activations across layers."""

    def make(shape: Sequence[int], dtype: Any) -> Any:
        limit = float(np.sqrt(6.0 / sum(fans_of(shape))))
        return drawn(random.uniform, shape, -limit, limit, dtype, seed=seed)

    return make


boundaries(globals(), __all__)
