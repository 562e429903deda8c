"""The reference manual of the operators, written from the catalogue.

`python -m undertow.ops.manual > docs/reference/ops.md` brings the file up to date.
"""

from __future__ import annotations

import inspect

from undertow.ops import FAMILIES
from undertow.ops.gradient import NoGradient, zero_gradient
from undertow.ops.op import Op

_HEAD = """\
# Operators

<!-- Written by `python -m undertow.ops.manual > docs/reference/ops.md`; do not edit. -->

Every computing operator is one row of `undertow.ops`: a type rule, a reference kernel, and this line. Operands
are x, y, ... in order unless a row names them; a name in `code` is an attribute, fixed when the graph is made.
*Faults* means that the operator can fail at run time because of its operands' values; any operator can where
shapes known only at run time do not fit. *Gradient* says whether floats can be differentiated by floats, to any
order, backwards and forwards: *zero* is that of a piecewise constant function; the cell is empty where no float
output depends on a float operand. *Also* lists what else maps to the operator on traced values, besides the
functions of `ut` and NumPy with its name: operators, methods and functions of Python and NumPy, and, as `tf`, the
names that it has in `undertow.compat.v1`.
"""


def _gradient(row: Op) -> str:
    if isinstance(row.grad, NoGradient):
        return f"no: {row.grad.reason}" if row.grad.reason else ""
    return "zero" if row.grad is zero_gradient else "yes"


def manual() -> str:
    """The text of docs/reference/ops.md."""
    parts = [_HEAD.rstrip()]
    for family in FAMILIES:
        name = family.__name__.rsplit(".", 1)[-1]
        parts.append(f"\n## {name}\n\n{inspect.getdoc(family)}\n")
        parts.append(
            "| operator | operands | meaning | gradient | faults | effect | also |\n|---|---|---|---|---|---|---|"
        )
        for row in family.ROWS:
            operands = "any" if row.arity is None else str(row.arity)
            doc = row.doc.replace("|", "\\|")
            faults, effect = ("yes" if flag else "" for flag in (row.faults, row.effect))
            also = ", ".join(f"`{name}`" for name in row.also.split())
            parts.append(f"| `{row.name}` | {operands} | {doc} | {_gradient(row)} | {faults} | {effect} | {also} |")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    print(manual(), end="")  # noqa: T201 - the output is the file
