"""How functions are pickled: by reference, as plain functions are, and derivatives as calls that make them again.

cloudpickle (and joblib, Dask and Ray, which use it) also takes what only this process knows: functions of `__main__`,
of notebooks, local ones. These are pickled by value, with the text that they are defined in.
"""

from __future__ import annotations

import linecache
import pickle
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from undertow.errors import CaptureError, UndertowError
from undertow.frontend.syntax.locate import locate
from undertow.frontend.syntax.strings import COMPILED

if TYPE_CHECKING:
    from undertow.api.function import Function

_SAVED = "save it with ut.save, and load it with ut.load in the other process"
_MODULE_LEVEL = "define it at the top level of a module, where the other process can import it"


class CannotPickle(UndertowError, pickle.PicklingError):
    """A function that another process could not find."""


def reduced(function: Function, decorate: Callable[[FunctionType], Function]) -> str | tuple[Any, ...]:
    """What `__reduce_ex__` returns for a function; `decorate` makes one of a plain function, in the other process."""
    if function.__undertow_origin__ is not None:
        return function.__undertow_origin__
    if function.__undertow_bound__:
        return _method(function)
    python = function.__undertow_definition__.function
    name = str(getattr(function, "__qualname__", "?"))
    module = str(getattr(function, "__module__", "?"))
    named = _named(module, name)
    by_value = isinstance(python, FunctionType) and _is_cloudpickle()
    if named is function and not (by_value and module == "__main__"):
        return name
    if by_value:
        return _blank, (type(function),), {"python": python, "text": _text(python)}  # type: ignore[arg-type]
    if named is python and isinstance(python, FunctionType):  # as in g = ut.function(f)
        return decorate, (python,)
    if not isinstance(python, FunctionType):
        raise CannotPickle(f"`{name}` cannot be pickled: it has no Python source", hint=_SAVED)
    raise CannotPickle(
        f"`{name.replace('<locals>.', '')}` cannot be pickled: "
        + (f"`{name}` of module `{module}` is something else" if named is not None else "it is local to this process"),
        hint=_MODULE_LEVEL,
    )


def restore(function: Function, state: dict[str, Any], decorate: Callable[[FunctionType], Function]) -> None:
    """Make a function of a blank one, and of what cloudpickle has kept."""
    COMPILED.add(state["text"].encode(), "<pickle>")
    made = decorate(state["python"])
    function.__init__(made.__undertow_definition__)  # type: ignore[misc]


def _blank(kind: type[Function]) -> Function:
    return kind.__new__(kind)


def _method(function: Function) -> tuple[Any, ...]:
    """A bound method: its object, and its name."""
    instance, *rest = function.__undertow_bound__
    name = str(function.__name__)  # type: ignore[attr-defined]
    known = getattr(instance, name, None)
    if rest or getattr(known, "__undertow_definition__", None) is not function.__undertow_definition__:
        raise CannotPickle(
            f"the method `{name}` cannot be pickled: its object has something else under this name", hint=_MODULE_LEVEL
        )
    return getattr, (instance, name)


def _named(module: str, name: str) -> Any:
    """What a module has under a qualified name, if anything."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _is_cloudpickle() -> bool:
    """Is it cloudpickle that asks, or a copy of it in another package? The C pickler has no frames of its own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and (frame.f_globals is globals() or frame.f_code.co_name == "__reduce_ex__"):
        frame = frame.f_back
    return frame is not None and "cloudpickle" in str(frame.f_globals.get("__name__"))


def _text(python: FunctionType) -> str:
    """The text that a function is defined in, with its helpers."""
    try:
        return "".join(linecache.getlines(locate(python).file, python.__globals__))
    except CaptureError as fault:
        raise CannotPickle(fault.what, fault.span, fault.hint) from None
