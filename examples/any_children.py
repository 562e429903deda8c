"""Trees whose nodes have any number of children: a map over the children, inside the recursive function.

The children of node i are `CHILDREN[FIRST[i]:FIRST[i + 1]]`. Their number is known only at run time and may be
zero; all of them run side by side.
"""

import numpy as np

import undertow as ut

#      0 ── 1 ── 4
#      ├─── 2
#      └─── 3 ── 5, 6, 7 ── 8
CHILDREN = np.array([1, 2, 3, 4, 5, 6, 7, 8])
FIRST = np.array([0, 3, 4, 4, 7, 7, 7, 7, 8, 8])
WEIGHT = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9])


@ut.function
def total(node: ut.i64) -> ut.i64:
    """The total weight of this node and all below it."""
    children = ut.asarray(CHILDREN)[FIRST[node] : FIRST[node + 1]]
    return WEIGHT[node] + ut.sum(ut.map(total, children))


@ut.function
def height(node: ut.i64) -> ut.i64:
    """The number of nodes on the longest path down."""
    children = ut.asarray(CHILDREN)[FIRST[node] : FIRST[node + 1]]
    if len(children) == 0:
        return 1
    return 1 + ut.max(ut.map(height, children))


assert total(0) == WEIGHT.sum()
assert total.map(range(9)).tolist() == [45, 7, 3, 34, 5, 6, 7, 17, 9]
assert height(0) == 4

print("node   weight   total below   height")
for node, below, tall in zip(range(9), total.map(range(9)), height.map(range(9)), strict=True):
    print(f"{node:4} {WEIGHT[node]:8} {below:13} {tall:8}")
