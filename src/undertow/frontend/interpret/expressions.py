"""Runs Python syntax during capture: names, operators and choices.

A handler returns a value, or a generator that yields what it needs evaluated and is sent the value back (`drive.py`).
Operations on traced values write nodes, all others simply run. `containers.py` adds containers and targets, `calls.py`
functions, `statements.py` and `branches.py` statements.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch, kind_of
from undertow.frontend.control.aliasing import Aliases, is_array
from undertow.frontend.control.changes import Changes
from undertow.frontend.control.merge import by_condition, force, merge
from undertow.frontend.control.ownership import Ownership
from undertow.frontend.control.restart import Halted
from undertow.frontend.control.state import (
    State,
    differing,
    join_effects,
    join_states,
    reached,
    refill,
    restore,
    save,
)
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret import handles
from undertow.frontend.interpret.comparing import compare_containers, contains_container, holds_traced
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.interpret.kinds import compares_to_false, contains, equal, is_same, refuse_sequence
from undertow.frontend.interpret.list_syntax import added, equal_lists, repeated
from undertow.frontend.interpret.list_syntax import contains as in_list
from undertow.frontend.interpret.operators import BINARY, COMPARE, UNARY
from undertow.frontend.interpret.options import among, holds_option, needed, reads_option, refuse_none, settled
from undertow.frontend.interpret.options import operate as operate_on_option
from undertow.frontend.interpret.options import truth as truth_of_option
from undertow.frontend.interpret.purity import refuse_foreign
from undertow.frontend.interpret.raising import or_absent
from undertow.frontend.interpret.special import UNARY as UNARY_METHODS
from undertow.frontend.interpret.special import of_operator, special, truth_of
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.objects.handle import Handle, Word, as_number
from undertow.frontend.syntax.queries import HINTS, is_plain, syntax_name
from undertow.frontend.syntax.source import Env, NoSource, Undefined, Unsure
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import ABSENT
from undertow.frontend.values.option import is_option
from undertow.frontend.values.text import TracedText
from undertow.frontend.values.traced import Context, Traced, read
from undertow.tracebacks import is_library_file
from undertow.types import bool_

_LOCAL_HINT = "assign it first; a name that is assigned anywhere in a function is local to that function"
MISSING = object()
# Types whose operators are ours, Python's or NumPy's: no object of the user's, nor of another library.
_KNOWN = frozenset((
    Traced, bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset, range, slice, type(None),
    np.ndarray, np.float64, np.float32, np.int64, np.int32, np.bool_,
))  # fmt: skip
_SINGLE = _KNOWN - {list, tuple, dict}
# Syntax -> handler; filled by the files that add handlers.
HANDLERS: dict[type, Any] = {}


class Expressions:
    """Evaluates names, operators and choices in environments. One per capture."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.depth = 0
        self.statics = 0  # how many `ut.static(...)` are being evaluated
        self.owned = Ownership(ctx)
        self.aliases = Aliases(ctx, self.owned)
        self.changes = Changes(ctx, self.aliases)
        self._spans: dict[tuple[ast.AST, str, int], Span] = {}  # a loop that is unrolled asks for the same ones

    def expr(self, node: ast.expr | ast.stmt, env: Env) -> Any:
        """Evaluate an expression, or run a statement without control flow: its value, or a generator for it."""
        handler = HANDLERS.get(type(node))
        if handler is None:
            hint = HINTS.get(type(node).__name__, "")
            raise CaptureError(f"{syntax_name(node)} cannot be captured", self.span(node, env), hint)
        return handler(self, node, env)

    def each(self, nodes: Iterable[ast.expr], env: Env) -> Work:
        """The values of expressions; starred ones are unpacked."""
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                starred = yield self.expr(node.value, env)
                if type(starred) not in _KNOWN:
                    starred = self.iterated(starred)
                    if hasattr(type(starred), "__next__"):
                        self.owned.change(starred, "")
                values.extend(starred)
            else:
                values.append((yield self.expr(node, env)))
        return values

    def span(self, node: ast.AST, env: Env) -> Span:
        key = node, env.closure.name, id(env.called_at)  # which is in here too, so that no other one has its id
        span = self._spans.get(key)
        if span is None:
            at: Any = node
            closure = env.closure
            span = self._spans[key] = Span(closure.file, at.lineno, at.col_offset + 1, closure.name, env.called_at)
        return span

    def at(self, node: ast.AST, env: Env) -> None:
        """Set the current place in the user's source."""
        self.ctx.span = self.span(node, env)

    def name(self, node: ast.Name, env: Env) -> Any:
        try:
            value = self.find(node.id, env)
        except CaptureError as fault:  # what is outside cannot be read
            fault.span = fault.span or self.span(node, env)
            raise
        if value is MISSING:
            raise CaptureError(
                f"`{node.id}` is not defined",
                self.span(node, env),
                hint=did_you_mean(node.id, _visible_names(env))
                or "define or import it before the first call; functions may be defined in any order",
                kind=NameError,
            )
        if isinstance(value, Unsure):
            self.at(node, env)
            value = value.read()
        elif isinstance(value, Undefined):
            raise value.error(self.span(node, env))
        elif is_option(value):
            return settled(value, self.ctx)
        # Here a generator object is a value, not work to be driven.
        return itertools.chain(value) if type(value) is GeneratorType else self.ctx.session.seen(value)

    def find(self, name: str, env: Env) -> Any:
        for around in env.outwards():
            if name in around.local:
                value = around.vars.get(name, MISSING)
                if value is MISSING:
                    return Undefined(f"`{name}` is used before it is assigned", _LOCAL_HINT)
                value = force(value, self.ctx)
                if around is not env:
                    self.ctx.session.note_reading(around, name, value)
                    self.owned.reads(value)
                return value
        closure, session = around.closure, self.ctx.session
        if name in closure.cells:
            try:
                return session.read_cell(closure.cells[name], name)
            except ValueError:
                return Undefined(
                    f"`{name}` is used before it is assigned", "assign it in the enclosing function before the call"
                )
        is_library = is_library_file(closure.file)
        if name in closure.globals:
            return session.read_global(closure.globals, name, is_library)
        session.miss_global(closure.globals, name, is_library)
        builtins = closure.globals.get("__builtins__", __builtins__)
        table = builtins if isinstance(builtins, dict) else vars(builtins)
        return table.get(name, MISSING)

    def bind(self, name: str, value: Any, env: Env) -> None:
        """Assign a variable; a value that was just computed takes its name."""
        while env.is_comprehension and name not in env.local and env.parent is not None:
            env = env.parent
        if isinstance(value, Traced) and value.builder is self.ctx.builder:
            value.builder.rename(value.port, name)
        env.vars[name] = value

    def binary(self, node: ast.BinOp, env: Env) -> Work:
        left = self.expr(node.left, env)
        if type(left) is GeneratorType:  # names and constants are there at once
            left = yield left
        right = self.expr(node.right, env)
        if type(right) is GeneratorType:
            right = yield right
        self.at(node, env)
        if isinstance(node.op, ast.Mult):
            for sequence, times in ((left, right), (right, left)):
                if type(sequence) is list and sequence and isinstance(times, Traced) and is_count(times):
                    return repeated(self, sequence, times)
            _refuse_repetition(left, right)
        if isinstance(node.op, ast.Mod) and isinstance(left, str):
            _refuse_filling(right)
        if left is not None is not right and type(left) in _KNOWN and type(right) in _KNOWN:
            value = BINARY[type(node.op)](left, right)
        else:
            value = yield self.operate(node.op, left, right)
        return value if type(value) is Traced else self.owned.adopt(value)

    def operate(self, op: ast.operator | ast.cmpop, left: Any, right: Any) -> Work:
        """An operator on operands one of which may be an object of the user's, whose methods are captured."""
        if is_option(left) or is_option(right):
            return (yield operate_on_option(self, op, left, right))
        if isinstance(left, handles.OURS) or isinstance(right, handles.OURS):
            if isinstance(op, (ast.Eq, ast.NotEq)) and not all(map(_is_number, (left, right))):
                holds = handles.equal(left, right)
                return holds if isinstance(op, ast.Eq) else _negated(holds)
            return (yield self.operate(op, *handles.operands(op, left, right)))
        if isinstance(left, GrowingList) or isinstance(right, GrowingList):
            if isinstance(op, (ast.Eq, ast.NotEq)):
                same = yield equal_lists(self, left, right)
                return same if isinstance(op, ast.Eq) else _negated(same)
            if isinstance(op, ast.Mult):
                return repeated(self, *((left, right) if isinstance(left, GrowingList) else (right, left)))
            if not isinstance(op, ast.Add):
                raise CaptureError(
                    "a list whose length is known only at run time can be added, repeated and compared with ==",
                    hint="loop over it, or make an array of it: np.array(items)",
                )
            return (yield added(self, left, right))
        forward, backward = of_operator(op)
        first, second = special(self.ctx.session, left, forward), special(self.ctx.session, right, backward)
        if isinstance(op, ast.operator) and type(left) is type(right):
            second = None  # Python does not ask it
        tries = [(first, left, right), (second, right, left)]
        if second is not None and type(right) is not type(left) and isinstance(right, type(left)):
            tries.reverse()
        if first is None and isinstance(left, np.ndarray):
            second = None  # NumPy decides
        if (
            isinstance(op, ast.NotEq)
            and first is None
            and second is None
            and special(self.ctx.session, left, "__eq__") is not None
        ):
            return _negated(self.truth((yield self.operate(ast.Eq(), left, right))))  # what `object` does
        if first is None and second is None:
            refuse_none(op, left, right, self.ctx)
            refuse_foreign(left, right)
            self.hold_objects(left, right)
            return BINARY[type(op)](left, right) if isinstance(op, ast.operator) else self.compared(op, left, right)
        for method, one, other in tries:
            if method is not None:
                value = yield self.call(method, [one, other], {})
                if value is not NotImplemented:
                    return value
        if isinstance(op, (ast.Eq, ast.NotEq)):
            return (left is right) == isinstance(op, ast.Eq)
        raise TypeError(f"unsupported operands: {type(left).__name__!r} and {type(right).__name__!r}")

    def collected(self, over: Any, function: Any = None) -> Work:
        raise NotImplementedError  # calls.py

    def go_back(self, checkpoint: Any, state: State, env: Env) -> None:
        raise NotImplementedError  # branches.py

    def call(self, function: Any, args: Any, kwargs: dict[str, Any], env: Env | None = None) -> Work:
        raise NotImplementedError  # calls.py

    def hold_objects(self, *values: Any) -> None:
        """Objects that code which is not captured gets to see: these, and no others, will do."""
        objects = tuple(value for value in values if type(value) not in _KNOWN)
        if objects:
            self.ctx.session.hold(objects)

    def unary(self, node: ast.UnaryOp, env: Env) -> Work:
        if isinstance(node.op, ast.Not):
            truth = yield self.condition(node.operand, env)
            self.at(node, env)
            return _negated(truth)
        value = as_number((yield self.expr(node.operand, env)))
        self.at(node, env)
        value = needed(value, self.ctx, "bad operand type for a unary operator: 'NoneType'")
        method = None if type(value) in _KNOWN else special(self.ctx.session, value, UNARY_METHODS[type(node.op)])
        if method is not None:
            return (yield self.call(method, [value], {}))
        refuse_foreign(value)
        self.hold_objects(value)
        result = UNARY[type(node.op)](value)
        # `+x` is a copy.
        return Traced(value.builder, value.port, value.is_weak) if result is value and is_array(value) else result

    def compare(self, node: ast.Compare, env: Env, index: int = 0, left: Any = None) -> Work:
        """A chain of comparisons; or, in a branch, the rest of it from `index` on, with its left side known."""
        if not index:
            left = yield self.expr(node.left, env)
        result: Any = True
        for at in range(index, len(node.ops)):
            truth = True if at == index else self.truth(result)
            if not isinstance(truth, Traced) and not truth:
                return result
            right = (yield self.expr(node.comparators[at], env)) if is_plain(node.comparators[at]) else MISSING
            if isinstance(truth, Traced) and not (type(left) in _KNOWN and type(right) in _KNOWN):
                # a < b < f(c): f(c) is evaluated only if a < b.
                rest = functools.partial(self.compare, node, env, at, left)
                return (yield self.choose(truth, rest, functools.partial(_itself, result), env))
            if right is MISSING:
                right = yield self.expr(node.comparators[at], env)
            self.at(node, env)
            op = node.ops[at]
            if is_option(left) or is_option(right):
                holds = yield operate_on_option(self, op, left, right)
            elif isinstance(op, (ast.In, ast.NotIn)) and holds_option(right):
                holds = yield self.contained(op, left, right)
            elif isinstance(op, (ast.Is, ast.IsNot)) or (type(left) in _KNOWN and type(right) in _KNOWN):
                refuse_none(op, left, right, self.ctx)
                holds = self.compared(op, left, right)
            elif not isinstance(op, (ast.In, ast.NotIn)):
                holds = yield self.operate(op, left, right)
            else:
                holds = yield self.contained(op, left, right)
            result = functions.logical_and(truth, holds) if isinstance(truth, Traced) else holds
            left = right
        return result

    def contained(self, op: ast.cmpop, left: Any, right: Any) -> Work:
        """`left in right`, or `not in`."""
        method = special(self.ctx.session, right, "__contains__")
        if method is not None:
            holds = self.truth((yield self.call(method, [right, left], {})))
            return holds if isinstance(op, ast.In) else _negated(holds)
        if holds_option(right):
            holds = yield among(self, right, left)
            return holds if isinstance(op, ast.In) else _negated(holds)
        if hasattr(type(right), "__next__"):
            self.owned.change(right, "")
        self.hold_objects(left, right)
        return self.compared(op, left, self.iterated(right))

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """A comparison that no class of the user's defines."""
        if isinstance(op, (ast.In, ast.NotIn)):
            right = read(right)
            if isinstance(left, handles.OURS) or isinstance(right, handles.OURS):
                holds = handles.contains(right, left)
            elif isinstance(right, GrowingList):
                holds = in_list(right, left)
            elif any(isinstance(v, (Traced, TracedText, TracedRange)) for v in (left, *_items(right))):
                holds = contains(right, left)
            elif holds_traced(left, right):
                see = self.ctx.session.seen_inside
                holds = contains_container(see(right), see(left), self.compared)
            else:
                holds = left in right
            return holds if isinstance(op, ast.In) else _negated(holds)
        if isinstance(op, (ast.Is, ast.IsNot)):
            if isinstance(left, handles.OURS) or isinstance(right, handles.OURS):
                holds = (handles.equal if any(map(_is_word, (left, right))) else handles.same)(left, right)
                return holds if isinstance(op, ast.Is) else _negated(holds)
            self.owned.refuse_identity(left, right)
            return is_same(left, right) is isinstance(op, ast.Is)
        if isinstance(op, (ast.Eq, ast.NotEq)):
            refuse_sequence(left, right)
            if compares_to_false(left, right):
                holds = equal(left, right)
                return holds if isinstance(op, ast.Eq) else _negated(holds)
        if type(left) not in _SINGLE and type(right) not in _SINGLE:
            see = self.ctx.session.seen_inside
            holds = compare_containers(op, see(left), see(right), self.compared)
            if holds is not NotImplemented:
                return holds
        return COMPARE[type(op)](left, right)

    def condition(self, node: ast.expr, env: Env) -> Work:
        """The truth of an expression, for `if`, `while` and `not`: a Python bool or a traced one."""
        if isinstance(node, ast.BoolOp):
            return (yield self.boolean(node, env, only_truth=True))
        value = yield self.expr(node, env)
        self.at(node, env)
        return self.truth(value)

    def boolean(self, node: ast.BoolOp, env: Env, only_truth: bool = False) -> Work:
        """`and` and `or` give one of their operands; if only its truth is needed, their types may differ."""
        is_and = isinstance(node.op, ast.And)
        evaluate = self.condition if only_truth else self.expr
        value = yield evaluate(node.values[0], env)
        for index, next_node in enumerate(node.values[1:], 1):
            self.at(node.values[index - 1], env)
            truth = self.truth(value)
            if not isinstance(truth, Traced):
                if truth is not is_and:
                    return value
                value = yield evaluate(next_node, env)
                continue
            if truth is value and is_plain(next_node) and not reads_option(next_node, env, self.ctx):
                other = yield evaluate(next_node, env)
                self.at(node, env)
                if isinstance(other, (bool, np.bool_)) or (isinstance(other, Traced) and other.dtype == bool_):
                    value = (functions.logical_and if is_and else functions.logical_or)(truth, other)
                    continue
            # The operand may fault, call or have no truth value: it runs in a branch, with all that follow it.
            return (yield self._rest_of_boolean(node, index, truth, value, evaluate, env))
        return value

    def _rest_of_boolean(
        self, node: ast.BoolOp, index: int, truth: Traced, value: Any, evaluate: Callable[..., Any], env: Env
    ) -> Work:
        rest = node.values[index:]
        tail: ast.expr = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), rest[0])
        self.at(node, env)
        go_on, stay = (lambda: evaluate(tail, env)), (lambda: settled(value, self.ctx))
        is_and = isinstance(node.op, ast.And)
        return self.choose(truth, go_on if is_and else stay, stay if is_and else go_on, env)

    def conditional(self, node: ast.IfExp, env: Env) -> Work:
        truth = yield self.condition(node.test, env)
        if not isinstance(truth, Traced):
            return (yield self.expr(node.body if truth else node.orelse, env))
        self.at(node, env)
        return (yield self.choose(truth, lambda: self.expr(node.body, env), lambda: self.expr(node.orelse, env), env))

    def truth(self, value: Any) -> bool | Traced:
        """What `if value` tests: a Python bool, or a traced bool scalar."""
        if isinstance(value, handles.OURS):
            value = handles.truth(value)
        value = settled(read(value), self.ctx)
        if is_option(value):
            holds: bool | Traced = truth_of_option(self, value)
            return holds
        if isinstance(value, GrowingList):
            is_filled: Traced = functions.not_equal(value.length, 0)
            return is_filled
        if type(value) not in _KNOWN and (method := truth_of(self.ctx.session, value)) is not None:
            value = drive(self.call(method, [value], {}))
        if not isinstance(value, Traced):
            self.hold_objects(value)
            return bool(value)
        if value.type.shape != ():
            raise TypeMismatch(
                f"the condition must be a single bool, not a {value.type}",
                hint="reduce it with ut.any(x) or ut.all(x), or choose per element with ut.where",
            )
        return value if value.dtype == bool_ else functions.not_equal(value, 0)

    def choose(self, pred: Traced, then: Callable[[], Any], other: Callable[[], Any], env: Env | None) -> Work:
        """The value of `then` or `other`, chosen at run time: both are captured, each in a branch."""
        ctx, builder, span = self.ctx, self.ctx.open_builder, self.ctx.span
        regions = builder.branch(ctx.session.resolve(pred))
        scratch = env or Env(_NOWHERE, frozenset(), None)
        before = self.save(scratch)
        a, after_a = yield self.on_side(regions[0], before, lambda: or_absent(then, ctx), scratch)
        b, after_b = yield self.on_side(regions[1], before, lambda: or_absent(other, ctx), scratch)
        ctx.span = span
        self.changes.join(after_a.arrays, after_b.arrays, regions, span)
        a, b = self.values_of(a, b, after_a, after_b)
        join_states(before, after_a, after_b, regions, scratch, ctx)
        join_effects(before, [after_a.effect, after_b.effect], regions, builder)
        if a is ABSENT and b is ABSENT:
            raise Halted
        return merge(a, b, regions, ctx, "", span, by_condition("this expression", span))

    def values_of(self, a: Any, b: Any, after_a: State, after_b: State) -> tuple[Any, Any]:
        """The values that two sides of a branch give, with what their containers hold at the end of each."""
        if a is b:
            return a, b
        differ = differing(after_a, after_b)
        if differ.isdisjoint(reached(a, after_a) | reached(b, after_b)):
            return a, b
        copies: list[Any] = []
        for value, after in ((a, after_a), (b, after_b)):
            refill(after)
            copies.append(self.owned.copied(value))
        return copies[0], copies[1]

    def on_side(self, region: int, state: State, work: Callable[[], Any], env: Env) -> Work:
        """Run one side of a branch from a state: its result, and the state afterwards."""
        builder = self.ctx.open_builder
        outside, builder.region = builder.region, region
        self.restore(state, env)
        self.owned.states.append(state)
        try:
            value = yield work()
            return value, self.save(env)
        finally:
            self.owned.states.pop()
            builder.region = outside

    def save(self, env: Env) -> State:
        """The current state, to which a branch or a loop may return."""
        state = self.owned.mark(save(env, self.ctx.open_builder, self.owned.has))
        state.arrays = self.changes.now()
        return state

    def restore(self, state: State, env: Env) -> None:
        """Go back to a state."""
        restore(state, env, self.ctx.open_builder)
        self.changes.go_back(state.arrays)

    def iterated(self, value: Any) -> Any:
        """What a loop over an object of the user's runs over; anything else as it is."""
        value = needed(value, self.ctx, "'NoneType' object is not iterable")
        method = None if type(value) in _KNOWN else special(self.ctx.session, value, "__iter__")
        return value if method is None else drive(self.call(method, [value], {}))


# -- shared by the handlers --------------------------------------------------------------------------------


def _itself(value: Any) -> Any:
    return value


def _is_number(value: Any) -> bool:
    """Is it a number, beside which an object is one, too?"""
    return isinstance(value, (Traced, bool, int, float, np.generic)) or (
        isinstance(value, Handle) and all(k.form == "value" and k.python is not str for k in value.possible)
    )


def _is_word(value: Any) -> bool:
    return isinstance(value, Word)


def _negated(truth: Any) -> Any:
    return functions.logical_not(truth) if isinstance(truth, (Traced, np.ndarray)) else not truth


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple, set, frozenset, dict)) else (value,)


def is_count(value: Traced) -> bool:
    return not value.type.shape and value.dtype.kind in ("int", "bool")


def _refuse_repetition(left: Any, right: Any) -> None:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, (list, tuple, str)) and isinstance(times, Traced) and not times.type.shape:
            raise CaptureError(
                f"{kind_of(sequence)} cannot be repeated a traced number of times",
                hint="use an array: ut.zeros(n), ut.full(n, value)",
            )


def _refuse_filling(values: Any) -> None:
    for value in values if isinstance(values, tuple) else values.values() if isinstance(values, dict) else (values,):
        if isinstance(value, (Traced, TracedText)):
            raise CaptureError(
                "`%` cannot fill a traced value into a text", hint='write an f-string: f"{x:.2f}" instead of "%.2f" % x'
            )


def did_you_mean(name: str, known: Iterable[str], before: str = "") -> str:
    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("__")], 1, 0.7)
    return f"did you mean `{before}{close[0]}`?" if close else ""


def _visible_names(env: Env) -> list[str]:
    *_, outermost = around = list(env.outwards())
    held = dict.fromkeys(name for scope in around for name in sorted(scope.vars))
    return [*held, *outermost.closure.cells, *outermost.closure.globals, *dir(builtins)]


_NOWHERE = NoSource("", inspect.Signature(), Span("", 1))
HANDLERS.update({
    ast.Constant: lambda _, node, env: node.value, ast.Name: Expressions.name, ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary, ast.Compare: Expressions.compare, ast.BoolOp: Expressions.boolean,
    ast.IfExp: Expressions.conditional,
})  # fmt: skip
