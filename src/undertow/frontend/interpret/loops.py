"""`for` and `while` whose length is known only at run time: loops of the graph.

The variables that the body assigns are carried from one iteration to the next; values that it only reads become
invariants. `break` and `return` inside become a carried number that says how the loop was left.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch, kind_of
from undertow.frontend.control.body import graph_loop
from undertow.frontend.control.carrying import Carrying
from undertow.frontend.control.merge import Joined, force, unify
from undertow.frontend.control.ownership import LIST_IN_LOOP
from undertow.frontend.control.restart import StartOver, until_fixpoint
from undertow.frontend.control.state import Held, State, held_by, name_of, reached
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.interpret.outcomes import (
    BREAK,
    CONTINUE,
    RETURN,
    Cell,
    End,
    Mixed,
    Outcome,
    Return,
    cells,
    exits_of,
    raised_as,
    value_of,
)
from undertow.frontend.interpret.standins import TracedItems, TracedRange
from undertow.frontend.interpret.unset import MAY_NOT_RUN, after_loop, may_be_none, read_next, told_unset
from undertow.frontend.interpret.written import when
from undertow.frontend.syntax.queries import is_plain
from undertow.frontend.syntax.source import Env, Undefined, Unsure, assigned_names
from undertow.frontend.trace.by_class import DATACLASS, is_users_object
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import Absent, describe
from undertow.frontend.values.operands import as_weak, is_weak
from undertow.frontend.values.option import Parts, agree, blank, fitted
from undertow.frontend.values.traced import Traced, effect, is_traced
from undertow.frontend.values.tree import Structure, flatten, unflatten, unflatten_each
from undertow.ir.graph import Const
from undertow.types import i32, i64

_GO_ON, _RETURNED, _BROKE = 0, 1, 2
_KEEPS_STRUCTURE = "the structure of a loop variable must not change; ut.map collects a value for each iteration"


def while_loop(interp: Interpreter, node: ast.While, after: Cell | None, env: Env) -> Work:
    """A `while` that a traced condition ends, its own or that of a `break`."""
    before = interp.save(env)

    def loop(node: ast.While) -> Work:
        return _statement_loop(interp, node, lambda _: interp.condition(node.test, env), after, env)

    if not assigned_names([ast.Expr(node.test)]):
        done = yield loop(node)
        if done is not None:
            return done
        interp.restore(before, env)
    # The test assigns or acts: rewritten as `while True: if not test: break`, with a variable that says for `else` that
    # this was how it ended.
    ended = f"while {node.lineno}:{node.col_offset} ended"
    leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
    if node.orelse:
        leave.body.insert(0, ast.Assign([ast.Name(ended, ast.Store())], ast.Constant(True)))
        env.vars[ended] = False
        after = Cell(when(lambda: force(env.vars[ended], interp.ctx), node.orelse, node), after)
    endless = ast.While(ast.Constant(True), [leave, *node.body], [])
    for made in (endless.test, *ast.walk(leave)):
        if made is not node.test:
            ast.copy_location(made, node.test)
    return (yield loop(ast.copy_location(endless, node)))


def for_loop(interp: Interpreter, node: ast.For, over: TracedRange, after: Cell | None, env: Env) -> Work:
    """`for ... in range(...)` with traced bounds."""
    if not isinstance(node.target, ast.Name):
        raise CaptureError(
            "a loop over a range must have one variable", interp.span(node.target, env), "write `for i in range(n):`"
        )
    target = node.target.id
    # Whatever the bounds are, Python's ranges give Python's integers.
    start, stop, step = (
        as_weak(functions.astype(bound, i64)) if isinstance(bound, Traced) else int(bound)
        for bound in (over.start, over.stop, over.step)
    )

    def test(leaves: list[Traced]) -> Any:
        if not isinstance(step, Traced):
            return (functions.less if step > 0 else functions.greater)(leaves[0], stop)
        up, down = functions.less(leaves[0], stop), functions.greater(leaves[0], stop)
        return functions.where(functions.greater(step, 0), up, down)

    if not isinstance(step, Traced) and step == 0:
        raise CaptureError(
            "the step of a range must not be zero",
            interp.span(node.iter, env),
            "the default step is 1",
            kind=ValueError,
        )
    if isinstance(step, Traced):
        holds = functions.not_equal(step, 0)
        effect("raise", [holds], template="the step of a range must not be zero", error="ValueError")
    index = _Index(start, target, step, target, lambda index: index)
    return (yield _statement_loop(interp, node, test, after, env, index))


def items_loop(interp: Interpreter, node: ast.For, over: TracedItems, after: Cell | None, env: Env) -> Work:
    """`for ... in items` where their number is known only at run time: one by one, in order."""
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    index = _Index(np.int64(0), f"{name or 'items'}.index", 1, name, over.item)
    return _statement_loop(interp, node, lambda leaves: functions.less(leaves[0], over.length), after, env, index)


def list_loop(interp: Interpreter, node: ast.For, over: GrowingList, after: Cell | None, env: Env) -> Work:
    """`for ... in items` of a list whose length is known only at run time, and may change in the loop."""
    name = node.target.id if isinstance(node.target, ast.Name) else ""
    index = _Index(np.int64(0), f"{name or 'items'}.index", 1, name, lambda at: interp.item_of_list(over, at))
    return _statement_loop(interp, node, lambda leaves: functions.less(leaves[0], over.length), after, env, index)


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """The counter of a `for`, carried beside the variables."""

    start: Any
    name: str
    step: Any
    target: str  # the variable of the loop, if it is one name
    item: Callable[[Traced], Any]  # what it holds, or the work that gives it


def _last_item(index: _Index, last: Traced) -> Unsure:
    """The variable of a `for` after the loop."""
    name = index.target

    def read() -> Any:
        holds = functions.not_equal(last, index.start)
        effect("raise", [holds], template=told_unset(name), error="UnboundLocalError")
        return drive(index.item(last - index.step))

    return Unsure(MAY_NOT_RUN.format(name), "assign it before the loop", read=read)


@dataclass(slots=True, eq=False)
class _Carried:
    """The variables that a loop carries, and their leaves in one list."""

    names: list[str] = field(default_factory=list)
    structures: list[Structure] = field(default_factory=list)
    leaves: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)  # the variable of each leaf
    before: list[Any] = field(default_factory=list)  # the values themselves

    def put(self, values: list[Any], env: Env) -> None:
        held = unflatten_each(self.structures, values)
        for value, before in zip(held, self.before, strict=True):
            if isinstance(value, GrowingList) and isinstance(before, GrowingList):
                value.place = before.root.place
        env.vars.update(zip(self.names, held, strict=True))

    def take(self, known: _Statements, env: Env, interp: Interpreter, span: Span | None) -> list[Any]:
        taken: list[Any] = []
        for number, (name, structure) in enumerate(zip(self.names, self.structures, strict=True)):
            value = force(env.vars.get(name), interp.ctx)
            if isinstance(value, Undefined):
                raise value.error(span)
            leaves, after = flatten(value, is_traced)
            if after != structure:
                like = unflatten_each(self.structures, self.leaves)[number]
                _carry_option(known, name, like, value)
                lifted = fitted((leaves, after), flatten(like, is_traced))
                if lifted is not None:
                    taken += lifted
                    continue
                first = unflatten_each(self.structures, self.leaves)[number]
                interp.owned.let_fit(self.before[number], value)
                raise TypeMismatch(
                    f"`{name}` is {describe(first)} before the loop and {describe(value)} after one iteration",
                    span,
                    hint=_KEEPS_STRUCTURE,
                )
            taken += leaves
        return taken


def _carry_option(known: _Statements, name: str, first: Any, value: Any) -> None:
    """A variable is None before the loop or after an iteration, but not always: start over, with an Option."""
    agreed = agree(flatten(first, is_traced), flatten(value, is_traced))
    if agreed is None:
        return
    structure, *sides = agreed
    before = known.options.get(name)
    if before is None or before[1] != structure:
        like = [b if isinstance(a, Absent) else a for a, b in zip(*sides, strict=True)]
        raise StartOver(known, options={**known.options, name: (like, structure)})


def _carry(names: set[str], known: _Statements, env: Env, interp: Interpreter) -> tuple[_Carried, dict[str, Any]]:
    """The variables that hold values of a graph, and those that hold something else: None, a string, a function."""
    carried, fixed = _Carried(), {}
    for name in sorted(names & env.vars.keys()):
        value = force(env.vars[name], interp.ctx)
        leaves, structure = flatten(value, is_traced)
        if name in known.options:
            structure = known.options[name][1]
            leaves = fitted(flatten(value, is_traced), known.options[name]) or leaves
            value = unflatten(structure, leaves)
        if leaves:
            carried.names.append(name)
            carried.structures.append(structure)
            carried.before.append(value)
            carried.leaves += leaves
            carried.owners += [name] * len(leaves)
            carried.labels += [name] if len(leaves) == 1 else [f"{name}.{k}" for k in range(len(leaves))]
        elif not isinstance(value, Undefined):
            fixed[name] = value
    return carried, fixed


@dataclass(slots=True, eq=False)
class _Statements:
    """What the capture of a loop's statements has learned; a later attempt starts with it."""

    exits: tuple[Any, ...] = ()  # where control may go after an iteration, besides the next one
    value: Any = None  # of the `return`
    span: Span | None = None  # of the `return`, if there is one
    arrays: tuple[Traced, ...] = ()  # those from outside the loop that it changes
    containers: tuple[Held, ...] = ()  # those from outside the loop that it changes
    changing: dict[str, Undefined] = field(
        default_factory=dict
    )  # variables without a graph value (None, strings) that an iteration changes
    options: dict[str, Parts] = field(default_factory=dict)  # variables that may be None, with leaves of each type
    unset: frozenset[str] = frozenset()  # variables without a value before the loop that are read after it


def _statement_loop(
    interp: Interpreter,
    node: ast.While | ast.For,
    test: Callable[[list[Traced]], Any],
    after: Cell | None,
    env: Env,
    index: _Index | None = None,
) -> Work:
    """The outcome of a loop and the place after it; None if its test acts on the world."""
    ctx = interp.ctx
    interp.at(node, env)
    span = ctx.span
    head = ast.Expr(node.test) if isinstance(node, ast.While) else ast.Assign([node.target], node.iter)
    assigned_in_body = assigned_names(node.body)
    assigned = assigned_in_body | assigned_names([head])
    own = [] if index is None else [index.name]
    # The variable of a `for` is carried, too, if it has a value before: it keeps that if the loop never runs.
    kept = set(own) if index is not None and _fits(env.vars.get(index.name), index.start, interp) else set()
    before = interp.save(env)
    read_later = read_next(node, env, assigned_in_body)
    known = _Statements()
    is_endless = False
    values_last: list[Any] = []  # of the variables, at the end of a round
    carrying = Carrying(interp.owned, known, ())
    carried, fixed = _carry((assigned - set(own)) | kept, known, env, interp)
    first, last = len(own), len(own) + len(carried.leaves)

    def enter(params: list[Traced]) -> None:
        """Let the arrays that the loop changes stand for what it carries."""
        ctx.open_builder.carrier = known
        for array, param in zip(known.arrays, params[last:], strict=False):
            interp.changes.put(array, param)
        carrying.enter(in_containers(params))

    def in_containers(params: list[Traced]) -> list[Traced]:
        begin = last + len(known.arrays)
        return params[begin : begin + len(carrying.leaves)]

    def flags_of(params: list[Traced]) -> list[Traced]:
        return params[last + len(known.arrays) + len(carrying.leaves) :]

    def header(params: list[Traced]) -> Work:
        nonlocal is_endless
        enter(params)
        env.vars = {**before.vars, **known.changing}
        carried.put(params[first:last], env)
        going = functions.equal(flags_of(params)[0], _GO_ON) if known.exits else None
        if going is not None and isinstance(node, ast.While) and not is_plain(node.test):
            truth = yield interp.choose(going, lambda: test(params), lambda: False, env)
        else:
            truth = yield test(params)
            if going is not None and isinstance(truth, Traced):
                truth = functions.logical_and(going, truth)
        if isinstance(truth, Traced):
            return truth
        if going is None and not truth:
            raise CaptureError("this loop never runs", span)
        # `while True`: it must be left from inside; the body shows whether it is.
        is_endless = True
        return Traced(ctx.open_builder, ctx.open_builder.gate(Const(np.True_), span)) if going is None else going

    def body(params: list[Traced]) -> Work:
        carrying.belong_here()
        if index is not None:
            assert isinstance(node, ast.For)
            item = yield index.item(params[0])
            if index.target:
                env.vars[index.target] = item
            else:
                yield interp.assign(node.target, item, env)
        began = interp.owned.changes()
        values_first = [env.vars[name] for name in carried.names]
        for value, held in zip(values_first, carried.before, strict=True):
            interp.owned.own_containers(value)
            interp.owned.inherit(value, held)
        # A `for` ends anyway, so its test need not know that an iteration has raised an error: it counts.
        after_raise = BREAK if index is None else CONTINUE
        outcome = raised_as(after_raise, (yield interp.run(cells(node.body, Cell(End(), None)), None, env)))
        _refuse_changed_containers(before, carrying, span)
        unset = frozenset(n for n in read_later - known.unset if may_be_none(n, env, ctx))
        if unset and not isinstance(outcome, Return):
            raise StartOver(known, unset=known.unset | unset)
        if not isinstance(outcome, Return):
            _find_changed_names(known, fixed, env, interp, span)
        nexts = [] if index is None else [params[0] + index.step]
        taken = carried.take(known, env, interp, span)
        nexts += taken
        values_last[:] = [force(env.vars[name], ctx) for name in carried.names]
        interp.owned.check_round(began, carried.before, values_first, values_last, is_outside)
        interp.owned.check_carried(known.containers, [*carried.before, *values_last])
        for held in (carried.leaves, taken):
            interp.aliases.check_outside(known.arrays, list(zip(carried.owners, held, strict=True)))
        nexts += [Traced(array.builder, array.port) for array in known.arrays]
        nexts += carrying.take(span)
        exits = exits_of(outcome)
        if set(exits) <= {CONTINUE}:
            return nexts + flags_of(params)
        if not known.exits:
            value, returned = getattr(outcome, "value", None), getattr(outcome, "span", None)
            raise StartOver(known, exits=exits, value=value, span=returned)
        return nexts + _flags(outcome, flags_of(params), interp)

    def is_outside(container: Any) -> bool:
        """Does something else hold a container that a variable of the loop holds before it?"""
        others = tuple(value for name, value in before.vars.items() if name not in carried.names)
        return interp.owned.is_older(container, env.made) or id(held_by(container)) in reached(others, before)

    def attempt() -> Work:
        nonlocal carried, fixed, last, carrying
        before.vars.update(dict.fromkeys(known.unset))
        interp.restore(before, env)
        ctx.span = span
        if known.options or known.unset:
            carried, fixed = _carry((assigned - set(own)) | kept, known, env, interp)
            last = first + len(carried.leaves)
        initial = [*([] if index is None else [index.start]), *carried.leaves]
        initial += [Traced(array.builder, array.port) for array in known.arrays]
        names = [*own, *carried.labels, *("array" for _ in known.arrays)]
        carrying = Carrying(interp.owned, known, known.containers)
        initial += carrying.leaves
        names += carrying.labels
        if known.exits:
            value = known.value if RETURN in known.exits else None
            leaves = flatten(value, is_traced)[0]
            returned = list(map(blank, leaves))
            initial += [np.int32(_GO_ON), *returned]
            names += ["flow", *["value"] * len(returned)]
        try:
            return (yield graph_loop(ctx, initial, names, header, body))
        finally:
            carrying.leave()

    results = yield until_fixpoint(known, attempt)
    if results is None:
        return None
    if not known.exits and is_endless:
        raise CaptureError(
            "this loop never ends: nothing in it breaks or returns", span, hint="leave it with `break` or `return`"
        )
    interp.changes.go_back(before.arrays)
    env.vars = {**before.vars, **known.changing}
    for name in assigned | set(own):
        if name not in carried.names and name not in fixed and name in env.local:
            env.vars[name] = Undefined(MAY_NOT_RUN.format(name), "assign it before the loop as well")
    if index is not None and index.target and index.target not in {*carried.names, *fixed, *assigned_in_body}:
        env.vars[index.target] = _last_item(index, results[0])
    carried.put(results[first:last], env)
    env.vars.update({name: after_loop(name, env, ctx) for name in known.unset})
    interp.owned.own_results([env.vars[name] for name in carried.names], values_last)
    for array, result in zip(known.arrays, results[last:], strict=False):
        interp.changes.update(array, result, "an array", "x = x.copy()")
    carrying.finish(in_containers(results))
    flags = flags_of(results)
    if BREAK in known.exits and node.orelse and not is_endless:
        has_ended = functions.equal(flags[0], _GO_ON)
        after = Cell(when(lambda: has_ended, node.orelse, node), after)
    elif not is_endless:
        after = cells(node.orelse, after)
    if RETURN not in known.exits:
        return None, after
    value = unflatten(flatten(known.value, is_traced)[1], flags[1:])
    if is_endless and BREAK not in known.exits:
        return Return(value, known.span), after
    flow = flags[0]
    if BREAK in known.exits:
        flow = functions.astype(functions.equal(flow, _RETURNED), i32)
    return Mixed(flow, (RETURN,), value, True, known.span), after


def _fits(before: Any, value: Any, interp: Interpreter) -> bool:
    """Can the loop carry what a variable held before?"""
    held = force(before, interp.ctx)
    is_one = is_weak(held) or (isinstance(held, Traced) and not held.type.rank)
    return is_one and unify(held, value) is not None


def _find_changed_names(
    known: _Statements, fixed: dict[str, Any], env: Env, interp: Interpreter, span: Span | None
) -> None:
    """A variable without a value of the graph must be the same in every iteration, or not be read in the next."""
    for name, value in fixed.items():
        now = force(env.vars.get(name, Undefined("")), interp.ctx)
        leaves, structure = flatten(now, is_traced)
        if leaves and not isinstance(now, Undefined):
            _carry_option(known, name, value, now)
        if name not in known.changing and (leaves or structure != flatten(value)[1]):
            later = "something else" if isinstance(now, Undefined) else describe(now)
            interp.owned.let_fit(value, now)
            changed = Undefined(
                f"`{name}` is {describe(value)} before the loop and {later} after one iteration",
                _KEEPS_STRUCTURE
                if isinstance(value, (list, tuple, dict))
                else DATACLASS.format(type(now).__name__)
                if is_users_object(now) and type(now) is type(value)
                else f"give it a value of its final type before the loop, e.g. {name} = 0",
                span,
                TypeMismatch,
            )
            raise StartOver(known, changing={**known.changing, name: changed})


def _flags(outcome: Outcome, flags: list[Traced], interp: Interpreter) -> list[Any]:
    """The carried number that says how the loop was left, and the value that it returns."""
    numbers = {RETURN: _RETURNED, BREAK: _BROKE, CONTINUE: _GO_ON}
    leaves: list[Any] = flags[1:]
    if RETURN in exits_of(outcome):
        leaves, _ = flatten(value_of(outcome), is_traced)
    if not isinstance(outcome, Mixed):
        return [np.int32(numbers[exits_of(outcome)[0]]), *leaves]
    table = [_GO_ON, *(numbers[exit] for exit in outcome.exits)]
    is_same = table == list(range(len(table)))
    return [outcome.flow if is_same else interp.item(np.array(table, np.int32), outcome.flow), *leaves]


def _refuse_changed_containers(before: State, carrying: Carrying, span: Span | None) -> None:
    carried = {id(held_by(held.value)) for held in carrying.containers}
    for key, (container, held) in before.contents.items():
        if key in carried:
            continue
        pairs = zip(*(x.values() if isinstance(x, dict) else x for x in (container, held)), strict=False)
        changed = (
            container != held
            if isinstance(held, set)
            else any(a is not b and not isinstance(b, Joined) for a, b in pairs)
        )
        if len(container) != len(held) or changed:
            raise CaptureError(
                f"{name_of(container, before)}, {kind_of(container)} made before the loop, changes inside it",
                span,
                hint=LIST_IN_LOOP
                if isinstance(container, list)
                else "assign a new one to the variable: state = {**state, 'x': x}",
            )
