"""Hidden parameters: what a graph takes besides its arguments (docs/design/0003-hidden-parameters.md).

These are values of enclosing graphs, an order token if it acts on the world, and a key if it draws random numbers. They
turn up while the graph is written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.control.restart import StartOver
from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.trace.definition import Specialization
from undertow.frontend.values.traced import Context, Traced, emit
from undertow.ir.graph import Port
from undertow.types import CTL, Type, i64

Outer = tuple[Builder, Port]  # a value of an enclosing graph


def name_of(outer: Outer) -> str:
    """What a value is called in its graph."""
    return outer[0].nodes[outer[1].node].name.rsplit("/", 1)[-1]


class HiddenParameters:
    """Adds to the graphs that are being written what they turn out to take."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._open: dict[Builder, Specialization] = {}  # those that are being captured, outermost first

    def resolve(self, value: Traced) -> Port:
        """A traced value as seen in the graph and region that are being written."""
        builder = self.ctx.open_builder
        if value.builder is builder:
            return builder.use(value.port)
        if value.builder.context is not builder.context:
            raise CaptureError(f"{value!r} belongs to another graph", hint="hand it over as an argument")
        outer = (value.builder, value.port)
        if outer not in builder.lifted:
            self.hide(builder, outer)
        return builder.use(builder.lifted[outer])

    def effect_token(self) -> Port:
        """The order token after which the next effect may happen."""
        builder = self.ctx.open_builder
        if builder.effect is None and builder.entry_effect is None:
            if builder.body is not None:
                raise StartOver(builder.body, needs_order=True)
            self.hide(builder, "effect")
        return self.last_effect(builder)

    def last_effect(self, builder: Builder) -> Port:
        last = builder.effect or builder.entry_effect
        assert last is not None
        return builder.use(last)

    def draw(self) -> Traced:
        """A random key of its own for one place in the program."""
        key = self.key()
        builder = self.ctx.open_builder
        builder.draws += 1
        drawn: Traced = emit("fold_in", [key, np.int64(builder.draws)])[0]
        return drawn

    def key(self) -> Traced:
        """The random key of this activation."""
        builder = self.ctx.open_builder
        if builder.key is None:
            if builder.body is not None:
                raise StartOver(builder.body, needs_key=True)
            self.hide(builder, "key")
        assert builder.key is not None
        return Traced(builder, builder.key)

    def hide(self, builder: Builder, what: Any) -> None:
        """Add a hidden parameter: an order token ("effect"), a random key ("key"), or a value of an enclosing graph."""
        if what == "effect":
            builder.entry_effect = START if builder.kind == "main" else builder.param(CTL, "effect")
        elif what == "key":
            builder.key = builder.param(Type(i64), "seed" if builder.kind == "main" else "key")
        else:
            builder.lifted[what] = builder.param(what[0].type_of(what[1]), name_of(what))
        if builder in self._open:
            self._open[builder].hidden[what] = None

    def forget_hidden(self, builder: Builder) -> None:
        """After a rollback: the hidden parameters are those that are still there."""
        function = self._open.get(builder)
        if function is not None:
            there = {"effect": builder.entry_effect is not None, "key": builder.key is not None}
            function.hidden = {
                what: None
                for what in function.hidden
                if (there[what] if isinstance(what, str) else what in builder.lifted)
            }
