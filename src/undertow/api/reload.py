"""IPython's `%autoreload`: a function that a notebook has imported becomes what its module now defines.

The extension does that for plain functions and classes, by a list of rules; ours is added to it as soon as the
extension is there and a function is decorated, which happens when a module is loaded again.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from undertow.api.function import Function
    from undertow.api.program import Programs

_AUTORELOAD = "IPython.extensions.autoreload"


def follow_autoreload(function: type[Function], programs: type[Programs]) -> None:
    """Add a rule for functions of this class, if the extension is loaded and has none."""
    rules: Any = getattr(sys.modules.get(_AUTORELOAD), "UPDATE_RULES", None)
    if rules is None or any(update is _update for _, update in rules):
        return

    def is_ours(old: Any, new: Any) -> bool:
        if not (type(old) is type(new) is function):
            return False
        for item in gc.get_objects():  # those that call it have it inside
            if isinstance(item, programs):
                item.clear()
        return True

    rules.append((is_ours, _update))


def _update(old: Function, new: Function) -> None:
    """Make the old function the new one; what was derived from it follows."""
    old.__undertow_definition__.become(new.__undertow_definition__)
