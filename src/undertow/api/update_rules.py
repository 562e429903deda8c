"""Update rules of optimizers, the only place where their arithmetic is written.

A rule is a pure function `(g, *slots, *settings)` of a gradient, what is remembered of its parameter, and scalars. It
returns increments, of the parameter and of each slot: sums can be taken of a whole table or of some of its rows.
`ut.optim` evaluates rules on NumPy arrays and in captured functions, `compat.v1.train` on its tensors, and the core
runs C++ which `python -m undertow.api.update_header` writes from them. The variants of PyTorch and TensorFlow 1 differ
in settings only, except for RMSprop.

>>> import numpy as np
>>> momentum(np.array([1.0, 2.0]), np.array([10.0, 0.0]), 0.5, 0.25)
(array([-4.25, -1.  ]), array([-1.5,  2. ]))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from undertow.frontend.functions.public import sqrt

Rule = Callable[..., tuple[Any, ...]]
Update = tuple[Rule, tuple[Any, ...]]  # a rule and its settings: in f64, to be rounded to the dtype of each parameter

# Some settings are complements: `friction` is 1 - momentum, `fresh` is 1 - decay. In f32, 1 - 0.999 has three digits.


def sgd(g: Any, rate: Any) -> tuple[Any]:
    """A step against the gradient."""
    return (-rate * g,)


def momentum(g: Any, speed: Any, rate: Any, friction: Any) -> tuple[Any, Any]:
    """The heavy ball of Polyak (1964): speed = momentum * speed + g."""
    to_speed = g - friction * speed
    return -rate * (speed + to_speed), to_speed


def nesterov(g: Any, speed: Any, rate: Any, friction: Any, momentum: Any) -> tuple[Any, Any]:
    """The same, one step ahead (Sutskever et al. 2013)."""
    to_speed = g - friction * speed
    return -rate * (g + momentum * (speed + to_speed)), to_speed


def adagrad(g: Any, squares: Any, rate: Any, epsilon: Any) -> tuple[Any, Any]:
    """A gradient over the root of the sum of squares (Duchi et al. 2011). TensorFlow 1 has no epsilon: 0."""
    to_squares = g * g
    return -rate * g / (sqrt(squares + to_squares) + epsilon), to_squares


def rmsprop(g: Any, squares: Any, rate: Any, fresh: Any, epsilon: Any) -> tuple[Any, Any]:
    """A gradient over the root of a decaying mean of squares (Hinton 2012)."""
    to_squares = fresh * (g * g - squares)
    return -rate * g / (sqrt(squares + to_squares) + epsilon), to_squares


def rmsprop_momentum(
    g: Any, squares: Any, speed: Any, rate: Any, fresh: Any, epsilon: Any, friction: Any
) -> tuple[Any, Any, Any]:
    """The same, gathered by momentum."""
    to_squares = fresh * (g * g - squares)
    step, to_speed = momentum(g / (sqrt(squares + to_squares) + epsilon), speed, rate, friction)
    return step, to_squares, to_speed


# TensorFlow 1 adds epsilon in the root, and gathers steps that have the rate in them. Settings that choose between both
# would be two more operations on each element in the core.


def rmsprop_inside(
    g: Any, squares: Any, speed: Any, rate: Any, fresh: Any, epsilon: Any, friction: Any
) -> tuple[Any, Any, Any]:
    """The same as in TensorFlow 1."""
    to_squares = fresh * (g * g - squares)
    step, to_speed = momentum(rate * g / sqrt(squares + to_squares + epsilon), speed, 1.0, friction)
    return step, to_squares, to_speed


def rmsprop_centered(
    g: Any, squares: Any, speed: Any, mean: Any, rate: Any, fresh: Any, epsilon: Any, friction: Any
) -> tuple[Any, Any, Any, Any]:
    """The same over the standard deviation of gradients (Graves 2013)."""
    to_squares, to_mean = fresh * (g * g - squares), fresh * (g - mean)
    centre = mean + to_mean
    root = sqrt(squares + to_squares - centre * centre + epsilon)
    step, to_speed = momentum(rate * g / root, speed, 1.0, friction)
    return step, to_squares, to_speed, to_mean


def adam(
    g: Any, mean: Any, squares: Any, rate: Any, fresh_mean: Any, fresh_squares: Any, epsilon: Any
) -> tuple[Any, Any, Any]:
    """A decaying mean of gradients over the root of one of squares (Kingma and Ba 2015).

    Means that start at zero are made up for as at the end of their section 2: in update t, with c = sqrt(1 - beta2**t),
    the rate has the factor c / (1 - beta1**t). TensorFlow 1 adds epsilon as it is, PyTorch epsilon * c.
    """
    to_mean, to_squares = fresh_mean * (g - mean), fresh_squares * (g * g - squares)
    return -rate * (mean + to_mean) / (sqrt(squares + to_squares) + epsilon), to_mean, to_squares


_IN_CORE: tuple[Rule, ...] = (sgd, momentum, nesterov, adagrad, rmsprop, rmsprop_momentum, adam)
IN_CORE = {rule: rule.__name__ for rule in _IN_CORE}
