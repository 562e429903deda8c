"""Trees from text and back: brackets, S-expressions, ListOps, JSON, files; every bad line is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import data
from undertow.data import LISTOPS, Forest, Vocabulary

SST = "(3 (2 It) (4 (2 's) (3 good)))\n(1 (2 Not) (0 bad))\n(2 Film)\n"


def words(forest: Forest) -> list[str]:
    assert forest.vocabulary is not None
    return [forest.vocabulary.word(n) if n >= 0 else "" for n in forest.word.tolist()]


# -- brackets --------------------------------------------------------------------------------------------------------


def test_sentiment_treebank() -> None:
    forest = data.parse_brackets(SST)
    assert repr(forest) == "<Forest: 3 trees, 9 nodes, binary>"
    assert forest.label.tolist() == [3, 2, 4, 2, 3, 1, 2, 0, 2]
    assert words(forest) == ["", "It", "", "'s", "good", "", "Not", "bad", "Film"]
    assert forest.depths.tolist() == [0, 1, 1, 2, 2, 0, 1, 1, 0]
    assert forest.labels is None
    assert data.to_brackets(forest) == SST


def test_penn_treebank_over_many_lines() -> None:
    text = """
    ( (S
        (NP-SBJ (DT The) (NN cat) )
        (VP (VBD sat)) (. .) ))

    ( (FRAG (NN Silence)) )
    """
    forest = data.parse_brackets(text)
    assert len(forest) == 2 and not forest.is_binary
    assert words(forest)[:5] == ["", "", "The", "cat", ""]
    assert forest.labels is not None
    assert [forest.labels.word(n) for n in forest.label] == [
        "S", "NP-SBJ", "DT", "NN", "VP", "VBD", ".", "FRAG", "NN",
    ]  # fmt: skip
    assert data.to_brackets(forest).splitlines()[1] == "(FRAG (NN Silence))"


def test_words_may_stand_beside_brackets() -> None:
    """As NLTK writes phrases: these words are nodes of their own, without label."""
    forest = data.parse_brackets("(NP the (ADJ old) dog)")
    assert words(forest) == ["", "the", "old", "dog"]
    assert forest.label.tolist()[1] == -1
    assert data.parse_brackets(data.to_brackets(forest)) == forest


def test_vocabulary_is_shared() -> None:
    train = data.parse_brackets("(1 (1 a) (1 b))\n(1 (1 a) (1 c))", min_count=2)
    assert train.vocabulary is not None and train.vocabulary.words == ("<unk>", "a")
    assert train.word.tolist() == [-1, 1, 0, -1, 1, 0]
    test = data.parse_brackets("(1 (1 c) (1 a))", vocabulary=train.vocabulary)
    assert test.word.tolist() == [-1, 0, 1] and test.vocabulary is train.vocabulary
    with pytest.raises(ut.DataError, match="'c' is not in the vocabulary"):
        data.parse_brackets("(1 (1 c) (1 a))", vocabulary=Vocabulary(("a",), unknown=None))


def test_labels() -> None:
    named = data.parse_brackets("(A (B x) (A y))")
    assert named.labels is not None and named.labels.words == ("A", "B")
    again = data.parse_brackets("(B x)", labels=named.labels)
    assert again.label.tolist() == [1]
    assert data.parse_brackets("(1 x)", labels=str).labels is not None
    assert data.parse_brackets("(-1 x)").label.tolist() == [-1]
    with pytest.raises(ut.DataError, match="line 2: unknown label"):
        data.parse_brackets("(1 x)\n(one x)", labels=int)
    with pytest.raises(ut.DataError, match="unknown label"):
        data.parse_brackets("(C x)", labels=named.labels)
    for wrong in (float, 5, "A", [1, 2]):
        with pytest.raises(ut.DataError, match="use int, str"):
            data.parse_brackets("(C x)", labels=wrong)  # type: ignore[arg-type]


def test_labels_in_a_list() -> None:
    for names in (["neg", "pos"], ("neg", "pos")):
        forest = data.parse_brackets("(pos (neg x) (-1 y))", labels=names)
        assert forest.label.tolist() == [1, 0, -1]
        assert forest.labels == Vocabulary(("neg", "pos"), unknown=None)
    with pytest.raises(ut.DataError, match="unknown label"):
        data.parse_brackets("(C x)", labels=["neg", "pos"])


def test_every_bad_line_is_named() -> None:
    lines = [
        "(1 (2 a) (3 b))",  # 1: good
        "(1 (2 a) (3 b)",
        "(1 (2 a) (3 b)))",
        "",  # 4: nothing
        "(1 a) (2 b)",
        "()",
        "(1)",
        "word",
        "(1 (2 a) (3 b))",  # 9: good
        ")(",
        "(1 (2 a) (3 b)) trailing text",
        "no brackets",
    ]
    with pytest.raises(ut.DataError) as caught:
        data.parse_brackets("\n".join(lines))
    assert dict(caught.value.lines) == {
        2: "1 `)` is missing",
        3: "unmatched `)`",
        5: "2 trees on one line",
        6: "a bracket is empty",
        7: "a label has no word or children",
        8: "text outside the brackets",
        10: "unmatched `)`",
        11: "text outside the brackets",
        12: "text outside the brackets",
    }
    text = str(caught.value)
    assert text.startswith("9 bad lines among 11; each should be a tree:\n  line 2: 1 `)` is missing: (1 (2 a) (3 b)\n")


@pytest.mark.parametrize("parse", [data.parse_brackets, data.parse_sexpressions, data.parse_listops, data.parse_jsonl])
def test_what_is_no_text(parse: Callable[..., Forest]) -> None:
    for wrong, hint in [
        (b"(1 a)", "decode"),
        (None, "pass a string"),
        (Path("a.txt"), "ut.data.read"),
        (["(1 a)"], "join"),
    ]:
        with pytest.raises(ut.DataError, match=f"is not text(?s:.*)hint: .*{hint}"):
            parse(wrong)


def test_trees_and_text_beside_them() -> None:
    with pytest.raises(ut.DataError) as caught:
        data.parse_sexpressions("(f x) y\na b\n(f x) (g y)\na", per_line=True)
    assert dict(caught.value.lines) == {
        1: "text outside the brackets",
        2: "2 trees on one line",  # an atom alone is a tree
        3: "2 trees on one line",
    }


def test_many_bad_lines_are_folded() -> None:
    with pytest.raises(ut.DataError) as caught:
        data.parse_brackets("(1 a)\n" + "(1 a\n" * 30)
    assert len(caught.value.lines) == 30
    assert "and the lines 22-31" in str(caught.value)


def test_trees_over_many_lines_that_do_not_balance() -> None:
    with pytest.raises(ut.DataError, match="line 3: the tree that starts here lacks 1"):
        data.parse_brackets("(S\n (A a))\n(S\n (A a)\n", per_line=False)
    with pytest.raises(ut.DataError, match="line 3: unmatched `\\)`"):
        data.parse_brackets("(S\n (A a))\n)\n", per_line=False)


def test_unusual_text() -> None:
    assert len(data.parse_brackets("")) == 0
    assert len(data.parse_brackets("\n \n")) == 0
    forest = data.parse_brackets("(1 (2 na\u00efve) (3 a\u00a0b))\r\n(1 \U0001f600)\r\n")
    assert words(forest) == ["", "na\u00efve", "a\u00a0b", "\U0001f600"]
    assert data.parse_brackets("(1 (2 -1) (2 _))").word.tolist() == [-1, 1, 2]  # words, in brackets


# -- S-expressions ---------------------------------------------------------------------------------------------------


def test_sexpressions() -> None:
    forest = data.parse_sexpressions("(+ 1 (* 2 -1))\n7\n")
    assert words(forest) == ["+", "1", "*", "2", "-1", "7"]
    assert forest.is_binary and forest.depths.tolist() == [0, 1, 1, 2, 2, 0]
    assert data.to_sexpressions(forest) == "(+ 1 (* 2 -1))\n7\n"


def test_sexpressions_without_heads() -> None:
    forest = data.parse_sexpressions("( ( a b ) c )", head=False)
    assert words(forest) == ["", "", "a", "b", "c"]
    assert data.to_sexpressions(forest) == "(_ (_ a b) c)\n"
    assert data.parse_sexpressions("(_ (_ a b) c)") == forest


def test_bad_sexpressions() -> None:
    with pytest.raises(ut.DataError) as caught:
        data.parse_sexpressions("(f x)\n(f (g x)\n()\nf x")
    assert [number for number, _ in caught.value.lines] == [2, 3, 4]


# -- ListOps ---------------------------------------------------------------------------------------------------------

LINES = "9\t( ( ( [MAX 2 ) ( ( ( [MIN 9 ) 9 ) ] ) ) ] )\n4\t( ( ( ( ( [MED 1 ) 7 ) 3 ) 6 ) ] )\n"


def test_listops() -> None:
    forest = data.parse_listops(LINES)
    assert words(forest) == ["MAX", "2", "MIN", "9", "9", "MED", "1", "7", "3", "6"]
    assert forest.label.tolist() == [9, 2, 9, 9, 9, 4, 1, 7, 3, 6]
    assert forest.vocabulary is LISTOPS and not forest.is_binary
    assert data.parse_listops("9\t[MAX 2 [MIN 9 9 ] ]") == forest[0]
    assert data.parse_listops("5\t5").label.tolist() == [5]


def test_listops_as_binary_trees() -> None:
    forest = data.parse_listops(LINES, binary=True)
    assert forest.is_binary and len(forest) == 2
    assert [LISTOPS.word(n) for n in forest.word if n >= 0] == (
        ["MAX", "2", "MIN", "9", "9", "]", "]", "MED", "1", "7", "3", "6", "]"]
    )
    assert forest.label[forest.roots].tolist() == [9, 4]
    assert forest.label.tolist().count(-1) == forest.size - 3 - 7  # three expressions and seven digits have values


def test_listops_without_values_or_pairs() -> None:
    """Values are computed anyway, and pairs follow from the expression."""
    bare = "[MAX 2 [MIN 9 9 ] ]\n( ( ( ( ( [MED 1 ) 7 ) 3 ) 6 ) ] )\n7\n"
    assert data.parse_listops(bare)[:2] == data.parse_listops(LINES)
    assert data.parse_listops(bare).label[-1] == 7
    for text in (bare, "9\t[MAX 2 [MIN 9 9 ] ]\n4\t[MED 1 7 3 6]\n7\t7", "[MAX 2 [MIN 9 9]]\n4\t[MED 1 7 3 6]\n7"):
        assert data.parse_listops(text, binary=True)[:2] == data.parse_listops(LINES, binary=True)
        assert data.parse_listops(text, binary=True).label[-1] == 7
    with pytest.raises(ut.DataError, match="line 2: FOO is not a digit or one of"):
        data.parse_listops("[MAX 2 3 ]\n[FOO 2 ]")
    with pytest.raises(ut.DataError, match="12 is not a digit or one of"):
        data.parse_listops("[MAX 2 12 ]", binary=True)
    assert data.parse_listops("\x1c3\t[MAX 2 3 ]").label[0] == 3
    assert len(data.parse_listops("\n\n")) == 0 and data.to_listops(data.parse_listops("\n")[:0]) == ""


def test_bad_listops() -> None:
    lines = [
        "3\t[MAX 2 3 ]",
        "x\t[MAX 2 3 ]",
        "3 [MAX 2 3 ]",
        "3\t[MAX 2 3",
        "3\t[FOO 2 3 ]",
        "3\t[3 MAX 2 ]",
        "0\t[SM ]",
        "2\t[MAX 2 3 ]",
        "3\t",
        f"{10**30}\t[MAX 2 3 ]",
        "3\t[MAX 2 3 ] 4",
        "",
        "3\t[MAX 2 3 ]",
        "3\t[MAX 2 3 ] ]",
    ]
    with pytest.raises(ut.DataError) as caught:
        data.parse_listops("\n".join(lines))
    found = dict(caught.value.lines)
    assert list(found) == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14]
    assert found[4] == "1 `]` is missing"
    assert found[8] == "the value is 3, not 2"
    assert found[9] == "there is no expression"
    assert found[10] == f"the value is 3, not {10**30}"
    assert found[11] == "text outside the brackets"
    assert found[14] == "unmatched `]`"
    with pytest.raises(ut.DataError, match="line 2: the value is 3, not 2"):
        data.parse_listops("3\t[MAX 2 3 ]\n2\t[MAX 2 3 ]")


def test_bad_listops_in_pairs() -> None:
    lines = [
        "3\t( ( ( [MAX 2 ) 3 ) ] )",
        "3\t( ( ( [MAX 2 ) 3 ) ]",
        "2\t( ( ( [MAX 2 ) 3 ) ] )",
        "3\t[MAX 2 3 ]",
        "3\t( ( ( [FOO 2 ) 3 ) ] )",
        "3\t( [MAX 2 ) 3 ]",
    ]
    with pytest.raises(ut.DataError) as caught:
        data.parse_listops("\n".join(lines), binary=True)
    found = dict(caught.value.lines)
    assert list(found) == [2, 3, 5, 6]
    assert found[2] == "1 `)` is missing" and found[3] == "the value is 3, not 2"
    assert found[6] == "expected pairs in parentheses"
    assert "5: FOO is not a digit" in str(caught.value)
    assert "3\t( ( ( [MAX 2 ) 3 ) ]" in str(caught.value)  # lines are shown as they were given


# -- JSON and files --------------------------------------------------------------------------------------------------


def test_jsonl() -> None:
    forest = data.parse_jsonl('["a", ["b", "c"]]\n{"word": "a", "label": 1}\n')
    assert words(forest) == ["", "a", "", "b", "c", "a"]
    with pytest.raises(ut.DataError) as caught:
        data.parse_jsonl('"a"\n[\n[]\n' + "[" * 100_000 + "]" * 100_000)
    assert [number for number, _ in caught.value.lines] == [2, 3, 4]
    with pytest.raises(ut.DataError, match=r"line 1: the field 'wrd' .* \(did you mean `word`\?\)"):
        data.parse_jsonl('{"wrd": "a"}')


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("trees.txt", SST, {}),
        ("trees.mrg", SST, {"labels": int}),
        ("trees.sexp", "(f x)", {}),
        ("trees.tsv", LINES, {}),
        ("trees.jsonl", '["a", "b"]', {}),
    ],
)
def test_read(tmp_path: Path, name: str, text: str, options: dict[str, Any]) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    forest = data.read(tmp_path / name, **options)
    assert len(forest) >= 1
    data.save(forest, tmp_path / "packed.npz")
    again = data.read(tmp_path / "packed.npz")
    assert again == forest and again.is_binary == forest.is_binary
    assert again.vocabulary == forest.vocabulary and again.labels == forest.labels


def test_read_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_text("(1 a", encoding="utf-8")
    with pytest.raises(ut.DataError, match=r"bad.txt: 1 bad line among 1; each should be a tree"):
        data.read(path, per_line=True)
    path.write_bytes(b"\xff\xfe(")
    with pytest.raises(ut.DataError, match="not UTF-8 text"):
        data.read(path)
    (tmp_path / "x.pdf").touch()
    with pytest.raises(ut.DataError, match="cannot tell the format"):
        data.read(tmp_path / "x.pdf")
    with pytest.raises(FileNotFoundError):
        data.read(tmp_path / "none.txt")
    (tmp_path / "bad.npz").write_bytes(b"PK")
    with pytest.raises(ut.DataError, match="does not hold a forest"):
        data.load(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", x=np.ones(3))
    with pytest.raises(ut.DataError, match="does not hold a forest"):
        data.load(tmp_path / "other.npz")


def test_what_cannot_be_written() -> None:
    with pytest.raises(ut.DataError, match="words only at leaves"):
        data.to_brackets(data.parse_sexpressions("(f x)"))
    with pytest.raises(ut.DataError, match="cannot be written in brackets"):
        data.to_sexpressions(data.from_nested([("a b", "c")]))


# -- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hundred_thousand_brackets_deep() -> None:
    depth = 100_000
    text = "(1 (1 x) " * depth + "(1 x)" + ")" * depth
    forest = data.parse_brackets(text)
    assert forest.size == 2 * depth + 1 and forest.is_binary
    assert forest.depths.max() == depth
    assert data.parse_brackets(data.to_brackets(forest)) == forest
    (tree,) = data.to_nested(forest)
    assert data.from_nested([tree]).size == forest.size
    assert forest.batch([0, 0]).size == 2 * forest.size


@pytest.mark.slow
def test_a_treebank_is_read_and_packed_in_time() -> None:
    """8,544 trees of the size of those in the Stanford Sentiment Treebank, 37 nodes on average: under two seconds."""
    random = np.random.default_rng(0)
    names = [f"word{k}" for k in range(18_000)]
    lines = []
    for _ in range(8_544):
        parts = [f"({random.integers(5)} {names[k]})" for k in random.integers(len(names), size=19)]
        while len(parts) > 1:
            at = int(random.integers(len(parts) - 1))
            parts[at : at + 2] = [f"(2 {parts[at]} {parts[at + 1]})"]
        lines.append(parts[0])
    text = "\n".join(lines)
    started = time.process_time()
    forest = data.parse_brackets(text)
    assert time.process_time() - started < 2
    assert len(forest) == 8_544 and forest.size == 8_544 * 37


def test_labels_below_0() -> None:
    """-1 is no label; any other number below 0 is refused, since nothing would ever be learnt of it."""
    assert data.parse_brackets("(-1 (-1 a) (1 b))").label.tolist() == [-1, -1, 1]
    with pytest.raises(ut.DataError, match=r"(?s)line 2: negative label.*\(-2 \(0 a"):
        data.parse_brackets("(1 (0 a) (1 b))\n(-2 (0 a) (1 b))\n")
    with pytest.raises(ut.DataError, match=r"-3 is not a valid label(?s:.*)-1 means no label"):
        data.from_nested([{"word": "a", "label": -3}])
    with pytest.raises(ut.DataError, match=r"the `label` of a forest cannot contain -2(?s:.*)from 0"):
        Forest.from_depths([0], [0], [-2])


def test_words_may_be_a_list() -> None:
    for forest in (
        data.parse_brackets("(1 (0 x) (1 y))", vocabulary=["x"]),
        data.parse_sexpressions("(_ x y)", vocabulary=("x",)),
        data.from_nested([("x", "y")], vocabulary=["x"]),
    ):
        assert forest.vocabulary.words == ("<unk>", "x") and forest.word.tolist() == [-1, 1, 0]
    for wrong in ("x", [1], 3):
        for read in (data.parse_brackets, data.parse_sexpressions):
            with pytest.raises(ut.DataError, match="a Vocabulary, or a list of strings"):
                read("(1 x)", vocabulary=wrong)
        with pytest.raises(ut.DataError, match="a Vocabulary, or a list of strings"):
            data.from_nested(["x"], labels=wrong)
    for wrong in ("2", 1.5, 0):
        with pytest.raises(ut.DataError, match=f"min_count is {wrong!r}"):
            data.parse_brackets("(1 x)", min_count=wrong)


@pytest.mark.parametrize("name", ["x.txt", "x.npz"])
def test_folders_are_made(name: str, tmp_path: Path) -> None:
    forest = data.parse_brackets("(1 (0 x) (1 y))")
    data.write(forest, tmp_path / "no" / "folder" / name)
    assert data.read(tmp_path / "no" / "folder" / name) == forest


def test_what_is_said_of_files_that_are_no_forests(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    data.write(data.sentiment(20), path)
    whole = path.read_bytes()
    spoiled = whole[:200] + bytes(100) + whole[300:]
    for broken in (b"", b"(1 a)", whole[:50], whole[: len(whole) // 2], spoiled):
        path.write_bytes(broken)
        with pytest.raises(ut.DataError, match="does not hold a forest: it is damaged, or not an"):
            data.read(path)
    np.save(tmp_path / "one.npy", np.arange(3))
    (tmp_path / "one.npy").rename(path)
    with pytest.raises(ut.DataError, match="does not hold a forest: it is damaged"):
        data.read(path)
    np.savez(path, x=np.arange(3), word=np.arange(3))
    with pytest.raises(ut.DataError, match="it has no 'depths' and no 'label' and no 'binary'"):
        data.read(path)
    (tmp_path / "x.foo").write_text("(1 a)")
    with pytest.raises(ut.DataError, match=r"name 'x\.foo'(?s:.*)format=, or --from"):
        data.read(tmp_path / "x.foo")
