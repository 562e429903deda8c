"""The command `undertow predict`: how trees are read that are typed or in files, and what is said of bad ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import undertow as ut
from undertow.cli import commands as cli

WORDS = ut.data.Vocabulary(("a", "not", "bad", "film", "at", "all"))
KINDS: dict[str, Any] = {"binary": ut.models.TreeRNN, "any": ut.models.ChildSumTreeLSTM}


def invoke(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    return " ".join(done.output.split())


def saved(path: Path, kind: str = "binary", classes: int = 1, vocabulary: Any = WORDS, **held: Any) -> Path:
    """A checkpoint of a small model; with one class every node has label 0, so that only shapes are looked at."""
    model, recipe = KINDS[kind](len(vocabulary), classes, width=2), ut.train.Recipe()
    state = ut.train.start(model, recipe)
    ut.train.save(path / "checkpoint.safetensors", ut.train.Checkpoint(model, recipe, state, vocabulary, **held))
    return path


LEAVES = "0 ├─ 0 │ ├─ 0 not │ └─ 0 bad └─ 0 ├─ 0 at └─ 0 all"


@pytest.mark.parametrize("kind", KINDS)
def test_a_typed_tree_is_the_same_to_all_models(kind: str, tmp_path: Path) -> None:
    """Its words are leaves, unless inner nodes had words in what the model was trained on."""
    leaves, heads = saved(tmp_path / "a", kind), saved(tmp_path / "b", kind, inner_words=True)
    assert invoke("predict", leaves, "((not bad) (at all))") == LEAVES
    assert invoke("predict", heads, "(not (bad a film) all)") == "0 not ├─ 0 bad │ ├─ 0 a │ └─ 0 film └─ 0 all"


@pytest.mark.parametrize("kind", KINDS)
def test_trees_that_were_converted(kind: str, tmp_path: Path) -> None:
    """What `undertow data convert` writes as S-expressions is read as it was."""
    (tmp_path / "t.txt").write_text("(0 (0 (0 not) (0 bad)) (0 (0 at) (0 all)))\n(0 film)\n")
    invoke("data", "convert", tmp_path / "t.txt", tmp_path / "t.sexp")
    for inner_words in (False, True):
        held = saved(tmp_path / f"{inner_words}", kind, inner_words=inner_words)
        assert invoke("predict", held, tmp_path / "t.sexp") == f"{LEAVES} 0 film"


@pytest.mark.slow
def test_training_notes_where_words_are(tmp_path: Path) -> None:
    lines = '{"label": 1, "word": "bad", "children": [{"label": 0, "word": "film"}]}\n' * 5
    (tmp_path / "heads.jsonl").write_text(lines)
    (tmp_path / "leaves.txt").write_text("(1 (0 bad) (1 film))\n" * 5)
    for name in ("heads.jsonl", "leaves.txt"):
        options = ["--width", "3", "--embedding", "3", "--epochs", "1", "-o", tmp_path / name[:-5]]
        invoke("train", "childsum", "--data", f"trees:{tmp_path / name}", *options)
        held = ut.train.load(tmp_path / name[:-5] / "checkpoint.safetensors")
        assert held.inner_words == (name == "heads.jsonl")


def test_json_and_listops_are_told_apart(tmp_path: Path) -> None:
    held = saved(tmp_path)
    assert invoke("predict", held, '["not", ["bad", "film"]]') == "0 ├─ 0 not └─ 0 ├─ 0 bad └─ 0 film"
    assert "is not JSON" in invoke("predict", held, '["not", "bad"', code=1)
    told = invoke("predict", held, "[MAX 2 3 ]", code=1)
    assert "unknown words: '2', '3', 'MAX', ']' hint: the model's words are '<unk>', 'a', 'not'" in told
    lists = saved(tmp_path / "lists", classes=10, vocabulary=ut.data.LISTOPS)
    for text in ("[MAX 2 3 ]", "3\t[MAX 2 3 ]", "( ( ( [MAX 2 ) 3 ) ] )"):
        assert "MAX" in invoke("predict", lists, text)
    told = invoke("predict", lists, "(good film)", code=1)
    assert "unknown words: 'film', 'good' hint: the model's words are '0'" in told and "Vocabulary.of" not in told


def test_labels_are_never_words(tmp_path: Path) -> None:
    names = ut.data.Vocabulary(("pos", "neg"), unknown=None)
    held = saved(tmp_path, classes=2, labels=names)
    told = invoke("predict", held, "(mid (pos the) (neg bad))", code=1)
    assert "DataError: unknown labels: 'mid' hint: the model's labels are pos, neg" in told
    assert "bad" in invoke("predict", held, "(pos (pos the) (neg bad))")
    assert "the" in invoke("predict", held, "(-1 (pos the) (neg bad))")
    (tmp_path / "others.txt").write_text("(S (D the) (N film))\n")
    assert "film" in invoke("predict", held, tmp_path / "others.txt")
    numbered = saved(tmp_path / "numbered")
    assert invoke("predict", numbered, "(-1 (0 not) (0 bad))") == "0 ├─ 0 not └─ 0 bad"


def test_what_is_not_there(tmp_path: Path) -> None:
    held = saved(tmp_path / "held")
    for text in ("", " "):
        told = invoke("predict", held, text, code=1)
        assert "DataError: the text is empty hint: write a tree as" in told
    told = invoke("predict", tmp_path / "none", "(a b)", code=1)
    assert "not found" in told and "hint: name the output of `undertow train`" in told
    (tmp_path / "empty").mkdir()
    assert "has no checkpoint.safetensors" in invoke("predict", tmp_path / "empty", "(a b)", code=1)


@pytest.mark.slow
def test_readers_that_have_read_enough(tmp_path: Path) -> None:
    """`undertow predict ... | head -1` ends without a word."""
    held = saved(tmp_path, kind="any")
    (tmp_path / "t.sexp").write_text("(a (not bad) film at all)\n" * 2000)
    command = [sys.executable, "-m", "undertow", "predict", held, tmp_path / "t.sexp", "--most", "2000"]
    environment = {**os.environ, "PYTHONPATH": str(Path(ut.__file__).parents[1])}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert running.stdout is not None and running.stderr is not None
    assert running.stdout.readline()
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait() == 1
