"""`tf.nn.rnn_cell`: cells of recurrent networks, and wrappers around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from undertow.compat.v1.array import concat, random_uniform, split, zeros
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.scopes import variable_scope
from undertow.compat.v1.layers.base import Layer, known_size
from undertow.compat.v1.math import matmul, sigmoid, tanh
from undertow.compat.v1.missing import explain
from undertow.compat.v1.neural.activations import bias_add, dropout
from undertow.compat.v1.place import here
from undertow.compat.v1.state import constant_initializer, zeros_initializer
from undertow.compat.v1.tensor import apply, as_tensor, is_tensor_like
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.tracebacks import boundaries

__all__ = [
    "BasicLSTMCell", "BasicRNNCell", "DeviceWrapper", "DropoutWrapper", "GRUCell", "LSTMCell", "LSTMStateTuple",
    "MultiRNNCell", "RNNCell", "ResidualWrapper",
]  # fmt: skip


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM: its memory c, and its output h."""

    c: Any
    h: Any


class RNNCell(Layer):
    """The base class of cells: `outputs, state = cell(inputs, state)`."""

    @property
    def state_size(self) -> Any:
        """The number of units of the state, or a structure of them."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """The number of units of the output."""
        raise NotImplementedError

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state full of zeros."""
        leaves, structure = tree.flatten(self.state_size)
        return tree.unflatten(structure, [zeros([batch_size, int(size)], dtype_of(dtype)) for size in leaves])

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output and the next state."""
        raise NotImplementedError

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output and the next state; the variables are made at the first call."""
        if not args and "state" not in kwargs:
            raise TypeMismatch("a cell takes inputs and a state", here(), hint="write cell(x, cell.zero_state(...))")
        state = kwargs.pop("state") if "state" in kwargs else args[0]
        scope = kwargs.pop("scope", args[1] if len(args) > 1 else None)
        if scope is not None and self._scope is None and self._name is None:
            with variable_scope(scope) as opened:
                self._scope = opened
        return super().__call__(inputs, state)


def _state(state: Any, size: int) -> Any:
    """A state as a tensor; of an old-style LSTM, memory and output are side by side."""
    value = as_tensor(state)
    if value.type.rank != 2 or value.type.shape[1] not in (None, size):
        raise TypeMismatch(
            f"{value!r} is not a state of {size} units",
            here(),
            hint="begin with cell.zero_state(batch_size, tf.float32)",
        )
    return value


class _Units(RNNCell):
    """What cells share that multiply inputs and state by one matrix."""

    def __init__(
        self, num_units: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None,
        name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, _reuse=reuse)
        self._num_units = int(num_units)
        self._activation = activation or tanh

    @property
    def state_size(self) -> Any:
        """The number of units."""
        return self._num_units

    @property
    def output_size(self) -> Any:
        """The number of units."""
        return self._num_units

    def affine(self, inputs: Sequence[Any], outputs: int, scope: str = "", bias: float = 0.0, **options: Any) -> None:
        """Make the variables of one matrix product."""
        rows = sum(known_size(as_tensor(x), -1, "a cell") if is_tensor_like(x) else x for x in inputs)
        before = f"{scope}/" if scope else ""
        kernel = self.add_variable(f"{before}kernel", [rows, outputs], options.get("kernel_initializer"))
        start = options.get("bias_initializer") or (constant_initializer(bias) if bias else zeros_initializer())
        setattr(self, f"_{scope}_kernel", kernel)
        setattr(self, f"_{scope}_bias", self.add_variable(f"{before}bias", [outputs], start))

    def product(self, values: Sequence[Any], scope: str = "") -> Any:
        """The product of these values side by side, and the bias."""
        kernel, bias = getattr(self, f"_{scope}_kernel"), getattr(self, f"_{scope}_bias")
        return bias_add(matmul(concat(list(values), 1), kernel), bias)

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        self.affine([int(input_shape[-1]), self._num_units], self._num_units)


class BasicRNNCell(_Units):
    """output = new state = activation(W [inputs, state] + b)."""

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output and the next state."""
        output = self._activation(self.product([inputs, _state(args[0], self._num_units)]))
        return output, output


class GRUCell(_Units):
    """The gated recurrent unit (Cho et al. 2014)."""

    def __init__(
        self, num_units: int, activation: Callable[[Any], Any] | None = None, reuse: Any = None,
        kernel_initializer: Any = None, bias_initializer: Any = None, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name)
        self._options = {"kernel_initializer": kernel_initializer, "bias_initializer": bias_initializer}

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        sizes = [int(input_shape[-1]), self._num_units]
        self.affine(sizes, 2 * self._num_units, "gates", 1.0, **self._options)
        self.affine(sizes, self._num_units, "candidate", 0.0, **self._options)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output and the next state."""
        state = _state(args[0], self._num_units)
        reset, update = split(sigmoid(self.product([inputs, state], "gates")), 2, 1)
        candidate = self._activation(self.product([inputs, reset * state], "candidate"))
        after = update * state + (1 - update) * candidate
        return after, after


class LSTMCell(_Units):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with peepholes and a projection if asked for."""

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None, initializer: Any = None,
        num_proj: int | None = None, proj_clip: float | None = None, num_unit_shards: Any = None,
        num_proj_shards: Any = None, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | None = None, reuse: Any = None, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name)
        self._use_peepholes, self._cell_clip, self._proj_clip = use_peepholes, cell_clip, proj_clip
        self._initializer, self._num_proj = initializer, num_proj
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple

    @property
    def state_size(self) -> Any:
        """The units of memory and output: a pair, or their sum if the state is one tensor."""
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The number of units, or of those that they are projected to."""
        return self._num_units if self._num_proj is None else self._num_proj

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        units = self._num_units
        self.affine([int(input_shape[-1]), self.output_size], 4 * units, kernel_initializer=self._initializer)
        if self._use_peepholes:
            self._peepholes = [
                self.add_variable(f"w_{gate}_diag", [units], self._initializer) for gate in ("f", "i", "o")
            ]
        if self._num_proj is not None:
            self._projection = self.add_variable("projection/kernel", [units, self._num_proj], self._initializer)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output and the next state."""
        if self._state_is_tuple:
            if not isinstance(args[0], (tuple, list)) or len(args[0]) != 2:
                raise TypeMismatch(
                    f"{brief(args[0])} is not the state of an LSTM",
                    here(),
                    hint="it is an LSTMStateTuple(c, h): begin with cell.zero_state(batch_size, tf.float32)",
                )
            memory, output = (_state(v, n) for v, n in zip(args[0], self.state_size, strict=True))
        else:
            memory, output = split(_state(args[0], self.state_size), [self._num_units, self.output_size], 1)
        i, j, f, o = split(self.product([inputs, output]), 4, 1)
        if self._use_peepholes:
            f, i = f + memory * self._peepholes[0], i + memory * self._peepholes[1]
        after = sigmoid(f + self._forget_bias) * memory + sigmoid(i) * self._activation(j)
        if self._cell_clip is not None:
            after = apply(functions.clip, [after, -self._cell_clip, self._cell_clip])
        if self._use_peepholes:
            o = o + after * self._peepholes[2]
        result = sigmoid(o) * self._activation(after)
        if self._num_proj is not None:
            result = matmul(result, self._projection)
            if self._proj_clip is not None:
                result = apply(functions.clip, [result, -self._proj_clip, self._proj_clip])
        return result, LSTMStateTuple(after, result) if self._state_is_tuple else concat([after, result], 1)


class BasicLSTMCell(LSTMCell):
    """Long short-term memory without peepholes."""

    def __init__(
        self, num_units: int, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Callable[[Any], Any] | None = None, reuse: Any = None, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            num_units, forget_bias=forget_bias, state_is_tuple=state_is_tuple, activation=activation, reuse=reuse,
            name=name,
        )  # fmt: skip


# -- cells of cells ----------------------------------------------------------------------------------------


class MultiRNNCell(RNNCell):
    """Cells one after the other: each gets the output of the one before."""

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not isinstance(cells, (list, tuple)) or not cells:
            raise TypeMismatch(f"{brief(cells)} is not a list of cells", here(), hint="write MultiRNNCell([a, b])")
        self._cells = list(cells)
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """The sizes of the cells' states."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """That of the last cell."""
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state full of zeros."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The output of the last cell, and the next states."""
        states = args[0]
        if not self._state_is_tuple:
            states = split(states, [cell.state_size for cell in self._cells], 1)
        if len(states) != len(self._cells):
            raise TypeMismatch(f"{len(states)} states for {len(self._cells)} cells", here(), hint="one for each cell")
        value, after = inputs, []
        for number, (cell, state) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{number}"):
                value, new = cell(value, state)
            after.append(new)
        return value, tuple(after) if self._state_is_tuple else concat(after, 1)


class _Wrapper(RNNCell):
    """A cell around another one."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """That of the cell."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """That of the cell."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state full of zeros."""
        return self._cell.zero_state(batch_size, dtype)

    def around(self, inputs: Any, state: Any) -> Any:
        """The output and the next state."""
        return self._cell(inputs, state)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:  # it has no variables, and no scope, of its own
        return self.around(inputs, kwargs["state"] if "state" in kwargs else args[0])


class DropoutWrapper(_Wrapper):
    """Dropout of a cell's inputs, outputs and states; `variational_recurrent` keeps one choice for all steps."""

    def __init__(
        self, cell: RNNCell, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0, state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False, input_size: Any = None, dtype: Any = None, seed: Any = None,
        dropout_state_filter_visitor: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(cell)
        self._keeps = {"input": input_keep_prob, "output": output_keep_prob, "state": state_keep_prob}
        self._seed = seed
        self._noises: dict[str, Any] = {}
        if variational_recurrent:
            self._choose_once(input_size, dtype)

    def _choose_once(self, input_size: Any, dtype: Any) -> None:
        """Random numbers for all steps, and for all examples of a batch."""
        if dtype is None or (self._drops("input") and input_size is None):
            raise TypeMismatch(
                "variational_recurrent needs dtype=, and input_size= to drop inputs", here(), hint="pass both"
            )
        sizes = {"input": [input_size], "output": [self.output_size], "state": tree.flatten(self.state_size)[0]}
        for what, units in sizes.items():
            if self._drops(what):
                self._noises[what] = [random_uniform([1, int(n)], dtype=dtype, seed=self._seed) for n in units]

    def _drops(self, what: str) -> bool:
        keep = self._keeps[what]
        return is_tensor_like(keep) or float(keep) < 1

    def _some(self, what: str, value: Any, number: int = 0) -> Any:
        if not self._drops(what):
            return value
        keep = self._keeps[what]
        if what not in self._noises:
            return dropout(value, keep, seed=self._seed)
        return apply(lambda x, k, u: x / k * functions.floor(k + u), [value, keep, self._noises[what][number]])

    def around(self, inputs: Any, state: Any) -> Any:
        """The output and the next state."""
        output, after = self._cell(self._some("input", inputs), state)
        leaves, structure = tree.flatten(after, is_tensor_like)
        # As in TensorFlow, the memory of an LSTM is never dropped.
        is_memory = [k == 0 and isinstance(after, LSTMStateTuple) for k in range(len(leaves))]
        dropped = [
            x if keep else self._some("state", x, k) for k, (x, keep) in enumerate(zip(leaves, is_memory, strict=True))
        ]
        return self._some("output", output), tree.unflatten(structure, dropped)


class ResidualWrapper(_Wrapper):
    """The output of a cell and its inputs, added."""

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(cell)
        self._residual = residual_fn or (lambda inputs, outputs: inputs + outputs)

    def around(self, inputs: Any, state: Any) -> Any:
        """The output and the next state."""
        output, after = self._cell(inputs, state)
        return self._residual(inputs, output), after


class DeviceWrapper(_Wrapper):
    """A cell on a device."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)
        self._device = device

    def around(self, inputs: Any, state: Any) -> Any:
        """The output and the next state."""
        from undertow.compat.v1.control import device

        with device(self._device):
            return self._cell(inputs, state)


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"nn.rnn_cell.{name}", [f"nn.rnn_cell.{known}" for known in __all__]))


boundaries(globals(), __all__)
