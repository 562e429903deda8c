"""Derivatives as graphs: `extend` replaces the `gradient` and `tangent` nodes of a library by calls."""
