"""Programs whose lanes are shared out, to threads and to workers; plans that cut wherever they may."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.programs import Program

import undertow as ut
from undertow.plan import schedule

D = 24


def cut_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call into a group from outside is cut, from two lanes on."""
    monkeypatch.setattr(schedule, "_TASK", 1)
    monkeypatch.setattr(schedule, "_FEWEST", 1)


@ut.function
def tree(w: ut.f32[2 * D, D], table: ut.f32[100, D], depth: ut.i64, number: ut.i64) -> ut.f32[D]:
    if depth <= number % 2:
        return table[number % 100]
    left = tree(w, table, depth - 1, 2 * number)
    right = tree(w, table, depth - 1, 2 * number + 1)
    return ut.tanh(ut.concat([left, right]) @ w) * 0.5 + left


@ut.function
def loss(w: ut.f32[2 * D, D], table: ut.f32[100, D], roots: ut.i64[None]) -> ut.f32:
    return ut.sum(ut.map(lambda root: ut.sum(tree(w, table, 4, root) ** 2), roots))


@ut.function
def grown(n: ut.i64) -> ut.f64[None]:
    """Of a length that only the run knows."""
    if n <= 0:
        return ut.arange(2.0)
    return ut.concat([grown(n - 1), ut.arange(1.0 * n)])


@ut.function
def grown_by_all(x: ut.f64[None], ns: ut.i64[None]) -> ut.f64:
    """Arrays of run-time shape go in and come out, and a map is inside."""

    def one(n: ut.i64) -> ut.f64:
        mine = ut.concat([grown(n), x[: n % 4]])
        return ut.sum(ut.map(lambda v: v * ut.sum(mine), mine))

    return ut.sum(ut.map(one, ns))


@ut.function
def lengths(ns: ut.i64[None]) -> ut.f64[None, None]:
    return ut.map(lambda n: grown(n % 1 + 3), ns)


@ut.function
def same_back(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    """An argument comes back as the result: its memory is the owner's."""
    return x if n <= 0 else same_back(x, n - 1)


def trees(roots: int = 150) -> list[Any]:
    random = np.random.default_rng(5)
    w = random.normal(0, 0.1, (2 * D, D)).astype(np.float32)
    return [w, random.normal(size=(100, D)).astype(np.float32), np.arange(roots)]


@ut.function
def fails(x: ut.f64[D], n: ut.i64) -> ut.f64:
    if n <= 0:
        return ut.sum(x)
    return fails(x / 2, n - 10) + x[n]


_KEPT_OUT = {"lazy", "deep", "fault", "effects", "random"}


def is_plain(program: Program) -> bool:
    values = program.cases[0]
    return (
        not _KEPT_OUT & program.tags and all(isinstance(x, (int, float, np.ndarray)) for x in values) and bool(values)
    )


def leaves(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from leaves(part)
    else:
        yield value
