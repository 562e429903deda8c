"""What is newer than the oldest Python that we promise: Undertow works where the standard library has not got it."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.blocks import tour
from tests.support.scripts import run_python

import undertow as ut

NEWER = {
    "math": ("cbrt", "exp2", "sumprod", "fma"),
    "itertools": ("batched",),
    "operator": ("call", "is_none", "is_not_none"),
    "datetime": ("UTC",),
    "contextlib": ("chdir",),
    "enum": ("StrEnum",),
    "hashlib": ("file_digest",),
    "copy": ("replace",),
}
WITHOUT = """
import {modules}
import asyncio, ctypes, igraph, json, multiprocessing, rich.console, safetensors.numpy, typer, numpy, xml.sax.saxutils
for name, newer in {newer!r}.items():
    for what in newer:
        vars(sys.modules[name]).pop(what, None)
import pkgutil, undertow
for module in pkgutil.walk_packages(undertow.__path__, "undertow."):
    if not module.name.startswith(("undertow.ray", "undertow.cluster", "undertow.__main__")):
        __import__(module.name)
"""


def test_the_tour_runs_without_what_is_newer(tmp_path: Path) -> None:
    program, printed = tour()
    modules = ", ".join(["sys", *NEWER])
    text = WITHOUT.format(modules=modules, newer=NEWER) + program
    (tmp_path / "tour.py").write_text(text, encoding="utf-8")
    done = run_python("tour.py", folder=tmp_path)
    assert (done.stdout, done.stderr) == (printed, "")


def test_types_stand_in_annotations() -> None:
    """In Python 3.10, typing asks whether they can be called."""
    note = ut.f64[3]
    assert callable(ut.i64) == callable(note) == callable(note | None) == (sys.version_info < (3, 11))
