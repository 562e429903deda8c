"""Training on the user's own trees: a file that is split, or a folder of files, with shared words and labels.

Each file is read on its own, in any format. Then all get the vocabulary of the training trees: words that occur only
in the other files are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from undertow.data.files import ENDINGS, check_file, format_of, read
from undertow.data.forest import Forest
from undertow.data.select import first_odd, renumbered
from undertow.data.vocabulary import Vocabulary
from undertow.errors import DataError

Parts = tuple[Forest, Forest, Forest]  # training, dev, test


def parts_of(path: Path, seed: int, binary: bool, min_count: int) -> Parts:
    """The trees of a file or folder. `binary` requires 0 or 2 children; for ListOps it reads the binary form."""
    if not path.is_dir():
        return _split(_alike([_read(path, binary)], path)[0], path, seed, min_count)
    files = _files(path)
    parts = _alike([_read(file, binary) for file in files], path)
    words = _words(parts[0], path, min_count)
    train, dev, *test = (part.with_vocabulary(words) for part in parts)
    return train, dev, test[0] if test else dev


def not_empty(forest: Forest, path: str | Path) -> Forest:
    """These trees; a DataError if there are none."""
    if not len(forest):
        raise DataError(f"{str(path)!r} holds no trees", hint="each file needs at least one")
    return forest


def named(forest: Forest) -> Forest:
    """The same trees with a vocabulary: a numeric word is named by its digits."""
    if forest.vocabulary is not None:
        return forest
    used = np.unique(forest.word[forest.word >= 0])
    names = Vocabulary(tuple(map(str, used.tolist())))
    word = np.where(forest.word < 0, -1, 1 + np.searchsorted(used, forest.word))  # 0 is the unknown word
    return replace(forest, word=word.astype(np.int32), vocabulary=names)


def _split(forest: Forest, path: Path, seed: int, min_count: int) -> Parts:
    """Hold out a tenth of the trees for dev and a tenth for test, each at least one."""
    few = max(len(forest) // 10, 1)
    if len(forest) < 3:
        raise DataError(
            f"{str(path)!r} holds {len(forest)} trees", hint="at least 3 are needed: for training, validation and test"
        )
    order = np.random.default_rng(seed).permutation(len(forest))
    dev, test, train = (forest.batch(chosen) for chosen in np.split(order, [few, 2 * few]))
    words = _words(train, path, min_count)
    return train.with_vocabulary(words), dev.with_vocabulary(words), test.with_vocabulary(words)


def _files(folder: Path) -> list[Path]:
    """The files train, dev and perhaps test of a folder, all of one format."""
    all_files: list[Path] = []
    for part in ("train", "dev", "test"):
        files = sorted(p for p in folder.iterdir() if p.stem == part and p.suffix[1:].lower() in ENDINGS)
        if len(files) > 1:
            raise DataError(f"{str(folder)!r} has {' and '.join(file.name for file in files)}", hint="keep one of them")
        if not files and part != "test":
            raise DataError(
                f"{str(folder)!r} has no {part} file",
                hint="it needs train and dev files, such as train.txt and dev.txt; trees:FILE splits one file",
            )
        all_files += files
    if len({format_of(file, None) for file in all_files}) > 1:
        names = " and ".join(file.name for file in all_files)
        raise DataError(f"{names} have different formats", hint="`undertow data convert` converts between formats")
    return all_files


def _read(path: Path, binary: bool) -> Forest:
    check_file(path)
    if path.suffix[1:].lower() not in ENDINGS:
        raise DataError(
            f"cannot tell the format from the name {path.name!r}",
            hint=f"undertow data convert {path.name} trees.npz --from brackets",
        )
    format = format_of(path, None)
    forest = not_empty(read(path, format, **({"binary": binary} if format == "listops" else {})), path)
    if binary and not forest.is_binary:
        raise DataError(
            f"{path}: {first_odd(np.diff(forest.offsets), forest.roots)}, but 0 or 2 are required",
            hint="the models childsum and drnn accept any number of children; in Python, use binary=False",
        )
    return replace(named(forest), fields={})  # no model reads other fields


def _words(train: Forest, path: Path, min_count: int) -> Vocabulary:
    """The words that occur often enough; all of them, if there is no unknown word."""
    known = train.vocabulary
    assert known is not None
    if known.unknown is None:
        if min_count != 1:
            raise DataError(
                f"min_count is {min_count}, but {str(path)!r} has a fixed vocabulary", hint="leave min_count out"
            )
        return known
    names = np.array(known.words, object)[train.word[train.word >= 0]]
    return Vocabulary.of(names.tolist(), min_count, unknown=known.unknown)


def _alike(parts: Sequence[Forest], path: Path) -> list[Forest]:
    """The same trees with labels of the same name numbered alike; each part may have labels that others lack."""
    names = [part.labels for part in parts if (part.label >= 0).any()]
    if all(vocabulary is None for vocabulary in names):
        return list(parts)
    if any(vocabulary is None for vocabulary in names):
        raise DataError(
            f"{str(path)!r} has files with numeric labels and files with named labels", hint="use one kind in all files"
        )
    every = Vocabulary(
        tuple(dict.fromkeys(name for vocabulary in names if vocabulary for name in vocabulary)), unknown=None
    )
    return [
        part if part.labels is None else replace(part, label=renumbered(part.label, part.labels, every), labels=every)
        for part in parts
    ]
