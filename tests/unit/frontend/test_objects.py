"""Python objects of run-time shape: what is converted, what is captured, what comes back, and what is refused."""

from __future__ import annotations

import copy
import math
import random
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import undertow as ut

ENGINES = ("waves", "reference", "demand", "expand")


@dataclass
class Node:
    value: float
    left: Node | None = None
    right: Node | None = None


@dataclass
class Branch:
    value: float
    children: list[Branch] = field(default_factory=list)
    weights: tuple[float, ...] = ()


@dataclass
class Cell:
    value: int
    next: Cell | None = None


class Shape:
    def area(self) -> float:
        raise NotImplementedError


@dataclass
class Square(Shape):
    side: float

    def area(self) -> float:
        return self.side * self.side


@dataclass
class Group(Shape):
    shapes: list[Shape]

    def area(self) -> float:
        return sum(area(shape) for shape in self.shapes)


class Pose(NamedTuple):
    at: ut.f64[2]  # type: ignore[valid-type]
    name: str
    below: tuple[Pose, ...]  # type: ignore[misc]


@ut.function
def area(shape: Square | Group) -> float:
    return shape.area()


@ut.function
def energy(pose: Pose) -> ut.f64:
    return ut.sum(pose.at * pose.at) + sum(energy(below) for below in pose.below)


Nested = int | list["Nested"]
Pair = int | tuple["Pair", "Pair"]
Floats = float | list["Floats"]


def drawn(rng: random.Random, nodes: int) -> Node | None:
    if nodes <= 0:
        return None
    left = rng.randrange(nodes)
    return Node(rng.random(), drawn(rng, left), drawn(rng, nodes - 1 - left))


def chain(length: int) -> Cell | None:
    cell = None
    for k in range(length):
        cell = Cell(k % 7, cell)
    return cell


def total_of(node: Any) -> Any:
    if node is None:
        return 0.0
    return node.value + total_of(node.left) + total_of(node.right)


@ut.function
def total(node: Node | None) -> float:
    if node is None:
        return 0.0
    return node.value + total(node.left) + total(node.right)


@ut.function
def chain_sum(cell: Cell | None) -> int:
    return 0 if cell is None else cell.value + chain_sum(cell.next)


@ut.function
def pair_sum(value: Pair) -> int:
    return value if isinstance(value, int) else pair_sum(value[0]) + pair_sum(value[1])


@ut.function
def nested_sum(value: Nested) -> int:
    return value if isinstance(value, int) else sum(nested_sum(item) for item in value)


@ut.function
def squash(node: Node | None) -> float:
    if node is None:
        return 0.5
    return math.tanh(node.value * squash(node.left) + node.value**2 * squash(node.right))


def captures(function: Any) -> int:
    return len(function.__undertow_programs__)


def test_one_capture_for_sixty_trees() -> None:
    total.clear()
    rng = random.Random(1)
    for nodes in range(60):
        tree = drawn(rng, nodes)
        assert total(tree) == pytest.approx(total_of(tree))
    assert captures(total) == 1


def test_a_map_is_one_run_that_shares_waves() -> None:
    rng = random.Random(2)
    trees = [drawn(rng, nodes) for nodes in range(60)]
    found, stats = total.map(trees, stats=True)
    assert found == pytest.approx([total_of(tree) for tree in trees])
    assert stats.waves < sum(total.run(tree, stats=True)[1].waves for tree in trees[-5:])
    assert total.map(trees, engine="python") == pytest.approx(found)
    assert total.map([]).shape == (0,)


def test_as_deep_as_memory_allows() -> None:
    cells, pairs = chain(200_000), 0
    for _ in range(50_000):
        pairs = (pairs, 1)  # type: ignore[assignment]
    assert chain_sum(cells) == sum(k % 7 for k in range(200_000))
    assert pair_sum(pairs) == 50_000
    while isinstance(pairs, tuple):  # so that Python frees it without recursion
        pairs = pairs[0]


@pytest.mark.slow
def test_linear_time() -> None:
    chain_sum(chain(10))
    took = []
    for length in (50_000, 200_000):
        cells = chain(length)
        began = time.process_time()
        chain_sum(cells)
        took.append(time.process_time() - began)
    assert took[1] < 12 * took[0] + 0.1


def test_sharing_and_cycles() -> None:
    shared = Node(1.0)
    for _ in range(60):
        shared = Node(0.0, shared, shared)
    converted = total.__undertow_arguments__([shared], {}).converted
    assert converted is not None and len(converted.objects) == 61

    @ut.function
    def around(cell: Cell, times: int) -> int:
        result = 0
        for _ in range(times):
            result = 10 * result + cell.value
            cell = cell.next  # type: ignore[assignment]
        return result

    ring = Cell(1, Cell(2))
    assert ring.next is not None
    ring.next.next = ring
    assert around(ring, 5) == 12121


def test_a_list_that_holds_itself() -> None:
    @ut.function
    def firsts(value: Nested, times: int) -> int:
        result = 0
        for _ in range(times):
            result += value[0]
            value = value[1]
        return result

    ring: Any = [3]
    ring.append(ring)
    assert firsts(ring, 4) == 12


@pytest.mark.parametrize("engine", ENGINES)
def test_the_callers_own_objects_come_back(engine: str) -> None:
    @ut.function
    def largest(node: Branch) -> Branch:
        best = node
        for child in node.children:
            other = largest(child)
            if other.value > best.value:
                best = other
        return best

    @ut.function
    def ends(cell: Cell) -> tuple[Cell, Cell | None, int]:
        before = None
        count = 1
        while cell.next is not None:
            before = cell
            cell = cell.next
            count += 1
        return cell, before, count

    root = Branch(1.0, [Branch(2.0), Branch(3.0, [Branch(9.0), Branch(4.0)])])
    assert largest.run(root, engine=engine) is root.children[1].children[0]
    assert largest.map([root, root.children[0]], engine=engine) == [root.children[1].children[0], root.children[0]]
    cells = chain(3)
    assert cells is not None and cells.next is not None
    last, before, count = ends.run(cells, engine=engine)
    assert last is cells.next.next and before is cells.next and count == 3
    assert ends.run(Cell(1), engine=engine)[1] is None


def test_changes_of_the_objects_are_seen_by_the_next_call() -> None:
    tree = Node(1.0, Node(2.0))
    assert total(tree) == 3.0
    tree.left.value = 5.0  # type: ignore[union-attr]
    tree.right = Node(10.0)
    assert total(tree) == 16.0


def test_methods_run_on_their_object_and_of_its_class() -> None:
    assert area(Group([Square(2.0), Group([Square(3.0)])])) == 13.0

    class Link:
        def __init__(self, value: float, following: Link | None = None) -> None:
            self.value, self.following = value, following

        @ut.function
        def total(self) -> float:
            return self.value + (self.following.total() if self.following is not None else 0.0)

    assert Link(1.0, Link(2.0)).total() == 3.0


def test_work_lists_of_objects() -> None:
    @ut.function
    def levels(root: Branch) -> list[int]:
        level, widths = [root], []
        while level:
            widths.append(len(level))
            following = []
            for node in level:
                for child in node.children:
                    following.append(child)
            level = following
        return widths

    levels.__undertow_definition__.closure.annotations.pop("return")
    root = Branch(1.0, [Branch(2.0), Branch(3.0, [Branch(9.0), Branch(4.0), Branch(5.0)])])
    assert levels(root) == [1, 2, 3]


# -- gradients -----------------------------------------------------------------------------------------------


def slope(function: Any, tree: Any, owner: Any, name: str) -> float:
    before, sides = getattr(owner, name), []
    for step in (1e-6, -1e-6):
        setattr(owner, name, before + step)
        sides.append(function.run(tree, engine="python"))
    setattr(owner, name, before)
    return (sides[0] - sides[1]) / 2e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_gradients_are_objects_like_the_argument(engine: str) -> None:
    shared = Node(0.3)
    tree = Node(0.7, Node(0.2, shared), Node(0.9, shared))
    found = ut.grad(squash).run(tree, engine=engine)
    assert found.left.left is found.right.left and found.left.right is None
    for gradient, node in ((found, tree), (found.left, tree.left), (found.left.left, shared)):
        assert gradient.value == pytest.approx(slope(squash, tree, node, "value"), rel=1e-6)


def test_gradients_of_lists_tuples_and_several_arguments() -> None:
    @ut.function
    def weighted(w: float, node: Branch, other: Node) -> float:
        return node.value * w + other.value * sum(node.weights) + sum(weighted(w, c, other) for c in node.children)

    tree = Branch(1.0, [Branch(2.0, [], (3.0, 4.0))], (5.0,))
    dw, dtree, dother = ut.grad(weighted, argnums=(0, 1, 2))(10.0, tree, Node(2.0))
    assert dw == 3.0 and dother.value == 12.0
    assert dtree.weights == (2.0,) and dtree.children[0].weights == (2.0, 2.0) and dtree.children[0].value == 10.0

    @ut.function
    def squares(value: Floats) -> float:
        return sum(squares(item) for item in value) if isinstance(value, list) else value * value

    assert ut.grad(squares)([1.0, [2.0, 3]]) == [2.0, [4.0, 6.0]]
    assert [g.value for g in ut.grad(squash).map([Node(1.0), Node(0.5)])] == pytest.approx(
        [ut.grad(squash)(Node(v)).value for v in (1.0, 0.5)]
    )


def test_gradients_of_named_tuples_and_arrays() -> None:
    found = ut.grad(energy)(Pose(np.array([1.0, 2.0]), "a", (Pose(np.array([3.0, 4.0]), "b", ()),)))
    np.testing.assert_array_equal(found.at, [2.0, 4.0])
    np.testing.assert_array_equal(found.below[0].at, [6.0, 8.0])
    assert found.name is None and type(found).__name__ == "Pose"


@pytest.mark.parametrize("derive", [ut.vjp, lambda f, x: ut.jvp(f, (x,), (None,))])
def test_other_derivatives_are_refused(derive: Any) -> None:
    with pytest.raises(ut.TypeMismatch, match="does not take objects"):
        derive(squash, Node(1.0))


# -- what does not fit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "value", "where"),
    [
        (total, Node(1.0, Node("x")), r"`node\.left\.value` of argument `node` of `total` is 'x'"),  # type: ignore[arg-type]
        (total, Node(1.0, Cell(2)), r"`node\.left` of argument `node` of `total` is a Cell"),  # type: ignore[arg-type]
        (total, 5, "argument `node` of `total` is 5"),
        (nested_sum, [1, [2, [2.5]]], r"`value\[1\]\[1\]\[0\]` of argument"),
        (nested_sum, [1, [True, None]], r"`value\[1\]\[1\]` of argument"),
        (pair_sum, (1, (2, 3, 4)), r"`value\[1\]` of argument `value` of `pair_sum` is a tuple of length 3"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(function: Any, value: Any, where: str) -> None:
    with pytest.raises(ut.TypeMismatch, match=where):
        function(value)


def test_long_paths_are_cut() -> None:
    cell = Cell("wrong")  # type: ignore[arg-type]
    for k in range(5000):
        cell = Cell(k, cell)
    with pytest.raises(ut.TypeMismatch, match=r"`cell\.next\.next.* more .*\.next\.value` of argument `cell`"):
        chain_sum(cell)


@pytest.mark.parametrize("engine", ENGINES)
def test_reading_none_is_an_attribute_error_of_the_run(engine: str) -> None:
    @ut.function
    def left_value(node: Node) -> float:
        return node.left.value  # type: ignore[union-attr]

    @ut.function
    def second(node: Branch, k: int) -> float:
        return node.children[k].value

    assert left_value.run(Node(1.0, Node(3.0)), engine=engine) == 3.0
    with pytest.raises(AttributeError, match="this object is None here"):
        left_value.run(Node(1.0), engine=engine)
    root = Branch(0.0, [Branch(1.0), Branch(2.0)])
    assert [second.run(root, k, engine=engine) for k in (0, 1, -1, -2)] == [1.0, 2.0, 2.0, 1.0]
    for k in (2, -3):
        with pytest.raises(IndexError, match="list index out of range"):
            second.run(root, k, engine=engine)


def test_questions_about_an_object() -> None:
    @ut.function
    def asked(shape: Square | Group) -> tuple[bool, bool, float, float]:
        own = getattr(shape, "side", -1.0)
        return hasattr(shape, "side"), hasattr(shape, "number"), own, getattr(shape, "value", 2.0)

    assert asked(Square(3.0)) == (True, False, 3.0, 2.0)
    assert asked(Group([])) == (False, False, -1.0, 2.0)


@pytest.mark.parametrize("ask", [id, vars, hash, repr, copy.copy, dir, lambda node: delattr(node, "value")])
def test_code_that_is_not_captured_gets_no_handle(ask: Any) -> None:
    @ut.function
    def asking(node: Node) -> Any:
        return ask(node)

    asking.__undertow_definition__.closure.annotations.pop("return")
    with pytest.raises(ut.CaptureError):
        asking(Node(1.0))


def test_functions_of_objects_cannot_be_saved(tmp_path: Any) -> None:
    total(Node(1.0))
    with pytest.raises(ut.SaveError, match="annotation names itself"):
        ut.save(total, tmp_path / "total.ut")
