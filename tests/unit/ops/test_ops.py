"""Every row of the catalogue: its type rule foretells what its kernel gives, and its kernel faults when it should."""

from __future__ import annotations

import math
import pathlib
import re
from typing import Any

import numpy as np
import pytest
from tests.support.op_examples import EXAMPLES, FAULTS, FLOATS, INTS, KEY, OF_COMPLEX, ROWS, N

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops import arith, linalg, logic, nn, reduce
from undertow.ops.faults import may_fault
from undertow.ops.manual import manual
from undertow.ops.op import find
from undertow.types import CTL, DTYPES, Type, bool_, f32, f64, i32, i64, type_of


def test_every_row_has_examples() -> None:
    # Those with state: test_state.py; those of tags: tests/unit/passes/test_replicate.py.
    wanted = {name for name, row in ROWS.items() if row.state is None and row.tagged is None}
    assert wanted == EXAMPLES.keys(), "add operands to EXAMPLES in tests/support/op_examples.py"
    assert all(EXAMPLES.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_type_rule_foretells_the_kernel(name: str, capsys: Any) -> None:
    row = ROWS[name]
    for values, given in EXAMPLES[name]:
        attrs = Attrs(**given)
        types = [type_of(v) for v in values]
        said = row.type(types, attrs)
        copies = [np.array(v) for v in values]
        with np.errstate(all="ignore"):
            got = row.eval(values, attrs)
            # Constants of a graph are arrays without axes; kernels must not mind.
            again = row.eval([np.asarray(v) for v in values], attrs)
        assert len(said) == len(got) == len(again)
        for type, value, other in zip(said, got, again, strict=True):
            if type == CTL:
                assert value is np.True_
                continue
            assert type.accepts(type_of(value)), (name, types, given, type, type_of(value))
            assert isinstance(value, np.generic) == (value.shape == ())
            np.testing.assert_array_equal(value, other)
        for before, after in zip(copies, values, strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_type_rule_holds_with_run_time_dimensions(name: str) -> None:
    row = ROWS[name]
    for values, given in EXAMPLES[name]:
        attrs = Attrs(**given)
        types = [type_of(v) for v in values]
        hidden = [Type(t.dtype, (None,) * t.rank) for t in types]
        for exact, loose in zip(row.type(types, attrs), row.type(hidden, attrs), strict=True):
            if exact != CTL:
                assert loose.accepts(exact), (name, types, given, exact, loose)
        # One operand at a time, so that known and unknown dimensions meet.
        for k in range(len(types)):
            mixed = [*types[:k], hidden[k], *types[k + 1 :]]
            for exact, loose in zip(row.type(types, attrs), row.type(mixed, attrs), strict=True):
                # A run-time dimension beside n is taken to be n or 1: broadcasting may say less or the same.
                assert exact == CTL or (exact.dtype, exact.rank) == (loose.dtype, loose.rank)


@pytest.mark.parametrize("name", [r.name for f in (arith, logic, nn, reduce, linalg) for r in f.ROWS])
def test_rows_refuse_other_dtypes(name: str) -> None:
    """A dtype that is in no example of a row is a TypeMismatch, and so is an order token."""
    row = ROWS[name]
    examples = [*EXAMPLES[name], *OF_COMPLEX.get(name, [])]
    used = {type_of(v).dtype for values, _ in examples for v in values}
    values, attrs = EXAMPLES[name][0]
    for dtype in DTYPES.values():
        if dtype not in used:
            with pytest.raises(TypeMismatch, match=name):
                row.type([Type(dtype, type_of(v).shape) for v in values], Attrs(**attrs))


# -- faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "values", "attrs"), FAULTS, ids=lambda x: x if isinstance(x, str) else "")
def test_faults(name: str, values: list[Any], attrs: dict[str, Any]) -> None:
    row = find(name)
    with np.errstate(all="ignore"), pytest.raises(Fault):
        row.eval(values, Attrs(**attrs))
    types = [Type(type_of(v).dtype, (None,) * v.ndim) for v in values]
    assert may_fault(row, types, Attrs(**attrs), [None] * len(values))


def test_every_row_that_can_fault_has_a_test() -> None:
    faulting = {row.name for row in ROWS.values() if row.faults and row.state is None}
    assert faulting - {name for name, _, _ in FAULTS} == {"random_bits", "random_normal"}


def test_names_elsewhere_exist() -> None:
    """Those of NumPy and `math`, that is; all names are of a kind that somebody reads."""
    modules = {"np": np, "math": math, "ut": None, "tf": None}
    for row in ROWS.values():
        for name in row.also.split():
            prefix, _, rest = name.partition(".")
            assert prefix in modules or name.startswith(("__", ".")), f"{row.name}: nobody reads {name!r} in `also`"
            module = modules.get(prefix)
            assert module is None or hasattr(module, rest), f"{row.name}: there is no {name}"


def test_a_failed_assert_shows_its_values() -> None:
    with pytest.raises(Fault, match=r"n is 3, x is 0\.5"):
        find("assert").eval([np.False_, N(3), np.float64(0.5)], Attrs(template="n is {}, x is {}"))


@pytest.mark.parametrize(
    ("name", "types", "attrs", "known", "expected"),
    [
        ("add", [f64[3], f64[3]], {}, [None, None], False),
        ("add", [f64[None], f64[3]], {}, [None, None], True),
        ("floor_divide", [Type(i64), Type(i64)], {}, [None, N(2)], False),
        ("floor_divide", [Type(i64), Type(i64)], {}, [None, None], True),
        ("floor_divide", [Type(f64), Type(f64)], {}, [None, None], False),
        ("power", [Type(i64), Type(i64)], {}, [None, N(3)], False),
        ("bitwise_left_shift", [Type(i64), Type(i64)], {}, [None, N(3)], False),
        ("index", [f64[3], Type(i64)], {"axes": (0,)}, [None, N(-3)], False),
        ("index", [f64[3], Type(i64)], {"axes": (0,)}, [None, None], True),
        ("index", [f64[None], Type(i64)], {"axes": (0,)}, [None, N(0)], True),
        ("take", [f64[3], i64[2]], {"axis": 0}, [None, np.array([0, 2])], False),
        ("slice_at", [f64[3], Type(i64)], {"axis": 0, "size": 2}, [None, N(-2)], False),
        ("slice_at", [f64[3], Type(i64)], {"axis": 0, "size": 2}, [None, N(2)], True),
        ("max", [f64[3]], {"axes": (0,), "keepdims": False}, [None], False),
        ("max", [f64[None]], {"axes": (0,), "keepdims": False}, [None], True),
        ("reshape", [f64[6]], {"shape": (2, -1)}, [None], False),
        ("reshape", [f64[6], Type(i64)], {"shape": (None, -1)}, [None, None], True),
        ("reshape", [f64[None]], {"shape": (2, -1)}, [None], True),
        ("slice_between", [f64[None], Type(i64), Type(i64)], {"axis": 0, "step": 1}, [None] * 3, False),
        ("sum_to", [f64[2, 3]], {"shape": (3,)}, [None], False),
        ("sum_to", [f64[2, None]], {"shape": (3,)}, [None], True),
        ("add_along_axis", [f64[3], i64[2], f64[2]], {"axis": 0}, [None, np.array([0, 2]), None], False),
        ("prod_others", [f64[None]], {"axis": 0}, [None], False),
        ("assert", [Type(bool_)], {"template": ""}, [None], True),
    ],
)
def test_may_fault(name: str, types: list[Type], attrs: dict[str, Any], known: list[Any], expected: bool) -> None:
    assert may_fault(find(name), types, Attrs(**attrs), known) is expected


# -- what kernels say at the edges -------------------------------------------------------------------------


def run(name: str, *values: Any, **attrs: Any) -> Any:
    with np.errstate(all="ignore"):
        (result,) = find(name).eval(values, Attrs(**attrs))
    return result


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: np.array([x, x])], ids=["scalar", "array"])
def test_integers_wrap(dtype: Any, wrap: Any) -> None:
    low, high, one = (wrap(dtype(v)) for v in (np.iinfo(dtype).min, np.iinfo(dtype).max, 1))
    for got, wanted in [
        (run("add", high, one), low),
        (run("subtract", low, one), high),
        (run("multiply", high, wrap(dtype(2))), wrap(dtype(-2))),
        (run("negative", low), low),
        (run("abs", low), low),
        (run("floor_divide", low, wrap(dtype(-1))), low),
        (run("remainder", low, wrap(dtype(-1))), wrap(dtype(0))),
        (run("bitwise_left_shift", one, wrap(dtype(99))), wrap(dtype(0))),
        (run("bitwise_right_shift", low, wrap(dtype(99))), wrap(dtype(-1))),
        (run("power", wrap(dtype(3)), wrap(dtype(50))), wrap(np.array(3**50 % 2**64, np.uint64).astype(dtype)[()])),
    ]:
        np.testing.assert_array_equal(got, wanted)
        assert got.dtype == dtype


@pytest.mark.parametrize("x", [-7, -1, 0, 1, 7])
@pytest.mark.parametrize("y", [-3, -2, 2, 3])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
def test_division_is_pythons(x: int, y: int, dtype: Any) -> None:
    for wrap in (lambda v: v, lambda v: np.array([v])):
        assert run("floor_divide", wrap(dtype(x)), wrap(dtype(y))) == x // y
        assert run("remainder", wrap(dtype(x)), wrap(dtype(y))) == x % y


def test_floats_follow_ieee() -> None:
    zero, one = np.float64(0), np.float64(1)
    assert run("divide", one, zero) == run("floor_divide", one, zero) == np.inf
    assert np.isnan(run("remainder", one, zero))
    assert np.isnan(run("divide", zero, zero))
    assert np.isnan(run("maximum", one, np.float64(np.nan)))
    assert np.isnan(run("relu", np.float64(np.nan)))
    assert run("power", np.float64(2), np.float64(-1)) == 0.5


@pytest.mark.parametrize("to", INTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_casts_to_integers_saturate(to: str, dtype: Any) -> None:
    limits = np.iinfo(DTYPES[to].numpy)
    values = np.array([1.9, -1.9, np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**31, 2.0**63, -(2.0**31)], dtype)
    wanted = [0 if math.isnan(v) else max(limits.min, min(limits.max, int(v))) if math.isfinite(v)
              else limits.max if v > 0 else limits.min for v in values.tolist()]  # fmt: skip
    np.testing.assert_array_equal(run("cast", values, dtype=to), wanted)
    for value, one in zip(values, wanted, strict=True):
        assert run("cast", value, dtype=to) == one


def test_casts_of_integers_wrap() -> None:
    assert run("cast", N(2**32 + 5), dtype="i32") == 5
    assert run("cast", np.float64(np.nan), dtype="bool")
    assert run("cast", N(2), dtype="bool")


@pytest.mark.parametrize("name", ["sigmoid", "softplus", "softmax", "log_softmax", "logsumexp"])
def test_nothing_overflows(name: str) -> None:
    for dtype in (np.float32, np.float64):
        x = np.array([-1e4, 0.0, 1e4], dtype)
        attrs = {"axes": (0,)} if "soft" in name and name != "softplus" else {}
        attrs |= {"axes": (0,), "keepdims": False} if name == "logsumexp" else {}
        assert np.isfinite(run(name, x, **attrs)).all()
    assert run("sigmoid", np.float64(-50)) == pytest.approx(math.exp(-50), rel=1e-14)
    assert run("logsumexp", np.full(2, -np.inf), axes=(0,), keepdims=False) == -np.inf


def test_erf_is_exact() -> None:
    x = np.linspace(-4, 4, 101)
    np.testing.assert_allclose(run("erf", x), [math.erf(v) for v in x], rtol=1e-15)


def test_what_is_added_back_into_places() -> None:
    """Each is the transpose of an operator that picks, stretches or multiplies."""
    assert run("sum_to", np.arange(6).reshape(2, 3), shape=(1, 3)).tolist() == [[3, 5, 7]]
    put = {"starts": (None, 0), "stops": (None, 1), "steps": (-1, None), "shape": (2, 2)}
    assert run("unslice", np.array([[1], [2]]), **put).tolist() == [[2, 0], [1, 0]]
    into, where = np.zeros((2, 3), int), np.array([[0, 0], [-1, 1]])
    added = run("add_along_axis", into, where, np.array([[1, 2], [3, 4]]), axis=1)
    assert added.tolist() == [[3, 0, 0], [0, 4, 3]]
    assert run("prod_others", np.array([2, 0, 3]), axis=0).tolist() == [0, 6, 0]
    assert run("prod_others", np.array([[5.0]]), axis=1).tolist() == [[1.0]]


def test_rules_leave_to_the_run_what_only_the_run_knows() -> None:
    """A run-time dimension can always be the one that fits."""
    assert find("broadcast_to").type([f64[None, 3]], Attrs(shape=(1, 3))) == (f64[1, 3],)
    assert find("scatter_add").type([f64[None, 3], i64[2], f64[None, None]], Attrs(axis=0)) == (f64[None, 3],)
    assert find("scatter_add").type([f64[4, None], i64[None], f64[2, 3]], Attrs(axis=0)) == (f64[4, None],)
    assert find("take").type([f64[0, 2], i64[None]], Attrs(axis=0)) == (f64[None, 2],)


def test_sorting_keeps_the_order_of_equals() -> None:
    x = np.array([2, 1, 2, 1, 3])
    assert run("argsort", x, axis=0, descending=False).tolist() == [1, 3, 0, 2, 4]
    assert run("argsort", x, axis=0, descending=True).tolist() == [4, 0, 2, 1, 3]
    assert np.isnan(run("sort", np.array([np.nan, 1.0]), axis=0, descending=False)[1])


@pytest.mark.parametrize(
    ("name", "types", "attrs", "match"),
    [
        ("add", [f64[3], f64[4]], {}, "do not broadcast"),
        ("add", [Type(f32), Type(f64)], {}, "dtypes differ"),
        ("add", [Type(bool_), Type(bool_)], {}, "booleans|bool"),
        ("divide", [Type(i32), Type(i32)], {}, "floats"),
        ("matmul", [f64[2, 3], f64[4]], {}, "3 columns do not fit 4 rows"),
        ("matmul", [Type(f64), f64[4]], {}, "matmul"),
        ("concat", [], {"axis": 0}, "at least one array"),
        ("concat", [Type(f64)], {"axis": 0}, "scalars"),
        ("concat", [f64[2, 3], f64[2, 4]], {"axis": 0}, "concat"),
        ("stack", [f64[2], f64[3]], {"axis": 0}, "stack"),
        ("sum", [f64[3]], {"axes": (1,), "keepdims": False}, "axis 1"),
        ("max", [f64[0]], {"axes": (0,), "keepdims": False}, "no elements"),
        ("reshape", [f64[6]], {"shape": (4,)}, "reshaped"),
        ("reshape", [f64[6]], {"shape": (-1, -1)}, "reshaped"),
        ("reshape", [f64[6]], {"shape": (None, 2)}, "operand for each"),
        ("broadcast_to", [f64[3]], {"shape": (2,)}, "broadcast"),
        ("broadcast_to", [f64[3]], {"shape": (1,)}, "broadcast"),
        ("squeeze", [f64[3]], {"axes": (0,)}, "squeezed"),
        ("transpose", [f64[3, 2]], {"axes": (0, 0)}, "every axis|transposed"),
        ("index", [f64[3], Type(f64)], {"axes": (0,)}, "index by f64"),
        ("index", [f64[0], Type(i64)], {"axes": (0,)}, "no elements"),
        ("slice_at", [f64[3], Type(i64)], {"axis": 0, "size": 4}, "4 elements"),
        ("scatter_add", [f64[3], i64[2], f64[3]], {"axis": 0}, "scatter_add"),
        ("scatter_add", [f64[None, 3], i64[2], f64[3, None]], {"axis": 0}, "scatter_add"),
        ("scatter_add", [f64[0], i64[2], f64[2]], {"axis": 0}, "no elements"),
        ("add_along_axis", [f64[3, 4], i64[2, 1], f64[2, 1]], {"axis": 1}, "add_along_axis"),
        ("add_along_axis", [f64[3], i64[2], f64[1]], {"axis": 0}, "add_along_axis"),
        ("sum_to", [f64[3]], {"shape": (2,)}, "summed"),
        ("sum_to", [f64[3]], {"shape": (1, 3)}, "summed"),
        ("unslice", [f64[3]], {"shape": (5,), "starts": (3,), "stops": (None,), "steps": (1,)}, "does not fit a slice"),
        ("unslice", [f64[3]], {"shape": (5,), "starts": (0,), "stops": (3,), "steps": (0,)}, "step"),
        ("unslice", [f64[3]], {"shape": (5,), "starts": (), "stops": (), "steps": ()}, "0 slices"),
        ("fill", [f64[3]], {"shape": (2,)}, "filled"),
        ("random_uniform", [Type(i32)], {"shape": (), "dtype": "f32"}, "key"),
        ("random_uniform", [Type(i64)], {"shape": (), "dtype": "i32"}, "dtype"),
    ],
)
def test_type_mismatches(name: str, types: list[Type], attrs: dict[str, Any], match: str) -> None:
    with pytest.raises(TypeMismatch, match=match):
        find(name).type(types, Attrs(**attrs))


# -- random numbers ----------------------------------------------------------------------------------------

MASK, GOLDEN = 2**64 - 1, 0x9E3779B97F4A7C15


def mix(z: int) -> int:
    z &= MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


@pytest.mark.parametrize("key", [0, 7, -1, 2**62])
def test_random_numbers_are_what_the_manual_says(key: int) -> None:
    bits = [mix(mix(key ^ 0xD1B54A32D192ED03) + (n + 1) * GOLDEN) for n in range(8)]
    got = run("random_bits", N(key), shape=(2, 4), dtype="i64")
    assert got.ravel().view(np.uint64).tolist() == bits
    assert run("random_bits", N(key), shape=(8,), dtype="i32").view(np.uint32).tolist() == [b >> 32 for b in bits]
    assert run("random_uniform", N(key), shape=(8,), dtype="f64").tolist() == [(b >> 11) * 2.0**-53 for b in bits]
    assert run("random_uniform", N(key), shape=(8,), dtype="f32").tolist() == [(b >> 40) * 2.0**-24 for b in bits]
    u, v = ([(b >> 11) * 2.0**-53 for b in bits[k::2]] for k in (0, 1))
    normal = [math.sqrt(-2 * math.log(a + 2.0**-53)) * math.cos(2 * math.pi * b) for a, b in zip(u, v, strict=True)]
    np.testing.assert_allclose(run("random_normal", N(key), shape=(4,), dtype="f64"), normal, rtol=1e-12)
    folded = mix(mix(key + GOLDEN) ^ mix(-5 + 2 * GOLDEN))
    assert int(run("fold_in", N(key), N(-5))) & MASK == folded
    assert run("fold_in", N(key), np.array([-5, 5]))[0] == run("fold_in", N(key), N(-5))


@pytest.mark.parametrize("dtype", FLOATS)
def test_random_numbers_are_random(dtype: str) -> None:
    count = 200_000
    uniform = run("random_uniform", KEY, shape=(count,), dtype=dtype).astype(np.float64)
    assert uniform.min() >= 0 and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 4 * math.sqrt(1 / 12 / count)
    # Chi-squared over 100 cells: mean 99, deviation 14.
    cells = np.bincount((uniform * 100).astype(int), minlength=100)
    assert ((cells - count / 100) ** 2 / (count / 100)).sum() < 99 + 5 * 14
    assert abs(np.corrcoef(uniform[:-1], uniform[1:])[0, 1]) < 5 / math.sqrt(count)
    normal = run("random_normal", KEY, shape=(count,), dtype=dtype).astype(np.float64)
    assert abs(normal.mean()) < 4 / math.sqrt(count)
    assert abs(normal.var() - 1) < 5 * math.sqrt(2 / count)
    assert abs((normal**4).mean() - 3) < 0.15
    assert abs((np.abs(normal) < 1).mean() - 0.682689) < 0.005


@pytest.mark.slow
def test_every_bit_is_fair_and_keys_are_unrelated() -> None:
    keys = run("fold_in", KEY, np.arange(20_000))
    assert len(set(keys.tolist())) == 20_000
    draws = run("random_bits", KEY, shape=(20_000,), dtype="i64")
    for numbers in (keys, draws, keys ^ draws, keys[1:] ^ keys[:-1]):
        bits = (numbers.view(np.uint64)[:, None] >> np.arange(64, dtype=np.uint64)) & np.uint64(1)
        assert np.abs(bits.mean(0) - 0.5).max() < 0.02
    first = np.array([run("random_uniform", k, shape=(), dtype="f64") for k in keys[:5000]])
    assert abs(first.mean() - 0.5) < 0.02
    assert abs(np.corrcoef(first[:-1], first[1:])[0, 1]) < 0.07


def test_values_at_the_edge_fault_and_do_no_worse() -> None:
    """What a hand-edited graph can ask for: found by mutating saved files."""
    endless = np.float64(-np.inf)
    assert len(run("arange", np.float64(0), endless, np.float64(1))) == 0
    for name in ("fill", "broadcast_to"):
        with pytest.raises(Fault, match="too large"):
            run(name, np.float64(1), N(2**40), N(2**40), N(0), shape=(None, None, None))
    with pytest.raises(Fault, match="does not fit its values"):
        run("print", N(2**40), template="{:c}")


# -- effects and the manual --------------------------------------------------------------------------------


def test_print_prints(capsys: Any) -> None:
    run("print", N(3), np.float64(0.25), np.array([1, 2]), template="n={} x={:.1f} {}")
    assert capsys.readouterr().out == "n=3 x=0.2 [1 2]\n"


def test_what_acts_on_the_world() -> None:
    acting = {"print", "assert", "raise", "assign", "assign_rows", "update"}
    assert {row.name for row in ROWS.values() if row.effect} == acting


def test_the_manual_is_current() -> None:
    path = pathlib.Path(__file__).parents[3] / "docs" / "reference" / "ops.md"
    assert path.read_text() == manual(), "run: python -m undertow.ops.manual > docs/reference/ops.md"
    assert all(re.search(rf"^\| `{name}` \|", manual(), re.MULTILINE) for name in ROWS)
