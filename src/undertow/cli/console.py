"""Shared by all commands: the console, error output and two-column tables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from undertow.errors import UndertowError


def make_console() -> Console:
    """A console for the terminal, or, in a log, plain lines that are not wrapped at 80 columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=120)


@contextlib.contextmanager
def telling_errors() -> Iterator[None]:
    """Print our errors, and those of reading and writing files, in a few lines without a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has closed the pipe, as `head` does: Click exits silently
    except (UndertowError, OSError) as error:
        typer.echo(f"{type(error).__name__}: {error}", err=True)
        raise typer.Exit(1) from None


def check_options(options: Mapping[str, Any]) -> None:
    """Wrong options of a run are wrong usage of the command."""
    from undertow.api.options import settings  # not every command needs the engines

    try:
        settings().with_(**options)
    except UndertowError as error:
        raise typer.BadParameter(f"{error.what}; {error.hint}") from None


def table(rows: Iterable[tuple[str, str]]) -> Table:
    """A two-column table of names and values."""
    columns = Table(box=None, show_header=False, pad_edge=False)
    columns.add_column(style="bold")
    columns.add_column(overflow="fold")
    for row in rows:
        columns.add_row(*row)
    return columns
