"""`undertow data`: what is in files of trees, conversions, samples."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from undertow import data
from undertow.cli import commands as cli

SST = "(3 (2 It) (4 (2 's) (3 good)))\n(1 (2 Not) (0 bad))\n"


def invoke(*arguments: str | Path, code: int = 0) -> str:
    done = CliRunner().invoke(cli.app, ["data", *map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    path = tmp_path / "trees.txt"
    path.write_text(SST, encoding="utf-8")
    return path


def test_inspect(trees: Path) -> None:
    text = " ".join(invoke("inspect", trees).split())
    for fact in ("trees 2", "nodes 8, 5 of them leaves", "children two or none", "words 5, 5 different ones"):
        assert fact in text
    assert "labels 0: 12%, 1: 12%, 2: 38%, 3: 25%, 4: 12%" in text
    assert "tree 0: 3 ├─ 2 It" in text
    assert "├─ 2 Not" in invoke("inspect", trees, "--tree", "1")
    assert "tree 0" not in invoke("inspect", trees, "--tree", "-1")


def test_inspect_nothing(tmp_path: Path) -> None:
    path = tmp_path / "none.txt"
    path.write_text("")
    assert "trees" in invoke("inspect", path)


def test_every_bad_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("(1 a)\n(1 (2 b)\n(1 c))\n", encoding="utf-8")
    text = invoke("inspect", path, code=1)
    assert "line 2: 1 `)` is missing" in text and "line 3: unmatched `)`" in text
    assert "there is no file" in invoke("inspect", tmp_path / "no.txt", code=1)
    (tmp_path / "no.pdf").touch()
    assert "cannot tell the format" in invoke("inspect", tmp_path / "no.pdf", code=1)


@pytest.mark.parametrize("ending", ["npz", "jsonl", "mrg"])
def test_convert(trees: Path, ending: str) -> None:
    output = trees.parent / "made" / f"trees.{ending}"
    assert "2 trees" in invoke("convert", trees, output)
    found, expected = data.read(output), data.read(trees)
    assert data.to_brackets(found) == data.to_brackets(expected) == SST


@pytest.mark.parametrize("ending", ["npz", "jsonl", "svg"])
def test_convert_nothing(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "none.txt"
    path.write_text("\n")
    text = invoke("convert", path, tmp_path / f"made.{ending}", code=1)
    assert "holds no trees" in text and "hint: " in text
    assert not (tmp_path / f"made.{ending}").exists()


def test_convert_to_a_picture(trees: Path) -> None:
    output = trees.parent / "trees.svg"
    invoke("convert", trees, output)
    assert ElementTree.fromstring(output.read_text(encoding="utf-8")).tag.endswith("svg")


def test_options_go_to_the_reader(trees: Path) -> None:
    invoke("convert", trees, trees.parent / "trees.npz", "--min-count", "2", "--binary")
    vocabulary = data.load(trees.parent / "trees.npz").vocabulary
    assert vocabulary is not None and vocabulary.words == ("<unk>",)
    text = invoke("inspect", trees.parent / "trees.npz", "--binary", code=1)
    assert "the format npz has no option --binary" in text


@pytest.mark.parametrize("kind", ["listops", "booleans", "arithmetic", "sentiment"])
def test_sample(kind: str, tmp_path: Path) -> None:
    text = invoke("sample", kind, "-n", "3", "--seed", "7", "--max-depth", "3")
    assert len(text.splitlines()) == 3
    output = tmp_path / "sample.npz"
    invoke("sample", kind, "-n", "3", "--seed", "7", "-o", output)
    assert data.load(output) == getattr(data, kind)(3, seed=7)
    assert invoke("sample", kind, "-n", "3", "--to", "jsonl").startswith("{")
    assert "─" in invoke("sample", kind, "--text")
    assert "cannot be printed" in invoke("sample", kind, "--to", "npz", code=1)


def test_names_that_say_no_format(trees: Path, tmp_path: Path) -> None:
    text = invoke("convert", trees, tmp_path / "no" / "x.png", code=1)
    assert "cannot tell the format from the name 'x.png'" in text and "--to" in text and "and svg for a picture" in text
    assert not (tmp_path / "no").exists()
    (tmp_path / "x.foo").write_text(SST)
    assert "--from" in invoke("inspect", tmp_path / "x.foo", code=1)
    invoke("convert", trees, tmp_path / "picture", "--to", "svg")
    assert (tmp_path / "picture").read_text().startswith("<svg")
