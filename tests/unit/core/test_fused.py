"""Fused operators give what the reference kernels give one after the other: any dtypes, any lengths, any sharing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow import _core
from undertow.ir.graph import Attrs
from undertow.ops.op import evaluate
from undertow.types import DTYPES

# Operators by the dtype of their operands and of their result; all exact, so that bits can be compared.
STEPS: dict[str, list[tuple[str, int, str]]] = {
    "bool": [("logical_and", 2, "bool"), ("logical_not", 1, "bool"), ("cast", 1, "f32"), ("cast", 1, "i64")],
    "i32": [("add", 2, "i32"), ("less", 2, "bool"), ("cast", 1, "f64"), ("negative", 1, "i32")],
    "i64": [("multiply", 2, "i64"), ("equal", 2, "bool"), ("cast", 1, "i32"), ("minimum", 2, "i64")],
    "f32": [("add", 2, "f32"), ("multiply", 2, "f32"), ("greater", 2, "bool"), ("cast", 1, "f64"), ("relu", 1, "f32")],
    "f64": [("subtract", 2, "f64"), ("sqrt", 1, "f64"), ("cast", 1, "f32"), ("isnan", 1, "bool"), ("divide", 2, "f64")],
}


def make(random: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    numbers = random.integers(-4, 5, shape)
    return (numbers > 0) if dtype == "bool" else numbers.astype(DTYPES[dtype].numpy)


def by_reference(
    program: list[Any], inputs: list[Any], shared: list[bool], shape: tuple[int, ...], lane: int
) -> list[Any]:
    registers = [np.broadcast_to(x if s else x[lane], shape) for x, s in zip(inputs, shared, strict=True)]
    for name, operands, dtype in program:
        attrs = Attrs(dtype=dtype) if name == "cast" else Attrs()
        with np.errstate(all="ignore"):
            (result,) = evaluate(name, [registers[k] for k in operands], attrs)
        registers.append(result)
    return registers


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_random_programs(data: st.DataObject) -> None:
    draw = data.draw
    random = np.random.default_rng(draw(st.integers(0, 1000)))
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 5), (100,), (700,), (3000,)]))
    lanes = draw(st.sampled_from([1, 2, 3, 64, 500] if np.prod(shape) < 200 else [1, 3]))
    inputs, shared, dtypes = [], [], []
    for _ in range(draw(st.integers(1, 4))):
        dtype = draw(st.sampled_from(list(STEPS)))
        own = draw(st.sampled_from([shape, (), shape, (1,) * len(shape)]))
        shared.append(draw(st.booleans()))
        inputs.append(make(random, dtype, own if shared[-1] else (lanes, *own)))
        dtypes.append(dtype)
    if all(shared):
        lanes = 1
    program = []
    for _ in range(draw(st.integers(1, 10))):
        first = draw(st.integers(0, len(dtypes) - 1))
        name, arity, dtype = draw(st.sampled_from(STEPS[dtypes[first]]))
        others = [k for k, d in enumerate(dtypes) if d == dtypes[first]]
        program.append((name, [first, *(draw(st.sampled_from(others)) for _ in range(arity - 1))], dtype))
        dtypes.append(dtype)
    outputs = draw(st.lists(st.integers(0, len(dtypes) - 1), min_size=1, max_size=3))
    for isa in _core.isas():
        results = _core.run_fused(program, inputs, shared, shape, outputs, isa)
        for lane in {0, lanes // 2, lanes - 1}:
            wanted = by_reference(program, inputs, shared, shape, lane)
            for out, got in zip(outputs, results, strict=True):
                np.testing.assert_array_equal(got[lane], wanted[out])


def test_where_reads_three_registers() -> None:
    x = np.linspace(-2, 2, 1000).reshape(10, 100)
    program = [("greater", [0, 1], "bool"), ("where", [2, 0, 1], "f64"), ("tanh", [3], "f64")]
    (got,) = _core.run_fused(program, [x, np.float64(0.5)], [False, True], [100], [4])
    np.testing.assert_allclose(got, np.tanh(np.maximum(x, 0.5)), rtol=1e-15)


@pytest.mark.parametrize(("lanes", "length"), [(1, 5000), (3, 2000), (300, 7), (5000, 1)])
def test_a_fault_names_lane_and_instruction(lanes: int, length: int) -> None:
    x = np.full((lanes, length), 5)
    y = np.full((lanes, length), 2)
    lane = lanes * 2 // 3
    y[lane, length // 2] = 0
    program = [("add", [0, 0], "i64"), ("floor_divide", [2, 1], "i64")]
    with pytest.raises(_core.KernelFault) as stop:
        _core.run_fused(program, [x, y], [False, False], [length], [3])
    assert stop.value.args == ("division by zero", lane, 1)
    y[lane, length // 2] = 1
    (got,) = _core.run_fused(program, [x, y], [False, False], [length], [3])
    np.testing.assert_array_equal(got, 10 // y)


def test_a_shared_divisor_of_zero() -> None:
    with pytest.raises(_core.KernelFault) as stop:
        _core.run_fused([("remainder", [0, 1], "i64")], [np.arange(6), np.int64(0)], [False, True], [], [2])
    assert stop.value.args == ("division by zero", 0, 0)


def test_inputs_must_fit() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        _core.run_fused([("negative", [0], "f64")], [np.ones((2, 3, 1))], [False], [3, 4], [1])
