"""Optimizers: how gradients change parameters. Settings are immutable; the state is separate.

Functional: `state = opt.init(params)`, then `params, state = opt.update(grads, state, params)`, on NumPy values or
inside a captured function. With variables: `updater = Updater(opt, variables)`, then `updater.apply(grads)`.
The arithmetic is in `update_rules`: a class here chooses a rule and computes its settings. On NumPy arrays each
parameter takes one pass in the core; `update(..., donate=True)` writes over the old arrays.
Gradients may be `IndexedRows`: then only those rows of the parameter and its slots change; rows
that occur several times are summed first. Decay applies to a row only when that row is touched.
The defaults are those of PyTorch.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from undertow.api import one_pass, update_rules
from undertow.api.params import gradients, is_leaf, like, paired, refuse_objects, type_at, variables_in
from undertow.api.update_rules import Update
from undertow.elsewhere import unknown_name
from undertow.errors import TypeMismatch, UndertowError, brief
from undertow.frontend.functions.array import scatter_add, take
from undertow.frontend.functions.public import maximum, multiply, sqrt, square
from undertow.frontend.functions.reduction import sum
from undertow.frontend.values import tree
from undertow.frontend.values.operands import as_operand, convert, type_of
from undertow.frontend.values.rows import IndexedRows
from undertow.frontend.values.state import Variable, transaction
from undertow.frontend.values.traced import Traced, context
from undertow.ops.state import Own
from undertow.tracebacks import boundaries, boundary
from undertow.types import f64, promote

__all__ = ["SGD", "Adagrad", "Adam", "Optimizer", "RMSprop", "State", "Updater", "clip_by_norm", "global_norm"]

Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True, slots=True)
class State:
    """The state of an optimizer: the number of updates, and slots, each with the structure of the parameters."""

    step: Any
    slots: dict[str, Any]


@dataclass(frozen=True)
class Optimizer(ABC):
    """The base of all optimizers: `init` and `update`.

    The learning rate is a number, a variable, or a function of the number of updates so far (use `ut.where`, or
    decorate it with `@ut.function`); `update` may override it.
    """

    learning_rate: Any

    __undertow_static__: ClassVar[bool] = True  # settings, not a container of values

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in _BELOW:
                _check(field.name, getattr(self, field.name), _BELOW[field.name])

    @property
    @abstractmethod
    def slots(self) -> Mapping[str, float]:
        """The slots of each parameter, and their initial values."""

    @abstractmethod
    def rule(self, rate: Any, count: Any) -> Update:
        """The update rule, for slots in the order of `slots`, and its settings in update number `count`."""

    def init(self, params: Any) -> State:
        """The state before the first update of parameters like these."""
        leaves, structure = tree.flatten(params, is_leaf)
        refuse_objects(params, structure)
        slots = {
            name: tree.unflatten(structure, [like(leaf, first) for leaf in leaves])
            for name, first in self.slots.items()
        }
        return State(np.int64(0), slots)

    def update(
        self, grads: Any, state: State, params: Any, learning_rate: Any = None, *, donate: bool = False
    ) -> tuple[Any, State]:
        """The parameters and the state after one update. A gradient of None leaves its parameter as it is.

        With `donate`, the arrays of `state` and `params` are consumed: the new ones may reuse their memory, and
        the old ones must not be used afterwards. Use it in loops that keep only the newest values.
        """
        if not isinstance(state, State):
            raise _no_slots(next(iter(self.slots), "step"))
        leaves, structure = tree.flatten(params, is_leaf)
        rate, count = self._rate(learning_rate, state.step), state.step + 1
        parts = (grads, *(state.slots.get(name) for name in self.slots))
        columns: list[Any] = [tree.along(structure, part) for part in parts]
        updated, update = None, self.rule(rate, count)
        if None not in columns:
            arrays: list[Sequence[Any]] = list(zip(leaves, *columns[1:], strict=True))
            updated = one_pass.update(update, columns[0], arrays, donate)
            if updated is arrays:
                return params, State(count, state.slots)
        if updated is None:
            with np.errstate(all="ignore"):
                gradients_of_leaves = [pair.gradient for pair in paired(params, grads)]
                slots = [_slot_leaves(state, name, structure) for name in self.slots]
                updated = self._updated(gradients_of_leaves, list(zip(leaves, *slots, strict=True)), update, donate)
        new, *rest = (tree.unflatten(structure, [values[k] for values in updated]) for k in range(len(self.slots) + 1))
        return new, State(count, dict(zip(self.slots, rest, strict=True)))

    def _updated(
        self, grads: Sequence[Any], arrays: list[Sequence[Any]], update: Update, donate: bool
    ) -> list[Sequence[Any]]:
        """Each parameter with its slots after an update: by the core if it can, else by operators on arrays."""
        pairs = list(zip(grads, arrays, strict=True))
        fitting = [g is not None and one_pass.fits(update, g, values) for g, values in pairs]
        # Operators first: donated arrays are overwritten, and may share memory with the others.
        updated = [
            values if fits or g is None else self._by_operators(g, values, update)
            for fits, (g, values) in zip(fitting, pairs, strict=True)
        ]
        if any(fitting):
            gradients_for_core, places = (
                list(itertools.compress(grads, fitting)),
                list(itertools.compress(arrays, fitting)),
            )
            done = iter(one_pass.update(update, gradients_for_core, places, donate) or ())
            updated = [next(done) if fits else values for fits, values in zip(fitting, updated, strict=True)]
        return updated

    def _by_operators(self, gradient: Any, arrays: Sequence[Any], update: Update) -> list[Any]:
        g, rows = self._rows_of(gradient)
        values = [as_operand(value) for value in arrays]
        slots = values[1:] if rows is None else [take(value, rows, axis=0) for value in values[1:]]
        steps = self._steps(g, slots, update)
        if rows is None:
            return [value + step for value, step in zip(values, steps, strict=True)]
        return [scatter_add(value, rows, step) for value, step in zip(values, steps, strict=True)]

    def _rows_of(self, gradient: Any) -> tuple[Any, Any]:
        """A gradient as an array, and its row numbers; None means all rows."""
        if not isinstance(gradient, IndexedRows):
            return gradient, None
        # Without slots the update is linear, so repeated rows simply add up.
        sparse = gradient.coalesce() if self.slots else gradient
        return sparse.rows, sparse.indices

    def _steps(self, g: Any, slots: Sequence[Any], update: Update) -> tuple[Any, ...]:
        """The increment of a parameter, then those of its slots."""
        (rule, settings), dtype = update, type_of(g).dtype
        return rule(g, *slots, *(convert(as_operand(setting), dtype) for setting in settings))

    def _rate(self, learning_rate: Any, step: Any) -> Any:
        chosen = self.learning_rate if learning_rate is None else learning_rate
        if type(chosen) is float:
            return np.float64(chosen)
        rate = as_operand(chosen(step) if callable(chosen) else chosen)
        if type_of(rate).rank:
            raise TypeMismatch(
                f"the learning rate must be a scalar, not {type_of(rate)}", hint="one rate applies to all parameters"
            )
        return rate


def _kindly(cls: Kind) -> Kind:
    """The same class, whose error for a wrong argument lists the right ones."""
    make: Any = vars(cls)["__init__"]
    signature = inspect.signature(make)
    known = [p.replace(annotation=p.empty) for p in signature.parameters.values()][1:]
    takes = signature.replace(parameters=known, return_annotation=signature.empty)

    @functools.wraps(make)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            signature.bind(self, *args, **kwargs)
        except TypeError as fault:
            strange = [f"unknown argument `{name}`" for name in kwargs if name not in signature.parameters]
            what = strange[0] if strange else str(fault)
            raise TypeMismatch(f"{cls.__name__}: {what}", hint=f"write {cls.__name__}{takes}") from None
        make(self, *args, **kwargs)

    setattr(cls, "__init__", init)  # noqa: B010  (to type checkers the class stays what it is)
    return cls


@_kindly
@dataclass(frozen=True)
class SGD(Optimizer):
    """Steps against the gradient: x -= rate * g; with momentum, v = momentum * v + g and x -= rate * v.

    With `nesterov`, x -= rate * (g + momentum * v).

    >>> opt = SGD(0.5)
    >>> params, state = opt.update({"w": np.array([2.0, 4.0])}, opt.init({"w": np.zeros(2)}), {"w": np.zeros(2)})
    >>> params, int(state.step)
    ({'w': array([-1., -2.])}, 1)
    """

    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nesterov and not self.momentum:
            raise UndertowError("nesterov=True needs a momentum", hint="write e.g. momentum=0.9")

    @property
    def slots(self) -> Mapping[str, float]:
        return {"momentum": 0.0} if self.momentum else {}

    def rule(self, rate: Any, count: Any) -> Update:
        if not self.momentum:
            return update_rules.sgd, (rate,)
        if not self.nesterov:
            return update_rules.momentum, (rate, 1 - self.momentum)
        return update_rules.nesterov, (rate, 1 - self.momentum, self.momentum)


@_kindly
@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squares: s += g * g, x -= rate * g / (sqrt(s) + epsilon)."""

    initial: float = 0.0
    epsilon: float = 1e-10

    @property
    def slots(self) -> Mapping[str, float]:
        return {"squares": self.initial}

    def rule(self, rate: Any, count: Any) -> Update:
        return update_rules.adagrad, (rate, self.epsilon)


@_kindly
@dataclass(frozen=True)
class RMSprop(Optimizer):
    """Steps divided by the root of a decaying mean of squares: s = decay * s + (1 - decay) * g * g.

    x -= rate * g / (sqrt(s) + epsilon); with momentum that quotient takes the place of the gradient in `SGD`.
    """

    decay: float = 0.99
    epsilon: float = 1e-8
    momentum: float = 0.0

    @property
    def slots(self) -> Mapping[str, float]:
        return {"squares": 0.0, "momentum": 0.0} if self.momentum else {"squares": 0.0}

    def rule(self, rate: Any, count: Any) -> Update:
        settings = (rate, 1 - self.decay, self.epsilon)
        if not self.momentum:
            return update_rules.rmsprop, settings
        return update_rules.rmsprop_momentum, (*settings, 1 - self.momentum)


@_kindly
@dataclass(frozen=True)
class Adam(Optimizer):
    """Decaying means of gradients and squares: m = beta1 * m + (1 - beta1) * g, v = beta2 * v + (1 - beta2) * g * g.

    In update t, x -= rate * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + epsilon).
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    @property
    def slots(self) -> Mapping[str, float]:
        return {"mean": 0.0, "squares": 0.0}

    def rule(self, rate: Any, count: Any) -> Update:
        # A number beside an integer is an f64, whatever the parameters are; 1 - beta**t would lose digits in f32.
        t: Any = count if isinstance(count, Traced) else float(count)
        root = (1 - self.beta2**t) ** 0.5
        rate = rate * (root / (1 - self.beta1**t))
        return update_rules.adam, (rate, 1 - self.beta1, 1 - self.beta2, self.epsilon * root)


# Settings are numbers from 0 to below these.
_BELOW = {
    **dict.fromkeys(("learning_rate", "initial", "epsilon"), np.inf),
    **dict.fromkeys(("momentum", "decay", "beta1", "beta2"), 1),
}


def _check(name: str, value: Any, below: float) -> None:
    """Check the range of a setting that is a Python number; other values are checked when they are used."""
    if isinstance(value, (str, bytes)) or value is None:
        raise UndertowError(f"{name} must be a number, not {brief(value)}", hint=f"write e.g. {name}=0.01")
    if isinstance(value, (bool, int, float)) and not 0 <= value < below:
        wanted = f"from 0 to below {below}" if below < np.inf else "finite, and at least 0"
        raise UndertowError(f"{name} is {brief(value)}", hint=f"it must be {wanted}")


def _slot_leaves(state: State, name: str, structure: tree.Structure) -> list[Any]:
    """The slots of this name, one per parameter."""
    if name not in state.slots:
        raise _no_slots(name)
    leaves, shape = tree.flatten(state.slots[name], is_leaf)
    if shape != structure:
        raise TypeMismatch(
            f"the slots `{name}` do not have the structure of the parameters",
            hint="create the state with opt.init(params)",
        )
    return leaves


def _no_slots(name: str) -> TypeMismatch:
    return TypeMismatch(
        f"the state has no slots `{name}`", hint="create it with opt.init(params) of the optimizer that uses it"
    )


# --------------------------------------------------------------------------------------------------------------
# Variables


class Updater:
    """An optimizer for variables: `apply(grads)` updates them, inside a captured function or outside.

    `variables` is any container of variables. The slots are variables too, in the same structure; `step` counts the
    updates. If the run fails, none of them changes. In a graph, rows of `IndexedRows` are read and assigned one by
    one: no operator takes the whole table.

    >>> w = Variable(np.ones(3), name="w")
    >>> updater = Updater(SGD(0.5, momentum=0.9), {"w": w})
    >>> updater.apply({"w": IndexedRows([0], [2.0], shape=(3,))})
    >>> w, updater.slots["momentum"]["w"]
    (<Variable w: f64[3] = [0. 1. 1.]>, <Variable w.momentum: f64[3] = [2. 0. 0.]>)
    """

    def __init__(self, optimizer: Optimizer, variables: Any) -> None:
        self.optimizer = optimizer
        self.variables = variables
        self._flat, structure = variables_in(variables)
        self.step = Variable(0, name="step")
        self._slots = [
            {
                name: Variable(like(variable.value, first), shape=variable.type.shape, name=f"{variable.name}.{name}")
                for name, first in optimizer.slots.items()
            }
            for variable in self._flat
        ]
        self.slots = {name: tree.unflatten(structure, [row[name] for row in self._slots]) for name in optimizer.slots}
        every = [(variable, *slots.values()) for variable, slots in zip(self._flat, self._slots, strict=True)]
        # Keys of a transaction, since variables may share a name.
        self._keys = [[f"{number} {k}" for k in range(len(row))] for number, row in enumerate(every)]
        pairs = (pair for keys, row in zip(self._keys, every, strict=True) for pair in zip(keys, row, strict=True))
        self._stored = {"step": self.step, **dict(pairs)}

    def __repr__(self) -> str:
        names = ", ".join(variable.name for variable in self._flat)
        return f"<Updater of {names} by {self.optimizer}>"

    def apply(self, grads: Any, learning_rate: Any = None) -> None:
        """Update the variables. A gradient of None leaves its variable as it is."""
        current = context(tree.flatten(grads, is_leaf)[0])
        with np.errstate(all="ignore"):
            if current is not None and current.builder is not None:
                self._apply_in_graph(grads, learning_rate)
            else:
                self._apply_now(grads, learning_rate)

    def _apply_in_graph(self, grads: Any, learning_rate: Any) -> None:
        optimizer, pairs = self.optimizer, paired(self.variables, grads)
        rate = optimizer._rate(learning_rate, self.step.read())
        update = optimizer.rule(rate, self.step.assign_add(1))
        for pair, slots in zip(pairs, self._slots, strict=True):
            if pair.gradient is None:
                continue
            g, rows = optimizer._rows_of(pair.gradient)
            slot_values = [slot.read() if rows is None else slot.take(rows) for slot in slots.values()]
            steps = optimizer._steps(g, slot_values, update)
            for variable, step in zip((pair.param, *slots.values()), steps, strict=True):
                variable.assign_add(step) if rows is None else variable.assign_rows_add(rows, step)

    def _apply_now(self, grads: Any, learning_rate: Any) -> None:
        gradients_of_variables = [pair.gradient for pair in paired(self.variables, grads)]

        def update(store: dict[str, Any]) -> None:
            rate = self.optimizer._rate(learning_rate, store["step"])
            store["step"] = store["step"] + 1
            values: list[Sequence[Any]] = [[store[key] for key in keys] for keys in self._keys]
            updated = self.optimizer._updated(
                gradients_of_variables, values, self.optimizer.rule(rate, store["step"]), donate=False
            )
            # The new arrays are referenced only here, and committed arrays are never written: no copies are needed.
            for keys, after in zip(self._keys, updated, strict=True):
                owned = [x.view(Own) if isinstance(x, np.ndarray) else x for x in after]
                store.update(zip(keys, owned, strict=True))

        transaction(self._stored, self._stored, update)


# --------------------------------------------------------------------------------------------------------------
# Norms


def _norm(leaves: list[Any]) -> Any:
    """In f64, so that squares neither overflow nor underflow."""
    total: Any = np.float64(0)
    for leaf in leaves:
        if leaf is None:
            continue
        squares = one_pass.square_sum(leaf)
        if squares is not None:
            total = total + squares
        else:
            value = leaf.coalesce().rows if isinstance(leaf, IndexedRows) else as_operand(leaf)
            total = total + sum(square(convert(value, f64)))
    return sqrt(total)


def global_norm(grads: Any) -> Any:
    """The L2 norm of a container of gradients; sparse rows count as the dense array they represent.

    >>> global_norm({"w": np.array([3.0, 0.0]), "b": 4.0})
    np.float64(5.0)
    """
    _, leaves, _ = gradients(grads)
    dtypes = [type_at(leaf).dtype for leaf in leaves if leaf is not None]
    with np.errstate(all="ignore"):
        return convert(_norm(leaves), functools.reduce(promote, dtypes) if dtypes else f64)


def clip_by_norm(grads: Any, max_norm: Any) -> Any:
    """The gradients, scaled down together if their `global_norm` exceeds `max_norm`.

    If one of them is nan, all become nan.

    >>> clip_by_norm([np.array([3.0, 4.0]), None], 1.0)
    [array([0.6, 0.8]), None]
    """
    if isinstance(max_norm, (int, float)) and not max_norm > 0:
        raise UndertowError(f"max_norm is {brief(max_norm)}", hint="it must be larger than 0")
    _, leaves, structure = gradients(grads)
    with np.errstate(all="ignore"):
        most = convert(as_operand(max_norm), f64)
        length = _norm(leaves)
        if not isinstance(length, Traced) and not isinstance(most, Traced) and length <= most:
            kept = (type(None), np.ndarray, IndexedRows)
            same = [leaf if isinstance(leaf, kept) else as_operand(leaf) for leaf in leaves]
            return tree.unflatten(structure, same)  # most steps of a training end here
        scale = most / maximum(length, most)
        return tree.unflatten(structure, [None if leaf is None else _scaled(leaf, scale) for leaf in leaves])


def _scaled(leaf: Any, scale: Any) -> Any:
    if isinstance(leaf, np.ndarray) and not isinstance(scale, Traced):
        return leaf * leaf.dtype.type(scale)
    if isinstance(leaf, IndexedRows):
        return leaf * convert(scale, leaf.dtype)
    return multiply(as_operand(leaf), convert(scale, type_of(as_operand(leaf)).dtype))


_NAMED_ELSEWHERE = {
    **dict.fromkeys(("sgd", "GradientDescentOptimizer", "Momentum"), "write ut.optim.SGD(learning_rate, momentum=0.9)"),
    **dict.fromkeys(("adam", "AdamOptimizer", "AdamW"), "write ut.optim.Adam(learning_rate)"),
    **dict.fromkeys(("clip_by_global_norm", "clip_grad_norm_"), "write ut.optim.clip_by_norm(grads, norm)"),
    **dict.fromkeys(
        ("lr_scheduler", "schedules", "cosine_decay"), "learning_rate may be a function of the number of updates"
    ),
    "apply_updates": "opt.update returns the new parameters: params, state = opt.update(grads, state, params)",
}


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    @boundary
    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.optim", name, __all__, _NAMED_ELSEWHERE)


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__)
