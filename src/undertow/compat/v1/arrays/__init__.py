"""Operators on arrays that are more than one operator of the library: indices, segments, shapes, matrices, counts."""
