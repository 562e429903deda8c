"""The row type of programs, and plain Python as the oracle of what they give.

A program is written once, as `@ut.function`s in a module of this package. That module is loaded twice: as it is, and
with `ut.function` meaning nothing, so that Python itself runs the same source and says what is expected, what is
printed and how many calls are made.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib.util
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

import undertow as ut
from undertow.frontend.trace.library import capture_call, capture_map
from undertow.frontend.values import tree
from undertow.frontend.values.traced import capturing
from undertow.ir.graph import Library, StaticGraph
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library

TAGS = frozenset(
    (
        "recursive", "mutual", "loop", "branch", "map", "containers", "arrays", "closure", "random", "effects", "lazy",
        "late", "deep", "fault", "abandons", "gradient", "sown", "helpers",
    )
)  # fmt: skip


_FAULTS = (ut.Fault, AssertionError, ArithmeticError, ValueError, LookupError, AttributeError, NameError, TypeError)


@dataclass(frozen=True, eq=False)
class Program:
    """A function, arguments for it, and what is to be known about it.

    Tags say what it is about. `lazy` programs end only on engines that need not evaluate every argument; `late` ones do
    so as they are captured, and everywhere after passes; `deep` ones take long; `helpers` call undecorated functions
    that call themselves, which Python does not count; `fault` ones end in a Fault; `abandons` ones make calls that the
    result does not need, which an engine may leave out.
    """

    name: str
    function: Any
    cases: tuple[tuple[Any, ...], ...]  # arguments of one run each
    tags: frozenset[str]
    by: str = "call"  # "map": the arguments are those of `function.map`
    seed: int | None = None
    stated: Any = None  # the results, one per case, where Python cannot give them
    plain: Program | None = field(default=None, repr=False)  # its twin, to be run by Python

    def run(self, case: int, **options: Any) -> tuple[Any, Any]:
        """Run one case: the result and the stats."""
        runs = self.function.map if self.by == "map" else self.function.run
        result = runs(
            *self.cases[case], stats=True, **({"seed": self.seed} if self.seed is not None else {}), **options
        )
        return result[0], result[1]

    @functools.cache  # noqa: B019 - programs live as long as the process
    def expected(self, case: int) -> Expected:
        """What plain Python gives."""
        if self.stated is not None:
            return Expected(self.stated[case], "", None)
        if "random" in self.tags:  # Python has no such numbers: the reference engine is the oracle
            return Expected(self.run(case, engine="reference")[0], "", None)
        assert self.plain is not None
        called = self.plain.function.map if self.by == "map" else self.plain.function
        Plain.calls = 0
        python = ut.options(engine="python")  # what ut.reap calls is not captured, either
        with contextlib.redirect_stdout(io.StringIO()) as printed, np.errstate(all="ignore"), python:
            try:
                value = called(
                    *(
                        copy.deepcopy(x) if isinstance(x, np.ndarray) or type(x) is list else x
                        for x in self.plain.cases[case]
                    )
                )  # it may change them; classes are its own
            except _FAULTS as fault:
                value = fault
        return Expected(value, printed.getvalue(), None if "helpers" in self.tags else Plain.calls)

    def capture(self, case: int) -> tuple[Library, StaticGraph]:
        """Capture it anew: the library as captured, and the static graph that runs."""
        definition = self.function.__undertow_definition__
        with capturing(None):
            if self.by == "map":
                captured = capture_map(definition, *self.function._map_arguments(self.cases[case]))
            else:
                captured = capture_call(definition, self.function.__undertow_arguments__(self.cases[case], {}))
        return captured.library, flatten(make_library(captured.library, True, True), definition.name)

    def signature(self, case: int) -> object:
        """The types and structures of the arguments: all that the graph may depend on."""
        if self.by == "map":
            given = self.function._map_arguments(self.cases[case])[0]
            return tuple(t.with_shape(t.shape[1:]) for t in given.types), given.structures
        given = self.function.__undertow_arguments__(self.cases[case], {})
        return given.types, given.structures, given.weak

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Expected:
    """What a run should give: its result (or fault), what it prints, how many calls it makes (where known)."""

    value: Any
    printed: str
    calls: int | None


def program(
    function: Any,
    *cases: tuple[Any, ...],
    tags: str = "recursive",
    name: str = "",
    by: str = "call",
    seed: int | None = None,
    stated: Sequence[Any] | None = None,
) -> Program:
    """A row. Each case is a tuple of arguments."""
    words = frozenset(tags.split())
    assert words <= TAGS, f"unknown tags {words - TAGS}"
    return Program(name or function.__name__, function, cases, words, by, seed, stated)


class TooManyCalls(Exception):
    """Plain Python has made more calls than it was allowed to."""


class Plain:
    """What `@ut.function` means in the second copy of a module: the Python function, its calls counted."""

    calls = 0
    most_calls: float = float("inf")

    def __init__(self, python: Callable[..., Any], bound: tuple[Any, ...] = ()) -> None:
        self.python = python
        self.bound = bound
        self.__name__ = python.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        Plain.calls += 1
        if Plain.calls > Plain.most_calls:
            raise TooManyCalls
        return self.python(*self.bound, *args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Plain:
        return self if instance is None else Plain(self.python, (instance, *self.bound))

    def map(self, *arrays: Any) -> Any:
        return _map(self, *arrays)


class PlainDevice:
    """What `ut.device` means there: nothing."""

    def __init__(self, name: Any) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass

    def __call__(self, function: Any) -> Any:
        return function


def _map(function: Callable[..., Any], *arrays: Any) -> Any:
    """`ut.map` as a loop of Python."""
    shared = [getattr(array, "value", None) for array in arrays]
    is_shared = [type(array) is type(ut.shared(0)) for array in arrays]
    held = [_columns(array) for array in arrays]
    lengths = {len(leaf) for leaves, s in zip(held, is_shared, strict=True) if not s for leaf in leaves[0]}
    assert len(lengths) == 1, "mapped arrays have one length"
    rows: list[Any] = []
    for k in range(lengths.pop()):
        args = [
            whole if skip else tree.unflatten(structure, [leaf[k] for leaf in leaves])
            for whole, skip, (leaves, structure) in zip(shared, is_shared, held, strict=True)
        ]
        rows.append(function(*args))
    if not rows:
        return np.zeros(0)
    structure = tree.flatten(rows[0])[1]
    return tree.unflatten(structure, [np.stack(c) for c in zip(*(tree.flatten(r)[0] for r in rows), strict=True)])


def _columns(array: Any) -> tuple[list[Any], tree.Structure]:
    """What a map runs over: lists of numbers are arrays, lists of objects run item by item."""
    if isinstance(array, list) and array and not all(map(tree.is_number, array)):
        return [array], (tree.LEAF,)
    return tree.flatten(np.asarray(array) if isinstance(array, list) else array)


def import_plain(path: str, name: str) -> ModuleType:
    """Import a file with `ut.function` meaning nothing, so that Python itself runs what is in it."""
    stand_in = ModuleType("undertow")
    stand_in.__dict__.update(vars(ut), function=Plain, map=_map, device=PlainDevice)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    real = sys.modules["undertow"]
    sys.modules["undertow"] = stand_in
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules["undertow"] = real
    return module


def load(module: ModuleType) -> list[Program]:
    """The programs of a module, each with its plain twin."""
    assert module.__file__ is not None
    twin = import_plain(module.__file__, f"{module.__name__}~plain")
    pairs = zip(module.PROGRAMS, twin.PROGRAMS, strict=True)
    return [dataclasses.replace(row, plain=plain) for row, plain in pairs]


def assert_same(found: Any, expected: Any) -> None:
    """Integers exactly, floats and complex numbers to a relative 1e-9 (f32: 1e-5), containers of the same kind."""
    if (held := tree.children(found)) is not None:
        wanted = tree.children(expected)
        # The classes of the plain twin are other classes, of the same names.
        assert type(found).__name__ == type(expected).__name__ and wanted is not None
        assert len(held[1]) == len(wanted[1]) and (not isinstance(found, dict) or list(found) == list(expected))
        for one, other in zip(held[1], wanted[1], strict=True):
            assert_same(one, other)
    elif tree.is_number(found):
        a, b = np.asarray(found), np.asarray(expected)
        assert a.shape == b.shape, f"shape {a.shape}, expected {b.shape}"
        if a.dtype.kind in "fc":
            tolerance = 1e-5 if a.dtype in (np.float32, np.complex64) else 1e-9
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 1e-3)
        else:
            np.testing.assert_array_equal(a, b)
    else:
        assert found == expected
