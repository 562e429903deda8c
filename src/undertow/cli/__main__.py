"""`python -m undertow.cli` is the `undertow` command."""

from undertow.cli import main

main()
