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

from collections.abc import Iterator

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
from undertow.plan.schedule import choose_schedules
from undertow.plan.share import share
from undertow.plan.siblings import find_siblings


def make_plan(graph: StaticGraph, traits_of: TraitsOf, defers: bool = True, forced: Schedule | None = None) -> Plan:
    """The plan of a graph. Steps are deferred only if asked; `forced` is the schedule of all groups."""
    *_, (_, plan) = steps(graph, traits_of, defers, forced)
    return plan


def steps(
    graph: StaticGraph, traits_of: TraitsOf, defers: bool = True, forced: Schedule | None = None
) -> Iterator[tuple[str, Plan]]:
    """The plan after each pass, with the name of the pass."""
    yield "lower", (plan := lower(graph))
    yield "products", (plan := find_products(plan))
    yield "order", (plan := order(plan))
    if defers:
        yield "defer", (plan := defer(plan))
    yield "share", (plan := share(plan))
    yield "fuse", (plan := fuse(plan, traits_of))
    yield "siblings", (plan := find_siblings(plan))
    yield "lifetimes", (plan := find_lifetimes(plan))
    yield "owners", (plan := find_owners(plan))
    yield "homes", (plan := find_homes(plan, traits_of))
    yield "schedule", choose_schedules(plan, traits_of, forced)
