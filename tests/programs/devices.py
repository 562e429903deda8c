"""Programs that place parts of themselves: blocks, whole functions, helpers, loops, maps, branches, gradients.

Without workers devices mean nothing; in parts, a program gives the same.
"""

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def there_and_back(n: ut.i64) -> ut.i64:
    """A factorial whose number goes out, and comes back smaller."""
    if n <= 0:
        return 1
    with ut.device("worker:0"):
        less = n - 1
    return n * there_and_back(less)


@ut.device("worker:1")
@ut.function
def far(n: ut.i64) -> ut.i64:
    return n if n < 2 else far(n - 1) + far(n - 2)


@ut.function
@ut.device("worker:0")
def near(n: ut.i64) -> ut.i64:
    return 1 if n <= 0 else far(n) + near(n - 1)


@ut.function
def whole_functions(n: ut.i64) -> ut.i64:
    """Two functions on two workers, one of which calls the other."""
    return far(n) - near(n)


@ut.function
def follower(n: ut.i64) -> ut.i64:
    return 1 if n <= 0 else n * follower(n - 1)


@ut.function
def followed(n: ut.i64) -> ut.i64:
    """A function without a device, called from one place: it runs there."""
    with ut.device("worker:1"):
        return follower(n) + 1


@ut.function
def between(n: ut.i64, depth: ut.i64) -> ut.i64:
    """Mutual recursion that goes from worker to worker, and to main."""
    if n <= 0:
        return depth
    with ut.device("worker:0"):
        return beyond(n - 1, depth * 2)


@ut.function
def beyond(n: ut.i64, depth: ut.i64) -> ut.i64:
    if n <= 0:
        return -depth
    with ut.device("worker:1"):
        below = between(n - 1, depth + 1)
        with ut.device(None):
            below = below * 3
        with ut.device(""):
            below -= n
        return below + 1


@ut.function
def placed_blocks(x: ut.f64, n: ut.i64) -> ut.f64:
    """Blocks in blocks, around loops and branches, and in these."""
    with ut.device("worker:0"):
        y = x * 2.0
        for k in range(n):
            y += k
            with ut.device("worker:1"):
                z = y / 2.0
                if z > 3.0:
                    y = z - 1.0
                else:
                    with ut.device("worker:2"):
                        y = z + 0.5
        while y > 1.0:
            y = y / 2.0
    return y + x


@ut.device("worker:2")
def helper(x, y):
    return x * y + 1


@ut.function
def with_helpers(x: ut.i64, n: ut.i64) -> ut.i64:
    """A helper with a device, and a function inside of a function."""

    @ut.device("worker:1")
    def squared(z):
        if z > 10:
            return helper(z, z)
        return z * z

    total = x
    for k in range(n):
        total += squared(k) - helper(k, x)
    return total


@ut.function
def placed_search(n: ut.i64, depth: ut.i64) -> ut.i64:
    """A loop that becomes a map: its calls are where it is."""
    if depth <= 0:
        return n
    best = -100
    with ut.device("worker:1"):
        for k in range(n):
            best = max(best, k - placed_search(n - 1, depth - 1))
    return best


@ut.function
def placed_lanes(xs, n: ut.i64) -> ut.f64:
    """A map whose body is where it is, and that calls elsewhere."""
    with ut.device("worker:0"):
        ys = ut.map(lambda x: powered(x, n) + 1.0, xs)
    with ut.device("worker:1"):
        return ut.sum(ys)


@ut.function
def powered(x: ut.f64, n: ut.i64) -> ut.f64:
    if n <= 0:
        return 1.0
    with ut.device("worker:2"):
        return x * powered(x, n - 1)


@ut.function
def printing(n: ut.i64) -> ut.i64:
    """What prints stays in main."""
    with ut.device("worker:0"):
        if n <= 0:
            return 0
        print("n =", n)
        below = printing(n - 1)
        assert below >= 0, "below zero"
        return below + n


@ut.device("worker:1")
@ut.function
def cubed(x: ut.f64, w: ut.f64, n: ut.i64) -> ut.f64:
    if n <= 0:
        return x
    with ut.device("worker:0"):
        y = x * w
    return cubed(y, w, n - 1)


@ut.function
def slopes(x: ut.f64, w: ut.f64, n: ut.i64):
    """x w^n: gradients of what is placed, with a weight that is the same in all calls."""
    return ut.value_and_grad(cubed, (0, 1))(x, w, n)


@ut.function
def second_slope(w: ut.f64, n: ut.i64) -> ut.f64:
    with ut.device("worker:0"):
        return ut.grad(ut.grad(lambda v: cubed(1.0, v, n)))(w)


@ut.function
def tangent(x: ut.f64, n: ut.i64):
    return ut.jvp(lambda v: placed_blocks(v, n), (x,), (1.0,))


PROGRAMS = [
    program(there_and_back, (0,), (1,), (8,)),
    program(whole_functions, (0,), (1,), (6,)),
    program(followed, (0,), (6,)),
    program(between, (0, 1), (1, 1), (7, 3), tags="recursive mutual"),
    program(placed_blocks, (1.5, 0), (4.25, 3), (-20.0, 5), tags="loop branch"),
    program(with_helpers, (3, 0), (3, 15), tags="loop branch"),
    program(placed_search, (3, 0), (4, 3), tags="loop recursive"),
    program(placed_lanes, (np.array([1.5, 2.0, -1.0]), 3), (np.array([0.5]), 0), tags="map recursive"),
    program(printing, (0,), (4,), tags="effects recursive"),
    program(
        slopes, (2.0, 1.5, 3), (2.0, 1.5, 0),
        tags="gradient recursive",
        stated=[(2 * 1.5**3, (1.5**3, 2 * 3 * 1.5**2)), (2.0, (1.0, 0.0))],
    ),
    program(second_slope, (1.5, 4), (1.5, 1), tags="gradient recursive", stated=[4 * 3 * 1.5**2, 0.0]),
    program(
        tangent, (4.25, 0), (1.0, 2),
        tags="gradient loop branch", stated=[(4.25 + 0.53125, 1.125), (1.875, 1.25)],
    ),
]  # fmt: skip
