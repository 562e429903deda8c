"""What a valid graph is, as tables of rules: `check` raises a GraphError that shows the node and the rule it breaks.

A row is (what it is about, what must hold, what is wrong otherwise). Tables run in order, row by row over the whole
graph, so a row may rely on all rows above it. Passes are checked by checking what they return.
It is the one list of all rules; tests/unit/ir/test_spec.py breaks each of them. What they look up is in `index`.

>>> from undertow.ir.text import parse
>>> check(parse('''
... library 1 main=main
... main main(x: f32) -> (y)
...   y: f32 = multiply x, z
...   z: f32 = add x, x
... '''))
Traceback (most recent call last):
undertow.errors.GraphError: main: a node stands before one that it depends on
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

# (node, types of its operands) -> types of its outputs; raises an UndertowError where there are none.
TypeRule = Callable[[Node, Sequence[Type]], tuple[Type, ...]]

ANY = "*"
BOOL = Type(bool_)

# --------------------------------------------------------------------------------------------------------------
# The tables: (operators or kinds, (index, node or region or site or graph, its number) -> holds, message)

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
    (ANY, lambda f, n, k: all(map(f.exists, (*n.inputs, *n.controls))), "a node or output that is used is not there"),
    (ANY, lambda f, n, k: 0 <= n.region < len(f.regions), "a node is in a region that is not there"),
    (ANY, lambda f, n, k: not any(isinstance(dim, str) for type_ in n.types for dim in type_.shape),
     "a type names a dimension; in graphs the names are erased"),
    (ANY, lambda f, n, k: _fits_form(f, n), "an operator has the wrong number of inputs or outputs"),
    (ANY, lambda f, n, k: _has_attrs(f, n), "an operator lacks an attribute that it must have"),
    (ANY, lambda f, n, k: _has_phase(f, n),
     "a phase is no whole number above 0 (the first is not written out), or stands on an operator that has none"),
    ("start", lambda f, n, k: n.types == (CTL,), "a start token is not of type ctl"),
    (SOURCES, lambda f, n, k: not n.controls, "a node that comes from outside has a control edge"),
    ("switch", lambda f, n, k: isinstance(n.inputs[0], Port) and f.type(n.inputs[0]) == BOOL,
     "the predicate of a switch is not the bool scalar of a node"),
    ("switch", lambda f, n, k: all(type_ == f.type(n.inputs[1]) for type_ in n.types),
     "the outputs of a switch have another type than its value"),
    ("merge", lambda f, n, k: all(isinstance(i, Port) for i in n.inputs), "a merge of a constant, which is never dead"),
    ("merge", lambda f, n, k: not n.controls, "a merge has a control edge: it forwards what comes, when it comes"),
    ("merge", lambda f, n, k: bool(n.inputs) and all(n.types[0].accepts(f.type(i)) for i in n.inputs),
     "a merge has no inputs, or one that its type does not accept"),
    (ANY, lambda f, n, k: n.op in SOURCES or bool(n.controls or ports_of(n.inputs)),
     "a node has no input that could trigger it: neither a port nor a control edge"),
]  # fmt: skip

LIBRARY_NODES: list[Rule[FunctionIndex, Node]] = [
    (ANY, lambda f, n, k: all(port.node < k for port in awaited(n)), "a node stands before one that it depends on"),
    ("start param", lambda f, n, k: n.region == 0, "a start or param node is inside a branch"),
    (ANY, lambda f, n, k: n.op in LIBRARY or n.op not in STATIC, "an operator of static graphs stands in a library"),
]  # fmt: skip

REGIONS: list[Rule[GraphIndex, Region]] = [
    ("branch", lambda f, r, k: r.parent is not None and 0 <= r.parent < k,
     "a branch does not come after the region that it stands in"),
    ("branch", lambda f, r, k: r.pred is not None and f.exists(r.pred) and f.type(r.pred) == BOOL,
     "a branch is not decided by a bool scalar"),
    ("branch", lambda f, r, k: f.sides[r.pred, r.parent, True] == f.sides[r.pred, r.parent, False] == 1,
     "a branch has not just one true and one false side"),
    (BODY_KINDS, lambda f, r, k: r.pred is None and not r.side, "a body has a predicate"),
    (ANY, lambda f, r, k: all(f.exists(port) and f.type(port) == CTL for port in r.starts),
     "a region does not start at ctl ports"),
]  # fmt: skip

LIBRARY_REGIONS: list[Rule[FunctionIndex, Region]] = [
    (ANY, lambda f, r, k: (k == 0) != (r.kind == "branch"), "region 0 is not the body, or another is no branch"),
    (ANY, lambda f, r, k: k > 0 or (r.kind == f.graph.kind and r.parent is None),
     "the body is not of the kind of its graph"),
]  # fmt: skip

STATIC_REGIONS: list[Rule[StaticIndex, Region]] = [
    (ANY, lambda f, r, k: r.kind in (*BODY_KINDS, "branch"), "a region is of no kind that there is"),
    (ANY, lambda f, r, k: (k == 0) == (r.kind == "main"), "region 0 is not the main graph, or there is another"),
    ("main function", lambda f, r, k: r.parent is None, "a function has a parent"),
    ("loop map", lambda f, r, k: r.parent is not None and 0 <= r.parent < len(f.regions),
     "a loop or map stands in no region"),
    (BODY_KINDS, lambda f, r, k: bool(r.starts), "a body has no start"),
]  # fmt: skip

SITES: list[Rule[StaticIndex, Site]] = [
    (ANY, lambda f, s, k: s.kind in BODIES, "a site is neither a call nor a loop nor a map"),
    (ANY, lambda f, s, k: 0 <= s.caller < len(f.regions) and 0 <= s.callee < len(f.regions),
     "a site joins regions that are not there"),
    (ANY, lambda f, s, k: f.regions[s.callee].kind == BODIES[s.kind], "a site enters a region of another kind"),
    ("loop map", lambda f, s, k: f.regions[s.callee].parent == s.caller and len(f.sites_into[s.callee]) == 1,
     "a loop or map body does not belong to one site, inside the region that the site stands in"),
]  # fmt: skip

# Where tokens live. From here on `home` can be asked.
SWITCHES: list[Rule[GraphIndex, Node]] = [
    ("switch", lambda f, n, k: (n.inputs[0], n.region) in f.branches,
     "a switch has no branch: its region holds no pair of regions that its predicate decides"),
    ("switch", lambda f, n, k: all(f.lives(i, n.region) for i in n.inputs),
     "the predicate or value of a switch lives in another region"),
]  # fmt: skip

REGION_EDGES: list[Rule[GraphIndex, Region]] = [
    ("branch", lambda f, r, k: r.pred is not None and f.home(r.pred) == r.parent,
     "a branch is decided by a value that lives elsewhere than it stands"),
    (ANY, lambda f, r, k: all(f.home(port) == k for port in r.starts),
     "a region starts at a token that lives elsewhere"),
]  # fmt: skip


_ELSEWHERE = {"merge": "", **BACK, **READS}  # rows of their own say where


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
     "an input lives in another region than its node"),
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
    made = [(k, phase_of(n), n.attrs["index"]) for k, n in enumerate(g.nodes) if n.op == "param"]
    return sorted(listed) == made


def _has_starts(f: FunctionIndex, g: FunctionGraph) -> bool:
    made = {phase_of(n): Port(k) for k, n in enumerate(g.nodes) if n.op == "start"}
    return sum(n.op == "start" for n in g.nodes) == len(g.phases) and g.regions[0].starts == tuple(
        made.get(phase) for phase in range(len(g.phases))
    )


def _next_types(g: FunctionGraph) -> bool:
    variables = [g.nodes[param].types[0] for param in g.params[: g.carried]]
    return all(type_.accepts(g.type_of(port)) for type_, port in zip(variables, g.results[1:], strict=True))


FUNCTIONS: list[Rule[FunctionIndex, FunctionGraph]] = [
    (ANY, lambda f, g, k: g.kind in BODY_KINDS, "a graph is of no kind that there is"),
    (ANY, lambda f, g, k: bool(g.regions), "a graph has no region 0"),
    (ANY, lambda f, g, k: bool(g.phases), "a graph has no phase"),
    (ANY, lambda f, g, k: _has_params(f, g), "the parameters of the phases are not the param nodes, each in its place"),
    (ANY, lambda f, g, k: _has_starts(f, g), "the body does not start at one start node for each phase"),
    (ANY, lambda f, g, k: all(map(f.exists, (port for phase in g.phases for port in phase.results))),
     "a result is not there"),
    ("main function", lambda f, g, k: g.carried == 0, "only loops and maps have carried parameters"),
    (ANY, lambda f, g, k: bool(g.group) == (g.hoisted > 0) and g.hoisted >= 0,
     "a graph has hoisted parameters but no group, or a group but no hoisted parameters"),
    ("main", lambda f, g, k: not g.group, "main is in a group, but nothing calls it"),
    ("function loop map", lambda f, g, k: not g.shared, "only main shares values of the run"),
    ("main", lambda f, g, k: all(map(f.exists, g.shared)), "a shared value is not there"),
    ("loop", lambda f, g, k: len(g.phases) == 1, "a loop has several phases"),
    ("loop map", lambda f, g, k: 0 <= g.carried <= len(g.params), "more parameters are carried than there are"),
    (ANY, lambda f, g, k: g.carried + g.hoisted <= len(g.params),
     "more parameters are carried and hoisted than there are"),
    ("map", lambda f, g, k: g.carried > 0, "a map has no mapped parameter, so there is no number of lanes"),
    ("loop", lambda f, g, k: len(g.results) == g.carried + 1, "a loop's results are not its predicate and next values"),
    ("loop", lambda f, g, k: f.type(g.results[0]) == BOOL,
     "a loop's first result, its predicate, is not a bool scalar"),
    ("loop", lambda f, g, k: _next_types(g), "a loop variable does not accept its next value"),
]  # fmt: skip

FUNCTION_EDGES: list[Rule[FunctionIndex, FunctionGraph]] = [
    ("main function map", lambda f, g, k: all(f.home(port) == 0 for phase in g.phases for port in phase.results),
     "a result lives inside a branch"),
    ("main function map",
     lambda f, g, k: all(f.phases[port.node] <= p for p, phase in enumerate(g.phases) for port in phase.results),
     "a result waits for a later phase than the one that gives it"),
    ("main", lambda f, g, k: all(f.home(port) == 0 and f.phases[port.node] == 0 for port in g.shared),
     "a shared value lives inside a branch, or waits for a later phase"),
    ("loop", lambda f, g, k: f.home(g.results[0]) == 0, "the predicate of a loop lives inside a branch"),
    ("loop", lambda f, g, k: all(f.home(port) == f.branches.get((g.results[0], 0), (-1,))[0] for port in g.results[1:]),
     "the next value of a loop variable does not live in the true branch of the loop's predicate"),
]  # fmt: skip


def _row(type_: Type) -> Type | None:
    """The type of one lane."""
    return type_.with_shape(type_.shape[1:]) if type_.shape else None


def _lane(type_: Type) -> Type | None:
    """The type of what one lane gives, or takes in a later phase: order tokens of all lanes are one order token."""
    return type_ if type_ == CTL else _row(type_)


def _accepts(takes: Type, given: Type | None) -> bool:
    return given is not None and takes.accepts(given)


def _argument_types(f: FunctionIndex, n: Node) -> bool:
    callee = f.callee(n)
    given = [f.type(operand) for operand in arguments(n)]
    mapped, element = callee.carried if n.op == "map" else 0, _row
    if n.op == "resume" and callee.kind == "map":
        mapped, element = len(given), _lane
    lanes = [element(type_) for type_ in given[:mapped]] + given[mapped:]
    return all(_accepts(takes, type_) for takes, type_ in zip(f.params(n), lanes, strict=True))


def _result_types(f: FunctionIndex, n: Node) -> bool:
    taken = [_lane(type_) if f.callee(n).kind == "map" else type_ for type_ in n.types]
    return all(takes is not None and takes.accepts(given) for takes, given in zip(taken, f.results(n), strict=True))


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


def _numbers(n: Node, key: str, count: int) -> tuple[int, ...] | None:
    """The attribute that names some of so many things, each once; None where it does not."""
    named = n.attrs.get(key)
    if not isinstance(named, tuple) or not all(type(k) is int and 0 <= k < count for k in named):
        return None
    return n.attrs.integers(key) if len(set(named)) == len(named) else None


def _is_gradient(f: FunctionIndex, n: Node) -> bool:
    """Has it a cotangent for each result that is `given`, and outputs for each argument that is `wanted`?"""
    callee, cotangents = f.callee(n), [f.type(x) for x in n.inputs[1:]]
    results = f.nodes[link_of(n)].types  # as the call says: the callee may know more
    params = [callee.nodes[param].types[0] for param in callee.params]
    given, wanted = _numbers(n, "given", len(results)), _numbers(n, "wanted", len(params))
    return (
        given is not None
        and wanted is not None
        and len(given) == len(cotangents)
        and all(results[k].accepts(type_) for k, type_ in zip(given, cotangents, strict=True))
        and all(type_.dtype.kind == "float" for type_ in (*cotangents, *(params[k] for k in wanted)))
        and _gives_cotangents(n, wanted, params)
    )


def _gives_cotangents(n: Node, wanted: Sequence[int], params: Sequence[Type]) -> bool:
    """Are the outputs of a gradient the cotangents of what is `wanted`: whole ones, or rows of what is `sparse`?"""
    sparse = _numbers(n, "sparse", len(params)) if "sparse" in n.attrs else ()
    if sparse is None or ("sparse" in n.attrs and not sparse):
        return False  # it is left out where there are none
    if not all(k in wanted and params[k].shape for k in sparse):
        return False
    given = [t for k in wanted for t in (rows_types(params[k]) if k in sparse else (params[k],))]
    return len(given) == len(n.types) and all(a.accepts(b) for a, b in zip(n.types, given, strict=True))


def _are_rows(f: FunctionIndex, n: Node) -> bool:
    """Are the operands of a collect_rows numbers of rows, and rows, of what is collected?"""
    table, indices, rows = f.collected(n), f.type(n.inputs[0]), f.type(n.inputs[1])
    if table is None or not table.shape or indices.dtype.kind != "int":
        return False
    return table.with_shape((*indices.shape, *table.shape[1:])).accepts(rows)


def _is_collected(f: FunctionIndex, n: Node) -> bool:
    """Is it the caller of an entry that takes what was collected, and with it something of that type?"""
    type_ = f.collected(n)
    return (
        type_ is not None
        and not _shares_entries(f, n)
        and _accepts(type_, f.type(n.inputs[1]))
        and _takes_from(type_, n)
    )


def _takes_from(type_: Type, n: Node) -> bool:
    """Has a collected the type of what was collected, or a collected_rows those of rows of it?"""
    if n.op == "collected_rows" and not type_.shape:
        return False
    given = rows_types(type_) if n.op == "collected_rows" else (type_,)
    return all(a.accepts(b) for a, b in zip(n.types, given, strict=True))


def _shares_entries(f: FunctionIndex, n: Node) -> bool:
    """Does it enter a graph of its own group?"""
    return f.graph.omitted(f.callee(n)) > 0


def _hoists_alike(f: FunctionIndex, n: Node) -> bool:
    return f.hoisted(f.callee(n)) == f.hoisted(f.graph)


def _names_floats(f: FunctionIndex, n: Node) -> bool:
    """Do `given` and `wanted` of a tangent name floats among the callee's parameters and results?"""
    callee = f.callee(n)
    for key, ports in (("given", tuple(map(Port, callee.params))), ("wanted", callee.results)):
        numbers = _numbers(n, key, len(ports))
        if numbers is None or list(numbers) != sorted(numbers):
            return False
        if any(callee.type_of(ports[k]).dtype.kind != "float" for k in numbers):
            return False
    return True


def _comes_in_order(f: FunctionIndex | StaticIndex, n: Node, k: int) -> bool:
    """Is a later visit made only by callers that make the visit before it?"""
    before = f.before(n)
    return before is not None and f.phases[before] <= f.phases[k]


# Checked when every graph of the library has passed the tables above.
CALLS: list[Rule[FunctionIndex, Node]] = [
    (ENTERS, lambda f, n, k: f.entered(n) is not None, "a graph that is entered is not in the library"),
    (ENTERS, lambda f, n, k: f.callee(n).kind == BODIES[LIBRARY[n.op].site],
     "a call enters a graph that is no function, a loop one that is no loop, or a map one that is no map"),
    ("tangent", lambda f, n, k: _names_floats(f, n),
     "the tangents of a call are not those of float arguments and float results, by ascending numbers"),
    ("tangent", lambda f, n, k: not f.callee(n).group, "the tangent of a graph that is hoisted already"),
    ("loop map", lambda f, n, k: not f.callee(n).group or _shares_entries(f, n),
     "a loop or map of a group is entered from outside it, where only a call makes an entry"),
    ("call loop map", lambda f, n, k: not _shares_entries(f, n) or _hoists_alike(f, n),
     "graphs of one group have unequal hoisted parameters"),
    ("shared", lambda f, n, k: f.shared(n) is not None, "a node reads a shared value that main does not share"),
    ("shared", lambda f, n, k: _accepts(n.types[0], f.shared(n)),
     "a node does not accept the shared value that it reads"),
    ("gradient collected collected_rows", lambda f, n, k: _is_link(f, n) and f.nodes[link_of(n)].op == "call",
     "the first input of a gradient or collected is not a call of the same region"),
    ("gradient", lambda f, n, k: f.gradients[link_of(n)] == 1, "a call has two gradients"),
    ("gradient", lambda f, n, k: _is_gradient(f, n),
     "a gradient has not just a cotangent for each result `given` and an output for each argument `wanted`"),
    (COLLECTS, lambda f, n, k: n.types == (CTL,) and f.collected(n) is not None,
     "a collect gives no order token, or names nothing that its entry is given"),
    ("collect", lambda f, n, k: _accepts(f.collected(n) or CTL, f.type(n.inputs[0])),
     "what is collected has another type than what the entry is given"),
    ("collect_rows", lambda f, n, k: _are_rows(f, n), "what is collected are not rows of what the entry is given"),
    (COLLECTED, lambda f, n, k: _is_collected(f, n),
     "a collected does not take something that the entry which it calls is given, of its type"),
    ("resume", lambda f, n, k: _is_link(f, n), "the first input of a resume is not a call or map of the same region"),
    ("resume", lambda f, n, k: 0 < phase_of(n) < len(f.callee(n).phases), "the callee has no such later phase"),
    ("resume", lambda f, n, k: len(f.resumes[link_of(n), phase_of(n)]) == 1, "a phase is resumed twice"),
    ("resume", lambda f, n, k: _comes_in_order(f, n, k),
     "phases are not visited in order: a resume may happen where the phase before it has not been visited"),
    (ENTERING, lambda f, n, k: len(arguments(n)) == len(f.params(n)),
     "the number of arguments is not that of the parameters"),
    (ENTERING, lambda f, n, k: _argument_types(f, n), "a parameter does not accept its argument"),
    (ENTERING, lambda f, n, k: len(n.types) == len(f.results(n)),
     "the number of outputs is not that of the callee's results"),
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
    """Does what enters lanes in a later phase wait for the first, and the start token take their number from it?"""
    if phase_of(n) == 0:
        return True
    count = Port(f.starts[n.attrs.integer("site"), 0][0], 1)
    return n.inputs == (count,) if n.op == "fan_start" else count in n.controls


def _handed_on(f: StaticIndex, n: Node) -> bool:
    given: Type | None = f.type(n.inputs[0])
    taken: Type | None = n.types[0]
    if n.op == "fan" and given is not None:
        given = _lane(given) if phase_of(n) else _row(given)
    if n.op == "gather" and taken is not None:
        taken = _lane(taken)
    return taken is not None and _accepts(taken, given)


def _static_lane_counts(f: StaticIndex, site: int) -> set[int]:
    """The numbers of lanes that a map is told by the types of the arrays that it takes, in all of its phases."""
    nodes = (f.nodes[number] for _, visit in f.visits_of(site) for number in (*visit.starts, *visit.arguments))
    return _stated_lengths(f.type(operand) for node in nodes for operand in node.inputs)


def _takes_one_value(f: StaticIndex, n: Node) -> bool:
    """Does a hoist_read take what hoists of one index give, or one value of main?"""
    makers = [(f.nodes[port.node], port) for port in n.inputs if isinstance(port, Port)]
    if len(makers) != len(n.inputs) or not makers:
        return False
    if makers[0][0].op != "hoist":
        return len(makers) == 1 and f.home(makers[0][1]) == 0
    return {maker.op for maker, _ in makers} == {"hoist"} and len({maker.attrs["index"] for maker, _ in makers}) == 1


def _reads_its_entry(f: StaticIndex, n: Node) -> bool:
    """Do the hoists that it reads belong to all entries that can be above it, and to no other?"""
    makers = [f.nodes[port.node] for port in n.inputs if isinstance(port, Port)]
    if makers[0].op != "hoist":
        return True
    return {maker.attrs["site"] for maker in makers} == f.entry_sites(n.region)


_SITES = {**SITED, "outer": ""}
_TO_MERGES = tuple(op for op, site in {**STARTS, **INWARD}.items() if site != "map" and op != "hoist")


def _has_inputs(g: StaticGraph) -> bool:
    made = sorted((n.attrs.integer("index"), k) for k, n in enumerate(g.nodes) if n.op == "input")
    return made == list(enumerate(g.inputs))


STATIC_NODES: list[Rule[StaticIndex, Node]] = [
    (ANY, lambda f, n, k: n.op in STATIC or n.op not in LIBRARY, "an operator of libraries stands in a static graph"),
    (_SITES, lambda f, n, k: _has_site(f, n), "a node names a site that is not there, or of another kind"),
    ("start input", lambda f, n, k: n.region == 0, "a start or input node is not in the main graph"),
    ("call_start enter_start", lambda f, n, k: n.types == (CTL, CTL),
     "the start of a site does not give two ctl tokens"),
    ("fan_start", lambda f, n, k: n.types == (CTL, Type(i64)),
     "the start of a map does not give a ctl token and the number of lanes"),
    ({**INWARD, **BACK, "outer": ""}, lambda f, n, k: _handed_on(f, n), "a type changes on the way"),
    ("hoist_read", lambda f, n, k: all(n.types[0].accepts(f.type(operand)) for operand in n.inputs),
     "a type changes on the way"),
    (COLLECTS, lambda f, n, k: n.types == (CTL,), "a collect gives no order token"),
    (COLLECTED, lambda f, n, k: n.attrs["index"] in f.hoists.get(n.attrs.integer("site"), ()),
     "a collected takes something that its site does not give to an entry"),
    (COLLECTED, lambda f, n, k: _takes_from(f.type(n.inputs[0]), n), "a type changes on the way"),
    ("hoist_read", lambda f, n, k: bool(n.controls), "a hoist_read has no control edge that could trigger it"),
]  # fmt: skip

STATICS: list[Rule[StaticIndex, StaticGraph]] = [
    (ANY, lambda f, g, k: bool(g.regions), "a static graph has no region 0"),
    (ANY, lambda f, g, k: _has_inputs(g), "the inputs are not the input nodes, in order"),
    (ANY, lambda f, g, k: sum(n.op == "start" for n in g.nodes) == 1, "there is not just one start node"),
    (ANY, lambda f, g, k: all(map(f.exists, g.fetches)), "a fetch is not there"),
]  # fmt: skip

STATIC_EDGES: list[Rule[StaticIndex, Node]] = [
    ({**STARTS, **ARGUMENTS, **BACK, **COLLECTED},
     lambda f, n, k: n.region == f.site(n).caller,
     "a node stands elsewhere than its site: what enters together must be dead together"),
    ("fan_start", lambda f, n, k: len(_static_lane_counts(f, n.attrs.integer("site"))) <= 1,
     "arrays of several lengths are mapped together"),
    ("gather", lambda f, n, k: _stated_lengths(n.types) <= _static_lane_counts(f, n.attrs.integer("site")),
     "an output of a map states another length than its arguments do"),
    ("outer", lambda f, n, k: n.region == f.site(n).callee, "an outer value is read outside its loop or map"),
    ("outer", lambda f, n, k: f.lives(n.inputs[0], f.site(n).caller), "an outer value does not live around the site"),
    ("next", lambda f, n, k: f.side(n.region) == (f.site(n).callee, True),
     "a next stands elsewhere than in the true branch of its loop"),
    (STARTS, lambda f, n, k: len(f.starts[f.visit_key(n)]) == 1, "a site has two start tokens for one phase"),
    (_SITES, lambda f, n, k: f.visit_key(n) in f.starts, "a site has no start token for this phase"),
    ("call_start fan_start", lambda f, n, k: phase_of(n) == 0 or _comes_in_order(f, n, k),
     "phases are not visited in order: a visit may begin where the phase before it has not been visited"),
    ("fan_start fan", lambda f, n, k: _takes_count(f, n),
     "a later phase of a map does not take the number of its lanes from the first"),
    (ARGUMENTS, lambda f, n, k: f.phases[k] == f.phases[f.starts[f.visit_key(n)][0]],
     "an argument waits for another phase of its caller than the start token of its site"),
    ({**ARGUMENTS, **BACK},
     lambda f, n, k: f.carriers[(n.op, *f.visit_key(n), n.attrs["index"])] == 1,
     "two nodes carry the same argument or result of a site"),
    (BACK, lambda f, n, k: Port(f.starts[f.visit_key(n)][0], 1) in n.controls,
     "the way back has no control edge from the start of its site and phase"),
    ("return gather", lambda f, n, k: isinstance(n.inputs[0], Port) and f.home(n.inputs[0]) == f.site(n).callee,
     "a result does not live in the body that it comes back from"),
    ("return gather",
     lambda f, n, k: all(f.waits_for(port) <= phase_of(n) for port in n.inputs if isinstance(port, Port)),
     "a result comes back in an earlier phase than it waits for"),
    ("exit", lambda f, n, k: isinstance(n.inputs[0], Port) and f.side(f.home(n.inputs[0])) == (f.site(n).callee, False),
     "an exit does not take its value from the false branch of its loop"),
    (_TO_MERGES, lambda f, n, k: _goes_to_merges(f, n, k),
     "what a site sends goes elsewhere than into merges of the body that it enters"),
    (STARTS, lambda f, n, k: _orders_the_way_back(f, n, k),
     "the second token of a site's start goes elsewhere than to its way back, as control, or into the same lanes"),
    ("hoist", lambda f, n, k: all(user.op == "hoist_read" and not control for user, control in f.uses(k)),
     "what an entry is given goes elsewhere than into hoist_reads"),
    ("hoist_read", lambda f, n, k: _takes_one_value(f, n),
     "a hoist_read takes neither what hoists give as one argument of entries nor one value of the main graph"),
    ("hoist_read", lambda f, n, k: _reads_its_entry(f, n),
     "a hoist_read may run below an entry whose value it does not take, or takes one that it is never below"),
    (COLLECTS, lambda f, n, k: 0 not in f.entry_sites(n.region), "a collect may run below no entry"),
    ("merge", lambda f, n, k: _is_branch_merge(f, n) or _is_tag_merge(f, n),
     "a merge joins neither the two sides of one branch nor what sites send as one parameter"),
]  # fmt: skip

FETCHES: list[Rule[StaticIndex, StaticGraph]] = [
    (ANY, lambda f, g, k: all(f.home(port) == 0 for port in g.fetches), "a fetch does not live in the main graph"),
    (ANY, lambda f, g, k: {key[0] for key in f.starts} == set(range(1, len(g.sites) + 1)), "a site has no start token"),
]  # fmt: skip

# --------------------------------------------------------------------------------------------------------------
# The check


def check(graph: Library | StaticGraph, type_rule: TypeRule | None = None) -> None:
    """Raise a GraphError if a rule is broken. `type_rule` gives the types that primitive nodes must carry."""
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
        _fail(name, f, graph, 0, f"the graph calls itself {quote(graph.name)}")
    _run(name, f, f.nodes, [*NODES, *LIBRARY_NODES])
    _run(name, f, f.regions, [*REGIONS, *LIBRARY_REGIONS])
    _run(name, f, [graph], FUNCTIONS)
    _run(name, f, f.nodes, SWITCHES)
    _run(name, f, f.regions, REGION_EDGES)
    _run(name, f, f.nodes, [*EDGES, *LIBRARY_EDGES])
    _run(name, f, [graph], FUNCTION_EDGES)
    _check_types(name, f, type_rule)


def _check_static(graph: StaticGraph, type_rule: TypeRule | None) -> None:
    f, name = StaticIndex(graph), graph.name
    _run(name, f, f.nodes, NODES)
    _run(name, f, f.regions, [*STATIC_REGIONS, *REGIONS])
    _run(name, f, graph.sites, SITES)
    _run(name, f, f.nodes, STATIC_NODES)
    _run(name, f, [graph], STATICS)
    _run(name, f, f.nodes, SWITCHES)
    _run(name, f, f.regions, REGION_EDGES)
    _run(name, f, f.nodes, [*EDGES, *STATIC_EDGES])
    _run(name, f, [graph], FETCHES)
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
            _fail(name, f, node, number, f"an operator does not have the types of its rule: {wanted}")


def _fail(name: str, f: GraphIndex, subject: object, number: int, message: str) -> NoReturn:
    """Say which rule is broken, and show what breaks it: a node with those before it, a region, a site, a graph."""
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
