"""List comprehensions over as many items as the run has: `items = []`, then a loop that appends.

`[f(x) for x in items if x > 0]` is written as the user would write it with a loop. The list gets room for all items at
once where it is known how many there may be, so that nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.control.merge import force
from undertow.frontend.control.restart import Halted, StartOver, until_fixpoint
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.growing import append, as_growing, fill_next
from undertow.frontend.interpret.reducing import ITEM, generator_over, items_of, run_loops, set_name, take_item
from undertow.frontend.interpret.standins import TracedGenerator, TracedItems, TracedRange, is_run_time
from undertow.frontend.interpret.written import do
from undertow.frontend.values.growing import GrowingList, both, item_type
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.traced import Traced
from undertow.frontend.values.traced import length as extent


@dataclass(slots=True, eq=False)
class _Collected:
    """What is known of the items before they are computed."""

    item: Any = None


def collect(interp: Any, generator: TracedGenerator) -> Work:
    """The items of a generator as a list."""
    elt, env, session = generator.node.elt, generator.env, interp.ctx.session
    place = interp.span(generator.node, env).place
    state = _Collected(session.growing.get(place))
    checkpoint, before = interp.ctx.open_builder.checkpoint(), interp.save(env)
    is_simple = len(generator.node.generators) == 1

    def attempt() -> Work:
        interp.go_back(checkpoint, before, env)
        room = _most(generator.over) if is_simple else None
        items = None if state.item is None else GrowingList.of([], state.item, place, room=room)

        def add() -> Work:
            value = force(generator.env.vars[ITEM], interp.ctx)
            interp.at(elt, generator.env)
            found = item_type([value])
            if found is None:
                raise CaptureError(
                    f"a list whose length is known only at run time cannot hold {describe(value)}",
                    hint="its items are numbers, arrays of known shape, or tuples and lists of these",
                )
            wider = found if items is None else both(items.item, found)
            if items is None or wider not in (None, items.item):
                raise StartOver(state, item=wider)
            yield (fill_next if is_simple else append)(interp, items, value)

        yield run_loops(interp, generator, {}, [take_item(elt), do(add, elt)], [])
        if items is None and session.is_guessing and not session.takes_nothing:
            raise Halted
        return interp.owned.new_list([], place) if items is None else items  # each item raises an exception

    return (yield until_fixpoint(state, attempt))


def _most(over: Any) -> Any:
    """How many items there are to go over: as many as a list of them may get."""
    if isinstance(over, TracedRange):
        items = items_of(over)
        assert items is not None
        return items.length
    if isinstance(over, (TracedItems, GrowingList)):
        return over.length
    return extent(over, 0) if isinstance(over, Traced) and over.type.shape[0] is None else np.int64(len(over))


def collected(interp: Any, over: Any, function: Any = None) -> Work:
    """The items of something that can be looped over, or what a function gives for each, as a list."""
    if function is None:
        if isinstance(over, TracedGenerator):
            return (yield collect(interp, over.take()))
        if isinstance(over, Traced):
            return (yield as_growing(interp, over))
        if isinstance(over, GrowingList):
            return over.copy()
        if not is_run_time(over):
            return over
    env = interp.aliases.envs[-1]
    if function is None:
        return (yield collect(interp, generator_over(interp, over, env)))
    return (
        yield collect(interp, generator_over(interp, over, env, of=lambda item: interp.call(function, [item], {}, env)))
    )


_TOTAL = "total.so_far"  # a variable that no program has


def folded(interp: Any, function: Any, over: Any, start: Any) -> Work:
    """`functools.reduce`."""
    generator = generator_over(interp, over, interp.aliases.envs[-1])
    elt = generator.node.elt

    def step() -> Work:
        total, item = (force(generator.env.vars[name], interp.ctx) for name in (_TOTAL, ITEM))
        return (yield interp.call(function, [total, item], {}, generator.env))

    _, held = yield run_loops(interp, generator, {_TOTAL: start}, [take_item(elt), set_name(_TOTAL, step, elt)], [])
    return held[_TOTAL]


def repeat(interp: Any, count: Any, work: Callable[[Any], Any]) -> Work:
    """A loop that does something for each number below a count."""
    env = interp.aliases.envs[-1]
    over = TracedItems("range", count, lambda index: index)
    generator = generator_over(interp, over, env)

    def step() -> Work:
        return (yield work(force(generator.env.vars[ITEM], interp.ctx)))

    elt = generator.node.elt
    yield run_loops(interp, generator, {}, [take_item(elt), do(step, elt)], [])
