"""Libraries before and after `forward`, as text.

Each file tells a Python function (for the reader), the library that was captured from it and simplified, and what
`forward` makes of that. `pytest tests/golden --update` writes the part after `# after` anew.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.passes.flatten import flatten
from undertow.passes.forward import forward

FILES = sorted(Path(__file__).parent.glob("forward_*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text_with_tangents(path: Path, request: pytest.FixtureRequest) -> None:
    head, _, wanted = path.read_text().partition("# after\n")
    before = parse(head.partition("# before\n")[2])
    assert isinstance(before, Library)
    check(before)
    after, report = forward(before)
    check(after)
    check(flatten(after))
    made = f"\n{dump(after)}\n# {report}\n"
    if request.config.getoption("--update"):
        path.write_text(f"{head}# after\n{made}")
        wanted = made
    assert made == wanted


def test_there_are_golden_texts() -> None:
    assert len(FILES) >= 4
