"""`print` in a captured function, where another library has put a function of its own in its place."""

from __future__ import annotations

import builtins

import pytest

import undertow as ut


def test_it_prints(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    own = builtins.print

    def safe_print(*args: object, **kwargs: object) -> None:
        own(*args, **kwargs)  # type: ignore[call-overload]

    monkeypatch.setattr(builtins, "print", safe_print)

    @ut.function
    def f(x: ut.i64) -> ut.i64:
        print("x is", x)
        return x + 1

    assert f(2) == 3
    assert capsys.readouterr().out == "x is 2\n"
