"""Graphs of texts; and libraries that are valid, print and parse back, and stay valid when flattened."""

from __future__ import annotations

from undertow.ir.graph import Library, StaticGraph
from undertow.ir.spec import check
from undertow.ir.text import dump, dump_constants, parse
from undertow.ops.op import find
from undertow.passes.flatten import flatten


def valid(library: Library) -> Library:
    check(library, lambda node, types: find(node.op).type(types, node.attrs))
    assert parse(dump(library), dump_constants(library)) == library
    check(flatten(library))
    return library


def read(text: str) -> Library:
    """The valid library of a text without its first line."""
    return valid(parse_library("library 1 main=main\n" + text))


def parse_library(text: str) -> Library:
    library = parse(text)
    assert isinstance(library, Library)
    return library


def parse_static(text: str) -> StaticGraph:
    graph = parse(text)
    assert isinstance(graph, StaticGraph)
    return graph
