"""The commands `undertow data inspect | convert | sample`: files of trees, and generated trees."""

from __future__ import annotations

import inspect as reflection
import math
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import undertow as ut
from undertow.cli.console import make_console, table, telling_errors
from undertow.data import Forest
from undertow.data.files import FORMATS, WRITERS, check_file, format_of
from undertow.data.nested import name_of

app = typer.Typer(
    help="Inspect, convert and generate files of trees.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Input = Annotated[Path, typer.Argument(metavar="FILE", help="A file of trees.")]
From = Annotated[
    str | None, typer.Option("--from", help=f"Format of the file, if not clear from its name: {', '.join(FORMATS)}.")
]
MinCount = Annotated[int, typer.Option(help="Replace words that occur less often by <unk>.")]
Binary = Annotated[bool, typer.Option("--binary", help="Require 0 or 2 children; for ListOps, read the binary form.")]


class Kind(str, Enum):
    """What `undertow data sample` makes."""

    listops = "listops"
    booleans = "booleans"
    arithmetic = "arithmetic"
    sentiment = "sentiment"


@app.command()
def inspect(
    file: Input,
    source: From = None,
    tree: Annotated[int, typer.Option(help="Number of the tree to show; -1 for none.")] = 0,
    min_count: MinCount = 1,
    binary: Binary = False,
) -> None:
    """Summarize a file of trees, and show one of them."""
    with telling_errors():
        forest = _read(file, source, min_count, binary)
        make_console().print(table(_summary(forest)))
        if len(forest) and tree >= 0:
            typer.echo(f"\ntree {tree}:\n{forest[tree].text()}")


@app.command()
def convert(
    file: Input,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="File to write; an .svg file is a picture.")],
    source: From = None,
    to: Annotated[str | None, typer.Option(help="Format to write, if not clear from the name.")] = None,
    min_count: MinCount = 1,
    binary: Binary = False,
) -> None:
    """Read trees in one format and write them in another."""
    with telling_errors():
        forest = _read(file, source, min_count, binary)
        if not len(forest):
            raise ut.DataError(f"{str(file)!r} holds no trees", hint="check the file; nothing was written")
        _write(forest, output, to)


@app.command()
def sample(
    kind: Annotated[Kind, typer.Argument(help="Kind of trees.")],
    trees: Annotated[int, typer.Option("--trees", "-n", help="How many.")] = 5,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    max_depth: Annotated[int | None, typer.Option(help="Maximum depth.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    to: Annotated[str | None, typer.Option(help="Format: brackets, sexpressions, listops, jsonl or npz.")] = None,
    text: Annotated[bool, typer.Option("--text", help="Draw the trees as text.")] = False,
) -> None:
    """Generate trees, with the exact label of every node."""
    with telling_errors():
        make: Callable[..., Forest] = getattr(ut.data, kind.value)
        forest = make(trees, seed=seed, **({} if max_depth is None else {"max_depth": max_depth}))
        if output is not None:
            _write(forest, output, to)
        elif text:
            typer.echo(forest.text(most=trees))
        else:
            chosen = to or {Kind.listops: "listops", Kind.sentiment: "brackets"}.get(kind, "sexpressions")
            if chosen not in WRITERS:
                raise ut.DataError(f"{chosen} cannot be printed", hint=f"choose from {', '.join(WRITERS)}, or use -o")
            typer.echo(WRITERS[chosen](forest), nl=False)


def _read(file: Path, source: str | None, min_count: int, binary: bool) -> Forest:
    """The trees of a file, with the options that its format knows."""
    check_file(file)
    format = format_of(file, source)
    known = reflection.signature(FORMATS[format]).parameters
    takes_any = any(p.kind == p.VAR_KEYWORD for p in known.values())
    options: dict[str, Any] = {"min_count": min_count} if min_count != 1 else {}
    options |= {"binary": True} if binary else {}
    for name in options:
        if name not in known and not takes_any:
            raise ut.DataError(f"the format {format} has no option --{name.replace('_', '-')}", hint="remove it")
    return ut.data.read(file, format, **options)


def _write(forest: Forest, output: Path, to: str | None) -> None:
    is_picture = to == "svg" or (to is None and output.suffix.lower() == ".svg")
    if not is_picture:
        try:
            format_of(output, to)
        except ut.DataError as fault:
            fault.hint += ", and svg for a picture"
            raise
    output.parent.mkdir(parents=True, exist_ok=True)
    if is_picture:
        output.write_text(forest.svg() + "\n", encoding="utf-8")
    else:
        ut.data.write(forest, output, to)
    typer.echo(f"Wrote {output}: {len(forest)} trees", err=True)


def _summary(forest: Forest) -> list[tuple[str, str]]:
    counts = np.diff(forest.offsets)
    sizes = forest.ends - forest.roots
    rows = [
        ("trees", f"{len(forest):,}"),
        ("nodes", f"{forest.size:,}, {int((counts == 0).sum()):,} of them leaves"),
    ]
    if not forest.size:
        return rows
    rows += [
        ("nodes of a tree", f"{sizes.min():,} to {sizes.max():,}, {sizes.mean():.1f} on average"),
        ("depth", f"{forest.depths.max():,}"),
        ("children", "two or none" if forest.is_binary else f"up to {counts.max():,}"),
    ]
    if forest.vocabulary is not None:
        used = len(np.unique(forest.word[forest.word >= 0]))
        rows.append(("words", f"{int((forest.word >= 0).sum()):,}, {used:,} different ones"))
    return [
        *rows,
        ("labels", _shares(forest.label, forest)),
        ("labels of roots", _shares(forest.label[forest.roots], forest)),
        *((f"field {name}", f"{v.dtype.name}{list(v.shape[1:]) or ''}") for name, v in forest.fields.items()),
    ]


def _shares(labels: Any, forest: Forest) -> str:
    """How often each label occurs; the most frequent ones, if there are many."""
    present, counts = np.unique(labels, return_counts=True)
    if len(present) == 1 and present[0] < 0:
        return "none"
    order = np.arange(len(present)) if len(present) <= 12 else np.sort(np.argsort(-counts, kind="stable")[:12])
    parts: list[str] = []
    for k in order:
        share = counts[k] / len(labels)
        percent = f"{share:.0%}" if share >= 0.01 else f"{math.ceil(share * 1000) / 10}%"
        parts.append(f"{'none' if present[k] < 0 else name_of(present[k], forest.labels)}: {percent}")
    return ", ".join(parts) + (f" and {len(present) - 12} others" if len(present) > 12 else "")
