"""A recipe: everything that determines training, except the model and the trees.

>>> recipe = Recipe(rate=0.1, epochs=10, warmup=1, decay="linear")
>>> [round(float(recipe.rate_at(step, 100)), 3) for step in (0, 49, 99, 549, 999)]
[0.001, 0.05, 0.1, 0.05, 0.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from undertow.api import optim
from undertow.errors import UndertowError, brief
from undertow.models.ranges import check_ranges

OPTIMIZERS: dict[str, type[optim.Optimizer]] = {
    "adam": optim.Adam,
    "adagrad": optim.Adagrad,
    "rmsprop": optim.RMSprop,
    "sgd": optim.SGD,
}
DECAYS = ("none", "linear", "cosine")


@dataclass(frozen=True)
class Recipe:
    """How to train. The same recipe, model and trees give the same parameters, bit for bit."""

    optimizer: str = "adam"
    rate: float = 1e-3  # the learning rate
    embed_rate: float = 1.0  # a factor for embeddings: most words are rarely seen
    epochs: int = 10
    batch: int = 25
    at: str = "nodes"  # where losses are taken: at all nodes, or at each root
    decay: str = "none"  # how the rate decays to zero
    warmup: float = 0.0  # epochs in which the rate rises
    clip: float | None = 5.0  # the largest global norm of gradients
    l2: float = 0.0  # weight decay; not for embeddings
    patience: int | None = None  # epochs without a better `Record.quality` before it stops
    seed: int = 0  # for shuffling and dropout
    shards: int = 1  # parts of a batch whose gradients are computed apart, on workers if there are any

    def __post_init__(self) -> None:
        for name, known in (("optimizer", OPTIMIZERS), ("decay", DECAYS), ("at", ("nodes", "root"))):
            if getattr(self, name) not in known:
                raise UndertowError(
                    f"unknown {name} {brief(getattr(self, name))}", hint=f"choose from {', '.join(known)}"
                )
        check_ranges(**vars(self))

    def make_optimizer(self) -> optim.Optimizer:
        """The optimizer of this name and rate."""
        return OPTIMIZERS[self.optimizer](self.rate)

    def rate_at(self, step: int, steps: int) -> float:
        """The learning rate of update number `step`, where an epoch has this many steps."""
        rising = self.warmup * steps
        if step + 1 < rising:
            return self.rate * (step + 1) / rising
        share = (step + 1 - rising) / max(self.epochs * steps - rising, 1)
        if self.decay == "linear":
            return self.rate * max(1 - share, 0.0)
        if self.decay == "cosine":
            return self.rate * (1 + math.cos(math.pi * min(share, 1.0))) / 2
        return self.rate
