"""The text of placed graphs: reading undoes printing, and errors name the line."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.programs import Program, devices, find
from tests.support.placed import homes_by_chance

import undertow as ut
from undertow.errors import GraphError
from undertow.ir.graph import StaticGraph
from undertow.ir.placed import Placed
from undertow.ir.text import dump_placed, parse, parse_placed, placed_constants
from undertow.passes.cut import cut
from undertow.passes.place import device_names, places_of

NAMES = [program.name for program in devices.PROGRAMS]

TEXT = """\
placed 1 parts=2 edges=1

part 0 sites=[] inputs=[0] fetches=[] regions=[0] origins=[0, 1, 1]
static 1 f.0
inputs x

main main ^start
  start: ctl = start
  x: f64     = input index=0
  x.to1: ctl = send x edge=0 part=1

part 1 sites=[] inputs=[] fetches=[0] regions=[0] origins=[0, 1, 2, 3]
static 1 f.1
fetches edges

main main ^start
  start: ctl   = start
  x.from0: f64 = recv edge=0 part=0 ^start
  part: f64    = multiply x.from0, 2.0:f64
  edges: f64   = add part, 1.0:f64

edges
edge 0 x: 0 -> 1
"""


@ut.function
def looked_up(n: ut.i64) -> ut.f64:
    """A constant that the text only refers to."""
    if n <= 0:
        return 0.0
    return np.linspace(0.0, 1.0, 300)[n] + looked_up(n - 1)


def graph_of(program: Program) -> StaticGraph:
    graph: StaticGraph = program.function.graph(*program.cases[-1]).static
    return graph


def check_text(placed: Placed) -> None:
    for spans in (True, False):
        text = dump_placed(placed, spans)
        again = parse_placed(text, placed_constants(placed))
        assert dump_placed(again, spans) == text
        assert again.edges == placed.edges and (again == placed or not spans)


@pytest.mark.parametrize("name", NAMES)
def test_placed_by_devices(name: str) -> None:
    graph = graph_of(find(name))
    check_text(cut(graph, places_of(graph, device_names(3)), 4))


@pytest.mark.parametrize("name", NAMES)
def test_placed_at_random(name: str) -> None:
    graph = graph_of(find(name))
    for seed in range(3):
        chance = random.Random(seed)
        check_text(cut(graph, homes_by_chance(graph, 3, chance), 3))


def test_big_constants() -> None:
    graph = looked_up.graph(5).static
    placed = cut(graph, [number % 2 for number in range(len(graph.nodes))], 2)
    assert placed_constants(placed)
    check_text(placed)
    with pytest.raises(GraphError, match="is not among the constants"):
        parse_placed(dump_placed(placed))


def test_a_text() -> None:
    """Nodes may be called `part` and `edges`."""
    placed = parse_placed(TEXT)
    assert dump_placed(placed) == TEXT == str(placed)
    assert [part.fetches for part in placed.parts] == [(), (0,)]
    assert placed.edges[0].name == "x"


def test_a_part_is_a_graph() -> None:
    """The text of each part alone is that of a static graph."""
    part = TEXT.split("origins=[0, 1, 2, 3]\n")[1].split("\nedges\n")[0]
    assert parse(part) == parse_placed(TEXT).parts[1].graph


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("placed 1", "placed 2", "line 1: only format 1 is supported"),
        ("placed 1", "static 1", "line 1: expected `placed`"),
        ("parts=2", "parts=3", "line 1: there are 2 parts and 1 edges"),
        ("edges=1", "edges=0", "line 1: there are 2 parts and 1 edges"),
        ("part 1 sites", "part 2 sites", "line 12: expected part number 1"),
        ("inputs=[0]", "inputs=0", "line 3: `inputs` must be numbers"),
        ("inputs=[0]", "inputs=[true]", "line 3: `inputs` must be numbers"),
        ("sites=[]", "sites=[1]", "line 3: `sites` has 1 numbers, and the part has 0"),
        ("origins=[0, 1, 1]", "origins=[0, 1]", "line 3: `origins` has 2 numbers, and the part has 3"),
        ("edge 0 x", "edge 1 x", "line 23: expected edge number 0"),
        ("0 -> 1", "0 -> 2", "line 23: there are parts 0 to 1"),
        ("multiply x.from0", "multiply y", "line 19: expected the name of a node"),
        ("\nedges\n", "\n", "expected the table of `edges` after the parts"),
        ("static 1 f.1", "library 1 main=f.1", "line"),
        (TEXT, "", "line 1: expected `placed`"),
    ],
)  # fmt: skip
def test_what_is_wrong(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(GraphError) as caught:
        parse_placed(TEXT.replace(old, new, 1))
    assert said in caught.value.what
