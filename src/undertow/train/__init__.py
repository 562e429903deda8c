"""Training of models that label or generate trees: recipes, the loop, checkpoints, logs, curves and reports."""

from typing import TYPE_CHECKING, Any

from undertow.elsewhere import unknown_name
from undertow.tracebacks import boundary
from undertow.train.checkpoint import Checkpoint, load, save
from undertow.train.curve import curve_png
from undertow.train.growth import Growth, growth
from undertow.train.log import write_log
from undertow.train.loop import Epoch, Record, State, Step, fit, start
from undertow.train.recipe import Recipe
from undertow.train.report import Report, report
from undertow.train.score import Score, score
from undertow.train.source import Source, open_source

__all__ = [
    "Checkpoint", "Epoch", "Growth", "Recipe", "Record", "Report", "Score", "Source", "State", "Step", "curve_png",
    "fit", "growth", "load", "open_source", "report", "save", "score", "start", "write_log",
]  # fmt: skip


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    @boundary
    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.train", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
