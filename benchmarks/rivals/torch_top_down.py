"""Rival: the network that grows its tree, in PyTorch eager; the variant `frontier` batches each level by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from .forests import Tree
from .networks import Params
from .top_down import DEEPEST, RISE, SIDES, STATE

VERSION = torch.__version__
torch.set_num_threads(1)


def cell(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, o, f, u = gates.split(STATE, 1)
    c = i.sigmoid() * u.tanh() + f.sigmoid() * c
    return o.sigmoid() * c.tanh(), c


class Eager:
    """One node at a time, by recursion."""

    def __init__(self, params: Params) -> None:
        self.params = {name: torch.tensor(value) for name, value in params.items()}
        self.layers = [(self.params[f"b{side}"], self.params[f"W{side}"]) for side in SIDES]
        self.grow, self.words, self.embedding = (self.params[name] for name in ("grow", "words", "E"))
        self.bias = float(params["bias"])

    def count(self, h: Tensor, c: Tensor, depth: int) -> int:
        if depth == DEEPEST or float(torch.mv(h, self.grow)) + self.bias <= RISE * depth:
            return 1
        word = torch.mm(h, self.words).argmax(1)
        x = torch.cat((self.embedding.index_select(0, word), h), 1)
        return 1 + sum(self.count(*cell(torch.addmm(b, x, W), c), depth + 1) for b, W in self.layers)

    def roots(self, trees: list[Tree]) -> tuple[Tensor, Tensor]:
        numbers = torch.tensor([int(tree.word[0]) for tree in trees])
        nothing = torch.zeros(len(trees), STATE)
        (b, W), _ = self.layers
        return cell(torch.addmm(b, torch.cat((self.params["roots"][numbers], nothing), 1), W), nothing)

    @torch.inference_mode()
    def infer(self, trees: list[Tree]) -> list[int]:
        h, c = self.roots(trees)
        return [self.count(h[k : k + 1], c[k : k + 1], 0) for k in range(len(trees))]


class Frontier(Eager):
    """All nodes of a level, of all trees, at once."""

    @torch.inference_mode()
    def infer(self, trees: list[Tree]) -> list[int]:
        h, c = self.roots(trees)
        tree, counts = torch.arange(len(trees)), torch.ones(len(trees), dtype=torch.long)
        for depth in range(DEEPEST):
            grows = (torch.mv(h, self.grow) + self.bias > RISE * depth).nonzero().squeeze(1)
            if not len(grows):
                break
            h, c, tree = (part.index_select(0, grows) for part in (h, c, tree))
            counts.index_add_(0, tree, torch.full((len(tree),), 2))
            x = torch.cat((self.embedding.index_select(0, torch.mm(h, self.words).argmax(1)), h), 1)
            left, right = (cell(torch.addmm(b, x, W), c) for b, W in self.layers)
            h, c, tree = torch.cat((left[0], right[0])), torch.cat((left[1], right[1])), torch.cat((tree, tree))
        return counts.tolist()


def make(model: str, params: Params, variant: str = "") -> Eager:
    return (Frontier if variant == "frontier" else Eager)(params)
