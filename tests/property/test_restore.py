"""Random searches that change an array, call themselves and restore it, or not quite, agree with Python."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random

import numpy as np
import pytest

from undertow.passes.restore import restore_arrays
from undertow.passes.simplify import simplify

HEAD = """
import numpy as np
import undertow as ut

@ut.function
def search(x: ut.i64[4], n: ut.i64, m: ut.i64) -> ut.i64:
    if n == 0:
        return x[0] + 3 * x[1] + 5 * x[2] + 7 * x[3]
    t = n
    for i in range(m):
"""
TAIL = """
    return t

@ut.function
def main(x: ut.i64[4], n: ut.i64, m: ut.i64):
    return search(x, n, m), x
"""
CALL = "t = t * 3 % 1009 + search(x, n - 1, m)"
CASES = [([0, 0, 0, 0], 2, 3), ([1, 0, 2, 2], 2, 2), ([2, 1, 0, 2], 3, 2)]


def write_program(random: Random) -> str:
    lines: list[str] = []
    block(random, lines, 2, [])
    return HEAD + "\n".join(lines) + TAIL


def block(random: Random, lines: list[str], indent: int, names: list[str]) -> None:
    """Changes, with calls among them; then what undoes them, mostly in the opposite order, with some left out."""
    space, names, undone = "    " * indent, [*names], list[str]()

    def place() -> str:
        return random.choice(["i", "i", "n", "0", "1", "-1", "(i + n) % 4"])

    for _ in range(random.randint(1, 3)):
        at, kind = place(), random.choice(["keep", "keep", "write", "write", "swap", "add", "test", "call"])
        if kind == "keep":
            name = f"v{len(lines)}"
            names.append(name)
            lines.append(f"{space}{name} = x[{at}]")
            undone.append(f"{space}x[{at}] = {name}")
        elif kind == "write":
            value = random.choice(["0", "n", "i", "t % 5", f"x[{place()}]", *names, *names])
            lines.append(f"{space}x[{at}] = {value}")
        elif kind == "swap":
            other = place()
            lines.append(f"{space}x[{at}], x[{other}] = x[{other}], x[{at}]")
            undone.append(lines[-1])
        elif kind == "add":
            lines.append(f"{space}x[{at}] += n")
            undone.append(f"{space}x[{at}] -= n")
        elif kind == "test" and indent < 4:
            lines.append(f"{space}if x[{at}] {random.choice(['==', '!=', '<'])} {random.choice('0n')}:")
            block(random, lines, indent + 1, names)
        else:
            lines.append(space + CALL)
    lines.append(space + CALL)
    if random.random() < 0.8:
        undone.reverse()
    lines += [line for line in undone if random.random() < 0.94]


@pytest.mark.parametrize("seed", range(4))
def test_random_searches(seed: int, tmp_path: Path) -> None:
    random, restored = Random(seed), 0
    for number in range(8):
        path = tmp_path / f"search_{seed}_{number}.py"
        path.write_text(write_program(random), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for values, *rest in CASES:
            x = np.array(values)
            expected, after = module.main.run(x.copy(), *rest, engine="python")
            result, array = module.main(x, *rest)
            assert (int(result), array.tolist()) == (int(expected), after.tolist()), path.read_text(encoding="utf-8")
        restored += bool(restore_arrays(simplify(module.main.library(x, 2, 2))[0])[1])
    assert restored, "no program is one that the pass is for"
