"""What was refused: counted, and logged as long as that helps."""

from __future__ import annotations

import logging

log = logging.getLogger("undertow.cluster")

FIRST = 8  # are logged; then the 16th, the 32nd, the 64th ...: who sends us nonsense cannot fill a disk with it


class Complaints:
    """Of one machine.

    >>> complaints = Complaints("worker 3")
    >>> [complaints.is_logged(number) for number in (1, 8, 9, 16, 17)]
    [True, True, False, True, False]
    """

    def __init__(self, who: str) -> None:
        self.count = 0
        self._who = who

    def add(self, source: str, why: str) -> None:
        """Something came from there, and was refused."""
        self.count += 1
        if self.is_logged(self.count):
            log.warning("%s refused, from %s: %s (%d refused so far)", self._who, source, why, self.count)

    @staticmethod
    def is_logged(number: int) -> bool:
        """Whether that one is."""
        return number <= FIRST or number & (number - 1) == 0
