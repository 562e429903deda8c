"""The command line: one file for each command that is more than a few lines, and what they share."""

from undertow.cli.commands import main as main
