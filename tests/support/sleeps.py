"""A program that says nothing, until it is ended."""

import signal

signal.pause()
