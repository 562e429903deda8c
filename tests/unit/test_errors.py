"""What errors say: place, hint, and a tag traceback whose repeats are folded, however deep the recursion was."""

from __future__ import annotations

import pickle
import re
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undertow as ut
from undertow import errors
from undertow.errors import Call, Calls, Span, brief, fold_calls

CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, ut.UndertowError)]


def call(label: str) -> Call:
    return Call(label, None, "f")


def stands_for(line: str) -> int:
    """How many calls a line of a folded traceback stands for."""
    more = re.match(r"  \.\.\. (\d+) (more calls|calls left out)", line)
    return int(more[1]) if more else 1


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_is_public_and_ours(kind: type[ut.UndertowError]) -> None:
    assert getattr(ut, kind.__name__) is kind
    assert kind.__doc__
    error = kind("what happened", Span("model.py", 3, 5, "f"), "what to do")
    assert str(error) == "what happened\n  --> model.py:3, in f\n\nhint: what to do"
    assert (error.what, error.hint) == ("what happened", "what to do")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_errors_survive_pickling(kind: type[ut.UndertowError]) -> None:
    """They come back from other processes."""
    error = kind("what happened", Span("model.py", 3, 5, "f"), "what to do")
    if isinstance(error, ut.RunError):
        error.calls = (call("@1"), call("@2"))
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)


def test_a_span_shows_its_line(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("a = 1\n    b = 2   \n\n")
    assert Span(str(file), 2).show() == f"{file}:2\n      b = 2"
    assert Span(str(file), 3, function="f").show() == f"{file}:3, in f"
    assert Span(str(file), 99).show() == f"{file}:99"


def test_nothing_to_say() -> None:
    assert str(ut.UndertowError("what happened")) == "what happened"
    assert str(ut.RunError("what happened")) == "what happened"


def test_repeats_are_folded() -> None:
    assert fold_calls([call("@1"), *[call("@2")] * 10]) == [
        "  @1 in f",
        "  @2 in f",
        "  ... 9 more calls like the line above",
    ]
    assert fold_calls([call("@2"), call("@3")] * 10) == [
        "  @2 in f",
        "  @3 in f",
        "  ... 18 more calls like the 2 lines above, 9 times",
    ]
    # The period of a function that calls itself twice, once in each place, is found too.
    assert fold_calls([call("@2"), call("@2"), call("@3")] * 10 + [call("@9")]) == [
        "  @2 in f",
        "  @2 in f",
        "  @3 in f",
        "  ... 27 more calls like the 3 lines above, 9 times",
        "  @9 in f",
    ]


def test_two_calls_are_not_folded() -> None:
    assert fold_calls([call("@2")] * 2) == ["  @2 in f", "  @2 in f"]


def test_what_does_not_repeat_loses_its_middle() -> None:
    lines = fold_calls([call(f"@{n}") for n in range(1000)])
    assert len(lines) == 61
    assert lines[0] == "  @0 in f" and lines[-1] == "  @999 in f"
    assert lines[30] == "  ... 940 calls left out"


@given(st.lists(st.sampled_from("abc"), max_size=300))
def test_no_call_is_lost(labels: list[str]) -> None:
    lines = fold_calls([call(label) for label in labels])
    assert len(lines) <= 61
    assert sum(map(stands_for, lines)) == len(labels)


@pytest.mark.slow
def test_a_million_calls_are_folded_quickly() -> None:
    calls = [call("@1"), *[call("@2"), call("@3")] * 500_000]
    began = time.process_time()
    assert len(fold_calls(calls)) == 4
    assert time.process_time() - began < 30


def test_brief() -> None:
    assert brief("a\nb") == r"'a\nb'"
    assert brief([1,
                  2]) == "[1, 2]"  # fmt: skip
    assert brief(10**30) == "1" + "0" * 30
    assert brief(1 << 100_000_000) == "an integer of 100000001 bits"
    assert brief(object()) == "an object"
    assert len(brief("x" * 1000)) == 60

    class Broken:
        def __repr__(self) -> str:
            raise ValueError

    assert brief(Broken()) == "a Broken"


class TestCalls:
    """Tags of any length, as the core gives them: arrays of sites and indices, innermost first."""

    @staticmethod
    def made(*labels: tuple[int, int]) -> Calls:
        return Calls(np.array(labels, np.int64).reshape(-1, 2), lambda site, index: call(f"@{site} {index}"))

    def test_they_are_a_sequence_outermost_first(self):
        calls = self.made((3, 7), (2, -1), (1, -1))
        assert [one.label for one in calls] == ["@1 -1", "@2 -1", "@3 7"]
        assert calls[0].label == "@1 -1" and calls[-1].label == "@3 7" and len(calls) == 3
        assert calls[1:] == (calls[1], calls[2]) and calls[5:] == () and calls == tuple(calls)
        assert calls != tuple(calls)[:2] and calls != [*calls] and not self.made()
        assert pickle.loads(pickle.dumps(calls)) == tuple(calls) and repr(calls) == "<3 calls>"
        with pytest.raises(IndexError):
            calls[3]

    @given(st.lists(st.tuples(st.integers(1, 2), st.integers(-1, 0)), max_size=300), st.integers(1, 9))
    def test_they_fold_as_a_plain_sequence_does(self, labels, times):
        calls = self.made(*labels * times)
        assert fold_calls(calls) == fold_calls(tuple(calls))

    def test_millions_of_them_take_no_time(self):
        calls = Calls(np.ones((5_000_000, 2), np.int64), lambda site, index: call("@1"))
        began = time.process_time()
        lines = fold_calls(calls)
        assert lines[1:] == ["  ... 4999999 more calls like the line above"]
        assert time.process_time() - began < 1


class _Own(ValueError):
    pass


@ut.function
def _checked(x: ut.f64, key: str) -> ut.f64:
    if key == "own":
        raise _Own("own")
    assert key != "no", "not no"
    if key == "name":
        return nothing(x)  # type: ignore[name-defined,no-any-return]  # noqa: F821
    if key == "attribute":
        return key.nothing  # type: ignore[attr-defined,no-any-return]
    return x * {"a": 2.0}[key]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("b",), KeyError),
        (("own",), _Own),
        (("no",), AssertionError),
        ((), TypeError),
        (("name",), NameError),
        (("attribute",), AttributeError),
    ],
)
def test_what_python_raises_during_capture_is_caught_as_in_python(arguments: tuple[str], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        _checked(1.0, *arguments)
    assert isinstance(caught.value, ut.CaptureError) and type(caught.value).__name__ == "CaptureError"
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, kind) and str(again) == str(caught.value)
