"""Turns Python functions into libraries of graphs: capture, and the builder shared by all APIs."""
