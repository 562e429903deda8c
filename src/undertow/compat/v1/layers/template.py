"""`tf.make_template`: a function that makes its variables at the first call, and uses them again at every other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from undertow.compat.v1.graphs.scopes import VariableScope, variable_scope
from undertow.tracebacks import boundaries

__all__ = ["make_template"]


def make_template(
    name_: str, func_: Callable[..., Any], create_scope_now_: bool = False, unique_name_: str | None = None,
    custom_getter_: Any = None, **kwargs: Any,
) -> Callable[..., Any]:  # fmt: skip
    """The function with some arguments given, in a variable scope of its own, which all calls share."""
    opened: list[VariableScope] = []

    def scope(is_first: bool) -> Any:
        if opened:
            return variable_scope(opened[0], reuse=None if is_first else True, custom_getter=custom_getter_)
        return variable_scope(unique_name_, name_, custom_getter=custom_getter_)

    if create_scope_now_:
        with scope(True) as made:
            opened.append(made)
    calls: list[bool] = []

    @functools.wraps(func_)
    def template(*args: Any, **more: Any) -> Any:
        with scope(not calls) as made:
            opened[:] = opened or [made]
            result = func_(*args, **{**kwargs, **more})
        calls.append(True)
        return result

    return template


boundaries(globals(), __all__)
