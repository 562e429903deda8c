"""Variables that a function of the user's updates in one atomic step: x, y := f(x, y, v).

Where a program is captured, f becomes a graph of its own, which the operator `update` holds as text. Values from
outside become operands, as those of a map's body become operands of the map. Elsewhere f is called at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.errors import CaptureError, Span, TypeMismatch, brief
from undertow.frontend.control.restart import Halted, StartOver, until_fixpoint
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import transaction, tree
from undertow.frontend.values.leaves import describe, leaf_type, port_in
from undertow.frontend.values.operands import as_operand, is_number, is_weak
from undertow.frontend.values.state import Variable, frozen
from undertow.frontend.values.traced import Context, Traced, context, is_traced, write
from undertow.ir.dump import dump
from undertow.ir.graph import Attrs, FunctionGraph, Library
from undertow.ir.literal import INLINE, dump_constants
from undertow.ir.walk import entered_by, reachable
from undertow.ops.effects import is_stateful
from undertow.ops.evaluate import may_evaluate
from undertow.ops.op import find
from undertow.tracebacks import boundary


def update(variables: Sequence[Variable], function: Callable[..., Any], values: Sequence[Any], has_aux: bool) -> Any:
    """Let variables hold what the function returns for what they hold, and for these values, in one step.

    Returns the new values, or with `has_aux` what the function returns beside them.
    """
    if not callable(function):
        raise TypeMismatch(
            f"{_called(variables)} is updated by a function, not by {brief(function)}",
            hint="pass the function, and then its further arguments: x.update(lambda old, v: old + v, 1.0)",
        )
    held = [value if isinstance(value, Traced) or is_weak(value) else as_operand(value) for value in values]
    current = context(held)
    if current is None or current.builder is None:
        return _update_now(variables, function, values, has_aux)
    for variable in variables:
        variable.__undertow_assigned__(current)
    f: _F = drive(_captured(current, variables, function, held, has_aux))
    names = tuple(current.session.variable_name(variable) for variable in variables)
    before = (current.session.effect_token(),)
    attrs, name = Attrs(targets=names, f=f.text), f"{'_'.join(names)}.update"
    *results, token = write(current, find("update"), [*held, *f.besides], attrs, name, before)
    current.open_builder.effect = token.port
    new, aux = results[: len(names)], results[len(names) :]
    return tree.unflatten(f.aux, aux) if has_aux else new[0] if len(new) == 1 else tuple(new)


def _called(variables: Sequence[Variable]) -> str:
    return f"variable{'s' * (len(variables) > 1)} {' and '.join(f'`{variable.name}`' for variable in variables)}"


def _update_now(variables: Sequence[Variable], function: Callable[..., Any], values: Sequence[Any], aux: bool) -> Any:
    names = [str(number) for number in range(len(variables))]  # variables may have one name

    def change(state: dict[str, Any]) -> Any:
        new, besides = _split(function(*(state[name] for name in names), *values), variables, aux)
        made = [frozen(variable.__undertow_taken__(value)) for variable, value in zip(variables, new, strict=True)]
        state.update(zip(names, made, strict=True))
        return besides if aux else made[0] if len(made) == 1 else tuple(made)

    cells = {name: variable.cell for name, variable in zip(names, variables, strict=True)}
    return transaction.transact(
        cells, names, change, lambda stored: stored, lambda name: f"variable `{variables[int(name)].name}`"
    )


def _split(result: Any, variables: Sequence[Variable], has_aux: bool) -> tuple[list[Any], Any]:
    """What the function returned: the new values, and the rest."""
    new, besides = result, None
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise _wrong_result(variables, result, "return a pair: the new value (a tuple of several), and the result")
        new, besides = result
    if len(variables) == 1:
        new = (new,)
    if not isinstance(new, tuple) or len(new) != len(variables):
        raise _wrong_result(variables, new, "return a tuple: the new value of each variable, in their order")
    return list(new), besides


def _wrong_result(variables: Sequence[Variable], result: Any, hint: str) -> TypeMismatch:
    return TypeMismatch(f"the function that updates {_called(variables)} returns {describe(result)}", hint=hint)


# --------------------------------------------------------------------------------------------------------------
# Capture


@dataclass(slots=True, eq=False)
class _Body:
    """What turns out while f is captured, and must not: StartOver sets it."""

    kind: str = "update"
    needs_order: bool = False
    needs_key: bool = False
    where: Span | None = None  # the line that needs it


@dataclass(frozen=True, slots=True, eq=False)
class _F:
    """A captured function."""

    text: str
    besides: list[Traced]  # values from outside that it takes, after its arguments
    aux: tree.Structure  # of what it returns beside the new values


def _captured(
    ctx: Context, variables: Sequence[Variable], function: Callable[..., Any], values: Sequence[Any], has_aux: bool
) -> Work:
    parent, span, session, body = ctx.open_builder, ctx.span, ctx.session, _Body()
    held = [variable.__undertow_holds__ for variable in variables]
    labels = [variable.name for variable in variables]
    labels += ["value"] if len(values) == 1 else [f"value{number}" for number in range(len(values))]
    weak = [False] * len(held) + [is_number(value) for value in values]

    def refused(what: str, hint: str) -> CaptureError:
        where = body.where or span
        return CaptureError(f"the function that updates {_called(variables)} {what}", where, hint=hint)

    def attempt() -> Work:
        ctx.span = span
        if body.needs_order:
            raise refused(
                "acts on the world: it prints, asserts, or uses a variable that the program assigns",
                "an update is one step of a pure function: act before it or after, and pass values as arguments",
            )
        if body.needs_key:
            raise refused("draws random numbers", "draw them before, and pass them: x.update(f, ut.random.uniform())")
        inner = Builder("main", "main", span, context=parent.context, body=body, parent=parent)
        rows = zip((*held, *map(leaf_type, values)), labels, weak, strict=True)
        params = [Traced(inner, inner.param(type, label), is_weak) for type, label, is_weak in rows]
        try:
            ctx.builder = inner
            try:
                result = yield session.interpreter.call(function, params, {}, None)
            except StartOver:
                body.where = ctx.span
                raise
            except Halted:
                raise refused("raises an exception whenever it runs", "return the new value on some path") from None
            ctx.span = span
            new, besides = _split(result, variables, has_aux)
            leaves, structure = tree.flatten(besides, is_traced)
            ports = [
                port_in(_leaf(value, variable), 0, ctx, type.dtype)
                for value, variable, type in zip(new, variables, held, strict=True)
            ]
            graph = inner.finish([*ports, *(port_in(leaf, 0, ctx) for leaf in leaves)])
            return graph, [Traced(*outer) for outer in inner.lifted], structure
        finally:
            ctx.builder = parent
            inner.is_open = False

    graph, besides, structure = yield until_fixpoint(body, attempt)
    return _F(_text(graph, session.graphs, refused), besides, structure)


def _leaf(value: Any, variable: Variable) -> Any:
    """A new value as one number or array."""
    leaves, structure = tree.flatten(value, is_traced)
    if structure != (tree.LEAF,):
        raise _wrong_result([variable], value, "return the new value of the variable: one number or array")
    return leaves[0]


def _text(graph: FunctionGraph, graphs: dict[str, FunctionGraph], refused: Callable[[str, str], CaptureError]) -> str:
    """The graph and all that it enters, without spans: where it stands is said by the span of the operator."""
    known = {**graphs, graph.name: graph}
    names = reachable([graph.name], lambda name: entered_by(known[name]) if name in known else [])
    missing = next((name for name in names if name not in known), None)
    if missing is not None:
        raise refused(f"calls `{missing}`, which is being captured", "call it before, and pass what it returns")
    library = Library({name: known[name] for name in names}, graph.name)
    for node in (node for part in library.functions.values() for node in part.nodes):
        if is_stateful(node.op):
            what = f"reads variable `{node.attrs['variable']}`"
            raise refused(what, "read it before, and pass the value: x.update(f, y.read())")
        if not may_evaluate(node):
            raise refused(f"contains a `{node.op}`", "compute it before, and pass the value as an argument")
    if dump_constants(library):
        raise refused(
            f"contains a constant array of more than {INLINE} elements", "pass the array as an argument of the update"
        )
    return dump(library, spans=False)


# --------------------------------------------------------------------------------------------------------------
# Critical sections


class CriticalSection:
    """A function that runs in one step: see `critical_section`."""

    __undertow_capture__ = True  # a call of it writes a node

    def __init__(self, variables: tuple[Variable, ...], function: Callable[..., Any], has_aux: bool) -> None:
        if not callable(function):
            raise TypeMismatch(f"a critical section is a function, not {brief(function)}", hint="decorate a `def`")
        self.__undertow_section__ = variables, function, has_aux
        functools.update_wrapper(self, function, updated=())

    @boundary
    def __call__(self, *values: Any) -> Any:
        variables, function, has_aux = self.__undertow_section__
        return update(variables, function, values, has_aux)


@boundary
def critical_section(*variables: Variable, has_aux: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a pure function a critical section over some variables: it runs in one step, and nothing comes in between.

    >>> checking, savings = Variable(100, name="checking"), Variable(5, name="savings")
    >>> @critical_section(checking, savings)
    ... def move(checking, savings, amount):
    ...     return checking - amount, savings + amount
    >>> move(30)
    (np.int64(70), np.int64(35))

    The function takes what the variables hold, and then the arguments of the call; it returns what they are to hold, a
    tuple if they are several. The call returns these new values; with has_aux=True the function returns a pair, the new
    values and the result of the call. A decorator.
    """
    if not variables or not all(isinstance(variable, Variable) for variable in variables):
        given = ", ".join(map(brief, variables)) or "nothing"
        raise TypeMismatch(
            f"a critical section is over variables, not over {given}",
            hint="write @ut.critical_section(x, y), where x and y are each a ut.Variable",
        )
    if len({id(variable) for variable in variables}) < len(variables):
        raise TypeMismatch("a critical section names a variable twice", hint="name each variable once")

    return lambda function: CriticalSection(variables, function, has_aux)
