"""A placed graph in the core: part 0 runs here, the others on workers. If a worker is lost, all of it runs again."""

from __future__ import annotations

import contextlib
from typing import Any

from undertow import _core
from undertow.engines import native, outside
from undertow.engines.contract import Options
from undertow.engines.outside import OtherParts, Outside
from undertow.engines.waves import WIDTH
from undertow.engines.waves.part import (
    Counted,
    Crossed,
    PartPlan,
    PlacedCounts,
    counted_of,
    crossed_since,
    has_ended,
    order_for,
    read_reply,
    readable,
)
from undertow.errors import InternalError, RunError, WorkerLost
from undertow.ir.graph import StaticGraph
from undertow.ir.placed import Placed
from undertow.ir.structure import is_primitive
from undertow.ops.debug import print_again
from undertow.ops.effects import CHECKS, is_tagged
from undertow.plan.lower import acts_on_world, kernel_of
from undertow.plan.plan import Kernel
from undertow.plan.project import Whole
from undertow.types import CTL


class PlacedPlan(native.NativePlan):
    """A graph in parts made ready. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph, placed: Placed) -> None:
        super().__init__(graph, "waves")
        self.placed = placed
        whole = Whole(graph)
        self.parts = [PartPlan(part, whole) for part in placed.parts]
        self.fired: list[int] = []  # in the last run, by part

    def call(self, values: list[Any], host: native.Host, where: list[Any], options: Options) -> tuple[list[Any], Any]:
        workers = outside.current()
        if workers is None:
            raise RunError("this graph is placed on workers, and there are none", hint="run it inside of the cluster")
        state = dict(host.state)
        losses = 0
        while True:
            try:
                return self._run_parts(workers, values, host, where, options)
            except WorkerLost:
                losses += 1
                if losses > workers.retries:
                    raise
            host.state.clear()
            host.state.update(state)
            print_again()

    def _run_parts(
        self, workers: Outside, values: list[Any], host: native.Host, where: list[Any], options: Options
    ) -> tuple[list[Any], Any]:
        orders = [order_for(part, values, options) for part in self.parts[1:]]
        with contextlib.closing(workers.parts([p.shipped for p in self.parts[1:]], orders, has_ended)) as others:
            results, counted, crossed = self._run_own(others, values, host, where, options)
            replies = [read_reply(reply) for reply in others.replies()]
        all_crossed = [crossed, *(sent for _, _, sent in replies)]
        check_crossed(all_crossed)
        found: dict[int, Any] = dict(zip(self.parts[0].part.fetches, results, strict=True))
        for part, (given, _, _) in zip(self.parts[1:], replies, strict=True):
            found.update(zip(part.part.fetches, given, strict=True))
        counts = [counted, *(of for _, of, _ in replies)]
        self.fired = [int(part.fired.sum()) for part in counts]
        return [found[number] for number in range(len(found))], PlacedCounts(counts, all_crossed)

    def _run_own(
        self, others: OtherParts, values: list[Any], host: native.Host, where: list[Any], options: Options
    ) -> tuple[list[Any], Counted, Crossed]:
        own = self.parts[0]
        before = others.wire.counts()
        try:
            with readable():
                results, stats = own.core.run(
                    [values[index] for index in own.part.inputs],
                    host.apply,
                    where,
                    WIDTH,
                    *native.limits_of(options),
                    threads=options.threads or _core.usable_cores(),
                    timed=options.timed,
                    wire=others.wire,
                )
        except (_core.WireLost, _core.WireStopped):  # whoever stopped first says why
            for reply in others.replies():
                read_reply(reply)
            raise WorkerLost("the connection to a worker was lost") from None
        return results, counted_of(stats), crossed_since(before, others.wire)


def hosted_nodes(graph: StaticGraph) -> set[int]:
    """The nodes that only the host can run, and so only part 0: those that act, and those without a native kernel.

    Checks are none of them: the core makes them, and the program makes the message of one that fails.
    """
    hosted: set[int] = set()
    for number, node in enumerate(graph.nodes):
        if not is_primitive(node.op) or node.op in CHECKS or is_tagged(node.op):
            continue
        if acts_on_world(node.op) or (
            set(node.types) != {CTL} and not native.traits_of(Kernel(*kernel_of(graph, node))).is_native
        ):
            hosted.add(number)
    return hosted


def check_crossed(crossed: list[Crossed]) -> None:
    """All that was sent has been taken: nothing is under way when a run has ended."""
    for source, rows in enumerate(crossed):
        for target, (_, sent, _, _) in enumerate(rows):
            _, _, _, taken = crossed[target][source]
            if sent != taken:
                raise InternalError(f"part {source} has sent {sent} bytes to part {target}, which has taken {taken}")
