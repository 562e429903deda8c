"""`sum`, `max`, `any` and their like over as many items as the run has: loops, written as the user would write them.

`sum(f(k) for k in range(n) if k % 2)` is `total = 0`, then a `for` with an `if` and `total = total + f(k)` inside. So
order, faults and what stops early are Python's.
"""

from __future__ import annotations

import ast
import builtins
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, kind_of
from undertow.frontend.control.merge import force
from undertow.frontend.control.restart import Halted, StartOver, until_fixpoint
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret import handles
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.generators import CapturedGenerator, spend
from undertow.frontend.interpret.outcomes import Return, cells
from undertow.frontend.interpret.standins import TracedGenerator, TracedItems, TracedRange, is_run_time, needs_loop
from undertow.frontend.interpret.written import Computed, when
from undertow.frontend.objects.handle import Handle
from undertow.frontend.syntax.source import Env
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import leaf_type, zero
from undertow.frontend.values.operands import as_weak
from undertow.frontend.values.traced import Traced, effect, is_traced
from undertow.frontend.values.tree import flatten, unflatten
from undertow.types import i64, said

Handler = Callable[[Any, Sequence[Any], dict[str, Any], Env | None], Any]


# -- items at run time -------------------------------------------------------------------------------------


def items_of(value: Any) -> TracedItems | None:
    """What to loop over, if the number of items is known only at run time, and each has an index."""
    if isinstance(value, TracedItems):
        return value.take()
    if isinstance(value, Handle) and value.is_list:
        return handles.items_of(value)
    if isinstance(value, TracedRange):
        return _items_of_range(value)
    if isinstance(value, Traced) and value.type.rank and value.type.shape[0] is None:
        return TracedItems("array", value.shape[0], lambda index: value[index])
    return None


def _items_of_range(over: TracedRange) -> TracedItems:
    # Whatever the bounds are, Python's ranges give Python's integers.
    start, stop, step = (
        functions.astype(bound, i64) if isinstance(bound, Traced) else int(bound)
        for bound in (over.start, over.stop, over.step)
    )
    if isinstance(step, Traced):
        holds = functions.not_equal(step, 0)
        effect("raise", [holds], template="the step of a range must not be zero", error="ValueError")
    elif step == 0:
        raise CaptureError("the step of a range must not be zero", hint="the default step is 1", kind=ValueError)
    # Rounded up: as many steps as start before the end.
    steps = functions.negative(functions.floor_divide(functions.subtract(start, stop), step))
    length = functions.maximum(steps, 0)
    return TracedItems("range", length, lambda index: as_weak(functions.add(start, functions.multiply(index, step))))


def _any_items(interp: Any, value: Any) -> TracedItems:
    """Items beside others that are known only at run time."""
    items = items_of(value)
    if items is not None:
        return items
    if isinstance(value, GrowingList):
        return TracedItems("list", value.length, value.get)
    if isinstance(value, Traced) and value.type.rank:
        return TracedItems("array", value.type.shape[0], lambda index: value[index])
    if isinstance(value, (list, tuple, range, np.ndarray)):
        return TracedItems("list", len(value), lambda index: interp.item(value, index))
    raise CaptureError(
        f"{kind_of(value)} beside items whose number is known only at run time cannot be captured",
        hint="use a list or an array",
    )


def _over_items(python: Any, make: Callable[..., Any], otherwise: Handler | None = None) -> Handler:
    """`zip` and its like: of items whose number is known only at run time, such items."""

    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
        if any(isinstance(value, TracedGenerator) for value in args):
            raise CaptureError(
                f"{python.__name__}() of a generator whose length is known only at run time cannot be captured",
                hint="loop over what the generator runs over, and compute its items in the loop",
            )
        if not any(map(is_run_time, args)):
            return otherwise(interp, args, kwargs, env) if otherwise else interp.call_native(python, args, kwargs)
        return make(interp, env, *args, **kwargs)

    return work


def _zip(interp: Any, env: Env | None, *over: Any, strict: Any = False) -> TracedItems:
    each = [_any_items(interp, value) for value in over]
    length = longest = each[0].length
    for items in each[1:]:
        length = functions.minimum(length, items.length)
        longest = functions.maximum(longest, items.length)
    if strict:  # one step more if lengths differ: it raises
        length = functions.minimum(functions.add(length, 1), longest)
    return TracedItems("zip", length, partial(_together, each, bool(strict)))


def _together(each: Sequence[TracedItems], is_strict: bool, index: Any) -> Work:
    if is_strict:
        _raise_at_end(each, index)
    values = []
    for items in each:
        values.append((yield items.item(index)))
    return tuple(values)


def _raise_at_end(each: Sequence[TracedItems], index: Any) -> None:
    """Where some have an item of this index and others have none, raise what `zip(strict=True)` raises."""
    first = functions.less(index, each[0].length)
    for number, items in enumerate(each[1:], 2):
        has = functions.less(index, items.length)
        before = "argument 1" if number == 2 else f"arguments 1-{number - 1}"
        for holds, how in (
            (functions.logical_or(has, functions.logical_not(first)), "shorter"),
            (
                functions.logical_or(first, functions.logical_not(has)),
                "longer",
            ),
        ):
            effect("raise", [holds], template=f"zip() argument {number} is {how} than {before}", error="ValueError")


def _enumerate(interp: Any, env: Env | None, iterable: Any, start: Any = 0) -> TracedItems:
    items = _any_items(interp, iterable)

    def item(index: Any) -> Work:
        number = functions.add(index, start)
        return (as_weak(number) if isinstance(start, int) else number), (yield items.item(index))

    return TracedItems("enumerate", items.length, item)


def _reversed(interp: Any, env: Env | None, sequence: Any) -> TracedItems:
    if isinstance(sequence, TracedItems):
        raise TypeError(f"'{sequence.name}' object is not reversible")
    items = _any_items(interp, sequence)
    last = functions.subtract(items.length, 1)
    return TracedItems("reversed", items.length, lambda index: items.item(functions.subtract(last, index)))


def _map(interp: Any, env: Env | None, function: Any, *over: Any) -> TracedItems:
    items = _zip(interp, env, *over)

    def item(index: Any) -> Work:
        values = yield items.item(index)
        return (yield interp.call(function, list(values), {}, env))

    return TracedItems("map", items.length, item)


# -- reductions --------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Best:
    """The best item so far, and its key: placeholders of their types, known when the loop has been written."""

    first: Any = None


def _generator_of(interp: Any, value: Any, env: Env | None) -> TracedGenerator | None:
    """What to reduce, as a generator expression; None if Python can reduce it now."""
    if isinstance(value, TracedGenerator):
        return value.take()
    if isinstance(value, Handle) and value.is_list and env is not None:
        return generator_over(interp, handles.items_of(value), env)
    if not isinstance(value, (TracedItems, TracedRange, GrowingList)) or env is None:
        return None
    return generator_over(interp, value, env)


def _is_open(value: Any) -> bool:
    """Is it an array whose length is known only at run time?"""
    return isinstance(value, Traced) and bool(value.type.shape) and value.type.shape[0] is None


def generator_over(
    interp: Any,
    over: Any,
    env: Env,
    keeps: Callable[[Any], Any] | None = None,
    of: Callable[[Any], Any] | None = None,
) -> TracedGenerator:
    """The items themselves, those of them that a function keeps, or what one gives for each: a generator expression."""
    name = ast.Name("item", ast.Load())
    clause = ast.comprehension(ast.Name("item", ast.Store()), name, [], 0)
    elt: Any = name if of is None else Computed(lambda: of(force(made.env.vars["item"], interp.ctx)), name)
    node = ast.GeneratorExp(elt, [clause])
    inner = Env(env.closure, frozenset(["item"]), env, {}, True, called_at=env.called_at)
    made = TracedGenerator(node, inner, items_of(over) or over)
    if keeps is not None:
        clause.ifs.append(Computed(lambda: keeps(force(made.env.vars["item"], interp.ctx)), name))
    span = interp.ctx.span
    for part in ast.walk(node):
        part.lineno, part.col_offset = (1, 0) if span is None else (span.line, span.column - 1)  # type: ignore[attr-defined]
    return made


def _filter_known(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    """`filter` of as many items as are known: which of them stay may be known only at run time."""
    if env is None or len(args) != 2 or kwargs:
        return interp.call_native(builtins.filter, args, kwargs)
    return interp.generator(_filter(interp, env, *args))


def _filter(interp: Any, env: Env | None, function: Any, over: Any) -> TracedGenerator:
    assert env is not None
    if function is None:
        return generator_over(interp, over, env, lambda item: item)
    return generator_over(interp, over, env, lambda item: interp.call(function, [item], {}, env))


def nest(generator: TracedGenerator, body: list[ast.stmt]) -> list[ast.stmt]:
    """The loops of a generator expression, around statements."""
    for clause in reversed(generator.node.generators):
        for test in reversed(clause.ifs):
            body = [ast.copy_location(ast.If(test, body, []), test)]
        is_first = clause is generator.node.generators[0]
        over = Computed(lambda: generator.over, clause.iter) if is_first else clause.iter
        body = [ast.copy_location(ast.For(clause.target, over, body, []), clause.iter)]
    return body


def loop_over(generator: TracedGenerator, node: ast.For, env: Env) -> ast.stmt:
    """`for x in (f(k) for k in range(n)):`, without the generator."""
    raise CaptureError(
        "a `for` over a generator whose length is known only at run time cannot be captured",
        hint="loop over what the generator runs over, and compute its items in the loop",
    )


def run_loops(interp: Any, generator: TracedGenerator, start: dict[str, Any], body: list[ast.stmt], last: Any) -> Work:
    """Run the loops with variables of ours beside the generator's own; the outcome, and what the variables hold."""
    env = generator.env
    leaking = {n.target.id for n in ast.walk(generator.node) if isinstance(n, ast.NamedExpr)}
    outside = env
    while outside.is_comprehension and outside.parent is not None:
        outside = outside.parent
    inner = Env(
        env.closure,
        env.local | start.keys() | leaking | {ITEM},
        env.parent,
        {**env.vars, **start},
        True,
        called_at=env.called_at,
    )
    inner.vars.update({name: outside.vars[name] for name in leaking if name in outside.vars})
    generator.env = inner
    try:
        outcome = yield interp.run(cells([*nest(generator, body), *last]), None, inner)
    finally:
        generator.env = env
    outside.vars.update({name: inner.vars[name] for name in leaking if name in inner.vars})
    return outcome, {name: force(inner.vars[name], interp.ctx) for name in start}


# Variables that no program has: what stands in the generator sees its own.
ITEM = "the item"
_ANY, _BEST = "any.so_far", "best.so_far"


def take_item(elt: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(ITEM, ast.Store())], elt), elt)


def set_name(name: str, compute: Callable[[], Any], at: ast.AST) -> ast.stmt:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], Computed(compute, at)), at)


def _total(op: ast.operator, name: str, start: Any, interp: Any, generator: TracedGenerator) -> Work:
    """`sum` and `math.prod`."""
    elt = generator.node.elt
    so_far = f"{name}.so_far"

    def add() -> Work:
        item, total = (force(generator.env.vars[n], interp.ctx) for n in (ITEM, so_far))
        interp.at(elt, generator.env)
        after = yield interp.operate(op, total, item)
        before, now = (leaf_type(x).rank if is_number(x) else None for x in (total, after))
        if before != now:
            hint = f"give it an array to start with, as in {name}(..., start=np.zeros(3))"
            raise TypeMismatch(f"{name}() of no items is {start!r}, but of some {said(leaf_type(after))}", hint=hint)
        return after

    _, held = yield run_loops(interp, generator, {so_far: start}, [take_item(elt), set_name(so_far, add, elt)], [])
    return held[so_far]


def is_number(value: Any) -> bool:
    return isinstance(value, (Traced, np.ndarray, np.generic, bool, int, float))


def _decide(empty: bool, interp: Any, generator: TracedGenerator) -> Work:
    """`any` and `all`: they stop at the first item that decides."""
    elt = generator.node.elt
    test = ast.copy_location(ast.UnaryOp(ast.Not(), elt), elt) if empty else elt

    def leave(value: bool) -> ast.stmt:
        return ast.copy_location(ast.Return(ast.copy_location(ast.Constant(value), elt)), elt)

    stop = ast.copy_location(ast.If(test, [leave(not empty)], []), elt)
    outcome, _ = yield run_loops(interp, generator, {}, [stop], [leave(empty)])
    assert isinstance(outcome, Return)
    return outcome.value


def _first(interp: Any, generator: TracedGenerator, rest: Sequence[Any], kwargs: dict[str, Any]) -> Work:
    """`next(x for x in items if x > 0)`, with what it gives if there is none."""
    elt, site = generator.node.elt, interp.call_site
    if site is None or not site.args or not isinstance(site.args[0], ast.GeneratorExp):
        raise CaptureError(
            "next() of a generator that a variable holds cannot be captured where its length is known only at run time",
            hint="write the generator inside: next((x for x in items if x > 0), None); or a `for` with a `break`",
        )
    if not rest:
        raise CaptureError(
            "next() without a default cannot be captured where it is known only at run time whether there is an item",
            hint="pass a default: next((x for x in items if x > 0), None)",
        )
    found, none = ast.Return(elt), ast.Return(Computed(lambda: rest[0], elt))
    leave, last = (ast.copy_location(statement, elt) for statement in (found, none))
    outcome, _ = yield run_loops(interp, generator, {}, [leave], [last])
    assert isinstance(outcome, Return)
    return outcome.value


def _best(python: Any, key: Any, kwargs: dict[str, Any], interp: Any, generator: TracedGenerator) -> Work:
    """`max` and `min`: the first item that no other is better than; of none, the default, or a fault."""
    elt, name = generator.node.elt, python.__name__
    op = ast.Gt() if python is max else ast.Lt()
    state = _Best()
    new: list[Any] = []

    def wins() -> Work:
        env = generator.env
        item = force(env.vars[ITEM], interp.ctx)
        its_key = item if key is None else (yield interp.call(key, [item], {}, env))
        interp.at(elt, env)
        new[:] = [item, its_key]
        if state.first is None:
            leaves, structure = flatten((item, its_key), is_traced)
            raise StartOver(state, first=unflatten(structure, [zero(leaf_type(leaf)) for leaf in leaves]))
        any_yet, best = (force(env.vars[n], interp.ctx) for n in (_ANY, _BEST))
        better = interp.truth((yield interp.operate(op, its_key, best[1])))
        return functions.logical_or(functions.logical_not(any_yet), better)

    keep = [set_name(_BEST, lambda: (new[0], new[1]), elt), set_name(_ANY, lambda: True, elt)]
    checkpoint, before = interp.ctx.open_builder.checkpoint(), interp.save(generator.env)

    def attempt() -> Work:
        interp.go_back(checkpoint, before, generator.env)
        start = {_ANY: False, _BEST: state.first}
        return (yield run_loops(interp, generator, start, [take_item(elt), when(wins, keep, elt)], []))

    _, held = yield until_fixpoint(state, attempt)
    if state.first is None and "default" in kwargs:  # each item raises an exception
        return kwargs["default"]
    if state.first is None:
        effect("raise", [np.False_], template=f"{name}() arg is an empty sequence", error="ValueError")
        raise Halted
    if not isinstance(held[_ANY], Traced):
        return held[_BEST][0] if held[_ANY] else interp.call_native(python, [[]], kwargs)
    if "default" in kwargs:
        return (yield interp.choose(held[_ANY], lambda: held[_BEST][0], lambda: kwargs["default"], generator.env))
    effect("raise", [held[_ANY]], template=f"{name}() arg is an empty sequence", error="ValueError")
    return held[_BEST][0]


def _reducing(python: Any, reduce: Callable[..., Any], otherwise: Handler) -> Handler:
    """A function that reduces: with a loop where the number of items, or which count, is known only at run time."""

    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
        first = args[0] if args else None
        generator = _generator_of(interp, first, env)
        if generator is None and env is not None and _is_open(first) and (kwargs or python in (list, sorted)):
            generator = generator_over(interp, first, env)
        again = first.again if isinstance(first, CapturedGenerator) and first.is_fresh else None
        if generator is None and again is not None:
            checkpoint = interp.ctx.open_builder.checkpoint()
            before = interp.owned.before(first, interp.save(again.env))
            try:
                return (yield otherwise(interp, args, kwargs, env))
            except CaptureError as fault:
                if not needs_loop(fault):
                    raise
                interp.go_back(checkpoint, before, again.env)
                spend(first)
                generator = again
        if generator is None:
            return (yield otherwise(interp, args, kwargs, env))
        interp.ctx.span = interp.span(generator.node, generator.env)
        return (yield reduce(interp, generator, args[1:], kwargs))

    return work


def _sum(interp: Any, generator: TracedGenerator, rest: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    start = _start(lambda start=0: start, rest, kwargs)
    return _total(ast.Add(), "sum", start, interp, generator)


def _prod(interp: Any, generator: TracedGenerator, rest: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    start = _start(lambda *, start=1: start, rest, kwargs)
    return _total(ast.Mult(), "prod", start, interp, generator)


def _listed(interp: Any, generator: TracedGenerator, rest: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if rest or kwargs:
        raise TypeError("list() takes one argument")
    return interp.collected(generator)


def _in_order(interp: Any, generator: TracedGenerator, rest: Sequence[Any], kwargs: dict[str, Any]) -> Work:
    items = yield interp.collected(generator)
    return (yield interp.call(sorted, [items, *rest], kwargs))


def _start(take: Any, rest: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return take(*rest, **kwargs)


def _extreme(python: Any) -> Callable[..., Any]:
    def reduce(interp: Any, generator: TracedGenerator, rest: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return _best(python, kwargs.get("key"), kwargs, interp, generator)

    return reduce


def _fold(empty: bool) -> Callable[..., Any]:
    return lambda interp, generator, rest, kwargs: _decide(empty, interp, generator)


def _native(python: Any) -> Handler:
    return lambda interp, args, kwargs, env: interp.call_native(python, args, kwargs)


def with_loops(table: dict[Any, Handler]) -> dict[Any, Handler]:
    """The handlers of Python's functions, with those that may be loops of the graph."""
    reductions: dict[Any, Callable[..., Any]] = {
        builtins.sum: _sum, math.prod: _prod, builtins.max: _extreme(max), builtins.min: _extreme(min),
        builtins.any: _fold(False), builtins.all: _fold(True), builtins.list: _listed, builtins.sorted: _in_order,
        builtins.next: _first,
    }  # fmt: skip
    items: dict[Any, Callable[..., Any]] = {
        builtins.zip: _zip,
        builtins.enumerate: _enumerate,
        builtins.reversed: _reversed,
        builtins.map: _map,
    }
    return {
        **table,
        **{f: _reducing(f, reduce, table.get(f) or _native(f)) for f, reduce in reductions.items()},
        **{f: _over_items(f, make, table.get(f)) for f, make in items.items()},
        builtins.filter: _over_items(filter, _filter, _filter_known),
    }
