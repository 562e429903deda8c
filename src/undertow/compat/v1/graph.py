"""`tf.Graph`: a main graph that grows while Python runs, its functions, and the default graph.

Function bodies run as plain Python, and operations on tensors write nodes. So there is no
syntax to capture; conditions and loops are `tf.cond` and `tf.while_loop`. Reads and writes of
variables are ordered only by the user's own control edges.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

import numpy as np

from undertow.compat.v1.errors import NotFoundError, of_kind
from undertow.compat.v1.graphs.closing import Hidden, close
from undertow.compat.v1.graphs.collection import Collections
from undertow.compat.v1.graphs.late import Late
from undertow.compat.v1.graphs.names import Naming
from undertow.compat.v1.graphs.overrides import overriding
from undertow.compat.v1.place import here
from undertow.errors import GraphError, Span, UndertowError
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.capture import CaptureSession
from undertow.frontend.trace.library import library_of
from undertow.frontend.values import tree
from undertow.frontend.values.random import folded
from undertow.frontend.values.traced import Context, Traced, capturing, emit, is_traced
from undertow.ir.graph import Const, FunctionGraph, Library, Phase, Port
from undertow.tracebacks import guarded
from undertow.types import Type, bool_, i64
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

    ctx: NativeContext

    def resolve(self, value: Traced) -> Port:
        """The port of a tensor in the graph being written. A function copies constants, and captures all else."""
        builder = self.ctx.open_builder
        if value.builder.context is not self.ctx:
            raise another_graph(value, here())
        value = self.ctx.graph.late.met(value)
        if value.builder is builder or builder.kind != "function" or self.is_capturing:
            return super().resolve(value)
        node = value.builder.nodes[value.port.node]
        if node.op == "identity" and isinstance(node.inputs[0], Const):
            return builder.gate(node.inputs[0], here(), node.short_name)
        return super().resolve(value)

    @property
    def is_capturing(self) -> bool:
        """Is an @ut.function being captured, that this graph calls?"""
        return bool(self._open)

    seed: int | None = None  # of the operation that is being written: see seeds.py

    def draw(self) -> Traced:
        """A random key for one operation. What calls and iterations hand down says where; the run adds what is new.

        That is the number of the run for an operation with a seed, and a random number for any other.
        """
        if self.is_capturing:
            return super().draw()
        graph = self.ctx.graph
        if self.seed is None:
            drawn: Traced = emit("fold_in", [super().draw(), graph.run_value("noise")])[0]
            return drawn
        key: Traced = emit("fold_in", [np.int64(self.seed), graph.run_value("count")])[0]
        self.seed = folded(self.seed, 1)  # of the next key of the operation, if it takes several
        if self.ctx.open_builder is not graph.main:
            key = emit("fold_in", [key, super().draw()])[0]
        return key

    def draw_for_body(self) -> Traced:
        return super().draw()  # of nothing new: operations with seeds have theirs from it, too

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
class Graph(Naming, Collections):
    """What `tf.Graph()` makes: a main graph that grows as the program runs, and functions by name."""

    def __init__(self) -> None:
        Naming.__init__(self)
        Collections.__init__(self)
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
        self.variable_scopes: list[Any] = []  # those of `with`, innermost last: see scopes.py
        self.default_scopes: dict[tuple[str, str], int] = {}
        self.by_get_variable: dict[str, Any] = {}  # variables that `tf.get_variable` finds, by full name
        self.finalized = False
        self.late = Late(self)
        self.gradient_overrides: dict[str, str] = {}  # type of operation -> registered gradient
        self.programs: dict[Any, Fetched] = {}  # by fetches and feeds
        self.bad_rules: dict[str, UndertowError] = {}  # functions with gradients that make no sense
        self.guesses: dict[str, list[Type]] = {}  # what calls of a function that is being traced give: see calls.py
        self.guessed: set[str] = set()  # those that were needed
        self.assumed: dict[str, list[Type]] = {}  # what calls give of functions that were not known
        self._callees: dict[
            str, dict[tuple[tuple[Type, ...], int], str]
        ] = {}  # function -> types -> its name in graphs
        self._functions: dict[str, tuple[str, tuple[Type, ...]]] = {}  # the inverse
        self._fed: dict[Port, Port] = {}
        self.seed: int | None = None
        self.hidden: dict[str, dict[Hidden, Port]] = {}  # function, by its name in graphs -> what it has captured
        self.keys: dict[str, Builder] = {}  # loops that call functions which may draw random numbers
        self.captures: dict[tuple[str, int], list[Hidden]] = {}  # function, number of bodies -> what it captures
        self.closed: set[str] = set()  # graphs with all hidden arguments: see closing.py
        self.closed_calls: set[int] = set()  # of main
        self.pulled: dict[
            int, Any
        ] = {}  # parameters of main that iterators feed: a get_next, and the number of its part
        self.run_values: dict[int, str] = {}  # parameters of main that each run feeds by itself: "noise", "count"
        self._noise: Traced | None = None
        self._initialized: dict[Any, Traced] = {}

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

    @contextlib.contextmanager
    def outside(self) -> Iterator[None]:
        """Nodes go to the main graph, outside of functions, branches and loops."""
        main = self.main
        before = main.region, main.controls
        main.region, main.controls = 0, ()
        try:
            with self.writing_to(main):
                yield
        finally:
            main.region, main.controls = before

    # -- names ---------------------------------------------------------------------------------------------

    def callee(self, name: str, types: tuple[Type, ...], variant: int = 0) -> str:
        """The name in graphs of a function for arguments of these types. A variant captures images: see late.py."""
        by_types = self._callees.setdefault(name, {})
        if (types, variant) not in by_types:
            by_types[types, variant] = fresh = self.writer.fresh_name(name)
            self._functions[fresh] = name, types
        return by_types[types, variant]

    def callees_of(self, name: str) -> list[str]:
        """The names in graphs of a function, for all types that it was called with."""
        return list(self._callees.get(name, {}).values())

    def function_of(self, callee: str) -> str:
        """The inverse of `callee`."""
        return self._functions[callee][0]

    def types_of(self, callee: str) -> tuple[Type, ...]:
        """The types of the arguments."""
        return self._functions[callee][1]

    def param(self, type: Type, name: str, span: Span | None) -> Port:
        """A parameter of the main graph, to be fed."""
        port = self.main.param(type, name)
        self.main.nodes[port.node] = replace(self.main.nodes[port.node], span=span)
        return port

    def fed_param(self, port: Port) -> Port:
        """The parameter that takes the place of a tensor that is fed instead of computed."""
        if port not in self._fed:
            node = self.main.nodes[port.node]
            with self.scoped(self.main, ""):
                self._fed[port] = self.param(self.main.type_of(port), node.name, node.span)
        return self._fed[port]

    def run_value(self, kind: str) -> Traced:
        """A number that every run of a session has: random "noise", or how often it ran what needs this "count"."""
        if kind == "noise" and self._noise is not None:
            return self._noise
        with self.scoped(self.main, ""):
            value = Traced(self.main, self.main.param(Type(i64), kind))
        self.run_values[value.port.node] = kind
        if kind == "noise":
            self._noise = value
        return value

    def initialized(self, variable: Any) -> Traced:
        """A number that every run has: has this variable a value?"""
        if variable not in self._initialized:
            with self.scoped(self.main, ""):
                value = Traced(self.main, self.main.param(Type(bool_), f"{variable.key}/IsVariableInitialized"))
            self.run_values[value.port.node] = f"initialized {variable.key}"
            self._initialized[variable] = value
        return self._initialized[variable]

    def main_key(self) -> Port:
        """Where all random keys begin: a parameter, for which runs take 0."""
        if self.main.key is None:
            with self.scoped(self.main, ""):
                self.writer.hide(self.main, "key")
        assert self.main.key is not None
        return self.main.key

    @property
    def last_id(self) -> int:
        """A number that grows with every operation."""
        return len(self.main.nodes)

    # -- functions -----------------------------------------------------------------------------------------

    def extract(self, results: Sequence[Port], fed: Mapping[Port, Port]) -> tuple[Library, list[int]]:
        """The main graph as far as these results need it, with its functions; and its parameters."""
        while True:
            main, params = self.main.extract(results, fed)
            names = self._reached(main)
            if not close(self, names):
                return library_of(main, self.writer.graphs), params

    def _reached(self, main: FunctionGraph) -> list[str]:
        """Every function, loop and map that main needs; those that are not traced yet are traced."""
        graphs, waiting, seen = self.writer.graphs, [main], {main.name}
        for graph in waiting:  # grows during the loop
            for node in graph.nodes:
                callee = node.attrs.get("callee", node.attrs.get("body"))
                if isinstance(callee, str) and callee not in seen:
                    seen.add(callee)
                    if callee not in graphs:
                        self.trace(callee, node.span)
                    waiting.append(graphs[callee])
        return [waiting_graph.name for waiting_graph in waiting[1:]]

    def body_of(self, callee: str) -> FunctionGraph | None:
        """The graph of a function by its name in graphs, traced if need be; None if it is not defined yet."""
        if callee not in self.writer.graphs:
            if callee not in self._functions or not self.is_defined(self.function_of(callee)) or callee in self.tracing:
                return None
            self.trace(callee, None)
        return self.writer.graphs.get(callee)

    def is_defined(self, name: str) -> bool:
        """Is there a definition for calls by this name?"""
        return name in self.defined or name in self.candidates

    def trace(self, callee: str, span: Span | None) -> None:
        """Write the graph of a function."""
        name, types = self._functions[callee]
        declared: Any = self.declared.get(name)
        found = self.defined.get(name) or self.candidates.get(name) or NEWEST.get(name)
        # A definition older than the declaration, with other types, is of another function.
        if found is None or (
            declared is not None and found.number < declared.number and found.params != declared.params
        ):
            found_types = "" if declared is None else declared.shown_params()
            raise of_kind(
                GraphError(
                    f"`{name}` is declared and called, but never defined: it is not registered in this graph",
                    span if declared is None else declared.span or span,
                    hint=f'define it: @function.Defun({found_types}, func_name="{name}"), then add_to_graph',
                ),
                NotFoundError,
            )
        from undertow.compat.v1.graphs.calls import trace  # it imports this file

        trace(self, callee, found, types)

    # -- inspection ----------------------------------------------------------------------------------------

    def get_operations(self) -> list[Any]:
        """The operations of the main graph, in the order in which they were added."""
        from undertow.compat.v1.graphs.elements import operations

        return operations(self)

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation that an object or a name stands for."""
        from undertow.compat.v1.graphs.elements import element

        return element(self, obj, allow_tensor, allow_operation)

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor `name:0`."""
        return self.as_graph_element(name, allow_operation=False)

    def get_operation_by_name(self, name: str) -> Any:
        """The operation of this name."""
        return self.as_graph_element(name, allow_tensor=False)

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Can it be fetched? What stands inside a branch cannot."""
        token = getattr(tensor_or_op, "token", tensor_or_op)
        return token.builder is self.main and self.main.home(token.port) == 0

    is_feedable = is_fetchable

    def gradient_override_map(self, op_type_map: Mapping[str, str]) -> Any:
        """Operations of these types, made in the block, have the gradients that were registered by these names."""
        return overriding(self, op_type_map)

    def finalize(self) -> None:
        """From now on, the graph is only run."""
        self.finalized = True

    @property
    def version(self) -> int:
        """A number that grows with every operation."""
        return self.last_id

    def device(self, device_name_or_function: Any) -> Any:
        """`tf.device`."""
        from undertow.compat.v1.control import device

        return device(device_name_or_function)

    def control_dependencies(self, control_inputs: Any) -> Any:
        """`tf.control_dependencies`."""
        from undertow.compat.v1.control import control_dependencies

        return control_dependencies(control_inputs)

    def name_scope(self, name: str | None) -> Any:
        """Names of operations made in the block begin with `name/`."""
        from undertow.compat.v1.control import graph_name_scope

        return graph_name_scope(self, name)

    @contextlib.contextmanager
    def colocate_with(self, op: Any, ignore_existing: bool = False) -> Iterator[None]:
        """Accepted: placement follows `tf.device`."""
        yield

    container = colocate_with

    def library(self, fetches: Any) -> Library:
        """The function graphs that a run of these fetches needs, before they are simplified."""
        from undertow.compat.v1.fetches import program_of

        return program_of(self, fetches).captured.library

    def as_graph_def(self, from_version: Any = None, add_shapes: bool = False) -> GraphDef:
        """All of the graph and its functions as TensorFlow's message: `.node`, `.library`, `.SerializeToString()`.

        Functions that are called must be defined by then. Shapes are always there.
        """
        with self.lock:
            main = self._whole()
            while close(self, self._reached(main)):
                main = self._whole()
            hidden = {param.node for param in self._fed.values()} | self.late.image_nodes
            unknown = {port.node for port in self.late.made_by}
            results = {c: known.result_names for name, known in self.declared.items() for c in self.callees_of(name)}
            return graph_def(library_of(main, self.writer.graphs), hidden, unknown, results)

    def _whole(self) -> FunctionGraph:
        """The main graph as it is, with the names of its operations."""
        main = self.main
        nodes = tuple(replace(node, name=self.name_of(number)) for number, node in enumerate(main.nodes))
        return FunctionGraph(nodes, tuple(main.regions), main.name, "main", (Phase(tuple(main.params), ()),))

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
