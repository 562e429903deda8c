"""Rival: PyTorch eager, the recursive Python that one writes first; one softmax for all nodes of a tree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from .forests import Tree
from .networks import EPSILON, RATE, WIDTHS, Params

VERSION = torch.__version__
torch.set_num_threads(1)
torch.sparse.check_sparse_tensor_invariants.disable()  # which is the default, but says so


class Network(torch.nn.Module):
    """The cells, and a recursive walk that collects the states of all nodes in post-order."""

    def __init__(self, model: str, params: Params) -> None:
        super().__init__()
        self.model, self.width = model, WIDTHS[model][0]
        tensors = {name: torch.tensor(value) for name, value in params.items()}
        self.embedding = torch.nn.Embedding.from_pretrained(tensors.pop("E"), freeze=False, sparse=True)
        if model == "rntn":
            tensors["V"] = tensors["V"].permute(0, 2, 1).reshape(2 * self.width, -1).contiguous()
        for name, value in tensors.items():
            setattr(self, name, torch.nn.Parameter(value))
        # Attributes of a module are slow to look up; the optimizer changes parameters in place.
        self.weights = [self.Wx, self.bx, self.Wh, self.bh] if model == "treelstm" else [self.W, self.b]
        self.cells = {"treernn": (self.rnn, self.embedding), "rntn": (self.rntn, self.embedding),
                      "treelstm": (self.lstm, self.lstm_leaf)}[model]  # fmt: skip

    def rnn(self, left: Tensor, right: Tensor) -> Tensor:
        W, b = self.weights
        return torch.addmm(b, torch.cat((left, right), 1), W).tanh()

    def rntn(self, left: Tensor, right: Tensor) -> Tensor:
        W, b = self.weights
        x = torch.cat((left, right), 1)
        bilinear = torch.mm(x, torch.mm(x, self.V).view(self.width, 2 * self.width).t())
        return torch.addmm(b, x, W).add(bilinear).tanh()

    def lstm_leaf(self, word: Tensor) -> tuple[Tensor, Tensor]:
        Wx, bx, _, _ = self.weights
        i, o, u = torch.addmm(bx, self.embedding(word), Wx).chunk(3, 1)
        c = i.sigmoid() * u.tanh()
        return o.sigmoid() * c.tanh(), c

    def lstm(self, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        _, _, Wh, bh = self.weights
        i, o, u, fl, fr = torch.addmm(bh, torch.cat((left[0], right[0]), 1), Wh).chunk(5, 1)
        c = i.sigmoid() * u.tanh() + fl.sigmoid() * left[1] + fr.sigmoid() * right[1]
        return o.sigmoid() * c.tanh(), c

    # As in dynet_autobatch.py: a rival is read, and run, without the others.
    def walk(self, tree: tuple[list[int], list[int], list[Tensor], Tensor], node: int, states: list[Any]) -> Any:
        left, right, words, _ = tree
        inner, leaf = self.cells
        if left[node] < 0:
            state = leaf(words[node])
        else:
            state = inner(self.walk(tree, left[node], states), self.walk(tree, right[node], states))
        states.append(state)
        return state

    def forward(self, tree: Tree, all_nodes: bool) -> tuple[Tensor, Tensor]:
        """Logits of all nodes, or of the root; and the labels of all nodes."""
        kept = tree.kept.get("eager")
        if kept is None:
            words = [torch.tensor([max(word, 0)]) for word in tree.word.tolist()]
            kept = tree.left.tolist(), tree.right.tolist(), words, torch.tensor(tree.label).long()
            tree.kept["eager"] = kept
        states: list[Any] = []
        root = self.walk(kept, len(tree.word) - 1, states)
        if self.model == "treelstm":
            states, root = [state for state, _ in states] if all_nodes else [], root[0]
        return torch.addmm(self.bu, torch.cat(states) if all_nodes else root, self.U), kept[3]


class Rival:
    """Autograd and PyTorch's own Adagrad."""

    def __init__(self, model: str, params: Params) -> None:
        self.network = Network(model, params)
        self.optimizer = torch.optim.Adagrad(self.network.parameters(), lr=RATE, eps=EPSILON)

    def total(self, trees: list[Tree]) -> Tensor:
        return torch.stack([cross_entropy(*self.network(tree, True), reduction="sum") for tree in trees]).sum()

    @torch.no_grad()
    def loss(self, trees: list[Tree]) -> float:
        return self.total(trees).item()

    def train(self, trees: list[Tree]) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.total(trees)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.inference_mode()
    def infer(self, trees: list[Tree]) -> list[int]:
        return [int(self.network(tree, False)[0].argmax()) for tree in trees]


def make(model: str, params: Params, variant: str = "") -> Rival:
    return Rival(model, params)
