"""The command line: `undertow demo | run | graph | explain | data | train | predict | doctor | server | cluster`.

Results go to stdout, everything else to stderr. Exit codes: 0, 1 if the program failed, 2 for wrong usage.
Only the command that is run is loaded: most of them need all of Undertow, and their help needs nothing of it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import undertow as ut

# Name, file of this folder, the first paragraph of the help. In the order of the help.
COMMANDS = (
    ("train", "train", "Train a model on trees: a checkpoint, a log, a learning curve and a report are written to a folder."),  # noqa: E501
    ("predict", "predict", "Colour trees with the labels that a trained model gives their nodes."),
    ("demo", "programs", "See recursion run in a static graph: a short tour."),
    ("run", "programs", "Run a function and print its result."),
    ("graph", "programs", "Print or draw the static graph of a function. Arguments may be omitted if all have annotated types."),  # noqa: E501
    ("explain", "programs", "Show how a call is evaluated on demand: which value asks for which, under which tag."),
    ("doctor", "doctor", "Show the installation: versions, machine, engines and optional packages."),
    ("data", "data", "Inspect, convert and generate files of trees."),
    ("server", "server", 'Serve as one task of a cluster: start workers for sessions of compat.v1, tf.Session("grpc://HOST:PORT").'),
    ("cluster", "cluster", "Start, show and end a Ray cluster of your own, which ut.ray.connect() finds."),
)  # fmt: skip
# Arguments such as -3 are numbers; `programs` reports options that do not exist.
_NUMBERS = {"ignore_unknown_options": True}
_SETTINGS = {"run": _NUMBERS, "graph": _NUMBERS, "explain": _NUMBERS}


def loaded(name: str) -> Any:
    """A command, from its file: a function, or commands of its own."""
    file = {command: file for command, file, _ in COMMANDS}[name]
    module = importlib.import_module(f"undertow.cli.{file}")
    return module.app if hasattr(module, "app") else getattr(module, name)


class Commands(TyperGroup):
    """The commands. The help lists them as the table does; one that is run is loaded."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if name is None or command is None:
            return name, command, rest
        found = loaded(name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
            alone.command(name, context_settings=_SETTINGS.get(name, {}))(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = name
        return name, command, rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """All of each summary: Click's own list cuts them to one line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, _, summary in COMMANDS])


app = typer.Typer(
    cls=Commands,
    help="Recursive functions in static dataflow graphs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing what draws frames takes as long as importing NumPy
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _stand_in(summary: str) -> Callable[[], None]:
    def command() -> None: ...

    command.__doc__ = summary
    return command


for _name, _, _summary in COMMANDS:
    app.command(_name)(_stand_in(_summary))


def main() -> None:
    """The entry point of the `undertow` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without Unicode still shows the rest
    app(prog_name="undertow")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"undertow {ut.__version__}")
        raise typer.Exit


@app.callback()
def _undertow(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Recursive functions in static dataflow graphs."""
