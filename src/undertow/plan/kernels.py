"""Traits of kernels that plan passes need; the core provides them, see `engines.native.traits_of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from undertow.plan.plan import Kernel


class Traits(NamedTuple):
    """Of one kernel."""

    is_native: bool = True  # else the host runs it
    is_each: bool = False  # an operator on each element
    deciding: int = 0  # bit k: the value of operand k decides the shape of a result


TraitsOf = Callable[[Kernel], Traits]
