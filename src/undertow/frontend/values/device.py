"""`ut.device`: where nodes are placed, as a block in a function or above a whole one.

The name is an attribute of the nodes that are written there: "worker:1", or "" for where main runs. A function with
replicas has all their names, joined by commas.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, TypeVar

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.scopes import Scope

_WORKER = re.compile(r"worker:(?:0|[1-9][0-9]*)")
_MARK = "__undertow_device__"
_Decorated = TypeVar("_Decorated")


class device(Scope):
    """Place what is written in the block, or a whole function as its decorator, on a worker: "worker:0", "worker:1".

    None means where main runs. A function with a list of workers has a replica on each. Devices mean something while
    there are workers; otherwise a program runs here.
    """

    def __init__(self, name: str | Sequence[str] | None) -> None:
        super().__init__()
        names = [name or ""] if name is None or isinstance(name, str) else name
        if not isinstance(names, (list, tuple)) or not all(isinstance(one, str) for one in names):
            raise TypeMismatch(f"a device must be a name, not {brief(name)}", hint='write ut.device("worker:1")')
        if names != [""]:
            _check(names)
        self._name = ",".join(names)
        self._is_list = len(names) > 1

    def __enter__(self) -> None:
        if self._is_list:
            raise CaptureError(
                "a block has one device: replicas are of whole functions",
                hint=f"write @ut.device({self._name.split(',')}) above a function, or name one worker",
            )
        super().__enter__()

    def _change(self, builder: Builder) -> None:
        builder.device = self._name

    def __call__(self, function: _Decorated) -> _Decorated:
        """A function whose body is there."""
        made: Any = _marked(function, self._name)
        if made is None:
            raise CaptureError(
                f"@ut.device works on Python functions, not on {brief(function)}",
                hint="decorate a `def`, above or below @ut.function; a gradient is placed with what it differentiates",
            )
        return made  # type: ignore[no-any-return]


def _check(names: Sequence[str]) -> None:
    """Refuse what is no worker, or no list of different ones."""
    if not names:
        raise TypeMismatch("a list of devices is empty", hint='name the workers: ut.device(["worker:0", "worker:1"])')
    for name in names:
        if not _WORKER.fullmatch(name):
            hint = 'write ut.device("worker:1"): workers have numbers from 0; None is where main runs'
            if name.startswith("/"):
                hint = 'names of TensorFlow are for tf.device of undertow.compat.v1; here it is ut.device("worker:1")'
            raise TypeMismatch(f"there is no device {name!r}", hint=hint)
    if len({*names}) < len(names):
        raise TypeMismatch(
            f"a device is named twice: {', '.join(names)}", hint="a function has one replica on each worker"
        )


def device_of(closure: Closure) -> str | None:
    """Where a function is placed as a whole; None if nothing says so."""
    return closure.device if closure.python is None else getattr(closure.python, _MARK, None)


def refuse_replicas(closure: Closure, device: str) -> None:
    """Refuse several devices for a helper whose body becomes a part of its caller's."""
    if "," in device:
        raise CaptureError(
            f"`{closure.name}` has several devices, but is captured inline: only a function of the graph has replicas",
            closure.span,
            hint="write @ut.function below @ut.device",
        )


def refuse_generator(closure: Closure) -> None:
    """Refuse a device for what runs in turns with its caller."""
    if device_of(closure) is not None:
        raise CaptureError(
            f"`{closure.name}` is a generator, and has no device of its own",
            closure.span,
            hint="write `with ut.device(...)` around the loop that asks for its items",
        )


def _marked(function: Any, name: str) -> Any:
    """A copy of a function that is placed; None if it has no Python of its own."""
    if isinstance(function, (staticmethod, classmethod)):
        inner = _marked(function.__func__, name)
        return None if inner is None else type(function)(inner)
    if isinstance(function, Closure):  # defined in a captured function
        return replace(function, device=name)
    if isinstance(function, FunctionType):
        made = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        for part in ("__kwdefaults__", "__annotations__", "__qualname__", "__module__", "__doc__"):
            setattr(made, part, copy.copy(getattr(function, part)))
        made.__dict__.update(function.__dict__)
        setattr(made, _MARK, name)
        return made
    definition = getattr(function, "__undertow_definition__", None)
    if definition is None or not definition.is_python:
        return None
    return type(function)(type(definition)(_marked(definition.function, name)), function.__undertow_bound__)
