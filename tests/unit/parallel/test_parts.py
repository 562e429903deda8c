"""The parts of data-parallel training by themselves: shards, messages, sums, the ring, shared memory, checkpoints."""

from __future__ import annotations

import copy
import os
import queue
import threading
from typing import Any

import numpy as np
import pytest
from tests.support import learners

import undertow as ut
from undertow.parallel.memory import Memory, View
from undertow.parallel.packing import message, pack, read, unpack
from undertow.parallel.replica import Rule
from undertow.parallel.ring import all_reduce
from undertow.parallel.shards import cut
from undertow.parallel.sums import add_up, weighted


def test_shards_have_equally_many_nodes() -> None:
    forest = learners.forest()
    for count in (1, 2, 3, 5):
        shards = cut((forest,), count)
        assert sum(shard.nodes for shard in shards) == forest.size
        assert max(shard.nodes for shard in shards) - min(shard.nodes for shard in shards) <= 13
        assert [shard.args[0].size for shard in shards] == [shard.nodes for shard in shards]
    trees = {tuple(tree.word.tolist()) for shard in cut((forest,), 3) for tree in shard.args[0]}
    assert trees == {tuple(tree.word.tolist()) for tree in forest}
    assert [len(shard.args[0]) for shard in cut((forest[:3],), 8)] == [1, 1, 1]


def test_shards_of_arrays() -> None:
    x, table = np.arange(10.0).reshape(5, 2), np.ones(3)
    shards = cut(({"x": x, "y": x[:, 0]}, ut.shared(table)), 2)
    assert [shard.items for shard in shards] == [2, 3] and all(shard.args[1] is table for shard in shards)
    assert np.array_equal(np.concatenate([shard.args[0]["x"] for shard in shards]), x)
    refused = {"has 4 items": (x, np.ones(4)), "cannot be cut": (x, 1.0), "empty": (x[:0],), "nothing": ()}
    for said, wrong in refused.items():
        with pytest.raises(ut.TypeMismatch, match=said):
            cut(wrong, 2)


def test_values_travel_as_they_are() -> None:
    random = np.random.default_rng(0)
    value = {
        "arrays": (random.normal(size=(3, 4)), np.zeros((0, 2), np.float32), np.array([True, False]), np.array(5)),
        "numbers": [1, 2.5, True, np.float32(0.1), np.int32(7), float("inf"), 1j, None, "text"],
        "strided": random.normal(size=(6, 6))[::2, ::3],
    }
    for copies in (1, 400):
        header, parts = pack([value] * copies)
        told, rest = read(message({"value": header}, parts))
        found = unpack(told["value"], rest)[-1]
        assert [type(x) for x in found["numbers"]] == [type(x) for x in value["numbers"]]
        assert found["numbers"] == value["numbers"]
        assert learners.same_bits([*found["arrays"], found["strided"]], [*value["arrays"], value["strided"]])
    with pytest.raises(ut.LoadError, match="an array of 2 bytes"):
        unpack(pack([np.ones(2)])[0], [b"ab"])


class Queues:
    """Streams between threads."""

    def __init__(self) -> None:
        self.queues: dict[tuple[int, int], queue.Queue[list[Any]]] = {}

    def end(self, place: int, count: int) -> Any:
        outer = self

        class End:
            def send(self, peer: tuple[int, int], parts: Any) -> None:
                outer.queues[place, peer[0]].put([bytes(part) for part in parts])

            def receive(self, peer: tuple[int, int], seconds: float | None = None) -> Any:
                return outer.queues[peer[0], place].get(timeout=10)

        for other in range(count):
            self.queues.setdefault((place, other), queue.Queue())
            self.queues.setdefault((other, place), queue.Queue())
        return End()


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_the_ring_gives_all_the_same_sum(workers: int) -> None:
    """Of six shards: large arrays in several pieces, small ones, sparse rows, and parameters without a gradient."""
    random = np.random.default_rng(workers)

    def shard() -> list[Any]:
        rows = ut.IndexedRows(random.integers(-9, 9, 7), random.normal(size=(7, 2)), shape=(9, 2))
        large = random.normal(size=(300, 400)).astype(np.float32)
        return [large, None, rows, np.array(random.normal()), np.zeros((0, 3))]

    shards = [shard() for _ in range(6)]
    wanted = add_up([weighted(leaves, 0.25, False) for leaves in copy.deepcopy(shards)])
    mine = [weighted(leaves, 0.25, False) for leaves in copy.deepcopy(shards)]
    ring, queues = [(worker, 10 + worker) for worker in range(workers)], Queues()
    ends = [queues.end(place, workers) for place in range(workers)]
    found: list[Any] = [None] * workers

    def run(place: int) -> None:
        first, end = place * 6 // workers, (place + 1) * 6 // workers
        found[place] = all_reduce(ends[place], ring, place, mine[first:end])

    threads = [threading.Thread(target=run, args=(place,)) for place in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for total in found:
        assert total[1] is None
        assert learners.same_bits([total[0], total[3], total[4]], [wanted[0], wanted[3], wanted[4]])
        assert learners.same_bits([total[2].indices, total[2].rows], [wanted[2].indices, wanted[2].rows])
    dense = sum(leaves[2].dense() * 0.25 for leaves in shards)
    np.testing.assert_allclose(wanted[2].dense(), dense, rtol=1e-12)
    np.testing.assert_allclose(wanted[0], sum(leaves[0] * np.float32(0.25) for leaves in shards), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 5, 3000])
def test_rows_that_occur_often(count: int) -> None:
    """By Zipf's law, with negative numbers, and rows that are vectors, matrices or numbers."""
    random = np.random.default_rng(count)
    odds = 1 / np.arange(1, 401)
    for shape in ((400,), (400, 3), (400, 2, 2)):
        numbers = random.choice(400, count, p=odds / odds.sum()) - 400 * random.integers(0, 2, count)
        rows = ut.IndexedRows(numbers, random.normal(size=(count, *shape[1:])), shape=shape)
        (found,) = weighted([rows], 0.5, False)
        assert np.array_equal(found.indices, np.unique(numbers % 400))
        np.testing.assert_allclose(found.dense(), 0.5 * rows.dense(), rtol=1e-12, atol=1e-12)


def test_gradients_that_are_one_array() -> None:
    """What a function returns twice is not added to twice."""
    one = np.ones(3)
    first, second = weighted([one, one], 2.0, False)
    assert first.tolist() == second.tolist() == [2.0] * 3 and one.tolist() == [2.0] * 3
    assert not np.shares_memory(first, second)
    fixed = np.ones(3)
    fixed.flags.writeable = False
    assert weighted([fixed], 3.0, False)[0].tolist() == [3.0] * 3 and fixed[0] == 1


def test_memory_is_seen_by_others_while_it_is_there() -> None:
    memory = Memory()
    places = memory.put([b"abc", b"", os.urandom(3 << 20)])
    view = View(memory.where())
    assert bytes(view.at(places)[0]) == b"abc" and len(view.at(places)[2]) == 3 << 20
    larger = memory.put([b"x" * (9 << 20)])
    assert bytes(view.at(larger)[0][-3:]) == b"xxx"
    memory.clear()
    assert bytes(view.at(memory.put([b"new"]))[0]) == b"new"
    with pytest.raises(ut.RunError, match="are needed"):
        view.at([(1 << 40, 8)])
    with pytest.raises(TypeError):
        view.at(places)[0][0] = 0  # type: ignore[index, call-overload]
    process, descriptor, name = memory.where()
    for wrong in ([process, descriptor, "other"], [1 << 22, descriptor, name], [process, 1 << 20, name]):
        with pytest.raises(OSError, match=r"No such file|other"):
            View(wrong)


def test_rules_travel() -> None:
    sgd = ut.optim.SGD(0.1, momentum=0.9, nesterov=True)
    for optimizer in (sgd, ut.optim.Adam(0.1), ut.optim.RMSprop(0.1), ut.optim.Adagrad(lambda k: 1 / (k + 1))):
        rule = Rule(optimizer, 1.5, 0.1, (0, 2), (1,))
        again = Rule.from_json(rule.to_json())
        assert type(again.optimizer) is type(optimizer) and again.to_json() == rule.to_json()
        assert (again.clip, again.decay, again.decayed, again.slow) == (1.5, 0.1, (0, 2), (1,))
    with pytest.raises(ut.UndertowError, match="momentum of the optimizer"):
        Rule(ut.optim.SGD(0.1, momentum=np.ones(2))).to_json()  # type: ignore[arg-type]
