"""The fenced blocks of a page of the docs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

OUTPUT = "<!-- output -->"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `first` is the number of its first line, from 0."""

    language: str
    first: int
    lines: tuple[str, ...]
    is_output: bool

    @property
    def is_python(self) -> bool:
        return self.language.split()[:1] == ["python"]

    @property
    def is_run(self) -> bool:
        return self.language == "python"


def blocks_of(page: str) -> Iterator[Block]:
    lines = page.splitlines()
    at = 0
    while at < len(lines):
        opening = re.fullmatch(r"(`{3,})\s*([^`]*)", lines[at])
        if opening is None:
            at += 1
            continue
        first = at + 1
        at = next(n for n in range(first, len(lines)) if lines[n].startswith(opening[1]))
        before = [line for line in lines[: first - 1] if line.strip()]
        yield Block(opening[2].strip(), first, tuple(lines[first:at]), before[-1:] == [OUTPUT])
        at += 1


def source_of(blocks: Iterable[Block]) -> str:
    """The Python that runs on a page, on the lines where it stands there."""
    lines: list[str] = []
    for block in blocks:
        if block.is_run:
            lines += [""] * (block.first - len(lines))
            lines += block.lines
    return "\n".join(lines) + "\n"


def tour() -> tuple[str, str]:
    """The first program of the README, and what it prints."""
    blocks = list(blocks_of((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")))
    at = next(n for n, block in enumerate(blocks) if block.is_run)
    return source_of(blocks[at : at + 1]), "\n".join(blocks[at + 1].lines) + "\n"
