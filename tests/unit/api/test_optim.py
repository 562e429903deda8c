"""Optimizers against their formulas in NumPy, dense and sparse, functional and on variables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES
from undertow.errors import Fault, TypeMismatch, UndertowError

Formula = Callable[[list[Any], Any], Any]  # gradients of all steps, the first value -> the last value


# --------------------------------------------------------------------------------------------------------------
# The formulas, each written out


def sgd(rate: float, momentum: float = 0.0, nesterov: bool = False) -> Formula:
    def run(grads: list[Any], x: Any) -> Any:
        v = np.zeros_like(x)
        for g in grads:
            v = momentum * v + g
            x = x - rate * (g + momentum * v if nesterov else v)
        return x

    return run


def adagrad(rate: float, initial: float = 0.0, epsilon: float = 1e-10) -> Formula:
    def run(grads: list[Any], x: Any) -> Any:
        s = np.full_like(x, initial)
        for g in grads:
            s = s + g**2
            x = x - rate * g / (np.sqrt(s) + epsilon)
        return x

    return run


def rmsprop(rate: float, decay: float = 0.99, epsilon: float = 1e-8, momentum: float = 0.0) -> Formula:
    def run(grads: list[Any], x: Any) -> Any:
        s, v = np.zeros_like(x), np.zeros_like(x)
        for g in grads:
            s = decay * s + (1 - decay) * g**2
            v = momentum * v + g / (np.sqrt(s) + epsilon)
            x = x - rate * v
        return x

    return run


def adam(rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> Formula:
    def run(grads: list[Any], x: Any) -> Any:
        m, v = np.zeros_like(x), np.zeros_like(x)
        for t, g in enumerate(grads, 1):
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g**2
            x = x - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        return x

    return run


CASES: dict[str, tuple[ut.optim.Optimizer, Formula]] = {
    "sgd": (ut.optim.SGD(0.1), sgd(0.1)),
    "momentum": (ut.optim.SGD(0.1, momentum=0.9), sgd(0.1, 0.9)),
    "nesterov": (ut.optim.SGD(0.1, momentum=0.9, nesterov=True), sgd(0.1, 0.9, True)),
    "adagrad": (ut.optim.Adagrad(0.1), adagrad(0.1)),
    "adagrad from 0.1": (ut.optim.Adagrad(0.1, initial=0.1, epsilon=1e-7), adagrad(0.1, 0.1, 1e-7)),
    "rmsprop": (ut.optim.RMSprop(0.01), rmsprop(0.01)),
    "rmsprop with momentum": (ut.optim.RMSprop(0.01, decay=0.9, momentum=0.5), rmsprop(0.01, 0.9, momentum=0.5)),
    "adam": (ut.optim.Adam(0.01), adam(0.01)),
    "adam of its own": (ut.optim.Adam(0.01, beta1=0.5, beta2=0.9, epsilon=1e-3), adam(0.01, 0.5, 0.9, 1e-3)),
}
each_optimizer = pytest.mark.parametrize("name", CASES)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
STEPS = 5


def tolerance(dtype: Any) -> dict[str, float]:
    return {"rtol": 2e-5, "atol": 1e-6} if dtype == np.float32 else {"rtol": 1e-12, "atol": 1e-13}


def draws(shape: tuple[int, ...], dtype: Any = np.float64) -> tuple[Any, list[Any]]:
    """A value and the gradients of all steps."""
    rng = np.random.default_rng(7)
    return rng.normal(size=shape).astype(dtype), [rng.normal(size=shape).astype(dtype) for _ in range(STEPS)]


def sparse_draws(dtype: Any = np.float64) -> tuple[Any, list[ut.IndexedRows]]:
    """A table of six rows, the last never touched, and sparse gradients: repeated and negative indices, and none."""
    rng = np.random.default_rng(8)
    indices: list[Any] = [[0, 2, 2, -2], [-6, 0, 1], [], [[3, 3], [2, -3]], [4]]
    made = []
    for given in indices:
        numbers = np.array(given, np.int64)
        made.append(ut.IndexedRows(numbers, rng.normal(size=(*numbers.shape, 3)).astype(dtype), (6, 3)))
    return rng.normal(size=(6, 3)).astype(dtype), made


MIXED = (lambda held: held["table"], lambda held: held["x"][0])  # the leaves of what `mixed_draws` gives


def mixed_draws(dtype: Any) -> tuple[Any, list[Any]]:
    """A table with sparse gradients, and an array in a list with dense ones; the gradients of each step."""
    (table, sparse), (x, dense) = sparse_draws(dtype), draws((2,), dtype)
    return {"table": table, "x": [x]}, [{"table": rows, "x": [g]} for rows, g in zip(sparse, dense, strict=True)]


def lazy(formula: Formula, table: Any, grads: list[ut.IndexedRows], name: str) -> Any:
    """What sparse updates must give: each row sees only the steps that touch it."""
    out = table.copy()
    for row in range(len(table)):
        touched = [(t, g) for t, g in enumerate(grads) if row in np.asarray(g.indices).ravel() % len(table)]
        if name.startswith("adam"):
            opt = CASES[name][0]
            assert isinstance(opt, ut.optim.Adam)
            m, v, x = np.zeros(3), np.zeros(3), table[row].astype(np.float64)
            for t, sparse in touched:
                g = sparse.dense()[row].astype(np.float64)
                m, v = opt.beta1 * m + (1 - opt.beta1) * g, opt.beta2 * v + (1 - opt.beta2) * g**2
                # The number of the step is that of all updates.
                x = x - opt.learning_rate * (m / (1 - opt.beta1 ** (t + 1))) / (
                    np.sqrt(v / (1 - opt.beta2 ** (t + 1))) + opt.epsilon
                )
            out[row] = x
        else:
            out[row] = formula([g.dense()[row] for _, g in touched], table[row])
    return out


# --------------------------------------------------------------------------------------------------------------
# Functional updates


def test_an_optimizer_of_ones_own() -> None:
    """A rule is any function of a gradient, slots and settings: here the sign of a decaying mean (Lion, shortened)."""

    def lion(g: Any, mean: Any, rate: Any, fresh: Any) -> tuple[Any, Any]:
        to_mean = fresh * (g - mean)
        return -rate * ut.sign(mean + to_mean), to_mean

    class Lion(ut.optim.Optimizer):
        @property
        def slots(self) -> dict[str, float]:
            return {"mean": 0.0}

        def rule(self, rate: Any, count: Any) -> Any:
            return lion, (rate, 0.1)

    opt, g = Lion(0.5), np.array([3.0, -1.0])
    here = opt.update(g, opt.init(np.zeros(2)), np.zeros(2))
    inside = ut.function(lambda g, state, x: opt.update(g, state, x))(g, opt.init(np.zeros(2)), np.zeros(2))
    for x, state in (here, inside):
        assert x.tolist() == [-0.5, 0.5] and state.step == 1
        np.testing.assert_allclose(state.slots["mean"], [0.3, -0.1])


@each_dtype
@each_optimizer
def test_formula(name: str, dtype: Any) -> None:
    opt, formula = CASES[name]
    x, grads = draws((2, 3), dtype)
    params, state = {"x": x}, opt.init({"x": x})
    for g in grads:
        params, state = opt.update({"x": g}, state, params)
    assert params["x"].dtype == dtype and state.step == STEPS
    assert all(slot["x"].dtype == dtype for slot in state.slots.values())
    np.testing.assert_allclose(params["x"], formula(grads, x), **tolerance(dtype))


@each_dtype
@each_optimizer
def test_formula_on_rows(name: str, dtype: Any) -> None:
    opt, formula = CASES[name]
    x, grads = sparse_draws(dtype)
    params, state = x, opt.init(x)
    for g in grads:
        before = state
        params, state = opt.update(g, state, params)
        untouched = sorted(set(range(6)) - set((np.asarray(g.indices).ravel() % 6).tolist()))
        for slot, new in state.slots.items():
            assert np.array_equal(new[untouched], before.slots[slot][untouched])
    assert params.dtype == dtype and np.array_equal(params[5], x[5])
    np.testing.assert_allclose(params, lazy(formula, x, grads, name), **tolerance(dtype))


@pytest.mark.parametrize("name", ["sgd", "adagrad", "adagrad from 0.1"])
def test_rows_and_the_whole_are_the_same_where_nothing_decays(name: str) -> None:
    opt, _ = CASES[name]
    x, grads = sparse_draws()
    sparse, dense = (x, opt.init(x)), (x, opt.init(x))
    for g in grads:
        sparse = opt.update(g, sparse[1], sparse[0])
        dense = opt.update(g.dense(), dense[1], dense[0])
        np.testing.assert_allclose(sparse[0], dense[0], rtol=1e-14)


def test_squares_are_those_of_the_sum() -> None:
    opt = ut.optim.Adagrad(1.0)
    _, state = opt.update(ut.IndexedRows([1, 1], [1.0, 2.0], (3,)), opt.init(np.zeros(3)), np.zeros(3))
    assert state.slots["squares"].tolist() == [0, 9, 0]


@dataclass
class Layer:
    W: Any
    b: Any


def test_nested_containers() -> None:
    opt = ut.optim.SGD(1.0, momentum=0.5)
    params = {"layers": [Layer(np.ones((2, 2)), np.zeros(2)), Layer(np.ones(3), 0.0)], "scale": np.float32(2)}
    grads = {"scale": np.float32(1), "layers": [Layer(np.ones((2, 2)), None), Layer(np.ones(3), 0.5)]}
    state = opt.init(params)
    new, state = opt.update(grads, state, params)
    assert list(new) == ["layers", "scale"] and new["scale"] == 1 and new["scale"].dtype == np.float32
    first, second = new["layers"]
    assert isinstance(first, Layer) and not first.W.any() and not second.W.any() and second.b == -0.5
    assert first.b is params["layers"][0].b  # a gradient of None: it stays as it is
    assert state.slots["momentum"]["layers"][1].b == 0.5
    assert np.all(params["layers"][0].W == 1)  # nothing changes in place


def test_what_is_no_float_stays() -> None:
    opt = ut.optim.Adam(0.1)
    params = {"n": np.arange(3), "x": np.zeros(2), "name": "tanh"}
    new, _ = opt.update({"n": None, "x": np.ones(2)}, opt.init(params), params)
    assert new["n"].tolist() == [0, 1, 2] and new["name"] == "tanh" and new["x"].any()
    with pytest.raises(TypeMismatch, match=r"`params\.n` is an i64\[3\], but only floats can be trained"):
        opt.update({"n": np.zeros(3), "x": np.ones(2)}, opt.init(params), params)


@pytest.mark.parametrize("engine", ENGINES)
@each_dtype
@each_optimizer
def test_inside_a_function(name: str, dtype: Any, engine: str) -> None:
    opt, _ = CASES[name]
    params, gradients = mixed_draws(dtype)

    @ut.function
    def update(grads, state, params):
        return opt.update(grads, state, params)

    state, here = opt.init(params), (params, opt.init(params))
    for grads in gradients:
        params, state = update.run(grads, state, params, engine=engine)
        here = opt.update(grads, here[1], here[0])
    assert isinstance(state, ut.optim.State) and state.step == STEPS and params["x"][0].dtype == dtype
    for leaf in MIXED:
        np.testing.assert_allclose(leaf(params), leaf(here[0]), **tolerance(dtype))
        for slot in state.slots:
            np.testing.assert_allclose(leaf(state.slots[slot]), leaf(here[1].slots[slot]), **tolerance(dtype))


def test_training_in_one_run() -> None:
    """State and parameters go around a loop, the gradients are made in it."""
    opt = ut.optim.Adam(0.1)

    @ut.function
    def train(x, steps):
        state = opt.init(x)
        for _ in range(steps):
            x, state = opt.update(2 * (x - 3), state, x)
        return x

    np.testing.assert_allclose(train(np.zeros(2), 300), [3, 3], atol=1e-3)


# --------------------------------------------------------------------------------------------------------------
# Learning rates


def test_learning_rates() -> None:
    g, x = np.ones(2, np.float32), np.zeros(2, np.float32)
    rate = ut.Variable(0.5, name="rate")

    @ut.function
    def halves(step):
        return 0.25 if step > 0 else 0.5

    for learning_rate in (lambda step: 0.5 / (1 + step), lambda step: ut.where(step > 0, 0.25, 0.5), halves):
        opt = ut.optim.SGD(learning_rate)
        first, state = opt.update(g, opt.init(x), x)
        second, _ = opt.update(g, state, first)
        assert first.dtype == second.dtype == np.float32 and first[0] == -0.5 and second[0] == -0.75

        @ut.function
        def in_graph(g, state, x, opt=opt):
            return opt.update(g, state, x)

        first, state = in_graph(g, ut.optim.SGD(1.0).init(x), x)
        assert first[0] == -0.5 and in_graph(g, state, first)[0][0] == -0.75
    opt = ut.optim.SGD(rate)
    assert opt.update(g, opt.init(x), x)[0][0] == -0.5
    assert opt.update(g, opt.init(x), x, learning_rate=2.0)[0][0] == -2

    @ut.function
    def given(g, x, rate):
        return opt.update(g, opt.init(x), x, learning_rate=rate)[0]

    assert given(g, x, 0.125)[0] == -0.125 and given(g, x, 0.125).dtype == np.float32
    with pytest.raises(TypeMismatch, match=r"the learning rate must be a scalar, not f64\[2\]"):
        opt.update(g, opt.init(x), x, learning_rate=np.ones(2))


def test_optimizers_as_arguments() -> None:
    """They are settings: known at capture."""

    @ut.function
    def update(opt, g, x):
        return opt.update(g, opt.init(x), x)[0]

    g, x = np.ones(1), np.zeros(1)
    assert update(ut.optim.SGD(0.5, momentum=0.5, nesterov=True), g, x) == -0.75
    assert update(ut.optim.SGD(0.25), g, x) == -0.25


# --------------------------------------------------------------------------------------------------------------
# Variables


@pytest.mark.parametrize("where", ["outside", *ENGINES])
@each_dtype
@each_optimizer
def test_variables_and_functional_updates_are_the_same(name: str, dtype: Any, where: str) -> None:
    opt, _ = CASES[name]
    params, gradients = mixed_draws(dtype)
    variables = {"table": ut.Variable(params["table"], name="table"), "x": [ut.Variable(params["x"][0], name="x")]}
    updater = ut.optim.Updater(opt, variables)

    @ut.function
    def step(grads):
        updater.apply(grads)

    state = opt.init(params)
    for grads in gradients:
        params, state = opt.update(grads, state, params)
        updater.apply(grads) if where == "outside" else step.run(grads, engine=where)
    assert updater.step.value == STEPS and variables["x"][0].dtype.numpy == dtype
    for leaf in MIXED:
        np.testing.assert_allclose(leaf(variables).value, leaf(params), **tolerance(dtype))
        for slot, held in updater.slots.items():
            np.testing.assert_allclose(leaf(held).value, leaf(state.slots[slot]), **tolerance(dtype))


@each_optimizer
def test_no_operator_takes_the_table(name: str) -> None:
    """Neither the table nor its slots are read or made as a whole."""
    table = ut.Variable(np.zeros((1000, 2)), name="table")
    updater = ut.optim.Updater(CASES[name][0], [table])

    @ut.function
    def step(indices, rows):
        updater.apply([ut.IndexedRows(indices, rows, (1000, 2))])

    library = step.library(np.array([1, 1]), np.ones((2, 2)))
    nodes = [node for graph in library.functions.values() for node in graph.nodes]
    assert "assign_rows" in {node.op for node in nodes}
    assert not any(1000 in type_.shape for node in nodes for type_ in node.types)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_fails_updates_nothing(engine: str) -> None:
    x, table = ut.Variable(np.zeros(2), name="x"), ut.Variable(np.zeros((3, 2)), name="table")
    updater = ut.optim.Updater(ut.optim.Adam(0.1), (x, table))

    @ut.function
    def step(g, indices, rows, limit):
        updater.apply((g, ut.IndexedRows(indices, rows, (3, 2))))
        assert ut.sum(g) < limit, "too steep"
        return x.read()

    g, rows = np.ones(2), np.ones((2, 2))
    with pytest.raises(Fault, match="too steep"):
        step.run(g, np.array([0, 1]), rows, 1.0, engine=engine)
    with pytest.raises(Fault, match="index 3 is out of range for axis 0 of length 3"):
        step.run(g, np.array([0, 3]), rows, 9.0, engine=engine)
    with pytest.raises(Fault, match="index -4 is out of range"):
        step.run(g, np.array([0, -4]), rows, 9.0, engine=engine)
    held = [x, table, updater.step, *updater.slots["mean"], *updater.slots["squares"]]
    assert not any(np.any(variable.value) for variable in held)
    step.run(g, np.array([0, 1]), rows, 9.0, engine=engine)
    assert all(np.any(variable.value) for variable in held)


def test_outside_of_a_run_all_or_nothing_too() -> None:
    x, y = ut.Variable(np.zeros(2), name="x"), ut.Variable(np.zeros(2), shape=(None,), name="y")
    updater = ut.optim.Updater(ut.optim.SGD(0.1), [x, y])
    with pytest.raises(UndertowError):
        updater.apply([np.ones(2), ut.IndexedRows([0, 5], np.ones(2), (6,))])  # y has no row 5
    assert updater.step.value == 0 and not x.value.any() and not y.value.any()


def test_learning_rate_of_an_updater() -> None:
    x, rate = ut.Variable(np.zeros(1), name="x"), ut.Variable(0.5, name="rate")
    updater = ut.optim.Updater(ut.optim.SGD(rate), x)
    scheduled = ut.optim.Updater(ut.optim.SGD(lambda step: 1.0 + step), x)

    @ut.function
    def step(g):
        updater.apply(g)
        rate.assign(0.25)
        updater.apply(g)
        updater.apply(g, learning_rate=10)
        scheduled.apply(g)
        scheduled.apply(g)
        return x.read()

    assert step(np.ones(1)) == -0.5 - 0.25 - 10 - 1 - 2
    assert repr(scheduled).startswith("<Updater of x by SGD(learning_rate=<function")


def test_variables_that_cannot_be_updated() -> None:
    opt, x = ut.optim.SGD(0.1), ut.Variable(np.zeros(2), name="x")
    with pytest.raises(TypeMismatch, match=r"`variables\.n` must be a variable of floats, not an i64"):
        ut.optim.Updater(opt, {"x": x, "n": ut.Variable(1)})
    with pytest.raises(TypeMismatch, match=r"`variables\.0` must be a variable of floats, not 1\.5"):
        ut.optim.Updater(opt, [1.5])
    with pytest.raises(TypeMismatch, match=r"`variables\.1` repeats the variable `x`"):
        ut.optim.Updater(opt, [x, x])
    with pytest.raises(TypeMismatch, match="there are no variables"):
        ut.optim.Updater(opt, [])


# --------------------------------------------------------------------------------------------------------------
# What does not fit


def test_structures_that_differ() -> None:
    opt = ut.optim.SGD(0.1, momentum=0.9)
    params = {"a": [np.zeros(2), np.zeros(3)], "b": 0.0}
    state = opt.init(params)
    with pytest.raises(TypeMismatch, match=r"`params\.a\.1` has no gradient: there is no `grads\.a\.1`"):
        opt.update({"a": [np.zeros(2)], "b": 0.0}, state, params)
    with pytest.raises(TypeMismatch, match=r"`grads\.c` has no parameter: there is no `params\.c`"):
        opt.update({**params, "c": 1.0}, state, params)
    with pytest.raises(TypeMismatch, match=r"`grads\.a\.1` is an f64\[2\], but `params\.a\.1` is an f64\[3\]"):
        opt.update({"a": [np.zeros(2), np.zeros(2)], "b": 0.0}, state, params)
    with pytest.raises(TypeMismatch, match=r"`grads\.a\.0` is an f64\[5\], but `params\.a\.0` is an f64\[2\]"):
        opt.update({"a": [ut.IndexedRows([0], [1.0], (5,)), None], "b": 0.0}, state, params)
    with pytest.raises(TypeMismatch, match=r"the gradient `grads\.b` must be a float, not an i64"):
        opt.update({**params, "b": 1}, state, params)
    with pytest.raises(TypeMismatch, match="the state has no slots `mean`"):
        ut.optim.Adam(0.1).update(params, state, params)
    with pytest.raises(TypeMismatch, match="the slots `momentum` do not have the structure of the parameters"):
        opt.update(params, opt.init([1.0]), params)


def test_settings_out_of_range() -> None:
    optim = ut.optim
    for make, what in [
        (lambda: optim.SGD(-1.0), "learning_rate is -1.0"),
        (lambda: optim.SGD(float("nan")), "learning_rate is nan"),
        (lambda: optim.SGD("fast"), "learning_rate must be a number, not 'fast'"),
        (lambda: optim.SGD(0.1, momentum=1.0), "momentum is 1.0"),
        (lambda: optim.SGD(0.1, nesterov=True), "nesterov=True needs a momentum"),
        (lambda: optim.Adagrad(0.1, initial=-1), "initial is -1"),
        (lambda: optim.RMSprop(0.1, decay=1.5), "decay is 1.5"),
        (lambda: optim.Adam(0.1, beta2=-0.1), "beta2 is -0.1"),
        (lambda: optim.Adam(0.1, epsilon=float("inf")), "epsilon is inf"),
        (lambda: optim.clip_by_norm([np.ones(2)], 0), "max_norm is 0"),
    ]:
        with pytest.raises(UndertowError, match=what):
            make()
    for make, what in [
        (lambda: optim.Adam(), "Adam: .*'learning_rate'"),
        (lambda: optim.Adam(lr=0.1), "Adam: unknown argument `lr`"),
        (lambda: optim.SGD(0.1, decay=0.5), "SGD: unknown argument `decay`"),
        (lambda: optim.Adagrad(0.1, 0, 0, 0), "Adagrad: too many"),
        (lambda: optim.RMSprop(rate=0.1), "RMSprop: unknown argument `rate`"),
    ]:
        with pytest.raises(UndertowError, match=what + r"(?s:.*)hint: write \w+\(learning_rate, .*(epsilon|momentum)="):
            make()
    with pytest.raises(AttributeError):
        optim.SGD(0.1).learning_rate = 1  # type: ignore[misc]


# --------------------------------------------------------------------------------------------------------------
# Norms


@pytest.mark.parametrize("engine", ["outside", *ENGINES])
def test_clipping(engine: str) -> None:
    grads = {"w": np.array([3.0, 0.0]), "table": ut.IndexedRows([1, 1, -1], [1.0, 1.0, 4.0], (3,)), "none": None}
    whole = np.sqrt(9 + 4 + 16)

    @ut.function
    def both(grads, most):
        return ut.optim.global_norm(grads), ut.optim.clip_by_norm(grads, most)

    def run(most: float) -> Any:
        if engine == "outside":
            return ut.optim.global_norm(grads), ut.optim.clip_by_norm(grads, most)
        return both.run(grads, most, engine=engine)

    norm, clipped = run(1.0)
    assert norm == whole and clipped["none"] is None
    assert isinstance(clipped["table"], ut.IndexedRows) and clipped["table"].indices.tolist() == [1, 1, -1]
    np.testing.assert_allclose(clipped["w"], [3 / whole, 0])
    np.testing.assert_allclose(clipped["table"].dense(), np.array([0, 2, 4]) / whole)
    assert ut.optim.global_norm(clipped) == pytest.approx(1)
    _, same = run(100.0)
    assert np.array_equal(same["w"], grads["w"]) and np.array_equal(same["table"].rows, [1, 1, 4])


def test_norms_at_the_edges() -> None:
    assert ut.optim.global_norm([]) == 0 and ut.optim.clip_by_norm({}, 1) == {}
    large = np.full(4, 1e30, np.float32)  # the squares are no f32
    assert ut.optim.global_norm(large) == np.float32(2e30) and ut.optim.global_norm(large).dtype == np.float32
    assert ut.optim.clip_by_norm(large, 2.0).tolist() == [1, 1, 1, 1]
    assert ut.optim.clip_by_norm([np.zeros(2), np.float32(0)], 1)[1].dtype == np.float32
    assert np.isnan(ut.optim.clip_by_norm(np.array([1, np.nan]), 1)).all()
    with pytest.raises(TypeMismatch, match=r"the gradient `grads\.0` must be a float, not an i64\[2\]"):
        ut.optim.global_norm([np.arange(2)])


# --------------------------------------------------------------------------------------------------------------
# Gradients that Undertow computes


@pytest.mark.parametrize("engine", ENGINES)
def test_training_with_gradients(engine: str) -> None:
    table, w = ut.Variable(np.ones((4, 2)), name="table"), ut.Variable(np.ones(2), name="w")
    variables = {"table": table, "w": w}
    updater = ut.optim.Updater(ut.optim.Adam(0.1), variables)

    @ut.function
    def loss(words, target):
        return ut.sum((table.take(words) @ w - target) ** 2)

    @ut.function
    def step(words, target):
        value, grads = ut.value_and_grad(loss, variables=variables)(words, target)
        updater.apply(ut.optim.clip_by_norm(grads, 10.0))
        return value

    words, target = np.array([0, 2, 2]), np.array([1.0, -1.0, -1.0])
    losses = [step.run(words, target, engine=engine) for _ in range(40)]
    assert losses[-1] < 0.01 * losses[0] and np.all(table.value[[1, 3]] == 1)


def test_gradients_by_variables_that_are_read() -> None:
    """In a function that is differentiated by a variable, the variable still has its methods."""
    table, w = ut.Variable(np.ones((3, 2)), name="table"), ut.Variable(np.full(2, 3.0), name="w")

    @ut.function
    def f(words):
        return ut.sum(table.take(words) * w.read())

    found = ut.grad(f, variables=[table, w])(np.array([0, 0, 2]))
    assert found[0].tolist() == [[6, 6], [0, 0], [3, 3]] and found[1].tolist() == [3, 3]
