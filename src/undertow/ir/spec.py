"""Validity rules of graphs, as tables: `check` raises a GraphError that shows the node and the rule it breaks.

A row is (operators or kinds it applies to, predicate, message if the predicate fails). Tables run in order, each row
over the whole graph, so a row may rely on all rows above it. A pass is verified by checking the graph it returns.
All rules are here; tests/unit/ir/test_spec.py breaks each of them. The queries that they share are in `index`.

>>> from undertow.ir.text import parse
>>> check(parse('''
... library 1 main=main
... main main(x: f32) -> (y)
...   y: f32 = multiply x, z
...   z: f32 = add x, x
... '''))
Traceback (most recent call last):
undertow.errors.GraphError: main: a node comes before one that it depends on
  y: f32 = multiply x, z in main
  around it:
  x: f32 = param index=0 in main
  z: f32 = add x, x in main
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NoReturn, TypeVar

from undertow.errors import GraphError, Span, UndertowError
from undertow.ir.dump import dump_node
from undertow.ir.graph import FunctionGraph, Library, Node, Port, Region, Site, StaticGraph
from undertow.ir.index import FunctionIndex, GraphIndex, StaticIndex
from undertow.ir.literal import quote
from undertow.ir.sown import sown_below
from undertow.ir.sparse import rows_types
from undertow.ir.structure import (
    ARGUMENTS,
    BACK,
    BODIES,
    BODY_KINDS,
    COLLECTED,
    COLLECTS,
    ENTERING,
    ENTERS,
    INWARD,
    LIBRARY,
    READS,
    SITED,
    SOURCES,
    STARTS,
    STATIC,
    is_primitive,
)
from undertow.ir.walk import arguments, awaited, grouped, link_of, phase_of, ports_of
from undertow.types import CTL, Type, bool_, i64

# (node, types of its operands) -> types of its outputs; raises an UndertowError if the operands do not fit.
TypeRule = Callable[[Node, Sequence[Type]], tuple[Type, ...]]

ANY = "*"
BOOL = Type(bool_)

# --------------------------------------------------------------------------------------------------------------
# The tables: (operators or kinds, predicate over (index, node or region or site or graph, its number), message)

_T = TypeVar("_T")
_I = TypeVar("_I", bound=GraphIndex)
Rule = tuple[str | Collection[str], Callable[[_I, _T, int], bool], str]


def _fits_form(f: GraphIndex, n: Node) -> bool:
    form = f.form(n)
    return form.inputs in (None, len(n.inputs)) and form.outputs in (None, len(n.types))


def _has_attrs(f: GraphIndex, n: Node) -> bool:
    form, attrs = f.form(n), n.attrs
    return all(type(attrs.get(k)) is int for k in form.integers) and all(
        type(attrs.get(k)) is str for k in form.strings
    )


def _has_phase(f: GraphIndex, n: Node) -> bool:
    phase = n.attrs.get("phase", 1)
    return type(phase) is int and phase > 0 and (f.form(n).is_phased or "phase" not in n.attrs)


NODES: list[Rule[GraphIndex, Node]] = [
    (ANY, lambda f, n, k: f.names[n.name] == 1, "two nodes have the same name"),
    (ANY, lambda f, n, k: all(map(f.exists, (*n.inputs, *n.controls))),
     "an input or control edge names a node or output that does not exist"),
    (ANY, lambda f, n, k: 0 <= n.region < len(f.regions), "a node is in a region that does not exist"),
    (ANY, lambda f, n, k: not any(isinstance(dim, str) for type_ in n.types for dim in type_.shape),
     "a type has a named dimension: in graphs an unknown dimension is `?`"),
    (ANY, lambda f, n, k: _fits_form(f, n), "an operator has the wrong number of inputs or outputs"),
    (ANY, lambda f, n, k: _has_attrs(f, n), "an operator lacks an attribute, or has one of the wrong type"),
    (ANY, lambda f, n, k: _has_phase(f, n),
     "a phase is not a positive integer (phase 0 is left out), or its operator takes no phase"),
    ("start", lambda f, n, k: n.types == (CTL,), "a start token is not of type ctl"),
    (SOURCES, lambda f, n, k: not n.controls, "a start, param or input node has a control edge"),
    ("switch", lambda f, n, k: isinstance(n.inputs[0], Port) and f.type(n.inputs[0]) == BOOL,
     "the predicate of a switch is not the bool scalar of a node"),
    ("switch", lambda f, n, k: all(type_ == f.type(n.inputs[1]) for type_ in n.types),
     "the outputs of a switch do not have the type of its value"),
    ("merge", lambda f, n, k: all(isinstance(i, Port) for i in n.inputs),
     "a merge takes a constant, which is never dead"),
    ("merge", lambda f, n, k: not n.controls,
     "a merge has a control edge, but must forward a token as soon as it arrives"),
    ("merge", lambda f, n, k: bool(n.inputs) and all(n.types[0].accepts(f.type(i)) for i in n.inputs),
     "a merge has no inputs, or one that its type does not accept"),
    (ANY, lambda f, n, k: n.op in SOURCES or bool(n.controls or ports_of(n.inputs)),
     "a node has no input that could trigger it: neither a port nor a control edge"),
]  # fmt: skip

LIBRARY_NODES: list[Rule[FunctionIndex, Node]] = [
    (ANY, lambda f, n, k: all(port.node < k for port in awaited(n)), "a node comes before one that it depends on"),
    ("start param", lambda f, n, k: n.region == 0, "a start or param node is inside a branch"),
    (ANY, lambda f, n, k: n.op in LIBRARY or n.op not in STATIC, "a library holds an operator of static graphs"),
]  # fmt: skip

REGIONS: list[Rule[GraphIndex, Region]] = [
    ("branch", lambda f, r, k: r.parent is not None and 0 <= r.parent < k,
     "a branch does not come after its parent region"),
    ("branch", lambda f, r, k: r.pred is not None and f.exists(r.pred) and f.type(r.pred) == BOOL,
     "the predicate of a branch is not a bool scalar"),
    ("branch", lambda f, r, k: f.sides[r.pred, r.parent, True] == f.sides[r.pred, r.parent, False] == 1,
     "a branch does not have exactly one true and one false side"),
    (BODY_KINDS, lambda f, r, k: r.pred is None and not r.side, "a body has a predicate"),
    (ANY, lambda f, r, k: all(f.exists(port) and f.type(port) == CTL for port in r.starts),
     "the starts of a region are not ports of type ctl"),
]  # fmt: skip

LIBRARY_REGIONS: list[Rule[FunctionIndex, Region]] = [
    (ANY, lambda f, r, k: (k == 0) != (r.kind == "branch"),
     "region 0 is not the body, or another region is not a branch"),
    (ANY, lambda f, r, k: k > 0 or (r.kind == f.graph.kind and r.parent is None),
     "region 0 does not have the kind of its graph, or has a parent"),
]  # fmt: skip

STATIC_REGIONS: list[Rule[StaticIndex, Region]] = [
    (ANY, lambda f, r, k: r.kind in (*BODY_KINDS, "branch"), "a region has an unknown kind"),
    (ANY, lambda f, r, k: (k == 0) == (r.kind == "main"), "region 0 is not the main graph, or another region is"),
    ("main function", lambda f, r, k: r.parent is None, "a function has a parent"),
    ("loop map", lambda f, r, k: r.parent is not None and 0 <= r.parent < len(f.regions),
     "the parent of a loop or map does not exist"),
    (BODY_KINDS, lambda f, r, k: bool(r.starts), "a body has no start"),
]  # fmt: skip

SITES: list[Rule[StaticIndex, Site]] = [
    (ANY, lambda f, s, k: s.kind in BODIES, "a site is neither a call nor a loop nor a map"),
    (ANY, lambda f, s, k: 0 <= s.caller < len(f.regions) and 0 <= s.callee < len(f.regions),
     "the caller or callee of a site does not exist"),
    (ANY, lambda f, s, k: f.regions[s.callee].kind == BODIES[s.kind], "a site enters a region of the wrong kind"),
    ("loop map", lambda f, s, k: f.regions[s.callee].parent == s.caller and len(f.sites_into[s.callee]) == 1,
     "a loop or map body has several sites, or a parent other than its site's caller"),
]  # fmt: skip

# Which region tokens live in. The rows below may call `home`.
SWITCHES: list[Rule[GraphIndex, Node]] = [
    ("switch", lambda f, n, k: (n.inputs[0], n.region) in f.branches,
     "a switch has no branch: its region has no true and false side with its predicate"),
    ("switch", lambda f, n, k: all(f.lives(i, n.region) for i in n.inputs),
     "the predicate or value of a switch lives in another region"),
]  # fmt: skip

REGION_EDGES: list[Rule[GraphIndex, Region]] = [
    ("branch", lambda f, r, k: r.pred is not None and f.home(r.pred) == r.parent,
     "the predicate of a branch does not live in the branch's parent region"),
    (ANY, lambda f, r, k: all(f.home(port) == k for port in r.starts),
     "a start token of a region lives in another region"),
]  # fmt: skip


_ELSEWHERE = {"merge": "", **BACK, **READS}  # their inputs come from other regions; other rows say which


def _is_branch_merge(f: GraphIndex, n: Node) -> bool:
    """Does it join the true and the false side, in this order, of one branch of its region?"""
    if len(n.inputs) != 2:
        return False
    then, other = (f.regions[f.home(port)] for port in n.inputs if isinstance(port, Port))
    return (
        then.kind == other.kind == "branch"
        and (then.pred, then.parent, then.side) == (other.pred, n.region, True)
        and (other.parent, other.side) == (n.region, False)
    )


def _is_tag_merge(f: StaticIndex, n: Node) -> bool:
    """Does it join what the sites of its region send: one parameter, or the start, of one phase?"""
    makers = [f.nodes[port.node] for port in n.inputs if isinstance(port, Port)]
    kinds = {(maker.op in STARTS, phase_of(maker), maker.attrs.get("index")) for maker in makers}
    kind = f.regions[n.region].kind
    if kind == "function":
        return {maker.op for maker in makers} <= {"call_start", "call"} and len(kinds) == 1
    if kind == "loop":
        return sorted(maker.op for maker in makers) in (["enter", "next"], ["enter_start", "next"])
    return False


EDGES: list[Rule[GraphIndex, Node]] = [
    (ANY, lambda f, n, k: n.op in _ELSEWHERE or all(f.lives(i, n.region) for i in n.inputs),
     "an input lives in a different region from its node"),
    (ANY, lambda f, n, k: all(f.home(c) == n.region for c in n.controls), "a control edge comes from another region"),
]  # fmt: skip

LIBRARY_EDGES: list[Rule[FunctionIndex, Node]] = [
    ("merge", lambda f, n, k: _is_branch_merge(f, n),
     "a merge does not join the true and the false side of one branch"),
]  # fmt: skip

# --------------------------------------------------------------------------------------------------------------
# Function graphs


def _has_params(f: FunctionIndex, g: FunctionGraph) -> bool:
    listed = [(param, phase, index) for phase, p in enumerate(g.phases) for index, param in enumerate(p.params)]
    nodes = [(k, phase_of(n), n.attrs["index"]) for k, n in enumerate(g.nodes) if n.op == "param"]
    return sorted(listed) == nodes


def _has_starts(f: FunctionIndex, g: FunctionGraph) -> bool:
    start_of = {phase_of(n): Port(k) for k, n in enumerate(g.nodes) if n.op == "start"}
    return sum(n.op == "start" for n in g.nodes) == len(g.phases) and g.regions[0].starts == tuple(
        start_of.get(phase) for phase in range(len(g.phases))
    )


def _next_types(g: FunctionGraph) -> bool:
    variables = [g.nodes[param].types[0] for param in g.params[: g.carried]]
    return all(type_.accepts(g.type_of(port)) for type_, port in zip(variables, g.results[1:], strict=True))


FUNCTIONS: list[Rule[FunctionIndex, FunctionGraph]] = [
    (ANY, lambda f, g, k: g.kind in BODY_KINDS, "a graph has an unknown kind"),
    (ANY, lambda f, g, k: bool(g.regions), "a graph has no region 0"),
    (ANY, lambda f, g, k: bool(g.phases), "a graph has no phase"),
    (ANY, lambda f, g, k: _has_params(f, g), "the parameters of the phases do not match the param nodes"),
    (ANY, lambda f, g, k: _has_starts(f, g), "the starts of the body are not one start node for each phase"),
    (ANY, lambda f, g, k: all(map(f.exists, (port for phase in g.phases for port in phase.results))),
     "a result does not exist"),
    ("main function", lambda f, g, k: g.carried == 0,
     "a graph that is neither a loop nor a map has carried parameters"),
    (ANY, lambda f, g, k: bool(g.group) == (g.hoisted > 0) and g.hoisted >= 0,
     "a graph has hoisted parameters but no group, or a group but no hoisted parameters"),
    ("main", lambda f, g, k: not g.group, "main is in a group, but nothing calls it"),
    ("function loop map", lambda f, g, k: not g.shared, "a graph other than main shares values"),
    ("main", lambda f, g, k: all(map(f.exists, g.shared)), "a shared value does not exist"),
    ("loop", lambda f, g, k: len(g.phases) == 1, "a loop has more than one phase"),
    ("loop map", lambda f, g, k: 0 <= g.carried <= len(g.params), "a graph carries more parameters than it has"),
    (ANY, lambda f, g, k: g.carried + g.hoisted <= len(g.params),
     "a graph carries and hoists more parameters than it has"),
    ("map", lambda f, g, k: g.carried > 0, "a map has no mapped parameter to take its number of lanes from"),
    ("loop", lambda f, g, k: len(g.results) == g.carried + 1,
     "a loop's results are not its predicate and a next value for each variable"),
    ("loop", lambda f, g, k: f.type(g.results[0]) == BOOL,
     "a loop's first result, its predicate, is not a bool scalar"),
    ("loop", lambda f, g, k: _next_types(g), "a loop variable does not accept its next value"),
]  # fmt: skip

FUNCTION_EDGES: list[Rule[FunctionIndex, FunctionGraph]] = [
    ("main function map", lambda f, g, k: all(f.home(port) == 0 for phase in g.phases for port in phase.results),
     "a result lives inside a branch"),
    ("main function map",
     lambda f, g, k: all(f.phases[port.node] <= p for p, phase in enumerate(g.phases) for port in phase.results),
     "a result depends on a later phase than the one that returns it"),
    ("main", lambda f, g, k: all(f.home(port) == 0 and f.phases[port.node] == 0 for port in g.shared),
     "a shared value lives inside a branch, or depends on a later phase"),
    ("loop", lambda f, g, k: f.home(g.results[0]) == 0, "the predicate of a loop lives inside a branch"),
    ("loop", lambda f, g, k: all(f.home(port) == f.branches.get((g.results[0], 0), (-1,))[0] for port in g.results[1:]),
     "the next value of a loop variable does not live in the true branch of the loop's predicate"),
]  # fmt: skip


def _row(type_: Type) -> Type | None:
    """The type of one lane."""
    return type_.with_shape(type_.shape[1:]) if type_.shape else None


def _lane(type_: Type) -> Type | None:
    """The type of one lane's result, or argument in a later phase: the order tokens of all lanes are one token."""
    return type_ if type_ == CTL else _row(type_)


def _accepts(param: Type, argument: Type | None) -> bool:
    return argument is not None and param.accepts(argument)


def _argument_types(f: FunctionIndex, n: Node) -> bool:
    callee = f.callee(n)
    types = [f.type(operand) for operand in arguments(n)]
    mapped, element = callee.carried if n.op == "map" else 0, _row
    if n.op == "resume" and callee.kind == "map":
        mapped, element = len(types), _lane
    lanes = [element(type_) for type_ in types[:mapped]] + types[mapped:]
    return all(_accepts(param, type_) for param, type_ in zip(f.params(n), lanes, strict=True))


def _result_types(f: FunctionIndex, n: Node) -> bool:
    outputs = [_lane(type_) if f.callee(n).kind == "map" else type_ for type_ in n.types]
    pairs = zip(outputs, f.results(n), strict=True)
    return all(output is not None and output.accepts(result) for output, result in pairs)


def _stated_lengths(types: Iterable[Type]) -> set[int]:
    """The leading lengths that types of arrays state; the others are known at run time."""
    return {type_.shape[0] for type_ in types if type_.shape and isinstance(type_.shape[0], int)}


def _lane_counts(f: FunctionIndex, n: Node) -> set[int]:
    """The numbers of lanes that a map, or a resume of one, is told by the types of the arrays that it takes."""
    given = [f.type(operand) for operand in arguments(n)] if n.op == "resume" else []
    first = f.nodes[link_of(n)] if n.op == "resume" else n
    return _stated_lengths([*given, *(f.type(operand) for operand in first.inputs[: f.callee(first).carried])])


def _is_map(f: FunctionIndex, n: Node) -> bool:
    return f.callee(n).kind == "map"


def _is_link(f: FunctionIndex, n: Node) -> bool:
    if not n.inputs or not isinstance(n.inputs[0], Port):
        return False
    visited = f.nodes[n.inputs[0].node]
    return visited.op in ("call", "map") and visited.region == n.region


def _indices(n: Node, key: str, count: int) -> tuple[int, ...] | None:
    """An attribute of distinct indices below `count`; None if it is anything else."""
    indices = n.attrs.get(key)
    if not isinstance(indices, tuple) or not all(type(k) is int and 0 <= k < count for k in indices):
        return None
    return n.attrs.integers(key) if len(set(indices)) == len(indices) else None


def _is_gradient(f: FunctionIndex, n: Node) -> bool:
    """Has it a cotangent for each result that is `given`, and outputs for each argument that is `wanted`?"""
    callee, cotangents = f.callee(n), [f.type(x) for x in n.inputs[1:]]
    results = f.nodes[link_of(n)].types  # those of the call: the callee's may have more known dimensions
    params = [callee.nodes[param].types[0] for param in callee.params]
    given, wanted = _indices(n, "given", len(results)), _indices(n, "wanted", len(params))
    return (
        given is not None
        and wanted is not None
        and len(given) == len(cotangents)
        and all(results[k].accepts(type_) for k, type_ in zip(given, cotangents, strict=True))
        and all(type_.dtype.is_inexact for type_ in (*cotangents, *(params[k] for k in wanted)))
        and _gives_cotangents(n, wanted, params)
    )


def _gives_cotangents(n: Node, wanted: Sequence[int], params: Sequence[Type]) -> bool:
    """Are the outputs of a gradient the cotangents of what is `wanted`: whole ones, or rows of what is `sparse`?"""
    sparse = _indices(n, "sparse", len(params)) if "sparse" in n.attrs else ()
    if sparse is None or ("sparse" in n.attrs and not sparse):
        return False  # an empty `sparse` is left out
    if not all(k in wanted and params[k].shape for k in sparse):
        return False
    types = [t for k in wanted for t in (rows_types(params[k]) if k in sparse else (params[k],))]
    return len(types) == len(n.types) and all(a.accepts(b) for a, b in zip(n.types, types, strict=True))


def _are_rows(f: FunctionIndex, n: Node) -> bool:
    """Are the operands of a collect_rows indices of rows, and rows, of the hoisted parameter?"""
    table, indices, rows = f.collected(n), f.type(n.inputs[0]), f.type(n.inputs[1])
    if table is None or not table.shape or indices.dtype.kind != "int":
        return False
    return table.with_shape((*indices.shape, *table.shape[1:])).accepts(rows)


def _is_collected(f: FunctionIndex, n: Node) -> bool:
    """Does it belong to the call that made the entry, and do its operand and output have the collected type?"""
    type_ = f.collected(n)
    return (
        type_ is not None
        and not _shares_entries(f, n)
        and _accepts(type_, f.type(n.inputs[1]))
        and _takes_from(type_, n)
    )


def _takes_from(type_: Type, n: Node) -> bool:
    """Does a collected have the type that was collected, or a collected_rows the types of its rows?"""
    if n.op == "collected_rows" and not type_.shape:
        return False
    types = rows_types(type_) if n.op == "collected_rows" else (type_,)
    return all(a.accepts(b) for a, b in zip(n.types, types, strict=True))


def _shares_entries(f: FunctionIndex, n: Node) -> bool:
    """Does it enter a graph of its own group?"""
    return f.graph.omitted(f.callee(n)) > 0


def _fits_sown(f: FunctionIndex, n: Node) -> bool:
    """Does a reap take a length, has its output a row for whatever is sown below its call, and is it the only one?"""
    name = f.nodes[link_of(n)].attrs.text("callee")
    row = _row(n.types[0])
    if row is None or f.type(n.inputs[1]) != Type(i64) or type(n.attrs.get("add")) is not bool:
        return False
    if sum(link_of(other) == link_of(n) for _, other in f.of("reap")) > 1:
        return False
    sown = (graph.type_of(node.inputs[1]) for graph, node in sown_below(f.library.functions, name))
    return all(row.accepts(type_.with_dtype(row.dtype)) for type_ in sown)


def _hoists_alike(f: FunctionIndex, n: Node) -> bool:
    return f.hoisted(f.callee(n)) == f.hoisted(f.graph)


def _names_floats(f: FunctionIndex, n: Node) -> bool:
    """Are `given` and `wanted` of a tangent ascending indices of float parameters and results of the callee?"""
    callee = f.callee(n)
    for key, ports in (("given", tuple(map(Port, callee.params))), ("wanted", callee.results)):
        indices = _indices(n, key, len(ports))
        if indices is None or list(indices) != sorted(indices):
            return False
        if not all(callee.type_of(ports[k]).dtype.is_inexact for k in indices):
            return False
    return True


def _comes_in_order(f: FunctionIndex | StaticIndex, n: Node, k: int) -> bool:
    """Does a later visit happen only where the visit before it has happened?"""
    before = f.before(n)
    return before is not None and f.phases[before] <= f.phases[k]


# Run once every graph of the library has passed the tables above.
CALLS: list[Rule[FunctionIndex, Node]] = [
    (ENTERS, lambda f, n, k: f.entered(n) is not None, "a node enters a graph that is not in the library"),
    (ENTERS, lambda f, n, k: f.callee(n).kind == BODIES[LIBRARY[n.op].site],
     "a call, loop or map enters a graph of the wrong kind"),
    ("tangent", lambda f, n, k: _names_floats(f, n),
     "`given` and `wanted` of a tangent are not ascending indices of float parameters and results"),
    ("tangent", lambda f, n, k: not f.callee(n).group, "a tangent of a graph whose parameters are already hoisted"),
    ("loop map", lambda f, n, k: not f.callee(n).group or _shares_entries(f, n),
     "a loop or map enters a group from outside, but only a call makes an entry"),
    ("call loop map", lambda f, n, k: not _shares_entries(f, n) or _hoists_alike(f, n),
     "graphs of one group differ in their hoisted parameters"),
    ("shared", lambda f, n, k: f.shared(n) is not None, "a node reads a shared value that main does not share"),
    ("shared", lambda f, n, k: _accepts(n.types[0], f.shared(n)),
     "a node does not accept the shared value that it reads"),
    ("gradient collected collected_rows reap", lambda f, n, k: _is_link(f, n) and f.nodes[link_of(n)].op == "call",
     "the first input of a gradient or collected, or of a reap, is not a call of the same region"),
    ("gradient", lambda f, n, k: f.gradients[link_of(n)] == 1, "a call has two gradients"),
    ("gradient", lambda f, n, k: _is_gradient(f, n),
     "the operands of a gradient are not the cotangents of the results `given`, or its outputs not those of `wanted`"),
    (COLLECTS, lambda f, n, k: n.types == (CTL,) and f.collected(n) is not None,
     "a collect does not return an order token, or its index is not that of a hoisted parameter"),
    ("collect", lambda f, n, k: _accepts(f.collected(n) or CTL, f.type(n.inputs[0])),
     "the collected value does not have the type of the hoisted parameter"),
    ("collect_rows", lambda f, n, k: _are_rows(f, n),
     "the operands of a collect_rows are not indices and rows of the hoisted parameter"),
    (COLLECTED, lambda f, n, k: _is_collected(f, n),
     "a collected belongs to a call that makes no entry, or does not have the type of the hoisted argument"),
    ("sow", lambda f, n, k: n.types == (CTL,) and f.type(n.inputs[0]) == Type(i64) and f.type(n.inputs[1]) != CTL,
     "the operands of a sow are not a place and a value, or it does not return an order token"),
    ("reap", lambda f, n, k: _fits_sown(f, n),
     "a reap takes no length, its output has no row for what is sown below, or its call has two of them"),
    ("resume", lambda f, n, k: _is_link(f, n), "the first input of a resume is not a call or map of the same region"),
    ("resume", lambda f, n, k: 0 < phase_of(n) < len(f.callee(n).phases), "the callee has no such later phase"),
    ("resume", lambda f, n, k: len(f.resumes[link_of(n), phase_of(n)]) == 1, "a phase is resumed twice"),
    ("resume", lambda f, n, k: _comes_in_order(f, n, k),
     "phases are out of order: a resume may happen where the phase before it has not been visited"),
    (ENTERING, lambda f, n, k: len(arguments(n)) == len(f.params(n)),
     "the number of arguments differs from the number of parameters"),
    (ENTERING, lambda f, n, k: _argument_types(f, n), "a parameter does not accept its argument"),
    (ENTERING, lambda f, n, k: len(n.types) == len(f.results(n)),
     "the number of outputs differs from the number of the callee's results"),
    (ENTERING, lambda f, n, k: _result_types(f, n), "an output does not accept the callee's result"),
    ("map resume", lambda f, n, k: not _is_map(f, n) or len(_lane_counts(f, n)) <= 1,
     "arrays of several lengths are mapped together"),
    ("map resume", lambda f, n, k: not _is_map(f, n) or _stated_lengths(n.types) <= _lane_counts(f, n),
     "an output of a map states another length than its arguments do"),
]  # fmt: skip

# --------------------------------------------------------------------------------------------------------------
# Static graphs


def _has_site(f: StaticIndex, n: Node) -> bool:
    kinds = (SITED[n.op],) if n.op in SITED else ("loop", "map")
    return 1 <= n.attrs.integer("site") <= len(f.sites) and f.site(n).kind in kinds


def _goes_to_merges(f: StaticIndex, n: Node, k: int) -> bool:
    region = f.site(n).callee
    return all(user.op == "merge" and user.region == region and not control for user, control in f.uses(k))


def _orders_the_way_back(f: StaticIndex, n: Node, k: int) -> bool:
    return all(
        (control and user.op in BACK and f.visit_key(user) == f.visit_key(n)) or _counts_lanes(f, user, n)
        for user, control in f.uses(k, 1)
    )


def _counts_lanes(f: StaticIndex, n: Node, start: Node) -> bool:
    """Does a node enter the lanes that a start token made, in a later phase?"""
    is_later = n.op in ("fan_start", "fan") and phase_of(n) > 0 and n.attrs["site"] == start.attrs["site"]
    return is_later and start.op == "fan_start" and phase_of(start) == 0


def _takes_count(f: StaticIndex, n: Node) -> bool:
    """Does a later phase of a map wait for the first, and its start token take the number of lanes from it?"""
    if phase_of(n) == 0:
        return True
    count = Port(f.starts[n.attrs.integer("site"), 0][0], 1)
    return n.inputs == (count,) if n.op == "fan_start" else count in n.controls


def _handed_on(f: StaticIndex, n: Node) -> bool:
    source: Type | None = f.type(n.inputs[0])
    target: Type | None = n.types[0]
    if n.op == "fan" and source is not None:
        source = _lane(source) if phase_of(n) else _row(source)
    if n.op == "gather" and target is not None:
        target = _lane(target)
    return target is not None and _accepts(target, source)


def _static_lane_counts(f: StaticIndex, site: int) -> set[int]:
    """The numbers of lanes that a map is told by the types of the arrays that it takes, in all of its phases."""
    nodes = (f.nodes[number] for _, visit in f.visits_of(site) for number in (*visit.starts, *visit.arguments))
    return _stated_lengths(f.type(operand) for node in nodes for operand in node.inputs)


def _takes_one_value(f: StaticIndex, n: Node) -> bool:
    """Are the inputs of a hoist_read hoists of one index, or one value of main?"""
    makers = [(f.nodes[port.node], port) for port in n.inputs if isinstance(port, Port)]
    if len(makers) != len(n.inputs) or not makers:
        return False
    if makers[0][0].op != "hoist":
        return len(makers) == 1 and f.home(makers[0][1]) == 0
    return {maker.op for maker, _ in makers} == {"hoist"} and len({maker.attrs["index"] for maker, _ in makers}) == 1


def _reads_its_entry(f: StaticIndex, n: Node) -> bool:
    """Do the hoists that it reads belong to exactly the entries that can be above it?"""
    makers = [f.nodes[port.node] for port in n.inputs if isinstance(port, Port)]
    if makers[0].op != "hoist":
        return True
    return {maker.attrs["site"] for maker in makers} == f.entry_sites(n.region)


_SITES = {**SITED, "outer": ""}
_TO_MERGES = tuple(op for op, site in {**STARTS, **INWARD}.items() if site != "map" and op != "hoist")


def _has_inputs(g: StaticGraph) -> bool:
    nodes = sorted((n.attrs.integer("index"), k) for k, n in enumerate(g.nodes) if n.op == "input")
    return nodes == list(enumerate(g.inputs))


STATIC_NODES: list[Rule[StaticIndex, Node]] = [
    (ANY, lambda f, n, k: n.op in STATIC or n.op not in LIBRARY, "a static graph holds an operator of libraries"),
    (_SITES, lambda f, n, k: _has_site(f, n), "a node names a site that does not exist or is of the wrong kind"),
    ("start input", lambda f, n, k: n.region == 0, "a start or input node is not in the main graph"),
    ("call_start enter_start", lambda f, n, k: n.types == (CTL, CTL),
     "the outputs of a call_start or enter_start are not two ctl tokens"),
    ("fan_start", lambda f, n, k: n.types == (CTL, Type(i64)),
     "the outputs of a fan_start are not a ctl token and the number of lanes"),
    ({**INWARD, **BACK, "outer": ""}, lambda f, n, k: _handed_on(f, n),
     "a node's output does not accept the value that it carries"),
    ("hoist_read", lambda f, n, k: all(n.types[0].accepts(f.type(operand)) for operand in n.inputs),
     "a node's output does not accept the value that it carries"),
    (COLLECTS, lambda f, n, k: n.types == (CTL,), "a collect does not return an order token"),
    (COLLECTED, lambda f, n, k: n.attrs["index"] in f.hoists.get(n.attrs.integer("site"), ()),
     "a collected names an index that its site does not hoist"),
    (COLLECTED, lambda f, n, k: _takes_from(f.type(n.inputs[0]), n),
     "a node's output does not accept the value that it carries"),
    ("hoist_read", lambda f, n, k: bool(n.controls), "a hoist_read has no control edge that could trigger it"),
]  # fmt: skip

STATICS: list[Rule[StaticIndex, StaticGraph]] = [
    (ANY, lambda f, g, k: bool(g.regions), "a static graph has no region 0"),
    (ANY, lambda f, g, k: _has_inputs(g), "the inputs are not the input nodes, in order"),
    (ANY, lambda f, g, k: sum(n.op == "start" for n in g.nodes) == 1, "there is not exactly one start node"),
    (ANY, lambda f, g, k: all(map(f.exists, g.fetches)), "a fetch does not exist"),
]  # fmt: skip

STATIC_EDGES: list[Rule[StaticIndex, Node]] = [
    ({**STARTS, **ARGUMENTS, **BACK, **COLLECTED},
     lambda f, n, k: n.region == f.site(n).caller,
     "a node is not in its site's caller region: what enters together must be dead together"),
    ("fan_start", lambda f, n, k: len(_static_lane_counts(f, n.attrs.integer("site"))) <= 1,
     "arrays of several lengths are mapped together"),
    ("gather", lambda f, n, k: _stated_lengths(n.types) <= _static_lane_counts(f, n.attrs.integer("site")),
     "an output of a map states another length than its arguments do"),
    ("outer", lambda f, n, k: n.region == f.site(n).callee, "an outer value is read outside its loop or map"),
    ("outer", lambda f, n, k: f.lives(n.inputs[0], f.site(n).caller),
     "an outer value does not live in the caller region of the loop or map"),
    ("next", lambda f, n, k: f.side(n.region) == (f.site(n).callee, True),
     "a next is not in the true branch of its loop"),
    (STARTS, lambda f, n, k: len(f.starts[f.visit_key(n)]) == 1, "a site has two start tokens for one phase"),
    (_SITES, lambda f, n, k: f.visit_key(n) in f.starts, "a site has no start token for this phase"),
    ("call_start fan_start", lambda f, n, k: phase_of(n) == 0 or _comes_in_order(f, n, k),
     "phases are out of order: a visit may begin where the phase before it has not been visited"),
    ("fan_start fan", lambda f, n, k: _takes_count(f, n),
     "a later phase of a map does not take the number of its lanes from the first"),
    (ARGUMENTS, lambda f, n, k: f.phases[k] == f.phases[f.starts[f.visit_key(n)][0]],
     "an argument and the start token of its site depend on different phases of the caller"),
    ({**ARGUMENTS, **BACK},
     lambda f, n, k: f.carriers[(n.op, *f.visit_key(n), n.attrs["index"])] == 1,
     "two nodes carry the same argument or result of a site"),
    (BACK, lambda f, n, k: Port(f.starts[f.visit_key(n)][0], 1) in n.controls,
     "a return, exit or gather has no control edge from the start of its site and phase"),
    ("return gather", lambda f, n, k: isinstance(n.inputs[0], Port) and f.home(n.inputs[0]) == f.site(n).callee,
     "a result does not live in the body that it returns from"),
    ("return gather",
     lambda f, n, k: all(f.waits_for(port) <= phase_of(n) for port in n.inputs if isinstance(port, Port)),
     "a result returns in an earlier phase than it depends on"),
    ("exit", lambda f, n, k: isinstance(n.inputs[0], Port) and f.side(f.home(n.inputs[0])) == (f.site(n).callee, False),
     "an exit does not take its value from the false branch of its loop"),
    (_TO_MERGES, lambda f, n, k: _goes_to_merges(f, n, k),
     "an argument or start token of a site goes elsewhere than into merges of the body entered"),
    (STARTS, lambda f, n, k: _orders_the_way_back(f, n, k),
     "the second output of a start goes elsewhere than to its site's returns, as control, or later phases of its map"),
    ("hoist", lambda f, n, k: all(user.op == "hoist_read" and not control for user, control in f.uses(k)),
     "a hoist goes elsewhere than into hoist_reads"),
    ("hoist_read", lambda f, n, k: _takes_one_value(f, n),
     "the inputs of a hoist_read are neither hoists of one index nor one value of the main graph"),
    ("hoist_read", lambda f, n, k: _reads_its_entry(f, n),
     "a hoist_read does not read the hoists of exactly the entries that it can be below"),
    (COLLECTS, lambda f, n, k: 0 not in f.entry_sites(n.region), "a collect can run where no entry is above it"),
    ("merge", lambda f, n, k: _is_branch_merge(f, n) or _is_tag_merge(f, n),
     "a merge joins neither the two sides of one branch nor the tokens that sites send to one parameter"),
]  # fmt: skip

FETCHES: list[Rule[StaticIndex, StaticGraph]] = [
    (ANY, lambda f, g, k: all(f.home(port) == 0 for port in g.fetches), "a fetch does not live in the main graph"),
    (ANY, lambda f, g, k: {key[0] for key in f.starts} == set(range(1, len(g.sites) + 1)), "a site has no start token"),
]  # fmt: skip

# --------------------------------------------------------------------------------------------------------------
# The check


def check(graph: Library | StaticGraph, type_rule: TypeRule | None = None) -> None:
    """Raise a GraphError if a rule is broken. `type_rule` returns the output types that a primitive must have."""
    if isinstance(graph, StaticGraph):
        _check_static(graph, type_rule)
        return
    if graph.main not in graph.functions:
        raise GraphError(f"the library has no main graph {quote(graph.main)}")
    if graph.functions[graph.main].kind != "main":
        raise GraphError(f"{quote(graph.main)} is not a main graph")
    indexes = {name: FunctionIndex(function, graph) for name, function in graph.functions.items()}
    for name, function in graph.functions.items():
        _check_function(name, indexes[name], function, type_rule)
    for name in graph.functions:
        _run(name, indexes[name], indexes[name].nodes, CALLS)


def _check_function(name: str, f: FunctionIndex, graph: FunctionGraph, type_rule: TypeRule | None) -> None:
    if graph.name != name:
        _fail(name, f, graph, 0, f"the graph is listed under this name, but its own is {quote(graph.name)}")
    _run(name, f, f.nodes, [*NODES, *LIBRARY_NODES])
    _run(name, f, f.regions, [*REGIONS, *LIBRARY_REGIONS])
    _run(name, f, [graph], FUNCTIONS)
    _check_edges(name, f, [*EDGES, *LIBRARY_EDGES], type_rule)
    _run(name, f, [graph], FUNCTION_EDGES)


def _check_static(graph: StaticGraph, type_rule: TypeRule | None) -> None:
    f, name = StaticIndex(graph), graph.name
    _run(name, f, f.nodes, NODES)
    _run(name, f, f.regions, [*STATIC_REGIONS, *REGIONS])
    _run(name, f, graph.sites, SITES)
    _run(name, f, f.nodes, STATIC_NODES)
    _run(name, f, [graph], STATICS)
    _check_edges(name, f, [*EDGES, *STATIC_EDGES], type_rule)
    _run(name, f, [graph], FETCHES)


def _check_edges(name: str, f: _I, edges: Iterable[Rule[_I, Node]], type_rule: TypeRule | None) -> None:
    _run(name, f, f.nodes, SWITCHES)
    _run(name, f, f.regions, REGION_EDGES)
    _run(name, f, f.nodes, edges)
    _check_types(name, f, type_rule)


def _run(name: str, f: _I, subjects: Sequence[_T], table: Iterable[Rule[_I, _T]]) -> None:
    """Check every row on every subject of its kinds."""
    of_kind = grouped((_kind(subject), number) for number, subject in enumerate(subjects))
    for about, holds, message in table:
        chosen = about.split() if isinstance(about, str) else about
        numbers = range(len(subjects)) if about == ANY else [n for kind in chosen for n in of_kind.get(kind, ())]
        for number in numbers:
            if not holds(f, subjects[number], number):
                _fail(name, f, subjects[number], number, message)


def _kind(subject: object) -> str:
    if isinstance(subject, Node):
        return subject.op
    return subject.kind if isinstance(subject, Region | Site | FunctionGraph) else ANY


def _check_types(name: str, f: GraphIndex, type_rule: TypeRule | None) -> None:
    if type_rule is None:
        return
    for number, node in enumerate(f.nodes):
        if not is_primitive(node.op):
            continue
        try:
            types = tuple(type_rule(node, [f.type(operand) for operand in node.inputs]))
        except UndertowError as error:
            _fail(name, f, node, number, f"an operator does not take these operands: {error.what}")
        if types != node.types:
            wanted = ", ".join(map(repr, types)) or "no output"
            _fail(name, f, node, number, f"the output types of an operator are not those of its type rule: {wanted}")


def _fail(name: str, f: GraphIndex, subject: object, number: int, message: str) -> NoReturn:
    """Say which rule is broken, and show what breaks it: a node with its inputs, a region, a site or a graph."""
    span: Span | None = None
    if isinstance(subject, Node):
        ports = (*ports_of(subject.inputs), *subject.controls)
        near = list(dict.fromkeys(port.node for port in ports if 0 <= port.node < len(f.nodes)))
        around = ["around it:"] if near else []
        shown = "\n  ".join([dump_node(f.graph, number), *around, *(dump_node(f.graph, n) for n in near[:8])])
        span = subject.span
    elif isinstance(subject, Region):
        shown = f"region {number}, {subject.kind} {quote(subject.name)}"
        span = f.nodes[subject.pred.node].span if subject.pred is not None and f.exists(subject.pred) else None
    elif isinstance(subject, Site):
        shown, span = f"site {number + 1}, {subject.kind} {quote(subject.label)}", subject.span
    elif isinstance(subject, FunctionGraph):
        shown, span = f"{subject.kind} {quote(name)}", subject.span
    else:
        shown = f"static {quote(name)}"
    raise GraphError(f"{quote(name)}: {message}\n  {shown}", span)
