"""Plans of parts that are none, and batches of tokens that make no sense: refused, or a run that ends with an error."""

from __future__ import annotations

import os
import random
import socket
import struct
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.support.placed import homes_by_chance
from tests.support.placed_runs import RUNS
from tests.support.spoiled import FIRST, Program, _end_of_kernels, mutate

import undertow as ut
from undertow import _core
from undertow.engines.contract import Options
from undertow.engines.waves.part import PartPlan, order_for, read_reply, run_order
from undertow.engines.waves.placed import PlacedPlan, hosted_nodes
from undertow.errors import InternalError
from undertow.passes.cut import cut
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library

ROUNDS = int(os.environ.get("UNDERTOW_SPOILED", "60"))
ENDS = (ValueError, TypeError, _core.WireLost, _core.WireStopped, InternalError, ut.RunError)
SHORT = Options(timeout=0.05, frames=2000, memory=1 << 22, max_depth=60, threads=1)


def parts_of(name: str, seed: int) -> tuple[PlacedPlan, list[Any]]:
    """A program in three parts, and its inputs."""
    run = RUNS[name]
    graph = flatten(make_library(run.function.library(*run.args), True))
    chance, hosted = Random(seed), hosted_nodes(graph)
    homes = [0 if n in hosted else home for n, home in enumerate(homes_by_chance(graph, 3, chance))]
    return PlacedPlan(graph, cut(graph, homes, 3)), list(run.function.__undertow_arguments__(run.args, {}).leaves)


def run_alone(
    part: PartPlan, core: _core.Plan, number: int, inputs: list[Any], batches: list[tuple[int, bytes]]
) -> str:
    """Run a part whose others say only this; how it ended."""
    own, others = [-1] * 3, []
    for other in range(3):
        if other != number:
            mine, theirs = socket.socketpair()
            own[other] = mine.detach()
            row = [-1] * 3
            row[number] = theirs.detach()
            others.append((other, _core.Wire(row)))
    wire = _core.Wire(own)
    try:
        for other, end in others:
            for source, batch in batches:
                if source == other:
                    end.send(number, batch)
                    end.flush()
        reply, _, _ = run_order(core, order_for(part, inputs, SHORT), wire)
        read_reply(reply)
        return "ran"
    except _core.Stopped:
        return "stopped"
    except ENDS as error:
        return type(error).__name__
    finally:
        for end in (wire, *(end for _, end in others)):
            end.close()


@pytest.mark.parametrize("name", ["fib", "tree", "map", "replicas"])
def test_plans(name: str) -> None:
    """Rows with Send, Recv and Replica among them."""
    plan, inputs = parts_of(name, 1)
    chance, ends = Random(name), set()
    for _ in range(ROUNDS):
        number = chance.randrange(1, 3)
        part = plan.parts[number]
        encoded = part._encoded
        rows, words, constants = encoded.rows, encoded.words, encoded.constants
        kernels = FIRST, _end_of_kernels(rows.tolist(), FIRST)
        program = Program(plan.graph, rows, words, constants, inputs, kernels)
        try:
            core = _core.decode(mutate(program, chance, kernels_too=True), words, constants)
        except ValueError:
            ends.add("refused")
            continue
        ends.add(run_alone(part, core, number, inputs, []))
    assert "refused" in ends and len(ends) > 1


def spoiled_batch(edges: list[int], chance: random.Random) -> bytes:
    """Of tokens of right and wrong edges, counts, forms and lengths; some are there twice."""
    rows = []
    for _ in range(chance.randrange(1, 4)):
        count = chance.choice((1, 1, 2, 0, 3, -1, 1 << 40, 1 << 62))
        edge = chance.choice(edges) if chance.random() < 0.9 else chance.randrange(-2, 50)
        form = chance.choice((0, 1, 2, 1, 3, 255))
        body = chance.choice((b"", bytes(16), chance.randbytes(16 * chance.randrange(4))))
        value = b"".join(struct.pack("<q", chance.choice((0, 1, 3, -1, 1 << 47, 1 << 62))) for _ in range(3))
        rows.append(struct.pack("<iqB", edge, count, form) + body + value[: chance.choice((0, 8, 8, 16, 24))])
    whole = b"".join(rows * chance.choice((1, 1, 2)))
    return whole if chance.random() < 0.9 else chance.randbytes(chance.randrange(1, 200))


@pytest.mark.parametrize("name", ["fib", "tree", "map"])
def test_batches(name: str) -> None:
    plan, inputs = parts_of(name, 2)
    chance, ends = Random(name), set()
    for _ in range(ROUNDS):
        number = chance.randrange(1, 3)
        part = plan.parts[number]
        edges = [n for n, edge in enumerate(plan.placed.edges) if edge.target == number]
        batches = [
            (plan.placed.edges[n].source, spoiled_batch([n, *edges], chance)) for n in chance.choices(edges, k=3)
        ]
        ends.add(run_alone(part, part.core, number, inputs, batches))
    assert "InternalError" in ends and "ran" not in ends


@pytest.mark.parametrize("name", ["fib", "map"])
def test_orders_and_replies(name: str) -> None:
    plan, inputs = parts_of(name, 3)
    (order, *_), chance = order_for(plan.parts[1], inputs, SHORT), Random(name)
    for _ in range(ROUNDS):
        spoiled = bytearray(order)
        spoiled[chance.randrange(len(spoiled))] ^= 1 << chance.randrange(8)
        cut_off = bytes(spoiled[: chance.randrange(len(spoiled))])
        with pytest.raises(ValueError, match="this is not"):
            read_reply(cut_off)
    assert np.ndim(inputs[0]) <= 1
