"""What a traced value says of itself, as the value would: isinstance, type, hasattr, getattr, `is`, `in`, ==.

A single i64, f64, c128 or bool is Python's int, float, complex or bool, or NumPy's int64, float64, complex128 or bool:
callers may pass either. It is an instance of what Python's number is one of. A question that only NumPy's answers with
yes is refused.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Sequence
from types import FunctionType, GeneratorType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, kind_of
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.generators import CapturedGenerator
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.text import TracedText
from undertow.frontend.values.traced import Traced

_PYTHON: dict[str, type] = {"i64": int, "f64": float, "c128": complex, "bool": bool}
_OTHERS: dict[type, type] = {
    TracedText: str, TracedRange: range, Closure: FunctionType, CapturedGenerator: GeneratorType
}  # fmt: skip
NO_ATTRIBUTE = object()


def class_of(value: Any) -> type:
    """The class that a value has at run time."""
    if isinstance(value, GrowingList):
        return value.kind
    if isinstance(value, Traced):
        if value.type.rank:
            return np.ndarray
        return _PYTHON.get(value.dtype.name) or value.dtype.numpy.type
    return _OTHERS.get(type(value)) or type(value)


def _numpy_class(value: Any) -> type | None:
    """The other class that a value may have: NumPy's, where `class_of` is Python's."""
    is_either = isinstance(value, Traced) and not value.type.rank and value.dtype.name in _PYTHON
    return value.dtype.numpy.type if is_either else None


def _either(value: Traced, what: str, instead: str) -> CaptureError:
    return CaptureError(
        f"whether {what} depends on the caller: a single {value.dtype} may be a Python number or a NumPy one",
        hint=instead,
    )


def _is_instance(value: Any, kinds: Any) -> bool:
    if class_of(value) is type(value):
        return isinstance(value, kinds)
    if issubclass(class_of(value), kinds):
        return True
    other = _numpy_class(value)
    if other is not None and issubclass(other, kinds):
        python = class_of(value).__name__
        name = getattr(kinds, "__name__", "that class")
        raise _either(value, f"this is an instance of np.{name}", f"ask for both: isinstance(x, ({python}, np.{name}))")
    return False


def _type(value: Any, *rest: Any) -> Any:
    return type(value, *rest) if rest else class_of(value)


def _has(value: Any, name: str) -> bool:
    if not isinstance(value, Traced):
        return hasattr(class_of(value), name) if type(value) in _OTHERS else hasattr(value, name)
    has = hasattr(class_of(value), name)
    other = _numpy_class(value)
    if other is not None and hasattr(other, name) != has:
        raise _either(value, f"this has the attribute `{name}`", "ask isinstance(x, np.ndarray), or use ut.shape(x)")
    return has


def special_attribute(value: Any, name: str) -> Any:
    """`x.__class__` of what stands for a value at run time, or `NO_ATTRIBUTE`.

    Other such names of numbers and arrays are refused: they would be those of our own class.
    """
    if name == "__class__" and class_of(value) is not type(value):
        return class_of(value)
    if isinstance(value, Traced) and name.startswith("__") and name.endswith("__"):
        raise CaptureError(
            f"`{name}` of {_named(value)} cannot be captured",
            hint="write what Python calls it for: an operator, x[i], abs(x), len(x), round(x), math.floor(x)",
        )
    return NO_ATTRIBUTE


def _refuse(what: str, hint: str) -> Callable[..., Any]:
    def work(value: Any, *_: Any) -> Any:
        raise CaptureError(f"{what} of {_named(value)} is known only at run time", hint=hint)

    return work


def _named(value: Any) -> str:
    return f"a traced {value.type}" if isinstance(value, Traced) else "a text with traced values"


def _get(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    """`getattr`: an attribute that the value has and a traced one has not is refused, not replaced by the default."""
    if len(args) == 3 and isinstance(args[0], Traced) and not hasattr(args[0], args[1]) and not _has(*args[:2]):
        return args[2]
    if len(args) in (2, 3) and isinstance(args[0], (Traced, TracedText)) and isinstance(args[1], str):
        return interp.attribute_of(args[0], args[1], interp.ctx.span, env)
    return interp.call_native(getattr, args, kwargs)


def _only_traced(function: Any, traced: Callable[..., Any]) -> Any:
    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
        if args and (isinstance(args[0], (Traced, GrowingList)) or type(args[0]) in _OTHERS):
            return traced(*args, **kwargs)
        return interp.call_native(function, args, kwargs)

    return work


# Python function -> what its call does in a capture.
KINDS: dict[Any, Callable[[Any, Sequence[Any], dict[str, Any], Env | None], Any]] = {
    builtins.getattr: _get,
    builtins.isinstance: _only_traced(isinstance, _is_instance),
    builtins.type: _only_traced(type, _type),
    builtins.hasattr: _only_traced(hasattr, _has),
    builtins.callable: _only_traced(callable, lambda value: isinstance(value, Closure)),
    builtins.id: _only_traced(
        id, lambda value: id(value) if isinstance(value, Closure) else _refuse("the identity", "compare with ==")(value)
    ),
    operator.is_: lambda interp, args, kwargs, env: is_same(*args, **kwargs),
    operator.is_not: lambda interp, args, kwargs, env: not is_same(*args, **kwargs),
    builtins.dir: _only_traced(dir, lambda value: dir(class_of(value))),
}


# -- comparisons -------------------------------------------------------------------------------------------


def is_same(left: Any, right: Any) -> bool:
    """`left is right`."""
    if left is right:
        return True
    for value, other in ((left, right), (right, left)):
        if not isinstance(value, (Traced, TracedText)):
            continue
        kind = class_of(other)
        if kind is not class_of(value) and kind is not _numpy_class(value):
            return False  # None, a string, a list, a number of another class
        raise CaptureError(
            f"whether {_named(value)} is the same object as another value is not defined in a graph",
            hint="compare numbers with ==, and arrays with ut.all(x == y)"
            if kind is not bool
            else "write `if x:` or `if not x:`",
        )
    return False


def compares_to_false(left: Any, right: Any) -> bool:
    """Is `left == right` False whatever the traced value among them is: are their kinds never equal?"""
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Traced) and (other is None or isinstance(other, (str, bytes, dict, set, frozenset, type))):
            return True
        if isinstance(value, TracedText) and not isinstance(other, (str, TracedText)):
            return True
    return False


def equal(left: Any, right: Any) -> Any:
    """`left == right` where `compares_to_false`: an array compares element by element."""
    value = left if isinstance(left, Traced) else right
    if isinstance(value, Traced) and value.type.rank:
        return functions.full(functions.shape(value), False)
    return False


def refuse_sequence(left: Any, right: Any) -> None:
    """Refuse to compare a number with a list or tuple: Python's number differs, NumPy's compares to each item."""
    for value, other in ((left, right), (right, left)):
        if isinstance(value, Traced) and not value.type.rank and isinstance(other, (list, tuple)):
            raise _either(
                value, f"this compares to the items of {kind_of(other)}",
                "write `x in values`, or compare with an array: x == ut.asarray(values)",
            )  # fmt: skip


def contains(container: Any, item: Any) -> Any:
    """`item in container`, where one of them is traced, or has traced items."""
    if isinstance(container, Traced) and not container.type.rank:
        raise CaptureError(
            f"`in` searches containers and arrays, not {_named(container)}", hint="compare numbers with =="
        )
    if isinstance(container, (Traced, np.ndarray)):
        if isinstance(item, Traced) and item.type.rank:
            raise _not_searched("an array", "for an array")
        return functions.any(functions.equal(container, item)) if not _is_other(item) else False
    if isinstance(container, (range, TracedRange)):
        return _in_range(container, item)
    if not isinstance(container, (list, tuple, set, frozenset, dict)):
        raise _not_searched(f"a {class_of(container).__name__}", "for a traced value")
    holds: Any = False
    for other in container:
        if other is item:
            return True
        if not (_is_single(other) and _is_single(item)):
            if _is_other(other) or _is_other(item):
                if not isinstance(other, (Traced, TracedText)) and not isinstance(item, (Traced, TracedText)):
                    if other == item:
                        return True
                elif not compares_to_false(other, item):
                    raise _not_searched(kind_of(container), "for this value")
                continue
            raise _not_searched(kind_of(container), "that holds arrays or containers")
        found = functions.equal(other, item)
        if not isinstance(found, Traced):
            if found:
                return True
            continue
        holds = found if holds is False else functions.logical_or(holds, found)
    return holds


def _is_single(value: Any) -> bool:
    """Is it one number, traced or not?"""
    return not value.type.rank if isinstance(value, Traced) else is_weak(value) or isinstance(value, np.generic)


def _is_other(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes, type, TracedText))


def _not_searched(what: str, for_what: str) -> CaptureError:
    return CaptureError(
        f"`in` cannot search {what} {for_what}", hint="write `x == 1 or x == 2`, or ut.any(ut.asarray([1, 2]) == x)"
    )


def _in_range(over: Any, item: Any) -> Any:
    if not _is_single(item):
        if _is_other(item):
            return False
        raise _not_searched("a range", "for this value")
    if isinstance(over.step, Traced):
        raise _not_searched("a range", "whose step is traced")
    low, high = (over.start, over.stop) if over.step > 0 else (over.stop, over.start)
    if over.step > 0:
        inside = functions.logical_and(functions.less_equal(low, item), functions.less(item, high))
    else:
        inside = functions.logical_and(functions.less(low, item), functions.less_equal(item, high))
    # A float is in a range if it equals one of its integers.
    return functions.logical_and(inside, functions.equal(functions.remainder(item - over.start, over.step), 0))
