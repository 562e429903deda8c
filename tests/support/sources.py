"""Random well-typed recursive programs, as Python source text.

Every function has fuel as its first argument, calls hand on less of it, and without fuel nothing is called: so
every program ends. Integers are kept small, denominators away from zero, and floats bounded, so that plain Python
and 64-bit arithmetic agree to the bit. A name has one type throughout: `i3` is an integer, `x3` a float, `p3` a truth
value, `v3` an array of one to a few floats, `t3` a list of two integers, `d3` a dict of an integer and a float.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

_NOTES = {"i": "ut.i64", "x": "ut.f64", "p": "ut.bool", "v": "ut.f64[None]"}

# What an expression of each type may be. `{i}`, `{x}`, `{p}` and `{v}` are expressions of these types, less deep, and
# `{i0}` not deep at all; `{t}`, `{d}` and `{w}` are variables, the last an array; `{n}` is a variable that the form
# makes, which `{I}` and `{X}` may use.
_ORDER = "< <= == != > >="
_FORMS = {
    "i": [
        *["call"] * 4, *["({i} ~+ - *~ {i})"] * 3, "({i} ~// %~ ({i} % 5 + 1))", "({i} if {p} else {i})", "(-{i})",
        "~min max~({i}, {i})", "({i} ~and or~ {i})", "{t}[~0 1~]", '{d}["n"]', "abs({i})", "({p} + {i})",
        "sum([{I} for {n} in range(~0 1 2 3~)])", "ut.cond({p}, lambda {n}: {I}, lambda {n}: {i0}, {i0})",
        "~sum max min~({I} for {n} in range(~1 2 3~))", "[{i}, {i}, {i}][{i0} % 3]",
        "(({i0}, {i0}), ({i0}, {i}))[{i0} % 2][~0 1~]", "({i} >> {i0} % 4)",
        "[[{i0}, {i0}], [{i0}, {i0}]][{i0} % 2][{i0} % 2]", "divmod({i}, {i} % 5 + 1)[~0 1~]", "({i} ~& | ^~ {i})",
        "int({x})", "round({x})", "int({p})", "next({I} for {n} in [{i0}, {i}])",
        "sum(map(lambda {n}: {I}, [{i0}, {i0}]))",
    ],
    "x": [
        *["call"] * 3, *["({x} ~+ - *~ {x})"] * 2, "({x} / (abs({x}) + 1.0))", "({i} / ({i} % 7 + 2))",
        "({x} if {p} else {x})", "({x} ~+ *~ {i})", '{d}["y"]', "ut.~sum max~({w})", "{w}[{i0} % {w}.shape[0]]",
        "~min max~({x}, {x})", "round({x}, ~0 1 2~)", "[{x}, {x}][{i0} % 2]", "float({i})", "({x} ~// %~ 2.5)",
        "abs({x})", "sum([{x}, {x0}], {x0})",
    ],
    "p": [
        "call", *[f"({{i}} ~{_ORDER}~ {{i}})"] * 3, *["({x} ~< <= >~ {x})"] * 2, *["({p} ~and or~ {p})"] * 2,
        "(not {p})", "({i} ~< <=~ {i} ~< !=~ {i})", "({i} ~< <=~ {i} ~< !=~ {i} ~> >=~ {i})",
        "~any all~({I} ~< > !=~ {i0} for {n} in [{i0}, {i0}, {i0}])", "~any all~([{p}, {p}])",
        "({i} in [{i0}, {i0}, 3])",
        "({i} not in ({i0}, 2))", "bool({i})", "([{i0}, {i0}] ~== < >=~ [{i0}, {i0}])",
        "isinstance({i}, ~int float~)",
    ],
    "v": [  # one to four floats; how many is known only at run time
        *["call"] * 2, *["({v} ~+ - *~ {x})"] * 2, "ut.concat([{v}, {v}])[:4]", "{v}[: {i} % 3 + 1]",
        "({v} if {p} else {v})", "ut.map(lambda {n}: {X} % 8.0, {v})", "ut.flip({v})",
    ],
}  # fmt: skip
# At the end of expressions: the chance of a variable, and what there is besides.
_ATOMS: dict[str, tuple[float, list[str]]] = {
    "i": (0.75, [str(k) for k in range(-3, 10)]),
    "x": (0.75, [str(k / 4) for k in range(-8, 9)]),
    "p": (0.6, ["({i0} ~< <= == != >~ {i0})"]),
    "v": (0.85, [f"ut.asarray([{', '.join(['{x0}'] * count)}], ut.f64)" for count in (1, 2, 3)]),
}


@dataclass
class Function:
    """A function that can be called: the types of its arguments after fuel, and of its results."""

    name: str
    params: str  # one letter each
    results: str
    is_recursive: bool = True  # takes fuel
    calls: set[str] = field(default_factory=set)
    has_loop: bool = False
    has_default: bool = False  # of the last argument


@dataclass
class Source:
    """A program: its text, the function to call, and what is special about it."""

    text: str
    main: str
    params: str
    features: frozenset[str]
    prints: bool


@dataclass
class _Place:
    """Where the next statement stands."""

    names: dict[str, str]  # variable -> type
    function: Function
    fuel: str = "fuel"  # the variable that holds it; empty: nothing may be called
    loops: int = 0  # around it
    fixed: frozenset[str] = frozenset()  # names that may not be assigned: counters of loops
    foreign: frozenset[str] = frozenset()  # containers from outside a loop: they may not be changed in place
    returns: str | None = None  # types that a `return` gives; None: it may not return

    def inner(self, **changes: object) -> _Place:
        made = _Place(dict(self.names), self.function, self.fuel, self.loops, self.fixed, self.foreign, self.returns)
        for key, value in changes.items():
            setattr(made, key, value)
        return made


class Writer:
    """Writes one program."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines: list[str] = ["import undertow as ut", ""]
        self.indent = 0
        self.count = 0
        self.budget = 0  # calls that may still be written into this function
        self.features: set[str] = set()
        self.prints = self.chance(0.25)
        self.arrays = self.chance(0.35)
        kinds = "ixpv" if self.arrays else "ixp"
        self.functions = [
            Function(f"f{n}", self.letters(kinds, 1, 3), self.letters("i" + kinds, 1, 1) if self.chance(0.6) else
                     self.letters(kinds.replace("p", ""), 2, 3))
            for n in range(random.randint(1, 4))
        ]  # fmt: skip
        self.helpers: list[Function] = []
        self.closures: list[Function] = []  # visible where we stand

    # -- chances -------------------------------------------------------------------------------------------

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def pick(self, *items: str) -> str:
        return self.random.choice(items)

    def letters(self, alphabet: str, least: int, most: int) -> str:
        return "".join(self.random.choice(alphabet) for _ in range(self.random.randint(least, most)))

    def fresh(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    # -- text ----------------------------------------------------------------------------------------------

    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.put(head)
        self.indent += 1
        visible = list(self.closures)
        yield
        self.closures = visible
        self.indent -= 1

    # -- expressions ---------------------------------------------------------------------------------------

    def variable(self, place: _Place, letter: str) -> str | None:
        letter = "v" if letter == "w" else letter
        found = [name for name, type in place.names.items() if type == letter]
        return self.random.choice(found) if found else None

    def expression(self, place: _Place, letter: str, depth: int = 2) -> str:
        if depth <= 0 or self.chance(0.15 if letter == "p" else 0.25):
            chance, other = _ATOMS[letter]
            known = self.variable(place, letter)
            return known if known and self.chance(chance) else self.filled(place, self.random.choice(other), 0)
        form = self.random.choice([form for form in _FORMS[letter] if self.can_write(place, letter, form)])
        return self.call(place, letter, depth - 1) if form == "call" else self.filled(place, form, depth - 1)

    def can_write(self, place: _Place, letter: str, form: str) -> bool:
        if form == "call":
            return any(letter in f.results for f in self.callable(place))
        if "ut.map" in form and self.prints:
            return False
        return all(self.variable(place, held) for held in "tdw" if f"{{{held}}}" in form)

    def filled(self, place: _Place, form: str, depth: int) -> str:
        """A form with its gaps filled: `~a b~` is a or b; for the others see _FORMS."""
        chosen: dict[str, str] = {}
        inner = place
        if bound := re.search(r"{([IX])}", form):
            letter = bound[1].lower()
            chosen["n"] = self.fresh(letter)
            is_map = "ut.map" in form
            self.features |= {"map"} if is_map else set()
            inner = place.inner(loops=place.loops + is_map, fixed=place.fixed | {chosen["n"]})
            inner.names[chosen["n"]] = letter

        def fill(gap: re.Match[str]) -> str:
            if gap[2] is not None:
                return self.pick(*gap[2].split())
            if (name := gap[1]) in "ntdw":
                return chosen.setdefault(name, self.variable(place, name) or "")
            return self.expression(inner if name.isupper() else place, name[0].lower(), 0 if "0" in name else depth)

        return re.sub(r"{(\w+)}|~([^~]+)~", fill, form)

    def condition(self, place: _Place, depth: int = 2) -> str:
        """What `if` and `while` may ask: the truth of anything, of several types at once."""
        if self.chance(0.75) or depth <= 0:
            return self.expression(place, "p", depth)
        letters = self.letters("ixp", 1, 3)
        word = self.pick(" and ", " or ")
        found = [f"({self.expression(place, letter, depth - 1)})" for letter in letters]
        return self.pick("", "", "not ") + f"({word.join(found)})"

    def call(self, place: _Place, letter: str, depth: int) -> str:
        """A call that gives a value of that type, or nothing where there is none to be made."""
        able = [f for f in self.callable(place) if letter in f.results]
        if not able:
            return ""
        chosen = self.random.choice(able)
        text = self.call_of(place, chosen, depth)
        if len(chosen.results) == 1:
            return text
        places = [n for n, type in enumerate(chosen.results) if type == letter]
        return f"{text}[{self.random.choice(places)}]"

    def callable(self, place: _Place) -> list[Function]:
        if self.budget <= 0:
            return []
        known = [*self.functions, *self.helpers, *self.closures]
        return [f for f in known if place.fuel or not f.is_recursive]

    def call_of(self, place: _Place, function: Function, depth: int) -> str:
        self.budget -= 1
        if place.loops and function.is_recursive:
            self.features.add("call in loop")
        args = []
        if function.is_recursive:
            args.append(self.pick(f"{place.fuel} - 1", f"{place.fuel} - 1", f"{place.fuel} - 2", f"{place.fuel} // 2"))
        place.function.calls.add(function.name)
        for number, letter in enumerate(function.params):
            if function.has_default and number == len(function.params) - 1 and self.chance(0.5):
                break
            arg = self.bounded(place, letter, depth)
            if function.is_recursive and any(f"{f.name}(" in arg for f in self.functions):
                self.features.add("nested call")
            args.append(arg)
        return f"{function.name}({', '.join(args)})"

    def bounded(self, place: _Place, letter: str, depth: int = 2) -> str:
        """An expression that is not large, whatever it is made of."""
        text = self.expression(place, letter, depth)
        if letter == "i":
            return f"{text} % {self.pick('97', '13', '50')}" + self.pick("", "", " - 6")
        return text if letter == "p" else f"{text} % 8.0"

    # -- statements ----------------------------------------------------------------------------------------

    def statements(self, place: _Place, size: int) -> bool:
        """Some statements; did they leave for sure (by return, break or continue)?"""
        before = len(self.lines)
        for _ in range(self.random.randint(1, max(1, size))):
            if self.statement(place, size - 1):
                return True
        if len(self.lines) == before:
            self.put("pass")
        return False

    def statement(self, place: _Place, size: int) -> bool:
        kinds: list[tuple[int, Callable[[_Place, int], bool]]] = [
            (5, self.assign), (2, self.augment), (1, self.swap), (2, self.take_results), (2, self.container),
        ]  # fmt: skip
        if size > 0:
            kinds += [(5, self.branch), (2, self.while_loop), (2, self.for_loop), (1, self.explicit_loop)]
            kinds += [(1, self.define)] if self.indent < 4 else []
        if place.returns is not None and (place.loops or self.indent > 1):
            kinds.append((2, self.leave))
        if self.prints:
            kinds.append((2, self.say))
        if not self.prints and place.fuel:
            kinds.append((1, self.mapped))
        weights = [weight for weight, _ in kinds]
        return self.random.choices([kind for _, kind in kinds], weights)[0](place, size)

    def target(self, place: _Place, letter: str) -> str:
        """A variable to assign: one that is there, or a new one."""
        known = [name for name, type in place.names.items() if type == letter and name not in place.fixed]
        if known and self.chance(0.6):
            return self.random.choice(known)
        return self.fresh(letter)

    def assign(self, place: _Place, size: int) -> bool:
        letter = self.pick(*"iiixxp", *("vv" if self.arrays else ""))
        value = self.bounded(place, letter)
        if letter == "x" and self.chance(0.2):
            value = str(self.random.randint(0, 3))  # a Python number that becomes a float when it meets one
        name = self.target(place, letter)
        self.put(f"{name} = {value}")
        place.names[name] = letter
        return False

    def augment(self, place: _Place, size: int) -> bool:
        letter = self.pick("i", "x")
        known = [name for name, type in place.names.items() if type == letter and name not in place.fixed]
        if not known:
            return self.assign(place, size)
        name = self.random.choice(known)
        self.put(f"{name} {self.pick('+=', '-=')} {self.bounded(place, letter, 1)}")
        self.put(f"{name} %= {'97' if letter == 'i' else '8.0'}")
        return False

    def swap(self, place: _Place, size: int) -> bool:
        a, b = self.target(place, "i"), self.target(place, "i")
        self.put(f"{a}, {b} = {self.bounded(place, 'i')}, {self.bounded(place, 'i', 1)}")
        place.names.update({a: "i", b: "i"})
        return False

    def take_results(self, place: _Place, size: int) -> bool:
        able = [f for f in self.callable(place) if len(f.results) > 1]
        if not able:
            return self.assign(place, size)
        chosen = self.random.choice(able)
        call = self.call_of(place, chosen, 1)
        targets = [self.target(place, letter) for letter in chosen.results]
        self.put(f"{', '.join(targets)} = {call}")
        place.names.update(zip(targets, chosen.results, strict=True))
        self.features.add("several results")
        return False

    def container(self, place: _Place, size: int) -> bool:
        letter = self.pick("t", "d")
        known = [name for name, type in place.names.items() if type == letter and name not in place.foreign]
        if known and self.chance(0.6):
            name = self.random.choice(known)
            key, held = self.random.choice((("0", "i"), ("1", "i")) if letter == "t" else (('"n"', "i"), ('"y"', "x")))
            self.put(f"{name}[{key}] = {self.bounded(place, held)}")
            return False
        name = self.target(place, letter)
        a, b = self.bounded(place, "i", 1), self.bounded(place, "i" if letter == "t" else "x", 1)
        self.put(f"{name} = [{a}, {b}]" if letter == "t" else f'{name} = {{"n": {a}, "y": {b}}}')
        place.names[name] = letter
        return False

    def say(self, place: _Place, size: int) -> bool:
        self.put(f'ut.print("{place.function.name} {self.fresh("m")} {{}}", {self.expression(place, "i", 1)})')
        return False

    def mapped(self, place: _Place, size: int) -> bool:
        """A map over a few lanes, perhaps none, each of which may call."""
        name, lane = self.target(place, "i"), self.fresh("i")
        inner = place.inner(loops=place.loops + 1)
        inner.names[lane] = "i"
        body = self.bounded(inner, "i")
        count = f"({self.expression(place, 'i', 1)}) % 4"
        self.put(f"{name} = int(ut.sum(ut.map(lambda {lane}: {body}, ut.arange({count})))) % 97")
        place.names[name] = "i"
        self.features.add("map")
        return False

    def leave(self, place: _Place, size: int) -> bool:
        if place.loops and self.chance(0.6):
            self.put(self.pick("break", "continue"))
        else:
            self.put_return(place)
        return True

    def put_return(self, place: _Place) -> None:
        assert place.returns is not None
        self.put(f"return {', '.join(self.bounded(place, letter) for letter in place.returns)}")

    def branch(self, place: _Place, size: int) -> bool:
        """if, elif, else. What all sides that come out assign is known afterwards."""
        ends: list[dict[str, str] | None] = []
        sides = self.random.choice((1, 2, 2, 3))
        for number in range(sides):
            word = "if" if number == 0 else "elif" if number < sides - 1 or self.chance(0.3) else "else"
            inner = place.inner()
            with self.block(f"{word}:" if word == "else" else f"{word} {self.condition(place)}:"):
                ends.append(None if self.statements(inner, size) else inner.names)
        if word != "else":
            ends.append(dict(place.names))
        coming = [names for names in ends if names is not None]
        if not coming:
            return True
        place.names.clear()
        place.names.update({n: t for n, t in coming[0].items() if all(n in names for names in coming)})
        return False

    def loop_place(self, place: _Place, counter: str) -> _Place:
        place.function.has_loop = True
        held = frozenset(name for name, type in place.names.items() if type in "td")
        inner = place.inner(loops=place.loops + 1, fixed=place.fixed | {counter}, foreign=place.foreign | held)
        inner.names[counter] = "i"
        return inner

    def while_loop(self, place: _Place, size: int) -> bool:
        counter, limit = self.fresh("k"), f"({self.expression(place, 'i', 1)}) % {self.random.randint(2, 4)}"
        self.put(f"{counter} = 0")
        place.fixed |= {counter}
        is_endless = self.chance(0.25)
        also = f" and {self.condition(place, 1)}" if self.chance(0.3) else ""
        assigns = not is_endless and self.chance(0.2)
        test = (
            f"while ({counter} := {counter} + 1) < {limit}{also}:" if assigns else f"while {counter} < {limit}{also}:"
        )
        with self.block("while True:" if is_endless else test):
            if not assigns:
                self.put(f"{counter} += 1")
            if is_endless:
                self.put(f"if {counter} > {limit}:")
                self.put("    break")
            self.statements(self.loop_place(place, counter), size)
        place.names[counter] = "i"
        return False

    def for_loop(self, place: _Place, size: int) -> bool:
        known = [name for name, type in place.names.items() if type == "i" and name not in place.fixed]
        counter = self.random.choice(known) if known and self.chance(0.3) else self.fresh("k")
        few = f"({self.expression(place, 'i', 1)}) % {self.random.randint(2, 4)}"
        over = self.pick(few, few, f"1, {few} + 2", f"{few}, -1, -1", f"0, 7, {few} + 2", "3")
        with self.block(f"for {counter} in range({over}):"):
            inner = self.loop_place(place, counter)
            if over == "3" and self.chance(0.5):
                inner.foreign = place.foreign  # Python runs it
            self.statements(inner, size)
        return False

    def explicit_loop(self, place: _Place, size: int) -> bool:
        """ut.while_loop with a tuple: a counter and two values."""
        place.function.has_loop = True
        state, count, a, x = (self.fresh(letter) for letter in "sqix")
        inner = place.inner(loops=place.loops + 1)
        inner.names.update({f"{state}[0]": "i", f"{state}[1]": "i", f"{state}[2]": "x"})
        inner.fixed |= set(inner.names)
        limit = f"({self.expression(place, 'i', 1)}) % 4"
        start = f"(0, {self.bounded(place, 'i', 1)}, {self.bounded(place, 'x', 1)})"
        body = f"({state}[0] + 1, {self.bounded(inner, 'i')}, {self.bounded(inner, 'x')})"
        also = f" and {self.expression(inner, 'p', 1)}" if self.chance(0.3) else ""
        test = f"lambda {state}: {state}[0] < {limit}{also}"
        self.put(f"{count}, {a}, {x} = ut.while_loop({test}, lambda {state}: {body}, {start})")
        place.names.update({count: "i", a: "i", x: "x"})
        return False

    def define(self, place: _Place, size: int) -> bool:
        """A function inside the function: it sees the variables around it."""
        is_recursive = bool(place.fuel) and self.chance(0.5)
        made = Function(self.fresh("g"), self.letters("ix", 1, 2), self.pick("i", "x"), is_recursive)
        params = [self.fresh(letter) for letter in made.params]
        inner = _Place({**place.names, **dict(zip(params, made.params, strict=True))}, made, "", returns=made.results)
        # A name that is assigned is local everywhere in the function: only new ones may be.
        inner.fixed = frozenset(place.names)
        inner.foreign = frozenset(place.names)
        if is_recursive:
            notes = [f"{name}: {_NOTES[letter]}" for name, letter in zip(params, made.params, strict=True)]
            self.put("@ut.function")
            with self.block(f"def {made.name}(left: ut.i64, {', '.join(notes)}) -> {_NOTES[made.results]}:"):
                with self.block("if left <= 0:"):
                    self.put_return(inner)
                self.closures.append(made)
                inner.fuel = "left"
                if not self.statements(inner, size - 1):
                    self.put_return(inner)
            self.features.add("recursive closure")
        elif self.chance(0.3):
            self.put(f"{made.name} = lambda {', '.join(params)}: {self.bounded(inner, made.results)}")
        else:
            if self.chance(0.3):  # a default is evaluated here and now
                params[-1] += f"={self.bounded(place, made.params[-1], 1)}"
                made.has_default = True
            with self.block(f"def {made.name}({', '.join(params)}):"):
                if not self.statements(inner, size - 1):
                    self.put_return(inner)
        self.closures.append(made)
        place.function.calls |= made.calls
        return False

    # -- functions -----------------------------------------------------------------------------------------

    def helper(self) -> None:
        """A function that is no ut.function: captured where it is called. It may call back."""
        is_recursive = self.chance(0.5)
        made = Function(self.fresh("h"), self.letters("ix", 1, 2), self.pick("i", "x"), is_recursive)
        params = [self.fresh(letter) for letter in made.params]
        names = dict(zip(params, made.params, strict=True))
        place = _Place(names, made, "fuel" if is_recursive else "", returns=made.results)
        self.budget = 1
        with self.block(f"def {made.name}({', '.join((['fuel'] if is_recursive else []) + params)}):"):
            if is_recursive:
                with self.block("if fuel <= 0:"):
                    self.put_return(place.inner(fuel=""))
            if not self.statements(place, 2):
                self.put_return(place)
        self.put("")
        self.helpers.append(made)

    def function(self, made: Function) -> None:
        params = [self.fresh(letter) for letter in made.params]
        notes = [f"{name}: {_NOTES[letter]}" for name, letter in zip(params, made.params, strict=True)]
        results = [_NOTES[letter] for letter in made.results]
        gives = results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
        place = _Place(dict(zip(params, made.params, strict=True)), made, returns=made.results)
        self.put("@ut.function")
        with self.block(f"def {made.name}(fuel: ut.i64, {', '.join(notes)}) -> {gives}:"):
            self.budget = 0
            with self.block("if fuel <= 0:"):
                self.put_return(place.inner(fuel=""))
            self.budget = self.random.randint(1, 4)
            if not self.statements(place, 3):
                self.put_return(place)
        self.closures.clear()
        self.put("")
        self.put("")

    def program(self) -> Source:
        if self.chance(0.4):
            self.helper()
        for made in self.functions:
            self.function(made)
        reach = {f.name: f.calls for f in (*self.functions, *self.helpers)}
        for start in self.functions:
            seen = _reachable(start.name, reach)
            self.features |= {"recursive"} if start.name in seen else set()
            others = [f for f in self.functions if f is not start and f.name in seen]
            if any(start.name in _reachable(f.name, reach) for f in others):
                self.features.add("mutual")
            if start.has_loop and start.name in seen:
                self.features.add("loop in call")
        main = self.functions[0]
        return Source("\n".join(self.lines), main.name, main.params, frozenset(self.features), self.prints)


def _reachable(name: str, calls: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(calls[name])
    while todo:
        at = todo.pop()
        if at not in seen:
            seen.add(at)
            todo.extend(calls.get(at, ()))
    return seen


def write(random: Random) -> Source:
    """A random program."""
    return Writer(random).program()


def argument(random: Random, letter: str) -> Any:
    """A value for a parameter of that type."""
    if letter == "i":
        return random.randint(-6, 20)
    if letter == "v":
        return np.array([random.randint(-12, 12) / 4 for _ in range(random.randint(1, 4))])
    return random.randint(-12, 12) / 4 if letter == "x" else random.random() < 0.5
