"""A replica: parameters and what the optimizer remembers, as every worker has them, and how a step changes them.

All replicas begin with the same bits and are changed in the same way, so their bits stay the same. That of the driver
is the committed one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.api import optim
from undertow.api.params import is_leaf, refuse_objects
from undertow.errors import TypeMismatch, UndertowError, brief
from undertow.frontend.values import tree
from undertow.frontend.values.rows import IndexedRows
from undertow.frontend.values.state import Variable
from undertow.types import is_integer

Array = npt.NDArray[Any]
Json = Any

OPTIMIZERS: dict[str, type[optim.Optimizer]] = {
    kind.__name__: kind for kind in (optim.SGD, optim.Adagrad, optim.Adam, optim.RMSprop)
}


@dataclass(frozen=True)
class Rule:
    """How gradients change parameters. Everything but the learning rate, which is of a step."""

    optimizer: optim.Optimizer
    clip: float | None = None  # the largest norm of all gradients together
    decay: float = 0.0  # so many times the parameter is added to its gradient,
    decayed: tuple[int, ...] = ()  # for these, by their numbers, where the gradient is an array
    slow: tuple[int, ...] = ()  # these have a learning rate of their own

    def to_json(self) -> Json:
        """For a message."""
        row = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "optimizer"}
        settings = asdict(self.optimizer)
        settings.pop("learning_rate")
        for name, value in settings.items():
            if not isinstance(value, (bool, int, float)) and not is_integer(value):
                raise UndertowError(
                    f"{name} of the optimizer is {brief(value)}, which workers cannot be sent",
                    hint="only the learning rate may be anything but a number",
                )
        return {**row, "optimizer": [type(self.optimizer).__name__, settings]}

    @staticmethod
    def from_json(row: Json) -> Rule:
        """What `to_json` wrote."""
        name, settings = row["optimizer"]
        lists = {key: tuple(row[key]) for key in ("decayed", "slow")}
        return Rule(**{**row, **lists, "optimizer": OPTIMIZERS[name](0.0, **settings)})


def check_optimizer(optimizer: Any) -> None:
    """Refuse what workers do not have."""
    if type(optimizer) not in OPTIMIZERS.values():
        raise TypeMismatch(
            f"workers have no {type(optimizer).__name__}: they are sent no code",
            hint=f"use one of ut.optim: {', '.join(OPTIMIZERS)}",
        )


@dataclass(eq=False)
class Replica:
    """Arrays in the order of the leaves of the parameters. An update writes over them."""

    params: list[Array]
    slots: dict[str, list[Array]] = field(default_factory=dict)
    updates: int = 0
    step: int = 0  # steps of training, each of which makes one update

    @staticmethod
    def of(params: Any, optimizer: optim.Optimizer, state: optim.State | None = None) -> Replica:
        """A replica of these parameters, copied, before the first update or in this state."""
        refuse_objects(params, tree.flatten(params, is_leaf)[1])
        leaves = leaves_of(params)
        state = optimizer.init(leaves) if state is None else state
        slots = {name: leaves_of(state.slots.get(name)) for name in optimizer.slots}
        for name, values in slots.items():
            fits = len(values) == len(leaves) and all(
                slot.shape == leaf.shape for slot, leaf in zip(values, leaves, strict=True) if leaf.dtype.kind == "f"
            )
            if not fits:
                raise TypeMismatch(
                    f"the slots `{name}` do not fit the parameters", hint="create the state with opt.init(params)"
                )
        return Replica(leaves, slots, int(state.step), int(state.step))

    def update(self, rule: Rule, grads: Sequence[Any], rate: Any, slow_rate: Any = None) -> None:
        """One step: the gradients of all parameters, None where there is none."""
        with np.errstate(all="ignore"):  # an overflow here shows in the next loss
            grads = self._pulled(rule, grads)
            if rule.clip is not None:
                grads = optim.clip_by_norm(list(grads), rule.clip)
            others = [number for number in range(len(self.params)) if number not in rule.slow]
            for numbers, its_rate in ((rule.slow, slow_rate), (others, rate)):
                if numbers:
                    self._apply(rule.optimizer, numbers, grads, its_rate)
        self.updates += 1
        self.step += 1

    def _pulled(self, rule: Rule, grads: Sequence[Any]) -> list[Any]:
        pulled = list(grads)
        for number in rule.decayed if rule.decay else ():
            g = pulled[number]
            if isinstance(g, np.ndarray):
                pulled[number] = g + g.dtype.type(rule.decay) * self.params[number]
        return pulled

    def _apply(self, optimizer: optim.Optimizer, numbers: Sequence[int], grads: Sequence[Any], rate: Any) -> None:
        slots = {name: [values[k] for k in numbers] for name, values in self.slots.items()}
        params, state = optimizer.update(
            [grads[k] for k in numbers],
            optim.State(np.int64(self.updates), slots),
            [self.params[k] for k in numbers],
            rate,
            donate=True,
        )
        for place, number in enumerate(numbers):
            self.params[number] = params[place]
            for name, values in self.slots.items():
                values[number] = state.slots[name][place]

    def arrays(self) -> list[Array]:
        """All arrays: parameters, then slots in the order of their names."""
        return [*self.params, *(value for name in sorted(self.slots) for value in self.slots[name])]

    def header(self) -> Json:
        """What `from_arrays` needs besides the arrays."""
        return {"slots": sorted(self.slots), "updates": self.updates, "step": self.step}

    @staticmethod
    def from_arrays(header: Json, arrays: Sequence[Array]) -> Replica:
        """A replica of these arrays, copied."""
        count = len(arrays) // (1 + len(header["slots"]))
        groups = [[np.array(x) for x in arrays[k : k + count]] for k in range(0, len(arrays), count or 1)]
        slots = dict(zip(header["slots"], groups[1:], strict=True))
        return Replica(groups[0] if groups else [], slots, header["updates"], header["step"])


def leaves_of(values: Any) -> list[Array]:
    """The leaves of a container as arrays of their own."""
    leaves, _ = tree.flatten(values, is_leaf)
    for leaf in leaves:
        if isinstance(leaf, (Variable, IndexedRows)):
            raise TypeMismatch(
                f"the parameters hold {brief(leaf)}: workers take arrays",
                hint="pass variable.value, and let the loss take its parameters as an argument",
            )
    return [np.array(leaf, order="C", subok=False) for leaf in leaves]
