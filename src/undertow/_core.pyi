"""The C++ core: kernels over lanes. What is here is for tests and benchmarks; engines plan once and run there."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

class KernelFault(Exception):
    """A kernel met values that it cannot work on. `args`: what kind of fault, and the first lane that has it.

    The text for users comes from the reference kernel of the operator, run on the operands of that lane.
    """

    args: tuple[str, int]

def run_kernel(
    op: str,
    attrs: Mapping[str, Any],
    inputs: Sequence[npt.NDArray[np.generic]],
    shared: Sequence[bool],
    out_types: Sequence[tuple[str, int]],
    isa: str = "",
) -> list[npt.NDArray[np.generic]]:
    """Run one operator over lanes: operands that are not shared have a leading axis of lanes, and so have results.

    `out_types` are dtype and rank of each result, without that axis.
    """

def kernel_names() -> list[str]:
    """The operators that have kernels."""

def isa() -> str:
    """The instruction set that kernels use: the best there is, or the one named by UNDERTOW_ISA."""

def isas() -> list[str]:
    """The instruction sets that this machine can run."""
