"""Training on Ray actors: the bits of one process, whoever is killed or stopped meanwhile."""

from __future__ import annotations

import json
import os
import re
import runpy
import signal
from pathlib import Path

import numpy as np
import pytest
from tests.support import learners
from tests.support.blocks import blocks_of
from typer.testing import CliRunner

import undertow as ut
from undertow.cli import commands as cli

pytest.importorskip("ray", reason="make test-ray installs it")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("default")]

STEPS = 9


def test_workers_are_lost(tmp_path: Path) -> None:
    """The trace shows it."""
    wanted = learners.expected(STEPS)
    trace = tmp_path / "trace.json"
    with ut.ray.cluster(workers=2) as cluster, cluster.trace(trace):
        trainer = ut.ray.DataParallel(learners.loss, learners.params(), learners.OPTIMIZER, has_aux=True, clip=0.5)
        losses = []
        for number, batch in enumerate(learners.batches(STEPS)):
            if number in (2, 5):
                cluster.pool.wait_for_workers(2, 90.0)
                os.kill(cluster.stats()[number % 2].process, signal.SIGKILL if number == 2 else signal.SIGSTOP)
            losses.append(trainer.step(batch)[0])
        cluster.pool.wait_for_workers(2, 90.0)
        assert trainer.again == 2 and [row.starts for row in cluster.stats()] == [2, 2]
        assert losses == wanted[0]
        assert learners.same_bits(trainer._fleet.replica.arrays(), wanted[1])
    events = json.loads(trace.read_text())["traceEvents"]
    names = {(event["pid"], event["name"]) for event in events}
    steps = {(0, f"step {number + 1}") for number in range(STEPS)}
    assert steps | {(1, "gradients"), (2, "sums"), (1, "parameters"), (2, "sent"), (1, "ready")} <= names
    assert sum(name.startswith("lost: ") for _, name in names) == 2
    with pytest.raises(ut.UndertowError, match="the cluster is closed"):
        trainer.step(batch)
    with pytest.raises(ut.UndertowError, match="no cluster to train on"):
        ut.ray.DataParallel(learners.loss, learners.params(), learners.OPTIMIZER)


def test_the_program_of_the_guide(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "several_machines.md"
    (program,) = (
        block for block in blocks_of(guide.read_text(encoding="utf-8")) if "DataParallel(" in str(block.lines)
    )
    path = tmp_path / "program.py"
    path.write_text("\n".join(program.lines), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    losses = [float(loss) for loss in re.findall(r"epoch \d: (.*)", capsys.readouterr().out)]
    assert losses[0] > losses[1] > losses[2] > 0


def test_from_the_command_line(tmp_path: Path) -> None:
    """Two workers give what one process gives with as many shards; resumed without workers, too."""
    base = ["train", "treernn", "--trees", "60", "--width", "8"]

    def run(folder: str, *more: str) -> str:
        done = CliRunner().invoke(cli.app, [*base, "-o", str(tmp_path / folder), *more])
        assert done.exit_code == 0, done.output
        return done.output

    run("alone", "--epochs", "3", "--shards", "4")
    said = run("workers", "--epochs", "2", "--workers", "2", "--trace", str(tmp_path / "trace.json"))
    assert '"name": "gradients", "pid": 2' in (tmp_path / "trace.json").read_text()
    rows = re.findall(r"^ +([01]) +127\.0\.0\.1 +\d+ +1 +0 +([\d,]+)", said, re.M)
    assert [worker for worker, _ in rows] == ["0", "1"] and all(count != "0" for _, count in rows)
    run("workers", "--epochs", "3", "--resume")
    one, two = (ut.train.load(tmp_path / name / "checkpoint.safetensors") for name in ("alone", "workers"))
    assert two.recipe == one.recipe and two.recipe.shards == 4
    assert all(np.array_equal(one.state.params[name], two.state.params[name]) for name in one.state.params)
