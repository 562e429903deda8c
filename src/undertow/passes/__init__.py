"""Passes: pure functions from graphs to graphs, one file each."""
