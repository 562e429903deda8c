"""Complex numbers at the public face: weak numbers, derivatives, files, variables, texts, options."""

from __future__ import annotations

import cmath
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut

TABLE = np.arange(40) * 1j  # more elements than graph text writes out


@ut.function
def scaled(x: ut.c128[None], k: complex = 2j) -> ut.c128:
    return (x * k + 1j).sum() + TABLE.sum()


@ut.function
def modulus(z: complex, n: int = 2) -> float:
    return abs(z**n + 1)


@ut.function
def cube(z: complex) -> complex:
    return z**3 + cmath.exp(z)


@pytest.mark.parametrize(
    ("x", "factor", "dtype"),
    [
        (np.float32(1), 1j, "complex64"),
        (np.float64(1), 1j, "complex128"),
        (np.int32(1), 1j, "complex128"),
        (np.complex64(1), 1j, "complex64"),
        (np.complex64(1), 2.5, "complex64"),
        (np.complex64(1), np.float64(2), "complex128"),
        (np.complex64(1), np.int64(2), "complex64"),
        (True, 1j, "complex128"),
        (1.5, 1j, "complex128"),
    ],
)
def test_dtypes_of_products(x: Any, factor: Any, dtype: str) -> None:
    def product(x: Any, factor: Any) -> Any:
        return x * factor

    assert ut.function(product)(x, factor).dtype == dtype
    assert np.asarray(ut.multiply(x, factor)).dtype == dtype


def test_a_complex_number_is_weak_and_a_new_value_needs_no_capture() -> None:
    @ut.function
    def f(x: Any, z: Any) -> Any:
        return x + z

    x = np.ones(2, np.float32)
    for z in (1j, 2j, -0.5 + 3j):
        assert f(x, z).dtype == np.complex64
        np.testing.assert_array_equal(f(x, z), x + np.complex64(z))
    assert str(f.graph(x, 1j)) == str(f.graph(x, 2j))  # the number is an argument
    assert f(x, np.complex128(1j)).dtype == np.complex128


def test_numbers_become_complex_where_that_is_annotated() -> None:
    @ut.function
    def turned(z: ut.c64) -> ut.c64:
        return z * 1j

    for value in (2, 2.0, 2 + 0j, np.float32(2), np.complex64(2)):
        assert turned(value) == 2j and turned(value).dtype == np.complex64
    with pytest.raises(ut.TypeMismatch, match="c64"):
        turned(np.complex128(2))


def test_derivatives() -> None:
    for order in (1, 2):
        ut.check_grads(modulus, (1 + 2j,), order=order)
        ut.check_grads(cube, (0.3 - 0.2j,), order=order)
        ut.check_grads(scaled, (np.array([1j, 2]), 1 - 1j), order=order)
    z = 1 + 1j
    value, slope = ut.jvp(cube, (z,), (1 + 0j,))
    assert value == pytest.approx(z**3 + cmath.exp(z)) and slope == pytest.approx(3 * z**2 + cmath.exp(z))
    _, back = ut.vjp(cube, z)
    assert back(1 + 0j)[0] == pytest.approx(slope)  # holomorphic: the same number both ways
    assert ut.grad(modulus)(z, 1) == pytest.approx(np.conj(z + 1) / abs(z + 1))
    assert ut.grad(modulus)(1j) == 0  # abs is flat at 0


def test_real_arguments_of_complex_functions_have_real_gradients() -> None:
    @ut.function
    def chance(angle: float, x: ut.f32[2]) -> ut.f64:
        return abs(cmath.exp(1j * angle) + 1) + (x * 1j).imag.sum()

    slopes = ut.grad(chance, argnums=(0, 1))(0.3, np.ones(2, np.float32))
    assert slopes[0].dtype == np.float64 and slopes[1].dtype == np.float32
    assert slopes[0] == pytest.approx(-np.sin(0.15)) and slopes[1].tolist() == [1, 1]


def test_variables() -> None:
    v = ut.Variable(np.array([1j, 2]), name="amplitudes")

    @ut.function
    def energy(x: float) -> float:
        return (abs(v.read() * x) ** 2).sum()

    @ut.function
    def move(z: complex) -> None:
        v.assign_add(z * np.ones(2))

    np.testing.assert_allclose(ut.grad(energy, variables=v)(2.0), 8 * np.conj([1j, 2]))
    move(1 - 1j)
    np.testing.assert_array_equal(v.read(), [1, 3 - 1j])


def test_optimizers_refuse_complex_gradients() -> None:
    params = {"w": np.ones(2, complex)}
    opt = ut.optim.SGD(0.1)
    with pytest.raises(ut.UndertowError) as caught:
        opt.update(params, opt.init({"w": np.ones(2)}), {"w": np.ones(2)})
    assert "1j * b" in caught.value.hint


def test_files(tmp_path: Path) -> None:
    x = np.array([1, 2j])
    wanted = scaled(x), scaled(x, complex(-0.0, float("inf")))
    assert scaled(x) == (x * 2j + 1j).sum() + TABLE.sum()
    ut.save(scaled, tmp_path / "scaled.ut")
    loaded = ut.load(tmp_path / "scaled.ut")
    assert loaded(x) == wanted[0]
    np.testing.assert_array_equal(loaded(x, complex(-0.0, float("inf"))), wanted[1])


def test_texts(capsys: pytest.CaptureFixture[str]) -> None:
    @ut.function
    def told(z: complex) -> str:
        print(z, [z])
        return f"{z} {z!r} {z:.2f} {z!s}"

    z = 1.5 - 2j
    assert told(z) == f"{z} {z!r} {z:.2f} {z!s}"
    assert capsys.readouterr().out == f"{z} {[z]}\n"


def test_check_finite() -> None:
    @ut.function
    def inverse(z: complex) -> complex:
        return 1 / z

    with pytest.raises(ut.Fault, match="divide returned nan"):
        inverse.run(0j, check_finite=True)


def test_maps_and_structures() -> None:
    @ut.function
    def parts(pair: Any) -> Any:
        return {"sum": pair[0] + pair[1].real, "conj": pair[1].conjugate()}

    found = parts.map((np.array([1.0, 2]), np.array([1j, 2 - 1j])))
    assert found["sum"].tolist() == [1, 4] and found["conj"].tolist() == [-1j, 2 + 1j]
    assert parts.map((np.zeros(0), np.zeros(0, complex)))["conj"].dtype == np.complex128
