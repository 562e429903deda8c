"""Errors of recursion that cannot be captured: results of unknown type, arguments of ever new types."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Sequence
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_origin, get_type_hints, is_typeddict

import numpy as np

from undertow.errors import CaptureError, Span
from undertow.frontend.syntax.calling import is_user_class
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.by_class import DATACLASS, is_users_object
from undertow.frontend.trace.definition import Arguments, Specialization
from undertow.frontend.values import tree
from undertow.types import DTYPES, DType, Type, i64, join


def may_be_inferred(closure: Closure) -> bool:
    """Does the annotation of the result leave open what it is, so that the other paths may say it?"""
    return "return" not in closure.annotations or any(closure.annotations["return"] is kind for kind in _VAGUE)


def unknown_result(closure: Closure, types: Sequence[Type], inside: Sequence[str], span: Span | None) -> CaptureError:
    """The error of a call, inside others, of a function that is being captured and has no annotated result."""
    names = inside[inside.index(closure.name) :] if closure.name in inside else []
    through = "" if len(names) < 2 else f" ({' -> '.join(f'`{n}`' for n in [*names, closure.name])})"
    if isinstance(closure.node, ast.Lambda):
        return CaptureError(
            "a lambda calls itself on every path, and cannot annotate its result",
            span,
            hint="use a `def` with an annotated result: `def f(n: ut.i64) -> ut.i64:`",
        )
    taken = ", ".join(closure.signature.parameters)
    written = closure.annotations.get("return")
    where, problem = _unusable(written)
    is_vague = any(written is kind or get_origin(written) is kind for kind in _VAGUE)
    said = f", but its annotation {'says too little' if is_vague else 'is not a type'}"
    said = said if "return" in closure.annotations else ": no path gives one without that call"
    like = max(types, key=lambda type: type.rank, default=Type(i64))  # often a result is like an argument
    shape = f"[{', '.join(['None'] * like.rank)}]" if like.rank else ""
    example = f"def {closure.node.name}({taken}) -> ut.{like.dtype}{shape}:"
    hint = f"annotate the result, as in `{example}`, or ut.f32[3], or tuple[ut.i64, ut.f64]"
    hint = hint if "return" in closure.annotations else f"add a base case; or {hint}"
    for kind, instead in _ANNOTATIONS.items():
        if written is not None and (written is kind or get_origin(written) is kind):
            hint = instead
    if problem and "return" in closure.annotations:
        said, hint = f", but {where}", problem
    return CaptureError(f"`{closure.name}` calls itself{through}, so its result must be annotated{said}", span, hint)


def _unusable(note: Any) -> tuple[str, str]:
    """What is wrong with an annotation of a result, and what to write for it; empty if nothing is known of it."""
    name = getattr(note, "__name__", str(note).rpartition(".")[2])
    if isinstance(note, type) and issubclass(note, np.generic):
        dtype = next((d for d in DTYPES.values() if d.numpy == np.dtype(note)), None)
        return f"np.{name} is NumPy's type", f"write `-> ut.{dtype or 'f64'}`"
    if get_origin(note) in (Union, UnionType):
        return (
            "a result has one type",
            "write the widest type, or one type and None: `-> ut.f64`, `-> ut.i64 | None`",
        )
    if get_origin(note) is Literal:
        return "Literal names values", "write the type of these: `-> ut.i64`"
    if note is Any or isinstance(note, TypeVar):
        return f"{name} may be anything", "write the type: `-> ut.i64`, `-> ut.f64[None]`, or a tuple of types"
    if hasattr(note, "__supertype__"):
        return f"{name} is a NewType", f"write `-> ut.{_NAMES.get(note.__supertype__, 'i64')}`"
    if is_typeddict(note):
        return f"{name} is a TypedDict", f"write a dict of types: `-> {_as_dict(get_type_hints(note))}`"
    if isinstance(note, type) and (dataclasses.is_dataclass(note) or hasattr(note, "_fields")):
        fields = [f.name for f in dataclasses.fields(note)] if dataclasses.is_dataclass(note) else list(note._fields)
        hints = note.__annotations__
        bad = next((f for f in fields if f not in hints or not _is_usable(hints[f])), fields[0] if fields else "")
        return (
            f"the field `{bad}` of {name} is not a number or array",
            f"annotate the field with a type: `{bad}: ut.f64`, in a dataclass or typing.NamedTuple",
        )
    if isinstance(note, type) and is_user_class(note):
        return f"{name} is a plain class", DATACLASS.format(name)
    return "", ""


def _is_usable(note: Any) -> bool:
    return note in _NAMES or isinstance(note, (DType, Type)) or str(note).startswith(_WRITTEN)


def _as_dict(hints: dict[str, Any]) -> str:
    return "{" + ", ".join(f'"{key}": ut.{_NAMES.get(note, "f64")}' for key, note in hints.items()) + "}"


_VAGUE: tuple[Any, ...] = (np.ndarray, tuple, dict)
_WRITTEN = ("ut.", "int", "float", "complex", "bool")
_NAMES: dict[Any, str] = {int: "i64", float: "f64", complex: "c128", bool: "bool"}


_ANNOTATIONS: dict[Any, str] = {
    np.ndarray: "say of what, and its axes: `-> ut.f64[None]` of any length, or `-> ut.f64[3]`",
    tuple: "say what it holds: `-> tuple[ut.i64, ut.f64]`",
    list: "say of what: `-> list[ut.i64]`, or `-> list[tuple[ut.i64, ut.f64]]`; a list may have any length",
    dict: 'say what it holds: `-> {"a": ut.i64, "b": ut.f64}`, or a dataclass with annotated fields',
    str: "texts are not known before the run: return numbers, and make a text of them in the caller",
}


def joined(function: Specialization, call: Arguments) -> tuple[tuple[Type, ...], tuple[bool, ...]] | None:
    """The types of arguments that take these, too, and which of them are Python numbers. None if there are none.

    A number beside a value of its kind takes that one's dtype.
    """
    none = (False,) * len(call.types)
    types: list[Type] = []
    weak: list[bool] = []
    for a, b, *are_weak in zip(function.types, call.types, function.weak or none, call.weak or none, strict=True):
        if are_weak[0] != are_weak[1] and a.dtype.kind == b.dtype.kind:
            a, b = (a, b.with_dtype(a.dtype)) if are_weak[1] else (a.with_dtype(b.dtype), b)
        both = join(a, b)
        if both is None:
            return None
        types.append(both)
        weak.append(all(are_weak))
    return tuple(types), tuple(weak) if True in weak else ()


def users_class(structure: tree.Structure) -> type | None:
    """The class of an object of the user's in a structure, one that is no dataclass; None if there is none."""
    held = (token[1].value for token in structure if token[0] == "static")
    return next((type(value) for value in held if is_users_object(value)), None)


def _holds_function(structure: tree.Structure) -> bool:
    return any(token[0] == "static" and callable(token[1].value) for token in structure)


def too_many_signatures(name: str, calls: Sequence[Arguments]) -> CaptureError:
    """The error of a recursion with arguments of a new type at each call: it names the argument and its types."""
    shown: list[list[str]] = []
    for call in calls[:4]:
        rest = iter(call.types)
        shown.append([tree.show(s, [next(rest) for token in s if token == tree.LEAF]) for s in call.structures])
    for number, parameter in enumerate(calls[0].parameters):
        held = [call.structures[number] for call in calls]
        if len(set(held)) == len(held) and any(map(_holds_function, held)):
            return CaptureError(
                f"argument `{parameter}` of `{name}` is a new function at each call, which refers to the one before",
                hint="the functions of a graph are known when it is captured: pass what they would remember "
                "as numbers or arrays, such as an accumulator, or return it and compute on the way back",
            )
        if len(set(held)) == len(held) and (kind := users_class(held[-1])) is not None:
            return CaptureError(
                f"argument `{parameter}` of `{name}` is another {kind.__name__} at each call",
                hint=DATACLASS.format(kind.__name__),
            )
    columns = list(zip(calls[0].parameters, zip(*shown, strict=False), strict=False))
    parameter, types = next(((n, c) for n, c in columns if len(set(c)) == len(c)), columns[0])
    while len(types) > 2 and sum(map(len, types)) > 80:
        types = types[:-1]
    is_text = types[0][:1] in ("'", '"')
    return CaptureError(
        f"argument `{parameter}` of `{name}` {'is another text' if is_text else 'has a different type'} at each call: "
        f"{', '.join(types)}, ...",
        hint="pass the codes of its characters, np.array([ord(c) for c in text]): an array may have any length"
        if is_text
        else "a recursive call must keep the dtypes, ranks and structures of its arguments",
    )
