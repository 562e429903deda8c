"""Shared by all commands: the console, error output and two-column tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

import typer
from rich.console import Console
from rich.table import Table

from undertow.errors import UndertowError


def make_console() -> Console:
    """A terminal as it is; a log gets plain lines that are not broken at 80 columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


@contextlib.contextmanager
def telling_errors() -> Iterator[None]:
    """Print our errors, and those of writing files, in a few lines without a Python traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has closed the pipe, as `head` does: Click exits silently
    except (UndertowError, OSError) as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        raise typer.Exit(1) from None


def bytes_of(text: str) -> int:
    """A number of bytes as people write it: 1000000, 500K, 64M or 2G."""
    unit = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    try:
        return int(text[:-1] if unit else text) << unit
    except ValueError:
        told = f"invalid number of bytes {text}; write 1000000, 500K, 64M or 2G"
        raise typer.BadParameter(told, param_hint="'--memory'") from None


def table(rows: Iterable[tuple[str, str]]) -> Table:
    """A two-column table of names and values."""
    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="bold")
    made.add_column(overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made
