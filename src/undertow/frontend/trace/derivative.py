"""Definitions made from others: gradients, pullbacks, functions whose forward values are not kept.

Each takes the arguments of the function that it is made from, writes a call of that function, and beside it a
`gradient` node: the cotangents of some results of the call become those of some of its arguments. What that means is
the affair of a pass. The gradient stands where the call does, so a call has one; a second one takes a call of its own.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from functools import partial
from types import FunctionType, MethodType
from typing import Any, ClassVar

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions.creation import zeros_like
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.syntax.calling import is_user_code
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.arguments import Arguments, take_arguments
from undertow.frontend.trace.definition import Check, Definition
from undertow.frontend.trace.loaded import NoSource
from undertow.frontend.trace.rows_only import only_rows
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.operands import dims
from undertow.frontend.values.rows import IndexedRows
from undertow.frontend.values.state import Variable
from undertow.frontend.values.traced import Traced, constant, is_traced, operand
from undertow.ir.graph import Attrs, Const, Operand, Port
from undertow.ir.sparse import rows_types, sparse_attr
from undertow.types import Type, said


def definition_of(function: Any, what: str) -> tuple[Definition, tuple[Any, ...]]:
    """The definition behind what the user calls a function, and the arguments that it is bound to."""
    found = getattr(function, "__undertow_definition__", None)
    if found is not None:
        return found, tuple(getattr(function, "__undertow_bound__", ()))
    bound: tuple[Any, ...] = ()
    if isinstance(function, MethodType):
        function, bound = function.__func__, (function.__self__,)
    elif not isinstance(function, (FunctionType, Closure, partial, type)):
        method = type(function).__dict__.get("__call__")
        if hasattr(method, "__undertow_definition__") or is_user_code(method):  # an object that can be called
            inner, _ = definition_of(method, what)
            return inner, (function,)
    if isinstance(function, FunctionType):
        return _definition(function), bound
    if isinstance(function, Closure):
        return Definition(function), bound
    if isinstance(function, partial):
        raise CaptureError(
            f"{what} works on functions, not on a functools.partial",
            hint=f"give a lambda that calls it: {what}(lambda x: f(2.0, x))",
        )
    hint = f"write {what}(f), and then call the result: {what}(f)(x)"
    if callable(function):
        hint = f"give a lambda that calls it: {what}(lambda x: f(x))"
    raise CaptureError(f"{what} works on functions, not on {brief(function)}", hint=hint)


def _definition(function: FunctionType) -> Definition:
    """The one definition of an undecorated function, kept with it, so that it lives as long."""
    found: Definition | None = function.__dict__.get("__undertow_plain__")
    if found is None or found.function is not function:  # functools.wraps copies what is kept with a function
        found = function.__dict__["__undertow_plain__"] = Definition(function)
    return found


class Made(Definition):
    """A definition made from another one."""

    def __init__(self, inner: Definition, name: str) -> None:
        super().__init__(inner.function)
        self.inner = inner
        self._name = name

    def children(self, value: object) -> tuple[tree.Token, list[Any]] | None:
        return self.inner.children(value)


class Wrapped(Made):
    """A definition made from another one, with its parameters and what is annotated for them."""

    @property
    def closure(self) -> Closure:
        if self._closure is None or self._closure.name != self._name:
            self._closure = copy.copy(self.inner.closure)
            self._closure.name = self._name
        return self._closure

    def note(self, name: str) -> Any:
        return None if name == "return" else self.inner.note(name)


class Checkpointed(Wrapped):
    """A function whose forward values are not kept for the gradient: it is called again for that."""

    is_checkpoint = True

    def __init__(self, inner: Definition) -> None:
        super().__init__(inner, inner.name)

    def note(self, name: str) -> Any:
        return self.inner.note(name)

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        return self.inner.body(session, args, kwargs, check)


class Adapted(Made):
    """A definition made from another one, with parameters of its own; it stands where that one does."""

    hands_key_on = True
    parameters: ClassVar[tuple[str, ...]]

    @property
    def closure(self) -> Closure:
        if self._adapted is None:
            kind = inspect.Parameter.POSITIONAL_ONLY
            signature = inspect.Signature([inspect.Parameter(name, kind) for name in self.parameters])
            self._adapted = NoSource(self._name, signature, self.inner.closure.span)
        return self._adapted

    _adapted: Closure | None = None


class Bound(Adapted):
    """A function in which some variables, or captured arrays, are arguments."""

    parameters = ("values", "args", "kwargs")

    def __init__(self, inner: Definition, targets: Sequence[Any]) -> None:
        super().__init__(inner, inner.name)
        self.targets = list(targets)

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        values, given, named = args
        before = session.binding
        session.binding = {**(before or {}), **{id(t): (t, v) for t, v in zip(self.targets, values, strict=True)}}
        try:
            return (yield session.call(self.inner, given, named))
        finally:
            session.binding = before


# --------------------------------------------------------------------------------------------------------------
# Writing a gradient


class DifferentiableCall:
    """A call that has been written, and how to write its gradient."""

    def __init__(self, session: Session, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.session = session
        self.definition = definition
        self.args = list(args)
        self.kwargs = kwargs
        self.arguments: Arguments | None = None
        self.value: Any = None
        self.number = -1

    def call(self) -> Work:
        """Write the call; its value."""
        self.arguments = take_arguments(self.definition, self.args, self.kwargs)
        self.value = yield self.session.call(self.definition, self.args, self.kwargs)
        leaves, _ = tree.flatten(self.value, is_traced)
        if not leaves:
            raise CaptureError(
                f"`{self.definition.name}` returns nothing that could have a gradient",
                hint="return the number to be differentiated",
            )
        self.builder = self.session.ctx.open_builder
        self.region = self.builder.region
        self.number = self.builder.origin(leaves[0].port).node
        assert self.builder.nodes[self.number].op == "call"
        return self.value

    def results(self) -> list[Traced]:
        leaves: list[Traced] = tree.flatten(self.value, is_traced)[0]
        return leaves

    def positions(self, n: int) -> tuple[range, tree.Structure]:
        """The leaves of the n-th positional argument, and its structure."""
        assert self.arguments is not None
        at = 0
        parameters = self.definition.closure.signature.parameters
        arguments = zip(self.arguments.parameters, self.arguments.structures, strict=True)
        for place, (name, structure) in enumerate(arguments):
            count = structure.count(tree.LEAF)
            kind = parameters[name].kind
            if kind == kind.VAR_POSITIONAL and place <= n:
                for k, value in enumerate(self.args[place:], place):
                    leaves, own = tree.flatten(value, is_traced)
                    if k == n:
                        return range(at, at + len(leaves)), own
                    at += len(leaves)
                break
            if place == n and kind != kind.VAR_KEYWORD:
                return range(at, at + count), structure
            at += count
        raise AssertionError(f"{self.definition.name} has no argument number {n}")

    def refuse_integers(self, indices: Sequence[int]) -> None:
        assert self.arguments is not None
        for index in indices:
            type_ = self.arguments.types[index]
            if type_.dtype.kind != "float":
                name = f"`{self.arguments.names[index]}` of `{self.definition.name}`"
                raise TypeMismatch(
                    f"{name} is {said(type_)}: only floats have gradients",
                    hint="give a float, as in 3.0, or take the gradient with respect to other arguments: argnums=...",
                )

    def gradient(self, cotangents: dict[int, Operand], wanted: Sequence[int], sparse_rows: bool = False) -> list[Any]:
        """Write the gradient: cotangents by result, a cotangent for each of these arguments.

        With `sparse_rows`, that of an argument which is only looked up by rows is IndexedRows.
        """
        assert self.arguments is not None
        builder = self.builder
        call = builder.nodes[self.number]
        takes = self.session.argument_types(call.attrs.text("callee"))
        looked_up = only_rows(self.session.graphs, call.attrs.text("callee")) if sparse_rows else ()
        sparse = tuple(index for index in wanted if index in looked_up)
        types: list[Type] = []
        for index in wanted:
            type_ = takes[index].erased()
            types += rows_types(type_) if index in sparse else [type_]
        given = tuple(cotangents)
        inputs = [Port(self.number, min(given)), *cotangents.values()]
        number = builder.add(
            "gradient",
            inputs,
            tuple(types),
            Attrs(given=given, wanted=tuple(wanted), **sparse_attr(sparse)),
            self.session.ctx.span,
            f"d_{call.name.rsplit('/', 1)[-1]}",
        )
        outputs = (Traced(builder, Port(number, k)) for k in range(len(types)))
        return [
            IndexedRows(next(outputs), next(outputs), dims(self.arguments.leaves[index]))
            if index in sparse
            else next(outputs)
            for index in wanted
        ]


def scalar_of(value: Any, name: str) -> Traced:
    """The one float that is to be differentiated."""
    if not isinstance(value, Traced):
        raise TypeMismatch(
            f"`{name}` returns {describe(value)}: the gradient is that of one number",
            hint="return the number alone, or with has_aux=True the number and something else",
        )
    if value.type.dtype.kind != "float":
        raise TypeMismatch(
            f"`{name}` returns {said(value.type)}: only floats have gradients",
            hint="compute with floats; ut.astype(x, ut.f64) converts",
        )
    if value.type.rank:
        raise TypeMismatch(
            f"`{name}` returns {said(value.type)}: the gradient is that of one number",
            hint="sum it up, as in ut.sum(x), or give a cotangent: value, back = ut.vjp(f, ...)",
        )
    return value


class Derived(Wrapped):
    """The value of a function and its gradient with respect to some arguments, or variables, or both."""

    hands_key_on = True

    def __init__(
        self,
        inner: Definition,
        argnums: int | tuple[int, ...],
        has_aux: bool,
        targets: Any,
        keeps_value: bool,
        sparse_rows: bool,
        skipped: int = 0,
    ) -> None:
        self.what = "value_and_grad" if keeps_value else "grad"
        super().__init__(inner, f"{self.what}({inner.name})")
        self.argnums = argnums
        self.skipped = skipped  # arguments that a method is bound to: argnums does not count them
        self.has_aux = has_aux
        self.keeps_value = keeps_value
        self.sparse_rows = sparse_rows
        self.targets, self.structure = flatten_targets(targets)
        self.has_targets = targets is not None
        self.bound = Bound(inner, self.targets) if self.targets else None

    @property
    def short_name(self) -> str:
        return f"{self.what}({self.inner.short_name})"

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        count = len(self.targets)
        if self.bound is None:
            written = DifferentiableCall(session, self.inner, args, kwargs)
        else:
            values = [_now(session, target) for target in self.targets]
            written = DifferentiableCall(session, self.bound, [values, tuple(args), kwargs], {})
        value = yield written.call()
        shapes: list[tuple[range, tree.Structure]] = []
        numbers = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
        for n in numbers:
            shapes.append(self._positions(written, n, args))
            self._refuse_static(shapes[-1][1], n)
        wanted = [index for indices, _ in shapes for index in indices]
        if len(set(wanted)) < len(wanted):
            raise CaptureError(f"argnums={brief(self.argnums)} names an argument twice", hint="name each argument once")
        written.refuse_integers(wanted)
        answer, aux = self._split(value)
        scalar = scalar_of(answer, self.inner.name)
        every = dict.fromkeys([*wanted, *range(count)])
        one = Const(np.ones((), scalar.type.dtype.numpy))
        found = written.gradient({scalar.port.index: one}, list(every), self.sparse_rows) if every else []
        made = dict(zip(every, found, strict=True))
        parts = [tree.unflatten(own, [made[index] for index in indices]) for indices, own in shapes]
        gradients: Any = parts[0] if isinstance(self.argnums, int) else tuple(parts)
        if self.has_targets:
            held = tree.unflatten(self.structure, [made[index] for index in range(count)])
            gradients = (gradients, held) if numbers else held
        if self.keeps_value:
            return (answer, aux) if self.has_aux else answer, gradients
        return (gradients, aux) if self.has_aux else gradients

    def _positions(self, written: DifferentiableCall, number: int, args: list[Any]) -> tuple[range, tree.Structure]:
        """The leaves of an argument, as argnums counts, and its structure."""
        n = number + (self.skipped if number >= 0 else len(args))
        if not self.skipped <= n < len(args):
            count = len(args) - self.skipped
            raise CaptureError(
                f"argnums={number}, but `{self.inner.name}` has {count} positional argument{'s' * (count != 1)}",
                hint="argnums counts from 0; -1 is the last one",
            )
        if self.bound is None:
            return written.positions(n)
        at = len(self.targets)
        for value in args[:n]:
            at += len(tree.flatten(value, is_traced)[0])
        leaves, own = tree.flatten(args[n], is_traced)
        return range(at, at + len(leaves)), own

    def _refuse_static(self, structure: tree.Structure, number: int) -> None:
        """Variables, and arguments that are nothing but a text or its kind, have no gradient: say so."""
        for token in structure:
            value = token[1].value if token[0] == "static" else None
            if isinstance(value, Variable):
                verb = "is" if len(structure) == 1 else "holds"
                what = f"{verb} the variable `{value.name}`, which has no gradient as an argument"
                hint = f"write ut.{self.what}(f, variables=v), or give the value of the variable: v.read()"
            elif value is not None and len(structure) == 1:
                what, hint = f"is {brief(value)}: only floats have gradients", "name another argument: argnums=1"
            else:
                continue
            raise TypeMismatch(f"argument {number} of `{self.inner.name}` {what}", hint=hint)

    def _split(self, value: Any) -> tuple[Any, Any]:
        if not self.has_aux:
            return value, None
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeMismatch(
                f"`{self.inner.name}` returns {describe(value)}, but has_aux=True wants a pair",
                hint="return the number and what else is to be given back: return loss, predictions",
            )
        return value


class PulledBack(Adapted):
    """From primals and cotangents to the cotangents of the primals: what `vjp` gives outside of a capture."""

    parameters = ("primals", "cotangents")

    def __init__(self, inner: Definition) -> None:
        super().__init__(inner, f"vjp({inner.name})")

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        primals, cotangents = args
        written = DifferentiableCall(session, self.inner, list(primals), {})
        yield written.call()
        return pull_back(written, cotangents)


class Pullback:
    """What `vjp` gives beside the value, inside of a capture: cotangents of the results to those of the arguments."""

    __undertow_static__ = True

    def __init__(self, written: DifferentiableCall, skipped: int) -> None:
        self.written = written
        self.skipped = skipped  # arguments that a method is bound to
        self.is_used = False

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        written, session = self.written, self.written.session
        is_there = session.ctx.builder is written.builder and written.builder.region == written.region
        if self.is_used or not is_there:  # a call has one gradient, where it stands
            written = DifferentiableCall(session, written.definition, written.args, written.kwargs)
            drive(written.call())
        self.is_used = True
        return pull_back(written, cotangents)[self.skipped :]


def pull_back(written: DifferentiableCall, cotangents: Any) -> tuple[Any, ...]:
    """Write the gradient for these cotangents; a container like the arguments, None for what is no float."""
    name = written.definition.name
    results, structure = tree.flatten(written.value, is_traced)
    given = tree.along(structure, cotangents)
    if given is None or any(tree.children(cotangent) is not None for cotangent in given):
        raise TypeMismatch(
            f"the cotangent is {describe(cotangents)}, but `{name}` returns {describe(written.value)}",
            hint="give a cotangent of the same structure, as in back(ut.ones_like(value))",
        )
    found: dict[int, Operand] = {}
    for result, cotangent in zip(results, given, strict=True):
        if cotangent is not None and result.type.dtype.kind == "float":
            found[result.port.index] = operand(_fit(cotangent, result.type, name))
    assert written.arguments is not None
    wanted = [k for k, t in enumerate(written.arguments.types) if t.dtype.kind == "float"]
    made: list[Any] = [None] * len(written.arguments.types)
    if found and wanted:
        for index, value in zip(wanted, written.gradient(found, wanted), strict=True):
            made[index] = value
    else:
        for index in wanted:
            made[index] = zeros_like(written.arguments.leaves[index])
    parts: list[Any] = []
    at = 0
    for value in written.args:
        leaves, own = tree.flatten(value, is_traced)
        bare = tuple(_NOTHING if token[0] == "static" else token for token in own)
        parts.append(tree.unflatten(bare, made[at : at + len(leaves)]))
        at += len(leaves)
    return tuple(parts)


_NOTHING: tree.Token = ("static", tree.Identity(None))


def _fit(cotangent: Any, type_: Type, name: str) -> Any:
    value = cotangent if isinstance(cotangent, Traced) else constant(cotangent, type_.dtype)
    held = value.type if isinstance(value, Traced) else Type(type_.dtype, np.shape(value))
    if not type_.accepts(held):
        raise TypeMismatch(
            f"the cotangent of {said(type_)} that `{name}` returns is {said(held)}",
            hint="give one of the same dtype and shape",
        )
    return value


def _now(session: Session, target: Any) -> Any:
    """The value of a variable, or of an array, as a traced value or a constant."""
    value = session.bound(target)
    if value is not target:
        return value
    return target.read() if isinstance(target, Variable) else constant(target)


def flatten_targets(targets: Any) -> tuple[list[Any], tree.Structure]:
    """The variables and arrays of a container."""
    if targets is None:
        return [], ()
    leaves, structure = tree.flatten(targets, lambda x: isinstance(x, (Variable, np.ndarray)))
    static = [token[1].value for token in structure if token[0] == "static"]
    for leaf in (*leaves, *static):
        if not isinstance(leaf, (Variable, np.ndarray)):
            raise TypeMismatch(
                f"variables={brief(targets)}: {brief(leaf)} is neither a variable nor an array",
                hint="name ut.Variables, or the NumPy arrays that the function uses, in any container",
            )
        type_ = leaf.type if isinstance(leaf, Variable) else leaf_type(leaf)
        if type_.dtype.kind != "float":
            what = f"variable `{leaf.name}`" if isinstance(leaf, Variable) else "an array in variables="
            raise TypeMismatch(
                f"{what} is {said(type_)}: only floats have gradients",
                hint="leave it out of variables=, or make it hold floats",
            )
    if len({id(leaf) for leaf in leaves}) != len(leaves):
        raise TypeMismatch("variables= names one variable twice", hint="name each variable once")
    return leaves, structure
