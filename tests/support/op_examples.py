"""Examples of every operator: operands and attributes that it takes, and some that are faults."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.ops import FAMILIES
from undertow.types import DTYPES

ROWS = {row.name: row for family in FAMILIES for row in family.ROWS}
INTS, FLOATS, COMPLEX = ("i32", "i64"), ("f32", "f64"), ("c64", "c128")
NUMBERS = INTS + FLOATS
ALL = ("bool", *NUMBERS)
SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3), (0,), (2, 0, 3)]
PAIRS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((), ()), ((3,), ()), ((), (2, 3)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((0,), (1,)), ((0, 3), (3,)),
]  # fmt: skip
Example = tuple[list[Any], dict[str, Any]]


def values_of(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Random numbers, small and never 0, so that no example faults; read-only, so that no kernel writes to them."""
    random = np.random.default_rng([seed, *shape, len(dtype)])
    if dtype == "bool":
        out = random.random(shape) < 0.5
    elif dtype in INTS:
        out = random.integers(1, 7, shape)
    else:
        out = random.uniform(0.1, 0.9, shape)
        out = out + 1j * random.uniform(0.1, 0.9, shape) if dtype in COMPLEX else out
    array = np.asarray(out, DTYPES[dtype].numpy)
    array.flags.writeable = False
    return array[()]


def matrices(dtype: str, *shape: int) -> Any:
    """Matrices that are positive definite where they are square, with eigenvalues that lie apart."""
    rows, columns = shape[-2:]
    found = 0.3 * values_of("f64", shape)
    found[..., range(min(rows, columns)), range(min(rows, columns))] += 1.5 + 1.8 * np.arange(min(rows, columns))
    found.flags.writeable = False
    return found.astype(DTYPES[dtype].numpy)


def unaries(*dtypes: str, **attrs: Any) -> list[Example]:
    return [([values_of(d, s)], attrs) for d in dtypes for s in SHAPES]


def binaries(*dtypes: str) -> list[Example]:
    return [([values_of(d, a), values_of(d, b, 1)], {}) for d in dtypes for a, b in PAIRS]


def shaped(*cases: tuple[tuple[int, ...], dict[str, Any]], dtypes: tuple[str, ...] = NUMBERS) -> list[Example]:
    return [([values_of(d, shape)], attrs) for d in dtypes for shape, attrs in cases]


def axes_cases(**more: Any) -> list[tuple[tuple[int, ...], dict[str, Any]]]:
    return [
        (shape, {"axes": axes, "keepdims": keep, **more})
        for shape, axes in [((), ()), ((3,), (0,)), ((2, 3), (1,)), ((2, 3), (0, 1)), ((2, 3), ()), ((0, 3), (1,))]
        for keep in (False, True)
    ]


def softmax_cases() -> list[tuple[tuple[int, ...], dict[str, Any]]]:
    return [((3,), {"axes": (0,)}), ((2, 3), {"axes": (0, 1)}), ((0, 3), {"axes": (0,)}), ((), {"axes": ()})]


def as_complex(value: Any, kinds: str) -> Any:
    """Numbers of these kinds as complex ones; others, indices and masks, as they are."""
    array = np.asarray(value)
    return np.asarray(array * (1 + 0.5j), np.complex128)[()] if array.dtype.kind in kinds else value


N = np.int64
KEY = N(7)
EXAMPLES: dict[str, list[Example]] = {
    **{name: binaries(*NUMBERS) for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "power")},
    **{name: binaries(*NUMBERS) for name in ("minimum", "maximum")},
    **{name: binaries(*FLOATS) for name in ("copysign", "nextafter")},
    **{name: unaries(*FLOATS) for name in ("cbrt", "erfc", "gamma", "lgamma")},
    "polygamma": [([DTYPES[d].numpy.type(n), values_of(d, s)], {}) for d in FLOATS for n in (0, 2) for s in SHAPES],
    "gcd": binaries(*INTS),
    "recurrence": [
        ([values_of(d, s), values_of(d, s, 1)], {"axis": a})
        for d in (*NUMBERS, *COMPLEX)
        for s, a in [((3,), 0), ((2, 3), 0), ((2, 3), 1), ((0,), 0), ((1,), 0)]
    ],
    **{name: binaries(*FLOATS) for name in ("divide", "atan2", "complex")},
    **{name: unaries(*COMPLEX) for name in ("real", "imag", "conj")},
    **{name: unaries(*NUMBERS) for name in ("negative", "abs", "sign", "square", "relu")},
    **{
        name: unaries(*FLOATS)
        for name in (
            "reciprocal", "floor", "ceil", "trunc", "round", "sqrt", "exp", "exp2", "expm1", "log",
            "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
            "tanh", "asinh", "acosh", "atanh", "erf", "isnan", "isinf", "isfinite", "sigmoid",
            "softplus",
        )
    },
    **{name: binaries(*ALL) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
    **{name: binaries("bool") for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: binaries("bool", *INTS) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{name: binaries(*INTS) for name in ("bitwise_left_shift", "bitwise_right_shift")},
    "within": [([values_of(d, a), np.abs(values_of(d, b, 1))], {}) for d in NUMBERS for a, b in PAIRS],
    "round_decimal": [
        ([values_of(d, s) * 1000, DTYPES[d].numpy.type(n)], {}) for d in FLOATS for s in SHAPES for n in (2, -2)
    ],
    "to_integer": [([values_of(d, s) * 1000] * 2, {}) for d in FLOATS for s in SHAPES],
    "logical_not": unaries("bool"),
    "bitwise_invert": unaries("bool", *INTS),
    "where": [
        ([values_of("bool", s), values_of(d, a), values_of(d, b, 1)], {})
        for d in ALL
        for s in ((), (3,))
        for a, b in PAIRS[:5]
    ],
    "cast": [case for to in ALL for case in unaries(*ALL, dtype=to)],
    "identity": unaries(*ALL),
    "stop_gradient": unaries(*ALL),
    **{name: shaped(*axes_cases()) for name in ("sum", "prod")},
    **{name: shaped(*axes_cases()) for name in ("max", "min")},
    **{name: shaped(*axes_cases(), dtypes=("bool",)) for name in ("any", "all")},
    "logsumexp": shaped(*axes_cases(), dtypes=FLOATS),
    "softmax": shaped(*softmax_cases(), dtypes=FLOATS),
    "log_softmax": shaped(*softmax_cases(), dtypes=FLOATS),
    **{
        name: shaped(*[((2, 3), {"axis": a, "keepdims": k}) for a in (0, 1) for k in (False, True)])
        for name in ("argmax", "argmin")
    },
    "cumsum": shaped(((3,), {"axis": 0}), ((2, 3), {"axis": 0}), ((0,), {"axis": 0})),
    "prod_others": shaped(((3,), {"axis": 0}), ((2, 3), {"axis": 1}), ((2, 1, 3), {"axis": 1}), ((2, 0), {"axis": 1})),
    **{
        name: shaped(*[((2, 3), {"axis": a, "descending": d}) for a in (0, 1) for d in (False, True)])
        for name in ("sort", "argsort")
    },
    "fft": shaped(((2, 3), {"axis": 0, "inverse": False}), ((8,), {"axis": 0, "inverse": True}), dtypes=COMPLEX),
    "matmul": [
        ([values_of(d, a), values_of(d, b)], {})
        for d in NUMBERS
        for a, b in [
            ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((5, 2, 3), (3,)),
            ((1, 2, 3), (5, 3, 4)), ((3,), (5, 3, 4)), ((0, 3), (3, 2)), ((2, 0), (0, 3)),
        ]
    ],
    "solve": [
        ([matrices(d, *a), values_of(d, b)], {})
        for d in FLOATS
        for a, b in [((3, 3), (3, 2)), ((2, 1, 2, 2), (2, 1, 2, 3)), ((1, 1), (1, 0)), ((0, 2, 2), (0, 2, 1))]
    ],
    **{
        name: [([matrices(d, *shape)], {}) for d in FLOATS for shape in [(3, 3), (2, 1, 2, 2), (1, 1), (0, 2, 2)]]
        for name in ("slogdet", "cholesky")
    },
    "eigh": [
        ([matrices(d, *shape)], {"lower": lower})
        for d in FLOATS
        for shape in [(3, 3), (2, 1, 2, 2), (1, 1), (0, 2, 2)]
        for lower in (True, False)
    ],
    "qr": [([matrices(d, *s)], {}) for d in FLOATS for s in [(3, 3), (4, 2), (2, 1, 3, 1), (0, 2, 2), (2, 0)]],
    "svd": [([matrices(d, *s)], {}) for d in FLOATS for s in [(3, 3), (4, 2), (2, 3), (2, 1, 2, 2), (0, 2, 2)]],
    "pinv": [
        ([matrices(d, *s), DTYPES[d].numpy.type(1e-4)], {})
        for d in FLOATS
        for s in [(3, 3), (4, 2), (2, 3), (2, 1, 2, 2), (0, 2, 2)]
    ],
    "reshape": [
        ([values_of("f32", a), *sizes], {"shape": b})
        for a, b, sizes in [
            ((6,), (2, 3), []), ((2, 3), (-1,), []), ((2, 3), (3, -1), []), ((), (1, 1), []), ((1,), (), []),
            ((0, 3), (3, 0), []), ((2, 3), (None, 2), [N(3)]), ((2, 3), (None, -1), [np.int32(1)]), ((0,), (-1, 5), []),
        ]
    ],
    "broadcast_to": [
        ([values_of("i32", a), *sizes], {"shape": b})
        for a, b, sizes in [
            ((), (2, 3), []), ((3,), (2, 3), []), ((1, 3), (2, 3), []), ((3,), (None, 3), [N(2)]), ((), (), []),
            ((1,), (0,), []), ((1, 1), (None, None), [N(2), N(0)]),
        ]
    ],
    "sum_to": [
        ([values_of(d, a), *sizes], {"shape": b})
        for d in NUMBERS
        for a, b, sizes in [
            ((2, 3), (), []), ((2, 3), (3,), []), ((2, 3), (2, 1), []), ((4, 2, 3), (1, 3), []), ((3,), (3,), []),
            ((2, 3), (None, 3), [N(1)]), ((2, 3), (None, None), [N(2), N(3)]), ((0, 3), (1, 3), []),
            ((0,), (None,), [N(0)]),
        ]
    ],
    "transpose": shaped(((), {"axes": ()}), ((2, 3), {"axes": (1, 0)}), ((2, 3, 4), {"axes": (2, 0, 1)}), dtypes=ALL),
    "expand_dims": shaped(((), {"axes": (0,)}), ((2, 3), {"axes": (0, 3)}), ((3,), {"axes": (1,)}), dtypes=ALL),
    "squeeze": shaped(((1,), {"axes": (0,)}), ((1, 3, 1), {"axes": (2,)}), ((1, 1), {"axes": (0, 1)})),
    "flip": shaped(((3,), {"axes": (0,)}), ((2, 3), {"axes": (0, 1)}), ((), {"axes": ()})),
    "dim": shaped(((3,), {"axis": 0}), ((2, 0), {"axis": 1})),
    "concat": [
        ([values_of(d, a), values_of(d, b)], {"axis": axis})
        for d in ALL
        for a, b, axis in [((3,), (2,), 0), ((2, 3), (2, 1), 1), ((0, 3), (2, 3), 0)]
    ],
    "stack": [([values_of(d, s)] * 2, {"axis": axis}) for d in ALL for s, axis in [((), 0), ((2, 3), 1), ((2, 3), 2)]],
    "slice": shaped(
        ((5,), {"starts": (1,), "stops": (None,), "steps": (None,)}),
        ((5,), {"starts": (None,), "stops": (-2,), "steps": (2,)}),
        ((5, 4), {"starts": (None, 3), "stops": (0, None), "steps": (None, -1)}),
    ),
    "slice_at": [([values_of("f64", (5, 4)), N(k)], {"axis": a, "size": 2}) for a in (0, 1) for k in (0, 1, -2)],
    "slice_between": [
        ([values_of("f64", (5, 4)), N(a), N(b)], {"axis": axis, "step": step})
        for a, b, step in [(0, 2, 1), (1, 99, 2), (-2, 99, 1), (4, -99, -1), (3, 1, 1)]
        for axis in (0, 1)
    ],
    "index": [
        ([values_of(d, (2, 3)), *indices], {"axes": axes})
        for d in ALL
        for axes, indices in [((0,), [N(1)]), ((1,), [np.int32(-1)]), ((0, 1), [N(0), N(2)]), ((), [])]
    ],
    "take": [
        ([values_of("f32", (4, 3)), np.asarray(i, t)], {"axis": axis})
        for axis in (0, 1)
        for t in (np.int32, np.int64)
        for i in (1, [0, -1, 2, 2], [[0], [1]], [])
    ],
    "compress": [
        ([values_of(d, shape), np.asarray(mask, bool)], {"axis": axis})
        for d in ALL
        for shape, mask, axis in [
            ((5,), [1, 0, 0, 1, 1], 0), ((4, 3), [0, 1, 1, 0], 0), ((2, 3), [1, 0, 1], 1), ((0, 2), [], 0),
            ((2,), [0, 0], 0),
        ]
    ],
    "take_along_axis": [
        ([values_of("f32", (2, 3)), np.array([[0, 2], [-1, 1]])], {"axis": 1}),
        ([values_of("f32", (2, 3)), np.array([[0, 1, -1]])], {"axis": 0}),
    ],
    "scatter_add": [
        ([values_of(d, (4, 3)), np.asarray(i), values_of(d, shape)], {"axis": axis})
        for d in NUMBERS
        for i, shape, axis in [(1, (3,), 0), ([0, 2, 2], (3, 3), 0), ([[0], [1]], (4, 2, 1), 1)]
    ],
    "add_along_axis": [
        ([values_of(d, (2, 3)), np.asarray(i), values_of(d, np.shape(i))], {"axis": axis})
        for d in NUMBERS
        for i, axis in [([[0, 2], [-1, -1]], 1), ([[0, 1, -1]], 0), ([[], []], 1)]
        for i in [np.asarray(i, np.int64)]
    ],
    "put": [
        ([values_of(d, (2, 3)), values_of(d, shape), *indices], {"axes": axes})
        for d in ALL
        for axes, shape, indices in [
            ((0,), (3,), [N(1)]), ((1,), (2,), [np.int32(-1)]), ((0, 1), (), [N(0), N(2)]), ((), (2, 3), []),
        ]
    ],
    "put_slice": [
        ([values_of(d, (5, 3)), values_of(d, part)], {"starts": starts, "stops": stops, "steps": steps})
        for d in ALL
        for part, starts, stops, steps in [
            ((4, 3), (1, None), (None, None), (None, None)),
            ((2, 2), (None, 2), (-2, None), (2, -2)),
            ((0, 3), (3, None), (3, None), (None, None)),
        ]
    ],
    "put_between": [
        ([values_of(d, (5, 3)), values_of(d, part), N(start), np.int32(stop)], {"axis": axis, "step": step})
        for d in ALL
        for part, start, stop, axis, step in [((2, 3), 1, 3, 0, 1), ((5, 2), -1, 0, 1, -1), ((0, 3), 4, 2, 0, 1)]
    ],
    "put_rows": [
        ([values_of(d, (4, 3)), values_of(d, shape), np.asarray(i, np.int64)], {"axis": axis})
        for d in ALL
        for i, shape, axis in [([0, -1, 2, 2], (4, 3), 0), ([1, 0], (4, 2), 1), ([], (0, 3), 0)]
    ],
    "unslice": [
        ([values_of(d, a), *sizes], {"starts": starts, "stops": stops, "steps": steps, "shape": shape})
        for d in NUMBERS
        for a, shape, sizes, starts, stops, steps in [
            ((4,), (5,), [], (1,), (None,), (None,)),
            ((2,), (None,), [N(5)], (None,), (-2,), (2,)),
            ((0, 4), (None, 4), [N(5)], (None, 3), (0, None), (None, -1)),
            ((), (), [], (), (), ()),
        ]
    ],
    "fill": [
        ([values_of(d, ()), *sizes], {"shape": shape})
        for d in ALL
        for shape, sizes in [((), []), ((2, 3), []), ((None, 2), [N(3)]), ((None,), [N(0)])]
    ],
    "arange": [
        ([dtype(a), dtype(b), dtype(c)], {})
        for dtype in (np.int32, np.int64, np.float32, np.float64)
        for a, b, c in [(0, 5, 1), (5, 0, 1), (5, 0, -2), (2, 9, 3)]
    ],
    "fold_in": [([KEY, N(1)], {}), ([KEY, np.arange(3)], {}), ([np.arange(2)[:, None], np.arange(3)], {})],
    **{
        name: [
            ([KEY, *sizes], {"shape": shape, "dtype": dtype})
            for dtype in dtypes
            for shape, sizes in [((), []), ((3,), []), ((None, 2), [N(3)]), ((0,), [])]
        ]
        for name, dtypes in [("random_bits", INTS), ("random_uniform", FLOATS), ("random_normal", FLOATS)]
    },
    "print": [([N(1), values_of("f32", (2,))], {"template": "{} {}"}), ([], {"template": "hello"})],
    "raise": [([np.True_], {"template": "", "error": "ValueError"})],
    "assert": [([np.True_], {"template": ""}), ([np.array([True, True]), N(1)], {"template": "{}"})],
}  # fmt: skip


# Operators that take complex numbers too, on these; `unit/core/test_complex_kernels.py` and
# `unit/ops/test_complex_rows.py` have tolerances and differences of their own.
OF_COMPLEX: dict[str, list[Example]] = {
    **{name: binaries(*COMPLEX) for name in ("add", "subtract", "multiply", "divide", "power", "equal", "not_equal")},
    **{
        name: unaries(*COMPLEX)
        for name in (
            "negative", "abs", "square", "reciprocal", "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p",
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "isnan",
            "isinf", "isfinite", "real", "imag", "conj", "identity",
        )
    },
    "complex": binaries(*FLOATS),
    "fft": shaped(
        *[((2, 3), {"axis": a, "inverse": i}) for a in (0, 1) for i in (False, True)],
        *[((n,), {"axis": 0, "inverse": False}) for n in (1, 4, 60, 17, 97)], dtypes=COMPLEX,
    ),
    "matmul": [
        ([values_of(d, a), values_of(d, b)], {})
        for d in COMPLEX
        for a, b in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((5, 2, 3), (3, 4)), ((1, 2, 3), (5, 3, 4))]
    ],
    "cast": [case for to in COMPLEX for case in unaries(*ALL, *COMPLEX, dtype=to)] + unaries(*COMPLEX, dtype="bool"),
    "where": [
        ([values_of("bool", (3,)), values_of(d, a), values_of(d, b, 1)], {}) for d in COMPLEX for a, b in PAIRS[:5]
    ],
    **{name: shaped(*axes_cases(), dtypes=COMPLEX) for name in ("sum", "prod")},
    **{
        name: shaped(((3,), {"axis": 0}), ((2, 3), {"axis": 0}), ((0,), {"axis": 0}), dtypes=COMPLEX)
        for name in ("cumsum", "prod_others")
    },
    **{
        name: [
            ([as_complex(v, "f" if k else "fi") for k, v in enumerate(values)], attrs)
            for values, attrs in EXAMPLES[name]
            if np.asarray(values[0]).dtype.kind == "f" or name in ("broadcast_to", "take_along_axis")
        ]
        for name in (
            "sum_to", "reshape", "broadcast_to", "transpose", "expand_dims", "squeeze", "flip", "concat", "stack",
            "slice", "slice_at", "slice_between", "index", "take", "take_along_axis", "compress", "scatter_add",
            "add_along_axis", "unslice", "put", "put_slice", "put_between", "put_rows", "fill",
        )
    },
}  # fmt: skip

A3, A4 = np.ones(3), np.ones(4)
FAULTS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("floor_divide", [N(1), N(0)], {}),
    ("floor_divide", [np.arange(3), np.arange(3)], {}),
    ("remainder", [np.int32(1), np.int32(0)], {}),
    ("power", [N(2), N(-1)], {}),
    ("power", [N(2), np.array([1, -1])], {}),
    ("bitwise_left_shift", [N(1), N(-1)], {}),
    ("bitwise_right_shift", [N(1), np.array([0, -1])], {}),
    ("within", [N(1), np.array([0, -1])], {}),
    ("within", [np.float64(1.0), np.array([0.0, -1.0])], {}),
    ("max", [np.zeros(0)], {"axes": (0,), "keepdims": False}),
    ("min", [np.zeros((2, 0))], {"axes": (1,), "keepdims": False}),
    ("argmax", [np.zeros(0)], {"axis": 0, "keepdims": False}),
    ("argmin", [np.zeros((2, 0))], {"axis": 1, "keepdims": True}),
    ("add", [A3, A4], {}),
    ("less", [A3, A4], {}),
    ("complex", [A3, A4], {}),
    ("fft", [np.zeros(0, np.complex128)], {"axis": 0, "inverse": False}),
    ("equal", [A3, A4], {}),
    ("where", [A3 > 0, A3, A4], {}),
    ("matmul", [A3, A4], {}),
    ("solve", [np.ones((2, 2)), np.ones((2, 1))], {}),
    ("solve", [np.ones((2, 3)), np.ones((2, 1))], {}),
    ("solve", [np.eye(2), np.ones((3, 1))], {}),
    ("slogdet", [np.ones((2, 3))], {}),
    ("cholesky", [-np.eye(2)], {}),
    ("qr", [np.ones((2, 3))], {}),
    ("eigh", [np.full((2, 2), np.nan)], {"lower": True}),
    ("svd", [np.full((2, 3), np.inf)], {}),
    ("pinv", [np.full((2, 3), np.nan), np.float64(0.1)], {}),
    ("recurrence", [A3, A4], {"axis": 0}),
    ("concat", [np.ones((2, 3)), np.ones((2, 4))], {"axis": 0}),
    ("stack", [A3, A4], {"axis": 0}),
    ("fold_in", [np.arange(3), np.arange(4)], {}),
    ("reshape", [A3], {"shape": (4,)}),
    ("reshape", [A3, N(-1)], {"shape": (None,)}),
    ("reshape", [A3], {"shape": (2, -1)}),
    ("broadcast_to", [A3, N(4)], {"shape": (None,)}),
    ("broadcast_to", [A3], {"shape": (1,)}),
    ("sum_to", [A3, N(2)], {"shape": (None,)}),
    ("sum_to", [A3, N(-1)], {"shape": (None,)}),
    ("squeeze", [A3], {"axes": (0,)}),
    ("slice_at", [A3, N(2)], {"axis": 0, "size": 2}),
    ("slice_at", [A3, N(-4)], {"axis": 0, "size": 1}),
    ("index", [A3, N(3)], {"axes": (0,)}),
    ("index", [A3, N(-4)], {"axes": (0,)}),
    ("take", [A3, np.array([0, 3])], {"axis": 0}),
    ("take", [A3, N(-4)], {"axis": 0}),
    ("compress", [A3, np.array([True, False])], {"axis": 0}),
    ("take_along_axis", [A3, np.array([3])], {"axis": 0}),
    ("take_along_axis", [np.ones((2, 3)), np.zeros((3, 1), int)], {"axis": 1}),
    ("scatter_add", [A3, np.array([3]), np.ones(1)], {"axis": 0}),
    ("scatter_add", [A3, np.array([0]), np.ones(2)], {"axis": 0}),
    ("add_along_axis", [A3, np.array([3]), np.ones(1)], {"axis": 0}),
    ("add_along_axis", [A3, np.array([0]), np.ones(2)], {"axis": 0}),
    ("add_along_axis", [np.ones((2, 3)), np.zeros((1, 1), int), np.ones((1, 1))], {"axis": 1}),
    ("put", [A3, np.float64(1), N(3)], {"axes": (0,)}),
    ("put_slice", [A3, np.ones(2)], {"starts": (0,), "stops": (1,), "steps": (None,)}),
    ("put_between", [A3, np.ones(2), N(0), N(1)], {"axis": 0, "step": 1}),
    ("put_rows", [A3, np.ones(1), np.array([3])], {"axis": 0}),
    ("put_rows", [A3, np.ones(2), np.array([0])], {"axis": 0}),
    ("unslice", [A3, N(5)], {"shape": (None,), "starts": (3,), "stops": (None,), "steps": (None,)}),
    ("unslice", [A3, N(2**40)], {"shape": (None,), "starts": (3,), "stops": (None,), "steps": (None,)}),
    ("fill", [N(1), N(-1)], {"shape": (None,)}),
    ("fill", [N(1), N(2**20), N(2**20)], {"shape": (None, None)}),
    ("arange", [N(0), N(1), N(0)], {}),
    ("arange", [N(0), N(2**62), N(1)], {}),
    ("arange", [np.float64(0), np.float64(np.inf), np.float64(1)], {}),
    ("arange", [np.float64(0), np.float64(np.nan), np.float64(1)], {}),
    ("random_uniform", [KEY, N(-1)], {"shape": (None,), "dtype": "f32"}),
    ("print", [A3], {"template": "{:.2f}"}),
    ("assert", [np.False_], {"template": "no"}),
    ("raise", [np.False_, N(3)], {"template": "n is {}", "error": "KeyError"}),
    ("to_integer", [np.float64(np.nan)] * 2, {}),
    ("to_integer", [np.array([1.0, -1e300])] * 2, {}),
    ("assert", [np.array([True, False]), N(3)], {"template": "n is {}"}),
]
