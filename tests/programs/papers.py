"""The small programs that the papers explain themselves with, each under the section and figure where it stands."""

import numpy as np
from tests.programs.program import program

import undertow as ut

# --------------------------------------------------------------------------------------------------------------
# Kostopoulou's thesis, figure 1; Vasilakopoulos' thesis, figures 2.1, 2.2 and 2.6 to 2.8: the Pythagorean equation


@ut.function
def pyth(a: ut.f64, b: ut.f64) -> ut.f64:
    return np.sqrt(a * a + b * b)


@ut.function
def pyth_less_one() -> ut.f64:
    """Calls the function as an operator of a larger graph."""
    return pyth(3.0, 4.0) - 1.0


# --------------------------------------------------------------------------------------------------------------
# Kostopoulou et al., section 2.4, figures 2 and 3: the factorial as a set of graphs, with a definition of the result


@ut.function
def fact(n: ut.i64) -> ut.i64:
    if n == 1:
        return n
    return n * fact(n - 1)


@ut.function
def fact_and_five() -> ut.i64:
    return fact(3) + 5


# Section 2.3, figure 1: tags of nested loops are as long as the loops are nested; the tag [2, 3] is seen here


@ut.function
def loops_in_loops(outer: ut.i64, inner: ut.i64) -> ut.i64:
    total = 0
    i = 0
    while i < outer:
        j = 0
        while j < inner:
            total += 10 * i + j
            j += 1
        i += 1
    return total


# Section 5.1: "a program that has a while-loop inside of which a function is called", whose tags share one stack


@ut.function
def facts_in_a_loop(n: ut.i64) -> ut.i64:
    total = 0
    k = 1
    while k <= n:
        total += fact(k)
        k += 1
    return total


@ut.function
def loop_in_a_function(n: ut.i64) -> ut.i64:
    """And the other way round: each activation has a loop of its own, between two calls."""
    if n <= 0:
        return 1
    total = loop_in_a_function(n - 1)
    for k in range(n):
        total += k * total % 7
    return total + loop_in_a_function(n - 2)


# --------------------------------------------------------------------------------------------------------------
# Kostopoulou's thesis, sections 3.3 and 4.2, figure 5: two functions, the example of Yaghi's transformation


@ut.function
def g(y: ut.i64) -> ut.i64:
    return y


@ut.function
def f(x: ut.i64) -> ut.i64:
    return g(x + 1)


@ut.function
def f_twice() -> ut.i64:
    return f(4) + f(5)


# Figures 6 and 7: one call of a function that is not recursive, then two, whose results must not be mixed up


@ut.function
def plus_one(x: ut.i64) -> ut.i64:
    return x + 1


@ut.function
def one_call(x: ut.i64) -> ut.i64:
    return plus_one(x)


@ut.function
def two_calls(x: ut.i64, y: ut.i64) -> tuple[ut.i64, ut.i64]:
    return plus_one(x), plus_one(y)


# Figure 2: a branch decides which of two bodies runs


@ut.function
def taken(p: ut.bool, x: ut.i64) -> ut.i64:
    return x + 1 if p else fact(x)


# Section 8.1: functions that take functions


@ut.function
def iterate(function, times: ut.i64, x: ut.i64) -> ut.i64:
    return x if times == 0 else function(iterate(function, times - 1, x))


@ut.function
def functions_as_arguments(n: ut.i64):
    """Recursive functions among them; each is known where the call is written."""
    return iterate(fact, 2, n), iterate(lambda x: 3 * x + 1, 4, n)


# --------------------------------------------------------------------------------------------------------------
# Jeong et al., figures 1 and 2: the same network over a tree by iteration, over nodes in topological order with a table
# of states, and by recursion. Figure 3: unrolled by hand, as a graph that is made for this tree alone

LEFT = np.array([-1, -1, -1, 0, 3])
RIGHT = np.array([-1, -1, -1, 1, 2])
WORD = np.array([2, 0, 1, -1, -1])
EMBED = np.linspace(-1, 1, 6).reshape(3, 2)
WEIGHTS = np.linspace(-0.5, 0.7, 8).reshape(4, 2)


@ut.function
def cell(left: ut.f64[2], right: ut.f64[2]) -> ut.f64[2]:
    return np.tanh(np.concatenate([left, right]) @ WEIGHTS)


@ut.function
def by_recursion(idx: ut.i64) -> ut.f64[2]:
    if LEFT[idx] < 0:
        return EMBED[WORD[idx]]
    return cell(by_recursion(LEFT[idx]), by_recursion(RIGHT[idx]))


@ut.function
def by_iteration(leaves: ut.i64, nodes: ut.i64) -> ut.f64[2]:
    states = np.zeros((5, 2))
    for idx in range(leaves):
        states[idx] = EMBED[WORD[idx]]
    for idx in range(leaves, nodes):
        states[idx] = cell(states[LEFT[idx]], states[RIGHT[idx]])
    return states[nodes - 1]


@ut.function
def unrolled() -> ut.f64[2]:
    first, second, third = EMBED[2], EMBED[0], EMBED[1]
    return cell(cell(first, second), third)


@ut.function
def three_ways() -> ut.f64[3, 2]:
    return np.stack([by_recursion(4), by_iteration(3, 5), unrolled()])


PROGRAMS = [
    program(pyth_less_one, ()),
    program(pyth, (3.0, 4.0), (0.0, 0.0), tags="branch"),
    program(fact_and_five, ()),
    program(loops_in_loops, (2, 3), (3, 4), (0, 4), tags="loop"),
    program(facts_in_a_loop, (0,), (5,), tags="recursive loop"),
    program(loop_in_a_function, (0,), (4,), tags="recursive loop"),
    program(f_twice, (), tags="recursive"),
    program(one_call, (4,), tags="recursive"),
    program(two_calls, (4, 5), tags="recursive"),
    program(taken, (True, 5), (False, 5), tags="recursive branch"),
    program(functions_as_arguments, (3,), tags="recursive closure"),
    program(three_ways, (), tags="recursive loop arrays"),
]
