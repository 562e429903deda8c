"""`tf.scan`, `tf.foldl`, `tf.foldr`: a function applied along the first axis, from one result to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.compat.v1.control import while_loop
from undertow.compat.v1.place import here
from undertow.compat.v1.repetition.tensor_array import TensorArray
from undertow.compat.v1.tensor import as_tensor, is_tensor_like, wrap, writing
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.frontend.values.indexing import getitem
from undertow.tracebacks import boundaries

__all__ = ["foldl", "foldr", "scan"]


def _elements(elems: Any, what: str) -> tuple[list[Any], tree.Structure, Any]:
    """The tensors whose elements are taken, the structure around them, and how many elements there are."""
    if isinstance(elems, (list, tuple, dict)) and any(
        is_tensor_like(leaf) or isinstance(leaf, np.ndarray) for leaf in tree.flatten(elems, is_tensor_like)[0]
    ):
        leaves, structure = tree.flatten(elems, is_tensor_like)
    else:
        leaves, structure = [elems], (tree.LEAF,)
    tensors = [as_tensor(leaf) for leaf in leaves]
    if not tensors or not all(tensor.type.rank for tensor in tensors):
        raise TypeMismatch(f"{what} runs along the first axis of arrays", here(), hint="pass an array, not a number")
    return tensors, structure, functions.shape(tensors[0])[0]


def _at(tensors: list[Any], structure: tree.Structure, place: Any) -> Any:
    return tree.unflatten(structure, [wrap(getitem(tensor, place)) for tensor in tensors])


def _leaves(value: Any) -> tuple[list[Any], tree.Structure]:
    leaves, structure = tree.flatten(value, is_tensor_like)
    return [as_tensor(leaf) for leaf in leaves], structure


def _initial(initializer: Any, tensors: list[Any], structure: tree.Structure, is_last: bool) -> Any:
    """The first result, and how many elements it has used."""
    if initializer is not None:
        return initializer, 0
    return _at(tensors, structure, -1 if is_last else 0), 1


def _fold(fn: Callable[..., Any], elems: Any, initializer: Any, is_reverse: bool, what: str) -> Any:
    with writing(*_flat(elems), *_flat(initializer)):
        tensors, structure, count = _elements(elems, what)
        start, used = _initial(initializer, tensors, structure, is_reverse)
        _, kind = _leaves(start)

        def body(i: Any, carried: Any) -> Any:
            place = count - 1 - i if is_reverse else i
            after = fn(carried, _at(tensors, structure, wrap(place)))
            _check(_leaves(after)[1], kind, what)
            return i + 1, after

        return while_loop(lambda i, _: i < count, body, [used, start], shape_invariants=())[1]


def _flat(value: Any) -> list[Any]:
    return [leaf for leaf in tree.flatten(value, is_tensor_like)[0] if is_tensor_like(leaf)]


def _check(found: tree.Structure, wanted: tree.Structure, what: str) -> None:
    if found != wanted:
        raise TypeMismatch(
            f"the function of {what} returns another structure than it is given",
            here(),
            hint="return what the initializer has; without one, what an element has",
        )


def foldl(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """fn(... fn(fn(initializer, elems[0]), elems[1]) ..., elems[-1]); by default it begins with the first element."""
    return _fold(fn, elems, initializer, False, "tf.foldl")


def foldr(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The same from the last element to the first."""
    return _fold(fn, elems, initializer, True, "tf.foldr")


def scan(
    fn: Callable[..., Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """Every result of a fold, stacked; with `reverse`, of one from the last element to the first."""
    with writing(*_flat(elems), *_flat(initializer)):
        tensors, structure, count = _elements(elems, "tf.scan")
        start, used = _initial(initializer, tensors, structure, reverse)
        leaves, kind = _leaves(start)
        arrays = [TensorArray(leaf.dtype, count).unstack(_room(leaf, count)) for leaf in leaves]
        if used:
            arrays = [a.write(count - 1 if reverse else 0, leaf) for a, leaf in zip(arrays, leaves, strict=True)]

        def body(i: Any, carried: Any, arrays: Any) -> Any:
            place = wrap(count - 1 - i if reverse else i)
            after = fn(carried, _at(tensors, structure, place))
            results, found = _leaves(after)
            _check(found, kind, "tf.scan")
            return i + 1, after, [array.write(place, leaf) for array, leaf in zip(arrays, results, strict=True)]

        carried = [used, tree.unflatten(kind, leaves), arrays]
        stacked = while_loop(lambda i, *_: i < count, body, carried, shape_invariants=())[2]
        return tree.unflatten(kind, [array.stack() for array in stacked])


def _room(leaf: Any, count: Any) -> Any:
    """Zeros for so many results like this one."""
    return wrap(functions.full((count, *functions.shape(leaf)), leaf.dtype.numpy.type(0)))


boundaries(globals(), __all__)
