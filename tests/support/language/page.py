"""Writes the language table as docs/reference/language.md."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence

import numpy as np
from tests.support.language.case import COLUMNS, Case
from tests.support.language.judge import Verdict
from tests.support.language.table import SECTIONS

HEAD = """\
# The language: what works and what is refused

<!-- Written by `pytest tests/language --update`, with {versions}; do not edit. -->

A captured function means what Python means, or it is refused with your line and a hint. This table says which, for
every class of syntax, every built-in function, and every name of NumPy. It is generated: each cell was tried with small
functions like `def f(x): return np.sum(x, axis=0)`, called several times with different values, with CPython and NumPy
as the oracle. *Static* values are known when the function is captured: constants, and what Python computes from
them. *Scalar* is a number, *array* a NumPy array, *container* a list, tuple or dict: arguments, whose values change
from call to call.

- **yes**: the same values as in CPython, in every case tried.
- **no**: refused in every case tried; the last column has the beginning of one message.
- **some**: some cases work, others are refused, such as `out=` of NumPy's functions.
- error: CPython raises an error, and so does the captured function.

What differs from Python by design is at the end of [Promises](promises.md#where-a-program-may-differ-from-python).
"""


def versions() -> str:
    python = ".".join(platform.python_version_tuple()[:2])
    return f"Python {python} and NumPy {'.'.join(np.__version__.split('.')[:2])}"


def cell(verdicts: Sequence[Verdict]) -> str:
    kinds = {v.status for v in verdicts}
    if not kinds:
        return ""
    if "works" in kinds:
        return "some" if "refused" in kinds else "yes"
    return "no" if "refused" in kinds else "error"


def short(reason: str) -> str:
    """The beginning of a message, without numbers and shapes of the case."""
    text = reason.partition("; ")[0].partition(": ")[0]
    text = re.sub(r"\bf(?!32\b|64\b)\d+\b", "f", text)  # the number of the case
    return text.replace("|", "\\|")[:90]


def block(name: str, cases: Sequence[Case], verdicts: Sequence[Verdict]) -> str:
    """The text of a section."""
    section = SECTIONS[name]
    rows: dict[str, dict[str, list[Verdict]]] = {}
    for case, verdict in zip(cases, verdicts, strict=True):
        rows.setdefault(case.row, {}).setdefault(case.column, []).append(verdict)
    lines = [f"## {section.title}\n", f"{section.about}\n"]
    shown, refused, static = [], [], []
    for row, columns in rows.items():
        cells = {column: cell(columns.get(column, ())) for column in COLUMNS}
        traced = {cells[c] for c in COLUMNS[1:]} - {""}
        if traced <= {"no", "error"} and "no" in traced and name not in ("syntax", "builtins"):
            refused.append(row)
        elif not traced - {"error"} and name not in ("syntax", "builtins"):
            static.append(row)
        else:
            reason = next((v.reason for vs in columns.values() for v in vs if v.status == "refused"), "")
            shown.append(f"| `{row}` | {' | '.join(cells[c] for c in COLUMNS)} | {short(reason)} |")
    if shown:
        lines += [
            f"| | {' | '.join(COLUMNS)} | refused, for example |",
            f"|---|{'---|' * len(COLUMNS)}---|",
            *shown,
            "",
        ]
    for what, listed in (("Refused with traced values", refused), ("Only for static values", static)):
        if listed:
            lines += [f"{what}: {', '.join(f'`{row}`' for row in listed)}.", ""]
    return "\n".join(lines)


def blocks_of(page: str) -> dict[str, str]:
    """The sections of a page, by name."""
    titles = {section.title: name for name, section in SECTIONS.items()}
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    return {
        titles[part.partition("\n")[0][3:]]: part.rstrip() + "\n"
        for part in parts
        if part.partition("\n")[0][3:] in titles
    }


def page_of(blocks: dict[str, str]) -> str:
    """The page of some sections."""
    head = HEAD.format(versions=versions())
    return "\n".join([head, *(blocks[name].rstrip() + "\n" for name in SECTIONS if name in blocks)])
