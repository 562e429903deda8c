"""For type checkers: names of TensorFlow's modules, which are made from a table (mirrored/modules.py)."""

from typing import Any

def __getattr__(name: str) -> Any: ...
