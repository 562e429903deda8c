"""Exhibits as a page of the docs: tables in Markdown, plots as SVG. Every section keeps its machine and its date."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import common

from .book import rivals
from .printed import SOURCES

PICTURE = "papers-{}.svg"
FEW = 3  # panels in a row
NAMES = "\n".join(f"- *{rival.key}*: {rival.name}" for rival in rivals() if not rival.key.startswith("grow"))
HEAD = f"""# The experiments of the papers

*The tables and figures of the papers and theses, measured here, beside what they printed.* This page is written by
`make bench-papers ARGS=--page`. What rivals and trees are is in
[Benchmarks](benchmarks.md#the-tables-of-the-papers); where the rest of the papers is, in
[The papers, section by section](papers.md).

The machines of the papers are others, with up to 36 cores and a GPU, and ours runs on one thread unless a table says
otherwise: compare relations, not columns. A dash is what was not measured, or not printed. Times are of the processor
where nothing else is said, which leaves out other work on the machine, though not what that does to caches: the load is
given with each section, and a load above the number of cores means that other work was running.

{SOURCES}
Of those that tables name by a word,

{NAMES}
"""


def record(folder: Path, sections: dict[str, Any], about: dict[str, Any]) -> None:
    """A file for each section: what was measured earlier stays until it is measured again."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"commit": common.commit(), "machine": common.machine(), "date": f"{datetime.date.today()}", **about}
    for section, found in sections.items():
        (folder / f"{section}.json").write_text(json.dumps({**about, **found}, indent=1))


def draw(plot: dict[str, Any], file: Path) -> None:
    """Lines (or bars), one panel beside the other. The same numbers give the same bytes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": plot["name"], "svg.fonttype": "none", "font.size": 9})
    panels = plot["panels"]
    columns = min(len(panels), FEW)
    shape = -(-len(panels) // columns), columns
    width = max(4.2 * shape[1], 6.0)  # inches
    figure, axes = pyplot.subplots(*shape, figsize=(width, 3.3 * shape[0] + 0.6), squeeze=False)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (title, lines) in zip(axes.flat, panels.items(), strict=False):
        for number, (label, points) in enumerate(lines.items()):
            known = [(x, y) for x, y in points if y is not None]
            if plot["is_bar"]:
                bar = 0.8 / len(lines)
                places = [at + number * bar for at, (_, y) in enumerate(points) if y is not None]
                axis.bar(places, [y for _, y in known], bar, label=label)
            elif known:
                axis.plot(*zip(*known, strict=True), marker="o", markersize=3, label=label)
        if plot["level"] is not None:
            axis.axhline(plot["level"], color="grey", linewidth=0.7, linestyle="--")
        if plot["is_bar"]:
            some = next(iter(lines.values()))
            axis.set_xticks([at + 0.4 - 0.4 / len(lines) for at in range(len(some))], [str(x) for x, _ in some])
        for letter in plot["log"]:
            axis.set(**{f"{letter}scale": "log"})
        if "y" not in plot["log"]:
            axis.set_ylim(bottom=0)
        axis.set(title=title, xlabel=plot["across"], ylabel=plot["up"])
    handles, labels = axes.flat[0].get_legend_handles_labels()
    alike = all(list(lines) == list(next(iter(panels.values()))) for lines in panels.values())
    if alike:
        wide = max(len(label) for label in labels) + 6  # characters, of which an inch has about twelve
        figure.legend(handles, labels, loc="outside lower center", ncols=max(1, int(12 * width // wide)), fontsize=8)
    else:
        for axis in axes.flat[: len(panels)]:
            axis.legend(fontsize=7)
    figure.set_layout_engine("constrained")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    # One coordinate needs no six digits, and no line ends in a blank.
    file.write_text("\n".join(line.rstrip() for line in file.read_text().splitlines()) + "\n")


def table(exhibit: dict[str, Any]) -> list[str]:
    def row(cells: list[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

    return [row(exhibit["columns"]), row(["---"] * len(exhibit["columns"])), *map(row, exhibit["rows"])]


def measured(found: dict[str, Any]) -> str:
    machine = found["machine"]
    parts = [
        f"Measured {found['date']} at commit `{found['commit']}`",
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load'].split()[0]}",
        f"Python {machine['python']}, NumPy {machine['numpy']}",
        f"`{found['command']}`" if found.get("command") else "",
        found.get("trees", ""),
    ]
    return ". ".join(filter(None, parts)) + "."


def write(records: Path, order: dict[str, str], page: Path, pictures: Path) -> None:
    """The page and its pictures, from the files of all sections that have been measured."""
    lines = [HEAD]
    for section, title in order.items():
        file = records / f"{section}.json"
        if not file.exists():
            continue
        found = json.loads(file.read_text())
        lines += [f"## {title}", "", measured(found), ""]
        for exhibit in found["exhibits"]:
            lines += [f"**{exhibit['title']}** ({exhibit['of']})", "", *table(exhibit), ""]
            lines += [line for note in exhibit["notes"] for line in (f"{note}", "")]
            for plot in exhibit["plots"]:
                picture = pictures / PICTURE.format(plot["name"])
                draw(plot, picture)
                lines += [f"![{exhibit['title']}]({picture.relative_to(page.parent).as_posix()})", ""]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
