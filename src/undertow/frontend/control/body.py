"""Loops and maps: nodes that enter a body graph, which is written here.

Values from outside become parameters, like those of functions (`Session.resolve`). Order tokens and random keys do not:
a loop carries its token and counts its iterations, a map numbers its lanes. A body that turns out to need them is
written again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch
from undertow.frontend.control.restart import Halted, StartOver, until_fixpoint
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.frontend.values.growing import is_list
from undertow.frontend.values.leaves import describe, leaf_type, port_in
from undertow.frontend.values.operands import convert, flags_of, is_number
from undertow.frontend.values.option import OPTION
from undertow.frontend.values.rows import all_dense
from undertow.frontend.values.text import TracedText
from undertow.frontend.values.traced import Context, Traced, cast, constant, emit, is_traced, operand, roots_of
from undertow.ir.graph import Attrs, Const, Port
from undertow.types import CTL, Type, i64, join, promote, said, weak_kind


@dataclass(slots=True, eq=False)
class Body:
    """What must be known of the graph of a loop or map before it is written."""

    kind: str
    initial: list[Any]  # operands of the node: first values of a loop, arrays of a map
    names: list[str]
    types: list[Type]  # of one iteration or lane
    needs_order: bool = False
    needs_key: bool = False
    weak: list[bool] = field(default_factory=list)  # which are Python numbers; []: none
    key: Traced | None = None  # of all iterations or lanes, drawn in the enclosing graph


def write_body(ctx: Context, body: Body, contents: Callable[[Builder, list[Traced]], Work], length: Any = None) -> Work:
    """Write a loop or map: its graph, whose results are the ports that `contents` returns, and the node that enters it.

    Returns the results of the node; None if `contents` returns None.
    """
    is_loop = body.kind == "loop"
    parent, span, session = ctx.open_builder, ctx.span, ctx.session

    def attempt() -> Work:
        """The graph, and the further arguments of its node: hidden ones, and values from outside."""
        ctx.span = span
        name = session.fresh_name(f"{parent.name}.{body.kind}")
        inner = Builder(name, body.kind, span, context=parent.context, device=parent.device, body=body, parent=parent)
        rows = zip(body.types, body.names, flags_of(body.weak, body.types), strict=True)
        params = [Traced(inner, inner.param(type, name), is_weak) for type, name, is_weak in rows]
        hidden: list[Any] = []
        order = counter = None
        try:
            if body.needs_order:
                order = Traced(parent, session.effect_token())
                if is_loop:
                    hidden.append(order)
                    inner.effect = inner.param(CTL, "effect")
            if body.needs_key:
                if body.key is None:
                    body.key = session.draw_for_body()
                hidden.append(np.int64(0) if is_loop else functions.arange(functions.shape(body.initial[0])[0]))
                counter = Traced(inner, inner.param(Type(i64), "round" if is_loop else "index"))
            ctx.builder = inner
            if counter is not None:
                inner.key = emit("fold_in", [body.key, counter])[0].port
            if order is not None and not is_loop:
                inner.effect = session.resolve(order)
            try:
                ports = yield contents(inner, params)
            except Halted:
                if session.is_guessing:
                    raise
                what = "the test of this loop" if is_loop else "the function of this map"
                raise CaptureError(
                    f"{what} raises an exception whenever it runs", span, hint="raise it under a condition"
                ) from None
            if ports is None:
                return None
            if order is not None:
                ports.append(session.last_effect(inner))
            if counter is not None and is_loop:
                ports.append(session.resolve(emit("add", [counter, np.int64(1)])[0]))
            graph = inner.finish(ports, carried=len(params) + len(hidden))
            return graph, [*hidden, *(Traced(*outer) for outer in inner.lifted)]
        finally:
            # `ctx.span` stays where an error happened.
            ctx.builder = parent
            inner.is_open = False

    written = yield until_fixpoint(body, attempt)
    if written is None:
        return None
    graph, besides = written
    session.graphs[graph.name] = graph
    operands = [
        operand(convert(value, type.dtype)) if isinstance(value, Traced) else Const(cast(value, type.dtype))
        for value, type in zip(body.initial, body.types, strict=True)
    ]
    operands += map(operand, besides)
    if is_loop:
        outputs = [graph.nodes[param].types[0] for param in graph.params[: graph.carried]]
    else:
        results = (graph.type_of(port) for port in graph.results)
        outputs = [type if type == CTL else type.with_shape((length, *type.shape)) for type in results]
    # Even a map without lanes gives an order token, and must wait for the one before.
    controls = (session.effect_token(),) if body.needs_order and not is_loop else ()
    number = parent.add(body.kind, operands, tuple(outputs), Attrs(body=graph.name), span, body.kind, controls)
    values = [Traced(parent, Port(number, k)) for k in range(len(outputs))]
    if body.needs_order:
        parent.effect = values.pop(outputs.index(CTL)).port
    if not is_loop:
        return values
    for value, is_weak in zip(values, body.weak, strict=False):
        value.is_weak = is_weak
    return values[: len(body.types)]


# -- loops -------------------------------------------------------------------------------------------------


def graph_loop(
    ctx: Context,
    initial: list[Any],
    names: list[str],
    test: Callable[[list[Traced]], Any],
    step: Callable[[list[Traced]], Any],
) -> Work:
    """Write a loop: `test` returns the condition, `step` the next values of the carried leaves.

    Returns None if the test acts on the world: what the last test does must not be lost, so it belongs in the step.
    """
    loop = Body("loop", initial, names, [leaf_type(value) for value in initial], weak=list(map(is_number, initial)))
    held: list[tuple[Builder, list[Traced], list[Any]]] = []  # of each attempt

    def contents(inner: Builder, params: list[Traced]) -> Work:
        before = inner.effect
        truth = yield test(params)
        if inner.effect != before:
            return None
        pred = ctx.session.resolve(truth)
        inner.region, _ = inner.branch(pred)
        values = yield step(params)
        ctx.span = inner.span
        if inner.changed:
            ctx.session.interpreter.aliases.check_loop(initial, params, values, inner)
        held.append((inner, params, values))
        wider = [_widen(*row) for row in zip(names, initial, loop.types, loop.weak, values, strict=True)]
        if wider != list(zip(loop.types, loop.weak, strict=True)):
            raise StartOver(loop, types=[type for type, _ in wider], weak=[is_weak for _, is_weak in wider])
        return [pred, *(port_in(v, inner.region, ctx, t.dtype) for v, t in zip(values, loop.types, strict=True))]

    results = yield write_body(ctx, loop, contents)
    if results is not None:
        inner, params, values = held[-1]
        aliases = ctx.session.interpreter.aliases
        for k, result in enumerate(results):
            if result.type.rank:
                # It is the first value, if the loop never runs, or the last one; which may be that of another variable.
                roots = [*roots_of(initial[k]), *roots_of(values[k])]
                roots += [
                    r for j, p in enumerate(params) if any(p is root for root in roots) for r in roots_of(initial[j])
                ]
                result.base = (result, *(r for r in roots if not isinstance(r, Traced) or r.builder is not inner))
                for j, other in enumerate(results[:k]):
                    if other.type.rank and aliases.may_be_one(values[j], values[k]):
                        other.base, result.base = (*other.base, result), (*result.base, other)
    return results


def _widen(name: str, initial: Any, type: Type, is_weak: bool, value: Any) -> tuple[Type, bool]:
    """The type that a carried variable needs to hold its next value, too, and whether it stays a Python number."""
    after = leaf_type(value)
    own, other = type.dtype, after.dtype
    if not type.rank and not after.rank and own is not other:
        if is_number(value):
            if is_weak:
                return Type(promote(own, other)), True
            if weak_kind(other.kind, own) == own:
                return type, False
        elif is_weak and weak_kind(own.kind, other) == other:
            return Type(other), False
        elif isinstance(value, bool) and own.kind != "bool":
            return type, is_weak
        elif is_number(initial) and not is_weak:
            # It has become a value of some dtype only because of others that need a wider one now.
            wider = promote(own, other)
            if wider != own:
                return Type(wider), False
    both = join(type, after)
    if both is None:
        if type.rank == after.rank:
            x = name or "x"
            hint = f"give it its final dtype before the loop: {x} = ut.astype({x}, ut.{after.dtype})"
            if weak_kind(own.kind, other) != other:
                hint = f"convert the new value: ut.astype(..., ut.{own})"
        else:
            hint = "the number of dimensions of a loop variable must not change: assign the new value to another name"
        called = f"`{name}`" if name else "a loop variable"
        raise TypeMismatch(
            f"{called} is {describe(initial)} before the loop and {said(after)} after one iteration", hint=hint
        )
    return both, is_weak and is_number(value)


# -- maps --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Shared:
    """An argument of `map` that every call gets whole."""

    value: Any
    __undertow_static__: ClassVar[bool] = True  # no container of values, though a dataclass


def graph_map(ctx: Context, arrays: Sequence[Any], body: Callable[[list[Any]], Any]) -> Work:
    """Write a map: `body` is captured once, for one element of each array that is not shared."""
    leaves: list[Any] = []
    names: list[str] = []
    structures: list[tree.Structure] = []
    for number, array in enumerate(arrays):
        if isinstance(array, Shared):
            structures.append((("static", tree.Identity(array.value)),))
            continue
        if hasattr(
            array, "__undertow_types__"
        ):  # its arrays have different lengths, so mapping over them makes no sense
            kind = type(array).__name__
            hint = f"wrap it in ut.shared({kind.lower()}) to pass all of it to every call"
            raise TypeMismatch(f"ut.map cannot run over a {kind}", ctx.span, hint)
        held, structure = tree.flatten(array, is_traced)
        leaves += [leaf if isinstance(leaf, Traced) else constant(leaf) for leaf in held]
        names += tree.paths(array, f"x{number}" if len(arrays) > 1 else "x", is_traced)
        structures.append(structure)
    types = [leaf_type(leaf) for leaf in leaves]
    length = common_length("ut.map", types)
    result: tree.Structure = ()
    parent = ctx.open_builder

    def contents(inner: Builder, params: list[Traced]) -> Work:
        nonlocal result
        value = yield body(tree.unflatten_each(structures, params))
        ctx.span = inner.span
        results, result = tree.flatten(all_dense(value), is_traced)
        if any(token[0] == "object" and token[2] is TracedText for token in result):
            raise CaptureError(
                "a map cannot collect texts of traced values", hint="return the values, and format them after"
            )
        if OPTION in result and parent.kind != "main":  # a caller outside gets a list
            raise CaptureError(
                "a map cannot collect values that may be None",
                hint="return a number that stands for None, or a pair: (0, False) for none, (x, True) for x",
            )
        if any(map(is_list, result)):
            raise CaptureError(
                "a map cannot collect lists whose length is known only at run time",
                hint="write a comprehension, whose calls run together, too: [f(k) for k in range(n)]",
            )
        return [port_in(leaf, 0, ctx) for leaf in results]

    lanes = Body("map", leaves, names, [type.with_shape(type.shape[1:]) for type in types])
    values = yield write_body(ctx, lanes, contents, length)
    return ctx.session.interpreter.owned.own_containers(tree.unflatten(result, values))


def common_length(what: str, types: Sequence[Type], span: Span | None = None) -> Any:
    """The number of elements along the leading axis of all; None if it is known only at run time."""
    hint = "ut.shared(x) passes all of x to every call"
    if not types:
        raise TypeMismatch(
            f"{what} needs at least one array that is not shared",
            span,
            hint="pass an array or a list to map over: list(d.values())",
        )
    length: Any = None
    for type in types:
        if type.rank == 0:
            more = "; of a dict of lists make arrays: {k: np.array(v) for k, v in d.items()}"
            raise TypeMismatch(f"{what} runs over arrays, not over {said(type)}", span, hint + more)
        if isinstance(type.shape[0], int):
            if length is not None and length != type.shape[0]:
                raise TypeMismatch(
                    f"{what} over arrays of different lengths: {length} and {type.shape[0]}",
                    span,
                    f"make them equally long; {hint}",
                )
            length = type.shape[0]
    return length
