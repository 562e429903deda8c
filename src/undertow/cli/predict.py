"""The command `undertow predict`: shows trees coloured by the labels that a trained model assigns."""

from __future__ import annotations

import contextlib
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import undertow as ut
from undertow.cli.console import make_console, telling_errors
from undertow.cli.train import FILE
from undertow.data.files import FORMATS, MissingFile, check_file, format_of, text_of
from undertow.data.nested import name_of
from undertow.data.picture import lines_of
from undertow.errors import UndertowError
from undertow.train.own_trees import named

_COLOURS = ("red", "dark_orange3", "white", "green3", "bright_green")  # from the lowest label to the highest

_WRITTEN = "write a tree as (a b), (1 (0 a) (1 b)) or [MAX 2 3 ], or name a file of trees"


def predict(
    checkpoint: Annotated[Path, typer.Argument(help="Checkpoint written by `undertow train`: the file or its folder.")],
    trees: Annotated[str, typer.Argument(metavar="TREES", help="A file of trees, or a tree as text.")],
    source: Annotated[
        str | None, typer.Option("--from", help="Format, if unclear: brackets, sexpressions, listops or jsonl.")
    ] = None,
    most: Annotated[int, typer.Option(help="Maximum number of trees to show.", min=1)] = 10,
) -> None:
    """Colour trees with the labels that a trained model gives their nodes.

    In a tree such as ((not bad) film) all words are leaves; but where inner nodes had words in
    what the model was trained on, as in (and (not x) y), the first word is that of the bracket's node.

    Example: undertow predict build/train/treelstm '((not bad) film)'
    """
    console = make_console()
    with telling_errors():
        loaded = ut.train.load(_file(checkpoint))
        if not isinstance(loaded.model, ut.models.TreeClassifier):
            raise UndertowError(
                f"{type(loaded.model).__name__} generates trees, it does not label them",
                hint="ut.train.load(FILE) returns its model and params; model.sample(params, seed=0) generates a tree",
            )
        if not trees.strip():
            raise ut.DataError("the text is empty", hint=_WRITTEN)
        forest = named(_read(trees, source, loaded))
        if not len(forest):
            raise ut.DataError(f"{trees!r} holds no trees", hint=_WRITTEN)
        known = _as_known(forest, loaded)
        loaded.model.check(known)
        for typed, tree in zip(forest[:most], known[:most], strict=True):
            predicted = loaded.model.node_labels(loaded.params, tree)
            shown = replace(tree, word=typed.word, vocabulary=typed.vocabulary)
            words = loaded.vocabulary or ()
            new = [number for number, word in enumerate(typed.vocabulary or ()) if word not in words]
            unknown = set(np.flatnonzero(np.isin(typed.word, new)).tolist())
            console.print(coloured(shown, predicted, loaded.model.classes, unknown))
        if len(forest) > most:
            console.print(f"... and {len(forest) - most} more trees")


def _file(checkpoint: Path) -> Path:
    """The file of an existing checkpoint."""
    file = checkpoint / FILE if checkpoint.is_dir() else checkpoint
    if not file.is_file():
        lacks = f"the folder {str(checkpoint)!r} has no {FILE}" if checkpoint.is_dir() else f"{str(file)!r} not found"
        raise MissingFile(
            lacks, hint="name the output of `undertow train`: build/train/MODEL, or the folder given as --output"
        )
    return file


def coloured(tree: Any, predicted: Any, classes: int, unknown: Any = ()) -> Text:
    """A tree drawn as text, each node in the colour of its predicted label.

    Notes beside a node say that the model does not know its word, and give its true
    label if that differs.
    """
    drawing = Text()
    for node, line in lines_of(replace(tree, label=predicted), 0, tree.size):
        if node is None:
            drawing.append(f"{line}\n", style="dim")
            continue
        label, true = int(predicted[node]), int(tree.label[node])
        place = round(label * (len(_COLOURS) - 1) / max(classes - 1, 1))
        branch = re.match(r"[│├└─ ]*", line)
        cut = branch.end() if branch else 0
        drawing.append(line[:cut], style="dim")
        drawing.append(line[cut:], style=_COLOURS[min(place, len(_COLOURS) - 1)])
        notes = ["unknown word"] * (node in unknown) + [f"is {name_of(true, tree.labels)}"] * (0 <= true != label)
        drawing.append(f"   ({', '.join(notes)})\n" if notes else "\n", style="dim")
    drawing.right_crop(1)
    return drawing


def _read(trees: str, source: str | None, checkpoint: Any) -> Any:
    """The trees of a file, or those typed on the command line, with their own words and labels."""
    is_file = not re.match(r"\s*[(\[{\d]", trees) or os.path.isfile(trees)  # a tree may be longer than any name
    if is_file:
        check_file(trees)
        source = format_of(trees, source)
        if source == "npz":
            return ut.data.load(trees)
    text = text_of(trees) if is_file else trees
    source = _format(text, checkpoint.labels) if source is None else source
    # `(_ a b)`, as in files of S-expressions, shows that the first atom is the word of the inner node.
    head = checkpoint.inner_words or re.search(r"\(\s*_(?=[\s()])", text) is not None
    options = {"sexpressions": {"head": head}, "listops": {"binary": not checkpoint.model.any_children}}.get(source, {})
    if source not in FORMATS or source == "npz":
        raise ut.DataError(f"{source} is not a text format", hint="write --from brackets, sexpressions or listops")
    return FORMATS[source](text, **options)


def _format(text: str, labels: Any) -> str:
    """The likely format of a tree on the command line."""
    if re.match(r"\s*\{", text) or (re.match(r"\s*\[", text) and ('"' in text or _is_json(text))):
        return "jsonl"
    if re.match(r"\s*\[", text) or re.search(r"\[(MIN|MAX|MED|SM|FIRST|LAST)\b", text):
        return "listops"
    first = re.findall(r"\(\s*([^\s()]+)", text)
    is_label = first[:1] and (re.fullmatch(r"-?\d+", first[0]) or any(name in (labels or ()) for name in first))
    return "brackets" if is_label else "sexpressions"


def _is_json(text: str) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        json.loads(text.split("\n")[0])
        return True
    return False


def _as_known(forest: Any, checkpoint: Any) -> Any:
    """The same trees with words and labels numbered as in the model; unknown labels are dropped."""
    if checkpoint.vocabulary is None:
        raise UndertowError("the checkpoint has no vocabulary", hint="ut.train.Checkpoint(..., vocabulary=) saves it")
    label, known = forest.label, checkpoint.labels
    if (forest.labels is None) != (known is None):
        label = np.full_like(label, -1)
    elif known is not None:
        new = [name for name in forest.labels if name not in known]
        if 0 < len(new) < len(forest.labels):  # if none is known, they label something else
            raise ut.DataError(
                f"unknown labels: {', '.join(map(repr, new))}", hint=f"the model's labels are {', '.join(known)}"
            )
        numbers = [known.numbers.get(name, -1) for name in forest.labels]
        label = np.array([*numbers, -1], np.int32)[label]  # index -1, no label, gives -1
    return replace(_with_words(forest, checkpoint.vocabulary), label=label, labels=known)


def _with_words(forest: Any, known: Any) -> Any:
    """The same trees with words numbered as in the model."""
    if forest.vocabulary == ut.data.LISTOPS or known.unknown is None:
        used = {forest.vocabulary.word(number) for number in np.unique(forest.word[forest.word >= 0]).tolist()}
        if new := sorted(used.difference(known)):
            few = ", ".join(map(repr, list(known)[:10])) + (", ..." if len(known) > 10 else "")
            raise ut.DataError(f"unknown words: {', '.join(map(repr, new))}", hint=f"the model's words are {few}")
    return forest.with_vocabulary(known)
