"""Python objects of run-time shape as arguments: their kinds, their columns, and the handles that stand for them."""
