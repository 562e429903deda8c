"""Histograms as TensorBoard reads them: buckets whose limits grow by a tenth, on both sides of zero.

>>> made = histogram(np.array([0.0, 1.0, 1.0]))
>>> made.num, made.sum, [count for count in made.bucket if count]
(3.0, 2.0, [1.0, 2.0])
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.errors import UndertowError
from undertow.viz.messages import HistogramProto


def _limits() -> npt.NDArray[np.float64]:
    """Those of TensorFlow's own histograms: from 1e-12 to 1e20, and the largest number there is."""
    up: list[float] = []
    limit = 1e-12
    while limit < 1e20:
        up.append(limit)
        limit *= 1.1
    up.append(sys.float_info.max)
    return np.array([*(-x for x in reversed(up)), 0.0, *up])


_LIMITS = _limits()


def histogram(values: Any) -> HistogramProto:
    """The histogram of an array of numbers, which must be finite."""
    numbers = np.asarray(values, np.float64).ravel()
    if not np.isfinite(numbers).all():
        what = "nan" if np.isnan(numbers).any() else "inf"
        raise UndertowError(
            f"a histogram of values with {what}", hint="find out where it comes from: check_finite=True, or tf.is_nan"
        )
    if not numbers.size:
        return HistogramProto(bucket_limit=[sys.float_info.max], bucket=[0.0])
    counts = np.bincount(np.searchsorted(_LIMITS[:-1], numbers, side="right"), minlength=len(_LIMITS))
    limits, buckets = _without_gaps(counts)
    return HistogramProto(
        float(numbers.min()), float(numbers.max()), float(numbers.size), float(numbers.sum()),
        float((numbers * numbers).sum()), limits, buckets,
    )  # fmt: skip


def _without_gaps(counts: npt.NDArray[np.intp]) -> tuple[list[float], list[float]]:
    """Limits and counts, with one bucket for those that are empty side by side."""
    is_empty = counts == 0
    ends = np.flatnonzero(~(is_empty & np.append(is_empty[1:], False)))
    return _LIMITS[ends].tolist(), counts[ends].astype(np.float64).tolist()
