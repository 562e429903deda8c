"""Written by `python docs/manual.py random`; do not edit."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from undertow._annotations import Array as Array

__all__: list[str]

def bernoulli(p: Any = 0.5, size: Any = None) -> Array:
    """True with probability `p`."""

def beta(a: Any, b: Any, size: Any = None, dtype: Any = ...) -> Array:
    """Beta-distributed numbers from 0 to 1, with mean `a / (a + b)`."""

def categorical(*, p: Any = None, logits: Any = None, size: Any = None) -> Array:
    """Numbers of classes: each class with its probability in `p`, along the last axis, or with those of `logits`."""

def choice(a: Any, size: Any = None, replace: builtins.bool = True, p: Any = None) -> Array:
    """Elements of the array `a`, or integers below `a`, drawn with or without replacement."""

def exponential(scale: Any = 1.0, size: Any = None, dtype: Any = ...) -> Array:
    """Exponentially distributed numbers with mean `scale`."""

def gamma(shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = ...) -> Array:
    """Gamma-distributed numbers with mean `shape * scale`; a `shape` of 0 gives 0."""

def integers(low: Any, high: Any = None, size: Any = None, dtype: Any = ..., endpoint: builtins.bool = False) -> Array:
    """Integers from `low` to below `high`, or up to it if `endpoint`; `integers(n)` are from 0 to below n."""

def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = ...) -> Array:
    """Normal numbers with mean `loc` and standard deviation `scale`."""

def permutation(x: Any) -> Array:
    """The integers below x, or the elements along the first axis of an array, in random order."""

def random(size: Any = None, dtype: Any = ...) -> Array:
    """Uniform numbers from 0 to below 1."""

def standard_normal(size: Any = None, dtype: Any = ...) -> Array:
    """Normal numbers with mean 0 and standard deviation 1."""

def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = ...) -> Array:
    """Uniform numbers from `low` to below `high`."""
