"""Runs Python statements during capture, both sides of every branch that depends on traced values.

The statements still to run are a linked list of cells. A traced `if` runs each side's block in its own region;
if the sides then stand at different places (one returned, or broke out of a loop), the side that is
behind continues alone until both stand at the same place, and there they join. So `if n <= 1: return 1` puts
the rest of the function into the other branch, and nothing is captured twice.

A side that may be at either of two places when its block ends (`if a: if b: return x`) becomes `Mixed`: a
number computed at run time says where it continues.
"""

from __future__ import annotations

import ast
import contextlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from undertow.errors import CaptureError, InternalError, UndertowError
from undertow.frontend.control.merge import Differ, by_return, merge
from undertow.frontend.control.restart import Halted, StartOver, until_fixpoint
from undertow.frontend.control.state import State, held_by, join_effects, join_states, join_where_it_falls, reached
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.loops import for_loop, items_loop, list_loop, while_loop
from undertow.frontend.interpret.matching import as_branches
from undertow.frontend.interpret.options import needed
from undertow.frontend.interpret.outcomes import (
    RETURN,
    Cell,
    End,
    Leave,
    Mark,
    Mixed,
    Outcome,
    Return,
    Side,
    cells,
    exits_of,
    falls,
    keeps_state,
    returns,
    span_of,
    value_of,
)
from undertow.frontend.interpret.raising import or_absent
from undertow.frontend.interpret.reducing import items_of, loop_over
from undertow.frontend.interpret.standins import TracedGenerator, TracedItems, TracedRange
from undertow.frontend.interpret.statements import Statements
from undertow.frontend.interpret.trying import try_block
from undertow.frontend.interpret.written import Computed
from undertow.frontend.syntax.annotations import may_be_none
from undertow.frontend.syntax.queries import HINTS
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.builder import Checkpoint
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import ABSENT, port_in
from undertow.frontend.values.listed import alike
from undertow.frontend.values.traced import Traced
from undertow.ir.graph import Port
from undertow.types import Type, i32

# Limits of a loop that Python unrolls during capture: iterations, and nodes that it writes. A `for` has an end;
# a `while` that writes many nodes is more likely one whose condition was meant to be traced.
_UNROLL_LIMIT = 1_000_000
_UNROLL_NODES = {ast.For: 100_000, ast.While: 10_000}
_DONE = object()


_SIMPLE = frozenset((ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr))  # most statements: without control flow


class StatementInterpreter(Statements):
    """Runs every statement."""

    def run_body(self, node: ast.FunctionDef, env: Env) -> Work:
        body = node.body
        stated = env.closure.annotations.get("return")
        if may_be_none(stated) or (stated is None and _returns_values(node)):  # reaching the end is a way to do that
            body = [*body, ast.copy_location(ast.Return(None), body[-1])]
        outcome = yield self.run(cells(body), None, env)
        # Reaching the end returns None, so a bare `return` on other paths fits.
        if outcome is None or (isinstance(outcome, Mixed) and outcome.value is None):
            return None
        if isinstance(outcome, Return):
            if outcome.value is ABSENT:
                raise Halted
            return outcome.value
        if isinstance(outcome, Mixed) and outcome.value is ABSENT:
            return None  # other paths raise
        raise CaptureError(
            f"`{env.closure.name}` returns a value on some paths, but reaches its end without a `return` on others",
            self.span(node, env),
            hint="end every path with a `return` of a value, or annotate the result as one that may be None: "
            "-> ut.i64 | None",
        )

    def run(self, cell: Cell | None, stop: Cell | None, env: Env) -> Work:
        """Run the statements from `cell` up to `stop` (or the end). One that raises returns a value that never is."""
        outcome = yield or_absent(partial(self._run, cell, stop, env), self.ctx)
        return Return(ABSENT, self.ctx.span) if outcome is ABSENT else outcome

    def run_uncaught(self, cell: Cell | None, env: Env) -> Work:
        """Run statements to the end; an exception that Python raises during capture arrives at the caller."""
        return self._run(cell, None, env)

    def _run(self, cell: Cell | None, stop: Cell | None, env: Env) -> Work:
        while cell is not None and cell is not stop:
            statement = cell.statement
            if type(statement) in _SIMPLE:
                yield self.expr(statement, env)
                cell = cell.next
                continue
            if isinstance(statement, ast.If):
                truth = yield self.condition(statement.test, env)
                if not isinstance(truth, Traced):
                    cell = cells(statement.body if truth else statement.orelse, cell.next)
                    continue
                self.at(statement, env)
                step = self.branch(truth, statement, cell.next, stop, env)
            elif isinstance(statement, ast.While):
                step = self.begin_while(statement, cell.next, stop, env)
            elif isinstance(statement, ast.For):
                step = self.begin_for(statement, cell.next, env)
            elif isinstance(statement, Mark):
                step = self.come_round(statement, cell, env)
            elif isinstance(statement, ast.Match):
                subject = yield self.expr(statement.subject, env)
                cell = cells(as_branches(self, statement, subject, env), cell.next)
                continue
            elif isinstance(statement, ast.With):
                step = self.with_block(statement, cell.next, env)
            elif isinstance(statement, ast.Try):
                step = try_block(self, statement, cell.next, env)
            elif isinstance(statement, ast.Return):
                value = None
                if statement.value is not None:
                    value = yield self.expr(statement.value, env)
                self.at(statement, env)
                span = self.ctx.span
                self.owned.returned(value)
                return Return(value if env.result is None else env.result(value), span)
            elif isinstance(statement, (ast.Break, ast.Continue)):
                place = self._leave(Leave(isinstance(statement, ast.Break)), cell, stop)
                if isinstance(place, Leave):
                    return place
                cell = place
                continue
            else:
                if not isinstance(statement, End):
                    yield self.expr(statement, env)
                cell = cell.next
                continue
            outcome, cell = yield step
            if isinstance(outcome, Mixed) and outcome.falls and cell is not None and cell is not stop:
                return (yield self.go_on(outcome, cell, stop, env))
            if outcome is not None:
                return outcome
        return None

    # -- branches ------------------------------------------------------------------------------------------

    def branch(self, pred: Traced, node: ast.If, after: Cell | None, stop: Cell | None, env: Env) -> Work:
        """Run both blocks of a traced `if`."""

        def block(statements: list[ast.stmt]) -> Work:
            outcome = yield self.run(cells(statements), None, env)
            return outcome, after

        return (yield self.fork(pred, lambda: block(node.body), lambda: block(node.orelse), after, stop, env))

    def go_on(self, mixed: Mixed, cell: Cell, stop: Cell | None, env: Env) -> Work:
        """Run the statements from `cell` on, in a branch where control falls through to them."""
        pred = functions.equal(mixed.flow, 0)

        def fall() -> tuple[Outcome, Cell]:
            env.vars.update(mixed.only)
            return None, cell

        def leave() -> tuple[Outcome, None]:
            if len(mixed.exits) > 1:
                return replace(mixed, falls=False, only={}), None
            exit = mixed.exits[0]
            return (Return(mixed.value, mixed.span) if exit == RETURN else exit), None

        outcome, place = yield self.fork(pred, fall, leave, cell, stop, env)
        if place is not None and place is not stop:
            if outcome is None:
                return (yield self.run(place, stop, env))
            if isinstance(outcome, Mixed) and outcome.falls:
                return (yield self.go_on(outcome, place, stop, env))
        return outcome

    def fork(self, pred: Traced, then: Any, other: Any, after: Cell | None, stop: Cell | None, env: Env) -> Work:
        """Run both sides until they stand at the same place: the outcome there, and the place."""
        ctx, builder, span = self.ctx, self.ctx.open_builder, self.ctx.span
        regions = builder.branch(ctx.session.resolve(pred))
        before = self.save(env)
        sides: list[Side] = []
        for region, work in zip(regions, (then, other), strict=True):
            (outcome, place), state = yield self.on_side(region, before, work, env)
            sides.append(self._side(region, state, outcome, place, after, stop))
        while (behind := self._behind(sides, stop)) is not None:
            number, target = behind
            side = sides[number]
            go_on = partial(self.go_on, side.outcome) if isinstance(side.outcome, Mixed) else self.run
            work = partial(go_on, side.place, target, env)
            outcome, state = yield self.on_side(side.region, side.state, work, env)
            sides[number] = self._side(side.region, state, outcome, target, side.place, stop)
        ctx.span = span
        self.changes.join(sides[0].state.arrays, sides[1].state.arrays, regions, span)
        lasting = self._lasting(sides, before, env)
        result = self._join_outcomes(sides, regions, before)
        goes_on = [keeps_state(side.outcome) for side in sides]
        states = [side.state if goes else None for side, goes in zip(sides, goes_on, strict=True)]
        ended = [
            None if goes or not returns(side.outcome) else side.state for side, goes in zip(sides, goes_on, strict=True)
        ]
        if states != [None, None] or lasting:
            join_states(before, states[0], states[1], regions, env, ctx, ended, lasting)
        if isinstance(result, Mixed) and result.falls:
            views = [
                {**side.state.vars, **getattr(side.outcome, "only", {})} if falls(side.outcome) else None
                for side in sides
            ]
            result.only.update(join_where_it_falls(views, regions, env, ctx))
        join_effects(before, [side.state.effect for side in sides], regions, builder)
        return result, next((side.place for side in sides if falls(side.outcome)), None)

    def _lasting(self, sides: list[Side], before: State, env: Env) -> frozenset[int]:
        """The containers that are still of interest after a `return`: the caller's, and those that are returned."""
        ended = [side for side in sides if returns(side.outcome)]
        if not ended:
            return frozenset()
        older = {
            key
            for key, (container, _) in before.contents.items()
            if self.owned.is_older(before.owners.get(key, container), env.made)
        }
        return frozenset(older.union(*(reached(value_of(side.outcome), side.state) for side in ended)))

    def _side(
        self, region: int, state: State, outcome: Outcome, place: Cell | None, start: Cell | None, stop: Cell | None
    ) -> Side:
        """A side with its place. `break` and `continue` of a loop that Python unrolls lead to places like any other."""
        if isinstance(outcome, Leave):
            target = self._leave(outcome, start, stop)
            if not isinstance(target, Leave):
                outcome, place = None, target
        return Side(region, state, None if place is stop else place, outcome)

    def _behind(self, sides: list[Side], stop: Cell | None) -> tuple[int, Cell | None] | None:
        """The side that must advance before both can join, and how far; None if they stand at the same place."""
        going = [n for n, side in enumerate(sides) if falls(side.outcome) and side.place is not None]
        if not going or (falls(sides[0].outcome) and falls(sides[1].outcome) and sides[0].place is sides[1].place):
            return None
        ends = [side.place if falls(side.outcome) else None for side in sides]
        for number in going:
            target = ends[1 - number]
            at = sides[number].place
            marks: list[Mark] = []
            while at is not None and at is not stop and at is not target:
                if isinstance(at.statement, Mark):
                    marks.append(at.statement)
                at = at.next
            if at is target or target is None:
                for mark in marks:
                    if isinstance(mark.node, ast.While):
                        raise StartOver(mark, is_traced=True)
                return number, stop if target is None else target
        raise InternalError("two sides of a branch are both ahead of each other")

    def _leave(self, leave: Leave, start: Cell | None, stop: Cell | None) -> Cell | Leave | None:
        """The target of `break` or `continue`, if it is among the current statements; else the Leave itself."""
        at = start
        while at is not None and at is not stop:
            if isinstance(at.statement, Mark):
                return at.next if leave.is_break else at
            if isinstance(at.statement, End):
                return leave if leave.is_break else at
            at = at.next
        return leave

    def _join_outcomes(self, sides: list[Side], regions: tuple[int, int], before: State) -> Outcome:
        a, b = sides[0].outcome, sides[1].outcome
        if (a is None and b is None) or (isinstance(a, Leave) and a == b):
            return a
        if isinstance(a, Return) and isinstance(b, Return):
            differ = by_return(a.span, b.span)
            value = self._join_returned((a.value, b.value), sides, before, regions, differ)
            return Return(value, a.span or b.span)
        exits = tuple(dict.fromkeys((*exits_of(a), *exits_of(b))))
        builder = self.ctx.open_builder
        ports = [self.flow_port(outcome, exits, region) for outcome, region in zip((a, b), regions, strict=True)]
        flow = Traced(builder, Port(builder.add("merge", ports, (Type(i32),), name="flow", span=self.ctx.span)))
        value = None
        if RETURN in exits:
            differ = by_return(span_of(a), span_of(b))
            value = self._join_returned((value_of(a), value_of(b)), sides, before, regions, differ)
        return Mixed(flow, exits, value, falls(a) or falls(b), span_of(a) or span_of(b))

    def _join_returned(
        self, pair: tuple[Any, Any], sides: list[Side], before: State, regions: tuple[int, int], differ: Differ
    ) -> Any:
        """What is returned after a branch; a container or an array that was there before it stays the same object."""
        a, b = pair
        if a is b:
            return a
        only = b if a is ABSENT else a if b is ABSENT else None
        if type(only) is tuple:
            pairs = [(ABSENT, item) if a is ABSENT else (item, ABSENT) for item in only]
            return tuple(self._join_returned(items, sides, before, regions, differ) for items in pairs)
        if id(held_by(only)) in before.contents or (
            isinstance(only, Traced) and self.changes.was_before(only, regions)
        ):
            return only
        ends = sides[0].state, sides[1].state
        if type(a) is tuple and type(b) is tuple and len(a) == len(b) and reached(a, ends[0]) & reached(b, ends[1]):
            pairs = list(zip(a, b, strict=True))
            return tuple(self._join_returned(items, sides, before, regions, differ) for items in pairs)
        one, other = alike(*self.values_of(a, b, *ends), regions, self.ctx)
        return merge(one, other, regions, self.ctx, "", self.ctx.span, differ)

    def flow_port(self, outcome: Outcome, exits: tuple[Any, ...], region: int) -> Port:
        """The number of the exit that control takes (0: it falls through), as a token of the region."""
        if not isinstance(outcome, Mixed):
            own = exits_of(outcome)
            return port_in(np.int32(exits.index(own[0]) + 1 if own else 0), region, self.ctx)
        if outcome.exits == exits[: len(outcome.exits)]:
            return port_in(outcome.flow, region, self.ctx)
        # Renumber through a table: exit n of the side is exit table[n] of the join.
        table = np.array([0, *(exits.index(exit) + 1 for exit in outcome.exits)], np.int32)
        builder, before = self.ctx.open_builder, self.ctx.open_builder.region
        builder.region = region
        try:
            return port_in(self.item(table, outcome.flow), region, self.ctx)
        finally:
            builder.region = before

    # -- loops ---------------------------------------------------------------------------------------------

    def begin_while(self, node: ast.While, after: Cell | None, stop: Cell | None, env: Env) -> Work:
        """Start a `while`: Python unrolls it, unless a traced condition ends it: then it is a loop of the graph."""
        if _is_endless(node):
            raise CaptureError(
                "this loop never ends: nothing in it breaks or returns",
                self.span(node, env),
                hint="leave it with `break` or `return`",
            )
        builder = self.ctx.open_builder
        checkpoint, before = builder.checkpoint(), self.save(env)
        mark = Mark(node, None, len(builder.nodes))
        # A `break` in its `else` leaves the enclosing loop, to a place further on.
        end = stop if node.orelse else after

        def attempt() -> Work:
            if mark.is_traced:
                self.go_back(checkpoint, before, env)
                return (yield while_loop(self, node, after, env))
            return (yield self.run(Cell(mark, after), end, env)), end

        return (yield until_fixpoint(mark, attempt))

    def begin_for(self, node: ast.For, after: Cell | None, env: Env) -> Work:
        """Start a `for`: a loop of the graph if the length is known only at run time, else Python unrolls it."""
        over = yield self.expr(node.iter, env)
        self.at(node.iter, env)
        over = needed(over, self.ctx, "'NoneType' object is not iterable")
        if isinstance(over, TracedRange):
            return (yield for_loop(self, node, over, after, env))
        if isinstance(over, GrowingList):
            return (yield list_loop(self, node, over, after, env))
        if isinstance(over, TracedGenerator):
            return None, Cell(loop_over(over, node, env), after)
        # The generator that a loop of ours stands for has taken the items.
        is_taken = isinstance(node.iter, Computed) and isinstance(over, TracedItems)
        if (run_time := over if is_taken else items_of(over)) is not None:
            return (yield items_loop(self, node, run_time, after, env))
        items = self.iterate(over, self.span(node.iter, env))
        # An iterator that a name holds may be asked for more items after the loop.
        is_shared = items is over and not isinstance(node.iter, (ast.Call, ast.GeneratorExp))
        return None, Cell(Mark(node, items, len(self.ctx.open_builder.nodes), is_shared=is_shared), after)

    def come_round(self, mark: Mark, cell: Cell, env: Env) -> Work:
        """The next iteration of a loop that Python unrolls, or the statements after it."""
        node = mark.node
        if isinstance(node, ast.While):
            builder = self.ctx.open_builder
            checkpoint, before = builder.checkpoint(), self.save(env)
            truth = yield self.condition(node.test, env)
            if isinstance(truth, Traced):
                # The test belongs in the loop's own graph: forget what it wrote here.
                self.go_back(checkpoint, before, env)
                return (yield while_loop(self, node, cell.next, env))
            more = truth
        else:
            assert mark.items is not None
            if mark.is_shared:
                self.at(node, env)
                self.owned.change(mark.items, ast.unparse(node.iter))
            item = next(mark.items, _DONE)
            more = item is not _DONE
            if more:
                yield self.assign(node.target, item, env)
        mark.rounds += 1
        nodes = len(self.ctx.open_builder.nodes) - mark.nodes
        if mark.rounds > _UNROLL_LIMIT or nodes > _UNROLL_NODES[type(node)]:
            done = f"{mark.rounds:,} rounds" if mark.rounds > _UNROLL_LIMIT else f"writing {nodes:,} nodes"
            raise CaptureError(
                f"this loop does not depend on traced values, so it is unrolled, and has not finished after {done}",
                self.span(node, env),
                hint="make its condition depend on a traced value, as in `for i in range(n)` with an argument `n`",
            )
        return None, cells(node.body, cell) if more else cells(node.orelse, cell.next)

    def go_back(self, checkpoint: Checkpoint, state: State, env: Env) -> None:
        """Undo what was written and assigned since then."""
        builder = self.ctx.open_builder
        self.owned.check_return(state, self.ctx.span)
        builder.rollback(checkpoint)
        self.ctx.session.forget_hidden(builder)
        self.restore(state, env)

    def with_block(self, node: ast.With, after: Cell | None, env: Env) -> Work:
        """Run a `with` block: only our own context managers (placement, control edges) can be captured."""
        managers: list[Any] = []
        for item in node.items:
            try:
                manager = yield self.expr(item.context_expr, env)
            except Exception as fault:
                if isinstance(fault, UndertowError):
                    raise
                manager = None  # the expression itself failed (no such file): `with` cannot be captured anyway
            if not hasattr(type(manager), "__undertow_capture__") and not _is_harmless(manager):
                if hasattr(manager, "close"):
                    manager.close()
                is_subgraph = hasattr(type(manager), "__undertow_definition__")
                is_errstate = isinstance(manager, np.errstate)
                hint = HINTS["SubGraph" if is_subgraph else "errstate" if is_errstate else "With"]
                raise CaptureError("`with` cannot be captured", self.span(node, env), hint)
            managers.append(manager)
        if all(map(_is_harmless, managers)):
            for manager, item in zip(managers, node.items, strict=True):
                if item.optional_vars is not None:
                    yield self.assign(item.optional_vars, getattr(manager, "enter_result", None), env)
            return None, cells(node.body, after)
        try:
            for manager, item in zip(managers, node.items, strict=True):
                entered = manager.__enter__()
                if item.optional_vars is not None:
                    yield self.assign(item.optional_vars, entered, env)
            outcome = yield self.run(cells(node.body), None, env)
        finally:
            for manager in reversed(managers):
                manager.__exit__(None, None, None)
        return outcome, after


def _returns_values(node: ast.FunctionDef) -> bool:
    """Does a function say what it returns, on some path? Not one that yields."""
    has_value = False
    stack: list[ast.AST] = [*node.body]
    while stack:
        item = stack.pop()
        if isinstance(item, (ast.Yield, ast.YieldFrom)):
            return False
        if isinstance(item, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        has_value |= isinstance(item, ast.Return) and item.value is not None
        stack.extend(ast.iter_child_nodes(item))
    return has_value


_ERRORS = ("all", "divide", "over", "under", "invalid")  # of np.errstate


def _is_harmless(manager: Any) -> bool:
    """Is it a context manager of Python's or NumPy's that means nothing to a graph?"""
    if isinstance(manager, np.errstate):
        held = getattr(manager, "kwargs", None) or {name: getattr(manager, f"_{name}", None) for name in _ERRORS}
        return set(held.values()) <= {"ignore", "warn", None}
    return type(manager) is contextlib.nullcontext


def _is_endless(node: ast.While) -> bool:
    """Is it a `while True` that nothing inside leaves?"""
    if not (isinstance(node.test, ast.Constant) and node.test.value):
        return False
    stack: list[tuple[ast.AST, bool]] = [(statement, True) for statement in node.body]
    while stack:
        item, is_own = stack.pop()
        if isinstance(item, (ast.Return, ast.Raise, ast.Yield, ast.YieldFrom)) or (
            isinstance(item, ast.Break) and is_own
        ):
            return False
        if not isinstance(item, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            is_loop = isinstance(item, (ast.For, ast.While))
            stack.extend((child, is_own and not is_loop) for child in ast.iter_child_nodes(item))
    return True
