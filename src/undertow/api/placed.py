"""A graph in parts, to inspect: what `f.graph(...).placed()` gives."""

from __future__ import annotations

from undertow.api.placing import check_placement, parts_of_nodes
from undertow.errors import TypeMismatch, brief
from undertow.ir import text
from undertow.ir.graph import StaticGraph
from undertow.ir.placed import Edge, Part, Placed
from undertow.passes.cut import cut
from undertow.passes.partition import estimate
from undertow.passes.place import device_names, workers_named

_SHOWN = 8  # values that cross, of the estimate


class PlacedView:
    """A graph in parts: part 0 is the program itself, part k + 1 is worker k. It prints, and renders as a picture."""

    def __init__(self, graph: StaticGraph, workers: int | None = None, placement: str = "devices") -> None:
        if workers is not None and (type(workers) is not int or workers < 0):
            raise TypeMismatch(
                f"the number of workers must be a whole number, not {brief(workers)}",
                hint="leave it out for as many as the devices name",
            )
        self.static = graph
        self.devices = device_names(workers_named(graph) if workers is None else workers)
        places = parts_of_nodes(graph, len(self.devices) - 1, check_placement(placement))
        self.placed: Placed = cut(graph, places, len(self.devices))
        self.estimate = estimate(graph, places, len(self.devices))

    @property
    def parts(self) -> tuple[Part, ...]:
        """What each process runs: a static graph with Send and Recv."""
        return self.placed.parts

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges that cross, by number."""
        return self.placed.edges

    def __str__(self) -> str:
        return f"{self.text(spans=False)}\n{self._expected()}"

    def __repr__(self) -> str:
        return f"<static graph of {self.static.name}: {len(self.parts)} parts, {len(self.edges)} edges that cross>"

    def __len__(self) -> int:
        return len(self.parts)

    def text(self, spans: bool = True) -> str:
        """The text form; `undertow.ir.text.parse_placed` reads it back."""
        return text.dump_placed(self.placed, spans)

    def _expected(self) -> str:
        """The estimate, as comments of the text form."""
        expected, shares = self.estimate, self.estimate.shares
        if len(shares) == 1:
            return "# all of it is in one part\n"
        lines = ["the parts' work and what crosses, by an estimate that guesses how often calls and loops run:"]
        lines += [
            f"  {share:4.0%} part {k}, {name}" for k, (name, share) in enumerate(zip(self._names, shares, strict=True))
        ]
        lines += [f"  {expected.tokens:,.0f} tokens, {expected.bytes:,.0f} bytes; of these"]
        lines += [f"    {crossing}" for crossing in expected.crossings[:_SHOWN]]
        if len(expected.crossings) > _SHOWN:
            lines.append(f"    and {len(expected.crossings) - _SHOWN} more")
        return "".join(f"# {line}\n" for line in lines)

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The picture of the whole graph, as SVG text: parts in colours, and edges that cross bold."""
        from undertow.viz.parts import parts_of  # the layout library is loaded only for pictures
        from undertow.viz.svg import svg

        return svg(self.static, parts_of(self.static, self.placed, self._names))

    def dot(self) -> str:
        """The same in Graphviz' language."""
        from undertow.viz.dot import dot
        from undertow.viz.parts import parts_of

        return dot(self.static, parts_of(self.static, self.placed, self._names))

    @property
    def _names(self) -> list[str]:
        return [name or "main" for name in self.devices]
