"""Sorting as in textbooks: quicksort by masks, quicksort in place, and merge sort in place.

A function that changes its argument changes the caller's array, as in Python; the outermost call has a copy of it.
"""

import numpy as np

import undertow as ut


@ut.function
def quicksort(x: ut.f64[None]) -> ut.f64[None]:
    """What is smaller than a pivot, sorted; the pivot; what is larger, sorted. Both halves run side by side."""
    if len(x) <= 1:
        return x
    pivot = x[len(x) // 2]
    return np.concatenate([quicksort(x[x < pivot]), x[x == pivot], quicksort(x[x > pivot])])


@ut.function
def partition(x: ut.f64[None]):
    """Move what is smaller than the last element to the front, and that element behind it. Its place."""
    last, place = len(x) - 1, 0
    for k in range(last):
        if x[k] < x[last]:
            x[place], x[k] = x[k], x[place]
            place += 1
    x[place], x[last] = x[last], x[place]
    return place


@ut.function
def quicksort_in_place(x: ut.f64[None]) -> ut.f64[None]:
    if len(x) > 1:
        place = partition(x)
        quicksort_in_place(x[:place])
        quicksort_in_place(x[place + 1 :])
    return x


@ut.function
def merge_sort(x: ut.f64[None]) -> ut.f64[None]:
    if len(x) > 1:
        left, right = x[: len(x) // 2].copy(), x[len(x) // 2 :].copy()
        merge_sort(left)
        merge_sort(right)
        i = j = 0
        for k in range(len(x)):
            if j == len(right) or (i < len(left) and left[i] <= right[j]):
                x[k], i = left[i], i + 1
            else:
                x[k], j = right[j], j + 1
    return x


numbers = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0])
for sort in (quicksort, quicksort_in_place, merge_sort):
    assert sort(numbers.copy()).tolist() == sorted(numbers)
    print(sort.__name__, sort(numbers.copy()))
