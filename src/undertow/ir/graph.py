"""Nodes, edges and regions: what function graphs and static graphs are made of.

Everything is frozen. A port names an output of a node by numbers; names explain and never identify.
An operand is a port or a constant: constants are present under every tag and are no nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Union

import numpy as np
import numpy.typing as npt

from undertow.errors import Span
from undertow.ir.exact import exact
from undertow.types import Type, type_of

Array = npt.NDArray[np.generic]
# Attribute values are plain data, so that every graph prints and parses.
Attr = Union[None, bool, int, float, str, tuple["Attr", ...]]  # noqa: UP007  # it names itself


class Port(NamedTuple):
    """Output `index` of node number `node`."""

    node: int
    index: int = 0  # type: ignore[assignment]  # hides tuple.index, which is never called on a port


class Const:
    """A constant operand. Equal when dtype, shape and bits are equal."""

    __slots__ = ("_key", "type", "value")

    def __init__(self, value: Array | np.generic) -> None:
        array = np.array(value, order="C", copy=True)
        array.flags.writeable = False
        self.value: Array = array
        self.type: Type = type_of(array)
        self._key: tuple[str, tuple[int, ...], bytes] | None = None

    def _identity(self) -> tuple[str, tuple[int, ...], bytes]:
        if self._key is None:
            self._key = (self.type.dtype.name, self.value.shape, self.value.tobytes())
        return self._key

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Const) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Const({self.type}, {self.value.tolist() if self.value.size <= 8 else '...'})"


Operand = Port | Const


class Attrs(Mapping[str, Attr]):
    """A frozen mapping from attribute name to plain data, ordered by name. Equal where all values are the same."""

    __slots__ = ("_items", "_key")

    def __init__(self, /, **items: Attr) -> None:
        self._items = dict(sorted(items.items()))
        self._key: tuple[tuple[str, object], ...] | None = None

    def _identity(self) -> tuple[tuple[str, object], ...]:
        if self._key is None:
            self._key = tuple((name, exact(value)) for name, value in self._items.items())
        return self._key

    def __getitem__(self, key: str) -> Attr:
        return self._items[key]

    def __contains__(self, key: object) -> bool:
        return key in self._items  # Mapping's own raises and catches a KeyError for every missing key

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Attrs) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Attrs({', '.join(f'{k}={v!r}' for k, v in self._items.items())})"

    def __or__(self, others: Mapping[str, Attr]) -> Attrs:
        return Attrs(**{**self._items, **others})

    def without(self, *keys: str) -> Attrs:
        """The same without some attributes, which may be missing."""
        return Attrs(**{key: value for key, value in self._items.items() if key not in keys})

    def integer(self, key: str) -> int:
        """An attribute that must be an integer."""
        value = self._items[key]
        assert isinstance(value, int), f"{key} is {value!r}, not an integer"
        return value

    def text(self, key: str) -> str:
        """An attribute that must be a string."""
        value = self._items[key]
        assert isinstance(value, str), f"{key} is {value!r}, not a string"
        return value

    def integers(self, key: str) -> tuple[int, ...]:
        """An attribute that must be a tuple of integers."""
        value = self._items[key]
        assert isinstance(value, tuple), f"{key} is {value!r}, not a tuple"
        return tuple(int(v) for v in value)  # type: ignore[arg-type]


EMPTY = Attrs()


@dataclass(frozen=True, slots=True)
class Node:
    """One operator. Fires under a tag when every input and control has a token of that tag."""

    op: str
    inputs: tuple[Operand, ...]
    types: tuple[Type, ...]  # one per output
    name: str  # unique within its graph; explains, never identifies
    region: int = 0
    attrs: Attrs = EMPTY
    controls: tuple[Port, ...] = ()  # order only: the tokens' values are ignored, their deadness is not
    span: Span | None = None  # the user's file:line:column; every pass copies it

    @property
    def short_name(self) -> str:
        """Its name without the regions that it stands in."""
        return self.name.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Region:
    """Nodes that share frames. A branch region is the part of its parent where `pred` is `side`."""

    kind: str  # "main", "function", "loop", "map" or "branch"
    name: str
    parent: int | None = None  # the enclosing region; functions and main have none
    pred: Port | None = None  # branch only
    side: bool = False  # branch only
    starts: tuple[Port, ...] = ()  # the pivot of each phase: triggers nodes that have no inputs


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and the regions that they stand in: the base of function graphs and static graphs."""

    nodes: tuple[Node, ...]
    regions: tuple[Region, ...]

    def type_of(self, operand: Operand) -> Type:
        if isinstance(operand, Const):
            return operand.type
        return self.nodes[operand.node].types[operand.index]

    def branches(self) -> dict[tuple[Port, int], tuple[int, int]]:
        """(predicate, parent region) -> (region of the true side, region of the false side)."""
        sides_of: dict[tuple[Port, int], list[int]] = {}
        for number, region in enumerate(self.regions):
            if region.kind == "branch":
                assert region.pred is not None and region.parent is not None
                sides = sides_of.setdefault((region.pred, region.parent), [-1, -1])
                sides[0 if region.side else 1] = number
        return {key: (sides[0], sides[1]) for key, sides in sides_of.items()}


@dataclass(frozen=True, slots=True)
class Phase:
    """One visit to an activation: its parameters and results."""

    params: tuple[int, ...]  # node numbers of `param` nodes
    results: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class FunctionGraph(Graph):
    """The body of a function, loop or map: acyclic, nodes in topological order, calls still single nodes.

    Region 0 is the body itself, its `starts` the `start` node of each phase.
    The first `carried` parameters of a *loop* are its variables, the others are invariants read from the parent
    frame; its results are the predicate (do another iteration?) and then the next value of each variable, in the
    predicate's true branch. The first `carried` parameters of a *map* are the mapped elements; the others are
    invariants. In a later phase of a map all parameters are elements, except order tokens, which every lane gets.

    Graphs of one `group` share *entries*: the last `hoisted` parameters of phase 0, the same in all of them, are given
    once, by the call that enters the group from outside. Calls, loops and maps within the group leave them out.
    Any graph may read a value that main lists in `shared`, by the operator of that name.
    """

    name: str = ""
    kind: str = "function"  # "main", "function", "loop" or "map"
    phases: tuple[Phase, ...] = ()
    carried: int = 0
    span: Span | None = None
    group: str = ""
    hoisted: int = 0
    shared: tuple[Port, ...] = ()  # main only: values of the whole run

    @property
    def params(self) -> tuple[int, ...]:
        return self.phases[0].params

    @property
    def results(self) -> tuple[Port, ...]:
        return self.phases[0].results

    def omitted(self, callee: FunctionGraph) -> int:
        """How many of a callee's phase-0 parameters (the last ones) a call, loop or map in this graph leaves out."""
        return callee.hoisted if self.group and self.group == callee.group else 0


@dataclass(frozen=True, slots=True)
class Library:
    """Function graphs by name; `main` is the one that a run enters."""

    functions: Mapping[str, FunctionGraph] = field(default_factory=dict)
    main: str = "main"

    def __str__(self) -> str:
        return _as_text(self)


@dataclass(frozen=True, slots=True)
class Site:
    """A call site, loop or map in the static graph. Its number (from 1) is its label in tags."""

    kind: str  # "call", "loop" or "map"
    label: str  # readable: "fib/left"
    caller: int  # the enclosing region
    callee: int  # region that it enters
    span: Span | None = None
    late: int = 0  # arguments that the callee computes itself, where it needs them


@dataclass(frozen=True, slots=True)
class StaticGraph(Graph):
    """The one graph that engines run. Site number n is `sites[n - 1]`."""

    name: str = ""
    sites: tuple[Site, ...] = ()
    inputs: tuple[int, ...] = ()  # node numbers of `input` nodes, in the order in which values are fed
    fetches: tuple[Port, ...] = ()

    def __str__(self) -> str:
        return _as_text(self)


def _as_text(graph: Library | StaticGraph) -> str:
    from undertow.ir.text import dump  # it imports this file

    return dump(graph, spans=False)
