"""Random programs on every engine: they give what plain Python gives, or what reference does where Python has no say.

Beside `programs`, whose every bit is known: containers, closures, arrays whose lengths only the run knows, maps, faults
with their tracebacks, counts, and gradients.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import numpy as np
from tests.fuzz.case import Case
from tests.support import oracle
from tests.support.graphs import graphs, plain
from tests.support.native_agreement import agree
from tests.support.random_programs import random_program
from tests.support.slopes import compare_slopes, rough, smooth
from tests.support.sources import argument, write
from tests.support.vector_programs import LENGTH, loss_of, vector_program

import undertow as ut

_INPUTS = ((2, 3, 0.5, True), (1, -1, -0.0, False), (3, 0, float("nan"), True), (0, 7, float("inf"), False))


def python_run(chance: Random) -> Case:
    """All that the language has (containers, closures, arrays of run-time length, prints): what plain Python does."""
    source = write(chance)
    arguments = [tuple(argument(chance, letter) for letter in source.params) for _ in range(2)]

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            oracle.compare(source, arguments, Path(folder))

    return Case(run, f"{source.text}\n# {source.main}: {arguments}", is_valid=True)


def ways_run(chance: Random) -> Case:
    """Any width, schedule, limit and number of threads: values, faults, prints and counts of `reference`."""
    function, source = random_program(chance, invariants=True)
    args, seed = (*chance.choice(_INPUTS), -0.75, 4), chance.random()

    def run() -> None:
        ways = Random(seed)
        for graph in graphs(function, args):
            agree(graph, plain(args), ways, ordered=False)

    return Case(run, f"{source}\n# {args}", is_valid=True)


def vectors_run(chance: Random) -> Case:
    """The same for vectors and matrices, of lengths that are known or not, and for their gradients."""
    program, seed, n = vector_program(chance), chance.randrange(1 << 30), chance.randint(0, 2)
    is_gradient = chance.random() < 0.5

    def run() -> None:
        values = np.random.default_rng(seed)
        w, x, q = values.normal(size=(3 * LENGTH, LENGTH)) * 0.4, values.normal(size=LENGTH), values.normal(size=3)
        loss = loss_of(program)
        graph = next(graphs(ut.grad(loss, (0, 1)) if is_gradient else loss, (w, x, q, n)))
        agree(graph, plain((w, x, q, n)), Random(seed), 1e-8)

    return Case(run, f"{program.text}\n# n={n}, {'gradient' if is_gradient else 'value'}", is_valid=True)


def gradient_run(chance: Random) -> Case:
    """A gradient is what finite differences say, on every engine."""
    program, seed = chance.choice((smooth, rough))(chance), chance.random()
    return Case(lambda: compare_slopes(program, Random(seed)), program.text, is_valid=True)
