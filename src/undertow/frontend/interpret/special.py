"""Special methods of the user's classes, such as `__add__` and `__len__`: captured like any other function.

Python calls them by itself, behind an operator or a built-in function. Left to Python they would run unseen, once.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from types import FunctionType
from typing import Any

from undertow.frontend.interpret.operators import COMPARISONS, NAMES
from undertow.frontend.interpret.purity import is_generated
from undertow.frontend.syntax.calling import decorated, is_user_class, is_user_code
from undertow.frontend.trace.session import Session
from undertow.tracebacks import is_library_file

_REFLECTED = {ast.Lt: "gt", ast.LtE: "ge", ast.Gt: "lt", ast.GtE: "le", ast.Eq: "eq", ast.NotEq: "ne"}
UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
# Built-in functions, and the special method of their first argument that does the work.
_BUILT_IN: dict[Any, str] = {
    builtins.len: "__len__", builtins.abs: "__abs__", builtins.int: "__int__",
    builtins.float: "__float__", builtins.str: "__str__", builtins.repr: "__repr__", builtins.hash: "__hash__",
    builtins.round: "__round__", builtins.reversed: "__reversed__", builtins.next: "__next__",
    builtins.iter: "__iter__", builtins.format: "__format__", math.floor: "__floor__", math.ceil: "__ceil__",
    math.trunc: "__trunc__",
}  # fmt: skip


def _find(cls: Any, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            method = base.__dict__[name]
            is_own = (is_user_code(method) or is_user_generator(method)) and not is_generated(method)
            return method if is_own or decorated(method) is not None else None
    return None


_find_once = functools.lru_cache(maxsize=4096)(_find)


def special(session: Session, value: Any, name: str) -> Any:
    """The special method of a value, if its class or a base of that defines it in Python; a later call looks again."""
    cls: Any = type(value)
    if not is_user_class(cls):
        return _find_once(cls, name)
    method = _find(cls, name)
    if method is not None:
        session.attribute(cls, name)
    return method


def is_user_generator(function: Any) -> bool:
    """Is it a generator function of the user's?"""
    if not isinstance(function, FunctionType) or not function.__code__.co_flags & inspect.CO_GENERATOR:
        return False
    return not is_library_file(function.__globals__.get("__file__") or function.__code__.co_filename)


def behind(session: Session, function: Any, value: Any) -> Any:
    """The special method that a built-in function calls on a value."""
    try:
        name = _BUILT_IN.get(function)
    except TypeError:  # not hashable
        return None
    if name is None:
        return None
    method = special(session, value, name)
    cls: Any = type(value)
    if method is None and name == "__str__" and cls.__str__ is object.__str__:
        return special(session, value, "__repr__")
    return method


def truth_of(session: Session, value: Any) -> Any:
    """The special method that says whether a value is true."""
    cls: Any = type(value)
    return special(session, value, "__bool__") if hasattr(cls, "__bool__") else special(session, value, "__len__")


def of_operator(op: ast.operator | ast.cmpop) -> tuple[str, str]:
    """The special methods behind an operator: of its left operand, and of its right one."""
    if isinstance(op, ast.operator):
        return f"__{NAMES[type(op)]}__", f"__r{NAMES[type(op)]}__"
    return f"__{COMPARISONS[type(op)]}__", f"__{_REFLECTED[type(op)]}__"
