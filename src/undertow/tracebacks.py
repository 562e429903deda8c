"""Tracebacks of the user's frames alone: errors leave Undertow without its own.

What was captured has no Python frames; its lines are in the message of the error (`UndertowError.callers`). So our
frames say nothing to users. They stay where they do: in an `InternalError`, in an exception that our own code
raised by mistake, and everywhere if the environment variable UNDERTOW_TRACEBACK is "full".
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from types import FrameType, FunctionType, TracebackType
from typing import Any, ParamSpec, TypeVar

from undertow.errors import PACKAGE, Fault, InternalError, Span, UndertowError

_P = ParamSpec("_P")
_R = TypeVar("_R")
_OURS, _LIBRARY, _USER = range(3)
_CALLERS = "__undertow_callers__"
_INSIDE = "__undertow_inside__"
ANEW = sys.version_info < (3, 11)
_SPECIAL = frozenset(("__init__", "__call__", "__enter__", "__exit__", "__getitem__", "__post_init__"))


@functools.cache
def _library_paths() -> tuple[str, ...]:
    keys = ("stdlib", "platstdlib", "purelib", "platlib")
    return tuple({os.path.realpath(sysconfig.get_path(key)) + os.sep for key in keys})


@functools.lru_cache(maxsize=4096)
def is_library_file(filename: str) -> bool:
    """Is it a file of the standard library, of an installed package or of Undertow, so not the user's?"""
    path = os.path.realpath(filename)
    return filename.startswith("<frozen ") or path.startswith(_library_paths()) or path.startswith(PACKAGE)


def boundary(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorates a public function: errors leave it with the user's frames alone."""
    clean, anew = shorten, ANEW  # the function has the globals of another module

    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except BaseException as fault:
            clean(fault)
            if anew:
                raise fault
            raise

    # With the globals of the function, it belongs to the same module: doctest asks for that.
    same = FunctionType(call.__code__, getattr(function, "__globals__", {}), None, None, call.__closure__)
    setattr(functools.update_wrapper(same, function), _INSIDE, function)
    return same


def inside(function: FunctionType) -> FunctionType:
    """The function of which `boundary` made this one; any other as it is."""
    found: FunctionType = function.__dict__.get(_INSIDE, function)
    # functools.wraps copies the attribute to the wrapper of a boundary.
    return found if function.__dict__.get("__wrapped__") is found else function


def boundaries(namespace: dict[str, Any], names: Iterable[str]) -> None:
    """Make boundaries of the public functions of a module, and of the methods of its public classes."""
    for name in names:
        if isinstance(namespace[name], FunctionType):
            namespace[name] = boundary(namespace[name])
        elif isinstance(namespace[name], type):
            guarded(namespace[name])


def guarded(kind: type[_R]) -> type[_R]:
    """Decorates a class: its public methods are boundaries."""
    for name, value in list(vars(kind).items()):
        if isinstance(value, FunctionType) and (not name.startswith("_") or name in _SPECIAL):
            setattr(kind, name, boundary(value))
    return kind


def shorten(fault: BaseException) -> None:
    """Take our frames out of a traceback, and what we caught ourselves out of its chain of exceptions.

    To be followed by a bare `raise`: from Python 3.11 on that takes the traceback as it is now, and adds no frame. In
    3.10 it would bring back the old one: there, `raise fault` adds one frame of ours (`ANEW`).
    """
    if os.environ.get("UNDERTOW_TRACEBACK") == "full":
        return
    done: set[int] = set()
    todo: list[BaseException | None] = [fault]
    while todo:
        error = todo.pop()
        if error is None or id(error) in done or _is_our_mistake(error):
            continue
        done.add(id(error))
        if isinstance(error, UndertowError):
            _forget_internal(error)
        error.__traceback__ = _without_ours(error.__traceback__)
        todo += (error.__cause__, None if error.__suppress_context__ else error.__context__)


def note_caller(fault: BaseException, span: Span | None, caller: Span) -> None:
    """Note on an error, on its way out of a capture: what failed at `span` was called at `caller`."""
    if isinstance(fault, UndertowError):
        fault.span = fault.span or span
        fault.callers.append(caller)
    else:
        vars(fault).setdefault(_CALLERS, []).append(caller)


def callers_of(fault: BaseException) -> list[Span]:
    """The callers that were noted, innermost first."""
    return list(fault.callers if isinstance(fault, UndertowError) else vars(fault).get(_CALLERS, ()))


def user_frames(trace: TracebackType | None) -> list[Span]:
    """The user's frames below ours, where our code called Python of the user's; outermost first."""
    spans: list[Span] = []
    for entry in _entries(trace):
        kind = _kind(entry.tb_frame)
        if kind == _OURS:
            spans.clear()
        elif kind == _USER:
            code = entry.tb_frame.f_code
            span = Span(code.co_filename, entry.tb_lineno, function=code.co_name)
            if span.source() or not code.co_filename.startswith("<"):  # not what `dataclass` has made
                spans.append(span)
    return spans


def _kind(frame: FrameType) -> int:
    # By its module, not by its file: methods that `dataclass` makes have no file.
    module = str(frame.f_globals.get("__name__", ""))
    if module.startswith("undertow.") or module == "undertow":
        return _OURS
    return _LIBRARY if is_library_file(frame.f_code.co_filename) else _USER


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    """The entries that are neither ours nor of a library that our code called."""
    kept: list[TracebackType] = []
    caller = _USER
    for entry in _entries(trace):
        kind = _kind(entry.tb_frame)
        if kind != _LIBRARY:
            caller = kind
        if caller == _USER:
            kept.append(entry)
    short: TracebackType | None = None
    for entry in reversed(kept):
        short = TracebackType(short, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return short


def _is_our_mistake(error: BaseException) -> bool:
    """Did our own code raise it, without meaning to tell the user something?"""
    if isinstance(error, InternalError):
        return True
    if isinstance(error, (UndertowError, KeyboardInterrupt, OSError)):
        return False
    if isinstance(error.__cause__, Fault):  # the user's own, raised by a graph
        return False
    return _has_ours(error) and not user_frames(error.__traceback__) and not _is_refused_call(error)


def _is_refused_call(error: BaseException) -> bool:
    """Did Python refuse the arguments of a public function, before it was entered?"""
    *_, last = _entries(error.__traceback__)
    return isinstance(error, TypeError) and last.tb_frame.f_code.co_filename == __file__


def _has_ours(error: BaseException) -> bool:
    return any(_kind(entry.tb_frame) == _OURS for entry in _entries(error.__traceback__))


def _is_handled_by_user(error: BaseException) -> bool:
    """Is it the user's code that has caught it? A traceback begins where the exception was caught."""
    return error.__traceback__ is not None and _kind(error.__traceback__.tb_frame) == _USER


def _forget_internal(error: UndertowError) -> None:
    """Unlink exceptions that our own code raised and caught; what the user was handling stays."""
    cause, context = error.__cause__, error.__context__
    if cause is not None and _has_ours(cause) and not user_frames(cause.__traceback__):
        error.__cause__, cause = None, None
    seen: set[int] = set()
    while context is not None and id(context) not in seen and not _is_handled_by_user(context):
        seen.add(id(context))
        context = context.__context__
    if cause is None and context is not None:
        error.__context__, error.__suppress_context__ = context, False
    elif cause is None:
        error.__suppress_context__ = True
