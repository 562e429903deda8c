"""Trees as data: forests of arrays, readers, generators, pictures."""

from undertow.data.forest import Forest as Forest
from undertow.data.vocabulary import Vocabulary as Vocabulary

__all__ = ["Forest", "Vocabulary"]
