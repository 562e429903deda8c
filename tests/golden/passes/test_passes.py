"""Libraries before and after a pass, as text; of some also the static graph that `flatten` makes of what comes out.

Each file tells Python functions (for the reader), the library that was captured from them, as the pass is given it, and
what the pass makes of that. `pytest tests/golden --update` writes the part after `# after` anew. Libraries with
derivatives that are only marked are not valid yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.validity import parse_library

from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.ops.vet import type_rule
from undertow.passes.delay import delay_arguments
from undertow.passes.derive.extend import extend
from undertow.passes.flatten import flatten
from undertow.passes.hoist import hoist
from undertow.passes.inline import inline_calls
from undertow.passes.loops import loops_to_calls
from undertow.passes.markers.paths import DERIVATIVE
from undertow.passes.overflow import check_overflow
from undertow.passes.phase_constants import propagate_constants
from undertow.passes.pipeline import MARKED
from undertow.passes.pipeline import PASSES as PIPELINE
from undertow.passes.replicate import replicate
from undertow.passes.report import Report
from undertow.passes.restore import restore_arrays
from undertow.passes.simplify import simplify
from undertow.passes.sown.reap import reap
from undertow.passes.split import split_loops
from undertow.passes.unorder import unorder_faults


def extend_simply(library: Library) -> tuple[Library, Report]:
    """Simplified, as engines get it: it has many zeros otherwise."""
    after, report = extend(library)
    check(after, type_rule)
    return simplify(after)[0], report


PASSES: dict[str, Callable[[Library], tuple[Library, Report | Counter[str]]]] = {
    "replicate": replicate,
    "overflow": check_overflow,
    "simplify": simplify,
    "delay": delay_arguments,
    "reap": reap,
    "unorder": unorder_faults,
    "restore": restore_arrays,
    "split": split_loops,
    "hoist": hoist,
    "forward": extend,
    "extend": extend_simply,
    **{name: apply for name, apply, _ in MARKED if name != "unfetched"},
}
# Not in the list of the pipeline; of each, at least what it does with devices.
OTHERS: dict[str, Callable[[Library], tuple[Library, Report | Counter[str]]]] = {
    "constants": propagate_constants,
    "inline": inline_calls,
    "loops": lambda library: (loops_to_calls(library, library.functions), Counter()),
    "flatten": lambda library: (library, Counter()),
}
FILES = sorted(Path(__file__).parent.glob("*.txt"))
FLATTENED = ("extend_power", "extend_two_calls", "flatten_devices")


def is_marked(library: Library) -> bool:
    return any(node.op == DERIVATIVE for graph in library.functions.values() for node in graph.nodes)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text(path: Path, golden: Callable[..., None]) -> None:
    head, _, _ = path.read_text().partition("# after\n")
    before = parse_library(head.partition("# before\n")[2])
    if not is_marked(before):
        check(before, type_rule)
    after, report = (PASSES | OTHERS)[path.stem.partition("_")[0]](before)
    assert parse(dump(after)) == after
    said = str(report) if isinstance(report, Report) else ", ".join(f"{what} {n}" for what, n in report.items())
    made = f"\n{dump(after)}\n# {said}\n"
    if not is_marked(after):
        check(after, type_rule)
        static = flatten(extend(after)[0])
        check(static, type_rule)
        if path.stem in FLATTENED:
            made += f"\n# flattened\n\n{dump(static)}"
    golden(path, made, f"{head}# after\n")


def test_every_pass_is_here() -> None:
    elsewhere = {"unfetched"}  # tests/unit/compat
    missing = {name for name, *_ in (*MARKED, *PIPELINE)} - elsewhere - PASSES.keys() - OTHERS.keys()
    assert not missing, "a pass of passes/pipeline.py is missing from PASSES"


@pytest.mark.parametrize("name", PASSES)
def test_there_are_texts(name: str) -> None:
    assert sum(path.stem.startswith(f"{name}_") for path in FILES) >= 4
    assert {path.stem for path in FILES} >= set(FLATTENED)


@pytest.mark.parametrize("name", [*PASSES, *OTHERS])
def test_devices(name: str) -> None:
    """There is a text of what each pass does with devices, and it names some."""
    text = (Path(__file__).parent / f"{name}_devices.txt").read_text()
    assert "device=" in text.partition("# before\n")[2].partition("# after\n")[0]
    assert "device=" in text.partition("# after\n")[2]
