"""Gradients added up by torch.distributed: the ring's results, but for rounding, with a worker lost in between."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from tests.support import learners

from undertow.cluster.local import open_pool
from undertow.parallel.trainer import DataParallel

pytest.importorskip("torch", reason="make test-torch installs it")
pytestmark = [pytest.mark.torch, pytest.mark.slow]

STEPS = 9


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_as_the_ring(how: signal.Signals) -> None:
    losses, arrays = learners.expected(STEPS)
    with open_pool(3, "undertow.parallel.service:services") as pool:
        trainer = DataParallel(
            learners.loss, learners.params(), learners.OPTIMIZER, has_aux=True, clip=0.5, cluster=pool, reduce="torch"
        )
        found = []
        for number, batch in enumerate(learners.batches(STEPS)):
            if number == 3:
                os.kill(pool.stats()[1].process, how)
            if number == 6:
                pool.wait_for_workers(3, 60.0)
            found.append(trainer.step(batch)[0])
        assert trainer.again == 1 and all(row.activations > 0 for row in pool.stats())
        np.testing.assert_allclose(found, losses, rtol=1e-9)
        for one, other in zip(trainer._fleet.replica.arrays(), arrays, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-12)
