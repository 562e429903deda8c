"""Programs over Python objects of run-time shape: trees, lists and graphs, whose annotations name themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple, TypedDict, Union

import numpy as np
from tests.programs.program import program

import undertow as ut

# --------------------------------------------------------------------------------------------------------------
# Binary trees


@dataclass
class Node:
    value: float
    left: Node | None = None
    right: Node | None = None


@ut.function
def node_total(node: Node | None) -> float:
    if node is None:
        return 0.0
    return node.value + node_total(node.left) + node_total(node.right)


@ut.function
def node_depth(node: Node | None) -> int:
    if not node:
        return 0
    return 1 + max(node_depth(node.left), node_depth(node.right))


@ut.function
def node_leaves(node: Node) -> int:
    if node.left is None and node.right is None:
        return 1
    count = 0
    if node.left:
        count += node_leaves(node.left)
    if node.right:
        count += node_leaves(node.right)
    return count


@ut.function
def is_search_tree(node: Node | None, low: float = -math.inf, high: float = math.inf) -> bool:
    if node is None:
        return True
    if not (low < node.value < high):
        return False
    return is_search_tree(node.left, low, node.value) and is_search_tree(node.right, node.value, high)


@ut.function
def leftmost_node(node: Node) -> Node:
    return node if node.left is None else leftmost_node(node.left)


@ut.function
def find_node(node: Node | None, value: float) -> Node | None:
    if node is None or node.value == value:
        return node
    found = find_node(node.left, value)
    if found is not None:
        return found
    return find_node(node.right, value)


@ut.function
def search_node(node: Node | None, value: float) -> bool:
    while node is not None and node.value != value:
        if value < node.value:
            node = node.left
        else:
            node = node.right
    return node is not None


@ut.function
def node_diameter(node: Node | None) -> tuple[int, int]:
    if node is None:
        return 0, 0
    left_depth, left_best = node_diameter(node.left)
    right_depth, right_best = node_diameter(node.right)
    return 1 + max(left_depth, right_depth), max(left_best, right_best, left_depth + right_depth)


@ut.function
def are_mirrored(a: Node | None, b: Node | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.value == b.value and are_mirrored(a.left, b.right) and are_mirrored(a.right, b.left)


@ut.function
def weighted_nodes(w: float, node: Node | None) -> float:
    if node is None:
        return 1.0
    return math.tanh(w * node.value * weighted_nodes(w, node.left) + weighted_nodes(w, node.right))


@ut.function
def weighted_nodes_gradient(w: float, node: Node | None):
    return ut.grad(weighted_nodes)(w, node)


@ut.function
def weights_of_none(w: float) -> float:
    return weighted_nodes(w, None) + node_diameter(None)[0]


def search_tree(*values: float) -> Node | None:
    root = None
    for value in values:
        new = Node(value)
        if root is None:
            root = new
            continue
        at = root
        while (below := at.left if value < at.value else at.right) is not None:
            at = below
        if value < at.value:
            at.left = new
        else:
            at.right = new
    return root


FEW, MORE = search_tree(2.0, 1.0, 3.0), search_tree(5.0, 2.0, 8.0, 1.0, 3.0, 7.0, 9.0, 4.0, 6.0)
ONE, SHARED = Node(2.5), Node(1.0, Node(2.0))
DAG = Node(3.0, SHARED, Node(4.0, SHARED, SHARED))


# --------------------------------------------------------------------------------------------------------------
# Children in lists and tuples


@dataclass
class Branch:
    value: int
    children: list[Branch] = field(default_factory=list)
    weights: tuple[float, ...] = ()

    def own_weight(self) -> float:
        return sum(self.weights)

    @property
    def is_leaf(self) -> bool:
        return not self.children


@ut.function
def branch_total(node: Branch) -> int:
    return node.value + sum(branch_total(child) for child in node.children)


@ut.function
def branch_height(node: Branch) -> int:
    return 1 + max((branch_height(child) for child in node.children), default=0)


@ut.function
def branch_leaves(node: Branch) -> int:
    if node.is_leaf:
        return 1
    count = 0
    for child in node.children:
        count += branch_leaves(child)
    return count


@ut.function
def branch_by_index(node: Branch) -> int:
    total = node.value
    for i in range(len(node.children)):
        total = total * 3 + branch_by_index(node.children[i])
    return total


@ut.function
def last_branch(node: Branch) -> Branch:
    return last_branch(node.children[-1]) if len(node.children) > 0 else node


@ut.function
def branch_weight(node: Branch) -> float:
    return node.own_weight() + sum(branch_weight(child) for child in node.children)


@ut.function
def branches_total(nodes: list[Branch]) -> int:
    return sum(node.value + branches_total(node.children) for node in nodes)


@ut.function
def branch_stack(root: Branch) -> int:
    total = 0
    stack = [root]
    while stack:
        node = stack.pop()
        total = total * 2 + node.value
        for child in node.children:
            stack.append(child)
    return total


@ut.function
def branch_comprehension(node: Branch) -> int:
    values = [branch_comprehension(child) for child in node.children if child.value != 2]
    best = 0
    for value in values:
        best = max(best, value)
    return best + node.value


@ut.function
def branch_levels(root: Branch) -> int:
    total = 0
    level = [root]
    while level:
        total = total * 10 + len(level)
        level = [child for node in level for child in node.children]
    return total


@dataclass
class Scaled:
    root: Node | None
    scale: float


@ut.function
def scaled_total(scaled: Scaled, more: tuple[Node, float]) -> float:
    return node_total(scaled.root) * scaled.scale + more[0].value * more[1]


@ut.function
def branch_has(node: Branch, value: int) -> bool:
    return node.value == value or any(branch_has(child, value) for child in node.children)


@ut.function
def branch_pairs(a: Branch, b: Branch) -> int:
    total = a.value * b.value
    for x, y in zip(a.children, b.children):  # noqa: B905
        total += branch_pairs(x, y)
    for k, x in enumerate(reversed(a.children)):
        total += k * x.value
    return total


@ut.function
def branch_third(node: Branch) -> int:
    return node.children[2].value


LEAVES = [Branch(k, weights=(0.5,) * k) for k in range(4)]
BUSH = Branch(7, [Branch(1, LEAVES, (1.0, 2.0)), Branch(2), Branch(3, [Branch(9, LEAVES[:2])])])

# --------------------------------------------------------------------------------------------------------------
# Linked lists, and graphs with cycles


@dataclass
class Link:
    value: int
    next: Link | None = None


@ut.function
def link_sum(link: Link | None) -> int:
    return 0 if link is None else link.value + link_sum(link.next)


@ut.function
def link_loop(link: Link | None) -> int:
    total = 0
    while link:
        total = total * 3 + link.value
        link = link.next
    return total


@ut.function
def middle_link(head: Link) -> int:
    slow = fast = head
    while fast and fast.next:
        slow = slow.next
        fast = fast.next.next
    return slow.value


@ut.function
def last_but_one(head: Link) -> Link | None:
    before = None
    link = head
    while link.next is not None:
        before = link
        link = link.next
    return before


@ut.function
def has_cycle(head: Link | None) -> bool:
    slow = fast = head
    while fast is not None and fast.next is not None:
        slow = slow.next
        fast = fast.next.next
        if slow is fast:
            return True
    return False


@ut.function
def merged_digits(a: Link | None, b: Link | None) -> int:
    if a is None and b is None:
        return 0
    if b is None or (a is not None and a.value <= b.value):
        return a.value + 10 * merged_digits(a.next, b)
    return b.value + 10 * merged_digits(a, b.next)


def links(*values: int) -> Link | None:
    link = None
    for value in reversed(values):
        link = Link(value, link)
    return link


RING = links(1, 2, 3)
RING.next.next.next = RING.next

# --------------------------------------------------------------------------------------------------------------
# Nested tuples and lists

Nested = int | list["Nested"]
Pair = int | tuple["Pair", "Pair"]
Sexp = Union[str, float, tuple["Sexp", ...]]  # noqa: UP007 - as people write it


@ut.function
def nested_sum(value: Nested) -> int:
    if isinstance(value, int):
        return value
    return sum(nested_sum(item) for item in value)


@ut.function
def nested_depth(value: Nested) -> int:
    return 1 + max((nested_depth(item) for item in value), default=0) if isinstance(value, list) else 0


@ut.function
def nested_products(value: Nested, depth: int = 1) -> int:
    if not isinstance(value, list):
        return value * depth
    total = 0
    for item in value:
        total += nested_products(item, depth + 1)
    return total


@ut.function
def pair_difference(value: Pair) -> int:
    if isinstance(value, tuple):
        left, right = value
        return pair_difference(left) - pair_difference(right)
    return value


@ut.function
def pair_depth(value: Pair) -> int:
    return 0 if isinstance(value, int) else 1 + max(pair_depth(value[0]), pair_depth(value[1]))


@ut.function
def pair_places(value: Pair) -> int:
    match value:
        case (left, right):
            return 2 * pair_places(left) + 3 * pair_places(right)
        case int(number):
            return number
        case _:
            return -1


@ut.function
def evaluate_sexp(value: Sexp) -> float:
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        return 0.0
    if value[0] == "+":
        total = 0.0
        for i in range(1, len(value)):
            total += evaluate_sexp(value[i])
        return total
    product = 1.0
    for i in range(1, len(value)):
        product *= evaluate_sexp(value[i])
    return product


# --------------------------------------------------------------------------------------------------------------
# Classes of several kinds


class Expression:
    pass


@dataclass
class Number(Expression):
    value: float

    @ut.function
    def cost(self) -> int:
        return 1


@dataclass
class Sum(Expression):
    left: Expression
    right: Expression

    @ut.function
    def cost(self) -> int:
        return 1 + cost_of(self.left) + cost_of(self.right)


@dataclass
class Negative(Expression):
    argument: Expression

    @ut.function
    def cost(self) -> int:
        return 2 + cost_of(self.argument)


@ut.function
def evaluate_expression(e: Expression) -> float:
    if isinstance(e, Number):
        return e.value
    if isinstance(e, Sum):
        return evaluate_expression(e.left) + evaluate_expression(e.right)
    if isinstance(e, Negative):
        return -evaluate_expression(e.argument)
    return 0.0


@ut.function
def match_expression(e: Expression) -> float:
    match e:
        case Number(value):
            return value
        case Sum(left=Number(value=0.0), right=other):
            return match_expression(other) + 100.0
        case Sum(left, right):
            return match_expression(left) + match_expression(right)
        case Negative(argument):
            return -match_expression(argument)
    return 0.0


@ut.function
def cost_of(e: Number | Sum | Negative) -> int:
    return e.cost()


class Leaf(NamedTuple):
    value: float


class Operation(NamedTuple):
    op: Literal["+", "-", "*"]
    left: Leaf | Operation
    right: Leaf | Operation


@ut.function
def evaluate_operation(e: Leaf | Operation) -> float:
    if isinstance(e, Leaf):
        return e.value
    op, left, right = e
    a, b = evaluate_operation(left), evaluate_operation(right)
    if op == "+":
        return a + b
    return a - b if op in ("-",) else a * b


class Gate(Enum):
    AND = 1
    OR = 2


@dataclass
class Circuit:
    gate: Gate
    name: str
    value: bool
    inputs: list[Circuit] = field(default_factory=list)


@ut.function
def evaluate_circuit(c: Circuit) -> bool:
    if not c.inputs:
        return c.value and c.name != "broken"
    if c.gate is Gate.AND:
        return all(evaluate_circuit(x) for x in c.inputs)
    return any(evaluate_circuit(x) for x in c.inputs)


@dataclass
class Statement:
    """Statements hold expressions, and expressions blocks of statements."""

    repeat: int
    value: Block


@dataclass
class Block:
    number: int
    body: list[Statement] = field(default_factory=list)


@ut.function
def run_block(block: Block) -> int:
    return block.number + sum(run_statement(s) for s in block.body)


@ut.function
def run_statement(statement: Statement) -> int:
    total = 0
    for _ in range(statement.repeat):
        total += run_block(statement.value)
    return total


class Entry(TypedDict):
    size: int
    entries: list[Entry]


@ut.function
def entry_size(entry: Entry) -> int:
    total = entry["size"]
    for inner in entry["entries"]:
        total += entry_size(inner)
    return total


@dataclass
class Body:
    position: ut.f64[2]
    mass: ut.f64
    parts: tuple[Body, ...] = ()


@ut.function
def moment(body: Body) -> ut.f64[2]:
    total = body.position * body.mass
    for part in body.parts:
        total = total + moment(part)
    return total


class TreeNode:
    def __init__(self, val: int = 0, left: TreeNode | None = None, right: TreeNode | None = None):
        self.val, self.left, self.right = val, left, right


@ut.function
def has_path_sum(root: TreeNode | None, target: int) -> bool:
    if root is None:
        return False
    if root.left is None and root.right is None:
        return root.val == target
    return has_path_sum(root.left, target - root.val) or has_path_sum(root.right, target - root.val)


@ut.function
def map_children(node: Branch) -> int:
    return node.value + ut.sum(ut.map(map_children, node.children))


LETTERS = TreeNode(5, TreeNode(4, TreeNode(11, TreeNode(7), TreeNode(2))), TreeNode(8, TreeNode(13), TreeNode(4)))
EXPRESSION = Sum(Sum(Number(0.0), Number(2.0)), Negative(Sum(Number(4.0), Negative(Number(1.5)))))
OPERATION = Operation("*", Operation("+", Leaf(1.5), Leaf(2.0)), Operation("-", Leaf(1.0), Leaf(4.0)))
ON, OFF = Circuit(Gate.AND, "on", True), Circuit(Gate.AND, "off", False)
CIRCUIT = Circuit(Gate.OR, "", False, [Circuit(Gate.AND, "", True, [ON, OFF]), Circuit(Gate.AND, "", True, [ON, ON])])
BLOCK = Block(1, [Statement(2, Block(10, [Statement(3, Block(5))])), Statement(0, Block(7))])
ENTRY: Entry = {
    "size": 1,
    "entries": [{"size": 2, "entries": []}, {"size": 4, "entries": [{"size": 8, "entries": []}]}],
}
BODY = Body(np.array([1.0, 2.0]), np.float64(2.0), (Body(np.array([0.5, 0.0]), np.float64(3.0)),))

PROGRAMS = (
    program(node_total, (None,), (ONE,), (MORE,), (DAG,), tags="recursive containers branch"),
    program(node_depth, (None,), (MORE,), tags="recursive containers"),
    program(node_leaves, (ONE,), (MORE,), tags="recursive containers"),
    program(is_search_tree, (MORE,), (DAG,), tags="recursive containers"),
    program(leftmost_node, (MORE,), (ONE,), tags="recursive containers"),
    program(find_node, (MORE, 7.0), (MORE, 7.5), (None, 1.0), tags="recursive containers"),
    program(search_node, (MORE, 7.0), (MORE, 7.5), tags="loop containers"),
    program(node_diameter, (MORE,), tags="recursive containers"),
    program(are_mirrored, (FEW, FEW), (Node(1.0, ONE, ONE), Node(1.0, ONE, ONE)), tags="recursive containers"),
    program(node_total, ([None, ONE, MORE, DAG],), tags="recursive containers map", name="map_nodes", by="map"),
    program(
        find_node,
        ([FEW, MORE], [2.0, 8.0]),
        tags="recursive containers map",
        name="map_find_node",
        by="map",
        stated=[[FEW, MORE.right]],
    ),
    program(weighted_nodes, (0.5, MORE), (0.5, DAG), tags="recursive containers"),
    program(weights_of_none, (0.5,), tags="recursive containers"),
    program(branch_total, (BUSH,), (LEAVES[2],), tags="recursive containers"),
    program(branch_height, (BUSH,), tags="recursive containers"),
    program(branch_leaves, (BUSH,), tags="recursive containers"),
    program(branch_by_index, (BUSH,), tags="recursive containers loop"),
    program(last_branch, (BUSH,), tags="recursive containers"),
    program(branch_weight, (BUSH,), tags="recursive containers"),
    program(branches_total, ([BUSH, *LEAVES],), ([],), tags="recursive containers"),
    program(branch_stack, (BUSH,), tags="loop containers"),
    program(branch_has, (BUSH, 9), (BUSH, 8), tags="recursive containers"),
    program(branch_comprehension, (BUSH,), tags="recursive containers map"),
    program(branch_levels, (BUSH,), tags="loop containers"),
    program(scaled_total, (Scaled(MORE, 2.0), (ONE, 3.0)), tags="containers"),
    program(branch_pairs, (BUSH, BUSH.children[0]), tags="recursive containers"),
    program(branch_third, (BUSH,), tags="containers"),
    program(branch_third, (LEAVES[0],), tags="containers fault", name="branch_without_third"),
    program(map_children, (BUSH,), tags="recursive containers map", stated=[29]),
    program(link_sum, (links(3, 1, 4, 1, 5),), (None,), tags="recursive containers"),
    program(link_loop, (links(3, 1, 4, 1, 5),), (None,), tags="loop containers"),
    program(middle_link, (links(3, 1, 4, 1, 5),), (links(3),), tags="loop containers"),
    program(last_but_one, (links(3, 1, 4, 1, 5),), (links(3),), tags="loop containers"),
    program(has_cycle, (links(1, 2),), (RING,), (None,), tags="loop containers"),
    program(merged_digits, (links(1, 4, 6), links(2, 3, 9)), tags="recursive containers"),
    program(nested_sum, ([1, [2, [], [3, [4]]], 5],), (7,), tags="recursive containers"),
    program(nested_depth, ([1, [2, [], [3, [4]]], 5],), ([],), (3,), tags="recursive containers"),
    program(nested_products, ([1, [4, [6]]],), tags="recursive containers"),
    program(pair_difference, (((1, 2), (3, (4, 5))),), (1,), tags="recursive containers"),
    program(pair_depth, (((1, 2), (3, (4, 5))),), tags="recursive containers"),
    program(pair_places, (((1, 2), (3, (4, 5))),), tags="recursive containers"),
    program(evaluate_sexp, (("+", 1.0, ("*", 2.0, 3.5, ("+", 1.0)), 0.5),), tags="recursive containers"),
    program(evaluate_expression, (EXPRESSION,), tags="recursive containers"),
    program(match_expression, (EXPRESSION,), tags="recursive containers"),
    program(cost_of, (EXPRESSION,), tags="mutual containers"),
    program(evaluate_operation, (OPERATION,), (Leaf(1.0),), tags="recursive containers"),
    program(evaluate_circuit, (CIRCUIT,), (OFF,), tags="recursive containers"),
    program(run_block, (BLOCK,), tags="mutual containers"),
    program(entry_size, (ENTRY,), tags="recursive containers"),
    program(moment, (BODY,), tags="recursive containers arrays"),
    program(has_path_sum, (LETTERS, 22), (LETTERS, 20), tags="recursive containers"),
)
