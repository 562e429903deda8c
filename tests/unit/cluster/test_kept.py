"""Large values that workers have already: what arrives is what was sent, and no more goes than must."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.cluster.kept import BLOCK, MOST, Teller, Told
from undertow.errors import RunError

PLANS = (b"one", b"two")


class Ends:
    """The program's end, and those of two workers."""

    def __init__(self) -> None:
        self.teller = Teller()
        self.told = [Told(), Told()]

    def pass_on(self, values: list[list[np.ndarray]], plans: tuple[bytes, ...] = PLANS) -> int:
        """How many bytes went. Each worker must have its values."""
        about, said = self.teller.tell(plans, [[value.view(np.uint8).data for value in own] for own in values])
        size = 0
        for told, own, (whole, buffers) in zip(self.told, values, said, strict=True):
            found = told.take(about["kept"], about["dropped"], whole, [bytes(buffer) for buffer in buffers])  # type: ignore[arg-type]
            assert [one.tobytes() for one in found] == [value.tobytes() for value in own]
            size += sum(memoryview(buffer).nbytes for buffer in buffers)
        return size


def numbers(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << 60, count)


def test_what_has_not_changed_is_not_sent() -> None:
    ends, value = Ends(), numbers(10_000)
    assert ends.pass_on([[value], [value]]) == 2 * value.nbytes
    assert ends.pass_on([[value], [value.copy()]]) <= value.nbytes * 2
    assert ends.pass_on([[value], [value]]) in (0, 2 * value.nbytes)
    assert ends.pass_on([[value], [value]]) == 0


def test_blocks_that_have_changed_are_sent() -> None:
    ends, value = Ends(), numbers(10_000)
    ends.pass_on([[value], [value]])
    value[[3, 4, 7000]] += 1
    assert ends.pass_on([[value], [value]]) == 2 * 2 * (BLOCK + 8)
    value[-1] += 1  # what follows the last whole block
    assert ends.pass_on([[value], [value]]) == 2 * (value.nbytes % BLOCK)


def test_much_that_has_changed_is_sent_whole() -> None:
    ends, value = Ends(), numbers(10_000)
    ends.pass_on([[value], [value]])
    assert ends.pass_on([[value + 1], []]) == value.nbytes


def test_values_that_were_one_may_differ_later() -> None:
    ends, value = Ends(), numbers(10_000)
    ends.pass_on([[value, value], [value]])
    other, third = value.copy(), value.copy()
    other[0] += 1
    third[5000] += 1
    ends.pass_on([[value, other], [third]])
    ends.pass_on([[third, other], [other]])


def test_numbers_and_sizes_of_values_may_change() -> None:
    ends = Ends()
    for count in (3, 1, 2, 0, 2):
        ends.pass_on([[numbers(1000 + k, k) for k in range(count)], [numbers(1000 * count, 7)]])


def test_only_the_last_plans_are_kept() -> None:
    ends, value = Ends(), numbers(10_000)
    names = [(b"%d" % k, b"x") for k in range(MOST + 1)]
    for plans in names:
        assert ends.pass_on([[value], []], plans) == value.nbytes
    assert ends.pass_on([[value], []], names[-1]) == 0
    assert ends.pass_on([[value], []], names[0]) == value.nbytes


def test_a_change_of_what_was_never_told_is_refused() -> None:
    with pytest.raises(RunError, match="never told"):
        Told().take(1, [], [False], [b"", b"", b""])
