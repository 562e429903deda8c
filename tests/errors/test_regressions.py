"""What once went wrong without a word, or with the wrong one, and is right now."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import undertow as ut


def test_a_python_number_returned_from_a_loop_takes_the_annotated_dtype() -> None:
    @ut.function
    def first_large(x: ut.f32[None]) -> ut.f32:
        for i in range(x.shape[0]):
            if x[i] > 10:
                return 1
        return x[0]

    assert first_large(np.array([1, 20], np.float32)) == 1
    assert first_large(np.array([3, 4], np.float32)) == 3
    assert first_large(np.array([3, 4], np.float32)).dtype == np.float32


def test_each_return_is_converted_to_the_annotated_dtype() -> None:
    @ut.function
    def pick(a: ut.i32, b: ut.i64) -> ut.i64:
        if a > b:
            return a
        return b

    assert pick(3, 2) == 3 and pick(3, 2).dtype == np.int64
    assert pick(1, 2) == 2


def test_a_variable_without_a_value_may_stay_the_same_in_a_loop() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        mode, helper = "fast", None
        total = 0
        for i in range(n):
            mode = "fast"
            helper = None
            if helper is None and mode == "fast":
                total = total + i
        return total if mode == "fast" else -1

    assert f(4) == 6


def test_a_variable_that_changes_in_a_loop_may_be_used_inside_only() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        last = None
        total = 0
        for i in range(n):
            last = i * 2
            total = total + last
        return total

    assert f(4) == 12


def test_lists_of_python_numbers_take_the_annotated_dtype_in_map() -> None:
    @ut.function
    def double(x: ut.f32) -> ut.f32:
        return x * 2

    assert double.map([1, 2]).dtype == np.float32
    assert double.map(range(3)).tolist() == [0, 2, 4]
    with pytest.raises(ut.TypeMismatch, match="annotated as i64"):
        ut.function(_integer).map([1.5, 2.5])


def _integer(n: ut.i64) -> ut.i64:
    return n


def test_a_list_of_floats_is_not_cut_to_integers() -> None:
    @ut.function
    def total(x: ut.i64[None]) -> ut.i64:
        return ut.sum(x)

    assert total([1, 2]) == 3
    assert total([True, False]) == 1
    assert total([]) == 0
    with pytest.raises(ut.TypeMismatch):
        total([1.5, 2.5])
    with pytest.raises(ut.TypeMismatch, match="does not fit"):
        total([1, 2**70])


def test_unsigned_integers_do_not_wrap() -> None:
    @ut.function
    def same(x):
        return x

    assert same(np.uint32(2**32 - 1)) == 2**32 - 1
    assert same(np.uint8(200)) == 200
    with pytest.raises(ut.TypeMismatch, match="uint64"):
        same(np.array([1, 2**63], np.uint64))


def test_numbers_too_large_for_f32_are_inf_without_a_warning() -> None:
    @ut.function
    def f(x: ut.f32) -> ut.f32:
        if x > 1:
            return 1e300
        y = 1e300
        while y < x:
            y = y * x
        return x

    assert math.isinf(f(1e300))
    assert math.isinf(f(2.0))
    assert f(0.5) == 0.5


def test_map_outside_of_a_capture_takes_lists() -> None:
    assert ut.map(lambda x: x + 1, [1, 2]).tolist() == [2, 3]
    with pytest.raises(ut.TypeMismatch, match="a map over 2 and 3 items"):
        ut.map(lambda x, y: x + y, [1, 2], [1, 2, 3])
    assert [x.tolist() for x in ut.map(lambda n: np.zeros(n), [1, 2])] == [[0.0], [0.0, 0.0]]


def test_dtypes_are_no_sequences() -> None:
    with pytest.raises(TypeError):
        list(ut.f32)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        assert 3 not in ut.f32  # type: ignore[operator]


def test_containers_are_taken_apart_without_their_methods() -> None:
    class Broken(dict[str, Any]):
        def values(self) -> Any:
            raise ValueError("no values today")

    @ut.function
    def f(x):
        return 1

    assert f(Broken(a=1)) == 1


def test_what_a_generator_raises_at_its_end_is_not_taken_for_ours() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n + next(iter([]))

    with pytest.raises(ut.CaptureError, match="StopIteration"):
        f(1)


def test_an_exit_is_an_error_of_the_program() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        raise SystemExit(3)

    with pytest.raises(ut.CaptureError, match="SystemExit"):
        f(1)


def test_errors_in_other_files_show_the_line_there() -> None:
    def helper(x: Any) -> Any:
        return x @ x

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        total = n
        for _ in range(n):
            total = total + helper(n)
        return total

    with pytest.raises(ut.TypeMismatch) as caught:
        f(1)
    assert caught.value.span is not None
    assert caught.value.span.source().strip() == "return x @ x"


@pytest.mark.parametrize("times", [3, 20])
def test_static_structures_may_shrink_at_every_call(times: int) -> None:
    """Only arguments that grow are refused early."""

    @ut.function
    def depth(pair) -> ut.i64:
        if isinstance(pair, tuple):
            return depth(pair[1]) + pair[0]
        return pair

    value: Any = 1
    for _ in range(times):
        value = (1, value)
    assert depth(value) == times + 1
