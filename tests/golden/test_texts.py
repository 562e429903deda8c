"""The texts of libraries and static graphs are what they were; `pytest tests/golden --update` rewrites them.

A change here is not a fault: read the difference, and update if it is what you wanted.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.programs import find

from undertow.ir import text

FOLDER = Path(__file__).parent / "texts"
# What each is here for.
GOLDEN = {
    "factorial": "one call site in a branch",
    "fibonacci": "two sites, one body",
    "is_even": "mutual recursion: two bodies, each other's sites",
    "inner_return": "an early return inside a branch that also falls through",
    "ladder": "a chain of elif",
    "short_circuit": "operands of `and` and `or` in branches of their own",
    "sum_to": "a while loop",
    "triangle": "nested loops, left early by `continue`",
    "calls_in_nested_loops": "calls inside nested loops, and a return out of them",
    "countdown": "loops inside a call, before and after the recursive one",
    "squares": "a map, and what it reads from outside",
    "tree_weight": "a map of the function that it stands in",
    "lifted_closure": "what a closure uses becomes a hidden parameter",
    "announce": "effects around a recursive call",
    "in_loops": "effects in a loop that is left early",
    "walk": "a random key through a recursion",
    "noisy_loop": "random keys through a loop and the calls in it",
    "summarise": "several results, in a container",
    "stairs.map": "many calls in one run",
}


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("kind", ["library", "static"])
def test_text(name: str, kind: str, golden: Callable[..., None]) -> None:
    library, static = find(name).capture(0)
    golden(FOLDER / f"{name}.{kind}.txt", text.dump(library if kind == "library" else static, spans=False))


def test_no_text_without_program() -> None:
    known = {f"{name}.{kind}.txt" for name in GOLDEN for kind in ("library", "static")}
    assert {path.name for path in FOLDER.glob("*")} <= known, "a golden text that nothing makes: delete it"
