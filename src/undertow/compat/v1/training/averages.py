"""`tf.train.ExponentialMovingAverage`: shadows of variables that follow them slowly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.compat.v1.array import cast, zeros
from undertow.compat.v1.control import control_dependencies, group
from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable, global_variables, trainable_variables
from undertow.compat.v1.tensor import Operation, apply, as_tensor
from undertow.errors import GraphError, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.tracebacks import guarded

__all__ = ["ExponentialMovingAverage"]


@guarded
class ExponentialMovingAverage:
    """average = decay * average + (1 - decay) * variable; with `num_updates`, decaying faster in the first updates."""

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[Any, Variable] = {}
        self._counts: dict[Any, Variable] = {}  # how often an average that starts at zero was updated

    def apply(self, var_list: Sequence[Any] | None = None) -> Operation:
        """An operation that updates the averages, made at the first call: of variables, or of tensors."""
        values = list(trainable_variables() if var_list is None else var_list)
        if not values:
            raise GraphError("there are no variables to average", here(), hint="pass var_list=[v]")
        for value in values:
            if as_tensor(value).dtype.kind != "float":
                raise TypeMismatch(f"{value!r} has no average: it is not a float", here(), hint="leave it out")
            if value not in self._averages:
                self._make(value)
        return group(*(self._updated(value) for value in values), name=self._name)

    def _make(self, value: Any) -> None:
        name = self.average_name(value)
        # A variable's average starts at its first value, a tensor's at zero, which is made up for.
        starts_at_zero = self._zero_debias or not isinstance(value, Variable)
        with control_dependencies(None):
            start = zeros(as_tensor(value).shape, value.dtype) if starts_at_zero else value.initialized_value()
            self._averages[value] = average = Variable(start, trainable=False, name=name)
            if starts_at_zero:
                self._counts[value] = Variable(0.0, trainable=False, name=f"{name}/local_step", dtype=value.dtype)
        get_default_graph().add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, average)

    def _share(self, value: Any) -> Any:
        """1 - decay."""
        if self._num_updates is None:
            return apply(lambda d: 1 - d, [as_tensor(self._decay)])
        count = cast(self._num_updates, value.dtype)
        return apply(lambda n, d: 1 - functions.minimum(d, (1 + n) / (10 + n)), [count, self._decay])

    def _updated(self, value: Any) -> Any:
        average, count = self._averages[value], self._counts.get(value)
        share = cast(self._share(value), value.dtype)
        if count is None:
            return average.assign_sub(apply(lambda a, v, s: (a - v) * s, [average, value, share]))
        # The unbiased average after n updates weighs the newest value by (1 - d) / (1 - d ** n).
        number = count.assign_add(1)
        weight = apply(lambda s, n: s / (1 - functions.pow(1 - s, n)), [share, number])
        return average.assign_sub(apply(lambda a, v, w: (a - v) * w, [average, value, weight]))

    def average(self, var: Any) -> Variable | None:
        """The variable that holds an average; None if there is none."""
        return self._averages.get(var)

    def average_name(self, var: Any) -> str:
        """The name of that variable."""
        return f"{var.op.name}/{self._name}"

    def variables_to_restore(self, moving_avg_variables: Any = None) -> dict[str, Variable]:
        """For `tf.train.Saver`: variables by the names of their averages, and those that have none by their own."""
        averaged = trainable_variables() if moving_avg_variables is None else moving_avg_variables
        restored = {self.average_name(v): v for v in averaged}
        names = set(restored)
        taken = {*averaged, *self._averages.values()}
        return {**restored, **{v.op.name: v for v in global_variables() if v not in taken and v.op.name not in names}}
