"""Broken programs end in a value or in one of our errors, never in anything else, however they are broken.

Valid programs are changed token by token. Errors that Python itself raises while the module runs, outside
Undertow, are Python's; what comes out of Undertow must be an `UndertowError`, and not an `InternalError`.

`UNDERTOW_FUZZ=10000 pytest tests/errors/test_fuzz.py` looks longer.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import keyword
import linecache
import math
import os
import signal
import tokenize
import traceback
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import undertow as ut

SOURCES = (Path(__file__).parent / "valid_programs.txt").read_text()
PROGRAMS = [source.strip() + "\n" for source in SOURCES.split("# ---\n")]
LONGEST = 30  # seconds of one program, capture and run
LIMITS = {"timeout": 2.0, "max_depth": 200, "frames": 20_000, "memory": 50_000_000}
UNDERTOW = os.path.dirname(os.path.abspath(ut.__file__)) + os.sep

# What a token may become: any of the words in the last part, or one of its own kind, or a name of the program.
POOLS = """
    n x y i k f g self len range int float str sum max min abs print sorted zip enumerate list tuple dict set isinstance
    type getattr ut np math fib map reversed any all round pow divmod hash id repr object bool super iter next open eval
    None True False and or not in is if else elif while for return break continue pass def lambda yield await assert
    raise try except finally with as del global nonlocal class import from async match case
    ;;
    0 1 2 3 5 10 -1 0.5 1.5 2.0 1e308 1e400 2147483648 9223372036854775808 1000000 1j 0x10 1_000
    ;;
    '' 'a' f'{n}' f'{x:.2f}' b'a' '{}'
    ;;
    + - * / // % ** @ << >> & | ^ ~ < > <= >= == != = += -= *= ( ) [ ] { } , : . ; -> := ... += @=
    ;;
    ut.i32 ut.i64 ut.f32 ut.f64 ut.bool ut.f64[3] ut.f32[2,2] ut.i64[None] ut.f64["n"] ut.zeros(3) ut.ones((2,2))
    ut.sqrt ut.sum ut.where ut.concat ut.stack ut.matmul ut.take ut.map ut.cond ut.while_loop ut.shared ut.arange(3)
    ut.astype ut.reshape ut.einsum ut.assert_ ut.print ut.random.uniform() ut.asarray ut.function np.zeros(3) np.array
    np.sqrt np.sum np.median math.sqrt math.gamma [] () {} [1,2] (1,2) {'a':1} x[0] x[n] x[1:] x[::2] x.T x.shape
    ut.split ut.argsort ut.one_hot ut.scatter_add ut.clip lambda:0 lambda*a:a print(n) print(x,n) n.real x.dtype
    *x **x [*x] [v*2for(v)in(x)] {i:i*i} n<0<n not(n) x.sum() n:=1
"""
NAMES, NUMBERS, STRINGS, OPERATORS, WORDS = (pool.split() for pool in POOLS.split(";;"))


class TooLong(BaseException):
    """The program did not end; it is no `Exception`, so that nobody takes it for an error of the program."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def mutate(source: str, changes: list[tuple[str, int, int]]) -> str:
    """The program with some tokens changed, those changes left out that would make it no Python at all."""
    for change in changes:
        changed = change_token(source, *change)
        with contextlib.suppress(SyntaxError, ValueError, MemoryError, tokenize.TokenError), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(changed, "<fuzz>", "exec", dont_inherit=True)
            source = changed
    return source


def change_token(source: str, kind: str, where: int, which: int) -> str:
    """The text with one token changed; spaces and lines stay where they are."""
    found = [t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.string.strip()]
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    pieces = [(starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1]) for t in found]
    texts = [t.string for t in found]
    at = where % len(found)
    if kind == "delete":
        texts[at] = ""
    elif kind == "duplicate":
        texts[at] = f"{texts[at]} {texts[at]}"
    elif kind == "swap":
        other = which % len(found)
        texts[at], texts[other] = texts[other], texts[at]
    else:
        names = sorted({t.string for t in found if t.type == tokenize.NAME and not keyword.iskeyword(t.string)})
        pools = {tokenize.NAME: names * 3 + NAMES, tokenize.NUMBER: NUMBERS, tokenize.STRING: STRINGS}
        pool = WORDS if kind == "word" else pools.get(found[at].type, OPERATORS)
        texts[at] = pool[which % len(pool)]
    out, last = "", 0
    for (begin, end), text in zip(pieces, texts, strict=True):
        out += source[last:begin] + text
        last = end
    return out + source[last:]


def is_pythons(error: BaseException) -> bool:
    """Did Python raise it in the program's own code, or at least not in Undertow's?"""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    return files[-1].startswith("<fuzz") or not any(file.startswith(UNDERTOW) for file in files)


def check_message(error: ut.UndertowError) -> None:
    """One line, in the user's words: no classes of ours, no addresses."""
    for word in ("\n", "Traced", "Closure", "object at 0x"):
        assert word not in error.what
    assert error.what and str(error)


def outcome(source: str, name: str = "<fuzz>") -> str:
    """Run a program; how it ended: value, ours, python. What must not happen raises."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType("fuzz")
    for library, known_as in ((ut, "ut"), (np, "np"), (math, "math"), (dataclasses, "dataclasses")):
        # A copy, as programs may assign to it.
        vars(module)[known_as] = copied = types.ModuleType(library.__name__)
        vars(copied).update(vars(library))
        vars(copied).pop("__getattr__", None)  # a name that is not there is the program's own mistake
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), time_limit(LONGEST):
            warnings.simplefilter("ignore")
            try:
                code = compile(source, name, "exec", dont_inherit=True)
            except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError):
                return "syntax"
            with ut.options(**LIMITS):
                exec(code, vars(module))
        return "value"
    except ut.InternalError:
        raise
    except ut.UndertowError as error:
        check_message(error)
        return "ours"
    except TooLong as error:
        if is_pythons(error):
            return "python"
        raise AssertionError("it does not end") from error
    except (Exception, SystemExit) as error:
        if is_pythons(error):
            return "python"
        raise
    finally:
        linecache.cache.pop(name, None)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["delete", "duplicate", "swap", "replace", "replace", "replace", "word", "word"]),
        st.integers(0, 10**6),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=8,
)


def test_the_programs_are_valid() -> None:
    assert {outcome(source) for source in PROGRAMS} == {"value"}


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("UNDERTOW_FUZZ", "200")),
    derandomize="UNDERTOW_FUZZ" not in os.environ,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    database=None,
)
@given(source=st.sampled_from(PROGRAMS), changes=CHANGES)
def test_every_end_is_a_value_or_an_error_of_ours(source: str, changes: list[tuple[str, int, int]]) -> None:
    text = mutate(source, changes)
    try:
        outcome(text)
    except BaseException:
        print(text)
        raise
