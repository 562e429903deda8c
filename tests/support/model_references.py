"""The models written out by hand, one node at a time, for NumPy and PyTorch in f64: what those of Undertow must be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

NUMPY = SimpleNamespace(
    exp=np.exp,
    log=np.log,
    tanh=np.tanh,
    sigmoid=lambda x: 1 / (1 + np.exp(-x)),
    cat=lambda parts: np.concatenate(parts, axis=0),
    softplus=lambda x: np.log1p(np.exp(x)),
    zeros=lambda n: np.zeros(n),
    missed=lambda scores, label: np.log(np.exp(scores).sum()) - scores[label],
)


def torch_functions() -> SimpleNamespace:
    import torch

    return SimpleNamespace(
        exp=torch.exp,
        log=torch.log,
        tanh=torch.tanh,
        sigmoid=torch.sigmoid,
        cat=lambda parts: torch.cat(parts, dim=0),
        softplus=torch.nn.functional.softplus,
        zeros=lambda n: torch.zeros(n, dtype=torch.float64),
        missed=lambda scores, label: torch.logsumexp(scores, 0) - scores[label],
    )


def tree_rnn(xp: Any, p: Any, tree: Any, node: int, parts: list[Any]) -> tuple[Any, ...]:
    if not parts:
        return (xp.tanh(p["embed"][tree.word[node]]),)
    x = xp.cat([parts[0][0], parts[1][0]])
    return (xp.tanh(x @ p["weights"] + p["bias"]),)


def rntn(xp: Any, p: Any, tree: Any, node: int, parts: list[Any]) -> tuple[Any, ...]:
    if not parts:
        return (xp.tanh(p["embed"][tree.word[node]]),)
    x = xp.cat([parts[0][0], parts[1][0]])
    d = len(x) // 2
    tensor = p["tensor"].reshape(2 * d, 2 * d, d)
    products = sum(x[i] * x[j] * tensor[i, j] for i in range(2 * d) for j in range(2 * d))
    return (xp.tanh(products + x @ p["weights"] + p["bias"]),)


def tree_lstm(xp: Any, p: Any, tree: Any, node: int, parts: list[Any]) -> tuple[Any, ...]:
    if not parts:
        z = p["embed"][tree.word[node]] @ p["leaf"] + p["leaf_bias"]
        i, o, u = (z[k * len(z) // 3 : (k + 1) * len(z) // 3] for k in range(3))
        c = xp.sigmoid(i) * xp.tanh(u)
    else:
        (h_left, c_left), (h_right, c_right) = parts
        z = xp.cat([h_left, h_right]) @ p["weights"] + p["bias"]
        i, o, u, f, g = (z[k * len(z) // 5 : (k + 1) * len(z) // 5] for k in range(5))
        c = xp.sigmoid(i) * xp.tanh(u) + xp.sigmoid(f) * c_left + xp.sigmoid(g) * c_right
    return xp.sigmoid(o) * xp.tanh(c), c


def child_sum(xp: Any, p: Any, tree: Any, node: int, parts: list[Any]) -> tuple[Any, ...]:
    d = len(p["forget"])
    word = tree.word[node]
    x = p["bias"] + (p["embed"][word] @ p["word"] if word >= 0 else 0)
    z = x[: 3 * d] + sum((h for h, _ in parts), xp.zeros(d)) @ p["weights"]
    c = xp.sigmoid(z[:d]) * xp.tanh(z[2 * d :])
    for h, below in parts:
        c = c + xp.sigmoid(x[3 * d :] + h @ p["forget"]) * below
    return xp.sigmoid(z[d : 2 * d]) * xp.tanh(c), c


def mv_rnn(xp: Any, p: Any, tree: Any, node: int, parts: list[Any]) -> tuple[Any, ...]:
    if not parts:
        return xp.tanh(p["embed"][tree.word[node]]), p["embed_matrix"][tree.word[node]]
    (a, left), (b, right) = parts
    h = xp.tanh(xp.cat([right @ a, left @ b]) @ p["weights"] + p["bias"])
    return h, p["mix"] @ xp.cat([left, right])


CELLS = {"treernn": tree_rnn, "rntn": rntn, "treelstm": tree_lstm, "childsum": child_sum, "mvrnn": mv_rnn}


def judged(name: str, xp: Any, p: Any, forest: Any, at: str) -> tuple[Any, list[Any]]:
    """The mean loss of trees, and the scores of every node."""
    states: dict[int, Any] = {}
    scores: list[Any] = [None] * forest.size
    for node in range(forest.size - 1, -1, -1):  # in preorder, children have greater numbers
        states[node] = CELLS[name](xp, p, forest, node, [states[k] for k in forest.children(node).tolist()])
        scores[node] = states[node][0] @ p["out"] + p["out_bias"]
    counted = range(forest.size) if at == "nodes" else forest.roots.tolist()
    total = sum(xp.missed(scores[n], forest.label[n]) for n in counted if forest.label[n] >= 0)
    return total / len(forest), scores


def top_down(xp: Any, p: Any, forest: Any) -> Any:
    """The mean loss of trees under the generator."""
    d = len(p["grow"])

    def cell(side: str, x: Any, h: Any, c: Any) -> Any:
        z = xp.cat([x, h]) @ p[side] + p[f"{side}_bias"]
        i, o, f, u = (z[k * d : (k + 1) * d] for k in range(4))
        c = xp.sigmoid(i) * xp.tanh(u) + xp.sigmoid(f) * c
        return xp.sigmoid(o) * xp.tanh(c), c

    def below(node: int, h: Any, c: Any) -> Any:
        word = forest.word[node]
        missed = xp.missed(h @ p["out"] + p["out_bias"], word)
        more = h @ p["grow"] + p["grow_bias"]
        children = forest.children(node).tolist()
        if not children:
            return missed + xp.softplus(more)
        parts = [
            below(k, *cell(side, p["embed"][word], h, c)) for side, k in zip(("left", "right"), children, strict=True)
        ]
        return missed + xp.softplus(-more) + sum(parts)

    start = cell("left", p["start"], xp.zeros(d), xp.zeros(d))
    return sum(below(root, *start) for root in forest.roots.tolist()) / len(forest)


def doubly_recurrent(xp: Any, p: Any, forest: Any) -> Any:
    """The mean loss of trees under the generator with any number of children."""
    start, d = p["start"], len(p["start"])

    def below(node: int, a: Any, f: Any, is_last: bool) -> tuple[Any, Any]:
        """The loss of a node and all below it, and the state of its next sibling."""
        children, x = forest.children(node).tolist(), p["embed"][forest.word[node]]
        more, again, scores = _decisions(xp, p, a, f)
        scores = scores + (p["out_children"] if children else 0) + (0 if is_last else p["out_sibling"])
        missed = xp.missed(scores, forest.word[node]) + xp.softplus(-more if children else more)
        missed = missed + xp.softplus(again if is_last else -again)
        down, across = _gru(xp, p, "down", x, a), xp.zeros(d)
        for child in children:
            more_missed, across = below(child, down, across, child == children[-1])
            missed = missed + more_missed
        return missed, _gru(xp, p, "across", x, f)

    return sum(below(root, start, xp.zeros(d), True)[0] for root in forest.roots.tolist()) / len(forest)


def doubly_recurrent_tree(p: Any, start: Any, max_depth: int) -> tuple[list[int], list[int]]:
    """The words and depths that it grows, if every decision is the likeliest."""
    words, depths = [], []

    def below(a: Any, f: Any, depth: int) -> None:
        more, again, scores = _decisions(NUMPY, p, a, f)
        has_children, has_next = more > 0 and depth < max_depth, again > 0 and depth > 0
        word = int(np.argmax(scores + has_children * p["out_children"] + has_next * p["out_sibling"]))
        words.append(word)
        depths.append(depth)
        if has_children:
            below(_gru(NUMPY, p, "down", p["embed"][word], a), np.zeros(len(a)), depth + 1)
        if has_next:
            below(a, _gru(NUMPY, p, "across", p["embed"][word], f), depth)

    below(start, np.zeros(len(start)), 0)
    return words, depths


def _decisions(xp: Any, p: Any, a: Any, f: Any) -> Any:
    h = xp.tanh(xp.cat([a, f]) @ p["join"] + p["join_bias"])
    more, again = h @ p["children"] + p["children_bias"], h @ p["sibling"] + p["sibling_bias"]
    return more, again, h @ p["out"] + p["out_bias"]


def _gru(xp: Any, p: Any, way: str, x: Any, h: Any) -> Any:
    d = len(h)
    gates = xp.sigmoid(xp.cat([x, h]) @ p[f"{way}_gates"] + p[f"{way}_gates_bias"])
    new = xp.tanh(xp.cat([x, gates[d:] * h]) @ p[way] + p[f"{way}_bias"])
    return gates[:d] * h + (1 - gates[:d]) * new


def experts(xp: Any, p: Any, x: Any, label: Any) -> Any:
    """The mean loss of inputs under the mixture."""
    gates = len(p["expert"]) - 1

    def mix(one: Any, y: int, node: int) -> Any:
        if node >= gates:
            scores = one @ p["expert"][node - gates] + p["expert_bias"][node - gates]
            return xp.exp(-xp.missed(scores, y))
        gate = xp.sigmoid((p["gate"][node] * one).sum() + p["gate_bias"][node])
        return gate * mix(one, y, 2 * node + 1) + (1 - gate) * mix(one, y, 2 * node + 2)

    return -sum(xp.log(mix(one, y, 0) + 1e-7) for one, y in zip(x, label, strict=True)) / len(label)
