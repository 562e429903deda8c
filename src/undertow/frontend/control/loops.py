"""Loops whose condition is traced become `loop` nodes, with a graph of their own for the body.

The variables that the body assigns are carried from one iteration to the next; what it only reads from outside
is lifted into invariants. `break` and `return` inside become a carried number that says how the loop was left.
A body is captured again when a first attempt shows that a variable needs a wider type, or that the loop is
left early, draws random numbers or acts on the world.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch
from undertow.frontend.control.flow import (
    Joined,
    NeedWider,
    State,
    ask_wider,
    describe,
    force,
    leaf_type,
    name_of,
    port_in,
    restore,
    save,
)
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.expressions import ours
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.interpret.statements import (
    RETURN,
    Cell,
    End,
    Leave,
    Mixed,
    Outcome,
    Return,
    StatementInterpreter,
    cells,
    exits_of,
)
from undertow.frontend.syntax.queries import is_plain
from undertow.frontend.syntax.source import Env, Undefined, assigned_names
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.traced import Traced, cast, emit, operand
from undertow.frontend.values.tree import LEAF, Structure, flatten, unflatten
from undertow.ir.graph import Attrs, Const, Port
from undertow.types import CTL, Type, i32, i64, join, promote, said, weak_dtype

BREAK, CONTINUE = Leave(True), Leave(False)
_GO_ON, _RETURNED, _BROKE = 0, 1, 2


class NeedFeature(Exception):
    """The body that this builder writes needs an effect token or a random key: capture it again with one."""

    def __init__(self, builder: Builder, feature: str) -> None:
        self.builder = builder
        self.feature = feature


class ActingTest(Exception):
    """The test of a loop acts on the world. What the last test did must not be lost, so it belongs into the body."""


class _LeftEarly(Exception):
    """The body breaks or returns: capture it again with a carried number that says so."""

    def __init__(self, exits: tuple[Any, ...], value: Any, span: Span | None) -> None:
        self.exits = exits
        self.value = value
        self.span = span  # of the `return`, if there is one


class _Changes(Exception):
    """A variable that holds no value of the graph (None, a string) is another after one iteration."""

    def __init__(self, name: str, after: Any) -> None:
        self.name = name
        self.after = after


def is_weak(value: Any) -> bool:
    """A Python number, which takes the dtype of what it meets."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def graph_loop(
    interp: StatementInterpreter,
    initial: list[Any],
    names: list[str],
    header: Callable[[list[Traced]], Work],
    body: Callable[[list[Traced]], Work],
) -> Work:
    """Write a `loop` node: `header` gives the condition, `body` the next values of the carried leaves."""
    ctx = interp.ctx
    parent, span, session = ctx.open_builder, ctx.span, ctx.session
    types = [leaf_type(value) for value in initial]
    features: list[str] = []
    keys: list[Traced] = []  # the key of this loop in the parent, once drawn

    def attempt() -> Work:
        """The loop's graph, what it was lifted from and its hidden initial values; None if more must be known."""
        ctx.span = span
        inner = Builder(
            session.fresh_name(f"{parent.name}.loop"), "loop", span, context=parent.context, device=parent.device
        )
        params = [Traced(inner, inner.param(t, n)) for t, n in zip(types, names, strict=True)]
        inner.weak = {p.port: (n, v) for p, n, v in zip(params, names, initial, strict=True) if is_weak(v)}
        extras: list[Any] = []
        counter: Traced | None = None
        try:
            if "effect" in features:
                extras.append(Traced(parent, session.effect_token()))
                inner.effect = inner.param(CTL, "effect")
            if "key" in features:
                if not keys:
                    keys.append(session.draw())
                extras.append(np.int64(0))
                counter = Traced(inner, inner.param(Type(i64), "round"))
            ctx.builder = inner
            if counter is not None:
                inner.key = emit("fold_in", [keys[0], counter])[0].port
            entered = inner.effect
            pred = yield header(params)
            if inner.effect != entered:
                raise ActingTest
            port = session.resolve(pred)
            then, _ = inner.branch(port)
            inner.region = then
            values = yield body(params)
            ctx.span = span
            wider = [_widen(*row) for row in zip(names, initial, types, values, strict=True)]
            if wider != types:
                types[:] = wider
                return None
            nexts = [port_in(v, then, ctx, t.dtype) for v, t in zip(values, types, strict=True)]
            if "effect" in features:
                assert inner.effect is not None
                nexts.append(inner.use(inner.effect, then))
            if counter is not None:
                nexts.append(session.resolve(emit("add", [counter, np.int64(1)])[0]))
            return inner.finish([port, *nexts], carried=len(nexts)), list(inner.lifted), extras
        except NeedFeature as need:
            if need.builder is not inner:
                raise
            features.append(need.feature)
            return None
        except NeedWider as need:
            if need.builder is not inner:
                raise
            types[inner.params.index(need.port.node)] = Type(need.dtype)
            return None
        finally:
            # The span stays where an error happened.
            ctx.builder = parent
            inner.is_open = False

    while (made := (yield attempt())) is None:
        pass
    graph, lifted, extras = made
    session.graphs[graph.name] = graph
    operands = [_start(v, t) for v, t in zip(initial, types, strict=True)]
    operands += [operand(extra) for extra in extras]
    operands += [operand(Traced(*outer)) for outer in lifted]
    outputs = tuple(graph.nodes[p].types[0] for p in graph.params[: graph.carried])
    number = parent.add("loop", operands, outputs, Attrs(body=graph.name), span, name="loop")
    results = [Traced(parent, Port(number, k)) for k in range(len(outputs))]
    if "effect" in features:
        parent.effect = results[len(types)].port
    return results[: len(types)]


def _start(value: Any, type: Type) -> Any:
    if isinstance(value, Traced):
        return operand(value)
    return Const(cast(value, type.dtype))


def _widen(name: str, initial: Any, type: Type, value: Any) -> Type:
    """The type that a carried variable must have to hold its next value too."""
    called = f"`{name}`" if name else "a loop variable"
    if is_weak(value):
        found = Type(weak_dtype(value, type.dtype))
        if type.shape != ():
            found = found.with_dtype(type.dtype)
    else:
        found = leaf_type(value)
    if found.dtype != type.dtype and is_weak(initial):
        wider = promote(found.dtype, type.dtype)
        if found.rank == 0 and wider == weak_dtype(initial, wider):
            return Type(wider)
    both = join(type, found)
    if both is None:
        if found.rank == 0:
            ask_wider(name, initial, found.dtype)
        shown = describe(initial)
        if type.rank == found.rank:
            hint = (
                f"give it its final dtype before the loop: {name or 'x'} = ut.astype({name or 'x'}, ut.{found.dtype})"
            )
        else:
            hint = "a loop variable keeps its number of dimensions: give the result of the iteration another name"
        raise TypeMismatch(f"{called} is {shown} before the loop and {said(found)} after one iteration", hint=hint)
    return both


@dataclass(slots=True, eq=False)
class _Carried:
    """The variables that a loop carries, and how their leaves lie in the list of carried values."""

    names: list[str] = field(default_factory=list)
    structures: list[Structure] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    leaves: list[Any] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)

    def put(self, values: list[Any], env: Env) -> None:
        at = 0
        for name, structure, count in zip(self.names, self.structures, self.counts, strict=True):
            env.vars[name] = unflatten(structure, values[at : at + count])
            at += count

    def take(self, env: Env, interp: StatementInterpreter, span: Span | None) -> list[Any]:
        found: list[Any] = []
        at = 0
        for name, structure in zip(self.names, self.structures, strict=True):
            value = force(env.vars.get(name), interp.ctx)
            if isinstance(value, Undefined):
                raise value.error(span)
            leaves, after = flatten(value, lambda v: isinstance(v, Traced))
            if after != structure:
                count = sum(token == LEAF for token in structure)
                first = unflatten(structure, self.leaves[at : at + count])
                raise TypeMismatch(
                    f"`{name}` is {describe(first)} before the loop and {describe(value)} after one iteration",
                    span,
                    hint=_KEEPS_STRUCTURE,
                )
            at += len(leaves)
            found += leaves
        return found


_KEEPS_STRUCTURE = "a loop variable keeps its structure; to make a value for each iteration use ut.map"


def _carry(names: set[str], env: Env, interp: StatementInterpreter) -> _Carried:
    carried = _Carried()
    for name in sorted(names & env.vars.keys()):
        value = force(env.vars[name], interp.ctx)
        if isinstance(value, Undefined):
            continue
        leaves, structure = flatten(value, lambda v: isinstance(v, Traced))
        if not leaves:
            continue
        carried.names.append(name)
        carried.structures.append(structure)
        carried.counts.append(len(leaves))
        carried.leaves += leaves
        carried.labels += [name] if len(leaves) == 1 else [f"{name}.{k}" for k in range(len(leaves))]
    return carried


def while_loop(interp: StatementInterpreter, node: ast.While, after: Cell | None, env: Env) -> Work:
    """`while` with a traced condition, or left on one."""
    before = save(env, interp.ctx.open_builder)

    def loop(node: ast.While) -> Work:
        test = lambda _: interp.condition(node.test, env)  # noqa: E731
        return (yield _statement_loop(interp, node, [], [], test, lambda _: None, lambda _: [], after, env))

    if not assigned_names([ast.Expr(node.test)]):
        try:
            return (yield loop(node))
        except ActingTest:
            restore(before, env, interp.ctx.open_builder)
    # A test that assigns or acts: `while True: if not test: break`.
    leave = ast.If(ast.UnaryOp(ast.Not(), node.test), [ast.Break()], [])
    endless = ast.While(ast.Constant(True), [leave, *node.body], node.orelse)
    for made in (leave, leave.test, leave.body[0], endless.test):
        ast.copy_location(made, node.test)
    return (yield loop(ast.copy_location(endless, node)))


def for_loop(interp: StatementInterpreter, node: ast.For, over: TracedRange, after: Cell | None, env: Env) -> Work:
    """`for ... in range(...)` with traced bounds."""
    if not isinstance(node.target, ast.Name):
        raise CaptureError(
            "a loop over a range with traced bounds has one variable",
            interp.span(node.target, env),
            hint="write `for i in range(n):`",
        )
    bounds = [over.start, over.stop, over.step]
    dtype = next(b.dtype for b in bounds if isinstance(b, Traced))
    for bound in bounds:
        if isinstance(bound, Traced):
            dtype = promote(dtype, bound.dtype)
    start = over.start if isinstance(over.start, Traced) else dtype.numpy.type(over.start)
    start = ours("astype")(start, dtype)
    target = node.target.id

    def test(leaves: list[Traced]) -> Work:
        less, greater = ours("less"), ours("greater")
        if not isinstance(over.step, Traced):
            return (less if over.step > 0 else greater)(leaves[0], over.stop)
        up, down = less(leaves[0], over.stop), greater(leaves[0], over.stop)
        return ours("where")(greater(over.step, 0), up, down)
        yield

    def enter(leaves: list[Traced]) -> None:
        env.vars[target] = leaves[0]

    if not isinstance(over.step, Traced) and over.step == 0:
        raise CaptureError(
            "the step of a range must not be zero", interp.span(node.iter, env), hint="leave it out for a step of 1"
        )
    if isinstance(over.step, Traced):
        ours("assert_")(ours("not_equal")(over.step, 0), "the step of a range is zero, and must not be")
    step = lambda leaves: [ours("add")(leaves[0], over.step)]  # noqa: E731
    return (yield _statement_loop(interp, node, [start], [target], test, enter, step, after, env))


def array_loop(interp: StatementInterpreter, node: ast.For, over: Traced, after: Cell | None, env: Env) -> Work:
    """`for ... in array` where the length is known only at run time: element by element, in order."""
    if not isinstance(node.target, ast.Name):
        raise CaptureError(
            "a loop over an array whose length is known only at run time has one variable",
            interp.span(node.target, env),
            hint="write `for row in array:` and take `row` apart in the loop",
        )
    length, target = over.shape[0], node.target.id

    def test(leaves: list[Traced]) -> Work:
        return ours("less")(leaves[0], length)
        yield

    def enter(leaves: list[Traced]) -> None:
        env.vars[target] = over[leaves[0]]

    step = lambda leaves: [ours("add")(leaves[0], 1)]  # noqa: E731
    return (yield _statement_loop(interp, node, [np.int64(0)], [f"{target}.index"], test, enter, step, after, env))


def _statement_loop(
    interp: StatementInterpreter,
    node: ast.While | ast.For,
    own: list[Any],  # carried values of the loop itself: the index of a `for`
    own_names: list[str],
    test: Callable[[list[Traced]], Work],
    enter: Callable[[list[Traced]], None],
    step: Callable[[list[Traced]], list[Any]],
    after: Cell | None,
    env: Env,
) -> Work:
    ctx = interp.ctx
    if node.orelse:
        raise CaptureError(
            "`else` of a loop whose length is known only at run time cannot be captured",
            interp.span(node, env),
            hint="set a variable before `break`, and test it after the loop",
        )
    interp.at(node, env)
    span = ctx.span
    assigned = assigned_names(node.body) | assigned_names([ast.Expr(node.test)] if isinstance(node, ast.While) else [])
    if isinstance(node, ast.For):
        assigned |= assigned_names([ast.Assign([node.target], node.iter)])
    # The variable of a `for` is carried too, where it has a value that it keeps if the loop never runs.
    kept = {name for name, value in zip(own_names, own, strict=True) if _fits(env.vars.get(name), value, interp)}
    carried = _carry((assigned - set(own_names)) | kept, env, interp)
    before = save(env, ctx.open_builder)
    fixed = _fixed(assigned - set(own_names) - set(carried.names), env, interp)
    changing: dict[str, Undefined] = {}
    early: _LeftEarly | None = None
    endless = False
    while True:
        value_leaves: list[Any] = []
        value_structure: Structure = ()
        if early is not None and RETURN in early.exits:
            leaves, value_structure = flatten(early.value, lambda v: isinstance(v, Traced))
            value_leaves = [_zero(leaf_type(leaf)) for leaf in leaves]
        flags = [] if early is None else [np.int32(_GO_ON), *value_leaves]
        initial = [*own, *carried.leaves, *flags]
        names = [*own_names, *carried.labels, *(["flow"] if flags else []), *(["value"] * len(value_leaves))]
        first, last = len(own), len(own) + len(carried.leaves)

        def header(
            params: list[Traced], flagged: bool = early is not None, first: int = first, last: int = last
        ) -> Work:
            nonlocal endless
            env.vars = {**before.vars, **changing}
            carried.put(params[first:last], env)
            if not flagged:
                truth = yield test(params)
            else:
                going = ours("equal")(params[last], _GO_ON)
                if _may_end(node) and not (isinstance(node, ast.For) or is_plain(node.test)):
                    truth = yield interp.choose(going, lambda: test(params), _no, env)
                else:
                    truth = yield test(params)
                    truth = ours("logical_and")(going, truth) if isinstance(truth, Traced) else truth
                if not isinstance(truth, Traced):
                    endless = True
                    truth = going
            if not isinstance(truth, Traced):
                if not truth:
                    raise CaptureError("this loop never runs", span)
                # Python's `while True`: it must be left from inside, which the body will tell.
                endless = True
                truth = Traced(ctx.open_builder, ctx.open_builder.gate(Const(np.True_), span))
            return truth

        def body(params: list[Traced], flagged: bool = early is not None, first: int = first, last: int = last) -> Work:
            enter(params)
            outcome: Outcome = yield interp.run(cells(node.body, Cell(End(), None)), None, env)
            _refuse_changed_containers(before, span)
            if not isinstance(outcome, Return):
                _refuse_changed_names(fixed, changing, env, interp)
            nexts = [*step(params), *carried.take(env, interp, span)]
            exits = exits_of(outcome)
            if set(exits) <= {CONTINUE}:
                return nexts + (params[last:] if flagged else [])
            if not flagged:
                raise _LeftEarly(exits, getattr(outcome, "value", None), getattr(outcome, "span", None))
            return nexts + _flags(outcome, params[last:], interp)

        try:
            restore(before, env, ctx.open_builder)
            ctx.span = span
            results = yield graph_loop(interp, initial, names, header, body)
        except _LeftEarly as fault:
            early = fault
            continue
        except _Changes as fault:
            changing[fault.name] = _changed(fault.name, fixed[fault.name], fault.after, span)
            continue
        break
    if early is None and endless:
        raise CaptureError(
            "this loop never ends: nothing in it breaks or returns", span, hint="leave it with `break` or `return`"
        )
    env.vars = {**before.vars, **changing}
    for name in assigned | set(own_names):
        if name not in carried.names and name not in fixed and name in env.local:
            env.vars[name] = Undefined(
                f"`{name}` is assigned only inside a loop that may not run", "assign it before the loop too"
            )
    carried.put(results[first:last], env)
    if early is None or RETURN not in early.exits:
        return None, after
    value = unflatten(value_structure, results[last + 1 :])
    if endless and BREAK not in early.exits:
        return Return(value, early.span), after
    flow = results[last]
    if BREAK in early.exits:
        flow = ours("astype")(ours("equal")(flow, _RETURNED), i32)
    return Mixed(flow, (RETURN,), value, True, early.span), after


def _fits(before: Any, value: Any, interp: StatementInterpreter) -> bool:
    """Can what a variable held before be taken for a value of the loop?"""
    held = force(before, interp.ctx)
    if is_weak(held):
        return weak_dtype(held, leaf_type(value).dtype) == leaf_type(value).dtype
    return isinstance(held, Traced) and held.type == leaf_type(value)


def _fixed(names: set[str], env: Env, interp: StatementInterpreter) -> dict[str, Any]:
    """Variables that hold something else than values of a graph: None, a string, a function."""
    held = {name: force(env.vars[name], interp.ctx) for name in sorted(names & env.vars.keys())}
    return {name: value for name, value in held.items() if not isinstance(value, Undefined)}


def _refuse_changed_names(
    fixed: dict[str, Any], changing: dict[str, Undefined], env: Env, interp: StatementInterpreter
) -> None:
    """A variable without a value of the graph must be the same in every iteration, or not be read in the next."""
    for name, value in fixed.items():
        now = force(env.vars.get(name, Undefined("")), interp.ctx)
        leaves, structure = flatten(now, lambda v: isinstance(v, Traced))
        if name not in changing and (leaves or structure != flatten(value)[1]):
            raise _Changes(name, now)


def _changed(name: str, value: Any, after: Any, span: Span | None) -> Undefined:
    later = "something else" if isinstance(after, Undefined) else describe(after)
    return Undefined(
        f"`{name}` is {describe(value)} before the loop and {later} after one iteration",
        _KEEPS_STRUCTURE
        if isinstance(value, (list, tuple, dict))
        else f"give it a value of its final type before the loop, e.g. {name} = 0",
        span,
        TypeMismatch,
    )


def _may_end(node: ast.While | ast.For) -> bool:
    """Is the loop's own condition more than `True`?"""
    return isinstance(node, ast.For) or not (isinstance(node.test, ast.Constant) and bool(node.test.value))


def _no() -> Work:
    return False
    yield


def _zero(type: Type) -> Any:
    return np.zeros([d if isinstance(d, int) else 0 for d in type.shape], type.dtype.numpy)[()]


def _flags(outcome: Outcome, flags: list[Traced], interp: StatementInterpreter) -> list[Any]:
    """How the loop was left after this iteration, and with what value."""
    numbers = {RETURN: _RETURNED, BREAK: _BROKE, CONTINUE: _GO_ON}
    if isinstance(outcome, Return):
        leaves, _ = flatten(outcome.value, lambda v: isinstance(v, Traced))
        return [np.int32(_RETURNED), *leaves]
    if isinstance(outcome, Leave):
        return [np.int32(numbers[outcome]), *flags[1:]]
    assert isinstance(outcome, Mixed)
    table = [_GO_ON, *(numbers[exit] for exit in outcome.exits)]
    leaves = flags[1:]
    if RETURN in outcome.exits:
        leaves, _ = flatten(outcome.value, lambda v: isinstance(v, Traced))
    is_same = table == list(range(len(table)))
    return [outcome.flow if is_same else interp.item(np.array(table, np.int32), outcome.flow), *leaves]


def _refuse_changed_containers(before: State, span: Span | None) -> None:
    for container, held in before.contents.values():
        values = (
            zip(container.values(), held.values(), strict=False)
            if isinstance(container, dict)
            else zip(container, held, strict=False)
        )
        changed = any(a is not b and not isinstance(b, Joined) for a, b in values)
        if len(container) != len(held) or (container != held if isinstance(held, set) else changed):
            raise CaptureError(
                f"{name_of(container, before)}, a {type(container).__name__} made before the loop, changes inside it",
                span,
                hint="to make a value for each iteration use ut.map, which gives an array"
                if isinstance(container, list)
                else "assign a new one to the variable instead: state = {**state, 'x': x}",
            )
