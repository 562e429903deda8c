"""The state that a branch may change: variables, order, the contents of lists and dicts.

A branch on a traced value is captured by running both sides, each from the same state, and joining the two states
afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from undertow.errors import CaptureError, kind_of
from undertow.frontend.control.merge import Joined, join_values
from undertow.frontend.syntax.source import Env, Undefined
from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.values.leaves import ABSENT
from undertow.frontend.values.option import is_option
from undertow.frontend.values.traced import Context
from undertow.ir.exact import exact, keys_of
from undertow.ir.graph import Port
from undertow.types import CTL

_SEQUENCES = (list, deque)
_CONTAINERS = (list, dict, set, deque)


@dataclass(slots=True, eq=False)
class State:
    """Everything that a branch may change: variables, the effect token, the contents of lists and dicts."""

    vars: dict[str, Any]
    effect: Port | None
    contents: dict[int, tuple[Any, Any]]  # id -> (container, shallow copy)
    owners: dict[int, Any]  # id of a container -> the object whose attributes it has
    arrays: Any = field(default_factory=dict)  # what arrays that change in place hold: see changes.py
    made: int = 0  # how much the capture had made by then, and changed for good: see ownership.py
    changed_for_good: int = 0


def save(env: Env, builder: Builder, is_made: Callable[[Any], bool]) -> State:
    """The current state; objects have contents if the capture made them."""
    return State(dict(env.vars), builder.effect, *contents(env, is_made))


def restore(state: State, env: Env, builder: Builder) -> None:
    """Go back to a state."""
    env.vars = dict(state.vars)
    builder.effect = state.effect
    refill(state)


def held_by(value: Any) -> Any:
    """What holds the contents of a container or an object, and can be refilled; None if there is no such thing."""
    return value if isinstance(value, _CONTAINERS) else getattr(value, "__dict__", None)


def contents(env: Env, is_made: Callable[[Any], bool]) -> tuple[dict[int, tuple[Any, Any]], dict[int, Any]]:
    """The containers that variables reach, with copies of their contents; and whose attributes they are."""
    held: dict[int, tuple[Any, Any]] = {}
    owners: dict[int, Any] = {}
    seen: set[int] = set()  # joins
    stack = [value for around in env.outwards() for value in around.vars.values()]
    while stack:
        item = stack.pop()
        if isinstance(item, Joined):
            if item.merged:
                stack.append(item.merged[0])
            elif id(item) not in seen:
                seen.add(id(item))
                stack.extend((item.then, item.other))
        elif isinstance(item, _CONTAINERS):
            if id(item) not in held:
                held[id(item)] = (item, item.copy())
                stack.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, tuple):
            stack.extend(item)
        elif is_option(item):
            stack.append(item.value)
        elif is_made(item) and (attributes := held_by(item)) is not None:
            owners[id(attributes)] = item
            stack.append(attributes)
    return held, owners


def reached(value: Any, state: State) -> set[int]:
    """The containers that a value holds in a state, by identity."""
    found: set[int] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(item)
            continue
        if is_option(item):
            stack.append(item.value)
            continue
        held = state.contents.get(id(held_by(item)))
        if held is not None and id(held[0]) not in found:
            found.add(id(held[0]))
            stack.extend(held[1].values() if isinstance(held[1], dict) else held[1])
    return found


def differing(one: State, other: State) -> set[int]:
    """The containers that do not hold the same in two states, by identity."""
    both = one.contents.keys() & other.contents.keys()
    return {key for key in both if not _is_same(one.contents[key][1], other.contents[key][1])}


def refill(state: State) -> None:
    """Let all containers hold what they hold in a state."""
    for container, held in state.contents.values():
        refilled(container, held)


def refilled(container: Any, contents: Any) -> None:
    """Let a container hold this."""
    if not _is_same(container, contents):
        container.clear()
        if isinstance(container, dict):
            dict.update(container, contents)  # `update` of a Counter adds
        else:
            (container.update if isinstance(container, set) else container.extend)(contents)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A container that a loop changes, and how the user wrote it where it does."""

    value: Any
    called: str
    replaced: frozenset[int] = frozenset()  # the leaves that are arrays, and become other arrays in the loop

    def items(self) -> tuple[list[Any], tuple[Any, ...]]:
        """Its keys and what it holds now."""
        held = held_by(self.value)
        if isinstance(held, dict):
            return list(dict.keys(held)), tuple(dict.values(held))
        return list(range(len(held))), tuple(held)

    def hold(self, keys: Sequence[Any], items: Sequence[Any]) -> None:
        """Let it hold these."""
        held = held_by(self.value)
        refilled(held, dict(zip(keys, items, strict=True)) if isinstance(held, dict) else items)


def _is_same(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, _SEQUENCES):
        return all(x is y for x, y in zip(a, b, strict=True))
    if isinstance(a, set):
        return set(map(exact, a)) == set(map(exact, b))
    return keys_of(a) == keys_of(b) and all(v is b[k] for k, v in a.items())


def join_states(
    before: State,
    then: State | None,
    other: State | None,
    regions: tuple[int, int],
    env: Env,
    ctx: Context,
    ended: Sequence[State | None] = (None, None),
    lasting: frozenset[int] = frozenset(),
) -> None:
    """Continue after a join: from both sides, or, if one never reaches it, from the other alone.

    A side that has returned is None, and its state is in `ended`: of that, only the containers in `lasting`
    count, which outlast the function.
    """
    names = dict.fromkeys([*(then.vars if then else ()), *(other.vars if other else ())])
    if then or other:
        env.vars = {}
    for name in names:
        a = then.vars.get(name, Undefined("")) if then else ABSENT
        b = other.vars.get(name, Undefined("")) if other else ABSENT
        was = before.vars.get(name)
        # A value that the only side to reach the join has not changed is still there, outside the branch.
        is_kept = (a is ABSENT and b is was) or (b is ABSENT and a is was)
        env.vars[name] = was if is_kept else join_values(name, a, b, regions, ctx)
    for key in _innermost_first([state for state in (before, then, other, *ended) if state is not None]):
        if key not in before.contents:
            continue
        container, held = before.contents[key]
        states = [s or (end if key in lasting else None) for s, end in zip((then, other), ended, strict=True)]
        sides = [None if s is None else s.contents[key][1] if key in s.contents else held for s in states]
        ends = [side for side in sides if side is not None]
        if not ends:
            continue
        if all(_is_same(end, ends[0]) for end in ends) and (isinstance(held, set) or _is_same(held, ends[0])):
            refilled(container, ends[0])
            continue
        if len(ends[0]) != len(ends[-1]) or (
            not isinstance(held, _SEQUENCES) and keys_of(ends[0]) != keys_of(ends[-1])
        ):
            a, b = (_contained(end) for end in ends)
            ctx.session.interpreter.owned.let_grow(container, [item for end in ends for item in end])
            raise CaptureError(
                f"{name_of(container, before)} has {a} where the condition is true, but {b} where it is false",
                ctx.span,
                hint="change it in the same way in both branches, or let an array grow: items = np.append(items, x)",
            )
        called = f"an item of {name_of(container, before)}"
        items: dict[Any, Any] = {}
        for item in range(len(ends[0])) if isinstance(held, _SEQUENCES) else ends[0]:
            a, b = (ABSENT if side is None else side[item] for side in sides)
            items[item] = join_values("", a, b, regions, ctx, called)
        refilled(container, list(items.values()) if isinstance(held, _SEQUENCES) else items)


def join_where_it_falls(
    views: list[dict[str, Any] | None], regions: tuple[int, int], env: Env, ctx: Context
) -> dict[str, Any]:
    """Variables without a value after a join that have one where control falls through (a None view: it does not)."""
    values: dict[str, Any] = {}
    for name in dict.fromkeys(name for view in views for name in view or ()):
        if isinstance(env.vars.get(name, _UNDEFINED), Undefined):
            a, b = (ABSENT if view is None else view.get(name, _UNDEFINED) for view in views)
            joined = join_values(name, a, b, regions, ctx)
            if not isinstance(joined, Undefined):
                values[name] = joined
    return values


_UNDEFINED = Undefined("")


def _innermost_first(states: list[State]) -> list[int]:
    """The containers of these states, each after the containers that it held in any of them."""
    inside: dict[int, list[int]] = {}
    for state in states:
        for key, (_, held) in state.contents.items():
            stack = list(held.values() if isinstance(held, dict) else held)
            while stack:
                item = stack.pop()
                if isinstance(item, tuple):
                    stack.extend(item)
                elif isinstance(item, _CONTAINERS):
                    inside.setdefault(key, []).append(id(item))
    order: dict[int, None] = {}
    opened: set[int] = set()
    todo = [key for state in states for key in state.contents]
    while todo:
        key = todo[-1]
        if key in order or key in opened:
            todo.pop()
            order[key] = None
        else:
            opened.add(key)
            todo.extend(k for k in inside.get(key, ()) if k not in opened)
    return list(order)


def name_of(container: Any, state: State) -> str:
    """The variable that holds a list or dict, for messages."""
    for name, value in state.vars.items():
        if value is container:
            return f"`{name}`"
    return kind_of(container)


def _contained(contents: Any) -> str:
    if isinstance(contents, dict):
        return f"the keys {', '.join(map(repr, contents))}" if contents else "no keys"
    if isinstance(contents, set):
        return f"the items {', '.join(sorted(map(repr, contents)))}" if contents else "no items"
    return f"{len(contents)} item{'' if len(contents) == 1 else 's'}"


def join_effects(before: State, ends: list[Port | None], regions: tuple[int, int], builder: Builder) -> None:
    """Order what follows after the effects of both sides."""
    builder.effect = before.effect
    if any(end != before.effect for end in ends):
        first = builder.entry_effect or START
        ports = [builder.use(end or first, region) for end, region in zip(ends, regions, strict=True)]
        builder.effect = Port(builder.add("merge", ports, (CTL,), name="done"))
