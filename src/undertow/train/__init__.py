"""Training of the models that label trees, or grow them: recipes, the loop, checkpoints, logs, curves and reports."""

from undertow.train.checkpoint import Checkpoint as Checkpoint
from undertow.train.checkpoint import load as load
from undertow.train.checkpoint import save as save
from undertow.train.curve import curve_png as curve_png
from undertow.train.growth import Growth as Growth
from undertow.train.growth import growth as growth
from undertow.train.log import write_log as write_log
from undertow.train.loop import Epoch as Epoch
from undertow.train.loop import Record as Record
from undertow.train.loop import State as State
from undertow.train.loop import Step as Step
from undertow.train.loop import fit as fit
from undertow.train.loop import start as start
from undertow.train.recipe import Recipe as Recipe
from undertow.train.report import Report as Report
from undertow.train.report import report as report
from undertow.train.score import Score as Score
from undertow.train.score import score as score
from undertow.train.source import Source as Source
from undertow.train.source import open_source as open_source

__all__ = [
    "Checkpoint", "Epoch", "Growth", "Recipe", "Record", "Report", "Score", "Source", "State", "Step",
    "curve_png", "fit", "growth", "load", "open_source", "report", "save", "score", "start", "write_log",
]  # fmt: skip
