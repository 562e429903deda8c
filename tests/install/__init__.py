"""Tries wheels and the sdist as a new user would: `make wheel-test`."""
