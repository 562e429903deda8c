"""Programs that differentiate: recursion, loops, maps and branches, of first and higher order, inside one run.

Plain Python has no gradients: what is expected is stated, as closed forms.
"""

import numpy as np
from tests.programs.program import program
from tests.support.differentiable import LEFT, RIGHT, power

import undertow as ut


@ut.function
def power_slope(x: ut.f64, n: ut.i64) -> ut.f64:
    """A gradient inside a function."""
    return ut.grad(power)(x, n)


@ut.function
def third_derivative(x: ut.f64, n: ut.i64) -> ut.f64:
    """A gradient of a gradient of a gradient."""
    return ut.grad(ut.grad(ut.grad(power)))(x, n)


@ut.function
def even_slope(x: ut.f64, n: ut.i64) -> ut.f64:
    """Mutual recursion: multiplied by itself at even places, by 2 at odd ones."""
    return ut.grad(even)(x, n)


@ut.function
def even(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else x * odd(x, n - 1)


@ut.function
def odd(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else 2.0 * even(x, n - 1)


@ut.function
def product(w: ut.f64[5], k: ut.i64) -> ut.f64:
    """The product of the weights of a tree, that of node k at place k: one look-up of a row at each node."""
    if LEFT[k] < 0:
        return w[k]
    return w[k] * product(w, LEFT[k]) * product(w, RIGHT[k])


@ut.function
def tree_weights(w: ut.f64[5], k: ut.i64):
    return ut.value_and_grad(product)(w, k)


@ut.function
def layered(p, n: ut.i64):
    """Containers: a gradient like the argument, and something beside the value."""

    def loss(p, n):
        y = p["w"]
        for _ in range(n):
            y = y * p["w"] + p["b"][0]
        return y, n + 1

    (value, aux), slopes = ut.value_and_grad(loss, has_aux=True)(p, n)
    return value, aux, slopes


@ut.function
def descent(x: ut.f64, n: ut.i64) -> ut.f64:
    """A gradient in each iteration of a loop, in one side of a branch."""
    for _ in range(n):
        if x > 0.1:
            x = x - 0.25 * ut.grad(power)(x, 2)
        else:
            x = x + 1.0
    return x


@ut.function
def lanes(xs: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    """A gradient in each lane of a map."""
    return ut.map(lambda x, k: ut.grad(power)(x, k + n), xs, ut.arange(xs.shape[0]))


@ut.function
def mapped_norm(xs: ut.f64[None]) -> ut.f64[None]:
    """The gradient of a map whose lanes differ in length."""
    total = lambda v: ut.sum(ut.map(lambda x, k: power(x, k), v, ut.arange(v.shape[0])))  # noqa: E731
    return ut.grad(total)(xs)


@ut.function
def halves(a: ut.f64[None]) -> ut.f64:
    """Recursion over halves of an array: each element comes in squared."""
    if a.shape[0] <= 1:
        return ut.sum(a * a)
    h = a.shape[0] // 2
    return halves(a[:h]) + halves(a[h:])


@ut.function
def halves_slope(a: ut.f64[None]) -> ut.f64[None]:
    return ut.grad(halves)(a)


@ut.function
def pulled(x: ut.f64, n: ut.i64):
    """A pullback used twice, once inside a branch."""
    value, back = ut.vjp(power, x, n)
    first = back(1.0)[0]
    second = back(value)[0] if n > 2 else 0.0
    return value, first, second


@ut.function
def kept_less(x: ut.f64, n: ut.i64) -> ut.f64:
    """Forward values that are computed again."""

    def step(y, n):
        return ut.checkpoint(power)(y, n) * y

    return ut.grad(step)(x, n)


@ut.function
def constant_part(x: ut.f64, n: ut.i64) -> ut.f64:
    return ut.grad(lambda x: x * ut.stop_gradient(power(x, n)))(x)


@ut.function
def curvature(x: ut.f64, n: ut.i64) -> ut.f64:
    """Forwards over backwards: the tangent of a gradient."""
    return ut.jvp(ut.grad(power), (x, n), (1.0, None))[1]


@ut.function
def confused(x: ut.f64) -> ut.f64:
    """Two derivatives at once that must not see each other: d/dx (x * d/dy (x + y)) = 1."""
    return ut.grad(lambda x: x * ut.grad(lambda y: x + y)(1.0))(x)


@ut.function
def spread(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    """Each element to the power n + 1, plus the first one."""
    return x if n <= 0 else x * spread(x, n - 1) + x[0]


@ut.function
def both_jacobians(x: ut.f64[None], n: ut.i64):
    """A map of gradients, and a map of tangents."""
    return ut.jacobian(spread)(x, n), ut.jacobian(spread, mode="fwd")(x, n)


@ut.function
def curvatures(x: ut.f64[None], n: ut.i64):
    return ut.hessian(lambda x: ut.sum(spread(x, n)))(x)


@ut.function
def nested_jacobian(p, n: ut.i64):
    """Containers of results, of containers of arguments, among them an integer."""
    return ut.jacobian(lambda p: {"y": p["w"] * p["k"], "z": power(p["b"], n)})(p)


@ut.custom_vjp
def doubled(x, n):
    """A gradient that is twice the true one."""
    return power(x, n)


doubled.defvjp(
    lambda x, n: (doubled(x, n), (x, n)), lambda kept, d: (2.0 * d * kept[1] * power(kept[0], kept[1] - 1), None)
)


@ut.custom_jvp
def stepped(x):
    """A straight-through estimator: constant almost everywhere, with the slope of x."""
    return ut.floor(x)


@stepped.defjvp
def _stepped_rule(primals, tangents):
    return stepped(*primals), tangents[0]


@ut.custom_vjp
def own_recursive(x: ut.f64, n: ut.i64) -> ut.f64:
    """A recursive function whose rule calls it."""
    return 1.0 if n <= 0 else x * own_recursive(x, n - 1)


own_recursive.defvjp(
    lambda x, n: (own_recursive(x, n), (x, n)),
    lambda kept, d: (d * kept[1] * own_recursive(kept[0], kept[1] - 1), None),
)


@ut.function
def chained(w: ut.f64, x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else w * stepped(chained(w, x, n - 1)) + doubled(w, 1)


@ut.function
def own_rules(x: ut.f64, n: ut.i64):
    """In a value, a gradient and a second one; below a recursion; in a map, and in forward mode."""
    return (
        doubled(x, n),
        ut.grad(doubled)(x, n),
        ut.grad(ut.grad(doubled))(x, n),
        ut.grad(own_recursive)(x, n),
        ut.grad(chained, argnums=(0, 1))(x, x, 2),
        ut.grad(lambda xs: ut.sum(ut.map(lambda x: stepped(x) * doubled(x, 1), xs)))(ut.stack([x, 2 * x])),
        ut.jvp(lambda x: stepped(x * x), (x,), (1.0,)),
    )


def _product(w: np.ndarray) -> tuple[float, np.ndarray]:
    return np.prod(w), np.array([np.prod(np.delete(w, k)) for k in range(len(w))])


_WEIGHTS = np.array([0.5, -1.5, 2.0, 3.0, 0.25])


@ut.function
def quicksorted(x: ut.f64[None]) -> ut.f64[None]:
    if len(x) <= 1:
        return x
    p = x[0]
    return np.concatenate([quicksorted(x[x < p]), x[x == p], quicksorted(x[x > p])])


@ut.function
def rank_slope(x: ut.f64[None]) -> ut.f64[None]:
    """Through masks: the weight of each element is its rank."""
    return ut.grad(lambda v: ut.sum(quicksorted(v) * np.arange(len(v))))(x)


PROGRAMS = [
    program(
        power_slope, (1.5, 4), (1.5, 1), (-2.0, 0),
        tags="gradient recursive", stated=[4 * 1.5**3, 1.0, 0.0],
    ),
    program(
        third_derivative, (1.5, 5), (1.5, 2),
        tags="gradient recursive", stated=[60 * 1.5**2, 0.0],
    ),
    program(
        even_slope, (1.5, 5), (1.5, 4), (1.5, 0),
        tags="gradient mutual recursive", stated=[4 * 4 * 1.5**3, 4 * 3 * 1.5**2, 1.0],
    ),
    program(tree_weights, (_WEIGHTS, 0), tags="gradient recursive arrays", stated=[_product(_WEIGHTS)]),
    program(
        layered, ({"w": 1.5, "b": [2.0]}, 2), ({"w": 1.5, "b": [2.0]}, 0),
        tags="gradient loop containers closure",
        # y = w^3 + b w + b
        stated=[
            (1.5**3 + 2.0 * 1.5 + 2.0, 3, {"w": 3 * 1.5**2 + 2.0, "b": [2.5]}),
            (1.5, 1, {"w": 1.0, "b": [0.0]}),
        ],
    ),
    program(
        descent, (0.9, 6), (0.9, 0),
        tags="gradient loop branch", stated=[(0.9 * 0.5**4 + 1.0) * 0.5, 0.9],
    ),
    program(
        lanes, (np.array([1.5, 2.0, 0.5]), 2), (np.zeros(0), 2),
        tags="gradient map recursive", stated=[np.array([2 * 1.5, 3 * 2.0**2, 4 * 0.5**3]), np.zeros(0)],
    ),
    program(
        mapped_norm, (np.array([1.5, 2.0, 0.5]),), (np.zeros(0),),
        tags="gradient map recursive", stated=[np.array([0.0, 1.0, 1.0]), np.zeros(0)],
    ),
    program(
        halves_slope, (np.arange(7.0),), (np.zeros(0),),
        tags="gradient recursive arrays", stated=[2 * np.arange(7.0), np.zeros(0)],
    ),
    program(
        pulled, (1.5, 3), (1.5, 2),
        tags="gradient recursive branch", stated=[(1.5**3, 3 * 1.5**2, 3 * 1.5**5), (1.5**2, 3.0, 0.0)],
    ),
    program(
        rank_slope, (np.array([3.0, 1.0, 2.0, 0.5]),), (np.zeros(0),),
        tags="gradient recursive arrays closure", stated=[np.array([3.0, 1.0, 2.0, 0.0]), np.zeros(0)],
    ),
    program(kept_less, (1.5, 3), tags="gradient recursive closure", stated=[4 * 1.5**3]),
    program(constant_part, (1.5, 3), tags="gradient recursive closure", stated=[1.5**3]),
    program(curvature, (1.5, 4), tags="gradient recursive", stated=[12 * 1.5**2]),
    program(
        both_jacobians, (np.array([1.5, 2.0]), 1), (np.zeros(0), 0), (np.array([0.5]), 0),
        tags="gradient map recursive",
        stated=[
            (np.array([[4.0, 0.0], [1.0, 4.0]]),) * 2,
            (np.zeros((0, 0)),) * 2,
            (np.array([[1.0]]),) * 2,
        ],
    ),
    program(
        curvatures, (np.array([1.5, 2.0]), 1),
        tags="gradient map recursive", stated=[np.diag([2.0, 2.0])],
    ),
    program(
        nested_jacobian, ({"w": np.array([1.5, 2.0]), "k": 3, "b": 1.5}, 3),
        tags="gradient map containers closure",
        stated=[
            {
                "y": {"w": np.diag([3.0, 3.0]), "k": None, "b": np.zeros(2)},
                "z": {"w": np.zeros(2), "k": None, "b": 3 * 1.5**2},
            }
        ],
    ),
    program(
        own_rules, (1.25, 3),
        tags="gradient recursive map closure",
        stated=[
            (
                1.25**3, 6 * 1.25**2, 12 * 1.25, 3 * 1.25**2, (2.0 + 1.25 * 3.0 + 2.0, 1.25**2),
                np.array([1.25 + 2 * 1.0, 2.5 + 2 * 2.0]), (1.0, 2.5),
            )
        ],
    ),
    program(confused, (3.0,), tags="gradient closure", stated=[1.0]),
]  # fmt: skip
