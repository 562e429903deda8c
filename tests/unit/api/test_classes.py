"""Loading runs no code of the user's, whatever classes the file names and whatever hooks these have."""

from __future__ import annotations

import collections
import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import pytest
from tests.support.saved import packed, unpacked

import undertow as ut

RAN: list[str] = []  # the hooks that have run


def noisy(name: str, base: Any = None) -> Any:
    """A method that tells that it ran, and then does what that of the base does."""

    def hook(*args: Any, **kwargs: Any) -> Any:
        RAN.append(name)
        return getattr(base, name)(*args, **kwargs) if base is not None else None

    return hook


class Meta(type):
    __call__ = noisy("__call__", type)
    __getattribute__ = noisy("__getattribute__", type)  # type: ignore[assignment]
    __hash__ = noisy("__hash__", type)
    __eq__ = noisy("__eq__", type)


class Opener(collections.namedtuple("Opener", "path mode")):
    """Does something with what it is made of."""

    __new__ = noisy("__new__", None)
    __init__ = noisy("__init__")
    __getattribute__ = noisy("__getattribute__", tuple)
    __eq__ = noisy("__eq__", tuple)
    __hash__ = noisy("__hash__", tuple)
    __repr__ = noisy("__repr__", tuple)


class Deleted(collections.namedtuple("Deleted", "path mode")):
    __slots__ = ()
    __del__ = noisy("__del__")


@dataclasses.dataclass
class Record:
    path: Any
    mode: Any
    __new__ = noisy("__new__")
    __post_init__ = noisy("__post_init__")
    __setattr__ = noisy("__setattr__", object)
    __getattribute__ = noisy("__getattribute__", object)
    __init_subclass__ = classmethod(noisy("__init_subclass__"))  # type: ignore[assignment]


class Descriptor:
    __get__ = noisy("__get__")
    __set__ = noisy("__set__")
    __delete__ = noisy("__delete__")


@dataclasses.dataclass
class Described:
    path: Any
    mode: Any


Described.path = Descriptor()  # type: ignore[assignment]


class Answers:
    _fields = Descriptor()
    __dataclass_fields__ = Descriptor()


class Metaclassed(metaclass=Meta):
    pass


class Pair(NamedTuple):
    path: Any
    mode: Any


@dataclasses.dataclass
class Slotted:
    __slots__ = ("mode", "path")
    path: Any
    mode: Any
    count: ClassVar[int] = 0


class Asked(ModuleType):
    """A module that would import something for a name."""

    __getattr__ = noisy("module.__getattr__")
    __getattribute__ = noisy("__getattribute__", ModuleType)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    module = Asked("tests_asked_module")
    ModuleType.__setattr__(module, "Opener", Opener)
    sys.modules["tests_asked_module"] = module
    RAN.clear()
    yield
    del sys.modules["tests_asked_module"]


@ut.function
def add(x: ut.f64, y=1.0):
    return x + y


def file_naming(tmp_path: Path, kind: str, module: str, qualname: str) -> Path:
    """A saved function with a parameter whose default is an object of a class."""
    ut.save(add, tmp_path / "add.ut", examples=[(2.0,)], spans=False)
    entries = unpacked((tmp_path / "add.ut").read_bytes())
    manifest = json.loads(entries["undertow.json"])
    manifest["classes"] = [{"kind": kind, "module": module, "qualname": qualname, "fields": ["path", "mode"]}]
    manifest["parameters"][1]["default"] = {"structure": [[kind, 0], ["static", "a.txt"], ["leaf"]], "leaves": [1.0]}
    for key in ("structures",):
        manifest["signatures"][0][key][1] = [[kind, 0], ["static", "a.txt"], ["leaf"]]
    manifest["signatures"][0]["result"] = [[kind, 0], ["leaf"], ["static", "b"]]
    entries["undertow.json"] = json.dumps(manifest).encode()
    path = tmp_path / "made.ut"
    path.write_bytes(packed(entries))
    return path


CASES = [
    ("namedtuple", __name__, "Opener"),
    ("namedtuple", __name__, "Deleted"),
    ("namedtuple", __name__, "Answers"),
    ("namedtuple", __name__, "Metaclassed"),
    ("namedtuple", "tests_asked_module", "Opener"),
    ("namedtuple", "tests_asked_module", "Missing"),
    ("dataclass", __name__, "Record"),
    ("dataclass", __name__, "Described"),
    ("dataclass", __name__, "Answers"),
    ("dataclass", __name__, "Metaclassed"),
    ("dataclass", __name__, "Metaclassed.inner"),
]


@pytest.mark.parametrize(("kind", "module", "qualname"), CASES, ids=lambda value: str(value).rpartition(".")[2])
def test_no_hook_runs_while_a_file_is_loaded(kind: str, module: str, qualname: str, tmp_path: Path) -> None:
    path = file_naming(tmp_path, kind, module, qualname)
    RAN.clear()
    loaded = ut.load(path)
    assert RAN == []
    del loaded
    assert "__del__" not in RAN


@pytest.mark.parametrize(("kind", "cls"), [("namedtuple", Pair), ("dataclass", Slotted)])
def test_plain_classes_are_found_and_constructed_by_calls(kind: str, cls: type, tmp_path: Path) -> None:
    loaded = ut.load(file_naming(tmp_path, kind, __name__, cls.__name__))
    assert type(loaded(2.0)) is cls
    assert loaded(2.0).path == 3.0 and loaded(2.0).mode == "b"
    assert type(loaded.__signature__.parameters["y"].default) is cls


def test_a_result_is_constructed_as_its_class_says(tmp_path: Path) -> None:
    loaded = ut.load(file_naming(tmp_path, "namedtuple", __name__, "Opener"))
    loaded(2.0)
    assert "__new__" in RAN


def test_a_file_cannot_name_a_million_classes(tmp_path: Path) -> None:
    path = file_naming(tmp_path, "namedtuple", "nowhere", "Pair")
    entries = unpacked(path.read_bytes())
    manifest = json.loads(entries["undertow.json"])
    manifest["classes"] *= 20_000
    path.write_bytes(packed({**entries, "undertow.json": json.dumps(manifest).encode()}))
    with pytest.raises(ut.LoadError, match="20,000 classes"):
        ut.load(path)
