"""How fast the kernels of the C++ core are, beside NumPy and OpenBLAS, in one run on one thread.

Element-wise kernels and reductions over columns that fit into the cache (GB/s of operands and results), small matrix
products for 1 to 512 lanes (Gflop/s), fused against separate operators. Best of several; results are checked first.
Usage: python benchmarks/kernels.py [--quick] [--seconds S] [--json FILE]
"""

import time

import common
import numpy as np

import undertow._core as core

RANDOM = np.random.default_rng(0)
LANES, WIDTH = 256, 100


def best(work, seconds: float) -> float:
    """The best time of one call of a Python function."""
    work()
    start = time.perf_counter()
    work()
    count = max(1, int(min(seconds / 20, 1e-3) / max(time.perf_counter() - start, 1e-9)))
    least, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            work()
        least = min(least, (time.perf_counter() - start) / count)
    return least


def column(dtype: str, *shape: int) -> np.ndarray:
    return (
        RANDOM.uniform(0.1, 2, shape).astype(dtype) if dtype[0] == "f" else RANDOM.integers(1, 9, shape).astype(dtype)
    )


NAMES = {"float32": "f32", "float64": "f64", "int64": "i64", "bool": "bool"}
SOFT = {"axes": (0,)}
SUM = {"axes": (0,), "keepdims": False}


def numpy_softmax(x: np.ndarray) -> np.ndarray:
    weights = np.exp(x - x.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def elementwise(seconds: float) -> list[dict]:
    table = [
        ("add", {}, 2, np.add), ("multiply", {}, 2, np.multiply), ("divide", {}, 2, np.divide),
        ("sqrt", {}, 1, np.sqrt), ("exp", {}, 1, np.exp), ("log", {}, 1, np.log), ("tanh", {}, 1, np.tanh),
        ("sigmoid", {}, 1, lambda x: 1 / (1 + np.exp(-x))), ("sin", {}, 1, np.sin), ("expm1", {}, 1, np.expm1),
        ("log1p", {}, 1, np.log1p), ("sum", SUM, 1, lambda x: x.sum(axis=1)),
        ("max", SUM, 1, lambda x: x.max(axis=1)), ("softmax", SOFT, 1, numpy_softmax),
    ]  # fmt: skip
    rows = []
    for dtype in ("float32", "float64"):
        for name, attrs, arity, function in table:
            inputs = [column(dtype, LANES, WIDTH) for _ in range(arity)]
            wanted = function(*inputs)
            out = [(NAMES[dtype], wanted.ndim - 1)]
            (got,) = core.run_kernel(name, attrs, inputs, [False] * arity, out)
            np.testing.assert_allclose(got, wanted, rtol=1e-4 if dtype == "float32" else 1e-12)
            ours = core.time_kernel(name, attrs, inputs, [False] * arity, out, seconds)
            theirs = best(lambda f=function, x=inputs: f(*x), seconds)
            size = sum(x.nbytes for x in inputs) + wanted.nbytes
            rows.append({"kernel": name, "dtype": dtype, "gb_per_s": size / ours / 1e9, "numpy": theirs / ours})
    table = [("add", np.add), ("floor_divide", np.floor_divide), ("less", np.less), ("where", None)]
    for name, function in table:
        inputs = [column("int64", LANES * WIDTH) for _ in range(2)]
        if name == "where":
            inputs, function = [inputs[0] > inputs[1], *inputs], np.where
        wanted = function(*inputs)
        out = [(NAMES[str(wanted.dtype)], 0)]
        shared = [False] * len(inputs)
        np.testing.assert_array_equal(core.run_kernel(name, {}, inputs, shared, out)[0], wanted)
        ours = core.time_kernel(name, {}, inputs, shared, out, seconds)
        theirs = best(lambda f=function, x=inputs: f(*x), seconds)
        size = sum(x.nbytes for x in inputs) + wanted.nbytes
        rows.append({"kernel": name, "dtype": "int64", "gb_per_s": size / ours / 1e9, "numpy": theirs / ours})
    return rows


def products(seconds: float) -> list[dict]:
    rows = []
    for k, n in ((100, 100), (200, 100), (450, 150)):
        w = column("float32", k, n)
        for lanes in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            x = column("float32", lanes, k)
            np.testing.assert_allclose(core.packed_product(x, w)[0], x @ w, rtol=1e-4)
            work = 2e-9 * lanes * k * n
            packed = core.time_product(x, w, False, False, seconds)
            wide = core.time_product(x, w, False, True, seconds)
            plain = core.time_kernel("matmul", {}, [x, w], [False, True], [("f32", 1)], seconds)
            g = column("float32", lanes, n)
            outer = core.time_outer(x, g, False, seconds)
            rows.append({"k": k, "n": n, "lanes": lanes, "gflops": work / packed, "unpacked": work / plain,
                         "openblas": work / wide, "outer": work / outer})  # fmt: skip
    return rows


# The element-wise part of a TreeLSTM node: gates of one row, cells of two children.
CELL = [
    ("sigmoid", [0], "f32"), ("sigmoid", [1], "f32"), ("sigmoid", [2], "f32"), ("tanh", [3], "f32"),
    ("multiply", [6, 9], "f32"), ("multiply", [7, 4], "f32"), ("multiply", [7, 5], "f32"), ("add", [10, 11], "f32"),
    ("add", [13, 12], "f32"), ("tanh", [14], "f32"), ("multiply", [8, 15], "f32"),
]  # fmt: skip


def fused(seconds: float) -> list[dict]:
    rows = []
    for lanes in (1, 16, 256, 2048):
        registers = [column("float32", lanes, 150) for _ in range(6)]
        ours = core.time_fused(CELL, registers, [False] * 6, [150], [14, 16], seconds)
        separate = 0.0
        for name, operands, dtype in CELL:
            inputs = [registers[k] for k in operands]
            shared = [False] * len(inputs)
            registers.append(core.run_kernel(name, {}, inputs, shared, [(dtype, 1)])[0])
            separate += core.time_kernel(name, {}, inputs, shared, [(dtype, 1)], seconds / 4)
        got = core.run_fused(CELL, registers[:6], [False] * 6, [150], [14, 16])
        np.testing.assert_array_equal(got[0], registers[14])
        np.testing.assert_array_equal(got[1], registers[16])
        rows.append({"lanes": lanes, "us": ours * 1e6, "separate_us": separate * 1e6})
    return rows


def main() -> None:
    parser = common.parser(__doc__, repeat=None)
    parser.add_argument("--seconds", type=float, default=0.05, help="how long to try each (default 0.05)")
    options = parser.parse_args()
    spent = options.seconds / 10 if options.quick else options.seconds
    print(f"instruction set: {core.isa()}; {LANES} lanes of {WIDTH} elements")
    first, second, third = elementwise(spent), products(spent), fused(spent)
    common.table(
        "Operators on each element, reductions", ["kernel", "dtype", "GB/s", "x NumPy"],
        [[row["kernel"], row["dtype"], f"{row['gb_per_s']:.1f}", f"{row['numpy']:.1f}"] for row in first],
    )  # fmt: skip
    common.table(
        "Products, f32, Gflop/s", ["k x n", "lanes", "packed", "as it is", "OpenBLAS", "ratio", "x.T @ g"],
        [[f"{row['k']} x {row['n']}", str(row["lanes"]), f"{row['gflops']:.1f}", f"{row['unpacked']:.1f}",
          f"{row['openblas']:.1f}", f"{row['gflops'] / row['openblas']:.2f}", f"{row['outer']:.1f}"]
         for row in second],
    )  # fmt: skip
    common.table(
        "A TreeLSTM cell, 11 operators", ["lanes", "fused µs", "separate µs", "ratio"],
        [[str(row["lanes"]), f"{row['us']:.2f}", f"{row['separate_us']:.2f}", f"{row['separate_us'] / row['us']:.2f}"]
         for row in third],
    )  # fmt: skip
    common.write(options.json, {"isa": core.isa(), "elementwise": first, "products": second, "fused": third})


if __name__ == "__main__":
    main()
