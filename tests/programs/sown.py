"""Programs that sow values and reap them: a result for each activation, gathered in an array."""

import numpy as np
from tests.programs.program import program
from tests.support.differentiable import LEFT, RIGHT

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    ut.sow(1, at=n)
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@ut.function
def calls_by_argument(n: ut.i64):
    """How often each number is asked for: sown values are added."""
    return ut.reap(fib, n + 1, add=True)(n)


@ut.function
def encode(w: ut.f64[5], k: ut.i64) -> ut.f64:
    """A tree of five nodes: the value of a node, sown by its number."""
    value = w[k] if LEFT[k] < 0 else w[k] * encode(w, LEFT[k]) + encode(w, RIGHT[k])
    ut.sow(value, at=k)
    return value


@ut.function
def node_values(w: ut.f64[5]):
    return ut.reap(encode, 5)(w, 0)


@ut.function
def node_losses(w: ut.f64[5], goal: ut.f64[5]) -> ut.f64:
    """A loss of the gathered array: its gradient goes back to every activation."""
    root, values = ut.reap(encode, 5)(w, 0)
    return root * 0.5 + ut.sum((values - goal) ** 2)


@ut.function
def halves(a: ut.f32[None], level: ut.i64) -> ut.f32:
    """Vectors at the levels of a recursion over halves, added."""
    ut.sow(ut.stack([ut.sum(a), ut.asarray(1, dtype=ut.f32)]), at=level)
    if a.shape[0] < 2:
        return ut.sum(a)
    h = a.shape[0] // 2
    return halves(a[:h], level + 1) * halves(a[h:], level + 1)


@ut.function
def by_level(a: ut.f32[None]):
    return ut.reap(halves, 8, add=True)(a, 0)


@ut.function
def even(n: ut.i64) -> ut.bool:
    ut.sow(n % 3 == 0, at=n)
    return True if n == 0 else odd(n - 1)


@ut.function
def odd(n: ut.i64) -> ut.bool:
    if n == 0:
        return False
    if n > 3:
        ut.sow(n > 5, at=n)
    return even(n - 1)


@ut.function
def sown_by_both(n: ut.i64):
    """Mutual recursion, branches without a value, booleans."""
    return ut.reap(even, 10)(n)


@ut.function
def generated(x: ut.f64, n: ut.i64):
    """The tokens of a generator: one for each iteration of a loop; some are left out."""

    @ut.function
    def run(x):
        for k in range(n):
            x = x * 1.5 - 0.25
            if k % 3 != 1:
                ut.sow(x * x, at=k)
        return x

    return ut.reap(run, n + 2)(x)


@ut.function
def searched_and_sown(n: ut.i64):
    """A `while` loop in a recursion, whose condition calls a function that sows."""

    @ut.function
    def is_far(k):
        ut.sow(k, at=k)
        return k < n

    @ut.function
    def run(k):
        while is_far(k):
            k = k + 2
        return k

    return ut.reap(run, n + 3)(0)


@ut.function
def mapped(xs: ut.f64[None]):
    """What the lanes of a map sow, in functions that they call."""

    @ut.function
    def square(x, k):
        ut.sow(x * x, at=k)
        return x + 1

    @ut.function
    def run(xs):
        return ut.map(lambda x, k: square(x, 2 * k), xs, ut.arange(xs.shape[0]))

    return ut.reap(run, 2 * xs.shape[0] + 1)(xs)


@ut.function
def in_lanes(xs: ut.i64[None]) -> ut.i64[None, 7]:
    """A collector in each lane of a map."""
    return ut.map(lambda n: ut.reap(fib, 7, add=True)(n)[1], xs)


@ut.function
def descend(n: ut.i64) -> ut.i64:
    """A collector below another one: it keeps what is sown below it."""
    last, calls = ut.reap(fib, 9, add=True)(n)
    ut.sow(ut.sum(calls), at=n)
    return last if n <= 0 else last + descend(n - 1)


@ut.function
def calls_of_calls(n: ut.i64):
    return ut.reap(descend, 9)(n)


@ut.function
def mark(k: ut.i64, n: ut.i64) -> None:
    """A function without a result: it only sows."""
    if k < n:
        ut.sow(np.int32(7) + ut.astype(k, ut.i32), at=k)
        mark(2 * k + 1, n)
        mark(2 * k + 2, n)


@ut.function
def marked(n: ut.i64) -> ut.i32[None]:
    return ut.reap(mark, n)(0, n)[1]


@ut.function
def unheard(n: ut.i64) -> ut.i64:
    """What is sown without a collector goes nowhere, wherever that would be."""
    return fib(n) + ut.sum(ut.map(lambda k: fib(k), ut.arange(3)))


@ut.function
def weighted(w: ut.f64, n: ut.i64) -> ut.f64:
    """A collector in a recursive function, through which derivatives go in every activation."""

    @ut.function
    def chain(w, k) -> ut.f64:
        ut.sow(w * w, at=k)
        return w if k == 0 else w * chain(w + 0.5, k - 1)

    last, values = ut.reap(chain, 4)(w, n)
    here = ut.sum(values * ut.arange(1.0, 5.0)) + last
    return here if n == 0 else here + weighted(w * 0.5, n - 1)


@ut.function
def in_parts(w: ut.f64[3], n: ut.i64) -> ut.f64:
    """Rows of vectors; a sum whose gradient needs loops and maps below the collector."""

    @ut.function
    def lane(w, k):
        ut.sow(w * (k + 1.0), at=k)
        return w[0]

    @ut.function
    def run(w):
        total = 0.0
        for k in range(n):
            ut.sow(w * total, at=4 + k)
            total = total + w[1]
        return total + ut.sum(ut.map(lambda k: lane(w, k), ut.arange(4)))

    total, rows = ut.reap(run, 4 + n)(w)
    return total + ut.sum(ut.sin(rows))


@ut.function
def put_twice(n: ut.i64):
    return ut.reap(fib, 9)(n)


@ut.function
def put_outside(n: ut.i64):
    return ut.reap(fib, n, add=True)(n)


W = np.array([0.5, -1.0, 2.0, 0.25, 1.5])

PROGRAMS = [
    program(calls_by_argument, (0,), (6,), tags="sown recursive"),
    program(node_values, (W,), tags="sown recursive"),
    program(node_values, (np.stack([W, W * 2, -W]),), tags="sown recursive", by="map", name="node_values_mapped"),
    program(node_losses, (W, W - 1), tags="sown recursive"),
    program(by_level, (np.arange(1, 8, dtype=np.float32),), (np.zeros(0, np.float32),), tags="sown recursive arrays"),
    program(sown_by_both, (0,), (8,), (9,), tags="sown mutual branch"),
    program(generated, (0.75, 0), (0.75, 6), tags="sown loop"),
    # Stated: a loop whose test sows becomes calls, and a function without a result is called by one that has one.
    program(searched_and_sown, (5,), tags="sown loop", stated=[(6, np.array([0, 0, 2, 0, 4, 0, 6, 0]))]),
    program(mapped, (np.arange(4.0),), tags="sown map"),
    program(in_lanes, (np.array([3, 0, 6]),), tags="sown map recursive"),
    program(calls_of_calls, (4,), tags="sown recursive"),
    program(
        marked, (0,), (4,), tags="sown recursive", stated=[np.zeros(0, np.int32), np.array([7, 8, 9, 10], np.int32)]
    ),
    program(unheard, (5,), tags="sown recursive map"),
    program(weighted, (0.75, 3), tags="sown recursive closure"),
    program(in_parts, (np.array([0.5, -0.25, 2.0]), 3), tags="sown loop map"),
    program(put_twice, (3,), tags="sown recursive fault"),
    program(put_outside, (3,), tags="sown recursive fault"),
]
