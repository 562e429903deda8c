"""`f.graph(...).placed()`: a graph in parts, for as many workers as there are."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
from undertow.ir.text import parse_placed


@ut.function
def spread(n: ut.i64) -> ut.i64:
    with ut.device("worker:1"):
        y = n * 2
    return y + 1


@ut.function
def plain(n: ut.i64) -> ut.i64:
    return n * 2 + 1


def test_as_many_as_are_named() -> None:
    view = spread.graph(3).placed()
    assert view.devices == ("", "worker:0", "worker:1") and len(view) == 3
    ops = [[node.op for node in part.graph.nodes if node.op in ("multiply", "add")] for part in view.parts]
    assert ops == [["add"], [], ["multiply"]]
    assert [(edge.name, edge.source, edge.target) for edge in view.edges] == [("spread/y", 2, 0)]
    assert repr(view) == "<static graph of spread: 3 parts, 1 edges that cross>"


def test_more_workers_than_are_named() -> None:
    assert len(spread.graph(3).placed(4)) == 5
    assert len(plain.graph(3).placed(2)) == 3


def test_without_devices() -> None:
    view = plain.graph(3).placed()
    assert len(view) == 1 and not view.edges
    assert {node.name for node in view.parts[0].graph.nodes} == {node.name for node in plain.graph(3).static.nodes}


def test_fewer_workers_than_are_named() -> None:
    with pytest.raises(ut.GraphError, match="placed on 'worker:1', and there is no such worker"):
        spread.graph(3).placed(1)


@pytest.mark.parametrize("workers", [-1, "2", 1.0, True])
def test_no_number(workers: Any) -> None:
    with pytest.raises(ut.TypeMismatch, match="the number of workers must be a whole number"):
        spread.graph(3).placed(workers)


def test_text() -> None:
    view = spread.graph(3).placed()
    assert str(view).startswith("placed 1 parts=3 edges=1\n\npart 0 ")
    assert parse_placed(view.text()) == view.placed
    assert str(view).endswith(
        """
# the parts' work and what crosses, by an estimate that guesses how often calls and loops run:
#    50% part 0, main
#     0% part 1, worker:0
#    50% part 2, worker:1
#   2 tokens, 16 bytes; of these
#     main/n: 0 -> 2, 1.0 tokens, 8 bytes
#     spread/y: 2 -> 0, 1.0 tokens, 8 bytes
"""
    )
    assert str(plain.graph(3).placed()).endswith("\n# all of it is in one part\n")
    assert view._repr_svg_() == view.svg() and view.svg().startswith("<svg ")
    assert view.dot().startswith("digraph ")


def test_replicas_are_counted() -> None:
    @ut.device(["worker:0", "worker:3"])
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n * 2

    assert len(f.graph(3).placed()) == 5
