"""Random programs over Python numbers among f32 or i32: values and dtypes are those of Python over NumPy 2."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from tests.support.written import function_of

_OPERATORS = {"float": ["+", "-", "*", "+", "-", "*"], "int": ["+", "-", "*", "&", "|", "^"]}


def _number(random: Random, kind: str) -> str:
    if kind == "float" and random.random() < 0.6:
        return repr(random.choice([0.5, 0.25, 1.5, -0.75, 2.0]))
    return str(random.randint(1, 4))


def _expression(random: Random, names: list[str], kind: str, depth: int = 2) -> str:
    if depth == 0 or random.random() < 0.25:
        return random.choice(names) if random.random() < 0.7 else _number(random, kind)
    parts = [_expression(random, names, kind, depth - 1) for _ in range(2)]
    which = random.random()
    if which < 0.12:
        return f"{random.choice(['min', 'max'])}({parts[0]}, {parts[1]})"
    if which < 0.24:
        return f"({parts[0]} if {random.choice(names)} < {random.choice(names)} else {parts[1]})"
    if which < 0.3:
        return f"(-{parts[0]})"
    return f"({parts[0]} {random.choice(_OPERATORS[kind])} {parts[1]})"


def _bounded(made: str, kind: str) -> str:
    return f"({made}) % 3.5" if kind == "float" else f"({made}) % 1013"


def written(random: Random, kind: str) -> str:
    """A function of four numbers and a count."""
    names = ["a", "b", "c", "d"]
    lines = ["@ut.function", "def f(a, b, c, d, n):"]
    for number in range(random.randint(2, 5)):
        made = _bounded(_expression(random, names, kind), kind)
        which = random.random()
        if which < 0.3:
            lines += [f"    v{number} = {made}"]
        elif which < 0.5:
            other = _bounded(_expression(random, names, kind), kind)
            lines += [
                f"    if {random.choice(names)} > {random.choice(names)}:", f"        v{number} = {made}",
                "    else:", f"        v{number} = {other}",
            ]  # fmt: skip
        elif which < 0.6:
            lines += [f"    v{number} = helper({random.choice(names)}, {_number(random, kind)})"]
        else:
            again = _expression(random, [*names, f"v{number}", f"v{number}", "k"], kind)
            lines += [
                f"    v{number} = {_number(random, kind)}", "    for k in range(n):",
                f"        v{number} = {_bounded(again, kind)}",
            ]  # fmt: skip
        names.append(f"v{number}")
    return "\n".join([
        "@ut.function", "def helper(x, y):", "    return x * y", "", "", *lines, f"    return {', '.join(names[4:])},"
    ])  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float", "int"])
@pytest.mark.parametrize("seed", range(4))
def test_dtypes_and_values_are_those_of_numpy(seed: int, kind: str) -> None:
    strong: Any = np.float32 if kind == "float" else np.int32
    for number in range(20):
        random = Random(f"{seed}:{kind}:{number}")
        text = written(random, kind)
        made = function_of(text, "f")
        for _ in range(2):
            weak = [1, 3, 0.5, 1.25] if kind == "float" else [1, 2, 7]
            args = [random.choice(weak) for _ in range(4)]
            args = [strong(x) if random.random() < 0.5 else x for x in args]
            count = random.choice([1, 2, np.int32(3)])
            with np.errstate(all="ignore"):
                expected = made.run(*args, count, engine="python")
            found = made(*args, count)
            for a, b in zip(found, expected, strict=True):
                shown = f"{text}\n{args} {count}: {found}, expected {expected}"
                assert not isinstance(b, np.generic) or a.dtype == b.dtype, shown
                np.testing.assert_allclose(float(a), float(b), rtol=1e-3, atol=1e-3, err_msg=shown)
