"""Places: what a capture reads outside of the program, and what the program gets for it.

Globals, variables of enclosing functions, attributes of objects and the contents of containers may change between two
calls. So a capture notes each place that it reads (guards.py), and what it found there:

- floats and arrays become hidden arguments of the main graph, read again at each call;
- lists, tuples, dicts and dataclasses are copied, each value in them being a place of its own;
- other objects of the user's are read attribute by attribute; another object of the same class serves as well;
- everything else is a guard: where it has changed, the function is captured again.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from undertow.frontend.control.restart import StartOver
from undertow.frontend.syntax.calling import is_library_module, is_user_class, is_user_code
from undertow.frontend.syntax.source import is_filled
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.by_class import is_object
from undertow.frontend.trace.guards import DTYPE_NUMBERS, Check, Guards, Read, Row, make_guards
from undertow.frontend.trace.opaque import WRAPPERS, held_copy, is_changing, is_opaque
from undertow.frontend.trace.outside_containers import PLAIN, copied, count_constants, is_large, parts_of, tuple_of
from undertow.frontend.values import tree
from undertow.frontend.values.state import Variable
from undertow.frontend.values.traced import Traced, is_traced
from undertow.ir.graph import Port
from undertow.ops.effects import is_pure
from undertow.tracebacks import is_library_file
from undertow.types import DTYPES, Type, dtype_of, f64, i64

_DTYPES = frozenset(dtype.numpy for dtype in DTYPES.values())
_OPENED = 2  # changes of an integer after which it is tried as a hidden argument
_LATER = object()
_RAISE = object()


class Paths:
    """The places that captures of one function have read, by number, and what was learned of them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, Read, Any, int], int] = {}
        self._roots: dict[int, Any] = {}  # held, so that no other object gets the same id
        self.static: frozenset[int] = frozenset()  # hidden arguments whose value a capture needed
        self.level = 0  # of the last capture that succeeded: see `MainGraph`
        self._changes: dict[int, int] = {}
        self._dicts: dict[type, Any] = {}

    def number(self, source: int, root: Any, read: Read, key: Any) -> int:
        """The number of a place: that of the object, or -1 and a root, and how it is read."""
        if source < 0:
            self._roots[id(root)] = root
        return self._numbers.setdefault((source, read, key, id(root) if source < 0 else 0), len(self._numbers))

    def dict_of(self, kind: type) -> Any:
        """What a class itself defines: always the same object."""
        return self._dicts.setdefault(kind, vars(kind))

    def note_change(self, path: int) -> None:
        """A call found another value at this place than a program was captured with."""
        self._changes[path] = self._changes.get(path, 0) + 1

    def is_varying(self, path: int) -> bool:
        """Has the value changed so often that an integer is better tried as a hidden argument?"""
        return self._changes.get(path, 0) >= _OPENED


@dataclass(slots=True, eq=False)
class Place:
    """A row of guards in the making."""

    number: int
    source: int
    root: Any
    read: Read
    key: Any
    path: int
    name: str
    check: Check = Check.SAME
    expected: Any = None
    port: Port | None = None  # the hidden argument


@dataclass(frozen=True, slots=True, eq=False)
class Getter:
    """An attribute that a function of the user's computes: a property. The interpreter captures the call."""

    function: Any
    args: tuple[Any, ...]
    is_kept: bool = False  # does the object keep what it gives?


@dataclass(slots=True, eq=False)
class _Container:
    """A container outside whose contents are being taken."""

    original: Any
    place: Place
    parts: list[tuple[Read, Any, Any, str]]  # how to read what is still to come, its value and name; the next one last
    taken: list[Any]
    build: Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Mirror:
    """What an object or container holds, later the mirrors of that; and how to build its own mirror of these."""

    parts: dict[Any, Any]
    build: Callable[[dict[Any, Any]], Any]


class Places:
    """Everything that one attempt to capture a program has read outside."""

    def __init__(self, builder: Builder, paths: Paths, guarded: frozenset[int], level: int) -> None:
        self.builder = builder
        self.guarded = guarded  # hidden arguments that must be guards
        self._level = level
        self._paths = paths
        self._places: list[Place] = []
        self._values: dict[int, Any] = {}  # path -> what the program got
        # Objects, containers and arrays: id -> (the original, what the program got, its place).
        self._known: dict[int, tuple[Any, Any, Place]] = {}
        self._hidden: dict[Port, tuple[Place, Any]] = {}  # the value at capture
        self._held: dict[int, Any] = {}  # containers whose contents are guarded
        self._code: dict[int, Any] = {}  # functions of the user's that run as they are
        self._keeps = False  # is what is being read differentiated? Then it stays a hidden argument

    # -- reading -----------------------------------------------------------------------------------------------

    def take(self, source: Place | None, root: Any, read: Read, key: Any, value: Any, name: str) -> Any:
        """What the program gets for a value at a place outside."""
        path = self._paths.number(-1 if source is None else source.path, root, read, key)
        if path in self._values:
            return self._values[path]
        open_containers: list[_Container] = []
        taken = self._take_one(self._place(source, root, read, key, name), value, open_containers)
        while open_containers:
            top = open_containers[-1]
            if taken is not _LATER:
                top.taken.append(taken)
            if top.parts:
                part_read, part_key, part, part_name = top.parts.pop()
                taken = self._take_one(
                    self._place(top.place, None, part_read, part_key, part_name), part, open_containers
                )
            else:
                open_containers.pop()
                taken = top.build(top.taken)
                self._remember(top.original, taken, top.place)
        self._values[path] = taken
        return taken

    def miss(self, source: Place | None, root: Any, read: Read, key: Any) -> None:
        """Note that there is nothing at a place."""
        path = self._paths.number(-1 if source is None else source.path, root, read, key)
        if path not in self._values:
            self._place(source, root, read, key, "").check = Check.MISSING
            self._values[path] = None

    # -- what code that is not captured sees -------------------------------------------------------------------

    def hold(self, value: Any) -> None:
        """Code that is not captured gets to see this object: no other one will do, nor other values in it."""
        waiting = [value]
        while waiting:
            item = waiting.pop()
            place = self.place_of(item)
            if place is None or place.check == Check.SAME:
                continue
            place.check, place.expected = Check.SAME, item
            for name, inner in list(getattr(item, "__dict__", {}).items()):
                self._hold(place, None, Read.OWN, name, inner, waiting)

    def hold_code(self, function: Any) -> None:
        """Code of the user's runs as it is: what it reads by name must not change."""
        if id(function) in self._code:
            return
        self._code[id(function)] = function
        waiting = [function]
        seen = {id(function)}
        while waiting:
            item = waiting.pop()
            if not isinstance(item, FunctionType) or is_library_file(item.__code__.co_filename):
                self.hold(item)
                continue
            reads: list[tuple[Any, Read, Any, Any]] = [
                (cell, Read.CELL, None, cell) for cell in item.__closure__ or () if is_filled(cell)
            ]
            for name in item.__code__.co_names:
                if name in item.__globals__:
                    reads.append((item.__globals__, Read.GLOBAL, name, None))
            for root, read, key, cell in reads:
                inner = cell.cell_contents if cell is not None else root[key]
                if id(inner) not in seen:
                    seen.add(id(inner))
                    self._hold(None, root, read, key, inner, waiting)

    def _hold(self, source: Place | None, root: Any, read: Read, key: Any, value: Any, waiting: list[Any]) -> None:
        """Guard a value itself, hidden argument or not."""
        if isinstance(value, ModuleType) and is_library_module(value.__name__):
            return
        place = self._place(source, root, read, key, str(key))
        if isinstance(value, FunctionType):
            place.check, place.expected = Check.FUNCTION, (value, value.__code__, value.__defaults__)
            waiting.append(value)
        elif is_opaque(value):
            place.check, place.expected = Check.EQUAL, held_copy(value, place.name)
        elif isinstance(value, (*PLAIN, np.ndarray)) or count_constants(value) is not None:
            place.check, place.expected = Check.EQUAL, copied(value)
        elif isinstance(value, (list, tuple, dict)) and id(value) not in self._held:
            self._held[id(value)] = value
            labels: Any = tuple(dict.keys(value)) if isinstance(value, dict) else range(len(value))
            place.check = Check.KEYS if isinstance(value, dict) else Check.LENGTH
            place.expected = (type(value), labels if isinstance(value, dict) else len(value))
            for label, item in zip(labels, tree.items_of(value), strict=True):
                self._hold(place, None, Read.ITEM, label, item, waiting)
        elif is_object(value) and id(value) not in self._known:
            place.check, place.expected = Check.KIND, type(value)
            self._known[id(value)] = (value, value, place)
            waiting.append(value)
        else:
            place.check, place.expected = Check.SAME, value
            waiting.append(value)

    def _place(self, source: Place | None, root: Any, read: Read, key: Any, name: str) -> Place:
        path = self._paths.number(-1 if source is None else source.path, root, read, key)
        made = Place(len(self._places), -1 if source is None else source.number, root, read, key, path, name)
        self._places.append(made)
        return made

    def _remember(self, original: Any, taken: Any, place: Place) -> None:
        self._known[id(original)] = (original, taken, place)

    def _take_one(self, place: Place, value: Any, open_containers: list[_Container]) -> Any:
        if id(value) in self._known:
            _, taken, first = self._known[id(value)]
            place.check, place.expected = Check.ALIAS, first.number
            return taken
        kind = type(value)
        if kind is float or (isinstance(value, np.floating) and value.dtype in _DTYPES):
            return self._take_number(place, value, Type(f64 if kind is float else dtype_of(value.dtype)))
        if kind is int and self._is_opened(place, value):
            return self._take_number(place, value, Type(i64))
        if kind is np.ndarray and value.dtype in _DTYPES:
            return self._take_array(place, value)
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            return self._take_equal(place, value)
        if isinstance(value, Enum):
            return self._take_same(place, value)
        if isinstance(value, PLAIN):
            place.check, place.expected = Check.EQUAL, value
            return value
        if isinstance(value, FunctionType):
            place.check, place.expected = Check.FUNCTION, (value, value.__code__, value.__defaults__)
            return value
        if isinstance(value, (set, frozenset)):
            return self._take_equal(place, value)
        if (container := parts_of(value, place.name)) is not None:
            if is_large(value) and not (self._keeps and _has_floats(value)):
                return self._take_equal(place, value)
            place.check, place.expected, shell, build, parts = container
            if shell is not None:  # it may contain itself
                self._remember(value, shell, place)
            open_containers.append(_Container(value, place, parts, [], build))
            return _LATER
        if is_opaque(value):
            place.check, place.expected = Check.EQUAL, held_copy(value, place.name)
            self._remember(value, place.expected, place)
            return place.expected
        if is_object(value):
            place.check, place.expected = Check.KIND, kind
            self._known[id(value)] = (value, value, place)
            return value
        return self._take_same(place, value)

    def _take_same(self, place: Place, value: Any) -> Any:
        place.check, place.expected = Check.SAME, value
        return value

    def _take_equal(self, place: Place, value: Any) -> Any:
        """A container of constants, or an array, that is compared as a whole."""
        place.check, place.expected = Check.EQUAL, copied(value)
        taken = copied(value)
        self._remember(value, taken, place)
        return taken

    def _is_opened(self, place: Place, value: int) -> bool:
        return self._level == 0 and self._paths.is_varying(place.path) and -(2**63) <= value < 2**63

    def _take_number(self, place: Place, value: Any, type_: Type) -> Any:
        if (self._level > 0 and not self._keeps) or place.path in self.guarded:
            place.check, place.expected = Check.EQUAL, value
            return value
        place.check, place.expected = Check.NUMBER, type(value)
        return self._hide(place, value, type_)

    def _take_array(self, place: Place, value: Any) -> Any:
        if (self._level > 1 and not self._keeps) or place.path in self.guarded:
            return self._take_equal(place, value)
        place.check, place.expected = Check.ARRAY, (DTYPE_NUMBERS[value.dtype], value.shape)
        taken = self._hide(place, value, Type(dtype_of(value.dtype), value.shape))
        self._known[id(value)] = (value, taken, place)
        return taken

    def _hide(self, place: Place, value: Any, type_: Type) -> Traced:
        place.port = self.builder.param(type_, place.name)
        self._hidden[place.port] = (place, value)
        return Traced(self.builder, place.port, is_weak=type(value) in (float, int))

    # -- attributes --------------------------------------------------------------------------------------------

    def attribute(self, value: Any, name: str) -> Any:
        """An attribute, or a `Getter` of it; AttributeError if there is none."""
        if isinstance(value, ModuleType):
            found = getattr(value, name)
            if is_library_module(value.__name__) and not is_changing(found):
                return found
            return self.take(None, value, Read.ATTRIBUTE, name, found, f"{value.__name__}.{name}")
        if isinstance(value, type):
            return self._of_class(value, name)
        if isinstance(value, super):
            return self._of_super(value, name)
        place = self.place_of(value)
        kind = type(value)
        if place is None and not is_user_class(kind):
            is_function = isinstance(value, FunctionType) or hasattr(kind, "__undertow_definition__")
            if is_function and name in getattr(value, "__dict__", ()) and not name.startswith("__"):
                return self.take(None, value, Read.ATTRIBUTE, name, getattr(value, name), name)
            return getattr(value, name)
        own: Any = getattr(value, "__dict__", ())
        for owner in kind.__mro__:
            if name in vars(owner):
                return self._of_object(value, name, place, owner, vars(owner)[name], name in own)
        fallback = inspect.getattr_static(kind, "__getattr__", None)
        if name not in own and is_user_code(fallback):
            self._guard_class(kind, "__getattr__")
            for owner in filter(is_user_class, kind.__mro__):
                self.miss(None, self._paths.dict_of(owner), Read.ITEM, name)
            if place is not None:
                self.miss(place, None, Read.OWN, name)
            return Getter(fallback, (value, name))
        if place is None:
            return getattr(value, name)
        found = getattr(value, name, _RAISE)
        if found is _RAISE:
            self.miss(place, None, Read.ATTRIBUTE, name)
            return getattr(value, name)  # which raises
        return self.take(place, None, Read.ATTRIBUTE, name, found, f"{place.name}.{name}")

    def _of_object(self, value: Any, name: str, place: Place | None, owner: type, found: Any, is_own: bool) -> Any:
        """An attribute that the class of an object defines, too."""
        kind = type(value)
        if isinstance(found, property) and _is_captured(found.fget):
            self._guard_class(kind, name)
            return Getter(found.fget, (value,))
        if not is_own:
            if isinstance(found, functools.cached_property) and is_user_code(found.func):
                if place is not None:
                    held = getattr(value, name)  # the object keeps it, for this call and for later ones
                    if not any(map(is_traced, tree.flatten(held, is_traced)[0])):
                        return self.take(place, None, Read.ATTRIBUTE, name, held, f"{place.name}.{name}")
                    del vars(value)[name]
                self._guard_class(kind, name)
                return Getter(found.func, (value,), is_kept=True)
            if isinstance(found, FunctionType) and place is not None and is_user_class(owner):
                # Asked of the object: it may get a function of its own under that name.
                if self._paths.number(place.path, None, Read.ATTRIBUTE, name) not in self._values:
                    row = self._place(place, None, Read.ATTRIBUTE, name, name)
                    row.check, row.expected = Check.METHOD, found
                    self._values[row.path] = None
                return getattr(value, name)
            if isinstance(found, (FunctionType, classmethod, staticmethod)) or hasattr(
                type(found), "__undertow_definition__"
            ):
                if is_user_class(owner):
                    self._guard_class(kind, name)
                elif place is not None:
                    self.hold(value)
                return getattr(value, name)
            get = getattr(type(found), "__get__", None)
            if get is not None and is_user_code(get):
                self.take(None, self._paths.dict_of(owner), Read.ITEM, name, found, name)
                return Getter(get, (found, value, kind))
        is_data = is_own or hasattr(type(found), "__get__")  # slots, fields of namedtuples
        if place is None:
            if is_data or not is_user_class(owner):
                return getattr(value, name)
            return self.take(None, kind, Read.ATTRIBUTE, name, getattr(kind, name), name)
        if not is_data and not is_user_class(owner) and name != "__dict__":
            self.hold(value)
            return getattr(value, name)
        return self.take(place, None, Read.ATTRIBUTE, name, getattr(value, name), f"{place.name}.{name}")

    def _of_class(self, kind: type, name: str) -> Any:
        if not is_user_class(kind):
            return getattr(kind, name)
        return self._guard_class(kind, name)

    def _guard_class(self, kind: type, name: str) -> Any:
        owner = next((base for base in kind.__mro__ if name in vars(base)), kind)
        found = vars(owner).get(name)
        if isinstance(found, classmethod) and hasattr(type(found.__func__), "__undertow_definition__"):
            # Bound anew each time that it is asked for.
            self.take(None, self._paths.dict_of(owner), Read.ITEM, name, found, name)
            return getattr(kind, name)
        return self.take(None, kind, Read.ATTRIBUTE, name, getattr(kind, name), f"{kind.__name__}.{name}")

    def _of_super(self, value: Any, name: str) -> Any:
        order = value.__self_class__.__mro__
        for owner in order[order.index(value.__thisclass__) + 1 :]:
            if name not in vars(owner):
                continue
            found = vars(owner)[name]
            if not is_user_class(owner):
                break
            if isinstance(found, property) and _is_captured(found.fget):
                self._guard_class(owner, name)
                return Getter(found.fget, (value.__self__,))
            taken = self._guard_class(owner, name)
            is_data = not hasattr(type(found), "__get__")
            return taken if is_data else getattr(value, name)
        return getattr(value, name)

    def default(self, function: Any, name: str, value: Any) -> Any:
        """The default of a parameter of a function of the user's.

        Those of keywords are in a dict, which may change; others in a tuple that is guarded with the function.
        """
        defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        if name in named:
            held = self.take(None, function, Read.ATTRIBUTE, "__kwdefaults__", named, function.__name__)
            return held[name]
        if isinstance(value, PLAIN):
            return value
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        if name in names[len(names) - len(defaults) :]:
            held = self.take(None, function, Read.ATTRIBUTE, "__defaults__", defaults, function.__name__)
            return held[names.index(name) - len(names) + len(defaults)]
        return value

    # -- what is known -----------------------------------------------------------------------------------------

    def place_of(self, value: Any) -> Place | None:
        """The place of an object from outside that is read attribute by attribute."""
        known = self._known.get(id(value))
        return (
            known[2] if known is not None and known[1] is value and known[2].check in (Check.KIND, Check.SAME) else None
        )

    def taken(self, value: Any) -> Any:
        """What the program got for an object or container outside that was taken before."""
        known = self._known.get(id(value))
        return value if known is None else known[1]

    def origin(self, value: Traced) -> tuple[Place, Any] | None:
        """The place of a hidden argument, and what was there; None for other values."""
        return self._hidden.get(value.port) if value.builder is self.builder else None

    def hidden_array(self, array: Any) -> Any:
        """An array that the program knows by its identity, as a hidden argument."""
        is_within, self._keeps = self._keeps, True
        try:
            return self.take(None, array, Read.ITSELF, None, array, "array")
        finally:
            self._keeps = is_within

    def floats_of(self, value: Any) -> Any:
        """The floats that an object holds, in namespaces with the names of its attributes; None for what is no float.

        A namespace for each object, and containers like those that it holds. Float variables are given as they are.
        What is shared in the object is shared here; where an object holds itself, there is None. The floats are hidden
        arguments, even where others must be guards.
        """
        is_within, self._keeps = self._keeps, True
        try:
            return self._floats_of(value)
        finally:
            self._keeps = is_within

    def _floats_of(self, value: Any) -> Any:
        mirrors: dict[int, Any] = {}  # of objects and containers; None until all in them is known
        holder: dict[Any, Any] = {}
        waiting: list[tuple[Any, dict[Any, Any], Any, _Mirror | None]] = [(value, holder, 0, None)]
        while waiting:
            item, where, key, mirror = waiting.pop()
            if mirror is not None:  # all in it is known
                where[key] = mirrors[id(item)] = mirror.build(mirror.parts)
            elif isinstance(item, (Traced, Variable)):
                where[key] = item if item.dtype.is_inexact else None
            elif id(item) in mirrors:
                where[key] = mirrors[id(item)]
            else:
                mirrors[id(item)] = where[key] = None
                if (mirror := self._mirror(item)) is not None:
                    waiting.append((item, where, key, mirror))
                    waiting += [(part, mirror.parts, k, None) for k, part in reversed(mirror.parts.items())]
        return holder[0]

    def _mirror(self, item: Any) -> _Mirror | None:
        """What an object or container holds, and how to build its mirror of the mirrors of that."""
        if isinstance(item, tuple):
            return _Mirror(dict(enumerate(item)), lambda parts: tuple_of(type(item), list(parts.values())))
        if isinstance(item, (list, deque)):
            return _Mirror(dict(enumerate(item)), lambda parts: list(parts.values()))
        if isinstance(item, dict):
            return _Mirror(dict(item), dict)
        if not self._has_attributes(item):
            return None
        parts: dict[str, Any] = {}
        for name in (*_own_names(item), *_floats_of_class(item)):
            part = getattr(item, name)
            if isinstance(part, (*PLAIN, type, FunctionType, ModuleType)) and not isinstance(
                part, (float, np.floating, Traced)
            ):
                continue  # not read: whether it changes does not matter
            taken = self.attribute(item, name)
            is_float = isinstance(taken, (Traced, Variable)) and taken.dtype.is_inexact
            if is_float or isinstance(taken, (list, tuple, dict, deque)) or self._has_attributes(taken):
                parts[name] = taken
        return _Mirror(parts, lambda parts: SimpleNamespace(**parts))

    def _has_attributes(self, value: Any) -> bool:
        is_dataclass = dataclasses.is_dataclass(value) and not isinstance(value, type)
        is_other = type(value) is SimpleNamespace or isinstance(value, WRAPPERS)
        return self.place_of(value) is not None or is_dataclass or is_other

    def sources(self, value: Traced) -> set[int] | None:
        """The hidden arguments that a value is computed from, by path; None if it also depends on something else."""
        found: set[int] = set()
        stack = [(value.builder, value.port)]
        seen = set(stack)
        while stack:
            builder, port = stack.pop()
            node = builder.nodes[port.node]
            if builder is self.builder and port in self._hidden:
                found.add(self._hidden[port][0].path)
                continue
            before: list[tuple[Builder, Port]] = []
            if node.op == "param":
                before = [outer for outer, inner in builder.lifted.items() if inner == port]
                if not before:
                    return None
            elif node.op in ("switch", "merge", "identity") or is_pure(node.op):
                before = [(builder, operand) for operand in node.inputs if isinstance(operand, Port)]
            else:
                return None
            stack += [item for item in before if item not in seen]
            seen.update(before)
        return found

    def has_hidden(self, level: int) -> bool:
        """Would another attempt at this level have fewer hidden arguments?"""
        return self._level < level and any(
            place.check == Check.NUMBER if level == 1 else True for place, _ in self._hidden.values()
        )

    def finish(self, used: set[int]) -> tuple[Guards | None, list[int], list[Any]]:
        """The guards; the parameters of main that are hidden arguments, of these numbers; and what they were."""
        if not self._places:
            return None, [], []
        rows: list[Row] = []
        params: list[int] = []
        values: list[Any] = []
        for place in self._places:
            is_input = place.port is not None and place.port.node in used
            if is_input and place.port is not None:
                params.append(place.port.node)
                values.append(np.asarray(self._hidden[place.port][1])[()])
            rows.append(
                (place.source, place.root, place.read, place.key, place.check, place.expected, place.path, is_input)
            )
        return make_guards(rows), params, values

    @property
    def params(self) -> set[int]:
        """All parameters of main that were made for hidden arguments."""
        return {port.node for port in self._hidden}


def _is_captured(function: Any) -> bool:
    """Would the interpreter capture a call of it?"""
    return is_user_code(function) or hasattr(type(function), "__undertow_definition__")


def _own_names(value: Any) -> list[str]:
    """The attributes that an object itself has, not its class."""
    slots = [
        name for base in type(value).__mro__ for name in vars(base).get("__slots__", ()) if not name.startswith("__")
    ]
    return [*[name for name in slots if hasattr(value, name)], *getattr(value, "__dict__", ())]


def _floats_of_class(value: Any) -> list[str]:
    """The floats and arrays that an object has from its class."""
    own, found = set(_own_names(value)), dict[str, None]()
    for base in type(value).__mro__:
        for name, held in vars(base).items():
            is_float = isinstance(held, (float, np.floating)) or (type(held) is np.ndarray and held.dtype.kind in "fc")
            if is_float and name not in own and is_user_class(base) and not name.startswith("__"):
                found[name] = None
    return list(found)


def _has_floats(value: Any) -> bool:
    return any(isinstance(leaf, (float, np.floating)) for leaf in tree.flatten(value)[0])


def needs_now(places: Places, main: Any, value: Traced) -> None:
    """Start over with guards in place of the hidden arguments that a value is computed from, if only from such."""
    found = places.sources(value)
    if found and not found <= places.guarded:
        raise StartOver(main, guarded=places.guarded | found)
