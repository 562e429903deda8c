"""Traits of kernels that plan passes need; the core provides them, see `engines.native.traits_of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from undertow.plan.plan import Kernel


class Traits(NamedTuple):
    """What plan passes must know of a kernel."""

    is_native: bool = True  # else the host runs it
    is_each: bool = False  # elementwise
    deciding: int = 0  # bit k: a result's shape depends on the value of operand k


TraitsOf = Callable[[Kernel], Traits]
