"""Generators in captured code: a function with `yield` runs up to its next item, whenever it is asked for one.

Its work waits on a stack of its own, as in `drive.py`; what it writes goes to the graph of whoever asks.
"""

from __future__ import annotations

import ast
from types import GeneratorType
from typing import Any

from undertow.errors import CaptureError
from undertow.frontend.interpret.drive import Work
from undertow.frontend.syntax.match import FunctionNode
from undertow.frontend.syntax.queries import own_nodes
from undertow.frontend.values.traced import Context
from undertow.ir.budget import check


class Yielded:
    """An item that a captured generator hands over."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class CapturedGenerator:
    """The iterator that a call of a captured generator function gives."""

    __slots__ = ("_ctx", "_is_plain", "_is_spent", "_name", "_over", "_stack", "again", "is_fresh")

    __undertow_said__ = "a generator"  # in messages

    def __init__(self, ctx: Context, work: Work, name: str, over: Any = None, is_plain: bool = False) -> None:
        self._ctx, self._name, self._over = ctx, name, over
        self._is_plain = is_plain and makes_plainly(over)  # is making an item sure not to fault, call or act?
        self._stack: list[Work] = [work]
        self._is_spent = False
        self.is_fresh = True  # has nobody taken an item?
        self.again: Any = None  # the same as a loop of the graph, if it is a generator expression

    def __iter__(self) -> CapturedGenerator:
        return self

    def __next__(self) -> Any:
        if self._is_spent:
            raise CaptureError(
                "how many items any() or all() took from this generator is known only at run time",
                hint="make a list of its items first",
            )
        self.is_fresh = False
        ctx, span = self._ctx, self._ctx.span
        place = ctx.open_builder, ctx.open_builder.region
        value: Any = None
        fault: BaseException | None = None
        while self._stack:
            check()
            try:
                if fault is None:
                    request = self._stack[-1].send(value)
                else:
                    raised, fault = fault, None
                    request = self._stack[-1].throw(raised)
            except StopIteration as done:
                self._stack.pop()
                value = done.value
            except BaseException as raised:
                self._stack.pop()
                fault = raised
            else:
                if type(request) is GeneratorType:
                    self._stack.append(request)
                    value = None
                elif isinstance(request, Yielded):
                    if place != (ctx.open_builder, ctx.open_builder.region):
                        raise CaptureError(
                            f"`yield` in `{self._name}` depends on a condition known only at run time",
                            hint="choose the value with ut.where, or return all values at once in a list",
                        )
                    ctx.span = span
                    return request.value
                else:
                    value = request
        if fault is not None:
            raise fault
        ctx.span = span
        raise StopIteration(value)


def makes_plainly(values: Any) -> bool:
    """Is taking an item from these sure not to fault, call or act?"""
    return values._is_plain if isinstance(values, CapturedGenerator) else not isinstance(values, (map, filter))


def spend(values: Any) -> None:
    """From now on it is known only at run time which item of these comes next."""
    while isinstance(values, CapturedGenerator):
        values._is_spent = True
        values = values._over


def has_yield(node: FunctionNode) -> bool:
    """Is it the definition of a generator?"""
    return any(isinstance(item, (ast.Yield, ast.YieldFrom)) for item in own_nodes(node))
