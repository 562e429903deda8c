"""The hierarchical multiscale RNN: values and gradients by hand, on every engine; what it skips."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES

MODEL = ut.models.MultiscaleRNN(symbols=5, width=2, embedding=2, layers=3)
SEED = 26  # with which the layers decide one thing here and the other there
Seen = list[tuple[float, float]]  # of each decision, its value and that of the hard sigmoid


def parameters() -> dict[str, Any]:
    random = np.random.default_rng(SEED)
    return {
        name: np.asarray(value + 0.6 * random.normal(size=value.shape), np.float32)
        for name, value in MODEL.init(seed=1).items()
    }


def texts() -> Any:
    return np.random.default_rng(4).integers(0, 5, (3, 6)).astype(np.int32)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def hard(x: Any) -> float:
    return float(np.clip((x + 1) / 2, 0, 1))


def by_hand(p: Any, text: Any, seen: Seen | None, noted: Seen, work: Any) -> float:
    """The loss of a text. Decisions are those that were `seen`, and move as the hard sigmoid has moved since.

    So the derivative of this is what the straight-through estimator says.
    """
    d, layers = MODEL.width, MODEL.layers
    before: Iterator[tuple[float, float]] = iter(seen or [])
    h, c, z, on = np.zeros((layers, d)), np.zeros((layers, d)), [0.0] * layers, [False] * layers
    total = 0.0
    for symbol, following in itertools.pairwise(text):
        x, z_below, is_ended = p["embed"][symbol], 1.0, True
        old = h.copy()
        for k in range(layers):
            was = on[k]
            if is_ended or was:
                work[k] += 1
                s = h[k] @ p[f"own_{k}"] + p[f"bias_{k}"] + z_below * (x @ p[f"up_{k}"])
                if was:
                    s = s + z[k] * (old[k + 1] @ p[f"down_{k}"])
                f, i, o = (sigmoid(s[n * d : n * d + d]) for n in range(3))
                c[k] = i * np.tanh(s[3 * d : 4 * d]) + (0 if was else f * c[k])
                h[k] = o * np.tanh(c[k])
                if k < layers - 1:
                    noted.append((float(s[4 * d] > 0), hard(s[4 * d])))
                    value, base = next(before, noted[-1])
                    on[k], z[k] = value > 0, value + hard(s[4 * d]) - base
            x, z_below, is_ended = h[k], z[k], on[k]
        logits = np.concatenate(list(h)) @ p["out"] + p["out_bias"]
        total += float(np.log(np.exp(logits).sum()) - logits[following])
    return total


def mean_loss(seen: list[Seen] | None = None) -> tuple[Callable[[Any], float], list[Seen], Any]:
    """The mean loss as a function of the parameters; what was decided, and how often layers were computed."""
    noted: list[Seen] = [[] for _ in texts()]
    work = np.zeros((len(texts()), MODEL.layers), int)

    def loss(p: Any) -> float:
        parts = [by_hand(p, text, seen and seen[k], noted[k], work[k]) for k, text in enumerate(texts())]
        return sum(parts) / (texts().size - len(texts()))

    return loss, noted, work


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_values_and_gradients(engine: str) -> None:
    """Every engine gives what the equations give, and the derivative of the straight-through estimator."""
    params = parameters()
    exact = {name: np.float64(value) for name, value in params.items()}
    loss, seen, work = mean_loss()
    wanted = loss(exact)
    assert {z for decisions in seen for z, _ in decisions} == {0.0, 1.0}
    with ut.options(engine=engine):
        value, slopes = ut.value_and_grad(MODEL.loss())(params, texts())
        np.testing.assert_array_equal(MODEL.work()(params, texts()), work)
    assert value == pytest.approx(wanted, rel=1e-5)
    moving, _, _ = mean_loss(seen)
    for name, values in exact.items():
        slope = np.zeros(values.shape)
        for place in np.ndindex(values.shape):
            ends = []
            for sign in (1, -1):
                moved = values.copy()
                moved[place] += sign * 1e-6
                ends.append(moving({**exact, name: moved}))
            slope[place] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(slopes[name], slope, rtol=1e-3, atol=1e-5, err_msg=name)


def test_layers_are_computed_where_the_one_below_ends_a_segment() -> None:
    """With no boundary, only the lowest layer is; with one at each symbol, all are."""
    params = parameters()
    counts = {}
    for sign in (-50, 50):
        for layer in range(MODEL.layers - 1):
            params[f"bias_{layer}"][-1] = sign
        found, stats = MODEL.work().run(params, texts(), stats=True)
        counts[sign] = stats.activations
        assert (found == (5, 0, 0) if sign < 0 else found == (5, 5, 5)).all()
    assert counts[50] >= counts[-50] + 3 * 5 * 2  # a call for each time that a layer was computed


@pytest.mark.slow
def test_it_learns_words_that_are_written_without_blanks() -> None:
    random = np.random.default_rng(0)
    words = ["abc", "de", "fgab", "ced"]
    lines = ["".join(random.choice(words, 12))[:24] for _ in range(48)]
    data = np.array([[ord(letter) - ord("a") for letter in line] for line in lines], np.int32)
    model = ut.models.MultiscaleRNN(symbols=7, width=12, embedding=6, layers=2)
    params, optimizer = model.init(seed=0), ut.optim.Adam(0.02)
    state, step = optimizer.init(params), ut.value_and_grad(model.loss())
    first, _ = step(params, data)
    for _ in range(60):
        _, slopes = step(params, data)
        params, state = optimizer.update(slopes, state, params)
    assert model.loss()(params, data) < 0.5 * first
