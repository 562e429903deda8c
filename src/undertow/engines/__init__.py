"""Engines: ways to run a static graph, all under one contract."""

NAMES = ("reference", "demand", "waves", "expand")
DEFAULT = "waves"
