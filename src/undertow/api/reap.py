"""`ut.reap`: a result for each activation, gathered. As `sow` and `reap` of Flax and Oryx, with places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from undertow.api.function import Function
from undertow.api.options import PYTHON, settings
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions.sowing import collecting
from undertow.frontend.interpret.drive import drive
from undertow.frontend.trace.definition import Definition
from undertow.frontend.trace.derivative import definition_of
from undertow.frontend.trace.reaped import Reaped
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced, capturing, context
from undertow.passes.sown.ways import TWICE
from undertow.tracebacks import boundary
from undertow.types import is_integer


class Collector:
    """A function that also returns what it and all that it calls have sown."""

    __slots__ = ("_add", "_bound", "_function", "_inner", "_n")
    __undertow_static__: ClassVar[bool] = True

    def __init__(self, inner: Any, n: Any, add: bool) -> None:
        definition, self._bound = definition_of(inner, "ut.reap")
        self._inner, self._n, self._add = inner, n, add
        self._function = _derived(definition, add)

    def __repr__(self) -> str:
        return f"<undertow function {self._function.__undertow_definition__.name}>"

    @boundary
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        current = context([*args, *kwargs.values()])
        if current is not None and current.builder is not None:
            reaped: Any = self._function.__undertow_definition__
            every = (*self._bound, *args)
            with capturing(current):
                return current.give(drive(reaped.write(current.session, self._n, every, kwargs)))
        if settings().engine == PYTHON:
            with collecting() as sown:
                result = self._inner(*args, **kwargs)
            return result, _array(sown, int(self._n), self._add)
        return self._function(self._n, (*self._bound, *args), kwargs)


def _derived(definition: Definition, add: bool) -> Function:
    key = ("reap", add)
    found: Function | None = definition.derived.get(key)
    if found is None:
        found = Function(Reaped(definition, add))
        found.__name__ = found.__qualname__ = f"reap({definition.name})"  # type: ignore[attr-defined]
        found = definition.derived.setdefault(key, found)
    return found


def _array(sown: Sequence[tuple[int, Any]], n: int, add: bool) -> Any:
    """What plain Python has sown, as an array."""
    values = [np.asarray(value) for _, value in sown]
    strong = [array.dtype for array, (_, value) in zip(values, sown, strict=True) if not is_weak(value)]
    dtype = strong[0] if strong else np.result_type(np.float64 if not values else values[0].dtype, *values)
    array = np.zeros((n, *(values[0].shape if values else ())), dtype)
    count = np.zeros(n, int)
    for (place, _), value in zip(sown, values, strict=True):
        if add:
            array[place] += value.astype(dtype)
        else:
            array[place] = value
        count[place] += 1
    if not add and np.any(count > 1):
        raise ValueError(TWICE.format(np.argmax(count)))
    return array


@boundary
def reap(function: Callable[..., Any], n: Any, add: bool = False) -> Collector:
    """A function that returns a pair: what `function` returns, and an array of n rows with what it has sown.

    >>> from undertow.api.function import function
    >>> from undertow.frontend.functions.sowing import sow
    >>> from undertow.types import i64
    >>> @function
    ... def fib(n) -> i64:
    ...     value = n if n < 2 else fib(n - 1) + fib(n - 2)
    ...     sow(1, at=n)
    ...     return value
    >>> reap(fib, 6, add=True)(5)
    (np.int64(5), array([3, 5, 3, 2, 1, 1]))

    Row k is the value that `function`, or a function that it calls, however deep, has given with `ut.sow(value, at=k)`;
    it is zero where nothing was sown. Two values at one place are an error, unless `add` says to add them. Gradients
    go through the array back to every activation that has sown; forward mode does not.
    """
    if not isinstance(n, Traced) and not is_integer(n):
        raise TypeMismatch(f"ut.reap takes the number of places, not {brief(n)}", hint="write ut.reap(f, n)")
    if not isinstance(add, bool):
        raise TypeMismatch(f"add={brief(add)} of ut.reap must be True or False", hint="write ut.reap(f, n, add=True)")
    return Collector(function, n, add)
