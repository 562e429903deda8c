"""Reads Python: source text, syntax trees, signatures and annotations."""
