"""Plans before and after a pass, as text.

Each file tells a Python function (for the reader), the plan that the pass is given, and what the pass makes of it.
`pytest tests/golden --update` writes the part after `# after` anew. The plan of fib's gradient stands here whole.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import undertow as ut
from undertow.engines.native import traits_of
from undertow.plan.defer import defer
from undertow.plan.dump import dump
from undertow.plan.fuse import fuse
from undertow.plan.homes import find_homes
from undertow.plan.lifetimes import find_lifetimes
from undertow.plan.order import order
from undertow.plan.owners import find_owners
from undertow.plan.parse import parse
from undertow.plan.pipeline import steps
from undertow.plan.plan import Plan
from undertow.plan.products import find_products
from undertow.plan.schedule import choose_schedules
from undertow.plan.share import share
from undertow.plan.siblings import find_siblings

PASSES: dict[str, Callable[[Plan], Plan]] = {
    "products": find_products,
    "order": order,
    "defer": defer,
    "share": share,
    "fuse": lambda plan: fuse(plan, traits_of),
    "siblings": find_siblings,
    "lifetimes": find_lifetimes,
    "owners": find_owners,
    "homes": lambda plan: find_homes(plan, traits_of),
    "schedule": lambda plan: choose_schedules(plan, traits_of),
}
FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*-*.txt"))  # a pass, and a program


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text(path: Path, golden: Callable[..., None]) -> None:
    head, _, _ = path.read_text().partition("# after\n")
    before = parse(head.partition("# before\n")[2])
    after = PASSES[path.stem.partition("-")[0]](before)
    made = f"\n{dump(after, legend=False)}"
    assert dump(parse(made), legend=False) == made[1:]
    golden(path, made, f"{head}# after\n")


def test_every_pass_is_here() -> None:
    """`lower` makes the first plan there is: what it is given is no plan."""
    names = [name for name, _ in steps(fib.graph(5.0).static, traits_of)]
    assert names == ["lower", *PASSES], "a pass of plan/pipeline.py is missing from PASSES"


@pytest.mark.parametrize("name", PASSES)
def test_there_are_texts(name: str) -> None:
    assert sum(path.stem.startswith(f"{name}-") for path in FILES) >= 2


@ut.function
def fib(n: ut.f64) -> ut.f64:
    if n <= 1:
        return n * n
    return fib(n - 1) + fib(n - 2)


def test_the_gradient_of_fib(golden: Callable[..., None]) -> None:
    golden(FOLDER / "gradient_of_fib.txt", str(ut.grad(fib).plan(5.0)))
