"""Which operators act on the world, and which are functions of their operands alone, or of the tag."""

from __future__ import annotations

from undertow.ir.graph import Attrs
from undertow.ir.structure import SOWS, is_primitive
from undertow.ops.op import CATALOGUE

CHECKS = ("assert", "raise")  # what acts only where its first operand is false: by a fault


def acts(op: str) -> bool:
    """Does an operator act on the world, or on a collector? An unknown one might."""
    return op in SOWS or (is_primitive(op) and (op not in CATALOGUE or CATALOGUE[op].effect))


def is_stateful(op: str) -> bool:
    """Does it read or assign a variable?"""
    return op in CATALOGUE and CATALOGUE[op].state is not None


def variables_of(attrs: Attrs) -> tuple[str, ...]:
    """The variables that a state operator with these attributes reads or assigns."""
    several = attrs.get("targets")
    if isinstance(several, tuple):
        return tuple(str(name) for name in several)
    return (attrs.text("variable"),) if "variable" in attrs else ()


def assigns(op: str) -> bool:
    """Does it assign variables?"""
    return is_stateful(op) and CATALOGUE[op].effect


def is_tagged(op: str) -> bool:
    """Is its result a function of the tag? Then it stays in its activation: elsewhere, it is something else."""
    return op in CATALOGUE and CATALOGUE[op].tagged is not None


def is_pure(op: str) -> bool:
    """Do equal operands give equal results? (Random numbers too: they are functions of a key.)"""
    return op in CATALOGUE and not (CATALOGUE[op].effect or is_stateful(op) or is_tagged(op))
