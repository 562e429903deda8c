"""Writes function graphs into a library: the builder and its callers."""
