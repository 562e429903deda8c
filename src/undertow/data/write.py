"""Forests as text and as files: brackets, S-expressions, and the arrays themselves.

>>> from undertow.data.parse import parse_brackets
>>> to_brackets(parse_brackets("(3 (2 a) (4 film))"))
'(3 (2 a) (4 film))\\n'
"""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np

from undertow.data.forest import Forest
from undertow.data.nested import name_of
from undertow.data.parse import NO_LABEL, NO_WORD
from undertow.data.vocabulary import Vocabulary
from undertow.errors import DataError, brief


def to_brackets(forest: Forest) -> str:
    """The trees in the brackets of the Penn Treebank, a line each."""
    leaves = np.diff(forest.offsets) == 0
    if (leaves != (forest.word >= 0)).any():
        raise DataError(
            "brackets hold words at leaves, and at no other nodes", hint="to_sexpressions and to_nested hold any forest"
        )
    labels = [_atom(name_of(n, forest.labels), NO_LABEL) for n in forest.label.tolist()]
    words = [_atom(name_of(n, forest.vocabulary), "") for n in forest.word.tolist()]
    heads = [f"({label} {word}" if word else f"({label}" for label, word in zip(labels, words, strict=True)]
    return _closed(forest, heads, np.ones(forest.size, bool))


def to_sexpressions(forest: Forest) -> str:
    """The trees as S-expressions, a line each: `(word child child)`, and `_` for a node without word. No labels."""
    words = [_atom(name_of(n, forest.vocabulary), NO_WORD) for n in forest.word.tolist()]
    inner = np.diff(forest.offsets) > 0
    heads = [f"({word}" if has else word for word, has in zip(words, inner.tolist(), strict=True)]
    return _closed(forest, heads, inner)


def _closed(forest: Forest, heads: list[str], is_open: Any) -> str:
    """What stands for each node in preorder, with spaces, newlines and closing brackets between them."""
    if forest.size == 0:
        return ""
    following = np.append(forest.depths[1:], 0)
    closes = (forest.depths - following + is_open).tolist()
    ends = np.append(forest.depths[1:] == 0, True).tolist()
    pieces = [
        f"{head}{')' * close}{chr(10) if end else ' '}" for head, close, end in zip(heads, closes, ends, strict=True)
    ]
    return "".join(pieces)


def _atom(name: Any, nothing: str) -> str:
    text = nothing if name is None else str(name)
    if name is not None and (text == "" or any(c in "() \t\n\r\f\v" for c in text) or text == nothing):
        raise DataError(f"{brief(name)} cannot be written between brackets", hint="replace it, as in -LRB- for (")
    return text


def save(forest: Forest, path: str | os.PathLike[str]) -> None:
    """Write a forest as a file of arrays (`.npz`), with the words and the names of labels."""
    arrays: dict[str, Any] = {"depths": forest.depths, "word": forest.word, "label": forest.label}
    arrays["binary"] = np.array(forest.is_binary)
    arrays |= {f"field.{name}": values for name, values in forest.fields.items()}
    for name, names in (("vocabulary", forest.vocabulary), ("labels", forest.labels)):
        if names is not None:
            arrays[name] = np.array(names.words, np.str_)
            arrays[f"{name}.unknown"] = np.array([] if names.unknown is None else [names.unknown], np.str_)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: str | os.PathLike[str]) -> Forest:
    """Read what `save` wrote. Nothing in such a file is ever run."""
    try:
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        names = {name: _names(arrays, name) for name in ("vocabulary", "labels")}
        fields = {name.removeprefix("field."): a for name, a in arrays.items() if name.startswith("field.")}
        return Forest.from_depths(
            arrays["depths"], arrays["word"], arrays["label"], fields, bool(arrays["binary"]), **names
        )
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as fault:
        raise DataError(
            f"{os.fspath(path)!r} does not hold a forest: {fault}", hint="ut.data.save writes such files"
        ) from None


def _names(arrays: dict[str, Any], name: str) -> Any:
    if name not in arrays:
        return None
    unknown = arrays[f"{name}.unknown"].tolist()
    return Vocabulary(tuple(arrays[name].tolist()), unknown[0] if unknown else None)
