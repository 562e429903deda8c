"""Training: what is the same again, what is kept, what is written, and what the command line makes of it."""

from __future__ import annotations

import csv
import io
import json
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from rich.console import Console
from typer.testing import CliRunner

import undertow as ut
from undertow.cli import commands as cli
from undertow.cli import train as cli_train
from undertow.train.curve import write_curve

SOURCE = ut.train.open_source("grammar", trees=40, seed=1)
MODEL = ut.models.TreeRNN(len(SOURCE.vocabulary), SOURCE.classes, width=4, dropout=0.2)
MADE = {"data": "grammar", "trees": 40, "min_count": 1}
RECIPE = ut.train.Recipe(epochs=2, batch=8, rate=0.02, decay="cosine", warmup=0.5, l2=1e-3, clip=1.0, seed=3)


def events(recipe: Any = RECIPE, state: Any = None) -> Any:
    return ut.train.fit(MODEL, SOURCE.train, SOURCE.dev, recipe, state)


def last(found: Any) -> Any:
    *_, end = found
    return end


def assert_equal(a: Any, b: Any) -> None:
    """The same bits: in parameters, in what the optimizer remembers, in the best parameters, in the log."""
    assert list(a.params) == list(b.params)
    slots = zip(a.optimizer.slots.values(), b.optimizer.slots.values(), strict=True)
    for some, other in ((a.params, b.params), (a.best, b.best), *slots):
        assert all(np.array_equal(some[name], other[name]) for name in some)
    assert (a.step, int(a.optimizer.step)) == (b.step, int(b.optimizer.step))
    assert [replace(r, trees_per_second=0) for r in a.history] == [replace(r, trees_per_second=0) for r in b.history]


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 3, 5, 7])
def test_resumed_bit_for_bit(after: int, tmp_path: Path) -> None:
    whole = last(events()).state
    steps = 0
    for event in events():
        steps += isinstance(event, ut.train.Step)
        if steps == after:
            ut.train.save(tmp_path / "c", ut.train.Checkpoint(MODEL, RECIPE, event.state, SOURCE.vocabulary, MADE))
            break
    held = ut.train.load(tmp_path / "c")
    assert (held.model, held.recipe, held.vocabulary, held.source) == (MODEL, RECIPE, SOURCE.vocabulary, MADE)
    assert held.state.step == after
    assert_equal(last(events(held.recipe, held.state)).state, whole)


@pytest.mark.slow
def test_learns_and_keeps_the_best() -> None:
    state = last(events(replace(RECIPE, epochs=6, warmup=0, decay="none"))).state
    assert state.history[-1].train_loss < state.history[0].train_loss
    best = max(r.dev_accuracy for r in state.history)
    assert ut.train.score(MODEL, state.best, SOURCE.dev).accuracy == best == state.best_record.dev_accuracy


@pytest.mark.slow
def test_embeddings_have_a_rate_of_their_own() -> None:
    """Plain gradient descent: a step is the rate times the gradient, which the first step has in common."""
    plain = ut.train.Recipe(optimizer="sgd", rate=0.1, clip=None, seed=3)
    first = MODEL.init(3)
    once, thrice = (next(events(replace(plain, embed_rate=factor))).state for factor in (1.0, 3.0))
    for name in first:
        step, longer = (found.params[name] - first[name] for found in (once, thrice))
        np.testing.assert_allclose(longer, (3 if name == "embed" else 1) * step, atol=1e-6)
    assert list(once.params) == list(thrice.params) and once.optimizer.step == thrice.optimizer.step == 1
    adam = replace(RECIPE, embed_rate=2.0)
    assert_equal(last(events(adam)).state, last(events(adam)).state)
    assert list(last(events(adam)).state.optimizer.slots["mean"]) == list(first)


@pytest.mark.slow
def test_patience() -> None:
    recipe = replace(RECIPE, epochs=50, rate=1e-9, patience=2, decay="none")  # so small that nothing changes
    assert last(events(recipe)).state.epoch == 3


@pytest.mark.slow
def test_score_at_roots() -> None:
    params = MODEL.init(0)
    at_root, at_nodes = (ut.train.score(MODEL, params, SOURCE.dev, at, batch=3) for at in ("root", "nodes"))
    assert at_root.accuracy == at_nodes.accuracy
    assert np.isnan(at_root.node_accuracy)
    assert at_root.loss < at_nodes.loss


def test_rates() -> None:
    recipe = ut.train.Recipe(rate=1.0, epochs=2, decay="cosine")
    rates = [recipe.rate_at(step, 10) for step in range(20)]
    assert rates == sorted(rates, reverse=True) and rates[-1] == 0 and rates[9] == pytest.approx(0.5)
    assert ut.train.Recipe(rate=0.5).rate_at(10**9, 10) == 0.5


@pytest.mark.parametrize(
    "wrong", [{"optimizer": "adm"}, {"decay": "x"}, {"at": "leaf"}, {"epochs": 0}, {"rate": 0.0}, {"embed_rate": 0}]
)
def test_wrong_recipes(wrong: dict[str, Any]) -> None:
    with pytest.raises(ut.UndertowError):
        ut.train.Recipe(**wrong)


def test_trees_that_do_not_fit() -> None:
    forest = ut.data.listops(3)
    with pytest.raises(ut.DataError, match="binary"):
        next(ut.train.fit(MODEL, forest, forest, RECIPE))
    with pytest.raises(ut.DataError, match="needs trees"):
        next(ut.train.fit(MODEL, forest[:0], forest, RECIPE))
    for wrong, told in (({"words": 3}, "has 3 words"), ({"classes": 2}, "2 classes")):
        with pytest.raises(ut.DataError, match=told):
            next(ut.train.fit(replace(MODEL, **wrong), SOURCE.train, SOURCE.dev, RECIPE))
    bare = ut.data.Forest.from_depths([0, 1, 1], label=[0, 1, 1])
    with pytest.raises(ut.DataError, match="a leaf has no word"):
        next(ut.train.fit(MODEL, bare, bare, RECIPE))


@pytest.mark.slow
def test_a_loss_that_is_no_number() -> None:
    state = ut.train.start(MODEL, RECIPE)
    state.params["bias"][:] = np.nan
    with pytest.raises(ut.RunError, match="diverged: the loss is nan in step 1 of epoch 1"):
        next(events(state=state))


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_losses_that_grow_and_grow() -> None:
    """It is told as what it is, and NumPy does not warn besides."""
    model = ut.models.RNTN(len(SOURCE.vocabulary), SOURCE.classes, width=3)
    recipe = ut.train.Recipe(optimizer="sgd", rate=1e25, l2=1.0, clip=None, epochs=5)
    with pytest.raises(ut.RunError, match=r"training diverged: the loss is \S+ (in step|of the dev)(?s:.*)--rate"):
        last(ut.train.fit(model, SOURCE.train, SOURCE.dev, recipe))


def test_events_are_short_to_print() -> None:
    state = some_state()
    record = ut.train.Record(1, 5, 0.1, 9.0, 1.0, 9.0, 1.0, 0.4, 1.0)
    told = repr(ut.train.Epoch(state, record, True))
    assert told.startswith("Epoch(state=<State: ") and "parameters>, record=Record(epoch=1" in told
    assert len(told) < 300 and "array" not in repr(ut.train.Step(state, 3, 0.5, 8))


def test_lines_keep_their_layout() -> None:
    nan = float("nan")
    first = ut.train.Record(1, 5, 0.1, 9.0, 1.0, 9.0, 1.0, 0.4, 1.0)
    lines = [
        cli_train._line(ut.train.Epoch(some_state(), replace(first, train_loss=loss, dev_loss=loss), False), 3.0)
        for loss in (0.5, 99.25, 9999.0, 10_000.0, 1.5e25)
    ]
    assert len({len(line) for line in lines}) == 1 and "loss 1.50e+25  dev" in lines[-1]
    no_roots = cli_train._line(ut.train.Epoch(some_state(), replace(first, dev_accuracy=nan), False), 3.0)
    assert "dev  40.0% of nodes" in no_roots and "perplexity" not in no_roots
    grown = replace(first, dev_accuracy=nan, dev_node_accuracy=nan, dev_loss=200.0)
    assert "perplexity 8.97e+28 per" in cli_train._line(ut.train.Epoch(some_state(), grown, False), 3.0)


# --------------------------------------------------------------------------------------------------------------
# Files


def some_state() -> Any:
    record = ut.train.Record(1, 5, 0.1, 2.0, 0.2, 1.5, 0.3, float("nan"), 99.5)
    state = ut.train.start(MODEL, RECIPE)
    return replace(state, history=(record, replace(record, epoch=2, dev_accuracy=0.4)))


SPOILED = [lambda b: b[:-9], lambda b: b[20:], lambda b: b"", lambda b: b.replace(b"format", b"tamrof")]


@pytest.mark.parametrize("spoil", SPOILED)
def test_broken_checkpoints(spoil: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, some_state()))
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ut.LoadError, match="does not hold a checkpoint"):
        ut.train.load(path)


METADATA: list[tuple[str, Any]] = [
    *((key, value) for key in ("step", "done", "updates") for value in (-1, 1.5, float("nan"), 10**30, "1", True)),
    *((key, value) for key in ("tally", "history", "sizes", "recipe", "source") for value in ("bc", [1], 5, {"a": 1})),
    *((key, value) for key in ("vocabulary", "labels") for value in ("bc", {"words": "bc", "unknown": None}, [], 5)),
    ("labels", {"words": ["a", 1], "unknown": None}), ("inner_words", "no"), ("model", ["x"]), ("model", "none"),
    ("format", [2]), ("sizes", {"words": 10**400, "classes": 2}), ("recipe", {"seed": 2**32}),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), METADATA, ids=lambda value: repr(value)[:20])
def test_absurd_checkpoints(key: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, some_state()))
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = json.loads(file.metadata()["undertow"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    if (key, value) == ("source", {"a": 1}):
        return  # what it says is for people
    text = json.dumps({**metadata, key: value})
    safetensors.numpy.save_file(arrays, path, {"undertow": text})
    with pytest.raises(ut.LoadError, match=r"does not hold a checkpoint|has format"):
        ut.train.load(path)


def test_checkpoints_with_other_arrays(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, some_state()))
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    first = next(iter(arrays))
    for changed in (
        {**arrays, "more": np.zeros(3)},
        {**arrays, first: arrays[first].astype(np.int64)},
        {**arrays, first: np.zeros(0, np.float32)},
        {name: value for name, value in arrays.items() if name != first},
    ):
        safetensors.numpy.save_file(changed, path, metadata)
        with pytest.raises(ut.LoadError, match="does not hold a checkpoint"):
            ut.train.load(path)
    for text in ("[" * 100_000, "null", "9" * 5000, "\ud800"):
        safetensors.numpy.save_file(arrays, path, {"undertow": text.encode("utf-8", "replace").decode()})
        with pytest.raises(ut.LoadError, match="does not hold a checkpoint"):
            ut.train.load(path)
    with pytest.raises(IsADirectoryError):
        ut.train.load(tmp_path)


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.safetensors"
    ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, some_state()))
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space"):
        ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, ut.train.start(MODEL, RECIPE)))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.slow
def test_log_and_curve(tmp_path: Path) -> None:
    history = some_state().history
    table, lines = ut.train.write_log(tmp_path, history)
    assert [row["dev_accuracy"] for row in csv.DictReader(table.read_text().splitlines())] == ["0.3", "0.4"]
    assert [row["dev_node_accuracy"] for row in csv.DictReader(table.read_text().splitlines())] == ["", ""]
    assert [json.loads(line)["dev_node_accuracy"] for line in lines.read_text().splitlines()] == [None, None]
    pytest.importorskip("matplotlib")
    for some in (history, history[:1]):
        assert write_curve(tmp_path / "curve.png", some) == "curve.png"
        assert (tmp_path / "curve.png").read_bytes() == ut.train.curve_png(some)


@pytest.mark.slow
def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is there all the same, and the message says how to get the picture."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.figure", raising=False)
    with pytest.raises(ut.UndertowError, match=r"needs matplotlib(?s:.*)pip install 'undertow\[plots\]'"):
        ut.train.curve_png(some_state().history)
    told = invoke("train", "treernn", "--trees", "20", "--width", "3", "--epochs", "1", "-o", tmp_path)
    told = " ".join(told.split())
    assert "log.jsonl, report.txt, no curve.png" in told and "(pip install 'undertow[plots]')" in told
    assert (tmp_path / "log.jsonl").is_file() and not (tmp_path / "curve.png").exists()


def test_checkpoints_of_an_older_format(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.safetensors"
    ut.train.save(path, ut.train.Checkpoint(MODEL, RECIPE, some_state()))
    path.write_bytes(path.read_bytes().replace(b'format\\": 2', b'format\\": 1'))
    told = invoke("train", "--resume", "-o", tmp_path, code=1)
    assert "has format 1, but this version reads 2" in told and "train again" in told


def test_report() -> None:
    report = ut.train.Report(np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2]), np.array([1, 2, 3, 9]), 3)
    assert (report.accuracy, report.majority) == (0.75, 0.5)
    assert report.confusion.tolist() == [[1, 0, 0], [0, 1, 1], [0, 0, 1]]
    assert sum(trees for _, _, trees, _ in report.by_length(2)) == 4
    assert report.by_length(2)[0][:2] == (1, 3) and report.by_length(2)[-1] == (9, 9, 1, 1.0)
    assert "75.0% of 4 trees right" in str(report)


# --------------------------------------------------------------------------------------------------------------
# Where trees come from


def test_treebank(tmp_path: Path) -> None:
    with pytest.raises(ut.DataError, match=r"no train\.txt"):
        ut.train.open_source(f"sst:{tmp_path}")
    for name, text in (("train", "(3 (2 a) (4 good))\n"), ("dev", "(1 (2 a) (0 bad))\n"), ("test", "(2 film)\n")):
        (tmp_path / f"{name}.txt").write_text(text)
    source = ut.train.open_source(f"sst:{tmp_path}")
    assert (len(source.vocabulary), source.classes) == (3, 5)
    assert source.dev.word.tolist()[1:] == [source.vocabulary["a"], 0]


def test_sources() -> None:
    source = ut.train.open_source("listops", trees=20)
    assert [len(part) for part in (source.train, source.dev, source.test)] == [20, 2, 2]
    assert (source.classes, source.train.is_binary) == (10, True)
    assert not ut.train.open_source("listops", trees=20, binary=False).train.is_binary
    with pytest.raises(ut.DataError, match=r"there is no file 'lists'"):
        ut.train.open_source("lists")


# --------------------------------------------------------------------------------------------------------------
# The command line


def invoke(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    options = ["--data", "listops", "--trees", "20", "--width", "4", "--rate", "0.01", "-o", folder]
    told = invoke("train", "childsum", "--embedding", "3", *options, "--epochs", "2")
    assert "epoch   2" in told and "2 trees right" in told
    names = {"checkpoint.safetensors", "log.csv", "log.jsonl", "report.txt"}
    assert {path.name for path in folder.iterdir()} - {"curve.png"} == names
    more = invoke("train", "childsum", "--embedding", "3", *options, "--epochs", "3", "--resume")
    assert "epoch   3" in more and "epoch   2" not in more
    assert len((folder / "log.jsonl").read_text().splitlines()) == 3
    tree = invoke("predict", folder, "[MAX 2 [MIN 4 7 ] ]").splitlines()
    assert [line.split()[-1] for line in (line.split("   (")[0] for line in tree)] == ["MAX", "2", "MIN", "4", "7"]
    assert "holds another model" in invoke("train", "rntn", *options, "--resume", code=1)
    otherwise = invoke("train", "childsum", "--embedding", "3", *options, "--l2", "1", "--resume", code=1)
    assert "trained with other options: --l2 0.0 before, 1.0 now" in " ".join(otherwise.split())
    assert "All 3 epochs are done" in invoke(
        "train", "childsum", "--embedding", "3", *options, "--epochs", "3", "--resume"
    )
    assert "12 is not a digit or one of" in invoke("predict", folder, "[MAX 2 12 ]", code=1)
    assert "`]` is missing" in invoke("predict", folder, "[MAX 2 3", code=1)
    deep = "[MAX 1 " * 70 + "2" + " ]" * 70
    assert "... and 20 more nodes below" in invoke("predict", folder, deep)
    assert "no --embedding" in invoke("train", "rntn", "--embedding", "3", *options, code=1)


def test_there_is_no_such_model() -> None:
    assert "choose from treernn" in invoke("train", "lstm", code=1)
    assert "experts is trained on rows of numbers" in invoke("train", "experts", code=1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "data"), [("topdown", "grammar"), ("drnn", "listops"), ("drnn", "grammar")])
def test_generators_on_the_command_line(name: str, data: str, tmp_path: Path) -> None:
    """They are trained as the others are; there is a perplexity instead of an accuracy, and trees are grown."""
    sizes = ["--width", "4", "--embedding", "3"]
    options = ["--data", data, "--trees", "20", "--rate", "0.02", "-o", tmp_path]
    told = invoke("train", name, *sizes, *options, "--epochs", "2")
    assert "epoch   2" in told and "perplexity" in told and "grown, with seed 2:" in told and "of roots" not in told
    more = invoke("train", name, *sizes, *options, "--epochs", "3", "--resume")
    assert "epoch   3" in more and "epoch   2" not in more
    last = json.loads((tmp_path / "log.jsonl").read_text().splitlines()[-1])
    assert last["dev_loss"] > 0 and last["dev_accuracy"] is None
    assert f"{name} has no --dropout" in invoke("train", name, "--dropout", "0.5", *options, code=1)
    assert f"{name} has no --at" in invoke("train", name, "--at", "root", *options, code=1)
    assert "generates trees, it does not label them" in invoke("predict", tmp_path, "(a b)", code=1)


@pytest.mark.slow
def test_generators_learn_and_keep_the_best() -> None:
    source = ut.train.open_source("grammar", trees=40, seed=1).with_words()
    assert source.train.word.min() >= 0 and source.vocabulary.words[-1] == "·"
    assert source.with_words() is source
    model = ut.models.TopDownTreeLSTM(len(source.vocabulary), width=4, embedding=3)
    state = last(ut.train.fit(model, source.train, source.dev, replace(RECIPE, epochs=4, l2=0.0))).state
    assert state.history[-1].train_loss < state.history[0].train_loss
    best = min(r.dev_loss for r in state.history)
    assert best == state.best_record.dev_loss == ut.train.score(model, state.best, source.dev).loss
    found = ut.train.growth(model, state.best, source.dev, samples=1)
    nodes = source.dev.size / len(source.dev)
    assert found.loss == best and found.perplexity == pytest.approx(np.exp(best / nodes))
    with pytest.raises(ut.DataError, match="a word at every node"):
        next(ut.train.fit(model, SOURCE.train, SOURCE.dev, RECIPE))
    bushes = ut.data.from_nested([("a", "b", "c")])
    with pytest.raises(ut.DataError, match="needs binary trees"):
        next(ut.train.fit(model, bushes, bushes, RECIPE))


@pytest.mark.slow
def test_curves_of_generators_show_perplexity() -> None:
    """Of trees of unknown size it is not known; one that is infinite leaves a gap."""
    pytest.importorskip("matplotlib")
    nan = float("nan")
    for loss in (0.5, 1.5e7):
        record = ut.train.Record(1, 1, 0.1, loss, nan, loss / 2, nan, nan, 1.0)
        history = [record, replace(record, epoch=2)]
        alone, both = ut.train.curve_png(history), ut.train.curve_png(history, (2.0, 2.0))
        assert alone[:8] == both[:8] == b"\x89PNG\r\n\x1a\n" and alone != both


# --------------------------------------------------------------------------------------------------------------
# What people stumble over


@pytest.mark.parametrize(
    "wrong", [{"l2": -1}, {"warmup": -1}, {"patience": 0}, {"clip": -1}, {"seed": -1}, {"rate": None}, {"epochs": "a"}]
)
def test_recipes_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ut.UndertowError, match=f"{next(iter(wrong))} is "):
        ut.train.Recipe(**wrong)


@pytest.mark.parametrize("wrong", [{"width": 0}, {"width": -3}, {"embedding": 0}, {"dropout": 1.0}, {"dropout": 2}])
def test_models_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ut.UndertowError, match=f"{next(iter(wrong))} is "):
        ut.models.TreeLSTM(words=4, classes=2, **wrong)


@pytest.mark.parametrize("wrong", [{"trees": -5}, {"seed": -1}, {"min_count": 0}, {"min_count": 2}])
def test_sources_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ut.UndertowError, match=f"{next(iter(wrong))} is "):
        ut.train.open_source("grammar", **wrong)


def test_files_without_trees(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.txt").write_text("")
    with pytest.raises(ut.DataError, match=r"train\.txt' holds no trees"):
        ut.train.open_source(f"sst:{tmp_path}")
    (tmp_path / "e.tsv").write_text("")
    with pytest.raises(ut.DataError, match="holds no trees"):
        ut.train.open_source(f"listops:{tmp_path / 'e.tsv'}", trees=5)


def test_trees_without_labels() -> None:
    bare = replace(SOURCE.train, label=np.full_like(SOURCE.train.label, -1))
    with pytest.raises(ut.DataError, match="no node has a label"):
        next(ut.train.fit(MODEL, bare, SOURCE.dev, RECIPE))
    with pytest.raises(ut.DataError, match="no root has a label"):
        next(ut.train.fit(MODEL, SOURCE.train, bare, replace(RECIPE, at="root")))
    with pytest.raises(ut.DataError, match="no node has a label"):
        _ = ut.train.Source(bare, bare, bare).classes


@pytest.mark.slow
def test_a_terminal_has_a_bar() -> None:
    console = Console(force_terminal=True, file=io.StringIO(), width=120, highlight=False)
    held = ut.train.Checkpoint(MODEL, replace(RECIPE, epochs=1), ut.train.start(MODEL, RECIPE), SOURCE.vocabulary)
    with tempfile.TemporaryDirectory() as folder:
        cli_train.run(console, Path(folder), held, SOURCE)
    assert "trees/s" in console.file.getvalue() and "epoch   1" in console.file.getvalue()


@pytest.mark.slow
def test_stopped_saved_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the first epoch: the step is ended and saved, and going on gives what a whole run gives."""
    options = ["train", "treernn", "--trees", "40", "--width", "4", "--epochs", "1"]
    assert "has no checkpoint" in invoke(*options, "-o", tmp_path / "a", "--resume", code=1)
    invoke(*options, "-o", tmp_path / "whole")
    fit = ut.train.fit

    def interrupted(*arguments: Any) -> Any:
        for event in fit(*arguments):
            signal.raise_signal(signal.SIGINT)
            yield event

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background may ignore it
    try:
        with monkeypatch.context() as patch:
            patch.setattr(ut.train, "fit", interrupted)
            assert "Stopped and saved" in invoke(*options, "-o", tmp_path / "a", code=130)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "already has a checkpoint" in invoke(*options, "-o", tmp_path / "a", code=1)
    invoke(*options, "-o", tmp_path / "a", "--resume")
    whole, parts = (ut.train.load(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "a"))
    assert_equal(parts.state, whole.state)
    for name, data, told in (("b.txt", b"(3 \xff)", "not UTF-8 text"), ("e.txt", b"", "holds no trees")):
        (tmp_path / name).write_bytes(data)
        assert told in invoke("predict", tmp_path / "a", tmp_path / name, code=1)
    monkeypatch.setattr(cli_train, "_TELL_SECONDS", 0.0)
    assert "epoch 1: 1 of 2  loss" in invoke(*options, "-o", tmp_path / "told")
    invoke(*options, "-o", tmp_path / "a", "--force")
