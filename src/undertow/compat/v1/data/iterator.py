"""Iterators over datasets: where each session has got to, and the tensors that a run feeds with the next element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from undertow.compat.v1.array import placeholder
from undertow.compat.v1.control import no_op
from undertow.compat.v1.data.source import Element, Reading, Source
from undertow.compat.v1.errors import FailedPreconditionError, OutOfRangeError, of_kind
from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.shapes import TensorShape
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation
from undertow.errors import RunError, TypeMismatch
from undertow.frontend.values import tree
from undertow.tracebacks import guarded
from undertow.types import Type

if TYPE_CHECKING:
    from undertow.compat.v1.session import Session

__all__ = ["Iterator"]


class Initializer(Operation):
    """Begins the reading of a dataset, in the session that runs it."""

    def __init__(self, iterator: Iterator, source: Source) -> None:
        super().__init__(no_op("MakeIterator").token)
        self._iterator, self._source = iterator, source

    def start(self, session: Session, feed_dict: Any) -> None:
        """Read the tensors that the dataset is made of, and begin."""
        tensors = self._source.tensors()
        values = session.run(tensors, feed_dict) if tensors else []
        reading = Reading({id(tensor): value for tensor, value in zip(tensors, values, strict=True)})
        session.readings[self._iterator] = self._source.read(reading)


class Next:
    """One `get_next`: in each run that needs it, it takes one element."""

    def __init__(self, iterator: Iterator) -> None:
        self.iterator = iterator

    def element(self, session: Session) -> Element:
        """The next element of this session."""
        if self.iterator not in session.readings:
            self.iterator.begin(session)
        element: Element | None = next(session.readings[self.iterator], None)
        if element is None:
            raise of_kind(
                RunError(
                    "End of sequence: the dataset has no more elements",
                    here(),
                    hint="catch tf.errors.OutOfRangeError, or use dataset.repeat()",
                ),
                OutOfRangeError,
            )
        return element


@guarded
class Iterator:
    """Gives the elements of a dataset to runs, one after the other; each session has its own place."""

    def __init__(
        self, structure: tree.Structure, types: Sequence[Type], source: Source | None, is_automatic: bool = True
    ) -> None:
        self._structure, self._types, self._source = structure, list(types), source
        self._is_automatic = is_automatic

    @staticmethod
    def from_structure(output_types: Any, output_shapes: Any = None, shared_name: Any = None, **_: Any) -> Iterator:
        """An iterator for any dataset of these types: see make_initializer."""
        kinds, structure = tree.flatten(output_types, lambda leaf: not isinstance(leaf, (tuple, dict)))
        if output_shapes is None:
            raise TypeMismatch("from_structure needs shapes", here(), hint="pass dataset.output_shapes")
        shapes = tree.flatten(output_shapes, lambda leaf: isinstance(leaf, (TensorShape, list)))[0]
        types = [Type(dtype_of(k), tuple(TensorShape(s))) for k, s in zip(kinds, shapes, strict=True)]
        return Iterator(structure, types, None, is_automatic=False)

    @property
    def initializer(self) -> Operation:
        """An operation that begins from the start."""
        if self._source is None or self._is_automatic:
            raise TypeMismatch(
                "this iterator has no initializer",
                here(),
                hint="use make_initializer(dataset)" if self._source is None else "use make_initializable_iterator",
            )
        return Initializer(self, self._source)

    def make_initializer(self, dataset: Any, name: str | None = None) -> Operation:
        """An operation that begins to read a dataset."""
        source, structure, types = dataset.made_for("make_initializer")
        if structure != self._structure or not all(
            own.accepts(other) for own, other in zip(self._types, types, strict=True)
        ):
            raise TypeMismatch(
                "the dataset has elements of other types than the iterator", here(), hint="compare their output_shapes"
            )
        return Initializer(self, source)

    def begin(self, session: Session) -> None:
        """Begin in a session by itself, which a one-shot iterator does."""
        if self._source is None or not self._is_automatic:
            raise of_kind(
                RunError(
                    "the iterator has not been initialized in this session",
                    here(),
                    hint="run its initializer first: sess.run(iterator.initializer)",
                ),
                FailedPreconditionError,
            )
        session.readings[self] = self._source.read(Reading({}))

    def get_next(self, name: str | None = None) -> Any:
        """The tensors of the next element: every run that needs them takes one."""
        graph = get_default_graph()
        pull = Next(self)
        tensors = []
        for number, type in enumerate(self._types):
            shape = [d if isinstance(d, int) else None for d in type.shape]
            with graph.outside():
                tensor = placeholder(type.dtype, shape, name or "IteratorGetNext")
            graph.pulled[tensor.port.node] = pull, number
            tensors.append(tensor)
        return tree.unflatten(self._structure, tensors)

    @property
    def output_types(self) -> Any:
        """The dtypes of an element, in its structure."""
        return tree.unflatten(self._structure, [type.dtype for type in self._types])

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element, in its structure."""
        shapes = [TensorShape([d if isinstance(d, int) else None for d in t.shape]) for t in self._types]
        return tree.unflatten(self._structure, shapes)
