"""Calls with numbers and arrays alone take a short way; nobody can tell but by the clock."""

import copy
import dataclasses
import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pytest

import undertow as ut
from undertow.engines.contract import LateStats, Stats


def made():
    @ut.function
    def scaled(x, n: ut.i32):
        return x * n

    return scaled


class TestShortWay:
    def test_second_call_is_found(self):
        scaled = made()
        quick = scaled.__undertow_programs__.quick
        assert quick.find((2.5, 3)) is None
        assert scaled(2.5, 3) == 7.5
        program, inputs = quick.find((4.5, 5))
        assert program is scaled.__undertow_programs__.items()[0][1]
        assert [type(value) for value in inputs] == [np.float64, np.int32]
        assert scaled(4.5, 5) == 22.5

    @pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
    def test_each_type_of_argument_has_its_own(self, engine):
        scaled = made()
        array = np.arange(3.0, dtype=np.float32)
        with ut.options(engine=engine):
            for _ in range(2):
                for x, kind in [
                    (2, np.int32), (2.0, np.float64), (np.int64(2), np.int64), (True, np.int32),
                    (np.float32(2), np.float32), (np.int32(2), np.int32), (np.array(2.0), np.float64),
                ]:  # fmt: skip
                    found = scaled(x, 3)
                    assert type(found) is kind and found == 3 * x
                for x in (array, array.astype(np.int64), array[::2], np.zeros((0, 2))):
                    found = scaled(x, 3)
                    np.testing.assert_array_equal(found, 3 * x)
                    assert found.dtype == x.dtype

    def test_what_does_not_fit_is_an_error_every_time(self):
        scaled = made()
        assert scaled(1, 1) == 1
        for args in [(1, 2**40), (2**70, 1)]:
            for _ in range(2):
                with pytest.raises(ut.TypeMismatch, match="does not fit in"):
                    scaled(*args)
        with pytest.raises(ut.TypeMismatch, match="annotated as i32"):
            scaled(1, 1.5)
        with pytest.raises(ut.CaptureError, match="`n` is missing"):
            scaled(1)

    def test_too_large_for_f32_is_inf(self):
        @ut.function
        def same(x: ut.f32):
            return x

        for _ in range(2):
            assert same(1.0) == 1 and same(1e300) == np.inf

    def test_defaults_and_keywords_go_the_long_way(self):
        @ut.function
        def added(x, y=2.0):
            return x + y

        for _ in range(2):
            assert added(1.0) == 3 and added(1.0, y=3.0) == 4 and added(1.0, 4.0) == 5
        assert len(added.__undertow_programs__.quick) == 1

    def test_containers_are_taken_apart_alike(self):
        @dataclasses.dataclass
        class Pair:
            first: object
            second: object

        class Point(NamedTuple):
            x: float
            y: float

        @ut.function
        def total(x, y):
            if isinstance(x, dict):
                return x["a"] - x["b"][0] + y
            if isinstance(x, Pair):
                return x.first["c"] - x.second + y
            return x[0] - x[1] + y

        for scale in (1.0, 10.0):
            a, b = 3 * scale, np.array([scale, 2.0])
            assert total({"a": a, "b": (b[0],)}, 1.0) == 2 * scale + 1
            assert total({"b": [b[0]], "a": a}, 1.0) == 2 * scale + 1
            assert total(Pair({"c": a}, b[0]), 1.0) == 2 * scale + 1
            assert total((a, b[0]), 1) == total([a, b[0]], 1) == total(Point(a, float(b[0])), 1) == 2 * scale + 1
            np.testing.assert_array_equal(total((b, b), b), b)
        assert len(total.__undertow_programs__.quick) == 7

    def test_forests_of_all_sizes(self):
        @ut.function
        def words(forest, node: ut.i32) -> ut.i64:
            if forest.is_leaf(node):
                return 1
            return words(forest, forest.left[node]) + words(forest, forest.right[node])

        forest = ut.data.sentiment(20, seed=0)
        assert words(forest, 0) == (forest[0].size + 1) // 2
        program = words.__undertow_programs__.items()[0][1]
        for batch in [*forest.batches(3, seed=1)]:
            found = words.__undertow_programs__.quick.find((batch, 0))
            assert found is not None and found[0] is program
            assert words(batch, 0) == (batch[0].size + 1) // 2
        assert (
            words.__undertow_programs__.quick.find((ut.data.from_nested([("a", "b", "c")]), 0)) is None
        )  # it is not binary

    def test_forests_and_sparse_rows_are_taken_apart_too(self):
        @ut.function
        def words(forest, rows):
            return ut.sum(forest.word) + ut.sum(rows.rows)

        quick = words.__undertow_programs__.quick
        some = ut.IndexedRows([0, 2], np.ones((2, 3)), (4, 3))
        for depths in ([0, 1, 1], [0, 1, 1, 0], [0, 1, 1, 2, 2]):
            forest = ut.data.Forest.from_depths(depths, word=np.arange(len(depths)))
            assert words(forest, some) == sum(range(len(depths))) + 6
            program, leaves = quick.find((forest, some))
            assert program is words.__undertow_programs__.items()[0][1] and leaves[0] is forest.word
        assert len(words.__undertow_programs__) == 1
        other = ut.IndexedRows([0, 2], np.ones((2, 3)), (5, 3))
        assert quick.find((forest, other)) is None and words(forest, other) == 16

    def test_a_list_where_an_array_is_annotated(self):
        @ut.function
        def total(x: ut.f64[None]):
            return ut.sum(x)

        for _ in range(2):
            assert total([3.0]) == 3 and total([1.0, 2.0]) == 3 and total(np.ones(2)) == 2

    def test_a_field_that_is_not_set(self):
        @dataclasses.dataclass
        class Box:
            value: float

        @ut.function
        def opened(box):
            return box.value

        assert opened(Box(2.0)) == opened(Box(2.0)) == 2
        box = Box(1.0)
        del box.value
        with pytest.raises(ut.CaptureError, match="cannot flatten the arguments"):
            opened(box)

    def test_subclasses_of_containers_are_known_by_what_they_hold(self):
        class Items(list):
            pass

        @ut.function
        def size(items):
            return len(items) + 0.0

        for _ in range(2):
            for count in range(3):
                assert size(Items([1.0] * count)) == count
        assert len(size.__undertow_programs__.quick) == 3

    def test_what_is_static_goes_the_long_way(self):
        @ut.function
        def chosen(x, how):
            return x + 1 if how["name"] == "up" else x - 1

        for _ in range(2):
            assert chosen(1, {"name": "up"}) == 2 and chosen(1, {"name": "down"}) == 0

    def test_methods_keep_their_objects_apart(self):
        class Scale:
            def __init__(self, by):
                self.by = by

            @ut.function
            def times(self, x):
                return self.by * x

        double, triple = Scale(2.0), Scale(3.0)
        for _ in range(2):
            assert (double.times(5.0), triple.times(5.0)) == (10, 15)

    def test_named_dimensions_are_checked_every_time(self):
        @ut.function
        def dot(x: ut.f64["n"], y: ut.f64["n"]):  # noqa: F821
            return ut.sum(x * y)

        for _ in range(2):
            assert dot(np.ones(2), np.ones(2)) == 2 and dot(np.ones(3), np.ones(3)) == 3
            with pytest.raises(ut.TypeMismatch, match="dimension 'n'"):
                dot(np.ones(2), np.ones(3))

    def test_lengths_known_only_at_run_time_are_not_part_of_it(self):
        @ut.function
        def total(x: ut.f64[None]):
            return ut.sum(x)

        assert total(np.ones(2)) == 2
        for length in range(300):
            assert total.__undertow_programs__.quick.find((np.ones(length),)) is not None
            assert total(np.ones(length)) == length

    def test_types_without_end_are_not_all_kept(self, monkeypatch):
        monkeypatch.setattr("undertow.api.quick._MOST", 10)

        @ut.function
        def total(x):
            return sum([*x] + [0.0] * x.shape[0])  # needs to know the length

        for length in range(1, 15):
            assert total(np.ones(length)) == length
            assert (total.__undertow_programs__.quick.find((np.ones(length),)) is not None) == (length <= 10)

    def test_one_name_has_one_length_every_time(self):
        @ut.function
        def dot(x: ut.f64["n"], y: ut.f64["n"], z: ut.f64["m", 2]):
            return ut.sum(x * y) + ut.sum(z)

        for _ in range(2):
            for n, m in [(3, 3), (3, 4), (5, 5), (6, 2)]:  # lengths that happen to be equal mean nothing
                assert dot(np.ones(n), np.ones(n), np.ones((m, 2))) == n + 2 * m
            for n, m in [(3, 4), (4, 3)]:
                with pytest.raises(ut.TypeMismatch, match="the dimension 'n' is"):
                    dot(np.ones(n), np.ones(m), np.ones((m, 2)))
            with pytest.raises(ut.TypeMismatch):
                dot(np.ones(3), np.ones(3), np.ones((3, 3)))

    def test_variables_and_random_numbers_work_as_ever(self):
        count = ut.Variable(0)

        @ut.function
        def next_of(x):
            return count.assign_add(x)

        assert [int(next_of(2)) for _ in range(3)] == [2, 4, 6]


class TestWithoutPython:
    """Calls that the core runs at once, from arguments to result."""

    def test_results_of_every_structure(self):
        @dataclasses.dataclass
        class Pair:
            first: object
            second: object

        class Point(NamedTuple):
            x: float
            y: float

        @ut.function
        def made(x, n):
            return {
                "tuple": (x, n, ()), "list": [x + 1, [n, []]], 1: Point(n, x), None: Pair({"x": x}, "static"),
                "none": None, "empty": {},
            }  # fmt: skip

        for size in (3, 3, 500):  # the third is large: its memory is not copied
            x = np.arange(float(size))
            for _ in range(3):
                found = made(x, 2)
                assert list(found) == ["tuple", "list", 1, None, "none", "empty"]
                assert found["none"] is None and found["empty"] == {} and found["tuple"][1:] == (2, ())
                assert type(found[1]) is Point and type(found[None]) is Pair and found[None].second == "static"
                for array in (found["tuple"][0], found[1].y, found[None].first["x"], found["list"][0] - 1):
                    np.testing.assert_array_equal(array, x)
                    assert array is not x and array.flags.writeable and not np.shares_memory(array, x)
        assert made.__undertow_programs__.items()[0][1].direct is not None

    @pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.int64, np.float32, np.float64])
    def test_values_keep_their_bits(self, dtype):
        @ut.function
        def same(x, y):
            return y, x

        value = np.array([[1.7, -2.3], [0, 3.1]]).astype(dtype)
        for array in (value, value[::-1], value.T, value[:, 1:], value[:0], value[0, 0], np.asfortranarray(value)):
            for _ in range(3):
                scalar, found = same(array, dtype(2.5))
                assert type(scalar) is dtype and scalar == dtype(2.5)
                assert found.dtype == dtype and found.shape == array.shape and (found == array).all()

    def test_numbers_take_the_annotated_dtype(self):
        @ut.function
        def cast(a: ut.bool, b: ut.i32, c: ut.i64, d: ut.f32, e: ut.f64):
            return a, b, c, d, e

        kinds = [np.bool_, np.int32, np.int64, np.float32, np.float64]
        for _ in range(2):
            for args in [(True, 3, -4, 0.1, 0.1), (False, 7, 2**62, 2, 2), (True, True, False, True, False)]:
                found = cast(*args)
                assert [type(value) for value in found] == kinds
                assert list(found) == [kind(value) for kind, value in zip(kinds, args, strict=True)]
            for wrong in [(1, 3, 4, 0.1, 0.1), (True, 2**31, 4, 0.1, 0.1), (True, 3, 2**63, 0.1, 0.1)]:
                with pytest.raises(ut.TypeMismatch):
                    cast(*wrong)
            with pytest.raises(ut.TypeMismatch):
                cast(True, 1, 1, 1.0, 10**400)

    def test_what_only_looks_like_an_array_goes_the_long_way(self):
        class Mine(np.ndarray):
            pass

        @ut.function
        def total(x):
            return ut.sum(x)

        for x in (
            np.arange(3.0).view(Mine), np.arange(3, dtype=np.int16),
            np.arange(3, dtype=np.longlong), np.frombuffer(b"x" + np.arange(3.0).tobytes(), np.float64, offset=1),
        ):  # fmt: skip
            assert [total(x) for _ in range(3)] == [3, 3, 3]

    def test_errors_are_those_of_the_long_way(self):
        @ut.function
        def share(n: ut.i64, x) -> ut.f64:
            return 10 // n + x[0] if n < 5 else share(n - 1, x)

        x = np.ones(2)
        assert share(1, x) == share(1, x) == 11
        said = []
        for limits in ({}, {"timed": True}):  # timed runs take the long way
            with ut.options(**limits), pytest.raises(ut.Fault) as raised:
                share(0, x)
            said.append(str(raised.value))
            with ut.options(max_depth=3, **limits), pytest.raises(ut.RecursionLimit) as deep:
                share(30, x)
            said.append(str(deep.value))
        assert said[:2] == said[2:] and "share" in said[0] and "max_depth=3" in said[1]
        assert share(1, x) == 11

    def test_options_hold(self):
        @ut.function
        def down(n: ut.i64) -> ut.i64:
            return 0 if n <= 0 else down(n - 1)

        assert down(5) == 0
        for limits, error in [
            ({"timeout": 0}, ut.Timeout),
            ({"frames": 3}, ut.FrameLimit),
            ({"memory": 10}, ut.FrameLimit),
        ]:
            with ut.options(**limits), pytest.raises(error):
                down(100)
        with ut.options(engine="reference"):
            assert down(5) == 0
        assert down.__undertow_programs__.items()[0][1].plans.keys() == {
            ("waves", True, False, False),
            ("reference", True, False, False),
        }

    def test_keys_that_are_equal_and_not_the_same(self):
        @ut.function
        def first(x):
            return next(iter(x.values()))

        for _ in range(3):
            for key in ("a", "".join(["a", "b"]), 1, True, 1.0, None, (1, 2), 2**70):
                assert first({key: 2.5}) == 2.5
        assert len(first.__undertow_programs__.quick) == 5  # plain keys: a, ab, 1, None, 2**70

    def test_a_list_that_contains_itself_and_a_key_that_raises(self):
        class Key:
            def __hash__(self):
                return 1

            def __eq__(self, other):
                raise KeyboardInterrupt

        @ut.function
        def size(x):
            return ut.sum(x["x"])

        assert size({"x": np.ones(2)}) == 2
        with pytest.raises((KeyboardInterrupt, ut.UndertowError)):
            size({Key(): np.ones(2)})
        assert size({"x": np.ones(2)}) == 2

    def test_functions_and_what_they_know_are_garbage_in_the_end(self):
        @dataclasses.dataclass
        class Box:
            value: object

        def make():
            @ut.function
            def same(box):
                return Box(box.value), same  # a result that holds the function itself

            Box.kept = same
            for _ in range(3):
                assert same(Box(2.0))[0].value == 2 and same(Box(2.0))[1] is same
            return weakref.ref(same.__undertow_programs__)

        seen = make()
        del Box.kept
        gc.collect()
        assert seen() is None

    def test_many_threads_at_once(self):
        @ut.function
        def twice(x):
            return {"x": x * 2, "n": x.shape[0]}

        arrays = [np.full(n, float(n)) for n in range(1, 9)]

        def work(array):
            return all((twice(array)["x"] == 2 * array).all() for _ in range(200))

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, arrays))


class TestLateStats:
    def stats(self):
        asked = []

        def fill(name):
            asked.append(name)
            return {"per_node": {"a": 1}, "deepest_tag": (1,)}.get(name, 7)

        return LateStats.make(fill, engine="waves", seconds=0.5), asked

    def test_fields_are_filled_in_once(self):
        stats, asked = self.stats()
        assert stats.engine == "waves" and not asked
        assert stats.per_node is stats.per_node and asked == ["per_node"]
        assert "deepest_tag=(1,)" in repr(stats)

    def test_copies_are_whole(self):
        fields = {field.name: 7 for field in dataclasses.fields(Stats)}
        whole = Stats(**fields | {"engine": "waves", "per_node": {"a": 1}, "deepest_tag": (1,), "seconds": 0.5})
        for copied in (copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))):
            assert copied(self.stats()[0]) == whole
        assert dataclasses.asdict(self.stats()[0]) == dataclasses.asdict(whole)
        assert dataclasses.replace(self.stats()[0], waves=9).waves == 9

    def test_they_print_as_a_short_table_and_are_called_stats(self):
        stats, _ = self.stats()
        assert len(str(stats)) < 500 and "activations     7" in str(stats)
        assert repr(stats).startswith("Stats(")


def test_arrays_from_files_have_dtypes_of_their_own() -> None:
    """Equal to NumPy's, but other objects: they are the same signature, as arguments and outside."""
    table = pickle.loads(pickle.dumps(np.arange(3.0)))
    assert table.dtype is not np.dtype(np.float64)

    @ut.function
    def shifted(x: ut.f64[None]) -> ut.f64[None]:
        return x + table

    for number in range(3):
        table[0] = number
        assert shifted(pickle.loads(pickle.dumps(np.ones(3))))[0] == 1 + number
    assert len(shifted.__undertow_programs__) == 1
