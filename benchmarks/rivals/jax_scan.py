"""Rival: JAX. A compiled scan over the inner nodes of padded trees, the n-th of every tree in one step.

Sentences are padded to a multiple of eight words, so that few shapes are compiled. Words that occur are made unique
outside, and their rows updated inside; parameters are donated.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .forests import Tree
from .networks import EPSILON, RATE, WIDTHS, Params

VERSION = jax.__version__
STEP = 8  # words


def padded(count: int, step: int) -> int:
    return -(-count // step) * step


def pack(trees: list[Tree]) -> tuple[np.ndarray, ...]:
    """Rows of the embedding, row of each leaf, children by step, labels, which nodes count, and roots.

    Places of a tree: its leaves first, then its inner nodes. Rows past the end of the embedding are padding too.
    """
    size, width = len(trees), padded(max(tree.words for tree in trees), STEP)
    words = np.zeros((size, width), np.int32)
    children = np.zeros((width, size, 2), np.int32)
    labels = np.zeros((size, 2 * width), np.int32)
    counts = np.zeros((size, 2 * width), np.float32)
    roots = np.zeros(size, np.int32)
    for number, tree in enumerate(trees):
        if "jax" not in tree.kept:
            tree.kept["jax"] = np.flatnonzero(tree.left < 0), np.flatnonzero(tree.left >= 0)
        leaves, inner = tree.kept["jax"]
        place = np.empty(len(tree.word), np.int32)
        place[leaves] = np.arange(len(leaves))
        place[inner] = width + np.arange(len(inner))
        words[number, : len(leaves)] = tree.word[leaves]
        children[: len(inner), number, 0] = place[tree.left[inner]]
        children[: len(inner), number, 1] = place[tree.right[inner]]
        labels[number, place] = tree.label
        counts[number, place] = 1
        roots[number] = place[-1]
    found, which = np.unique(words, return_inverse=True)
    count = padded(len(found), max(STEP, 1 << ((size * width).bit_length() - 2)))
    rows = np.full(count, np.iinfo(np.int32).max, np.int32)
    rows[: len(found)] = found
    return rows, which.reshape(words.shape).astype(np.int32), children, labels, counts, roots


def looked_up(table: Any, rows: Any) -> Any:
    """Rows of a table; what is past the end may be anything, and costs no test."""
    return table.at[rows].get(mode="clip")


def leaf(model: str, width: int, params: dict[str, Any], x: Any) -> tuple[Any, ...]:
    if model != "treelstm":
        return (x,)
    i, o, u = jnp.split(x @ params["Wx"] + params["bx"], 3, -1)
    c = jax.nn.sigmoid(i) * jnp.tanh(u)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def cell(model: str, width: int, params: dict[str, Any], x: Any, memory: Any = None) -> tuple[Any, ...]:
    if model == "treelstm":
        i, o, u, f = jnp.split(x @ params["Wh"] + params["bh"], [width, 2 * width, 3 * width], -1)
        left, right = jnp.split(jax.nn.sigmoid(f) * memory, 2, -1)
        c = jax.nn.sigmoid(i) * jnp.tanh(u) + left + right
        return jax.nn.sigmoid(o) * jnp.tanh(c), c
    layer = x @ params["W"] + params["b"]
    if model == "rntn":
        layer += jnp.einsum("nkj,nj->nk", (x @ params["V"]).reshape(-1, width, 2 * width), x)
    return (jnp.tanh(layer),)


def states(model: str, width: int, params: dict[str, Any], embedded: Any, children: Any) -> Any:
    size, count, _ = embedded.shape
    start = tuple(
        jnp.concatenate([made, jnp.zeros((size, count, width))], 1) for made in leaf(model, width, params, embedded)
    )
    pick = jax.vmap(lambda table, places: looked_up(table, places).reshape(-1))

    def step(tables: tuple[Any, ...], now: tuple[Any, Any]) -> tuple[tuple[Any, ...], None]:
        number, places = now
        made = cell(model, width, params, *(pick(table, places) for table in tables))
        written = (
            lax.dynamic_update_slice(table, new[:, None], (0, count + number, 0))
            for table, new in zip(tables, made, strict=True)
        )
        return tuple(written), None

    (found, *_), _ = lax.scan(step, start, (jnp.arange(len(children)), children))
    return found


def total(
    model: str, width: int, params: dict[str, Any], rows: Any, which: Any, children: Any, labels: Any, counts: Any
) -> Any:
    logs = jax.nn.log_softmax(
        states(model, width, params, looked_up(rows, which), children) @ params["U"] + params["bu"]
    )
    return -jnp.sum(jnp.take_along_axis(logs, labels[..., None], 2)[..., 0] * counts)


class Rival:
    """Compiled training and inference; parameters and sums of squares live in JAX."""

    def __init__(self, model: str, params: Params) -> None:
        width = WIDTHS[model][0]
        made = {name: jnp.asarray(value) for name, value in params.items()}
        if model == "rntn":
            made["V"] = made["V"].transpose(0, 2, 1).reshape(2 * width, -1)
        self.embedding = made.pop("E")
        self.state = made, jax.tree.map(jnp.zeros_like, made), self.embedding, jnp.zeros_like(self.embedding)
        measure = partial(total, model, width)

        def train(params: Any, squares: Any, table: Any, table_squares: Any, rows: Any, *batch: Any) -> Any:
            loss, (found, row_found) = jax.value_and_grad(measure, argnums=(0, 1))(
                params, looked_up(table, rows), *batch
            )
            squares = jax.tree.map(lambda s, g: s + g * g, squares, found)
            params = jax.tree.map(lambda p, g, s: p - RATE * g / (jnp.sqrt(s) + EPSILON), params, found, squares)
            table_squares = table_squares.at[rows].add(row_found * row_found, mode="drop")
            step = RATE * row_found / (jnp.sqrt(looked_up(table_squares, rows)) + EPSILON)
            return (params, squares, table.at[rows].add(-step, mode="drop"), table_squares), loss

        def infer(params: Any, table: Any, rows: Any, which: Any, children: Any, roots: Any) -> Any:
            found = states(model, width, params, looked_up(looked_up(table, rows), which), children)
            top = jax.vmap(looked_up)(found, roots)
            return jnp.argmax(top @ params["U"] + params["bu"], 1)

        self.step = jax.jit(train, donate_argnums=(0, 1, 2, 3))
        self.classes, self.measure = jax.jit(infer), jax.jit(measure)

    def loss(self, trees: list[Tree]) -> float:
        rows, *batch, _ = pack(trees)
        params, _, table, _ = self.state
        return float(self.measure(params, looked_up(table, rows), *batch))

    def train(self, trees: list[Tree]) -> float:
        rows, *batch, _ = pack(trees)
        self.state, loss = self.step(*self.state, rows, *batch)
        return float(loss)

    def infer(self, trees: list[Tree]) -> list[int]:
        rows, which, children, _, _, roots = pack(trees)
        params, _, table, _ = self.state
        return np.asarray(self.classes(params, table, rows, which, children, roots)).tolist()


def make(model: str, params: Params, variant: str = "") -> Rival:
    return Rival(model, params)
