"""`tf.ConfigProto` and its parts: settings that are accepted. Those that mean something are named in `Session`."""

from __future__ import annotations

from typing import Any

__all__ = ["ConfigProto", "GPUOptions", "GraphOptions", "OptimizerOptions"]


class Message:
    """A record with any fields: `config.gpu_options.allow_growth = True`."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, Message())

    def __bool__(self) -> bool:
        return bool(self.__dict__)

    def CopyFrom(self, other: Message) -> None:
        """Take all fields of another record."""
        self.__dict__.update(other.__dict__)

    MergeFrom = CopyFrom


class ConfigProto(Message):
    """Accepted, but only `allow_soft_placement` means something; use `Session(engine=...)` and `ut.options` instead."""


class GPUOptions(Message):
    """Accepted: there is no GPU."""


class GraphOptions(Message):
    """Accepted: how graphs are optimized is an option of runs."""


class OptimizerOptions(Message):
    """Accepted, likewise."""

    L0, L1 = -1, 0
    DEFAULT, OFF, ON_1, ON_2 = 0, -1, 1, 2


class RewriterConfig(Message):
    """Accepted, likewise."""

    DEFAULT, ON, OFF = 0, 1, 2
