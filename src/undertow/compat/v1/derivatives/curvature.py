"""`tf.hessians`: second derivatives, a gradient for each element of the first ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.compat.v1.array import reshape, stack, zeros_like
from undertow.compat.v1.gradients import gradients
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import as_tensor
from undertow.errors import TypeMismatch
from undertow.frontend.values.indexing import getitem
from undertow.tracebacks import boundaries
from undertow.types import said

__all__ = ["hessians"]


def hessians(
    ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False, gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Any]:  # fmt: skip
    """The second derivatives of the sum of `ys` with respect to each of `xs`, whose shapes must be known."""
    each = list(xs) if isinstance(xs, (list, tuple)) else [xs]
    results = []
    for x, slope in zip(each, gradients(ys, each), strict=True):
        shape = as_tensor(x).type.shape
        if not all(isinstance(d, int) for d in shape):
            raise TypeMismatch(
                f"the Hessian of {said(as_tensor(x).type)} needs its shape", here(), hint="give x a shape without None"
            )
        sizes = [int(d) for d in shape]
        if slope is None:
            raise TypeMismatch(f"the ys do not depend on {x!r}", here(), hint="leave it out of the xs")
        flat = reshape(slope, [-1])
        rows = []
        for k in np.arange(int(np.prod(sizes))).tolist():
            row = gradients(getitem(flat, k), x)[0]
            rows.append(zeros_like(x) if row is None else row)
        results.append(reshape(stack(rows), [*sizes, *sizes], name))
    return results


boundaries(globals(), __all__)
