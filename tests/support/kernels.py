"""Kernels of the core on lanes of examples: which there are, how to run one, operands at the edges of each dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.support.op_examples import FLOATS, INTS, values_of

from undertow import _core
from undertow.ir.graph import Attrs
from undertow.ops import arith, logic, nn, special
from undertow.ops.op import CATALOGUE
from undertow.types import DTYPES, type_of

# print acts in Python; variables live there.
WITHOUT = {"print"} | {name for name, row in CATALOGUE.items() if row.state or row.tagged}
OPS = sorted(CATALOGUE.keys() - WITHOUT)
ELEMENTWISE = {row.name for family in (arith, logic, nn, special) for row in family.ROWS} - {"softmax", "log_softmax"}
ISAS = _core.isas()


def attrs_of(given: dict[str, Any]) -> Attrs:
    return Attrs(**given)


def run(
    name: str, lanes: Sequence[Any], shared: Sequence[bool], given: dict[str, Any], isa: str = ""
) -> list[np.ndarray[Any, Any]]:
    """The kernel of an operator on operands whose first axis is that of lanes, but for shared ones."""
    types = [
        type_of(np.empty(np.shape(v) if s else np.shape(v)[1:], np.asarray(v).dtype))
        for v, s in zip(lanes, shared, strict=True)
    ]
    out = CATALOGUE[name].type(types, attrs_of(given))
    wanted = [("bool" if t.dtype.kind == "ctl" else t.dtype.name, t.rank) for t in out]
    return _core.run_kernel(name, given, [np.asarray(v, order="C") for v in lanes], list(shared), wanted, isa)


def lane_of(lanes: Sequence[Any], shared: Sequence[bool], lane: int) -> list[Any]:
    return [np.asarray(v if s else v[lane])[()] for v, s in zip(lanes, shared, strict=True)]


# Operands that name places or sizes: what is in them must stay in range.
NAMING = {
    "slice_at": (1,), "slice_between": (1, 2), "take": (1,), "take_along_axis": (1,), "scatter_add": (1,),
    "add_along_axis": (1,), "put_between": (2, 3), "put_rows": (2,), "within": (0, 1), "arange": (0, 1, 2),
    "compress": (1,), "solve": (0,), "slogdet": (0,), "cholesky": (0,), "qr": (0,), "eigh": (0,), "svd": (0,),
    "pinv": (0, 1), "polygamma": (0,),
}  # fmt: skip
SIZED = ("reshape", "broadcast_to", "sum_to", "unslice", "fill", "random_bits", "random_uniform", "random_normal")


def is_naming(name: str, operand: int) -> bool:
    first = 1 if name in SIZED or name == "index" else 2 if name == "put" else 99
    return operand in NAMING.get(name, ()) or operand >= first


def spread(name: str, values: Sequence[Any], shared: Sequence[bool], count: int) -> list[Any]:
    """An example for many lanes: each has numbers of its own, but the same places and sizes."""
    out = []
    for k, (value, is_shared) in enumerate(zip(values, shared, strict=True)):
        value = np.asarray(value)
        if is_shared:
            out.append(value)
        elif is_naming(name, k) or name in ("assert", "raise"):
            out.append(np.stack([value] * count) if count else np.empty((0, *value.shape), value.dtype))
        else:
            dtype = type_of(value).dtype.name
            numbers = [values_of(dtype, value.shape, seed) for seed in range(min(count, 70))]
            repeated = [numbers[lane % 70] for lane in range(count)]
            out.append(np.stack(repeated) if count else np.empty((0, *value.shape), value.dtype))
    return out


def edges(dtype: str) -> Any:
    if dtype == "bool":
        return np.array([False, True])
    numpy = DTYPES[dtype].numpy
    if dtype in INTS:
        info = np.iinfo(numpy)  # type: ignore[type-var]
        return np.array([info.min, info.min + 1, -7, -2, -1, 0, 1, 2, 3, 7, 31, 32, 33, 63, 64, info.max], numpy)
    info = np.finfo(numpy)  # type: ignore[assignment]
    few = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 10.0, 88.5, 709.5, 1e5, 3e9, 1e19, np.inf]
    tiny = [float(info.tiny), float(info.smallest_subnormal), float(info.eps), float(info.max)]  # type: ignore[attr-defined]
    return np.array([*few, *tiny, *(-x for x in few), *(-x for x in tiny), np.nan], numpy)


def near(dtype: str) -> Any:
    """Floats of all sizes, and edges."""
    if dtype not in FLOATS:
        return edges(dtype)
    random = np.random.default_rng(5)
    parts = [random.normal(0, size, 400) for size in (1e-9, 1e-3, 0.3, 1, 5, 40, 300, 1e4)]
    return np.concatenate([edges(dtype), *parts, random.uniform(-1, 1, 400)]).astype(DTYPES[dtype].numpy)
