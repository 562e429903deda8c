"""Undertow: recursive functions in static dataflow graphs.

Decorate a Python function with @ut.function and call it; ut.grad differentiates it, and f.map calls it for many
arguments in one run. help(ut.function) and help(ut.options) say more; dir(ut) lists all names, and those of NumPy
mean what they mean there.
"""

# Layers, in processing order: frontend, passes, plan, engines; viz for pictures. Below them are ops, ir, types,
# elsewhere, tracebacks and errors; above them api, with the alternative APIs subgraph and compat, then public, data,
# models, train, cli and __main__. mypy_plugin stands by itself, and so does cluster, a pool of workers; parallel, above
# data, trains on it, and ray has it on Ray. CONTRIBUTING.md draws who may import whom.

import importlib as _importlib
from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import numpy as _numpy  # noqa: F401  # before the core, whose BLAS starts threads: after it NumPy takes longer

import undertow.frontend.syntax.strings as _strings  # noqa: F401  # it hears what is compiled from now on

if _TYPE_CHECKING:  # checkers read __init__.pyi instead
    from undertow.public import *  # noqa: F403

__version__ = "0.1.0"

__later__ = ("data", "models", "ray", "train")  # public modules that stand above this one


def _load() -> list[str]:
    """Make all public names attributes of this module; loading them takes longer than `import numpy`. Their names."""
    public = _importlib.import_module("undertow.public")
    names = globals()
    if "__all__" not in names:
        names.update({name: getattr(public, name) for name in public.__all__})
        names["__all__"] = [*public.__all__, *__later__]
    return names["__all__"]  # type: ignore[no-any-return]


def __getattr__(name: str) -> _Any:
    if name != "__all__" and name.startswith("_"):
        raise AttributeError(f"module 'undertow' has no attribute {name!r}")
    if _find_spec(f"undertow.{name}") is not None:  # `from undertow import engines` asks here first
        return _importlib.import_module(f"undertow.{name}")
    known = _load()
    if name in globals():
        return globals()[name]
    from undertow.elsewhere import FRAMEWORKS, unknown_name
    from undertow.tracebacks import ANEW, shorten

    try:
        raise unknown_name("ut", name, known, FRAMEWORKS)
    except AttributeError as fault:
        shorten(fault)
        if ANEW:
            raise fault
        raise


def __dir__() -> list[str]:
    return sorted(_load())
