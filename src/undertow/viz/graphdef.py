"""A library as TensorFlow's GraphDef: main's nodes, and a function for each other graph. TensorBoard draws it.

Calls, loops and maps are nodes whose operator is the function that they enter, which TensorBoard unfolds on a click.
Constants, which are operands here, become nodes; start tokens, which only say when a body begins, are left out.

>>> from undertow.ir.text import parse
>>> library = parse('''
... library 1 main=main
...
... main main(x: f32[?]) -> (y)
...   y: f32[?] = call x callee="double"
...
... function double(x: f32[?]) -> (add)
...   add: f32[?] = add x, x
... ''')
>>> graph = graph_def(library)
>>> [(node.name, node.op, node.input) for node in graph.node]
[('x', 'Placeholder', []), ('y', 'double', ['x'])]
>>> graph.library.function[0].node_def[0].input
['x', 'x']
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from undertow.errors import GraphError
from undertow.ir.graph import Attr, Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.names import Names
from undertow.ir.structure import ENTERS
from undertow.ir.walk import reachable
from undertow.types import CTL, DType, Type
from undertow.viz.messages import (
    DATA_TYPE_OF,
    ArgAttrs,
    ArgDef,
    AttrValue,
    Dim,
    FunctionDef,
    FunctionDefLibrary,
    GraphDef,
    IndexedArgAttrs,
    ListValue,
    NodeDef,
    OpDef,
    TensorProto,
    TensorShapeProto,
    VersionDef,
)

_PRODUCER = 134  # a version of graphs from the time of TensorFlow 1.15
_NO_NAMES: Mapping[str, Sequence[str]] = {}


class _Named(NamedTuple):
    """TensorFlow's name of an operator, and of its first output."""

    op: str
    output: str = "output"


# Where TensorFlow's name is not ours in CamelCase.
_OPERATORS = {
    **{name: _Named(op, "z") for name, op in (
        ("add", "Add"), ("subtract", "Sub"), ("multiply", "Mul"), ("divide", "RealDiv"), ("floor_divide", "FloorDiv"),
        ("remainder", "FloorMod"), ("power", "Pow"), ("minimum", "Minimum"), ("maximum", "Maximum"),
        ("equal", "Equal"), ("not_equal", "NotEqual"), ("less", "Less"), ("less_equal", "LessEqual"),
        ("greater", "Greater"), ("greater_equal", "GreaterEqual"), ("logical_and", "LogicalAnd"),
        ("logical_or", "LogicalOr"),
    )},
    **{name: _Named(op, "y") for name, op in (
        ("negative", "Neg"), ("abs", "Abs"), ("exp", "Exp"), ("log", "Log"), ("sqrt", "Sqrt"), ("square", "Square"),
        ("sin", "Sin"), ("cos", "Cos"), ("tanh", "Tanh"), ("sigmoid", "Sigmoid"), ("reciprocal", "Reciprocal"),
        ("logical_not", "LogicalNot"), ("cast", "Cast"), ("transpose", "Transpose"),
    )},
    "matmul": _Named("MatMul", "product"), "where": _Named("Select"), "concat": _Named("ConcatV2"),
    "read": _Named("ReadVariableOp", "value"), "param": _Named("Placeholder"), "arange": _Named("Range"),
    "relu": _Named("Relu", "activations"), "softmax": _Named("Softmax", "softmax"), "take": _Named("GatherV2"),
}  # fmt: skip
_ASSIGNS = {"set": "AssignVariableOp", "add": "AssignAddVariableOp", "subtract": "AssignSubVariableOp"}


def graph_def(
    library: Library,
    hidden: Collection[int] = (),
    unknown: Collection[int] = (),
    results: Mapping[str, Sequence[str]] = _NO_NAMES,
) -> GraphDef:
    """The message. `results` are names of the results of functions.

    Of main's nodes, those in `hidden` are left out unless others need them, and those in `unknown` have no known shape.
    """
    names = Names()
    functions = {name: names.fresh(_valid(name, "")) for name in library.functions if name != library.main}
    writers = {
        name: _Writer(library, library.functions[name], functions, list(results.get(name, ())))
        for name in library.functions
    }
    signatures = {name: writers[name].results for name in functions}
    main = writers[library.main].nodes(signatures, hidden, unknown)
    bodies = [writers[name].function(called, signatures) for name, called in functions.items()]
    return GraphDef(main, FunctionDefLibrary(bodies), VersionDef(_PRODUCER))


def _valid(name: str, also: str = "/") -> str:
    """A name with what TensorFlow does not take replaced.

    >>> _valid("~f#1/x"), _valid("a/b", "")
    ('._f_1/x', 'a_b')
    """
    text = re.sub(rf"[^A-Za-z0-9_.\-{also}]", "_", name)
    return text if re.match(r"[A-Za-z0-9.]", text) else f".{text}"


def _result(name: str) -> str:
    """The name of a result, which is a name of an output, too: letters, digits and underscores."""
    return re.sub(r"\W", "_", name, flags=re.A).lstrip("_") or "result"


def _camel(op: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in op.split("_"))


def operator_name(op: str) -> str:
    """TensorFlow's name of an operator.

    >>> operator_name("subtract"), operator_name("less_equal")
    ('Sub', 'LessEqual')
    """
    return _OPERATORS[op].op if op in _OPERATORS else _camel(op)


class _Writer:
    """Writes the nodes of one graph."""

    def __init__(
        self, library: Library, graph: FunctionGraph, functions: Mapping[str, str], results: list[str]
    ) -> None:
        self.library = library
        self.graph = graph
        self.functions = functions
        self.is_main = graph.name == library.main
        self.taken = Names()
        self.names = [self.taken.fresh(_valid(node.name)) for node in graph.nodes]
        self.params = dict.fromkeys(number for phase in graph.phases for number in phase.params)
        self.ports = [port for phase in graph.phases for port in phase.results if self._type(port) != CTL]
        if graph.kind == "loop":  # its first result is the predicate; the others are those of the node that enters it
            self.ports = [*self.ports[1:], self.ports[0]]
        named = results if len(results) == len(self.ports) else [graph.nodes[p.node].short_name for p in self.ports]
        self.results = [] if self.is_main else [self.taken.fresh(_result(name)) for name in named]
        self.written: list[NodeDef] = []
        self.sides: dict[Port, str] = {}
        self.arrays: dict[Const, str] = {}  # arrays may be large: each is written once
        self.signatures: Mapping[str, Sequence[str]] = {}

    def nodes(
        self, signatures: Mapping[str, Sequence[str]], hidden: Collection[int] = (), unknown: Collection[int] = ()
    ) -> list[NodeDef]:
        """The nodes of main, or of a body."""
        self.signatures = signatures
        for number in self._shown(hidden):
            node = self.graph.nodes[number]
            if node.op != "start" and (self.is_main or number not in self.params):
                self._node(number, node)
                if number in unknown:
                    _forget_shape(self.written[-1])
        return self.written

    def _shown(self, hidden: Collection[int]) -> Sequence[int]:
        """The nodes that are not hidden, and what they need."""
        everything = range(len(self.graph.nodes))
        if not hidden:
            return everything

        def needed(number: int) -> list[int]:
            node = self.graph.nodes[number]
            return [port.node for port in (*node.inputs, *node.controls) if isinstance(port, Port)]

        return sorted(reachable([number for number in everything if number not in hidden], needed))

    def function(self, called: str, signatures: Mapping[str, Sequence[str]]) -> FunctionDef:
        """The graph of a function, a loop or a map."""
        nodes = self.nodes(signatures)
        results = list(zip(self.results, self.ports, strict=True))
        for name, port in results:  # TensorBoard finds a result by its node's name
            type_ = self._type(port)
            nodes.append(NodeDef(name, "Identity", [self._input(port)], attr=_types(type_.dtype, [type_])))
        params = [(self.names[n], self.graph.nodes[n].types[0]) for n in self.params]
        params = [(name, type_) for name, type_ in params if type_ != CTL]
        shapes = [ArgAttrs({"_output_shapes": _shapes([type_])}) for _, type_ in params]
        orders = [port for phase in self.graph.phases for port in phase.results if self._type(port) == CTL]
        acting = [port.node for port in orders if port.node not in self.params]
        controls = {self.names[n]: self.names[n] for n in acting if self.graph.nodes[n].op != "start"}
        span = self.graph.span
        return FunctionDef(
            OpDef(
                called,
                [ArgDef(name, type=_data_type(type_.dtype)) for name, type_ in params],
                [ArgDef(name, type=_data_type(self._type(port).dtype)) for name, port in results],
                summary="" if span is None else f"{self.graph.kind} {self.graph.name}, {span.show()}",
                is_stateful=any("variable" in node.attrs for node in self.graph.nodes),
                control_output=sorted(controls),
            ),
            nodes,
            ret={name: f"{name}:output:0" for name in self.results},
            attr={"_kind": AttrValue(s=self.graph.kind.encode())},
            control_ret=controls,
            arg_attr=[IndexedArgAttrs(k, attrs) for k, attrs in enumerate(shapes)],
        )  # fmt: skip

    # -- nodes -----------------------------------------------------------------------------------------------

    def _node(self, number: int, node: Node) -> None:
        name, types = self.names[number], [type_ for type_ in node.types if type_ != CTL]
        device = node.attrs.get("device", "")
        made = NodeDef(name, self._operator(node).op, device=str(device or ""))
        data, controls = list(node.inputs), list(node.controls)
        if node.op == "switch":  # (predicate, data) here, (data, predicate) there; order is said by the predicate
            pred, value = data
            data = [pred if self._type(value) == CTL else value, pred]
            types = types or [self._type(pred)] * 2
        orders = [operand for operand in data if isinstance(operand, Port) and self._type(operand) == CTL]
        data = [operand for operand in data if operand not in orders]
        constant = data[0] if node.op == "identity" and data and isinstance(data[0], Const) else None
        if constant is not None and self.is_main and node.region == 0 and controls and controls[0] != Port(0):
            made.op = "NoOp"  # as `tf.group` makes them: only their order counts
        elif constant is not None:
            made.op, made.attr = "Const", _constant(constant)
        else:
            made.input = [self._operand(name, k, operand, len(data), device) for k, operand in enumerate(data)]
            of = self._type(data[0]).dtype if data else types[0].dtype if types else None
            made.attr = _types(of, types) if made.op != "Placeholder" else _placeholder(types[0])
        made.input += self._controls([*orders, *controls])
        for key, attribute in node.attrs.items():
            if key not in ("device", "index", ENTERS.get(node.op)) and attribute is not None:
                made.attr.setdefault(key, _attr(key, attribute))
        if node.op in ENTERS and node.op != "call":
            made.attr["_kind"] = AttrValue(s=node.op.encode())
        if node.op == "merge":
            made.attr["N"] = AttrValue(i=len(data))
        if node.span is not None:
            made.attr["_source"] = AttrValue(s=node.span.show().encode())
        self.written.append(made)

    def _operator(self, node: Node) -> _Named:
        if node.op in ENTERS:
            callee = node.attrs.text(ENTERS[node.op])
            return _Named(self.functions.get(callee, _valid(callee, "")))
        if node.op == "assign":
            return _Named(_ASSIGNS.get(str(node.attrs.get("how")), "AssignVariableOp"))
        if all(type_ == CTL for type_ in node.types) and node.op in ("merge", "identity"):
            return _Named("NoOp")
        return _OPERATORS.get(node.op) or _Named(_camel(node.op))

    def _operand(self, user: str, index: int, operand: Operand, count: int, device: Attr) -> str:
        """The input of a node; a constant becomes a node beside it."""
        if isinstance(operand, Port):
            return self._input(operand)
        if operand in self.arrays:
            return self.arrays[operand]
        name = self.taken.fresh(f"{user}/{'xy'[index] if count == 2 else f'input_{index}'}")
        self.written.append(NodeDef(name, "Const", device=str(device or ""), attr=_constant(operand)))
        reference = name if self.is_main else f"{name}:output:0"
        if operand.type.shape:
            self.arrays[operand] = reference
        return reference

    def _input(self, port: Port) -> str:
        """The output of a node as an input of others. TensorFlow's Switch has its false output first."""
        node, name = self.graph.nodes[port.node], self.names[port.node]
        index = sum(type_ != CTL for type_ in node.types[: port.index])
        if node.op == "switch":
            index = 1 - port.index
        if self.is_main:
            return f"{name}:{index}" if index else name
        if port.node in self.params:
            return name
        if node.op == "switch":
            return f"{name}:{('output_false', 'output_true')[index]}:0"
        results = self.signatures.get(node.attrs.text(ENTERS[node.op]), ()) if node.op in ENTERS else ()
        if index < len(results):
            return f"{name}:{results[index]}:0"
        return f"{name}:{self._operator(node).output}:{index}"

    def _controls(self, ports: Iterable[Port]) -> list[str]:
        """Control inputs, each once. One from a Switch comes from an Identity behind that side."""
        found: dict[str, None] = {}
        for port in ports:
            node = self.graph.nodes[port.node]
            if node.op == "switch":
                found[f"^{self._side(port)}"] = None
            elif node.op != "start" and (self.is_main or port.node not in self.params):
                found[f"^{self.names[port.node]}"] = None
        return list(found)

    def _side(self, port: Port) -> str:
        if port not in self.sides:
            node = self.graph.nodes[port.node]
            self.sides[port] = name = self.taken.fresh(f"{self.names[port.node]}/switch_{'tf'[port.index]}")
            type_ = self._type(port)
            type_ = self._type(node.inputs[0]) if type_ == CTL else type_
            self.written.append(NodeDef(name, "Identity", [self._input(port)], attr=_types(type_.dtype, [type_])))
        return self.sides[port]

    def _type(self, operand: Operand) -> Type:
        return self.graph.type_of(operand)


# --------------------------------------------------------------------------------------------------------------
# Attributes


def _data_type(dtype: DType) -> int:
    if dtype.name not in DATA_TYPE_OF:
        raise GraphError(f"TensorFlow has no dtype for {dtype}", hint="convert the value before the graph is exported")
    return DATA_TYPE_OF[dtype.name]


def _shape(type_: Type) -> TensorShapeProto:
    return TensorShapeProto([Dim(d if isinstance(d, int) else -1) for d in type_.shape])


def _shapes(types: Sequence[Type]) -> AttrValue:
    return AttrValue(list=ListValue(shape=[_shape(type_) for type_ in types]))


def _types(dtype: DType | None, outputs: Sequence[Type]) -> dict[str, AttrValue]:
    attrs = {"_output_shapes": _shapes(outputs)} if outputs else {}
    if dtype is not None:
        attrs["T"] = AttrValue(type=_data_type(dtype))
    return attrs


def _placeholder(type_: Type) -> dict[str, AttrValue]:
    kind = AttrValue(type=_data_type(type_.dtype))
    return {"dtype": kind, "shape": AttrValue(shape=_shape(type_)), "_output_shapes": _shapes([type_])}


def _constant(value: Const) -> dict[str, AttrValue]:
    kind = _data_type(value.type.dtype)
    tensor = TensorProto(kind, _shape(value.type), value.value.astype(value.value.dtype.newbyteorder("<")).tobytes())
    return {
        "dtype": AttrValue(type=kind), "value": AttrValue(tensor=tensor), "_output_shapes": _shapes([value.type]),
    }  # fmt: skip


def _forget_shape(node: NodeDef) -> None:
    """Say that only a run knows the shape of what a node computes."""
    for key in ("_output_shapes", "shape"):
        if key in node.attr:
            node.attr[key] = _UNKNOWN[key]


_UNKNOWN = {
    "_output_shapes": AttrValue(list=ListValue(shape=[TensorShapeProto(unknown_rank=True)])),
    "shape": AttrValue(shape=TensorShapeProto(unknown_rank=True)),
}


def _attr(key: str, value: Attr) -> AttrValue:
    """An attribute as it is, or as text where TensorFlow has no such type."""
    if key == "dtype" and value in DATA_TYPE_OF:
        return AttrValue(type=DATA_TYPE_OF[str(value)])
    if isinstance(value, tuple) and all(item is None or type(item) is int for item in value):
        if key == "shape":
            return AttrValue(shape=TensorShapeProto([Dim(item if isinstance(item, int) else -1) for item in value]))
        if None not in value:
            return AttrValue(list=ListValue(i=[item for item in value if isinstance(item, int)]))
    if isinstance(value, bool):
        return AttrValue(b=value)
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return AttrValue(i=value)
    return AttrValue(f=value) if isinstance(value, float) else AttrValue(s=str(value).encode())
