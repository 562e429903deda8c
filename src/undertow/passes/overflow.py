"""Overflow checks, for `overflow="error"`: a fault where an integer result does not fit its dtype.

Beside every integer operator that may wrap, the pass computes the same in f64. A result that wrapped is off by a
multiple of 2**64 (of 2**32, for i32), one that did not by no more than the rounding of f64; so a difference of 2**62
(2**30) tells them apart. The operator `within` hands the result on, or faults.

Devices: a check is where its operator is.

>>> from undertow.ir.text import dump, parse
>>> library, count = check_overflow(parse('''
... library 1 main=main
... main main(n: i64) -> (m)
...   m: i64 = add n, 1:i64
... '''))
>>> print(dump(library).partition("\\n\\n")[2], end="")
main main(n: i64) -> (m_2)
  m: i64            = add n, 1:i64
  m_shadow: f64     = cast n dtype="f64"
  m_shadow_2: f64   = add m_shadow, 1.0:f64
  m_shadow_3: f64   = cast m dtype="f64"
  m_shadow_4: f64   = subtract m_shadow_2, m_shadow_3
  m_shadow_5: f64   = abs m_shadow_4
  m_shadow_6: bool  = less m_shadow_5, 4.611686018427388e+18:f64
  m_shadow_7: i64   = cast m_shadow_6 dtype="i64"
  m_shadow_8: i64   = subtract m_shadow_7, 1:i64
  m_2: i64          = within m, m_shadow_8
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from undertow.ir.draft import Copy
from undertow.ir.graph import EMPTY, Attrs, Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.walk import placed_like
from undertow.types import Type, bool_, f64

# Operators whose integer results may wrap, and that compute with floats, too.
_WRAPPING = frozenset((
    "abs", "add", "cumsum", "floor_divide", "matmul", "multiply", "negative", "power", "prod", "prod_others", "square",
    "subtract", "sum", "sum_to",
))  # fmt: skip
_TABLES = {"scatter_add": (0, 2), "add_along_axis": (0, 2)}  # the operands that are added; the others are indices


def check_overflow(library: Library) -> tuple[Library, Counter[str]]:
    """The library with a check after every integer operator that may wrap, and the number of checks."""
    count: Counter[str] = Counter()
    functions = {name: _checked(graph, count) for name, graph in library.functions.items()}
    return (Library(functions, library.main) if count else library), count


def _checked(graph: FunctionGraph, count: Counter[str]) -> FunctionGraph:
    copy = Copy(graph)
    for number, node in enumerate(graph.nodes):
        new = copy.add(number)
        if _may_wrap(graph, node):
            count["overflow check"] += 1
            copy.ports[Port(number)] = _Check(copy, number, new).write()
    return copy.freeze()


def _may_wrap(graph: FunctionGraph, node: Node) -> bool:
    if not node.types or node.types[0].dtype.kind != "int":
        return False
    if node.op == "cast":
        before = graph.type_of(node.inputs[0]).dtype
        return before.kind == "float" or before.numpy.itemsize > node.types[0].dtype.numpy.itemsize
    return node.op in _WRAPPING or node.op in _TABLES or node.op == "bitwise_left_shift"


class _Check:
    """The check of one node, in the region of that node."""

    def __init__(self, copy: Copy, number: int, new: int) -> None:
        self.copy, self.number, self.node = copy, number, copy.draft.nodes[new]
        self.result = Port(new)

    def add(self, op: str, inputs: Sequence[Operand], type: Type, attrs: Attrs = EMPTY, name: str = "_shadow") -> Port:
        node = self.node
        draft = self.copy.draft
        made = Node(op, tuple(inputs), (type,), node.name + name, node.region, attrs, (), node.span)
        made = placed_like(made, node)
        return Port(draft.add(draft.triggered(made, self.copy.phases[self.number])))

    def as_float(self, operand: Operand) -> Operand:
        if isinstance(operand, Const):
            return Const(np.asarray(operand.value, np.float64))
        type = self.copy.draft.type_of(operand).with_dtype(f64)
        return self.add("cast", [operand], type, Attrs(dtype="f64"))

    def shadow(self) -> Operand:
        """What the node computes, in f64."""
        node = self.node
        type = node.types[0].with_dtype(f64)
        if node.op == "cast":
            return self.as_float(node.inputs[0])
        if node.op == "bitwise_left_shift":
            base, places = map(self.as_float, node.inputs)
            shape = self.copy.draft.type_of(node.inputs[1]).with_dtype(f64)
            return self.add("multiply", [base, self.add("power", [Const(np.asarray(2.0)), places], shape)], type)
        taken = _TABLES.get(node.op, range(len(node.inputs)) if node.op != "sum_to" else (0,))
        inputs = [self.as_float(x) if k in taken else x for k, x in enumerate(node.inputs)]
        return self.add(node.op, inputs, type, node.attrs)

    def is_close(self, shadow: Operand) -> Port:
        """Is the result the same integer as its shadow, but for rounding?"""
        type = self.node.types[0]
        real, truth = type.with_dtype(f64), type.with_dtype(bool_)
        bound = 2.0 ** (8 * type.dtype.numpy.itemsize - 1)
        if self.is_from_float():  # such a cast does not wrap, but saturates
            low, high = -bound - (bound < 2.0**52), bound  # rounding goes towards zero: -2147483648.5 fits in i32
            above = self.add("greater" if low < -bound else "greater_equal", [shadow, Const(np.asarray(low))], truth)
            below = self.add("less", [shadow, Const(np.asarray(high))], truth)
            return self.add("logical_and", [above, below], truth)
        apart = self.add("subtract", [shadow, self.as_float(self.result)], real)
        return self.add("less", [self.add("abs", [apart], real), Const(np.asarray(bound / 2))], truth)

    def is_from_float(self) -> bool:
        return self.copy.draft.type_of(self.node.inputs[0]).dtype.kind == "float"

    def write(self) -> Port:
        """Add the check; the port of the result behind it."""
        type = self.node.types[0]
        whole = self.add("cast", [self.is_close(self.shadow())], type, Attrs(dtype=type.dtype.name))
        sign = self.add("subtract", [whole, Const(np.asarray(1, type.dtype.numpy))], type)  # -1 where it is not
        return self.add("within", [self.result, sign], type, name="")
