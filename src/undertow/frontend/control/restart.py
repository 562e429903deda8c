"""Starting a capture over: the only mechanism for it.

What a graph needs is often known only when it has been written: that it acts on the world, that a loop variable needs
a wider type, that a recursive call has other dimensions. So capture iterates to a fixpoint. An attempt that learns such
a fact too late raises `StartOver`; the owner of the fact sets it and makes another attempt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undertow.frontend.interpret.drive import Work
from undertow.ir.budget import check


class StartOver(Exception):
    """What was learned (attributes with their new values), and the owner that must start again with it."""

    def __init__(self, owner: object, **learned: Any) -> None:
        super().__init__(f"{', '.join(learned)} of {type(owner).__name__}")
        self.owner = owner
        self.learned = learned


class Halted(BaseException):
    """What is being captured ends here on every path: the program raises an exception at run time."""


def until_fixpoint(owner: object, attempt: Callable[[], Any]) -> Work:
    """The result of the first attempt that learns nothing new about its owner."""
    while True:
        check()
        try:
            return (yield attempt())
        except StartOver as restart:
            if restart.owner is not owner:
                raise
            for name, value in restart.learned.items():
                setattr(owner, name, value)
