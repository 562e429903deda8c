"""Small random stateful programs whose steps race: graphs of compat.v1, and functions with lanes that share variables.

Each is a library as captured, the inputs of its main graph, and first values of its variables. They are small enough
for all their behaviors to be found.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
from tests.support.graphs import inputs_of

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1.fetches import program_of
from undertow.ir.graph import Library


class Racy(NamedTuple):
    """A program."""

    library: Library
    inputs: list[Any]
    state: dict[str, Any]


def session_graph(chance: random.Random) -> Racy:
    """Operators on two variables, calls and branches; ordered by data, and by a few control edges."""
    with tf.Graph().as_default():
        variables = [tf.Variable(5, name="x", dtype=tf.int64), tf.Variable(7, name="y", dtype=tf.int64)]
        n = tf.placeholder(tf.int64)

        @tf.function.Defun(tf.int64, func_name="step", out_names=["r"])
        def step(a: Any) -> Any:
            changed = tf.assign(variables[0], variables[0].read_value() + a)
            with tf.control_dependencies([changed]):
                return variables[1].read_value() * 1

        values: list[Any] = [n, tf.constant(2, tf.int64)]
        made: list[Any] = []
        for _ in range(chance.randint(2, 4)):
            variable, value = chance.choice(variables), chance.choice(values)
            with tf.control_dependencies([t for t in made if chance.random() < 0.25]):
                kind = chance.choice(("read", "read", "assign", "add", "sub", "cond", "call"))
                if kind == "read":
                    made.append(variable.read_value())
                elif kind == "assign":
                    made.append(tf.assign(variable, value + chance.choice((0, 1))))
                elif kind == "add":
                    made.append(tf.assign_add(variable, value))
                elif kind == "sub":
                    made.append(tf.assign_sub(variable, value * chance.choice((0, 1, 2))))
                elif kind == "call":
                    made.append(step(value))
                else:
                    made.append(_branch(chance, variable, value))
            values += [made[-1], made[-1] + 0, made[-1] * chance.choice((1, 2)) - chance.choice(values)]
        fetches = [t for t in made if chance.random() < 0.6] or made[-1:]
        fetches += [chance.choice(values) + 1] * (chance.random() < 0.4)
        captured = program_of(tf.get_default_graph(), fetches).captured
    inputs = [np.int64(3)] * len(captured.types)
    return Racy(captured.library, inputs, {"x": np.int64(5), "y": np.int64(7)})


def _branch(chance: random.Random, variable: Any, value: Any) -> Any:
    more, limit = chance.choice((0, 1)), chance.choice((2, 5, 8))
    return tf.cond(value > limit, lambda: tf.assign_add(variable, more), lambda: variable.read_value() + more)


def lanes(chance: random.Random) -> Racy:
    """A map whose lanes read, update and assign two variables, in program order; perhaps one that can fault."""
    x, y = ut.Variable(5, name="x"), ut.Variable(7, name="y")
    scale = chance.choice((0, 1, 2))
    kinds = ("read", "add", "set", "update", "both", "branch", "loop", "helper", "assert", "pure")
    plan = [
        (chance.choice(kinds), chance.choice((x, y)), chance.choice((0, 1, 2))) for _ in range(chance.randint(1, 3))
    ]

    @ut.critical_section(x, y)
    def swap(a, b, n):
        return b - n, a

    @ut.function
    def helper(n):
        return x.assign_add(n * scale) * 1 + 0

    def follow(n):
        value = n
        for kind, variable, number in plan:
            if kind == "read":
                value = value + variable.read() * scale
            elif kind == "add":
                variable.assign_add(value + number)
            elif kind == "set":
                variable.assign(value * number)
            elif kind == "update":
                value = variable.update(lambda old, v, number=number: old * 2 if v > number else old, value)
            elif kind == "both":
                value = swap(value)[number % 2]
            elif kind == "branch":
                if value > number:
                    variable.assign_sub(1)
            elif kind == "loop":
                for k in range(value % 2):
                    variable.assign_mul(k + 2)
            elif kind == "helper":
                value = helper(value) - number
            elif kind == "assert":
                assert value + number < 12, "too large"
            else:
                value = (value * 1 + 0) * number - number * value
        return value

    @ut.function
    def lane(n):
        return follow(n)

    @ut.function
    def main(ns, n):
        first = y.assign_add(n) if scale else n
        made = ut.map(lane, ns)
        return made + first * 0, x.read(), y.read() - y.read()

    args = np.array([1, 2]), 3
    return Racy(main.library(*args), inputs_of(main, args), {"x": np.int64(5), "y": np.int64(7)})


def recursions(chance: random.Random) -> Racy:
    """Lanes of recursive calls that hand values on unchanged, take some late, loop over calls, restore an array."""
    x, y = ut.Variable(5, name="x"), ut.Variable(7, name="y")
    kinds = ["loop", "restore", "late", chance.choice(("add", "read"))]
    chance.shuffle(kinds)
    number, ends = chance.choice((0, 1, 2)), chance.choice((0, 1))

    @ut.function
    def pick(data, k):
        if k <= 0:
            return data[0]
        return data[1] + pick(data, k - 1)

    @ut.function
    def search(cells, k: ut.i64) -> ut.i64:
        if k <= 0:
            return cells[0] + cells[1]
        before = cells[k % 2]
        cells[k % 2] = k
        found = search(cells, k - 1)
        cells[k % 2] = before
        return found + search(cells, k - 2)

    @ut.function
    def walk(n: ut.i64, data, late) -> ut.i64:
        if n <= ends:
            return x.assign_add(number) if number else x.read()
        value = n
        for kind in kinds:
            if kind == "loop":
                for k in range(n):
                    value = value + pick(data, k)
            elif kind == "restore":
                value = value + search(data * 1, 1)
            elif kind == "late":
                value = value + late if n > 1 else value
            elif kind == "add":
                y.assign_add(value)
            else:
                value = value + y.read()
        return walk(n - 1, data, late * 2 + pick(data, 1)) + value

    @ut.function
    def main(ns, data):
        return ut.map(lambda n: walk(n, data, n + 1), ns), x.read(), y.read()

    args = np.array([1, 2]), np.array([3, 4])
    return Racy(main.library(*args), inputs_of(main, args), {"x": np.int64(5), "y": np.int64(7)})
