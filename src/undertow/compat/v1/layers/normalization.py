"""Batch normalization: by the moments of the batch in training, by their moving averages otherwise."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.array import cast
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.layers.base import Layer, known_size
from undertow.compat.v1.neural.normalization import batch_normalization as normalized
from undertow.compat.v1.neural.normalization import moments
from undertow.compat.v1.state import ones_initializer, zeros_initializer
from undertow.compat.v1.tensor import apply, as_tensor, is_tensor_like
from undertow.frontend.functions import public as functions
from undertow.tracebacks import boundaries

__all__ = ["BatchNormalization", "batch_normalization"]


class BatchNormalization(Layer):
    """Batch normalization (Ioffe and Szegedy 2015). What moves the averages is in `GraphKeys.UPDATE_OPS`."""

    def __init__(
        self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True,
        beta_initializer: Any = None, gamma_initializer: Any = None, moving_mean_initializer: Any = None,
        moving_variance_initializer: Any = None, beta_regularizer: Any = None, gamma_regularizer: Any = None,
        trainable: bool = True, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, **_)
        self.axis, self.momentum, self.epsilon, self.center, self.scale = axis, momentum, epsilon, center, scale
        self.beta_initializer = beta_initializer or zeros_initializer()
        self.gamma_initializer = gamma_initializer or ones_initializer()
        self.moving_mean_initializer = moving_mean_initializer or zeros_initializer()
        self.moving_variance_initializer = moving_variance_initializer or ones_initializer()
        self.beta_regularizer, self.gamma_regularizer = beta_regularizer, gamma_regularizer
        self.beta: Any = None
        self.gamma: Any = None

    def build(self, input_shape: Any) -> None:
        """Make scale, offset and averages."""
        shape = [input_shape[self.axis]]
        if self.scale:
            self.gamma = self.add_variable("gamma", shape, self.gamma_initializer, regularizer=self.gamma_regularizer)
        if self.center:
            self.beta = self.add_variable("beta", shape, self.beta_initializer, regularizer=self.beta_regularizer)
        self.moving_mean = self.add_variable("moving_mean", shape, self.moving_mean_initializer, trainable=False)
        self.moving_variance = self.add_variable(
            "moving_variance", shape, self.moving_variance_initializer, trainable=False
        )

    def call(self, inputs: Any, *args: Any, training: Any = False, **kwargs: Any) -> Any:
        """The outputs."""
        axis = self.axis % inputs.type.rank
        along = [-1 if k == axis else 1 for k in range(inputs.type.rank)]

        def spread(value: Any) -> Any:
            return value if value is None else apply(functions.reshape, [value], shape=tuple(along))

        used = as_tensor(self.moving_mean), as_tensor(self.moving_variance)
        if is_tensor_like(training) or training:
            batch = moments(inputs, [k for k in range(inputs.type.rank) if k != axis])
            self._move(inputs, batch, training)
            used = batch
            if is_tensor_like(training):
                truth = cast(training, "bool")
                averages = self.moving_mean, self.moving_variance
                used = tuple(apply(functions.where, [truth, b, a]) for b, a in zip(batch, averages, strict=True))
        mean, variance = used
        return normalized(inputs, spread(mean), spread(variance), spread(self.beta), spread(self.gamma), self.epsilon)

    def _move(self, inputs: Any, batch: Any, training: Any) -> None:
        """Operations that move the averages towards the moments of the batch, or by 0 outside training."""
        mean, variance = batch
        if inputs.type.rank == 4:  # of images, TensorFlow 1 averages the variance over n - 1
            variance = apply(self._unbiased, [variance, inputs])
        share: Any = 1 - self.momentum
        if is_tensor_like(training):
            share = cast(training, inputs.dtype) * share
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            step = apply(lambda a, v, s: (a - v) * s, [average, value, share])
            as_tensor(inputs).graph.add_to_collection(GraphKeys.UPDATE_OPS, average.assign_sub(step))

    @staticmethod
    def _unbiased(variance: Any, inputs: Any) -> Any:
        count = functions.astype(functions.size(inputs), variance.dtype) / functions.shape(variance)[0]
        return variance * (count / functions.maximum(count - 1, 1))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        known_size(as_tensor(inputs), self.axis, "batch normalization")
        return super().__call__(inputs, *args, **kwargs)


def batch_normalization(
    inputs: Any, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True,
    scale: bool = True, beta_initializer: Any = None, gamma_initializer: Any = None,
    moving_mean_initializer: Any = None, moving_variance_initializer: Any = None, beta_regularizer: Any = None,
    gamma_regularizer: Any = None, training: Any = False, trainable: bool = True, name: str | None = None,
    reuse: Any = None, renorm: bool = False, fused: Any = None, **_: Any,
) -> Any:  # fmt: skip
    """Batch normalization; run `GraphKeys.UPDATE_OPS` with the training step, or the averages do not move."""
    layer = BatchNormalization(
        axis, momentum, epsilon, center, scale, beta_initializer, gamma_initializer, moving_mean_initializer,
        moving_variance_initializer, beta_regularizer, gamma_regularizer, trainable, name, _reuse=reuse,
    )  # fmt: skip
    return layer(inputs, training=training)


boundaries(globals(), __all__)
