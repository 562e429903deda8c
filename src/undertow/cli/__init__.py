"""The command line: one file per larger command, and what they share."""

from undertow.cli.commands import main as main
