"""Definitions made from others: gradients, pullbacks, functions whose forward values are not kept.

Each takes the arguments of the function that it is made from, and writes a call of that function and its gradient
(pullback.py). A pass, `extend`, turns these into graphs.
"""

from __future__ import annotations

import copy
import inspect
import operator
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.interpret.drive import Work
from undertow.frontend.objects.arguments import is_handle
from undertow.frontend.objects.gradient import float_columns
from undertow.frontend.objects.gradient import token_of as gradient_token
from undertow.frontend.objects.kinds import Kinds
from undertow.frontend.syntax.calling import decorated, is_user_code, signature_with
from undertow.frontend.syntax.source import Closure, NoSource
from undertow.frontend.trace.definition import Check, Definition
from undertow.frontend.trace.pullback import DifferentiableCall, pull_back, scalar_of, write_call
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.state import Variable
from undertow.frontend.values.traced import Traced, is_traced
from undertow.ir.graph import Const
from undertow.types import said


def definition_of(function: Any, what: str) -> tuple[Definition, tuple[Any, ...]]:
    """The definition of what the user passes as a function, and the arguments that it is bound to."""
    known = decorated(function)
    if known is not None:
        return known
    bound: tuple[Any, ...] = ()
    if isinstance(function, MethodType):
        function, bound = function.__func__, (function.__self__,)
    elif not isinstance(function, (FunctionType, Closure, partial, type)):
        method = inspect.getattr_static(type(function), "__call__", None)
        if decorated(method) is not None or is_user_code(method):  # an object that can be called
            inner, _ = definition_of(method, what)
            return inner, (function,)
    if isinstance(function, FunctionType):
        return _definition(function), bound
    if isinstance(function, Closure):
        return Definition(function), bound
    if isinstance(function, partial):
        raise CaptureError(
            f"{what} works on functions, not on a functools.partial",
            hint=f"pass a lambda that calls it: {what}(lambda x: f(2.0, x))",
        )
    hint = f"write {what}(f), then call the result: {what}(f)(x)"
    if callable(function):
        hint = f"pass a lambda that calls it: {what}(lambda x: f(x))"
    raise CaptureError(f"{what} works on functions, not on {brief(function)}", hint=hint)


def _definition(function: FunctionType) -> Definition:
    """The one definition of an undecorated function, stored on the function, so that it lives as long.

    A function that a loop makes anew, which reads the same variables, shares the definition of the one before.
    """
    found: Definition | None = function.__dict__.get("__undertow_plain__")
    if found is not None and _is_same_function(found.function, function):  # functools.wraps copies what is stored
        return found
    if function.__defaults__ or function.__kwdefaults__ or function.__annotations__ or function.__dict__:
        found = Definition(function)
    else:
        found = _LAST.get(id(function.__code__))
        if found is None or not _is_same_function(found.function, function):
            found = _LAST[id(function.__code__)] = Definition(function)
    function.__dict__["__undertow_plain__"] = found
    return found


# By the id of its code, the definition of the function that was made of it last, until it is collected as garbage.
_LAST: weakref.WeakValueDictionary[int, Definition] = weakref.WeakValueDictionary()


def _is_same_function(a: Any, b: FunctionType) -> bool:
    """Do they mean the same, whatever their variables are: are they one, or of one `def` or `lambda`?"""
    return a is b or (
        isinstance(a, FunctionType)
        and not (b.__defaults__ or b.__kwdefaults__ or b.__annotations__)
        and not (a.__defaults__ or a.__kwdefaults__ or a.__annotations__)
        and a.__code__ is b.__code__
        and a.__globals__ is b.__globals__
        and all(map(operator.is_, a.__closure__ or (), b.__closure__ or ()))
    )


class Made(Definition):
    """A definition made from another one."""

    is_python = False

    def __init__(self, inner: Definition, name: str) -> None:
        super().__init__(inner.function)
        self.inner = inner
        self._name = name

    def children(self, value: object) -> tuple[tree.Token, list[Any]] | None:
        return self.inner.children(value)


class Wrapped(Made):
    """A definition made from another one, with the same parameters and annotations."""

    @property
    def closure(self) -> Closure:
        if self._closure is None or self._closure.name != self._name:
            self._closure = copy.copy(self.inner.closure)
            self._closure.name = self._name
        return self._closure

    def note(self, name: str) -> Any:
        return None if name == "return" else self.inner.note(name)


class Checkpointed(Wrapped):
    """A function whose forward values are not kept: its gradient calls it again."""

    is_checkpoint = True

    def __init__(self, inner: Definition) -> None:
        super().__init__(inner, inner.name)

    def note(self, name: str) -> Any:
        return self.inner.note(name)

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        return self.inner.body(session, args, kwargs, check)


class Adapted(Made):
    """A definition made from another one, with its own parameters, at the same place in the source."""

    hands_key_on = True
    parameters: tuple[str, ...]

    @property
    def closure(self) -> Closure:
        if self._adapted is None:
            signature = signature_with(self.parameters, inspect.Parameter.POSITIONAL_ONLY)
            self._adapted = NoSource(self._name, signature, self.inner.closure.span)
        return self._adapted

    _adapted: Closure | None = None

    def forget(self) -> None:
        super().forget()
        self._adapted = None


class Bound(Adapted):
    """A function with some of its variables, or captured arrays, turned into arguments."""

    parameters = ("values", "args", "kwargs")

    def __init__(self, inner: Definition, targets: Sequence[Any], weak: Sequence[bool] = ()) -> None:
        super().__init__(inner, inner.name)
        self.targets = list(targets)  # variables, arrays, places of hidden arguments
        self.weak = weak or [False] * len(self.targets)  # Python numbers among them

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        values, positional, named = args
        before = session.binding
        session.binding = {
            **(before or {}),
            **{
                id(target): (target, Traced(value.builder, value.port, is_weak) if is_weak else value)
                for target, value, is_weak in zip(self.targets, values, self.weak, strict=True)
            },
        }
        try:
            return (yield session.call(self.inner, positional, named))
        finally:
            session.binding = before


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """A call that has been written, and what derivatives are taken with respect to."""

    call: DifferentiableCall
    shapes: Sequence[tuple[Sequence[int], tree.Structure]]  # of each chosen argument: its leaves, and its structure
    leaves: list[int]  # all floats, each once
    handles: Mapping[int, Any]  # the numbers of objects among the leaves: their gradients have these, too


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
        wanted = yield self.write_wanted(session, args, kwargs)
        call: DifferentiableCall = wanted.call
        answer, aux = self.split(call.value)
        scalar = scalar_of(answer, self.inner.name)
        one = Const(np.ones((), scalar.type.dtype.numpy))
        found = call.gradient({scalar.port.index: one}, wanted.leaves, self.sparse_rows) if wanted.leaves else []
        gradients = self.arrange(wanted, found)
        if self.keeps_value:
            return (answer, aux) if self.has_aux else answer, gradients
        return (gradients, aux) if self.has_aux else gradients

    def write_wanted(self, session: Session, args: list[Any], kwargs: dict[str, Any]) -> Work:
        """Write the call, and find which of its arguments derivatives are taken with respect to."""
        numbers = (self.argnums,) if isinstance(self.argnums, int) else self.argnums
        positions = [self._position(n, len(args)) for n in numbers]
        written = yield write_differentiable(
            session, self.inner, args, kwargs, [args[position] for position in positions], self.targets, self.bound
        )
        call = written.call
        shapes: list[tuple[Sequence[int], tree.Structure]] = []
        every_shape = tree.numbered(args, is_traced, len(written.at))
        leaves: dict[int, None] = {}
        for n, position in zip(numbers, positions, strict=True):
            indices, structure = written.shape(*every_shape[position])
            shapes.append((indices, structure))
            if structure == every_shape[position][1]:
                self._refuse_static(structure, n)
            elif not indices:
                self._refuse_empty(args[position], n)
            floats = call.floats(indices)
            if not floats:
                call.refuse_integers(indices)
            leaves |= dict.fromkeys(floats)
        if len(set(positions)) < len(positions):
            raise CaptureError(f"argnums={brief(self.argnums)} lists an argument twice", hint="list each argument once")
        wanted = list(leaves | dict.fromkeys(range(len(self.targets))))
        return Wanted(call, shapes, wanted, _handles_in(args, len(written.at)))

    def arrange(self, wanted: Wanted, found: Sequence[Any]) -> Any:
        """What was found for each wanted leaf, in containers like the arguments; None for what is no float."""
        made = dict(zip(wanted.leaves, found, strict=True))
        made = {**wanted.handles, **made}
        parts = [tree.unflatten(own, [made.get(index) for index in indices]) for indices, own in wanted.shapes]
        arranged: Any = parts[0] if isinstance(self.argnums, int) else tuple(parts)
        if self.has_targets:
            held = tree.unflatten(self.structure, [made[index] for index in range(len(self.targets))])
            arranged = (arranged, held) if parts else held
        return arranged

    def _position(self, number: int, positional: int) -> int:
        """The position of the argument that a number in argnums means."""
        n = number + (self.skipped if number >= 0 else positional)
        if not self.skipped <= n < positional:
            count = positional - self.skipped
            raise CaptureError(
                f"argnums={number}, but `{self.inner.name}` has {count} positional argument{'s' * (count != 1)}",
                hint="argnums counts from 0; -1 is the last one",
            )
        return n

    def _refuse_static(self, structure: tree.Structure, number: int) -> None:
        """Refuse arguments that have no gradient: variables, and static ones such as strings."""
        for token in structure:
            value = token[1].value if token[0] == "static" else None
            if isinstance(value, Variable):
                verb = "is" if len(structure) == 1 else "holds"
                what = f"{verb} the variable `{value.name}`, which has no gradient as an argument"
                hint = f"write ut.{self.what}(f, variables=v), or pass the value of the variable: v.read()"
            elif value is not None and len(structure) == 1:
                what, hint = f"is {brief(value)}: only floats have gradients", "choose another argument: argnums=1"
            else:
                continue
            raise TypeMismatch(f"argument {number} of `{self.inner.name}` {what}", hint=hint)

    def _refuse_empty(self, value: Any, number: int) -> None:
        raise TypeMismatch(
            f"argument {number} of `{self.inner.name}` is {brief(value)}, which holds no floats to differentiate by",
            hint="make its numbers floats, as in 1.0 or np.zeros(3), or choose another argument: argnums=1",
        )

    def split(self, value: Any) -> tuple[Any, Any]:
        if not self.has_aux:
            return value, None
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeMismatch(
                f"`{self.inner.name}` returns {describe(value)}, but has_aux=True needs a pair",
                hint="return the number and the auxiliary value: return loss, predictions",
            )
        return value


class PulledBack(Adapted):
    """From primals and cotangents to the cotangents of the primals: what `vjp` returns outside a capture."""

    parameters = ("primals", "cotangents")

    def __init__(self, inner: Definition) -> None:
        super().__init__(inner, f"vjp({inner.name})")

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        primals, cotangents = args
        written = yield write_differentiable(session, self.inner, primals, {}, primals)
        return pull_back(written.call, cotangents, written.shapes(primals))


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A call that can be differentiated, and where the floats are that objects among its arguments hold."""

    call: DifferentiableCall
    mirrors: dict[int, Any]  # of objects, by identity
    at: dict[Any, int]  # what gradients are taken with respect to, besides arguments -> its number
    columns: Mapping[Kinds, dict[int, int]]  # of objects of run-time shape: columns -> numbers in `at`

    def shape(self, indices: Sequence[int], structure: tree.Structure) -> tuple[Sequence[int], tree.Structure]:
        """The structure of an argument, with the floats of objects in their places, and where its leaves are."""
        numbers: list[int] = []
        tokens: list[tree.Token] = []
        skipped = False
        rest = iter(indices)
        for token in structure:
            if is_handle(token):
                columns = self.columns[token[4]]
                tokens += [gradient_token(tuple(columns)), *[tree.LEAF] * len(columns)]  # and one for its number
                numbers += [next(rest), *columns.values()]
                skipped = True
                continue
            if skipped:
                tokens.append(token)
                skipped = False
                continue
            mirror = self.mirrors.get(id(token[1].value)) if token[0] == "static" else None
            if mirror is None:
                tokens.append(token)
                numbers += [next(rest)] if token == tree.LEAF else []
            else:
                leaves, inner = tree.flatten(mirror, _is_float)
                tokens += inner
                numbers += [self.at[_known_by(leaf)] for leaf in leaves]
        return numbers, tuple(tokens)

    def shapes(self, args: Sequence[Any]) -> list[tuple[Sequence[int], tree.Structure]]:
        """The same of all arguments."""
        return [self.shape(*shape) for shape in tree.numbered(args, is_traced, len(self.at))]


def write_differentiable(
    session: Session,
    definition: Definition,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    chosen: Sequence[Any],
    targets: Sequence[Any] = (),
    bound: Definition | None = None,
) -> Work:
    """Write a call that can be differentiated by its arguments, by targets, and by floats of objects in `chosen`."""
    mirrors: dict[int, Any] = {}
    columns: dict[Kinds, tuple[int, ...]] = {}
    for value in chosen:
        for token in tree.flatten(value, is_traced)[1]:
            if token[0] == "static" and (mirror := session.floats_of(token[1].value)) is not None:
                mirrors[id(token[1].value)] = mirror
            if is_handle(token):
                columns[token[4]] = float_columns(token[4])
    now = [_now(session, target) for target in targets]
    at: dict[Any, int] = {}
    for target, value in zip(targets, now, strict=True):
        at[_known_by(target if isinstance(target, Variable) else value)] = len(at)
    hidden: list[Any] = []
    floats = [leaf for mirror in mirrors.values() for leaf in tree.flatten(mirror, _is_float)[0]]
    floats += [session.objects.columns[number] for numbers in columns.values() for number in numbers]
    for leaf in floats:
        if _known_by(leaf) not in at:
            at[_known_by(leaf)] = len(at)
            hidden.append(leaf)
    numbered = {
        kinds: {number: at[_known_by(session.objects.columns[number])] for number in numbers}
        for kinds, numbers in columns.items()
    }
    if not at:
        call = yield write_call(session, definition, args, kwargs)
        return Written(call, mirrors, at, numbered)
    if bound is None or hidden:
        places = [leaf if isinstance(leaf, Variable) else session.place_of(leaf) for leaf in hidden]
        weak = [False] * len(now) + [is_traced(leaf) and leaf.is_weak for leaf in hidden]
        bound = Bound(definition, [*targets, *places], weak)
    values = [*now, *(_now(session, leaf) if isinstance(leaf, Variable) else leaf for leaf in hidden)]
    call = yield write_call(session, bound, [values, tuple(args), kwargs], {})
    return Written(call, mirrors, at, numbered)


def _handles_in(args: Sequence[Any], at: int) -> dict[int, Any]:
    """The numbers of the objects among arguments, by the numbers of these leaves."""
    leaves, structure = tree.flatten(list(args), is_traced)
    found: dict[int, Any] = {}
    count = 0
    for token in structure:
        if is_handle(token):
            found[at + count] = leaves[count]
        count += token == tree.LEAF
    return found


def _is_float(value: Any) -> bool:
    """Is it a float of an object: a hidden argument, or a variable?"""
    return isinstance(value, (Traced, Variable))


def _known_by(value: Any) -> Any:
    """What is the same for the same hidden argument, variable or array."""
    return value.port if isinstance(value, Traced) else id(value)


def _now(session: Session, target: Any) -> Any:
    """The current value of a variable, or of an array, as a traced value or a constant."""
    value = session.bound(target)
    if value is not target:
        return value
    return target.read() if isinstance(target, Variable) else session.hidden_array(target)


def flatten_targets(targets: Any) -> tuple[list[Any], tree.Structure]:
    """The variables and arrays of a container."""
    if targets is None:
        return [], ()
    leaves, structure = tree.flatten(targets, lambda x: isinstance(x, (Variable, np.ndarray)))
    static = [token[1].value for token in structure if token[0] == "static"]
    for leaf in (*leaves, *static):
        if not isinstance(leaf, (Variable, np.ndarray)):
            raise TypeMismatch(
                f"variables={brief(targets)} contains {brief(leaf)}, which is neither a variable nor an array",
                hint="list ut.Variables, or the NumPy arrays that the function uses, in any container",
            )
        type_ = leaf.type if isinstance(leaf, Variable) else leaf_type(leaf)
        if not type_.dtype.is_inexact:
            what = f"variable `{leaf.name}`" if isinstance(leaf, Variable) else "an array in variables="
            raise TypeMismatch(
                f"{what} is {said(type_)}: only floats have gradients",
                hint="remove it from variables=, or use floats",
            )
    if len({id(leaf) for leaf in leaves}) != len(leaves):
        raise TypeMismatch("variables= lists a variable twice", hint="list each variable once")
    return leaves, structure
