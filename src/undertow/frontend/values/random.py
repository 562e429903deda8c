"""Random numbers: every drawing site has its own key in every activation.

Inside a captured function the key comes from the run's `seed=`, through every call, loop and map on the way, so a
run with a seed gives the same numbers on every engine. Outside a capture the numbers are fresh.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.elsewhere import unknown_name
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.creation import random_normal, random_uniform
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import context
from undertow.tracebacks import boundaries
from undertow.types import f64

__all__ = ["normal", "uniform"]


def _key() -> Any:
    current = context()
    if current is None or current.builder is None:
        return np.int64(secrets.randbits(63))
    return current.session.draw()


def uniform(shape: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = f64) -> Any:
    """Uniform numbers in [low, high)."""
    found = random_uniform(_key(), shape, dtype)
    if isinstance(low, float) and isinstance(high, float) and (low, high) == (0.0, 1.0):
        return found
    # The difference of two Python numbers is one, and takes the dtype of what it meets.
    width = high - low if is_weak(high) and is_weak(low) else functions.subtract(high, low)
    return functions.add(functions.multiply(found, width), low)


def normal(shape: Any = (), mean: Any = 0.0, std: Any = 1.0, dtype: Any = f64) -> Any:
    """Normal numbers with this mean and standard deviation."""
    found = random_normal(_key(), shape, dtype)
    if isinstance(mean, float) and isinstance(std, float) and (mean, std) == (0.0, 1.0):
        return found
    return functions.add(functions.multiply(found, std), mean)


boundaries(globals(), __all__)
_SEED = "there are no generators: `with ut.options(seed=0)`, or f.run(x, seed=0), makes numbers repeatable"
_NAMED_ELSEWHERE = {
    **dict.fromkeys(("seed", "default_rng", "RandomState", "PRNGKey", "key", "Generator", "manual_seed"), _SEED),
    **dict.fromkeys(("randn", "gaussian", "gauss", "standard_normal", "truncated_normal"), "write ut.random.normal"),
    **dict.fromkeys(("rand", "random", "random_sample", "ranf"), "write ut.random.uniform"),
}


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.random", name, __all__, _NAMED_ELSEWHERE)


def __dir__() -> list[str]:
    return sorted(__all__)
