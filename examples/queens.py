"""Eight queens: how many ways are there to put n queens on a board so that none attacks another?

A loop inside a recursive function, and a call inside the loop. Bit k of each mask stands for column k.
"""

import undertow as ut


@ut.function
def place(free: ut.i64, left: ut.i64, right: ut.i64) -> ut.i64:
    """Ways to fill the remaining rows. `free`: columns without a queen; `left`, `right`: attacked along diagonals."""
    if free == 0:
        return 1
    ways = 0
    open_ = free & ~(left | right)
    while open_ != 0:
        queen = open_ & -open_  # the lowest bit that is set
        open_ = open_ ^ queen
        ways += place(free ^ queen, (left | queen) << 1, (right | queen) >> 1)
    return ways


KNOWN = {1: 1, 2: 0, 3: 0, 4: 2, 5: 10, 6: 4, 7: 40, 8: 92}

print("board   ways   activations   most frames at once   nodes in the graph")
for n, ways in KNOWN.items():
    result, stats = place.run((1 << n) - 1, 0, 0, scheduler="lifo", stats=True)
    assert result == ways
    size = len(place.graph(0, 0, 0))
    print(f"{n}x{n} {result:8} {stats.activations:13} {stats.peak_frames:21} {size:20}")
