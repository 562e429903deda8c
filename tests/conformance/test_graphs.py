"""The graphs of every program: valid, printable, and the same whatever the values of the arguments are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.programs import PROGRAMS, Program

from undertow.ir import text
from undertow.ir.graph import Node
from undertow.ir.spec import check
from undertow.ops.op import find
from undertow.types import Type


def type_rule(node: Node, types: Sequence[Type]) -> tuple[Type, ...]:
    return find(node.op).type(types, node.attrs)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_valid(program: Program) -> None:
    for case in range(len(program.cases)):
        for graph in program.capture(case):
            check(graph, type_rule)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_text_round_trip(program: Program) -> None:
    for graph in program.capture(0):
        assert text.parse(text.dump(graph), text.dump_constants(graph)) == graph
        bare = text.parse(text.dump(graph, spans=False), text.dump_constants(graph))
        assert text.dump(bare) == text.dump(graph, spans=False)


@pytest.mark.parametrize("program", [p for p in PROGRAMS if len(p.cases) > 1], ids=str)
def test_nothing_depends_on_values(program: Program) -> None:
    """Nothing in a graph depends on the data: not one node more for a deeper recursion or a longer array."""
    seen: dict[object, tuple[str, str]] = {}
    for case in range(len(program.cases)):
        library, static = program.capture(case)
        texts = text.dump(library, spans=False), text.dump(static, spans=False)
        assert seen.setdefault(program.signature(case), texts) == texts
