"""Heaps, queues, tables and lists of rows, as textbooks write them."""

import bisect
import functools
import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def shortest_paths(edges: list[tuple[int, int, float]], n: ut.i64, s: ut.i64):
    adj = [[] for _ in range(n)]
    for u, v, w in edges:
        adj[u].append((v, w))
    dist = [float("inf")] * n
    dist[s] = 0.0
    heap = [(0.0, s)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist[u]:
            continue
        for v, w in adj[u]:
            if d + w < dist[v]:
                dist[v] = d + w
                heapq.heappush(heap, (d + w, v))
    return dist


@ut.function
def heap_of_numbers(xs: list[int]):
    h = xs[:]
    heapq.heapify(h)
    a = heapq.heappushpop(h, 2)
    b = heapq.heapreplace(h, 9)
    return h, a, b, heapq.nsmallest(2, xs), heapq.nlargest(2, xs)


@ut.function
def kept_in_order(xs: list[int]):
    out = []
    for x in xs:
        bisect.insort(out, x)
    return (
        out,
        bisect.bisect_left(out, 3),
        bisect.bisect(out, 3),
        functools.reduce(lambda a, b: a * b, xs),
        functools.reduce(lambda a, b: a + b, xs, 100),
    )


@ut.function
def copied_rows(xs: list[list[int]]):
    a = [r[:] for r in xs]
    a[0][0] = 50
    b = [list(r) for r in xs]
    b[1].append(7)
    return a, b, xs


@ut.function
def lists_in_tuples(n: ut.i64):
    q = deque([(0, [0])])
    out = []
    while q:
        d, path = q.popleft()
        if d == n:
            out.append(path)
        else:
            q.append((d + 1, path + [d]))  # noqa: RUF005
            q.append((d + 1, path + [-d]))  # noqa: RUF005
    return out


@ut.function
def cube(n: ut.i64):
    c = [[[0] * n for _ in range(n)] for _ in range(2)]
    for k in range(2):
        for i in range(n):
            for j in range(n):
                c[k][i][j] = k + i * j
    return c, c[1][2][1], len(c[0]), sum(c[1][1])


@ut.function
def rows_by_name(n: ut.i64):
    g = [[0] * n for _ in range(n)]
    for i in range(n):
        row = g[i]
        for j in range(n):
            row[j] = i + j
        row.append(9)
        g[i].sort(reverse=True)
    return g


def filled(row, k):
    row[0] = k
    row.append(k)


@ut.function
def fill(row, k: ut.i64) -> None:
    row[0] = k
    row.append(k)


@ut.function
def rows_passed_on(n: ut.i64):
    g = [[0] * n for _ in range(n)]
    for i in range(n):
        filled(g[i], i)
        fill(g[i], i * 10)
    return g


@ut.function
def josephus(n: ut.i64, k: ut.i64):
    q = deque(range(n))
    out = []
    while len(q) > 1:
        for _ in range(k - 1):
            q.append(q.popleft())
        out.append(q.popleft())
    return out, q[0]


@ut.function
def both_ends(n: ut.i64):
    q = deque()
    for i in range(n):
        q.appendleft(i)
        q.append(-i)
    q.pop()
    q.extendleft([7, 8])
    q.extend([1])
    return list(q), len(q), q[0], q[-1]


@ut.function
def joined_sets(edges: list[tuple[int, int]], n: ut.i64):
    parent = list(range(n))

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    count = n
    for a, b in edges:
        ra, rb = find(a), find(b)
        if ra != rb:
            parent[ra] = rb
            count -= 1
    return count, parent


@dataclass
class Node:
    val: int
    left: "Node | None" = None
    right: "Node | None" = None


@ut.function
def bfs_tree(root: Node):
    out = []
    queue = deque([root])
    while queue:
        node = queue.popleft()
        out.append(node.val)
        if node.left is not None:
            queue.append(node.left)
        if node.right is not None:
            queue.append(node.right)
    return out


@ut.function
def dfs_tree(root: Node):
    out = []
    stack = [root]
    while stack:
        node = stack.pop()
        if node is None:
            continue
        out.append(node.val)
        stack.append(node.right)
        stack.append(node.left)
    return out


@ut.function
def root_to_leaf(node: "Node | None") -> list[list[int]]:
    if node is None:
        return []
    if node.left is None and node.right is None:
        return [[node.val]]
    return [[node.val] + p for p in root_to_leaf(node.left) + root_to_leaf(node.right)]  # noqa: RUF005


@ut.function
def turned_to_floats(n: ut.i64):
    a = [0] * n
    for i in range(n):
        a[i] = i / 2
    return a


@ut.function
def arrays_as_items(n: ut.i64):
    items = [np.zeros(2) for _ in range(n)]
    for i in range(n):
        items[i][0] = i
        items[i] += 1.0
    first = items[0]
    first[1] = 50.0
    return items


@ut.function
def taken_in_turns(n: ut.i64):
    a = [0]
    b = [1]
    for i in range(n):
        a, b = b, a
        a.append(i)
    return a, b


@ut.function
def unpacked(xs: list[int]):
    a, b, *c = xs
    *d, e = xs
    return a, b, c, d, e


@ut.function
def two_to_unpack(xs: list[int]):
    a, b = xs
    return a, b


class Stack:
    def __init__(self):
        self.items = []

    def push(self, x):
        self.items.append(x)

    def pop(self):
        return self.items.pop()

    def __len__(self):
        return len(self.items)


@ut.function
def stack_of_a_class(n: ut.i64):
    stack = Stack()
    groups = {"even": [], "odd": []}
    for i in range(n):
        stack.push(i * i)
        groups["even"].append(2 * i)
        groups["odd"].append(2 * i + 1)
    total = 0
    while len(stack) > 0:
        total += stack.pop()
    return total, groups


TREE = Node(5, Node(3, Node(1), Node(4)), Node(8, None, Node(9)))
PROGRAMS = [
    program(
        shortest_paths, ([(0, 1, 4.0), (0, 2, 1.0), (2, 1, 2.0), (1, 3, 5.0)], 5, 0), tags="containers loop branch"
    ),
    program(heap_of_numbers, ([5, 1, 4, 2, 8],), tags="containers loop"),
    program(kept_in_order, ([3, 1, 2, 3],), tags="containers loop"),
    program(copied_rows, ([[1, 2], [3]],), tags="containers loop"),
    program(lists_in_tuples, (2,), tags="containers loop"),
    program(cube, (3,), tags="containers loop"),
    program(rows_by_name, (3,), tags="containers loop"),
    program(rows_passed_on, (3,), tags="containers loop"),
    program(josephus, (7, 3), tags="containers loop"),
    program(both_ends, (3,), tags="containers loop"),
    program(joined_sets, ([(0, 1), (2, 3), (1, 2)], 5), tags="containers loop"),
    program(bfs_tree, (TREE,), tags="containers loop"),
    program(dfs_tree, (TREE,), tags="containers loop"),
    program(root_to_leaf, (TREE,), tags="containers recursive loop"),
    program(arrays_as_items, (3,), tags="containers arrays loop"),
    program(taken_in_turns, (4,), tags="containers loop"),
    program(unpacked, ([1, 2, 3, 4],), ([1, 2],), tags="containers"),
    program(two_to_unpack, ([1, 2, 3],), tags="containers fault"),
    program(stack_of_a_class, (4,), tags="containers loop"),
    program(turned_to_floats, (3,), tags="containers loop"),
]
