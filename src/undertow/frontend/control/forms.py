"""Explicit control: `ut.cond`, `ut.while_loop`, `ut.map`; and what Python's own functions mean for traced values.

Outside of a capture they simply run.
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch, brief
from undertow.frontend.control.flow import describe, leaf_type, port_in
from undertow.frontend.control.loops import ActingTest, NeedFeature, graph_loop
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.calls import SPECIAL, Interpreter
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.interpret.standins import TracedRange, TracedText
from undertow.frontend.syntax.calling import refuse_wrong_arguments
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.frontend.values.rows import all_dense
from undertow.frontend.values.traced import Traced, constant, context, effect, emit, operand
from undertow.ir.graph import Attrs, Port
from undertow.ops.op import CATALOGUE
from undertow.types import CTL, Type, bool_, f64, i32, i64, promote, said


class Shared:
    """An argument of `map` that every call gets whole."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def shared(value: Any) -> Shared:
    """Mark an argument of `map` as not mapped: every call gets all of it."""
    return Shared(value)


def cond(pred: Any, then: Callable[..., Any], other: Callable[..., Any], *operands: Any) -> Any:
    """`then(*operands)` where `pred` is true, else `other(*operands)`; only that one runs.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 5)
    6
    """
    current = context()
    if current is None or current.builder is None:
        return _apply(then if _is_true(pred) else other, operands)
    return drive(_cond(current.session.interpreter, [pred, then, other, *operands], {}, None))


def _cond(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) < 3 or kwargs:
        raise CaptureError(
            "ut.cond takes a condition, two functions and their arguments",
            hint="write ut.cond(x > 0, lambda: a, lambda: b)",
        )
    pred, then, other, *operands = args
    truth = interp.truth(pred)
    if not isinstance(truth, Traced):
        return (yield interp.call(then if truth else other, operands, {}, env))
    return (
        yield interp.choose(
            truth, lambda: interp.call(then, operands, {}, env), lambda: interp.call(other, operands, {}, env), env
        )
    )


def _apply(function: Any, args: Sequence[Any]) -> Any:
    """Call a function of the user's, outside of any capture."""
    if not callable(function):
        raise CaptureError(f"{brief(function)} is not a function", hint="give a function, as in lambda x: x + 1")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a function in C that does not say
        return function(*args)
    refuse_wrong_arguments(getattr(function, "__name__", "it"), signature, args, {}, None)
    return function(*args)


def _is_true(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeMismatch(
            f"the condition is {said(leaf_type(value))}, not one truth value",
            hint="reduce it with ut.any(x) or ut.all(x), or choose per element with ut.where",
        )
    return bool(value)


def while_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], initial: Any) -> Any:
    """Apply `body` to the value while `test` of it is true.

    >>> while_loop(lambda x: x < 100, lambda x: x * 2, 3)
    192
    """
    current = context()
    if current is None or current.builder is None:
        value = initial
        while _is_true(_apply(test, [value])):
            value = _apply(body, [value])
        return value
    return drive(_while_loop(current.session.interpreter, [test, body, initial], {}, None))


def _while_loop(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) != 3 or kwargs:
        raise CaptureError(
            "ut.while_loop takes a test, a body and an initial value",
            hint="write ut.while_loop(lambda x: x < 10, lambda x: x * 2, start)",
        )
    test, body, initial = args
    leaves, structure = tree.flatten(initial, lambda v: isinstance(v, Traced))

    def header(params: list[Traced]) -> Work:
        value = yield interp.call(test, [tree.unflatten(structure, params)], {}, env)
        truth = interp.truth(value)
        if not isinstance(truth, Traced):
            raise CaptureError(
                "the test of this loop does not depend on its value", hint="test the value: lambda x: x > 0"
            )
        return truth

    def step(params: list[Traced]) -> Work:
        value = yield interp.call(body, [tree.unflatten(structure, params)], {}, env)
        found, after = tree.flatten(value, lambda v: isinstance(v, Traced))
        if after != structure:
            raise TypeMismatch(
                f"the body of ut.while_loop gets {describe(initial)} and gives {describe(value)}",
                hint="the value keeps its structure",
            )
        return found

    def going(params: list[Traced]) -> Work:
        return params[0]
        yield

    def test_and_step(params: list[Traced]) -> Work:
        """The test as part of the body, where it acts on the world."""
        truth = yield header(params[1:])

        def go_on() -> Work:
            return [True, *(yield step(params[1:]))]

        def stop() -> Work:
            return [False, *params[1:]]
            yield

        return (yield interp.choose(truth, go_on, stop, env))

    names = tree.paths(initial, "value", lambda v: isinstance(v, Traced))
    before = interp.ctx.open_builder.effect
    try:
        results = yield graph_loop(interp, leaves, names, header, step)
    except ActingTest:
        interp.ctx.open_builder.effect = before
        results = yield graph_loop(interp, [True, *leaves], ["going", *names], going, test_and_step)
        del results[0]
    return tree.unflatten(structure, results)


def map(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` on every element along the leading axis of the arrays, all in parallel; results are stacked.

    Over no elements, dimensions of a result that are known at capture stay, and those known only at run time are 0.

    >>> map(lambda x: x * x, np.array([1, 2, 3]))
    array([1, 4, 9])
    """
    current = context()
    if current is None or current.builder is None:
        return _map_now(function, arrays)
    return drive(_map(current.session.interpreter, [function, *arrays], {}, None))


def _map_now(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    if hasattr(function, "__undertow_definition__"):
        return function.map(*arrays)  # type: ignore[attr-defined]
    if not callable(function) or not arrays:
        raise CaptureError(
            "ut.map takes a function and one or more arrays", hint="write ut.map(lambda a, b: a * b, x, y)"
        )
    arrays = [as_mapped(arg) for arg in arrays]
    whole = [arg.value if isinstance(arg, Shared) else [np.asarray(x) for x in tree.flatten(arg)[0]] for arg in arrays]
    mapped = [x for arg, held in zip(arrays, whole, strict=True) if not isinstance(arg, Shared) for x in held]
    rows = []
    for k in range(common_length("ut.map", [leaf_type(x) for x in mapped])):
        args = [
            held if isinstance(arg, Shared) else tree.unflatten(tree.flatten(arg)[1], [x[k] for x in held])
            for arg, held in zip(arrays, whole, strict=True)
        ]
        rows.append(all_dense(_apply(function, args)))
    if not rows:
        raise TypeMismatch(
            "ut.map over nothing, outside of a captured function, gives no type", hint="decorate it with @ut.function"
        )
    structure = tree.flatten(rows[0])[1]
    try:
        return tree.unflatten(structure, [np.stack(c) for c in zip(*(tree.flatten(r)[0] for r in rows), strict=True)])
    except ValueError:
        raise TypeMismatch(
            "the results of ut.map have unequal structures or shapes", hint="pad them to one shape"
        ) from None


def _map(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) < 2 or kwargs:
        raise CaptureError(
            "ut.map takes a function and one or more arrays", hint="write ut.map(lambda a, b: a * b, x, y)"
        )
    function, *arrays = args

    def body(values: list[Any]) -> Work:
        return (yield interp.call(function, values, {}, env))

    return (yield graph_map(interp, [as_mapped(a) for a in arrays], body))


def as_mapped(value: Any) -> Any:
    """A range or a list of numbers is an array to be mapped over; other containers are mapped leaf by leaf."""
    if isinstance(value, range):
        return np.arange(value.start, value.stop, value.step, dtype=np.int64)
    if isinstance(value, tuple) and value and all(isinstance(x, (bool, int, float, np.generic)) for x in value):
        raise TypeMismatch(
            f"a map over the tuple {brief(value)}", hint="write a list: a tuple is several arguments in one"
        )
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, (str, bytes)) or isinstance(value, (Iterator, set, frozenset)):
        raise TypeMismatch(
            f"a map over {brief(value)}, which is no array of numbers",
            hint="give an array, a list of numbers or a range",
        )
    if isinstance(value, (list, tuple)) and not isinstance(value, Shared):
        leaves, structure = tree.flatten(value, lambda v: isinstance(v, Traced))
        if (
            (leaves or value == [])
            and all(isinstance(x, (bool, int, float, np.generic)) for x in leaves)
            and all(token[0] in ("leaf", "list") for token in structure)
        ):
            try:
                return np.asarray(value)
            except ValueError:
                raise TypeMismatch(
                    f"a map over {describe(value)}, whose rows have different lengths",
                    hint="pad the rows to one length, or map over a tuple of arrays",
                ) from None
    return value


def graph_map(interp: Any, arrays: Sequence[Any], body: Callable[[list[Any]], Work]) -> Work:
    """Write a `map` node: `body` is captured once, for one element of each array that is not shared."""
    ctx = interp.ctx
    parent, span, session = ctx.open_builder, ctx.span, ctx.session
    leaves: list[Any] = []
    names: list[str] = []
    structures: list[Any] = []
    for number, array in enumerate(arrays):
        if isinstance(array, Shared):
            structures.append(array)
            continue
        if hasattr(array, "__undertow_types__"):  # its arrays have different lengths: nobody means to map over them
            kind = type(array).__name__
            raise TypeMismatch(
                f"ut.map over a whole {kind}", span, hint=f"every call gets it whole if it is ut.shared({kind.lower()})"
            )
        found, shape = tree.flatten(array, lambda v: isinstance(v, Traced))
        leaves += [x if isinstance(x, Traced) else constant(x) for x in found]
        names += tree.paths(array, f"x{number}" if len(arrays) > 1 else "x", lambda v: isinstance(v, Traced))
        structures.append((shape, len(found)))
    types = [leaf_type(leaf) for leaf in leaves]
    length = common_length("ut.map", types)
    features: list[str] = []
    keys: list[Traced] = []  # the key of this map in the parent, once drawn

    def attempt() -> Work:
        """The graph of one element, what it was lifted from, the mapped arrays, the result; None to try again."""
        ctx.span = span
        inner = Builder(
            session.fresh_name(f"{parent.name}.map"), "map", span, context=parent.context, device=parent.device
        )
        params = [Traced(inner, inner.param(t.with_shape(t.shape[1:]), n)) for t, n in zip(types, names, strict=True)]
        mapped = list(leaves)
        index: Traced | None = None
        before: Traced | None = None
        try:
            if "key" in features:
                if not keys:
                    keys.append(session.draw())
                mapped.append(functions.arange(functions.shape(leaves[0])[0]))
                index = Traced(inner, inner.param(Type(i64), "index"))
            if "effect" in features:
                before = Traced(parent, session.effect_token())
            ctx.builder = inner
            if index is not None:
                inner.key = emit("fold_in", [keys[0], index])[0].port
            if before is not None:
                inner.effect = session.resolve(before)
            value = yield body(_elements(structures, params))
            ctx.span = span
            results, structure = tree.flatten(all_dense(value), lambda v: isinstance(v, Traced))
            ports = [port_in(r, 0, ctx) for r in results]
            if before is not None:
                assert inner.effect is not None
                ports.append(inner.use(inner.effect))
            return inner.finish(ports, carried=len(mapped)), list(inner.lifted), mapped, structure
        except NeedFeature as need:
            if need.builder is not inner:
                raise
            features.append(need.feature)
            return None
        finally:
            # The span stays where an error happened.
            ctx.builder = parent
            inner.is_open = False

    while (made := (yield attempt())) is None:
        pass
    graph, lifted, mapped, structure = made
    session.graphs[graph.name] = graph
    inputs = [operand(x) for x in mapped] + [operand(Traced(*outer)) for outer in lifted]
    held = [graph.type_of(port) for port in graph.results]
    outputs = tuple(t if t == CTL else t.with_shape((length, *t.shape)) for t in held)
    # A map without lanes gives its order token too, and must not do so before its turn.
    controls = (session.effect_token(),) if "effect" in features else ()
    number = parent.add("map", inputs, outputs, Attrs(body=graph.name), span, "map", controls)
    values = [Traced(parent, Port(number, k)) for k in range(len(outputs))]
    if "effect" in features:
        parent.effect = values.pop().port
    return tree.unflatten(structure, values)


def common_length(what: str, types: Sequence[Type], span: Span | None = None) -> Any:
    """The number of elements along the leading axis of all; None if it is known only at run time."""
    hint = "wrap what every call gets whole in ut.shared(x)"
    if not types:
        raise TypeMismatch(
            f"{what} needs at least one array that is not shared", span, hint="give an array to map over"
        )
    length: Any = None
    for type in types:
        if type.rank == 0:
            raise TypeMismatch(f"{what} over {said(type)}, which is one number", span, hint)
        if isinstance(type.shape[0], int):
            if length is not None and length != type.shape[0]:
                raise TypeMismatch(f"{what} over arrays of different lengths: {length} and {type.shape[0]}", span, hint)
            length = type.shape[0]
    return length


def _elements(structures: list[Any], params: list[Traced]) -> list[Any]:
    values: list[Any] = []
    at = 0
    for entry in structures:
        if isinstance(entry, Shared):
            values.append(entry.value)
        else:
            structure, count = entry
            values.append(tree.unflatten(structure, params[at : at + count]))
            at += count
    return values


# -- Python's own functions --------------------------------------------------------------------------------


def _any_traced(args: Sequence[Any]) -> bool:
    return any(isinstance(a, Traced) for a in args)


def _plain(function: Any, traced: Callable[..., Any]) -> Any:
    """The Python function, unless an argument is traced."""

    def work(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
        flat = [*args, *kwargs.values()]
        nested = [x for a in args if isinstance(a, (list, tuple)) for x in a]
        if _any_traced(flat) or _any_traced(nested) or any(isinstance(a, TracedText) for a in args):
            try:
                inspect.signature(traced).bind(*args, **kwargs)
            except TypeError:
                raise CaptureError(
                    f"{function.__name__}() with such arguments cannot be captured for traced values",
                    hint=f"write it with the functions of ut, or {_TAKEN.get(function, 'with fewer arguments')}",
                ) from None
            return traced(*args, **kwargs)
        return interp.call_native(function, args, kwargs)
        yield

    return work


def _range(*args: Any) -> Any:
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    for bound in (start, stop, step):
        if isinstance(bound, Traced) and (bound.dtype not in (i32, i64) or bound.type.shape):
            raise TypeMismatch(
                f"a bound of range is {said(bound.type)}, not an integer", hint="convert it: ut.astype(x, ut.i64)"
            )
        if not isinstance(bound, (Traced, int, np.integer)):
            raise TypeMismatch(f"a bound of range is {brief(bound)}, not an integer", hint="bounds are integers")
    return TracedRange(start, stop, step)


def _extreme(name: str) -> Callable[..., Any]:
    def pick(*args: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        best = values[0]
        for value in values[1:]:
            best = getattr(functions, name)(best, value)
        return best

    return pick


def _fold(name: str, empty: bool) -> Callable[..., Any]:
    def run(values: Any) -> Any:
        if isinstance(values, Traced):
            return getattr(functions, "all" if empty else "any")(values)
        result: Any = empty
        for value in values:
            truth = value if not isinstance(value, Traced) or value.dtype == bool_ else functions.not_equal(value, 0)
            result = truth if result is empty else getattr(functions, name)(result, truth)
        return result

    return run


def _sum(values: Any, start: Any = 0) -> Any:
    if isinstance(values, Traced):
        return functions.sum(values, axis=0) if values.ndim > 1 else functions.sum(values)
    total = start
    for value in values:
        total = total + value
    return total


def _length(value: Any) -> Any:
    if isinstance(value, Traced):
        return functions.length(value) if value.type.shape else len(value)
    return len(value)


def _text(value: Any = "", *_: Any) -> Any:
    if isinstance(value, Traced):
        raise CaptureError(
            f"the text of a traced {value.type} is known only at run time",
            hint='print it with print(x), or with an f-string: print(f"x is {x}")',
        )
    return str(value)


def _of_one(name: str, traced: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """A function of Python that works on single numbers: an array is an error there."""

    def work(*values: Any) -> Any:
        for value in values:
            if isinstance(value, Traced) and value.type.shape:
                raise TypeMismatch(f"{name}() of {said(value.type)}, not of one number", hint=f"use {instead}")
        return traced(*values)

    work.__signature__ = inspect.signature(traced)  # type: ignore[attr-defined]
    return work


def _print(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    """Python's `print`: a line whenever the body runs, also where nothing that it shows is traced."""
    unknown = [key for key, value in kwargs.items() if key not in ("sep", "flush") and (key, value) != ("end", "\n")]
    if unknown:
        raise CaptureError(
            f"print() with `{unknown[0]}` cannot be captured",
            hint="a graph prints whole lines to standard output; put what belongs together into one f-string",
        )
    parts: list[str] = []
    held: list[Any] = []
    for value in args:
        if isinstance(value, TracedText):
            parts.append(value.template)
            held += value.values
        elif isinstance(value, Traced):
            parts.append("{}")
            held.append(value)
        else:
            parts.append(str(value).replace("{", "{{").replace("}", "}}"))
    between = " " if kwargs.get("sep") is None else str(kwargs["sep"])
    effect("print", held, template=between.replace("{", "{{").replace("}", "}}").join(parts))
    return None
    yield


def _power(base: Any, exponent: Any, mod: Any = None) -> Any:
    value = base**exponent
    return value if mod is None else value % mod


# What to do where a function of Python is called with arguments that have no counterpart.
_TAKEN: dict[Any, str] = {
    builtins.max: "compare with `if`: max() takes values or a list, without key= and default=",
    builtins.min: "compare with `if`: min() takes values or a list, without key= and default=",
}


def _whole(name: str) -> Callable[[Any], Any]:
    return lambda x: functions.astype(getattr(functions, name)(x), i64)


def _install() -> None:
    SPECIAL.update({cond: _cond, while_loop: _while_loop, map: _map})
    table: dict[Any, Callable[..., Any]] = {
        builtins.range: _range, builtins.len: _length, builtins.min: _extreme("minimum"),
        builtins.max: _extreme("maximum"), builtins.sum: _sum, builtins.any: _fold("logical_or", False),
        builtins.all: _fold("logical_and", True), builtins.pow: _power,
        builtins.int: _of_one("int", lambda x: functions.astype(functions.trunc(x), i64), "ut.astype(x, ut.i64)"),
        builtins.float: _of_one(
            "float", lambda x: functions.astype(x, promote(x.dtype, f64)), "ut.astype(x, ut.f64)"
        ),
        builtins.bool: _of_one("bool", lambda x: functions.astype(x, bool_), "ut.any(x) or ut.all(x)"),
        builtins.round: lambda x, digits=None: functions.round(x) if digits is not None else _whole("round")(x),
        builtins.divmod: lambda a, b: (a // b, a % b), builtins.str: _text,
        math.floor: _of_one("math.floor", _whole("floor"), "ut.floor"),
        math.ceil: _of_one("math.ceil", _whole("ceil"), "ut.ceil"),
        math.trunc: _of_one("math.trunc", _whole("trunc"), "ut.trunc"),
    }  # fmt: skip
    for row in CATALOGUE.values():
        for name in row.names("math."):
            table[getattr(math, name)] = _of_one(f"math.{name}", getattr(functions, row.public), f"ut.{row.public}")
    for function, traced in table.items():
        SPECIAL[function] = _plain(function, traced)
    SPECIAL[builtins.print] = _print


_install()
