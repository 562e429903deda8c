"""Branches, loops and maps: how variables split and merge with control flow."""
