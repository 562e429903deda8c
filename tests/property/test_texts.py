"""Texts of graphs: what is printed parses back, and what is damaged is refused with a GraphError, never a crash."""

from __future__ import annotations

import functools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.programs import PROGRAMS

from undertow.errors import GraphError
from undertow.ir import text
from undertow.ir.graph import Library, StaticGraph
from undertow.ir.spec import check

_SMALL = settings(
    max_examples=60, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)


@functools.cache
def graphs(number: int) -> tuple[Library, StaticGraph]:
    return PROGRAMS[number].capture(0)


any_graph = st.builds(lambda number, kind: graphs(number)[kind], st.integers(0, len(PROGRAMS) - 1), st.integers(0, 1))


@_SMALL
@given(any_graph, st.booleans())
def test_what_is_printed_parses_back(graph: Library | StaticGraph, spans: bool) -> None:
    constants = text.dump_constants(graph)
    printed = text.dump(graph, spans=spans)
    parsed = text.parse(printed, constants)
    assert text.dump(parsed, spans=spans) == printed
    assert parsed == graph or not spans


@_SMALL
@given(any_graph, st.randoms(use_true_random=False))
def test_lines_may_be_commented_and_spaced(graph: Library | StaticGraph, random: object) -> None:
    """Blank lines, comments and spaces say nothing."""
    lines = text.dump(graph).split("\n")
    spaced = [line + random.choice(("", "  ", "  # a comment")) for line in lines]  # type: ignore[attr-defined]
    assert text.parse("\n\n".join(spaced), text.dump_constants(graph)) == graph


@settings(_SMALL, max_examples=150)
@given(any_graph, st.data())
def test_damaged_texts_are_refused_or_valid(graph: Library | StaticGraph, data: st.DataObject) -> None:
    """A few characters or lines are changed: then it is no graph, or a graph that is checked and prints again."""
    printed = text.dump(graph)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(printed)))
        length = data.draw(st.sampled_from((0, 0, 1, 1, 5, 40)))
        put = data.draw(
            st.sampled_from(("", "", "0", "9", "#", "#1", ",", "x", " ", ":", "^", "\n", "[", '"', "i64", "=", "in "))
        )
        printed = printed[:at] + put + printed[at + length :]
    try:
        parsed = text.parse(printed, text.dump_constants(graph))
        check(parsed)
    except GraphError:
        return
    assert text.parse(text.dump(parsed), text.dump_constants(graph)) == parsed
