"""Graphs as data: typed, frozen, printable. Knows nothing of what operators compute."""
