"""Operators that run in one pass: what is put together, and that results, counters and faults stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.graphs import optimized

import undertow as ut
from undertow.engines.waves import WavesPlan
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library

RANDOM = np.random.default_rng(5)
LANES = 37


def passes_of(f: Any, *arguments: Any) -> list[list[str]]:
    """The operators of each pass."""
    graph = optimized(f, *arguments)
    return [[graph.nodes[number].op for number in group] for group in WavesPlan(graph).core.fused]


def agree(f: Callable[..., Any], arguments: Sequence[Any], **options: Any) -> Any:
    """The result of many lanes, after a look at what the reference makes of it."""
    mapped = ut.function(f)
    with ut.options(engine="reference"):
        wanted = mapped.map(*arguments)
    with ut.options(engine="waves", **options):
        found = mapped.map(*arguments)
    for a, b in zip(_leaves(found), _leaves(wanted), strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype == np.float64 else 2e-6, atol=1e-6)
    return found


def _leaves(value: Any) -> list[Any]:
    return [leaf for part in value for leaf in _leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def rows(*shape: int) -> Any:
    return RANDOM.standard_normal((LANES, *shape)).astype(np.float32)


# -- what is put together ------------------------------------------------------------------------------------------


def cell(z: ut.f32[100], left: ut.f32[20], right: ut.f32[20]) -> Any:
    """The cell of a TreeLSTM."""
    i, o, u, f, g = (z[20 * k : 20 * k + 20] for k in range(5))
    c = ut.sigmoid(i) * ut.tanh(u) + ut.sigmoid(f) * left + ut.sigmoid(g) * right
    return ut.sigmoid(o) * ut.tanh(c), c


def test_a_cell_is_one_pass_and_its_slices_are_no_copies() -> None:
    found = passes_of(ut.function(cell), np.zeros(100, "f4"), np.zeros(20, "f4"), np.zeros(20, "f4"))
    assert [len(group) for group in found] == [17]
    assert found[0].count("slice") == 5
    agree(cell, [rows(100), rows(20), rows(20)])


def test_the_gradient_of_a_cell_is_one_pass_that_writes_side_by_side() -> None:
    @ut.function
    def loss(z: ut.f32[100], left: ut.f32[20], right: ut.f32[20]) -> ut.f32:
        h, c = cell(z, left, right)
        return h @ c

    back = ut.grad(loss, argnums=(0, 1, 2))
    found = passes_of(back, np.zeros(100, "f4"), np.zeros(20, "f4"), np.zeros(20, "f4"))
    assert any("concat" in group and len(group) > 20 for group in found)
    assert not any("unslice" in group for group in found)
    values = rows(100), rows(20), rows(20)
    with ut.options(engine="reference"):
        wanted = back.map(*values)
    with ut.options(engine="waves"):
        found_values = back.map(*values)
    for a, b in zip(found_values, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def nll(logits: ut.f32[5], bias: ut.f32[5], label: ut.i32) -> ut.f32:
    shifted = logits + bias
    top = ut.max(shifted)
    return ut.log(ut.sum(ut.exp(shifted - top))) + top - shifted[label]


def test_a_short_softmax_is_one_pass() -> None:
    found = passes_of(ut.function(nll), np.zeros(5, "f4"), np.zeros(5, "f4"), np.int32(1))
    assert found == [["add", "max", "subtract", "exp", "sum", "log", "add", "index", "subtract"]]
    labels = RANDOM.integers(-5, 5, LANES).astype(np.int32)
    agree(nll, [rows(5), rows(5), labels])
    agree(nll, [rows(5), ut.shared(rows(5)[0]), labels])
    agree(nll, [ut.shared(rows(5)[0]), ut.shared(rows(5)[1]), labels])
    agree(nll, [rows(5), rows(5), ut.shared(np.int32(-1))])


def test_the_gradient_of_a_short_softmax() -> None:
    back = ut.grad(ut.function(nll))
    labels = RANDOM.integers(-5, 5, LANES).astype(np.int32)
    found = passes_of(back, np.zeros(5, "f4"), np.zeros(5, "f4"), np.int32(1))
    assert any({"max", "exp", "sum", "log", "index", "scatter_add"} <= set(group) for group in found)
    x = rows(5)
    with ut.options(engine="reference"):
        wanted = back.map(x, ut.shared(np.ones(5, "f4")), labels)
    with ut.options(engine="waves"):
        found_values = back.map(x, ut.shared(np.ones(5, "f4")), labels)
    np.testing.assert_allclose(found_values, wanted, rtol=1e-5, atol=1e-6)


# -- results ---------------------------------------------------------------------------------------------------------


def test_what_is_used_elsewhere_too_is_there() -> None:
    def f(x: ut.f64[40], y: ut.f64[20]) -> Any:
        first = x[:20]  # in the pass, and as a result
        total = (first + y) * 2.0
        flat = ut.reshape(total, (4, 5))  # the same elements as another result
        both = ut.concat([total, first * y])
        return first, flat, both, ut.sin(both)[5:25], ut.sum(flat, axis=0)

    agree(f, [rows(40).astype("f8"), rows(20).astype("f8")])


def test_parts_of_parts() -> None:
    def f(x: ut.f64[40]) -> Any:
        part = ut.reshape(x[:20], (4, 5))
        turned = ut.expand_dims(part, 0)
        return turned, turned * 2.0 + 1.0, ut.exp(part) * 0.5

    agree(f, [rows(40).astype("f8")])


def test_numbers_of_lanes_beside_rows() -> None:
    def f(x: ut.f32[25], y: ut.f32[25], s: ut.f32, t: ut.f32) -> Any:
        return (x * s + t) * y, s * t + 1.0, x + ut.broadcast_to(ut.expand_dims(s, 0), (25,))

    agree(f, [rows(25), rows(25), rows(), rows()])
    agree(f, [rows(25), ut.shared(rows(25)[0]), rows(), ut.shared(np.float32(2))])
    agree(f, [rows(25)[:1], rows(25)[:1], rows()[:1], rows()[:1]])


def test_long_rows() -> None:
    def f(x: ut.f64[9000], y: ut.f64[9000], s: ut.f64) -> Any:
        return ut.tanh(x * y + s) * x, (x - y) * s

    agree(f, [RANDOM.standard_normal((3, 9000)), RANDOM.standard_normal((3, 9000)), RANDOM.standard_normal(3)])
    agree(f, [RANDOM.standard_normal((3, 9000)), ut.shared(RANDOM.standard_normal(9000)), ut.shared(0.5)])


def test_dtypes_meet() -> None:
    def f(x: ut.f64[7], n: ut.i32[7], k: ut.i64) -> Any:
        chosen = ut.where(x > 0.0, ut.astype(n, ut.f64) * 2.0, x)
        return (
            chosen,
            ut.sum(ut.astype(chosen > 1.0, ut.i64)) + k,
            ut.min(n) + ut.max(n),
            ut.astype(n, ut.i64) // (k * k + 1),
        )

    numbers = RANDOM.integers(-9, 9, (LANES, 7)).astype(np.int32)
    agree(f, [RANDOM.standard_normal((LANES, 7)), numbers, RANDOM.integers(-9, 9, LANES)])


def test_what_is_the_same_for_all_lanes_is_computed_once() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.f64:
        total, k = 0.0, 0
        while k < n:
            total = total * 0.5 + ut.astype(k * k + 1, ut.f64)  # k is the same in all lanes, total is not
            k = k + 1
        return total

    numbers = RANDOM.integers(0, 30, LANES)
    with ut.options(engine="reference"):
        wanted = f.map(numbers)
    with ut.options(engine="waves"):
        np.testing.assert_array_equal(f.map(numbers), wanted)


def test_rows_that_all_lanes_share_stay_one_row() -> None:
    @ut.function
    def f(w: ut.f64[30], x: ut.f64[30]) -> Any:
        scale = ut.exp(w) * 2.0
        return ut.sum((scale + x) * x), scale

    w = RANDOM.standard_normal(30)
    agree(lambda w, x: f(w, x), [ut.shared(w), RANDOM.standard_normal((LANES, 30))])


def test_results_that_all_lanes_share_beside_others() -> None:
    def f(w: ut.f64[20], v: ut.f64[6], x: ut.f64[20], u: ut.f64[6], s: ut.f64) -> Any:
        g, h = ut.exp(w) * 2.0, ut.sin(v) + 1.0
        return ((x * 2.0 + 1.0) * g + x) * g - s, ((u * 2.0 + ut.max(u)) * h - s) * h * ut.sum(h)

    shared = [ut.shared(RANDOM.standard_normal(20)), ut.shared(RANDOM.standard_normal(6))]
    lanes = 700  # more than fit into one piece
    values = [RANDOM.standard_normal((lanes, 20)), RANDOM.standard_normal((lanes, 6)), RANDOM.standard_normal(lanes)]
    agree(f, [*shared, *values])


# -- faults, counters, limits ----------------------------------------------------------------------------------------


@ut.function
def halves(n: ut.i64, d: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    return (n * 3 + 1) // (d - n) + halves(n - 1, d) + halves(n - 2, d)


def test_a_fault_in_a_pass_names_its_lane() -> None:
    texts = []
    for engine in ("reference", "waves"):
        with pytest.raises(ut.RunError) as caught:
            halves.run(6, 2, engine=engine)
        texts.append((caught.value.what, caught.value.span))
    assert texts[0] == texts[1]
    assert halves.run(6, 12, engine="waves") == halves.run(6, 12, engine="reference")
    assert any("floor_divide" in group for group in passes_of(halves, 6, 2))


def test_a_number_out_of_range_in_a_pass() -> None:
    f = ut.function(nll)
    labels = np.array([0, 3, 5, 1], np.int32)
    texts = []
    for engine in ("reference", "waves"):
        with ut.options(engine=engine), pytest.raises(ut.RunError) as caught:
            f.map(rows(5)[:4], rows(5)[:4], labels)
        texts.append((caught.value.what, caught.value.calls))
    assert texts[0] == texts[1]


def test_every_result_is_looked_at_if_asked_for() -> None:
    @ut.function
    def f(x: ut.f64[20]) -> ut.f64[20]:
        return 1.0 / (1.0 + ut.exp(x * 1000.0))  # infinite on the way, but not in the end

    assert np.isfinite(f.run(np.ones(20), engine="waves")).all()
    with pytest.raises(ut.RunError, match="exp"):
        f.run(np.ones(20), engine="waves", check_finite=True)


def test_firings_are_counted_one_by_one() -> None:
    counts = []
    for engine in ("reference", "waves"):
        _, stats = halves.run(7, 20, engine=engine, stats=True)
        counts.append({name: n for name, n in stats.per_node.items() if "floor_divide" in name or "multiply" in name})
    assert counts[0] == counts[1]


@pytest.mark.parametrize("width", [1, 3, 4096])
def test_the_same_bits_for_any_width(width: int) -> None:
    graph = flatten(
        make_library(ut.function(nll).library(np.zeros(5, "f4"), np.zeros(5, "f4"), np.int32(1)), True, True)
    )
    x = rows(5)
    whole = agree(nll, [x, ut.shared(x[0]), np.arange(LANES, dtype=np.int32) % 5])
    for lane in range(0, LANES, 9):
        (one,), _ = WavesPlan(graph, width=width).run([x[lane], x[0], np.int32(lane % 5)])
        assert one == whole[lane]


# -- random programs ---------------------------------------------------------------------------------------------


def _program(draw: Any) -> Callable[..., Any]:
    """Some operators on numbers, short rows and rows, each on what there is."""
    steps = [(draw(st.integers(0, 11)), draw(st.integers(0, 99)), draw(st.integers(0, 99))) for _ in range(20)]

    def f(x: ut.f64[40], y: ut.f64[20], u: ut.f64[6], s: ut.f64, k: ut.i32) -> Any:
        long, short, one = [y, x[3:23], x[20:]], [u, x[:6], y[6:12]], [s, u[k]]
        for what, a, b in steps:
            p, q = long[a % len(long)], long[b % len(long)]
            v, w = short[a % len(short)], short[b % len(short)]
            n, m = one[a % len(one)], one[b % len(one)]
            if what == 0:
                long.append(p * q + 1.0)
            elif what == 1:
                long.append(ut.sin(p) - m)
            elif what == 2:
                long.append(ut.concat([p, q])[a % 20 : a % 20 + 20])
            elif what == 3:
                long.append(ut.where(p > n, p, q))
            elif what == 4:
                short.append(v - w * 0.5)
            elif what == 5:
                short.append(v + ut.maximum(n, 0.25))
            elif what == 6:
                short.append(ut.concat([v, w])[b % 6 : b % 6 + 6])
            elif what == 7:
                one.append(ut.max(v) - n)
            elif what == 8:
                one.append(ut.sum(w) * 0.1)
            elif what == 9:
                one.append(v[k] + m)
            elif what == 10:
                one.append(ut.cos(n) * m)
            elif what == 11:
                short.append(ut.broadcast_to(ut.expand_dims(n, 0), (6,)))
        return (*long[-3:], *short[-3:], *one[-3:])

    return f


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_passes(data: st.DataObject) -> None:
    lanes = data.draw(st.sampled_from([1, 2, 50]))
    values = [
        RANDOM.uniform(-1, 1, (lanes, 40)),
        RANDOM.uniform(-1, 1, (lanes, 20)),
        RANDOM.uniform(-1, 1, (lanes, 6)),
        RANDOM.uniform(-1, 1, lanes),
        RANDOM.integers(0, 6, lanes).astype(np.int32),
    ]
    which = data.draw(st.lists(st.booleans(), min_size=4, max_size=4))
    is_mapped = [*which, not any(which) or data.draw(st.booleans())]  # at least one is
    values = [v if own else ut.shared(v[0]) for v, own in zip(values, is_mapped, strict=True)]
    agree(_program(data.draw), values)
