"""Random graphs with derivatives of anything with respect to anything: against differences of the program itself.

Every value is a node of a random expression; a *derivative* is one too, so derivatives of derivatives come up. The
oracle evaluates the expression with NumPy, where any node can be pushed a little: that says what the derivative with
respect to a tensor in the middle of a graph is.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import undertow.compat.v1 as tf
from undertow.compat.v1 import function
from undertow.errors import GraphError
from undertow.ir.spec import check
from undertow.ops.op import find

STEP = 1e-3
SEEDS = 40


def choose(pred, a, b):
    return tf.cond(pred, lambda: a * 0.5, lambda: b + a)


def repeat(a, b):
    return tf.while_loop(lambda i, w: i < 3, lambda i, w: (i + 1, w * 0.5 + a), [0, b])[1]


def define():
    """A function that calls itself and reads a variable."""
    weight = tf.Variable(np.float64(0.7), name="weight")
    declared = function.Declare("Mix", [("a", tf.float64), ("n", tf.int32)], [("y", tf.float64)])

    @function.Defun(tf.float64, tf.int32, func_name="Mix")
    def mix(a, n):
        return tf.cond(n <= 0, lambda: tf.sin(a), lambda: weight * declared(a * 0.9, n - 1) + a)

    return weight, lambda a: mix(a, 2)


def mix_value(a, weight, n=2):
    return np.sin(a) if n <= 0 else weight * mix_value(a * 0.9, weight, n - 1) + a


OPS = {
    "add": (2, lambda a, b: a + b),
    "multiply": (2, lambda a, b: a * b),
    "sin": (1, np.sin),
    "shift": (1, lambda a: a * 0.5 + 0.3),
    "choose": (2, lambda a, b: a * 0.5 if a > 0.4137 else b + a),
    "choose_again": (2, lambda a, b: a * 0.5 if 0.1 > 0 else b + a),
    "repeat": (2, lambda a, b: ((b * 0.5 + a) * 0.5 + a) * 0.5 + a),
    "mix": (1, None),
}


class Program:
    """A random expression, as tensors and for the oracle."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        tf.reset_default_graph()
        self.weight, mix = define()
        always = tf.constant(0.1, tf.float64) > 0
        self.sources = [tf.placeholder(tf.float64, name="p"), tf.constant(0.8, tf.float64), self.weight]
        self.rows = [("source", (0.45,)), ("source", (0.8,)), ("source", (0.7,))]
        self.tensors = list(self.sources)
        write = {
            "add": lambda a, b: a + b,
            "multiply": lambda a, b: a * b,
            "sin": tf.sin,
            "shift": lambda a: a * 0.5 + 0.3,
            "choose": lambda a, b: choose(a > 0.4137, a, b),
            "choose_again": lambda a, b: choose(always, a, b),
            "repeat": repeat,
            "mix": mix,
        }
        derivatives = 0
        for _ in range(self.rng.randint(4, 9)):
            if len(self.rows) > 5 and derivatives < 3 and self.rng.random() < 0.5:
                derivatives += self.differentiate()
                continue
            name = self.rng.choice(list(OPS))
            operands = [self.rng.randrange(len(self.rows)) for _ in range(OPS[name][0])]
            self.tensors.append(write[name](*(self.tensors[k] for k in operands)))
            self.rows.append((name, tuple(operands)))
        if not derivatives:
            self.differentiate()

    def differentiate(self):
        y = self.rng.randrange(3, len(self.rows))
        xs = self.rng.sample(range(y + 1), self.rng.randint(1, min(3, y + 1)))
        made = tf.gradients(self.tensors[y], [self.tensors[x] for x in xs])
        found = 0
        for x, tensor in zip(xs, made, strict=True):
            if tensor is None:
                assert not self.depends(y, x)
                continue
            found = 1
            self.tensors.append(tensor)
            self.rows.append(("derivative", (y, x)))
        return found

    def depends(self, y, x):
        if y == x:
            return True
        name, operands = self.rows[y]
        if name == "source":
            return False
        if name == "mix" and x == 2:
            return True
        return any(self.depends(operand, x) for operand in operands[:1] if name == "derivative") or (
            name != "derivative" and any(self.depends(operand, x) for operand in operands)
        )

    def value(self, node, pushed):
        """The value of a node, with some nodes pushed."""
        return self.values(pushed)[node]

    def values(self, pushed):
        found = []
        for number, (name, operands) in enumerate(self.rows):
            if name == "source":
                value = operands[0]
            elif name == "derivative":
                y, x = operands
                ends = [self.upto(y, {**pushed, x: pushed.get(x, 0.0) + step}) for step in (STEP, -STEP)]
                value = (ends[0] - ends[1]) / (2 * STEP)
            elif name == "mix":
                value = mix_value(found[operands[0]], found[2])
            else:
                value = OPS[name][1](*(found[k] for k in operands))
            found.append(value + pushed.get(number, 0.0))
        return found

    def upto(self, node, pushed):
        whole = self.rows
        self.rows = whole[: node + 1]
        try:
            return self.values(pushed)[node]
        finally:
            self.rows = whole


@pytest.mark.parametrize("seed", range(SEEDS))
def test_derivatives_of_anything(seed):
    program = Program(seed)
    wanted = program.values({})
    order = [0] * len(program.rows)
    for number, (name, operands) in enumerate(program.rows):
        if name != "source":
            order[number] = max(order[k] for k in operands) + (name == "derivative")
    numbers = [n for n in range(len(wanted)) if order[n] <= 2]
    rng = random.Random(seed)
    feed = {program.sources[0]: 0.45}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fetched in ([n for n in numbers if order[n]], numbers, rng.sample(numbers, len(numbers) // 2)):
            tensors = [program.tensors[n] for n in fetched]
            if is_refused(tensors):
                continue
            check(tf.get_default_graph().library(tensors), lambda node, types: find(node.op).type(types, node.attrs))
            found = session.run(tensors, feed)
            np.testing.assert_allclose(found, [wanted[n] for n in fetched], rtol=1e-4, atol=1e-4)


def is_refused(tensors):
    """Is a derivative that is differentiated cut in the middle? That is told."""
    try:
        tf.get_default_graph().library(tensors)
    except GraphError as fault:
        if "inside the path" in fault.what:
            return True
        raise
    return False
