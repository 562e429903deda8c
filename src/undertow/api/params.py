"""Matches parameters with their gradients, leaf by leaf, and checks that they fit.

>>> [pair.path for pair in paired({"W": np.zeros(2), "b": 0.0}, {"b": 1.0, "W": np.ones(2)})]
['params.W', 'params.b']
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions.creation import full_like
from undertow.frontend.trace.by_class import is_users_object
from undertow.frontend.values import tree
from undertow.frontend.values.operands import as_operand, convert, type_of
from undertow.frontend.values.rows import IndexedRows
from undertow.frontend.values.state import Variable
from undertow.frontend.values.traced import Traced
from undertow.types import Type, said


@dataclass(frozen=True, slots=True)
class Pair:
    """A parameter and its gradient: an array of its type, sparse rows of its dtype, or None for no update."""

    path: str
    param: Any
    gradient: Any


def is_leaf(value: Any) -> bool:
    """Is it a leaf, even if it is also a container?"""
    return isinstance(value, (Traced, IndexedRows, Variable))


def _is_given(value: Any) -> bool:
    return value is None or is_leaf(value)


def type_at(value: Any) -> Type:
    """The type of a leaf."""
    return value.type if is_leaf(value) else type_of(as_operand(value))


def gradients(grads: Any) -> tuple[list[str], list[Any], tree.Structure]:
    """The leaves of a container of gradients, None included, with their paths and the structure around them."""
    leaves, structure = tree.flatten(grads, _is_given)
    paths = tree.paths(grads, "grads", _is_given)
    for path, leaf in zip(paths, leaves, strict=True):
        if leaf is not None and type_at(leaf).dtype.kind != "float":
            is_complex = type_at(leaf).dtype.kind == "complex"
            raise TypeMismatch(
                f"the gradient `{path}` must be a float, not {said(type_at(leaf))}",
                hint="train the parts: z = a + 1j * b" if is_complex else "use None where there is no gradient",
            )
    return paths, leaves, structure


def paired(params: Any, grads: Any) -> list[Pair]:
    """Each parameter with its gradient, matched by path; dicts may be in any order."""
    values, _ = tree.flatten(params, is_leaf)
    paths = tree.paths(params, "params", is_leaf)
    places, gradient_leaves, _ = gradients(grads)
    wanted = [path.removeprefix("params") for path in paths]
    grad_places = [place.removeprefix("grads") for place in places]
    if wanted != grad_places:
        by_place = dict(zip(grad_places, gradient_leaves, strict=True))
        missing = next((place for place in wanted if place not in by_place), None)
        extra = next((place for place in grad_places if place not in wanted and by_place[place] is not None), None)
        if missing is not None or extra is not None:
            raise _unequal(missing, extra)
        gradient_leaves = [by_place[place] for place in wanted]
    return [Pair(path, x, _fitting(path, x, g)) for path, x, g in zip(paths, values, gradient_leaves, strict=True)]


def _unequal(missing: str | None, extra: str | None) -> TypeMismatch:
    if missing is not None:
        return TypeMismatch(
            f"`params{missing}` has no gradient: there is no `grads{missing}`",
            hint="gradients have the structure of the parameters; use None for a parameter that stays as it is",
        )
    return TypeMismatch(
        f"`grads{extra}` has no parameter: there is no `params{extra}`",
        hint="gradients have the structure of the parameters; remove the extra ones",
    )


def _fitting(path: str, param: Any, gradient: Any) -> Any:
    if gradient is None:
        return None
    grad_path = f"grads{path.removeprefix('params')}"
    has, gets = type_at(param), type_at(gradient)
    if has.dtype.kind != "float":
        raise TypeMismatch(
            f"`{path}` is {said(has)}, but only floats can be trained",
            hint=f"pass None instead of `{grad_path}` to leave it as it is",
        )
    if len(has.shape) != len(gets.shape) or any(
        a != b for a, b in zip(has.shape, gets.shape, strict=True) if isinstance(a, int) and isinstance(b, int)
    ):
        raise TypeMismatch(
            f"`{grad_path}` is {said(gets)}, but `{path}` is {said(has)}", hint="the shapes must be equal"
        )
    if isinstance(gradient, IndexedRows):
        return gradient if gets.dtype == has.dtype else gradient.astype(has.dtype)
    return convert(as_operand(gradient), has.dtype)


def refuse_objects(params: Any, structure: tree.Structure) -> None:
    """Refuse objects among the parameters: an optimizer makes new parameters, and cannot make an object."""
    for token in structure:
        if token[0] == "static" and is_users_object(token[1].value):
            verb = "is" if len(structure) == 1 else "holds"
            raise TypeMismatch(
                f"`params` {verb} {brief(token[1].value)}: an optimizer updates arrays in containers, not objects",
                hint="keep the parameters in a dict or a dataclass; or update attributes yourself: m.w -= rate * g.w",
            )


def variables_in(container: Any) -> tuple[list[Variable], tree.Structure]:
    """The variables of a container, checked to be distinct and of floats."""
    leaves, structure = tree.flatten(container, is_leaf)
    paths = tree.paths(container, "variables", is_leaf)
    seen: set[int] = set()
    for path, leaf in zip(paths, leaves, strict=True):
        if not isinstance(leaf, Variable) or leaf.dtype.kind != "float":
            shown = said(leaf.type) if isinstance(leaf, Variable) else brief(leaf)
            raise TypeMismatch(
                f"`{path}` must be a variable of floats, not {shown}", hint="create one with ut.Variable(x)"
            )
        if id(leaf) in seen:
            raise TypeMismatch(f"`{path}` repeats the variable `{leaf.name}`", hint="list it once")
        seen.add(id(leaf))
    if not leaves:
        raise TypeMismatch("there are no variables to update", hint="pass a container of ut.Variable")
    return leaves, structure


def like(value: Any, fill: float) -> Any:
    """A value like a parameter, filled with one number. Non-floats are not trained: a scalar will do."""
    x = as_operand(value)
    return full_like(x, fill) if type_of(x).dtype.kind == "float" else np.zeros((), type_of(x).dtype.numpy)[()]
