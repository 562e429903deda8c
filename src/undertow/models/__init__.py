"""Recursive networks from the literature, each a short recursive function in its own file.

>>> import undertow as ut
>>> model = ut.models.TreeRNN(words=60, classes=5, width=8)
>>> params = model.init(seed=0)
>>> sorted(params)
['bias', 'embed', 'out', 'out_bias', 'weights']
>>> (loss, hits), slopes = ut.value_and_grad(model.loss(), has_aux=True)(params, ut.data.sentiment(3, seed=0))
"""

from typing import TYPE_CHECKING, Any

from undertow.elsewhere import unknown_name
from undertow.models.child_sum import ChildSumTreeLSTM
from undertow.models.classifier import TreeClassifier
from undertow.models.doubly_recurrent import DoublyRecurrent
from undertow.models.experts import Experts
from undertow.models.generator import TreeGenerator
from undertow.models.multiscale import MultiscaleRNN
from undertow.models.mv_rnn import MVRNN
from undertow.models.rntn import RNTN
from undertow.models.top_down import TopDownTreeLSTM
from undertow.models.tree_lstm import TreeLSTM
from undertow.models.tree_rnn import TreeRNN
from undertow.tracebacks import boundary

# Models that label trees, by their names on the command line.
CLASSIFIERS: dict[str, type[TreeClassifier]] = {
    "treernn": TreeRNN,
    "rntn": RNTN,
    "treelstm": TreeLSTM,
    "childsum": ChildSumTreeLSTM,
    "mvrnn": MVRNN,
}

# Models that generate trees.
GENERATORS: dict[str, type[TreeGenerator]] = {"topdown": TopDownTreeLSTM, "drnn": DoublyRecurrent}

MODELS: dict[str, type[TreeClassifier] | type[TreeGenerator]] = {**CLASSIFIERS, **GENERATORS}


def name_of(model: TreeClassifier | TreeGenerator) -> str:
    """The name of a model's class on the command line."""
    return next(name for name, kind in MODELS.items() if kind is type(model))


__all__ = [
    "MVRNN", "RNTN", "ChildSumTreeLSTM", "DoublyRecurrent", "Experts", "MultiscaleRNN", "TopDownTreeLSTM",
    "TreeClassifier", "TreeGenerator", "TreeLSTM", "TreeRNN",
]  # fmt: skip


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    @boundary
    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.models", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
