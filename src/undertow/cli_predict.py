"""The command `undertow predict`: trees in the colours of the labels that a trained model gives them."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import undertow as ut
from undertow.cli_train import FILE
from undertow.console import make_console, telling_errors
from undertow.data.files import FORMATS, check_file, format_of, text_of
from undertow.data.nested import name_of
from undertow.data.picture import lines_of
from undertow.errors import UndertowError
from undertow.models.classifier import check
from undertow.train.own_trees import named

_COLOURS = ("red", "dark_orange3", "white", "green3", "bright_green")  # from the lowest label to the highest


def predict(
    checkpoint: Annotated[Path, typer.Argument(help="What `undertow train` wrote: the file, or its folder.")],
    trees: Annotated[str, typer.Argument(metavar="TREES", help="A file of trees, or a tree as text.")],
    source: Annotated[
        str | None, typer.Option("--from", help="brackets, sexpressions, listops or jsonl, if unclear.")
    ] = None,
    most: Annotated[int, typer.Option(help="How many trees to show.", min=1)] = 10,
) -> None:
    """Colour trees with the labels that a trained model gives their nodes."""
    console = make_console()
    with telling_errors():
        held = ut.train.load(checkpoint / FILE if checkpoint.is_dir() else checkpoint)
        if not isinstance(held.model, ut.models.TreeClassifier):
            raise UndertowError(
                f"{type(held.model).__name__} grows trees and labels none",
                hint="ut.train.load(FILE) has its model and params; model.sample(params, seed=0) grows a tree",
            )
        forest = named(_read(trees, source, held))
        if not len(forest):
            raise ut.DataError(f"{trees!r} holds no trees", hint="a tree is written (a b), (1 word) or [MAX 2 3 ]")
        known = _as_known(forest, held)
        check(held.model, known)
        for typed, tree in zip(forest[:most], known[:most], strict=True):
            given = held.model.node_labels(held.params, tree)
            shown = replace(tree, word=typed.word, vocabulary=typed.vocabulary)
            console.print(coloured(shown, given, held.model.classes, _unknown(typed, held.vocabulary)))
        if len(forest) > most:
            console.print(f"... and {len(forest) - most} more trees")


def coloured(tree: Any, given: Any, classes: int, unknown: Any = ()) -> Text:
    """A tree drawn with letters, each node in the colour of its given label.

    Beside it stands what else there is to say: that the model does not know its word, for these nodes, and its true
    label, where that is another.
    """
    made = Text()
    for node, line in lines_of(replace(tree, label=given), 0, tree.size):
        if node is None:
            made.append(f"{line}\n", style="dim")
            continue
        label, true = int(given[node]), int(tree.label[node])
        place = round(label * (len(_COLOURS) - 1) / max(classes - 1, 1))
        branch = re.match(r"[│├└─ ]*", line)
        cut = branch.end() if branch else 0
        made.append(line[:cut], style="dim")
        made.append(line[cut:], style=_COLOURS[min(place, len(_COLOURS) - 1)])
        notes = ["unknown word"] * (node in unknown) + [f"is {name_of(true, tree.labels)}"] * (0 <= true != label)
        made.append(f"   ({', '.join(notes)})\n" if notes else "\n", style="dim")
    made.right_crop(1)
    return made


def _unknown(tree: Any, vocabulary: Any) -> set[int]:
    """The nodes whose words are not in the vocabulary."""
    new = [number for number, word in enumerate(tree.vocabulary) if word not in vocabulary]
    return set(np.flatnonzero(np.isin(tree.word, new)).tolist())


def _read(trees: str, source: str | None, held: Any) -> Any:
    """Trees of a file or as they are, with words and labels of their own."""
    any_children = held.model.any_children
    is_file = not re.match(r"\s*[(\[{\d]", trees) or os.path.isfile(trees)  # a tree may be longer than any name
    if is_file:
        check_file(trees)
        source = format_of(trees, source)
        if source == "npz":
            return ut.data.load(trees)
    text = text_of(trees) if is_file else trees
    source = _format(text, held.labels) if source is None else source
    options = {"sexpressions": {"head": any_children}, "listops": {"binary": not any_children}}.get(source, {})
    if source not in FORMATS or source == "npz":
        raise ut.DataError(f"{source} is no format of text", hint="write --from brackets, sexpressions or listops")
    return FORMATS[source](text, **options)


def _format(text: str, labels: Any) -> str:
    """How a tree on the command line seems to be written."""
    if text.lstrip().startswith("{"):
        return "jsonl"
    first = re.match(r"\s*\(\s*([^\s()]+)", text)
    is_label = first is not None and (first[1].isdecimal() or (labels is not None and first[1] in labels))
    return "listops" if "[" in text else "brackets" if is_label else "sexpressions"


def _as_known(forest: Any, held: Any) -> Any:
    """The same trees with the model's numbers of words and labels; a label that it does not know is none."""
    if held.vocabulary is None:
        raise UndertowError("the checkpoint holds no words", hint="ut.train.Checkpoint(..., vocabulary=) saves them")
    label, known = forest.label, held.labels
    if (forest.labels is None) != (known is None):
        label = np.full_like(label, -1)
    elif known is not None:
        numbers = [known.numbers.get(name, -1) for name in forest.labels]
        label = np.array([*numbers, -1], np.int32)[label]  # the last one is found by -1
    return replace(forest.with_vocabulary(held.vocabulary), label=label, labels=known)
