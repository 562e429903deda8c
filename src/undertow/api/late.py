"""A graph with its late arguments, to inspect: what `f.graph(...).late()` gives."""

from __future__ import annotations

from undertow.ir.graph import Library
from undertow.passes.by_need import NonStrictCall, calls_by_need
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_as_written


class LateView:
    """The graph as it was written, and which arguments are computed by need. It prints, and renders as a picture.

    In the graph that runs, what computes a late argument stands in the callee: `f.graph(...)` shows that.
    """

    def __init__(self, captured: Library, name: str) -> None:
        simple, ready = make_as_written(captured)
        self.calls: list[NonStrictCall] = calls_by_need(simple)
        self.static = flatten(ready, name)

    def __str__(self) -> str:
        if not self.calls:
            return (
                "every argument is computed at once: where one is not needed, neither a call nor a loop computes it\n"
            )
        return "\n\n".join(map(str, self.calls)) + "\n"

    def __repr__(self) -> str:
        return f"<static graph of {self.static.name}: {len(self)} late arguments>"

    def __len__(self) -> int:
        """The number of late arguments."""
        return sum(len(call.late) for call in self.calls)

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The picture, as SVG text: what computes a late argument has its colour, all else is computed at once."""
        from undertow.viz.late import needs_of  # the layout library is loaded only for pictures
        from undertow.viz.svg import svg

        return svg(self.static, needs_of(self.static, self._cones()))

    def dot(self) -> str:
        """The same in Graphviz' language."""
        from undertow.viz.dot import dot
        from undertow.viz.late import needs_of

        return dot(self.static, needs_of(self.static, self._cones()))

    def _cones(self) -> list[tuple[str, str, list[str]]]:
        """Of each late argument: what it is called, the node that hands it over, and the nodes that compute it."""
        return [
            (
                f"{argument.name} of {call.callee}",
                f"{call.function}/{call.name}.{argument.name}",
                [f"{call.function}/{name}" for name in argument.nodes],
            )
            for call in self.calls
            for argument in call.late
        ]
