"""The command `undertow train`: trains a model of trees and reports on it."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

import undertow as ut
from undertow.cli.console import check_options, make_console, telling_errors
from undertow.cli.workers import choose_shards, saved_if_lost, training_cluster
from undertow.errors import UndertowError
from undertow.models import CLASSIFIERS, GENERATORS, MODELS, name_of
from undertow.models.ranges import check_ranges
from undertow.train.curve import write_curve
from undertow.train.growth import perplexity
from undertow.train.loop import is_over
from undertow.train.recipe import OPTIMIZERS, Recipe
from undertow.train.source import SOURCES, TREES, kind_of

_MODELS = f"{', '.join(CLASSIFIERS)} label trees; {', '.join(GENERATORS)} generate them."
_PATIENCE = (
    "Stop after this many epochs without improvement: more dev roots right, or as many roots and more "
    "nodes; for models that generate trees, a lower loss."
)
_SIZES = {"width": None, "embedding": None, "dropout": 0.0}  # default sizes of models
FILE = "checkpoint.safetensors"
_SAVE_SECONDS = 60.0  # between checkpoints within an epoch
_TELL_SECONDS = 10.0  # between lines within an epoch, without a progress bar


def train(
    context: typer.Context,
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help=_MODELS)] = None,
    data: Annotated[str, typer.Option(help=f"{SOURCES}.")] = "grammar",
    trees: Annotated[int | None, typer.Option(help=f"Number of generated trees, if no file has them; {TREES}.")] = None,
    width: Annotated[
        int | None, typer.Option(help="Width of a node's vector; the default depends on the model.")
    ] = None,
    embedding: Annotated[int | None, typer.Option(help="Width of word embeddings, in the LSTMs.")] = None,
    dropout: Annotated[float, typer.Option(help="Fraction of elements to drop.")] = 0.0,
    epochs: Annotated[int, typer.Option(help="Number of passes over all trees.")] = Recipe.epochs,
    batch: Annotated[int, typer.Option(help="Trees per batch.")] = Recipe.batch,
    rate: Annotated[float, typer.Option(help="Learning rate.")] = Recipe.rate,
    embed_rate: Annotated[
        float, typer.Option(help="Learning rate of embeddings, relative to --rate.")
    ] = Recipe.embed_rate,
    optimizer: Annotated[str, typer.Option(help=f"One of {', '.join(OPTIMIZERS)}.")] = Recipe.optimizer,
    decay: Annotated[str, typer.Option(help="Decay of the rate: none, linear or cosine.")] = Recipe.decay,
    warmup: Annotated[float, typer.Option(help="Epochs of rising rate at the start.")] = Recipe.warmup,
    clip: Annotated[float | None, typer.Option(help="Maximum norm of the gradient; 0 for no limit.")] = Recipe.clip,
    l2: Annotated[float, typer.Option(help="L2 penalty on weights.")] = Recipe.l2,
    patience: Annotated[int | None, typer.Option(help=_PATIENCE)] = Recipe.patience,
    at: Annotated[str, typer.Option(help="Where to compute losses: nodes or root.")] = Recipe.at,
    min_count: Annotated[int, typer.Option(help="Replace words that occur less often by <unk>.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of parameters, order, dropout and generated trees.")] = Recipe.seed,
    threads: Annotated[int | None, typer.Option(help="Threads of the engine; 1 on each of several workers.")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Train on so many workers of this machine. Needs undertow[ray].", min=1)
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(help="Parts of a batch, shared by workers; 1, or with --workers a power of two.", min=1),
    ] = None,
    trace: Annotated[
        Path | None, typer.Option(help="With --workers: a file for Perfetto, of what each worker does.")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Maximum bytes of a step, e.g. 500K, 64M or 1.5G.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output folder; default build/train/MODEL.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the folder's checkpoint.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Start over, replacing the folder's checkpoint.")] = False,
) -> None:
    """Train a model on trees: a checkpoint, a log, a learning curve and a report are written to a folder.

    --data PATH trains on your own trees, in any format that `undertow data` reads.
    PATH is a file, of which a tenth is held out for dev and a tenth for test, by seed;
    or a folder with files train and dev, and perhaps test. childsum and drnn
    accept any number of children, the others 0 or 2.

    Example: undertow train childsum --data reviews.txt

    With --resume, omitted options keep the folder's values: undertow train --resume -o FOLDER
    """
    console, folder = make_console(), _folder(model, output, resume)
    limits: dict[str, Any] = {
        name: value for name, value in (("threads", threads), ("memory", memory)) if value is not None
    }
    check_options(limits)
    if trace is not None and workers is None:
        raise typer.BadParameter("it shows what workers do: add --workers", param_hint="--trace")
    with telling_errors(), ut.options(**limits):
        if resume:
            _check_folder(folder, resume, force)
        before = ut.train.load(folder / FILE) if resume else None
        options = dict(context.params) if before is None else _as_before(context, folder, before)
        options["shards"] = choose_shards(console, options["shards"], shards, workers, before)
        kind, recipe, sizes = _checked(options)
        _check_folder(folder, resume, force)
        source = ut.train.open_source(
            options["data"], options["trees"], recipe.seed, not kind.any_children, options["min_count"]
        )
        labels = issubclass(kind, ut.models.TreeClassifier)
        source = source if labels else source.with_words()
        chosen = kind(len(source.vocabulary), *([source.classes] if labels else []), **sizes)
        checkpoint = ut.train.Checkpoint(
            chosen, recipe, ut.train.start(chosen, recipe), source.vocabulary, _source_of(options),
            source.labels if labels else None, bool((source.train.word[np.diff(source.train.offsets) > 0] >= 0).any()),
        )  # fmt: skip
        if before is not None:
            checkpoint = _resumed(folder, before, checkpoint)
            _tell_rates(console, before.recipe, recipe)
            if checkpoint.state.epoch >= recipe.epochs:
                console.print(f"All {recipe.epochs} epochs are done: continue with a larger --epochs", markup=False)
            elif is_over(checkpoint.state, recipe):
                console.print(f"Training {_stopped(checkpoint)}: continue with a larger --patience", markup=False)
        if labels:
            _tell_labels(console, source, recipe.at)
        size = sum(int(np.size(value)) for value in checkpoint.state.params.values())
        console.print(f"{type(chosen).__name__}, {size:,} parameters; {len(source.train):,} trees")
        try:
            with training_cluster(console, workers, trace) as cluster:
                run(console, folder, checkpoint, source, cluster)
        except KeyboardInterrupt:
            # Reached only by a second Ctrl-C, or by one during the report.
            kept = "continue from its checkpoint with --resume" if (folder / FILE).is_file() else "nothing was saved"
            typer.echo(f"\nStopped immediately. {folder}: {kept}", err=True)
            raise typer.Exit(130) from None


def run(console: Console, folder: Path, checkpoint: Any, source: Any, cluster: Any = None) -> Any:
    """Train, on a cluster if there is one, showing progress, and write the results. Returns the final checkpoint."""
    file, first, saved, told_at = folder / FILE, checkpoint.state, time.monotonic(), time.monotonic()
    labels = isinstance(checkpoint.model, ut.models.TreeClassifier)
    nodes = source.train.size / len(source.train), source.dev.size / len(source.dev)  # of a tree, on average
    with _bar(console) as bar, _asked_to_stop() as stop:
        task: TaskID | None = None
        events = ut.train.fit(checkpoint.model, source.train, source.dev, checkpoint.recipe, checkpoint.state, cluster)
        for event in saved_if_lost(events, file, checkpoint):
            checkpoint = replace(checkpoint, state=event.state)
            if isinstance(event, ut.train.Step):
                if task is None:
                    task = bar.add_task(f"epoch {event.state.epoch + 1}", total=event.batches, told="")
                now = event.state.tally.score()
                told = f"loss {_figure(now.loss).strip()}" + (
                    "" if math.isnan(now.accuracy) else f"  {now.accuracy:.1%} right"
                )
                speed = event.state.tally.trees / max(bar.tasks[0].elapsed or 0.0, 1e-9)
                told += f"  {speed:,.0f} trees/s" + (f"  {event.workers} workers" if event.workers else "")
                bar.update(task, completed=event.state.done, told=told)
                if not console.is_terminal and time.monotonic() - told_at > _TELL_SECONDS:
                    console.print(f"epoch {event.state.epoch + 1}: {event.state.done} of {event.batches}  {told}")
                    told_at = time.monotonic()
            elif task is not None:
                bar.remove_task(task)
                task = None
            is_epoch = isinstance(event, ut.train.Epoch)
            if stop or is_epoch or time.monotonic() - saved > _SAVE_SECONDS:
                ut.train.save(file, checkpoint)
                saved = time.monotonic()
            if is_epoch:
                ut.train.write_log(folder, event.state.history)
                bar.console.print(_line(event, nodes[1]), markup=False)
            if stop:
                break
    curve = write_curve(folder / "curve.png", checkpoint.state.history, None if labels else nodes)
    if stop:
        typer.echo(f"\nStopped and saved. To continue: undertow train --resume -o {shlex.quote(str(folder))}", err=True)
        raise typer.Exit(130)
    if checkpoint.state is not first and checkpoint.state.epoch < checkpoint.recipe.epochs:
        console.print(_stopped(checkpoint), markup=False)
    report = (ut.train.report if labels else ut.train.growth)(checkpoint.model, checkpoint.params, source.test)
    (folder / "report.txt").write_text(f"{report}\n", encoding="utf-8")
    trees = f"{len(source.test):,} unseen trees"
    if source.test is source.dev:
        trees = f"the {len(source.dev):,} dev trees, which also selected the best epoch"
    console.print(f"\nParameters of the best epoch, on {trees}:\n")
    console.print(str(report), markup=False)
    console.print(f"\nWrote {folder}: {FILE}, log.csv, log.jsonl, report.txt, {curve}", markup=False)
    return checkpoint


# --------------------------------------------------------------------------------------------------------------
# Parts


def _folder(model: str | None, output: Path | None, resume: bool) -> Path:
    """The output folder; without a model, that of the run to resume."""
    if model is None and not resume:
        raise typer.BadParameter(f"name one: {_MODELS} Only --resume needs none", param_hint="MODEL")
    if output is not None:
        return output
    if model is None:
        raise typer.BadParameter("name its folder with --output, or its MODEL", param_hint="--resume")
    return Path("build/train") / model


def _checked(options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """The kind of model, the recipe and the sizes that these options describe."""
    model, kind = options["model"], _kind(options["model"])
    recipe = {field.name: options[field.name] for field in fields(ut.train.Recipe)}
    recipe["clip"] = recipe["clip"] or None
    sizes = {name: options[name] for name, usual in _SIZES.items() if options[name] != usual}
    known = {field.name for field in fields(kind)} | ({"at"} if model in ut.models.CLASSIFIERS else set())
    for name in [*sizes, *(["at"] if options["at"] != "nodes" else [])]:
        if name not in known:
            raise UndertowError(f"{model} has no --{name}", hint="remove it")
    check_ranges(**sizes)
    return kind, ut.train.Recipe(**recipe), sizes


def _as_before(context: typer.Context, folder: Path, checkpoint: Any) -> dict[str, Any]:
    """All options; those missing from the command line come from the checkpoint."""
    typed = {
        name: value
        for name, value in context.params.items()
        if (origin := context.get_parameter_source(name)) is not None and origin.name != "DEFAULT"
    }
    model = name_of(checkpoint.model)
    if typed.get("model", model) != model:
        raise UndertowError(f"{folder} holds another model: {model}", hint="remove the name, or change --output")
    if not checkpoint.source and "data" not in typed:
        raise UndertowError(f"{folder} does not record its training data", hint="name it with --data")
    return {**context.params, "model": model, **_settings(checkpoint), **typed}


def _settings(checkpoint: Any) -> dict[str, Any]:
    """The values of the command's options, by name."""
    sizes = {name: getattr(checkpoint.model, name) for name in _SIZES if hasattr(checkpoint.model, name)}
    return {**checkpoint.source, **sizes, **asdict(checkpoint.recipe)}


def _kind(name: str) -> Any:
    if name == "experts":
        raise UndertowError(
            "experts is trained on rows of numbers, but this command trains on trees",
            hint="in Python: ut.value_and_grad(ut.models.Experts(inputs, classes).loss())(params, x, label)",
        )
    if name not in MODELS:
        raise UndertowError(f"unknown model {name}", hint=f"choose from {', '.join(MODELS)}")
    return MODELS[name]


def _source_of(options: dict[str, Any]) -> dict[str, Any]:
    """The options that choose the training data; the number of trees only if they are generated."""
    kind, path = kind_of(options["data"])
    is_file = kind in ("trees", "sst")
    data, trees = (f"{kind}:{Path(path)}", None) if is_file else (options["data"], options["trees"] or TREES)
    return {"data": data, "trees": trees, "min_count": options["min_count"]}


def _check_folder(folder: Path, resume: bool, force: bool) -> None:
    """Check that no checkpoint is lost by accident, and that there is one to resume."""
    if folder.exists() and not folder.is_dir():
        raise UndertowError(f"{folder} is a file", hint="--output names a folder")
    there = (folder / FILE).is_file()
    if resume and force:
        raise UndertowError("--resume continues and --force starts over", hint="use one of them")
    if resume and not there:
        raise UndertowError(
            f"{folder} has no checkpoint to resume",
            hint="start without --resume, or name the folder with --output",
        )
    if there and not (resume or force):
        raise UndertowError(
            f"{folder} already has a checkpoint",
            hint="--resume continues from it, --force starts over and replaces it, --output names another folder",
        )


@contextlib.contextmanager
def _asked_to_stop() -> Iterator[list[int]]:
    """A list that stays empty until Ctrl-C. A step overwrites its parameters, so it is finished before saving.

    A second Ctrl-C interrupts at once.
    """
    signals: list[int] = []

    def note(number: int, frame: Any) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)

    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield signals
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield signals
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stopped(checkpoint: Any) -> str:
    state, epochs = checkpoint.state, checkpoint.recipe.patience
    many = f"{epochs} epoch{'s' * (epochs != 1)}"
    return f"stopped after epoch {state.epoch}: no improvement for {many} (best: epoch {state.best_record.epoch})"


def _tell_rates(console: Console, before: Any, now: Any) -> None:
    """Print a note if the number of epochs changed: a decaying rate then differs at every step."""
    if now.decay != "none" and now.epochs != before.epochs:
        console.print(
            f"The rate now decays ({now.decay}) over {now.epochs} epochs, before over {before.epochs}: "
            f"results differ from a single run of {now.epochs}",
            markup=False,
        )


def _tell_labels(console: Console, source: Any, at: str) -> None:
    """Print how many nodes have no label, in case -1 was meant as a label."""
    trees = source.train
    label = trees.label if at == "nodes" else trees.label[trees.roots]
    missing = int((label < 0).sum())
    if not missing or trees.vocabulary == ut.data.LISTOPS:
        return
    hint = (
        ""
        if source.labels is not None
        else " (marked by -1; if -1 is meant as a label, use 0 and 1 instead of -1 and 1)"
    )
    what = at if at == "nodes" else "roots"
    console.print(f"{missing:,} of {len(label):,} {what} have no label{hint}", markup=False)


def _resumed(folder: Path, saved: Any, wanted: Any) -> Any:
    """The folder's checkpoint, if it was trained with these options; only the number of epochs may differ."""
    before, now = _settings(saved), _settings(wanted)
    free = ("epochs", "patience", "shards")
    different = [name for name in now if before.get(name) != now[name] and name not in free]
    if different:
        told = "; ".join(f"--{name.replace('_', '-')} {before.get(name)} before, {now[name]} now" for name in different)
        raise UndertowError(
            f"{folder} was trained with other options: {told}", hint="remove these options, or name another --output"
        )
    if (saved.model, saved.vocabulary, saved.labels) != (wanted.model, wanted.vocabulary, wanted.labels):
        raise UndertowError(
            f"{folder} was trained on trees with other words or labels: {saved.source['data']} has changed",
            hint="restore the training data, or start over: --force replaces it, --output names another folder",
        )
    return replace(wanted, state=saved.state)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,  # a log gets a line for each epoch
    )


def _line(event: Any, nodes: float) -> str:
    """A line for an epoch; `nodes` is the mean number of nodes of a dev tree."""
    r = event.record
    mark = "  best" if event.is_best else ""
    nodes_right = "" if math.isnan(r.dev_node_accuracy) else f", {r.dev_node_accuracy:6.1%} of nodes"
    good = f"dev {r.dev_accuracy:6.1%} of roots{nodes_right}"
    if math.isnan(r.dev_accuracy) and nodes_right:  # no root has a label
        good = f"dev {nodes_right[2:]}"
    elif math.isnan(r.dev_accuracy):
        good = f"perplexity {_figure(perplexity(r.dev_loss, nodes), 2)} per node"
    return (
        f"epoch {r.epoch:3}  loss {_figure(r.train_loss)}  dev loss {_figure(r.dev_loss)}  {good}  "
        f"{r.trees_per_second:8,.0f} trees/s{mark}"
    )


def _figure(number: float, places: int = 3) -> str:
    """A number in eight characters, whatever its size."""
    return f"{number:8.{places}f}" if not abs(number) >= 10_000 else f"{number:8.2e}"
