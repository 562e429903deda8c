"""Training of models on workers: the bits are those of one process, resumed on other workers, too."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.support.network import Simulation
from typer.testing import CliRunner

import undertow as ut
from undertow.cli import commands as cli
from undertow.cli.workers import choose_shards, saved_if_lost
from undertow.parallel import service
from undertow.parallel.service import services

SOURCE = ut.train.open_source("grammar", trees=40, seed=1)
MODEL = ut.models.TreeRNN(len(SOURCE.vocabulary), SOURCE.classes, width=4, dropout=0.2)
RECIPE = ut.train.Recipe(
    epochs=2, batch=11, rate=0.02, decay="cosine", warmup=0.5, l2=1e-3, clip=1.0, seed=3, embed_rate=0.5, shards=4
)


def events(cluster: Any = None, state: Any = None, recipe: Any = RECIPE) -> list[Any]:
    return list(ut.train.fit(MODEL, SOURCE.train, SOURCE.dev, recipe, state, cluster))


def test_a_trace_is_of_workers() -> None:
    done = CliRunner().invoke(cli.app, ["train", "treernn", "--trace", "trace.json"])
    assert done.exit_code == 2 and "it shows what workers do" in done.output


def assert_equal(a: Any, b: Any) -> None:
    slots = zip(a.optimizer.slots.values(), b.optimizer.slots.values(), strict=True)
    for some, other in ((a.params, b.params), (a.best, b.best), *slots):
        assert all(np.array_equal(some[name], other[name]) for name in some)
    assert a.step == b.step
    assert [replace(r, trees_per_second=0) for r in a.history] == [replace(r, trees_per_second=0) for r in b.history]


@pytest.mark.slow
def test_the_same_bits_on_workers_and_resumed_on_others(tmp_path: Path) -> None:
    """Batches of eleven trees, and a last one of seven; one worker is killed, and others go on from a checkpoint."""
    alone = events()
    assert [event.workers for event in alone if isinstance(event, ut.train.Step)] == [0] * 8
    with Simulation(seed=1) as simulation:
        pool = simulation.pool(2, services).open()
        path = tmp_path / "checkpoint"
        for event in ut.train.fit(MODEL, SOURCE.train, SOURCE.dev, RECIPE, cluster=pool):
            if event.state.step == 3:
                simulation.kill(0)
            if event.state.step == 5:
                ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, event.state, SOURCE.vocabulary))
        assert_equal(event.state, alone[-1].state)
        assert pool.stats()[0].starts == 2
    with Simulation(seed=2) as simulation:
        held = ut.train.load(path)
        assert held.recipe.shards == 4 and held.state.step == 5
        on_others = events(simulation.pool(3, services).open(), held.state)
        assert_equal(on_others[-1].state, alone[-1].state)
        assert [event.workers for event in on_others if isinstance(event, ut.train.Step)] == [3] * 3


@pytest.mark.slow
def test_shards_change_rounding_only() -> None:
    recipe = replace(RECIPE, clip=None)
    model = replace(MODEL, dropout=0.0)
    losses = []
    for shards in (1, 4):
        found = ut.train.fit(model, SOURCE.train, SOURCE.dev, replace(recipe, shards=shards))
        losses.append([event.loss for event in found if isinstance(event, ut.train.Step)])
    assert losses[0] != losses[1]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_how_many_shards(capsys: Any) -> None:
    console = Console()
    before = ut.train.Checkpoint(MODEL, RECIPE, None)  # type: ignore[arg-type]
    whole = replace(before, recipe=replace(RECIPE, shards=1))
    assert choose_shards(console, None, None, None, None) == 1
    assert [choose_shards(console, None, None, workers, None) for workers in (1, 2, 4, 5, 9)] == [4, 4, 4, 8, 16]
    assert choose_shards(console, 4, None, 2, before) == choose_shards(console, 4, None, None, before) == 4
    assert capsys.readouterr().out == ""
    assert choose_shards(console, 4, None, 6, before) == 4
    assert "Only 4 of 6 workers will be used" in capsys.readouterr().out
    assert choose_shards(console, 1, None, 2, whole) == 4
    assert "A batch now has 4 shards, before 1" in capsys.readouterr().out


@pytest.mark.slow
def test_lost_workers_do_not_lose_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After too many losses the last step is in the checkpoint, and training goes on from there with the same bits."""
    path = tmp_path / "checkpoint.safetensors"
    first = ut.train.Checkpoint(MODEL, RECIPE, ut.train.start(MODEL, RECIPE), SOURCE.vocabulary)
    step = service.Training._step

    def deadly(training: service.Training, header: Any, parts: Any) -> Any:
        if header["step"] == 3:
            simulation.kill(0)
            simulation.sleep(1.0)  # it does not live to see the end of that
        return step(training, header, parts)

    monkeypatch.setattr(service.Training, "_step", deadly)
    with Simulation(seed=4) as simulation:
        pool = simulation.pool(1, service.services).open()
        found = ut.train.fit(MODEL, SOURCE.train, SOURCE.dev, RECIPE, first.state, pool)
        with pytest.raises(ut.WorkerLost, match=r"step 4 was begun 4 times[^$]*3 steps are saved"):
            list(saved_if_lost(found, path, first))
    held = ut.train.load(path)
    assert held.state.step == 3
    assert_equal(events(state=held.state)[-1].state, events()[-1].state)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is there")
def test_without_the_extra(tmp_path: Path) -> None:
    folder = str(tmp_path / "out")
    done = CliRunner().invoke(cli.app, ["train", "treernn", "--trees", "20", "--workers", "2", "-o", folder])
    assert done.exit_code == 1 and "needs Ray" in done.output and "undertow[ray]" in done.output
