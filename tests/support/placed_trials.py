"""Random programs of all kinds, each with calls of it: to be run whole and in parts."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tests.programs.program import Plain, TooManyCalls, import_plain
from tests.support.changing_programs import LENGTH as CHANGING
from tests.support.changing_programs import changing_program
from tests.support.exact_programs import exact_arguments, exact_program
from tests.support.random_programs import random_program
from tests.support.slopes import ROUGH_INPUTS, rough, smooth
from tests.support.sources import argument, write
from tests.support.vector_programs import LENGTH, loss_of, vector_program
from tests.support.written import function_of, load_text, names_of

import undertow as ut

MOST_CALLS = 150  # of one run


@dataclass(frozen=True, eq=False)
class Trial:
    """A program and calls of it."""

    text: str
    function: Any
    calls: list[tuple[Any, ...]]
    tolerance: float = 1e-12
    seed: int | None = None  # for draws
    variables: list[ut.Variable] = field(default_factory=list)


def python(chance: Random, folder: Path) -> Trial:
    """Containers, closures, early returns, mutual recursion: calls of a program that end soon."""
    source = write(chance)
    arguments = [tuple(argument(chance, letter) for letter in source.params) for _ in range(2)]
    module = load_text(source.text, folder)
    name = f"{module.__name__}~plain"
    plain = getattr(import_plain(str(module.__file__), name), source.main)
    calls = [(fuel, *args) for args in arguments for fuel in (1, 3) if _ends_soon(plain, (fuel, *args))]
    sys.modules.pop(name, None)
    return Trial(source.text, getattr(module, source.main), calls)


def _ends_soon(plain: Plain, args: tuple[Any, ...]) -> bool:
    Plain.calls, Plain.most_calls = 0, MOST_CALLS
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            plain(*args)
    except TooManyCalls:
        return False
    finally:
        Plain.most_calls = float("inf")
    return True


def effects(chance: Random, folder: Path) -> Trial:
    """Calls, branches and loops that print."""
    function, text = random_program(chance)
    return Trial(text, function, [args[:4] for args in ROUGH_INPUTS])


def invariants(chance: Random, folder: Path) -> Trial:
    """What most calls hand on as it is; maps."""
    function, text = random_program(chance, effects=False, invariants=True)
    return Trial(text, function, list(ROUGH_INPUTS))


def draws(chance: Random, folder: Path) -> Trial:
    """Many places draw random numbers."""
    _, text = random_program(chance, invariants=True)
    for word in ("ut.floor(", "ut.tanh(", "ut.sum("):
        text = text.replace(word, f"ut.random.uniform() + {word}")
    return Trial(text, function_of(text, "f0"), list(ROUGH_INPUTS), seed=chance.randrange(100))


def exact(chance: Random, folder: Path) -> Trial:
    """Every bit is known; some have a variable."""
    program = exact_program(chance)
    space = names_of(program.text)
    variables = [space["S"]] if program.has_state else []
    return Trial(program.text, space["f0"], [exact_arguments(chance) for _ in range(3)], 0.0, variables=variables)


def changes(chance: Random, folder: Path) -> Trial:
    """Arrays that change in place."""
    text = changing_program(chance)
    x, y, z = np.linspace(-1.0, 1.0, CHANGING), np.linspace(0.5, 1.5, chance.randint(4, 12)), np.arange(3)
    return Trial(text, load_text(text, folder).first, [(x, y, z, np.int64(n)) for n in (0, 3)])


def vectors(chance: Random, folder: Path) -> Trial:
    """Vectors and matrices, and by chance the gradient of them."""
    program = vector_program(chance)
    random = np.random.default_rng(chance.randrange(1000))
    args = random.normal(0, 0.2, (3 * LENGTH, LENGTH)), random.normal(size=LENGTH), random.normal(size=5), 3
    loss = loss_of(program)
    function = ut.value_and_grad(loss, (0, 1)) if chance.random() < 0.5 else loss
    return Trial(program.text, function, [args], 1e-9)


def smooth_slopes(chance: Random, folder: Path) -> Trial:
    """Gradients of recursion, maps, loops, checkpoints."""
    program = smooth(chance)
    return Trial(program.text, ut.value_and_grad(program.value, program.places), program.inputs, 1e-9)


def rough_slopes(chance: Random, folder: Path) -> Trial:
    """Gradients of what passes can take away."""
    program = rough(chance)
    return Trial(program.text, ut.value_and_grad(program.value, program.places), program.inputs, 1e-9)


KINDS: dict[str, Callable[[Random, Path], Trial]] = {
    make.__name__: make
    for make in (python, effects, invariants, draws, exact, changes, vectors, smooth_slopes, rough_slopes)
}
