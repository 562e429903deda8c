"""`tf.data.Dataset`: elements of one structure, and what is made of them.

Elements are NumPy values, which the host reads and arranges. Functions that a program gives (`map`, `filter`) are
graphs of their own, run once for each element.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.array import placeholder
from undertow.compat.v1.data import source as read
from undertow.compat.v1.data.iterator import Iterator
from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.seeds import seeds_of
from undertow.compat.v1.graphs.shapes import TensorShape
from undertow.compat.v1.place import here
from undertow.compat.v1.session import Session
from undertow.compat.v1.tensor import as_constant, as_tensor, is_tensor_like, with_reads
from undertow.errors import TypeMismatch, brief
from undertow.frontend.values import tree
from undertow.tracebacks import guarded
from undertow.types import Type, i64, said, type_of

__all__ = ["Dataset"]


@guarded
class Dataset:
    """Elements of one structure. An iterator gives them to runs, one after the other."""

    def __init__(self, source: read.Source, structure: tree.Structure, types: Sequence[Type]) -> None:
        self._source = source
        self._structure = structure
        self._types = list(types)

    # -- what there is -------------------------------------------------------------------------------------

    @property
    def output_types(self) -> Any:
        """The dtypes of an element, in its structure."""
        return self._packed([type.dtype for type in self._types])

    @property
    def output_shapes(self) -> Any:
        """The shapes of an element, in its structure."""
        return self._packed([TensorShape([d if isinstance(d, int) else None for d in t.shape]) for t in self._types])

    @property
    def output_classes(self) -> Any:
        """`tf.Tensor`, in the structure of an element."""
        return self._packed([type(as_tensor(0))] * len(self._types))

    def _packed(self, leaves: Sequence[Any]) -> Any:
        return tree.unflatten(self._structure, list(leaves))

    def _like(self, source: read.Source, types: Sequence[Type] | None = None) -> Dataset:
        return Dataset(source, self._structure, self._types if types is None else types)

    def make_one_shot_iterator(self) -> Iterator:
        """An iterator that begins with the first run that needs it."""
        tensors = self._source.tensors()
        if tensors:
            raise TypeMismatch(
                f"a one-shot iterator cannot read {tensors[0]!r}, whose value a run must give first",
                here(),
                hint="use make_initializable_iterator, and run its initializer with a feed_dict",
            )
        return Iterator(self._structure, self._types, self._source)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Iterator:
        """An iterator that begins whenever its `initializer` is run."""
        return Iterator(self._structure, self._types, self._source, is_automatic=False)

    def __iter__(self) -> Any:
        raise TypeMismatch("a dataset is not read in Python", here(), hint="use make_one_shot_iterator().get_next()")

    def made_for(self, what: str) -> tuple[read.Source, tree.Structure, list[Type]]:
        """What an iterator or another dataset needs of it."""
        if not isinstance(self, Dataset):
            raise TypeMismatch(f"{what} takes a dataset, not {brief(self)}", here(), hint="use tf.data.Dataset")
        return self._source, self._structure, self._types

    # -- where elements come from --------------------------------------------------------------------------

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The elements of arrays along their first axis."""
        leaves, structure, types = _leaves(tensors)
        if not all(type.rank for type in types):
            raise TypeMismatch("a single number has no slices", here(), hint="use Dataset.from_tensors")
        return Dataset(read.Slices(leaves), structure, [type.with_shape(type.shape[1:]) for type in types])

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element."""
        leaves, structure, types = _leaves(tensors)
        return Dataset(read.One(leaves), structure, types)

    @staticmethod
    def range(*args: Any) -> Dataset:
        """The numbers of a range, as int64."""
        bounds = [with_reads(bound) for bound in args]
        return Dataset(read.Numbers(bounds), (tree.LEAF,), [Type(i64)])

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_types: Any, output_shapes: Any = None, args: Sequence[Any] = ()
    ) -> Dataset:
        """What a generator yields; it is made anew for each reading, and without shapes once more, to see them."""
        if not callable(generator):
            raise TypeMismatch(f"{brief(generator)} cannot be called", here(), hint="pass the function, without ()")
        kinds, structure = tree.flatten(output_types, lambda leaf: not isinstance(leaf, (tuple, list, dict)))
        dtypes = [dtype_of(kind) for kind in kinds]
        if output_shapes is None:
            first = next(iter(generator(*args)), None)
            ranks = [np.ndim(leaf) for leaf in _flat_like(first, structure)] if first is not None else [0] * len(kinds)
            shapes: list[Any] = [(None,) * rank for rank in ranks]
        else:
            shapes = [tuple(TensorShape(shape)) for shape in _shapes(output_shapes, structure)]
        types = [Type(dtype, tuple(shape)) for dtype, shape in zip(dtypes, shapes, strict=True)]

        def convert(value: Any) -> read.Element:
            leaves = _flat_like(value, structure)
            return [_checked(leaf, type) for leaf, type in zip(leaves, types, strict=True)]

        return Dataset(read.Generated(generator, list(args), convert), structure, types)

    @staticmethod
    def zip(datasets: Any) -> Dataset:
        """Elements of several datasets side by side, in the structure that they are given in."""
        parts, around = tree.flatten(datasets, lambda leaf: isinstance(leaf, Dataset))
        if not parts or not all(isinstance(part, Dataset) for part in parts):
            raise TypeMismatch(f"{brief(datasets)} are not datasets", here(), hint="write Dataset.zip((a, b))")
        inner = iter(part._structure for part in parts)
        tokens = [token for outer in around for token in (next(inner) if outer == tree.LEAF else (outer,))]
        types = [type for part in parts for type in part._types]
        return Dataset(read.Zipped(*(part._source for part in parts)), tuple(tokens), types)

    # -- what is made of them ------------------------------------------------------------------------------

    def map(self, map_func: Callable[..., Any], num_parallel_calls: Any = None, **_: Any) -> Dataset:
        """A function of each element. Of a tuple, it gets the parts as arguments."""
        function = _Function(map_func, self._structure, self._types)
        return Dataset(read.Mapped(self._source, function), function.structure, function.types)

    def filter(self, predicate: Callable[..., Any]) -> Dataset:
        """The elements for which a function is true."""
        function = _Function(predicate, self._structure, self._types)
        if [(type.dtype.kind, type.rank) for type in function.types] != [("bool", 0)]:
            raise TypeMismatch(
                f"a predicate must return one bool, not {said(function.types[0])}", here(), hint="compare: x > 0"
            )
        return self._like(read.Filtered(self._source, function))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the datasets that a function makes of each element."""
        return self.interleave(map_func, 1, 1)

    def interleave(self, map_func: Callable[..., Any], cycle_length: int, block_length: int = 1) -> Dataset:
        """The same, with several of them open at a time."""
        sample: list[Dataset] = []

        def made(element: read.Element) -> read.Source:
            # The function is called in Python for each element, whose values are constants to it.
            with Graph().as_default():
                made_of = tree.unflatten(self._structure, [np.asarray(leaf) for leaf in element])
                inner = map_func(*made_of) if type(made_of) is tuple else map_func(made_of)
            source, structure, types = Dataset.made_for(inner, "the result of the function")
            sample[:] = sample or [Dataset(source, structure, types)]
            return source

        zeros = [np.zeros([d if isinstance(d, int) else 1 for d in t.shape], t.dtype.numpy) for t in self._types]
        made(zeros)
        flattened = read.Flattened(self._source, made, int(cycle_length), int(block_length))
        return sample[0]._like(flattened, [t.with_shape((None,) * t.rank) for t in sample[0]._types])

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """What a function makes of this dataset."""
        return transformation_func(self)

    def batch(self, batch_size: Any, drop_remainder: bool = False) -> Dataset:
        """So many elements stacked; the last batch may have less."""
        return self._batched(batch_size, drop_remainder, [tuple(type.shape) for type in self._types])

    def _batched(
        self, batch_size: Any, drop_remainder: bool, shapes: Sequence[Any], fillers: Sequence[Any] | None = None
    ) -> Dataset:
        size = with_reads(batch_size)
        if not is_tensor_like(size) and int(size) < 1:
            raise TypeMismatch(f"batch_size={brief(batch_size)}", here(), hint="give a number above 0")
        first = int(size) if drop_remainder and not is_tensor_like(size) else None
        types = [type.with_shape((first, *shape)) for type, shape in zip(self._types, shapes, strict=True)]
        source = read.Batched(self._source, size, drop_remainder, fillers, None if fillers is None else shapes)
        return self._like(source, types)

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any, padding_values: Any = None, drop_remainder: bool = False
    ) -> Dataset:
        """So many elements stacked, filled up to a shape, or where that is None, to the longest of the batch."""
        shapes = [
            tuple(None if d is None or d == -1 else int(d) for d in shape)
            for shape in _shapes(padded_shapes, self._structure)
        ]
        for shape, type in builtins.zip(shapes, self._types, strict=True):
            if len(shape) != type.rank:
                raise TypeMismatch(f"padded_shapes has {list(shape)} for {said(type)}", here(), hint="as many axes")
        if padding_values is None:
            fillers: list[Any] = [0] * len(shapes)
        else:
            fillers = tree.flatten(padding_values)[0]
        return self._batched(batch_size, drop_remainder, shapes, fillers)

    def shuffle(self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = None) -> Dataset:
        """Elements in random order, drawn from a buffer of so many; with seeds, in the same order for each session."""
        of_graph, own = seeds_of(get_default_graph(), seed)
        chosen = None if of_graph is None else [of_graph % 2**63, (own or 0) % 2**63]
        if chosen is None and reshuffle_each_iteration is False:
            chosen = [int(np.random.default_rng().integers(2**62))]
        again = reshuffle_each_iteration is not False
        return self._like(read.Shuffled(self._source, with_reads(buffer_size), chosen, again))

    def repeat(self, count: Any = None) -> Dataset:
        """The elements so often; without a count for ever."""
        return self._like(read.Repeated(self._source, with_reads(count)))

    def take(self, count: Any) -> Dataset:
        """The first elements; all of them for -1."""
        return self._like(read.Part(self._source, 0, with_reads(count)))

    def skip(self, count: Any) -> Dataset:
        """All but the first elements; none for -1."""
        return self._like(read.Part(self._source, with_reads(count), None))

    def shard(self, num_shards: Any, index: Any) -> Dataset:
        """Every num_shards-th element, from number `index` on."""
        return self._like(read.Part(self._source, with_reads(index), None, with_reads(num_shards)))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """These elements, and then those of another dataset."""
        source, structure, types = Dataset.made_for(dataset, "concatenate")
        if structure != self._structure or [(t.dtype, t.rank) for t in types] != [
            (t.dtype, t.rank) for t in self._types
        ]:
            raise TypeMismatch("the datasets have elements of different types", here(), hint="map one of them first")
        shapes = [
            tuple(p if p == q else None for p, q in builtins.zip(a.shape, b.shape, strict=True))
            for a, b in builtins.zip(self._types, types, strict=True)
        ]
        both = [type.with_shape(shape) for type, shape in builtins.zip(self._types, shapes, strict=True)]
        return self._like(read.Chained(self._source, source), both)

    def prefetch(self, buffer_size: Any) -> Dataset:
        """Accepted: elements are read when a run needs them."""
        return self

    def cache(self, filename: Any = None) -> Dataset:
        """Elements that are read once, and kept by the iterator."""
        if filename:
            raise TypeMismatch("elements are not cached in files", here(), hint="leave out the name, or use np.savez")
        return self._like(read.Cached(self._source))


# -- elements ----------------------------------------------------------------------------------------------


def _leaves(tensors: Any) -> tuple[list[Any], tree.Structure, list[Type]]:
    """Arrays and tensors, the structure around them, and their types. A list is an array, as in TensorFlow."""
    leaves, structure = tree.flatten(tensors, lambda leaf: not isinstance(leaf, (tuple, dict)))
    values = [with_reads(leaf) if is_tensor_like(leaf) else np.asarray(as_constant(leaf)) for leaf in leaves]
    types = [type_of(value) if isinstance(value, np.ndarray) else value.type for value in values]
    return values, structure, types


def _flat_like(value: Any, structure: tree.Structure) -> list[Any]:
    """The leaves of a value of this structure; lists in it are arrays."""
    if structure == (tree.LEAF,):
        return [value]
    found = tree.along(structure, value)
    if found is None and isinstance(value, (list, tuple)) and len(structure) == len(value) + 1:
        found = list(value)
    if found is None:
        raise TypeMismatch(f"{brief(value)} has not the structure of output_types", hint="yield a tuple of values")
    return found


def _checked(value: Any, type: Type) -> Any:
    """A value that a generator has yielded, as its type says."""
    array = np.asarray(value)
    if not type.accepts(type_of(array).with_dtype(type.dtype)) or not np.can_cast(
        array.dtype, type.dtype.numpy, "same_kind"
    ):
        raise TypeMismatch(f"a generator yields {array.dtype}{list(array.shape)}, not {said(type)}", hint="convert it")
    return array.astype(type.dtype.numpy)


def _shapes(shapes: Any, structure: tree.Structure) -> list[Any]:
    """The shapes of a structure: lists, tuples of sizes, or TensorShapes."""
    if structure == (tree.LEAF,):
        return [shapes]
    found = tree.along(structure, shapes, _children)
    if found is None and isinstance(shapes, (list, tuple)) and len(shapes) == len(structure) - 1:
        found = list(shapes)
    if found is None:
        raise TypeMismatch(f"{brief(shapes)} are not shapes of the elements", here(), hint="one for each part")
    return found


def _children(value: Any) -> Any:
    return None if isinstance(value, TensorShape) else tree.children(value)


class _Function:
    """A function of the program's as a graph of its own, which is run for each element."""

    def __init__(self, function: Callable[..., Any], structure: tree.Structure, types: Sequence[Type]) -> None:
        graph = Graph()
        graph.seed = get_default_graph().seed
        with graph.as_default():
            shapes = [[d if isinstance(d, int) else None for d in type.shape] for type in types]
            self._inputs = [placeholder(t.dtype, shape) for t, shape in builtins.zip(types, shapes, strict=True)]
            element = tree.unflatten(structure, self._inputs)
            # Of a tuple, TensorFlow gives the parts; of a named tuple or a dict, the whole.
            result = function(*element) if type(element) is tuple else function(element)
            leaves, self.structure = tree.flatten(tuple(result) if isinstance(result, list) else result, is_tensor_like)
            self._results = [as_tensor(leaf) for leaf in leaves]
        if not self._results:
            raise TypeMismatch("the function of a dataset returns nothing", here(), hint="return tensors")
        self.types = [tensor.type for tensor in self._results]
        self._session = Session(graph=graph)

    def __call__(self, element: read.Element) -> read.Element:
        values: read.Element = self._session.run(self._results, dict(builtins.zip(self._inputs, element, strict=True)))
        return values
