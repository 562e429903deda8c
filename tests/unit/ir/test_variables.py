"""`var x: f64` and `&x`: what is read, what is refused, and what is printed with attributes after all."""

from __future__ import annotations

import pytest

from undertow.errors import GraphError
from undertow.ir.graph import Library
from undertow.ir.text import dump, parse

ATTRIBUTES = """library 1 main=main

main main(v: f64[2]) -> (r#0)
  w: f64[?,2], ctl = assign v how="set" dtype="f64" shape=[null, 2] variable="my table"
  r: f64[?,2], ctl = read dtype="f64" shape=[null, 2] variable="my table" ^w#1
"""
EDGES = """library 1 main=main
var "my table": f64[?,2]

main main(v: f64[2]) -> (r#0)
  w: f64[?,2], ctl = assign &"my table", v how="set"
  r: f64[?,2], ctl = read &"my table" ^w#1
"""


def test_both_forms_are_one_graph() -> None:
    assert parse(ATTRIBUTES) == parse(EDGES)
    assert dump(parse(ATTRIBUTES)) == dump(parse(EDGES)) == EDGES


def test_several_variables() -> None:
    text = """library 1 main=main
var x: f64
var y: i64

main main(v: f64) -> (u#0)
  u: f64, i64, ctl = update &(x, y), v f="text"
  w: i64, ctl      = update &(y) f="" ^u#2
"""
    library = parse(text)
    assert isinstance(library, Library)
    targets = [node.attrs.get("targets") for node in library.functions["main"].nodes]
    assert targets == [None, None, ("x", "y"), ("y",)]
    assert dump(library) == text


def test_a_node_may_be_called_var() -> None:
    text = "library 1 main=main\n\nmain main(v: f64) -> (var)\n  var: f64 = add v, v\n"
    assert dump(parse(text)) == text


def test_what_does_not_agree_is_printed_with_attributes() -> None:
    """One variable, of two types: such a graph is wrong, and prints all the same."""
    text = ATTRIBUTES.replace('read dtype="f64" shape=[null, 2]', 'read dtype="f64" shape=[3, 2]')
    printed = dump(parse(text))
    assert 'w: f64[?,2], ctl = assign &"my table", v how="set"' in printed
    assert 'read dtype="f64" shape=[3, 2] variable="my table"' in printed
    assert parse(printed) == parse(text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (EDGES.replace('&"my table" ^', "&other ^"), "a variable that a line `var other: ...` declares"),
        (EDGES.replace("var ", 'var "my table": i64\nvar '), "is declared twice"),
        (EDGES.replace('&"my table", v', "& , v"), "a variable"),
        (EDGES.replace('&"my table", v', '&("my table", v'), "declares"),
        (EDGES.replace("f64[?,2]\n\n", "f65\n\n"), "a type such as"),
        (EDGES.replace('assign &"my table", v', 'assign v, &"my table"'), "a name or a constant"),
        (EDGES.replace('how="set"', 'how="set" dtype="f64"'), "not allowed here, or repeated"),
    ],
)
def test_what_is_refused(wrong: str, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        parse(wrong)
