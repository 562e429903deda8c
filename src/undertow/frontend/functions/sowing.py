"""`ut.sow`: gives a value to the collector around, which `ut.reap` makes. In plain Python, to one that is a list."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions.elementwise import astype
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.operands import as_operand, is_number
from undertow.frontend.values.traced import Traced, context, operand
from undertow.ir.graph import Attrs
from undertow.tracebacks import boundary
from undertow.types import CTL, i64, said

__all__ = ["sow"]

_SOWN: ContextVar[list[tuple[Any, Any]] | None] = ContextVar("undertow_sown", default=None)


@contextlib.contextmanager
def collecting() -> Iterator[list[tuple[Any, Any]]]:
    """Make a list of what plain Python sows, as (place, value)."""
    sown: list[tuple[Any, Any]] = []
    token = _SOWN.set(sown)
    try:
        yield sown
    finally:
        _SOWN.reset(token)


@boundary
def sow(value: Any, /, at: Any) -> None:
    """Give a value, a number or an array, to the `ut.reap` around, as its row `at`.

    All values that one `ut.reap` gathers have one dtype and shape. Where there is none, the value goes nowhere. So a
    function can sow, and whoever wants the values reaps them.
    """
    if tree.children(value) is not None or value is None or isinstance(value, str):
        raise TypeMismatch(
            f"ut.sow takes a number or an array, not {describe(value)}",
            hint="join several in one array: ut.sow(np.stack([a, b]), at=k)",
        )
    place = at if isinstance(at, Traced) else np.asarray(at)
    if place.ndim or (leaf_type(at).dtype.kind != "int"):
        raise TypeMismatch(f"the place of ut.sow is an integer, not {said(leaf_type(at))}", hint="as in at=n // 2")
    current = context([value, at])
    if current is None or current.builder is None:
        sown = _SOWN.get()
        if sown is not None:
            sown.append((int(at), value if is_number(value) else np.array(value)))  # it may change later
        return
    builder = current.builder
    given = as_operand(value)
    inputs = [operand(as_operand(astype(at, i64))), operand(given)]
    attrs = Attrs(weak=True) if is_number(value) else Attrs()
    builder.add("sow", inputs, (CTL,), attrs, current.span)
