"""From a static graph to the plan that the core executes: the passes, in one list. Each is a pure function.

lower     a slot for every value, an item for every operator; no order yet
products  a collect of x.T @ g takes x and g
order     items become stages; calls that do not wait for each other share one
defer     finds steps that may wait for those of other waves
share     finds values that all lanes of all waves share
fuse      operators that can run in one pass do
siblings  interleaves the lanes of calls whose results are concatenated
lifetimes drops columns after their last read
owners    finds arrays that their last reader may overwrite
homes     finds values that the host reads; all others live with the lanes
schedule  chooses how each group of functions runs
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from undertow.ir.budget import start_step
from undertow.ir.graph import StaticGraph
from undertow.plan.defer import defer
from undertow.plan.fuse import fuse
from undertow.plan.homes import find_homes
from undertow.plan.kernels import TraitsOf
from undertow.plan.lifetimes import find_lifetimes
from undertow.plan.lower import lower
from undertow.plan.order import order
from undertow.plan.owners import find_owners
from undertow.plan.plan import Plan, Schedule
from undertow.plan.products import find_products
from undertow.plan.project import Projection, order_part
from undertow.plan.schedule import choose_schedules
from undertow.plan.share import share
from undertow.plan.siblings import find_siblings


def make_plan(graph: StaticGraph, traits_of: TraitsOf, defers: bool = True, forced: Schedule | None = None) -> Plan:
    """The plan of a graph. Steps are deferred only if asked; `forced` is the schedule of all groups."""
    *_, (_, plan) = steps(graph, traits_of, defers, forced)
    return plan


def make_part_plan(projection: Projection, traits_of: TraitsOf) -> Plan:
    """The plan of a part of a placed graph, in the order of the whole. Nothing waits for steps of other waves."""
    plan = projection.plan
    for name, apply in _passes(traits_of, partial(order_part, projection=projection), defers=False, forced=None):
        start_step(name)
        plan = apply(plan)
    return plan


def steps(
    graph: StaticGraph, traits_of: TraitsOf, defers: bool = True, forced: Schedule | None = None
) -> Iterator[tuple[str, Plan]]:
    """The plan after each pass, with the name of the pass."""
    start_step("lower")
    yield "lower", (plan := lower(graph))
    for name, apply in _passes(traits_of, order, defers, forced):
        start_step(name)
        yield name, (plan := apply(plan))


def _passes(
    traits_of: TraitsOf, in_order: Callable[[Plan], Plan], defers: bool, forced: Schedule | None
) -> list[tuple[str, Callable[[Plan], Plan]]]:
    return [
        ("products", find_products),
        ("order", in_order),
        *([("defer", defer)] if defers else []),
        ("share", share),
        ("fuse", partial(fuse, traits_of=traits_of)),
        ("siblings", find_siblings),
        ("lifetimes", find_lifetimes),
        ("owners", find_owners),
        ("homes", partial(find_homes, traits_of=traits_of)),
        ("schedule", partial(choose_schedules, traits_of=traits_of, forced=forced)),
    ]
