"""Terms: values of a graph as numbers, where equal numbers mean equal values, bit for bit.

An array is known as another one with parts replaced: the *writes* since then, in order. A write that a later one to the
same place hides is dropped, and so is one that puts back what was there. So an array that is changed and restored has
the term that it had before.

>>> terms = Terms()
>>> x, i, old, new = map(terms.opaque, ("x", "i", "old", "new"))
>>> place = ("index", Attrs(axes=(0,)), i)
>>> board = terms.write(x, place, new, {})
>>> board == x, terms.read(board, place) == new
(False, True)
>>> terms.write(board, place, terms.read(x, place), {}) == x
True
>>> terms.write(board, place, old, {terms.read(x, place): old}) == x  # known from a test: x[i] == old
True

What a branch has tested is known in it (`learn`): `x[i] == 0`, and the parts of `and`, `or` and `not`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

import numpy as np

from undertow.ir.graph import Attrs, Const
from undertow.ops.index import slices
from undertow.types import Type

Term = int
Place = tuple[Hashable, ...]  # the operator that reads it, its attributes, and the terms of its indices
Writes = tuple[tuple[Place, Term], ...]
Known = Mapping[Term, Term]

READS_OF = {"put": "index", "put_slice": "slice", "put_between": "slice_between", "put_rows": "take"}
_MOST_PARTS = 8  # of a sum
_MOST_WRITES = 16  # since the array that a term is based on; one with more is a new one
_TRUE, _FALSE = Const(np.True_), Const(np.False_)


class Terms:
    """A table of terms. Each is made of numbers of other terms, so nothing here recurses."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, Term] = {}
        self._keys: list[Hashable] = []
        self._arrays: dict[Term, tuple[Term, Writes]] = {}  # changed arrays: what each is based on, and its writes
        self._reads: dict[Term, tuple[Term, Place]] = {}
        self._constants: dict[Term, Const] = {}
        self._sums: dict[Term, tuple[tuple[tuple[Term, int], ...], int]] = {}
        self.true, self.false = self.constant(_TRUE), self.constant(_FALSE)

    def opaque(self, name: Hashable) -> Term:
        """The term of a value of which nothing is known but where it comes from."""
        return self._make(("opaque", name))

    def constant(self, value: Const) -> Term:
        number = self._make(("constant", value))
        self._constants[number] = value
        return number

    def operator(self, op: str, attrs: Attrs, type_: Type, inputs: tuple[Term, ...]) -> Term:
        """The result of a pure operator."""
        if op in ("add", "subtract") and type_.dtype.numpy.kind in "iu" and not type_.rank:
            return self._sum(op, type_, inputs)
        return self._make((op, attrs, type_, inputs))

    def read(self, array: Term, place: Place) -> Term:
        """A part of an array. Of writes to places that may be another name for it, nothing is known."""
        base, writes = self._parts(array)
        hiding: list[tuple[Place, Term]] = []
        result = None
        for written, value in reversed(writes):
            if written == place:
                result = value
                break
            if not self._is_apart(written, place):
                hiding.append((written, value))
        else:
            result = self._read(base, place)
        if all(self._is_same_where_equal(base, (written, value), (place, result)) for written, value in hiding):
            return result
        return self._read(array, place)

    def write(self, array: Term, place: Place, value: Term, known: Known) -> Term:
        """An array with another value at a place, where some equalities are known."""
        base, writes = self._parts(array)
        kept = [*(write for write in writes if write[0] != place), (place, value)]
        while kept and self._is_there(base, kept[0], known):
            del kept[0]
        if not kept:
            return base
        if len(kept) > _MOST_WRITES:
            return self._make(("written", array, place, value))
        number = self._make(("array", base, tuple(kept)))
        self._arrays[number] = base, tuple(kept)
        return number

    def learn(self, predicate: Term, holds: bool) -> dict[Term, Term]:
        """What is known where a predicate holds, or does not: terms, and what each is equal to."""
        known: dict[Term, Term] = {}
        todo = [(predicate, holds)]
        while todo:
            term, is_true = todo.pop()
            known[term] = self.true if is_true else self.false
            key = self._keys[term]
            assert isinstance(key, tuple)
            op, inputs = key[0], key[-1]
            if op == "logical_not":
                todo.append((inputs[0], not is_true))
            elif op == ("logical_and" if is_true else "logical_or"):
                todo += [(x, is_true) for x in inputs]
            elif op == ("equal" if is_true else "not_equal"):
                self._equate(inputs[0], inputs[1], known)
            elif op == "merge":
                condition, *sides = inputs
                for side, other in ((0, 1), (1, 0)):
                    if sides[other] == (self.false if is_true else self.true):
                        todo += [(condition, side == 0), (sides[side], is_true)]
        return known

    def _equate(self, x: Term, y: Term, known: dict[Term, Term]) -> None:
        """Two terms that compare equal. (Not floats: 0.0 is equal to -0.0, and has other bits.)"""
        for term, other in ((x, y), (y, x)):
            constant = self._constants.get(other)
            if constant is not None and constant.type.rank == 0 and constant.type.dtype.numpy.kind in "iub":
                known[term] = other

    def _make(self, key: Hashable) -> Term:
        number = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
        return number

    def _sum(self, op: str, type_: Type, inputs: tuple[Term, ...]) -> Term:
        """A sum of integers, which wrap around: how often it has each term, and a constant."""
        number = type_.dtype.numpy.type
        times: Counter[Term] = Counter()
        offset = 0
        for term, sign in zip(inputs, (1, 1 if op == "add" else -1), strict=True):
            parts, more = self._sums.get(term, (((term, 1),), 0))
            if term in self._constants:
                parts, more = (), int(self._constants[term].value)
            for part, count in parts:
                times[part] += sign * count
            offset += sign * more
        kept = tuple(sorted((part, count) for part, count in times.items() if count))
        bits = type_.dtype.numpy.itemsize * 8
        offset = (offset + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        if not kept:
            return self.constant(Const(number(offset)))
        if len(kept) > _MOST_PARTS:
            return self._make((op, None, type_, inputs))
        if kept[0][1] == 1 and len(kept) == 1 and not offset:
            return kept[0][0]
        term = self._make(("sum", type_, offset, kept))
        self._sums[term] = kept, offset
        return term

    def _parts(self, array: Term) -> tuple[Term, Writes]:
        return self._arrays.get(array, (array, ()))

    def _read(self, array: Term, place: Place) -> Term:
        number = self._make(("read", array, place))
        self._reads[number] = array, place
        return number

    def _is_there(self, base: Term, write: tuple[Place, Term], known: Known) -> bool:
        """Does a write put what the array has there?"""
        place, value = write
        before = self._read(base, place)
        return before == value or known.get(before) == value

    def _is_apart(self, place: Place, other: Place) -> bool:
        """Have two places certainly no element in common?"""
        spans, others = self._spans(place), self._spans(other)
        return any(
            spans[axis][1] <= others[axis][0] or others[axis][1] <= spans[axis][0]
            for axis in spans.keys() & others.keys()
        )

    def _spans(self, place: Place) -> dict[tuple[int, bool], tuple[int, int]]:
        """The first index of a place along an axis, and the one behind the last, as far as they are constant.

        Indices that count from the end are compared with their like alone: -1 and 3 may be the same.
        """
        op, attrs, *indices = place
        assert isinstance(attrs, Attrs)
        spans: dict[tuple[int, bool], tuple[int, int]] = {}
        if op == "index":
            for axis, term in zip(attrs.integers("axes"), indices, strict=True):
                if (constant := self._constants.get(term)) is not None:  # type: ignore[call-overload]
                    index = int(constant.value)
                    spans[axis, index < 0] = index, index + 1
        elif op == "slice":
            for axis, cut in enumerate(slices(attrs)):
                if (cut.start or 0) >= 0 and cut.stop is not None and cut.stop >= 0 and (cut.step or 1) > 0:
                    spans[axis, False] = cut.start or 0, cut.stop
        return spans

    def _is_same_where_equal(self, base: Term, write: tuple[Place, Term], read: tuple[Place, Term]) -> bool:
        """If the places were one, would the values be equal? So they are if both have been read there: a swap.

        That says all only of places that are the same or apart: slices may overlap.
        """
        places = {write[0], read[0]}
        if any(place[:2] != ("index", read[0][1]) for place in places):
            return False
        return all(value in self._reads and self._reads[value][0] == base and self._reads[value][1] in places
                   for value in (write[1], read[1]))  # fmt: skip
