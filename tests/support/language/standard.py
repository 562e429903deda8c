"""The names of the Python array API standard, version 2024.12, and cases that compare ours with NumPy's of that name.

https://data-apis.org/array-api/2024.12/API_specification/
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
from tests.support.language.case import Case
from tests.support.language.names import ARGUMENTS, BY_HAND, tried

_NAMES = """
 e inf nan newaxis pi arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like
tril triu zeros zeros_like astype can_cast finfo iinfo isdtype result_type bool int8 int16 int32 int64 uint8 uint16
uint32 uint64 float32 float64 complex64 complex128 abs acos acosh add asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide
equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter
not_equal positive pow real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc take
take_along_axis __array_namespace_info__ matmul matrix_transpose tensordot vecdot broadcast_arrays broadcast_to concat
expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile unstack argmax argmin count_nonzero
nonzero searchsorted where unique_all unique_counts unique_inverse unique_values argsort sort cumulative_prod
cumulative_sum max mean min prod std sum var all any diff
"""
NAMES = tuple(_NAMES.split())


def cases(section: str) -> list[Case]:
    """Cases of every name. Booleans are left out: to functions of ut they are 0 and 1, to NumPy's often not."""
    texts: list[tuple[str, str]] = []
    for name in NAMES:
        if not callable(getattr(np, name, None)) or isinstance(getattr(np, name), type):
            texts.append((f"ut.{name}", f"ut.{name}"))
            continue
        for arguments in BY_HAND.get(f"np.{name}", ARGUMENTS):
            if not {"m", "b", "True"} & set(re.split(r"\W+", arguments)):
                texts.append((f"ut.{name}", f"np.{name}({arguments})"))
    found = tried(section, texts)
    return [replace(case, source=case.source.replace("np.", "ut."), oracle=case.source) for case in found]
