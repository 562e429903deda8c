"""The base class of layers: a scope for their variables, which are made at the first call."""

from __future__ import annotations

import re
from typing import Any

from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.scopes import VariableScope, get_variable, variable_scope
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable
from undertow.compat.v1.tensor import Tensor, as_tensor
from undertow.errors import GraphError, TypeMismatch
from undertow.tracebacks import guarded
from undertow.types import said


@guarded
class Layer:
    """The base class of layers. Subclasses make their variables in `build`, and use them in `call`."""

    def __init__(self, trainable: bool = True, name: str | None = None, dtype: Any = None, **settings: Any) -> None:
        self.trainable = trainable
        self.dtype = dtype
        self.built = False
        self._name = name
        self._reuse = settings.get("_reuse")
        self._scope: VariableScope | None = None
        self.variables: list[Variable] = []

    @property
    def name(self) -> str:
        """The name of its scope, without those around it."""
        full = self._name if self._scope is None else self._scope.name.rpartition("/")[2]
        return full or snake_case(type(self).__name__)

    @property
    def weights(self) -> list[Variable]:
        """Its variables."""
        return list(self.variables)

    @property
    def trainable_variables(self) -> list[Variable]:
        """Those that optimizers update."""
        return [v for v in self.variables if v.trainable]

    trainable_weights = trainable_variables

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """Those that optimizers do not update."""
        return [v for v in self.variables if not v.trainable]

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        self.built = True

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        return inputs

    def add_variable(self, name: str, shape: Any, initializer: Any = None, **more: Any) -> Variable:
        """A variable in the scope of the layer."""
        more = {"dtype": self.dtype, "trainable": self.trainable, **more}
        made = get_variable(name, shape, initializer=initializer, **more)
        if made not in set(self.variables):  # a list would compare values
            self.variables.append(made)
        return made

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs; the variables are made at the first call."""
        value: Any = [as_tensor(x) for x in inputs] if isinstance(inputs, (list, tuple)) else as_tensor(inputs)
        if self._scope is None:
            scope: Any = variable_scope(self._name, snake_case(type(self).__name__), reuse=self._reuse)
        else:
            scope = variable_scope(self._scope)
        with scope as opened:
            self._scope = opened if self._scope is None else self._scope
            if not self.built:
                first = value[0] if isinstance(value, list) else value
                self.dtype = first.dtype if self.dtype is None else self.dtype
                self.build([x.shape for x in value] if isinstance(value, list) else value.shape)
                self.built = True
                self._graph = first.graph
            elif get_default_graph() is not self._graph:
                raise GraphError(
                    f"layer `{self.name}` has its variables in another graph", here(), hint="make another layer"
                )
            return self.call(value, *args, **kwargs)

    apply = __call__


def snake_case(name: str) -> str:
    """MaxPooling2D is max_pooling2d, as TensorFlow names scopes."""
    parted = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", parted).lower()


def known_size(inputs: Tensor, axis: int, what: str) -> int:
    """A size of the inputs that a layer needs to make its variables."""
    size = inputs.type.shape[axis] if inputs.type.rank else None
    if not isinstance(size, int):
        raise TypeMismatch(
            f"{what} needs to know axis {axis} of its inputs, {said(inputs.type)}, when the graph is built",
            here(),
            hint="declare it: tf.placeholder(tf.float32, [None, 784])",
        )
    return size
