"""Schedulers: the order of firings changes how many frames are alive at once. It never changes the result."""

import undertow as ut


@ut.function
def trees(n: ut.i64) -> ut.i64:
    """How many binary trees have n inner nodes?"""
    if n == 0:
        return 1
    total = 0
    for left in range(n):
        total += trees(left) * trees(n - 1 - left)
    return total


N = 6
runs = [("fifo", 0), ("lifo", 0), ("depth", 0), ("longest_path", 0), ("random", 1), ("random", 2), ("random", 3)]

print(f"trees({N}) in {len(runs)} orders\n")
print("order           result   firings   activations   frames at once   deepest tag")
counted = set()
for scheduler, seed in runs:
    result, stats = trees.run(N, scheduler=scheduler, schedule_seed=seed, stats=True)
    counted.add((int(result), stats.activations))
    name = f"{scheduler} {seed}" if scheduler == "random" else scheduler
    row = f"{name:12} {result:9} {stats.firings:9,} {stats.activations:13,} {stats.peak_frames:16,}"
    print(row, f"{len(stats.deepest_tag):13}")

# (The last few firings may differ: a run ends when its result is there, with whatever nobody waits for undone.)
assert len(counted) == 1
assert counted.pop()[0] == 132
