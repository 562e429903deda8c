"""Arrays in the short spelling, which pyright takes as it is, and mypy with the plugin."""

import numpy as np

import undertow as ut

WIDTH = 3
Row = ut.f64[WIDTH]


@ut.function
def dot(x: ut.f64["n"], y: ut.f64["n"]) -> ut.f64:
    return ut.sum(x * y)


@ut.function
def rows(table: ut.f32[None, WIDTH], at: ut.i64["k"]) -> ut.f32["k", WIDTH]:
    return table[at]


@ut.function
def chain(h: ut.f64[WIDTH], n: ut.i64) -> ut.f64[WIDTH]:
    return h if n == 0 else chain(0.5 * h, n - 1)


print(dot(np.ones(3), np.ones(3)), chain(np.ones(WIDTH), 2)[0])
print(rows(np.ones((4, WIDTH), np.float32), np.array([0, 2])).shape)


def wrong() -> None:
    dot("text", np.ones(3))  # refused
