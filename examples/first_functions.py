"""Factorial and Fibonacci: call them, map them, and see that the graph does not grow with n."""

import math

import numpy as np

import undertow as ut


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


assert factorial(20) == math.factorial(20)
print(f"20! = {factorial(20):,}")

numbers = fib.map(range(15))  # fifteen calls, one run
assert np.array_equal(numbers[2:], numbers[1:-1] + numbers[:-2])
print("Fibonacci:", *numbers)

print("\n n   fib(n)   nodes in the graph   activations")
sizes = set()
for n in (2, 5, 10, 15):
    result, stats = fib.run(n, stats=True)
    sizes.add(len(fib.graph(n)))
    print(f"{n:2} {result:8} {len(fib.graph(n)):20} {stats.activations:13}")
assert len(sizes) == 1
