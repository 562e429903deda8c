"""A case: something hostile to run, and its text for whoever has to look at it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from undertow.errors import InternalError, UndertowError


@dataclass(frozen=True, eq=False)
class Case:
    """What to do, and what is printed when it goes wrong."""

    run: Callable[[], object]
    text: str
    allowed: tuple[type[BaseException], ...] = ()  # that it may raise besides our errors for users
    is_valid: bool = False  # it must end in a value: errors are no way out


def outcome(case: Case) -> str:
    """Run a case: "value", or the name of the error that it may end in. Raises whatever else it ends in."""
    try:
        case.run()
    except case.allowed as error:
        return type(error).__name__
    except UndertowError as error:
        if case.is_valid or isinstance(error, InternalError):
            raise
        return type(error).__name__
    return "value"
