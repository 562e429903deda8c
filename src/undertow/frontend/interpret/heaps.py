"""Functions of `heapq` and `bisect` in Python, for lists whose length is known only at run time: these are captured.

The steps are those of CPython's, so that a list holds its items in the same places.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Callable
from typing import Any


def _rise(heap: Any, start: Any, place: Any) -> None:
    item = heap[place]
    while place > start:
        above = (place - 1) >> 1
        parent = heap[above]
        if item < parent:
            heap[place] = parent
            place = above
        else:
            break
    heap[place] = item


def _sink(heap: Any, place: Any) -> None:
    end, start = len(heap), place
    item = heap[place]
    child = 2 * place + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[place] = heap[child]
        place = child
        child = 2 * place + 1
    heap[place] = item
    _rise(heap, start, place)


def heappush(heap: Any, item: Any) -> None:
    heap.append(item)
    _rise(heap, 0, len(heap) - 1)


def heappop(heap: Any) -> Any:
    last = heap.pop()
    result = last
    if len(heap) > 0:
        result = heap[0]
        heap[0] = last
        _sink(heap, 0)
    return result


def heapreplace(heap: Any, item: Any) -> Any:
    result = heap[0]
    heap[0] = item
    _sink(heap, 0)
    return result


def heappushpop(heap: Any, item: Any) -> Any:
    result = item
    if len(heap) > 0 and heap[0] < item:
        result = heap[0]
        heap[0] = item
        _sink(heap, 0)
    return result


def heapify(heap: Any) -> None:
    for place in reversed(range(len(heap) // 2)):
        _sink(heap, place)


def nsmallest(n: Any, iterable: Any, key: Any = None) -> Any:
    return sorted(iterable, key=key)[:n]


def nlargest(n: Any, iterable: Any, key: Any = None) -> Any:
    return sorted(iterable, key=key, reverse=True)[:n]


def bisect_left(a: Any, x: Any) -> Any:
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if a[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low


def bisect_right(a: Any, x: Any) -> Any:
    low, high = 0, len(a)
    while low < high:
        middle = (low + high) // 2
        if x < a[middle]:
            high = middle
        else:
            low = middle + 1
    return low


def insort_left(a: Any, x: Any) -> None:
    a.insert(bisect_left(a, x), x)


def insort_right(a: Any, x: Any) -> None:
    a.insert(bisect_right(a, x), x)


# Python's function -> ours; ours call each other.
IN_PYTHON: dict[Any, Callable[..., Any]] = {
    **{ours: ours for ours in (_rise, _sink, bisect_left, bisect_right)},
    **{
        getattr(heapq, ours.__name__): ours
        for ours in (heappush, heappop, heapreplace, heappushpop, heapify, nsmallest, nlargest)
    },
    **{getattr(bisect, ours.__name__): ours for ours in (bisect_left, bisect_right, insort_left, insort_right)},
}
