"""Constants, attributes and names as text: printing and parsing.

>>> show_const(Const(np.float32(0.1))), show_const(Const(np.array([[True]])))
('0.1:f32', '[[true]]:bool[1,1]')
>>> read_const(["0.1"], "0.1:f32", type_of(np.float32(0))) == Const(np.float32(0.1))
True
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence

import numpy as np

from undertow.errors import GraphError
from undertow.ir.graph import Array, Attr, Const, Library, StaticGraph
from undertow.types import DType, Type, type_of

INLINE = 32  # arrays of more elements are printed as a reference
PART = r"(?:-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|-?inf|nan(?:\([0-9a-f]+\))?)"  # of a complex number
DEEPEST = 100  # lists in attributes: hashing nested tuples recurses in C, so a text must not choose the depth

# Operators as a person reads them between their operands: in Python's signs. Graph text has their names.
INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
    "logical_and": "and", "logical_or": "or", "bitwise_and": "&", "bitwise_or": "|", "matmul": "@",
}  # fmt: skip

# --------------------------------------------------------------------------------------------------------------
# Constants


def digest(value: Array) -> str:
    """The name of a big array in text: 16 hex digits over dtype, shape and bytes."""
    return hashlib.sha256(repr(type_of(value)).encode() + value.tobytes()).hexdigest()[:16]


def dump_constants(graph: Library | StaticGraph) -> dict[str, Array]:
    """The arrays that the text of `graph` only refers to, by digest: what `parse` takes as `constants`."""
    parts = graph.functions.values() if isinstance(graph, Library) else (graph,)
    operands = (operand for part in parts for node in part.nodes for operand in node.inputs)
    big = {id(c): c.value for c in operands if isinstance(c, Const) and c.value.size > INLINE}
    return {digest(value): value for value in big.values()}


def show_const(const: Const) -> str:
    """A constant written as an operand: `1:i64`, `true`, `0.0+1.0j:c128`, `f32[999,9]$a1b2c3d4e5f6a7b8`."""
    value, type_ = const.value, const.type
    if value.size > INLINE:
        return f"{type_}${digest(value)}"
    elements = [_show_element(element) for element in value.flat]
    if not type_.shape:
        return elements[0] if type_.dtype.kind == "bool" else f"{elements[0]}:{type_}"
    if not elements:
        return f"[]:{type_}"
    for dim in reversed(value.shape):
        elements = [f"[{', '.join(elements[k : k + dim])}]" for k in range(0, len(elements), dim)]
    return f"{elements[0]}:{type_}"


def _show_element(value: np.generic) -> str:
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    if isinstance(value, np.complexfloating):
        return f"{_show_element(value.real)}+{_show_element(value.imag)}j"
    to_numpy, bits = value.dtype.type, value.tobytes()
    if np.isnan(value):
        return "nan" if bits == to_numpy(np.nan).tobytes() else f"nan({bits[::-1].hex()})"
    short = str(value)
    # The shortest f32 is read through f64; should two roundings ever differ from one, the long form is exact.
    return short if to_numpy(float(short)) == value else repr(value.item())


def _element(text: str, dtype: DType) -> np.generic | None:
    """The inverse of `_show_element`; None if `text` is not an element of that dtype."""
    to_numpy = dtype.numpy.type
    if dtype.kind == "bool":
        return np.bool_(text == "true") if text in ("true", "false") else None
    try:
        if dtype.kind == "int":
            bound = 1 << (8 * dtype.size - 1)
            return to_numpy(int(text)) if -bound <= int(text) < bound else None
        if dtype.kind == "complex":
            return _complex(text, dtype)
        if text.startswith("nan("):
            bits = np.frombuffer(bytes.fromhex(text[4:-1])[::-1], dtype.numpy)
            return bits[0] if len(bits) == 1 and np.isnan(bits[0]) else None
        with np.errstate(over="ignore"):
            value: np.generic = to_numpy(float(text))
        return None if np.isinf(value) and "inf" not in text else value
    except ValueError:
        return None


def _complex(text: str, dtype: DType) -> np.generic | None:
    written = re.fullmatch(f"({PART})\\+({PART})j", text)
    parts = [_element(part, dtype.real) for part in written.groups()] if written else []
    whole = b"".join(part.tobytes() for part in parts if part is not None)  # bytes keep every NaN
    found: np.generic | None = np.frombuffer(whole, dtype.numpy)[0] if len(whole) == dtype.size else None
    return found


_SKELETON = re.compile(r"[^\[\],]+")


def read_const(elements: Sequence[str], written: str, type_: Type) -> Const | None:
    """The inverse of `show_const`, for a constant split into elements; None if these do not fit the type."""
    values = [_element(text, type_.dtype) for text in elements]
    const = _assemble([value for value in values if value is not None], type_)
    if const is None or _SKELETON.sub(".", written) != _SKELETON.sub(".", show_const(const).replace(" ", "")):
        return None
    return const


def _assemble(values: Sequence[np.generic], type_: Type) -> Const | None:
    # Through bytes, which keeps the bits of every NaN.
    flat = np.frombuffer(b"".join(value.tobytes() for value in values), type_.dtype.numpy)
    if type_.dtype.kind == "ctl" or not type_.is_static:
        return None
    try:
        return Const(flat.reshape([int(dim) for dim in type_.shape if dim is not None]))
    except (ValueError, OverflowError):
        return None


# --------------------------------------------------------------------------------------------------------------
# Attributes and names


def show_attr(value: Attr, depth: int = 0) -> str:
    """An attribute value as JSON, tuples as lists. (Recursion is as deep as `DEEPEST` lets lists be.)"""
    if isinstance(value, (tuple, list)):
        if depth == DEEPEST:
            raise GraphError(f"an attribute nests lists more than {DEEPEST} deep")
        return f"[{', '.join(show_attr(item, depth + 1) for item in value)}]"
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise GraphError(
            f"an attribute holds {value!r}, a {type(value).__name__}",
            hint="attributes are plain data: None, bool, int, float, str and tuples of them",
        )
    return show_string(value) if isinstance(value, str) else _show_plain(value)


def _show_plain(value: bool | int | float | None) -> str:
    # JSON has no word for nan, inf and -inf; float() reads ours.
    return repr(float(value)) if isinstance(value, float) and not math.isfinite(value) else json.dumps(value)


_NOT_JSON: dict[str, Attr] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
WORD = r"[A-Za-z_~][A-Za-z0-9_./~'@-]*"
_PLAIN = re.compile(WORD)
RESERVED = frozenset(("true", "false", "nan", "inf", "in", "as"))


def quote(name: str) -> str:
    """A name in the text: bare if it is a plain word, a JSON string otherwise.

    >>> quote("fib/left'"), quote("in"), quote("a b")
    ("fib/left'", '"in"', '"a b"')
    """
    return name if _PLAIN.fullmatch(name) and name not in RESERVED else show_string(name)


def show_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def read_scalar(text: str) -> Attr:
    """The inverse of `show_attr` for all but lists; a ValueError for invalid text."""
    value: Attr = _NOT_JSON[text] if text in _NOT_JSON else json.loads(text)
    return value
