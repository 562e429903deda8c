"""Transactions: a run works on the values of some cells, and commits what it has written as one step.

An interrupt comes before that step or after it: the cells have all the old values, or all the new ones. Transactions
that write the same cell come one after the other, whatever threads they are in; reading waits for nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from undertow import _core
from undertow.errors import RunError

Cell = _core.Cell
snapshot = _core.snapshot

_Result = TypeVar("_Result")


def transact(
    cells: dict[str, Cell],
    written: Iterable[str],
    work: Callable[[dict[str, Any]], _Result],
    store: Callable[[Any], Any],
    what: Callable[[str], str] = lambda name: f"variable `{name}`",
) -> _Result:
    """The result of `work`, which takes the values of cells, by name, and changes them in the dict that it is given.

    Those that it has written become what `store` makes of them, if nothing is raised. `what` names a cell in errors.
    """
    names = list(written)
    if not names:
        return work(snapshot(cells))

    def attempt(state: dict[str, Any]) -> tuple[_Result, list[Any]]:
        return work(state), [store(state[name]) for name in names]

    try:
        return _core.transact(cells, names, attempt)
    except _core.Taken as taken:
        name = taken.args[0]
    raise RunError(
        f"a run that writes {what(name)} is under way on this thread, and would have to end before this one",
        hint="what runs inside of a run (a signal handler, `__del__`, a callback) may read what that run writes; "
        "let it write something else, or run it later",
    )
