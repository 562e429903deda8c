"""Every order of every firing of a small stateful graph, without any reduction; and small stateful graphs."""

from __future__ import annotations

import random
from collections import deque
from itertools import groupby
from typing import Any

import numpy as np

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference.plan import number_graph
from undertow.engines.reference.run import Run
from undertow.ir.graph import StaticGraph
from undertow.ir.spec import check
from undertow.ir.text import parse
from undertow.ops.op import find
from undertow.passes.flatten import flatten

HEAD = "library 1 main=main\n\n"
X = 'dtype="i64" shape=[] variable="x"'
Y = 'dtype="i64" shape=[] variable="y"'
LOG = 'dtype="i64" shape=[null] variable="x"'


def graph(body: str) -> StaticGraph:
    library = parse(HEAD + body)
    check(library, lambda node, types: find(node.op).type(types, node.attrs))
    return flatten(library)


def as_python(results: Any, variables: Any, error: str) -> Any:
    def plain(value: Any) -> Any:
        return tuple(value.tolist()) if np.ndim(value) else value.item()

    return tuple(map(plain, results)), tuple((k, plain(v)) for k, v in sorted(variables.items())), error


class Chooser(deque[Any]):
    """A pool from which the n-th pop takes what choice n says; it notes how many there were to choose from."""

    def __init__(self, choices: list[int]) -> None:
        super().__init__()
        self.choices = choices
        self.widths: list[int] = []
        self.state: dict[str, Any] = {}
        self.history: list[Any] = []  # the values of the variables before each firing

    def look(self) -> None:
        self.history.append(as_python((), self.state, "")[1])

    def popleft(self) -> Any:
        self.look()
        at = self.choices[len(self.widths)] if len(self.widths) < len(self.choices) else 0
        self.widths.append(len(self))
        found = self[at]
        del self[at]
        return found


def brute_force(static: StaticGraph, inputs: list[Any], state: dict[str, Any]) -> dict[Any, set[Any]]:
    """Every outcome, and for each the values that variables have had on the way there, without repetitions."""
    rows, choices, found = number_graph(static), list[int](), dict[Any, set[Any]]()
    while True:
        pool = Chooser(choices)
        run = Run(rows, list(inputs), Options(), None, state, (pool, pool.popleft))
        pool.state = run.state
        error = ""
        try:
            run.execute(drain=False)
        except ut.RunError as fault:
            error = f"{type(fault).__name__}: {fault.what}"
        pool.look()
        pool.history += [as_python((), state, "")[1]] * bool(error)
        outcome = as_python(() if error else run.results, state if error else run.state, error)
        found.setdefault(outcome, set()).add(tuple(value for value, _ in groupby(pool.history)))
        choices += [0] * (len(pool.widths) - len(choices))
        while choices and choices[-1] + 1 == pool.widths[len(choices) - 1]:
            choices.pop()
        if not choices:
            return found
        choices[-1] += 1


def random_program(chance: random.Random) -> str:
    """A few state operators on two variables, with some control edges and data flow between them."""
    lines: list[str] = []
    values, tokens = ["2:i64", "3:i64"], list[str]()
    for number in range(chance.randint(2, 4)):
        held, name = chance.choice((X, Y)), f"s{number}"
        edges = [t for t in tokens if chance.random() < 0.3]
        controls = f" ^{', '.join(edges)}" if edges else ""
        operand = chance.choice(values)
        if not controls and operand.endswith(":i64"):
            controls = " ^start"
        kind = chance.choice(("read", "add", "set", "multiply"))
        if kind == "read":
            lines.append(f"  {name}: i64, ctl = read {held}{controls or ' ^start'}")
        else:
            lines.append(f'  {name}: i64, ctl = assign {operand} how="{kind}" {held}{controls}')
        values.append(f"{name}#0")
        tokens.append(f"{name}#1")
    made = [v for v in values if not v.endswith(":i64")]
    fetched = [v for v in made if chance.random() < 0.7] or made[-1:]
    return f"main main() -> ({', '.join(fetched)})\n" + "\n".join(lines) + "\n"
