"""Derivatives of operators on complex numbers: tangents against differences, gradients against tangents.

The cotangent g of a complex value z says that the result changes by the real part of g * dz: JAX's convention.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.op_examples import OF_COMPLEX, ROWS
from tests.support.tape import Tape

from undertow.ir.graph import Attrs, Const
from undertow.ops.gradient import Applied, NoGradient, dense
from undertow.ops.op import evaluate, find
from undertow.ops.term import Term
from undertow.types import type_of

STEP = 1e-6
CONSTANT = {"isnan", "isinf", "isfinite", "equal", "not_equal"}


def cases(name: str) -> list[tuple[list[Any], dict[str, Any]]]:
    """Examples in double precision in which something can change and something comes out."""
    found = []
    for values, given in OF_COMPLEX[name]:
        kinds = [np.asarray(v).dtype for v in values]
        is_double = any(k.kind in "fc" for k in kinds) and np.complex64 not in kinds and np.float32 not in kinds
        if not is_double or (name == "cast" and given["dtype"] != "c128"):
            continue
        if np.asarray(evaluate(name, values, Attrs(**given))[0]).size:
            found.append((values, given))
    return found


def direction(value: Any, seed: int) -> Any:
    random = np.random.default_rng(seed)
    shape = np.shape(value)
    return (random.normal(size=shape) + (1j * random.normal(size=shape) if np.iscomplexobj(value) else 0))[()]


def paired(cotangent: Any, change: Any) -> float:
    return float(np.sum(np.real(np.asarray(cotangent) * np.asarray(change))))


@pytest.mark.parametrize("name", sorted(OF_COMPLEX.keys() - CONSTANT))
def test_derivatives(name: str) -> None:
    assert not isinstance(ROWS[name].grad, NoGradient)
    assert cases(name)
    for values, given in cases(name):
        attrs = Attrs(**given)
        moves = [direction(v, k) if np.asarray(v).dtype.kind in "fc" else None for k, v in enumerate(values)]

        def at(shift: float, values: Any = values, moves: Any = moves, attrs: Any = attrs) -> Any:
            moved = [v if d is None else np.asarray(v + shift * d)[()] for v, d in zip(values, moves, strict=True)]
            return np.asarray(evaluate(name, moved, attrs)[0])

        wanted = (at(STEP) - at(-STEP)) / (2 * STEP)
        tape = Tape()
        x, tangents = (
            [None if v is None else Term(tape, Const(np.asarray(v))) for v in given] for given in (values, moves)
        )
        (result,) = evaluate(name, values, attrs)
        y = Term(tape, Const(np.asarray(result)))
        at_node = Applied(name, tuple(x), (y,), attrs, tuple(d is not None for d in moves))  # type: ignore[arg-type]
        row: Any = find(name)
        (got,) = row.tangent(at_node, tuple(tangents))
        assert got.type == y.type, (name, given)
        np.testing.assert_allclose(got.constant, wanted, rtol=1e-5, atol=1e-7, err_msg=str((name, values, given)))
        slope = np.asarray(direction(result, 99), y.type.dtype.numpy)
        total = 0.0
        for k, cotangent in enumerate(row.grad(at_node, (Term(tape, Const(slope)),))):
            if cotangent is not None:
                whole = dense(cotangent, x[k])  # type: ignore[arg-type]
                assert whole.type == type_of(np.asarray(values[k])), (name, given)
                total += paired(whole.constant, moves[k])
        assert total == pytest.approx(paired(slope, wanted), rel=1e-5, abs=1e-6), (name, values, given)
