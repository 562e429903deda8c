"""Dense layers, flattening and dropout."""

from __future__ import annotations

import math
from typing import Any

from undertow.compat.v1.array import cast, reshape
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.layers.base import Layer, known_size
from undertow.compat.v1.math import matmul
from undertow.compat.v1.neural.activations import bias_add
from undertow.compat.v1.neural.activations import dropout as some_of
from undertow.compat.v1.place import here
from undertow.compat.v1.state import zeros_initializer
from undertow.compat.v1.tensor import apply, as_tensor, is_tensor_like
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.tracebacks import boundaries
from undertow.types import said

__all__ = ["Dense", "Dropout", "Flatten", "dense", "dropout", "flatten"]


class Dense(Layer):
    """activation(inputs @ kernel + bias)."""

    def __init__(
        self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
        bias_initializer: Any = None, kernel_regularizer: Any = None, bias_regularizer: Any = None,
        activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
        trainable: bool = True, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, **_)
        self.units = int(units)
        self.activation, self.use_bias = activation, use_bias
        self.kernel_initializer, self.bias_initializer = kernel_initializer, bias_initializer
        self.kernel_regularizer, self.bias_regularizer = kernel_regularizer, bias_regularizer
        self.activity_regularizer = activity_regularizer
        self.kernel: Any = None
        self.bias: Any = None

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        self.kernel = self.add_variable(
            "kernel", [input_shape[-1], self.units], self.kernel_initializer, regularizer=self.kernel_regularizer
        )
        if self.use_bias:
            initializer = self.bias_initializer or zeros_initializer()
            self.bias = self.add_variable("bias", [self.units], initializer, regularizer=self.bias_regularizer)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        product = matmul(inputs, self.kernel)
        return activated(self, product if self.bias is None else bias_add(product, self.bias))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        known_size(as_tensor(inputs), -1, "a dense layer")
        return super().__call__(inputs, *args, **kwargs)


def activated(layer: Any, value: Any) -> Any:
    """The activation of a layer, whose regularizer may give a loss."""
    result = value if layer.activation is None else layer.activation(value)
    if layer.activity_regularizer is not None:
        as_tensor(result).graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, layer.activity_regularizer(result))
    return result


class Flatten(Layer):
    """Each example as one vector."""

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        sizes = inputs.type.shape[1:]
        if not inputs.type.rank:
            raise TypeMismatch(f"{said(inputs.type)} has no examples", here(), hint="use tf.expand_dims")
        known = all(isinstance(size, int) for size in sizes)
        if isinstance(inputs.type.shape[0], int):
            return reshape(inputs, [inputs.type.shape[0], -1])
        return reshape(inputs, [-1, math.prod(sizes)] if known else [functions.shape(inputs)[0], -1])


class Dropout(Layer):
    """In training, 0 with the probability `rate`, other elements divided by 1 - rate."""

    def __init__(
        self, rate: Any = 0.5, noise_shape: Any = None, seed: Any = None, name: str | None = None, **_: Any
    ) -> None:
        super().__init__(name=name, **_)
        self.rate, self.noise_shape, self.seed = rate, noise_shape, seed

    def call(self, inputs: Any, *args: Any, training: Any = False, **kwargs: Any) -> Any:
        """The outputs."""
        if not is_tensor_like(training) and not training:
            return inputs
        keep = 1 - self.rate
        if is_tensor_like(training):
            ratio = as_tensor(keep, None if is_tensor_like(keep) else inputs.dtype)
            keep = apply(lambda t, k: functions.where(t, k, 1), [cast(training, "bool"), ratio])
        return some_of(inputs, keep, self.noise_shape, self.seed)


def dense(
    inputs: Any, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = None, kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
    trainable: bool = True, name: str | None = None, reuse: Any = None,
) -> Any:  # fmt: skip
    """activation(inputs @ kernel + bias), with new variables, or with those of its name where they are reused."""
    layer = Dense(
        units, activation, use_bias, kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer,
        activity_regularizer, kernel_constraint, bias_constraint, trainable, name, _reuse=reuse,
    )  # fmt: skip
    return layer(inputs)


def flatten(inputs: Any, name: str | None = None) -> Any:
    """Each example as one vector."""
    return Flatten(name=name)(inputs)


def dropout(
    inputs: Any, rate: Any = 0.5, noise_shape: Any = None, seed: Any = None, training: Any = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """In training, 0 with the probability `rate`, other elements divided by 1 - rate."""
    return Dropout(rate, noise_shape, seed, name)(inputs, training=training)


boundaries(globals(), __all__)
