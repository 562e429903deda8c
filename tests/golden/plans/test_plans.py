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
def test_text(path: Path, request: pytest.FixtureRequest) -> None:
    head, _, wanted = path.read_text().partition("# after\n")
    before = parse(head.partition("# before\n")[2])
    after = PASSES[path.stem.partition("-")[0]](before)
    made = f"\n{dump(after, legend=False)}"
    assert dump(parse(made), legend=False) == made[1:]
    if request.config.getoption("--update"):
        path.write_text(f"{head}# after\n{made}")
        wanted = made
    assert made == wanted


@pytest.mark.parametrize("name", PASSES)
def test_there_are_texts(name: str) -> None:
    assert sum(path.stem.startswith(f"{name}-") for path in FILES) >= 2


@ut.function
def fib(n: ut.f64) -> ut.f64:
    if n <= 1:
        return n * n
    return fib(n - 1) + fib(n - 2)


def test_the_gradient_of_fib(request: pytest.FixtureRequest) -> None:
    path = FOLDER / "gradient_of_fib.txt"
    made = str(ut.grad(fib).plan(5.0))
    if request.config.getoption("--update"):
        path.write_text(made)
    assert path.read_text() == made
