"""Mutual recursion: Hofstadter's female and male sequences, each defined by calls of the other, in one static graph."""

import undertow as ut


@ut.function
def female(n: ut.i64) -> ut.i64:
    if n == 0:
        return 1
    return n - male(female(n - 1))


@ut.function
def male(n: ut.i64) -> ut.i64:
    if n == 0:
        return 0
    return n - female(male(n - 1))


females = female.map(range(13))
males = male.map(range(13))
assert females.tolist() == [1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6, 7, 8]
assert males.tolist() == [0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7, 7]
print("female:", *females)
print("male:  ", *males)

graph = female.graph(0)
print(f"\nBoth bodies stand once in a graph of {len(graph)} nodes. Its call sites, the labels on tags:")
for number, site in enumerate(graph.static.sites, start=1):
    print(f"  {number}  {site.label}")
