"""State: reading a variable, and assigning f(old value, operand) to it, atomically.

A variable is named by the attribute `variable`; its value lives in the store of a run. Both operators also give an
order token, so that what must come later can wait for them.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, InternalError, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.op import Op, Value
from undertow.types import CTL, DTYPES, Type

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


def _held(attrs: Attrs) -> Type:
    """The type that the variable holds, from the attributes `dtype` and `shape`."""
    shape = attrs["shape"]
    assert isinstance(shape, tuple)
    return Type(DTYPES[attrs.text("dtype")], tuple(d if isinstance(d, int) else None for d in shape))


def _read_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    return _held(attrs), CTL


def _assign_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    held, given, how = _held(attrs), types[0], attrs.text("how")
    if how not in ASSIGN:
        raise TypeMismatch(f"there is no assignment {how!r}", hint=f"one of {', '.join(ASSIGN)}")
    fits = held.accepts(given)
    if how == "concat":
        fits = held.rank > 0 and given.dtype == held.dtype and given.rank in (held.rank, held.rank - 1)
    elif how != "set":
        # Element-wise: the operand may be broadcast to the variable, not the other way round.
        fits = given.dtype == held.dtype and given.rank <= held.rank
    if not fits:
        raise TypeMismatch(
            f"a {given} does not fit variable `{attrs.text('variable')}`, which holds {held}",
            hint="convert it, or make the variable with shape=(None,) where a dimension may change",
        )
    return held, CTL


def _find(store: Store, attrs: Attrs) -> Value:
    name = attrs.text("variable")
    if name not in store or store[name] is None:
        raise Fault(
            f"variable `{name}` has no value yet",
            hint="give it its initial value first: sess.run(tf.global_variables_initializer())",
        )
    return store[name]


def _read(store: Store, values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    return _find(store, attrs), np.True_


def _assign(store: Store, values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    held, how = _held(attrs), attrs.text("how")
    new = values[0] if how == "set" else ASSIGN[how](_find(store, attrs), values[0])
    new = np.asarray(new, held.dtype.numpy)
    if not held.accepts(Type(held.dtype, new.shape)):
        raise Fault(f"a value of shape {list(new.shape)} does not fit variable `{attrs.text('variable')}` ({held})")
    store[attrs.text("variable")] = new[()]
    return new[()], np.True_


def _stateless(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    raise InternalError("a state operator was evaluated without a store")


ROWS: tuple[Op, ...] = (
    Op("read", 0, _read_rule, _stateless, "the value of `variable` now, and an order token", faults=True, state=_read),
    Op(
        "assign",
        1,
        _assign_rule,
        _stateless,
        "`variable` becomes f(its value, operand), at once; `how` names f; gives the new value and an order token",
        faults=True,
        effect=True,
        state=_assign,
    ),
)
