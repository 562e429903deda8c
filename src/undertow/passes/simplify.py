"""Simplify a library: constant folding, common subexpressions, algebraic identities and dead code.

The result gives the same values, bit for bit, and makes the same calls with no more firings. Only dead code is removed,
and its faults with it. No operator leaves its branch. Calls are not merged, and not inlined unless asked: activations
are counted as in the source.

Devices: equal operators on different devices are not one; what a rule writes is where the operator was that it
replaces; a constant has none.

>>> from undertow.ir.text import dump, parse
>>> library, report = simplify(parse('''
... library 1 main=main
... main main(x: i64) -> (c)
...   a: i64 = subtract x, x
...   b: i64 = multiply x, 2:i64
...   c: i64 = add b, a
... '''))
>>> print(dump(library), end="")
library 1 main=main
<BLANKLINE>
main main(x: i64) -> (b)
  b: i64 = multiply x, 2:i64
>>> print(report)
simplify: 5 nodes -> 3
  x - x              1
  x + 0              1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from undertow.errors import Fault
from undertow.ir.budget import check
from undertow.ir.graph import Array, Attrs, Const, FunctionGraph, Library, Operand, Port
from undertow.ir.pattern import ANY, LARGEST, Form, Match, Output, Row, Table, Var, form
from undertow.ir.rewrite import Operators, rewrite
from undertow.ops.effects import is_pure, is_stateful
from undertow.ops.op import find
from undertow.ops.random import ROWS as RANDOM
from undertow.passes.algebra import ALGEBRA, FALSE, TRUE, invert
from undertow.passes.dead import remove_dead
from undertow.passes.inline import inline_calls
from undertow.passes.report import Report as Report
from undertow.passes.report import size
from undertow.types import Type, type_of

_ROUNDS = 4  # a second round finds little, a third almost nothing
_MOST_READ = 1 << 20  # elements of constants that folding may look at

# --------------------------------------------------------------------------------------------------------------
# Control flow and constant folding


def _types(op: str, operands: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    return find(op).type(operands, attrs)


OPERATORS = Operators(is_pure, _types)
_UNFOLDED = frozenset(row.name for row in RANDOM)


def _fold(match: Match) -> tuple[Output, ...] | None:
    """The results of an operator on constants, by its reference kernel, if it cannot fault."""
    node = match.node
    values = [operand.value for operand in node.inputs if isinstance(operand, Const)]
    if len(values) < len(node.inputs) or not is_pure(node.op) or node.op in _UNFOLDED:
        return None
    if sum(value.size for value in values) > _MOST_READ or not all(map(_is_small, node.types)):
        return None
    check()  # what it computes may take longer than all else here
    try:
        with np.errstate(all="ignore"):
            results = find(node.op).eval([value[()] for value in values], node.attrs)
    except Fault:
        return None
    arrays = [np.asarray(r, t.dtype.numpy) for r, t in zip(results, node.types, strict=True)]
    if any(type_of(array) != type for array, type in zip(arrays, node.types, strict=True)):
        return None
    # An operator that turns finite operands into nan or inf stays: `check_finite` must find it.
    if not all(map(_is_finite, arrays)) and all(map(_is_finite, values)):
        return None
    return tuple(map(Const, arrays))


def _is_small(type: Type) -> bool:
    return type.is_static and np.prod([d for d in type.shape if isinstance(d, int)], dtype=float) <= LARGEST


def _is_finite(array: Array) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def _constant(match: Match) -> tuple[Operand, Operand] | None:
    value = match["c"]
    return (value, value) if isinstance(value, Const) else None


def _merged_before(match: Match) -> tuple[Operand, Operand] | None:
    """The operands of a Merge, if it joined the two sides of this Switch's predicate."""
    a, b = match["a"], match["b"]
    sides = match.draft.pairs[match["p"], match.node.region]
    homes = tuple(match.draft.home(port) for port in (a, b) if isinstance(port, Port))
    return (a, b) if homes == sides else None


def _predicate(match: Match) -> Operand | None:
    return match.pred


def _opposite(match: Match) -> Form | None:
    return None if match.pred is None else invert(match.pred)


P, X = Var("p"), Var("x")

CONTROL: list[Row] = [
    ("identity", form("identity", X), X),
    ("switch of a constant", form("switch", P, Var("c")), _constant),
    ("switch of its predicate", form("switch", P, P), (Const(np.True_), Const(np.False_))),
    ("switch of a merge", form("switch", P, form("merge", Var("a"), Var("b"))), _merged_before),
    ("merge of one value", form("merge", form("switch", P, X), form("switch", P, X, index=1)), X),
    ("merge of one constant", form("merge", X, X), X),
    ("merge of true and false", form("merge", TRUE, FALSE), _predicate),
    ("merge of false and true", form("merge", FALSE, TRUE), _opposite),
]

SIMPLIFY = Table("simplify", [*CONTROL, *ALGEBRA.rows, ("constant", Form(ANY, None, of_constants=True), _fold)])

# --------------------------------------------------------------------------------------------------------------
# The pass


def simplify(library: Library, inline: bool = False) -> tuple[Library, Report]:
    """The simplified library, and a report. `inline`: also inline calls, so activations are no longer the source's."""
    before = size(library)
    total: Counter[str] = Counter()
    for step in (remove_dead, inline_calls, remove_dead) if inline else (remove_dead,):
        library, count = step(library)
        total += count
    for _ in range(_ROUNDS):
        library, count = _rewrite_all(library)
        if not count:
            break
        total += count
        library, count = remove_dead(library)
        total += count
    return library, Report(dict(total.most_common()), before, size(library))


def _rewrite_all(library: Library) -> tuple[Library, Counter[str]]:
    total: Counter[str] = Counter()
    functions: dict[str, FunctionGraph] = {}
    ops = {node.op for graph in library.functions.values() for node in graph.nodes}
    keeps_order = any(map(is_stateful, ops))
    for name, graph in library.functions.items():
        simplified, count = rewrite(graph, SIMPLIFY, OPERATORS, keeps_order=keeps_order)
        total += count
        functions[name] = simplified if count else graph
    return Library(functions, library.main), total
