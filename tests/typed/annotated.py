"""An annotated program that `mypy --strict` and pyright accept; what they must refuse is marked `# refused`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from typing_extensions import assert_type

import undertow as ut

Vector = Annotated[ut.Array, ut.f64["n"]]
Matrix = Annotated[ut.Array, ut.f32["n", 3]]


@dataclass
class Layer:
    w: Annotated[ut.Array, ut.f64[3]]
    b: float


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    return 1.0 if n == 0 else x * power(x, n - 1)


@ut.function
def gcd(a: int, b: int) -> int:
    return a if b == 0 else gcd(b, a % b)


@ut.function
def collatz(n: ut.i64) -> ut.i64:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@ut.function
def is_even(n: ut.i64) -> ut.bool:
    return n == 0 or not is_even(n - 1)


@ut.function
def mixed(x: ut.f64, n: ut.i64, v: Matrix) -> ut.f64:
    y = n * x + 0.5 * n - n / 3 + (n >> 1)
    for k in range(n):
        y = y + k * v[k].sum()
    if x > 2 and n % 2 != 0:
        return -(y**2) + abs(x)
    return ut.sqrt(ut.sum(v @ v.T)) + math.sin(x) + y


@ut.function
def scaled(x: Vector, by: ut.f64 = 2.0) -> Vector:
    return by * x + x * by - x[::-1] / by


@ut.function
def apply(layer: Layer, x: Vector) -> tuple[Vector, ut.f64]:
    out = layer.w * x + layer.b
    return out, ut.max(out)


@ut.function
def place(x: Vector, wanted: ut.f64 | None = None) -> ut.i64 | None:
    best = None
    for i in range(len(x)):
        if wanted is not None and x[i] == wanted:
            best = i
    return best


weight = ut.Variable(2.0)


@ut.function
def learn(x: ut.f64) -> ut.f64:
    weight.assign_add(x)
    return weight.read() * x + ut.random.normal()


class Model:
    scale: float = 2.0

    @ut.function
    def score(self, x: ut.f64) -> ut.f64:
        return self.scale * x


assert_type(fib(10), ut.i64)
assert_type(gcd(12, 18), int)
assert_type(ut.grad(power)(2.0, 10), ut.f64)
assert_type(ut.value_and_grad(power)(2.0, 10), tuple[ut.f64, ut.f64])
assert_type(Model().score(2.0), ut.f64)
total: int = fib(10)
ratio: float = power(2.0, 10) / 3
numbers: list[int] = [fib(n) for n in range(5)]
fib(np.int64(3))
power(np.float32(2.0), 3)
scaled(np.ones(3))
scaled(np.ones(3, np.float32), by=3)
slope = ut.grad(lambda x: x * x)(3.0)
assert scaled.run(np.ones(3), by=3.0).shape == (3,)
value, stats = fib.run(12, stats=True, memory="1G")
assert stats.activations == 465
assert fib.map([1, 2, 3]).tolist() == [1, 2, 3]
out, top = apply(Layer(np.ones(3), 0.5), np.arange(3.0))
at = place(np.ones(3), 1.0)
print(at + 1 if at is not None else 0, place(np.ones(3)) is None)
print(f"{power(2.0, 10):.1f}", round(ratio, 2), total, out.shape, top, slope)
print(collatz(27), is_even(10), mixed(1.0, 2, np.ones((4, 3), np.float32)), learn(1.0))
with ut.options(engine="reference", max_depth=100):
    print(fib(5))


def wrong() -> None:
    fib(2.5)  # refused
    fib("three")  # refused
    power(2.0)  # refused
    power(2.0, 3, 4)  # refused
    scaled("text")  # refused
    Model().score("text")  # refused
    fib.run(3, max_dept=3)  # refused
    ut.vmap(fib)  # refused
    gcd(1, 2).shape  # refused
    place(np.ones(3), "one")  # refused
    place(np.ones(3)) + 1  # refused
