"""Training on one's own trees: files and folders in all formats, and what is said of those that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import undertow as ut
from undertow.cli import commands as cli

REVIEWS = ut.data.sentiment(30, seed=2)
BUSHES = "(S (NP the old dog) (VP saw (NP it)))\n(S (NP it) (VP slept))\n"
SMALL = ["--width", "4", "--epochs", "1"]


def invoke(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def words_of(forest: Any) -> set[str]:
    return {forest.vocabulary.word(n) for n in forest.word.tolist() if n >= 0}


@pytest.mark.parametrize("ending", ["txt", "jsonl", "npz"])
def test_a_file_is_split_by_the_seed(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"reviews.{ending}"
    ut.data.write(REVIEWS, path)
    source = ut.train.open_source(f"trees:{path}", seed=1)
    assert [len(part) for part in (source.train, source.dev, source.test)] == [24, 3, 3]
    texts = [ut.data.to_brackets(part).splitlines() for part in (source.train, source.dev, source.test)]
    known = source.train.vocabulary
    assert all(part.vocabulary == known for part in (source.dev, source.test))
    written = ut.data.to_brackets(REVIEWS).splitlines()
    assert sorted(texts[0]) == sorted(line for line in written if line in texts[0])
    assert ut.train.open_source(f"trees:{path}", seed=1).train == source.train
    assert ut.train.open_source(f"trees:{path}", seed=2).train != source.train
    assert source.classes == 5


def test_words_are_those_of_the_trees_to_train_on(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("".join(f"(1 (0 the) (1 word{k}))\n" for k in range(20)))
    source = ut.train.open_source(f"trees:{path}")
    assert len(source.vocabulary) == 1 + 1 + len(source.train)
    assert words_of(source.dev) == words_of(source.test) == {"<unk>", "the"}
    assert ut.train.open_source(f"trees:{path}", min_count=2).vocabulary.words == ("<unk>", "the")


def test_words_that_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"label": 1, "children": [{"word": 7, "label": 0}, {"word": 900000000, "label": 1}]}\n' * 3)
    source = ut.train.open_source(f"trees:{path}")
    assert source.vocabulary.words == ("<unk>", "7", "900000000")
    assert source.train.word.tolist() == [-1, 1, 2]


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("(pos (neg not) (neg bad))\n(neg (neg bad) (pos film))\n")
    (tmp_path / "dev.txt").write_text("(pos (pos fine) (meh film))\n")
    (tmp_path / "readme.md").write_text("# trees")
    source = ut.train.open_source(f"trees:{tmp_path}")
    assert source.test is source.dev and source.classes == 3
    names = source.labels.words
    assert names == ("neg", "pos", "meh") and source.dev.labels.words == names
    assert [names[k] for k in source.dev.label] == ["pos", "pos", "meh"]
    assert source.vocabulary.words == ("<unk>", "bad", "not", "film")
    assert source.dev.word.tolist() == [-1, 0, 3]
    (tmp_path / "test.txt").write_text("(neg (neg not) (pos good))\n")
    again = ut.train.open_source(f"trees:{tmp_path}")
    assert again.test.label.tolist() == [0, 0, 1]


FOLDERS = [
    ({"train.txt": "(1 a)"}, r"has no dev file"),
    ({"dev.sexp": "a"}, r"has no train file"),
    ({"train.txt": "(1 a)", "train.sexp": "a", "dev.txt": "(1 a)"}, r"has train\.sexp and train\.txt"),
    ({"train.txt": "(1 a)", "dev.sexp": "a"}, r"train\.txt and dev\.sexp have different formats"),
    ({"train.txt": "(1 a)", "dev.txt": "(x a)"}, "files with named labels"),
    ({"train.txt": "(1 a)", "dev.txt": ""}, r"dev\.txt' holds no trees"),
]


@pytest.mark.parametrize(("files", "told"), FOLDERS)
def test_folders_that_do_not_fit(files: dict[str, str], told: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ut.DataError, match=told):
        ut.train.open_source(f"trees:{tmp_path}")


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no file"):
        ut.train.open_source(f"trees:{tmp_path / 'none.txt'}")
    for name, text, told in (
        ("two.txt", "(1 a)\n(2 b)\n", "holds 2 trees"),
        ("bad.txt", "(1 a\n", "lacks 1"),
        ("t.dat", "(1 a)\n", "undertow data convert"),
        ("bush.txt", BUSHES * 3, "node 1 of tree 0 has 3 children(?s:.*)childsum and drnn"),
        ("list.tsv", "3\t[MAX 2 3 ]\n" * 3, None),
    ):
        (tmp_path / name).write_text(text)
        if told is not None:
            with pytest.raises(ut.DataError, match=told):
                ut.train.open_source(f"trees:{tmp_path / name}")
    bushes = ut.train.open_source(f"trees:{tmp_path / 'bush.txt'}", binary=False)
    assert not bushes.train.is_binary and bushes.labels.words[0] in ("NP", "VP", "S")
    lists = ut.train.open_source(f"trees:{tmp_path / 'list.tsv'}", binary=False)
    assert lists.vocabulary is ut.data.LISTOPS and lists.classes == 4
    with pytest.raises(ut.DataError, match="min_count is 2"):
        ut.train.open_source(f"trees:{tmp_path / 'list.tsv'}", binary=False, min_count=2)
    with pytest.raises(ut.DataError, match="there is no file 'trees:'"):
        ut.train.open_source("trees:")


def test_with_vocabulary() -> None:
    forest = ut.data.from_nested([("a", ("b", "c"))])
    other = ut.data.Vocabulary(("c", "a"))
    moved = forest.with_vocabulary(other)
    assert moved.word.tolist() == [-1, 2, -1, 0, 1] and moved.vocabulary == other
    assert forest.with_vocabulary(forest.vocabulary) is forest
    with pytest.raises(ut.DataError, match="'b' is not in the vocabulary"):
        forest.with_vocabulary(ut.data.Vocabulary(("a", "c"), unknown=None))
    numbered = ut.data.from_nested([(3, 4)])
    with pytest.raises(ut.DataError, match="no vocabulary"):
        numbered.with_vocabulary(other)


# --------------------------------------------------------------------------------------------------------------
# The command line


@pytest.mark.slow
def test_trained_from_the_command_line(tmp_path: Path) -> None:
    ut.data.write(REVIEWS, tmp_path / "reviews.txt")
    told = invoke("train", "treernn", "--data", f"trees:{tmp_path / 'reviews.txt'}", *SMALL, "-o", tmp_path / "a")
    assert "24 trees" in told and "on 3 unseen trees" in told
    held = ut.train.load(tmp_path / "a" / "checkpoint.safetensors")
    assert held.source == {"data": f"trees:{tmp_path / 'reviews.txt'}", "trees": None, "min_count": 1}
    assert held.labels is None


@pytest.mark.slow
def test_labels_have_their_names(tmp_path: Path) -> None:
    """Trees with any number of children, and labels that are names: in the report, and when trees are labelled."""
    (tmp_path / "train.txt").write_text(BUSHES * 6)
    (tmp_path / "dev.txt").write_text(BUSHES)
    options = ["--data", f"trees:{tmp_path}", *SMALL, "--embedding", "3", "--rate", "0.05", "--epochs", "20"]
    told = invoke("train", "childsum", *options, "-o", tmp_path / "a")
    assert "on the 2 dev trees, which also selected the best epoch" in told
    report = (tmp_path / "a" / "report.txt").read_text()
    names = ut.train.load(tmp_path / "a" / "checkpoint.safetensors").labels.words
    assert set(names) == {"S", "NP", "VP"} and all(f"{name:>5}" in report for name in names)
    tree = invoke("predict", tmp_path / "a", "(S (VP slept) (NP it))")
    assert tree.split()[0] in names and ("VP slept" in tree or "slept (is VP)" in tree)
    for trees in ("(VP slept)", tmp_path / "dev.txt"):
        assert "slept" in invoke("predict", tmp_path / "a", trees)
    ut.data.write(ut.data.read(tmp_path / "dev.txt"), tmp_path / "some.npz")
    assert invoke("predict", tmp_path / "a", tmp_path / "some.npz") == invoke(
        "predict", tmp_path / "a", tmp_path / "dev.txt"
    )
    grown = invoke("train", "drnn", *options[:-2], "--epochs", "1", "-o", tmp_path / "b")
    assert "perplexity" in grown


def test_what_the_command_line_says_of_trees_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "bush.txt").write_text(BUSHES * 6)
    (tmp_path / "bare.sexp").write_text("(a b c)\n" * 6)
    options = [*SMALL, "-o", tmp_path / "a"]
    told = invoke("train", "treelstm", "--data", f"trees:{tmp_path / 'bush.txt'}", *options, code=1)
    assert "DataError" in told and "has 3 children" in told and "hint: the models childsum and drnn" in told
    told = invoke("train", "childsum", "--data", tmp_path / "bare.sexp", *options, code=1)
    assert "no node has a label" in told and "topdown and drnn" in told
    assert "--data PATH" in invoke("train", "--help")


def test_label_names_are_saved(tmp_path: Path) -> None:
    model, recipe = ut.models.TreeRNN(3, 2, width=2), ut.train.Recipe()
    names = ut.data.Vocabulary(("neg", "pos"), unknown=None)
    for labels in (None, names):
        held = ut.train.Checkpoint(model, recipe, ut.train.start(model, recipe), names, labels=labels)
        ut.train.save(tmp_path / "c", held)
        assert ut.train.load(tmp_path / "c").labels == labels


def test_report_with_names() -> None:
    found = ut.train.Report(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), 2, ("neg", "positive"))
    assert "      neg positive\n" in str(found) and "positive        1" in str(found)


# --------------------------------------------------------------------------------------------------------------
# Going on


@pytest.mark.slow
def test_resumed_with_nothing_but_the_folder(tmp_path: Path) -> None:
    """What is left out is as the folder has it; what is given must agree."""
    ut.data.write(REVIEWS, tmp_path / "reviews.txt")
    folder = tmp_path / "a"
    data = ["--data", f"trees:{tmp_path / 'reviews.txt'}", "--min-count", "2", "--dropout", "0.1", "--clip", "0"]
    options = ["treelstm", *data, "--width", "3", "--embedding", "4", "--rate", "0.02", "--seed", "5", "--at", "root"]
    told = invoke("train", *options, "--epochs", "2", "-o", folder)
    assert "of roots" in told and "of nodes" not in told and "nan" not in told
    before = ut.train.load(folder / "checkpoint.safetensors")
    assert before.source["data"].endswith("reviews.txt") and before.source["min_count"] == 2
    assert "All 2 epochs are done" in invoke("train", "--resume", "-o", folder)
    told = invoke("train", "--resume", "-o", folder, "--epochs", "3")
    assert "epoch 3" in told and "epoch 2 " not in told
    invoke("train", *options, "--epochs", "3", "-o", tmp_path / "whole")
    one, other = (ut.train.load(path / "checkpoint.safetensors") for path in (folder, tmp_path / "whole"))
    assert (one.model, one.recipe, one.vocabulary, one.source) == (
        other.model, other.recipe, other.vocabulary, other.source,
    )  # fmt: skip
    assert all(np.array_equal(one.state.params[name], other.state.params[name]) for name in one.state.params)
    told = invoke("train", "--resume", "-o", folder, "--epochs", "4", "--rate", "0.5", "--width", "9", code=1)
    assert "trained with other options: --width 3 before, 9 now; --rate 0.02 before, 0.5 now" in told
    assert "holds another model: treelstm" in invoke("train", "rntn", "--resume", "-o", folder, code=1)
    other_words = invoke("train", "treelstm", "--resume", "-o", folder, "--min-count", "1", code=1)
    assert "--min-count 2 before, 1 now" in other_words


@pytest.mark.slow
def test_resumed_with_trees_made_by_rule(tmp_path: Path) -> None:
    made = ["--data", "listops", "--trees", "20", "--patience", "7"]
    invoke("train", "drnn", *made, *SMALL, "--embedding", "3", "-o", tmp_path)
    told = invoke("train", "--resume", "-o", tmp_path, "--epochs", "2")
    assert "epoch 2" in told and "20 trees" in told
    held = ut.train.load(tmp_path / "checkpoint.safetensors")
    assert held.source == {"data": "listops", "trees": 20, "min_count": 1} and held.recipe.patience == 7
    assert "--trees 20 before, 30 now" in invoke("train", "--resume", "-o", tmp_path, "--trees", "30", code=1)


def test_what_is_missing_to_train_or_to_go_on(tmp_path: Path) -> None:
    assert "width is 0" in invoke("train", "treernn", "--width", "0", "-o", tmp_path, code=1)
    assert "MODEL" in invoke("train", code=2) and "MODEL" in invoke("train", "-o", tmp_path, code=2)
    assert "--output" in invoke("train", "--resume", code=2)
    assert "has no checkpoint" in invoke("train", "--resume", "-o", tmp_path, code=1)
    model, recipe = ut.models.TreeRNN(3, 2, width=2), ut.train.Recipe()
    ut.train.save(
        tmp_path / "checkpoint.safetensors", ut.train.Checkpoint(model, recipe, ut.train.start(model, recipe))
    )
    assert "does not record its training data" in invoke("train", "--resume", "-o", tmp_path, code=1)


# --------------------------------------------------------------------------------------------------------------
# What is drawn


def test_unknown_words_are_drawn_as_they_are_typed(tmp_path: Path) -> None:
    words = ut.data.Vocabulary(("a", "film"))
    model, recipe = ut.models.TreeRNN(len(words), 2, width=2), ut.train.Recipe()
    held = ut.train.Checkpoint(model, recipe, ut.train.start(model, recipe), words)
    ut.train.save(tmp_path / "c", held)
    told = invoke("predict", tmp_path / "c", "((a zany) (<unk> film))")
    assert "zany (unknown word)" in told and told.count("unknown") == 1 and "a ├─" not in told
    assert "<unk>" in told and "film" in told
    told = invoke("predict", tmp_path / "c", "(0 (0 zany) (1 film))")
    assert "zany (unknown word" in told and told.count("<unk>") == 0
    (tmp_path / "numbers.jsonl").write_text("[1, 2]")
    assert "1 (unknown word)" in invoke("predict", tmp_path / "c", tmp_path / "numbers.jsonl")
    ut.train.save(tmp_path / "d", ut.train.Checkpoint(model, recipe, held.state, None))
    assert "has no vocabulary" in invoke("predict", tmp_path / "d", "(a film)", code=1)
    fixed = ut.data.Vocabulary(("a", "b", "c"), unknown=None)
    ut.train.save(tmp_path / "e", ut.train.Checkpoint(model, recipe, held.state, fixed))
    assert "unknown words: 'zany'" in invoke("predict", tmp_path / "e", "(a zany)", code=1)


@pytest.mark.slow
def test_more_epochs_under_decay_are_told(tmp_path: Path) -> None:
    options = ["--trees", "20", *SMALL, "-o", tmp_path / "a"]
    invoke("train", "treernn", *options, "--decay", "cosine")
    told = invoke("train", "--resume", "-o", tmp_path / "a", "--epochs", "2")
    assert "rate now decays (cosine) over 2 epochs, before over 1: results differ from a single run of 2" in told
    assert "rate falls" not in invoke("train", "--resume", "-o", tmp_path / "a", "--epochs", "2")
    invoke("train", "treernn", *options[:-1], tmp_path / "b")
    assert "rate falls" not in invoke("train", "--resume", "-o", tmp_path / "b", "--epochs", "2")


def test_of_epochs_with_equal_roots_the_one_with_more_nodes_right_is_best() -> None:
    """Where all roots have one label, as in trees of sentences, roots say nothing: the first epoch would be best."""
    nan = float("nan")
    first = ut.train.Record(1, 5, 0.1, 9.0, 1.0, 9.0, 1.0, 0.4, 1.0)
    model, recipe = ut.models.TreeRNN(3, 2, width=2), ut.train.Recipe()
    state = ut.train.start(model, recipe)
    for second, best in (
        (replace(first, epoch=2, dev_node_accuracy=0.9), 2),
        (replace(first, epoch=2), 1),
        (replace(first, epoch=2, dev_accuracy=0.9, dev_node_accuracy=0.9), 1),
    ):
        assert replace(state, history=(first, second)).best_record.epoch == best
    at_root = replace(first, dev_node_accuracy=nan)
    assert replace(state, history=(at_root, replace(at_root, epoch=2))).best_record.epoch == 1
    grown = replace(at_root, dev_accuracy=nan)
    assert replace(state, history=(grown, replace(grown, epoch=2, dev_loss=8.0))).best_record.epoch == 2


def test_json_may_be_typed(tmp_path: Path) -> None:
    words = ut.data.Vocabulary(("a", "film"))
    model, recipe = ut.models.TreeRNN(len(words), 2, width=2), ut.train.Recipe()
    held = ut.train.Checkpoint(model, recipe, ut.train.start(model, recipe), words)
    ut.train.save(tmp_path / "c", held)
    assert "film" in invoke("predict", tmp_path / "c", '{"label": 1, "children": ["a", "film"]}')
    assert "film" in invoke("predict", tmp_path / "c", '["a", "film"]', "--from", "jsonl")


@pytest.mark.slow
def test_nodes_without_a_label_are_told(tmp_path: Path) -> None:
    """Whoever has the labels -1 and 1 would else read of a model that is right everywhere."""
    (tmp_path / "signs.txt").write_text("(-1 (-1 a) (1 b))\n(1 (1 b) (-1 a))\n" * 6)
    (tmp_path / "names.txt").write_text("(S (A a) b)\n" * 6)
    told = invoke("train", "treernn", "--data", f"trees:{tmp_path / 'signs.txt'}", *SMALL, "-o", tmp_path / "a")
    assert (
        "of 30 nodes have no label (marked by -1; if -1 is meant as a label, use 0 and 1 instead of -1 and 1)" in told
    )
    told = invoke("train", "treernn", "--data", f"trees:{tmp_path / 'names.txt'}", *SMALL, "-o", tmp_path / "b")
    assert "4 of 12 nodes have no label" in told and "-1 says so" not in told
    told = invoke("train", "treernn", "--trees", "20", *SMALL, "-o", tmp_path / "c")
    assert "no label" not in told


def test_labels_that_are_no_numbers_of_classes(tmp_path: Path) -> None:
    """One large number must not make a model of millions of classes."""
    (tmp_path / "t.txt").write_text("(1 (0 a) (1 b))\n" * 9 + "(1000000 (0 a) (1 b))\n")
    source = ut.train.open_source(f"trees:{tmp_path / 't.txt'}")
    with pytest.raises(ut.DataError, match=r"largest label is 1000000, but only 3 different(?s:.*)from 0, or use"):
        print(source.classes)
    (tmp_path / "t.txt").write_text("".join(f"({k} (0 a) (1 b))\n" for k in range(0, 5000, 5)))
    assert ut.train.open_source(f"trees:{tmp_path / 't.txt'}").classes == 4996


def test_reports_of_many_classes() -> None:
    """What occurs is shown; no table has a place for every pair of classes."""
    wanted = np.array([7, 7, 900_000, 3])
    told = str(ut.train.Report(wanted, np.array([7, 3, 900_000, 3]), np.ones(4, int), 1_000_000))
    assert "predicted class; 3 of 1,000,000 classes" in told
    assert [line.split() for line in told.splitlines()[-4:]] == [
        ["3", "7", "900000"], ["3", "1", "0", "0"], ["7", "1", "1", "0"], ["900000", "0", "0", "1"],
    ]  # fmt: skip
    many = np.arange(500).repeat(2)
    assert "40 of 600 classes" in str(ut.train.Report(many, many, np.ones(1000, int), 600))
    assert str(ut.train.Report(many[:0], many[:0], many[:0], 600))


@pytest.mark.slow
def test_early_stopping_is_told(tmp_path: Path) -> None:
    options = ["--trees", "20", "--width", "3", "--rate", "1e-9", "--patience", "2", "-o", tmp_path / "a"]
    told = invoke("train", "treernn", *options, "--epochs", "9")
    assert "stopped after epoch 3: no improvement for 2 epochs (best: epoch 1)" in told
    told = invoke("train", "--resume", "-o", tmp_path / "a")
    stopped = (
        "Training stopped after epoch 3: no improvement for 2 epochs (best: epoch 1): continue with a larger --patience"
    )
    assert stopped in told and told.count("no improvement") == 1
    told = invoke("train", "--resume", "-o", tmp_path / "a", "--patience", "3")
    assert "stopped after epoch 4: no improvement for 3 epochs" in told and "Training stopped" not in told
    assert "stopped" not in invoke("train", "--resume", "-o", tmp_path / "a", "--patience", "4", "--epochs", "5")
    assert "improvement" in invoke("train", "--help")


def test_memory_may_be_limited(tmp_path: Path) -> None:
    told = invoke("train", "treernn", "--trees", "20", *SMALL, "--memory", "1K", "-o", tmp_path / "a", code=1)
    assert "FrameLimit" in told and "raise `memory`" in told and "batches of fewer than 25 trees" in told
    assert "not a number of bytes" in invoke("train", "treernn", "--memory", "much", "-o", tmp_path, code=2)


def test_dev_trees_with_other_words_or_labels() -> None:
    """The same numbers would mean something else in them."""
    train = ut.data.parse_brackets("(a (b x) (b y))")
    model = ut.models.TreeRNN(9, 9, width=2)
    for options, told in (({"labels": train.labels}, "words"), ({"vocabulary": train.vocabulary}, "labels")):
        dev = ut.data.parse_brackets("(a (b z) (a x))", **options)
        with pytest.raises(ut.DataError, match=rf"dev trees have different {told}(?s:.*)=train\."):
            next(ut.train.fit(model, train, dev, ut.train.Recipe()))
    dev = ut.data.parse_brackets("(b (b z) (a x))", vocabulary=train.vocabulary, labels=train.labels)
    assert next(ut.train.fit(model, train, dev, ut.train.Recipe())).trees == 1


@pytest.mark.slow
def test_trees_that_have_changed_since(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("(1 (0 a) (1 b))\n" * 5)
    invoke("train", "treernn", "--data", f"trees:{tmp_path / 't.txt'}", *SMALL, "-o", tmp_path / "a")
    (tmp_path / "t.txt").write_text("(1 (0 a) (1 c))\n" * 5)
    told = invoke("train", "--resume", "-o", tmp_path / "a", "--epochs", "2", code=1)
    assert "t.txt has changed" in told and "--force" in told and "remove these options" not in told


def test_files_have_as_many_trees_as_they_have(tmp_path: Path) -> None:
    ut.data.write(REVIEWS, tmp_path / "t.txt")
    told = invoke("train", "treernn", "--data", f"trees:{tmp_path / 't.txt'}", "--trees", "5", "-o", tmp_path, code=1)
    assert "trees is 5, but trees:" in told and "has a fixed number of trees" in told
    with pytest.raises(ut.DataError, match="has a fixed number of trees"):
        ut.train.open_source(f"sst:{tmp_path}", trees=5)
    assert len(ut.train.open_source("grammar").train) == 2000
