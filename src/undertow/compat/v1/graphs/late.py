"""Placeholders without a shape, and what depends on them: operations that are written when a run's feeds are known.

Until then such a tensor stands in the graph as if the placeholder were a single number: it has a name, a dtype, and can
be used everywhere. Beside it there is a recipe: the call of the user's that made it. A run that feeds something else
makes images: it repeats the calls, in their order, with placeholders of the fed types. Images are kept, by these.

    x = tf.placeholder(tf.float32)      param x: f32                       a run that feeds a matrix:
    y = tf.reduce_sum(x)                sum x        recipe: reduce_sum x  param x': f32[None, None];  y' = sum x'

A call inside of another one, or of a function that the user hands over (`tf.cond`), belongs to the outermost call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any

from undertow import tracebacks
from undertow.compat.v1.graphs.overrides import overridden, type_of_call
from undertow.compat.v1.place import here
from undertow.errors import InternalError, Span, UndertowError
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Traced, emit
from undertow.ir.graph import Port
from undertow.types import Type

if TYPE_CHECKING:
    from undertow.compat.v1.graph import Graph

# Shapes that are tried, in this order, where a call makes no sense for single numbers. Some calls must know a length.
_SHAPES: tuple[tuple[int | None, ...], ...] = tuple((d,) * rank for d in (None, 12) for rank in (2, 1, 3, 4))
_LATE_GRAPHS: set[int] = set()  # ids of graphs with such placeholders: others pay nothing

Images = dict[Port, Any]
Signature = tuple[tuple[Port, Type], ...]


@dataclass(eq=False)
class Recipe:
    """One call of the user's: how to repeat it."""

    number: int
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    controls: tuple[Port, ...]
    device: str | None
    scope: str
    span: Span | None
    needs: set[Port] = field(default_factory=set)  # late tensors
    results: list[Port | None] = field(default_factory=list)  # of the leaves that are late
    is_whole: bool = True  # does it make sense for single numbers?


@dataclass(eq=False)
class Late:
    """What a graph knows of late tensors."""

    graph: Graph
    made_by: dict[Port, Recipe | None] = field(default_factory=dict)  # None: a placeholder
    count: int = 0
    recording: Recipe | None = None
    images: Images | None = None  # while calls are repeated
    known: dict[tuple[Signature, bool], Images] = field(default_factory=dict)
    params: dict[tuple[Port, Type], Port] = field(default_factory=dict)
    written: list[range] = field(default_factory=list)  # nodes of main that are images

    @property
    def image_nodes(self) -> set[int]:
        """The nodes of main that are no operations of the user's."""
        return {port.node for port in self.params.values()}.union(*self.written)

    def add(self, port: Port) -> None:
        """A placeholder of unknown shape."""
        self.made_by[port] = None
        _LATE_GRAPHS.add(id(self.graph))

    def is_late(self, value: Any) -> bool:
        """Is this tensor of the main graph one whose shape only a run knows?"""
        return isinstance(value, Traced) and value.builder is self.graph.main and value.port in self.made_by

    def met(self, value: Traced) -> Traced:
        """What a tensor that is used stands for: its image, while calls are repeated."""
        if not self.is_late(value):
            return value
        if self.images is not None:
            image: Traced = self.images.get(value.port, value)
            return image
        if self.recording is not None:
            self.recording.needs.add(value.port)
        return value

    def variant(self) -> int:
        """A number for the images in use: functions that capture late tensors are traced once for each."""
        return next(k for k, images in enumerate(self.known.values(), 1) if images is self.images)

    # -- recording -----------------------------------------------------------------------------------------

    def record(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call, which is late if the call uses late tensors."""
        if self.images is not None:
            return function(*self._mapped(args), **self._mapped(kwargs))
        main = self.graph.main
        if self.recording is not None or self.graph.ctx.open_builder is not main or main.region != 0:
            for leaf in _tensors((args, kwargs)):
                self.met(leaf)
            return function(*args, **kwargs)
        recipe = Recipe(self.count, function, args, kwargs, main.controls, main.device, main.scope, here())
        recipe.needs.update(leaf.port for leaf in _tensors((args, kwargs)) if self.is_late(leaf))
        recipe.needs.update(port for port in main.controls if port in self.made_by)
        first, self.recording = len(main.nodes), recipe
        try:
            result = function(*args, **kwargs)
        except UndertowError as fault:
            if not recipe.needs:
                raise
            self.recording = None
            result, recipe.is_whole = self._tried(recipe, fault), False
        finally:
            self.recording = None
        if not recipe.needs:
            return result
        if recipe.is_whole and not all(maker.is_whole for port in recipe.needs if (maker := self.made_by[port])):
            recipe.is_whole = False  # the numbers that it was made from stand for something else
            result = self._tried(recipe, None, result)
        self.count += 1
        return self._noted(recipe, result, first)

    def _noted(self, recipe: Recipe, result: Any, first: int) -> Any:
        """The same result; its tensors, which the call has made, are late."""
        from undertow.compat.v1.tensor import Operation, Tensor, is_tensor_like

        leaves, structure = tree.flatten(result, is_tensor_like)
        noted: list[Any] = []
        for leaf in leaves:
            token = getattr(leaf, "token", leaf)
            if not isinstance(token, Traced) or token.builder is not self.graph.main:
                recipe.results.append(None)
                noted.append(leaf)
                continue
            if token.port.node < first or token.port in self.made_by:  # what was there before: a tensor of its own
                with self.graph.writing_to(self.graph.main):
                    token = Tensor(self.graph.main, emit("identity", [token])[0].port)
                leaf = token if isinstance(leaf, Traced) else Operation(token)
            self.made_by[token.port] = recipe
            recipe.results.append(token.port)
            noted.append(leaf)
        return tree.unflatten(structure, noted)

    def _tried(self, recipe: Recipe, fault: UndertowError | None, otherwise: Any = None) -> Any:
        """What a call gives that makes no sense for single numbers: tensors of the dtypes that it gives for arrays."""
        from undertow.compat.v1.tensor import Operation, Tensor, is_tensor_like

        origins = self._origins(recipe.needs)
        for shape in _SHAPES:
            signature = tuple((p, self.graph.main.type_of(p).with_shape(shape)) for p in origins)
            try:
                images = self._images(recipe.needs, signature, False)
                result = self._repeated(recipe, images)
            except UndertowError:
                continue
            leaves, structure = tree.flatten(result, is_tensor_like)
            stand_ins: list[Any] = []
            for leaf in leaves:
                token = getattr(leaf, "token", leaf)
                if not isinstance(token, Traced):
                    stand_ins.append(leaf)
                    continue
                name = token.builder.nodes[token.port.node].short_name
                port = self.graph.param(Type(token.type.dtype), name, recipe.span)
                stand_in = Tensor(self.graph.main, port)
                stand_ins.append(stand_in if isinstance(leaf, Traced) else Operation(stand_in))
            return tree.unflatten(structure, stand_ins)
        if fault is None:
            return otherwise
        raise fault

    # -- repeating -----------------------------------------------------------------------------------------

    def images_of(self, ports: Iterable[Port], fed: Mapping[Port, Type]) -> Images | None:
        """The images of tensors for a run that feeds values of these types; None if the tensors will do as they are."""
        late = [port for port in ports if port in self.made_by]
        signature = tuple(sorted(((port, type) for port, type in fed.items() if port in self.made_by), key=str))
        if not late:
            return None
        recipes = self._recipes(late, frozenset(fed))
        if not any(type.rank for _, type in signature) and all(recipe.is_whole for recipe in recipes):
            return None
        try:
            ranks = tuple((port, type.with_shape((None,) * type.rank)) for port, type in signature)
            return self._images(late, ranks, False)
        except UndertowError:
            return self._images(late, signature, True)

    def _origins(self, ports: Iterable[Port]) -> list[Port]:
        """The placeholders that tensors depend on."""
        found: dict[Port, None] = {}
        for recipe in self._recipes(ports, frozenset()):
            found.update(dict.fromkeys(sorted(p for p in recipe.needs if self.made_by[p] is None)))
        found.update(dict.fromkeys(p for p in ports if self.made_by[p] is None))
        return list(found)

    def _recipes(self, ports: Iterable[Port], fed: frozenset[Port]) -> list[Recipe]:
        """The calls that tensors depend on, in their order."""
        waiting = [port for port in ports if port not in fed]
        found: dict[int, Recipe] = {}
        while waiting:
            recipe = self.made_by[waiting.pop()]
            if recipe is not None and recipe.number not in found:
                found[recipe.number] = recipe
                waiting += (port for port in recipe.needs if port not in fed)
        return [found[number] for number in sorted(found)]

    def _images(self, ports: Iterable[Port], signature: Signature, is_exact: bool) -> Images:
        images = self.known.setdefault((signature, is_exact), {})
        for port, type in signature:
            images.setdefault(port, self._param(port, type))
        for recipe in self._recipes(ports, frozenset(port for port, _ in signature)):
            made = [port for port in recipe.results if port is not None]
            if not made or made[0] in images:
                continue
            leaves = self._leaves(self._repeated(recipe, images))
            if len(leaves) != len(recipe.results):
                raise InternalError("a call gives another number of tensors", recipe.span)
            images.update((port, leaf) for port, leaf in zip(recipe.results, leaves, strict=True) if port is not None)
        return images

    def _leaves(self, result: Any) -> list[Any]:
        from undertow.compat.v1.tensor import is_tensor_like

        return [getattr(leaf, "token", leaf) for leaf in tree.flatten(result, is_tensor_like)[0]]

    def _param(self, port: Port, type: Type) -> Any:
        from undertow.compat.v1.tensor import Tensor

        if (port, type) not in self.params:
            node = self.graph.main.nodes[port.node]
            with self.graph.scoped(self.graph.main, ""):
                self.params[port, type] = self.graph.param(type, node.name, node.span)
        return Tensor(self.graph.main, self.params[port, type])

    def _repeated(self, recipe: Recipe, images: Images) -> Any:
        main, before = self.graph.main, self.images
        state = main.region, main.controls, main.device, main.scope
        first = len(main.nodes)
        self.images = images
        try:
            with self.graph.lock, self.graph.writing_to(main):
                main.region, main.device, main.scope = 0, recipe.device, recipe.scope
                main.controls = tuple(images[port].port if port in images else port for port in recipe.controls)
                return recipe.function(*self._mapped(recipe.args), **self._mapped(recipe.kwargs))
        except UndertowError as fault:
            if fault.span is None or fault.span == here():
                fault.span = recipe.span  # not the line of the run
            raise
        finally:
            self.images = before
            self.written.append(range(first, len(main.nodes)))
            main.region, main.controls, main.device, main.scope = state

    def _mapped(self, value: Any) -> Any:
        """Arguments with images for late tensors."""
        from undertow.compat.v1.tensor import Operation, is_tensor_like, wrap

        leaves, structure = tree.flatten(value, is_tensor_like)
        mapped = [
            Operation(wrap(self.met(leaf.token)))
            if isinstance(leaf, Operation)
            else self.met(leaf)
            if isinstance(leaf, Traced)
            else leaf
            for leaf in leaves
        ]
        return tree.unflatten(structure, mapped)


def _tensors(value: Any) -> Iterator[Traced]:
    from undertow.compat.v1.tensor import is_tensor_like

    for leaf in tree.flatten(value, is_tensor_like)[0]:
        token = getattr(leaf, "token", leaf)
        if isinstance(token, Traced):
            yield token


def recorded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates what writes operations: calls that use late tensors can be repeated."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        from undertow.compat.v1.graph import get_default_graph

        if get_default_graph().gradient_overrides:
            wanted = get_default_graph().gradient_overrides.get(type_of_call(function))
            if wanted is not None:
                return overridden(get_default_graph(), wanted, function, args, kwargs)
        if not _LATE_GRAPHS:
            return function(*args, **kwargs)
        chosen = next((t.builder.context.graph for t in _tensors((args, kwargs)) if hasattr(t, "graph")), None)
        late = (chosen or get_default_graph()).late
        return function(*args, **kwargs) if not late.made_by else late.record(function, args, kwargs)

    return call


def boundaries(namespace: dict[str, Any], names: Sequence[str], besides: Sequence[str] = ()) -> None:
    """Make public functions of a module boundaries for tracebacks, and calls that can be repeated, but for some."""
    for name in names:
        if isinstance(namespace[name], FunctionType) and name not in besides:
            namespace[name] = recorded(namespace[name])
    tracebacks.boundaries(namespace, names)
