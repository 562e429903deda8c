"""The functions that only apply an operator, each built from the operator's row.

What type checkers know of them is in plain.pyi, which `python docs/manual.py plain` writes.
"""

from undertow.frontend.functions.from_rows import function_of
from undertow.ops.op import CATALOGUE
from undertow.tracebacks import boundary

_FUNCTIONS = {row.public: boundary(function_of(row)) for row in CATALOGUE.values() if row.takes}
for _function in _FUNCTIONS.values():
    _function.__module__ = __name__  # where pickle finds it
__all__ = list(_FUNCTIONS)
globals().update(_FUNCTIONS)
