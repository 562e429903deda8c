"""Adaptive quadrature: Simpson's rule, halving an interval only where the estimate is not yet good enough.

How deep the recursion goes depends on the data, and differs from place to place: deepest near 0, where the square root
is steep. That is hard to write as a batch of fixed shape, and natural as a recursive function.
"""

import undertow as ut


def f(x):  # a plain helper: captured along with what calls it
    return ut.sqrt(x)


def simpson(a, b):
    return (b - a) / 6 * (f(a) + 4 * f((a + b) / 2) + f(b))


@ut.function
def integral(a: ut.f64, b: ut.f64, whole: ut.f64, tolerance: ut.f64) -> ut.f64:
    """The integral of f from a to b, of which `whole` is an estimate."""
    middle = (a + b) / 2
    left, right = simpson(a, middle), simpson(middle, b)
    error = left + right - whole
    if abs(error) <= 15 * tolerance:
        return left + right + error / 15
    return integral(a, middle, left, tolerance / 2) + integral(middle, b, right, tolerance / 2)


print("The integral of sqrt(x) from 0 to 1, which is 2/3:\n")
print("tolerance      integral   activations   deepest call")
for tolerance in (1e-2, 1e-4, 1e-6, 1e-8):
    result, stats = integral.run(0.0, 1.0, simpson(0.0, 1.0), tolerance, stats=True)
    assert abs(result - 2 / 3) <= tolerance
    print(f"{tolerance:9.0e} {result:13.9f} {stats.activations:13} {stats.max_depth:14}")
