"""What datasets read: elements one after the other, as lists of NumPy values, in the order of their structure.

A reading is of one iterator in one session: it knows the values of the tensors that a dataset was made of, and
continues the random numbers of a shuffle from one repetition to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.tensor import is_tensor_like
from undertow.errors import TypeMismatch

Element = list[Any]


class Reading:
    """One pass of an iterator over a dataset and all that it is made of."""

    def __init__(self, values: dict[int, Any]) -> None:
        self._values = values  # of tensors, by id
        self._random: dict[int, np.random.Generator] = {}
        self.cache: dict[int, list[Element]] = {}

    def value(self, given: Any) -> Any:
        """A NumPy value: as it is, or that of a tensor."""
        return self._values[id(given)] if is_tensor_like(given) else given

    def random(self, source: Source, seed: Any) -> np.random.Generator:
        """The random numbers of a source, which go on when it is read again."""
        if id(source) not in self._random:
            self._random[id(source)] = np.random.default_rng(seed)
        return self._random[id(source)]


class Source:
    """The base class of what gives elements."""

    def __init__(self, *inputs: Source, tensors: Sequence[Any] = ()) -> None:
        self.inputs = inputs
        self.own_tensors = [tensor for tensor in tensors if is_tensor_like(tensor)]

    def read(self, reading: Reading) -> Iterator[Element]:
        """The elements."""
        raise NotImplementedError

    def tensors(self) -> list[Any]:
        """The tensors whose values must be known before the first element."""
        found: list[Any] = []
        waiting: list[Source] = [self]
        while waiting:
            source = waiting.pop()
            found += source.own_tensors
            waiting += source.inputs
        return found


class Slices(Source):
    """Elements along the first axis of arrays."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        super().__init__(tensors=leaves)
        self._leaves = leaves

    def read(self, reading: Reading) -> Iterator[Element]:
        arrays = [reading.value(leaf) for leaf in self._leaves]
        if len({len(array) for array in arrays}) > 1:
            raise TypeMismatch(
                f"from_tensor_slices of arrays of the lengths {[len(array) for array in arrays]}",
                hint="give arrays with as many elements as each other",
            )
        for row in zip(*arrays, strict=True):
            yield list(row)


class One(Source):
    """One element."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        super().__init__(tensors=leaves)
        self._leaves = leaves

    def read(self, reading: Reading) -> Iterator[Element]:
        yield [reading.value(leaf) for leaf in self._leaves]


class Numbers(Source):
    """The numbers of a range, as int64."""

    def __init__(self, bounds: Sequence[Any]) -> None:
        super().__init__(tensors=bounds)
        self._bounds = bounds

    def read(self, reading: Reading) -> Iterator[Element]:
        for number in range(*(int(reading.value(bound)) for bound in self._bounds)):
            yield [np.int64(number)]


class Generated(Source):
    """What a generator of the program's yields."""

    def __init__(self, make: Callable[..., Any], args: Sequence[Any], convert: Callable[[Any], Element]) -> None:
        super().__init__(tensors=args)
        self._make, self._args, self._convert = make, args, convert

    def read(self, reading: Reading) -> Iterator[Element]:
        for value in self._make(*(reading.value(arg) for arg in self._args)):
            yield self._convert(value)


class Mapped(Source):
    """A function of each element."""

    def __init__(self, source: Source, function: Callable[[Element], Element]) -> None:
        super().__init__(source)
        self._function = function

    def read(self, reading: Reading) -> Iterator[Element]:
        yield from map(self._function, self.inputs[0].read(reading))


class Filtered(Source):
    """The elements of which a function is true."""

    def __init__(self, source: Source, predicate: Callable[[Element], Element]) -> None:
        super().__init__(source)
        self._predicate = predicate

    def read(self, reading: Reading) -> Iterator[Element]:
        for element in self.inputs[0].read(reading):
            if self._predicate(element)[0]:
                yield element


class Flattened(Source):
    """The elements of the datasets that a function makes of each element, `cycle` of them in turn."""

    def __init__(self, source: Source, function: Callable[[Element], Source], cycle: int = 1, block: int = 1) -> None:
        super().__init__(source)
        self._function, self._cycle, self._block = function, cycle, block

    def read(self, reading: Reading) -> Iterator[Element]:
        outer = self.inputs[0].read(reading)
        opened: list[Iterator[Element]] = []
        while True:
            while len(opened) < self._cycle and (element := next(outer, None)) is not None:
                opened.append(self._function(element).read(Reading({})))
            if not opened:
                return
            for inner in list(opened):
                for _ in range(self._block):
                    item = next(inner, None)
                    if item is None:
                        opened.remove(inner)
                        break
                    yield item


class Batched(Source):
    """Some elements stacked; with paddings, those that differ in length are filled up."""

    def __init__(
        self, source: Source, size: Any, drop_remainder: bool, fillers: Sequence[Any] | None = None,
        shapes: Sequence[Sequence[int | None]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(source, tensors=[size])
        self._size, self._drop, self._fillers, self._shapes = size, drop_remainder, fillers, shapes

    def read(self, reading: Reading) -> Iterator[Element]:
        size = int(reading.value(self._size))
        waiting: list[Element] = []
        for element in self.inputs[0].read(reading):
            waiting.append(element)
            if len(waiting) == size:
                yield self._stacked(waiting)
                waiting = []
        if waiting and not self._drop:
            yield self._stacked(waiting)

    def _stacked(self, elements: list[Element]) -> Element:
        columns = list(zip(*elements, strict=True))
        if self._fillers is None or self._shapes is None:
            for column in columns:
                if len({np.shape(value) for value in column}) > 1:
                    raise TypeMismatch(
                        f"elements of different shapes cannot be a batch: {sorted({np.shape(v) for v in column})}",
                        hint="use padded_batch",
                    )
            return [np.stack(column) for column in columns]
        return [
            self._padded(column, shape, filler)
            for column, shape, filler in zip(columns, self._shapes, self._fillers, strict=True)
        ]

    def _padded(self, column: Sequence[Any], shape: Sequence[int | None], filler: Any) -> Any:
        longest = np.max([np.shape(value) for value in column], axis=0) if shape else []
        sizes = [int(most) if size is None else size for size, most in zip(shape, longest, strict=True)]
        out = np.full((len(column), *sizes), filler, np.asarray(column[0]).dtype)
        for row, value in zip(out, column, strict=True):
            if any(have > room for have, room in zip(np.shape(value), sizes, strict=True)):
                raise TypeMismatch(
                    f"an element of shape {np.shape(value)} does not fit {sizes}", hint="give a larger padded_shapes"
                )
            row[tuple(slice(d) for d in np.shape(value))] = value
        return out if shape else np.asarray(column)


class Shuffled(Source):
    """Elements in random order, drawn from a buffer of some of them."""

    def __init__(self, source: Source, size: Any, seed: Any, again: bool) -> None:
        super().__init__(source, tensors=[size])
        self._size, self._seed, self._again = size, seed, again

    def read(self, reading: Reading) -> Iterator[Element]:
        size = int(reading.value(self._size))
        random = reading.random(self, self._seed) if self._again else np.random.default_rng(self._seed)
        buffer: list[Element] = []
        for element in self.inputs[0].read(reading):
            if len(buffer) < size:
                buffer.append(element)
                continue
            place = int(random.integers(len(buffer)))
            yield buffer[place]
            buffer[place] = element
        for place in random.permutation(len(buffer)):
            yield buffer[place]


class Repeated(Source):
    """The elements so often; for ever, if it is None or negative."""

    def __init__(self, source: Source, count: Any) -> None:
        super().__init__(source, tensors=[count])
        self._count = count

    def read(self, reading: Reading) -> Iterator[Element]:
        count = reading.value(self._count)
        left = -1 if count is None else int(count)
        while left:
            is_empty = True
            for element in self.inputs[0].read(reading):
                is_empty = False
                yield element
            left -= 1
            if is_empty:
                return


class Part(Source):
    """Some elements: those from `start` up to `stop`, every `step`-th."""

    def __init__(self, source: Source, start: Any, stop: Any, step: Any = 1) -> None:
        super().__init__(source, tensors=[start, stop, step])
        self._bounds = start, stop, step

    def read(self, reading: Reading) -> Iterator[Element]:
        start, stop, step = (reading.value(bound) for bound in self._bounds)
        end = None if stop is None or int(stop) < 0 else int(stop)
        elements = self.inputs[0].read(reading)
        if end == 0 or int(start) < 0:  # skip(-1): all
            return
        for number, element in enumerate(elements):
            if number >= int(start) and not (number - int(start)) % int(step):
                yield element
            if end is not None and number + 1 >= end:
                return


class Zipped(Source):
    """Elements of several datasets side by side, as long as all have some."""

    def read(self, reading: Reading) -> Iterator[Element]:
        for rows in zip(*(source.read(reading) for source in self.inputs), strict=False):
            yield [leaf for row in rows for leaf in row]


class Chained(Source):
    """The elements of one dataset, then those of the next."""

    def read(self, reading: Reading) -> Iterator[Element]:
        for source in self.inputs:
            yield from source.read(reading)


class Cached(Source):
    """Elements that are read once, and kept by the iterator."""

    def read(self, reading: Reading) -> Iterator[Element]:
        kept: list[Element] | None = reading.cache.get(id(self))
        if kept is not None:
            yield from kept
            return
        kept = []
        for element in self.inputs[0].read(reading):
            kept.append(element)
            yield element
        reading.cache[id(self)] = kept
