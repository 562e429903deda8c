"""A toy engine: it runs plans, one lane at a time, and shows that a plan says everything an engine must know.

    python docs/toy_engine.py

It ignores waves, fusing and drops, as an engine may: what is left is what a plan means. An activation is a frame: a
value for each column. A program of a frame is a generator, so that calls may nest to any depth: it yields what it
enters, and `run` keeps the stack.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

import undertow as ut
from undertow.ops.op import CATALOGUE
from undertow.plan.plan import NO_SLOT, Branch, Call, Collect, Collected, Loop, Map, Op, Plan, Read
from undertow.plan.walk import (  # the straight run of a stage; passes as the operators that they stand for
    run_of,
    singly,
)


class Frame:
    """One activation of a region: its columns, what it has entered, and the entry above it."""

    def __init__(self, region: int, entry: Any = None) -> None:
        self.region, self.entry = region, entry
        self.values: dict[int, Any] = {}
        self.entered: dict[Any, Any] = {}  # frames that later visits find again, by kind and number
        self.entries: dict[int, Any] = {}  # by call: hoisted values and sums of the entries that it made


class Toy:
    """Runs one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def run(self, *inputs: Any) -> list[Any]:
        self.main = Frame(0)
        region = self.plan.regions[0]
        self.main.values.update(zip(region.params[0], map(np.asarray, inputs), strict=True))
        stack = [self.visit(self.main, 0)]
        while stack:  # no host recursion: a frame waits here for what it has entered
            inner = next(stack[-1], None)
            stack.append(inner) if inner is not None else stack.pop()
        return [self.main.values.get(slot) for slot in region.results[0]]

    def visit(self, frame: Frame, program: int) -> Generator[Any, None, None]:
        """The stages of a program, one after the other."""
        for stage in self.plan.regions[frame.region].programs[program].stages:
            for item in singly(run_of(stage)):
                self.straight(frame, item)
            for entered in stage.entered:  # together, if one could; they do not see each other
                yield from self.enter(frame, entered)

    def value(self, frame: Frame, operand: int) -> Any:
        """A column, or below zero a constant."""
        return self.plan.constants[~operand].value if operand < 0 else frame.values[operand]

    def hand_in(self, frame: Frame, inner: Frame, transfers: Any) -> None:
        for transfer in transfers:
            inner.values[transfer.to] = self.value(frame, transfer.source)

    def straight(self, frame: Frame, item: Any) -> None:
        if isinstance(item, Op):
            kernel = self.plan.kernels[item.kernel]
            operands = [np.asarray(self.value(frame, x))[()] for x in item.inputs]
            results = CATALOGUE[kernel.op].eval(operands, kernel.attrs)
            frame.values.update((to, result) for to, result in zip(item.outputs, results, strict=False) if to >= 0)
        elif isinstance(item, Read):
            given = self.main.values if item.is_shared else frame.entry[0]
            frame.values[item.to] = given[item.index]
        elif isinstance(item, Collect):
            values = [np.asarray(self.value(frame, x)) for x in item.values]
            sums = frame.entry[1]
            if item.kind == "product":
                values = [np.atleast_2d(values[0]).T @ np.atleast_2d(values[1])]
            if item.kind == "rows":
                rows = np.atleast_1d(values[0])
                np.add.at(sums[item.index], rows, values[1].reshape(len(rows), *sums[item.index].shape[1:]))
            else:
                sums[item.index] += values[0].reshape(sums[item.index].shape)
        elif isinstance(item, Collected):
            total = frame.entries[item.call][1][item.index]
            rows = [np.arange(len(total)), total] if len(item.to) > 1 else [total]
            frame.values.update(zip(item.to, rows, strict=True))

    def enter(self, frame: Frame, item: Any) -> Generator[Any, None, None]:
        if isinstance(item, Branch):
            side = 0 if self.value(frame, item.pred) else 1
            inner = frame.entered.setdefault(("branch", item.branch), Frame(item.regions[side], frame.entry))
            self.hand_in(frame, inner, item.transfers[side])
            yield self.visit(inner, item.visit)
            frame.values.update((merge.to, self.value(inner, merge.sides[side])) for merge in item.merges)
        elif isinstance(item, Call):
            (callee,) = item.callees
            body = self.plan.regions[callee]
            if item.phase == 0:
                frame.entered["call", item.call] = Frame(callee, frame.entry)
                if item.hoists:
                    given = [np.asarray(self.value(frame, x)) for x in item.hoists]
                    sums = [np.zeros_like(value) for value in given]
                    frame.entries[item.call] = frame.entered["call", item.call].entry = given, sums
            inner = frame.entered["call", item.call]
            arguments = [self.value(frame, x) for x in item.arguments]
            inner.values.update(zip(body.params[item.phase], arguments, strict=True))
            yield self.visit(inner, item.phase)
            results = zip(item.results, body.results[item.phase], strict=True)
            frame.values.update((to, inner.values[x]) for to, x in results if to != NO_SLOT)
        elif isinstance(item, Loop):
            inner = Frame(item.body, frame.entry)
            self.hand_in(frame, inner, item.variables + item.outers)
            while True:
                yield self.visit(inner, 0)
                going, body = inner.entered["branch", item.branch], self.plan.regions[item.body]
                branches = [x for stage in body.programs[0].stages for x in stage.entered if isinstance(x, Branch)]
                on = next(branch.regions[0] for branch in branches if branch.branch == item.branch)
                if going.region != on:
                    break
                before, inner = inner, Frame(item.body, frame.entry)
                for variable, x in zip(item.variables, item.next, strict=True):
                    inner.values[variable.to] = self.value(going, x)
                inner.values.update((outer.to, before.values[outer.to]) for outer in item.outers)
            frame.values.update((exit_.to, self.value(inner, exit_.source)) for exit_ in item.exits)
        elif isinstance(item, Map):
            if item.phase == 0:
                count = len(self.value(frame, item.counted))
                frame.entered["map", item.map] = [Frame(item.body, frame.entry) for _ in range(count)]
            lanes = frame.entered["map", item.map]
            for k, lane in enumerate(lanes):
                self.hand_in(frame, lane, item.outers)
                lane.values.update((t.to, self.value(frame, t.source)[k]) for t in item.mapped)
                yield self.visit(lane, item.phase)
            for result in item.results:
                slot = self.plan.regions[frame.region].slots[result.to]
                stacked = [self.value(lane, result.source) for lane in lanes]
                shape = (len(lanes), *(length or 0 for length in slot.type.shape[1:]))
                frame.values[result.to] = np.array(stacked, slot.type.dtype.numpy) if lanes else np.zeros(shape)


@ut.function
def fib(n: ut.f64) -> ut.f64:
    if n <= 1:
        return n * n
    return fib(n - 1) + fib(n - 2)


if __name__ == "__main__":
    plan = ut.value_and_grad(fib).plan(10.0)
    print(plan)
    print("the toy engine:", *Toy(plan.data).run(10.0))
    print("waves:         ", *plan.run(10.0))
