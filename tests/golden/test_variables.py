"""Variables in the text of a graph and in its picture are what they were; `pytest tests/golden --update` rewrites them.

The program is Figure 1 of Abadi, Isard and Murray: a Write, two Assign-Add that no edge orders, a Read after both.

    b ──► Write(x) ┄┬┄► Assign-Add(x) ◄── Project(Split(c))    ┄► Read(x) ──►
                    └┄► Assign-Add(x) ◄── Project(Split(c))  ┄┄┘
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import undertow as ut
import undertow.compat.v1 as tf
from undertow.compat.v1.fetches import program_of
from undertow.ir.graph import Library
from undertow.ir.text import dump, parse
from undertow.passes.flatten import flatten
from undertow.viz.dot import dot

FOLDER = Path(__file__).parent / "variables"


def figure_1() -> Library:
    with tf.Graph().as_default():
        x = tf.Variable(0.0, name="x", dtype=tf.float64)
        b, c = tf.placeholder(tf.float64, name="b"), tf.placeholder(tf.float64, [2], name="c")
        with tf.control_dependencies([tf.assign(x, b)]):
            both = [tf.assign_add(x, tf.square(c[k])) for k in range(2)]
        with tf.control_dependencies(both):
            return program_of(tf.get_default_graph(), x.read_value()).captured.library


def sections() -> Library:
    """A section over two variables, an update of one, a table of rows, in a branch and outside."""
    a, b, rows = ut.Variable(1, name="a"), ut.Variable(2, name="b"), ut.Variable(np.zeros((3, 2)), name="my rows")

    @ut.critical_section(a, b)
    def swap(a, b):
        return b, a

    @ut.function
    def main(n):
        if n > a:
            swap()
        b.update(lambda old, n: old * n, n)
        rows.assign_rows_add([n], np.ones((1, 2)))
        return rows.take([n]), a.read()

    return main.library(1)


def check(name: str, library: Library, golden: Callable[..., None]) -> None:
    static = flatten(library, name)
    for kind, text in (("library", dump(library, spans=False)), ("static", dump(static, spans=False))):
        golden(FOLDER / f"{name}.{kind}.txt", text)
        assert dump(parse(text), spans=False) == text
    assert parse(dump(library)) == library and parse(dump(static)) == static
    golden(
        FOLDER / f"{name}.dot", "\n".join(line.partition(" tooltip=")[0] for line in dot(static).splitlines()) + "\n"
    )


def test_figure_1(golden: Callable[..., None]) -> None:
    check("figure_1", figure_1(), golden)


def test_sections(golden: Callable[..., None]) -> None:
    check("sections", sections(), golden)
