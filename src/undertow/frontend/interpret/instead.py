"""What to write instead of a function or method that graphs do not have: the hints of errors."""

from __future__ import annotations

_OWN = "a function of your own, which may call itself"
# Functions of `math`, in terms of those that can be captured.
_MATH = {
    "cbrt": "np.sign(x) * abs(x) ** (1 / 3)",
    "copysign": "abs(x) if y >= 0 else -abs(x)",
    "erfc": "1 - math.erf(x)",
    "fmod": "abs(x) % abs(y) if x >= 0 else -(abs(x) % abs(y))",
    "fsum": "sum(values)",
    "gcd": "a if b == 0 else gcd(b, a % b)",
    "lcm": "a // gcd(a, b) * b",
    "ldexp": "x * 2.0 ** n",
    "remainder": "x - y * round(x / y)",
}
# Methods of Python's numbers.
_METHODS = {
    "as_integer_ratio": "compute with the float itself",
    "bit_count": "count the bits of abs(n) in a loop: `while n: n &= n - 1; count += 1`",
    "bit_length": "count the bits of abs(n) in a loop: `while n: n >>= 1; bits += 1`",
    "hex": "return the number, and write it as text in the caller",
    "is_integer": "write `x == math.floor(x)`",
    "to_bytes": "take bytes by arithmetic: `n >> 8 & 255`",
}


def instead_of_math(name: str) -> str:
    """The hint for a function of `math` that cannot be captured for traced values."""
    if name in ("gcd", "lcm"):
        return f"write {_OWN}: `{_MATH[name]}`"
    if name in _MATH:
        return f"write `{_MATH[name]}`"
    return "write it with functions that can be captured; docs/reference/language.md lists them"


def instead_of_method(name: str) -> str:
    """The hint for a method of Python's numbers that traced values do not have; empty if there is none."""
    return _METHODS.get(name, "")
