"""Generates the update rules in C++, core/src/isa/update_rules.h, from those in Python.

`python -m undertow.api.update_header` writes it; a test sees to it that it is up to date. A rule is captured like any
other function, and its graph is written as expressions; a value that is used twice has a name.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from undertow.api.function import function
from undertow.api.update_rules import IN_CORE
from undertow.ir.graph import Operand, Port

_HEAD = """\
// clang-format off
// Generated from src/undertow/api/update_rules.py by `python -m undertow.api.update_header`: do not edit.
//
// A rule adds to an element of a parameter, held[0], and to those of its slots, which come after it.
#pragma once

#include <cmath>

namespace undertow::UNDERTOW_ISA {
"""
_EXPRESSIONS = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})",
    "negative": "(-{})", "sqrt": "std::sqrt({})",
}  # fmt: skip


def header() -> str:
    """The text of the file."""
    rows = " \\\n".join(f'  row<T, {_camel(rule.__name__)}<T>>("{rule.__name__}"),' for rule in IN_CORE)
    parts = [_HEAD, *(_struct(rule) for rule in IN_CORE), f"#define UNDERTOW_UPDATES(T) \\\n{rows}\n"]
    return "\n".join([*parts, "}  // namespace undertow::UNDERTOW_ISA\n"])


def _struct(rule: Callable[..., Any]) -> str:
    names = list(inspect.signature(rule).parameters)
    graph = function(rule).library(*(np.float32(1) for _ in names)).functions[rule.__name__]
    slots = len(graph.results) - 1
    uses = Counter(chain(graph.results, *(node.inputs for node in graph.nodes)))
    lines = ["template <class T>", f"struct {_camel(rule.__name__)} {{"]
    lines.append(f"  static constexpr int kSlots = {slots}, kSettings = {len(names) - 1 - slots};")
    lines.append("  static void update(T g, T* held, const T* settings) {")
    for place, some in (("held", names[: slots + 1]), ("settings", names[slots + 1 :])):
        said = [f"{name} = {place}[{k}]" for k, name in enumerate(some) if name != "g"]
        lines += [f"    const T {', '.join(said)};"] if said else []
    written: dict[Operand, str] = {}
    for number, node in enumerate(graph.nodes):
        port, text = Port(number), node.name
        if node.inputs:
            text = _EXPRESSIONS[node.op].format(*(written[port] for port in node.inputs))
            if uses[port] > 1:
                lines.append(f"    const T {node.name} = {text};")
                text = node.name
        written[port] = text
    lines += [f"    held[{k}] += {written[port]};" for k, port in enumerate(graph.results)]
    return "\n".join([*lines, "  }", "};", ""])


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def main() -> None:
    path = Path(__file__).parents[3] / "core" / "src" / "isa" / "update_rules.h"
    path.write_text(header(), encoding="utf-8")


if __name__ == "__main__":
    main()
