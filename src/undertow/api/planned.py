"""The plan of a function, to inspect, edit and run: exactly what the waves engine executes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from undertow.engines.waves import WavesPlan
from undertow.errors import GraphError
from undertow.ir.graph import StaticGraph
from undertow.plan.dump import dump, dump_constants
from undertow.plan.lower import kernel_of
from undertow.plan.parse import parse
from undertow.plan.plan import NO_SLOT, Op, Plan
from undertow.plan.walk import items_of, places, singly
from undertow.tracebacks import guarded
from undertow.types import Type

Feed = Callable[[WavesPlan, Sequence[Any], dict[str, Any]], Any]


@guarded
class PlanView:
    """A plan: it prints, parses and runs."""

    def __init__(self, graph: StaticGraph, data: Plan, feed: Feed) -> None:
        self.static = graph
        self.data = data
        self._feed = feed
        self._plan: WavesPlan | None = None

    @property
    def _ready(self) -> WavesPlan:
        if self._plan is None:
            try:
                self._plan = WavesPlan(self.static, plan=self.data)
            except ValueError as wrong:
                what = str(wrong).removeprefix("not a plan: ")
                raise GraphError(
                    f"the core rejects this plan: {what}", hint="compare it with what print(f.plan(...)) shows"
                ) from None
        return self._plan

    def __str__(self) -> str:
        """The text of the plan; comments show how the core runs narrow groups and agendas."""
        code = self._ready.core.code
        return dump(self.data) + ("\n" + "".join(f"# {line}\n" for line in code.splitlines()) if code else "")

    def __repr__(self) -> str:
        return f"<plan of {self.data.name}: {len(self.data.regions)} regions, {len(self.data.groups)} groups>"

    def parse(self, text: str) -> PlanView:
        """Parse a plan of the same graph: the printed text, perhaps with some lines changed."""
        data = parse(text, dump_constants(self.data))
        if _signature(data) != _signature(self.data):
            raise GraphError("the arguments or results of main have changed", hint="restore the line of its phase")
        parsed = PlanView(_with_operators(self.static, data), data, self._feed)
        _ = parsed._ready  # the core rejects a wrong plan now, not when it runs
        return parsed

    def run(self, *args: Any, **options: Any) -> Any:
        """Run this plan, as `f.run` would run its own."""
        return self._feed(self._ready, args, options)


def _signature(plan: Plan) -> list[list[Type | None]]:
    """The types of main's arguments and results; None for order tokens."""
    main = plan.regions[0]
    return [
        [None if x == NO_SLOT else main.slots[x].type for x in slots] for slots in (main.params[0], main.results[0])
    ]


def _with_operators(graph: StaticGraph, plan: Plan) -> StaticGraph:
    """The graph with the operators that a plan names for its nodes, for the host and for error messages."""
    planned = {
        item.node: plan.kernels[item.kernel]
        for _, _, program in places(plan)
        for item in singly(items_of(program))
        if isinstance(item, Op)
    }
    nodes = []
    for node in graph.nodes:
        kernel = planned.get(node.name)
        if kernel is not None and (kernel.op, kernel.attrs) != kernel_of(graph, node)[:2]:
            node = replace(node, op=kernel.op, attrs=kernel.attrs)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))
