"""Captures start over: who must know something is told, and tries again; others let it pass."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from undertow.frontend.control.restart import StartOver, until_fixpoint
from undertow.frontend.interpret.drive import drive


@dataclass
class Known:
    width: int = 1


def test_an_owner_tries_until_nothing_new_is_learned() -> None:
    known, tried = Known(), []

    def attempt() -> int:
        tried.append(known.width)
        if known.width < 4:
            raise StartOver(known, width=known.width * 2)
        return known.width

    assert drive(until_fixpoint(known, attempt)) == 4
    assert tried == [1, 2, 4]


def test_what_another_must_know_passes_through() -> None:
    outer, inner = Known(), Known()

    def attempt() -> int:
        if outer.width == 1:
            raise StartOver(outer, width=7)
        return outer.width + inner.width

    assert drive(until_fixpoint(outer, lambda: until_fixpoint(inner, attempt))) == 8


def test_a_restart_that_nobody_expects_says_what_it_is_about() -> None:
    def attempt() -> None:
        raise StartOver(Known(), width=2)

    with pytest.raises(StartOver, match="width of Known"):
        drive(until_fixpoint(Known(), attempt))
