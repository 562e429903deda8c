"""Functions are captured wherever they were typed, and only by the text that Python compiled."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib
import importlib.util
import linecache
import marshal
import os
import runpy
import shlex
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.support.scripts import run_python, typed_at_prompt

import undertow as ut
from undertow.frontend.syntax import strings
from undertow.frontend.syntax.locate import locate
from undertow.frontend.syntax.match import find_definition

# fmt: off
PAIR = (lambda x: x + 1), (lambda x: x * 2)
SAME = (lambda x: x - 1), (lambda x: x - 1)
NAMED = {"a": lambda x: x + 3, "b": lambda y: y + 4, "c": lambda x, k=lambda x: x * 5: k(x)}
OTHERS = [lambda x: (lambda y: (lambda x: x + y)(x))(2), lambda x:
          x +
          10]
MADE = [lambda x, k=k: x + k for k in (20, 30)]


def defaults(f: Any = lambda x: x - 7, g: Any = lambda x: x - 8) -> tuple[Any, Any]:
    return f, g
# fmt: on


def adder(k: int) -> Callable[[Any], Any]:
    def add(x: Any) -> Any:
        return x + k

    return add


LAMBDAS = [*PAIR, *SAME, *NAMED.values(), *OTHERS, *MADE, *defaults(), adder(3), adder(4)]


@pytest.mark.parametrize("number", range(len(LAMBDAS)))
def test_each_lambda_is_itself(number: int) -> None:
    for x in (0, 11):
        assert ut.function(LAMBDAS[number])(x) == LAMBDAS[number](x)


def test_a_renamed_function() -> None:
    def before(x: Any) -> Any:
        return x + 40

    before.__name__ = before.__qualname__ = "after"
    assert ut.function(before)(1) == 41


def test_functions_of_one_loop() -> None:
    functions = []
    for k in range(3):

        @ut.function
        def times(x: Any, k: int = k) -> Any:
            return x * k

        functions.append(times)
    assert [f(5) for f in functions] == [0, 5, 10]


def test_an_assertion_that_pytest_rewrites() -> None:
    @ut.function
    def checked(x: Any) -> Any:
        assert x > 0, "x must be positive"
        return x + 50

    assert checked(1) == 51
    with pytest.raises(ut.Fault, match="x must be positive"):
        checked(-1)


# -- decorators --------------------------------------------------------------------------------------------


def plus_hundred(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) + 100

    return wrapper


@plus_hundred
@ut.function
def above(x: ut.i64) -> ut.i64:
    return x + 1


@ut.function
@plus_hundred
def below(x: ut.i64) -> ut.i64:
    return x + 1


@functools.wraps(ut.exp)
def not_exp(x: Any) -> Any:
    return x + 2.0


@functools.wraps(np.sqrt)
def not_sqrt(x: Any) -> Any:
    return x + 3.0


def test_a_wrapper_is_not_what_it_wraps() -> None:
    assert above(1) == below(1) == below(x=1) == 102
    assert ut.function(lambda x: above(x) + below(x))(1) == 204
    assert ut.function(lambda x: not_exp(x) + not_sqrt(x))(1.0) == 7.0
    assert ut.grad(lambda x: not_exp(x) * not_sqrt(x))(1.0) == 7.0


@functools.cache
@ut.function
def cached(n: ut.i64) -> ut.i64:
    return n if n < 2 else cached(n - 1) + cached(n - 2)


def test_a_cache_above_a_recursive_function() -> None:
    assert cached(20) == 6765 and cached.cache_info().misses == 1
    assert ut.function(lambda n: cached(n) + 1)(10) == 56


class Both:
    """Decorators of methods, in both orders."""

    @ut.function
    @staticmethod
    def a(x: Any) -> Any:
        return x + 1

    @staticmethod
    @ut.function
    def b(x: Any) -> Any:
        return x + 2

    @ut.function
    @classmethod
    def c(cls, x: Any) -> Any:
        return x + 3

    @classmethod
    @ut.function
    def d(cls, x: Any) -> Any:
        return x + 4

    @ut.function
    @property
    def e(self) -> Any:
        """Five."""
        return 5

    @property
    @ut.function
    def f(self) -> Any:
        return 6

    def __g(self, x: Any) -> Any:  # the name is mangled
        return x + 7

    g = ut.function(__g)


def test_methods_of_all_kinds() -> None:
    both = Both()
    assert [Both.a(0), both.a(0), Both.b(0), both.b(0), Both.c(0), both.c(0)] == [1, 1, 2, 2, 3, 3]
    assert [Both.d(0), both.d(0), both.e, both.f, both.g(0)] == [4, 4, 5, 6, 7]
    assert Both.e.__doc__ == "Five."
    assert ut.function(lambda x: Both.a(x) + Both.b(x) + Both.c(x) + Both.d(x))(0) == 10
    assert ut.grad(Both.d)(1.0) == 1.0


def test_methods_that_are_values_read_their_object() -> None:
    class Scale:
        def __init__(self) -> None:
            self.by = 2.0

        @ut.function
        def times(self, x: Any) -> Any:
            return self.by * x

    scale = Scale()
    method = scale.times
    partial, slope = functools.partial(method), ut.grad(method)
    functions = [ut.function(lambda x: method(x)), ut.function(lambda x: partial(x)), ut.function(lambda x: slope(x))]
    assert [f(1.0) for f in functions] == [2.0, 2.0, 2.0]
    scale.by = 5.0
    assert [f(1.0) for f in functions] == [5.0, 5.0, 5.0]


# -- strings -----------------------------------------------------------------------------------------------


def test_exec_eval_and_compile() -> None:
    space: dict[str, Any] = {"ut": ut}
    exec("@ut.function\ndef f(n: ut.i64) -> ut.i64:\n    return 1 if n < 1 else n * f(n - 1)", space)
    assert space["f"](5) == 120
    assert ut.function(eval("  lambda x: x + 60"))(1) == 61
    exec(compile(ast.parse("def g(x):\n    return h(x) + 61\ndef h(x): return x"), "<made up>", "exec"), space)
    assert ut.function(space["g"])(1) == 62
    exec(compile("# coding: latin-1\ndef e(x):\n    return x + len('é')\n".encode("latin-1"), "<old>", "exec"), space)
    assert ut.function(space["e"])(1) == 2


def test_errors_show_lines_of_strings() -> None:
    space: dict[str, Any] = {"ut": ut}
    exec("@ut.function\ndef f(x):\n    return x.nothing", space)
    with pytest.raises(ut.CaptureError, match=r"<string-\d+>:3, in f\n +return x.nothing"):
        space["f"](1)


def test_few_texts_are_kept() -> None:
    texts = strings.CompiledTexts()
    for number in range(strings.MOST_TEXTS + 10):
        texts.add(f"lambda x: x + {number}".encode(), "<string>")
    code = PAIR[0].__code__
    assert len(list(texts.of(code))) == strings.MOST_TEXTS
    assert next(texts.of(code)) == f"lambda x: x + {number}"
    texts.add(b"lambda" + b" " * strings.MOST_BYTES, "<string>")
    assert list(texts.of(code)) == []
    texts.add(b"lambda: 1", "<string>")
    assert list(texts.of(code)) == ["lambda: 1"]


# -- files -------------------------------------------------------------------------------------------------


def load(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_a_file_that_was_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(x):\n    return x + 70\n\n\ndef g(x):\n    return x + 71\n"
    module = load(tmp_path, "was_edited", text, monkeypatch)
    (tmp_path / "was_edited.py").write_text("# a line above\n" + text.replace("71", "72"))
    assert ut.function(module.f)(1) == 71  # it has moved, and is still the same
    with pytest.raises(ut.CaptureError, match="edited after its import"):
        ut.function(module.g)(1)
    with pytest.raises(ut.CaptureError, match="`g` is not what Python runs"):
        ut.function(lambda x: module.g(x))(1)
    os.utime(tmp_path / "was_edited.py", (1, 1))
    assert ut.function(importlib.reload(module).g)(1) == 73


def test_code_of_another_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache of a module tells which text its code is from, if Python would compile it differently now."""
    text = "import math\n\n\ndef f(x):\n    return x + math.floor(2.5)\n"
    (tmp_path / "cached_elsewhere.py").write_text(text)
    file = str(tmp_path / "cached_elsewhere.py")
    code = compile(text.replace("x + math.floor(2.5)", "math.floor(2.5) + x"), file, "exec")
    stat = os.stat(file)
    times = int(stat.st_mtime).to_bytes(4, "little") + stat.st_size.to_bytes(4, "little")
    cache = Path(importlib.util.cache_from_source(file))
    cache.parent.mkdir()
    cache.write_bytes(importlib.util.MAGIC_NUMBER + bytes(4) + times + marshal.dumps(code))
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("cached_elsewhere")
    assert find_definition(text, file, module.f.__code__) is None
    assert ut.function(module.f)(1) == 3
    with open(file, "a") as edited:
        edited.write("# another size\n")
    with pytest.raises(ut.CaptureError, match="edited after its import"):
        ut.function(module.f)(1)


def test_an_archive_and_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "import undertow as ut\n\n\n@ut.function\ndef f(x):\n    return x + 80\n"
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as archive:
        archive.writestr("in_archive.py", text)
    monkeypatch.syspath_prepend(tmp_path / "modules.zip")
    assert importlib.import_module("in_archive").f(1) == 81
    (tmp_path / "script.py").write_text(text)
    assert runpy.run_path(str(tmp_path / "script.py"))["f"](1) == 81


def test_a_cell_with_magics() -> None:
    text = "%load_ext nothing\n!ls\n\n@ut.function\ndef f(x):\n    return x + 90\n"
    linecache.cache["<cell>"] = len(text), None, text.splitlines(keepends=True), "<cell>"
    space: dict[str, Any] = {"ut": ut}
    exec(compile("\n\n\n@ut.function\ndef f(x):\n    return x + 90\n", "<cell>", "exec"), space)
    assert locate(space["f"].__wrapped__).node.lineno == 5
    assert space["f"](1) == 91


def examples() -> None:
    """Functions of doctest.

    >>> @ut.function
    ... def f(n: ut.i64) -> ut.i64:
    ...     return 1 if n < 1 else 2 * f(n - 1)
    >>> f(5), ut.function(lambda x: x + 95)(1)
    (np.int64(32), np.int64(96))
    """


def test_doctest() -> None:
    runner = doctest.DocTestRunner(verbose=False)
    for test in doctest.DocTestFinder().find(examples, globs={"ut": ut}):
        assert runner.run(test).failed == 0


# -- processes ---------------------------------------------------------------------------------------------

FIB = """
import undertow as ut

@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)

print(fib(10), ut.function(lambda x: x + 1)(1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("args", [("-c", FIB), ("-Bc", FIB), ("-O", f"-c{FIB}"), ("-m", "fib_module")])
def test_commands(args: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "fib_module.py").write_text(FIB)
    done = run_python(*args, folder=tmp_path)
    assert (done.stdout, done.stderr) == ("55 2\n", "")


@pytest.mark.slow
def test_a_redirected_file(tmp_path: Path) -> None:
    (tmp_path / "fib_module.py").write_text(FIB.replace("    if", "    assert n < 5\n    if"))
    command = f"{shlex.quote(sys.executable)} -O < fib_module.py"  # -O: assertions are not checked
    done = run_python("-c", f"import os; os.system({command!r})", folder=tmp_path)
    assert (done.stdout, done.stderr) == ("55 2\n", "")


@pytest.mark.slow
def test_what_python_does_not_keep(tmp_path: Path) -> None:
    for args in ((), ("-",), ("/dev/stdin",)):
        done = run_python(*args, folder=tmp_path, text=FIB)
        assert "cannot find the source of `fib`: Python does not keep what it reads from a pipe" in done.stderr
        assert "hint: run the program from its file: python program.py" in done.stderr
    early = "space = {}; exec('def f(x): return x + 1', space); import undertow as ut; ut.function(space['f'])(1)"
    done = run_python("-c", early, folder=tmp_path)
    assert "it was compiled before undertow was imported, from a syntax tree, or" in done.stderr


@pytest.mark.slow
def test_the_prompt(tmp_path: Path) -> None:
    lines = [
        "import undertow as ut", *FIB.split("\n\n")[1].splitlines(), "", "fib(10)",
        "a, b = ut.function(lambda x: x + 1), ut.function(lambda x: x * 2)", "a(3), b(3)",
        "def twice(x):", "    x = x + 1", "    x = x + 1", "    return x", "", "ut.function(twice)(1)",
        "def make(k):", "    def add(x):", "        return x + k", "    return add", "", "ut.function(make(3))(1)",
        "class C:", "    @ut.function", "    def m(self, x):", "        return (x +", "", "5)", "", "C().m(3)",
        "def fib(n): return n + 7", "", "ut.function(fib)(10)", "@ut.function", "def wrong(x):", "    return x.no", "",
        "wrong(1)",
    ]  # fmt: skip
    shown = typed_at_prompt(lines, tmp_path)
    results = [line for line in shown.splitlines() if line.startswith(("np.", "(np."))]
    numbers = ["55", "(4, 6)", "3", "4", "8", "17"]
    assert [result.replace("np.int64(", "").replace("))", ")").replace("),", ",") for result in results] == [
        number if number.startswith("(") else f"{number})" for number in numbers
    ]
    assert "in wrong\n      return x.no\n" in shown


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="this prompt keeps its lines elsewhere")
def test_a_prompt_without_history(tmp_path: Path) -> None:
    """The lines come through a pipe; the history that Python loads is of another day."""
    (tmp_path / ".python_history").write_text("def f(x):\n    return x\n")
    done = run_python("-i", "-q", folder=tmp_path, text="import undertow as ut\nut.function(lambda x: x)(1)\n")
    assert "cannot find the source of `<lambda>`: this prompt keeps no history" in done.stderr


@pytest.mark.slow
def test_ipython(tmp_path: Path) -> None:
    """Cells with magics and `await`, `%%time`, `%timeit`, `%run`, and `%autoreload` of what was imported by name."""
    pytest.importorskip("IPython")
    script = tmp_path / "cells.py"
    script.write_text(
        '''
import os, pathlib, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()

def run(cell):
    shell.run_cell(cell).raise_error()

def write(number):
    text = """import undertow as ut
def helper(x): return x + NUMBER
@ut.function
def f(x): return helper(x)
class K:
    @ut.function
    def m(self, x): return x + NUMBER
"""
    file = pathlib.Path("edited_module.py")
    file.write_text(text.replace("NUMBER", str(number)))
    os.utime(file, (number, number))

run("import undertow as ut, asyncio")
run("%lsmagic\\nawait asyncio.sleep(0)\\n@ut.function\\ndef fib(n: ut.i64) -> ut.i64:\\n"
    "    if n < 2: return n\\n    return fib(n - 1) + fib(n - 2)\\nassert fib(10) == 55")
run("%%time\\n@ut.function\\ndef g(x):\\n    return ut.sum(x) + 1\\nassert g([1.0, 2.0]) == 4.0")
run("%timeit -n1 -r1 ut.function(lambda x: x + 7)(1)")
sys.dont_write_bytecode = True
write(1)
run("%load_ext autoreload\\n%autoreload 2\\nfrom edited_module import f, K\\nk = K()\\ndf = ut.grad(f)")
run("h = ut.function(lambda x: f(x))")
run("assert [f(0), k.m(0), h(0)] == [1, 1, 1]")
write(20)
run("assert [f(0), k.m(0), h(0)] == [20, 20, 20]; assert df(1.0) == 1.0")
pathlib.Path("script.py").write_text("import undertow as ut\\nf = ut.function(lambda x: x + 3)\\nassert f(1) == 4")
run("%run script.py")
'''
    )
    done = run_python(str(script), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
