"""What the demand engine derives from a graph before a run: possible and certain demands.

*Plain* order tokens depend on start tokens alone. Whatever is demanded stands in a branch that was taken, so a plain
token carries no information and is never demanded. All others are, which is what puts effects in order.

*Eager* variables of a loop are those that an exit is certain to need in every iteration: `total` in `total += x`.
Evaluating them in each iteration computes nothing that would not be computed later, and frees old iterations.
"""

from __future__ import annotations

from collections.abc import Iterator

from undertow.engines.frames import check_runnable
from undertow.errors import GraphError
from undertow.ir.budget import paced
from undertow.ir.graph import Node, Port, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.structure import BACK, SITED
from undertow.ir.walk import grouped, phase_of, ports_of, reachable
from undertow.types import CTL

FAR = {**BACK, "outer": ""}  # these take their value from another frame
MOVES = {*SITED, *FAR, "start", "merge", "switch"}  # these compute nothing
_PATIENCE = 64  # iterations after which an exit's needs must repeat, or its loop stays lazy


class DemandIndex(StaticIndex):
    """What the demand engine knows of a static graph before a run."""

    def __init__(self, graph: StaticGraph) -> None:
        super().__init__(graph)
        check_runnable(self)
        self._plain = self._find_plain()
        self.counts = {  # map -> the port of its number of lanes
            node.attrs.integer("site"): Port(n, 1) for n, node in self.of("fan_start") if phase_of(node) == 0
        }
        self.deciders = {n: p for n, node in enumerate(paced(graph.nodes)) if (p := self._decider(node)) is not None}
        self.wanted = self._find_wanted()
        self.preds = {self.site(node).callee: self.deciders[n] for n, node in self.of("exit") if n in self.deciders}
        self.eager = self._find_eager()
        self.last_only = self._find_last_only()

    # -- order tokens --------------------------------------------------------------------------------------

    def is_plain(self, port: Port) -> bool:
        """Is it an order token that depends on start tokens alone?"""
        return self._plain[port.node] and self.graph.nodes[port.node].types[port.index] == CTL

    def _find_plain(self) -> list[bool]:
        """For each node, whether its order tokens are plain: those of every node that it waits for are."""
        nodes = self.graph.nodes
        is_plain = [node.op in MOVES and node.types[0] == CTL for node in nodes]
        users: list[list[int]] = [[] for _ in nodes]
        todo = [number for number, plain in enumerate(is_plain) if not plain]
        for number, node in enumerate(paced(nodes)):
            # The predicate of a switch and the array that a map counts are values: they do not order.
            before = {"switch": node.inputs[1:], "fan_start": ()}.get(node.op, node.inputs)
            for port in (*before, *node.controls):
                if isinstance(port, Port):
                    users[port.node].append(number)
                    if nodes[port.node].types[port.index] != CTL:
                        todo.append(number)
        while todo:
            number = todo.pop()
            is_plain[number] = False
            todo += (user for user in users[number] if is_plain[user])
        return is_plain

    # -- possible demands ----------------------------------------------------------------------------------

    def _decider(self, node: Node) -> Port | None:
        """The predicate that decides a merge over branches, or whether a loop is left; other nodes have none."""
        if node.op == "exit":
            wanted = [("branch", False)]
        elif node.op == "merge" and not self.is_parameter(node):
            wanted = [("branch", True), ("branch", False)]
        else:
            return None
        sides = [self.graph.regions[self.region_of(port)] for port in ports_of(node.inputs)]
        if [(side.kind, side.side) for side in sides] != wanted or len({side.pred for side in sides}) > 1:
            raise GraphError(f"{node.name} does not take its values from the sides of one branch", node.span)
        return sides[0].pred

    def asks(self, number: int) -> Iterator[Port]:
        """The ports that a node may demand, in order: its predicate, its control edges, its inputs."""
        node = self.graph.nodes[number]
        if number in self.deciders:
            yield self.deciders[number]
        if node.op == "fan":
            yield self.counts[node.attrs.integer("site")]
        inputs = node.inputs[1:] if node.op == "switch" else node.inputs
        for port in (*node.controls, *inputs):
            if isinstance(port, Port) and not self.is_plain(port):
                yield port

    def _find_wanted(self) -> list[bool]:
        """For each node, whether a fetch may demand it."""
        fetched = (port.node for port in self.graph.fetches)
        wanted = reachable(fetched, lambda number: (port.node for port in self.asks(number)))
        return [number in wanted for number in range(len(self.nodes))]

    def guards(self, port: Port) -> list[tuple[Port, bool]]:
        """The predicates, outermost first, and the values that they must have for a port to be live."""
        guards: list[tuple[Port, bool]] = []
        region = self.graph.regions[self.region_of(port)]
        while region.kind == "branch" and region.parent is not None:
            assert region.pred is not None
            guards.append((region.pred, region.side))
            region = self.graph.regions[region.parent]
        return guards[::-1]

    # -- certain demands of loops --------------------------------------------------------------------------

    def _find_eager(self) -> dict[int, list[tuple[int, int]]]:
        """For each exit: the variables (merges) that it needs in every iteration but the last `lag`, each with its lag.

        Let D(0) be the variables that the exit needs in the last iteration, and D(j + 1) those that the next values of
        D(j) need: D(j) is needed j iterations before the last. The D(j) repeat at some point, and a variable that is
        in all of them from j on is needed in every iteration that at least j others follow.
        """
        nodes = self.graph.nodes
        exits = grouped((self.site(node).callee, number) for number, node in self.of("exit") if ports_of(node.inputs))
        enters: dict[int, int] = {}  # variable (merge) -> its enter
        nexts: dict[int, int] = {}
        for number, node in self.of("merge"):
            if node.region in exits and number not in self.deciders and not self._plain[number]:
                for port in ports_of(node.inputs):
                    (nexts if nodes[port.node].op == "next" else enters)[number] = port.node
        certain = {merge: frozenset((merge,)) for merge in nexts}
        through: dict[int, list[int]] = {}  # exit -> the enters that it needs, whatever the number of iterations
        eager: dict[int, list[tuple[int, int]]] = {}
        for body in sorted(exits, reverse=True):  # inner loops first: they have larger numbers
            pred = self.preds[body].node
            back = [number for merge, number in nexts.items() if self.bodies[merge] == body]
            taken = {number: ports_of(nodes[number].inputs)[0].node for number in exits[body]}
            self._find_certain([pred, *back, *taken.values()], certain, through)
            for number, source in taken.items():
                needed, history = certain[source], list[frozenset[int]]()
                while needed not in history and len(history) < _PATIENCE:
                    history.append(needed)
                    needed = frozenset[int]().union(*(certain[nexts[merge]] for merge in needed))
                first = certain[pred]
                if needed in history:
                    always = frozenset.intersection(*history[history.index(needed) :])
                    eager[number] = [(merge, _lag(merge, history)) for merge in sorted(always)]
                    first |= frozenset.intersection(*history)
                through[number] = [enters[merge] for merge in sorted(first)]
        return eager

    def _find_last_only(self) -> set[int]:
        """The variables (merges) that no iteration uses: only exits demand them, in the last one."""
        wanted = (number for number, is_wanted in enumerate(self.wanted) if is_wanted)
        users = grouped((port, number) for number in wanted for port in self.asks(number))

        def leaves(number: int, pred: Port) -> bool:
            """Does it forward a value only where the loop is left?"""
            node = self.graph.nodes[number]
            return node.op == "switch" and node.inputs[0] == pred and Port(number, 0) not in users

        return {
            number
            for number, node in self.of("merge")
            if (pred := self.preds.get(node.region)) is not None
            if all(leaves(user, pred) for user in users.get(Port(number), ()))
        }

    def _find_certain(
        self, roots: list[int], certain: dict[int, frozenset[int]], through: dict[int, list[int]]
    ) -> None:
        """Find, for nodes and all that they depend on in their frame, the variables that they certainly demand."""
        todo = [(number, False) for number in roots]
        while todo:
            number, is_ready = todo.pop()
            node = self.graph.nodes[number]
            # The callee of a value from another frame may not need the arguments that this frame passes.
            ports = node.controls if node.op in FAR else tuple(self.asks(number))
            near = [port.node for port in ports if not self.is_plain(port) and self.lands(port) == self.bodies[number]]
            near += through.get(number, ())
            if is_ready:
                parts = [certain[n] for n in near]
                if node.op == "merge":  # the predicate, and what both sides need
                    parts = [parts[0], parts[1] & parts[2]] if len(parts) == 3 else parts[:1]
                certain[number] = frozenset[int]().union(*parts)
            elif number not in certain:
                certain[number] = frozenset()  # ends a walk round a cycle, which no valid graph has
                todo.append((number, True))
                todo += ((n, False) for n in near)


def _lag(merge: int, history: list[frozenset[int]]) -> int:
    return max((j + 1 for j, needed in enumerate(history) if merge not in needed), default=0)
