"""Intensional programs: their text, and that docs/intensional.py gets from them what the reference engine gets."""

from __future__ import annotations

import numpy as np
import pytest
from docs import intensional as evaluator
from tests.programs import PROGRAMS, Program
from tests.support.written import function_of

import undertow as ut
from undertow.frontend.values import tree
from undertow.viz.intensional import intensional


def program(source: str, name: str, *args) -> str:
    return function_of(source, name).graph(*args).intensional()


def evaluated(text: str, **inputs) -> list:
    """The result, or all of them, as numbers of Python."""
    machine = evaluator.Evaluator(evaluator.parse(text), {f"input_{name}": value for name, value in inputs.items()})
    return [machine.run(name) for name in machine.program if name == "result" or name in ENUMERATED]


ENUMERATED = {f"result_{k}" for k in range(20)}


def test_the_example_of_the_thesis():
    source = """
@ut.function
def g(y):
    return y

@ut.function
def f(x):
    return g(x + 1)

@ut.function
def result():
    return f(4) + f(5)
"""
    assert program(source, "result") == evaluator.THESIS.lstrip()


RECURSIVE = """
@ut.function
def factorial(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else n * factorial(n - 1)

@ut.function
def fibonacci(n: ut.i64) -> ut.i64:
    return n if n <= 1 else fibonacci(n - 1) + fibonacci(n - 2)

@ut.function
def ackermann(m: ut.i64, n: ut.i64) -> ut.i64:
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))

@ut.function
def takeuchi(x: ut.i64, y: ut.i64, z: ut.i64) -> ut.i64:
    return z if x <= y else takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y))

@ut.function
def even(n: ut.i64) -> ut.bool:
    return True if n == 0 else odd(n - 1)

@ut.function
def odd(n: ut.i64) -> ut.bool:
    return False if n == 0 else even(n - 1)
"""


@pytest.mark.parametrize("name", ["factorial", "fibonacci", "ackermann", "takeuchi", "even"])
def test_the_texts_of_the_docs_are_what_is_printed(name: str):
    function = function_of(RECURSIVE, name)
    arguments = [1] * {"ackermann": 2, "takeuchi": 3}.get(name, 1)
    assert function.graph(*arguments).intensional() == getattr(evaluator, name.upper()).lstrip()


def test_operators_bind_as_in_python():
    source = """
@ut.function
def f(a: ut.i64, b: ut.i64, c: ut.i64):
    p = a < b and b < c or not a == c
    x = (a + b) * c - (a - (b - c)) - -a * (b * c) ** 2 + (-a) ** 2
    y = a // (b * c) % 7 - (a if b > c else c) * 2
    return p, x, y, (a ** 2) ** 2, a ** (2 ** c)
"""
    function = function_of(source, "f")
    for arguments in ((1, 2, 3), (5, -4, 2), (-7, 3, 1)):
        found = evaluated(function.graph(*arguments).intensional(), **dict(zip("abc", arguments, strict=True)))
        assert found == [value.item() for value in function.run(*arguments, engine="reference")]


def test_what_is_used_twice_is_defined_once():
    source = """
@ut.function
def f(x: ut.i64) -> ut.i64:
    y = x * x
    for _ in range(40):
        y = y + y
    return y
"""
    text = program(source, "f", 3)
    assert len(text) < 3000 and evaluated(text, x=3) == [9 * 2**40]


def test_long_expressions_are_cut():
    body = "".join(f"    x = x * 3 + {k}\n" for k in range(300))
    text = program(f"@ut.function\ndef f(x: ut.i64) -> ut.i64:\n{body}    return x\n", "f", 3)
    assert max(map(len, text.splitlines())) < 150
    expected = 3
    for k in range(300):
        expected = expected * 3 + k
    assert evaluated(text, x=3) == [expected]


OTHERS = {"arrays", "random", "effects", "map", "loop", "fault", "deep", "containers"}
SCALAR = [row for row in PROGRAMS if row.by == "call" and not row.tags & OTHERS]


@pytest.mark.slow
def test_programs_agree_with_the_reference_engine():
    """Those whose values are numbers. The others are refused."""
    agreeing = {row.name for row in SCALAR if agrees(row)}
    assert len(agreeing) > 80
    assert agreeing >= {"factorial", "fibonacci", "ackermann", "takeuchi", "mccarthy", "gcd", "is_even", "male"}


def agrees(row: Program) -> bool:
    """Does it have an intensional program, whose inputs are its arguments? Then that gives the same."""
    library, _ = row.capture(0)
    try:
        text = intensional(library)
    except ut.GraphError:
        return False
    main = library.functions[library.main]
    leaves = row.function.__undertow_arguments__(row.cases[0], {}).leaves
    names = [main.nodes[number].name.rsplit(".", 1)[-1] for number in main.params]
    if len(leaves) != len(names) or len({*names}) < len(names):  # values from outside are arguments, too
        return False
    inputs = {name: np.asarray(leaf).item() for name, leaf in zip(names, leaves, strict=True)}
    expected, _ = row.run(0, engine="demand" if "lazy" in row.tags else "reference")
    wanted = [np.asarray(leaf).item() for leaf in tree.flatten(expected)[0]]
    if len(wanted) != len(main.results):  # a result may be None
        return False
    assert evaluated(text, **inputs) == pytest.approx(wanted, rel=1e-5), row.name
    return True


REFUSED = [
    ("a loop", "total = 0\n    for i in range(n):\n        total += i\n    return total"),
    ("a map", "return ut.sum(ut.map(lambda i: i, ut.arange(n)))"),
    ("an array", "return ut.asarray([1, 2, 3])[n]"),
    ("an effect, `print`", "print(n)\n    return n"),
    ("a complex number", "return ut.abs(n * 1j)"),
]


@pytest.mark.parametrize(("says", "body"), REFUSED, ids=[says for says, _ in REFUSED])
def test_what_the_notation_cannot_say(says: str, body: str):
    function = function_of(f"@ut.function\ndef f(n: ut.i64):\n    {body}\n", "f")
    with pytest.raises(ut.GraphError, match=f"has .*{says}.*which an intensional program cannot say") as caught:
        function.graph(3).intensional()
    assert caught.value.hint and caught.value.span.line >= 3


def test_a_gradient_cannot_be_said():
    function = function_of("@ut.function\ndef f(x: ut.f64) -> ut.f64:\n    return x * x\n", "f")
    with pytest.raises(ut.GraphError, match="a gradient"):
        ut.grad(function).graph(1.0).intensional()


def test_depth_is_data():
    text = function_of(RECURSIVE, "even").graph(1).intensional()
    assert evaluated(text, n=2_001) == [False]
