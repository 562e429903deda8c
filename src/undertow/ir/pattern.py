"""Patterns and tables: the rows that the rewrite engine runs, as data.

A row is (name, pattern, result). A pattern is built from `Var` (any operand), `Known` (a constant) and `form` (an
operator and the patterns of its operands); a result from the same, or it is a function of the match.

>>> X = Var("x")
>>> signs = Table("signs", [("double negation", form("negative", form("negative", X)), X)])
>>> [name for name, _, _ in signs.of("negative")]
['double negation']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Union

from undertow.ir.draft import Draft
from undertow.ir.graph import EMPTY, Array, Attrs, Const, Node, Operand, Port
from undertow.ir.structure import is_primitive
from undertow.ir.walk import grouped
from undertow.types import Type

# Constants with more elements are compared by identity and never inspected: rules should not cost more than runs.
LARGEST = 4096


@dataclass(frozen=True, slots=True)
class Var:
    """Matches any operand; the same name twice matches only equal operands. `kinds`: of its dtype, if given."""

    name: str
    kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """Matches a constant that passes the test (constants that are too large never do)."""

    name: str
    test: Callable[[Array], bool]
    kinds: tuple[str, ...] = ()

    def is_true_of(self, value: Array) -> bool:
        return value.size <= LARGEST and self.test(value)


@dataclass(frozen=True, slots=True)
class Form:
    """Matches output `index` of an operator; as a result, makes a node. `inputs=None` matches any operands."""

    op: str
    inputs: tuple[Pattern | Operand, ...] | None
    index: int = 0
    commutes: bool = False  # do the two operands match in either order?
    name: str = ""  # key of the matched node in `Match.nodes`
    attrs: Attrs = EMPTY  # of a result's node
    of_constants: bool = False  # does it match only if all operands are constants?


def form(op: str, *inputs: Pattern | Operand, index: int = 0, commutes: bool = False, name: str = "") -> Form:
    """An operator and the patterns of its operands."""
    return Form(op, inputs, index, commutes, name)


Pattern = Union[Var, Known, Form]  # noqa: UP007  # it names itself
Output = Union[Pattern, Operand]  # noqa: UP007
# What a match becomes: an operand for each output of the node, or a function that returns them (None: no match).
Result = Union[Output, tuple[Output, ...], Callable[["Match"], Union[Output, tuple[Output, ...], None]]]  # noqa: UP007
Row = tuple[str, Form, Result]
ANY = "*"  # as the operator of a row: every primitive


class Nodes(Protocol):
    """A graph that rows are matched against."""

    @property
    def nodes(self) -> Sequence[Node]: ...

    def type_of(self, operand: Operand) -> Type: ...

    def is_pivot(self, port: Port) -> bool: ...


class Table:
    """A named table. Rows of an operator are tried in order; the first that matches wins."""

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.name = name
        self.rows = tuple(rows)
        self._of = grouped((row[1].op, row) for row in self.rows)
        self._likely: dict[tuple[str, ...], tuple[Row, ...]] = {}

    def of(self, op: str) -> Iterator[Row]:
        """The rows that an operator could match."""
        yield from self._of.get(op, ())
        if is_primitive(op):
            yield from self._of.get(ANY, ())

    def likely(self, graph: Nodes, node: Node) -> tuple[Row, ...]:
        """The rows that a node could match, as far as one can tell from what its operands are made by.

        Most nodes match no row, and this finds that out by one look into a dict.
        """
        if len(node.inputs) > 3:  # too many combinations to remember
            return tuple(self.of(node.op))
        key = [node.op]
        for operand in node.inputs:
            if operand.__class__ is Const:
                key += "", operand.type.dtype.kind
            else:
                source = graph.nodes[operand.node]  # type: ignore[union-attr]
                key += source.op, source.types[operand.index].dtype.kind  # type: ignore[union-attr]
        found = self._likely.get(known := tuple(key))
        if found is None:
            made = tuple(zip(key[1::2], key[2::2], strict=True))
            found = self._likely[known] = tuple(row for row in self.of(node.op) if _is_likely(row[1], made))
        return found


def _is_likely(pattern: Form, made: Sequence[tuple[str, str]]) -> bool:
    """Could operands fit, of which these are the operators ("" for a constant) and the kinds of their dtypes?"""
    if pattern.of_constants and any(op for op, _ in made):
        return False
    if pattern.inputs is None:
        return True
    if len(pattern.inputs) != len(made):
        return False
    orders = (made, made[::-1]) if pattern.commutes else (made,)
    return any(all(map(_could_fit, pattern.inputs, order)) for order in orders)


def _could_fit(pattern: Pattern | Operand, made: tuple[str, str]) -> bool:
    op, kind = made
    if isinstance(pattern, Form):
        return pattern.op == op
    if isinstance(pattern, (Port, Const)):
        return True
    return (not pattern.kinds or kind in pattern.kinds) and not (isinstance(pattern, Known) and op)


@dataclass(slots=True)
class Match:
    """A node that fits a pattern: the argument of a rule's function."""

    graph: Nodes
    node: Node  # its operands are already rewritten
    pred: Port | None = None  # of a Merge: the predicate of the branch that it closes
    operands: dict[str, Operand] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Operand:
        return self.operands[name]

    @property
    def draft(self) -> Draft:
        """The draft that nodes are added to: where there are branches, rows are matched against that."""
        assert isinstance(self.graph, Draft)
        return self.graph

    def type(self, operand: Operand) -> Type:
        return self.graph.type_of(operand)

    def fits(self, pattern: Pattern | Operand, operand: Operand) -> bool:
        """Does an operand fit, given what is bound so far? (Recursion is over the pattern, never over the graph.)"""
        if isinstance(pattern, Form):
            return isinstance(operand, Port) and self._fits_node(pattern, operand)
        if isinstance(pattern, (Port, Const)):
            return pattern == operand
        if pattern.kinds and self.type(operand).dtype.kind not in pattern.kinds:
            return False
        if isinstance(pattern, Known) and not (isinstance(operand, Const) and pattern.is_true_of(operand.value)):
            return False
        return is_same(self.operands.setdefault(pattern.name, operand), operand)

    def _fits_node(self, pattern: Form, port: Port) -> bool:
        node = self.graph.nodes[port.node]
        if node.op != pattern.op or port.index != pattern.index:
            return False
        # Users of a node with control edges wait for those, too: matching through it would lose that order.
        if any(not self.graph.is_pivot(control) for control in node.controls):
            return False
        if pattern.name:
            self.nodes[pattern.name] = node
        return self.fits_inputs(pattern, node)

    def fits_inputs(self, pattern: Form, node: Node) -> bool:
        if pattern.inputs is None:
            return True
        if len(pattern.inputs) != len(node.inputs):
            return False
        before = self.operands.copy()
        if all(map(self.fits, pattern.inputs, node.inputs)):
            return True
        self.operands = before
        return pattern.commutes and all(map(self.fits, pattern.inputs, reversed(node.inputs)))


def is_same(a: Operand, b: Operand) -> bool:
    """Are two operands certainly the same value?"""
    return a is b or operand_key(a) == operand_key(b)


def operand_key(operand: Operand) -> object:
    if isinstance(operand, Const) and operand.value.size > LARGEST:
        return id(operand)
    return operand
