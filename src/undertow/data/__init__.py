"""Trees as data: forests that recursive functions take, readers, writers, generators and pictures."""

from undertow.data.expressions import ARITHMETIC as ARITHMETIC
from undertow.data.expressions import BOOLEANS as BOOLEANS
from undertow.data.expressions import LISTOPS as LISTOPS
from undertow.data.files import load as load
from undertow.data.files import parse_jsonl as parse_jsonl
from undertow.data.files import read as read
from undertow.data.files import save as save
from undertow.data.files import write as write
from undertow.data.film_grammar import sentiment as sentiment
from undertow.data.forest import Forest as Forest
from undertow.data.forest import join as join
from undertow.data.generate import arithmetic as arithmetic
from undertow.data.generate import booleans as booleans
from undertow.data.generate import listops as listops
from undertow.data.nested import from_nested as from_nested
from undertow.data.nested import to_nested as to_nested
from undertow.data.parse import parse_brackets as parse_brackets
from undertow.data.parse import parse_listops as parse_listops
from undertow.data.parse import parse_sexpressions as parse_sexpressions
from undertow.data.unparse import to_brackets as to_brackets
from undertow.data.unparse import to_jsonl as to_jsonl
from undertow.data.unparse import to_listops as to_listops
from undertow.data.unparse import to_sexpressions as to_sexpressions
from undertow.data.vocabulary import Vocabulary as Vocabulary

__all__ = [
    "ARITHMETIC",
    "BOOLEANS",
    "LISTOPS",
    "Forest",
    "Vocabulary",
    "arithmetic",
    "booleans",
    "from_nested",
    "join",
    "listops",
    "load",
    "parse_brackets",
    "parse_jsonl",
    "parse_listops",
    "parse_sexpressions",
    "read",
    "save",
    "sentiment",
    "to_brackets",
    "to_jsonl",
    "to_listops",
    "to_nested",
    "to_sexpressions",
    "write",
]  # fmt: skip
