"""Data-parallel training on workers inside this process: order, delay, loss and repetition of frames change nothing,
and neither do workers that are lost, whatever they were at.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.support import learners
from tests.support.network import Simulation

import undertow as ut
from undertow.cluster.pool import Pool
from undertow.parallel import service
from undertow.parallel.service import services
from undertow.parallel.trainer import DataParallel

STEPS = 5


@pytest.fixture(scope="module")
def wanted() -> tuple[list[Any], list[Any]]:
    return learners.expected(STEPS)


def trainer_on(pool: Pool, **options: Any) -> DataParallel:
    return DataParallel(
        learners.loss, learners.params(), learners.OPTIMIZER, has_aux=True, clip=0.5, cluster=pool, **options
    )


def train(trainer: DataParallel, steps: int = STEPS) -> list[Any]:
    losses = []
    for batch in learners.batches(steps)[trainer.steps :]:
        loss, counts = trainer.step(batch)
        assert sum(counts) == len(batch)
        losses.append(loss)
    return losses


def arrays_of(trainer: DataParallel) -> list[Any]:
    return trainer._fleet.replica.arrays()


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("seed", range(4))
def test_bits_do_not_depend_on_workers_and_frames(
    workers: int, seed: int, wanted: tuple[list[Any], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    is_near = bool(seed % 2)  # then gradients go through memory that both ends see
    monkeypatch.setattr(service, "is_possible", lambda: is_near)
    with Simulation(seed, loss=0.04 * seed, repetition=0.1 * seed) as simulation:
        trainer = trainer_on(simulation.pool(workers, services).open(), shards=4)
        assert train(trainer) == wanted[0]
        assert learners.same_bits(arrays_of(trainer), wanted[1])
        assert len(trainer._fleet._memories) == is_near * min(workers, 4)
        simulation.sleep(3.0)
        counts = [member._machine.counters.activations for member in simulation.members.values()]
        assert sorted(count > 0 for count in counts) == [False] * (workers > 4) + [True] * min(workers, 4)


FAILURES: dict[str, Callable[[Simulation, int], Any]] = {
    "killed": Simulation.kill,
    "frozen": Simulation.freeze,
    "cut off": Simulation.cut_off,
}


@pytest.mark.slow
@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("worker", range(3))
def test_a_worker_lost_at_any_frame(
    how: str, worker: int, wanted: tuple[list[Any], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run loses a worker at another frame of its first steps: at a beginning, a step, in the ring, at a report."""
    monkeypatch.setattr(service, "is_possible", lambda: how != "killed")
    begin, ahead = service.Training._begin, list[int]()

    def counting(training: service.Training, header: Any, parts: Any) -> Any:
        if header["job"] in training._jobs:  # it had made an update that was not committed
            ahead.append(training._jobs[header["job"]].replica.step - header["replica"]["step"])
        return begin(training, header, parts)

    monkeypatch.setattr(service.Training, "_begin", counting)
    begun_again = 0
    for frame in range(2 + 2 * worker + len(how) % 2, 86, 6):
        with Simulation(seed=frame) as simulation:
            pool = simulation.pool(3, services).open()
            trainer = trainer_on(pool)
            after(simulation, simulation.frames + frame, lambda: FAILURES[how](simulation, worker))
            assert train(trainer) == wanted[0]
            assert learners.same_bits(arrays_of(trainer), wanted[1])
            begun_again += trainer.again
    assert begun_again > 3
    assert set(ahead) <= {1} and (ahead or worker == 2)


def after(simulation: Simulation, frames: int, event: Callable[[], Any]) -> None:
    """Let something happen when so many frames have been sent."""
    post = simulation.post

    def counting(sender: int, to: int, parts: Any) -> None:
        post(sender, to, parts)
        if simulation.frames == frames:
            event()

    simulation.post = counting  # type: ignore[method-assign]


@pytest.mark.parametrize("seed", range(5))
def test_workers_that_come_and_go(seed: int, wanted: tuple[list[Any], list[Any]]) -> None:
    """One is killed, one frozen and thawed later, on a network that loses frames."""
    with Simulation(seed, loss=0.05, repetition=0.05) as simulation:
        trainer = trainer_on(simulation.pool(3, services).open(), retries=10)
        hosts: list[Any] = []
        begun = simulation.frames
        after(simulation, begun + 30 + seed, lambda: hosts.append(simulation.freeze(seed % 3)))
        after(simulation, begun + 60 + seed, lambda: simulation.kill((seed + 1) % 3))
        after(simulation, begun + 150, lambda: [simulation.thaw(host) for host in hosts])
        assert train(trainer) == wanted[0]
        assert learners.same_bits(arrays_of(trainer), wanted[1])
        assert trainer.again > 0


def test_too_many_losses(wanted: tuple[list[Any], list[Any]]) -> None:
    """WorkerLost says who and why; afterwards training goes on from the committed state."""
    with Simulation(seed=1) as simulation:
        pool = simulation.pool(2, services).open()
        trainer = trainer_on(pool, retries=0)
        losses = [trainer.step(batch)[0] for batch in learners.batches(2)]
        after(simulation, simulation.frames + 3, lambda: simulation.kill(1))
        with pytest.raises(ut.WorkerLost, match=r"worker 1 was lost: it was silent for .* step 3 was begun once"):
            trainer.step(learners.batches(3)[2])
        assert trainer.steps == 2
        assert losses + train(trainer) == wanted[0]
        assert learners.same_bits(arrays_of(trainer), wanted[1])


def test_an_error_on_one_worker_ends_the_step_on_all() -> None:
    """Others that wait for it in the ring give up; nothing has changed."""

    @ut.function
    def picky(w: ut.f64, x):  # type: ignore[no-untyped-def]
        assert ut.min(x) >= 0, "a negative one"
        return ut.mean(w * x)

    good, bad = np.arange(8.0), np.array([1.0] * 7 + [-1.0])
    for seed in range(5):
        with Simulation(seed) as simulation:
            trainer = DataParallel(picky, 2.0, ut.optim.SGD(0.1), cluster=simulation.pool(3, services).open())
            assert trainer.step(good) == 7.0
            before = trainer.params
            with pytest.raises(ut.RunError, match=r"worker 2: .*a negative one"):
                trainer.step(bad)
            assert trainer.steps == 1 and trainer.params == before and trainer.again == 0
            assert trainer.step(good) < 7.0


def test_saved_and_loaded_on_another_number_of_workers(tmp_path: Any, wanted: tuple[list[Any], list[Any]]) -> None:
    path = tmp_path / "trainer.safetensors"
    with Simulation(seed=2) as simulation:
        first = trainer_on(simulation.pool(2, services).open())
        losses = train(first, 2)
        first.save(path)
    with Simulation(seed=3) as simulation:
        second = trainer_on(simulation.pool(3, services).open())
        second.load(path)
        assert second.steps == 2 and int(second.state.step) == 2
        assert losses + train(second) == wanted[0]
        assert learners.same_bits(arrays_of(second), wanted[1])
        other = DataParallel(learners.loss, learners.params(), ut.optim.SGD(0.1), cluster=second._fleet.pool)
        with pytest.raises(ut.LoadError, match=r"has 'mean params|has 'squares params"):
            other.load(path)
        with pytest.raises(ut.LoadError, match="does not hold a checkpoint"):
            other.load(__file__)


def test_two_trainers_share_a_pool() -> None:
    with Simulation(seed=4) as simulation:
        pool = simulation.pool(2, services).open()
        one, two = trainer_on(pool), trainer_on(pool)
        for batch in learners.batches(3):
            assert one.step(batch) == two.step(batch)
        one.close()
        assert train(two)
        assert learners.same_bits(arrays_of(two), learners.expected(STEPS)[1])


@dataclass
class Line:
    """Parameters, as users have them."""

    w: Any
    b: Any
    name: str = "line"


class Points(NamedTuple):
    """A batch."""

    x: Any
    y: Any


@ut.function
def squares(line, points, scale):  # type: ignore[no-untyped-def]
    gap = points.x @ line.w + line.b - points.y
    return ut.sum(gap * gap * scale)


def test_as_in_one_process() -> None:
    """Classes of the user's, a rate that changes, a sum for a loss, one shard: the bits of a loop without workers."""
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3))
    points, scale = Points(x, x @ np.array([1.0, 2.0, 3.0]) + 0.5), np.array(0.01)
    optimizer = ut.optim.Adagrad(lambda step: 1 / (step + 2))
    params: Any = Line(np.zeros(3), np.zeros(()))
    state, slopes, wanted = optimizer.init(params), ut.value_and_grad(squares), []
    for _ in range(8):
        value, grads = slopes(params, points, scale)
        params, state = optimizer.update(grads, state, params)
        wanted.append(value)
    with Simulation(seed=6) as simulation:
        pool = simulation.pool(2, services).open()

        def trainer_of(params: Any, state: Any, shards: int = 1) -> DataParallel:
            return DataParallel(squares, params, optimizer, average=False, shards=shards, state=state, cluster=pool)

        first = trainer_of(Line(np.zeros(3), np.zeros(())), None)
        found = [first.step(points, ut.shared(scale)) for _ in range(5)]
        second = trainer_of(first.params, first.state)
        found += [second.step(points, ut.shared(scale)) for _ in range(3)]
        assert found == wanted and second.steps == 8 and second.params.name == "line"
        assert learners.same_bits([second.params.w, second.params.b], [params.w, params.b])
        assert learners.same_bits([second.state.slots["squares"].w], [state.slots["squares"].w])
        cut = trainer_of(Line(np.zeros(3), np.zeros(())), None, shards=3)
        np.testing.assert_allclose([cut.step(points, ut.shared(scale)) for _ in range(8)], wanted, rtol=1e-9)
        assert cut.step(points, ut.shared(scale), learning_rate=0.0) == cut.step(points, ut.shared(scale))


def test_what_is_refused() -> None:
    with Simulation(seed=5) as simulation:
        pool = simulation.pool(2, services).open()
        for wrong, said in (
            ({"reduce": "nccl"}, "unknown way to reduce"),
            ({"shards": 0}, "shards is 0"),
            ({"retries": -1}, "retries is -1"),
            ({"thread": 1}, "unknown option 'thread'"),
            ({"state": ut.optim.SGD(0.1).init(learners.params())}, "do not fit the parameters"),
        ):
            with pytest.raises(ut.UndertowError, match=said):
                trainer_on(pool, **wrong)  # type: ignore[arg-type]
        if importlib.util.find_spec("torch") is None:
            with pytest.raises(ut.RunError, match=r"needs PyTorch on all workers[^$]*pip install torch"):
                trainer_on(pool, reduce="torch").step(learners.batches(1)[0])
        with pytest.raises(ut.TypeMismatch, match="workers have no Mine"):
            DataParallel(learners.loss, learners.params(), Mine(0.1), cluster=pool)
        with pytest.raises(ut.TypeMismatch, match="workers take arrays"):
            DataParallel(learners.loss, {"w": ut.Variable(1.0)}, ut.optim.SGD(0.1), cluster=pool)
        with pytest.raises(ut.UndertowError, match="is no cluster"):
            DataParallel(learners.loss, learners.params(), learners.OPTIMIZER, cluster=5)


def test_a_batch_that_does_not_fit_the_loss() -> None:
    """The error says what `step` was given, and what the loss calls it."""
    with Simulation(seed=5) as simulation:
        pool = simulation.pool(2, services).open()
        trainer = DataParallel(of_forest, {"w": np.ones(2)}, ut.optim.SGD(0.1), cluster=pool)
        with pytest.raises(ut.CaptureError, match="roots") as caught:
            trainer.step(np.ones(3))
        assert caught.value.hint.endswith(
            "`step` was given an array float64[3]; it takes what the loss takes after its parameters: forest"
        )


@ut.function
def of_forest(params: Any, forest: Any) -> Any:
    return ut.mean(ut.map(lambda root: params["w"][0] * root, forest.roots))


class Mine(ut.optim.SGD):
    """An optimizer of the user's."""
