"""Collectors: what activations sow becomes an array at the call around them (docs/design/0021)."""
