"""Pooling layers: the largest element or the mean of each window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undertow.compat.v1.layers.base import Layer
from undertow.compat.v1.layers.convolutional import layout, sizes_of
from undertow.compat.v1.neural.convolution import avg_pool, max_pool
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import apply
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.tracebacks import boundaries

__all__ = [
    "AveragePooling1D", "AveragePooling2D", "MaxPooling1D", "MaxPooling2D", "average_pooling1d", "average_pooling2d",
    "max_pooling1d", "max_pooling2d",
]  # fmt: skip


class _Pooling(Layer):
    """What pooling layers share."""

    axes = 2
    pool: Callable[..., Any] = staticmethod(max_pool)

    def __init__(
        self, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
        name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(name=name, **_)
        self.pool_size = sizes_of(pool_size, "pool_size", self.axes)
        self.strides = sizes_of(strides, "strides", self.axes)
        self.padding, self.data_format = str(padding).upper(), layout(data_format)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        if self.axes == 2:
            return type(self).pool(inputs, self.pool_size, self.strides, self.padding, self.data_format)
        if self.data_format == "NCHW":
            raise TypeMismatch("pooling of sequences takes the channels last", here(), hint="use tf.transpose")
        row = apply(functions.expand_dims, [inputs], axis=1)
        pooled = type(self).pool(row, [1, *self.pool_size], [1, *self.strides], self.padding)
        return apply(functions.squeeze, [pooled], axis=1)


class MaxPooling2D(_Pooling):
    """The largest element of each window of images."""


class MaxPooling1D(_Pooling):
    """The largest element of each window of sequences."""

    axes = 1


class AveragePooling2D(_Pooling):
    """The mean of each window of images."""

    pool = staticmethod(avg_pool)


class AveragePooling1D(AveragePooling2D):
    """The mean of each window of sequences."""

    axes = 1


def max_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The largest element of each window of images."""
    return MaxPooling2D(pool_size, strides, padding, data_format, name)(inputs)


def max_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The largest element of each window of sequences."""
    return MaxPooling1D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling2d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window of images."""
    return AveragePooling2D(pool_size, strides, padding, data_format, name)(inputs)


def average_pooling1d(
    inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The mean of each window of sequences."""
    return AveragePooling1D(pool_size, strides, padding, data_format, name)(inputs)


boundaries(globals(), __all__)
