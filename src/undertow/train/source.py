"""Where trees to train on come from: a file or folder, `sst:FOLDER`, `listops`, `listops:FILE`, `grammar`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from undertow.data import generate
from undertow.data.files import read
from undertow.data.film_grammar import sentiment
from undertow.data.forest import Forest
from undertow.data.vocabulary import Vocabulary
from undertow.errors import DataError, brief
from undertow.models.ranges import check_ranges
from undertow.tracebacks import boundary
from undertow.train.own_trees import not_empty, parts_of

SOURCES = "a file or folder, sst:FOLDER, listops, listops:FILE or grammar"
TREES = 2000  # default number of generated trees
_MANY, _SPARSE = 1000, 10  # above the first, and this many times the labels that occur: not class numbers
INNER = "·"  # the word given to nodes that have none


@dataclass(frozen=True)
class Source:
    """Trees for training, for choosing the best epoch, and for the final report; the last two may be the same."""

    train: Forest
    dev: Forest
    test: Forest

    @property
    def vocabulary(self) -> Vocabulary:
        """The words, the same for all parts."""
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
        distinct = len(np.unique(np.concatenate([part.label[part.label >= 0] for part in parts])))
        if top + 1 > _MANY and top + 1 > _SPARSE * distinct:
            raise DataError(
                f"the largest label is {top}, but only {distinct} different ones occur",
                hint="a model has a class for every number up to it: number labels from 0, or use names",
            )
        return top + 1

    @property
    def labels(self) -> Vocabulary | Any:
        """The names of the labels, if they have names."""
        return self.train.labels

    def with_words(self) -> Source:
        """The same with a word at every node, as generators need: nodes without one get the word `·`."""
        parts = (self.train, self.dev, self.test)
        if all(part.word.min(initial=0) >= 0 for part in parts):
            return self
        words = self.vocabulary
        more = Vocabulary((*words.words, INNER), words.unknown)
        train, dev, test = (
            replace(p, word=np.where(p.word < 0, np.int32(len(words)), p.word), vocabulary=more) for p in parts
        )
        return Source(train, dev, dev if self.test is self.dev else test)


def kind_of(spec: str) -> tuple[str, str]:
    """The kind of a source, and its path; `reviews.txt` is short for `trees:reviews.txt`.

    >>> kind_of("listops"), kind_of("sst:trees"), kind_of(__file__)[0]
    (('listops', ''), ('sst', 'trees'), 'trees')
    """
    kind, _, path = spec.partition(":")
    is_named = kind in ("trees", "sst", "listops", "grammar")
    return ("trees", spec) if not is_named and Path(spec).exists() else (kind, path)


@boundary
def open_source(spec: str, trees: int | None = None, seed: int = 0, binary: bool = True, min_count: int = 1) -> Source:
    """The trees that `spec` names.

    A file is any that `ut.data.read` reads: a tenth of its trees is held out for dev and a tenth for test,
    chosen by the seed. A folder has files train and dev, such as train.jsonl and dev.jsonl, and perhaps test;
    otherwise dev serves as test. `sst:FOLDER` has train.txt, dev.txt and test.txt in brackets. In all these, words
    rarer than `min_count` become the unknown word.
    `listops` and `grammar` generate `trees` trees (2000 by default) and a tenth as many each for dev and test; no two
    ListOps trees are equal. `listops:FILE` generates the training trees and tests on those of the file.
    `binary` requires 0 or 2 children; ListOps is then read in its binary form.
    """
    check_ranges(seed=seed, min_count=min_count, **({} if trees is None else {"trees": trees}))
    kind, path = kind_of(spec)
    if kind in ("trees", "sst") and trees is not None:
        raise DataError(
            f"trees is {trees}, but {spec} has a fixed number of trees",
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
        test = not_empty(read(path, "listops", binary=binary), path) if path else None
        generated = generate.listops(more, seed=seed, binary=binary, distinct=True)
    elif spec == "grammar":
        generated, test = sentiment(more, seed=seed), None
    else:
        raise DataError(f"there is no file {brief(spec)}", hint=f"write the name of {SOURCES}")
    cuts = np.cumsum([trees, (more - trees) // 2])
    parts = [generated.batch(numbers) for numbers in np.split(np.arange(more), cuts)]
    return Source(parts[0], parts[1], parts[2] if test is None else test)


def _check_treebank(folder: Path) -> None:
    missing = [name for name in ("train.txt", "dev.txt", "test.txt") if not (folder / name).is_file()]
    if missing:
        raise DataError(
            f"{str(folder)!r} has no {' and no '.join(missing)}",
            hint="the folder of the Stanford Sentiment Treebank holds train.txt, dev.txt and test.txt",
        )
