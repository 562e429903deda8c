"""Libraries before and after `extend`, as text, and the static graph that `flatten` makes of some.

Each file tells Python functions (for the reader), the library that was captured from them and simplified, and what
`extend` makes of that, simplified. `pytest tests/golden --update` writes the part after `# after` anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.ops.vet import type_rule
from undertow.passes.extend import extend
from undertow.passes.flatten import flatten
from undertow.passes.simplify import simplify

FILES = sorted(Path(__file__).parent.glob("extend_*.txt"))
FLATTENED = ("extend_power", "extend_two_calls")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_extended_text(path: Path, request: pytest.FixtureRequest) -> None:
    head, _, wanted = path.read_text().partition("# after\n")
    before = parse(head.partition("# before\n")[2])
    assert isinstance(before, Library)
    check(before, type_rule)
    after, report = extend(before)
    check(after, type_rule)
    after, _ = simplify(after)
    check(after, type_rule)
    static = flatten(after)
    check(static, type_rule)
    assert parse(dump(after)) == after
    made = f"\n{dump(after)}\n# {report}\n"
    if path.stem in FLATTENED:
        made += f"\n# flattened\n\n{dump(static)}"
    if request.config.getoption("--update"):
        path.write_text(f"{head}# after\n{made}")
        wanted = made
    assert made == wanted


def test_there_are_golden_texts() -> None:
    assert len(FILES) >= 7 and {path.stem for path in FILES} >= set(FLATTENED)
