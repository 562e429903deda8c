"""From captured libraries to what engines run: the passes, in one list, and when each applies. All are pure functions.

MARKED: the markers of a TensorFlow 1 graph become ordinary nodes.

updates    an optimizer assigns a variable after the run has read it
reads      a derivative with respect to a variable becomes one with respect to the tensors that read it
outline    the path of a derivative becomes a function, with a `gradient` beside its call
unfetched  effects that no fetch needs are removed

PASSES: the library becomes what an engine runs.

replicate  for parts: functions with a list of devices get a copy for each, and calls choose one
overflow   with overflow="error": a check after every integer operator that may wrap
simplify   constant folding, common subexpressions, algebraic identities, dead code
delay      arguments that not every path through the callee needs are computed where one does
unorder    calls that can only fault do not wait for each other
restore    arrays that are changed, handed on and restored are what they were, so what comes after need not wait
split      calls that the iterations of a loop do not need from each other are made in a map, so they share waves
reap       collectors gather what the activations below them sow
extend     gradients become second visits to activations, tangents are computed beside the values
constants  arguments of second visits that are always the same become constants
hoist      arguments that every recursive call hands on unchanged are read from the entry

`flatten` comes last, and makes the static graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from undertow.ir.budget import start_step
from undertow.ir.graph import Library
from undertow.ops.effects import acts
from undertow.passes.dead import remove_dead
from undertow.passes.delay import delay_arguments
from undertow.passes.derive.extend import extend
from undertow.passes.hoist import hoist
from undertow.passes.markers.outline import outline_derivatives
from undertow.passes.markers.reads import expose_reads
from undertow.passes.markers.updates import order_updates
from undertow.passes.overflow import check_overflow
from undertow.passes.phase_constants import propagate_constants
from undertow.passes.replicate import replicate
from undertow.passes.report import Report, size
from undertow.passes.restore import restore_arrays
from undertow.passes.simplify import simplify
from undertow.passes.sown.reap import reap
from undertow.passes.split import split_loops
from undertow.passes.unorder import unorder_faults


def _propagate(library: Library) -> tuple[Library, Counter[str]]:
    """Propagate constants until none is found: each, once folded, may make others constant."""
    library, count = propagate_constants(library)
    total = Counter(count)
    while count:
        start_step("constants")
        library, count = propagate_constants(simplify(library)[0])
        total += count
    return library, total


def _drop_unfetched(library: Library) -> tuple[Library, Counter[str]]:
    if any(acts(node.op) for graph in library.functions.values() for node in graph.nodes):
        return remove_dead(library, effects=False)
    return library, Counter()


Pass = Callable[[Library], tuple[Library, Report | Counter[str]]]
# Name, pass, condition. A pass applies if all words of its condition hold: what the library is made for ("simple",
# "entries", "checked", "waves", "ordered", "placed"), and the names of passes that have changed something.
Table = tuple[tuple[str, Pass, frozenset[str]], ...]
ALWAYS: frozenset[str] = frozenset()

MARKED: Table = (
    ("updates", order_updates, ALWAYS),
    ("reads", expose_reads, ALWAYS),
    ("outline", outline_derivatives, ALWAYS),
    ("unfetched", _drop_unfetched, ALWAYS),
)
PASSES: Table = (
    # Before `extend`, so that gradients go to the same replica.
    ("replicate", replicate, frozenset({"placed"})),
    ("overflow", check_overflow, frozenset({"checked"})),
    ("simplify", simplify, frozenset({"simple"})),
    ("delay", delay_arguments, ALWAYS),
    ("simplify", simplify, frozenset({"simple", "delay"})),
    ("unorder", unorder_faults, frozenset({"simple"})),
    ("simplify", simplify, frozenset({"simple", "unorder"})),
    ("restore", restore_arrays, frozenset({"simple", "waves"})),
    ("simplify", simplify, frozenset({"simple", "restore"})),
    # Before `extend`, so that the second visits to these calls share waves, too.
    ("split", split_loops, frozenset({"simple", "waves", "ordered"})),
    ("split", partial(split_loops, reorders=True), frozenset({"simple", "waves", "reordered"})),
    ("simplify", simplify, frozenset({"simple", "split"})),
    ("reap", reap, frozenset({"entries"})),
    ("reap", partial(reap, collect=False), frozenset({"no entries"})),
    ("simplify", simplify, frozenset({"simple", "reap"})),
    ("extend", extend, frozenset({"entries"})),
    ("extend", partial(extend, collect=False), frozenset({"no entries"})),
    ("simplify", simplify, frozenset({"simple", "extend"})),
    ("constants", _propagate, frozenset({"simple", "extend"})),
    ("hoist", hoist, frozenset({"simple", "entries"})),
    ("simplify", simplify, frozenset({"hoist"})),  # hoisting has replaced arguments by constants
)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A pass that was applied."""

    name: str
    before: Library
    after: Library
    has_changed: bool

    def __str__(self) -> str:
        if not self.has_changed:
            return f"{self.name:9}  nothing changed"
        functions = f"{len(self.before.functions):5} -> {len(self.after.functions):3} functions"
        return f"{self.name:9} {size(self.before):5} -> {size(self.after):5} nodes {functions}"


def make_library(
    library: Library,
    takes_hoisted: bool = True,
    is_simple: bool = True,
    is_checked: bool = False,
    forms_waves: bool = False,
    reorders: bool = False,
    is_placed: bool = False,
) -> Library:
    """A captured library made ready for engines: as suits the engine, simplified and checked if wanted.

    If it `is_placed`, it will run in parts.
    """
    *_, step = library_steps(library, takes_hoisted, is_simple, is_checked, forms_waves, reorders, is_placed)
    return step.after


def library_steps(
    library: Library,
    takes_hoisted: bool = True,
    is_simple: bool = True,
    is_checked: bool = False,
    forms_waves: bool = False,
    reorders: bool = False,
    is_placed: bool = False,
) -> Iterator[Step]:
    """The passes of `make_library`, one by one."""
    words = {"entries" if takes_hoisted else "no entries"}
    words |= {"simple"} if is_simple else set()
    words |= {"checked"} if is_checked else set()
    words |= {"placed"} if is_placed else set()
    words |= {"reordered" if reorders else "ordered"}
    return _steps(library, PASSES, frozenset(words | {"waves"} if forms_waves else words))


def make_as_written(library: Library) -> tuple[Library, Library]:
    """What `delay` would be given, and that made ready to run without it: every argument comes from the caller."""
    simple = simplify(library)[0]
    rest = tuple(row for row in PASSES if row[0] not in ("simplify", "delay") or row[2] - {"simple", "delay"})
    *_, step = _steps(simple, rest, frozenset({"simple", "no entries"}))
    return simple, step.after


def resolve_markers(library: Library) -> Library:
    """The library of a TensorFlow 1 graph, without markers, and without what no fetch needs."""
    *_, step = _steps(library, MARKED, ALWAYS)
    return step.after


def _steps(library: Library, table: Table, words: frozenset[str]) -> Iterator[Step]:
    for name, apply, needed in table:
        if needed <= words:
            start_step(name)
            before = library
            library, done = apply(before)
            words |= {name} if done else ALWAYS
            yield Step(name, before, library, bool(done))
