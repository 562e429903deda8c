"""State: reading a variable, and assigning f(old value, operand) to it, atomically; the whole value, or some rows.

A variable is named by the attribute `variable`; its value lives in the store of a run. All operators also give an
order token, so that what must come later can wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, InternalError, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.gradient import NONE, NoGradient, pointwise
from undertow.ops.index import check_index, out_of_range
from undertow.ops.op import Op, Value
from undertow.ops.rules import may_be_equal, shape_of
from undertow.types import CTL, DTYPES, Type, said, show_shape

Store = MutableMapping[str, Any]

# x := f(x, v)
ASSIGN: dict[str, Callable[[Value, Value], Value]] = {
    "set": lambda old, value: value,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "concat": lambda old, value: np.concatenate([old, np.atleast_1d(value)]),
}

# The same for the rows with some numbers: t[i] := f(t[i], v). What is named twice happens twice.
ASSIGN_ROWS: dict[str, Callable[[Value, Value, Value], None]] = {
    "set": lambda table, indices, rows: table.__setitem__(indices, rows),
    "add": np.add.at,
}


class Own(np.ndarray[Any, Any]):
    """An array that only the store references, so that its rows may be changed in place.

    Any other array may be the committed value, an operand or a result: rows are changed in a copy of it. So a run
    copies a table once, and once more after each `read` of the whole.
    """


def _held(attrs: Attrs) -> Type:
    """The type that the variable holds, from the attributes `dtype` and `shape`."""
    return Type(DTYPES[attrs.text("dtype")], shape_of(attrs))


def _assign_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    held, given, how = _held(attrs), types[0], attrs.text("how")
    if how not in ASSIGN:
        raise TypeMismatch(f"unknown assignment {how!r}", hint=f"choose from {', '.join(ASSIGN)}")
    fits = held.accepts(given)
    if how == "concat":
        fits = held.rank > 0 and given.dtype == held.dtype and given.rank in (held.rank, held.rank - 1)
    elif how != "set":
        # Element-wise: the operand may be broadcast to the variable, not the other way round.
        fits = given.dtype == held.dtype and given.rank <= held.rank
    if not fits:
        raise TypeMismatch(
            f"{said(given)} cannot be assigned to variable `{attrs.text('variable')}`, which holds {held}",
            hint="convert it, or create the variable with shape=(None,) where a dimension may change",
        )
    return held, CTL


def _rows_type(indices: Type, attrs: Attrs) -> Type:
    """The type of the rows with these numbers."""
    name, held = attrs.text("variable"), _held(attrs)
    if not held.rank:
        raise TypeMismatch(f"rows of variable `{name}`, which holds {held}", hint="only an array has rows")
    check_index(f"rows of variable `{name}`", indices, scalars=False)
    return held.with_shape((*indices.shape, *held.shape[1:]))


def _assign_rows_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    indices, rows = types
    held, how = _held(attrs), attrs.text("how")
    if how not in ASSIGN_ROWS:
        raise TypeMismatch(f"unknown assignment {how!r} of rows", hint=f"one of {', '.join(ASSIGN_ROWS)}")
    wanted = _rows_type(indices, attrs)
    if rows.dtype != held.dtype or not may_be_equal(rows.shape, wanted.shape):
        raise TypeMismatch(
            f"{rows} cannot be assigned to rows {indices} of variable `{attrs.text('variable')}`, which holds {held}",
            hint=f"the rows must be {wanted}: the axes of the indices, then those of a row",
        )
    return wanted, CTL


def value_of(store: Store, name: str) -> Value:
    """What a variable holds; a Fault if nothing yet."""
    if name not in store or store[name] is None:
        raise Fault(
            f"variable `{name}` has no value yet",
            hint="initialize it first: sess.run(tf.global_variables_initializer())",
            kind=ValueError,
        )
    return store[name]


def hand_out(store: Store, name: str) -> Value:
    """The value, for a caller that may keep it: from now on the store shares it."""
    value = value_of(store, name)
    if isinstance(value, Own):
        value = store[name] = value.view(np.ndarray)
    return value


def _misfit(name: str, held: Type, value: Value) -> Fault:
    variable = f"variable `{name}`, which holds {held}"
    return Fault(f"a value of shape {list(value.shape)} cannot be assigned to {variable}", kind=ValueError)


def put_in(store: Store, name: str, held: Type, new: Value) -> Value:
    """Let a variable hold a new value; returns it. A Fault if it does not fit."""
    new = np.asarray(new, held.dtype.numpy)
    if not held.accepts(Type(held.dtype, new.shape)):
        raise _misfit(name, held, new)
    store[name] = new[()]
    return new[()]


def _pick(table: Value, indices: Value) -> Value:
    try:
        return np.take(table, indices, 0)
    except IndexError:
        raise out_of_range(table, (0,), (indices,)) from None


def _read_rows(store: Store, values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    return _pick(np.asarray(value_of(store, attrs.text("variable"))), values[0]), np.True_


def _assign_rows(store: Store, values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    indices, rows = values
    table, name = value_of(store, attrs.text("variable")), attrs.text("variable")
    wanted = indices.shape + table.shape[1:]
    if rows.shape != wanted:
        raise Fault(
            f"the rows for variable `{name}` must have the shape {show_shape(wanted)}, not {show_shape(rows.shape)}",
            kind=ValueError,
        )
    plain = np.asarray(table) if isinstance(table, Own) else np.array(table)
    try:
        ASSIGN_ROWS[attrs.text("how")](plain, indices, rows)
    except IndexError:
        raise out_of_range(plain, (0,), (indices,)) from None
    store[name] = plain.view(Own)
    return _pick(plain, indices), np.True_


def _assign(store: Store, values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    name, how = attrs.text("variable"), attrs.text("how")
    held, new = _held(attrs), values[0]
    if how != "set":
        try:
            new = ASSIGN[how](hand_out(store, name), new)
        except ValueError:
            raise _misfit(name, held, values[0]) from None
    return put_in(store, name, held, new), np.True_


def stateless(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    """State operators have no kernel without a store."""
    raise InternalError("a state operator was evaluated without a store")


UNSEEN = pointwise(NoGradient("variables do not propagate derivatives"))

ROWS: tuple[Op, ...] = (
    Op(
        "read", 0, lambda types, attrs: (_held(attrs), CTL), stateless,
        "the current value of `variable`, and an order token", NONE,
        faults=True, state=lambda store, values, attrs: (hand_out(store, attrs.text("variable")), np.True_),
    ),
    Op(
        "assign", 1, _assign_rule, stateless,
        "`variable` becomes f(its value, operand), atomically; `how` names f; returns the new value and an order token",
        UNSEEN, faults=True, effect=True, state=_assign,
    ),
    Op(
        "read_rows", 1, lambda types, attrs: (_rows_type(types[0], attrs), CTL), stateless,
        "the current rows of `variable` with these numbers, and an order token", NONE, faults=True, state=_read_rows,
    ),
    Op(
        "assign_rows", 2, _assign_rows_rule, stateless,
        "these rows of `variable` become f(row, operand), atomically; `how` names f; operands: indices, "
        "rows; repeated ones add up, or the last one wins; returns the new rows and an order token",
        UNSEEN, faults=True, effect=True, state=_assign_rows,
    ),
)  # fmt: skip
