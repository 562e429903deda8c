# mypy: ignore-errors
"""Hierarchical multiscale RNN: layers of LSTMs, each of which is computed only where the one below ends a segment.

Chung, Ahn and Bengio 2017, "Hierarchical Multiscale Recurrent Neural Networks". At each symbol a layer copies its
state (the layer below goes on: nothing is computed), updates it (the layer below has ended a segment), or flushes it
(it has ended one itself, and starts again). Which of these is a decision z of 0 or 1 that the layer computes, so the
structure of a text is not known before it is read.

Three things are simpler than in the paper: a layer that copies decides nothing (its z stays 0), the slope of the hard
sigmoid is 1 throughout, and the states of all layers go to the softmax without gates of their own.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

import undertow as ut
from undertow.models.classifier import surprisal
from undertow.models.ranges import check_ranges


@ut.custom_jvp
def boundary(x: ut.f32) -> ut.f32:
    """1 if x is above 0, else 0."""
    return ut.astype(x > 0, ut.f32)


@boundary.defjvp
def _straight_through(primals, tangents):
    """The derivative of the hard sigmoid max(0, min(1, (x + 1) / 2)), which this decision rounds."""
    (x,), (dx,) = primals, tangents
    return boundary(x), ut.where(ut.abs(x) < 1, 0.5 * dx, ut.zeros_like(dx))


@dataclass(frozen=True)
class MultiscaleRNN:
    """A model of the next symbol. Gates f, i, o, g stand side by side, then the decision z of the layer.

    The gradient goes through the products that the equations have with z, by the straight-through estimator. It does
    not go through the choice of what is computed, which would need what was not chosen.
    """

    symbols: int
    width: int = 64
    embedding: int = 32
    layers: int = 3

    def __post_init__(self) -> None:
        check_ranges(**vars(self))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter. The first dimension of a matrix is its input."""
        d, k = self.width, self.layers
        shapes = {"embed": (self.symbols, self.embedding)}
        for layer in range(k):
            gates = 4 * d + (layer < k - 1)  # nobody asks the top layer for a decision
            below = self.embedding if layer == 0 else d
            shapes[f"up_{layer}"] = (below, gates)
            shapes[f"own_{layer}"] = (d, gates)
            shapes[f"bias_{layer}"] = (gates,)
            if layer < k - 1:
                shapes[f"down_{layer}"] = (d, gates)
        return {**shapes, "out": (k * d, self.symbols), "out_bias": (self.symbols,)}

    def init(self, seed: int = 0) -> dict[str, Any]:
        """Initial parameters: Glorot uniform matrices, small normal vectors, zero biases."""
        check_ranges(seed=seed)
        random, params = np.random.default_rng(seed), {}
        for name, shape in self.shapes().items():
            if "bias" in name:
                values = np.zeros(shape)
            elif name == "embed":
                values = random.normal(size=shape, scale=0.3)
            else:
                values = random.uniform(-1, 1, shape) * np.sqrt(6 / sum(shape))
            params[name] = np.asarray(values, np.float32)
        return params

    @functools.cache  # noqa: B019
    def layer(self, number: int) -> ut.Function:
        """The function (params, x, z of x, h, c, z, h of the layer above) -> h, c, z of this layer, one symbol later.

        It is called where the state is not copied.
        """
        d, is_top = self.width, number == self.layers - 1
        V, B = ut.f32[d], ut.f32[self.embedding if number == 0 else d]

        @ut.function
        def changed(params, x: B, z_below: ut.f32, h: V, c: V, z: ut.f32, above: V) -> (V, V, ut.f32):
            s = h @ params[f"own_{number}"] + params[f"bias_{number}"] + z_below * (x @ params[f"up_{number}"])
            if not is_top and z > 0:
                s = s + z * (above @ params[f"down_{number}"])
            made = ut.sigmoid(s[d : 2 * d]) * ut.tanh(s[3 * d : 4 * d])
            if z == 0:  # update; else flush: what was remembered has gone up with the decision
                made = made + ut.sigmoid(s[:d]) * c
            decision = ut.asarray(0.0, dtype=ut.f32) if is_top else boundary(s[4 * d])
            return ut.sigmoid(s[2 * d : 3 * d]) * ut.tanh(made), made, decision

        return changed

    @functools.cache  # noqa: B019
    def reader(self) -> ut.Function:
        """The function (params, text, place, layers) -> the loss from a place on, and how often layers were computed.

        `layers` holds h, c and z of each; a text is i32[symbols].
        """
        d, K = self.width, self.layers
        steps = [self.layer(number) for number in range(K)]
        states = tuple[ut.f32[K, d], ut.f32[K, d], ut.f32[K]]

        @ut.function
        def read(params, text: ut.i32["symbols"], place: ut.i32, state: states) -> (ut.f32, ut.i32[K]):
            if place == ut.shape(text)[0] - 1:
                return ut.zeros((), dtype=ut.f32), ut.zeros((K,), dtype=ut.i32)
            hs, cs, zs = state
            below, z_below = params["embed"][text[place]], ut.ones((), dtype=ut.f32)
            new_h, new_c, new_z, work = [], [], [], []
            for number in range(K):
                h, c, z = hs[number], cs[number], zs[number]
                is_changed = ut.logical_or(z_below > 0, z > 0)
                if is_changed:
                    above = hs[min(number + 1, K - 1)]
                    h, c, z = steps[number](params, below, z_below, h, c, z, above)
                new_h.append(h)
                new_c.append(c)
                new_z.append(z)
                work.append(ut.astype(is_changed, ut.i32))
                below, z_below = h, z
            logits = ut.concat(new_h) @ params["out"] + params["out_bias"]
            missed = surprisal(logits, text[place + 1])
            later, works = read(params, text, place + 1, (ut.stack(new_h), ut.stack(new_c), ut.stack(new_z)))
            return missed + later, ut.stack(work) + works

        return read

    @functools.cache  # noqa: B019
    def loss(self) -> ut.Function:
        """The function loss(params, texts [n, symbols]): mean negative log-likelihood of symbols but the first."""
        read, start = self.reader(), self.start

        @ut.function
        def loss(params, texts: ut.i32["n", "symbols"]) -> ut.f32:
            missed = ut.map(lambda text: read(params, text, 0, start())[0], texts)
            return ut.sum(missed) / ut.astype(ut.shape(texts)[0] * (ut.shape(texts)[1] - 1), ut.f32)

        return loss

    @functools.cache  # noqa: B019
    def work(self) -> ut.Function:
        """The function (params, texts) -> how often each layer was computed, for each text."""
        read, start = self.reader(), self.start

        @ut.function
        def work(params, texts: ut.i32["n", "symbols"]):
            return ut.map(lambda text: read(params, text, 0, start())[1], texts)

        return work

    def start(self):
        """The state before the first symbol."""
        zeros = ut.zeros((self.layers, self.width), dtype=ut.f32)
        return zeros, zeros, ut.zeros((self.layers,), dtype=ut.f32)
