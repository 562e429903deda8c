"""`tf.Graph`: a main graph that grows while Python runs, its functions, and the default graph.

Function bodies run as plain Python, and operations on tensors write nodes. So there is no
syntax to capture; conditions and loops are `tf.cond` and `tf.while_loop`. Reads and writes of
variables are ordered only by the user's own control edges.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from undertow.compat.v1.place import here
from undertow.errors import GraphError, Span
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.capture import CaptureSession
from undertow.frontend.trace.library import library_of
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Context, Traced, capturing, is_traced
from undertow.ir.graph import Const, FunctionGraph, Library, Phase, Port
from undertow.tracebacks import guarded
from undertow.types import Type
from undertow.viz.graphdef import graph_def
from undertow.viz.messages import GraphDef

if TYPE_CHECKING:
    from undertow.compat.v1.fetches import Fetched
    from undertow.compat.v1.function import Declare, Defined

# The newest Defined of each name in this process, so that functions survive `reset_default_graph`.
NEWEST: dict[str, Any] = {}


Item = TypeVar("Item")


class Stack(threading.local, Generic[Item]):
    """The stack of default graphs, innermost last. As in TensorFlow, each thread has its own."""

    def __init__(self, first: Callable[[], list[Item]]) -> None:
        self.items = first()

    @contextlib.contextmanager
    def pushed(self, item: Item) -> Iterator[None]:
        self.items.append(item)
        try:
            yield
        finally:  # it may not be the innermost any more, and another thread may close a session
            if item in self.items:
                del self.items[len(self.items) - 1 - self.items[::-1].index(item)]


class NativeContext(Context):
    """A context that can be written to at any time. Its source line is Python's, or that of a captured function."""

    __slots__ = ("graph", "told")

    session: GraphSession
    graph: Graph
    told: Span | None  # by the interpreter of captured functions

    @property
    def span(self) -> Span | None:
        return self.told if self.session.is_capturing else here()

    @span.setter
    def span(self, value: Span | None) -> None:
        self.told = value

    def give(self, value: Any) -> Any:
        """What an @ut.function gives, as tensors."""
        from undertow.compat.v1.tensor import wrap  # it imports this file

        if self.session.is_capturing:
            return value
        leaves, structure = tree.flatten(value, is_traced)
        return tree.unflatten(structure, [wrap(leaf) if isinstance(leaf, Traced) else leaf for leaf in leaves])


class GraphSession(CaptureSession):
    """The `Session` of a TensorFlow-1 graph, which is written whenever the user's Python does."""

    def resolve(self, value: Traced) -> Port:
        """The port of a tensor in the graph being written. A function can use only constants from outside."""
        builder = self.ctx.open_builder
        if value.builder.context is not self.ctx:
            raise another_graph(value, here())
        if value.builder is builder or builder.kind != "function" or self.is_capturing:
            return super().resolve(value)
        node = value.builder.nodes[value.port.node]
        if node.op == "identity" and isinstance(node.inputs[0], Const):
            return builder.gate(node.inputs[0], here(), node.short_name)
        raise GraphError(
            f"the body of `{builder.name}` uses the tensor `{node.name}`, which belongs to `{value.builder.name}`",
            here(),
            hint="pass it as an argument; from outside, a function sees only constants and variables",
        )

    @property
    def is_capturing(self) -> bool:
        """Is an @ut.function being captured, that this graph calls?"""
        return bool(self._open)

    def draw(self) -> Traced:
        """A random key; functions of Defun have none, since their calls are written before their bodies."""
        if self.ctx.open_builder.kind == "function" and not self.is_capturing:
            raise GraphError(
                f"`{self.ctx.open_builder.name}` draws random numbers, which a Defun cannot do",
                here(),
                hint="draw them outside and pass them as an argument, or use @ut.function",
            )
        return super().draw()

    def effect_token(self) -> Port:
        self._refuse("an effect in program order", "tf.Print, tf.Assert, and tf.control_dependencies for the order")

    def bound(self, value: Any) -> Any:
        """The substitute for a variable: itself, as no gradient is taken while a graph is being written."""
        return value

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        self._refuse(f"the ut.Variable `{variable.name}`", "tf.Variable")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        raise GraphError(f"{what} cannot be used in a graph of compat.v1", here(), hint=f"use {instead}")


def another_graph(value: Any, span: Span | None) -> GraphError:
    """The error for a value that is used in another graph than its own."""
    return GraphError(
        f"{value!r} belongs to another graph",
        span,
        hint="build everything in one graph: `with graph.as_default():`; after tf.reset_default_graph(), rebuild it",
    )


@guarded
class Graph:
    """What `tf.Graph()` makes: a main graph that grows as the program runs, and functions by name."""

    def __init__(self) -> None:
        self.writer = GraphSession(context=NativeContext)
        self.writer.fresh_name("main")
        ctx = self.writer.ctx
        assert isinstance(ctx, NativeContext)
        self.ctx = ctx
        self.ctx.graph = self
        self.main = Builder("main", "main", context=self.ctx)
        self.ctx.builder = self.main
        # Held while nodes are written or programs are made; runs do not hold it.
        self.lock = threading.RLock()
        self.declared: dict[str, Declare] = {}
        self.defined: dict[str, Defined] = {}
        self.candidates: dict[str, Defined] = {}  # functions called by name, used if none is added
        self.tracing: list[str] = []  # functions whose bodies are being written, outermost first
        self.variables: list[Any] = []
        self.variable_scopes: list[tuple[str, bool]] = []  # full name, and whether variables are reused
        self.programs: dict[Any, Fetched] = {}  # by fetches and feeds
        self.summaries: list[tuple[str, Any]] = []  # collection and summary, in the order in which they are made
        self._callees: dict[str, str] = {}  # name of a function -> its name in graphs
        self._functions: dict[str, str] = {}  # the inverse
        self._fed: dict[Port, Port] = {}
        self._named: dict[int, str] = {}  # node of main -> its unique name
        self._taken: dict[str, int] = {}

    # -- the default graph ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Inside the `with`, operations are added to this graph."""
        with _GRAPHS.pushed(self):
            yield self

    @contextlib.contextmanager
    def writing_to(self, builder: Builder) -> Iterator[None]:
        """Nodes go to this builder."""
        outer, self.ctx.builder = self.ctx.builder, builder
        try:
            with self.as_default(), capturing(self.ctx):
                yield
        finally:
            self.ctx.builder = outer

    # -- names ---------------------------------------------------------------------------------------------

    def callee(self, name: str) -> str:
        """The name of a function in graphs."""
        if name not in self._callees:
            self._callees[name] = fresh = self.writer.fresh_name(name)
            self._functions[fresh] = name
        return self._callees[name]

    def unique_name(self, node: int) -> str:
        """The name of a node of the main graph, with a numeric suffix if it is taken."""
        for number in range(len(self._named), node + 1):
            name = full = self.main.nodes[number].name
            while full in self._taken:
                full = f"{name}_{self._taken[name]}"
                self._taken[name] += 1
            self._taken[full] = 1
            self._named[number] = full
        return self._named[node]

    def node_named(self, name: str) -> int | None:
        """The node of the main graph with this unique name."""
        return next((number for number in range(len(self.main.nodes)) if self.unique_name(number) == name), None)

    def param(self, type: Type, name: str, span: Span | None) -> Port:
        """A parameter of the main graph, to be fed."""
        port = self.main.param(type, name)
        self.main.nodes[port.node] = replace(self.main.nodes[port.node], span=span)
        return port

    def fed_param(self, port: Port) -> Port:
        """The parameter that takes the place of a tensor that is fed instead of computed."""
        if port not in self._fed:
            node = self.main.nodes[port.node]
            self._fed[port] = self.param(self.main.type_of(port), node.name, node.span)
        return self._fed[port]

    # -- functions -----------------------------------------------------------------------------------------

    def library_of(self, main: FunctionGraph) -> Library:
        """Main and every function that it needs, tracing those that are not traced yet."""
        graphs, waiting, seen = self.writer.graphs, [main], {main.name}
        for graph in waiting:  # grows during the loop
            for node in graph.nodes:
                callee = node.attrs.get("callee", node.attrs.get("body"))
                if isinstance(callee, str) and callee not in seen:
                    seen.add(callee)
                    if callee not in graphs:
                        self._trace(self._functions[callee], node.span)
                    waiting.append(graphs[callee])
        return library_of(main, graphs)

    def body_of(self, callee: str) -> FunctionGraph | None:
        """The graph of a function by its name in graphs, traced if need be; None if it is not defined yet."""
        if callee not in self.writer.graphs:
            name = self._functions.get(callee)
            known = name is not None and (self.defined.get(name) or self.candidates.get(name))
            if name is None or not known or name in self.tracing:
                return None
            self._trace(name, None)
        return self.writer.graphs.get(callee)

    def _trace(self, name: str, span: Span | None) -> None:
        declared: Any = self.declared.get(name)
        found = self.defined.get(name) or self.candidates.get(name) or NEWEST.get(name)
        # A definition older than the declaration, with other types, is of another function.
        if found is None or (found.number < declared.number and found.params != declared.params):
            raise GraphError(
                f"`{name}` is declared and called, but never defined",
                declared.span or span,
                hint=f'define it: @function.Defun({declared.shown_params()}, func_name="{name}"), then add_to_graph',
            )
        found.trace(self)

    # -- inspection ----------------------------------------------------------------------------------------

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor `name:0`."""
        from undertow.compat.v1.fetches import by_name

        return by_name(self, name, here())

    def library(self, fetches: Any) -> Library:
        """The function graphs that a run of these fetches needs, before they are simplified."""
        from undertow.compat.v1.fetches import program_of

        return program_of(self, fetches).captured.library

    def as_graph_def(self, from_version: Any = None, add_shapes: bool = False) -> GraphDef:
        """All of the graph and its functions as TensorFlow's message: `.node`, `.library`, `.SerializeToString()`.

        Functions that are called must be defined by then. Shapes are always there.
        """
        with self.lock:
            nodes = tuple(replace(node, name=self.unique_name(number)) for number, node in enumerate(self.main.nodes))
            main = FunctionGraph(
                nodes, tuple(self.main.regions), self.main.name, "main", (Phase(tuple(self.main.params), ()),)
            )
            instead = {self.unique_name(param.node) for param in self._fed.values()}
            results = {self.callee(name): declared.result_names for name, declared in self.declared.items()}
            return graph_def(self.library_of(main), instead, results)

    def view(self, fetches: Any, simplify: bool | None = None) -> Any:
        """The static graph that these fetches run: prints as text, shows as a picture in a notebook."""
        from undertow.compat.v1.fetches import program_of

        return program_of(self, fetches).view(simplify)


_GRAPHS: Stack[Graph] = Stack(lambda: [Graph()])


def get_default_graph() -> Graph:
    """The graph that operations are added to now."""
    return _GRAPHS.items[-1]


def reset_default_graph() -> None:
    """Start over with an empty graph. Functions survive: calling one adds it again."""
    if len(_GRAPHS.items) > 1:
        raise GraphError(
            "reset_default_graph cannot be called inside a `with` that sets the graph",
            here(),
            hint="call it outside `with graph.as_default():` and `with tf.Session():`",
        )
    _GRAPHS.items[0] = Graph()
