"""The floor: the matrix products of a batch by levels, through `torch.mm`, and nothing else. It computes no result.

Forward products and those for the gradients of inputs go level by level, as they depend on each other; all others
take the whole batch at once. No bias, no activation, no copy, no schedule: who goes by levels and gets below has better
products than PyTorch's.
"""

from __future__ import annotations

import torch

from .forests import CLASSES, Tree
from .levels import levels
from .networks import WIDTHS, Params

VERSION = torch.__version__
torch.set_num_threads(1)
MOST = 16_384  # nodes of a batch


class Product:
    """y = x @ W, dx = dy @ W.T, dW = x.T @ dy, in buffers made beforehand."""

    def __init__(self, rows: int, columns: int) -> None:
        self.x, self.y, self.dx = torch.randn(MOST, rows), torch.zeros(MOST, columns), torch.empty(MOST, rows)
        self.weight, self.slope = torch.randn(rows, columns) * 0.01, torch.empty(rows, columns)

    def forward(self, count: int) -> None:
        torch.mm(self.x[:count], self.weight, out=self.y[:count])

    def backward(self, count: int) -> None:
        torch.mm(self.y[:count], self.weight.t(), out=self.dx[:count])

    def gradient(self, count: int) -> None:
        torch.mm(self.x[:count].t(), self.y[:count], out=self.slope)


class Bilinear:
    """What an RNTN does with the matrix of every node: times a vector from either side."""

    def __init__(self, width: int, product: Product) -> None:
        self.matrix = product.y[: MOST // 2].view(-1, width, 2 * width)  # still in the cache, as in a real run
        self.right, self.y = torch.randn(MOST // 2, 2 * width, 1), torch.empty(MOST // 2, width, 1)
        self.left, self.dx = torch.randn(MOST // 2, 1, width), torch.empty(MOST // 2, 1, 2 * width)

    def forward(self, count: int) -> None:
        torch.bmm(self.matrix[:count], self.right[:count], out=self.y[:count])

    def backward(self, count: int) -> None:
        torch.bmm(self.left[:count], self.matrix[:count], out=self.dx[:count])


class Floor:
    """The products of a model. Schedules are made once for each batch and kept."""

    def __init__(self, model: str, params: Params) -> None:
        state, embedding = WIDTHS[model]
        self.leaf = [Product(embedding, 3 * state)] if model == "treelstm" else []
        self.weights = [Product(2 * state, (5 if model == "treelstm" else 1) * state)]
        self.inner: list[Product | Bilinear] = list(self.weights)
        if model == "rntn":
            self.weights.append(Product(2 * state, 2 * state * state))
            self.inner = [*self.weights, Bilinear(state, self.weights[-1])]
        self.classes = Product(state, CLASSES)
        self.known: dict[tuple[int, int], list[int]] = {}

    def sizes(self, trees: list[Tree]) -> list[int]:
        key = id(trees[0]), len(trees)
        if key not in self.known:
            self.known[key] = levels(trees).sizes
            if sum(self.known[key]) > MOST:
                raise ValueError(f"a batch has more than {MOST} nodes")
        return self.known[key]

    @torch.inference_mode()
    def train(self, trees: list[Tree]) -> float:
        leaves, *above = self.sizes(trees)
        inner = sum(above)
        self.forward(leaves, above)
        self.classes.forward(leaves + inner)
        self.classes.backward(leaves + inner)
        self.classes.gradient(leaves + inner)
        for count in reversed(above):
            for product in self.inner:
                product.backward(count)
        for product in self.weights:
            product.gradient(inner)
        for product in self.leaf:
            product.backward(leaves)
            product.gradient(leaves)
        return 0.0

    def forward(self, leaves: int, above: list[int]) -> None:
        for product in self.leaf:
            product.forward(leaves)
        for count in above:
            for product in self.inner:
                product.forward(count)

    @torch.inference_mode()
    def infer(self, trees: list[Tree]) -> list[int]:
        leaves, *above = self.sizes(trees)
        self.forward(leaves, above)
        self.classes.forward(len(trees))
        return []


def make(model: str, params: Params, variant: str = "") -> Floor:
    return Floor(model, params)
