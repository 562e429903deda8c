"""Where trees to train on come from: `trees:PATH`, `sst:FOLDER`, `listops`, `listops:FILE`, `grammar`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from undertow.data import generate
from undertow.data.files import read
from undertow.data.film_grammar import sentiment
from undertow.data.forest import Forest
from undertow.data.vocabulary import Vocabulary
from undertow.errors import DataError, brief
from undertow.models.ranges import check_ranges
from undertow.train.own_trees import parts_of, some

SOURCES = "trees:PATH, sst:FOLDER, listops, listops:FILE or grammar"
TREES = 2000  # default number of generated trees
_MANY, _SPARSE = 1000, 10  # more classes than this, and so many for each that occurs: a label is no number of a class
INNER = "·"  # the word of nodes that have none


@dataclass(frozen=True)
class Source:
    """Trees to train on, to choose by, and to report on in the end; the last two may be the same ones."""

    train: Forest
    dev: Forest
    test: Forest

    @property
    def vocabulary(self) -> Vocabulary:
        """The words; all parts have the same."""
        if self.train.vocabulary is None:
            raise DataError("these trees have no words", hint="read them with a vocabulary")
        return self.train.vocabulary

    @property
    def classes(self) -> int:
        """How many labels there are."""
        parts = (self.train, self.dev, self.test)
        top = max(int(part.label.max(initial=-1)) for part in parts)
        if top < 0:
            raise DataError(
                "no node has a label",
                hint="write (label word) and (label child child); topdown and drnn grow trees, and need no labels",
            )
        found = len(np.unique(np.concatenate([part.label[part.label >= 0] for part in parts])))
        if top + 1 > _MANY and top + 1 > _SPARSE * found:
            raise DataError(
                f"the largest label is {top}, but only {found} different ones occur",
                hint="a model has a class for every number up to it: number labels from 0, or use names",
            )
        return top + 1

    @property
    def labels(self) -> Vocabulary | None:
        """The names of the labels, if they have names."""
        return self.train.labels

    def with_words(self) -> Source:
        """The same with a word at every node, as generators need: where there is none, one of its own."""
        parts = (self.train, self.dev, self.test)
        if all(part.word.min(initial=0) >= 0 for part in parts):
            return self
        words = self.vocabulary
        more = Vocabulary((*words.words, INNER), words.unknown)
        train, dev, test = (
            replace(p, word=np.where(p.word < 0, np.int32(len(words)), p.word), vocabulary=more) for p in parts
        )
        return Source(train, dev, dev if self.test is self.dev else test)


def open_source(spec: str, trees: int | None = None, seed: int = 0, binary: bool = True, min_count: int = 1) -> Source:
    """The trees that `spec` names.

    `trees:FILE` is any file that `ut.data.read` reads: the seed chooses a tenth of its trees for dev, and a tenth for
    the test. `trees:FOLDER` has files train and dev, such as train.jsonl and dev.jsonl, and perhaps test; without that
    one, dev is the test. `sst:FOLDER` has train.txt, dev.txt and test.txt in brackets. In all these, words rarer than
    `min_count` become the unknown one.
    `listops` and `grammar` make that many `trees` by rule, 2000 if None, and a tenth as many for dev and test each; no
    two trees of ListOps are alike. `listops:FILE` makes trees to train on by rule and takes those of the file for the
    test.
    `binary` insists on two children or none; of ListOps it takes the pairs.
    """
    check_ranges(seed=seed, min_count=min_count, **({} if trees is None else {"trees": trees}))
    kind, _, path = spec.partition(":")
    if kind in ("trees", "sst") and trees is not None:
        raise DataError(
            f"trees is {trees}, but {kind}:{path} has a fixed number of trees",
            hint="leave it out: it applies to generated trees",
        )
    trees = TREES if trees is None else trees
    if kind in ("trees", "sst") and path:
        if kind == "sst":
            _check_treebank(Path(path))
        return Source(*parts_of(Path(path), seed, binary, min_count))
    if min_count != 1:
        raise DataError(f"min_count is {min_count}, but {spec} has a fixed vocabulary", hint="leave min_count out")
    more = trees + 2 * max(trees // 10, 1)
    if kind == "listops":
        test = some(read(path, "listops", binary=binary), path) if path else None
        made = generate.listops(more, seed=seed, binary=binary, distinct=True)
    elif spec == "grammar":
        made, test = sentiment(more, seed=seed), None
    else:
        raise DataError(f"unknown source {brief(spec)}", hint=f"write {SOURCES}")
    cuts = np.cumsum([trees, (more - trees) // 2])
    parts = [made.batch(some) for some in np.split(np.arange(more), cuts)]
    return Source(parts[0], parts[1], parts[2] if test is None else test)


def _check_treebank(folder: Path) -> None:
    missing = [name for name in ("train.txt", "dev.txt", "test.txt") if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{str(folder)!r} has no {' and no '.join(missing)}",
            hint="the folder of the Stanford Sentiment Treebank holds train.txt, dev.txt and test.txt",
        )
