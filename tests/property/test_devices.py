"""Random devices on the nodes of random libraries: passes keep them, and the program in parts gives the same."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.differences import assert_close
from tests.support.graphs import inputs_of
from tests.support.placed import PlacedByDevice
from tests.support.random_programs import random_program
from tests.support.slopes import rough, smooth
from tests.support.validity import valid

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference import Reference
from undertow.errors import UndertowError
from undertow.frontend.values import tree
from undertow.ir.graph import Const, Library, Node
from undertow.ir.structure import ENTERS, is_primitive
from undertow.ops.effects import CHECKS
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library
from undertow.passes.simplify import simplify
from undertow.types import CTL

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
WORKERS = 3
INPUTS = ((2, 3, 0.5, True, 1.5, 2), (1, -1, -0.25, False, -2.0, 0), (3, 0, 0.75, True, 0.25, 5))
UNPLACED = ("start", "param", "switch", "merge")


def sprinkled(library: Library, chance: random.Random) -> Library:
    """The library with devices on some nodes, or all; of those that capture gives one."""
    share = chance.choice((0.3, 0.7, 1.0))
    names = ["", *(f"worker:{k}" for k in range(WORKERS))]

    def placed(node: Node) -> Node:
        if node.op in UNPLACED or chance.random() > share:
            return node
        return replace(node, attrs=node.attrs | {"device": chance.choice(names)})

    return Library(
        {name: replace(graph, nodes=tuple(map(placed, graph.nodes))) for name, graph in library.functions.items()},
        library.main,
    )


def devices_of(library: Library) -> tuple[dict[Any, set[Any]], set[Any]]:
    """The devices of the nodes that come from each place in the source; and of those that enter bodies."""
    found: dict[Any, set[Any]] = defaultdict(set)
    entering: set[Any] = set()
    for graph in library.functions.values():
        for node in graph.nodes:
            found[node.span].add(node.attrs.get("device"))  # a Merge may become an operator
            if node.op in ENTERS or node.op == "gradient":
                entering.add(node.attrs.get("device"))
    return found, entering


def check_devices(before: Library, after: Library) -> int:
    """Each operator is where one was that was written at its place in the source. How many are placed."""
    known, entering = devices_of(before)
    count = 0
    for graph in after.functions.values():
        for node in graph.nodes:
            device = node.attrs.get("device")
            if node.op in UNPLACED:
                assert device is None, node
            elif is_token(node):
                continue
            elif device is not None:
                count += 1
                # What had none may have got that of the call that it was moved to.
                assert device in known[node.span] or (None in known[node.span] and device in entering), node
            elif is_primitive(node.op) and known[node.span]:
                assert None in known[node.span], node
    return count


def is_token(node: Node) -> bool:
    """Constants and order tokens have no device."""
    is_constant = node.op == "identity" and isinstance(node.inputs[0], Const)
    return is_constant or node.op in CHECKS or node.types[:1] == (CTL,)


def compare(library: Library, inputs: Sequence[Any], chance: random.Random) -> int:
    try:
        wanted = Reference().plan(flatten(library)).run(inputs, Options(timeout=20.0))[0]
    except UndertowError:
        return 0  # a fault, or too long
    before = sprinkled(library, chance)
    valid(before)
    made = make_library(before, True, True, forms_waves=chance.random() < 0.5)
    if chance.random() < 0.3:
        inlined, _ = simplify(made, inline=True)
        if not any(graph.group for graph in made.functions.values()):
            made = inlined
    valid(made)
    count = check_devices(before, made)
    plan = PlacedByDevice(chance.randrange(1000), WORKERS).plan(flatten(made))
    got = plan.run(inputs, Options(timeout=20.0))[0]
    for a, b in zip(got, wanted, strict=True):
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    return count


@pytest.mark.slow
def test_random_programs() -> None:
    count = 0
    for seed in range(EXAMPLES or 25):
        chance = random.Random(seed)
        function, _ = random_program(chance, invariants=True)
        for args in INPUTS:
            count += compare(function.library(*args), inputs_of(function, args), chance)
    assert count > 100


@pytest.mark.slow
@pytest.mark.parametrize("make", [smooth, rough])
def test_gradients(make: Any) -> None:
    count = 0
    for seed in range(EXAMPLES or 10):
        chance = random.Random(seed)
        program = make(chance)
        both = ut.value_and_grad(program.value, program.places)
        for args in program.inputs:
            wanted = both.run(*args, engine="reference")
            leaves = inputs_of(both, args)
            before = sprinkled(both.library(*args), chance)
            made = valid(make_library(before, True, True))
            count += check_devices(before, made)
            got, _ = PlacedByDevice(seed, WORKERS).plan(flatten(made)).run(leaves, Options(timeout=60.0))
            assert_close(tuple(got), flat(wanted), 1e-9)
    assert count > 100


def flat(value: Any) -> tuple[Any, ...]:
    """The leaves of a result."""
    return tuple(tree.flatten(value)[0])
