"""Replaces markers in a graph (nodes or attributes) by ordinary nodes: derivatives of tensors, and updates."""
