"""Random numbers: NumPy's distributions, with the arguments of `numpy.random.Generator`.

Inside a captured function every drawing site has its own key in every activation. It comes from the run's `seed=`,
through every call, loop and map on the way, so a run with a seed gives the same numbers on every engine. Outside a
capture the numbers come from the stream of `ut.options(seed=...)`, or are fresh.

Gradients flow through `loc`, `scale`, `low` and `high`, since the numbers are made from standard ones; those by the
`shape` of gamma, by `a` and `b` of beta and by probabilities are zero.
"""

from __future__ import annotations

import itertools
import secrets
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.elsewhere import unknown_name
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.creation import random_bits, random_normal, random_uniform
from undertow.frontend.values.operands import as_operand, is_weak, static_int, type_of
from undertow.frontend.values.traced import FUNCTIONS, Traced, context, emit
from undertow.ir.graph import EMPTY
from undertow.ops.op import find
from undertow.tracebacks import boundaries, boundary
from undertow.types import f64, i64

__all__ = [
    "bernoulli", "beta", "categorical", "choice", "exponential", "gamma", "integers", "normal", "permutation", "random",
    "standard_normal", "uniform",
]  # fmt: skip


_TOLERANCE = float(np.sqrt(np.finfo(np.float64).eps))  # of a sum of probabilities, as in NumPy


def folded(seed: int, number: int) -> int:
    """Another seed, for the number-th of several draws."""
    return int(find("fold_in").eval([np.int64(seed), np.int64(number)], EMPTY)[0])


class Stream:
    """Seeds that follow from one, each given once: what `with ut.options(seed=0)` draws from. Safe in threads."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._numbers = itertools.count()

    def draw(self) -> int:
        """The next seed; the first is the given one: the first run in a block is that of `f.run(x, seed=...)`."""
        number = next(self._numbers)
        return folded(self.seed, number) if number else self.seed


STREAM: ContextVar[Stream | None] = ContextVar("undertow_stream", default=None)


def _key() -> Any:
    current = context()
    if current is None or current.builder is None:
        stream = STREAM.get()
        return np.int64(secrets.randbits(63) if stream is None else stream.draw())
    return current.session.draw()


def _parameter(value: Any, name: str, dtype: Any) -> Any:
    """A parameter of a distribution as a value of a float dtype."""
    if isinstance(value, (tuple, str)) or value is None:
        raise TypeMismatch(
            f"`{name}` is {brief(value)}, which is not a number", hint="the shape comes last, as in NumPy: size=(2, 3)"
        )
    return as_operand(value if is_weak(value) else functions.astype(value, dtype), dtype)


def _required(value: Any, is_valid: Any, name: str, rule: str) -> Any:
    """A float parameter that must satisfy a rule: refused now if it is known, a fault of the run if it is not."""
    if isinstance(is_valid, Traced):
        value = as_operand(value)
        slack = functions.subtract(functions.astype(is_valid, type_of(value).dtype), 1)
        return emit("within", [value, slack])[0]
    if not np.all(is_valid):
        raise TypeMismatch(f"`{name}` is {brief(value)}, but {rule}", hint="these are the rules of numpy.random")
    return value


def _not_negative(value: Any, name: str) -> Any:
    return _required(value, functions.logical_not(functions.less(value, 0)), name, "it must not be negative")


def _positive(value: Any, name: str) -> Any:
    return _required(value, functions.logical_not(functions.less_equal(value, 0)), name, "it must be positive")


def _size(size: Any, *parameters: Any) -> Any:
    """The shape of the result: the given one, or that of the parameters."""
    if size is not None:
        return size
    whole = None
    for value in parameters:
        if type_of(value).rank:
            whole = value if whole is None else functions.add(whole, value)
    return () if whole is None else functions.shape(whole)


def _is_standard(loc: Any, scale: Any, standard: tuple[float, float]) -> bool:
    return is_weak(loc) and is_weak(scale) and (loc, scale) == standard


def random(size: Any = None, dtype: Any = f64) -> Any:
    """Uniform numbers from 0 to below 1."""
    return random_uniform(_key(), () if size is None else size, dtype)


def standard_normal(size: Any = None, dtype: Any = f64) -> Any:
    """Normal numbers with mean 0 and standard deviation 1."""
    return random_normal(_key(), () if size is None else size, dtype)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None, dtype: Any = f64) -> Any:
    """Uniform numbers from `low` to below `high`."""
    if _is_standard(low, high, (0.0, 1.0)):
        return random(size, dtype)
    # The difference of two Python numbers is exact before it is rounded to the dtype.
    width = high - low if is_weak(high) and is_weak(low) else functions.subtract(high, low)
    low, width = _parameter(low, "low", dtype), _not_negative(_parameter(width, "high", dtype), "high - low")
    return functions.add(functions.multiply(random(_size(size, low, width), dtype), width), low)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None, dtype: Any = f64) -> Any:
    """Normal numbers with mean `loc` and standard deviation `scale`."""
    if _is_standard(loc, scale, (0.0, 1.0)):
        return standard_normal(size, dtype)
    loc, scale = _parameter(loc, "loc", dtype), _not_negative(_parameter(scale, "scale", dtype), "scale")
    return functions.add(functions.multiply(standard_normal(_size(size, loc, scale), dtype), scale), loc)


def exponential(scale: Any = 1.0, size: Any = None, dtype: Any = f64) -> Any:
    """Exponentially distributed numbers with mean `scale`."""
    scale = _not_negative(_parameter(scale, "scale", dtype), "scale")
    return functions.multiply(functions.negative(functions.log1p(-random(_size(size, scale), dtype))), scale)


def gamma(shape: Any, scale: Any = 1.0, size: Any = None, dtype: Any = f64) -> Any:
    """Gamma-distributed numbers with mean `shape * scale`; a `shape` of 0 gives 0."""
    form, scale = _parameter(shape, "shape", dtype), _parameter(scale, "scale", dtype)
    form, scale = _not_negative(form, "shape"), _not_negative(scale, "scale")
    size = _size(size, form, scale)
    return functions.multiply(_standard_gamma(form, size, dtype), scale)


def beta(a: Any, b: Any, size: Any = None, dtype: Any = f64) -> Any:
    """Beta-distributed numbers from 0 to 1, with mean `a / (a + b)`."""
    a, b = _positive(_parameter(a, "a", dtype), "a"), _positive(_parameter(b, "b", dtype), "b")
    size = _size(size, a, b)
    x, y = _standard_gamma(a, size, dtype), _standard_gamma(b, size, dtype)
    return functions.divide(x, functions.add(x, y))


def _standard_gamma(form: Any, size: Any, dtype: Any) -> Any:
    """The method of Marsaglia and Tsang (2000): a normal number, transformed, is accepted more than 95 times in 100."""
    form = functions.stop_gradient(functions.broadcast_to(form, size))
    is_small = functions.less(form, 1)  # of these, the number for form + 1 is scaled down
    d = functions.add(form, functions.where(is_small, 2 / 3, -1 / 3))
    c = functions.divide(1, functions.sqrt(functions.multiply(d, 9)))
    is_valid = functions.greater(form, 0)

    def is_missing(state: Any) -> Any:
        return functions.any(functions.logical_not(state[0]))

    def draw(state: Any) -> Any:
        done, value = state
        x, u = standard_normal(size, dtype), random(size, dtype)
        v = (1 + c * x) ** 3
        bound = 0.5 * x * x + d - d * v + d * functions.log(functions.maximum(v, 0))
        accepted = functions.logical_and(v > 0, functions.log(1 - u) < bound)
        takes = functions.logical_and(accepted, functions.logical_not(done))
        return functions.logical_or(done, accepted), functions.where(takes, d * v, value)

    nothing = functions.where(functions.equal(form, 0), form, functions.full_like(form, np.nan))
    start = functions.logical_not(is_valid), nothing
    _, value = FUNCTIONS["while_loop"](is_missing, draw, start)
    power = functions.divide(1, functions.where(functions.logical_and(is_small, is_valid), form, 1))
    shrink = functions.where(is_small, (1 - random(size, dtype)) ** power, 1)
    return functions.stop_gradient(functions.multiply(value, shrink))


def integers(low: Any, high: Any = None, size: Any = None, dtype: Any = i64, endpoint: bool = False) -> Any:
    """Integers from `low` to below `high`, or up to it if `endpoint`; `integers(n)` are from 0 to below n."""
    if high is None:
        low, high = 0, low
    if isinstance(low, (tuple, str)) or isinstance(high, (tuple, str)):
        raise TypeMismatch("the bounds of integers must be numbers", hint="the shape comes last, as in NumPy: size=3")
    width = functions.add(functions.subtract(high, low), 1 if endpoint else 0)
    if type_of(as_operand(width)).dtype.kind != "int":
        raise TypeMismatch("the bounds of integers must be integers", hint="convert them: int(x)")
    if not isinstance(width, Traced) and not np.all(np.asarray(width) > 0):
        raise TypeMismatch(f"there is no integer from {brief(low)} to {brief(high)}", hint="low must be below high")
    bits = random_bits(_key(), _size(size, as_operand(functions.add(low, functions.multiply(width, 0)))), i64)
    if isinstance(width, Traced):  # an empty range is a fault
        valid = _required(np.float64(0.0), functions.greater(width, 0), "high", "")
        width = functions.add(functions.maximum(width, 1), functions.astype(valid, width.dtype))
    # A remainder of 64 bits is as good as fair: off by less than width / 2**64.
    drawn = functions.add(functions.remainder(bits, functions.astype(width, i64)), functions.astype(low, i64))
    return functions.astype(drawn, dtype)


def bernoulli(p: Any = 0.5, size: Any = None) -> Any:
    """True with probability `p`."""
    chance = _parameter(p, "p", f64)
    is_chance = functions.logical_and(functions.greater_equal(chance, 0), functions.less_equal(chance, 1))
    chance = _required(chance, is_chance, "p", "it must be from 0 to 1")
    return functions.less(random(_size(size, chance)), chance)


def categorical(*, p: Any = None, logits: Any = None, size: Any = None) -> Any:
    """Numbers of classes: each class with its probability in `p`, along the last axis, or with those of `logits`."""
    if (p is None) == (logits is None):
        raise TypeMismatch(
            "categorical takes either p= or logits=",
            hint="write categorical(p=probabilities), or categorical(logits=scores)",
        )
    if p is None:
        weights = functions.stop_gradient(functions.softmax(_parameter(logits, "logits", f64)))
    else:
        weights = functions.stop_gradient(_parameter(p, "p", f64))
        weights = _required(weights, functions.greater_equal(weights, 0), "p", "probabilities must not be negative")
    rank = type_of(weights).rank
    if rank == 0 or (size is not None and rank > 1):
        raise TypeMismatch(
            f"categorical takes probabilities along the last axis, not {type_of(weights)}",
            hint="pass an array; `size` only with one of one axis",
        )
    upto = functions.cumsum(weights, axis=-1)
    if p is not None:
        total = functions.take(upto, [-1], axis=-1)
        upto = _required(upto, functions.greater(total, 0), "p", "one of the probabilities must be positive")
    shape = functions.shape(weights)
    batch = size if size is not None else shape[:-1]
    u = functions.multiply(random(batch), functions.take(upto, -1, axis=-1))
    below = functions.less_equal(upto, functions.expand_dims(u, axis=-1))
    count = functions.sum(functions.astype(below, i64), axis=-1)
    return functions.minimum(count, shape[-1] - 1)


def permutation(x: Any) -> Any:
    """The integers below x, or the elements along the first axis of an array, in random order."""
    whole = as_operand(x)
    if type_of(whole).rank == 0:
        return functions.argsort(random_bits(_key(), (x,), i64))
    order = functions.argsort(random_bits(_key(), (functions.length(whole),), i64))
    return functions.take(whole, order, axis=0)


def _chances(p: Any, count: Any) -> Any:
    """Probabilities of each of `count` elements: they add up to 1, as exactly as NumPy wants it."""
    p = _parameter(p, "p", f64)
    if type_of(p).rank != 1:
        raise TypeMismatch(f"`p` is {type_of(p)}, not an array of one axis", hint="pass a probability for each element")
    p = _required(p, functions.equal(functions.length(p), count), "p", "it must have a probability for each element")
    error = functions.abs(functions.subtract(functions.sum(p), 1))
    return _required(p, functions.less(error, _TOLERANCE), "p", "probabilities must add up to 1")


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> Any:
    """Elements of the array `a`, or integers below `a`, drawn with or without replacement."""
    pool = as_operand(a)
    count = functions.length(pool) if type_of(pool).rank else a
    if replace:
        index = integers(0, count, size) if p is None else categorical(p=_chances(p, count), size=size)
    elif p is not None:
        raise TypeMismatch("choice takes p only with replacement", hint="leave p out, or draw with replace=True")
    else:
        taken = 1 if size is None else static_int(size, "the size of a choice without replacement")
        if not isinstance(count, Traced) and taken > count:
            raise TypeMismatch(f"{taken} elements of {count} cannot be chosen without replacement", hint="choose fewer")
        order = permutation(count)
        index = order[0] if size is None else order[:taken]
    return functions.take(pool, index, axis=0) if type_of(pool).rank else index


boundaries(globals(), __all__)
_SEED = "there are no generators: `with ut.options(seed=0)`, or f.run(x, seed=0), makes numbers repeatable"
_NAMED_ELSEWHERE = {
    **dict.fromkeys(
        ("seed", "default_rng", "RandomState", "PRNGKey", "key", "split", "fold_in", "Generator", "manual_seed"), _SEED
    ),
    **dict.fromkeys(("randn", "gaussian", "gauss", "truncated_normal"), "write ut.random.normal(loc, scale, size)"),
    **dict.fromkeys(("rand", "random_sample", "ranf"), "write ut.random.uniform(low, high, size)"),
    **dict.fromkeys(("randint", "randrange", "random_integers"), "write ut.random.integers(low, high, size)"),
    "shuffle": "write x = ut.random.permutation(x): arrays are not changed in place",
    "binomial": "add up ut.random.bernoulli(p, n)",
    "multinomial": "count ut.random.categorical(p=p, size=n)",
}


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    @boundary
    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.random", name, __all__, _NAMED_ELSEWHERE)


boundaries(globals(), __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
