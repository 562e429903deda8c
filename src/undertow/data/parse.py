"""Trees from text: Penn Treebank brackets, S-expressions, and the lines of ListOps.

>>> forest = parse_brackets("(3 (2 a) (4 film))")
>>> forest.label.tolist(), forest.vocabulary.words
([3, 2, 4], ('<unk>', 'a', 'film'))
>>> parse_sexpressions("(+ 1 (* 2 3))").children(0)
array([1, 2], dtype=int32)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.data.checks import check_text
from undertow.data.expressions import LISTOPS, listops_pairs, listops_values
from undertow.data.forest import Forest
from undertow.data.scan import ATOM, CLOSE, OPEN, OUTSIDE, Tokens, by_line, by_tree, is_line_by_line, refuse, scan
from undertow.data.vocabulary import UNKNOWN, Vocabulary, vocabulary_of
from undertow.errors import DataError, brief
from undertow.tracebacks import boundaries

Array = npt.NDArray[Any]
NO_LABEL = "-1"  # in brackets: no label
NO_WORD = "_"  # in S-expressions: no word
_NO_PARENTHESES = str.maketrans("", "", "()")
_INTEGER = re.compile(r"-?[0-9]{1,9}")


def parse_brackets(
    text: str,
    vocabulary: Vocabulary | Sequence[str] | None = None,
    labels: Vocabulary | Sequence[str] | type | None = None,
    min_count: int = 1,
    binary: bool | None = None,
    per_line: bool | None = None,
) -> Forest:
    """Trees in Penn Treebank brackets; the Stanford Sentiment Treebank has one per line.

    `(label word)` is a leaf and `(label child child ...)` an inner node. Words are looked up in `vocabulary` (a list of
    words works too, with `<unk>` put first), or words that occur `min_count` times form a new one. Labels are
    integers if all of them look like integers, else names; `labels=int`, `labels=str` or the names themselves,
    `labels=["neg", "pos"]`, force one. Integers count from 0; -1 means no label. Every bad line is
    reported, all in one error.
    """
    tokens, problems, is_by_line = _balanced(text, per_line, atoms_are_trees=False)
    kind, line = tokens.kind, tokens.line
    after = np.r_[kind[1:], CLOSE]
    before = np.r_[CLOSE, kind[:-1]]
    is_label = (kind == ATOM) & (before == OPEN)
    # `(label word)`: the word belongs to the bracket's own node. All other words are nodes of their own.
    is_only = (kind == ATOM) & np.r_[False, is_label[:-1]] & (after == CLOSE)
    is_free = (kind == ATOM) & ~is_label & ~is_only
    _note(problems, line[(kind == OPEN) & (after == CLOSE)], "a bracket is empty")
    _note(problems, line[is_label & (after == CLOSE)], "a label has no word or children")
    _note(problems, line[is_free & (tokens.depth == 0)], OUTSIDE)

    places = np.cumsum(kind == ATOM) - 1  # the number of an atom among atoms
    atoms = tokens.atoms
    label_atoms = [atoms[at] for at in places[is_label]]
    by_name, names = _label_numbers(label_atoms, labels)
    label_values = np.array([by_name.get(atom, _BAD) for atom in label_atoms], np.int64)
    _note(problems, line[is_label][label_values == _BAD], "unknown label")
    _note(problems, line[is_label][label_values == _BELOW], "negative label (only -1, for none, is allowed)")
    refuse(problems, text, _TREE if is_by_line else _PART)

    is_node = (kind == OPEN) | is_free
    nodes = np.cumsum(is_node) - 1  # the node that a token belongs to: its own, or that of the bracket before it
    count = int(is_node.sum())
    label = np.full(count, -1, np.int64)
    label[nodes[is_label]] = label_values
    is_word = is_only | is_free
    words = [atoms[at] for at in places[is_word]]
    known = vocabulary_of(vocabulary, "vocabulary", UNKNOWN) or Vocabulary.of(words, min_count)
    word = np.full(count, -1, np.int32)
    word[nodes[is_word]] = known.ids(words)
    depth = tokens.depth[is_node]
    label, word, depth = _without_empty_tops(label, word, depth, (kind == OPEN)[is_node])
    return Forest.from_depths(depth, word, label, binary=binary, vocabulary=known, labels=names)


def parse_sexpressions(
    text: str,
    vocabulary: Vocabulary | Sequence[str] | None = None,
    min_count: int = 1,
    head: bool = True,
    binary: bool | None = None,
    per_line: bool | None = None,
) -> Forest:
    """S-expressions as in Lisp: in `(f x (g y))` the first atom of a bracket is the word of its node.

    With `head=False` all atoms are leaves, as in the binary parses `( ( a b ) c )`. A single atom is a tree, too. The
    atom `_` stands where a node has no word.
    """
    tokens, problems, is_by_line = _balanced(text, per_line)
    kind = tokens.kind
    is_head = (kind == ATOM) & (np.r_[CLOSE, kind[:-1]] == OPEN) if head else np.zeros(len(kind), bool)
    _note(problems, tokens.line[(kind == OPEN) & (np.r_[kind[1:], OPEN] == CLOSE)], "a bracket is empty")
    refuse(problems, text, _TREE if is_by_line else _PART)
    is_node = (kind == OPEN) | ((kind == ATOM) & ~is_head)
    nodes = np.cumsum(is_node) - 1
    word = np.full(int(is_node.sum()), -1, np.int32)
    is_word = np.array([atom != NO_WORD for atom in tokens.atoms], bool)
    words = [atom for atom in tokens.atoms if atom != NO_WORD]
    known = vocabulary_of(vocabulary, "vocabulary", UNKNOWN) or Vocabulary.of(words, min_count)
    word[nodes[kind == ATOM][is_word]] = known.ids(words)
    return Forest.from_depths(tokens.depth[is_node], word, binary=binary, vocabulary=known)


def parse_listops(text: str, binary: bool = False) -> Forest:
    """The lines of ListOps (Nangia and Bowman 2018): a value, a tab, an expression such as `[MAX 2 9 [MIN 4 7 ] ]`.

    Words are those of `undertow.data.LISTOPS`. Each node's label is its computed value. Written values may be left
    out; a line with a wrong value is bad. `binary=True` gives the tree of the brackets `( ( ( [MAX 2 ) 9 ) ] )`, in
    which tokens are leaves; then only digits and whole expressions have labels. Missing brackets are inferred.
    """
    check_text(text)
    pairs = [line.split("\t") if line.strip() else [""] for line in text.split("\n")]
    problems: dict[int, str] = {}
    for number, pair in enumerate(pairs, 1):
        if len(pair) > 2 or (len(pair) == 2 and not pair[0].strip().isdecimal()):
            problems[number] = "expected a value, a tab and an expression"
        elif pair != [""] and not pair[-1].translate(_NO_PARENTHESES).strip():
            problems[number] = "there is no expression"
    bodies = "\n".join("" if n in problems else pair[-1] for n, pair in enumerate(pairs, 1))
    # Round brackets only give the binary form: the n-ary expression is that of the square brackets.
    plain = bodies.translate(str.maketrans("[]", "()", "()"))
    tokens, worse = by_line(scan(plain))
    problems |= {number: why.replace("`)`", "`]`") for number, why in worse.items()}
    for atom in set(tokens.atoms) - set(LISTOPS.words):
        hits = np.flatnonzero(tokens.kind == ATOM)[[k for k, a in enumerate(tokens.atoms) if a == atom]]
        _note(problems, tokens.line[hits], f"{atom} is not a digit or one of MIN MAX MED SM FIRST LAST")
    _note(problems, _misplaced(tokens), "an operator must come first in its brackets, and have arguments")
    pieces = bodies.replace("[", "")
    if binary:
        in_pairs = "\n".join(piece if "(" in piece else "" for piece in pieces.split("\n"))
        for number, why in by_line(scan(in_pairs))[1].items():
            problems.setdefault(number, why if ")" in why else "expected pairs in parentheses")
    # Values of good lines are checked even if others are bad, so that one error reports everything.
    good = [number for number, pair in enumerate(pairs, 1) if pair != [""] and number not in problems]
    rest = plain.split("\n")
    forest = parse_sexpressions("\n".join(rest[number - 1] for number in good), LISTOPS, binary=False, per_line=True)
    values = listops_values(forest)
    for number, value in zip(good, values[forest.roots].tolist(), strict=True):
        wanted = int(pairs[number - 1][0].strip()) if len(pairs[number - 1]) == 2 else value
        if value != wanted:
            problems[number] = f"the value is {value}, not {wanted}"
    refuse(problems, text, _VALUE)
    if not binary:
        return replace(forest, label=values.astype(np.int32))
    rest = pieces.split("\n")
    lines = [rest[number - 1] for number in good]
    plain_ones = [k for k, line in enumerate(lines) if "(" not in line]
    for k, line in zip(plain_ones, listops_pairs(forest.batch(plain_ones)), strict=True):
        lines[k] = line.replace("[", "")
    paired = parse_sexpressions("\n".join(lines), LISTOPS, head=False, binary=True, per_line=True)
    label = np.where((paired.word >= 0) & (paired.word < 10), paired.word, -1)
    closes = np.flatnonzero((paired.right >= 0) & (paired.word[paired.right] == LISTOPS["]"]))
    inner = values[forest.word >= 10]
    # Both forms number expressions by where they begin, the outermost first where several begin together.
    label[closes] = inner
    return replace(paired, label=label)


def _misplaced(tokens: Tokens) -> Array:
    """Lines in which a bracket does not begin with an operator, an operator stands elsewhere, or has no arguments."""
    is_head = (tokens.kind == ATOM) & (np.r_[CLOSE, tokens.kind[:-1]] == OPEN)
    digits = np.zeros(len(tokens.kind), bool)
    digits[tokens.kind == ATOM] = [len(atom) == 1 and atom.isdecimal() for atom in tokens.atoms]
    after = np.r_[tokens.kind[1:], OPEN]
    wrong = (tokens.kind == ATOM) & (is_head == digits)
    wrong |= (is_head | (tokens.kind == OPEN)) & (after == CLOSE)
    wrong |= (tokens.kind == OPEN) & (after == OPEN)
    lines: Array = tokens.line[wrong]
    return lines


# -- shared by the readers -------------------------------------------------------------------------------------------

_TREE = "each should be a tree"
_PART = "all brackets should belong to trees"
_VALUE = "each should be an expression, with or without its value"
_BAD, _BELOW = -(2**40), -(2**41)  # no label has these numbers


def _balanced(text: str, per_line: bool | None, atoms_are_trees: bool = True) -> tuple[Tokens, dict[int, str], bool]:
    check_text(text)
    tokens = scan(text)
    is_by_line = is_line_by_line(tokens) if per_line is None else per_line
    if is_by_line:
        return *by_line(tokens, atoms_are_trees), True
    problems = by_tree(tokens)
    refuse(problems, text, _PART)
    return tokens, problems, False


def _note(problems: dict[int, str], lines: Array, why: str) -> None:
    for number in np.unique(lines):
        problems.setdefault(int(number), why)


def _label_numbers(
    atoms: list[str], labels: Vocabulary | Sequence[str] | type | None
) -> tuple[dict[str, int], Vocabulary | None]:
    """The number of each distinct label, and the names of labels if they have names."""
    kinds = dict.fromkeys(atoms)
    if labels is None:
        labels = int if all(_INTEGER.fullmatch(atom) for atom in kinds) else str
    if labels is int:
        integers = {atom: int(atom) for atom in kinds if _INTEGER.fullmatch(atom)}
        return {atom: number if number >= -1 else _BELOW for atom, number in integers.items()}, None
    if labels is str:
        labels = Vocabulary.of((atom for atom in atoms if atom != NO_LABEL), unknown=None)
    if isinstance(labels, (list, tuple)) and all(isinstance(name, str) for name in labels):
        labels = Vocabulary(tuple(labels), unknown=None)
    if not isinstance(labels, Vocabulary):
        raise DataError(
            f"labels={brief(labels)}", hint="use int, str, or the names of the labels: a list or a Vocabulary"
        )
    numbers = {atom: labels[atom] for atom in kinds if atom in labels or labels.unknown is not None}
    return {**numbers, NO_LABEL: -1}, labels


def _without_empty_tops(label: Array, word: Array, depth: Array, is_bracket: Array) -> tuple[Array, Array, Array]:
    """The same nodes without an empty bracket around a whole tree: `( (S ...) )` becomes `(S ...)`."""
    if len(depth) == 0:
        return label, word, depth
    is_root = depth == 0
    tree = np.cumsum(is_root) - 1
    children = np.bincount(tree[depth == 1], minlength=int(is_root.sum()))
    is_empty = is_root & (label == -1) & (children[tree] == 1) & np.r_[is_bracket[1:], False]
    lower = is_empty[is_root][tree]
    kept = ~is_empty
    return label[kept], word[kept], (depth - lower)[kept]


boundaries(globals(), ("parse_brackets", "parse_listops", "parse_sexpressions"))
