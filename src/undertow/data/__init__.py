"""Trees as data: forests as arguments of recursive functions, readers, writers, generators and pictures."""

from typing import TYPE_CHECKING, Any

from undertow.data.expressions import ARITHMETIC, BOOLEANS, LISTOPS
from undertow.data.files import load, parse_jsonl, read, save, write
from undertow.data.film_grammar import sentiment
from undertow.data.forest import Forest, join
from undertow.data.generate import arithmetic, booleans, listops
from undertow.data.nested import from_nested, to_nested
from undertow.data.parse import parse_brackets, parse_listops, parse_sexpressions
from undertow.data.unparse import to_brackets, to_jsonl, to_listops, to_sexpressions
from undertow.data.vocabulary import Vocabulary
from undertow.elsewhere import unknown_name
from undertow.tracebacks import boundary

__all__ = [
    "ARITHMETIC", "BOOLEANS", "LISTOPS", "Forest", "Vocabulary", "arithmetic", "booleans", "from_nested", "join",
    "listops", "load", "parse_brackets", "parse_jsonl", "parse_listops", "parse_sexpressions", "read", "save",
    "sentiment", "to_brackets", "to_jsonl", "to_listops", "to_nested", "to_sexpressions", "write",
]  # fmt: skip


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    @boundary
    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.data", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
