"""Finds the definition of a function, wherever it was typed: in a file, a notebook, a string, at the prompt.

Wherever a text comes from, only what compiles to the function's own code is taken for its definition. Texts that
`linecache` does not know become known to it, so that errors and tracebacks show their lines.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import linecache
import os
import stat
import sys
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType

from undertow.errors import CaptureError, Span
from undertow.frontend.syntax import prompt
from undertow.frontend.syntax.bytecode import cached_code
from undertow.frontend.syntax.match import FunctionNode, find_cached, find_definition
from undertow.frontend.syntax.strings import COMPILED, IS_HEARD

_PROMPT = "<stdin>"
_MOST_NAMED = 1024  # texts that get a name of their own


@dataclass(frozen=True, slots=True, eq=False)
class Located:
    """The definition of a function, and the file name under which `linecache` has its text."""

    node: FunctionNode
    file: str


def locate(function: FunctionType) -> Located:
    """The definition of a Python function."""
    code = function.__code__
    for source in _in_files(function):
        node = find_definition(source, code.co_filename, code)
        if node is not None:
            return Located(node, code.co_filename)
    cached = cached_code(code.co_filename)
    if cached is not None:
        source = "".join(linecache.getlines(code.co_filename, function.__globals__))
        node = find_cached(source, code.co_filename, code, cached)
        if node is not None:
            return Located(node, code.co_filename)
    for source in _elsewhere(code):
        node = find_definition(source, code.co_filename, code)
        if node is not None:
            return Located(node, _named(source, code.co_filename))
    raise _not_located(function)


def is_in_memory(function: FunctionType) -> bool:
    """Does its text live in memory alone? Then it may be forgotten."""
    return function.__code__.co_filename.startswith("<")


# -- texts -------------------------------------------------------------------------------------------------


def _in_files(function: FunctionType) -> Iterator[str]:
    """Texts that `linecache` knows: files, cells of notebooks, archives."""
    file = function.__code__.co_filename
    lines = linecache.getlines(file, function.__globals__)
    yield "".join(lines)
    yield from _block(lines, function.__code__.co_firstlineno)
    linecache.checkcache(file)  # the file may have changed, and the module been imported again
    again = linecache.getlines(file, function.__globals__)
    if again != lines:
        yield "".join(again)


def _block(lines: list[str], first: int) -> Iterator[str]:
    """The function's own lines alone, if the whole does not parse (a cell with magics); they keep their numbers."""
    try:
        block = "".join(inspect.getblock(lines[first - 1 :]))
    except (SyntaxError, IndentationError, tokenize.TokenError):
        return
    yield "\n" * (first - 1) + textwrap.dedent(block)


def _elsewhere(code: CodeType) -> Iterator[str]:
    """Texts that are in memory."""
    if code.co_filename == _PROMPT:
        yield from _redirected()
        yield from prompt.typed_blocks(code)
    if code.co_filename == "<string>":
        yield from _command_line()
    for text in COMPILED.of(code):
        yield text
        if code.co_filename == "<magic-timeit>":  # IPython compiles it as the body of a function
            yield "def inner():\n" + textwrap.indent(text, "    ")


def _redirected() -> Iterator[str]:
    """The program of `python < file`; a pipe cannot be read again."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        status = os.fstat(0)
        if stat.S_ISREG(status.st_mode):
            yield os.pread(0, status.st_size, 0).decode()


def _command_line() -> Iterator[str]:
    """What may be the program of `python -c`; the option may be one of several in one argument."""
    for argument in sys.orig_argv[1:]:
        texts = [argument]
        if argument.startswith("-") and "c" in argument:
            texts.append(argument.split("c", 1)[1])
        for text in texts:
            yield text
            yield textwrap.dedent(text)  # as newer Pythons do


_names: dict[str, str] = {}
_numbers = itertools.count(1)


def _named(source: str, file: str) -> str:
    """A name for a text: that of its code, with a number."""
    if source not in _names:
        name = f"<{file.strip('<>')}-{next(_numbers)}>"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        _names[source] = name
        if len(_names) > _MOST_NAMED:
            oldest = next(iter(list(_names)))
            linecache.cache.pop(_names.pop(oldest, ""), None)
    return _names[source]


# -- errors ------------------------------------------------------------------------------------------------


def _not_located(function: FunctionType) -> CaptureError:
    """Why there is no definition of this code, and what to do."""
    code = function.__code__
    file, name = code.co_filename, f"`{function.__name__}`"
    if file != "<string>" and linecache.getlines(file, function.__globals__):  # Python 3.13 keeps that of `-c` there
        return CaptureError(
            f"the source of {name} is not what Python runs: it was edited after its import, or its code is rewritten",
            Span(file, code.co_firstlineno),
            hint="import the module again, or start Python again",
        )
    hint = "put the function into a file, and import that"
    if file == _PROMPT and prompt.has_history():
        why = "it is not in the history of the prompt"
        hint = f"type it again, or {hint}"
    elif file == _PROMPT and hasattr(sys, "ps1"):
        why = "this prompt keeps no history"
    elif file == _PROMPT or file.startswith("/dev/"):
        why = "Python does not keep what it reads from a pipe"
        hint = "run the program from its file: python program.py"
    elif not file.startswith("<"):
        why = f"there is no file {file}"
        hint = "keep the source next to the compiled module"
    elif not IS_HEARD:
        why = "an audit hook of this process hides which strings are compiled"
    else:
        why = "it was compiled before undertow was imported, from a syntax tree, or too many strings ago"
        hint = f"import undertow first, or {hint}"
    return CaptureError(f"cannot find the source of {name}: {why}", hint=hint)
