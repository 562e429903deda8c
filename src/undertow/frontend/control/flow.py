"""What happens to variables where control splits and joins.

A branch on a traced value is captured by running both sides, each from the same state, and joining the two
states afterwards. A join is lazy: a Merge node is written when the variable is read, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from undertow.errors import CaptureError, InternalError, Span, TypeMismatch, brief
from undertow.frontend.syntax.source import Env, Undefined
from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.values.traced import Context, Traced, constant
from undertow.frontend.values.tree import flatten, show, unflatten
from undertow.ir.graph import Const, Port
from undertow.types import CTL, DType, Type, bool_, i32, join, promote, said, type_of, weak_dtype


class NeedWider(Exception):
    """A loop variable that began as a Python number meets a wider value: capture the loop again with that dtype."""

    def __init__(self, builder: Builder, port: Port, dtype: DType) -> None:
        self.builder = builder
        self.port = port
        self.dtype = dtype


def ask_wider(name: str, value: Any, dtype: DType) -> None:
    """Where the variable `name` holds such a loop variable, let its loop take `dtype`."""
    if not isinstance(value, Traced) or value.port not in value.builder.weak:
        return
    called, number = value.builder.weak[value.port]
    wider = promote(value.dtype, dtype)
    if called == name and wider != value.dtype and wider == weak_dtype(number, wider):
        raise NeedWider(value.builder, value.port, wider)


class Absent:
    """Stands for the value of a side that never comes to the join; a zero is merged in its place."""


ABSENT = Absent()


@dataclass(slots=True, eq=False)
class Joined:
    """A variable after a join, not yet merged: its value on each side, and the two regions."""

    name: str
    then: Any
    other: Any
    regions: tuple[int, int]
    builder: Builder
    span: Span | None
    called: str = ""  # how a message names it, if not by its name
    made: list[Any] = field(default_factory=list)  # the merged value, once read


@dataclass(slots=True, eq=False)
class State:
    """Everything that a branch may change: variables, the effect token, the contents of lists and dicts."""

    vars: dict[str, Any]
    effect: Port | None
    contents: dict[int, tuple[Any, Any]]  # id -> (container, shallow copy of what it holds)


def save(env: Env, builder: Builder) -> State:
    """The state now."""
    return State(dict(env.vars), builder.effect, contents(env))


def restore(state: State, env: Env, builder: Builder) -> None:
    """Go back to a state."""
    env.vars = dict(state.vars)
    builder.effect = state.effect
    for container, held in state.contents.values():
        _refill(container, held)


def contents(env: Env) -> dict[int, tuple[Any, Any]]:
    """The lists, dicts and sets that variables reach, with what they hold now."""
    found: dict[int, tuple[Any, Any]] = {}
    seen: set[int] = set()  # joins
    stack: list[Any] = []
    at: Env | None = env
    while at is not None:
        stack.extend(at.vars.values())
        at = at.parent
    while stack:
        item = stack.pop()
        if isinstance(item, Joined):
            if item.made:
                stack.append(item.made[0])
            elif id(item) not in seen:
                seen.add(id(item))
                stack.extend((item.then, item.other))
        elif isinstance(item, (list, dict, set)) and id(item) not in found:
            found[id(item)] = (item, item.copy())
            stack.extend(item.values() if isinstance(item, dict) else item)
        elif isinstance(item, tuple):
            stack.extend(item)
    return found


def _refill(container: Any, held: Any) -> None:
    if _is_same(container, held):
        return
    container.clear()
    if isinstance(container, list):
        container.extend(held)
    else:
        container.update(held)


def _is_same(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, list):
        return all(x is y for x, y in zip(a, b, strict=True))
    if isinstance(a, set):
        return bool(a == b)
    return all(k in b and v is b[k] for k, v in a.items())


def join_states(
    before: State, then: State | None, other: State | None, regions: tuple[int, int], env: Env, ctx: Context
) -> None:
    """Continue after a join: from both sides, or where one side never comes here, from the other alone."""
    names = dict.fromkeys([*(then.vars if then else ()), *(other.vars if other else ())])
    env.vars = {}
    for name in names:
        a = then.vars.get(name, Undefined("")) if then else ABSENT
        b = other.vars.get(name, Undefined("")) if other else ABSENT
        was = before.vars.get(name)
        # What the only side that comes here has not changed is still there, outside of the branch.
        is_kept = (a is ABSENT and b is was) or (b is ABSENT and a is was)
        env.vars[name] = was if is_kept else _join(name, a, b, regions, ctx)
    sides = [s for s in (then, other) if s is not None]
    for key in _innermost_first([before, *sides]):
        if key not in before.contents:
            continue
        container, held = before.contents[key]
        ends = [s.contents[key][1] if key in s.contents else held for s in sides]
        if all(_is_same(end, ends[0]) for end in ends) and (isinstance(held, set) or _is_same(held, ends[0])):
            _refill(container, ends[0])
        elif len(ends) == 1:
            _refill(container, _map(ends[0], lambda v: _join("", v, ABSENT, regions, ctx, flipped=then is None)))
        elif len(ends[0]) != len(ends[1]) or (not isinstance(held, list) and list(ends[0]) != list(ends[1])):
            a, b = (_contained(end) for end in ends)
            raise CaptureError(
                f"{name_of(container, before)} has {a} where the condition is true, but {b} where it is false",
                ctx.span,
                hint="change it in the same way in both branches, or use an array and ut.where",
            )
        else:
            called = f"an item of {name_of(container, before)}"
            if isinstance(held, list):
                _refill(container, [_join("", a, b, regions, ctx, called) for a, b in zip(*ends, strict=True)])
            else:
                _refill(container, {k: _join("", ends[0][k], ends[1][k], regions, ctx, called) for k in ends[0]})


def join_where_it_falls(
    views: list[dict[str, Any] | None], regions: tuple[int, int], env: Env, ctx: Context
) -> dict[str, Any]:
    """Variables without a value after a join that have one where control falls through; None: it does not, there."""
    found: dict[str, Any] = {}
    for name in dict.fromkeys(name for view in views for name in view or ()):
        if isinstance(env.vars.get(name, _UNDEFINED), Undefined):
            a, b = (ABSENT if view is None else view.get(name, _UNDEFINED) for view in views)
            joined = _join(name, a, b, regions, ctx)
            if not isinstance(joined, Undefined):
                found[name] = joined
    return found


_UNDEFINED = Undefined("")


def _innermost_first(states: list[State]) -> list[int]:
    """The containers of these states, each after all that it held in any of them: what is joined may hold others."""
    inside: dict[int, list[int]] = {}
    for state in states:
        for key, (_, held) in state.contents.items():
            stack = list(held.values() if isinstance(held, dict) else held)
            while stack:
                item = stack.pop()
                if isinstance(item, tuple):
                    stack.extend(item)
                elif isinstance(item, (list, dict, set)):
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
    return f"a {type(container).__name__}"


def _contained(held: Any) -> str:
    if isinstance(held, dict):
        return f"the keys {', '.join(map(repr, held))}" if held else "no keys"
    if isinstance(held, set):
        return f"the items {', '.join(sorted(map(repr, held)))}" if held else "no items"
    return f"{len(held)} item{'' if len(held) == 1 else 's'}"


def join_effects(before: State, ends: list[Port | None], regions: tuple[int, int], builder: Builder) -> None:
    """What either side did to the world comes before what follows."""
    builder.effect = before.effect
    if any(end != before.effect for end in ends):
        first = builder.entry_effect or START
        ports = [builder.use(end or first, region) for end, region in zip(ends, regions, strict=True)]
        builder.effect = Port(builder.add("merge", ports, (CTL,), name="done"))


def _map(held: Any, f: Any) -> Any:
    return [f(v) for v in held] if isinstance(held, list) else {k: f(v) for k, v in held.items()}


def _join(
    name: str, a: Any, b: Any, regions: tuple[int, int], ctx: Context, called: str = "", flipped: bool = False
) -> Any:
    if flipped:
        a, b = b, a
    if a is b:
        return a
    for side in (a, b):
        if isinstance(side, Undefined):
            if side.why:
                return side
            return Undefined(
                f"`{name}` is assigned in only one branch of {_the_if(ctx.span)}",
                "assign it before the `if`, or in both branches",
            )
    if is_static_equal(a, b):
        return a
    for side, missing in ((a, b), (b, a)):
        if missing is ABSENT and not isinstance(side, Joined) and not _has_traced(side):
            return side
    joined = Joined(name, a, b, regions, ctx.open_builder, ctx.span, called or f"`{name}`")
    # Containers hold plain values, so what is inside them is merged at once.
    return joined if name else force(joined, ctx)


def _the_if(span: Span | None) -> str:
    return "an `if`" if span is None else f"the `if` in line {span.line}"


def _has_traced(value: Any) -> bool:
    return any(isinstance(leaf, Traced) for leaf in flatten(value, lambda v: isinstance(v, Traced))[0])


def is_static_equal(a: Any, b: Any) -> bool:
    """Are both the same Python constant?"""
    plain = (bool, int, float, str, bytes, type(None))
    return type(a) is type(b) and isinstance(a, plain) and (a == b)


def force(value: Any, ctx: Context) -> Any:
    """The value of a variable; a pending join is merged now, in the region where it happened."""
    # A join of joins of joins ... is forced innermost first, by hand: depth is user data.
    stack = [value]
    while stack:
        top = stack[-1]
        if not isinstance(top, Joined) or top.made:
            stack.pop()
            continue
        pending = [v for v in (top.then, top.other) if isinstance(v, Joined) and not v.made]
        if pending:
            stack.extend(pending)
            continue
        sides = [v.made[0] if isinstance(v, Joined) else v for v in (top.then, top.other)]
        top.builder.forced.append((len(top.builder.nodes), top.made))
        top.made.append(_merge_now(top, sides, ctx))
        stack.pop()
    return value.made[0] if isinstance(value, Joined) else value


def _merge_now(joined: Joined, sides: list[Any], ctx: Context) -> Any:
    if sides[0] is sides[1]:
        return sides[0]
    for side in sides:
        if isinstance(side, Undefined):
            return side
    for number, raw in enumerate((joined.then, joined.other)):
        beside = sides[1 - number]
        if isinstance(raw, Joined) and isinstance(beside, Traced) and beside.type.rank == 0:
            sides[number] = _with_dtype(raw, sides[number], beside.dtype, ctx)
    builder = ctx.builder
    ctx.builder = joined.builder
    try:
        differ = by_condition(joined.called, joined.span)
        return merge(sides[0], sides[1], joined.regions, ctx, joined.name, joined.span, differ)
    except TypeMismatch as fault:
        if not joined.name:
            raise  # an item of a container: nobody would notice that it is undefined
        return Undefined(fault.what, fault.hint, fault.span, TypeMismatch)
    finally:
        ctx.builder = builder


def _with_dtype(joined: Joined, value: Any, dtype: DType, ctx: Context) -> Any:
    """The value of a join; where that chooses among Python numbers alone, they take the dtype of what they meet."""
    if not isinstance(value, Traced) or value.dtype == dtype:
        return value
    done: dict[int, Any] = {}  # the joins inside, with numbers of that dtype
    stack = [joined]
    while stack:
        top = stack[-1]
        inside = [side for side in (top.then, top.other) if isinstance(side, Joined)]
        missing = [side for side in inside if id(side) not in done]
        if missing:
            stack.extend(missing)
            continue
        sides: list[Any] = []
        for side in (top.then, top.other):
            if isinstance(side, (bool, int, float)) and not isinstance(side, np.generic):
                if weak_dtype(side, dtype) != dtype:
                    return value
                sides.append(dtype.numpy.type(side))
            elif isinstance(side, Joined) or side is ABSENT:
                sides.append(done.get(id(side), side))
            else:
                return value
        done[id(top)] = replace(top, then=sides[0], other=sides[1], made=[])
        stack.pop()
    return force(done[id(joined)], ctx)


def merge(
    a: Any,
    b: Any,
    regions: tuple[int, int],
    ctx: Context,
    name: str,
    span: Span | None,
    differ: Differ,
) -> Any:
    """The value that is `a` where the first region ran and `b` where the second did: Merge per leaf.

    Where they do not agree, `differ` says so.
    """
    if a is b or is_static_equal(a, b):
        return a
    is_leaf = lambda v: isinstance(v, (Traced, Absent))  # noqa: E731
    leaves_a, structure_a = flatten(a, is_leaf)
    leaves_b, structure_b = flatten(b, is_leaf)
    if isinstance(a, Absent):
        leaves_a, structure_a = [ABSENT] * len(leaves_b), structure_b
    elif isinstance(b, Absent):
        leaves_b, structure_b = [ABSENT] * len(leaves_a), structure_a
    pairs = list(zip(leaves_a, leaves_b, strict=True)) if structure_a == structure_b else []
    fits = [None if _is_settled(x, y) else _fit(x, y) for x, y in pairs]
    if len(pairs) == 1 and fits[0] is MISFIT:
        for value, other in (pairs[0], pairs[0][::-1]):
            if leaf_type(other).rank == 0:
                ask_wider(name, value, leaf_type(other).dtype)
    if structure_a != structure_b or MISFIT in fits:
        what, where = differ(describe(a), describe(b))
        raise TypeMismatch(what, where, hint=_how_to_agree(a, b, pairs, fits))
    merged = [
        (y if isinstance(x, Absent) else x) if fit is None else _merge_leaf(x, y, fit, regions, ctx, name, span)
        for (x, y), fit in zip(pairs, fits, strict=True)
    ]
    return unflatten(structure_a, merged)


def _is_settled(x: Any, y: Any) -> bool:
    """Is it one value, or a constant from the only side that comes to the join? Then there is nothing to merge."""
    if isinstance(x, Absent) or isinstance(y, Absent):
        return not isinstance(x, Traced) and not isinstance(y, Traced)
    return x is y or is_static_equal(x, y)


# What to say, and where, when the two sides of a join do not agree; gets descriptions of both.
Differ = Callable[[str, str], tuple[str, Span | None]]


def by_condition(called: str, span: Span | None) -> Differ:
    """A variable or an expression differs, depending on a condition."""
    return lambda a, b: (f"{called} is {a} where the condition is true, but {b} where it is false", span)


def by_return(first: Span | None, second: Span | None) -> Differ:
    """Two `return`s differ: the one that comes later in the source is shown."""

    def differ(a: str, b: str) -> tuple[str, Span | None]:
        if first is None or second is None or first.line == second.line:
            return f"one path returns {a}, another one {b}", second or first
        if first.line < second.line:
            return f"this `return` gives {b}, but the one in line {first.line} gives {a}", second
        return f"this `return` gives {a}, but the one in line {second.line} gives {b}", first

    return differ


def _how_to_agree(a: Any, b: Any, pairs: list[tuple[Any, Any]], fits: list[Any]) -> str:
    """What to do about sides that do not agree."""
    if not pairs:
        if a is None or b is None:
            return "give it a value of the same type on both sides"
        if isinstance(a, (str, bytes)) or isinstance(b, (str, bytes)):
            return "text cannot be chosen at run time: use a number, or print in each branch"
        return "both sides must have the same structure"
    x, y = next(pair for pair, fit in zip(pairs, fits, strict=True) if fit is MISFIT)
    types = leaf_type(x), leaf_type(y)
    if types[0].rank != types[1].rank:
        return "both sides must have the same number of dimensions: see ut.sum, ut.broadcast_to, x[None]"
    return f"convert one side: ut.astype(x, ut.{promote(types[0].dtype, types[1].dtype)})"


MISFIT = "misfit"


def _fit(a: Any, b: Any) -> Type | str:
    """The type that holds both leaves, or MISFIT."""
    if isinstance(a, Absent) and isinstance(b, Absent):
        raise InternalError("a value that neither side gives")
    sample = b if isinstance(a, Absent) else a
    dtype = unify(sample, sample if isinstance(b, Absent) else b)
    if dtype is None:
        return MISFIT
    types = [leaf_type(v, dtype) for v in (a, b) if not isinstance(v, Absent)]
    return (join(types[0], types[1]) or MISFIT) if len(types) == 2 else types[0]


def _merge_leaf(
    a: Any, b: Any, fits: Any, regions: tuple[int, int], ctx: Context, name: str, span: Span | None
) -> Traced:
    builder = ctx.open_builder
    zero = np.zeros([d if isinstance(d, int) else 0 for d in fits.shape], fits.dtype.numpy)
    ports = [
        port_in(zero if isinstance(v, Absent) else v, region, ctx, fits.dtype)
        for v, region in zip((a, b), regions, strict=True)
    ]
    number = builder.add(
        "merge", ports, (fits,), span=span or ctx.span, name=name or "merge", region=builder.regions[regions[0]].parent
    )
    return Traced(builder, Port(number))


def unify(a: Any, b: Any) -> DType | None:
    """The dtype that both leaves have or can take as Python numbers; None if there is none."""
    weak_a, weak_b = (isinstance(v, (bool, int, float)) and not isinstance(v, np.generic) for v in (a, b))
    if weak_a and weak_b:
        return a_kind if (a_kind := weak_dtype(a)) == weak_dtype(b) else _both_numbers(a, b)
    if weak_a or weak_b:
        number, strong = (a, b) if weak_a else (b, a)
        dtype = leaf_type(strong).dtype
        return dtype if weak_dtype(number, dtype) == dtype else None
    types = leaf_type(a).dtype, leaf_type(b).dtype
    return types[0] if types[0] == types[1] else None


def _both_numbers(a: Any, b: Any) -> DType | None:
    kinds = weak_dtype(a), weak_dtype(b)
    return None if bool_ in kinds else promote(*kinds)


def leaf_type(value: Any, dtype: DType | None = None) -> Type:
    """The type of a leaf; a Python number takes `dtype`."""
    if isinstance(value, Traced):
        return value.type
    if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        return Type(dtype or weak_dtype(value))
    return type_of(np.asarray(constant(value)))


def describe(value: Any) -> str:
    """What a value is, for messages: its type, the number itself where it is known, or its structure."""
    leaves, structure = flatten(value, lambda v: isinstance(v, (Traced, Absent)))
    shown = [_describe_leaf(leaf) for leaf in leaves]
    if value is None:
        return "nothing (None)"
    if len(structure) == 1 and leaves and not isinstance(leaves[0], (bool, int, float)):
        return said(leaf_type(value))
    return show(structure, shown)


def _describe_leaf(leaf: Any) -> str:
    if isinstance(leaf, (bool, int, float)) and not isinstance(leaf, np.generic):
        return brief(leaf)
    return "?" if isinstance(leaf, Absent) else str(leaf_type(leaf))


def port_in(value: Any, region: int, ctx: Context, dtype: DType | None = None, name: str = "") -> Port:
    """A leaf as a token of a region of the graph that is being written."""
    builder = ctx.open_builder
    before = builder.region
    builder.region = region
    try:
        if isinstance(value, Traced):
            found = ctx.session.resolve(value)
            assert isinstance(found, Port)
            return found
        if dtype is None and isinstance(value, (bool, int, float)):
            dtype = weak_dtype(value)
        if isinstance(value, int) and dtype is not None and dtype.kind == "int":
            check_range(value, dtype)
        return builder.gate(Const(np.asarray(constant(value, dtype))), ctx.span, name)
    finally:
        builder.region = before


def check_range(value: int, dtype: DType, what: str = "", span: Span | None = None) -> None:
    """Does a Python integer fit the dtype that it takes?"""
    bounds = np.iinfo(np.int32 if dtype == i32 else np.int64)
    if not bounds.min <= value <= bounds.max:
        raise TypeMismatch(
            f"{what or 'an integer'} is {brief(value)}, which does not fit in {dtype}",
            span,
            hint=f"{dtype} ends at {bounds.max}: use {'i64' if dtype == i32 else 'a float'}",
        )
