"""`Session.run(fetches, feed_dict)`: runs what the fetches need, and keeps the values of variables between runs.

A run's writes are committed when it succeeds. Runs that write are serialized; read-only runs never wait,
and see the last committed values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from undertow.api.behaviors import BUDGET, Behaviors, find_behaviors
from undertow.api.options import Settings, settings
from undertow.api.program import begin, check_written, limits_left
from undertow.compat.v1.connection import Connection
from undertow.compat.v1.devices import Cluster, list_local_devices
from undertow.compat.v1.errors import of_graph, of_kind, of_run
from undertow.compat.v1.fetches import (
    Fetched,
    by_name,
    captured_late,
    fed_types,
    feeds_of,
    flatten_fetches,
    make_fetched,
    missing,
)
from undertow.compat.v1.graph import Graph, Stack, get_default_graph
from undertow.compat.v1.graphs.hosted import Hosted, computed
from undertow.compat.v1.mirrored.run_options import Asked
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation
from undertow.errors import GraphError, RunError, TypeMismatch, UndertowError, brief
from undertow.frontend.values import tree
from undertow.frontend.values.transaction import Cell, transact
from undertow.ir.graph import Port
from undertow.ops.effects import variables_of
from undertow.tracebacks import boundaries
from undertow.viz.messages import GraphDef

__all__ = ["InteractiveSession", "Session", "get_default_session"]

NO_CLUSTER = Cluster()
NOTHING: dict[str, Any] = {}
_SESSIONS: Stack[Session] = Stack(list)


def get_default_session() -> Session | None:
    """The session of the innermost `with`, if there is one."""
    return _SESSIONS.items[-1] if _SESSIONS.items else None


def session_for(session: Session | None, what: Any) -> Session:
    """This session, or that of the innermost `with`."""
    chosen = session or get_default_session()
    if chosen is None:
        raise GraphError(
            f"there is no session to run {what!r} in",
            here(),
            hint="use `with tf.Session():`, or pass one: x.eval(session=sess)",
        )
    return chosen


class Session:
    """Runs parts of a graph. A context manager; `close` ends it. Keywords are options of runs: engine, timeout, ...

    `target` is a server of a cluster, "grpc://localhost:2222": tasks that `tf.device` names take part in runs.
    """

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None, **options: Any) -> None:
        self._options = options
        self._settings()  # raises at once for an unknown option
        is_soft = bool(getattr(config, "allow_soft_placement", False))
        self._connection = Connection(target, is_soft) if target else None
        if graph is not None and not isinstance(graph, Graph):
            raise TypeMismatch(f"{brief(graph)} is not a graph", here(), hint="write tf.Session(graph=tf.Graph())")
        self.graph = get_default_graph() if graph is None else graph
        self._cell = Cell({})  # values of variables by name: the dict is replaced as a whole, never changed
        self._counts: dict[int, int] = {}  # how often each operation with a seed was run, by its parameter
        self.readings: dict[Any, Any] = {}  # iterators of tf.data, and where this session has got to
        self._is_open = True
        self._entered: list[contextlib.ExitStack] = []

    def _settings(self) -> Settings:
        return settings().with_(**self._options)

    def __enter__(self) -> Session:
        self._check_open()
        self._entered.append(contextlib.ExitStack())
        self._entered[-1].enter_context(self.graph.as_default())
        self._entered[-1].enter_context(_SESSIONS.pushed(self))
        return self

    def __exit__(self, *_: object) -> None:
        self._entered.pop().close()
        self.close()

    @contextlib.contextmanager
    def as_default(self) -> Iterator[Session]:
        """Inside `with sess.as_default():`, `eval` uses this session; it is not closed at the end."""
        self._check_open()
        with _SESSIONS.pushed(self):
            yield self

    def close(self) -> None:
        """Forget the values of variables, and end the workers on a cluster."""
        self._is_open = False
        self._cell = Cell({})
        if self._connection is not None:
            self._connection.close()

    def _check_open(self) -> None:
        if not self._is_open:
            raise of_kind(
                GraphError(
                    "Attempted to use a closed Session: this session is closed",
                    here(),
                    hint="create another one; `with tf.Session() as sess:` closes it at its end",
                ),
                RuntimeError,
            )

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """The values of the fetches: one, or nested lists, tuples and dicts of them."""
        try:
            return copy_context().run(self._run_there, fetches, feed_dict, Asked(options, run_metadata))
        except UndertowError as fault:
            of_run(fault)
            of_graph(fault)
            raise

    def make_callable(self, fetches: Any, feed_list: Sequence[Any] | None = None) -> Callable[..., Any]:
        """A function of the values of `feed_list` that runs these fetches."""
        fed = list(feed_list or ())

        def call(*values: Any) -> Any:
            if len(values) != len(fed):
                raise TypeMismatch(
                    f"this callable takes {len(fed)} values, not {len(values)}",
                    here(),
                    hint="one for each of feed_list",
                )
            return self.run(fetches, dict(zip(fed, values, strict=True)))

        return call

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> PartialRun:
        """Begin a run whose feeds come one after the other: see `partial_run`."""
        span = here()
        leaves = flatten_fetches(self.graph, fetches, span)[0]
        fed = [by_name(self.graph, feed, span) if isinstance(feed, str) else feed for feed in feeds or ()]
        return PartialRun({_port_of(leaf) for leaf in leaves}, {_port_of(feed) for feed in fed})

    def partial_run(self, handle: PartialRun, fetches: Any, feed_dict: Any = None) -> Any:
        """Go on with a run: what was fed and fetched before is still there."""
        span = here()
        leaves, structure = flatten_fetches(self.graph, fetches, span)
        for key in feed_dict or ():
            tensor = by_name(self.graph, key, span) if isinstance(key, str) else key
            if _port_of(tensor) not in handle.feeds:
                raise TypeMismatch(f"{tensor!r} was not specified in partial_run_setup", span, hint="list it in feeds")
            handle.fed[tensor] = (feed_dict or {})[key]
        for leaf in leaves:
            if _port_of(leaf) not in handle.fetches:
                raise TypeMismatch(f"{leaf!r} was not specified in partial_run_setup", span, hint="list it in fetches")
        values = self.run(leaves, handle.fed)
        for leaf, value in zip(leaves, values, strict=True):
            if not isinstance(leaf, (Operation, Hosted)):
                handle.fed[leaf] = value  # computed once
        return tree.unflatten(structure, values)

    def list_devices(self) -> list[Any]:
        """The devices of this process: one. `tf.device` names those of a cluster."""
        return list_local_devices()

    @property
    def graph_def(self) -> GraphDef:
        """Its graph as a message: see `tf.Graph.as_graph_def`."""
        return self.graph.as_graph_def()

    def behaviors(
        self, fetches: Any, feed_dict: Any = None, budget: int = BUDGET, traces: bool | str = False
    ) -> Behaviors:
        """Every possible outcome of a run, over every order of firings, and the ways there; see `ut.behaviors`."""
        return copy_context().run(self._behaviors, fetches, feed_dict, budget, traces)

    def _behaviors(self, fetches: Any, feed_dict: Any, budget: int, traces: bool | str) -> Behaviors:
        begin(self._settings())
        request = self._request(fetches, feed_dict, None)
        inputs = self._inputs(request, self._settings())
        graphs = request.fetched.program.captured.library.functions.values()
        names = {name for graph in graphs for node in graph.nodes for name in variables_of(node.attrs)}
        state = {name: value for name, value in self._cell.value.items() if name in names}
        return find_behaviors(request.fetched.program, inputs, state, budget, traces, request.results)

    def _run_there(self, fetches: Any, feed_dict: Any, asked: Asked) -> Any:
        """On the cluster of the session, if it has one."""
        if self._connection is None:
            return self._run(fetches, feed_dict, asked, NO_CLUSTER)
        self._check_open()
        with self._connection.running() as cluster:
            return self._run(fetches, feed_dict, asked, cluster)

    def _run(self, fetches: Any, feed_dict: Any, asked: Asked, cluster: Cluster) -> Any:
        chosen = self._settings().with_(**asked.changes)
        begin(chosen)
        request = self._request(fetches, feed_dict, cluster)
        for leaf in request.leaves:
            if hasattr(leaf, "start"):  # the initializer of an iterator
                leaf.start(self, feed_dict)
        if not request.leaves:
            return request.results([], self._cell.value)
        asked.begin(request.fetched.program.captured.library)
        return self._execute(request, self._inputs(request, chosen), chosen, asked)

    def _request(self, fetches: Any, feed_dict: Any, cluster: Cluster | None) -> _Request:
        self._check_open()
        span = here()
        leaves, structure = flatten_fetches(self.graph, fetches, span)
        fed = feeds_of(self.graph, feed_dict, span)
        try:
            leaves, fed = self._with_images(leaves, fed)
            fetched = make_fetched(self.graph, leaves, list(fed), cluster)
        except UndertowError as fault:
            fault.span = fault.span or span
            raise
        for port in fetched.inputs:
            if port not in fed and not self._is_fed_by_runs(port):
                raise missing(self.graph, port, span)
            if port in self.graph.late.made_by and np.ndim(fed[port]):
                raise captured_late(self.graph, port, span)
        return _Request(leaves, structure, fetched, fed)

    def _with_images(self, leaves: list[Any], fed: dict[Port, Any]) -> tuple[list[Any], dict[Port, Any]]:
        """Fetches and feeds, with what this run's shapes make of tensors whose shapes were not known."""
        late = self.graph.late
        if not late.made_by:
            return leaves, fed
        tokens = [leaf.token if isinstance(leaf, Operation) else leaf for leaf in computed(leaves)]
        with self.graph.lock:
            images = late.images_of([token.port for token in tokens], fed_types(self.graph, fed))
        if images is None:
            return leaves, fed
        found = (images.get(token.port, token) for token in tokens)
        leaves = [
            leaf.made_of([next(found) for _ in leaf.tensors])
            if isinstance(leaf, Hosted)
            else Operation(next(found))
            if isinstance(leaf, Operation)
            else next(found)
            for leaf in leaves
        ]
        return leaves, {images[port].port if port in images else port: value for port, value in fed.items()}

    def _inputs(self, request: _Request, chosen: Settings) -> list[Any]:
        fed = self._with_elements(request)
        return [fed[p] if p in fed else self._run_value(p, chosen) for p in request.fetched.inputs]

    def _with_elements(self, request: _Request) -> dict[Port, Any]:
        """The feeds, and the next element of every iterator that the run needs."""
        pulled = {p: self.graph.pulled[p.node] for p in request.fetched.inputs if p.node in self.graph.pulled}
        pulled = {port: pull for port, pull in pulled.items() if port not in request.fed}
        if not pulled:
            return request.fed
        elements = {pull: pull.element(self) for pull in dict.fromkeys(pull for pull, _ in pulled.values())}
        return {**request.fed, **{port: elements[pull][number] for port, (pull, number) in pulled.items()}}

    def _is_fed_by_runs(self, port: Port) -> bool:
        main = self.graph.main
        return port == main.key or port.node in self.graph.run_values or port.node in self.graph.pulled

    def _run_value(self, port: Port, chosen: Settings) -> np.generic:
        """What a run feeds by itself: random noise, or how often it was needed; where the keys of main begin, 0."""
        kind = self.graph.run_values.get(port.node)
        if kind == "noise":
            return chosen.draw_seed()
        if kind is not None and kind.startswith("initialized "):
            return np.bool_(kind.partition(" ")[2] in self._cell.value)
        if kind is None:
            return np.int64(0)
        with self.graph.lock:
            count = self._counts.get(port.node, 0)
            self._counts[port.node] = count + 1
        return np.int64(count)

    def _execute(self, request: _Request, inputs: list[Any], chosen: Settings, asked: Asked) -> Any:
        fetched = request.fetched
        with self.graph.lock:
            plan = fetched.program.ready(chosen)
        limits = limits_left(chosen)

        def run(state: dict[str, Any]) -> list[Any]:
            with asked.running(limits, plan) as options:
                return plan.run(inputs, options, state)[0]

        try:
            if not fetched.written:
                return request.results(run(dict(self._cell.value)), self._cell.value)

            def work(cells: dict[str, Any]) -> Any:
                before, state = cells["values"], dict(cells["values"])
                values = run(state)
                cells["values"] = {name: v if v is before.get(name) else _frozen(v) for name, v in state.items()}
                return request.results(values, before)

            return transact({"values": self._cell}, ["values"], work, lambda held: held, lambda _: "variables")
        except RunError:  # some are OSErrors too
            raise
        except OSError as fault:
            check_written(fault, chosen)
            raise


@dataclass(eq=False)
class PartialRun:
    """A run whose feeds come one after the other: what it may fetch and be fed, and what it was."""

    fetches: set[Any]
    feeds: set[Any]
    fed: dict[Any, Any] = field(default_factory=dict)


def _port_of(value: Any) -> Any:
    return getattr(getattr(value, "token", value), "port", value)


@dataclass(frozen=True, slots=True)
class _Request:
    """The fetches and feeds of a run, with the program for them."""

    leaves: list[Any]  # tensors and operations
    structure: tree.Structure
    fetched: Fetched
    fed: dict[Port, Any]

    def results(self, values: Sequence[Any], held: Any = NOTHING) -> Any:
        """Values of the tensors, in the structure of the fetches. `held`: those of variables."""
        rest = iter(values)
        return tree.unflatten(self.structure, [_given(leaf, rest, held) for leaf in self.leaves])


class InteractiveSession(Session):
    """A session that is the default from its creation until it is closed."""

    def __init__(self, target: str = "", graph: Graph | None = None, config: Any = None, **options: Any) -> None:
        super().__init__(target, graph, config, **options)
        self._default = contextlib.ExitStack()
        if graph is not None:
            self._default.enter_context(graph.as_default())
        self._default.enter_context(_SESSIONS.pushed(self))

    def close(self) -> None:
        """Forget the values of variables; the session is no longer the default one."""
        self._default.close()
        super().close()


def _given(leaf: Any, values: Iterator[Any], held: Any) -> Any:
    """What a fetch returns, from the next ones of the values that were computed, and those of variables."""
    if isinstance(leaf, Operation):
        return None
    if isinstance(leaf, Hosted):
        return leaf.value_in(held, [next(values) for _ in leaf.tensors])
    return _own(next(values))


def _frozen(value: Any) -> Any:
    array = np.array(value, copy=True)
    array.flags.writeable = False
    return array[()]


def _own(value: Any) -> Any:
    """A copy that the user may modify; never the array of a variable or a constant."""
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value


boundaries(globals(), __all__)
