"""Arrays of ever new lengths: the third length is captured as one that is known only at run time.

Lengths are part of a signature, so each would be captured by itself. From the third on, a capture with these
dimensions open is tried. It must say what a capture for known lengths says: if it is refused, or computes in other
dtypes (a length in an expression is a Python number there, and an i64 here), each length is captured as before.
Lengths 0 and 1 stay known: an array of one element broadcasts, and an empty one has no element to start with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undertow.frontend.trace.library import Captured
from undertow.ir.graph import Const, FunctionGraph, Library
from undertow.ir.structure import is_primitive
from undertow.types import Type

LEAST = 2  # an open length
_KNOWN = 2  # signatures, before one with open lengths is tried
# Operators that move values and compute none.
_MOVES = frozenset(("index", "slice", "take", "dim", "identity", "reshape", "concat", "stack", "broadcast_to"))
Axes = tuple[tuple[bool, ...], ...]


def with_open_lengths(known: Sequence[tuple[Type, ...]], types: tuple[Type, ...]) -> tuple[Type, ...] | None:
    """The types with those dimensions open that differ from the latest known types; None if there is no need yet.

    >>> from undertow.types import f64
    >>> with_open_lengths([(f64[2], f64[5]), (f64[3], f64[5])], (f64[4], f64[5]))
    (f64[?], f64[5])
    """
    alike = [other for other in known if len(other) == len(types) and all(map(_is_alike, other, types))]
    if len(alike) < _KNOWN:
        return None
    for other in reversed(alike):
        pairs = [(a, b) for x, y in zip(other, types, strict=True) for a, b in zip(x.shape, y.shape, strict=True)]
        differ = [pair for pair in pairs if pair[0] is not None and pair[0] != pair[1]]
        if differ and all(isinstance(n, int) and n >= LEAST for pair in differ for n in pair):
            return tuple(_joined(x, y) for x, y in zip(other, types, strict=True))
    return None


def _is_alike(a: Type, b: Type) -> bool:
    return a.dtype == b.dtype and a.rank == b.rank


def _joined(a: Type, b: Type) -> Type:
    return a.with_shape(tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True)))


def open_axes(opened: Iterable[Type], types: Iterable[Type]) -> Axes:
    """Which axes have been opened, though these types know their lengths."""
    pairs = zip(opened, types, strict=True)
    return tuple(tuple(d is None and n is not None for d, n in zip(x.shape, y.shape, strict=True)) for x, y in pairs)


def are_long(types: Sequence[Type], axes: Axes) -> bool:
    """Are these types long enough where axes have been opened?"""
    for type_, opens in zip(types, axes, strict=True):
        for n, is_open in zip(type_.shape, opens, strict=True):
            if is_open and isinstance(n, int) and n < LEAST:
                return False
    return True


# --------------------------------------------------------------------------------------------------------------
# Do two captures mean the same?


def means_the_same(opened: Captured, known: Captured) -> bool:
    """Does a capture with open lengths compute what one with known lengths computes, in the same dtypes?"""
    if opened.result != known.result or not all(map(_is_alike, _results(opened), _results(known))):
        return False
    if opened.needs_seed != known.needs_seed or opened.variables.keys() != known.variables.keys():
        return False
    computed = {kind for _, kind in _computed(known.library)}
    return all(is_of_lengths or kind in computed for is_of_lengths, kind in _computed(opened.library))


def _results(captured: Captured) -> list[Type]:
    main = captured.library.functions[captured.library.main]
    return [main.type_of(port) for port in main.results[: captured.result_count]]


def _computed(library: Library) -> Iterable[tuple[bool, tuple[str, ...]]]:
    """(is it of lengths alone, operator and dtypes) of each operator that computes floats, or casts."""
    for graph in library.functions.values():
        lengths = _of_lengths(graph)
        for number, node in enumerate(graph.nodes):
            is_float = any(type_.dtype.is_inexact for type_ in node.types)
            if is_primitive(node.op) and node.op not in _MOVES and (is_float or node.op == "cast"):
                inputs = [graph.type_of(x).dtype.name for x in node.inputs] if node.op == "cast" else []
                yield number in lengths, (node.op, *inputs, *(type_.dtype.name for type_ in node.types))


def _of_lengths(graph: FunctionGraph) -> set[int]:
    """The nodes whose values are computed from lengths and constants alone."""
    found: set[int] = set()
    for number, node in enumerate(graph.nodes):
        is_known = is_primitive(node.op) and bool(node.inputs) and not node.controls
        if node.op == "dim" or (is_known and all(isinstance(x, Const) or x.node in found for x in node.inputs)):
            found.add(number)
    return found
