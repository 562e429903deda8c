"""All-reduce by `torch.distributed`, where it is installed and asked for: `DataParallel(..., reduce="torch")`.

Arrays on processors go by gloo. On GPUs it would be the same call on a group of NCCL. Sums are taken in an order that
depends on the number of workers, so bits do, too. Workers find each other by our own streams, so that nothing has to
listen for that; the connections that gloo makes then are not encrypted. Sparse rows go by the ring.
"""

from __future__ import annotations

import datetime
import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.errors import UndertowError
from undertow.frontend.values.rows import IndexedRows
from undertow.parallel.ring import Messages, Peer, all_reduce
from undertow.parallel.sums import add_up

Array = npt.NDArray[Any]

PATIENCE = 60.0  # seconds that gloo waits for a worker; one that ends is noticed at once


def the_torch() -> Any:
    """The package `torch.distributed`."""
    try:
        importlib.import_module("torch.distributed")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise UndertowError('reduce="torch" needs PyTorch on all workers', hint="pip install torch") from None
    return importlib.import_module("torch")


class Groups:
    """The group of processes of a worker, which is made anew when the ring changes."""

    def __init__(self) -> None:
        self._key: Any = None
        self._group: Any = None

    def all_reduce(
        self, stream: Messages, ring: Sequence[Peer], place: int, turn: int, host: str, shards: Sequence[list[Any]]
    ) -> list[Any]:
        """The sum of all shards' gradients. `turn` grows when a step has failed: then no group is used again."""
        total = add_up([[None if isinstance(leaf, IndexedRows) else leaf for leaf in shard] for shard in shards])
        if len(ring) > 1:
            group = self._of(stream, (tuple(ring), turn), place, host)
            by_dtype: dict[Any, list[int]] = {}
            for number, leaf in enumerate(total):
                if leaf is not None:
                    by_dtype.setdefault(leaf.dtype, []).append(number)
            for numbers in by_dtype.values():
                flat = np.concatenate([total[k].reshape(-1) for k in numbers])
                group.allreduce([the_torch().from_numpy(flat)]).wait()
                ends = np.cumsum([total[k].size for k in numbers])[:-1]
                for k, part in zip(numbers, np.split(flat, ends), strict=True):
                    total[k] = part.reshape(total[k].shape)
        sparse = [[leaf if isinstance(leaf, IndexedRows) else None for leaf in shard] for shard in shards]
        rows = all_reduce(stream, ring, place, sparse)
        return [leaf if row is None else row for leaf, row in zip(total, rows, strict=True)]

    def _of(self, stream: Messages, key: tuple[tuple[Peer, ...], int], place: int, host: str) -> Any:
        if self._key != key:
            self._group = None  # before the new one: it has sockets
            gloo = the_torch().distributed.ProcessGroupGloo
            if host.startswith("127."):
                os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            patience = datetime.timedelta(seconds=PATIENCE)
            self._group = gloo(_store(stream, key[0], place), place, len(key[0]), patience)
            self._key = key
        return self._group


def _store(stream: Messages, ring: Sequence[Peer], place: int) -> Any:
    """Where the members of a group tell each other where they listen, by a stream: one word of each."""

    class Store(the_torch().distributed.Store):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words: dict[str, bytes] = {}
            self.unheard = [peer for number, peer in enumerate(ring) if number != place]

        def set(self, key: str, value: Any) -> None:
            self.words[key] = value.encode() if isinstance(value, str) else bytes(value)
            for peer in (*ring[:place], *ring[place + 1 :]):
                stream.send(peer, [key.encode(), self.words[key]])

        def get(self, key: str) -> bytes:
            while key not in self.words and self.unheard:
                name, word = stream.receive(self.unheard.pop(0), PATIENCE)
                self.words[bytes(name).decode()] = bytes(word)
            return self.words[key]

        def wait(self, keys: Sequence[str], timeout: Any = None) -> None:
            for key in keys:
                self.get(key)

        def check(self, keys: Sequence[str]) -> bool:
            return all(key in self.words for key in keys)

        def has_extended_api(self) -> bool:
            return False

    return Store()
