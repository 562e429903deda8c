"""Functions of Python's on lists whose length is known only at run time."""

from __future__ import annotations

import builtins
import collections
import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.growing import call_method, in_order
from undertow.frontend.interpret.heaps import IN_PYTHON
from undertow.frontend.interpret.list_syntax import as_array, cut
from undertow.frontend.interpret.numpy_calls import holds_traced
from undertow.frontend.interpret.reducing import items_of
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.syntax.source import Env
from undertow.frontend.values import tree
from undertow.frontend.values.growing import NOTHING, GrowingList, item_type
from undertow.frontend.values.operands import as_weak
from undertow.frontend.values.traced import Traced, emit
from undertow.frontend.values.traced import length as extent

Handler = Callable[[Any, Sequence[Any], dict[str, Any], Env | None], Any]
_ARRAY = "np.array(items) is an array with all that arrays have"


def _length(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    if len(args) != 1 or kwargs or not isinstance(args[0], (GrowingList, TracedRange)):
        return NotImplemented
    items: Any = args[0] if isinstance(args[0], GrowingList) else items_of(args[0])
    return as_weak(emit("identity", [items.length])[0])


def _list(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) != 1 or kwargs:
        return NotImplemented
    made = yield interp.collected(args[0])
    if made is args[0]:
        return NotImplemented
    if made.kind is not list:
        made.kind = list
    return made


def _deque(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) != 1 or kwargs:
        raise CaptureError(
            "a deque with `maxlen` whose length is known only at run time cannot be captured",
            hint="take items from its other end: if len(queue) > most: queue.popleft()",
        )
    made = yield interp.collected(args[0])
    if made is args[0]:
        return NotImplemented
    made.kind = collections.deque
    return made


def _copy(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    items = args[0]
    if not isinstance(items, GrowingList) or kwargs:
        return NotImplemented
    return items.copy()


def _deep_copy(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    items = args[0]
    if not isinstance(items, GrowingList) or kwargs:
        return NotImplemented
    columns = [emit("identity", [column])[0] for column in items.columns]
    return GrowingList(items.item, columns, emit("identity", [items.length])[0], items.root.place, items.kind)


def _sorted(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    items = yield interp.collected(args[0])
    if not isinstance(items, GrowingList) or len(args) != 1 or kwargs.keys() - {"key", "reverse"}:
        return NotImplemented
    columns = yield in_order(interp, items, kwargs.get("key"), kwargs.get("reverse", False))
    made = items.with_columns(columns, extent(columns[0], 0) if columns else items.length)
    made.kind = list
    return made


COMPARING = frozenset(("sorted", "sort", "index", "count", "remove"))  # names of what compares items


def compare_items(interp: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
    """`sorted`, and methods of lists, of as many items as are known, which the run compares; else NotImplemented."""
    items, name = getattr(function, "__self__", None), getattr(function, "__name__", "")
    is_sorted = function is builtins.sorted and len(args) == 1
    if is_sorted:
        items, args = args[0], ()
        if isinstance(items, type({}.items())) or hasattr(type(items), "__next__"):
            return (yield interp.call(function, [(yield interp.call(list, [items], {}))], kwargs))
    is_ours = is_sorted or (type(items) is list and hasattr(list, name))
    if not is_ours or not isinstance(items, (list, tuple)) or not any(map(holds_traced, (*items, *args))):
        return NotImplemented
    item = item_type(items)
    if item in (None, NOTHING) or kwargs.keys() - {"key", "reverse"} or any(item_type([one]) != item for one in items):
        return NotImplemented  # an integer beside a float stays one
    compared = GrowingList.of(items, item)
    found = yield call_method(interp, compared, "sort" if is_sorted else name, args, kwargs)
    if name in ("index", "count"):
        return found
    after = [compared.get(np.int64(k)) for k in range(len(items) - (name == "remove"))]
    if is_sorted:
        return interp.owned.own(after)
    interp.owned.change(items, interp.written_at(function))
    function.__self__[:] = after
    return None


def _reduced(function: Any) -> Handler:
    """Of numbers alone, as of an array; else a loop of the graph does it."""

    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
        if not isinstance(args[0], GrowingList) or args[0].item[0] != (tree.LEAF,) or kwargs:
            return NotImplemented
        return (yield interp.call(function, [as_array(args[0]), *args[1:]], kwargs, env))

    return work


def _truth(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    return interp.truth(args[0]) if isinstance(args[0], GrowingList) else NotImplemented


def _fold(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) not in (2, 3) or kwargs:
        return NotImplemented
    function, over, *start = args
    if not start:
        items = yield interp.collected(over)
        over, start = cut(items, slice(1, None)), [items.get(0)]
    return (yield interp.folded(function, over, start[0]))


def _in_python(ours: Callable[..., Any]) -> Handler:
    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
        return (yield interp.invoke(interp.ctx.session.closure(ours), args, kwargs))

    return work


def _refused(what: str, hint: str) -> Handler:
    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
        raise CaptureError(f"{what} whose length is known only at run time cannot be captured", hint=hint)

    return work


_SET = "keep a flag for each number instead: seen = np.zeros(size, bool), then `seen[n] = True` and `if seen[n]:`"
_DICT = (
    "keep a value for each number instead: memo = np.zeros(size) and known = np.zeros(size, bool), "
    "then `if known[n]: return memo[n]`"
)
# Python function -> what it does with something whose length is known only at run time, or NotImplemented.
ON_LISTS: dict[Any, Handler] = {
    builtins.len: _length,
    builtins.list: _list,
    builtins.sorted: _sorted,
    collections.deque: _deque,
    copy.copy: _copy,
    copy.deepcopy: _deep_copy,
    **{function: _reduced(function) for function in (sum, min, max, any, all)},
    builtins.bool: _truth,
    functools.reduce: _fold,
    **{function: _in_python(ours) for function, ours in IN_PYTHON.items()},
    builtins.tuple: _refused("a tuple", "make a list of it: list(...)"),
    **{kind: _refused("a set", _SET) for kind in (set, frozenset)},
    builtins.dict: _refused("a dict", _DICT),
    collections.Counter: _refused("a Counter", "count with an array: counts = np.zeros(size, int); counts[n] += 1"),
}


def with_arrays(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of code that is not the user's, with arrays in place of such lists."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, (list, dict, set, collections.deque)) or isinstance(function, type):
        return list(args), kwargs  # it holds them as they are
    module = str(getattr(function, "__module__", ""))
    takes_arrays = module.split(".")[0] in ("numpy", "undertow") or isinstance(owner, (Traced, np.ndarray))
    if not takes_arrays and not isinstance(function, np.ufunc):
        name = getattr(function, "__name__", type(function).__name__)
        raise CaptureError(f"{name}() of a list whose length is known only at run time cannot be captured", hint=_ARRAY)

    def as_argument(value: Any) -> Any:
        return as_array(value) if isinstance(value, GrowingList) else value

    return [as_argument(a) for a in args], {name: as_argument(a) for name, a in kwargs.items()}
