"""Engines: ways to run a static graph, all under one contract."""
