"""Objects whose annotations name themselves: `mypy --strict` and pyright accept them as in plain Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Union

import undertow as ut


@dataclass
class Node:
    value: float
    left: Node | None = None
    right: Node | None = None


@dataclass
class Branch:
    value: int
    children: list[Branch] = field(default_factory=list)


class Number(NamedTuple):
    value: float


class Product(NamedTuple):
    left: Number | Product
    right: Number | Product


Nested = Union[int, list["Nested"]]  # noqa: UP007 - mypy knows no recursive alias with |


@ut.function
def total(node: Node | None) -> float:
    if node is None:
        return 0.0
    return node.value + total(node.left) + total(node.right)


@ut.function
def size(node: Branch) -> int:
    return 1 + sum(size(child) for child in node.children)


@ut.function
def leftmost(node: Node) -> Node:
    return node if node.left is None else leftmost(node.left)


@ut.function
def product(e: Number | Product) -> float:
    if isinstance(e, Number):
        return e.value
    return product(e.left) * product(e.right)


@ut.function
def nested_sum(value: Nested) -> int:
    if isinstance(value, int):
        return value
    return sum(nested_sum(item) for item in value)


tree = Node(1.0, Node(2.0))
print(total(tree), size(Branch(1, [Branch(2)])), leftmost(tree).value, product(Product(Number(2.0), Number(3.0))))
print(nested_sum([1, [2, [3]]]), total.map([tree, None]))
