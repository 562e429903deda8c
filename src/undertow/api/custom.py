"""`ut.custom_vjp` and `ut.custom_jvp`: functions with a derivative that the user writes. As in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from undertow.api.function import Function, redecorated
from undertow.api.pickling import CannotPickle, reduced
from undertow.errors import CaptureError, brief
from undertow.frontend.trace.custom import Custom
from undertow.frontend.trace.derivative import definition_of
from undertow.tracebacks import boundary

Rule = TypeVar("Rule", bound=Callable[..., Any])


class _WithRule(Function):
    """A function with its own derivative."""

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        made = reduced(self, redecorated)
        if isinstance(made, str):
            return made
        name = self.__undertow_definition__.name
        raise CannotPickle(
            f"`{name}` cannot be pickled: its rule would be lost",
            hint="define it, and its rule, at the top level of a module, where the other process can import it",
        )


class CustomVjp(_WithRule):
    """A function with its own gradient."""

    @boundary
    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> None:
        """Say what the gradient is: `fwd(*args)` returns the value and anything else, `bwd(that, cotangent)` a tuple
        of cotangents of the arguments.
        """
        _define(self, (fwd, bwd))


class CustomJvp(_WithRule):
    """A function with its own tangent, and so its own gradient."""

    @boundary
    def defjvp(self, rule: Rule) -> Rule:
        """Say what the tangent is: `rule(primals, tangents)` returns the value and its tangent, linear in the
        tangents. A decorator.
        """
        _define(self, (rule,))
        return rule


def _define(function: Function, rule: tuple[Any, ...]) -> None:
    definition: Any = function.__undertow_definition__
    for part in rule:
        if not callable(part):
            raise CaptureError(f"a rule of `{definition.name}` is a function, not {brief(part)}")
    if definition.rule:
        raise CaptureError(f"`{definition.name}` has a rule already", hint="write a second function for a second rule")
    definition.rule = rule


def _custom(kind: Any, what: str, function: Any) -> Any:
    definition, bound = definition_of(function, f"ut.{what}")
    if bound:
        raise CaptureError(
            f"ut.{what} works on functions, not on a bound method",
            hint="write a function that takes what the method reads as arguments",
        )
    return kind(Custom(definition, what))


@boundary
def custom_vjp(function: Callable[..., Any]) -> CustomVjp:
    """A function with a gradient of your own, in place of the one that follows from its operators. A decorator.

    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, dy: (min(dy, 1.0),))
    >>> from undertow.api.grad import grad
    >>> grad(lambda x: 5.0 * clipped(x))(2.0)
    np.float64(1.0)

    `f.defvjp(fwd, bwd)` gives the rule. `fwd(*args)` returns a pair: what the function returns, and whatever `bwd`
    needs. `bwd(that, dy)` gets the cotangent of the result and returns a tuple, a cotangent for each argument: None is
    zero, and for what is no float. Where no gradient is taken the function itself runs. It may be recursive, and its
    rule may call it. Second derivatives are those of the rule. Forward mode (`ut.jvp`) needs a `ut.custom_jvp`.
    """
    made: CustomVjp = _custom(CustomVjp, "custom_vjp", function)
    return made


@boundary
def custom_jvp(function: Callable[..., Any]) -> CustomJvp:
    """A function with a tangent of your own, in place of the one that follows from its operators. A decorator.

    >>> import numpy as np
    >>> @custom_jvp
    ... def rounded(x):
    ...     return np.round(x)
    >>> @rounded.defjvp
    ... def straight_through(primals, tangents):
    ...     return rounded(*primals), tangents[0]
    >>> from undertow.api.grad import grad
    >>> grad(lambda x: rounded(x) * rounded(x))(2.6)
    np.float64(6.0)

    The rule gets a tuple of arguments and a tuple of their tangents (None for what is no float), and returns what the
    function returns, and its tangent, which must be linear in the tangents. Gradients follow from the same rule, in
    reverse.
    """
    made: CustomJvp = _custom(CustomJvp, "custom_jvp", function)
    return made
