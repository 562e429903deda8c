"""What names and variables stand for while a program is captured, and what functions have seen of them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from undertow.frontend.control.merge import force
from undertow.frontend.control.restart import StartOver
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.definition import Binding, Specialization
from undertow.frontend.trace.hidden import HiddenParameters
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import is_static_equal
from undertow.frontend.values.traced import Context, Traced, is_traced
from undertow.types import Type


@dataclass(slots=True, eq=False)
class MainGraph:
    """What is known of a program before it is captured."""

    types: tuple[Type, ...] = ()  # of the arguments
    assigned: frozenset[Any] = frozenset()  # variables that it assigns: their reads stand in program order


def _is_same(a: Any, b: Any) -> bool:
    """Are two leaves one value?"""
    if isinstance(a, Traced) and isinstance(b, Traced):
        return a.builder is b.builder and a.port == b.port
    return a is b or is_static_equal(a, b)


class Bindings(HiddenParameters):
    """Knows variables by their names in the graphs, and what a gradient binds in their place."""

    def __init__(self, ctx: Context, main: MainGraph) -> None:
        super().__init__(ctx)
        self.main = main
        self.variables: dict[Any, str] = {}  # those that are used, with the names that the graphs know them by
        self.binding: Binding | None = None

    def note_reading(self, env: Env, name: str, value: Any) -> None:
        """A variable of an enclosing function is read."""
        self._note_seen(env, name, tree.flatten(value, is_traced))

    def _note_seen(self, env: Env, name: str, seen: tuple[list[Any], tree.Structure]) -> None:
        for function in self._open.values():
            if env.born < function.began:
                function.readings.setdefault((env, name), seen)

    def _sees_the_same(self, function: Specialization) -> bool:
        """Would the body read now what it read when it was captured?"""
        for (env, name), (leaves, structure) in function.readings.items():
            now, structure_now = tree.flatten(force(env.vars.get(name), self.ctx), is_traced)
            if structure_now != structure or not all(map(_is_same, leaves, now)):
                return False
        return True

    def bound(self, value: Any) -> Any:
        """What stands for a variable or captured array here: the value itself, or an argument of a gradient."""
        bound = self.binding.get(id(value)) if self.binding else None
        return value if bound is None else bound[1]

    def seen(self, value: Any) -> Any:
        """What a name, an attribute or an item gives. A variable is itself, and asks what it is bound to when read."""
        return value if hasattr(type(value), "__undertow_read__") else self.bound(value)

    def seen_inside(self, value: Any) -> Any:
        """An argument of what is not the user's own Python: a container with what stands for the arrays in it."""
        if not self.binding or not isinstance(value, (list, tuple, dict)):
            return self.seen(value)
        leaves, structure = tree.flatten(value, is_traced)
        if not any(id(leaf) in self.binding for leaf in leaves):
            return value
        return tree.unflatten(structure, [self.seen(leaf) for leaf in leaves])

    def variable_name(self, variable: Any) -> str:
        """The name of a variable in the graphs of this session."""
        if variable not in self.variables:
            taken = set(self.variables.values())
            names = (variable.name if k == 1 else f"{variable.name}~{k}" for k in itertools.count(1))
            self.variables[variable] = next(name for name in names if name not in taken)
        return self.variables[variable]

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """Must this use stand in program order? Reads of a variable that nothing assigns need no order."""
        if writes and variable not in self.main.assigned:
            raise StartOver(self.main, assigned=self.main.assigned | {variable})
        return variable in self.main.assigned
