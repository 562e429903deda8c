"""Variables: reading, assigning, order, and what a run that fails leaves behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.threads import in_threads

import undertow as ut
from undertow.api.options import ENGINES
from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.op import find
from undertow.types import CTL, Type, f64, i64

# --------------------------------------------------------------------------------------------------------------
# The rows


def held(how: str | None = None, dtype: str = "f64", shape: tuple[int | None, ...] = ()) -> Attrs:
    return Attrs(variable="x", dtype=dtype, shape=shape, **({} if how is None else {"how": how}))


def test_read_gives_the_value_and_an_order_token() -> None:
    row = find("read")
    assert row.type([], held(shape=(None, 2))) == (Type(f64, (None, 2)), CTL)
    assert row.state is not None and row.state({"x": np.float64(1.5)}, [], held()) == (1.5, np.True_)
    with pytest.raises(Fault, match="variable `x` has no value yet"):
        row.state({}, [], held())


@pytest.mark.parametrize(
    ("how", "new"),
    [("set", 3.0), ("add", 13.0), ("subtract", 7.0), ("multiply", 30.0), ("minimum", 3.0), ("maximum", 10.0)],
)
def test_assign(how: str, new: float) -> None:
    row, store = find("assign"), {"x": np.float64(10.0)}
    assert row.type([Type(f64)], held(how)) == (Type(f64), CTL)
    assert row.state is not None and row.state(store, [np.float64(3.0)], held(how))[0] == new
    assert store == {"x": new}


def test_assign_concat() -> None:
    row, store = find("assign"), {"x": np.array([1, 2])}
    attrs = held("concat", "i64", (None,))
    assert row.type([Type(i64)], attrs) == (Type(i64, (None,)), CTL)
    assert row.state is not None
    row.state(store, [np.int64(3)], attrs)
    row.state(store, [np.array([4, 5])], attrs)
    assert store["x"].tolist() == [1, 2, 3, 4, 5]


def test_what_does_not_fit_is_refused() -> None:
    row = find("assign")
    with pytest.raises(TypeMismatch, match="unknown assignment 'divide'"):
        row.type([Type(f64)], held("divide"))
    with pytest.raises(TypeMismatch, match="cannot be assigned to variable `x`, which holds f64"):
        row.type([Type(f64, (2,))], held("set"))
    with pytest.raises(TypeMismatch, match="cannot be assigned to variable"):
        row.type([Type(i64)], held("add"))
    assert row.state is not None
    with pytest.raises(Fault, match=r"a value of shape \[3\] cannot be assigned to variable `x`"):
        row.state({"x": np.zeros(2)}, [np.zeros(3)], held("set", shape=(2,)))


# --------------------------------------------------------------------------------------------------------------
# Outside a graph


def test_a_variable_in_plain_python() -> None:
    x = ut.Variable(2.0, name="x")
    assert x.read() == x.value == x.numpy() == 2.0
    assert x.assign(3) == 3.0 and x.assign_add(1) == 4.0 and x.assign_sub(2) == 2.0 and x.assign_mul(5) == 10.0
    assert x.assign_min(4) == 4.0 and x.assign_max(6.5) == 6.5
    assert repr(x) == "<Variable x: f64 = 6.5>"
    assert float(x) == 6.5 and x + 1 == 7.5 and 1 + x == 7.5 and x > 6 and -x == -6.5 and x
    assert np.asarray(x) == 6.5 and ut.sqrt(x) == np.sqrt(6.5)
    assert hash(x) != hash(ut.Variable(6.5))


def test_arrays_are_copied_in_and_frozen() -> None:
    given = np.zeros(3)
    x = ut.Variable(given)
    given[0] = 9
    assert x.value.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        x.value[0] = 1
    assert x.assign_add([1.0, 2, 3]).tolist() == [1, 2, 3]
    assert x.shape == (3,) and x.ndim == 1 and len(x) == 3 and x[1] == 2 and list(x) == [1, 2, 3]


def test_dtype_and_shape() -> None:
    assert ut.Variable(1, dtype=ut.f32).dtype == ut.f32
    x = ut.Variable(np.zeros((2, 3)), shape=(None, 3))
    assert x.assign(np.ones((5, 3))).shape == (5, 3)
    with pytest.raises(TypeMismatch, match="cannot be assigned to variable"):
        x.assign(np.ones((5, 4)))
    with pytest.raises(TypeMismatch, match="the initial value is a f64"):
        ut.Variable(np.zeros(2), shape=(3,))
    n = ut.Variable(0)
    with pytest.raises(TypeMismatch, match=r"the value for variable `variable` is 2\.5"):
        n.assign(2.5)
    with pytest.raises(TypeMismatch, match="the value for variable"):
        n.assign(np.float32(1))
    assert ut.Variable(1.0, dtype=ut.f64).assign(np.float32(2)) == 2.0
    with pytest.raises(TypeMismatch):
        ut.Variable("text")


# --------------------------------------------------------------------------------------------------------------
# In functions


@pytest.mark.parametrize("engine", ENGINES)
def test_program_order(engine: str) -> None:
    x = ut.Variable(1, name="x")

    @ut.function
    def f(b):
        before = x.read()
        x.assign(b)
        middle = x.read()
        x.assign_add(before)
        return before, middle, x.read(), x * 2

    assert f.run(10, engine=engine) == (1, 10, 11, 22)
    assert x.value == 11  # kept for the next run
    assert f.run(5, engine=engine) == (11, 5, 16, 32)


@pytest.mark.parametrize("engine", ENGINES)
def test_in_recursion_branches_and_loops(engine: str) -> None:
    calls, leaves = ut.Variable(0, name="calls"), ut.Variable(0, name="leaves")

    @ut.function
    def fib(n: ut.i64) -> ut.i64:
        calls.assign_add(1)
        if n <= 1:
            leaves.assign_add(1)
            return 1
        return fib(n - 1) + fib(n - 2)

    assert fib.run(8, engine=engine) == 34
    assert calls.value == 67 and leaves.value == 34
    digits = ut.Variable(np.zeros(0, np.int64), shape=(None,), name="digits")

    @ut.function
    def spell(n):
        while n > 0:
            digits.assign_concat(n % 10)
            n //= 10
        return digits.read()

    assert spell.run(12345, engine=engine).tolist() == [5, 4, 3, 2, 1]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_fails_changes_nothing(engine: str) -> None:
    x, y = ut.Variable(1, name="x"), ut.Variable(2, name="y")

    @ut.function
    def f(n):
        x.assign(100)
        y.assign_add(n)
        assert y < 10, "too much"
        return x + y

    with pytest.raises(Fault, match="too much"):
        f.run(50, engine=engine)
    assert (x.value, y.value) == (1, 2)
    with pytest.raises(ut.RecursionLimit):
        f.run(3, engine=engine, max_depth=0)
    assert (x.value, y.value) == (1, 2)
    assert f.run(3, engine=engine) == 105


def test_reads_of_a_variable_that_nothing_writes_are_not_ordered() -> None:
    w, n = ut.Variable(2.0, name="w"), ut.Variable(0, name="n")

    @ut.function
    def f(x):
        n.assign_add(1)
        return w * x + w

    (graph,) = (g for g in f.library(1.0).functions.values() if g.kind == "function")
    reads = [node for node in graph.nodes if node.op == "read"]
    assert len(reads) == 2 and all(node.controls[0].node == 0 for node in reads)
    assert f(3.0) == 8.0 and n.value == 1


def test_a_write_that_comes_late_orders_the_reads_before_it() -> None:
    x = ut.Variable(1, name="x")

    @ut.function
    def writes(n):
        x.assign(n)
        return n

    @ut.function
    def f(n):
        before = x.read()  # captured before the call shows that x is written
        writes(n)
        return before + x.read()

    for engine in ENGINES:
        x.assign(1)
        assert f.run(10, engine=engine) == 11


@pytest.mark.parametrize("engine", ENGINES)
def test_an_operand_whose_run_time_shape_does_not_fit_is_a_fault(engine: str) -> None:
    x = ut.Variable(np.zeros(2), name="x")
    log = ut.Variable(np.zeros((0, 2)), shape=(None, 2), name="log")

    @ut.function
    def add(n):
        return x.assign_add(ut.zeros(n))

    @ut.function
    def append(n):
        return log.assign_concat(ut.zeros((1, n)))

    for f, name in ((add, "x"), (append, "log")):
        with pytest.raises(ValueError, match=r"shape \[(1, )?3\] .* variable `" + name) as caught:
            f.run(3, engine=engine)
        assert isinstance(caught.value, Fault) and caught.value.span is not None
    assert x.value.shape == (2,) and log.value.shape == (0, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_variable_can_stand_for(engine: str) -> None:
    w, flag, at = ut.Variable(np.eye(2), name="w"), ut.Variable(True, name="flag"), ut.Variable(1, name="at")
    table = np.array([10.0, 20.0, 30.0])

    @ut.function
    def f(x, held):
        y = x @ w + held[0]
        if flag:
            y = y + ut.asarray(table)[at]
        return y, ut.sum(w), ut.stack([at, 2]), 1 - at, w.T, np.float64(2.0) * w

    y, total, pair, one, t, twice = f.run(np.array([1.0, 2.0]), (w,), engine=engine)
    assert y.tolist() == [[22.0, 22.0], [21.0, 23.0]] and total == 2 and pair.tolist() == [1, 2] and one == 0
    assert t.tolist() == [[1, 0], [0, 1]] and twice.tolist() == [[2, 0], [0, 2]]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_variable_is_indexed_like_its_value(engine: str) -> None:
    held = np.arange(12.0).reshape(4, 3)
    table = ut.Variable(held, name="table")

    @ut.function
    def f(i):
        return table[1], table[i], table[i, 1], table[:, i], table[i:]

    for found, wanted in zip(
        f.run(2, engine=engine), (held[1], held[2], held[2, 1], held[:, 2], held[2:]), strict=True
    ):
        assert np.array_equal(found, wanted)
    gradient = ut.grad(lambda i: ut.sum(table[i]), variables=table, sparse_rows=True)(2)
    assert isinstance(gradient, ut.IndexedRows) and gradient.dense().sum(axis=1).tolist() == [0, 0, 3, 0]


def test_two_variables_of_one_name() -> None:
    a, b = ut.Variable(1), ut.Variable(2)

    @ut.function
    def swap():
        x, y = a.read(), b.read()
        a.assign(y)
        b.assign(x)
        return x

    assert swap() == 1 and (a.value, b.value) == (2, 1)
    assert {n.attrs["variable"] for g in swap.library().functions.values() for n in g.nodes if n.op == "assign"} == {
        "variable",
        "variable~2",
    }


def test_control_dependencies() -> None:
    x = ut.Variable(1, name="x")

    @ut.function
    def f(b):
        y = b * 2
        with ut.control_dependencies([y, 3]):
            z = b + 1
            with ut.control_dependencies(None):
                w = b + 2
        x.assign(z)
        return y, z, w

    assert f(5) == (10, 6, 7)
    (graph,) = (g for g in f.library(5).functions.values() if g.kind == "function")
    waits = {node.name: [graph.nodes[c.node].name for c in node.controls] for node in graph.nodes}
    assert waits["z"] == ["y"] and waits["w"] == []
    with ut.control_dependencies([1]):
        assert x.value == 6
    with pytest.raises(TypeMismatch, match="takes a list of values"):
        ut.control_dependencies(5)  # type: ignore[arg-type]


def test_a_branch_waits_for_control_dependencies_too() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        y = n * 2
        with ut.control_dependencies([y]):
            if n > 0:
                return f(n - 1) + 1
            return n

    for engine in ENGINES:
        assert f.run(5, engine=engine) == 5


def test_device_is_recorded() -> None:
    @ut.function
    def f(x):
        with ut.device("worker:1"):
            y = x * 2
        return y + 1

    (graph,) = (g for g in f.library(1.0).functions.values() if g.kind == "function")
    assert {n.name: n.attrs.get("device") for n in graph.nodes if n.op in ("multiply", "add")} == {
        "y": "worker:1",
        "add": None,
    }
    assert f(2.0) == 5.0
    with pytest.raises(TypeMismatch, match="a device must be a name"):
        ut.device(3)  # type: ignore[arg-type]


def test_simplify_keeps_every_read_and_write() -> None:
    x = ut.Variable(0, name="x")

    @ut.function
    def f(n):
        a = x.read()
        b = x.read()
        x.assign(n)
        x.assign(n)
        c = x.read()
        return a + b + c

    assert f(3) == 3 and f.run(3, simplify=False) == 9
    ops = [node.op for node in f.graph(3).static.nodes]
    assert ops.count("read") == 3 and ops.count("assign") == 2


def test_saving_a_function_with_variables_is_refused(tmp_path: Any) -> None:
    x = ut.Variable(0, name="x")

    @ut.function
    def f(n):
        return x + n

    with pytest.raises(ut.SaveError, match="uses variables"):
        ut.save(f, tmp_path / "f.ut", examples=[(1,)])


# --------------------------------------------------------------------------------------------------------------
# Threads


def test_writers_are_serialised() -> None:
    x = ut.Variable(0, name="x")

    @ut.function
    def increment(n: ut.i64) -> ut.i64:
        if n == 0:
            return x.read()
        x.assign(x + 1)
        return increment(n - 1)

    in_threads(lambda _: [increment(10) for _ in range(5)], 4)
    assert x.value == 200


def test_readers_see_one_commit_or_the_other() -> None:
    a, b = ut.Variable(0, name="a"), ut.Variable(0, name="b")

    @ut.function
    def write(n):
        a.assign(n)
        b.assign(-n)
        return n

    @ut.function
    def look():
        return a.read() + b.read()

    seen, _ = in_threads(lambda k: [write(n) if k else look() for n in range(200)], 2)
    assert set(seen) == {0}


# --------------------------------------------------------------------------------------------------------------
# Rows


def test_rows_in_plain_python() -> None:
    table = ut.Variable(np.arange(6.0).reshape(3, 2), name="table")
    before = table.value
    assert table.take([2, -3]).tolist() == [[4, 5], [0, 1]]
    assert table.take(1).tolist() == [2, 3]
    assert table.assign_rows_add([0, 0, -1], np.ones((3, 2))).tolist() == [[2, 3], [2, 3], [5, 6]]
    assert table.assign_rows(1, [7, 8]).tolist() == [7, 8]
    assert table.value.tolist() == [[2, 3], [7, 8], [5, 6]]
    assert before.tolist() == [[0, 1], [2, 3], [4, 5]]  # who has a value keeps it
    with pytest.raises(ValueError, match="read-only"):
        table.value[0] = 1
    vector = ut.Variable(np.zeros(3, np.float32))
    assert vector.assign_rows_add([], np.zeros(0, np.float32)).shape == (0,)
    assert vector.assign_rows_add([[0, 1], [1, 2]], np.ones((2, 2), np.float32)).tolist() == [[1, 2], [2, 1]]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_in_functions(engine: str) -> None:
    table = ut.Variable(np.zeros((4, 2)), name="table")

    @ut.function
    def f(indices, rows):
        whole = table.read()
        new = table.assign_rows_add(indices, rows)
        more = table.assign_rows_add(indices, rows)
        between = table.read()
        table.assign_rows(0, [9, 9])
        return whole, new, more, between, table.take(ut.asarray([0, 3])), table.read()

    found = f.run(np.array([1, -1, 1]), np.ones((3, 2)), engine=engine)
    whole, new, more, between, some, last = (x[..., 0].tolist() for x in found)
    assert whole == [0, 0, 0, 0] and new == [2, 1, 2] and more == [4, 2, 4]
    assert between == [0, 4, 0, 2] and some == [9, 2] and last == [9, 4, 0, 2]
    assert table.value[:, 0].tolist() == last
    with pytest.raises(Fault, match="index 7 is out of range for axis 0 of length 4"):
        f.run(np.array([1, 7, 1]), np.ones((3, 2)), engine=engine)
    assert table.value[:, 0].tolist() == last
    with pytest.raises(ut.TypeMismatch, match=r"f64\[2,3\] cannot be assigned to rows i64\[2\] of variable `table`"):
        f.run(np.array([1, 2]), np.ones((2, 3)), engine=engine)


def test_a_run_copies_a_table_once() -> None:
    row, attrs = find("assign_rows"), held("add", shape=(3,))
    assert row.state is not None
    given = np.zeros(3)
    store: dict[str, Any] = {"x": given}
    row.state(store, [np.array([0]), np.ones(1)], attrs)
    own = store["x"]
    row.state(store, [np.array([0]), np.ones(1)], attrs)
    assert np.shares_memory(store["x"], own) and store["x"].tolist() == [2, 0, 0] and given.tolist() == [0, 0, 0]
    read = find("read").state
    assert read is not None
    seen = read(store, [], held(shape=(3,)))[0]  # from here on somebody else has it
    row.state(store, [np.array([0]), np.ones(1)], attrs)
    assert type(seen) is np.ndarray and seen[0] == 2 and store["x"][0] == 3


def test_rows_that_do_not_fit() -> None:
    table, number = ut.Variable(np.zeros((3, 2)), name="table"), ut.Variable(1.0, name="number")
    with pytest.raises(TypeMismatch, match="rows of variable `number`, which holds f64"):
        number.take([0])
    with pytest.raises(TypeMismatch, match="the row numbers of variable `table` must be integers"):
        table.take([0.5])
    with pytest.raises(TypeMismatch, match="index 3"):
        table.take([3])
    with pytest.raises(TypeMismatch, match=r"the rows must be f64\[2,2\]"):
        table.assign_rows([0, 1], np.zeros(2))
    with pytest.raises(TypeMismatch, match="unknown assignment 'multiply' of rows"):
        find("assign_rows").type([Type(i64, (1,)), Type(f64, (1,))], held("multiply", shape=(3,)))
    grown = ut.Variable(np.zeros((2, 1)), shape=(None, None), name="grown")

    @ut.function
    def f(rows):
        return grown.assign_rows_add([0], rows)

    with pytest.raises(Fault, match=r"the rows for variable `grown` must have the shape \[1, 1\], not \[1, 3\]"):
        f(np.zeros((1, 3)))


def test_a_variable_that_a_gradient_is_taken_by_is_not_assigned_to() -> None:
    v = ut.Variable(2.0, name="v")

    @ut.function
    def f(x: ut.f64) -> ut.f64:
        v.assign_add(1.0)
        return v * x

    assert ut.grad(f)(5.0) == 3.0 and v.value == 3.0  # by x: fine
    with pytest.raises(ut.CaptureError, match="variable `v` is assigned inside a function that is differentiated"):
        ut.grad(f, variables=v)(5.0)
    assert v.value == 3.0
