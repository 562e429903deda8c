"""Merging at control-flow joins: a variable with two possible values gets a Merge node for each leaf.

A join is lazy: the Merge is written when the variable is read, not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from undertow.errors import InternalError, Span, TypeMismatch
from undertow.frontend.objects.handle import Handle, as_number, is_number
from undertow.frontend.syntax.source import Undefined, Unsure
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.by_class import DATACLASS, is_users_object
from undertow.frontend.values.leaves import ABSENT, Absent, describe, is_static_equal, leaf_type, port_in, zero
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.option import agree
from undertow.frontend.values.traced import Context, Traced, is_traced, roots_of, stays_weak
from undertow.frontend.values.tree import flatten, unflatten
from undertow.ir.graph import Port
from undertow.types import DType, Type, bool_, join, promote, weak_dtype, weak_kind


@dataclass(slots=True, eq=False)
class Joined:
    """A variable after a join, not yet merged: its value on each side, and the two regions."""

    name: str
    then: Any
    other: Any
    regions: tuple[int, int]
    builder: Builder
    span: Span | None
    called: str = ""  # its name in messages, if not `name`
    merged: list[Any] = field(default_factory=list)  # the merged value, once read


def join_values(name: str, a: Any, b: Any, regions: tuple[int, int], ctx: Context, called: str = "") -> Any:
    """The value of a variable, or (without a name) of an item of a container, after a join."""
    if a is b:
        return a
    for side in (a, b):
        if isinstance(side, Undefined):
            if isinstance(side, Unsure):
                return Undefined(side.why, side.hint)
            if side.why:
                return side
            return Undefined(
                f"`{name}` is assigned in only one branch of {_the_if(ctx.span)}",
                "assign it before the `if`, or in both branches",
            )
    if is_static_equal(a, b):
        return a
    for side, missing in ((a, b), (b, a)):
        if missing is ABSENT and not isinstance(side, Joined) and not any(map(is_traced, flatten(side, is_traced)[0])):
            return side
    joined = Joined(name, a, b, regions, ctx.open_builder, ctx.span, called or f"`{name}`")
    # Containers hold plain values, so their items are merged at once.
    return joined if name else force(joined, ctx)


def _the_if(span: Span | None) -> str:
    return "an `if`" if span is None else f"the `if` on line {span.line}"


def force(value: Any, ctx: Context) -> Any:
    """The value of a variable; a pending join is merged now, in the region where it happened."""
    if not isinstance(value, Joined):
        return value
    # Nested joins are forced innermost first, with an explicit stack: depth is user data.
    stack = [value]
    while stack:
        top = stack[-1]
        if not isinstance(top, Joined) or top.merged:
            stack.pop()
            continue
        pending = [v for v in (top.then, top.other) if isinstance(v, Joined) and not v.merged]
        if pending:
            stack.extend(pending)
            continue
        sides = [v.merged[0] if isinstance(v, Joined) else v for v in (top.then, top.other)]
        top.builder.forced.append((len(top.builder.nodes), top.merged))
        top.merged.append(_merge_now(top, sides, ctx))
        stack.pop()
    return value.merged[0]


def _merge_now(joined: Joined, sides: list[Any], ctx: Context) -> Any:
    if sides[0] is sides[1]:
        return sides[0]
    for side in sides:
        if isinstance(side, Undefined):
            return side
    for number, raw in enumerate((joined.then, joined.other)):
        beside = sides[1 - number]
        is_strong = isinstance(beside, Traced) and not beside.is_weak and beside.type.rank == 0
        if isinstance(raw, Joined) and is_strong:
            sides[number] = _with_dtype(raw, sides[number], beside.dtype, ctx)
    builder = ctx.builder
    ctx.builder = joined.builder
    try:
        differ = by_condition(joined.called, joined.span)
        return merge(sides[0], sides[1], joined.regions, ctx, joined.name, joined.span, differ)
    except TypeMismatch as fault:
        if not joined.name:
            raise  # an item of a container, where an Undefined would go unnoticed
        return Undefined(fault.what, fault.hint, fault.span, TypeMismatch)
    finally:
        ctx.builder = builder


def _with_dtype(joined: Joined, value: Any, dtype: DType, ctx: Context) -> Any:
    """The value of a join; if it chooses among Python numbers alone, they take the dtype of what they meet."""
    if not isinstance(value, Traced) or value.dtype == dtype:
        return value
    done: dict[int, Any] = {}  # id of a nested join -> the same with numbers of that dtype
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
            if is_weak(side):
                if weak_dtype(side, dtype) != dtype:
                    return value
                sides.append(dtype.numpy.type(side))
            elif isinstance(side, Joined) or side is ABSENT:
                sides.append(done.get(id(side), side))
            else:
                return value
        done[id(top)] = replace(top, then=sides[0], other=sides[1], merged=[])
        stack.pop()
    return force(done[id(joined)], ctx)


def merge(a: Any, b: Any, regions: tuple[int, int], ctx: Context, name: str, span: Span | None, differ: Differ) -> Any:
    """The value that is `a` where the first region ran and `b` where the second did: a Merge for each leaf.

    If their types do not agree, `differ` makes the message.
    """
    if a is b or is_static_equal(a, b):
        return a
    is_leaf = lambda v: isinstance(v, (Traced, Absent))  # noqa: E731
    a, b = _number_beside(a, b, regions[0], ctx), _number_beside(b, a, regions[1], ctx)
    leaves_a, structure_a = flatten(a, is_leaf)
    leaves_b, structure_b = flatten(b, is_leaf)
    if isinstance(a, Absent):
        leaves_a, structure_a = [ABSENT] * len(leaves_b), structure_b
    elif isinstance(b, Absent):
        leaves_b, structure_b = [ABSENT] * len(leaves_a), structure_a
    if structure_a != structure_b and (agreed := agree((leaves_a, structure_a), (leaves_b, structure_b))) is not None:
        structure_a, leaves_a, leaves_b = agreed
        structure_b = structure_a
    pairs = list(zip(leaves_a, leaves_b, strict=True)) if structure_a == structure_b else []
    fits = [None if _is_settled(x, y) else _fit(x, y) for x, y in pairs]
    if structure_a != structure_b or MISFIT in fits:
        ctx.session.interpreter.owned.let_fit(a, b)
        message, where = differ(describe(a), describe(b))
        raise TypeMismatch(message, where, hint=_how_to_agree(a, b, pairs, fits))
    merged = [
        (y if isinstance(x, Absent) else x) if fit is None else _merge_leaf(x, y, fit, regions, ctx, name, span)
        for (x, y), fit in zip(pairs, fits, strict=True)
    ]
    value = unflatten(structure_a, merged)
    ctx.session.interpreter.owned.own_merged(value, (a, b), regions)
    return value


def _number_beside(value: Any, other: Any, region: int, ctx: Context) -> Any:
    """A value of one side: the number that it is, if it is an object and the other side is a number."""
    if not isinstance(value, Handle) or not is_number(other):
        return value
    builder, before = ctx.open_builder, ctx.open_builder.region
    builder.region = region  # where it is another object, reading the number would be a fault
    try:
        return as_number(value)
    finally:
        builder.region = before


def _is_settled(x: Any, y: Any) -> bool:
    """Is no Merge needed? Both are the same value, or it is a constant of the only side that reaches the join."""
    if isinstance(x, Absent) or isinstance(y, Absent):
        return not isinstance(x, Traced) and not isinstance(y, Traced)
    return x is y or is_static_equal(x, y)


# From descriptions of two sides that do not agree to the message and its span.
Differ = Callable[[str, str], tuple[str, Span | None]]


def by_condition(called: str, span: Span | None) -> Differ:
    """The message for a variable or expression whose type depends on a condition."""
    return lambda a, b: (f"{called} is {a} where the condition is true, but {b} where it is false", span)


def by_return(first: Span | None, second: Span | None) -> Differ:
    """The message for two `return`s that differ, at the later one."""

    def differ(a: str, b: str) -> tuple[str, Span | None]:
        if first is None or second is None or first.line == second.line:
            return f"one path returns {a}, another returns {b}", second or first
        if first.line < second.line:
            return f"this `return` gives {b}, but the one on line {first.line} gives {a}", second
        return f"this `return` gives {a}, but the one on line {second.line} gives {b}", first

    return differ


def _how_to_agree(a: Any, b: Any, pairs: list[tuple[Any, Any]], fits: list[Any]) -> str:
    """The hint for sides that do not agree."""
    if not pairs:
        if a is None or b is None:
            return "use the same type in both branches"
        if isinstance(a, (str, bytes)) or isinstance(b, (str, bytes)):
            return "strings cannot be selected at run time: use a number, or print in each branch"
        kinds = {type(a), type(b)}
        if len(kinds) == 1 and is_users_object(a):
            return DATACLASS.format(type(a).__name__)
        return "both branches must give the same structure"
    x, y = next(pair for pair, fit in zip(pairs, fits, strict=True) if fit is MISFIT)
    types = leaf_type(x), leaf_type(y)
    if types[0].rank != types[1].rank:
        return "both branches must give the same number of dimensions: see ut.sum, ut.broadcast_to, x[None]"
    return f"convert one of them: ut.astype(x, ut.{promote(types[0].dtype, types[1].dtype)})"


MISFIT = "misfit"


def _fit(a: Any, b: Any) -> Type | str:
    """The type that holds both leaves, or MISFIT."""
    if isinstance(a, Absent) and isinstance(b, Absent):
        raise InternalError("a value that neither branch gives")
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
    ports = [
        port_in(zero(fits) if isinstance(v, Absent) else v, region, ctx, fits.dtype)
        for v, region in zip((a, b), regions, strict=True)
    ]
    number = builder.add(
        "merge", ports, (fits,), span=span or ctx.span, name=name or "merge", region=builder.regions[regions[0]].parent
    )
    is_weak = all(isinstance(v, Absent) or stays_weak(v) for v in (a, b)) and fits.dtype != bool_
    merged = Traced(builder, Port(number), is_weak)
    if fits.rank:  # it is one of them
        merged.base = tuple(root for v in (a, b) if not isinstance(v, Absent) for root in roots_of(v))
    return merged


def unify(a: Any, b: Any) -> DType | None:
    """The dtype that both leaves have, or can take if they are Python numbers; None if there is none."""
    types = leaf_type(a).dtype, leaf_type(b).dtype
    if types[0] == types[1]:
        return types[0]
    weak_a, weak_b = stays_weak(a), stays_weak(b)
    if weak_a and weak_b:
        return None if bool_ in types else promote(*types)
    if not weak_a and not weak_b:
        return None
    number, strong = types if weak_a else reversed(types)
    return strong if weak_kind(number.kind, strong) == strong else None
