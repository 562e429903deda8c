"""The results of the lanes of a map, as one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import Fault
from undertow.ops.op import Value
from undertow.types import CTL, Type


def stack_lanes(values: Sequence[Value], type_: Type) -> Value:
    """The results of all lanes of a map as one value."""
    if type_ == CTL:
        return np.True_
    if not values:
        return np.zeros([0, *(d if isinstance(d, int) else 0 for d in type_.shape[1:])], type_.dtype.numpy)
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        raise Fault(
            f"the results of a map have different shapes: {', '.join(map(str, sorted(shapes)))}",
            hint="pad them to one shape",
            kind=ValueError,
        )
    return np.array(values, type_.dtype.numpy)
