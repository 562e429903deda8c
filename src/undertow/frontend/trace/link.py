"""Links the graphs of SubGraph blocks: completes calls of functions that were unfinished when they were called.

A block runs once, so its call of a SubGraph that is still open cannot know which hidden arguments (design/0003) that
one will take. It hands over an order token and a random key, in case they are needed. When the last of the SubGraphs
that call each other is finished, `link` removes the tokens and keys that nothing needs, and adds to every call the
values of enclosing blocks that the callee uses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.trace.capture import CaptureSession
from undertow.frontend.trace.definition import Specialization
from undertow.frontend.trace.scope import Outer, name_of
from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.structure import ENTERS, SOURCES
from undertow.types import CTL, Type, i64

PROVISIONAL = ("effect", "key")  # hidden arguments of a call of an unfinished SubGraph


@dataclass(slots=True, eq=False)
class WrittenBlock:
    """A SubGraph whose block has ended: its function, its builder, the ports of its results."""

    function: Specialization
    builder: Builder
    visible: list[int]  # the parameters that the user declared
    results: list[Port]
    session: CaptureSession


@dataclass(slots=True, eq=False)
class _Body:
    """The graph of a function, or of a loop or map inside one."""

    builder: Builder
    results: list[Port]
    carried: int
    session: CaptureSession
    parent: _Body | None = None
    node: int = 0  # the loop or map, in the parent
    children: dict[int, _Body] = field(default_factory=dict)
    dead: set[Port] = field(default_factory=set)  # hidden values that may be unneeded

    def chain(self) -> list[_Body]:
        """From the function inwards to this body."""
        chain = [self]
        while chain[-1].parent is not None:
            chain.append(chain[-1].parent)
        return chain[::-1]

    def nodes(self, *ops: str) -> Iterator[tuple[int, Node]]:
        return ((number, node) for number, node in enumerate(self.builder.nodes) if node.op in ops)


@dataclass(slots=True, eq=False)
class _Member:
    """A function to be linked: a SubGraph, or an @ut.function that its block called."""

    function: Specialization
    bodies: list[_Body]  # its own first, then loops and maps, each after its enclosing body
    visible: list[int]
    handed: list[Any]  # hidden arguments of calls, before linking
    hidden: dict[Any, Port] = field(default_factory=dict)  # hidden argument -> its parameter
    owner: Builder | None = None  # of a SubGraph: values of this builder are its own

    @property
    def builder(self) -> Builder:
        return self.bodies[0].builder

    @property
    def lifted(self) -> list[Outer]:
        return [what for what in self.hidden if not isinstance(what, str)]


def link(blocks: Sequence[WrittenBlock]) -> None:
    """Finish the graphs of SubGraphs that call each other, and record the hidden arguments of their functions."""
    members = _gather(blocks)
    _lift(members)
    acting = _with_callers(members, {name for name, member in members.items() if _acts(member, members)})
    drawing = _with_callers(members, {name for name, member in members.items() if _draws(member, members)})
    for name, member in members.items():
        for what, takes in (("effect", name in acting), ("key", name in drawing)):
            if not takes:
                member.hidden.pop(what, None)
        if member.owner is not None:
            member.hidden = dict(sorted(member.hidden.items(), key=lambda item: _first_use(member, members, *item)))
        for body in member.bodies:
            if name in acting:
                body.dead -= {port for port in body.dead if body.builder.type_of(port) == CTL}
            if name in drawing:
                body.dead -= {port for port in body.dead if body.builder.type_of(port) != CTL}
    inputs = {name: _call_inputs(member, members) for name, member in members.items()}
    for name, member in members.items():
        member.function.hidden = dict.fromkeys(member.hidden)
        for body in member.bodies:
            graph = _finished(body, member, inputs[name].get(body, {}), members)
            if body.parent is None:
                graph = replace(graph, name=name, regions=(replace(graph.regions[0], name=name), *graph.regions[1:]))
            body.session.graphs[graph.name] = graph
        member.function.graph = member.bodies[0].session.graphs[name]


def callee_of(node: Node) -> str:
    """The graph that a call, loop, map or tangent enters."""
    return node.attrs.text(ENTERS[node.op])


def called_by(block: WrittenBlock) -> set[str]:
    """The functions that a block calls: directly, in loops and maps, and through the @ut.functions that it calls."""
    functions = {function.name for function in block.session.specializations}
    callees: set[str] = set()
    worklist: list[Sequence[Node]] = [block.builder.nodes]
    while worklist:
        for node in worklist.pop():
            if node.op in ("loop", "map"):
                worklist.append(block.session.graphs[callee_of(node)].nodes)
            elif node.op == "call" and callee_of(node) not in callees:
                callees.add(callee_of(node))
                if callee_of(node) in functions:
                    worklist.append(block.session.graphs[callee_of(node)].nodes)
    return callees


# -- members and bodies ------------------------------------------------------------------------------------


def _gather(blocks: Sequence[WrittenBlock]) -> dict[str, _Member]:
    members: dict[str, _Member] = {}
    for block in blocks:
        builder = block.builder
        results = [*block.results, block.session.last_effect(builder)]
        bodies = _bodies(builder, results, block.session)
        member = _Member(block.function, bodies, block.visible, list(PROVISIONAL), owner=builder)
        member.hidden.update(builder.lifted)
        assert builder.entry_effect is not None
        member.hidden["effect"] = builder.entry_effect
        # A function that passes a key to others takes one, whether it draws itself or not.
        member.hidden["key"] = builder.key or builder.param(Type(i64), "key")
        members[block.function.name] = member
    worklist = list(members.values())
    while worklist:
        for body in worklist.pop().bodies:
            functions = {function.name: function for function in body.session.specializations}
            for _, node in body.nodes("call"):
                name = callee_of(node)
                if name in functions and name not in members:
                    members[name] = _of_function(functions[name], body.session)
                    worklist.append(members[name])
    return members


def _of_function(function: Specialization, session: CaptureSession) -> _Member:
    graph = session.graphs[function.name]
    bodies = _bodies(Builder.reopened(graph), list(graph.results), session)
    count = len(function.types)
    params = bodies[0].builder.params
    hidden = {what: Port(param) for what, param in zip(function.hidden, params[count:], strict=True)}
    return _Member(function, bodies, params[:count], list(function.hidden), hidden)


def _bodies(builder: Builder, results: list[Port], session: CaptureSession) -> list[_Body]:
    bodies = [_Body(builder, results, 0, session)]
    for body in bodies:  # it grows meanwhile
        for number, node in body.nodes("loop", "map"):
            graph = session.graphs[callee_of(node)]
            inner = _Body(Builder.reopened(graph), list(graph.results), graph.carried, session, body, number)
            body.children[number] = inner
            bodies.append(inner)
    return bodies


# -- values of enclosing blocks ----------------------------------------------------------------------------


def _group_calls(member: _Member, members: dict[str, _Member]) -> Iterator[tuple[_Body, int, _Member]]:
    for body in member.bodies:
        for number, node in body.nodes("call"):
            if callee_of(node) in members:
                yield body, number, members[callee_of(node)]


def _lift(members: dict[str, _Member]) -> None:
    """Lift values of enclosing blocks: a caller of a function that uses one uses it, too."""
    calls = {name: [callee for _, _, callee in _group_calls(member, members)] for name, member in members.items()}
    is_growing = True
    while is_growing:
        is_growing = False
        for name, member in members.items():
            for callee in calls[name]:
                for what in callee.lifted:
                    if what not in member.hidden and what[0] is not member.owner:
                        member.hidden[what] = member.builder.param(what[0].type_of(what[1]), name_of(what))
                        is_growing = True


def _resolve(body: _Body, what: Outer, member: _Member) -> Port:
    """A value of an enclosing block as a port of this body; loops and maps around it take it as an invariant."""
    port = what[1] if what[0] is member.owner else member.hidden[what]
    for at in body.chain()[1:]:
        assert at.parent is not None
        parent = at.parent.builder
        node = parent.nodes[at.node]
        for index, handed in list(enumerate(node.inputs))[at.carried :]:
            if isinstance(handed, Port) and parent.origin(handed) == parent.origin(port):
                port = Port(at.builder.params[index])
                break
        else:
            seen = parent.use(port, node.region)
            parent.nodes[at.node] = replace(parent.nodes[at.node], inputs=(*node.inputs, seen))
            port = at.builder.param(what[0].type_of(what[1]), name_of(what))
    return port


def _call_inputs(member: _Member, members: dict[str, _Member]) -> dict[_Body, dict[int, tuple[Operand, ...]]]:
    """The hidden arguments of each call of a member, by body and node."""
    inputs_of: dict[_Body, dict[int, tuple[Operand, ...]]] = {}
    for body, number, callee in list(_group_calls(member, members)):
        node = body.builder.nodes[number]
        count = len(callee.visible)
        hidden: dict[Any, Operand] = dict(zip(callee.handed, node.inputs[count:], strict=True))
        for what in callee.hidden:
            if what not in hidden:
                hidden[what] = body.builder.use(_resolve(body, what, member), node.region)
        inputs = (*node.inputs[:count], *(hidden[what] for what in callee.hidden))
        inputs_of.setdefault(body, {})[number] = inputs
    return inputs_of


def _first_use(member: _Member, members: dict[str, _Member], what: Any, param: Port) -> int:
    """The node where a SubGraph first needs a hidden parameter: they are ordered by that, as in captured functions."""
    body = member.bodies[0]
    if what == "effect":
        acting = [n for n, node in enumerate(body.builder.nodes) if _is_action(node, body, members)]
        acting += [n for n in body.children if CTL in body.builder.nodes[n].types]
        return min(acting, default=param.node)
    if what == "key":
        calls = [node for _, node in body.nodes("call") if callee_of(node) in members]
        provisional = {port for node in calls for port in node.inputs if isinstance(port, Port)}
        return min((n for n, _ in body.nodes("fold_in") if Port(n) not in provisional), default=param.node)
    return param.node


# -- tokens and keys that nothing needs --------------------------------------------------------------------

_STRUCTURE = (*SOURCES, "switch", "merge", "loop", "map")


def _is_order(port: Operand, builder: Builder) -> bool:
    """Is it an order token, and not the pivot of a region?"""
    return isinstance(port, Port) and builder.type_of(port) == CTL and builder.origin(port) != START


def _is_action(node: Node, body: _Body, members: dict[str, _Member]) -> bool:
    if node.op in _STRUCTURE or (node.op == "call" and callee_of(node) in members):
        return False
    return CTL in node.types or any(_is_order(port, body.builder) for port in node.controls)


def _with_callers(members: dict[str, _Member], names: set[str]) -> set[str]:
    """These functions and their callers, direct and indirect."""
    callers: dict[str, set[str]] = {name: set() for name in members}
    for name, member in members.items():
        for _, _, callee in _group_calls(member, members):
            callers[callee.function.name].add(name)
    worklist = list(names)
    while worklist:
        fresh = callers[worklist.pop()] - names
        names |= fresh
        worklist += fresh
    return names


def _acts(member: _Member, members: dict[str, _Member]) -> bool:
    """Does this function itself act on the world? Marks its order tokens as dead."""
    acts = False
    for body in member.bodies:
        for number, node in enumerate(body.builder.nodes):
            acts = acts or _is_action(node, body, members)
            ports = (Port(number, index) for index in range(len(node.types)))
            body.dead |= {port for port in ports if _is_order(port, body.builder)}
    return acts


def _draws(member: _Member, members: dict[str, _Member]) -> bool:
    """Does this function itself draw random numbers? Marks its keys, and their loop and lane counters, as dead."""
    draws = False
    if "key" in member.hidden:
        member.bodies[0].dead.add(member.hidden["key"])
    for body in member.bodies:
        builder = body.builder
        for number, node in enumerate(builder.nodes):
            keys = [i for i, port in enumerate(node.inputs) if isinstance(port, Port) and port in body.dead]
            keys = [i for i in keys if not _is_order(node.inputs[i], builder)]
            if not keys or (node.op == "call" and callee_of(node) in members):
                continue
            if node.op in ("loop", "map"):
                inner = body.children[number]
                inner.dead |= {Port(inner.builder.params[i]) for i in keys}
            elif node.op in ("switch", "fold_in", "add"):
                body.dead |= {Port(number, index) for index in range(len(node.types))}
                counters = [port for port in node.inputs if isinstance(port, Port) and port.node in builder.params]
                body.dead |= set(counters) if node.op == "fold_in" else set()
            else:
                draws = True
    return draws


def _passed_by(body: _Body, calls: Iterable[int], members: dict[str, _Member]) -> dict[Port, Operand]:
    """Order tokens from calls that turn out not to act -> the tokens that went in, which replace them."""
    passed: dict[Port, Operand] = {}
    for number in calls:
        node = body.builder.nodes[number]
        callee = members[callee_of(node)]
        token = Port(number, len(node.types) - 1)
        if node.types[-1:] == (CTL,) and "effect" not in callee.hidden and token not in body.dead:
            passed[token] = node.inputs[len(callee.visible) + callee.handed.index("effect")]
    body.dead |= passed.keys()
    for token in passed:
        before = passed[token]
        while isinstance(before, Port) and before in passed:
            before = passed[before]
        passed[token] = before
    return passed


def _finished(
    body: _Body, member: _Member, calls: dict[int, tuple[Operand, ...]], members: dict[str, _Member]
) -> FunctionGraph:
    """The graph of a body, without dead values and what only they needed."""
    builder = body.builder
    used = Counter(_needs(builder.nodes, body.results, builder))
    passed = _passed_by(body, calls, members)

    def seen(port: Operand) -> Any:
        return passed.get(port, port) if isinstance(port, Port) else port

    for number, node in list(enumerate(builder.nodes)):
        inputs, dead = node.inputs, {index for index in range(len(node.types)) if Port(number, index) in body.dead}
        if number in calls:
            inputs = calls[number]
        elif number in body.children:
            inner = body.children[number]
            kept = [i for i, param in enumerate(inner.builder.params) if Port(param) not in inner.dead]
            inputs = tuple(inputs[i] for i in kept)
            if node.op == "loop":
                dead |= {i for i in range(inner.carried) if i not in kept}
        if len(dead) < len(node.types):  # hidden outputs come last, so the others keep their numbers
            types = tuple(t for index, t in enumerate(node.types) if index not in dead)
            controls = tuple(port for port in map(seen, node.controls) if port not in body.dead)
            if node.op in ("call", "loop", "map") and not controls and not any(isinstance(i, Port) for i in inputs):
                controls = (builder.use(START, node.region),)  # only hidden arguments triggered it
            builder.nodes[number] = replace(node, inputs=tuple(map(seen, inputs)), types=types, controls=controls)
    nodes = builder.nodes
    gone = {number for number, node in enumerate(nodes) if node.types and _is_dead(number, node, body)}
    if body.parent is None:
        params = [*member.visible, *(port.node for port in member.hidden.values())]
    else:
        params = [param for param in builder.params if Port(param) not in body.dead]
    gone |= set(builder.params) - set(params)
    if builder.kind == "loop":
        nexts = zip(builder.params, body.results[1:], strict=False)
        results = [body.results[0], *(seen(port) for param, port in nexts if Port(param) not in body.dead)]
    else:
        results = [port for port in map(seen, body.results) if port not in body.dead]
    carried = sum(Port(param) not in body.dead for param in builder.params[: body.carried])
    # Nodes that only removed nodes needed are removed, too.
    left = Counter(_needs([node for number, node in enumerate(nodes) if number not in gone], results, builder))
    worklist = list(used)
    while worklist:
        number = worklist.pop()
        if number not in gone and not left[number] and used[number] and nodes[number].op not in SOURCES:
            gone.add(number)
            for port in (*nodes[number].inputs, *nodes[number].controls):
                if isinstance(port, Port):
                    left[port.node] -= 1
                    worklist.append(port.node)
    kept_nodes = set(range(len(nodes))) - gone
    return builder.finish_with(kept_nodes, params, results, carried)


def _is_dead(number: int, node: Node, body: _Body) -> bool:
    return all(Port(number, index) in body.dead for index in range(len(node.types)))


def _needs(nodes: Sequence[Node], results: Sequence[Port], builder: Builder) -> Iterator[int]:
    """How often each node is needed by these nodes, the results and the branches."""
    for node in nodes:
        yield from (port.node for port in (*node.inputs, *node.controls) if isinstance(port, Port))
    yield from (port.node for port in results)
    yield from (region.pred.node for region in builder.regions if region.pred is not None)
