"""`tf.train`: optimizers, which make an operation that updates variables, once per run; rates, checkpoints, clusters.

An update follows every read of its variable in the same run, unless your control edges say otherwise: a loss fetched
with it is that of the old values. The rules (`api/update_rules.py`) are those of `ut.optim`; settings and
defaults are those of TensorFlow 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.api import update_rules
from undertow.api.update_rules import Update
from undertow.compat.v1 import clusters
from undertow.compat.v1.array import cast
from undertow.compat.v1.clusters import ClusterSpec, Server, replica_device_setter
from undertow.compat.v1.control import control_dependencies, group
from undertow.compat.v1.gradients import gradients
from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.math import sqrt, subtract
from undertow.compat.v1.missing import explain
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable, trainable_variables
from undertow.compat.v1.tensor import Operation, Tensor, apply, as_tensor, is_tensor_like, writing
from undertow.compat.v1.training import averages, decay, saver
from undertow.compat.v1.training.averages import *  # noqa: F403
from undertow.compat.v1.training.decay import *  # noqa: F403
from undertow.compat.v1.training.saver import *  # noqa: F403
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.tracebacks import boundaries
from undertow.types import i64

__all__ = [
    "AdadeltaOptimizer", "AdagradOptimizer", "AdamOptimizer", "ClusterSpec", "GradientDescentOptimizer",
    "MomentumOptimizer", "Optimizer", "RMSPropOptimizer", "Server", "create_global_step", "get_global_step",
    "get_or_create_global_step", "global_step", "replica_device_setter", *averages.__all__, *decay.__all__,
    *saver.__all__,
]  # fmt: skip

Pairs = Sequence[tuple[Any, Variable]]


class Optimizer:
    """The base class of optimizers."""

    learning_rate: Any
    name: str

    def __post_init__(self) -> None:
        self._slots: dict[tuple[Variable, str], Variable] = {}

    def minimize(
        self,
        loss: Any,
        global_step: Variable | None = None,
        var_list: Any = None,
        gate_gradients: Any = None,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        name: str | None = None,
        grad_loss: Any = None,
    ) -> Operation:
        """An operation that takes one step: the gradients of the loss, and the updates of the variables."""
        pairs = self.compute_gradients(loss, var_list, grad_loss=grad_loss)
        if all(gradient is None for gradient, _ in pairs):
            names = ", ".join(f"`{variable.key}`" for _, variable in pairs[:4]) or "none: no variable is trainable"
            raise GraphError(
                f"{loss!r} does not depend on any of the variables ({names})",
                here(),
                hint="compute the loss from a tf.Variable; a value that is fed or cast to integers has no gradient",
            )
        return self.apply_gradients(pairs, global_step, name)

    def compute_gradients(
        self,
        loss: Any,
        var_list: Any = None,
        gate_gradients: Any = None,
        aggregation_method: Any = None,
        colocate_gradients_with_ops: bool = False,
        grad_loss: Any = None,
    ) -> list[tuple[Any, Variable]]:
        """(gradient, variable) pairs, by default of all trainable variables; None where there is no gradient."""
        if not is_tensor_like(loss) or isinstance(loss, Operation):
            raise TypeMismatch(f"the loss must be a tensor, not {brief(loss)}", here(), hint="pass a tensor")
        with writing(loss) as graph, graph.as_default():
            chosen = trainable_variables() if var_list is None else var_list
            variables = list(chosen) if isinstance(chosen, (list, tuple)) else [chosen]
            for variable in variables:
                _check_variable(variable)
            dense = gradients(loss, variables, grad_loss) if variables else []
            return list(zip(dense, variables, strict=True))

    def apply_gradients(
        self, grads_and_vars: Pairs, global_step: Variable | None = None, name: str | None = None
    ) -> Operation:
        """An operation that updates each variable by its gradient, and then adds 1 to `global_step`."""
        pairs = [(gradient, variable) for gradient, variable in grads_and_vars if gradient is not None]
        for _, variable in pairs:
            _check_variable(variable)
        if not pairs:
            raise GraphError(
                "there are no gradients to apply",
                here(),
                hint="pass (gradient, variable) pairs, as compute_gradients returns them",
            )
        with writing(*(variable for _, variable in pairs)) as graph, graph.as_default():
            self._prepare(graph)
            done = [made for gradient, variable in pairs for made in self._update(as_tensor(gradient), variable)]
            done += self._finish(done)
            if global_step is not None:
                with control_dependencies(done):
                    done = [global_step.assign_add(1)]
            return group(*done, name=name or self.name)

    def get_name(self) -> str:
        """The name that it was given."""
        return self.name

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """The slot of a variable, such as "momentum"; None if there is none."""
        return self._slots.get((var, name))

    def get_slot_names(self) -> list[str]:
        """The names of its slots."""
        return sorted({name for _, name in self._slots})

    def variables(self) -> list[Variable]:
        """Its slots: the state that it keeps for each variable."""
        return list(self._slots.values())

    # -- for the rules -------------------------------------------------------------------------------------

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        """The update rule of a variable with its settings, and the slots that it takes with their initial values."""
        raise NotImplementedError

    def _update(self, gradient: Tensor, variable: Variable) -> list[Tensor]:
        (rule, settings), initial = self._rule(variable)
        slots = [self._slot(variable, name, first) for name, first in initial.items()]
        steps = apply(rule, [gradient, *slots, *settings])
        return [held.updated("add", step) for held, step in zip([variable, *slots], steps, strict=True)]

    def _prepare(self, graph: Graph) -> None:
        """Write the nodes that all updates share."""

    def _finish(self, done: Sequence[Tensor]) -> list[Tensor]:
        """Write the nodes that follow all updates."""
        return []

    def _slot(self, variable: Variable, name: str, initial: float = 0.0) -> Any:
        if (variable, name) not in self._slots:
            shape = [d for d in variable.type.shape if isinstance(d, int)]
            if len(shape) < variable.type.rank:
                raise GraphError(
                    f"{self.name} needs to know the shape of variable `{variable.key}`",
                    here(),
                    hint="create the variable without shape= and validate_shape=False",
                )
            filled = np.full(shape, initial, variable.dtype.numpy)
            with control_dependencies(None):
                slot = Variable(filled, trainable=False, name=f"{variable.key}/{self.name}/{name}")
            self._slots[variable, name] = slot
        return self._slots[variable, name]


def _check_variable(variable: Any) -> None:
    if not isinstance(variable, Variable):
        raise TypeMismatch(f"{brief(variable)} is not a variable", here(), hint="only a tf.Variable can be updated")


# Arguments are those of TensorFlow, in its order. `use_locking` changes nothing: a run updates after all reads.


@dataclass(eq=False, repr=False)
class GradientDescentOptimizer(Optimizer):
    """`v -= learning_rate * gradient`."""

    learning_rate: Any
    use_locking: bool = False
    name: str = "GradientDescent"

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        return (update_rules.sgd, (self.learning_rate,)), {}


@dataclass(eq=False, repr=False)
class MomentumOptimizer(Optimizer):
    """`a = momentum * a + gradient; v -= learning_rate * a`, or a look ahead with `use_nesterov`."""

    learning_rate: Any
    momentum: Any
    use_locking: bool = False
    name: str = "Momentum"
    use_nesterov: bool = False

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        settings, slots = (self.learning_rate, 1 - self.momentum), {"momentum": 0.0}
        if not self.use_nesterov:
            return (update_rules.momentum, settings), slots
        return (update_rules.nesterov, (*settings, self.momentum)), slots


@dataclass(eq=False, repr=False)
class AdagradOptimizer(Optimizer):
    """`a += gradient**2; v -= learning_rate * gradient / sqrt(a)`."""

    learning_rate: Any
    initial_accumulator_value: float = 0.1
    use_locking: bool = False
    name: str = "Adagrad"

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        update = update_rules.adagrad, (self.learning_rate, 0.0)
        return update, {"accumulator": self.initial_accumulator_value}


def _adadelta(g: Any, squares: Any, steps: Any, rate: Any, fresh: Any, epsilon: Any) -> tuple[Any, Any, Any]:
    to_squares = fresh * (g * g - squares)
    step = g * functions.sqrt(steps + epsilon) / functions.sqrt(squares + to_squares + epsilon)
    return -rate * step, to_squares, fresh * (step * step - steps)


@dataclass(eq=False, repr=False)
class AdadeltaOptimizer(Optimizer):
    """Adadelta (Zeiler 2012): gradients over their running root mean square, times that of the steps."""

    learning_rate: Any = 0.001
    rho: float = 0.95
    epsilon: float = 1e-8
    use_locking: bool = False
    name: str = "Adadelta"

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        return (_adadelta, (self.learning_rate, 1 - self.rho, self.epsilon)), {"accum": 0.0, "accum_update": 0.0}


@dataclass(eq=False, repr=False)
class RMSPropOptimizer(Optimizer):
    """Gradients divided by their running root mean square; with `centered`, by their running standard deviation."""

    learning_rate: Any
    decay: float = 0.9
    momentum: float = 0.0
    epsilon: float = 1e-10
    use_locking: bool = False
    centered: bool = False
    name: str = "RMSProp"

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        settings = (self.learning_rate, 1 - self.decay, self.epsilon, 1 - self.momentum)
        slots = {"rms": 1.0, "momentum": 0.0}
        if not self.centered:
            return (update_rules.rmsprop_inside, settings), slots
        return (update_rules.rmsprop_centered, settings), {**slots, "mg": 0.0}


@dataclass(eq=False, repr=False)
class AdamOptimizer(Optimizer):
    """Adam (Kingma and Ba): running means of the gradient and of its square, corrected for their start at zero."""

    learning_rate: Any = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    use_locking: bool = False
    name: str = "Adam"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._powers: dict[Graph, list[Variable]] = {}  # of beta1 and beta2

    def variables(self) -> list[Variable]:
        """Its slots, and the powers of beta1 and beta2."""
        return [*super().variables(), *(power for pair in self._powers.values() for power in pair)]

    def _prepare(self, graph: Graph) -> None:
        if graph not in self._powers:
            with control_dependencies(None):
                self._powers[graph] = [
                    Variable(np.float64(beta), trainable=False, name=f"{self.name}/beta{k}_power")
                    for k, beta in ((1, self.beta1), (2, self.beta2))
                ]

    def _rule(self, variable: Variable) -> tuple[Update, Mapping[str, float]]:
        power1, power2 = self._powers[variable.graph]
        correction = cast(sqrt(subtract(1.0, power2)) / subtract(1.0, power1), variable.dtype)
        settings = (correction * self.learning_rate, 1 - self.beta1, 1 - self.beta2, self.epsilon)
        return (update_rules.adam, settings), {"m": 0.0, "v": 0.0}

    def _finish(self, done: Sequence[Tensor]) -> list[Tensor]:
        with control_dependencies(list(done)):
            powers, betas = self._powers[done[0].graph], (self.beta1, self.beta2)
            return [power.updated("multiply", beta) for power, beta in zip(powers, betas, strict=True)]


# -- counting steps ----------------------------------------------------------------------------------------

_STEP = "global_step"


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """The variable that counts steps, if the graph has one."""
    variables = (get_default_graph() if graph is None else graph).variables
    return next((variable for variable in variables if variable.key == _STEP), None)


def create_global_step(graph: Graph | None = None) -> Variable:
    """A variable that counts steps, for `minimize(loss, global_step=...)`."""
    if get_global_step(graph) is not None:
        raise GraphError("the graph already has a global step", here(), hint="use tf.train.get_or_create_global_step()")
    with (get_default_graph() if graph is None else graph).as_default():
        return Variable(np.asarray(0, i64.numpy), trainable=False, name=_STEP)


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """The variable that counts steps, created if there is none."""
    known = get_global_step(graph)
    return create_global_step(graph) if known is None else known


def global_step(sess: Any, global_step_tensor: Variable) -> int:
    """How many steps there were, in a session."""
    return int(sess.run(global_step_tensor))


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"train.{name}", [f"train.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)


_GUARDED = {name for module in (averages, clusters, decay, saver) for name in module.__all__}
boundaries(globals(), [name for name in __all__ if name not in _GUARDED])
