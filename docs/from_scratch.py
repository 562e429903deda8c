"""Undertow from scratch: recursion in a static dataflow graph, the whole idea in one file.

Read it from top to bottom, then run it:

    python docs/from_scratch.py

It needs Python 3.10 and nothing else; it does not import Undertow. Every word means what it means in
the real system (docs/glossary.md), only smaller: the values are integers, a function has one result, and
there is one engine, which is made to be read and not to be fast.

THE QUESTION. A dataflow graph has operators for nodes and values flowing along its edges. An operator fires
when all its inputs are there. Nothing else says in which order things happen, so everything that *can* happen
at once *may* happen at once. That is a lovely way to run `a * b + c * d`. But what is the graph of this?

    def fac(n):
        return 1 if n <= 1 else n * fac(n - 1)

If a call were a node that hides another copy of the graph, which hides another copy, and so on, the graph
would be infinite; or it would have to grow while it runs. We want neither. We want one graph, fixed
before the first value moves, with as many nodes for fac(5) as for fac(50_000).

THE ANSWER, in one sentence: put the body of `fac` into the graph once, let all calls flow through it at the
same time, and give every value a *tag* that says which call it belongs to.
"""

from __future__ import annotations

import operator
import random
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

# =====================================================================================================
# Part 1. Tokens and tags
# =====================================================================================================
#
# What flows along an edge is a TOKEN: a pair ⟨tag, value⟩.
#
# A TAG is a list of labels. The main graph runs under the empty tag []. Every place in the program text
# where a function is called, a CALL SITE, has a number. Calling through site 2 puts the LABEL 2 in front of
# the tag, and returning takes it away again:
#
#     Call 2       ⟨t, d⟩    ->  ⟨2:t, d⟩
#     Return 2     ⟨2:t, d⟩  ->  ⟨t, d⟩
#
# So the tag [2, 2, 1] means: main called something at site 1, which called something at site 2, which called
# something at site 2. It is the call stack, written down as data, and it names one ACTIVATION of a function.
#
# Any other operator leaves the tag alone, and fires only on inputs that have the *same* tag:
#
#     add          ⟨t, a⟩, ⟨t, b⟩  ->  ⟨t, a + b⟩
#
# That is all that keeps two activations apart when their tokens meet at the same node. Take the tags away
# and the 3 of one call would be multiplied with the result of another.
#
# Two tokens under one tag have to find each other, so somebody must keep the first until the second comes.
# That store is the FRAME of the activation. There is one frame for each tag, so a pointer to the frame does the
# work of the tag: pushing a label costs one small object instead of a copy of the list.


class Frame:
    """The storage of one activation. It stands for the tag: its label, then its parent's label, and so on."""

    __slots__ = ("children", "label", "left", "parent", "waiting")

    def __init__(self, parent: Frame | None, label: int, left: int) -> None:
        self.parent = parent
        self.label = label
        self.left = left  # how many nodes of the region have not fired yet; at 0 the frame is finished
        self.waiting: dict[int, dict[int, Value]] = {}  # node -> the inputs that have arrived so far
        self.children: dict[int, Frame] = {}  # label -> the frame of the call made at that site

    def tag(self) -> list[int]:
        """The tag as a list of labels, innermost call first."""
        labels, frame = [], self
        while frame.parent is not None:
            labels.append(frame.label)
            frame = frame.parent
        return labels


# A token's value may also be missing. An `if` takes one branch; on the other one nothing happens, and "nothing
# happens" has to be *said*, because an operator that waits for a token cannot tell never from not yet. The token
# that says it is DEAD, written *. (The old dataflow books call it a hiaton.)


class Dead:
    """No data: this branch was not taken."""

    def __repr__(self) -> str:
        return "*"


DEAD = Dead()
Value = int | Dead

# Two operators make and end dead tokens; all others just pass deadness on (a dead input makes the output dead).
#
#     Switch       ⟨t, p⟩, ⟨t, d⟩  ->  output 0: ⟨t, d⟩, output 1: ⟨t, *⟩   if p is true
#                                      output 0: ⟨t, *⟩, output 1: ⟨t, d⟩   if p is false
#     Merge        forwards the first live token under t; dead only when all its inputs are dead under t
#
# An `if` is Switches in front of its branches and a Merge behind them.


# =====================================================================================================
# Part 2. The library: functions as little graphs
# =====================================================================================================
#
# First we write each function down as a small graph of its own, in which a call is still a single node that
# names the function it calls. That set of graphs is the LIBRARY. Nothing in it is cyclic or infinite: a
# recursive function just contains a node that carries the function's own name.


class Port(NamedTuple):
    """Output number `output` of node number `node`: where an edge begins."""

    node: int
    output: int = 0


# An operand is a port or a constant. A constant is present under every tag, so it needs no edge.
Operand = Port | int

PRIMITIVES: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "less_equal": operator.le,
}


@dataclass(frozen=True)
class Node:
    """One operator. Controls are inputs whose tokens matter (alive or dead?) while their values do not."""

    op: str
    inputs: tuple[Operand, ...] = ()
    controls: tuple[Port, ...] = ()
    callee: str = ""  # in a library: the function that a `call` node calls
    site: int = 0  # in a static graph: the label of Call and Return
    region: str = ""  # the function that the node belongs to
    name: str = ""  # explains; numbers identify


@dataclass(frozen=True)
class FunctionGraph:
    """The body of one function. Node 0 is `start`, the next ones are the parameters."""

    name: str
    nodes: tuple[Node, ...]
    result: Port


Library = dict[str, FunctionGraph]

# Writing graphs node by node is no fun, so here is a tiny BUILDER. We run the Python function once, not on
# numbers but on `Traced` objects; each operation adds a node. (Undertow's front end does the same, and reads the
# `if` statements of your source besides. Here you say `cond`.)
#
# One thing needs care. A node with no inputs at all, such as the constant 1 that `fac` returns, would never
# fire, or would fire when it should not. It needs something to trigger it: the PIVOT of the place where it
# stands. In a function body the pivot is the START TOKEN, which arrives whenever the function is called.
# In a branch it is the start token after a Switch, which is alive exactly if the branch is taken.


@dataclass(frozen=True, eq=False)
class Branch:
    """Where the builder is writing: a function body (no parent), or one side of a condition."""

    pivot: Port
    parent: Branch | None = None
    pred: Port | None = None
    side: int = 0  # 0 is the true side


class Builder:
    """Collects the nodes of one function."""

    def __init__(self, name: str, params: tuple[str, ...]) -> None:
        self.name = name
        self.nodes: list[Node] = []
        self.switches: dict[tuple[Port, Port], int] = {}
        self.branch = Branch(pivot=Port(0))
        self.calls: list[Function] = []
        self.add("start", name=f"{name}.start")
        self.params = [self.add("param", name=f"{name}.{param}") for param in params]

    def add(
        self, op: str, *inputs: Operand, controls: tuple[Port, ...] = (), callee: str = "", name: str = ""
    ) -> Traced:
        """A new node; what it makes lives in the branch that we are writing."""
        self.nodes.append(Node(op, inputs, controls, callee, region=self.name, name=name))
        return Traced(self, Port(len(self.nodes) - 1), self.branch)

    def switch(self, pred: Port, port: Port) -> int:
        """The Switch of a value on a predicate; one serves both sides."""
        if (pred, port) not in self.switches:
            self.switches[pred, port] = self.add("switch", pred, port).port.node
        return self.switches[pred, port]

    def read(self, value: Traced | int) -> Operand:
        """A value as seen from here: one Switch for every condition between its home and us."""
        if isinstance(value, int):
            return value
        inward: list[Branch] = []
        here = self.branch
        while here is not value.home:
            assert here.parent is not None, "a value cannot leave its branch except through the Merge"
            inward.append(here)
            here = here.parent
        port = value.port
        for branch in reversed(inward):
            assert branch.pred is not None
            port = Port(self.switch(branch.pred, port), branch.side)
        return port

    def token(self, value: Traced | int) -> Port:
        """The same where a token is needed: a bare constant becomes a node that the pivot triggers."""
        operand = self.read(value)
        if isinstance(operand, Port):
            return operand
        return self.add("const", operand, controls=(self.branch.pivot,)).port


@dataclass(frozen=True, eq=False)
class Traced:
    """Stands for a value while a function is being written down. Arithmetic on it adds nodes."""

    builder: Builder
    port: Port
    home: Branch

    def _apply(self, op: str, other: Traced | int) -> Traced:
        return self.builder.add(op, self.builder.read(self), self.builder.read(other))

    def __add__(self, other: Traced | int) -> Traced:
        return self._apply("add", other)

    def __sub__(self, other: Traced | int) -> Traced:
        return self._apply("sub", other)

    def __mul__(self, other: Traced | int) -> Traced:
        return self._apply("mul", other)

    def __le__(self, other: Traced | int) -> Traced:
        return self._apply("less_equal", other)


def cond(pred: Traced, then: Callable[[], Traced | int], otherwise: Callable[[], Traced | int]) -> Traced:
    """`then() if pred else otherwise()`. Both sides are written down; a run takes one."""
    builder, outer = pred.builder, pred.builder.branch
    test = builder.token(pred)
    results: list[Port] = []
    for side, body in enumerate((then, otherwise)):
        pivot = Port(builder.switch(test, outer.pivot), side)
        builder.branch = Branch(pivot, outer, test, side)
        results.append(builder.token(body()))
        builder.branch = outer
    return builder.add("merge", *results)


@dataclass(frozen=True)
class Function:
    """A function that can be called while another one (or itself) is being written down."""

    name: str
    params: tuple[str, ...]
    define: Callable[..., Traced | int]

    def __call__(self, first: Traced, *others: Traced | int) -> Traced:
        builder = first.builder
        builder.calls.append(self)
        args = tuple(builder.token(arg) for arg in (first, *others))
        # The pivot gates the call: a call in an untaken branch must not happen.
        return builder.add("call", *args, controls=(builder.branch.pivot,), callee=self.name)


def function(define: Callable[..., Traced]) -> Function:
    """Decorator: this Python function describes a graph. Nothing runs yet."""
    return Function(define.__name__, define.__code__.co_varnames[: define.__code__.co_argcount], define)


def capture(called: Function) -> Library:
    """A main graph that calls the function, the function, and all that it calls, each written down once."""
    library: Library = {}
    to_do = [Function("main", called.params, called)]
    while to_do:
        item = to_do.pop(0)
        if item.name not in library:  # or else a recursive function would keep us here for ever
            builder = Builder(item.name, item.params)
            result = builder.token(item.define(*builder.params))
            library[item.name] = FunctionGraph(item.name, tuple(builder.nodes), result)
            to_do += builder.calls
    return library


# Our programs:


@function
def fac(n: Traced) -> Traced:
    """The product of 1..n."""
    return cond(n <= 1, lambda: 1, lambda: n * fac(n - 1))


@function
def fib(n: Traced) -> Traced:
    """Two recursive calls, which may run at the same time."""
    return cond(n <= 1, lambda: 1, lambda: fib(n - 1) + fib(n - 2))


@function
def even(n: Traced) -> Traced:
    """Is n even? Asks `odd`, which asks `even`: mutual recursion needs nothing new."""
    return cond(n <= 0, lambda: 1, lambda: odd(n - 1))


@function
def odd(n: Traced) -> Traced:
    """Is n odd?"""
    return cond(n <= 0, lambda: 0, lambda: even(n - 1))


# =====================================================================================================
# Part 3. flatten: the library becomes one static graph
# =====================================================================================================
#
# Now the heart of the matter, and it is short. Number the call sites 1, 2, 3, ... over the whole library. Put
# each body into the graph *once*. Then:
#
#   1. A call node with m arguments becomes m nodes `call @i`, one for each argument. (Not one for all of them: an
#      argument that is ready may enter the callee while the others are still being computed.)
#   2. A parameter becomes a Merge over the Call nodes of all sites that call the function. This is where
#      the calls of the whole program come together in one body. Their tags keep them apart.
#   3. The result of the function goes to a node `return @i` for each site. A token with tag 2:t is for
#      Return 2; any other Return has no business with it.
#   4. Each site has one more node, `start @i`, whose input is the pivot of the call. If that is alive, it creates the
#      frame i:t, and sends the start token there: the pivot of the body. And, under the caller's own tag, it sends
#      a control token to Return i. Should the pivot be dead, then no call takes place. Nothing enters the
#      body, and the dead control token makes Return i emit ⟨t, *⟩ at once.
#
# Point 4 is the one that is easy to forget. Part 6 forgets it on purpose.


@dataclass(frozen=True)
class Site:
    """A call site of the static graph, and the numbers of the nodes that it became."""

    callee: str
    start: int
    args: tuple[int, ...]


@dataclass(frozen=True)
class StaticGraph:
    """The one graph that the engine runs. Site number i is `sites[i - 1]`."""

    nodes: tuple[Node, ...]
    sites: tuple[Site, ...]
    inputs: tuple[int, ...]  # the main graph's start and parameters, which the engine feeds
    fetch: Port  # the main graph's result, which the engine waits for

    def __str__(self) -> str:
        return "\n".join(_show(self))


def flatten(library: Library, control_edges: bool = True) -> StaticGraph:
    """Calls become Call, Return and start nodes; the bodies are joined into one graph."""
    main = next(iter(library))

    # First give every node its number, so that edges can point forwards as well as backwards.
    number: dict[tuple[str, int], int] = {}  # (function, node in its body) -> the node that has its output now
    sites: list[Site] = []
    count = 0
    for body in library.values():
        for at, node in enumerate(body.nodes):
            if node.op == "call":
                args = tuple(range(count + 1, count + 1 + len(node.inputs)))
                sites.append(Site(node.callee, count, args))
                count += 1 + len(args)  # the start and the Calls; the Return comes next, and has the output
            number[body.name, at] = count
            count += 1

    def moved(function: str, port: Port) -> Port:
        return Port(number[function, port.node], port.output)

    # Then write them down in the same order.
    nodes: list[Node] = []
    site = 0
    for body in library.values():
        region = body.name
        callers = [caller for caller in sites if caller.callee == region]
        for at, node in enumerate(body.nodes):
            inputs = tuple(moved(region, x) if isinstance(x, Port) else x for x in node.inputs)
            controls = tuple(moved(region, x) for x in node.controls)
            if node.op in ("start", "param") and region == main:
                nodes.append(Node("input", region=region, name=node.name))
            elif node.op == "start":
                starts = tuple(Port(caller.start, 0) for caller in callers)
                nodes.append(Node("merge", starts, region=region, name=node.name))
            elif node.op == "param":
                # Node 0 of a body is `start`, so the first parameter is node 1.
                calls = tuple(Port(caller.args[at - 1]) for caller in callers)
                nodes.append(Node("merge", calls, region=region, name=node.name))
            elif node.op == "call":
                site += 1
                control = (Port(len(nodes), 1),) if control_edges else ()
                nodes.append(Node("start", controls, site=site, region=region))
                nodes += [Node("call", (arg,), site=site, region=region) for arg in inputs]
                result = moved(node.callee, library[node.callee].result)
                nodes.append(Node("return", (result,), control, site=site, region=region))
            else:
                nodes.append(Node(node.op, inputs, controls, region=region))
    fed = tuple(at for at, node in enumerate(nodes) if node.op == "input")
    return StaticGraph(tuple(nodes), tuple(sites), fed, moved(main, library[main].result))


def _show(graph: StaticGraph) -> Iterator[str]:
    """The lines of the text form. A port of Switch is v.true or v.false; `after` is a control edge."""

    def show(operand: Operand) -> str:
        if isinstance(operand, int):
            return str(operand)
        node = graph.nodes[operand.node]
        suffix = {"switch": (".true", ".false"), "start": (".go", ".control")}.get(node.op, ("", ""))[operand.output]
        return (node.name or f"v{operand.node}") + suffix

    region = ""
    for at, node in enumerate(graph.nodes):
        if node.region != region:
            region = node.region
            yield f"{region}:"
        label = f" @{node.site}" if node.site else ""
        after = f"  after {', '.join(map(show, node.controls))}" if node.controls else ""
        right = f"{node.op}{label} {', '.join(map(show, node.inputs))}".rstrip()
        yield f"  {node.name or f'v{at}':11} = {right}{after}"
    yield f"fetch {show(graph.fetch)}"


# =====================================================================================================
# Part 4. The engine
# =====================================================================================================
#
# The engine holds a queue of tokens that are on their way and a tree of frames. It takes a token, puts it into
# its frame, and if the node now has what it needs under that tag, fires it. Firing makes new tokens. There is
# nothing else. In particular:
#
#   - There is no program counter. The engine may take the tokens in *any* order and the result is the
#     same; we shall try a hundred orders. (That freedom is what a parallel engine lives on.)
#   - The engine does not recurse. How deep the program's calls nest is the user's business, and it must not
#     depend on the stack of the language that the engine happens to be written in.


class Token(NamedTuple):
    """A value under a tag (its frame), about to arrive at input `slot` of a node."""

    frame: Frame
    node: int
    slot: int
    value: Value


class Stuck(Exception):
    """The run went on for longer than we were willing to watch."""


@dataclass
class Stats:
    """What a run did."""

    firings: int = 0
    activations: int = 0  # frames ever made, the main graph's not counted
    peak_frames: int = 0
    unfinished: list[list[int]] = field(default_factory=list)  # with drain: tags of the frames that never finished


class Engine:
    """Runs a static graph. Plan once, then run: what can be known before the first token moves is worked out here."""

    def __init__(self, graph: StaticGraph, calls_pass_dead: bool = False) -> None:
        self.graph = graph
        self.nodes = graph.nodes
        self.calls_pass_dead = calls_pass_dead  # a mistake that Part 6 makes
        self.entries: set[int] = set()  # the Merges by which tokens enter a body
        # Who consumes an output? (node, slot, label); the label is not 0 if the edge leads out of a
        # function into the Return of that site.
        self.consumers: list[tuple[list[tuple[int, int, int]], ...]] = [([], []) for _ in graph.nodes]
        # Constants are in place before anything arrives.
        self.constants: list[dict[int, Value]] = [{} for _ in graph.nodes]
        self.needs: list[int] = []
        self.size: dict[str, int] = {}  # nodes in a region: what a frame must see firing
        for at, node in enumerate(graph.nodes):
            self.size[node.region] = self.size.get(node.region, 0) + 1
            self.needs.append(len(node.inputs) + len(node.controls))
            for slot, operand in enumerate(node.inputs + node.controls):
                if isinstance(operand, Port):
                    if graph.nodes[operand.node].op in ("call", "start") and node.op == "merge":
                        self.entries.add(at)
                    label = node.site if node.op == "return" and slot == 0 else 0
                    self.consumers[operand.node][operand.output].append((at, slot, label))
                else:
                    self.constants[at][slot] = operand

    def run(
        self,
        *values: int,
        scheduler: str = "fifo",
        seed: int = 0,
        drain: bool = False,
        limit: int = 10_000_000,
        trace: Callable[[str], None] | None = None,
    ) -> tuple[int, Stats]:
        """Feed the main graph, fetch its result. `drain` runs on until no token is left, to see if all is tidy."""
        self.stats = Stats()
        self.tokens: deque[Token] = deque()
        root = Frame(None, 0, self.size[self.nodes[self.graph.inputs[0]].region])
        self.frames = {root}
        pick = random.Random(seed).randrange
        fetched: Value = DEAD
        for at, value in zip(self.graph.inputs, (1, *values), strict=True):  # 1: main's start token
            self.finish(root, at, (value,))
        while self.tokens:
            # Which token next? This is the whole scheduler.
            if scheduler == "random":
                self.tokens.rotate(pick(len(self.tokens)))
            token = self.tokens.pop() if scheduler == "lifo" else self.tokens.popleft()

            inputs = self.arrive(token)
            if inputs is None:
                continue
            outputs = self.fire(token.node, inputs)
            if trace is not None:
                trace(self.show_firing(token.frame, token.node, outputs))
            if self.stats.firings >= limit:
                raise Stuck(f"still going after {limit:,} firings, {self.stats.activations:,} activations")
            self.finish(token.frame, token.node, outputs)
            if token.node == self.graph.fetch.node:
                fetched = outputs[self.graph.fetch.output]
                if not drain:  # the run ends when its fetch has arrived; the rest is abandoned
                    break
        assert not isinstance(fetched, Dead)
        if drain:
            self.stats.unfinished = [frame.tag() for frame in self.frames]
        return fetched, self.stats

    def arrive(self, token: Token) -> dict[int, Value] | None:
        """Match: keep the token in its frame; if its node can fire under this tag now, hand over the inputs."""
        frame, at, slot, value = token
        op = self.nodes[at].op
        if op == "merge" and (value is not DEAD or (self.calls_pass_dead and at in self.entries)):
            return {slot: value}  # the first live token is enough
        if op == "return" and slot == 1 and value is DEAD:
            return {slot: value}  # no call took place, so no result will come: do not wait for it
        inputs = frame.waiting.pop(at, None) or self.constants[at].copy()
        inputs[slot] = value
        if len(inputs) == self.needs[at]:
            return inputs  # firing consumes the tokens: the frame no longer holds them
        frame.waiting[at] = inputs
        return None

    def fire(self, at: int, inputs: dict[int, Value]) -> tuple[Value, ...]:
        """The rules of Part 1, as far as values go. `finish` sees to the tags."""
        op = self.nodes[at].op
        if DEAD in inputs.values():
            return (DEAD, DEAD)
        if op == "switch":
            return (inputs[1], DEAD) if inputs[0] else (DEAD, inputs[1])
        if op == "merge":
            return tuple(inputs.values())
        if op == "start":
            return (1, 1)
        if op in PRIMITIVES:
            return (PRIMITIVES[op](inputs[0], inputs[1]),)
        return (inputs[0],)  # call, return, const

    def finish(self, frame: Frame, at: int, outputs: tuple[Value, ...]) -> None:
        """A node has fired: send its outputs on, and see whether that was the last thing to do in this frame."""
        node = self.nodes[at]
        for output, value in enumerate(outputs):
            target = frame
            if node.op == "call" or (node.op == "start" and output == 0):
                # Call i: the tag becomes i:t. A dead token does not pass: where no call is, there is no activation.
                if value is DEAD and not self.calls_pass_dead:
                    continue
                target = self.child(frame, node.site)
            for consumer, slot, label in self.consumers[at][output]:
                if label == 0:
                    self.tokens.append(Token(target, consumer, slot, value))
                elif label == frame.label:
                    # Return i: ⟨i:t, d⟩ goes back to t. The other Returns are for other labels.
                    assert frame.parent is not None
                    self.tokens.append(Token(frame.parent, consumer, slot, value))
        self.stats.firings += 1
        frame.left -= 1
        if frame.left == 0:
            self.frames.discard(frame)
            if frame.parent is not None:
                del frame.parent.children[frame.label]

    def child(self, frame: Frame, label: int) -> Frame:
        """The frame of tag label:t, made when the first token gets there."""
        if label not in frame.children:
            made = Frame(frame, label, self.size[self.graph.sites[label - 1].callee])
            frame.children[label] = made
            self.frames.add(made)
            self.stats.activations += 1
            self.stats.peak_frames = max(self.stats.peak_frames, len(self.frames))
        return frame.children[label]

    def show_firing(self, frame: Frame, at: int, outputs: tuple[Value, ...]) -> str:
        """One line of a trace: the tag, the node, what it put out."""
        node = self.nodes[at]
        label = f" @{node.site}" if node.site else ""
        shown = ", ".join(map(str, outputs[: 2 if node.op in ("switch", "start") else 1]))
        return f"  {frame.tag()!s:9} {node.name or f'v{at}':10} {node.op + label:11} -> {shown}"


# =====================================================================================================
# Part 5. See it work
# =====================================================================================================


def show_factorial() -> None:
    """The graph, one small run token by token, and the sizes."""
    graph = flatten(capture(fac))
    print("The static graph of fac:\n")
    print(graph)
    print("\nEverything that fires for fac(2). The body runs under [1], called by main, and under [2, 1]:\n")
    engine = Engine(graph)
    result, _ = engine.run(2, trace=print)
    assert result == 2

    print("\nThe graph stays as it is. What grows with n is the number of tags:\n")
    print(f"  {'n':>6}  {'nodes':>6}  {'activations':>12}  {'firings':>8}")
    before = str(graph)
    for n in (1, 5, 20, 500):
        result, stats = engine.run(n)
        expected = 1
        for factor in range(2, n + 1):
            expected *= factor
        assert result == expected
        assert stats.activations == n
        print(f"  {n:6}  {len(graph.nodes):6}  {stats.activations:12}  {stats.firings:8}")
    assert str(graph) == before
    assert engine.run(5)[0] == 120


def show_schedules() -> None:
    """Any order of tokens gives the same answer."""
    engine = Engine(flatten(capture(fib)))
    oldest_first, stats = engine.run(10, scheduler="fifo")
    newest_first, other = engine.run(10, scheduler="lifo")
    assert oldest_first == newest_first == 89
    assert stats.activations == other.activations == 177  # every call is made, whatever the order
    print(f"\nfib(10) = {oldest_first}: {stats.activations} activations in a graph of {len(engine.graph.nodes)} nodes,")
    print(f"at most {stats.peak_frames} of them under way at once.")

    orders = 100
    for seed in range(orders):
        result, stats = engine.run(7, scheduler="random", seed=seed, drain=True)
        assert result == 21
        assert stats.unfinished == []
    print(f"fib(7) = 21 in {orders} random orders, and each time every frame was finished at the end.")


def show_mutual_and_deep() -> None:
    """Mutual recursion, fifty thousand calls deep."""
    engine = Engine(flatten(capture(even)))
    assert [engine.run(n)[0] for n in range(6)] == [1, 0, 1, 0, 1, 0]
    depth = 50_000
    result, stats = engine.run(depth)
    assert result == 1
    assert stats.activations == depth + 1
    assert stats.peak_frames == depth + 2  # each waits for the next one, and main for them all
    print(f"\neven({depth:,}) is {bool(result)}: {depth:,} nested calls of even and odd, in a graph of")
    print(f"{len(engine.graph.nodes)} nodes. Python's own recursion limit is {sys.getrecursionlimit():,}.")


@function
def endless(n: Traced) -> Traced:
    """Has no base case."""
    return endless(n + 1)


@function
def first(a: Traced, b: Traced) -> Traced:
    """Does not need b."""
    return a


@function
def seven(n: Traced) -> Traced:
    """The second argument never arrives."""
    return first(n, endless(n))


def show_non_strict() -> None:
    """Each argument enters by a Call of its own, so a call need not wait for what it does not use."""
    result, _ = Engine(flatten(capture(seven))).run(7)
    assert result == 7
    print(f"\nfirst(7, endless(7)) = {result}: nobody waited for the second argument.")


# =====================================================================================================
# Part 6. What goes wrong without the control edge
# =====================================================================================================
#
# In fac(1) the branch with the recursive call is not taken. The Call gets a dead token. What should become of it?
#
# Mistake one: leave out the control edge from start to Return. The Call swallows the dead token, quite rightly, but
# now nobody tells Return 2. It waits for a result under [2, ...] that no activation will ever send. The
# Merge behind the `if` does not mind, since the live branch reaches it; so we even see the right answer. But the
# frame is never finished. Nobody may reuse its memory, and nobody can tell a run that is over from one that
# still waits. When the graph is spread over several machines, "nobody" is a machine that never stops waiting.
#
# Mistake two: then let the dead token through, like any other operator would: through the Call, and through the
# parameter Merge behind it. (Under the tag 2:t that Merge hears of site 2 alone, so there is nobody else to wait
# for.) It enters the body under a new tag, turns everything there dead, the Switches too, and so arrives, dead,
# at the recursive Call. Which lets it through. This recursion has no base case: a dead token cannot take the
# branch that ends it.
#
# The control edge ends the dead token's journey where it began, in the frame of the caller.


def show_mistakes() -> None:
    """A call in an untaken branch: three ways to treat its dead token."""
    print("\nAfter fac(5), with every token followed to its end:\n")
    library = capture(fac)

    result, stats = Engine(flatten(library)).run(5, drain=True)
    assert (result, stats.unfinished) == (120, [])
    print(f"  as above:                    {result}, unfinished frames: {stats.unfinished}")

    result, stats = Engine(flatten(library, control_edges=False)).run(5, drain=True)
    assert (result, stats.unfinished) == (120, [[2, 2, 2, 2, 1]])
    print(f"  without the control edge:    {result}, unfinished frames: {stats.unfinished}")

    try:
        Engine(flatten(library, control_edges=False), calls_pass_dead=True).run(5, drain=True, limit=20_000)
    except Stuck as stuck:
        print(f"  dead tokens pass the Call:   {stuck}")
    else:
        raise AssertionError("dead tokens were expected to chase each other for ever")

    # fib(10) has 89 leaves, each a frame with two calls in its untaken branch.
    _, stats = Engine(flatten(capture(fib), control_edges=False)).run(10, drain=True)
    assert len(stats.unfinished) == 89
    print(f"\n  fib(10) without the control edge loses {len(stats.unfinished)} frames.")


# =====================================================================================================
# Where to go from here
# =====================================================================================================
#
# What the real system adds to these pages:
#
#   - loops (Enter, Next and Exit keep an iteration number in the tag) and maps (Fan and Gather, an index);
#   - types, arrays, several results, errors that show the chain of calls: the tag is a traceback;
#   - automatic differentiation: the gradient of a call comes back under the *same* tag, as a second phase of
#     the same activation, and finds the forward values waiting in the frame;
#   - engines that run all frames of a region that are ready together as one batch. The one that does so in C++
#     runs unless you choose; the one that you have just read is there too, under the name `reference`.
#
# Next: docs/concepts/tags.md and docs/concepts/calls.md.


if __name__ == "__main__":
    show_factorial()
    show_schedules()
    show_mutual_and_deep()
    show_non_strict()
    show_mistakes()
