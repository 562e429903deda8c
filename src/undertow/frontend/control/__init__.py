"""Branches, loops and maps: what becomes of variables where control splits and joins."""
