"""The layout of a picture of a static graph: nodes in layers, regions as boxes, edges as paths.

A region is laid out by itself, the regions inside it first, as one level: items (nodes, inner boxes, and the
points where edges pass its border) in layers from top to bottom. igraph's Sugiyama layout finds the order within the
layers; coordinates are our own, because items have sizes. Bodies stand in a row. What changes tags runs outside
them: calls leave their body sideways and come in from above, results leave below and come back sideways.

Boxes nest only so far and big graphs get a plain grid, so the work stays near linear; nothing recurses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import igraph

from undertow.ir.graph import Port, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.structure import BACK, READS
from undertow.ir.walk import grouped, in_order, is_inward, ports_of
from undertow.types import CTL
from undertow.viz.variables import VAR

LARGEST = 2_000  # nodes; a larger layered picture is neither quick nor readable
_DEEPEST = 24  # nested boxes; deeper regions are drawn in the last of them
_GAP, _SPACE = 30.0, 20.0  # between layers, between items of a layer
_LANE = 9.0  # between parallel edges
_PAD, _HEAD = 16.0, 20.0  # inside a box, and above its content for the name
_MARGIN = 24.0
_TALL = 60.0  # a layer with a box of this height is aligned at the top
_SWEEPS = 12
_BADNESS: dict[object, float] = {"node": 900.0, "box": 200.0}  # of a lane that crosses one


class Point(NamedTuple):
    """A place in the picture; y grows downwards."""

    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Rect:
    """A box: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Route:
    """A stretch of an edge, or all of it."""

    kind: str  # "data", "control", "variable" (from a Var node), "call" (into a body) or "return" (out of one)
    port: Port  # whose tokens it carries
    points: tuple[Point, ...]
    is_square: bool = False  # straight pieces with round corners, rather than a curve
    has_arrow: bool = False
    targets: tuple[int, ...] = ()  # the nodes that its edges go to: several share the way to a border


@dataclass(frozen=True, slots=True)
class Layout:
    """A picture: a rectangle per node, rectangles of the regions that are drawn (outer first), and the edges."""

    nodes: tuple[Rect, ...]
    regions: dict[int, Rect]
    routes: tuple[Route, ...]
    width: float
    height: float


def layout(graph: StaticGraph, sizes: Sequence[tuple[float, float]], heads: Sequence[float] = ()) -> Layout:
    """Lay out a graph: node n has the size `sizes[n]`; region n is at least as wide as `heads[n]`."""
    if len(graph.nodes) > LARGEST:
        return _grid(graph, sizes)
    return _Picture(graph, sizes, heads or [0.0] * len(graph.regions)).layout()


# --------------------------------------------------------------------------------------------------------------
# Edges


@dataclass(frozen=True, slots=True)
class Edge:
    """From an output to a node. "call" edges lead into a body and "return" edges out of one: they change tags."""

    kind: str  # "data", "control", "variable", "call" or "return"
    port: Port
    target: int
    slot: int  # which of the places on the target's upper side


def edges_of(graph: StaticGraph) -> list[Edge]:
    """All edges, by target."""
    edges: list[Edge] = []
    for target, node in enumerate(graph.nodes):
        ports = ports_of(node.inputs)
        for slot, port in enumerate((*ports, *node.controls)):
            is_read = node.op in READS and slot < len(ports)
            if is_inward(graph.nodes[port.node], port.index) or is_read:
                kind = "call"
            elif node.op in BACK and slot == 0 and ports:
                kind = "return"
            elif graph.nodes[port.node].op == VAR:
                kind = "variable"
            else:
                is_order = slot >= len(ports) or graph.type_of(port) == CTL
                kind = "control" if is_order else "data"
            edges.append(Edge(kind, port, target, slot))
    return edges


def _spread(index: int, count: int, width: float) -> float:
    """The offset of one of `count` evenly spaced points from the middle of a side."""
    return ((index + 1) / (count + 1) - 0.5) * width


# --------------------------------------------------------------------------------------------------------------
# One level


@dataclass(slots=True)
class _Item:
    """Something in a layer, placed by the middle of its upper side."""

    width: float
    height: float
    layer: int = 0
    x: float = 0.0
    y: float = 0.0


@dataclass(slots=True)
class _Stretch:
    """An edge, or a part of one, between two items of a level; where on their sides it begins and ends."""

    kind: str
    port: Port
    source: int
    target: int
    source_at: float
    target_at: float
    has_arrow: bool
    is_free: bool = False  # it may end anywhere on its target's side
    targets: list[int] = field(default_factory=list)  # nodes
    bends: list[int] = field(default_factory=list)  # items that stand for it in the layers between


@dataclass(slots=True)
class _Level:
    """What is inside one box."""

    narrowest: float = 0.0
    items: list[_Item] = field(default_factory=list)
    keys: dict[tuple[object, ...], int] = field(default_factory=dict)
    stretches: list[_Stretch] = field(default_factory=list)
    # By their ends: edges share stretches to borders.
    seen: dict[tuple[int, int, Port], _Stretch] = field(default_factory=dict)
    above: set[int] = field(default_factory=set)  # points on the upper border
    below: set[int] = field(default_factory=set)  # points on the lower border
    order: list[tuple[int, int]] = field(default_factory=list)  # (upper, lower) pairs, besides those of edges
    sides: list[tuple[int, int]] = field(default_factory=list)  # boxes of the true and the false side of a branch
    # Items whose edges run to the side below their layer, and those whose edges come from the side above it.
    sideways: dict[str, dict[int, None]] = field(default_factory=lambda: {"leaving": {}, "coming": {}})
    lanes: dict[tuple[str, int], float] = field(default_factory=dict)  # y of those
    width: float = 0.0
    height: float = 0.0

    def item(self, key: tuple[object, ...], width: float = 8.0, height: float = 0.0) -> int:
        if key not in self.keys:
            self.keys[key] = len(self.items)
            self.items.append(_Item(width, height))
        return self.keys[key]

    def place(self) -> None:
        """Give every item its x and y, within this level."""
        self._find_layers()
        self._bend()
        rows = self._find_order()
        self._free_ends(rows)
        self._find_y(rows)
        self._find_x(rows)

    def _find_layers(self) -> None:
        """Put each item as high as the edges allow; border points get their own layers."""
        pairs = [(s.source, s.target) for s in self.stretches if s.source != s.target] + self.order
        before, after = grouped((target, source) for source, target in pairs), grouped(pairs)
        first = 1 if self.above else 0
        for number, item in enumerate(self.items):
            item.layer = 0 if number in self.above else first
        for number in in_order({number: before.get(number, ()) for number in range(len(self.items))}):
            for target in after.get(number, ()):
                self.items[target].layer = max(self.items[target].layer, self.items[number].layer + 1)
        self._sink(after)
        last = max((item.layer for number, item in enumerate(self.items) if number not in self.below), default=0)
        for number in self.below:
            self.items[number].layer = last + 1

    def _sink(self, after: dict[int, list[int]]) -> None:
        """Lower items without predecessors to just above their first user."""
        has_input = {stretch.target for stretch in self.stretches}
        for number, item in enumerate(self.items):
            if number not in has_input and number not in self.above and number in after:
                item.layer = max(item.layer, min(self.items[target].layer for target in after[number]) - 1)

    def _bend(self) -> None:
        """Give long edges an item in every layer that they pass (dummy nodes)."""
        for stretch in self.stretches:
            for layer in range(self.items[stretch.source].layer + 1, self.items[stretch.target].layer):
                stretch.bends.append(len(self.items))
                self.items.append(_Item(8.0, 0.0, layer))

    def _links(self) -> Iterable[tuple[int, int, float, float]]:
        """Pairs of items in neighbouring layers, and where on their sides the edge is."""
        for stretch in self.stretches:
            chain = [stretch.source, *stretch.bends, stretch.target]
            for upper, lower in pairwise(chain):
                begin = stretch.source_at if upper == stretch.source else 0.0
                end = stretch.target_at if lower == stretch.target else 0.0
                yield upper, lower, begin, end

    def _find_order(self) -> list[list[int]]:
        """The items of every layer from left to right."""
        rows: list[list[int]] = [[] for _ in range(max((item.layer for item in self.items), default=-1) + 1)]
        for number, item in enumerate(self.items):
            rows[item.layer].append(number)
        links = list(dict.fromkeys((upper, lower) for upper, lower, _, _ in self._links() if upper != lower))
        downward = [link for link in links if self.items[link[0]].layer < self.items[link[1]].layer]
        if downward:
            layered = igraph.Graph(len(self.items), downward, directed=True)
            layout = layered.layout_sugiyama(layers=[item.layer for item in self.items], maxiter=200)
            coordinates = layout[0] if isinstance(layout, tuple) else layout  # igraph 1.0 adds control points
            for row in rows:
                row.sort(key=lambda number: (coordinates[number][0], number))
        turned = [row[::-1] for row in rows]
        return turned if self._twists(turned) < self._twists(rows) else rows

    def _twists(self, rows: Sequence[Sequence[int]]) -> int:
        """How much is out of order: edges that cross at a side of an item, and true sides right of false ones."""
        place = {number: position for row in rows for position, number in enumerate(row)}
        links = list(self._links())
        outputs = grouped((upper, (begin, place[lower])) for upper, lower, begin, _ in links)
        inputs = grouped((lower, (end, place[upper])) for upper, lower, _, end in links)
        pairs = [pair for ends in (*outputs.values(), *inputs.values()) for pair in pairwise(sorted(ends))]
        wrong = sum(place[left] > place[right] for left, right in self.sides)
        return sum(a[0] < b[0] and a[1] > b[1] for a, b in pairs) + 4 * wrong

    def _free_ends(self, rows: Sequence[Sequence[int]]) -> None:
        """Order the edges into a merge so that they do not cross."""
        place = {number: position for row in rows for position, number in enumerate(row)}
        into = grouped((stretch.target, stretch) for stretch in self.stretches if stretch.is_free)
        for stretches in into.values():
            places = sorted(stretch.target_at for stretch in stretches)
            stretches.sort(key=lambda s: (place[s.bends[-1] if s.bends else s.source], s.source_at))
            for stretch, at in zip(stretches, places, strict=True):
                stretch.target_at = at

    def _find_y(self, rows: Sequence[Sequence[int]]) -> None:
        y = 0.0
        for layer, row in enumerate(rows):
            coming = [number for number in row if number in self.sideways["coming"]]
            for lane, number in enumerate(coming):
                self.lanes["coming", number] = y + lane * _LANE
            y += len(coming) * _LANE
            if layer > 0 and not self.below.issuperset(row):
                y += _GAP / 2
            height = max((self.items[number].height for number in row), default=0.0)
            for number in row:
                item = self.items[number]
                item.y = y if height > _TALL else y + (height - item.height) / 2
            y += height
            leaving = [number for number in row if number in self.sideways["leaving"]]
            if layer < len(rows) - 1 or leaving:
                y += _GAP / 2
            for lane, number in enumerate(leaving):
                self.lanes["leaving", number] = y + lane * _LANE
            y += len(leaving) * _LANE
        self.height = y
        for number in self.below:
            self.items[number].y = y

    def _find_x(self, rows: Sequence[Sequence[int]]) -> None:
        """Pull every item towards its neighbours above and below in turn, keeping order and sizes."""
        above: list[list[tuple[int, float]]] = [[] for _ in self.items]
        below: list[list[tuple[int, float]]] = [[] for _ in self.items]
        for upper, lower, begin, end in self._links():
            if self.items[upper].layer < self.items[lower].layer:
                above[lower].append((upper, begin - end))
                below[upper].append((lower, end - begin))
        for row in rows:
            self._pack(row, [0.0] * len(row))
        for sweep in range(_SWEEPS):
            sides = above if sweep % 2 == 0 else below
            for row in rows if sweep % 2 == 0 else reversed(rows):
                wanted = [self._middle(number, sides[number]) for number in row]
                self._pack(row, wanted)
        left = min((item.x - item.width / 2 for item in self.items), default=0.0)
        right = max((item.x + item.width / 2 for item in self.items), default=0.0)
        self.width = max(right - left, self.narrowest)
        for item in self.items:
            item.x += (self.width - (right - left)) / 2 - left

    def _middle(self, number: int, joined: Sequence[tuple[int, float]]) -> float:
        if not joined:
            return self.items[number].x
        places = sorted(self.items[other].x + shift for other, shift in joined)
        half = len(places) // 2
        return places[half] if len(places) % 2 else (places[half - 1] + places[half]) / 2

    def _pack(self, row: Sequence[int], wanted: Sequence[float]) -> None:
        """The places nearest to the wanted ones (least squares) that keep order and spacing."""
        offsets: list[float] = []
        at = 0.0
        for number in row:
            half = self.items[number].width / 2
            at += half
            offsets.append(at)
            at += half + _SPACE
        # Pool adjacent items that would overlap: a pool sits at the mean of its members' wanted places.
        pools: list[tuple[float, int]] = []
        for wish, offset in zip(wanted, offsets, strict=True):
            mean, count = wish - offset, 1
            while pools and pools[-1][0] > mean:
                before, members = pools.pop()
                mean, count = (before * members + mean * count) / (members + count), members + count
            pools.append((mean, count))
        means = [mean for mean, count in pools for _ in range(count)]
        for number, mean, offset in zip(row, means, offsets, strict=True):
            self.items[number].x = mean + offset


# --------------------------------------------------------------------------------------------------------------
# The whole picture


class _Picture:
    """Levels inside levels, bodies side by side, and the edges between bodies around them."""

    def __init__(self, graph: StaticGraph, sizes: Sequence[tuple[float, float]], heads: Sequence[float]) -> None:
        self.graph = graph
        self.sizes = sizes
        self.heads = heads
        self.index = StaticIndex(graph)
        self.body = self.index.owner
        self.boxes = self._find_boxes()  # region -> region whose box it is drawn in
        self.parents: dict[int, int | None] = {}  # of boxes
        self.levels: dict[int, _Level] = {}
        self.corners: dict[int, Point] = {}  # upper left corner of a box's content
        self.inside_body: dict[int, Point] = {}  # the same, measured from that of its body
        self.edges = edges_of(graph)
        self.slots = [len(ports_of(node.inputs)) + len(node.controls) for node in graph.nodes]

    def _find_boxes(self) -> list[int]:
        depth: list[int] = []
        box: list[int] = []
        for number, region in enumerate(self.graph.regions):
            around = region.parent if region.kind == "branch" else None
            depth.append(0 if around is None else depth[around] + 1)
            box.append(number if around is None or depth[number] <= _DEEPEST else box[around])
        return box

    def box(self, node: int) -> int:
        return self.boxes[self.graph.nodes[node].region]

    def chain(self, box: int) -> list[int]:
        """A box and those around it, innermost first."""
        boxes = [box]
        while (parent := self.parents[boxes[-1]]) is not None:
            boxes.append(parent)
        return boxes

    def output_at(self, port: Port) -> float:
        count = len(self.graph.nodes[port.node].types)
        return _spread(port.index, count, self.sizes[port.node][0])

    def input_at(self, edge: Edge) -> float:
        return _spread(edge.slot, self.slots[edge.target], self.sizes[edge.target][0])

    # -- levels --------------------------------------------------------------------------------------------

    def build(self) -> None:
        for number, node in enumerate(self.graph.nodes):
            self.open(self.boxes[node.region]).item(("node", number), *self.sizes[number])
        for visit in self.index.visits.values():  # results stand below the arguments that they come from
            for number in visit.backs:
                for push in sorted((*visit.starts, *visit.arguments)):
                    if self.box(push) == self.box(number):
                        level = self.levels[self.box(number)]
                        level.order.append((level.item(("node", push)), level.item(("node", number))))
        for parts in self.index.branches.values():
            if set(parts) <= self.levels.keys() and (around := self.parents[parts[0]]) is not None:
                then, other = (self.levels[around].item(("box", part)) for part in parts)
                self.levels[around].sides.append((then, other))
        for edge in self.edges:
            if edge.kind == "call":
                self.sideways("leaving", edge.port.node)
                self.pass_borders("above", edge, None)
            elif edge.kind == "return":
                self.pass_borders("below", edge, None)
                self.sideways("coming", edge.target)
            else:
                self.inside(edge)

    def open(self, box: int) -> _Level:
        """The level of a box, with the boxes around it."""
        at = box
        while at not in self.levels:
            self.levels[at] = _Level(self.heads[at] - 2 * _PAD)
            region = self.graph.regions[at]
            parent = self.boxes[region.parent] if region.kind == "branch" and region.parent is not None else None
            self.parents[at] = parent
            if parent is None:
                break
            at = parent
        return self.levels[box]

    def pass_borders(self, side: str, edge: Edge, stop: int | None) -> tuple[object, ...]:
        """The way of an edge through the borders of all boxes below `stop`; its last item.

        From the source down through the lower borders, or down to the target through the upper ones.
        """
        is_out = side == "below"
        node = edge.port.node if is_out else edge.target
        at, key, border = self.box(node), ("node", node), (side, edge.port)
        while at != stop:
            level = self.levels[at]
            (level.below if is_out else level.above).add(level.item(border))
            self.join(at, edge, *((key, border) if is_out else (border, key)))
            key, parent = ("box", at), self.parents[at]
            if parent is None:
                break
            at = parent
        return key

    def inside(self, edge: Edge) -> None:
        """An edge within a body: up to the box that holds both ends, and down again."""
        here = set(self.chain(self.box(edge.target)))
        common = next((box for box in self.chain(self.box(edge.port.node)) if box in here), None)
        source, target = (self.pass_borders(side, edge, common) for side in ("below", "above"))
        if common is not None:
            self.join(common, edge, source, target)

    def join(self, box: int, edge: Edge, source: tuple[object, ...], target: tuple[object, ...]) -> None:
        level = self.levels[box]
        source_at = self.output_at(edge.port) if source[0] == "node" else 0.0
        target_at = self.input_at(edge) if target[0] == "node" else 0.0
        ends = level.item(source), level.item(target)
        has_arrow = target[0] == "node"
        key = (*ends, edge.port)
        if has_arrow or key not in level.seen:
            is_free = has_arrow and self.graph.nodes[edge.target].op == "merge"
            made = _Stretch(edge.kind, edge.port, *ends, source_at, target_at, has_arrow, is_free)
            level.seen[key] = made
            level.stretches.append(made)
        level.seen[key].targets.append(edge.target)

    def sideways(self, way: str, number: int) -> None:
        """Let the edges of a node run to the side."""
        level = self.levels[self.box(number)]
        level.sideways[way][level.item(("node", number))] = None

    # -- coordinates ---------------------------------------------------------------------------------------

    def layout(self) -> Layout:
        self.build()
        depth = {box: len(self.chain(box)) for box in self.levels}
        outer_first = sorted(self.levels, key=lambda box: (depth[box], box))
        for box in reversed(outer_first):
            self.size_inner_boxes(box)
            self.levels[box].place()
        for box in outer_first:
            self.inside_body[box] = self.find_inside(box)
        outside = _Outside(self, [box for box in outer_first if self.parents[box] is None])
        regions: dict[int, Rect] = {}
        for box in outer_first:
            body, inside, level = self.corners[self.body[box]], self.inside_body[box], self.levels[box]
            self.corners[box] = corner = Point(body.x + inside.x, body.y + inside.y)
            width, height = level.width + 2 * _PAD, level.height + _HEAD + _PAD
            regions[box] = Rect(corner.x - _PAD, corner.y - _HEAD, width, height)
        routes = [route for box in self.levels for route in self.routes(box)] + outside.routes()
        nodes = tuple(self.rect(number) for number in range(len(self.graph.nodes)))
        return Layout(nodes, regions, tuple(routes), outside.width, outside.height)

    def find_inside(self, box: int) -> Point:
        parent = self.parents[box]
        if parent is None:
            return Point(0.0, 0.0)
        level, around = self.levels[parent], self.inside_body[parent]
        item = level.items[level.keys["box", box]]
        return Point(around.x + item.x - item.width / 2 + _PAD, around.y + item.y + _HEAD)

    def size_inner_boxes(self, box: int) -> None:
        """Take over the sizes of inner boxes, which are placed by now, and where edges cross their borders."""
        level = self.levels[box]
        for key, number in level.keys.items():
            if key[0] == "box":
                inner = self.levels[key[1]]  # type: ignore[index]
                level.items[number].width = inner.width + 2 * _PAD
                level.items[number].height = inner.height + _HEAD + _PAD
                for stretch in level.stretches:
                    if stretch.source == number:
                        stretch.source_at = inner.items[inner.keys["below", stretch.port]].x - inner.width / 2
                    if stretch.target == number:
                        stretch.target_at = inner.items[inner.keys["above", stretch.port]].x - inner.width / 2

    def rect(self, number: int) -> Rect:
        item, corner = self.item(number), self.corners[self.box(number)]
        return Rect(corner.x + item.x - item.width / 2, corner.y + item.y, item.width, item.height)

    def item(self, number: int) -> _Item:
        level = self.levels[self.box(number)]
        return level.items[level.keys["node", number]]

    def routes(self, box: int) -> list[Route]:
        level, corner = self.levels[box], self.corners[box]
        bottoms: dict[int, float] = {}
        tops: dict[int, float] = {}
        for item in level.items:
            tops[item.layer] = min(tops.get(item.layer, item.y), item.y)
            bottoms[item.layer] = max(bottoms.get(item.layer, 0.0), item.y + item.height)
        found: list[Route] = []
        for stretch in level.stretches:
            source, target = level.items[stretch.source], level.items[stretch.target]
            # Points of the upper border stand on the border itself, above the name of the box.
            rise = _HEAD if stretch.source in level.above else 0.0
            fall = _PAD if stretch.target in level.below else 0.0
            points = [Point(source.x + stretch.source_at, source.y + source.height - rise)]
            if bottoms[source.layer] > source.y + source.height + 1:  # first past its neighbours
                points.append(Point(points[0].x, bottoms[source.layer]))
            for bend in stretch.bends:
                item = level.items[bend]
                points += [Point(item.x, tops[item.layer]), Point(item.x, bottoms[item.layer])]
            points.append(Point(target.x + stretch.target_at, target.y + fall))
            moved = tuple(Point(point.x + corner.x, point.y + corner.y) for point in points)
            targets = tuple(stretch.targets)
            found.append(Route(stretch.kind, stretch.port, moved, has_arrow=stretch.has_arrow, targets=targets))
        return found


@dataclass(slots=True, eq=False)
class _Way:
    """The way of edges that change tags: out of a node, to the side and up; or from below, back to a node."""

    node: int  # which it leaves, or comes back to
    body: int  # of that node
    edges: list[Edge]
    is_call: bool
    drop: float  # of its lane, below the node's upper side
    depth: float  # of its lane in the body
    is_right: bool  # of the body
    lane: float = 0.0  # how far right of the body, or left
    corridor: int = 0  # above all bodies, or below them


class _Outside:
    """The bodies in a row, and the edges that change tags: in channels beside them and corridors above and below."""

    def __init__(self, picture: _Picture, bodies: Sequence[int]) -> None:
        self.picture = picture
        self.bodies = bodies
        self.known: dict[int, list[tuple[float, float, float, float, float]]] = {}  # obstacles of bodies
        # One way for all edges of a source that come in from above; one for each that comes back.
        calls = grouped((edge.port, edge) for edge in picture.edges if edge.kind == "call")
        self.calls = [self.way(port.node, "leaving", edges) for port, edges in calls.items()]
        self.backs = [self.way(edge.target, "coming", [edge]) for edge in picture.edges if edge.kind == "return"]
        widths = self.share_channels()
        for corridor, way in enumerate(sorted(self.calls, key=lambda way: -abs(way.lane))):
            way.corridor = corridor
        sources: dict[Port, int] = {}
        for way in self.backs:
            way.corridor = sources.setdefault(way.edges[0].port, len(sources))
        top = lowest = _MARGIN + (len(self.calls) + 1) * _LANE + _HEAD
        x = _MARGIN
        self.left: dict[int, float] = {}
        for place, body in enumerate(bodies):
            level = picture.levels[body]
            x += widths[place]
            self.left[body] = x
            picture.corners[body] = Point(x + _PAD, top)
            x += level.width + 2 * _PAD
            lowest = max(lowest, top + level.height + _PAD)
        self.width = x + widths[-1] + _MARGIN
        self.bottom = lowest + _LANE
        self.height = lowest + (len(sources) + 1) * _LANE + _MARGIN

    def way(self, node: int, direction: str, edges: list[Edge]) -> _Way:
        """A way on the side that the node's lane reaches past the fewest obstacles."""
        picture, body = self.picture, self.picture.index.bodies[node]
        level, inside = picture.levels[picture.box(node)], picture.inside_body[picture.box(node)]
        item = picture.item(node)
        drop = level.lanes[direction, level.keys["node", node]] - item.y
        x, y = inside.x + item.x, inside.y + item.y + drop
        cost = [x, picture.levels[body].width - x]
        for left, right, top, bottom, weight in self.obstacles(body):
            if top - 2 <= y <= bottom + 2 and not left <= x <= right:
                cost[left > x] += weight
        return _Way(node, body, edges, direction == "leaving", drop, y, cost[1] <= cost[0])

    def obstacles(self, body: int) -> list[tuple[float, float, float, float, float]]:
        """What a lane should not cross in a body: left, right, top, bottom, and the penalty."""
        if body not in self.known:
            picture = self.picture
            obstacles = self.known.setdefault(body, [])
            for box, level in picture.levels.items():
                inside = picture.inside_body[box]
                for key, number in level.keys.items() if picture.body[box] == body else ():
                    if key[0] in _BADNESS:
                        item = level.items[number]
                        x, y = inside.x + item.x, inside.y + item.y
                        edges = x - item.width / 2, x + item.width / 2, y, y + item.height
                        obstacles.append((*edges, _BADNESS[key[0]]))
        return self.known[body]

    def share_channels(self) -> list[float]:
        """Give every way a lane, so that few cross; how wide the channels are. Channel k is left of body k.

        Calls run up: the deeper, the further out. Results come from below: the higher, the further out.
        """
        widths = [3 * _LANE] * (len(self.bodies) + 1)
        sides = grouped(((way.body, way.is_right), way) for way in (*self.calls, *self.backs))
        for place, body in enumerate(self.bodies):
            for is_right in (False, True):
                ways = sides.get((body, is_right), [])
                ways.sort(key=lambda way: (not way.is_call, way.depth if way.is_call else -way.depth))
                for position, way in enumerate(ways, 1):
                    way.lane = position * _LANE if is_right else -position * _LANE
                widths[place + is_right] += len(ways) * _LANE
        return widths

    def lane_x(self, way: _Way) -> float:
        width = self.picture.levels[way.body].width + 2 * _PAD
        return self.left[way.body] + (width + way.lane if way.is_right else way.lane)

    def border(self, body: int, side: str, port: Port) -> float:
        level = self.picture.levels[body]
        return self.picture.corners[body].x + level.items[level.keys[side, port]].x

    def routes(self) -> list[Route]:
        picture = self.picture
        routes: list[Route] = []
        for way in self.calls:
            port, rect, x = way.edges[0].port, picture.rect(way.node), self.lane_x(way)
            begin = Point(rect.x + rect.width / 2 + picture.output_at(port), rect.y + rect.height)
            y, roof = rect.y + way.drop, _MARGIN + way.corridor * _LANE
            for body in dict.fromkeys(picture.index.bodies[edge.target] for edge in way.edges):
                end = Point(self.border(body, "above", port), picture.corners[body].y - _HEAD)
                points = (begin, Point(begin.x, y), Point(x, y), Point(x, roof), Point(end.x, roof), end)
                targets = tuple(edge.target for edge in way.edges if picture.index.bodies[edge.target] == body)
                routes.append(Route("call", port, points, is_square=True, targets=targets))
        for way in self.backs:
            (edge,), rect, x = way.edges, picture.rect(way.node), self.lane_x(way)
            body = picture.index.bodies[edge.port.node]
            foot = picture.corners[body].y + picture.levels[body].height + _PAD
            begin = Point(self.border(body, "below", edge.port), foot)
            y, floor = rect.y + way.drop, self.bottom + way.corridor * _LANE
            end = Point(rect.x + rect.width / 2 + picture.input_at(edge), rect.y)
            points = (begin, Point(begin.x, floor), Point(x, floor), Point(x, y), Point(end.x, y), end)
            targets = (edge.target,)
            routes.append(Route("return", edge.port, points, is_square=True, has_arrow=True, targets=targets))
        return routes


# --------------------------------------------------------------------------------------------------------------
# Big graphs


def _grid(graph: StaticGraph, sizes: Sequence[tuple[float, float]]) -> Layout:
    """Every body as rows of nodes in order, its edges as straight lines."""
    members = grouped((body, number) for number, body in enumerate(StaticIndex(graph).bodies))
    rects: dict[int, Rect] = {}
    regions: dict[int, Rect] = {}
    y, widest = _MARGIN, 0.0
    cell_width = max((width for width, _ in sizes), default=0.0) + _SPACE
    cell_height = max((height for _, height in sizes), default=0.0) + _GAP
    columns = max(1, round((len(graph.nodes) * cell_height / cell_width) ** 0.5))
    for region, numbers in members.items():
        for position, number in enumerate(numbers):
            row, column = divmod(position, columns)
            width, height = sizes[number]
            rects[number] = Rect(_MARGIN + _PAD + column * cell_width, y + _HEAD + row * cell_height, width, height)
        rows = -(-len(numbers) // columns)
        box_width = min(columns, len(numbers)) * cell_width + 2 * _PAD
        regions[region] = Rect(_MARGIN, y, box_width, _HEAD + rows * cell_height + _PAD)
        y += regions[region].height + _GAP
        widest = max(widest, box_width)

    def middle(number: int, part: float) -> Point:
        rect = rects[number]
        return Point(rect.x + rect.width / 2, rect.y + rect.height * part)

    routes = tuple(
        Route(edge.kind, edge.port, (middle(edge.port.node, 1.0), middle(edge.target, 0.0)), True, True, (edge.target,))
        for edge in edges_of(graph)
    )
    nodes = tuple(rects[number] for number in range(len(graph.nodes)))
    return Layout(nodes, regions, routes, widest + 2 * _MARGIN, y + _MARGIN - _GAP)
