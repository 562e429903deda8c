"""Forests as text: brackets, S-expressions, JSON, the lines of ListOps.

>>> from undertow.data.parse import parse_brackets
>>> to_brackets(parse_brackets("(3 (2 a) (4 film))"))
'(3 (2 a) (4 film))\\n'
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from undertow.data.expressions import LISTOPS, listops_pairs
from undertow.data.forest import Forest
from undertow.data.nested import name_of, to_nested
from undertow.data.parse import NO_LABEL, NO_WORD
from undertow.errors import DataError, brief
from undertow.tracebacks import boundaries


def to_brackets(forest: Forest) -> str:
    """The trees in Penn Treebank brackets, one per line."""
    leaves = np.diff(forest.offsets) == 0
    if (leaves != (forest.word >= 0)).any():
        raise DataError(
            "the bracket format stores words only at leaves", hint="to_sexpressions and to_nested can write any forest"
        )
    labels = [_atom(name_of(n, forest.labels), NO_LABEL) for n in forest.label.tolist()]
    words = [_atom(name_of(n, forest.vocabulary), "") for n in forest.word.tolist()]
    heads = [f"({label} {word}" if word else f"({label}" for label, word in zip(labels, words, strict=True)]
    return _closed(forest, heads, np.ones(forest.size, bool))


def to_sexpressions(forest: Forest) -> str:
    """The trees as S-expressions, one per line: `(word child child)`, and `_` for a node without a word. No labels."""
    words = [_atom(name_of(n, forest.vocabulary), NO_WORD) for n in forest.word.tolist()]
    inner = np.diff(forest.offsets) > 0
    heads = [f"({word}" if has else word for word, has in zip(words, inner.tolist(), strict=True)]
    return _closed(forest, heads, inner)


def to_jsonl(forest: Forest) -> str:
    """The trees as JSON, one per line, with everything."""
    try:
        return "".join(f"{json.dumps(tree, ensure_ascii=False)}\n" for tree in to_nested(forest, "dicts"))
    except RecursionError:
        raise DataError(
            "a tree is too deep for JSON", hint="ut.data.save and to_sexpressions support any depth"
        ) from None


def _closed(forest: Forest, heads: list[str], is_open: Any) -> str:
    """The heads of all nodes in preorder, joined by spaces, newlines and closing brackets."""
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
        raise DataError(f"{brief(name)} cannot be written in brackets", hint="replace it, e.g. ( by -LRB-")
    return text


def to_listops(forest: Forest) -> str:
    """n-ary ListOps trees in the form of the published data: the value, a tab, and the expression bracketed in pairs.

    >>> from undertow.data.parse import parse_listops
    >>> to_listops(parse_listops("9\\t[MAX 2 9 ]"))
    '9\\t( ( ( [MAX 2 ) 9 ) ] )\\n'
    """
    if forest.vocabulary is not LISTOPS or forest.is_binary:
        raise DataError("the trees are not n-ary ListOps", hint="ut.data.listops and parse_listops make them")
    values = forest.label[forest.roots].tolist()
    return "".join(f"{value}\t{text}\n" for value, text in zip(values, listops_pairs(forest), strict=True))


boundaries(globals(), ("to_brackets", "to_jsonl", "to_listops", "to_sexpressions"))
