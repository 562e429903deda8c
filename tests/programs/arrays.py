"""Arrays: trees in them, weights, halves whose sizes are known only at run time."""

import numpy as np
from tests.programs.program import program

import undertow as ut

# A tree of nine nodes; -1 where there is no child.
#         0
#       /   \
#      1     2
#     / \   / \
#    3   4 5   6
#       / \
#      7   8
LEFT = np.array([1, 3, 5, -1, 7, -1, -1, -1, -1], np.int32)
RIGHT = np.array([2, 4, 6, -1, 8, -1, -1, -1, -1], np.int32)
VALUE = np.array([0.5, -1.0, 2.0, 4.0, 0.25, 3.0, -2.0, 8.0, 1.0])


@ut.function
def tree_sum(left, right, value, node: ut.i32) -> ut.f64:
    if left[node] < 0:
        return value[node]
    return value[node] + tree_sum(left, right, value, left[node]) + tree_sum(left, right, value, right[node])


@ut.function
def depth_of_captured(node: ut.i32) -> ut.i64:
    """The tree is no argument but a captured array, indexed by a traced value."""
    if LEFT[node] < 0:
        return 1
    return 1 + ut.maximum(depth_of_captured(LEFT[node]), depth_of_captured(RIGHT[node]))


_RNG = np.random.default_rng(7)
PARAMS = {"embed": _RNG.normal(size=(9, 4)), "W": _RNG.normal(size=(8, 4)) / 2.0, "b": _RNG.normal(size=4)}


@ut.function
def encode(params, left, right, node: ut.i32) -> ut.f64[4]:
    """The forward pass of a recursive neural network."""
    if left[node] < 0:
        return ut.tanh(params["embed"][node])
    both = ut.concat([encode(params, left, right, left[node]), encode(params, left, right, right[node])])
    return ut.tanh(both @ params["W"] + params["b"])


@ut.function
def encode_f32(params, left, right, node: ut.i32) -> tuple[ut.f32[3], ut.f32]:
    """The same in f32, with two results and a loss at every node."""
    leaf = ut.astype(params[node, :3], ut.f32)
    if left[node] < 0:
        return leaf, ut.sum(leaf * leaf)
    a, loss_a = encode_f32(params, left, right, left[node])
    b, loss_b = encode_f32(params, left, right, right[node])
    state = ut.tanh(a - b + leaf)
    return state, loss_a + loss_b + ut.sum(state * state)


@ut.function
def halves_sum(x: ut.f64[None]) -> ut.f64:
    """Divide and conquer: the sizes of the halves are known only at run time."""
    n = x.shape[0]
    if n == 0:
        return 0.0
    if n == 1:
        return x[0]
    return halves_sum(x[: n // 2]) + halves_sum(x[n // 2 :])


@ut.function
def halves_max(x) -> ut.i64:
    """Without an annotation the sizes are generalised at the recursive calls."""
    if len(x) == 1:
        return x[0]
    middle = len(x) // 2
    return max(halves_max(x[:middle]), halves_max(x[middle:]))


@ut.function
def merge_sort(x: ut.i64["n"]) -> ut.i64[None]:  # noqa: F821 - the name of a dimension
    n = x.shape[0]
    if n <= 1:
        return x
    return merge_sorted(merge_sort(x[: n // 2]), merge_sort(x[n // 2 :]))


@ut.function
def merge_sorted(a: ut.i64[None], b: ut.i64[None]) -> ut.i64[None]:
    if a.shape[0] == 0:
        return b
    if b.shape[0] == 0:
        return a
    if a[0] <= b[0]:
        return ut.concat([a[:1], merge_sorted(a[1:], b)])
    return ut.concat([b[:1], merge_sorted(a, b[1:])])


@ut.function
def transform(re: ut.f64[None], im: ut.f64[None]) -> tuple[ut.f64[None], ut.f64[None]]:
    """A fast Fourier transform: even and odd elements, two results that are arrays."""
    n = re.shape[0]
    if n == 1:
        return re, im
    even_re, even_im = transform(re[::2], im[::2])
    odd_re, odd_im = transform(re[1::2], im[1::2])
    angle = -2.0 * np.pi * ut.arange(n // 2) / n
    twist_re, twist_im = ut.cos(angle), ut.sin(angle)
    far_re, far_im = odd_re * twist_re - odd_im * twist_im, odd_re * twist_im + odd_im * twist_re
    return (ut.concat([even_re + far_re, even_re - far_re]), ut.concat([even_im + far_im, even_im - far_im]))


@ut.function
def matrix_power(a: ut.f64[2, 2], n: ut.i64) -> ut.f64[2, 2]:
    if n == 0:
        return ut.eye(2)
    half = matrix_power(a, n // 2)
    square = half @ half
    return square @ a if n % 2 == 1 else square


@ut.function
def growing(n: ut.i64) -> ut.i64[None]:
    """A result that grows with the depth, from a constant."""
    if n == 0:
        return ut.asarray([0])
    shorter = growing(n - 1)
    return ut.concat([shorter, shorter[-1:] + n])


@ut.function
def array_in_loop(x: ut.f64[3], n: ut.i64) -> ut.f64[3]:
    """Arrays as variables and as invariants of a loop, with branches on their elements."""
    y = ut.zeros(3)
    for k in range(n):
        if x[k % 3] > 0.5:
            y = y + x * k
        else:
            y = ut.flip(y) - 1.0
    return y


@ut.function
def numpy_names(x: ut.f64[None]) -> ut.f64:
    """NumPy's own functions on traced values."""
    return np.sum(np.sqrt(np.abs(x))) + np.maximum(x[0], 2.0)


PROGRAMS = [
    program(tree_sum, (LEFT, RIGHT, VALUE, 0), (LEFT, RIGHT, VALUE, 3), tags="recursive arrays"),
    program(depth_of_captured, (0,), (6,), tags="recursive arrays"),
    program(encode, (PARAMS, LEFT, RIGHT, 0), (PARAMS, LEFT, RIGHT, 5), tags="recursive arrays containers"),
    program(encode_f32, (PARAMS["embed"], LEFT, RIGHT, 0), tags="recursive arrays"),
    program(halves_sum, (np.zeros(0),), (np.arange(1.0),), (np.arange(11) * 0.5,), tags="recursive arrays"),
    program(halves_max, (np.array([3]),), (np.array([3, 9, -4, 8, 2, 9, 1]),), tags="recursive arrays"),
    program(merge_sort, (np.zeros(0, np.int64),), (np.array([5, 2, 9, -1, 2, 7, 0, 3]),), tags="recursive arrays"),
    program(transform, (np.array([1.0]), np.array([2.0])), (np.arange(8.0), np.ones(8)), tags="recursive arrays"),
    program(matrix_power, (np.array([[1.0, 1.0], [1.0, 0.0]]), 10), tags="recursive arrays"),
    program(growing, (0,), (6,), tags="recursive arrays"),
    program(array_in_loop, (np.array([0.1, 0.7, 0.9]), 0), (np.array([0.1, 0.7, 0.9]), 5), tags="loop arrays"),
    program(numpy_names, (np.array([-4.0, 9.0]),), tags="arrays"),
]
