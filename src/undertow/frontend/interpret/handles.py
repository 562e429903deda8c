"""What Python's syntax and built-in functions do with handles (objects/handle.py), as with the objects themselves."""

from __future__ import annotations

import ast
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.standins import TracedItems
from undertow.frontend.objects.handle import Handle, Word, as_number, is_number
from undertow.frontend.objects.kinds import Kind
from undertow.frontend.syntax.source import Env
from undertow.frontend.values.traced import Traced

OURS = (Handle, Word)


@dataclass(frozen=True, slots=True, eq=False)
class Dispatch:
    """A method that objects of several classes define, each its own, before it is called."""

    handle: Handle
    found: tuple[tuple[Any, tuple[Kind, ...]], ...]  # of some kinds: a method


def attribute(interp: Any, value: Handle, name: str, env: Env | None) -> Work:
    """`x.name`: a field, or what the class defines."""
    if value.has(name):
        return value.get(name)
    found: dict[Any, list[Kind]] = {}
    for kind in value.possible:
        held = inspect.getattr_static(kind.python, name, None) if kind.form == "object" else None
        if held is not None:
            found.setdefault(held, []).append(kind)
    if not found:
        raise CaptureError(
            f"{value.said} has no field `{name}`",
            hint="annotate it in the class: only annotated fields are part of a graph",
            kind=AttributeError,
        )
    if len(found) > 1:
        return Dispatch(value, tuple((held, tuple(kinds)) for held, kinds in found.items()))
    ((held, kinds),) = found.items()
    for kind in kinds:
        interp.ctx.session.attribute(kind.python, name)
    return (yield _bound(interp, held, value.of_kinds(frozenset(kinds)), name, env))


def _bound(interp: Any, held: Any, value: Handle, name: str, env: Env | None) -> Work:
    if isinstance(held, property):
        return (yield interp.call(held.fget, [value], {}, env))
    if isinstance(held, FunctionType):
        return MethodType(held, value)
    if hasattr(held, "__undertow_definition__"):
        return held.__get__(value)
    if isinstance(held, (staticmethod, classmethod)) or not hasattr(type(held), "__get__"):
        return getattr(value.possible[0].python, name)
    raise CaptureError(f"`{name}` of {value.said} cannot be captured", hint="use fields, methods and properties")


def dispatch(interp: Any, method: Dispatch, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    """`x.method(...)` where the class of x decides which one that is."""
    (held, kinds), rest = method.found[0], method.found[1:]

    def first() -> Work:
        bound = yield _bound(interp, held, Handle(frozenset(kinds), method.handle.number), "", env)
        if isinstance(held, property):
            return bound
        return (yield interp.call(bound, args, kwargs, env))

    if not rest:
        return (yield first())
    others = partial(dispatch, interp, Dispatch(method.handle, rest), args, kwargs, env)
    return (yield interp.choose(method.handle.is_one_of(kinds), first, others, env))


def truth(value: Handle | Word) -> Any:
    """What `if x` tests."""
    if isinstance(value, Word):
        if value.known is not None and all(value.known):
            return True
        return functions.logical_not(value.equals(""))
    possible = value.possible
    for kind in possible:
        has_own = kind.form == "object" and any(hasattr(kind.python, name) for name in ("__bool__", "__len__"))
        if has_own and not (issubclass(kind.python, tuple) and kind.fields):
            raise CaptureError(
                f"the truth of {value.said} is what its class computes",
                hint="write `if x is not None`, or call the method",
            )
    result: Any = functions.logical_not(value.is_none()) if None in value.kinds else True
    may_be_false = [kind for kind in possible if kind.form == "value" or kind.form == "list"]
    if not may_be_false:
        return result
    if len(possible) > 1 or (None in value.kinds and may_be_false[0].form == "value"):
        raise CaptureError(
            f"the truth of {value.said} depends on its class",
            hint="ask isinstance(x, C) first, then its length or value",
        )
    if may_be_false[0].form == "value":
        return functions.not_equal(value.value(), 0)
    number = functions.where(value.is_none(), np.int32(0), value.number) if None in value.kinds else value.number
    is_filled = functions.not_equal(Handle(value.kinds - {None}, number).length(), 0)
    return is_filled if result is True else functions.logical_and(result, is_filled)


def same(left: Any, right: Any) -> Any:
    """`left is right`."""
    if not isinstance(left, Handle):
        left, right = right, left
    if right is None:
        return left.is_none()
    if not isinstance(right, Handle):
        return False
    if any(kind.form == "value" for one in (left, right) for kind in one.possible):
        raise CaptureError(
            "whether two numbers are the same object is not defined in a graph", hint="compare numbers with =="
        )
    return functions.equal(left.number, right.number)


def equal(left: Any, right: Any) -> Any:
    """`left == right`."""
    if isinstance(left, Word) or isinstance(right, Word):
        return left.equals(right) if isinstance(left, Word) else right.equals(left)
    one, other = (left, right) if isinstance(left, Handle) else (right, left)
    if other is None:
        return one.is_none()
    if all(kind.form == "object" and kind.python.__eq__ is object.__eq__ for kind in one.possible):
        return same(left, right)
    if isinstance(other, str) or is_number(other):
        kinds = [
            kind for kind in one.possible if kind.form == "value" and (kind.python is str) is isinstance(other, str)
        ]
        holds = one.is_one_of(kinds)
        if holds is False:
            return False
        value = _either(one, kinds, holds).value()
        same_value = value.equals(other) if isinstance(value, Word) else functions.equal(value, other)
        return same_value if holds is True else functions.logical_and(holds, same_value)
    raise CaptureError(
        f"== of {one.said} compares all that it holds", hint="write `a is b`, or compare field by field in a function"
    )


def is_instance(value: Handle, classes: Any) -> Any:
    """`isinstance(x, C)`."""
    if any(kind.form == "value" and kind.python is float for kind in value.possible):
        asked = classes if isinstance(classes, tuple) else (classes,)
        if float in asked and int not in asked:
            raise CaptureError(
                "an int is taken for a float where float is annotated", hint="ask isinstance(x, (int, float))"
            )
    holds = value.is_one_of([kind for kind in value.possible if _is_subclass(kind, classes)])
    if None in value.kinds and isinstance(None, classes):
        is_none = value.is_none()
        return is_none if holds is False else functions.logical_or(holds, is_none)
    return holds


def where_instance(value: Handle, classes: Any, holds: Any) -> Any:
    """The object where it is an instance of a class; elsewhere some other one, whose fields are not used."""
    kinds = [kind for kind in value.possible if _is_subclass(kind, classes)]
    return _either(value, kinds, holds)


def _either(value: Handle, kinds: Sequence[Kind], holds: Any) -> Handle:
    number = functions.where(holds, value.number, np.int32(0)) if isinstance(holds, Traced) else value.number
    return Handle(frozenset(kinds), number)


def as_sequence(value: Handle, length: int) -> tuple[Any, Any]:
    """Is it a tuple of this length, and the items of such a one?"""
    if value.is_list:
        raise CaptureError(
            "a pattern of items cannot be matched where their number is known only at run time", hint="ask len(x)"
        )
    kinds = [kind for kind in value.possible if kind.is_sequence and len(kind.fields) == length]
    holds = value.is_one_of(kinds)
    return holds, tuple(fixed_items(_either(value, kinds, holds))) if kinds else ()


def unpacked(value: Handle, target: ast.Tuple | ast.List) -> Any:
    """The items that are unpacked into some variables; a fault where there are others."""
    if value.is_list:
        raise CaptureError(
            f"{value.said} cannot be unpacked: its length is known only at run time",
            hint="annotate it as a tuple of known length, tuple[A, B], or use indices",
        )
    count = len(target.elts)
    kinds = [kind for kind in value.possible if kind.is_sequence and len(kind.fields) == count]
    if any(isinstance(part, ast.Starred) for part in target.elts) or not kinds:
        return value
    return tuple(fixed_items(Handle(frozenset(kinds), value.number_if(kinds))))


def _is_subclass(kind: Kind, classes: Any) -> bool:
    asked = classes if isinstance(classes, tuple) else (classes,)
    if kind.form == "value" and kind.python is float:
        return any(issubclass(python, asked) for python in (int, float))
    python = dict if kind.form == "dict" else kind.python
    if not inspect.isclass(python) or python.__module__ == "collections.abc":
        raise CaptureError("this may be a list or a tuple", hint="annotate it as list[T], or as tuple[T, ...]")
    return issubclass(python, asked)


def class_of(value: Handle | Word) -> Any:
    """`type(x)`."""
    if isinstance(value, Word):
        return str
    if len(value.kinds) == 1 and value.possible:
        return value.possible[0].python
    raise CaptureError(f"the class of {value.said} is known only at run time", hint="ask isinstance(x, C)")


def items_of(value: Handle) -> TracedItems:
    """What a loop over a list runs over."""
    count, get = value.items()
    return TracedItems("list", count, get)


def fixed_items(value: Handle) -> Iterator[Any]:
    """The items of a tuple."""
    if not value.is_tuple or not isinstance(count := value.length(), int):
        raise CaptureError(f"{value.said} cannot be iterated over", hint="loop over a list, or a tuple of one length")
    return iter([value.at(position) for position in range(count)])


def contains(container: Any, item: Any) -> Any:
    """`x.op in ("+", "-")`, where one of them is ours."""
    if isinstance(container, OURS):
        raise CaptureError(f"`in` cannot search {container.said}", hint="loop over it, and compare with `is` or ==")
    if not isinstance(container, (list, tuple, set, frozenset, str)) or isinstance(container, str):
        raise CaptureError("`in` searches lists, tuples and sets", hint='write x in ("+", "-")')
    result: Any = False
    for other in container:
        holds = equal(item, other) if isinstance(item, OURS) or isinstance(other, OURS) else item == other
        result = holds if result is False else functions.logical_or(result, holds)
    return result


def operands(op: ast.AST, left: Any, right: Any) -> tuple[Any, Any]:
    """The numbers that the operands of an operator are."""
    for side in (left, right):
        if isinstance(side, Word) or (isinstance(side, Handle) and not side.may_be_number):
            raise TypeMismatch(f"{side.said} is no operand of an operator", hint="use its fields")
    return as_number(left), as_number(right)


def refuse_change(value: Any, what: str) -> CaptureError:
    return CaptureError(
        f"{what} of {value.said} is changed: graphs do not change the caller's objects",
        hint="return the new value, or a list of them, and change the object outside",
    )


def get_attribute(interp: Any, args: Sequence[Any], env: Env | None) -> Work:
    """`getattr(x, name)`, with a default or without."""
    value, name, *default = args
    has = _has(value, name)
    if default and isinstance(has, Traced):
        return (yield interp.choose(has, lambda: attribute(interp, value, name, env), lambda: default[0], env))
    return default[0] if default and not has else (yield attribute(interp, value, name, env))


def _has(value: Handle, name: str) -> Any:
    """`hasattr(x, name)`."""
    return value.is_one_of([kind for kind in value.possible if name in kind.fields or hasattr(kind.python, name)])


def may_take(function: Any) -> bool:
    """May code that is not the user's get a handle? It must not look into it, nor know it by its own identity."""
    owner, module = getattr(function, "__self__", None), str(getattr(function, "__module__", None))
    return isinstance(owner, (list, dict, deque)) or module.startswith("undertow.") or isinstance(function, type)


def refuse_native(function: Any, value: Any) -> None:
    """Refuse to hand a handle to other code."""
    if not may_take(function):
        name = getattr(function, "__name__", "this function")
        raise CaptureError(
            f"{name}() of {value.said} cannot be captured: a graph knows it by its number alone",
            hint="use its fields, compare it with `is`, or loop over it",
        )


def of_native(interp: Any, function: Callable[..., Any], args: Sequence[Any]) -> tuple[bool, Any]:
    """What a function of Python's gives for a handle, and whether it does."""
    first = args[0]
    if function is bool and len(args) == 1:
        return True, truth(first)
    if function is vars:
        refuse_native(function, first)
    if function is hasattr and isinstance(first, Handle):
        return True, _has(first, args[1])
    if function is len and isinstance(first, Handle):
        return True, first.length()
    if function is isinstance and isinstance(first, Handle):
        return True, is_instance(first, args[1])
    if function is type and len(args) == 1:
        return True, class_of(first)
    if function in (tuple, list, iter) and isinstance(first, Handle) and first.is_tuple:
        return True, function(fixed_items(first))
    return False, None
