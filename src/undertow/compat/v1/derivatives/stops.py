"""Tensors that a gradient takes for constants: `tf.gradients(ys, xs, stop_gradients=...)`.

What leads from them to the ys is written a second time, from copies of the tensors that nothing leads to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Tensor
from undertow.errors import GraphError
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.traced import emit
from undertow.ir.graph import Operand, Port
from undertow.ops.effects import acts
from undertow.passes.markers.paths import ancestors, descendants


def cut_off(builder: Builder, ys: Sequence[Tensor], stops: Collection[Port]) -> dict[Port, Port]:
    """For the ports between these tensors and the ys, those of the copies; the tensors are leaves of it."""
    needed = ancestors(builder.nodes, [y.port for y in ys])
    between = sorted(descendants(builder.nodes, stops) & needed)
    copies: dict[Port, Port] = {}
    for port in stops:
        constant = emit("stop_gradient", [Tensor(builder, port)])[0]
        copies[port] = emit("identity", [constant])[0].port
    for number in between:
        node = builder.nodes[number]
        if node.region or node.op in ("switch", "merge") or acts(node.op):
            raise GraphError(
                f"stop_gradients does not go through a tf.cond, nor through what acts: `{node.name}`",
                here(),
                hint="use tf.stop_gradient(x) where x is used",
            )

        def copied(operand: Operand) -> Operand:
            return copies.get(operand, operand) if isinstance(operand, Port) else operand

        inputs = tuple(copied(operand) for operand in node.inputs)
        fresh = builder.add(node.op, inputs, node.types, node.attrs, node.span, node.short_name, node.controls)
        for k in range(len(node.types)):
            copies.setdefault(Port(number, k), Port(fresh, k))
    return copies
