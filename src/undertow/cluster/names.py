"""What workers import: "module:name"."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from undertow.cluster.member import Member

SERVICES = "undertow.parallel.service:services"
GUESTS = "undertow.engines.waves.guests:Guests"


def load(name: str) -> Callable[[Member], Any] | None:
    """What "module:name" names."""
    if not name:
        return None
    module, _, attribute = name.partition(":")
    found: Callable[[Member], Any] = getattr(importlib.import_module(module), attribute)
    return found
