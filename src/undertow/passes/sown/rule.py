"""The derivative of a collector: its call is made again, in a copy that weighs what is sown by a cotangent of it.

Of y, z = reap f(x), with cotangents dy and dz, that of x is the gradient of f'(x, dz), which gives y and the inner
product of z with dz: a number, added up along the calls. Nothing of the size of z goes back through them. It is a rule
for reverse mode (ir/custom.py), so it is written down here and costs nothing where no derivative needs it; and it can
be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from undertow.errors import CaptureError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.implied import param_node, start_node
from undertow.ir.names import Names
from undertow.ir.sown import reaps
from undertow.ir.walk import device_attr, entered_by, reachable
from undertow.ops.effects import assigns
from undertow.passes.derive.writer import DerivativeWriter
from undertow.types import CTL, Type, i64


def with_rules(
    functions: Mapping[str, FunctionGraph], name: str, taken: Names, weighed: Callable[[str, Type], str]
) -> dict[str, FunctionGraph]:
    """A graph whose collectors are calls of graphs of their own, with a rule; and these graphs."""
    graph = functions[name]
    collectors, copy = reaps(graph), Copy(graph)
    made: dict[str, FunctionGraph] = {}
    for number, node in enumerate(graph.nodes):
        if number in collectors:
            reap = graph.nodes[collectors[number]]
            _refuse_effects(functions, node, reap)
            outlined = _Outlined(functions, node, reap, taken.fresh(f"{node.attrs.text('callee')}.reap"), weighed)
            made[outlined.name] = outlined.make()
            types = (*node.types, reap.types[0])
            attrs = Attrs(callee=outlined.name, **device_attr(node))
            call = replace(node, inputs=(*node.inputs, reap.inputs[1]), types=types, attrs=attrs)
            copy.add(number, call)
            copy.ports[Port(collectors[number])] = copy.ports[Port(number, len(node.types))]
        elif node.op != "reap":
            copy.add(number)
    return {name: copy.freeze(), **made}


def _refuse_effects(functions: Mapping[str, FunctionGraph], call: Node, reap: Node) -> None:
    names = reachable([call.attrs.text("callee")], lambda name: entered_by(functions[name]))
    for node in (node for name in names for node in functions[name].nodes):
        if node.op == "print" or assigns(node.op):
            raise CaptureError(
                f"a derivative goes through `ut.reap` of a function that has a `{node.op}`: it would act twice",
                reap.span,
                hint="move that out of the function",
            )


class _Outlined:
    """A graph of one collector: its call, its `reap`, and its rule."""

    def __init__(
        self,
        functions: Mapping[str, FunctionGraph],
        call: Node,
        reap: Node,
        name: str,
        weighed: Callable[[str, Type], str],
    ) -> None:
        self.callee, self.call, self.reap, self.name, self.weighed = (
            functions[call.attrs.text("callee")], call, reap, name, weighed
        )  # fmt: skip
        self.draft = Draft("function", name)
        self.writer = DerivativeWriter(self.draft)
        self.writer.span = reap.span

    def make(self) -> FunctionGraph:
        callee, draft, writer, reap = self.callee, self.draft, self.writer, self.reap
        draft.add(start_node(0, "start", reap.span))
        params = [
            Port(draft.add(param_node(0, k, callee.nodes[param].short_name, callee.nodes[param].types[0], reap.span)))
            for k, param in enumerate(callee.params)
        ]
        length = Port(draft.add(param_node(0, len(params), "n", Type(i64), reap.span)))
        types = tuple(map(callee.type_of, callee.results))
        attrs = self.call.attrs
        call = writer.add("call", params, types, attrs, name=self.call.short_name)
        array = writer.add("reap", (Port(call), length), reap.types, reap.attrs, name=reap.short_name)
        results = [*(Port(call, k) for k in range(len(types))), Port(array)]
        ruled = self.write_rule(params, length, results)
        places = [k for k, port in enumerate(results) if draft.type_of(port) != CTL]
        for k, port in zip(places, ruled, strict=True):
            results[k] = port
        phase = Phase((*(port.node for port in params), length.node), tuple(results))
        shell = FunctionGraph((), (), self.name, "function", span=reap.span)
        return draft.freeze(shell, [phase], 0)

    def write_rule(self, params: list[Port], length: Port, results: list[Port]) -> list[Port]:
        """The results but order tokens, as what the rule says of them."""
        draft, writer = self.draft, self.writer
        plain = [port for port in results if draft.type_of(port) != CTL]
        floats = [port for port in params if _is_float(draft.type_of(port))]
        indices = [k for k, port in enumerate(plain) if _is_float(draft.type_of(port))]
        if not floats or not indices:
            return plain
        given: dict[int, Operand] = {}  # result of the copy -> its cotangent
        cotangents: dict[Port, Port] = {}
        for k in indices:
            type_ = draft.type_of(plain[k])
            cotangents[plain[k]] = Port(writer.add("cotangent", (plain[k],), (type_,), Attrs(index=k)))
        count = len(results) - 1
        given = {k: cotangents[port] for k, port in enumerate(results[:-1]) if port in cotangents}
        inputs: list[Operand] = list(params)
        table = self.reap.types[0].with_shape((None, *self.reap.types[0].shape[1:]))
        copied = self.weighed(self.callee.name, table)
        types = tuple(map(self.callee.type_of, self.callee.results))
        if copied != self.callee.name and results[-1] in cotangents:
            inputs.append(cotangents[results[-1]])
            types = (*types, Type(table.dtype.real))
            given[count] = Const(np.ones((), table.dtype.real.numpy))
        wanted = [k for k, port in enumerate(params) if port in floats]
        slopes: list[Port]
        if given:
            attrs = self.call.attrs | {"callee": copied}
            again = writer.add("call", inputs, types, attrs, tuple(cotangents.values()), "d.again")
            attrs = Attrs(given=tuple(given), wanted=tuple(wanted))
            link = Port(again, min(given))
            gradient = writer.add(
                "gradient", (link, *given.values()), tuple(map(draft.type_of, floats)), attrs, name="d.reap"
            )
            slopes = [Port(gradient, k) for k in range(len(floats))]
        else:
            slopes = [writer.zero(port) for port in floats]
        ruled = self.write_again(params, length, results)
        custom = writer.add(
            "custom", (*plain, *ruled, *floats, *slopes), tuple(map(draft.type_of, plain)),
            Attrs(mode="reverse", arguments=len(floats)), name="custom",
        )  # fmt: skip
        return [Port(custom, k) for k in range(len(plain))]

    def write_again(self, params: list[Port], length: Port, results: list[Port]) -> list[Port]:
        """The results, by a call of this very graph: a second derivative goes through that, by the same rule."""
        draft, writer = self.draft, self.writer
        primals = [
            Port(writer.add("primal", (port,), (draft.type_of(port),))) if _is_float(draft.type_of(port)) else port
            for port in params
        ]
        types = tuple(map(draft.type_of, results))
        again = writer.add("call", (*primals, length), types, Attrs(callee=self.name), name=self.call.short_name)
        return [Port(again, k) for k, type_ in enumerate(types) if type_ != CTL]


def _is_float(type_: Type) -> bool:
    return type_.dtype.is_inexact
