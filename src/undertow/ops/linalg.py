"""Matrix products. Tensor products of other forms are lowered to this row by the front end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.op import Op, Value
from undertow.ops.rules import NUMBERS, check_dtypes, fitting
from undertow.types import Type, broadcast


def _matmul_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, y = types
    dtype = check_dtypes("matmul", types, NUMBERS)
    if not x.shape or not y.shape:
        raise TypeMismatch(f"matmul of {x} and {y}", hint="a scalar is multiplied with *, not with @")
    inner = x.shape[-1], y.shape[-2 if y.rank > 1 else -1]
    if None not in inner and inner[0] != inner[1]:
        raise TypeMismatch(
            f"matmul of {x} and {y}: {inner[0]} columns meet {inner[1]} rows",
            hint="the last axis of x must be as long as the last but one of y; x.T transposes",
        )
    rows = x.shape[-2:-1]
    columns = y.shape[-1:] if y.rank > 1 else ()
    return (Type(dtype, broadcast(x.shape[:-2], y.shape[:-2]) + rows + columns),)


def _matmul(values: Sequence[Value], attrs: Attrs) -> Value:
    return np.matmul(values[0], values[1])


ROWS: tuple[Op, ...] = (
    Op(
        "matmul",
        2,
        _matmul_rule,
        fitting("matmul", _matmul),
        "the matrix product x @ y; vectors are a row on the left and a column on the right; axes before are batches",
    ),
)
