"""Arguments that are computed by need: the callee needs them on some paths alone, so it computes them there.

Python computes all arguments of a call, and would never return from `factorial`. All else runs at once, as ever.
"""

import undertow as ut


@ut.function
def ite(condition, a, b):
    """If, then, else, as a function of one's own."""
    if condition:
        return a
    return b


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    return ite(n <= 1, 1, n * factorial(n - 1))


@ut.function
def search_up(n: ut.i64) -> ut.i64:
    """The first square that is no smaller; there is one, but not in all directions."""
    if n >= 0 and n % 7 == 0:
        return n
    return search_up(n + 1)


@ut.function
def search_down(n: ut.i64) -> ut.i64:
    """Never ends below zero."""
    if n >= 0 and n % 7 == 0:
        return n
    return search_down(n - 1)


@ut.function
def nearest(n: ut.i64) -> ut.i64:
    """The next multiple of seven; downwards only if there is one."""
    return ite(n < 7, search_up(n), search_down(n))


if __name__ == "__main__":
    assert factorial(10) == 3_628_800
    print(nearest.graph(3).late())
    for n in (3, 13):
        result, stats = nearest.run(n, stats=True)
        assert result == 7
        print(f"nearest({n}) is {result}, after {stats.activations} calls")
