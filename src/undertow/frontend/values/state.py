"""Variables: values that outlive a run.

Inside a captured function, reading and assigning write nodes, in program order; a run's writes are committed when it
succeeds. Outside a capture they happen at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions.array import check_static_indices, take
from undertow.frontend.syntax.annotations import as_array, convert
from undertow.frontend.values import transaction as cells
from undertow.frontend.values.operands import as_operand, integers, is_weak
from undertow.frontend.values.traced import Context, Traced, constant, context, read, write
from undertow.ir.graph import Attrs
from undertow.ops.op import find
from undertow.ops.state import Own
from undertow.tracebacks import guarded
from undertow.types import Shape, Type, dtype_of, type_of

_Class = TypeVar("_Class")
_Result = TypeVar("_Result")


def _setter(name: str, how: str, sentence: str) -> Callable[[Variable, Any], Any]:
    """The method of a variable that puts an operator of its value and another one in the place of its value."""

    def assign(self: Variable, value: Any) -> Any:
        return self._write("assign", how, [self._given(value)])

    assign.__name__, assign.__qualname__, assign.__doc__ = name, f"Variable.{name}", sentence
    return assign


def acts_as_its_value(variable: type[_Class]) -> type[_Class]:
    """Whatever is done with a variable of this class is done with its value now."""
    binary = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
    others = "lt le gt ge eq ne getitem neg pos abs invert bool int float index len iter"

    def forward(name: str) -> Callable[..., Any]:
        return lambda self, *others: getattr(read(self), name)(*map(read, others))

    for name in [*binary.split(), *(f"r{name}" for name in binary.split()), *others.split()]:
        setattr(variable, f"__{name}__", forward(f"__{name}__"))
    return variable


@acts_as_its_value
@guarded
class Variable:
    """A mutable value. `shape=(None,)` lets a dimension change.

    >>> total = Variable(0.0, name="total")
    >>> total.assign_add(2.5)
    np.float64(2.5)
    >>> total
    <Variable total: f64 = 2.5>
    """

    def __init__(self, initial: Any, dtype: Any = None, shape: Shape | None = None, name: str = "variable") -> None:
        if isinstance(initial, Traced):
            raise CaptureError(
                "a ut.Variable is made when the function is captured, where a traced value is not known yet",
                hint="make it outside, ut.Variable(0.0), and assign in the function: v.assign(x)",
            )
        value = np.asarray(constant(initial, None if dtype is None else dtype_of(dtype)))
        type_ = type_of(value)
        self.type = type_ if shape is None else Type(type_.dtype, tuple(shape))
        if not self.type.accepts(type_):
            raise TypeMismatch(f"the initial value is a {type_}, but the variable is declared as {self.type}")
        self.name = name
        self.cell = cells.Cell(frozen(value))  # changed by transactions alone

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "cell": self.value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update({**state, "cell": cells.Cell(frozen(state["cell"]))})

    def __copy__(self) -> Variable:
        """Another variable, with the same value now."""
        other = type(self).__new__(type(self))
        other.__setstate__(self.__getstate__())
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        return self.__copy__()  # its value is never written to

    @property
    def value(self) -> Any:
        """The last committed value."""
        return self.cell.value

    @property
    def dtype(self) -> Any:
        return self.type.dtype

    __hash__ = object.__hash__  # == compares values, as for arrays

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.read(), dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return getattr(ufunc, method)(*map(read, inputs), **kwargs)

    def __undertow_read__(self) -> Any:
        return self.read()

    def __repr__(self) -> str:
        return f"<Variable {self.name}: {self.type} = {self.value}>"

    def numpy(self) -> Any:
        """The last committed value."""
        return self.value

    @property
    def shape(self) -> Any:
        return self.read().shape

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def T(self) -> Any:
        return self.read().T

    # -- reading and assigning -----------------------------------------------------------------------------

    def read(self) -> Any:
        """The current value."""
        return self._look("read", [])

    def take(self, indices: Any) -> Any:
        """The current rows with these numbers; the rest of the value is not read."""
        return self._look("read_rows", [self._numbers(indices)])

    assign = _setter("assign", "set", "Replace the value; returns the new one.")
    assign_add = _setter("assign_add", "add", "Add to the value, atomically; returns the new one.")
    assign_sub = _setter("assign_sub", "subtract", "Subtract from the value, atomically; returns the new one.")
    assign_mul = _setter("assign_mul", "multiply", "Multiply the value, atomically; returns the new one.")
    assign_min = _setter("assign_min", "minimum", "Set to the smaller of both, atomically; returns the new value.")
    assign_max = _setter("assign_max", "maximum", "Set to the larger of both, atomically; returns the new value.")
    assign_concat = _setter(
        "assign_concat", "concat", "Append along the first axis, atomically; returns the new value."
    )

    def update(self, function: Callable[..., Any], *values: Any) -> Any:
        """Replace the value by function(old value, *values), atomically; returns the new one.

        The function is pure: Python, or decorated with @ut.function. Nothing can come between its read and its write.

        >>> best = Variable(3.0, name="best")
        >>> best.update(lambda old, x: x if x > old else 0.9 * old, 2.0)
        np.float64(2.7)
        """
        from undertow.frontend.control.updated import update  # what captures imports variables

        return update([self], function, values, has_aux=False)

    def assign_rows(self, indices: Any, rows: Any) -> Any:
        """Replace only the rows with these numbers, atomically; returns the new rows."""
        return self._write("assign_rows", "set", [self._numbers(indices), self._given(rows)])

    def assign_rows_add(self, indices: Any, rows: Any) -> Any:
        """Add to the rows with these numbers, atomically; repeated ones add up; returns the new rows."""
        return self._write("assign_rows", "add", [self._numbers(indices), self._given(rows)])

    def _look(self, op: str, operands: list[Any]) -> Any:
        current = context(operands)
        if current is None or current.builder is None:
            return self._apply(op, {self.name: self.value}, operands, Attrs(**self._held(self.name)))
        bound = current.session.bound(self)
        if bound is not self:
            return take(bound, operands[0], axis=0) if operands else bound
        is_ordered = current.session.uses_variable(self, writes=False)
        return self._node(current, op, operands, self.name, is_ordered)

    def _write(self, op: str, how: str, operands: list[Any]) -> Any:
        current = context(operands)
        if current is None or current.builder is None:
            attrs = Attrs(**self._held(self.name), how=how)

            def change(state: dict[str, Any]) -> Any:
                new = self._apply(op, state, operands, attrs)
                state[self.name] = stored = frozen(state[self.name])
                return stored if op == "assign" else new

            return cells.transact({self.name: self.cell}, (self.name,), change, lambda stored: stored)
        self.__undertow_assigned__(current)
        return self._node(current, op, operands, f"{self.name}.{how}", is_ordered=True, how=how)

    def __undertow_assigned__(self, current: Context) -> None:
        """Say that the program assigns the variable, which must be possible here."""
        if current.session.bound(self) is not self:
            raise assigned_while_bound(self)
        current.session.uses_variable(self, writes=True)

    def _node(
        self, current: Context, op: str, operands: list[Any], name: str, is_ordered: bool, **attrs: Any
    ) -> Traced:
        """Write a node that reads or writes the variable; in program order, its second output is the order token."""
        before = (current.session.effect_token(),) if is_ordered else ()
        held = self._held(current.session.variable_name(self))
        value, *token = write(current, find(op), operands, Attrs(**held, **attrs), name, before)
        if is_ordered:
            current.open_builder.effect = token[0].port
        return value

    def _apply(self, op: str, state: dict[str, Any], operands: list[Any], attrs: Attrs) -> Any:
        row = find(op)
        values = [np.asarray(given)[()] for given in operands]
        row.type([type_of(value) for value in values], attrs)
        assert row.state is not None
        with np.errstate(all="ignore"):
            return row.state(state, values, attrs)[0]

    def _numbers(self, indices: Any) -> Any:
        """Numbers of rows, in range if both they and the number of rows are known."""
        found = integers(indices, f"the row numbers of variable `{self.name}`")
        if self.type.rank:
            check_static_indices(found, self.type.shape[0], 0)
        return found

    def _given(self, value: Any) -> Any:
        """What is to be assigned, in the variable's dtype."""
        what, dtype = f"the value for variable `{self.name}`", self.type.dtype
        if isinstance(value, (list, tuple)):
            value = as_array(value, dtype, what, None)
        found = value if is_weak(value) else as_operand(value)
        held = found.type if isinstance(found, Traced) else Type(dtype) if is_weak(found) else type_of(found)
        wanted = Type(dtype, (None,) * held.rank)  # whether the shape fits is said by the type rule
        try:
            return convert(found, wanted, what, {})[0]
        except TypeMismatch as fault:
            fault.what = fault.what.replace(f"but annotated as {wanted}", f"but it holds {self.type}")
            convert_it = (fault.hint or "convert it").split(", or ")[0]
            fault.hint = f"{convert_it}, or create the variable with another dtype="
            raise

    @property
    def __undertow_holds__(self) -> Type:
        """What it holds, as graphs know it."""
        return Type(self.type.dtype, self._shape())

    def __undertow_taken__(self, value: Any) -> Any:
        """A value outside a capture as the variable would hold it; an error if it does not fit."""
        return self._apply("assign", {}, [self._given(value)], Attrs(**self._held(self.name), how="set"))

    def _shape(self) -> tuple[Any, ...]:
        return tuple(d if isinstance(d, int) else None for d in self.type.shape)

    def _held(self, name: str) -> dict[str, Any]:
        """The attributes that tell what the variable holds."""
        return {"variable": name, "dtype": self.type.dtype.name, "shape": self._shape()}


def assigned_while_bound(variable: Variable) -> CaptureError:
    """The error of an assignment to a variable whose value is an argument of a gradient."""
    return CaptureError(
        f"variable `{variable.name}` is assigned inside a function that is differentiated with respect to it",
        hint="compute the gradient first, and assign the variable outside the differentiated function",
    )


def values_of(variables: Mapping[str, Variable]) -> dict[str, Any]:
    """What variables hold, by name: nobody commits in between."""
    return cells.snapshot({name: variable.cell for name, variable in variables.items()})


def transaction(
    variables: Mapping[str, Variable], written: Iterable[str], work: Callable[[dict[str, Any]], _Result]
) -> _Result:
    """The result of `work`, which takes the values of variables, by name, and changes them in the dict it is given.

    What it has written is committed if nothing is raised. Runs that write the same variable come one after the other;
    those that only read wait for nobody.
    """
    held = {name: variable.cell for name, variable in variables.items()}
    return cells.transact(held, written, work, frozen, lambda name: f"variable `{variables[name].name}`")


def frozen(value: Any) -> Any:
    """A value that nobody can change."""
    # The store's own arrays need not be copied: the run is over, and nothing else references them.
    array = value.view(np.ndarray) if isinstance(value, Own) else np.array(value, copy=True)
    array.flags.writeable = False
    return array[()]
