"""Fit the parameters of a recursive function to data, by gradient descent.

A pond: every year the fish multiply, and part of the stock above 1 is caught. Given the stocks counted after some
years, find the growth rate and the share that is caught. How often the function calls itself, and on which side of
the branch, depends on the data; the gradient goes back the same way.
"""

import numpy as np

import undertow as ut


@ut.function
def stock(params, start: ut.f64, years: ut.i64) -> ut.f64:
    if years == 0:
        return start
    grown = stock(params, start, years - 1) * (1 + params["growth"])
    return grown - params["share"] * (grown - 1) if grown > 1 else grown


@ut.function
def loss(params, starts, years, counted):
    found = ut.map(stock, ut.shared(params), starts, years)
    return ut.mean((found - counted) ** 2)


random = np.random.default_rng(0)
starts, years = random.uniform(0.2, 2.0, size=12), random.integers(1, 8, size=12)
truth = {"growth": 0.3, "share": 0.6}
counted = stock.map(ut.shared(truth), starts, years)

step = ut.value_and_grad(loss)
params = {"growth": 0.1, "share": 0.1}
print("step      loss     growth    share")
for k in range(101):
    value, grads = step(params, starts, years, counted)
    if k % 20 == 0:
        print(f"{k:4} {value:9.1e} {params['growth']:10.4f} {params['share']:8.4f}")
    params = {name: params[name] - 0.1 * grads[name] for name in params}

assert all(abs(params[name] - truth[name]) < 1e-3 for name in truth)
_, stats = step.run(params, starts, years, counted, stats=True)
print(f"each step: {stats.activations} activations, for {years.sum()} years of {len(years)} ponds")
