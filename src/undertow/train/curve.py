"""A learning curve as a PNG picture. Only this file imports matplotlib, and only to draw."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path

from undertow.errors import UndertowError
from undertow.train.growth import perplexity
from undertow.train.loop import Record

_MARKED = 40  # up to this many epochs get a marker each; with more, the markers would merge into a thick line


def curve_png(history: Sequence[Record], nodes: tuple[float, float] | None = None) -> bytes:
    """Loss and accuracy by epoch, of the training and the dev set, as the bytes of a PNG file. Needs matplotlib.

    A model that generates trees has no accuracy. Its perplexity is shown instead if `nodes` is given: the mean number
    of nodes per tree of the training and of the dev set. Otherwise only the loss is shown.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise UndertowError("a learning curve needs matplotlib", hint="pip install 'undertow[plots]'") from None
    losses = [r.train_loss for r in history], [r.dev_loss for r in history]
    accuracies = [r.train_accuracy for r in history], [r.dev_accuracy for r in history]
    panels = {"loss": losses}
    if not all(map(math.isnan, accuracies[0] + accuracies[1])):
        panels["accuracy"] = accuracies
    elif nodes is not None:
        train, dev = ([perplexity(loss, count) for loss in part] for part, count in zip(losses, nodes, strict=True))
        panels["perplexity"] = train, dev
    figure = Figure(figsize=(7.2, 3), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, curves) in zip(axes, panels.items(), strict=True):
        for curve, label, colour in zip(curves, ("train", "dev"), ("#9aa1ab", "#2f6fc4"), strict=True):
            finite = [value if math.isfinite(value) else math.nan for value in curve]
            marker = "o" if len(history) <= _MARKED else ""
            axis.plot(range(1, len(history) + 1), finite, marker=marker, color=colour, label=label)
        axis.set(title=title, xlabel="epoch", xlim=(0.5, max(len(history), 1) + 0.5), ylim=(0, None))
        axis.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        axis.grid(alpha=0.4)
        axis.legend()
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return picture.getvalue()


def write_curve(path: Path, history: Sequence[Record], nodes: tuple[float, float] | None = None) -> str:
    """Write the picture and return its name, or how to install matplotlib if that is missing."""
    try:
        path.write_bytes(curve_png(history, nodes))
    except UndertowError as error:
        return f"no {path.name}: {error.what} ({error.hint})"
    return path.name
