"""Tags as hashes of 128 bits: what crosses between parts instead of a list of labels.

The hash of a tag is made of that of the tag around it and of its label, so a frame needs its parent's alone.

>>> child(ROOT, 1) == child(ROOT, 1), child(child(ROOT, 1), 2) == child(child(ROOT, 2), 1)
(True, False)
"""

from __future__ import annotations

_ALL = (1 << 64) - 1

Path = tuple[int, int]
ROOT: Path = (0x243F6A8885A308D3, 0x13198A2E03707344)  # digits of pi


def _mixed(x: int) -> int:
    """Every bit of the result depends on every bit of x (the end of MurmurHash3)."""
    x = (x ^ (x >> 33)) * 0xFF51AFD7ED558CCD & _ALL
    x = (x ^ (x >> 33)) * 0xC4CEB9FE1A85EC53 & _ALL
    return x ^ (x >> 33)


def child(parent: Path, site: int, index: int = -1) -> Path:
    """The tag with one more label: a site, with the number of the iteration or lane in loops and maps."""
    first = _mixed((parent[0] + site) & _ALL) ^ parent[1]
    second = _mixed((parent[1] + index + 1) & _ALL) ^ first
    return _mixed((first * 3 + second) & _ALL), _mixed((second * 5 + first) & _ALL)


def choice(tag: Path, salt: int, count: int) -> int:
    """One of `count` numbers, by the tag; other salts choose independently.

    >>> lanes = [choice(child(ROOT, 1, lane), 0, 2) for lane in range(1000)]
    >>> 450 < sum(lanes) < 550
    True
    """
    return _mixed(((tag[0] ^ tag[1]) + salt) & _ALL) % count
