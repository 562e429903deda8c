"""Random numbers beyond `tf.random_uniform` and `tf.random_normal`: cut-off normals, shuffles, draws of classes."""

from __future__ import annotations

import math
from typing import Any

from undertow.compat.v1.array import cast, random_uniform
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import apply, as_tensor, named, wrap, writing
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.types import f32, f64, i64, said

__all__ = ["multinomial", "random_crop", "random_shuffle", "truncated_normal"]

_LOW, _HIGH = 0.5 * math.erfc(math.sqrt(2)), 1 - 0.5 * math.erfc(math.sqrt(2))  # normal distribution at -2 and 2


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = f32, seed: Any = None, name: str | None = None
) -> Any:
    """Normal numbers, none further than two standard deviations from the mean; new ones in every run."""
    dtype = dtype_of(dtype)

    def inverse(p: Any) -> Any:
        """The normal distribution inverted by Newton's method; from the logistic one, four steps are enough."""
        x = functions.log(p / (1 - p)) / 1.702
        for _ in range(4):
            below = (functions.erf(x / math.sqrt(2)) + 1) / 2
            x = x - (below - p) * math.sqrt(2 * math.pi) * functions.exp(functions.square(x) / 2)
        return functions.clip(x, -2, 2)

    standard = cast(apply(inverse, [random_uniform(shape, _LOW, _HIGH, f64, seed)]), dtype)
    return apply(lambda x, m, s: x * s + m, [standard, mean, stddev], name)


def random_shuffle(value: Any, seed: Any = None, name: str | None = None) -> Any:
    """The rows of a tensor in random order, a new one in every run."""
    with writing(value):
        rows = as_tensor(value)
        if rows.type.rank == 0:
            raise TypeMismatch(f"{said(rows.type)} has no rows to shuffle", here(), hint="pass an array")
        keys = random_uniform([functions.shape(rows)[0]], dtype=f64, seed=seed)
        return named(wrap(functions.take(rows, functions.argsort(keys), axis=0)), name)


def multinomial(logits: Any, num_samples: Any, seed: Any = None, name: str | None = None) -> Any:
    """Classes drawn from the softmax of each row of `logits`, `num_samples` for each row."""
    with writing(logits, num_samples):
        scores = as_tensor(logits)
        if scores.type.rank != 2:
            raise TypeMismatch(f"the logits are {said(scores.type)}, not a matrix", here(), hint="use tf.expand_dims")
        batch, classes = functions.shape(scores)
        chances = functions.softmax(functions.astype(functions.stop_gradient(scores), f64), axis=-1)
        upto = functions.cumsum(chances, axis=-1)
        uniform = random_uniform([batch, num_samples], dtype=f64, seed=seed)
        point = uniform * functions.slice_between(upto, -1, None, axis=1)
        passed = functions.less_equal(functions.expand_dims(upto, axis=1), functions.expand_dims(point, axis=2))
        drawn = functions.minimum(functions.sum(functions.astype(passed, i64), axis=-1), classes - 1)
        return named(wrap(drawn), name)


def random_crop(value: Any, size: Any, seed: Any = None, name: str | None = None) -> Any:
    """A block of this size at a random place, a new one in every run."""
    with writing(value):
        block = as_tensor(value)
        sizes = [int(length) for length in size]
        if len(sizes) != block.type.rank:
            raise TypeMismatch(f"size={brief(size)} for {said(block.type)}", here(), hint="give a size for each axis")
        uniform = random_uniform([len(sizes)], dtype=f64, seed=seed)
        cropped: Any = block
        for axis, (whole, length) in enumerate(zip(functions.shape(block), sizes, strict=True)):
            room = functions.astype(whole - length + 1, f64)
            start = functions.astype(functions.floor(functions.take(uniform, axis) * room), i64)
            cropped = functions.slice_at(cropped, start, length, axis=axis)
        return named(wrap(cropped), name)


boundaries(globals(), __all__)
