"""Assign-f for any pure f, over one variable or several: x, y := f(x, y, v), atomically.

f is a library of pure graphs, and its text is the attribute `f`; docs/design/0029-behaviors-and-updates.md says why.
The first parameters of its main graph are what the `targets` hold, which are variables, the others are the operands;
its first results are what the targets become, and what else it returns are results of the operator.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from undertow.errors import GraphError, TypeMismatch
from undertow.ir.graph import Attrs, FunctionGraph, Library
from undertow.ir.spec import check
from undertow.ir.text import parse
from undertow.ops.effects import variables_of
from undertow.ops.evaluate import evaluate_library, may_evaluate
from undertow.ops.op import Op, Value
from undertow.ops.rules import may_be_equal
from undertow.ops.state import UNSEEN, Store, hand_out, put_in, stateless
from undertow.types import CTL, Type


@lru_cache(256)
def _library_of(text: str) -> Library:
    library = parse(text)
    if not isinstance(library, Library):
        raise GraphError("f is a static graph, not a library")
    check(library)
    for graph in library.functions.values():
        for node in graph.nodes:
            if not may_evaluate(node):
                raise GraphError(f"f has a `{node.op}`, and must be a pure function", node.span)
    return library


def _main_of(library: Library) -> FunctionGraph:
    return library.functions[library.main]


def _held(attrs: Attrs) -> list[Type]:
    """The types that the variables hold: those of the first parameters of f."""
    main = _main_of(_library_of(attrs.text("f")))
    return [main.nodes[number].types[0] for number in main.params[: len(variables_of(attrs))]]


def _rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    main = _main_of(_library_of(attrs.text("f")))
    names, held = variables_of(attrs), _held(attrs)
    called = " and ".join(f"`{name}`" for name in names)
    taken = [main.nodes[number].types[0] for number in main.params[len(names) :]]
    if len(held) != len(names) or not names or len(set(names)) < len(names):
        raise TypeMismatch(f"the f of variables {called or '(none)'} takes the values of {len(held)}")
    if len(taken) != len(types) or not all(a.accepts(b) for a, b in zip(taken, types, strict=True)):
        raise TypeMismatch(f"the f of {called} takes {_listed(taken)} beside what is held, not {_listed(types)}")
    given = [main.type_of(port) for port in main.results]
    for name, before, after in zip(names, held, given, strict=False):
        if after.dtype != before.dtype or not may_be_equal(after.shape, before.shape):
            raise TypeMismatch(
                f"the function returns {after} for variable `{name}`, which holds {before}",
                hint="convert it, or create the variable with another dtype= or shape=",
            )
    if len(given) < len(names):
        raise TypeMismatch(f"the f of {called} returns {_listed(given)}, and must return a value for each")
    return *held, *given[len(names) :], CTL


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _update(store: Store, values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    names = variables_of(attrs)
    made = evaluate_library(_library_of(attrs.text("f")), [*(hand_out(store, name) for name in names), *values])
    new = [put_in(store, *row) for row in zip(names, _held(attrs), made, strict=False)]
    return *new, *made[len(names) :], np.True_


ROWS: tuple[Op, ...] = (
    Op(
        "update", None, _rule, stateless,
        "`targets` become f(their values, operands), atomically; `f` is the text of a library of pure graphs; "
        "returns the new values, what else f returns, and an order token",
        UNSEEN, faults=True, effect=True, state=_update,
    ),
)  # fmt: skip
