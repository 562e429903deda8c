"""A small treebank of opinions about films, made by a grammar: binary parses with a sentiment at every node.

It has the form of the Stanford Sentiment Treebank, labels 0 (very negative) to 4 (very positive) at every phrase, and
its difficulties in small: `not` turns what follows it round, `very` strengthens it, after `but` only the end counts.
The label of a phrase follows from those of its parts, so a model can learn it exactly.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from undertow.data.checks import check_whole
from undertow.data.forest import Forest
from undertow.data.vocabulary import Vocabulary

# Words with their sentiment, -2 to 2, by part of speech.
_WORDS: dict[str, dict[str, int]] = {
    "Det": dict.fromkeys(("the", "a", "this", "every"), 0),
    "Article": dict.fromkeys(("a", "the"), 0),
    "Noun": dict.fromkeys(("film", "plot", "story", "cast", "script", "scene", "director", "comedy"), 0),
    "Verdict": {"masterpiece": 2, "triumph": 2, "delight": 1, "bore": -1, "mess": -1, "disaster": -2},
    "Adj": {
        "wonderful": 2, "brilliant": 2, "good": 1, "funny": 1, "clever": 1, "warm": 1, "long": 0, "french": 0,
        "quiet": 0, "slow": -1, "dull": -1, "bad": -1, "silly": -1, "awful": -2, "dreadful": -2,
    },
    "Is": dict.fromkeys(("is", "was", "seems"), 0),
    "Verb": {"loves": 1, "enjoys": 1, "sees": 0, "has": 0, "follows": 0, "wastes": -1, "ruins": -2},
    "Not": {"not": 0, "never": 0},
    "Very": {"very": 0, "really": 0, "so": 0},
    "And": {"and": 0},
    "But": {"but": 0},
}  # fmt: skip

# What a phrase may be: a weight, its two parts (or one, which it is then itself), and how its sentiment comes about.
_RULES: dict[str, tuple[tuple[int, tuple[str, ...], str], ...]] = {
    "S": ((6, ("NP", "VP"), "sum"), (1, ("S", "AndS"), "sum"), (1, ("S", "ButS"), "right")),
    "AndS": ((1, ("And", "S"), "right"),),
    "ButS": ((1, ("But", "S"), "right"),),
    "NP": ((1, ("Det", "NBar"), "right"),),
    "NBar": ((2, ("Noun",), ""), (1, ("AP", "NBar"), "sum")),
    "VP": ((3, ("Is", "AP"), "right"), (1, ("Is", "Thing"), "right"), (2, ("Verb", "NP"), "sum")),
    "Thing": ((1, ("Article", "Verdict"), "right"), (1, ("Not", "Thing"), "not")),
    "AP": ((4, ("Adj",), ""), (1, ("Very", "AP"), "very"), (1, ("Not", "AP"), "not")),
}
_DEEPEST = 12  # from there on, phrases are as short as they can be


def sentiment(trees: int = 1000, seed: int = 0, max_depth: int = _DEEPEST) -> Forest:
    """Sentences about films as binary trees, with labels from 0 (very negative) to 4 (very positive) at every node.

    >>> sentiment(3).label.max() <= 4
    np.True_
    """
    check_whole("trees", trees, 0)
    check_whole("seed", seed)
    check_whole("max_depth", max_depth, 0)
    source = random.Random(seed)
    nodes = [node for _ in range(trees) for node in _sentence(source, max_depth)]
    vocabulary = Vocabulary(tuple(dict.fromkeys(word for part in _WORDS.values() for word in part)))
    words = [vocabulary[node.word] if node.word else -1 for node in nodes]
    depths, labels = [node.depth for node in nodes], [node.score + 2 for node in nodes]
    return Forest.from_depths(depths, words, labels, binary=True, vocabulary=vocabulary)


@dataclass(slots=True)
class _Phrase:
    depth: int
    word: str
    rule: str
    score: int = 0


def _sentence(source: random.Random, max_depth: int) -> list[_Phrase]:
    """The nodes of one sentence in preorder."""
    made: list[_Phrase] = []
    stack = [("S", 0)]
    while stack:
        symbol, depth = stack.pop()
        if symbol in _WORDS:
            word = source.choice(list(_WORDS[symbol]))
            made.append(_Phrase(depth, word, "", _WORDS[symbol][word]))
            continue
        rules = _RULES[symbol] if depth < max_depth else _RULES[symbol][:1]
        (_, parts, rule) = source.choices(rules, [weight for weight, _, _ in rules])[0]
        if len(parts) == 1:
            stack.append((parts[0], depth))
            continue
        made.append(_Phrase(depth, "", rule))
        stack += [(part, depth + 1) for part in reversed(parts)]
    waiting: list[_Phrase] = []  # from the right: what is below a node is there before it
    for node in reversed(made):
        if node.rule:
            left, right = waiting.pop().score, waiting.pop().score
            scores = {"sum": left + right, "right": right, "not": -right, "very": 2 * right}
            node.score = max(-2, min(2, scores[node.rule]))
        waiting.append(node)
    return made
