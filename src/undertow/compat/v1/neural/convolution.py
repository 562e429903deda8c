"""Convolutions and pooling of `tf.nn`: images in batches, the channels last ("NHWC") or second ("NCHW").

A convolution gathers the patch of each place, a slice of the image for each element of the kernel, and multiplies all
patches by the kernel as one matrix. So gradients are those of slices and of a matrix product.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Tensor, as_tensor, named, wrap, writing
from undertow.compat.v1.values.static import known_sizes
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.traced import emit
from undertow.types import said

__all__ = [
    "atrous_conv2d", "avg_pool", "conv1d", "conv2d", "conv2d_transpose", "convolution", "depthwise_conv2d",
    "depthwise_conv2d_native", "max_pool", "max_pool_with_argmax", "pool", "separable_conv2d",
]  # fmt: skip

Window = Sequence[tuple[int, int, int]]  # of each spatial axis: the size of the kernel, the stride, the dilation


# -- arguments ---------------------------------------------------------------------------------------------


def _pair(value: Any, what: str, channels_at: int) -> tuple[int, int]:
    """The two spatial sizes of an argument such as strides=[1, 2, 2, 1], or [2, 2], or 2."""
    sizes = list(value) if isinstance(value, (list, tuple)) else [value] * 2
    if len(sizes) == 4:
        if sizes[0] != 1 or sizes[channels_at] != 1:
            raise TypeMismatch(
                f"{what}={brief(value)} steps over examples or channels", here(), hint=f"write {what}=[1, 2, 2, 1]"
            )
        sizes = [size for axis, size in enumerate(sizes) if axis not in (0, channels_at)]
    if len(sizes) == 1:
        sizes = sizes * 2
    if len(sizes) != 2 or not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise TypeMismatch(f"{what}={brief(value)} is not a size", here(), hint=f"write {what}=[1, 2, 2, 1]")
    return int(sizes[0]), int(sizes[1])


def _is_channels_last(data_format: str | None) -> bool:
    if data_format not in (None, "NHWC", "NCHW"):
        raise TypeMismatch(f"data_format={brief(data_format)} is unknown", here(), hint='write "NHWC" or "NCHW"')
    return data_format != "NCHW"


def _spatial(image: Tensor, what: str) -> tuple[int, int]:
    """Height and width, which must be known when the graph is built."""
    if image.type.rank != 4:
        raise TypeMismatch(
            f"{what} takes images [batch, height, width, channels], not {said(image.type)}",
            here(),
            hint="reshape them: tf.reshape(x, [-1, 28, 28, 1])",
        )
    height, width = image.type.shape[1:3]
    if not isinstance(height, int) or not isinstance(width, int):
        raise TypeMismatch(
            f"{what} needs to know height and width when the graph is built, not {said(image.type)}",
            here(),
            hint="declare them: tf.placeholder(tf.float32, [None, 28, 28, 1])",
        )
    return height, width


def _margins(length: int, window: tuple[int, int, int], padding: str) -> tuple[int, int, int]:
    """The number of places of a window along an axis, and what is padded before and after it."""
    size, stride, dilation = window
    reach = (size - 1) * dilation + 1
    if padding == "VALID":
        return max(0, -(-(length - reach + 1) // stride)), 0, 0
    if padding != "SAME":
        raise TypeMismatch(f"padding={brief(padding)} is unknown", here(), hint='write "SAME" or "VALID"')
    places = -(-length // stride)
    missing = max(0, (places - 1) * stride + reach - length)
    return places, missing // 2, missing - missing // 2


def _in_layout(data_format: str | None, value: Any, compute: Callable[[Tensor], Any], name: str | None) -> Any:
    """A computation on images with the channels last, for images of either layout."""
    with writing(value):
        image = as_tensor(value)
        if _is_channels_last(data_format):
            return named(wrap(compute(image)), name)
        turned = compute(wrap(functions.transpose(image, (0, 2, 3, 1))))
        return named(wrap(functions.transpose(turned, (0, 3, 1, 2))), name)


# -- windows -----------------------------------------------------------------------------------------------


def _padded(image: Any, margins: Sequence[tuple[int, int]], filler: float) -> Any:
    """An image with rows and columns of a constant around it."""
    for axis, (before, after) in enumerate(margins, 1):
        sizes = functions.shape(image)
        blocks = [
            functions.full((*sizes[:axis], count, *sizes[axis + 1 :]), image.dtype.numpy.type(filler))
            for count in (before, after)
        ]
        if before or after:
            parts = [*blocks[: bool(before)], image, *blocks[1 : 1 + bool(after)]]
            image = functions.concat(parts, axis=axis)
    return image


def _windows(image: Tensor, window: Window, padding: str, filler: float, what: str) -> tuple[list[Any], list[int]]:
    """For each element of a kernel the slice of the padded image that it meets, and the numbers of places."""
    rows = [_margins(d, w, padding) for d, w in zip(_spatial(image, what), window, strict=True)]
    places = [count for count, _, _ in rows]
    if not all(places):
        raise TypeMismatch(
            f"the window of {what} does not fit {said(image.type)}", here(), hint='use padding="SAME", or a smaller one'
        )
    padded = _padded(image, [(before, after) for _, before, after in rows], filler)
    slices = []
    for offsets in itertools.product(*(range(size) for size, _, _ in window)):
        cut: list[Any] = [np.s_[:]]
        for offset, count, (_, stride, dilation) in zip(offsets, places, window, strict=True):
            first = offset * dilation
            cut.append(np.s_[first : first + (count - 1) * stride + 1 : stride])
        slices.append(getitem(padded, tuple(cut)))
    return slices, places


def _kernel(filter: Any, image: Tensor, what: str, channels: int) -> tuple[Tensor, list[int]]:
    """The filter and its four sizes; its axis `channels` meets the channels of the images."""
    _spatial(image, what)
    kernel = as_tensor(filter)
    if kernel.type.rank != 4 or not kernel.type.is_static:
        raise TypeMismatch(
            f"the filter of {what} is [height, width, in, out], not {said(kernel.type)}", here(), hint="reshape it"
        )
    if kernel.type.shape[channels] != image.type.shape[3]:
        raise TypeMismatch(
            f"the filter of {what} is {said(kernel.type)}, but the images {said(image.type)}",
            here(),
            hint=f"its axis {channels} must be the number of channels",
        )
    return kernel, [size for size in kernel.type.shape if isinstance(size, int)]


def _convolved(image: Tensor, filter: Any, strides: Any, padding: str, dilations: Any, what: str) -> Any:
    kernel, (height, width, inputs, outputs) = _kernel(filter, image, what, 2)
    window = list(zip((height, width), strides, dilations, strict=True))
    slices, places = _windows(image, window, padding, 0, what)
    length = height * width * inputs
    patches = functions.concat(slices, axis=3) if len(slices) > 1 else slices[0]
    product = functions.matmul(functions.reshape(patches, (-1, length)), functions.reshape(kernel, (length, outputs)))
    return functions.reshape(product, (-1, *places, outputs))


# -- convolutions ------------------------------------------------------------------------------------------


def conv2d(
    input: Any, filter: Any, strides: Any = (1, 1, 1, 1), padding: str = "SAME", use_cudnn_on_gpu: bool = True,
    data_format: str | None = "NHWC", name: str | None = None, dilations: Any = (1, 1, 1, 1),
) -> Any:  # fmt: skip
    """The convolution of images with a filter [height, width, in, out]: products of patches (no flip)."""
    at = 3 if _is_channels_last(data_format) else 1
    steps, holes = _pair(strides, "strides", at), _pair(dilations, "dilations", at)
    with writing(input, filter):
        return _in_layout(
            data_format, input, lambda image: _convolved(image, filter, steps, padding, holes, "tf.nn.conv2d"), name
        )


def atrous_conv2d(value: Any, filters: Any, rate: int, padding: str, name: str | None = None) -> Any:
    """The convolution with a filter whose elements are `rate` pixels apart."""
    return conv2d(value, filters, [1, 1, 1, 1], padding, dilations=[1, rate, rate, 1], name=name)


def convolution(
    input: Any, filter: Any, padding: str, strides: Any = None, dilation_rate: Any = None, name: str | None = None,
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """The convolution of images or, with a filter of three axes, of sequences."""
    with writing(input, filter):
        if as_tensor(filter).type.rank == 3:
            stride, hole = (v[0] if isinstance(v, (list, tuple)) else v or 1 for v in (strides, dilation_rate))
            return _conv1d(input, filter, stride, padding, hole, name)
        return conv2d(
            input, filter, strides or 1, padding, data_format=data_format, dilations=dilation_rate or 1, name=name
        )


def conv1d(
    value: Any, filters: Any, stride: int, padding: str, use_cudnn_on_gpu: Any = None, data_format: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The convolution of sequences [batch, length, channels] with a filter [width, in, out]."""
    if data_format not in (None, "NHWC", "NWC"):
        raise TypeMismatch(f"data_format={brief(data_format)} is not supported", here(), hint="put the channels last")
    return _conv1d(value, filters, stride, padding, 1, name)


def _conv1d(value: Any, filters: Any, stride: int, padding: str, dilation: int, name: str | None) -> Any:
    with writing(value, filters):
        row = wrap(functions.expand_dims(as_tensor(value), axis=1))
        kernel = wrap(functions.expand_dims(as_tensor(filters), axis=0))
        result = _convolved(row, kernel, (1, stride), padding, (1, dilation), "tf.nn.conv1d")
        return named(wrap(functions.squeeze(result, axis=1)), name)


def depthwise_conv2d(
    input: Any, filter: Any, strides: Any, padding: str, rate: Any = None, name: str | None = None,
    data_format: str | None = None,
) -> Any:  # fmt: skip
    """Each channel convolved with filters of its own [height, width, channels, multiplier]."""
    at = 3 if _is_channels_last(data_format) else 1
    steps, holes = _pair(strides, "strides", at), _pair(rate or 1, "rate", at)

    def convolved(image: Tensor) -> Any:
        kernel, (height, width, inputs, multiplier) = _kernel(filter, image, "tf.nn.depthwise_conv2d", 2)
        window = list(zip((height, width), steps, holes, strict=True))
        slices, places = _windows(image, window, padding, 0, "tf.nn.depthwise_conv2d")
        patches = functions.stack(slices, axis=-1)  # [batch, rows, columns, in, elements of the kernel]
        patches = functions.expand_dims(patches, axis=-1)
        weights = functions.transpose(functions.reshape(kernel, (height * width, inputs, multiplier)), (1, 0, 2))
        sums = functions.sum(patches * weights, axis=-2)
        return functions.reshape(sums, (-1, *places, inputs * multiplier))

    with writing(input, filter):
        return _in_layout(data_format, input, convolved, name)


depthwise_conv2d_native = depthwise_conv2d


def separable_conv2d(
    input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: str, rate: Any = None,
    name: str | None = None, data_format: str | None = None,
) -> Any:  # fmt: skip
    """A depthwise convolution, and then one of 1 by 1 across the channels."""
    inner = depthwise_conv2d(input, depthwise_filter, strides, padding, rate, data_format=data_format)
    return conv2d(inner, pointwise_filter, [1, 1, 1, 1], "VALID", data_format=data_format, name=name)


def conv2d_transpose(
    value: Any, filter: Any, output_shape: Any, strides: Any, padding: str = "SAME", data_format: str = "NHWC",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The gradient of conv2d with respect to its images; the filter is [height, width, out, in]."""
    at = 3 if _is_channels_last(data_format) else 1
    steps = _pair(strides, "strides", at)
    with writing(value, filter):
        sizes = known_sizes(output_shape)
        spatial = [size for axis, size in enumerate(sizes) if axis not in (0, at)]
        if len(sizes) != 4 or None in spatial:
            raise TypeMismatch(
                f"output_shape={brief(output_shape)} must have a height and a width",
                here(),
                hint="write output_shape=[batch, 28, 28, 1]; the batch may be a tensor",
            )

        def spread(image: Tensor) -> Any:
            kernel, (height, width, outputs, inputs) = _kernel(filter, image, "tf.nn.conv2d_transpose", 3)
            window = [(height, steps[0], 1), (width, steps[1], 1)]
            rows = [_margins(d, w, padding) for d, w in zip(spatial, window, strict=True)]
            places = [count for count, _, _ in rows]
            if places != list(_spatial(image, "tf.nn.conv2d_transpose")):
                raise TypeMismatch(
                    f"output_shape={brief(output_shape)} does not fit {said(image.type)}",
                    here(),
                    hint="its height and width are those of the images times the strides",
                )
            flat = functions.transpose(functions.reshape(kernel, (-1, inputs)), (1, 0))
            products = functions.matmul(functions.reshape(image, (-1, inputs)), flat)
            products = functions.reshape(products, (-1, *places, height * width, outputs))
            whole = [d + before + after for d, (_, before, after) in zip(spatial, rows, strict=True)]
            total = functools.reduce(
                functions.add,
                (
                    _at_window(getitem(products, (np.s_[:], np.s_[:], np.s_[:], k)), offsets, steps, places, whole)
                    for k, offsets in enumerate(itertools.product(range(height), range(width)))
                ),
            )
            cut = [np.s_[before : before + d] for d, (_, before, _) in zip(spatial, rows, strict=True)]
            return getitem(total, (np.s_[:], *cut))

        return _in_layout(data_format, value, spread, name)


def _at_window(
    piece: Any, offsets: Sequence[int], steps: Sequence[int], places: Sequence[int], whole: Sequence[int]
) -> Any:
    """Zeros with a piece at what a slice of the windows reads: the gradient of that slice."""
    ends = [first + (count - 1) * step + 1 for first, count, step in zip(offsets, places, steps, strict=True)]
    batch, *_, channels = functions.shape(piece)
    is_known = isinstance(batch, int)
    return emit(
        "unslice",
        [piece] if is_known else [piece, batch],
        starts=(0, *offsets, 0),
        stops=(None, *ends, None),
        steps=(1, *steps, 1),
        shape=(batch if is_known else None, *whole, channels),
    )[0]


# -- pooling -----------------------------------------------------------------------------------------------


def _pooling(
    value: Any, ksize: Any, strides: Any, padding: str, data_format: str | None, name: str | None, what: str,
    reduce: Callable[[Tensor, list[Any], Window, list[int]], Any], filler: float,
) -> Any:  # fmt: skip
    at = 3 if _is_channels_last(data_format) else 1
    sizes, steps = _pair(ksize, "ksize", at), _pair(strides, "strides", at)
    window = [(size, step, 1) for size, step in zip(sizes, steps, strict=True)]

    def pooled(image: Tensor) -> Any:
        slices, places = _windows(image, window, padding, filler, what)
        return reduce(image, slices, window, places)

    return _in_layout(data_format, value, pooled, name)


def max_pool(
    value: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC", name: str | None = None
) -> Any:
    """The largest element of each window. The first of equal ones gets the gradient."""

    def largest(image: Tensor, slices: list[Any], window: Window, places: list[int]) -> Any:
        if len(slices) == 1:
            return slices[0]
        each = functions.stack(slices, axis=-1)
        first = functions.argmax(each, axis=-1, keepdims=True)
        return functions.squeeze(functions.take_along_axis(each, first, axis=-1), axis=-1)

    return _pooling(value, ksize, strides, padding, data_format, name, "tf.nn.max_pool", largest, -np.inf)


def max_pool_with_argmax(
    input: Any, ksize: Any, strides: Any, padding: str, name: str | None = None
) -> tuple[Any, Any]:
    """The largest element of each window, and its place (y * width + x) * channels + channel in the image."""

    def largest(image: Tensor, slices: list[Any], window: Window, places: list[int]) -> Any:
        height, width = _spatial(image, "tf.nn.max_pool_with_argmax")
        channels: Any = image.type.shape[3]
        each = functions.stack(slices, axis=-1)
        first = functions.argmax(each, axis=-1)
        top, left = (_margins(d, w, padding)[1] for d, w in zip((height, width), window, strict=True))
        rows = np.arange(places[0])[:, None, None] * window[0][1] - top
        columns = np.arange(places[1])[None, :, None] * window[1][1] - left
        y, x = rows + first // window[1][0], columns + first % window[1][0]
        return (y * width + x) * channels + np.arange(channels)

    values = max_pool(input, ksize, strides, padding)
    return values, _pooling(
        input, ksize, strides, padding, "NHWC", name, "tf.nn.max_pool_with_argmax", largest, -np.inf
    )


def avg_pool(
    value: Any, ksize: Any, strides: Any, padding: str, data_format: str = "NHWC", name: str | None = None
) -> Any:
    """The mean of each window; what is padded does not count."""

    def mean(image: Tensor, slices: list[Any], window: Window, places: list[int]) -> Any:
        total = functools.reduce(functions.add, slices)
        counts = [_counted(d, w, padding) for d, w in zip(_spatial(image, "tf.nn.avg_pool"), window, strict=True)]
        area = (counts[0][:, None] * counts[1])[..., None].astype(image.dtype.numpy)
        return functions.divide(total, area)

    return _pooling(value, ksize, strides, padding, data_format, name, "tf.nn.avg_pool", mean, 0)


def _counted(length: int, window: tuple[int, int, int], padding: str) -> Any:
    """How many elements of the image each place of a window covers."""
    places, before, _ = _margins(length, window, padding)
    starts = np.arange(places) * window[1] - before
    return np.minimum(starts + window[0], length) - np.maximum(starts, 0)


def pool(
    input: Any, window_shape: Any, pooling_type: str, padding: str, dilation_rate: Any = None, strides: Any = None,
    name: str | None = None, data_format: str | None = None,
) -> Any:  # fmt: skip
    """The "MAX" or "AVG" of each window."""
    if pooling_type not in ("MAX", "AVG") or dilation_rate not in (None, 1, [1, 1], (1, 1)):
        raise TypeMismatch(
            f"tf.nn.pool with {brief(pooling_type)}, {brief(dilation_rate)}",
            here(),
            hint='write "MAX" or "AVG"; a dilation_rate is not supported',
        )
    chosen = max_pool if pooling_type == "MAX" else avg_pool
    return chosen(input, window_shape, strides or 1, padding, data_format or "NHWC", name)


boundaries(globals(), __all__)
