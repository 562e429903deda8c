"""Newton's method: a loop over floats that stops when it is good enough, alone and for many numbers at once."""

import numpy as np

import undertow as ut


@ut.function
def root(a: ut.f64, degree: ut.i64) -> tuple[ut.f64, ut.i64]:
    """The positive root of x**degree = a, and how many steps it took."""
    x, step, steps = ut.maximum(a, 1.0), 1.0, 0
    while abs(step) > 1e-12 * x:
        power = x ** (degree - 1)
        step = (x * power - a) / (degree * power)
        x = x - step
        steps += 1
    return x, steps


value, steps = root(2.0, 2)
assert abs(value - np.sqrt(2)) < 1e-12
print(f"the square root of 2 is {value:.12f}, after {steps} steps")

numbers = np.array([0.5, 8.0, 27.0, 1e6])
values, counts = root.map(numbers, ut.shared(3))
np.testing.assert_allclose(values, np.cbrt(numbers))
for number, value, steps in zip(numbers, values, counts, strict=True):
    print(f"the cube root of {number:9} is {value:.12g}, after {steps} steps")
