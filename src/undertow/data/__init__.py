"""Trees as data: forests that recursive functions take, readers, writers, generators and pictures."""

from undertow.data.forest import Forest as Forest
from undertow.data.listops import SYMBOLS as LISTOPS
from undertow.data.nested import from_nested as from_nested
from undertow.data.nested import to_nested as to_nested
from undertow.data.parse import parse_brackets as parse_brackets
from undertow.data.parse import parse_listops as parse_listops
from undertow.data.parse import parse_sexpressions as parse_sexpressions
from undertow.data.read import parse_jsonl as parse_jsonl
from undertow.data.read import read as read
from undertow.data.vocabulary import Vocabulary as Vocabulary
from undertow.data.write import load as load
from undertow.data.write import save as save
from undertow.data.write import to_brackets as to_brackets
from undertow.data.write import to_sexpressions as to_sexpressions

__all__ = [
    "LISTOPS", "Forest", "Vocabulary", "from_nested", "load", "parse_brackets", "parse_jsonl", "parse_listops",
    "parse_sexpressions", "read", "save", "to_brackets", "to_nested", "to_sexpressions",
]  # fmt: skip
