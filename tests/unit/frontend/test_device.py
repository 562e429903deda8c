"""`ut.device`: on blocks, on whole functions, on helpers; what it refuses."""

from __future__ import annotations

from typing import Any

import cloudpickle
import pytest

import undertow as ut


def devices(function: ut.Function, *args: Any) -> dict[str, Any]:
    """The device of each operator that is no route, by the names of its function and its own."""
    return {
        f"{name}/{node.short_name}": node.attrs.get("device")
        for name, graph in function.library(*args).functions.items()
        for node in graph.nodes
        if graph.kind != "main" and node.op not in ("start", "param", "switch", "merge")
    }


@ut.device("worker:1")
@ut.function
def above(n: ut.i64) -> ut.i64:
    return n if n < 2 else above(n - 1) + above(n - 2)


@ut.function
@ut.device("worker:2")
def below(n: ut.i64) -> ut.i64:
    """A docstring."""
    return n * 2


@ut.device("worker:3")
def helper(x: Any, *, by: int = 2) -> Any:
    return x * by


@ut.device(["worker:0", "worker:1"])
@ut.function
def replicated(n: ut.i64) -> ut.i64:
    y = n * 2
    with ut.device("worker:2"):
        return y + 1


def test_above_and_below() -> None:
    assert set(devices(above, 5).values()) == {"worker:1"}
    assert set(devices(below, 5).values()) == {"worker:2"}
    assert above(10) == 55 and below(4) == 8
    assert below.__name__ == "below" and below.__doc__ == "A docstring."


def test_helpers() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:1"):
            return helper(x, by=3) + 1

    assert devices(f, 5) == {next(iter(devices(f, 5))): "worker:3", [*devices(f, 5)][1]: "worker:1"}
    assert helper(4) == 8 and f(4) == 13


def test_functions_in_functions() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        @ut.device("worker:1")
        def inner(y):
            return y * 2

        return inner(x) + 1

    assert sorted(map(str, devices(f, 5).values())) == ["None", "worker:1"]
    assert f(3) == 7


def test_methods() -> None:
    class Scale:
        __undertow_static__ = True

        def __init__(self, by: int) -> None:
            self.by = by

        @ut.device("worker:1")
        @ut.function
        def apply(self, x: ut.i64) -> ut.i64:
            return x * 3

        @ut.device("worker:2")
        @staticmethod
        def plain(x: int) -> int:
            return x + 1

    assert Scale(3).apply(5) == 15 and Scale.plain(1) == 2


def test_replicas() -> None:
    found = devices(replicated, 3)
    assert sorted(found.values()) == ["worker:0,worker:1", "worker:2"]
    assert replicated(3) == 7


def test_a_list_of_one() -> None:
    @ut.device(["worker:4"])
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n * 2

    assert set(devices(f, 3).values()) == {"worker:4"}


def test_the_inner_block_wins() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:0"):
            a = x + 1
            with ut.device("worker:1"):
                b = a * 2
                with ut.device(None):
                    c = b - 3
                with ut.device(""):
                    d = c // 5
            return d % 7

    assert [*devices(f, 5).values()] == ["worker:0", "worker:1", "", "", "worker:0"]


def test_an_early_return_leaves_the_block() -> None:
    @ut.function
    def f(x: ut.i64) -> ut.i64:
        with ut.device("worker:0"):
            if x > 3:
                return x * 2
            y = x - 1
        return y + 5

    found = {name.rpartition("/")[2]: device for name, device in devices(f, 5).items()}
    assert (found["multiply"], found["y"], found["add"]) == ("worker:0", "worker:0", None)
    assert (f(5), f(2)) == (10, 6)


def test_the_original_is_as_it_was() -> None:
    def plain(x: int) -> int:
        return x * 2

    placed = ut.function(ut.device("worker:1")(plain))
    free = ut.function(plain)
    assert set(devices(placed, 3).values()) == {"worker:1"} and set(devices(free, 3).values()) == {None}
    again = ut.device("worker:2")(placed)
    assert set(devices(again, 3).values()) == {"worker:2"} and set(devices(placed, 3).values()) == {"worker:1"}


def test_placed_functions_are_pickled() -> None:
    again = cloudpickle.loads(cloudpickle.dumps(above))
    assert again is above or set(devices(again, 5).values()) == {"worker:1"}

    @ut.device("worker:1")
    @ut.function
    def local(x):
        return x * 2

    copy = cloudpickle.loads(cloudpickle.dumps(local))
    assert set(devices(copy, 5).values()) == {"worker:1"} and copy(2) == 4


@pytest.mark.parametrize(
    "name", ["cpu", "gpu:0", "worker", "worker:", "worker:-1", "worker:01", "Worker:1", "worker:1 "]
)
def test_other_names(name: str) -> None:
    with pytest.raises(ut.TypeMismatch, match="there is no device") as caught:
        ut.device(name)
    assert "worker:1" in str(caught.value.hint)


def test_names_of_tensorflow() -> None:
    with pytest.raises(ut.TypeMismatch) as caught:
        ut.device("/job:local/task:1")
    assert "undertow.compat.v1" in str(caught.value.hint)


@pytest.mark.parametrize("wrong", [3, ["worker:1", 3], object(), {"worker:1"}])
def test_no_names(wrong: Any) -> None:
    with pytest.raises(ut.TypeMismatch, match="a device must be a name"):
        ut.device(wrong)


def test_lists() -> None:
    with pytest.raises(ut.TypeMismatch, match="a list of devices is empty"):
        ut.device([])
    with pytest.raises(ut.TypeMismatch, match="named twice"):
        ut.device(["worker:1", "worker:1"])
    with pytest.raises(ut.TypeMismatch, match="there is no device ''"):
        ut.device(["", "worker:1"])
    with pytest.raises(ut.CaptureError, match="a block has one device"), ut.device(["worker:0", "worker:1"]):
        pass


def test_a_list_for_a_helper() -> None:
    @ut.device(["worker:0", "worker:1"])
    def several(x: Any) -> Any:
        return x * 2

    @ut.function
    def f(x: ut.i64) -> ut.i64:
        return several(x)

    with pytest.raises(ut.CaptureError, match="captured inline: only a function of the graph has replicas"):
        f(3)


def test_a_generator() -> None:
    @ut.device("worker:0")
    def numbers(n: int) -> Any:
        yield n
        yield n + 1

    @ut.function
    def f(x: ut.i64) -> ut.i64:
        return sum(numbers(x))

    with pytest.raises(ut.CaptureError, match="is a generator, and has no device of its own"):
        f(3)


@pytest.mark.parametrize("wrong", [3, abs, ut.grad(above), int])
def test_no_python_function(wrong: Any) -> None:
    with pytest.raises(ut.CaptureError, match=r"@ut.device works on Python functions") as caught:
        ut.device("worker:1")(wrong)
    assert "a gradient is placed with what it differentiates" in str(caught.value.hint)
