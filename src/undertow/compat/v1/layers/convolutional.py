"""Convolutional layers, over images and over sequences."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.layers.base import Layer, known_size
from undertow.compat.v1.layers.core import activated
from undertow.compat.v1.neural import convolution as nn
from undertow.compat.v1.neural.activations import bias_add
from undertow.compat.v1.place import here
from undertow.compat.v1.state import zeros_initializer
from undertow.compat.v1.tensor import as_tensor
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.tracebacks import boundaries

__all__ = [
    "Conv1D", "Conv2D", "Conv2DTranspose", "SeparableConv2D", "conv1d", "conv2d", "conv2d_transpose",
    "separable_conv2d",
]  # fmt: skip

_FORMATS = {"channels_last": "NHWC", "channels_first": "NCHW"}


def layout(data_format: str) -> str:
    """The name of a layout in `tf.nn`."""
    if data_format not in _FORMATS:
        raise TypeMismatch(
            f"data_format={brief(data_format)} is unknown", here(), hint='write "channels_last" or "channels_first"'
        )
    return _FORMATS[data_format]


def sizes_of(value: Any, what: str, count: int) -> list[int]:
    """A size for each axis of a window, of one number or of several."""
    sizes = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(sizes) != count or not all(isinstance(size, int) and size > 0 for size in sizes):
        raise TypeMismatch(f"{what}={brief(value)} is not a size", here(), hint=f"write {what}=3, or a pair")
    return sizes


class _Convolution(Layer):
    """What convolutional layers share: a kernel, a bias, and how they are applied."""

    axes = 2

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
        kernel_initializer: Any = None, bias_initializer: Any = None, kernel_regularizer: Any = None,
        bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
        bias_constraint: Any = None, trainable: bool = True, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(trainable, name, **_)
        self.filters = int(filters)
        self.kernel_size = sizes_of(kernel_size, "kernel_size", self.axes)
        self.strides = sizes_of(strides, "strides", self.axes)
        self.dilation_rate = sizes_of(dilation_rate, "dilation_rate", self.axes)
        self.padding, self.data_format = str(padding).upper(), layout(data_format)
        self.activation, self.use_bias, self.activity_regularizer = activation, use_bias, activity_regularizer
        self.kernel_initializer, self.kernel_regularizer = kernel_initializer, kernel_regularizer
        self.bias_initializer, self.bias_regularizer = bias_initializer, bias_regularizer
        self.kernel: Any = None
        self.bias: Any = None

    @property
    def _channels_at(self) -> int:
        return 1 if self.data_format == "NCHW" else -1

    def kernel_shape(self, channels: int) -> list[int]:
        """The shape of the kernel."""
        return [*self.kernel_size, channels, self.filters]

    def build(self, input_shape: Any) -> None:
        """Make the kernel and the bias."""
        shape = self.kernel_shape(input_shape[self._channels_at])
        self.kernel = self.add_variable("kernel", shape, self.kernel_initializer, regularizer=self.kernel_regularizer)
        self._build_bias()

    def _build_bias(self) -> None:
        if self.use_bias:
            initializer = self.bias_initializer or zeros_initializer()
            self.bias = self.add_variable("bias", [self.filters], initializer, regularizer=self.bias_regularizer)

    def convolved(self, inputs: Any) -> Any:
        """The convolution, without bias and activation."""
        return nn.conv2d(
            inputs, self.kernel, self.strides, self.padding, data_format=self.data_format,
            dilations=self.dilation_rate,
        )  # fmt: skip

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs."""
        result = self.convolved(inputs)
        return activated(self, result if self.bias is None else bias_add(result, self.bias, self.data_format))

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        known_size(as_tensor(inputs), self._channels_at, "a convolutional layer")
        return super().__call__(inputs, *args, **kwargs)


class Conv2D(_Convolution):
    """A convolution of images."""


class Conv1D(_Convolution):
    """A convolution of sequences."""

    axes = 1

    def convolved(self, inputs: Any) -> Any:
        """The convolution, without bias and activation."""
        if self.data_format == "NCHW":
            raise TypeMismatch("conv1d takes the channels last", here(), hint="use tf.transpose(x, [0, 2, 1])")
        return nn.convolution(inputs, self.kernel, self.padding, self.strides, self.dilation_rate)


class Conv2DTranspose(_Convolution):
    """The gradient of a convolution with respect to its images: it enlarges them."""

    def kernel_shape(self, channels: int) -> list[int]:
        """The shape of the kernel."""
        return [*self.kernel_size, self.filters, channels]

    def convolved(self, inputs: Any) -> Any:
        """The convolution, without bias and activation."""
        sizes = list(functions.shape(inputs))
        first = 2 if self.data_format == "NCHW" else 1
        for axis, (kernel, stride) in enumerate(zip(self.kernel_size, self.strides, strict=True), first):
            extra = max(kernel - stride, 0) if self.padding == "VALID" else 0
            sizes[axis] = known_size(inputs, axis, "conv2d_transpose") * stride + extra
        sizes[self._channels_at] = self.filters
        return nn.conv2d_transpose(inputs, self.kernel, sizes, self.strides, self.padding, self.data_format)


class SeparableConv2D(_Convolution):
    """A convolution of each channel, and then one across the channels."""

    def __init__(
        self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
        data_format: str = "channels_last", dilation_rate: Any = 1, depth_multiplier: int = 1, activation: Any = None,
        use_bias: bool = True, depthwise_initializer: Any = None, pointwise_initializer: Any = None,
        bias_initializer: Any = None, trainable: bool = True, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias,
            bias_initializer=bias_initializer, trainable=trainable, name=name, **_,
        )  # fmt: skip
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer, self.pointwise_initializer = depthwise_initializer, pointwise_initializer

    def build(self, input_shape: Any) -> None:
        """Make both kernels and the bias."""
        channels, many = input_shape[self._channels_at], self.depth_multiplier
        self.depthwise_kernel = self.add_variable(
            "depthwise_kernel", [*self.kernel_size, channels, many], self.depthwise_initializer
        )
        self.pointwise_kernel = self.add_variable(
            "pointwise_kernel", [1, 1, channels * many, self.filters], self.pointwise_initializer
        )
        self._build_bias()

    def convolved(self, inputs: Any) -> Any:
        """The convolution, without bias and activation."""
        return nn.separable_conv2d(
            inputs, self.depthwise_kernel, self.pointwise_kernel, self.strides, self.padding, self.dilation_rate,
            data_format=self.data_format,
        )  # fmt: skip


def conv2d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = None, kernel_regularizer: Any = None,
    bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: str | None = None, reuse: Any = None,
) -> Any:  # fmt: skip
    """activation(the convolution of images with a kernel + bias)."""
    layer = Conv2D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
        bias_constraint, trainable, name, _reuse=reuse,
    )  # fmt: skip
    return layer(inputs)


def conv1d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = 1, activation: Any = None, use_bias: bool = True,
    kernel_initializer: Any = None, bias_initializer: Any = None, kernel_regularizer: Any = None,
    bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
    bias_constraint: Any = None, trainable: bool = True, name: str | None = None, reuse: Any = None,
) -> Any:  # fmt: skip
    """activation(the convolution of sequences with a kernel + bias)."""
    layer = Conv1D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
        bias_constraint, trainable, name, _reuse=reuse,
    )  # fmt: skip
    return layer(inputs)


def conv2d_transpose(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str = "channels_last", activation: Any = None, use_bias: bool = True, kernel_initializer: Any = None,
    bias_initializer: Any = None, kernel_regularizer: Any = None, bias_regularizer: Any = None,
    activity_regularizer: Any = None, kernel_constraint: Any = None, bias_constraint: Any = None,
    trainable: bool = True, name: str | None = None, reuse: Any = None,
) -> Any:  # fmt: skip
    """activation(the gradient of a convolution + bias): it enlarges images by the strides."""
    layer = Conv2DTranspose(
        filters, kernel_size, strides, padding, data_format, 1, activation, use_bias, kernel_initializer,
        bias_initializer, kernel_regularizer, bias_regularizer, activity_regularizer, kernel_constraint,
        bias_constraint, trainable, name, _reuse=reuse,
    )  # fmt: skip
    return layer(inputs)


def separable_conv2d(
    inputs: Any, filters: int, kernel_size: Any, strides: Any = (1, 1), padding: str = "valid",
    data_format: str = "channels_last", dilation_rate: Any = (1, 1), depth_multiplier: int = 1,
    activation: Any = None, use_bias: bool = True, depthwise_initializer: Any = None,
    pointwise_initializer: Any = None, bias_initializer: Any = None, trainable: bool = True, name: str | None = None,
    reuse: Any = None,
) -> Any:  # fmt: skip
    """A convolution of each channel, and then one across the channels."""
    layer = SeparableConv2D(
        filters, kernel_size, strides, padding, data_format, dilation_rate, depth_multiplier, activation, use_bias,
        depthwise_initializer, pointwise_initializer, bias_initializer, trainable, name, _reuse=reuse,
    )  # fmt: skip
    return layer(inputs)


boundaries(globals(), __all__)
