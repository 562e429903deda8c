"""Writes function graphs into a library: the builder, and those who drive it."""
