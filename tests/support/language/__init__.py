"""The language table: every piece of Python and NumPy that a program may use, and whether it works when captured."""
