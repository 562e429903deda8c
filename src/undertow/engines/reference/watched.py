"""A run that knows which tokens are in transit: delivered to a node that has not fired, or to a fetch.

This is InTransit of Abadi, Isard and Murray, "A Computational Model for TensorFlow" (MAPL 2017), section 3.2, with a
tag for each token. Runs for results do without it: it costs a look-up a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from undertow.engines.checks import GO, Value
from undertow.engines.contract import Options, State
from undertow.engines.reference.frame import NONE, Context, Frame
from undertow.engines.reference.frames import Ready
from undertow.engines.reference.rows import DEAD, NumberedGraph, Out, Quiet
from undertow.engines.reference.run import Run
from undertow.engines.reference.schedulers import Scheduler
from undertow.ir.graph import Port
from undertow.ir.structure import STARTS
from undertow.ir.trace import Tag


class Transit(NamedTuple):
    """A token on an edge. A live value is a list where it is what all lanes of a map have given."""

    source: Port | None  # None: it was fed
    target: int | None  # None: it is fetched
    tag: Tag  # of the activation where it arrives; a lane's, for one that waits for the other lanes
    value: Value  # NONE: it is dead


class WatchedRun(Run):
    """A run with the tokens in transit."""

    def __init__(
        self, rows: NumberedGraph, values: list[Value], options: Options, state: State | None, scheduler: Scheduler
    ) -> None:
        super().__init__(rows, values, options, None, state, (scheduler[0], self._pop))
        self._next = scheduler[1]
        self._waiting: dict[Ready, list[Transit]] = {}
        self._firing = 0  # the node
        self._outs: Sequence[Out] = ()  # of the node that fires
        self._quiet: Sequence[Quiet] = ()
        for at in rows.first_ready:
            number = self.main.rows[at].number
            fed = GO if self.graph.nodes[number].op == "start" else values[self.graph.inputs.index(number)]
            self._waiting[self.main, at] = [Transit(None, number, (), fed)]

    def in_transit(self) -> tuple[Transit, ...]:
        """The tokens in transit, in the order in which they were made."""
        fetched = (
            Transit(port, None, (), value)
            for port, value in zip(self.graph.fetches, self.results, strict=True)
            if value is not None
        )
        return *(token for tokens in self._waiting.values() for token in tokens), *fetched

    def _pop(self) -> Ready:
        ready = self._next()
        frame, at = ready
        self._waiting.pop(ready, None)
        self._firing, self._outs, self._quiet = frame.rows[at].number, frame.rows[at].outs, frame.rows[at].quiet
        return ready

    # -- where tokens arrive -------------------------------------------------------------------------------

    def _arrive(self, frame: Frame, at: int, source: Port, value: Value, tag: Tag | None = None) -> None:
        token = Transit(source, frame.rows[at].number, frame.tag() if tag is None else tag, value)
        self._waiting.setdefault((frame, at), []).append(token)

    def _maker(self, out: Out) -> Port:
        return Port(self._firing, next((index for index, other in enumerate(self._outs) if other is out), 0))

    def deliver(self, target: Frame, value: Value, out: Out) -> None:
        for at, _ in out.plain:
            self._arrive(target, at, self._maker(out), value)
        for at, _ in out.merges:
            if target.pend[at] > 0:  # else it has fired, and swallows what comes later
                self._arrive(target, at, self._maker(out), value)
        super().deliver(target, value, out)

    def deliver_far(self, target: Frame, value: Value, out: Out) -> None:
        lane = target.context
        for number, phase in out.lanes:
            assert lane is not None
            if phase < target.kind.visits:
                at = lane.site.gathers[number][0]
                self._arrive(lane.parent, at, self._maker(out), value, target.tag())
        super().deliver_far(target, value, out)

    def collect(self, context: Context, number: int) -> None:
        self._waiting.pop((context.parent, context.site.gathers[number][0]), None)  # all of them are one token now
        super().collect(context, number)

    def put(self, frame: Frame, at: int, slot: int, value: Value) -> None:
        # What is put (a result, an invariant, an argument of an entry) is the only operand of its node.
        source = self.graph.nodes[frame.rows[at].number].inputs[0]
        assert isinstance(source, Port)
        self._arrive(frame, at, source, value)
        super().put(frame, at, slot, value)

    def kill(self, target: Frame, token: Quiet) -> None:
        index = next((index for index, other in enumerate(self._quiet) if other is token), 0)
        source = Port(self._firing, index + (self.graph.nodes[self._firing].op in STARTS))
        gates = [at for at in token.gates if target.pend[at] < DEAD]
        for at in (*token.plain, *gates, *(at for at in token.merges if target.pend[at] > 0)):
            self._arrive(target, at, source, NONE)
        if token.up is not None and target.parent is not None:
            for at in token.up.get(target.site, ()):
                self._arrive(target.parent, at, source, NONE)
        super().kill(target, token)
