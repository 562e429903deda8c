"""The reference page of the command line, written from the commands themselves.

`python docs/commands.py > docs/reference/command_line.md` brings the file up to date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import typer

from undertow.cli.commands import COMMANDS, loaded

_HEAD = """\
# Command line

<!-- Written by `python docs/commands.py > docs/reference/command_line.md`; do not edit. -->

`undertow COMMAND --help` shows the same in a terminal, and `undertow --version` the version. FILE:FUNCTION is a
function of a Python file or module, `fib.py:fib`, or a method of an object in it, `model.py:net.predict`. Errors go to
stderr, and the exit status is then not 0.

In Python, `f.run(...)` and `f.graph(...)` do what `undertow run` and `undertow graph` do; `f.graph` takes arguments,
where the command makes zeros of the annotated types.
"""


def page() -> str:
    """The text of the page."""
    lines = [_HEAD.rstrip("\n")]
    for path, command in _every():
        usage = " ".join(p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument")
        lines += ["", f"## {path}", "", f"`{f'{path} {usage}'.strip()}`"]
        for paragraph in _text(command.help).split("\n\n"):
            lines += ["", " ".join(paragraph.split())]
        rows = [_row(p) for p in command.params if p.name != "help"]
        if rows:
            lines += ["", "| argument or option | meaning | default |", "|---|---|---|", *rows]
    return "\n".join(lines).rstrip("\n") + "\n"


def _every() -> Iterator[tuple[str, Any]]:
    for name, _, _ in COMMANDS:
        found = loaded(name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(name)(found)
            found = alone
        command: Any = typer.main.get_command(found)
        inner = getattr(command, "commands", None)
        for path, each in {f" {k}": c for k, c in inner.items()}.items() if inner else [("", command)]:
            yield f"undertow {name}{path}", each


def _row(parameter: Any) -> str:
    is_option = parameter.param_type_name == "option"
    name = (
        ", ".join(f"`{o}`" for o in parameter.opts) if is_option else f"{parameter.metavar or parameter.name.upper()}"
    )
    default = parameter.default
    is_shown = (
        not (default is None or default is False or default == ()) and not callable(default) and not parameter.required
    )
    shown = f"`{getattr(default, 'value', default)}`" if is_shown else ""
    return f"| {name} | {_text(parameter.help)} | {shown} |"


def _text(written: str | None) -> str:
    return re.sub(r"[\b\f]", "", written or "").strip().replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    sys.stdout.write(page())
