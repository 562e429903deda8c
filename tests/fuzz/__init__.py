"""Hostile input and random programs, made without end: `make fuzz`, or `python -m tests.fuzz --seconds 60 --seed 1`.

A *kind* (`kinds.KINDS`) makes a case out of a random number generator. A case passes if it ends in a value or in one of
our errors. Workers are processes of their own, so that a crash, a hang or a report of a sanitizer costs one worker and
names the case (`runner`). `make fuzz` has the sanitizers watch.
"""
