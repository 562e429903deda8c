# mypy: ignore-errors
"""The base of all models that generate trees: initial parameters, losses of decisions, and how decisions are made.

At every node, a generator decides from computed values which word it has and whether the tree continues there. In
training the decisions are those of the training trees; in generation they are the most likely ones, or sampled.
"""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

import undertow as ut
from undertow.errors import DataError
from undertow.models.classifier import Params, check_shape_and_words
from undertow.models.ranges import check_ranges


def choose(logits, sampled):
    """The number of the likeliest word, or of a sampled one."""
    if sampled:  # the Gumbel-max trick: the argmax of noisy logits is a sample of their softmax
        noise = ut.random.uniform(size=ut.shape(logits), dtype=ut.f32)
        logits = logits - ut.log(1e-20 - ut.log(noise + 1e-20))
    return ut.astype(ut.argmax(logits), ut.i32)


def decide(more, sampled):
    """Yes or no, from the logit of yes: the likelier, or sampled."""
    return ut.random.uniform(dtype=ut.f32) < ut.sigmoid(more) if sampled else more > 0


@dataclass(frozen=True)
class TreeGenerator:
    """The sizes of a model that generates trees, and everything derived from its `shapes`, `loss` and `words_of`."""

    words: int
    width: int = 150
    embedding: int = 300
    max_depth: int = 16

    any_children = False  # False: forests must be binary

    def __post_init__(self) -> None:
        check_ranges(**vars(self))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter. The first dimension of a matrix is its input."""
        raise NotImplementedError

    def loss(self) -> ut.Function:
        """The function loss(params, forest): the mean negative log-likelihood of the trees; 0 if there are none."""
        raise NotImplementedError

    def words_of(self, sampled: bool = False) -> ut.Function:
        """The function (params, start) -> the words and the depths of one generated tree, in preorder."""
        raise NotImplementedError

    @functools.cache  # noqa: B019
    def judged(self) -> ut.Function:
        """The loss and [0, 0]: where models that label trees count what is right."""
        loss = self.loss()

        @ut.function
        def judged(params, forest) -> (ut.f32, ut.i32[2]):
            return loss(params, forest), ut.zeros((2,), dtype=ut.i32)

        return judged

    def init(self, seed: int = 0) -> Params:
        """Initial parameters: Glorot uniform matrices, small normal vectors, zero biases."""
        check_ranges(seed=seed)
        random, params = np.random.default_rng(seed), {}
        for name, shape in self.shapes().items():
            if name.endswith("bias"):
                values = np.zeros(shape)
            elif name == "embed" or len(shape) < 2:
                values = random.normal(size=shape, scale=0.1)
            else:
                values = random.uniform(-1, 1, shape) * np.sqrt(6 / sum(shape))
            params[name] = np.asarray(values, np.float32)
        return params

    def check(self, forest: Any) -> None:
        """Reject trees that do not fit the model."""
        check_shape_and_words(self, forest, "DoublyRecurrent")
        if forest.word.min(initial=0) < 0:
            kind = type(self).__name__
            raise DataError(f"{kind} needs a word at every node", hint="add a special word to the nodes without one")

    def sample(self, params: Params, seed: int = 0, vocabulary: Any = None) -> ut.data.Forest:
        """A tree, sampled from the model."""
        words, depths = self.words_of(sampled=True).run(params, params["start"], seed=seed)
        return ut.data.Forest.from_depths(depths, words, vocabulary=vocabulary)
