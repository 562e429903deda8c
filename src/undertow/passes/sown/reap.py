"""Reap: collectors gather what activations below them sow (docs/design/0021-a-result-per-activation.md).

A `reap` stands beside the call that is the collector. What that call enters is copied, as far as something is sown
there. With entries, the copies are one group, whose entry is the collector: each `sow` becomes a `collect_rows`, each
copy gives an order token when it and all below it have sown, and one scatter makes the array at the end. Engines
without entries add up arrays along the calls, with a count for each place. What is sown outside of any collector goes
nowhere: so the functions themselves, for other calls, lose their `sow` nodes.

Devices: what collects a value is where it is sown, and the array is made where the `reap` is.

>>> from undertow.ir.text import dump, parse
>>> library, report = reap(parse('''
... library 1 main=main
... main main(x: f64, n: i64) -> (y)
...   y: f64 = call x callee="square"
... function square(x: f64) -> (y)
...   y: f64 = multiply x, x
...   s: ctl = sow 0:i64, y
... '''))
>>> print(dump(library).partition("function ")[2], end="")
square(x: f64) -> (y)
  y: f64 = multiply x, x
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from undertow.errors import CaptureError
from undertow.ir.graph import FunctionGraph, Library
from undertow.ir.names import Names
from undertow.ir.sown import entered_within, reaps
from undertow.ir.structure import ENTERS, SOWS
from undertow.ir.walk import entered_by, reachable, target_of
from undertow.passes.loops import loops_to_calls
from undertow.passes.report import Report, size
from undertow.passes.sown.copies import Below, Rewriting, below
from undertow.passes.sown.rule import with_rules
from undertow.passes.sown.ways import Adding, Collecting, Dropping, Way, Weighing
from undertow.types import Type


def reap(library: Library, collect: bool = True) -> tuple[Library, Report]:
    """The library without `sow` and `reap` nodes, and a report."""
    before = size(library)
    graphs = library.functions.values()
    if not any(node.op in SOWS or node.op == "reap" for graph in graphs for node in graph.nodes):
        return library, Report({}, before, before, "reap")
    sowing = sowing_graphs(library.functions)
    library = loops_to_calls(library, [name for name in library.functions if _has_sowing_test(library, name, sowing)])
    maker = _Reaping(dict(library.functions), collect)
    maker.write_rules()
    made = Library(maker.write_collectors(), library.main)
    return made, Report(dict(maker.count), before, size(made), "reap")


def sowing_graphs(functions: Mapping[str, FunctionGraph]) -> dict[str, None]:
    """The graphs that sow, or enter one that does, for a collector around them."""
    callers: dict[str, list[str]] = {name: [] for name in functions}
    for name, graph in functions.items():
        for target in entered_within(graph):
            callers[target].append(name)
    sow = [name for name, graph in functions.items() if any(node.op in SOWS for node in graph.nodes)]
    return reachable(sow, callers.__getitem__)


def _has_sowing_test(library: Library, name: str, sowing: Mapping[str, None]) -> bool:
    """Does a graph enter a loop whose test sows? After the last test there is no iteration to take that."""
    graphs = library.functions
    loops = [node.attrs.text("body") for node in graphs[name].nodes if node.op == "loop"]
    return any(
        node.region == 0 and (node.op in SOWS or (node.op in ENTERS and node.attrs[ENTERS[node.op]] in sowing))
        for loop in loops
        for node in graphs[loop].nodes
    )


@dataclass(eq=False)
class _Reaping:
    """All graphs, and what becomes of them."""

    functions: dict[str, FunctionGraph]
    collect: bool
    count: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.taken = Names(self.functions, "~")
        self.known: dict[tuple[str, type[Way], Type | None], Below] = {}  # by root, way and type of the array
        self.waiting: list[tuple[Below, str]] = []  # copies that are to be written

    def write_rules(self) -> None:
        """Give a rule to each collector through which a derivative goes."""
        done: set[str] = set()
        while True:
            for name in self.differentiated("tangent"):
                for number in reaps(self.functions[name]).values():
                    raise CaptureError(
                        "`ut.reap` has no derivative in forward mode",
                        self.functions[name].nodes[number].span,
                        hint="use ut.grad or ut.vjp",
                    )
            names = [name for name in self.differentiated("gradient") if reaps(self.functions[name]).keys() - done]
            names = [name for name in names if name not in done]
            if not names:
                return
            for name in names:
                made = with_rules(self.functions, name, self.taken, self.weighed)
                self.count["collector with a rule"] += len(made) - 1
                self.functions.update(made)
                while self.waiting:
                    inside, graph = self.waiting.pop()
                    copy = Rewriting(self.functions[graph], inside.names[graph], {}, inside).make()
                    self.functions[copy.name] = copy
                done |= made.keys()

    def differentiated(self, op: str) -> dict[str, None]:
        """The graphs that derivatives go through."""
        graphs = self.functions
        targets = [target_of(graph, node) for graph in graphs.values() for node in graph.nodes if node.op == op]
        return reachable(targets, lambda name: entered_by(graphs[name]))

    def weighed(self, root: str, table: Type) -> str:
        """The copy of a graph that also gives the inner product of what is sown with an array, if that is of floats."""
        is_float = table.dtype.is_inexact
        found = self.below(root, Weighing(table) if is_float else Dropping(), table if is_float else None)
        return root if found is None else found.names[root]

    def below(self, root: str, way: Way, table: Type | None) -> Below | None:
        """The copies for collectors around a graph; None if nothing is sown there."""
        key = root, type(way), table
        if key not in self.known:
            sowing = sowing_graphs(self.functions)
            if root not in sowing:
                return None
            inside = [name for name in reachable([root], self.entered) if name in sowing]
            for name in inside:
                _refuse_derivatives(self.functions[name], sowing)
            suffix = "sow" if table is not None and not isinstance(way, Weighing) else "plain"
            names = {name: self.taken.fresh(f"{name}.{suffix}") for name in inside}
            self.known[key] = below(self.functions, root, names, way, table)
            self.waiting += ((self.known[key], name) for name in inside)
            self.count["graph that sows"] += len(names)
        return self.known[key]

    def entered(self, name: str) -> list[str]:
        return entered_within(self.functions[name])

    def write_collectors(self) -> dict[str, FunctionGraph]:
        """All graphs, and the copies."""
        sowing = sowing_graphs(self.functions)
        made: dict[str, FunctionGraph] = {}
        for name, graph in self.functions.items():
            if name in sowing or reaps(graph):
                made[name] = Rewriting(graph, name, self.collectors(graph)).make()
                self.count["graph that does not sow"] += 1
            else:
                made[name] = graph
        while self.waiting:
            inside, name = self.waiting.pop()
            graph = self.functions[name]
            made[inside.names[name]] = Rewriting(graph, inside.names[name], self.collectors(graph), inside).make()
        return made

    def collectors(self, graph: FunctionGraph) -> dict[int, Below | None]:
        """What becomes of the collectors in a graph, by call."""
        found: dict[int, Below | None] = {}
        for call, number in reaps(graph).items():
            type_ = graph.nodes[number].types[0]
            table = type_.with_shape((None, *type_.shape[1:]))
            way = Collecting() if self.collect else Adding(table)
            found[call] = self.below(graph.nodes[call].attrs.text("callee"), way, table)
        return found


def _refuse_derivatives(graph: FunctionGraph, sowing: Mapping[str, None]) -> None:
    """Refuse derivatives, below a collector, of functions that sow: which of their calls would that be?"""
    for node in graph.nodes:
        if node.op in ("gradient", "tangent") and target_of(graph, node) in sowing:
            raise CaptureError(
                "`ut.sow` in a function that is differentiated, below the ut.reap around that",
                node.span,
                hint="call ut.reap inside the differentiated function, and return the array with has_aux=True",
            )
