"""Vocabularies: words and their numbers.

>>> words = Vocabulary.of("the cat saw the dog".split(), min_count=2)
>>> words
<Vocabulary: 2 words, <unk> for others>
>>> words["the"], words["cat"], words.word(1)
(1, 0, 'the')
"""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from undertow.data.checks import check_whole
from undertow.errors import DataError, brief
from undertow.tracebacks import guarded

UNKNOWN = "<unk>"


@guarded
@dataclass(frozen=True, repr=False)
class Vocabulary:
    """Words, numbered from 0. One of them may represent all unknown words."""

    words: tuple[str, ...]
    unknown: str | None = UNKNOWN  # None: a missing word is an error

    def __post_init__(self) -> None:
        words = tuple(self.words)
        if self.unknown is not None and self.unknown not in words:
            words = (self.unknown, *words)
        object.__setattr__(self, "words", words)
        if len(self.numbers) != len(words):
            twice = next(word for word, count in Counter(words).items() if count > 1)
            raise DataError(f"the word {brief(twice)} occurs twice", hint="Vocabulary.of(words) counts words")

    @classmethod
    def of(
        cls, words: Iterable[str], min_count: int = 1, size: int | None = None, unknown: str | None = UNKNOWN
    ) -> Vocabulary:
        """The words of a text, most frequent first; ties in order of occurrence.

        Words that occur fewer than `min_count` times, or beyond the `size` most frequent, become the unknown word.
        """
        check_whole("min_count", min_count, 1)
        if size is not None:
            check_whole("size", size, 0)
        counts = Counter(words)
        if unknown is not None:
            counts.pop(unknown, None)
        frequent = [word for word, count in counts.most_common() if count >= min_count]
        return cls(tuple(frequent if size is None else frequent[:size]), unknown)

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """The number of every word."""
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self.numbers

    def __getitem__(self, word: str) -> int:
        """The number of a word; that of the unknown word if it is missing."""
        number = self.numbers.get(word)
        if number is not None:
            return number
        if self.unknown is None:
            raise DataError(
                f"{brief(word)} is not in the vocabulary",
                hint="Vocabulary.of(words) accepts unknown words unless unknown=None",
            )
        return self.numbers[self.unknown]

    def ids(self, words: Iterable[str]) -> npt.NDArray[np.int32]:
        """The numbers of many words."""
        known = self.numbers
        if self.unknown is None:
            return np.array([self[word] for word in words], np.int32)
        other = known[self.unknown]
        return np.array([known.get(word, other) for word in words], np.int32)

    def word(self, number: int) -> str:
        """The word of a number."""
        if not 0 <= number < len(self.words):
            raise DataError(f"word {number} is out of range: the vocabulary has {len(self.words)} words")
        return self.words[number]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a text file with one word per line; the unknown word comes first."""
        for word in self.words:
            if word.splitlines() != [word]:
                raise DataError(
                    f"the word {brief(word)} is not a single line of text", hint="such words cannot be saved"
                )
        rest = [word for word in self.words if word != self.unknown]
        lines = rest if self.unknown is None else [self.unknown, *rest]
        if lines != list(self.words):
            raise DataError("the unknown word must come first", hint="number 0 is reserved for it")
        Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str], unknown: str | None = UNKNOWN) -> Vocabulary:
        """Read a file written by `save`. `unknown` names the unknown word, if the file has it."""
        try:
            lines = Path(path).read_text(encoding="utf-8").split("\n")
        except UnicodeDecodeError as fault:
            raise DataError(f"{os.fspath(path)!r} is not UTF-8 text: {fault}", hint="convert the file first") from None
        words = tuple(lines[:-1] if lines[-1] == "" else lines)
        return cls(words, unknown if unknown in words else None)

    def __repr__(self) -> str:
        return f"<Vocabulary: {len(self)} words{'' if self.unknown is None else f', {self.unknown} for others'}>"


def vocabulary_of(names: Vocabulary | Sequence[str] | None, name: str, unknown: str | None) -> Vocabulary | None:
    """The names of words or labels as readers accept them: a vocabulary, or a list of strings."""
    if names is None or isinstance(names, Vocabulary):
        return names
    if isinstance(names, (list, tuple)) and all(isinstance(word, str) for word in names):
        return Vocabulary(tuple(names), unknown)
    raise DataError(f"invalid {name}={brief(names)}", hint="pass a Vocabulary, or a list of strings")
