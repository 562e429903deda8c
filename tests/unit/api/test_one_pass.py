"""Updates in one pass: the bits of the rules on arrays, new arrays or the old ones, and what does not fit."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import _core
from undertow.api import one_pass, update_rules
from undertow.api.update_header import header
from undertow.errors import UndertowError

OPTIMIZERS = {
    "sgd": ut.optim.SGD(0.1),
    "momentum": ut.optim.SGD(0.1, momentum=0.9),
    "nesterov": ut.optim.SGD(0.1, momentum=0.9, nesterov=True),
    "adagrad": ut.optim.Adagrad(0.1, initial=0.1),
    "rmsprop": ut.optim.RMSprop(0.01),
    "rmsprop_momentum": ut.optim.RMSprop(0.01, momentum=0.9),
    "adam": ut.optim.Adam(0.01),
}
DTYPES = (np.float32, np.float64)
SHAPE = (23, 7)


def _outside_of_the_core(opt: Any) -> Any:
    """The same optimizer, by a rule that the core does not have."""

    def rule(self: Any, rate: Any, count: Any) -> update_rules.Update:
        known, settings = type(opt).rule(self, rate, count)
        return lambda *values: known(*values), settings

    made = type("Another", (type(opt),), {"rule": rule})
    return made(**{field.name: getattr(opt, field.name) for field in fields(opt)})


def _gradients(dtype: Any, is_sparse: bool) -> list[Any]:
    rng = np.random.default_rng(1)
    dense = [rng.standard_normal(SHAPE).astype(dtype) for _ in range(4)]
    if not is_sparse:
        return dense
    numbers = [[3, -1, 3, 0, 3], [5], [], [[22, 1], [1, -2]]]
    rows = [rng.standard_normal((*np.shape(found), SHAPE[1])).astype(dtype) for found in numbers]
    return [ut.IndexedRows(np.array(n, np.int64), r, SHAPE) for n, r in zip(numbers, rows, strict=True)]


def _trained(opt: Any, grads: list[Any], dtype: Any, **options: Any) -> tuple[Any, Any]:
    params = {"w": np.linspace(-1, 1, 161).reshape(SHAPE).astype(dtype)}
    state = opt.init(params)
    for g in grads:
        params, state = opt.update({"w": g}, state, params, **options)
    return params["w"], {name: slot["w"] for name, slot in state.slots.items()}


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("donate", [False, True])
def test_the_bits_are_those_of_operators_on_arrays(name: str, dtype: Any, is_sparse: bool, donate: bool) -> None:
    grads = _gradients(dtype, is_sparse)
    x, slots = _trained(OPTIMIZERS[name], grads, dtype, donate=donate)
    wanted, wanted_slots = _trained(_outside_of_the_core(OPTIMIZERS[name]), grads, dtype)
    np.testing.assert_array_equal(x, wanted)
    assert x.dtype == dtype and slots.keys() == wanted_slots.keys()
    for key, slot in slots.items():
        np.testing.assert_array_equal(slot, wanted_slots[key])


def test_the_rules_of_the_core_are_those_in_python() -> None:
    path = Path(__file__).parents[3] / "core" / "src" / "isa" / "update_rules.h"
    assert path.read_text(encoding="utf-8") == header(), "run `python -m undertow.api.update_header`, then `make core`"
    assert {opt.rule(0.1, 1)[0].__name__ for opt in OPTIMIZERS.values()} == set(update_rules.IN_CORE.values())


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_instruction_set(name: str, dtype: Any, isa: str) -> None:
    opt = OPTIMIZERS[name]
    rule, settings = opt.rule(0.1, 3)
    rng = np.random.default_rng(2)
    g, x, *slots = (np.abs(rng.standard_normal(1001)).astype(dtype) - (k < 2) for k in range(len(opt.slots) + 2))
    places = [np.empty_like(x) for _ in (x, *slots)]
    try:
        _core.update(update_rules.IN_CORE[rule], [g], [[x, *slots]], [places], settings, isa)
    except ValueError:
        pytest.skip(f"this machine has no {isa}")
    increments = rule(g, *slots, *(dtype(setting) for setting in settings))
    for found, before, increment in zip(places, (x, *slots), increments, strict=True):
        np.testing.assert_array_equal(found, before + increment)


def test_donated_arrays_are_written_over() -> None:
    opt = ut.optim.Adam(0.1)
    w, b = np.ones((4, 3), np.float32), np.zeros(3, np.float32)
    state = opt.init({"w": w, "b": b})
    mean = state.slots["mean"]["w"]
    grads = {"w": ut.IndexedRows([1, 1], np.ones((2, 3), np.float32), (4, 3)), "b": np.ones(3, np.float32)}
    made, after = opt.update(grads, state, {"w": w, "b": b}, donate=True)
    assert made["w"] is w and made["b"] is b and after.slots["mean"]["w"] is mean
    assert (w[1] < 1).all() and (w[[0, 2, 3]] == 1).all() and (b < 0).all()


def test_without_donating_nothing_changes() -> None:
    opt = ut.optim.Adagrad(0.1)
    w = np.ones((4, 3))
    state = opt.init(w)
    made, after = opt.update(ut.IndexedRows([1], np.ones((1, 3)), (4, 3)), state, w)
    assert made is not w and (w == 1).all() and (state.slots["squares"] == 0).all() and state.step == 0
    assert not np.array_equal(made, w) and after.slots["squares"][1, 0] == 1


def test_memory_in_common_is_not_written_over() -> None:
    whole = np.ones(6)
    params = {"a": whole[:4], "b": whole[2:]}
    opt = ut.optim.SGD(1.0)
    grads = {"a": np.ones(4), "b": 2 * np.ones(4)}
    made, _ = opt.update(grads, opt.init(params), params, donate=True)
    assert (whole == 1).all() and (made["a"] == 0).all() and (made["b"] == -1).all()


def test_what_is_read_only_is_made_new() -> None:
    w = np.ones(3)
    w.flags.writeable = False
    opt = ut.optim.SGD(0.5)
    made, _ = opt.update(np.ones(3), opt.init(w), w, donate=True)
    assert (w == 1).all() and (made == 0.5).all() and made.flags.writeable


def test_scalars_and_none_beside_arrays() -> None:
    opt = ut.optim.Adagrad(0.5)
    params = {"w": np.ones(3), "b": 1.0, "fixed": np.arange(3)}
    grads = {"w": np.ones(3), "b": 2.0, "fixed": None}
    made, state = opt.update(grads, opt.init(params), params, donate=True)
    assert np.allclose(made["w"], 0.5) and np.isclose(made["b"], 0.5) and made["fixed"].tolist() == [0, 1, 2]
    assert state.step == 1 and made["w"] is params["w"]


def test_a_number_out_of_range_is_an_error_and_changes_nothing() -> None:
    opt = ut.optim.Adagrad(0.5)
    params = {"v": np.ones(2), "w": np.ones((3, 2))}
    state = opt.init(params)
    bad = ut.IndexedRows.__undertow_whole__((3, 2), [np.array([1, 3]), np.ones((2, 2))])
    with pytest.raises(UndertowError):
        opt.update({"v": np.ones(2), "w": bad}, state, params)
    assert (params["w"] == 1).all() and (params["v"] == 1).all() and state.step == 0
    update = ut.optim.SGD(0.5).rule(0.5, 1)
    assert not one_pass.fits(update, bad, [params["w"]])
    assert one_pass.update(update, [bad], [[params["w"]]], True) is None
    assert (params["w"] == 1).all()


def test_all_parameters_at_once_or_none() -> None:
    x, s, t = np.ones((3, 2)), np.zeros((3, 2)), np.zeros((3, 2))
    fixed = np.zeros((3, 2))
    fixed.flags.writeable = False
    rows = np.ones((2, 2))
    for gradient, second in (
        (rows, t),
        (None, t),
        (np.ones((3, 2), np.float32), t),
        ((np.array([0, 3]), rows), t),
        ((np.array([0.0, 1.0]), rows), t),
        ((np.array([0, 1]), np.ones((3, 2))), t),
        (np.ones((3, 2)), fixed),
        (np.ones((3, 2)), x),  # the memory of another
        (np.ones((3, 2)), t[:, ::-1]),
        (np.ones((3, 2)), 1.0),
    ):
        held = [[x, s], [np.ones((3, 2)), second]]
        assert not _core.update("adagrad", [np.ones((3, 2)), gradient], held, held, [0.1, 0.0])
        assert (x == 1).all() and (s == 0).all() and (t == 0).all()
    numbers = np.array([2, -1], np.int32)
    held = [[x, s], [np.ones((3, 2)), t]]
    assert _core.update("adagrad", [np.ones((3, 2)), (numbers, rows)], held, held, [0.1, 0.0])
    assert (x < 1).all() and (s == 1).all() and t.tolist() == [[0, 0], [0, 0], [4, 4]]
    with pytest.raises(ValueError):
        _core.update("sgd", [rows], [], [], [0.1])
    with pytest.raises(ValueError):
        _core.update("none", [x], [[x]], [[x]], [0.1])


def test_variables_share_no_memory_with_what_was_read() -> None:
    w = ut.Variable(np.ones((3, 2)), name="w")
    before = w.value
    updater = ut.optim.Updater(ut.optim.Adam(0.1), [w])
    updater.apply([ut.IndexedRows([1], np.ones((1, 2)), (3, 2))])
    middle = w.value
    updater.apply([np.ones((3, 2))])
    assert (before == 1).all() and middle[0, 0] == 1 and middle[1, 0] < 1 and w.value[0, 0] < 1
    with pytest.raises(ValueError, match="read-only"):
        w.value[0] = 1


def test_refused_by_the_core() -> None:
    x = np.ones(3)
    for name, values, settings in (("none", [x], [0.1]), ("sgd", [x, x], [0.1]), ("sgd", [x], [0.1, 0.2])):
        with pytest.raises(ValueError):
            _core.update(name, [x], [values], [[value.copy() for value in values]], settings)
    for value in (np.ones(2), np.ones(3, np.float32), np.arange(3), 1.0):
        assert not _core.fits(x, [value]) and not _core.update("sgd", [x], [[value]], [[np.copy(value)]], [0.1])
    assert not _core.update("sgd", [x], [[x]], [[np.ones(2)]], [0.1])
    assert not _core.update("sgd", [x, x], [[x], [x]], [[x], [x]], [0.1])  # twice the same place


def test_gradients_that_do_not_stand_row_by_row() -> None:
    w, g = np.ones((3, 2)), np.arange(6.0).reshape(2, 3).T
    made, _ = ut.optim.SGD(1.0).update(g, ut.optim.SGD(1.0).init(w), w, donate=True)
    assert made is w and np.array_equal(w, 1 - g)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_of_squares(dtype: Any) -> None:
    for g in [*_gradients(dtype, False), *_gradients(dtype, True)]:
        wanted = np.sum(np.square(np.asarray(g, np.float64)))
        assert one_pass.square_sum(g) == pytest.approx(wanted, rel=1e-6)
    assert one_pass.square_sum(np.full(4, 1e30, dtype)) == pytest.approx(4e60)
    assert one_pass.square_sum(3.0) is None and one_pass.square_sum(np.arange(3)) is None


def test_clipping_of_what_is_short_gives_it_as_it_is() -> None:
    grads = {"w": np.ones((2, 2)), "x": 1.0, "none": None}
    clipped = ut.optim.clip_by_norm(grads, 10.0)
    assert clipped["w"] is grads["w"] and clipped["x"] == 1 and clipped["x"].dtype == np.float64
    assert clipped["none"] is None
