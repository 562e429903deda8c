"""Products of matrices and tensors. All except matmul are lowered to matmul, transposes, products and sums.

`einsum` takes its operands from left to right. For each pair it sums away what nobody needs, arranges both as
(batches, rows, inner) and (batches, inner, columns), and multiplies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import plain
from undertow.frontend.functions import reduction as along
from undertow.frontend.functions.creation import arange
from undertow.frontend.functions.parts import conj
from undertow.frontend.values.operands import dim, numbers, one_axis, type_of
from undertow.frontend.values.traced import emit
from undertow.tracebacks import boundaries

__all__ = ["dot", "einsum", "outer", "tensordot", "vecdot"]


def vecdot(x: Any, y: Any, /, axis: int = -1) -> Any:
    """The sum of conj(x) * y along an axis."""
    product = plain.multiply(conj(x), y)
    return along.sum(product, axis=axis, dtype=type_of(product).dtype)


def dot(x: Any, y: Any, /) -> Any:
    """NumPy's dot: matmul for vectors and matrices, a product with scalars, else a tensordot."""
    left, right = numbers(x, y)
    ranks = type_of(left).rank, type_of(right).rank
    if 0 in ranks:
        return plain.multiply(left, right)
    if ranks[1] <= 2:
        return plain.matmul(left, right)
    return tensordot(left, right, axes=([-1], [-2]))


def outer(x: Any, y: Any, /) -> Any:
    """Every element of x times every element of y.

    >>> outer([1, 2], [1, 10])
    array([[ 1, 10],
           [ 2, 20]])
    """
    left, right = (arrays.reshape(v, (-1,)) for v in numbers(x, y))
    return plain.multiply(arrays.expand_dims(left, 1), right)


def tensordot(x: Any, y: Any, /, axes: Any = 2) -> Any:
    """The sum of products over pairs of axes: the last `axes` of x with the first of y, or the given axes of each.

    >>> tensordot([[1, 2], [3, 4]], [1, 10], axes=1)
    array([21, 43])
    """
    left, right = numbers(x, y)
    ranks = type_of(left).rank, type_of(right).rank
    if isinstance(axes, (tuple, list)):
        pairs = [[a] if isinstance(a, int) else list(a) for a in axes]
    else:
        pairs = [list(range(-axes, 0)), list(range(axes))]
    if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
        raise TypeMismatch(f"tensordot cannot contract the axes {brief(axes)}", hint="list as many axes of x as of y")
    inner = [[one_axis(a, rank, "tensordot") for a in side] for side, rank in zip(pairs, ranks, strict=True)]
    labels = [f"x{a}" for a in range(ranks[0])], [f"y{a}" for a in range(ranks[1])]
    for a, b in zip(*inner, strict=True):
        labels[1][b] = labels[0][a]
    kept = [label for side, named in zip(inner, labels, strict=True) for a, label in enumerate(named) if a not in side]
    terms = [_Term(left, tuple(labels[0])), _Term(right, tuple(labels[1]))]
    _check_sizes(terms, "tensordot")
    return _contract(terms, tuple(kept))


# -- einsum ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Term:
    """An operand and the label of each of its axes."""

    value: Any
    labels: tuple[str, ...]

    def size(self, label: str) -> Any:
        return type_of(self.value).shape[self.labels.index(label)]


def einsum(subscripts: str, /, *operands: Any) -> Any:
    """Einstein summation: a letter for each axis; letters missing from the result are summed over.

    >>> einsum("ij,j->i", [[1, 2], [3, 4]], [1, 10])
    array([21, 43])
    """
    values = numbers(*operands) if operands else []
    terms, output = _parse(subscripts, values)
    terms = [_without_repeats(term) for term in terms]
    _check_sizes(terms, f"einsum {subscripts!r}")
    return _contract(terms, output)


def _wrong(subscripts: str, what: str) -> TypeMismatch:
    return TypeMismatch(f"einsum {subscripts!r}: {what}", hint="as in ut.einsum('bij,bjk->bik', x, y)")


def _parse(subscripts: str, values: Sequence[Any]) -> tuple[list[_Term], tuple[str, ...]]:
    """The labels of the operands and of the result. The axes of an ellipsis are labelled ...1, ...2 from the end."""
    if not isinstance(subscripts, str):
        raise TypeMismatch(
            "the first argument of einsum must be the subscripts, a string",
            hint="as in ut.einsum('bij,bjk->bik', x, y)",
        )
    inputs, arrow, result = subscripts.replace(" ", "").partition("->")
    parts = inputs.split(",")
    if len(parts) != len(values):
        raise _wrong(subscripts, f"{len(parts)} subscripts for {len(values)} operands")
    terms = []
    for part, value in zip(parts, values, strict=True):
        rank = type_of(value).rank
        hidden = rank - len(part.replace("...", "", 1))
        if hidden < 0 or ("..." not in part and hidden > 0):
            raise _wrong(subscripts, f"{part!r} does not fit an operand with {rank} ax{'i' if rank == 1 else 'e'}s")
        terms.append(_Term(value, _labels(subscripts, part, hidden)))
    most = max((sum(1 for a in t.labels if len(a) > 1) for t in terms), default=0)
    if arrow:
        output = _labels(subscripts, result, most)
        known = {a for t in terms for a in t.labels}
        for label in output:
            if label not in known or output.count(label) > 1:
                raise _wrong(subscripts, f"{label!r} in the result must occur there once, and in some operand")
        return terms, output
    counts = Counter(inputs.replace("...", "").replace(",", ""))
    single = sorted(letter for letter, count in counts.items() if count == 1)
    return terms, (*_labels(subscripts, "...", most), *single)


def _labels(subscripts: str, part: str, hidden: int) -> tuple[str, ...]:
    before, dots, after = part.partition("...")
    for letter in before + after:
        if not letter.isalpha():
            raise _wrong(subscripts, f"{letter!r} is not a letter")
    middle = [f"...{k}" for k in range(hidden, 0, -1)] if dots else []
    return (*before, *middle, *after)


def _without_repeats(term: _Term) -> _Term:
    """Diagonals: of axes with one label only the elements with equal indices stay."""
    value, labels = term.value, list(term.labels)
    for label in dict.fromkeys(term.labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            rank = len(labels)
            lengths = {a: dim(value, a) for a in (first, second)}
            if all(isinstance(d, int) for d in lengths.values()) and lengths[first] != lengths[second]:
                raise TypeMismatch(f"axes of lengths {lengths[first]} and {lengths[second]} have no diagonal")
            rows, columns = (
                arrays.reshape(arange(lengths[a]), tuple(-1 if a == b else 1 for b in range(rank)))
                for a in (first, second)
            )
            zero = type_of(value).dtype.numpy.type(0)
            value = plain.where(plain.equal(rows, columns), value, zero)
            value = _sum(value, (second,))
            del labels[second]
    return _Term(value, tuple(labels))


def _sum(value: Any, axes: tuple[int, ...]) -> Any:
    return emit("sum", [value], axes=axes, keepdims=False)[0] if axes else value


def _check_sizes(terms: Sequence[_Term], what: str) -> None:
    sizes: dict[str, int] = {}
    for term in terms:
        for label, size in zip(term.labels, type_of(term.value).shape, strict=True):
            if isinstance(size, int) and size != 1 and sizes.setdefault(label, size) != size:
                raise TypeMismatch(f"{what}: axes of lengths {sizes[label]} and {size} must be equal")


def _contract(terms: Sequence[_Term], output: tuple[str, ...]) -> Any:
    rest = list(terms)
    done = _reduced(rest.pop(0), {*output, *(a for t in rest for a in t.labels)})
    while rest:
        right = rest.pop(0)
        needed = {*output, *(a for t in rest for a in t.labels)}
        done = _pair(_reduced(done, {*needed, *right.labels}), _reduced(right, {*needed, *done.labels}), needed)
        done = _reduced(done, needed)
    return arrays.permute_dims(done.value, [done.labels.index(a) for a in output])


def _reduced(term: _Term, needed: set[str]) -> _Term:
    """The term summed over the axes that are not needed."""
    away = tuple(k for k, a in enumerate(term.labels) if a not in needed)
    return _Term(_sum(term.value, away), tuple(a for a in term.labels if a in needed))


def _without_ones(term: _Term, other: _Term) -> _Term:
    """An axis of length 1 that meets a longer one stretches: it can as well go."""
    away = [a for a in term.labels if a in other.labels and term.size(a) == 1 and other.size(a) != 1]
    if not away:
        return term
    value = arrays.squeeze(term.value, tuple(term.labels.index(a) for a in away))
    return _Term(value, tuple(a for a in term.labels if a not in away))


def _pair(left: _Term, right: _Term, needed: set[str]) -> _Term:
    """The product of two terms, summed over their common labels that are not needed."""
    left, right = _without_ones(left, right), _without_ones(right, left)
    both = [a for a in left.labels if a in right.labels]
    batch = [a for a in both if a in needed]
    inner = [a for a in both if a not in needed]
    rows = [a for a in left.labels if a not in both]
    columns = [a for a in right.labels if a not in both]
    if not inner or not (rows or columns or not batch):
        return _multiplied(left, right, batch, rows, columns, inner)
    x = _arranged(left, batch, rows, inner)
    y = _arranged(right, batch, inner, columns)
    value = emit("matmul", [x, y])[0]
    labels = (*batch, *rows, *columns)
    if len(rows) > 1 or len(columns) > 1 or (batch and not (rows and columns)):
        axes = {a: (t.value, k) for t in (left, right) for k, a in enumerate(t.labels)}
        value = _regrouped(value, [[axes[a]] for a in labels])
    return _Term(value, labels)


def _multiplied(
    left: _Term, right: _Term, batch: list[str], rows: list[str], columns: list[str], inner: list[str]
) -> _Term:
    """Element by element: where there is nothing to sum over, or nothing but a sum for each batch."""
    labels = [*batch, *rows, *columns, *inner]
    values = []
    for term in (left, right):
        value = arrays.permute_dims(term.value, [term.labels.index(a) for a in labels if a in term.labels])
        missing = tuple(k for k, a in enumerate(labels) if a not in term.labels)
        leading = (
            len([k for k in missing if k < labels.index(min(term.labels, key=labels.index))]) if term.labels else 0
        )
        # Axes that are missing in front need not be written: broadcasting adds them.
        written = tuple(k - leading for k in missing if k >= leading) if term.labels else ()
        values.append(emit("expand_dims", [value], axes=written)[0] if written else value)
    product = emit("multiply", values)[0]
    return _Term(_sum(product, tuple(labels.index(a) for a in inner)), tuple(a for a in labels if a not in inner))


def _arranged(term: _Term, batch: list[str], first: list[str], second: list[str]) -> Any:
    """The value with axes (*batch, first, second), each group as one axis; without batches an empty group is none."""
    order = [*batch, *first, *second]
    value = arrays.permute_dims(term.value, [term.labels.index(a) for a in order])
    groups = [g for g in (first, second) if g or batch]
    if all(len(g) == 1 for g in groups):
        return value
    axes = {a: (value, k) for k, a in enumerate(order)}
    return _regrouped(value, [[axes[a]] for a in batch] + [[axes[a] for a in g] for g in groups])


def _regrouped(value: Any, groups: list[list[tuple[Any, int]]]) -> Any:
    """The value with an axis for each group of axes (of some values), as long as the group has elements."""
    known = [[type_of(v).shape[k] for v, k in group] for group in groups]
    sizes: list[Any] = [None if None in group else math.prod(group) for group in known]
    if sizes.count(None) == 1 and 0 not in sizes:
        return arrays.reshape(value, [-1 if size is None else size for size in sizes])
    for at, group in enumerate(groups):
        if sizes[at] is None:
            sizes[at] = along.product(tuple(dim(v, k) for v, k in group))
    return arrays.reshape(value, sizes)


boundaries(globals(), __all__)
