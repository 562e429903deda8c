"""Operators with side effects: print and assert. They return an order token.

Their templates are Python's: `{}` or `{:.3f}` stands for the next value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import Fault
from undertow.ir.graph import Attrs
from undertow.ops.attributes import TEMPLATE
from undertow.ops.gradient import NONE
from undertow.ops.op import Op, Value
from undertow.ops.rules import BOOLS, ELEMENTS, check_kind
from undertow.types import CTL, Type


def _fill_in(template: str, values: Sequence[Value]) -> str:
    try:
        return template.format(*(np.asarray(v)[()] for v in values))
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as problem:
        raise Fault(f"{template!r} does not fit its values: {problem}", hint="arrays take plain {} only") from None


def _takes(name: str, types: Sequence[Type]) -> tuple[Type, ...]:
    for type in types:
        check_kind(name, type, ELEMENTS)
    return (CTL,)


def _print(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    print(_fill_in(attrs.text("template"), values))  # noqa: T201 - printing is what it is for
    return (np.True_,)


def _assert_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("assert", types[0], BOOLS)
    return _takes("assert", types[1:])


def _assert(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    if not np.all(values[0]):
        raise Fault(_fill_in(attrs.text("template"), values[1:]))
    return (np.True_,)


ROWS: tuple[Op, ...] = (
    Op(
        "print", None, lambda types, attrs: _takes("print", types), _print,
        "write `template`, filled in, and a newline", NONE, faults=True, is_apart=True, effect=True, attrs=TEMPLATE,
    ),
    Op(
        "assert", None, _assert_rule, _assert,
        "a fault with the message `template` unless the whole first operand is true; operands: condition, values", NONE,
        faults=True, effect=True, attrs=TEMPLATE,
    ),
)  # fmt: skip
