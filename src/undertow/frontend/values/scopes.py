"""Scopes that apply to every node written in them: control dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.errors import TypeMismatch, brief
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.traced import Traced, context
from undertow.ir.graph import Port


class Scope:
    """A `with` block that changes the builder until it ends; outside a capture it does nothing."""

    __undertow_capture__ = True  # may stand in a captured function

    def __init__(self) -> None:
        self._before: list[tuple[Builder, tuple[Port, ...], str | None]] = []

    def _change(self, builder: Builder) -> None:
        raise NotImplementedError

    def __enter__(self) -> None:
        current = context()
        if current is not None and (builder := current.builder) is not None:
            self._before.append((builder, builder.controls, builder.device))
            self._change(builder)

    def __exit__(self, *_: object) -> None:
        if self._before:
            builder, controls, device = self._before.pop()
            builder.controls, builder.device = controls, device


class control_dependencies(Scope):
    """What is written in the block happens after these values have arrived; None forgets the blocks around it.

    State operators of @ut.function keep their program order anyway; this orders what has none.
    """

    def __init__(self, values: Sequence[Any] | None) -> None:
        super().__init__()
        if values is not None and not isinstance(values, (list, tuple)):
            raise TypeMismatch(
                f"control_dependencies takes a list of values, not {brief(values)}",
                hint="write control_dependencies([x])",
            )
        self._values = values

    def _change(self, builder: Builder) -> None:
        if self._values is None:
            builder.controls = ()
            return
        current = context()
        assert current is not None
        ports = [current.session.resolve(value) for value in self._values if isinstance(value, Traced)]
        builder.controls = tuple(dict.fromkeys((*builder.controls, *ports)))
