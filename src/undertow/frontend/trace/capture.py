"""Capture: turns Python functions into graphs, once per signature.

A session captures everything that one outer call needs. A function that is called while it is still being
captured is recursive; its result annotation gives the type of the call. What turns out during a capture
(values of an enclosing function that it uses, effects, random draws, a dimension that changes at a recursive
call) is remembered, and the function is captured again with that knowledge.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.control.aliasing import is_array
from undertow.frontend.control.handing_back import Handover, containers_in, hand_back, places_of, put_in
from undertow.frontend.control.helpers import place_of
from undertow.frontend.control.restart import Halted, StartOver, until_fixpoint
from undertow.frontend.interpret.branches import StatementInterpreter
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.interpret.options import needed
from undertow.frontend.objects.arguments import in_graph
from undertow.frontend.syntax.annotations import Annotation, Dims, convert
from undertow.frontend.syntax.source import Closure, births, closure_of
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.definition import (
    Arguments,
    Changed,
    Check,
    Definition,
    Specialization,
    how_to_return,
    take_arguments,
)
from undertow.frontend.trace.graft import Ready
from undertow.frontend.trace.recursion import joined, may_be_inferred, too_many_signatures, unknown_result
from undertow.frontend.trace.returned import refuse_other_kinds, refuse_unreturnable
from undertow.frontend.trace.scope import MainGraph, Scope
from undertow.frontend.values import tree
from undertow.frontend.values.device import device_of
from undertow.frontend.values.growing import NOTHING, GrowingList, item_type, leaves_of_lists
from undertow.frontend.values.leaves import describe, leaf_type, port_in
from undertow.frontend.values.listed import with_lists
from undertow.frontend.values.operands import as_weak, flags_of, is_number
from undertow.frontend.values.operands import convert as as_dtype
from undertow.frontend.values.state import assigned_while_bound
from undertow.frontend.values.traced import Context, Traced, is_traced, operand, roots_of, stays_weak
from undertow.ir.graph import Attrs, FunctionGraph, Port
from undertow.ir.names import Names
from undertow.types import CTL, Type

# Limits on the signatures of one function, and on how many of them may nest if none is smaller than the one around it:
# a recursion that enlarges its arguments would never end, and may double them each time.
_MOST_SPECIALIZATIONS = 64
_MOST_GROWING = 12
_MOST_INLINE = 1_000  # calls of helpers by themselves, where the run decides
_LONGER = 3  # calls inside of each other with ever longer lists
_MOST_GUESSES = 8  # of what a recursive function without annotated result returns


def _size(arguments: Arguments) -> tuple[int, int]:
    tokens = [token for structure in arguments.structures for token in structure]
    texts = [token[1].value for token in tokens if token[0] == "static" and isinstance(token[1].value, (str, bytes))]
    return len(tokens) + sum(map(len, texts)), sum(t.rank for t in arguments.types)


class CaptureSession(Scope):
    """One capture, from the outer call to the finished graphs: the `Session` of `@ut.function`."""

    def __init__(self, main: MainGraph | None = None, context: type[Context] = Context) -> None:
        super().__init__(context(self), main or MainGraph())
        self._starts_over = main is not None  # not where Python itself runs the body, as in a SubGraph
        self.interpreter = StatementInterpreter(self.ctx)
        self.specializations: list[Specialization] = []
        self.graphs: dict[str, FunctionGraph] = {}  # loops, maps and finished functions
        self.differentiated: dict[tuple[int, int], Any] = {}  # definitions for `ut.jvp`: see tangents.py
        self._names = Names(separator="~")
        self._closures: dict[FunctionType, Closure] = {}
        self._helpers: dict[Closure, Definition] = {}  # those that are captured as functions
        # By function, and the values that it gets in place of variables.
        self._grafts: dict[tuple[Ready, tuple[Any, ...]], Specialization] = {}
        self._recursions = 0  # calls of helpers by themselves that were captured inline

    def fresh_name(self, name: str) -> str:
        return self._names.fresh(name)

    def closure(self, function: FunctionType) -> Closure:
        if function not in self._closures:
            self._closures[function] = closure_of(function)
        return self._closures[function]

    def call_closure(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return drive(self.interpreter.invoke(closure, args, kwargs))

    # -- calls ---------------------------------------------------------------------------------------------

    def outlined(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Definition | None:
        is_recursive = bool(self.main.recursive) and place_of(closure) in self.main.recursive
        if not is_recursive and (self.main.endless is None or not self._leads_from_call([*args, *kwargs.values()])):
            return None
        return self._helpers.setdefault(closure, Definition(closure))

    def outline_recursion(self, closure: Closure) -> None:
        fault = self.main.not_as_functions
        if fault is None and self._starts_over:
            raise StartOver(self.main, recursive=self.main.recursive | {place_of(closure)})
        self._recursions += 1
        if self._recursions > _MOST_INLINE:
            raise fault or CaptureError(
                f"`{closure.name}` calls itself where the run decides, more than {_MOST_INLINE:,} times",
                hint="write it as a function with @ut.function",
            )

    @property
    def takes_nothing(self) -> bool:
        return any(function.takes_nothing for function in self._open.values())

    @property
    def is_guessing(self) -> bool:
        return any(function.guessed_at is not None for function in self._open.values())

    def until_known(self, attempt: Callable[[], Work]) -> Work:
        return (yield attempt())

    def _leads_from_call(self, values: list[Any]) -> bool:
        """Are some of these values computed from the result of a call in this graph?"""
        nodes = self.ctx.open_builder.nodes
        leaves = [leaf for leaf in tree.flatten(values, is_traced)[0] if isinstance(leaf, Traced)]
        todo = [leaf.port.node for leaf in leaves if leaf.builder is self.ctx.open_builder]
        seen = set(todo)
        for number in todo:  # it grows meanwhile
            if nodes[number].op == "call":
                return True
            ports = (operand.node for operand in nodes[number].inputs if isinstance(operand, Port))
            todo += [port for port in ports if port not in seen]
            seen.update(todo)
        return False

    def call(self, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        if self.growing:
            args, kwargs = self._with_growing(definition, args, kwargs)
        arguments = take_arguments(definition, args, kwargs)
        self._let_longer_lists_grow(definition, arguments)
        callee = yield self.specialize(definition, arguments)
        self._hand_over(callee, arguments)
        passed: Mapping[str, Any] = {}
        caller = next(reversed(self._open.values()), None)
        has_own = caller is not None and not caller.definition.hands_key_on  # else the arguments are copies
        if has_own and (callee.handed_back or callee.returns_arguments or callee.may_hold_arguments):
            passed = definition.closure.signature.bind(*args, **kwargs).arguments
        value = self.write_call(callee, arguments, passed=passed)[0]
        containers = containers_in(passed)
        if callee.may_hold_arguments and passed:
            self.interpreter.owned.own_choice(value, list(containers.values()))
        for place, path in callee.returns_arguments if passed else ():
            value = put_in(value, place, containers[path])
        return value

    def _with_growing(
        self, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of a call, where those that change their length in the callee are lists that may do so."""
        try:
            bound = definition.closure.signature.bind(*args, **kwargs)
        except TypeError:
            return args, kwargs  # `take_arguments` says what is wrong
        for name, value in bound.arguments.items():
            item = self.growing.get((definition.origin, name))
            if item is not None and type(value) is list:
                self.interpreter.owned.let_grow(value, item=item)
                bound.arguments[name] = GrowingList.of(value, item)
        return bound.args, bound.kwargs

    def _let_longer_lists_grow(self, definition: Definition, arguments: Arguments) -> None:
        """A list that is longer at each recursive call: start over, with a list of run-time length."""
        open_ = [f.arguments for f in self._open.values() if f.definition is definition][1 - _LONGER :]
        if len(open_) < _LONGER - 1 or open_[-1].structures == arguments.structures:
            return
        calls = [*open_, arguments]
        ends = list(itertools.accumulate(arguments.structures, lambda n, s: n + s.count(tree.LEAF), initial=0))
        for number, name in enumerate(arguments.parameters):
            structures = [call.structures[number] for call in calls]
            lengths = [s[0][1] for s in structures if s[0][0] == "list"]
            if len(lengths) == _LONGER and lengths == sorted(set(lengths)):
                leaves = arguments.given[ends[number] : ends[number + 1]]
                item = item_type(tree.unflatten(structures[-1], leaves))
                place = (definition.origin, name)
                if item not in (None, NOTHING) and place not in self.growing:
                    self.let_grow(place, item)

    def _take_in(self, function: Specialization, args: list[Any], kwargs: dict[str, Any]) -> None:
        """The containers of its arguments are copies, which belong to this graph."""
        owned = self.interpreter.owned
        bound = function.definition.closure.signature.bind(*args, **kwargs)
        function.handover = Handover.of(function.definition.short_name, bound.arguments)
        for name, value in bound.arguments.items():
            owned.own_containers(value, function)
            if type(value) is list:
                owned.born(value, (function.definition.origin, name))
            default = bound.signature.parameters[name].default
            if isinstance(default, (list, dict)):
                owned.own_default(value, name)

    def _hand_over(self, callee: Specialization, arguments: Arguments) -> None:
        """A call by captured code: the callee must not change what it gets, nor its caller what the callee reads."""
        owned = self.interpreter.owned
        if self._open:
            self.interpreter.aliases.check_call(callee, arguments.leaves)
            caller = next(reversed(self._open.values()))
            if caller.definition.hands_key_on:  # a gradient calls it with the arguments of its own caller
                caller.changed.update(callee.changed)
        for structure in arguments.structures:
            for token in structure:
                if token[0] == "static":
                    owned.hand(token[1].value, callee.definition.name)

    def write_call(
        self,
        callee: Specialization,
        arguments: Arguments,
        tangents: Mapping[int, Any] | None = None,
        passed: Mapping[str, Any] | None = None,
    ) -> tuple[Any, list[Traced]]:
        builder = self.ctx.open_builder
        assert callee.results is not None
        effectful = "effect" in callee.hidden or "order" in callee.hidden
        leaves = arguments.leaves
        if arguments.weak:  # the callee may have met values of another dtype
            leaves = [as_dtype(leaf, type.dtype) for leaf, type in zip(leaves, callee.types, strict=True)]
        inputs = [operand(leaf) for leaf in leaves]
        controls: tuple[Port, ...] = ()
        for what in list(callee.hidden):
            if what == "effect":
                inputs.append(self.effect_token())
            elif what == "order":
                controls = (self.effect_token(),)
            elif isinstance(what, Changed):
                inputs.append(operand(Traced(what.array.builder, what.array.port)))
            elif what == "key":
                caller = self._open.get(builder)
                hands_on = builder.hands_key_on or (caller is not None and caller.definition.hands_key_on)
                inputs.append(operand(self.key() if hands_on else self.draw()))
            else:
                inputs.append(operand(Traced(*what)))
        types = tuple(t.erased() for t in callee.results.types)
        types += tuple(callee.types[k].erased() for k in callee.written)
        types += tuple(array.type.erased() for array in callee.outer_arrays)
        first_back = len(types)
        types += tuple(type.erased() for record in callee.handed_back for type in record.types)
        types += (CTL,) if effectful else ()
        op, attrs = "call", Attrs(callee=callee.name)
        wanted: tuple[int, ...] = ()
        if tangents is not None:
            wanted = tuple(k for k, type in enumerate(types) if type.dtype.is_inexact)
            op, attrs = "tangent", Attrs(callee=callee.name, given=tuple(tangents), wanted=wanted)
            inputs += (operand(as_dtype(tangent, callee.types[k].dtype)) for k, tangent in tangents.items())
        outputs = (*types, *(types[k] for k in wanted))
        if callee.definition.is_checkpoint and tangents is None:
            if effectful:
                name = callee.definition.name
                raise CaptureError(
                    f"`{name}` has side effects (print, assert or assign) and cannot be recomputed",
                    hint="remove ut.checkpoint, or move the side effects out of the function",
                )
            attrs = Attrs(callee=callee.name, checkpoint=True)
        number = builder.add(op, inputs, outputs, attrs, self.ctx.span, callee.definition.short_name, controls)
        values = [Traced(builder, Port(number, k)) for k in range(len(outputs))]
        for k, is_weak in enumerate(callee.results.weak):
            values[k].is_weak = is_weak
        if effectful:
            builder.effect = Port(number, len(types) - 1)
        for result, shared, outside in zip(values, callee.shares, callee.shares_outside, strict=False):
            if result.type.rank and (shared or outside):
                result.base = (result, *outside, *(r for k in sorted(shared) for r in roots_of(arguments.leaves[k])))
        visible = len(callee.results.types)
        value = tree.unflatten(callee.results.structure, values[:visible])
        self.interpreter.owned.own_containers(value)
        results = values[visible : len(types)]
        if tangents is None:  # what a derivative changes are copies of its arguments
            self._change_arguments(callee, arguments, results)
            if passed:
                back = values[first_back : len(types)]
                flags = (weak for record in callee.handed_back for weak in record.weak)
                for value_back, is_weak in zip(back, flags, strict=False):
                    value_back.is_weak = is_weak
                name = callee.definition.short_name
                hand_back(callee.handed_back, passed, back, self.interpreter.owned, name)
        for array, result in zip(callee.outer_arrays, results[len(callee.written) :], strict=False):
            self.interpreter.changes.update(array, result, "an array", "x = x.copy()")
        return value, values[len(types) :]

    def _change_arguments(self, callee: Specialization, arguments: Arguments, results: list[Traced]) -> None:
        """Let arrays among the arguments that a call has changed in place hold the results."""
        name, changes = callee.definition.short_name, self.interpreter.changes
        builder = self.ctx.open_builder
        caller = builder if builder.parent is None else builder.parent
        if caller.kind == "main":  # the outermost call, or each lane of a map of such calls, has a copy
            if callee.unreturned:
                called = callee.arguments.names[callee.unreturned[0]]
                kind = "array"
                if callee.unreturned[0] in leaves_of_lists(callee.arguments.structures):
                    called, kind = re.sub(r"\.(items\.\d+|length)$", "", called), "list"
                raise CaptureError(
                    f"`{name}` changes its argument `{called}` in place: the caller's {kind} would not change",
                    callee.definition.closure.span,
                    hint=f"return it as well: `return {called}`; or work on a copy: `{called} = {called}.copy()`",
                )
            self.main.changed, self.main.changes_containers = callee.written, bool(callee.changed)
            return
        given = [arguments.given[k] for k in callee.written]
        for k, array, result in zip(callee.written, given, results, strict=False):
            called = callee.arguments.names[k]
            if isinstance(array, np.ndarray):
                self.interpreter.owned.make_traced(array)
            if not isinstance(array, Traced):
                raise CaptureError(
                    f"`{name}` changes its argument `{called}` in place: here that is an array from outside this "
                    "function, which a graph cannot change",
                    hint="pass a copy: x.copy()",
                )
            others = (leaf for n, leaf in enumerate(arguments.given) if n != k and is_array(leaf))
            if not {id(root) for root in roots_of(array)}.isdisjoint(id(r) for leaf in others for r in roots_of(leaf)):
                raise CaptureError(
                    f"`{name}` changes its argument `{called}` in place, and gets the same array, or a part of it, as "
                    "another argument",
                    hint="pass a copy: x.copy()",
                )
            changes.update(array, result, called, f"{called} = {called}.copy()")

    # -- specializations -----------------------------------------------------------------------------------

    def specialize(self, definition: Definition, arguments: Arguments) -> Work:
        span = self.ctx.span
        ready = definition.ready(arguments)
        callee = definition.sole_specialization(self)
        if callee is None:
            callee = self._find(definition, arguments) if ready is None else self._graft(definition, ready, arguments)
        if callee is None:
            name, results = self.fresh_name(definition.name), definition.note("return")
            callee = Specialization(
                definition, name, arguments.types, arguments, results=results, binding=self.binding, weak=arguments.weak
            )
            self.specializations.append(callee)
            try:
                yield self._capture(callee)
            except Halted:
                self.specializations.remove(callee)
                raise
            self.ctx.span = span
        elif callee.is_open:
            callee.was_called_open = True
            if callee.results is None:  # the paths without this call say what it returns
                callee.guessed_at = (span, [f.definition.name for f in self._open.values()])
                if not may_be_inferred(definition.closure):
                    raise self._unknown_result(callee)
                raise Halted
        for (env, name), seen in list(callee.readings.items()):
            self._note_seen(env, name, seen)
        return callee

    def know_results(self, results: Annotation) -> None:
        function = self._open[self.ctx.open_builder]
        if function.results is None:
            function.results = results

    def argument_types(self, name: str) -> tuple[Type, ...]:
        functions = (*reversed(self.specializations), *self._grafts.values())
        return next(function.types for function in functions if function.name == name)

    def _graft(self, definition: Definition, ready: Ready, arguments: Arguments) -> Specialization:
        """Add a function that needs no capture: its graphs, under names that are free here."""
        bound = {known: self.bound(variable) for known, (variable, _) in ready.variables.items()}
        handed = {known: v for known, v in bound.items() if v is not ready.variables[known][0]}
        key = ready, tuple((value.builder, value.port) for value in handed.values())
        if key not in self._grafts:
            variables: dict[str, str] = {}
            free: set[str] = set()
            for known, (variable, is_written) in ready.variables.items():
                if known in handed and is_written:
                    raise assigned_while_bound(variable)
                if known not in handed:
                    variables[known] = self.variable_name(variable)
                    if not self.uses_variable(variable, is_written):
                        free.add(known)
            chosen = ready.with_reads(handed, free) if handed or free else ready
            name, graphs = chosen.grafted(self.fresh_name, variables)
            self.graphs.update(graphs)
            hidden = dict.fromkeys((*chosen.hidden, *((value.builder, value.port) for value in handed.values())))
            self._grafts[key] = Specialization(
                definition, name, ready.types, arguments, hidden, ready.results, graphs[name]
            )
        return self._grafts[key]

    def _find(self, definition: Definition, arguments: Arguments) -> Specialization | None:
        """The specialization that takes these arguments, if there is one."""
        wider: Specialization | None = None
        count = 0
        for function in reversed(self.specializations):
            if (
                function.definition is not definition
                or function.binding is not self.binding
                or not self._sees_the_same(function)
            ):
                continue
            count += 1
            if function.arguments.structures != arguments.structures:
                continue
            if function.types == arguments.types and function.weak == arguments.weak:
                return function
            if not function.is_open and function.weak != arguments.weak:
                continue
            both = joined(function, arguments)
            if both is None:
                continue
            types, weak = both
            if types == function.types and weak == function.weak:
                wider = wider or function
            elif function.is_open:
                # A recursive call has other dimensions: these become known only at run time.
                raise StartOver(function, types=types, weak=weak)
        if wider is None and (count >= _MOST_SPECIALIZATIONS or self._grows(definition, arguments)):
            calls = [function.arguments for function in self.specializations if function.definition is definition]
            raise too_many_signatures(definition.name, calls)
        return wider

    def _grows(self, definition: Definition, arguments: Arguments) -> bool:
        """Is this the end of a long chain of nested calls, each with larger arguments than the one around it?"""
        sizes = [_size(f.arguments) for f in self._open.values() if f.definition is definition][-_MOST_GROWING:]
        return len(sizes) == _MOST_GROWING and [*sizes, _size(arguments)] == sorted([*sizes, _size(arguments)])

    def _capture(self, function: Specialization) -> Work:
        """Write the graph of a function; again, if it learns something that it must know from the start."""
        outer, definition, count = self.ctx.builder, function.definition, len(self.specializations)
        before = self.interpreter.changes.now()

        def attempt() -> Work:
            del self.specializations[count:]
            known = len(function.hidden)
            function.was_called_open, function.guessed_at = False, None
            function.began, function.readings, function.changed = next(births), {}, {}
            context = None if outer is None else outer.context
            span, device = definition.closure.span, device_of(definition.closure)
            builder = Builder(function.name, "function", span, context=context, device=device)
            types, names = function.types, function.arguments.names
            params = zip(types, names, flags_of(function.weak, types), strict=True)
            leaves = [Traced(builder, builder.param(type, name), is_weak) for type, name, is_weak in params]
            for what in list(function.hidden):
                self.hide(builder, what)
            self._open[builder] = function
            function.is_open = True
            self.ctx.builder = builder
            try:
                args, kwargs = function.arguments.passed(definition.closure.signature, leaves)
                self._take_in(function, args, kwargs)
                try:
                    value = yield definition.body(self, args, kwargs, self._check_of(definition))
                except Halted:
                    if function.guessed_at is not None and not function.takes_nothing:
                        raise StartOver(function, takes_nothing=True) from None
                    if function.guessed_at is not None:
                        raise self._unknown_result(function) from None
                    raise  # where the result of a function around it is not known yet
                # A branch that ended before the order token was first needed does not forward it.
                is_disordered = "effect" in list(function.hidden)[known:]
                if len(function.hidden) != known and (function.was_called_open or is_disordered):
                    raise StartOver(function, hidden=function.hidden)
                is_outermost = function is next(iter(self._open.values()))
                if is_outermost or definition.hands_key_on:
                    self.interpreter.owned.check_arguments(
                        function, definition.hands_key_on and function.was_called_open
                    )
                else:
                    self.interpreter.owned.let_arguments_grow(function)
                ports = self.result_ports(function, value)
                self._note_arrays(function, builder, leaves, value)
                ports += self._written_ports(function, builder, leaves, value)
                ports += self._handed_ports(function)
                self._note_returned(function, value)
                if "effect" in function.hidden:
                    ports.append(self.last_effect(builder))
                function.graph = self.graphs[function.name] = builder.finish(ports)
            finally:
                self.interpreter.changes.go_back(before)
                builder.is_open = False
                function.is_open = False
                del self._open[builder]
                self.ctx.builder = outer

        try:
            yield until_fixpoint(function, attempt)
        except BaseException:
            self.failed_captures += 1
            raise

    def _note_arrays(self, function: Specialization, builder: Builder, leaves: list[Traced], value: Any) -> None:
        """What becomes of the arrays among its arguments: whether they change, and whether they are in the results."""
        numbers = {id(leaf): k for k, leaf in enumerate(leaves)}
        changed = {k: noted for k, noted in builder.changed.items() if k < len(leaves)}
        shares: list[frozenset[int]] = []
        outside: list[tuple[Any, ...]] = []
        for result in tree.flatten(value, is_traced)[0]:
            roots = roots_of(result) if is_array(result) else ()
            shares.append(frozenset(numbers[id(root)] for root in roots if id(root) in numbers))
            outside.append(tuple(
                r for r in roots if isinstance(r, np.ndarray) or (isinstance(r, Traced) and r.builder is not builder)
            ))  # fmt: skip
        known = function.shares or (frozenset[int](),) * len(shares)
        both = tuple(a | b for a, b in zip(known, shares, strict=False))
        changed = {**function.changed_arrays, **changed}
        if function.was_called_open and (both != known or changed.keys() != function.changed_arrays.keys()):
            raise StartOver(function, changed_arrays=changed, shares=both)
        function.shares_outside, function.shares, function.changed_arrays = tuple(outside), both, changed

    def _written_ports(
        self, function: Specialization, builder: Builder, leaves: list[Traced], value: Any
    ) -> list[Port]:
        """The arrays that have changed in place, as further results: arguments, and those of enclosing functions."""
        changed = (k for k, leaf in enumerate(leaves) if leaf.port != Port(builder.params[k]))
        written = tuple(sorted({*function.written, *changed}))
        if function.was_called_open and written != function.written:
            raise StartOver(function, written=written)
        returned = {id(root) for leaf in tree.flatten(value, is_traced)[0] if is_array(leaf) for root in roots_of(leaf)}
        function.written = written
        lists = leaves_of_lists(function.arguments.structures)
        function.unreturned = tuple(
            k for k in written if not any(id(leaves[part]) in returned for part in lists.get(k, (k,)))
        )
        arrays = [*(leaves[k] for k in written), *function.outer_arrays]
        return [port_in(Traced(array.builder, array.port), 0, self.ctx) for array in arrays]

    def _note_returned(self, function: Specialization, value: Any) -> None:
        """Which containers among its arguments a function returns: its caller gets its own ones."""
        assert function.handover is not None
        same = places_of(value, function.handover.containers)
        paths = {path for _, path in same}
        others = [item for path, item in function.handover.containers.items() if path not in paths]
        may_hold = self.interpreter.owned.may_be_returned(others)
        known = (function.returns_arguments, function.may_hold_arguments)
        if function.was_called_open and known != (same, may_hold):
            raise StartOver(function, returns_arguments=same, may_hold_arguments=may_hold)
        function.returns_arguments, function.may_hold_arguments = same, may_hold

    def _handed_ports(self, function: Specialization) -> list[Port]:
        """What containers among the arguments hold now, as further results."""
        is_outermost = function is next(iter(self._open.values())) and not function.was_called_open
        if is_outermost or function.definition.hands_key_on or not (function.changed or function.handed_back):
            return []
        assert function.handover is not None
        records, leaves = function.handover.ends(function.changed)
        if function.was_called_open and records != function.handed_back:
            raise StartOver(function, handed_back=records)
        function.handed_back = records
        types = [type for record in records for type in record.types]
        return [port_in(leaf, 0, self.ctx, type.dtype) for leaf, type in zip(leaves, types, strict=True)]

    # -- results -------------------------------------------------------------------------------------------

    def _check_of(self, definition: Definition) -> Check:
        """The function that checks and converts returned values by the annotation; None if there is none."""
        note = definition.note("return")
        if note is None:
            return None
        called = f"the result of `{definition.name}`"

        def check(value: Any) -> Any:
            value = in_graph(note.structure, value, called, widens=False)
            value = note.lifted(value)
            if not note.is_option:
                value = needed(value, self.ctx, f"{called} is None, but annotated as {note}")
            value = with_lists(value, note.structure, lambda items, dtype: items)
            leaves, structure = tree.flatten(value, is_traced)
            if note.structure != structure:
                raise TypeMismatch(
                    f"{called} is {describe(value)}, but annotated as {note}",
                    self.ctx.span,
                    hint="end every path with a `return` of a value" if value is None else how_to_return(value, note),
                )
            dims: Dims = {}
            places = tree.paths(value, "result", is_traced)
            converted = [
                convert(leaf, wanted, called if place == "result" else f"`{place}` of `{definition.name}`", dims)[0]
                for leaf, wanted, place in zip(leaves, note.types, places, strict=True)
            ]
            if note.weak:
                are_weak = map(operator.and_, map(stays_weak, leaves), note.weak)
                converted = [as_weak(value) if weak else value for value, weak in zip(converted, are_weak, strict=True)]
            return tree.unflatten(structure, converted)

        return check

    def result_ports(self, function: Specialization, value: Any) -> list[Port]:
        """The result as tokens of the graph, checked against the annotation; its types are recorded."""
        definition = function.definition
        note, check = definition.note("return"), self._check_of(definition)
        if check is not None:
            if value is None and not (note is not None and note.is_option):
                self.ctx.span = definition.closure.span
            value = check(value)  # of a lambda, or of a body without `return`
        leaves, structure = tree.flatten(value, is_traced)
        refuse_unreturnable(leaves, structure)
        refuse_other_kinds(value)
        if not self._open or function is next(iter(self._open.values())):
            self.interpreter.owned.refuse_shared(structure)
        ports: list[Port] = []
        types: list[Type] = []
        for leaf, wanted in zip(leaves, note.types if note is not None else (None,) * len(leaves), strict=True):
            converted, type = convert(leaf, wanted, f"the result of `{definition.name}`", {})
            ports.append(port_in(converted, 0, self.ctx))
            types.append(type if wanted is not None else leaf_type(converted))
        weak = tuple(map(is_number, leaves)) if note is None or note.weak else ()
        if function.was_called_open and function.results is not None:
            weak = tuple(map(operator.and_, weak, function.results.weak))
        weak = weak if True in weak else ()
        if function.was_called_open and function.results is not None and function.results.weak != weak:
            raise StartOver(function, results=replace(function.results, weak=weak))
        results = Annotation(tuple(types), structure, weak)
        if function.guessed_at is not None or (
            function.guesses and function.was_called_open and results != function.results
        ):
            if function.guesses == _MOST_GUESSES:
                raise self._unknown_result(function)
            raise StartOver(function, results=results, guesses=function.guesses + 1)
        function.results = results
        return ports

    def _unknown_result(self, function: Specialization) -> CaptureError:
        """The error of a recursive function whose result must be annotated."""
        span, inside = function.guessed_at or (self.ctx.span, [])
        return unknown_result(function.definition.closure, function.types, inside, span)
