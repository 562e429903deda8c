"""`tf.TensorArray`: elements of one shape, written and read by number. It is one tensor, elements along its first axis.

An array of which only the size is known has no tensor yet. If a loop writes to it, the loop is written again with one
that is full of zeros; sizes of its elements that only a run knows are 0 there, until the first element is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Operation, Tensor, as_tensor, is_tensor_like, named, wrap, write_constant, writing
from undertow.compat.v1.values.static import constant_value
from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.traced import Traced, emit
from undertow.tracebacks import guarded
from undertow.types import DType, said

__all__ = ["TensorArray"]


@guarded
class TensorArray:
    """Elements of one shape, written and read by number; each writing gives a new array."""

    def __init__(
        self, dtype: Any, size: Any = None, dynamic_size: bool | None = None, clear_after_read: bool | None = None,
        tensor_array_name: str | None = None, handle: Any = None, flow: Any = None, infer_shape: bool = True,
        element_shape: Any = None, colocate_with_first_write_call: bool = True, name: str | None = None,
    ) -> None:  # fmt: skip
        if handle is not None or flow is not None:
            raise TypeMismatch(
                "a TensorArray is not made of a handle and a flow", here(), hint="pass the array itself, or its stack()"
            )
        self.dtype: DType = dtype_of(dtype)
        self.buffer: Any = None  # once the shape of the elements is known
        self._size: Any = 0 if size is None else size
        self._is_dynamic = bool(dynamic_size)
        if element_shape is not None and None not in list(element_shape):
            with writing(self._size):
                self.buffer = _zeros(self.dtype, self._length(), [int(d) for d in element_shape])

    def _length(self) -> Any:
        """The size of an array that has no tensor yet."""
        if not is_tensor_like(self._size):
            return int(self._size)
        known = constant_value(as_tensor(self._size))
        return as_tensor(self._size) if known is None else int(known)

    def _with(self, buffer: Any) -> TensorArray:
        """The same array with another tensor."""
        array = TensorArray.__new__(TensorArray)
        array.dtype, array._size, array._is_dynamic = self.dtype, self._size, self._is_dynamic
        array.buffer = wrap(buffer)
        return array

    # -- containers of tensors: see values/tree.py ----------------------------------------------------------

    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        known = self.dtype, self._is_dynamic
        if self.buffer is None:
            return ("object", 0, TensorArray, (), (*known, tree.Identity(self._size))), []
        return ("object", 1, TensorArray, ("elements",), known), [self.buffer]

    @staticmethod
    def __undertow_whole__(known: tuple[Any, ...], contents: Sequence[Any]) -> TensorArray:
        array = TensorArray.__new__(TensorArray)
        array.dtype, array._is_dynamic = known[:2]
        array._size = known[2].value if len(known) > 2 else None
        array.buffer = contents[0] if contents else None
        return array

    # -- elements ------------------------------------------------------------------------------------------

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with one element written."""
        with writing(index, value):
            element = self._element(value)
            place = as_tensor(index)
            buffer = self.buffer
            if buffer is None:
                buffer = _zeros(self.dtype, self._length(), functions.shape(element))
            buffer = self._room(buffer, place, element)
            return self._with(named(wrap(emit("put", [buffer, element, place], axes=(0,))[0]), name))

    def _element(self, value: Any) -> Tensor:
        element: Tensor = as_tensor(value, None if is_tensor_like(value) else self.dtype)
        if element.dtype != self.dtype:
            raise TypeMismatch(
                f"a TensorArray of {self.dtype} cannot hold {said(element.type)}",
                here(),
                hint="convert it: tf.cast(x, ...)",
            )
        return element

    def _room(self, buffer: Any, place: Any, element: Tensor) -> Any:
        """The tensor with a place for an element: long enough, and as wide as the element."""
        sizes, wanted = functions.shape(buffer)[1:], functions.shape(element)
        open_sizes = [
            (own, other)
            for own, other in zip(sizes, wanted, strict=False)
            if isinstance(own, Traced) and own is not other
        ]
        if open_sizes and len(sizes) == len(wanted):
            from undertow.compat.v1.control import cond  # which imports this file

            fits: Any = True
            for own, other in open_sizes:
                fits = functions.logical_and(functions.equal(own, other), fits)
            length = functions.shape(buffer)[0]
            buffer = cond(wrap(fits), lambda: wrap(buffer), lambda: wrap(_zeros(self.dtype, length, wanted)))
        if self._is_dynamic:
            length = functions.shape(buffer)[0]
            more = functions.maximum(functions.astype(place, "i64") + 1 - length, 0)
            buffer = functions.concat([buffer, _zeros(self.dtype, more, functions.shape(buffer)[1:])], axis=0)
        return buffer

    def _filled(self, what: str) -> Any:
        if self.buffer is None:
            raise CaptureError(
                f"{what} of a TensorArray to which nothing was written",
                here(),
                hint="write to it, or give element_shape=",
            )
        return self.buffer

    def read(self, index: Any, name: str | None = None) -> Any:
        """One element."""
        with writing(index):
            return named(wrap(getitem(self._filled("read"), as_tensor(index))), name)

    def gather(self, indices: Any, name: str | None = None) -> Any:
        """Some elements, stacked."""
        with writing(indices):
            return named(wrap(functions.take(self._filled("gather"), as_tensor(indices), axis=0)), name)

    def stack(self, name: str | None = None) -> Any:
        """All elements, stacked."""
        return self._filled("stack")

    def concat(self, name: str | None = None) -> Any:
        """All elements, joined along their first axis."""
        with writing():
            buffer = self._filled("concat")
            sizes = functions.shape(buffer)
            if len(sizes) < 2:
                raise TypeMismatch("numbers cannot be joined", here(), hint="use stack()")
            return named(wrap(functions.reshape(buffer, (sizes[0] * sizes[1], *sizes[2:]))), name)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array with the elements of a tensor along its first axis."""
        with writing(value):
            elements = self._element(value)
            if not elements.type.rank:
                raise TypeMismatch(f"{said(elements.type)} has no elements", here(), hint="pass an array")
            return self._with(elements)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with some elements written."""
        with writing(indices, value):
            elements, places = self._element(value), as_tensor(indices)
            buffer = self.buffer
            if buffer is None:
                buffer = _zeros(self.dtype, self._length(), functions.shape(elements)[1:])
            if self._is_dynamic:
                buffer = self._room(buffer, functions.max(places), wrap(getitem(elements, 0)))
            return self._with(emit("put_rows", [buffer, elements, places], axis=0)[0])

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array with parts of a tensor as elements, all of one length."""
        sizes = constant_value(lengths)
        if sizes is None or len(set(sizes.tolist())) != 1:
            raise TypeMismatch(
                f"parts of the lengths {brief(lengths)} cannot be elements of one array", here(), hint="pad them"
            )
        with writing(value):
            whole = self._element(value)
            rest = functions.shape(whole)[1:]
            return self._with(functions.reshape(whole, (len(sizes), int(sizes[0]), *rest)))

    def size(self, name: str | None = None) -> Any:
        """The number of elements."""
        with writing():
            length = self._length() if self.buffer is None else functions.shape(self.buffer)[0]
            number = functions.astype(length, "i32") if isinstance(length, Traced) else np.int32(length)
            return named(wrap(number), name)

    # -- what programs hand on -----------------------------------------------------------------------------

    @property
    def flow(self) -> Any:
        """The tensor of its elements, for control dependencies."""
        return self._filled("flow")

    @property
    def graph(self) -> Any:
        """The graph that it belongs to."""
        return get_default_graph() if self.buffer is None else self.buffer.graph

    def identity(self) -> TensorArray:
        """The same array, after the current control dependencies."""
        return self if self.buffer is None else self._with(emit("identity", [self.buffer])[0])

    def grad(self, source: str, flow: Any = None, name: str | None = None) -> TensorArray:
        """Not needed: tf.gradients goes through arrays."""
        raise CaptureError("a TensorArray has no gradient of its own", here(), hint="use tf.gradients")

    def close(self, name: str | None = None) -> Operation:
        """Accepted: there is nothing to close."""
        from undertow.compat.v1.control import no_op  # which imports this file

        return no_op(name or "close")

    def __repr__(self) -> str:
        return (
            f"<tf.TensorArray of {self.dtype}>" if self.buffer is None else f"<tf.TensorArray {said(self.buffer.type)}>"
        )

    def widened(self, element: Any) -> TensorArray:
        """An array without a tensor, with one that can hold elements like those of another array's tensor."""
        with writing(self._size):
            # A size that is a tensor is unknown until the run, and so it stays in the type of the loop variable.
            sizes = [size if isinstance(size, int) else write_constant(np.int64(0)) for size in element.type.shape[1:]]
            return self._with(_zeros(self.dtype, self._length(), sizes))


def _zeros(dtype: DType, length: Any, sizes: Sequence[Any]) -> Any:
    return wrap(functions.full((length, *sizes), dtype.numpy.type(0)))


# -- loops -------------------------------------------------------------------------------------------------


class Written(Exception):
    """A loop has written to arrays that had no tensor before it: by their place among the arrays it carries."""

    def __init__(self, elements: dict[int, Any]) -> None:
        super().__init__("a loop has to be written again")
        self.elements = elements


def _arrays(value: Any) -> tuple[list[Any], tree.Structure]:
    return tree.flatten(value, lambda item: isinstance(item, TensorArray) or is_tensor_like(item))


def in_arrays(structure: tree.Structure) -> list[bool]:
    """For each leaf of a structure, does it hold the elements of an array? (Arrays may grow.)"""
    before = [None, *structure[:-1]]
    return [
        outer is not None and outer[0] == "object" and outer[2] is TensorArray
        for outer, token in zip(before, structure, strict=True)
        if token == tree.LEAF
    ]


def check_written(before: Any, after: Any) -> None:
    """Raise `Written` if arrays without a tensor have one after an iteration."""
    first, then = _arrays(before)[0], _arrays(after)[0]
    elements = {
        place: new.buffer
        for place, (old, new) in enumerate(zip(first, then, strict=False))
        if isinstance(old, TensorArray)
        and isinstance(new, TensorArray)
        and old.buffer is None
        and new.buffer is not None
    }
    if elements:
        raise Written(elements)


def with_tensors(variables: Any, written: Written) -> Any:
    """Loop variables whose arrays have tensors that can hold what the loop writes."""
    leaves, structure = _arrays(variables)
    changed = [
        leaf.widened(written.elements[place]) if place in written.elements else leaf
        for place, leaf in enumerate(leaves)
    ]
    return tree.unflatten(structure, changed)
