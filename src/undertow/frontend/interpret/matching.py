"""`match`: each case is an `if` whose test asks the pattern, binds its names, and asks the guard.

What a pattern asks of the structure of a value (its class, its length, its keys) is known at capture; numbers in it may
be known only at run time, and then the truth of the pattern is, too.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

from undertow.errors import CaptureError
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret import handles
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.kinds import is_same
from undertow.frontend.interpret.options import settled
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.interpret.written import Computed, do
from undertow.frontend.objects.handle import Handle
from undertow.frontend.syntax.source import Env
from undertow.frontend.values.option import is_option
from undertow.frontend.values.traced import Traced, has_traced

Bound = dict[str, Any]  # the names of a pattern, and what they hold where it matches
Match = tuple[Any, Bound]  # does it match: a bool, or a traced one
# Classes whose only positional pattern is about the whole value.
_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
_NO: Match = (False, {})
# Patterns that None may match, as anything else may.
_ANY = (ast.MatchAs, ast.MatchOr)


def as_branches(interp: Interpreter, node: ast.Match, subject: Any, env: Env) -> list[ast.stmt]:
    """A `match` as `if`/`elif`."""
    rest: list[ast.stmt] = []
    for case in reversed(node.cases):
        bound: Bound = {}
        test = Computed(partial(_test, interp, case, subject, bound, env), case.pattern)
        bind = do(partial(_bind, interp, bound, env), case.pattern)
        rest = [ast.copy_location(ast.If(test, [bind, *case.body], rest), case.pattern)]
    return rest


def _bind(interp: Interpreter, bound: Bound, env: Env) -> None:
    for name, value in bound.items():
        interp.bind(name, value, env)


def _test(interp: Interpreter, case: ast.match_case, subject: Any, bound: Bound, env: Env) -> Work:
    truth, names = yield _match(interp, case.pattern, subject, env)
    bound.clear()
    bound.update(names)
    if case.guard is None or truth is False:
        return truth

    def guard() -> Work:
        _bind(interp, bound, env)
        assert case.guard is not None
        return (yield interp.condition(case.guard, env))

    if truth is True:
        return (yield guard())
    interp.at(case.guard, env)
    return (yield interp.choose(truth, guard, lambda: False, env))


def _match(interp: Interpreter, pattern: ast.pattern, value: Any, env: Env) -> Work:
    """Does the value match, and what do the names of the pattern hold then?"""
    interp.at(pattern, env)
    value = settled(value, interp.ctx)
    if is_option(value) and not isinstance(pattern, _ANY):
        if isinstance(pattern, ast.MatchSingleton) and pattern.value is None:
            return functions.logical_not(value.is_there), {}
        truth, names = yield _match(interp, pattern, value.value, env)
        return (truth if truth is False else functions.logical_and(value.is_there, truth)), names
    if isinstance(pattern, ast.MatchValue):
        wanted = yield interp.expr(pattern.value, env)
        interp.at(pattern, env)
        return interp.truth((yield interp.operate(ast.Eq(), value, wanted))), {}
    if isinstance(pattern, ast.MatchSingleton):
        if isinstance(value, Traced) and isinstance(pattern.value, bool):
            raise CaptureError(
                f"whether this is the object {pattern.value} depends on the caller",
                hint=f"test it with `if`, or with a guard: `case x if {'x' if pattern.value else 'not x'}:`",
            )
        if isinstance(value, Handle):
            return handles.same(value, pattern.value), {}
        interp.owned.refuse_identity(value, pattern.value)
        return is_same(value, pattern.value), {}
    if isinstance(pattern, ast.MatchAs):
        truth, bound = (True, {}) if pattern.pattern is None else (yield _match(interp, pattern.pattern, value, env))
        return truth, bound if pattern.name is None else {**bound, pattern.name: value}
    if isinstance(pattern, ast.MatchOr):
        return (yield _alternatives(interp, pattern.patterns, value, env))
    if isinstance(pattern, ast.MatchSequence):
        return (yield _sequence(interp, pattern, value, env))
    if isinstance(pattern, ast.MatchMapping):
        return (yield _mapping(interp, pattern, value, env))
    assert isinstance(pattern, ast.MatchClass)
    return (yield _instance(interp, pattern, value, env))


def _all(interp: Interpreter, parts: Sequence[tuple[ast.pattern, Any]], env: Env) -> Work:
    """Do all of some values match?"""
    truth: Any = True
    names: Bound = {}
    for pattern, value in parts:
        holds, bound = yield _match(interp, pattern, value, env)
        if holds is False:
            return _NO
        truth = holds if truth is True else truth if holds is True else functions.logical_and(truth, holds)
        names.update(bound)
    return truth, names


def _alternatives(interp: Interpreter, patterns: Sequence[ast.pattern], value: Any, env: Env) -> Work:
    """The first alternative that matches binds the names: all of them bind the same."""
    truth, names = _NO
    for pattern in patterns:
        holds, bound = yield _match(interp, pattern, value, env)
        if holds is False:
            continue
        if truth is False:
            truth, names = holds, bound
        else:
            if names:
                held = yield interp.choose(truth, partial(_values, names, names), partial(_values, bound, names), env)
                names = dict(zip(names, held, strict=True))
            truth = True if holds is True else functions.logical_or(truth, holds)
        if truth is True:
            break
    return truth, names


def _values(bound: Bound, names: Bound) -> tuple[Any, ...]:
    return tuple(bound[name] for name in names)


def _sequence(interp: Interpreter, pattern: ast.MatchSequence, value: Any, env: Env) -> Work:
    if isinstance(value, TracedRange):
        raise CaptureError(
            "the length of this range is known only at run time", hint="match its bounds, or loop over it"
        )
    if isinstance(value, Handle):
        truth, value = handles.as_sequence(value, len(pattern.patterns))
        return (yield _where(truth, _sequence(interp, pattern, value, env)))
    if not isinstance(value, (Sequence, deque)) or isinstance(value, (str, bytes, bytearray)):
        return _NO  # an array is no sequence
    items = list(interp.iterate(value, interp.span(pattern, env)))
    patterns = pattern.patterns
    star = next((n for n, part in enumerate(patterns) if isinstance(part, ast.MatchStar)), None)
    if star is None:
        if len(items) != len(patterns):
            return _NO
        return (yield _all(interp, list(zip(patterns, items, strict=True)), env))
    tail = len(patterns) - star - 1
    if len(items) < star + tail:
        return _NO
    split = len(items) - tail
    parts = [*zip(patterns[:star], items[:star], strict=True), *zip(patterns[star + 1 :], items[split:], strict=True)]
    truth, names = yield _all(interp, parts, env)
    starred = patterns[star]
    assert isinstance(starred, ast.MatchStar)
    if starred.name is not None and truth is not False:
        names[starred.name] = interp.owned.own(items[star:split])
    return truth, names


def _mapping(interp: Interpreter, pattern: ast.MatchMapping, value: Any, env: Env) -> Work:
    if isinstance(value, Handle):
        raise CaptureError("a pattern of keys cannot be matched here", hint='read the entries: x["key"]')
    if not isinstance(value, dict):
        return _NO
    keys: list[Any] = []
    for node in pattern.keys:
        key = yield interp.expr(node, env)
        if has_traced(key):
            raise CaptureError(
                "a key of a pattern must be known at capture time", interp.span(node, env), "match a constant"
            )
        if key not in value:
            return _NO
        keys.append(key)
    parts = [(part, interp.item(value, key)) for key, part in zip(keys, pattern.patterns, strict=True)]
    truth, names = yield _all(interp, parts, env)
    if pattern.rest is not None and truth is not False:
        names[pattern.rest] = interp.owned.own({k: v for k, v in value.items() if k not in keys})
    return truth, names


def _instance(interp: Interpreter, pattern: ast.MatchClass, value: Any, env: Env) -> Work:
    kind = yield interp.expr(pattern.cls, env)
    interp.at(pattern, env)
    if not isinstance(kind, type):
        raise CaptureError("a pattern with parentheses names a class", hint="write the class, as in `case int():`")
    holds: Any = yield interp.call(isinstance, [value, kind], {}, env)
    if holds is False:
        return _NO
    if isinstance(value, Handle):
        value = handles.where_instance(value, kind, holds)
    names = list(pattern.kwd_attrs)
    patterns = [*pattern.patterns, *pattern.kwd_patterns]
    if pattern.patterns:
        if kind in _WHOLE and len(pattern.patterns) == 1 and not names:
            return (yield _where(holds, _match(interp, pattern.patterns[0], value, env)))
        order = getattr(kind, "__match_args__", ())
        if len(pattern.patterns) > len(order):
            most = f"{len(order)} positional sub-pattern{'' if len(order) == 1 else 's'}"
            raise CaptureError(
                f"{kind.__name__}() accepts {most}, but this has {len(pattern.patterns)}",
                hint="name the attributes: `case Point(x=0, y=y):`",
                kind=TypeError,
            )
        names = [*order[: len(pattern.patterns)], *names]
    parts: list[tuple[ast.pattern, Any]] = []
    for name, part in zip(names, patterns, strict=True):
        interp.at(part, env)
        if not isinstance(value, Handle) and not (yield interp.call(hasattr, [value, name], {}, env)):
            return _NO
        parts.append((part, (yield interp.attribute_of(value, name, interp.span(part, env), env))))
    return (yield _where(holds, _all(interp, parts, env)))


def _where(truth: Any, work: Work) -> Work:
    """Does a value match, if it is an object of the right class to begin with?"""
    if truth is False:
        work.close()
        return _NO
    holds, names = yield work
    return (functions.logical_and(truth, holds) if isinstance(truth, Traced) and holds is not False else holds), names
