"""Libraries before and after a pass, as text; of some also the static graph that `flatten` makes of what comes out.

Each file tells Python functions (for the reader), the library that was captured from them, as the pass is given it, and
what the pass makes of that. `pytest tests/golden --update` writes the part after `# after` anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.validity import parse_library

from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.ops.vet import type_rule
from undertow.passes.extend import extend
from undertow.passes.flatten import flatten
from undertow.passes.forward import forward
from undertow.passes.hoist import hoist
from undertow.passes.report import Report
from undertow.passes.simplify import simplify


def extend_simply(library: Library) -> tuple[Library, Report]:
    """Simplified, as engines get it: it has many zeros otherwise."""
    after, report = extend(library)
    check(after, type_rule)
    return simplify(after)[0], report


PASSES: dict[str, Callable[[Library], tuple[Library, Report]]] = {
    "simplify": simplify,
    "hoist": hoist,
    "forward": forward,
    "extend": extend_simply,
}
FILES = sorted(Path(__file__).parent.glob("*.txt"))
FLATTENED = ("extend_power", "extend_two_calls")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text(path: Path, golden: Callable[..., None]) -> None:
    head, _, _ = path.read_text().partition("# after\n")
    before = parse_library(head.partition("# before\n")[2])
    check(before, type_rule)
    after, report = PASSES[path.stem.partition("_")[0]](before)
    check(after, type_rule)
    static = flatten(after)
    check(static, type_rule)
    assert parse(dump(after)) == after
    made = f"\n{dump(after)}\n# {report}\n"
    if path.stem in FLATTENED:
        made += f"\n# flattened\n\n{dump(static)}"
    golden(path, made, f"{head}# after\n")


@pytest.mark.parametrize("name", PASSES)
def test_there_are_texts(name: str) -> None:
    assert sum(path.stem.startswith(f"{name}_") for path in FILES) >= 4
    assert {path.stem for path in FILES} >= set(FLATTENED)
