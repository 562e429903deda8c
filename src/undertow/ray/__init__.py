"""Runs on the workers of a Ray cluster: on this machine, or on several. The extra `ray` brings what it needs."""

from typing import TYPE_CHECKING, Any

from undertow.elsewhere import unknown_name
from undertow.parallel.trainer import DataParallel
from undertow.ray.clusters import Cluster, cluster, connect
from undertow.tracebacks import boundary

__all__ = ["Cluster", "DataParallel", "cluster", "connect"]


if not TYPE_CHECKING:  # for a checker, a module with `__getattr__` would have every name

    @boundary
    def __getattr__(name: str) -> Any:
        raise unknown_name("ut.ray", name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)
