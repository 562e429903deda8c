"""Forward mode: `ut.jvp` against closed forms and differences, what tangent copies hold, and what is refused."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.agreement import run as run_in_every_order
from tests.support.differentiable import ackermann, even, halves, loop_in_recursion, power, tree, while_newton
from tests.support.graphs import inputs_of
from tests.support.validity import parse_library, valid

import undertow as ut
from undertow.api.options import ENGINES
from undertow.ir import budget
from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import dump, dump_constants, parse
from undertow.ops.vet import vet
from undertow.passes.derive.extend import extend
from undertow.passes.simplify import simplify


def read(text: str) -> Library:
    found = parse_library("library 1 main=main\n" + text)
    vet(found)
    assert parse(dump(found), dump_constants(found)) == found
    return found


def pushed(library: Library) -> Library:
    """The library without tangent nodes; it is valid, and so is what `simplify` makes of it."""
    made, _ = extend(library)
    valid(simplify(valid(made))[0])
    return made


def library_of(function: Any, *args: Any) -> Library:
    """What `forward` makes of the simplified library of a function that calls `ut.jvp`."""
    return pushed(simplify(function.library(*args))[0])


def ops(library: Library, name: str) -> Counter[str]:
    return Counter(node.op for node in library.functions[name].nodes)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12)


# --------------------------------------------------------------------------------------------------------------
# Closed forms


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("simplify", [True, False])
def test_power(engine: str, simplify: bool) -> None:
    with ut.options(engine=engine, simplify=simplify):
        value, slope = ut.jvp(power, (2.0, 5), (3.0, None))
    assert (value, slope) == (32.0, 240.0)
    assert type(value) is type(slope) is np.float64


def test_second_and_third_derivatives() -> None:
    def first(x: Any) -> Any:
        return ut.jvp(power, (x, 5), (1.0, None))[1]

    def second(x: Any) -> Any:
        return ut.jvp(first, (x,), (1.0,))[1]

    assert ut.jvp(second, (2.0,), (1.0,)) == (160.0, 240.0)


@ut.function
def exponential(x: ut.f64, term: ut.f64, k: ut.f64) -> ut.f64:
    if ut.abs(term) < 1e-18:
        return 0.0
    return term + exponential(x, term * x / k, k + 1.0)


def test_series() -> None:
    close(ut.jvp(exponential, (0.5, 1.0, 1.0), (1.0, None, None)), [np.exp(0.5)] * 2)


def test_functions_of_ours_lambdas_and_methods() -> None:
    class Scale:
        factor = 3.0

        def times(self, x: Any) -> Any:
            return x * self.factor

        def __call__(self, x: Any) -> Any:
            return x * x

    @dataclass
    class Shift:
        by: float

        @ut.function
        def shifted(self, x: ut.f64) -> ut.f64:
            return x * x + self.by

    close(ut.jvp(ut.sin, (2.0,), (1.0,)), [np.sin(2), np.cos(2)])
    close(ut.jvp(ut.multiply, (2.0, 3.0), (None, 1.0)), [6, 2])
    close(ut.jvp(Scale().times, (2.0,), (1.0,)), [6, 3])
    close(ut.jvp(Scale(), (3.0,), (1.0,)), [9, 6])
    close(ut.jvp(Shift(1.0).shifted, (3.0,), (1.0,)), [10, 6])


def test_plain_python_is_captured_anew() -> None:
    factor = 2.0

    def scaled(x: Any) -> Any:
        return x * factor

    assert ut.jvp(scaled, (1.0,), (1.0,)) == (2.0, 2.0)
    factor = 5.0
    assert ut.jvp(scaled, (1.0,), (1.0,)) == (5.0, 5.0)


# --------------------------------------------------------------------------------------------------------------
# Differences: every way to compute, to second order


@ut.function
def swap(x: ut.f64, y: ut.f64, n: ut.i64) -> tuple[ut.f64, ut.f64, ut.i64]:
    """A variable that begins without a tangent gets one from the other."""
    k, z = 0, 1.0
    while k < n:
        x, y, z, k = y, x * z, z + y, k + 1
    return x, z, k


@ut.function
def mapped(x: ut.f64[2], a: ut.f64[None]) -> tuple[ut.f64, ut.f64[None]]:
    inner = ut.map(lambda e, k: ut.sin(e * x[0]) * x[1] + loop_in_recursion(e, k), a, np.arange(4))
    return ut.sum(inner), ut.map(lambda e: e * e, a)


@ut.function
def branches(x: ut.f64, y: ut.f64) -> tuple[ut.f64, ut.i64]:
    z, n = 2.0, 0
    if x > 0:
        z, n = x * y, 1
    if y > 0:
        z = z * z
    return z, n


@ut.function
def halves_of_any(a: Any) -> ut.f64:
    if a.shape[0] == 1:
        return a[0] * a[0]
    middle = a.shape[0] // 2
    return halves_of_any(a[:middle]) * 0.5 + halves_of_any(a[middle:]) * ut.sum(a)


@ut.function
def drawn(x: ut.f64, n: ut.i64) -> ut.f64:
    if n == 0:
        return x
    return drawn(x * x + ut.random.normal(), n - 1) * ut.random.uniform()


@ut.function
def model(params: Any, x: Any) -> Any:
    return {"y": ut.tanh(params["W"] @ x[0] + params["b"]), "n": x[1][0], "again": [params["b"]]}


RANDOM = np.random.default_rng(3)
PARAMS = {"W": RANDOM.standard_normal((2, 3)), "b": RANDOM.standard_normal(2)}
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "power": (power, (1.3, 4)),
    "mutual": (even, (0.7, 5)),
    "nested calls": (lambda x, m: ackermann(m, x), (0.95, 2)),
    "recursion in loops": (loop_in_recursion, (0.9, 4)),
    "while": (while_newton, (2.0,)),
    "variables that swap": (swap, (0.5, 0.7, 3)),
    "no iteration": (swap, (0.5, 0.7, 0)),
    "tree": (tree, (RANDOM.standard_normal((5, 2)), 0)),
    "maps": (mapped, (np.array([0.3, 0.4]), np.arange(4.0) / 4)),
    "both branches": (branches, (0.5, 0.4)),
    "first branch": (branches, (0.5, -0.4)),
    "second branch": (branches, (-0.5, 0.4)),
    "no branch": (branches, (-0.5, -0.4)),
    "run-time sizes": (halves, (np.arange(1.0, 6.0) / 5,)),
    "sizes that change": (halves_of_any, (np.arange(1.0, 6.0) / 5,)),
    "random draws": (drawn, (0.5, 3)),
    "containers": (model, (PARAMS, (np.array([0.1, 0.2, 0.3]), [7]))),
    "f32": (lambda x: ut.exp(x) * x, (np.float32(0.5),)),
}


@pytest.mark.parametrize("case", CASES)
def test_differences(case: str) -> None:
    function, args = CASES[case]
    modes = ("fwd",) if case == "random draws" else ("fwd", "rev")
    ut.check_grads(function, args, order=2, modes=modes)


@pytest.mark.parametrize("case", ["power", "variables that swap", "tree", "maps", "first branch", "run-time sizes"])
def test_copies_are_valid_and_run_on_every_schedule(case: str) -> None:
    function, args = CASES[case]
    floats = [np.asarray(a).dtype.kind == "f" for a in args]
    along = [np.ones_like(a) if is_float else None for a, is_float in zip(args, floats, strict=True)]
    value, tangent = ut.jvp(function, args, along)

    @ut.function
    def both(*given: Any) -> Any:
        return ut.jvp(function, given, along)

    raw = both.library(*args)
    vet(raw)
    for library in (raw, simplify(raw)[0]):
        found = run_in_every_order(pushed(library), *inputs_of(both, args))
        wanted = [*_leaves(value), *_leaves(tangent)]
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def _leaves(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _leaves(item)] if isinstance(value, tuple) else [value]


# --------------------------------------------------------------------------------------------------------------
# In captured functions


def test_in_a_captured_function() -> None:
    @ut.function
    def both(x: ut.f64, n: ut.i64) -> tuple[ut.f64, ut.f64]:
        return ut.jvp(power, primals=(x, n), tangents=(1.0, None))

    assert both(2.0, 5) == (32.0, 80.0)
    np.testing.assert_array_equal(both.map([1.0, 2.0], [3, 5]), [[1, 32], [3, 80]])
    assert ut.jvp(both, (2.0, 5), (1.0, None)) == ((32.0, 80.0), (80.0, 160.0))


def test_what_a_closure_uses_is_differentiated_by_the_outer_jvp_only() -> None:
    @ut.function
    def outer(x: ut.f64) -> ut.f64:
        c = x * 3.0

        def inner(y: Any) -> Any:
            return y * y * c

        return ut.jvp(inner, (x,), (1.0,))[1]  # 2x * 3x, and not 9x^2

    assert ut.jvp(outer, (2.0,), (1.0,)) == (24.0, 24.0)


def test_in_a_loop_and_in_a_map() -> None:
    @ut.function
    def root(x: ut.f64, n: ut.i64) -> ut.f64:
        for _ in range(n):
            value, slope = ut.jvp(lambda z: z * z - 2.0, (x,), (1.0,))
            x = x - value / slope
        return x

    @ut.function
    def slopes(xs: ut.f64[None]) -> ut.f64[None]:
        return ut.map(lambda x: ut.jvp(power, (x, 3), (1.0, None))[1], xs)

    close(root(1.0, 6), np.sqrt(2))
    ut.check_grads(root, (1.3, 2))
    close(slopes(np.array([1.0, 2.0])), [3, 12])
    close(ut.jvp(slopes, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))[1], [6, 120])


def test_prints_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    @ut.function
    def noisy(x: ut.f64, n: ut.i64) -> ut.f64:
        print("n is", n)
        return x if n == 0 else noisy(x * x, n - 1)

    assert ut.jvp(noisy, (2.0, 1), (1.0, None)) == (4.0, 4.0)
    assert capsys.readouterr().out == "n is 1\nn is 0\n"


def test_depth_is_user_data() -> None:
    @ut.function
    def deep(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n == 0 else deep(x, n - 1) + x

    assert ut.jvp(deep, (1.0, 3000), (2.0, None)) == (3001.0, 6002.0)


def test_subgraphs_and_loaded_functions(tmp_path: Path) -> None:
    with ut.SubGraph() as cube:
        x = cube.input(ut.f64)
        cube.output(x * x * x)
    assert ut.jvp(cube, (2.0,), (1.0,)) == (8.0, 12.0)

    @ut.function
    def slope(x: ut.f64) -> ut.f64:
        return ut.jvp(cube, (x,), (1.0,))[1]

    assert slope(2.0) == 12.0
    ut.save(slope, tmp_path / "slope.ut")
    loaded = ut.load(tmp_path / "slope.ut")
    assert loaded(3.0) == 27.0
    assert ut.jvp(loaded, (3.0,), (1.0,)) == (27.0, 18.0)
    with ut.SubGraph() as caller:
        y = caller.input(ut.f64)
        caller.output(slope(y) * 2.0)
    assert caller(2.0) == 24.0


def test_in_a_block_it_is_refused() -> None:
    def write() -> None:
        with ut.SubGraph() as block:
            x = block.input(ut.f64)
            block.output(ut.jvp(power, (x, 2), (1.0, None))[1])

    assert "ut.jvp cannot be called in the block of a SubGraph" in error_of(write)


def test_variables_are_constants() -> None:
    weight, seen = ut.Variable(2.0), ut.Variable(0.0)

    @ut.function
    def scaled(x: ut.f64) -> ut.f64:
        seen.assign_add(x)
        return weight.read() * x

    assert ut.jvp(scaled, (3.0,), (1.0,)) == (6.0, 2.0)
    assert seen.value == 3.0


# --------------------------------------------------------------------------------------------------------------
# What is given and what is wanted


def test_tangents_follow_the_structure() -> None:
    @dataclass
    class Pair:
        a: Any
        b: Any

    def product(p: Any, q: Any) -> Any:
        return p.a * p.b * q["k"], p.a, q["n"]

    args = Pair(2.0, np.array([1.0, 2.0])), {"k": 3.0, "n": np.array([4, 5])}
    value, tangent = ut.jvp(product, args, (Pair(1.0, None), {"n": None, "k": 1.0}))
    np.testing.assert_array_equal(value[0], [6, 12])
    np.testing.assert_array_equal(tangent[0], [3 + 2, 6 + 4])
    assert tangent[1] == 1.0
    assert tangent[2].dtype == np.float64 and tangent[2].tolist() == [0, 0]
    assert ut.jvp(product, args, [None, None])[1][1] == 0.0


def test_integers_have_a_zero_tangent_of_any_kind() -> None:
    nothing = np.zeros((), np.dtype([("float0", "V")]))
    for zero in (None, 0, 0.0, np.int64(0), nothing):
        assert ut.jvp(power, (2.0, 3), (1.0, zero)) == (8.0, 12.0)
    value, tangent = ut.jvp(lambda n: n * 2, (3,), (None,))
    assert value == 6 and tangent == 0.0 and tangent.dtype == np.float64


def test_python_numbers_and_lists_take_the_dtype() -> None:
    @ut.function
    def total(a: ut.f32[None]) -> ut.f32:
        return ut.sum(a * a)

    value, slope = ut.jvp(total, ([1, 2],), ([1, 0],))
    assert (value, slope) == (5.0, 2.0) and slope.dtype == np.float32
    assert ut.jvp(power, (2, 3), (1, None)) == (8.0, 12.0)


def test_programs_are_kept() -> None:
    from undertow.api.jvp import _function

    @ut.function
    def square(x: ut.f64) -> ut.f64:
        return x * x

    for x in (1.0, 2.0, 3.0):
        ut.jvp(square, (x,), (1.0,))
    ut.jvp(square, (1.0,), (None,))
    assert len(_function(square.__undertow_definition__).__undertow_programs__) == 2


# --------------------------------------------------------------------------------------------------------------
# What is written


@ut.function
def mixed(x: ut.f64, y: ut.f64, n: ut.i64) -> tuple[ut.f64, ut.f64]:
    unchanged = ut.floor(x) * y
    return x * y + unchanged, power(y, n)


def test_no_tangent_is_written_for_what_has_none_or_is_not_needed() -> None:
    @ut.function
    def by_x(x: ut.f64, y: ut.f64, n: ut.i64) -> ut.f64:
        return ut.jvp(mixed, (x, y, n), (1.0, None, None))[1][0]

    library = library_of(by_x, 1.0, 2.0, 3)
    made = library.functions["mixed.jvp"]
    assert [made.nodes[param].name for param in made.params] == ["x", "y", "n", "x.t"]
    assert "power.jvp" not in library.functions  # no tangent goes into that call
    assert ops(library, "mixed.jvp")["multiply"] == 3
    assert by_x(1.0, 2.0, 3) == 2.0


@ut.function
def product(x: ut.f64, y: ut.f64, n: ut.i64) -> ut.f64:
    return x * y if n == 0 else product(x, y, n - 1) + product(y, x, n - 1)


def test_one_copy_for_each_choice() -> None:
    @ut.function
    def all_of_them(x: ut.f64, y: ut.f64) -> Any:
        one = ut.jvp(product, (x, y, 2), (1.0, None, None))[1]
        again = ut.jvp(product, (x, x, 3), (y, None, None))[1]
        return one, again, ut.jvp(product, (x, y, 2), (1.0, 1.0, None))[1]

    library = library_of(all_of_them, 1.0, 2.0)
    copies = sorted(name for name in library.functions if ".jvp" in name)
    assert copies == ["product.jvp", "product.jvp~2", "product.jvp~3"]  # x, y, both
    assert all_of_them(3.0, 5.0) == (20.0, 120.0, 32.0)


def test_a_variable_of_a_loop_without_a_tangent_stays_alone() -> None:
    @ut.function
    def sums(x: ut.f64, n: ut.i64) -> ut.f64:
        t, y = 0.0, 1.0
        for _ in range(n):
            t = t + 0.5
            y = y * x + t
        return y

    @ut.function
    def slope(x: ut.f64, n: ut.i64) -> ut.f64:
        return ut.jvp(sums, (x, n), (1.0, None))[1]

    library = library_of(slope, 2.0, 3)
    library, _ = simplify(library)
    (body,) = [graph for name, graph in library.functions.items() if name.endswith(".loop.jvp")]
    tangents = [body.nodes[param].name for param in body.params if body.nodes[param].name.endswith(".t")]
    assert sorted(tangents) == ["x.t", "y.t"]
    ut.check_grads(sums, (2.0, 3))


PHASES = """
main main(x: f64, dx: f64) -> (w#0, w#1, w#2, w#3)
  w: f64, f64, f64, f64 = tangent x, dx callee="top" given=[0] wanted=[0, 1]

function top(x: f64) -> (y, dx)
  y: f64  = call x callee="g"
  dx: f64 = resume y, x phase=1

function g(x: f64) -> (y)
  p: bool          = less x, 0.0:f64
  branch if1 p
  x.if: f64, f64   = switch p, x
  if1.else/y: f64  = call x.if#1 callee="f"
  y: f64           = merge x.if#0, if1.else/y
  phase 1(dy: f64) -> (dx)
  dy.if: f64, f64  = switch p, dy
  if1.else/dx: f64 = resume if1.else/y, dy.if#1 phase=1
  dx: f64          = merge dy.if#0, if1.else/dx

function f(x: f64) -> (y)
  y: f64   = multiply x, x
  two: f64 = multiply x, 2.0:f64
  phase 1(dy: f64) -> (dx)
  dx: f64  = multiply dy, two
"""


@pytest.mark.parametrize(("x", "wanted"), [(3.0, [9, 18, 6, 12]), (-3.0, [-3, -3, 1, 1])])
def test_phases_have_tangents_of_their_own(x: float, wanted: list[float]) -> None:
    """y = x^2, and dx = 2x * x: where x is negative, both are x."""
    library = read(PHASES)
    for before in (library, simplify(library)[0]):
        made = pushed(before)
        assert len(made.functions["f.jvp"].phases) == 2
        assert run_in_every_order(made, x, 1.0) == wanted


def test_a_phase_without_tangents_is_visited_as_before() -> None:
    """Only y is differentiated; the resume that gives dx takes no tangent, and gives none."""
    text = PHASES.replace("w: f64, f64, f64, f64 =", "w: f64, f64, f64 =").replace("wanted=[0, 1]", "wanted=[0]")
    library = read(text.replace("(w#0, w#1, w#2, w#3)", "(w#0, w#1, w#2)"))
    made = pushed(library)
    assert len(made.functions["f.jvp"].phases[1].params) == 1
    assert run_in_every_order(made, 3.0, 1.0) == [9, 18, 6]


# --------------------------------------------------------------------------------------------------------------
# Errors


def error_of(work: Any) -> str:
    with pytest.raises(ut.UndertowError) as error:
        work()
    return str(error.value)


@ut.function
def endless(x: ut.f64, n: ut.i64) -> ut.f64:
    if n == 0:
        return x * x
    return ut.jvp(through, (x, n - 1), (1.0, None))[1]


@ut.function
def through(x: ut.f64, n: ut.i64) -> ut.f64:
    return endless(x, n)


@ut.function
def forever(x: ut.f64) -> ut.f64:
    return ut.jvp(forever, (x,), (1.0,))[1]


def test_a_tangent_of_itself_is_refused() -> None:
    text = error_of(lambda: endless(1.0, 2))
    assert (
        "the derivative of `through` needs its own derivative" in text and "ut.jvp(through" in text and "hint:" in text
    )
    assert "no path through `forever` returns without calling it again" in error_of(lambda: forever(1.0))


@pytest.mark.parametrize(
    ("primals", "tangents", "what"),
    [
        ((2,), (1,), "`x` is an i64, so its tangent must be None (zero), not 1"),
        ((2.0,), (np.float32(1),), "the tangent of `x` is an f32, but `x` is an f64"),
        ((np.ones(3),), (np.ones(2),), "the tangent of `x` is an f64[2], but `x` is an f64[3]"),
        (((1.0, 2.0),), ((1.0,),), "the tangent of `x` differs from `x` in structure"),
        ((1.0,), (1.0, 2.0), "ut.jvp gets 1 arguments, but 2 tangents"),
        (2.0, 1.0, "ut.jvp takes the arguments as a tuple, not 2.0"),
        ((ut.Variable(2.0, name="w"),), (1.0,), "`x` is the variable `w`, which has no tangent"),
        (({"w": ut.Variable(2.0, name="w")},), ({"w": 1.0},), "`x` holds the variable `w`, which has no tangent"),
    ],
)
def test_wrong_tangents(primals: Any, tangents: Any, what: str) -> None:
    text = error_of(lambda: ut.jvp(lambda x: x, primals, tangents))
    assert what in text and "hint:" in text


def test_wrong_uses_in_a_captured_function() -> None:
    @ut.function
    def no_function(x: ut.f64) -> ut.f64:
        return ut.jvp(x, (x,), (1.0,))[1]

    @ut.function
    def too_few(x: ut.f64) -> ut.f64:
        return ut.jvp(power, (x,))[1]

    assert "takes a function, not" in error_of(lambda: no_function(1.0))
    assert "ut.jvp takes a function, its arguments and their tangents" in error_of(lambda: too_few(1.0))
    assert "takes a function, not" in error_of(lambda: ut.jvp(3, (1.0,), (1.0,)))


def test_a_variable_that_is_assigned_and_read_is_refused() -> None:
    memory = ut.Variable(0.0, name="memory")

    @ut.function
    def keep(x: ut.f64) -> None:
        memory.assign(x * x)

    @ut.function
    def through_memory(x: ut.f64, n: ut.i64) -> ut.f64:
        for _ in range(n):
            keep(x)
        return memory.read() * 2.0

    text = error_of(lambda: ut.jvp(through_memory, (2.0, 1), (1.0, None)))
    assert "variable `memory` is assigned a value that has a tangent" in text and "memory.assign(x * x)" in text
    assert ut.jvp(through_memory, (2.0, 1), (None, None)) == (8.0, 0.0)


def test_an_operator_without_a_row_names_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from undertow.ops.gradient import NoGradient, pointwise
    from undertow.ops.op import CATALOGUE

    unknown = pointwise(NoGradient("nobody knows it"))
    monkeypatch.setitem(CATALOGUE, "sinh", replace(CATALOGUE["sinh"], derivative=unknown))
    text = error_of(lambda: ut.jvp(lambda x: ut.sinh(x) * 2.0, (1.0,), (1.0,)))
    assert "`sinh` has no derivative: nobody knows it" in text
    assert re.search(r"test_forward.py:\d+", text) and "hint:" in text
    # What nobody asks for needs no row.
    assert ut.jvp(lambda x, y: (ut.sinh(x), y), (1.0, 2.0), (None, 1.0))[1] == (0.0, 1.0)


def test_derivatives_that_grow_without_bound_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "MOST_NODES", 200)
    f: Any = power
    for _ in range(4):
        f = (lambda g: lambda x: ut.jvp(g, (x, 3) if g is power else (x,), (1.0, None) if g is power else (1.0,))[1])(f)
    assert "would make more than 200 nodes" in error_of(lambda: ut.jvp(f, (2.0,), (1.0,)))


# --------------------------------------------------------------------------------------------------------------
# check_grads


def test_check_grads_names_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from undertow.ops.op import CATALOGUE

    wrong = CATALOGUE["sinh"].derivative._replace(tangent=CATALOGUE["cosh"].tangent)
    monkeypatch.setitem(CATALOGUE, "sinh", replace(CATALOGUE["sinh"], derivative=wrong))
    with pytest.raises(ut.GradientMismatch, match=r"along argument 1 is .* by ut\.jvp, but .* by differences"):
        ut.check_grads(lambda x, y: x * ut.sinh(y), (1.0, np.array([1.0, 2.0])))


def test_check_grads_takes_sensible_choices() -> None:
    for wrong in ({"modes": "fwd"}, {"modes": ("sideways",)}, {"order": 0}, {"order": True}):
        assert "hint:" in error_of(lambda wrong=wrong: ut.check_grads(power, (1.0, 2), **wrong))
    assert "ut.check_grads takes the arguments as a tuple, not 3.0" in error_of(lambda: ut.check_grads(ut.sin, 3.0))
    assert "none of the arguments is a float" in error_of(lambda: ut.check_grads(lambda n: n * 0.5, (3,)))


def test_hessian_vector_products() -> None:
    close(ut.hvp(power, (2.0, 5), (1.0, None)), 160)
    assert "needs a tangent" in error_of(lambda: ut.hvp(power, (2.0, 5), (None, None)))


def _total(value: Any) -> Any:
    """The float results of a function as one number, without a symmetry that could hide a fault."""
    floats = [x for x in _leaves(value) if x.dtype in (ut.f64, np.float64)]
    return sum(ut.sum(ut.sin(x) * (k + 1.0)) for k, x in enumerate(floats))


@pytest.mark.parametrize("case", [name for name in CASES if name not in ("random draws", "containers", "f32")])
def test_both_modes_in_both_orders(case: str) -> None:
    """Forward over reverse, reverse over forward and forward twice give the same second derivatives."""
    function, args = CASES[case]
    x, *rest = args
    v, w = (np.asarray(RANDOM.standard_normal(np.shape(x)))[()] for _ in range(2))

    @ut.function
    def scalar(z: Any) -> Any:
        return _total(function(z, *rest))

    along = ut.hvp(scalar, (x,), (v,))
    back = ut.grad(lambda z: ut.jvp(scalar, (z,), (v,))[1])(x)
    np.testing.assert_allclose(along, back, rtol=1e-9, atol=1e-12)
    twice = ut.jvp(lambda z: ut.jvp(scalar, (z,), (v,))[1], (x,), (w,))[1]
    np.testing.assert_allclose(np.sum(along * w), twice, rtol=1e-9, atol=1e-12)


def test_libraries_without_tangents_stay_as_they_are() -> None:
    library = power.library(2.0, 3)
    made, report = extend(library)
    check(made)
    assert made == library and str(report) == "extend: 16 nodes -> 16"
