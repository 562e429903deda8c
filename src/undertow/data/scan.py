"""Tokenizes bracket text into arrays in one pass, and finds what is wrong with each line.

A token is an opening bracket, a closing one, or an atom: a run of anything else between spaces. Text of a million
tokens takes a fraction of a second, since only the atoms are ever Python objects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.errors import DataError

Array = npt.NDArray[Any]

OPEN, CLOSE, ATOM = 1, 2, 3
OUTSIDE = "text outside the brackets"
_ATOMS = re.compile(r"[^ \t\n\r\f\v()]+")
_KINDS = np.zeros(128, np.int8)  # by character code below 128; all other characters belong to atoms
_KINDS[:] = ATOM
_KINDS[[9, 10, 11, 12, 13, 32]] = 0
_KINDS[ord("(")], _KINDS[ord(")")] = OPEN, CLOSE


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text, token by token."""

    kind: Array  # OPEN, CLOSE or ATOM
    line: Array  # from 1
    depth: Array  # how many brackets are open before the token; a closing bracket has the depth of its opening one
    atoms: list[str]  # of the tokens that are atoms, in order


def scan(text: str) -> Tokens:
    """The tokens of a text.

    >>> found = scan("(a (b c))")
    >>> found.kind.tolist(), found.depth.tolist(), found.atoms
    ([1, 3, 1, 3, 3, 2, 2], [0, 1, 1, 2, 2, 1, 0], ['a', 'b', 'c'])
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    kinds = np.where(codes < 128, _KINDS[np.minimum(codes, 127)], np.int8(ATOM))
    starts = kinds > 0
    starts[1:] &= (kinds[1:] != ATOM) | (kinds[:-1] != ATOM)
    places = np.flatnonzero(starts)
    kind = kinds[places]
    newlines = np.flatnonzero(codes == 10)
    line = np.searchsorted(newlines, places).astype(np.int64) + 1
    rise = (kind == OPEN).astype(np.int64) - (kind == CLOSE)
    depth = np.cumsum(rise) - (kind == OPEN)
    return Tokens(kind, line, depth, _ATOMS.findall(text))


def refuse(problems: dict[int, str], text: str, what: str) -> None:
    """One error for all bad lines, by number; `what` says what a line should be."""
    if not problems:
        return
    lines = text.split("\n")
    shown = sorted(problems)
    count = sum(bool(line.strip()) for line in lines)
    parts = [f"{len(shown)} bad line{'s' * (len(shown) > 1)} among {count}; {what}:"]
    for n in shown[:_MOST]:
        line = lines[n - 1].strip()
        parts.append(f"  line {n}: {problems[n]}: {line if len(line) <= 60 else line[:57] + '...'}")
    if len(shown) > _MOST:
        parts.append(f"  and the lines {_ranges(shown[_MOST:])}")
    fault = DataError("\n".join(parts), hint="correct these lines, or remove them")
    fault.lines = tuple((n, problems[n]) for n in shown)
    raise fault


_MOST = 20  # bad lines that are explained one by one


def _ranges(numbers: list[int]) -> str:
    """Sorted numbers as text, with runs as ranges.

    >>> _ranges([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9-10'
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def is_line_by_line(tokens: Tokens) -> bool:
    """Does the first non-empty line hold whole trees? Then every line is read on its own."""
    if len(tokens.kind) == 0:
        return True
    first = tokens.line == tokens.line[0]
    return int((tokens.kind[first] == OPEN).sum()) <= int((tokens.kind[first] == CLOSE).sum())


def by_line(tokens: Tokens, atoms_are_trees: bool = True) -> tuple[Tokens, dict[int, str]]:
    """The same tokens with depths counted from 0 in each line, and the lines that do not balance."""
    problems: dict[int, str] = {}
    if len(tokens.kind) == 0:
        return tokens, problems
    begins = np.flatnonzero(np.r_[True, tokens.line[1:] != tokens.line[:-1]])
    ends = np.r_[begins[1:], len(tokens.kind)]
    # How many brackets are open before the first token of a line, and after its last.
    before = tokens.depth[begins] + (tokens.kind[begins] == CLOSE)
    after = np.r_[before[1:], tokens.depth[-1] + (tokens.kind[-1] == OPEN)]
    depth = tokens.depth - before.repeat(ends - begins)
    lines = tokens.line[begins]
    lowest = np.minimum.reduceat(depth, begins)
    roots = np.add.reduceat((depth == 0) & (tokens.kind != CLOSE), begins)
    brackets = np.add.reduceat((depth == 0) & (tokens.kind == OPEN), begins)
    for at in np.flatnonzero((lowest < 0) | (after != before) | (roots != 1)):
        missing = int(after[at] - before[at])
        if lowest[at] < 0:
            problems[int(lines[at])] = "unmatched `)`"
        elif missing > 0:
            problems[int(lines[at])] = f"{missing} `)` {'is' if missing == 1 else 'are'} missing"
        elif roots[at] > brackets[at] and (brackets[at] == 1 or not atoms_are_trees):
            problems[int(lines[at])] = OUTSIDE
        else:
            problems[int(lines[at])] = f"{int(roots[at])} trees on one line"
    return Tokens(tokens.kind, tokens.line, depth, tokens.atoms), problems


def by_tree(tokens: Tokens) -> dict[int, str]:
    """The lines of unbalanced brackets, where a tree may span several lines."""
    problems: dict[int, str] = {}
    early = np.flatnonzero(tokens.depth < 0)
    if len(early):
        return {int(tokens.line[early[0]]): "unmatched `)`"}
    if len(tokens.kind):
        missing = int(tokens.depth[-1] + (tokens.kind[-1] == OPEN))
        if missing:
            last = np.flatnonzero((tokens.depth == 0) & (tokens.kind == OPEN))[-1]
            problems[int(tokens.line[last])] = f"the tree that starts here lacks {missing} `)`"
    return problems
