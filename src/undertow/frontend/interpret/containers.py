"""Runs Python syntax during capture: containers, attributes, subscripts, comprehensions, f-strings and targets."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import defaultdict, deque
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, UnknownName, kind_of
from undertow.frontend.control.aliasing import array_from_outside
from undertow.frontend.control.restart import Halted
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.numpy_brackets import in_brackets, joins
from undertow.frontend.functions.numpy_rows import Row
from undertow.frontend.interpret import handles
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.expressions import HANDLERS, MISSING, Expressions, did_you_mean
from undertow.frontend.interpret.generators import CapturedGenerator, Yielded
from undertow.frontend.interpret.growing import ListMethod
from undertow.frontend.interpret.instead import instead_of_method
from undertow.frontend.interpret.kinds import NO_ATTRIBUTE, special_attribute
from undertow.frontend.interpret.list_stores import detached
from undertow.frontend.interpret.list_syntax import added, assign_item, cut, unpacked
from undertow.frontend.interpret.numpy_calls import holds_traced
from undertow.frontend.interpret.options import by_cases, needed, settled
from undertow.frontend.interpret.picking import Picking
from undertow.frontend.interpret.purity import is_users
from undertow.frontend.interpret.raising import is_conditional, raise_later
from undertow.frontend.interpret.special import behind, special
from undertow.frontend.interpret.standins import (
    OF_OTHERS,
    TracedGenerator,
    TracedItems,
    is_run_time,
    needing_loop,
    needs_loop,
)
from undertow.frontend.interpret.written import Computed
from undertow.frontend.objects.handle import Handle
from undertow.frontend.syntax.calling import is_user_code
from undertow.frontend.syntax.queries import is_plain, syntax_name, targets
from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.trace.places import Getter
from undertow.frontend.values.assignment import At, replaced
from undertow.frontend.values.growing import NOTHING, GrowingList
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.option import is_option
from undertow.frontend.values.text import TracedText, joined, text_of, text_too_early
from undertow.frontend.values.traced import Context, Traced, has_traced, is_basic, is_traced, read, roots_of
from undertow.frontend.values.views import View, make_view
from undertow.types import said


class Containers(Expressions):
    """Adds building and unpacking containers."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx)
        self.picking = Picking()
        self.thrown: BaseException | None = None  # what a `raise`, or plain Python, has raised last, during capture

    def sequence(self, node: Any, env: Env) -> Work:
        if isinstance(node, ast.List) and any(isinstance(part, ast.Starred) for part in node.elts):
            return (yield self._starred(node, env))
        items: list[Any] = yield self.each(node.elts, env)
        if isinstance(node, ast.Tuple):
            return tuple(items)
        if isinstance(node, ast.List):
            return self.owned.new_list(items, self.span(node, env).place)
        return self.owned.own(set(items))

    def _starred(self, node: ast.List, env: Env) -> Work:
        """`[*items, x]`: the starred parts may have a length that is known only at run time."""
        place = self.span(node, env).place
        before: Any = None
        items: list[Any] = []
        for part in node.elts:
            if not isinstance(part, ast.Starred):
                items.append((yield self.expr(part, env)))
                continue
            starred = yield self.expr(part.value, env)
            self.at(part, env)
            if not is_run_time(starred):
                items.extend(self.iterate(starred, self.span(part, env)))
                continue
            more = yield added(self, items, (yield self.collected(starred)))
            before, items = (more if before is None else (yield added(self, before, more))), []
        if before is None:
            return self.owned.new_list(items, place)
        return (yield added(self, before, items)) if items else before

    def dictionary(self, node: ast.Dict, env: Env) -> Work:
        made: dict[Any, Any] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                made.update((yield self.expr(value_node, env)))
            else:
                key = yield self.expr(key_node, env)
                made[_static(key, "a dict key", self.span(key_node, env))] = yield self.expr(value_node, env)
        return self.owned.own(made)

    def attribute(self, node: ast.Attribute, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        self.at(node, env)
        return (yield self.attribute_of(value, node.attr, self.span(node, env), env))

    def attribute_of(self, value: Any, name: str, span: Span, env: Env | None) -> Work:
        """`value.name`."""
        value = needed(value, self.ctx, f"'NoneType' object has no attribute {name!r}", AttributeError)
        if (answer := special_attribute(value, name)) is not NO_ATTRIBUTE:
            return answer
        if isinstance(value, TracedText):
            raise text_too_early(value)
        if isinstance(value, GrowingList):
            return ListMethod(value, name)
        if isinstance(value, Handle):
            found = yield handles.attribute(self, value, name, env)
            is_property = isinstance(found, handles.Dispatch) and isinstance(found.found[0][0], property)
            return (yield handles.dispatch(self, found, [], {}, env)) if is_property else found
        if isinstance(value, Traced) and name == "dtype":
            return value.dtype.numpy
        if isinstance(value, Traced) and name in Traced.__slots__:  # ours, and not the value's
            raise _no_attribute(value, name, AttributeError(name), span)
        unseen = getattr(type(value), "__undertow_unseen__", {})
        if name in unseen and getattr(value, name) is None and any(map(is_traced, vars(value).values())):
            raise CaptureError(
                f"`{name}` is not part of a graph that gets the {unseen[name]} as an argument", span, hint=_UNSEEN
            )
        if value is sys and name == "modules" and not self.statics:
            raise CaptureError(
                "`sys.modules` changes with every import, which a graph does not see",
                span,
                hint="look before the call, and pass the answer as an argument, or keep it: ut.static(...)",
            )
        try:
            held = self.ctx.session.attribute(value, name)
            if isinstance(value, Traced) and name == "T":
                make_view(held, View(value, lambda array: array.T, lambda _, part: part.T))
        except AttributeError as fault:
            error = _no_attribute(value, name, fault, span)
            if (value is None or is_users(value)) and is_conditional(self.ctx):
                raise_later(error, self.ctx)  # the end of a list, perhaps, where the run does not get
                raise Halted from None
            if isinstance(value, (Traced, Closure)):
                raise error from None
            self.thrown = error  # as Python does: an `except` of the user's may catch it
            raise error from fault
        if isinstance(held, Getter):
            is_kept = held.is_kept and self.owned.has(value)
            if is_kept:
                self.owned.change(value, "")
            held = yield self.call(held.function, held.args, {}, env)
            if is_kept:
                vars(value)[name] = held
        return settled(self.ctx.session.seen(held), self.ctx)

    def subscript(self, node: ast.Subscript, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        key = yield self.expr(node.slice, env)
        self.at(node, env)
        return (yield self.item_of(value, key))

    def item_of(self, value: Any, key: Any) -> Work:
        """`value[key]`, by the method of a class of the user's if it has one."""
        if isinstance(value, Handle):
            return value.item(key)
        value = needed(value, self.ctx, "'NoneType' object is not subscriptable")
        if is_option(settled(key, self.ctx)):
            return (yield by_cases(self, key, lambda one: self.item_of(value, one), None))
        method = special(self.ctx.session, value, "__getitem__")
        if method is not None:
            return (yield self.call(method, [value, key], {}))
        self.hold_objects(value)
        self.hold_key(value, key)
        missing = (
            special(self.ctx.session, value, "__missing__") if isinstance(value, dict) and not has_traced(key) else None
        )
        if missing is not None and key not in value:
            return (yield self.call(missing, [value, key], {}))
        return self.item(value, key)

    def hold_key(self, container: Any, key: Any) -> None:
        """An object that is looked up in a dict: by its own `__hash__`, or as the very one that the dict holds."""
        if isinstance(container, dict):
            is_ours = self.owned.has(container)
            parts = key if isinstance(key, tuple) else (key,)
            objects = [part for part in parts if is_users(part)]
            self.hold_objects(
                *(one for one in objects if not is_ours or special(self.ctx.session, one, "__hash__") is not None)
            )

    def item(self, value: Any, key: Any) -> Any:
        """`value[key]`; a captured array or a list of numbers may be indexed by a traced value."""
        if isinstance(key, TracedText):
            raise text_too_early(key)
        if value is None and is_conditional(self.ctx):
            raise_later(TypeError("'NoneType' object is not subscriptable"), self.ctx)
            raise Halted
        value = read(value)
        if joins(value) and holds_traced(key):
            return in_brackets(value, key)
        if isinstance(value, (Traced, np.ndarray, list, tuple)):
            key = tuple(map(read, key)) if isinstance(key, tuple) else read(key)
        if isinstance(value, GrowingList):
            return cut(value, key) if isinstance(key, slice) else self.item_of_list(value, key)
        if isinstance(value, (Traced, At)) or not has_traced(key):
            if isinstance(value, defaultdict) and key not in value:
                self.owned.change(value, "")  # it adds the key
                return self.owned.own(value[key])
            item = value[key]
            return settled(self.ctx.session.seen(self.owned.adopt(item)), self.ctx)
        if isinstance(value, (list, tuple, str, range)) and isinstance(key, slice):
            self.owned.let_grow(value)
            raise CaptureError(
                f"{kind_of(value)} cannot be cut at a traced index: its length would be known only at run time",
                hint="make an array first: ut.asarray(items)[:n]",
            )
        if isinstance(value, (list, tuple)):
            picked = self.picking.pick(value, key)
            self.owned.own_choice(picked, value)
            return picked
        if isinstance(value, np.ndarray):
            element = getitem(value, key)
            if isinstance(element, Traced) and element.type.rank and is_basic(key):
                element.base = roots_of(value)
            return element
        raise CaptureError(
            f"{kind_of(value)} cannot be indexed by a traced value",
            hint=_LOOKUPS.get(type(value), "")
            or "index an array instead, as in ut.asarray([10, 20])[i], or choose with `if`/`elif`",
        )

    def item_of_list(self, items: GrowingList, index: Any) -> Any:
        """An item of a list of run-time length; one that never gets any has none."""
        if items.item != NOTHING:
            return items.get(index)
        error = IndexError("list index out of range")
        if not is_conditional(self.ctx):
            raise error
        raise_later(error, self.ctx)
        raise Halted

    def slice(self, node: ast.Slice, env: Env) -> Work:
        parts = []
        for part in (node.lower, node.upper, node.step):
            parts.append(None if part is None else (yield self.expr(part, env)))
        return slice(*parts)

    def comprehension(self, node: Any, env: Env) -> Work:
        inner = Env(
            env.closure, frozenset(targets(node.generators)), env, {}, is_comprehension=True, called_at=env.called_at
        )
        first = node.generators[0].iter
        source = yield self.expr(first, env)
        if isinstance(source, Handle) and source.is_list:
            source = handles.items_of(source)
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)) and is_run_time(source):
            if isinstance(source, TracedGenerator):
                source = yield self.collected(source)
            generator = TracedGenerator(node, inner, source.take() if isinstance(source, TracedItems) else source)
            return generator if isinstance(node, ast.GeneratorExp) else (yield self.collected(generator))
        if isinstance(node, ast.ListComp) and isinstance(first, ast.Call) and isinstance(source, OF_OTHERS):
            source = list(self.iterate(source, self.span(first, env)))  # so that it can be gone over again
        over = self.iterate(source, self.span(first, env))
        if isinstance(node, ast.GeneratorExp):
            return self.generator(TracedGenerator(node, inner, source), over)
        found: list[Any] = []
        checkpoint, before = self.ctx.open_builder.checkpoint(), self.save(inner)
        try:
            yield self._comprehend(node, inner, over, found)
        except CaptureError as fault:
            if not (needs_loop(fault) and isinstance(node, ast.ListComp) and over is not source):
                raise
            self.go_back(checkpoint, before, inner)
            return (yield self.collected(TracedGenerator(node, inner, source)))
        if isinstance(node, ast.DictComp):
            return self.owned.own(dict(found))
        if isinstance(node, ast.ListComp):
            return self.owned.new_list(found, self.span(node, env).place)
        return self.owned.own(set(found))

    def generator(self, whole: TracedGenerator, over: Any = None) -> CapturedGenerator:
        """A generator over as many items as are known; as a loop of the graph, where which count is not."""
        node = whole.node
        if over is None:
            over = self.iterate(whole.over, self.span(node, whole.env))
        parts = [node.elt, *(test for clause in node.generators for test in clause.ifs)]
        parts += [clause.iter for clause in node.generators[1:]]
        work = self._comprehend(node, whole.env, over, None)
        made = CapturedGenerator(self.ctx, work, whole.env.closure.name, over, all(map(is_plain, parts)))
        if over is not whole.over:
            made.again = whole
        own: CapturedGenerator = self.owned.own(made)
        return own

    def _comprehend(self, node: Any, env: Env, over: Any, items: list[Any] | None) -> Work:
        """Collect the items of a comprehension, or hand over those of a generator, one at a time."""
        # The nest of `for` clauses as a stack of iterators; its depth is the source's, not the data's.
        stack = [over]
        while stack:
            clause = node.generators[len(stack) - 1]
            item = next(stack[-1], MISSING)
            if item is MISSING:
                stack.pop()
                continue
            yield self.assign(clause.target, item, env)
            holds = True
            for test in clause.ifs:
                self.at(test, env)
                truth = self.truth((yield self.expr(test, env)))
                if isinstance(truth, Traced):
                    error = CaptureError(
                        "the `if` of a comprehension must not depend on traced values",
                        self.span(test, env),
                        hint=_keep_every(node, test),
                    )
                    raise needing_loop(error)
                if not truth:
                    holds = False
                    break
            if not holds:
                continue
            if len(stack) < len(node.generators):
                following = node.generators[len(stack)].iter
                inside = yield self.expr(following, env)
                try:
                    stack.append(self.iterate(inside, self.span(following, env)))
                except CaptureError as fault:
                    raise (needing_loop(fault) if is_run_time(inside) else fault) from None
            elif items is None:
                yield Yielded((yield self.expr(node.elt, env)))
            elif isinstance(node, ast.DictComp):
                key = yield self.expr(node.key, env)
                items.append((_static(key, "a dict key", self.span(node.key, env)), (yield self.expr(node.value, env))))
            else:
                items.append((yield self.expr(node.elt, env)))

    def iterate(self, value: Any, span: Span) -> Any:
        """An iterator over something whose length is known now."""
        self.ctx.span = span
        if isinstance(value, Handle):
            return handles.fixed_items(value)
        if hasattr(type(value), "__next__"):
            self.owned.change(value, "")
        value = self.iterated(value)
        if special(self.ctx.session, value, "__next__") is not None:
            raise CaptureError(
                f"a loop over {kind_of(value)}, which has a `__next__` of its own, cannot be captured",
                hint="write `__iter__` as a generator, with `yield`, or loop over a list",
            )
        self.hold_objects(value)
        items = iter(value)
        self.aliases.iterates(items, [value])
        return items

    def walrus(self, node: ast.NamedExpr, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        self.bind(node.target.id, value, env)
        return value

    def text(self, node: ast.JoinedStr, env: Env) -> Work:
        """An f-string; its traced values are filled in when the graph prints it."""
        parts: list[Any] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            elif isinstance(part, ast.FormattedValue):
                value = yield self.expr(part.value, env)
                spec = "" if part.format_spec is None else (yield self.expr(part.format_spec, env))
                self.at(node, env)
                if isinstance(spec, TracedText):
                    raise text_too_early(spec)
                conversion = chr(part.conversion) if part.conversion > 0 else ""
                parts.append((yield self.text_of_one(read(value), spec, conversion)))
        return joined("", parts)

    def text_of_one(self, value: Any, spec: str = "", conversion: str = "") -> Work:
        """The text of a value, by the method of a class of the user's if it has one."""
        value = settled(value, self.ctx)
        if is_option(value):
            raise CaptureError(
                "the text of a value that may be None depends on whether it is",
                hint="make the text in both branches of `if x is None:`, or print x itself",
            )
        if not conversion and (method := special(self.ctx.session, value, "__format__")) is not None:
            return (yield self.call(method, [value, spec], {}))
        method = behind(self.ctx.session, repr if conversion in ("r", "a") else str, value)
        if method is not None and (conversion or not spec):
            value, conversion = (yield self.call(method, [value], {})), "s"
        return text_of(value, spec, conversion)

    def assign(self, target: ast.expr, value: Any, env: Env) -> Work:
        """Bind a target: a name, a tuple of targets, or an item of a Python container."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, env)
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield self._unpack(target, value, env)
        elif isinstance(target, ast.Subscript):
            container = yield self.expr(target.value, env)
            key = yield self.expr(target.slice, env)
            self.at(target, env)
            yield self.set_item(container, key, value, ast.unparse(target.value))
        elif isinstance(target, ast.Attribute):
            changed = yield self.expr(target.value, env)
            self.at(target, env)
            yield self.set_attribute(changed, target.attr, value, ast.unparse(target.value))
        else:
            raise CaptureError(
                f"{syntax_name(target)} cannot be assigned to",
                self.span(target, env),
                hint="assign to a variable",
            )
        return None

    def set_item(self, container: Any, key: Any, value: Any, called: str) -> Work:
        """`container[key] = value`, by the method of a class of the user's if it has one."""
        if isinstance(container, handles.OURS):
            raise handles.refuse_change(container, "an item")
        container = needed(container, self.ctx, "'NoneType' object does not support item assignment")
        method = special(self.ctx.session, container, "__setitem__")
        if method is not None:
            yield self.call(method, [container, key, value], {})
            return
        if isinstance(container, GrowingList):
            yield assign_item(self, container, key, value)
            return
        if isinstance(container, np.ndarray):
            self.owned.make_traced(container)
            raise array_from_outside(called, f"work on a copy of it, {called} = {called}.copy(), and return that")
        if isinstance(container, Traced):
            self.assign_part(container, key, value, called)
            return
        if not isinstance(container, (list, dict, deque)):
            is_variable = read(container) is not container
            raise CaptureError(
                f"assigning to an item of {kind_of(container)} cannot be captured",
                hint="write v.assign(x) for the whole variable, v.assign_rows(i, rows) for rows"
                if is_variable
                else "create a new one, and assign it to a variable",
            )
        if has_traced(key):
            self.owned.let_grow(container, [value])
            raise CaptureError(
                f"{kind_of(container)} cannot be changed at a traced index",
                hint="use an array: memo = np.zeros(size) and known = np.zeros(size, bool), then memo[n] = v, "
                "if known[n]; a memo that only saves time can be left out"
                if isinstance(container, dict)
                else "use an array: x = np.zeros(size), then x[i] = v",
            )
        if isinstance(key, TracedText):
            raise text_too_early(key)
        self.owned.change(container, called)
        container[key] = value

    def assign_part(self, array: Traced, key: Any, value: Any, called: str) -> None:
        """`array[key] = value`: all names of the array, and its views, see the change."""
        if isinstance(value, TracedText) or isinstance(key, TracedText):
            raise text_too_early(value if isinstance(value, TracedText) else key)
        if not array.type.rank:
            raise CaptureError(
                f"{said(array.type)} is a single number: it has no elements to assign to", hint="assign to the variable"
            )
        self.changes.update(array, replaced(array, key, value), called, f"{called} = {called}.copy()")

    def write_array(self, row: Row, args: Sequence[Any], kwargs: dict[str, Any], called: str) -> None:
        """A call of NumPy's that writes into its first argument."""
        array = args[0]
        if isinstance(array, np.ndarray):
            self.owned.make_traced(array)
            raise array_from_outside(called, f"work on a copy of it, {called} = {called}.copy(), and return that")
        if not array.type.rank:
            raise CaptureError(f"{said(array.type)} is a single number", hint="assign to the variable")
        self.changes.update(array, row(*args, **kwargs), called, f"{called} = {called}.copy()")

    def set_attribute(self, changed: Any, name: str, value: Any, called: str) -> Work:
        """`changed.name = value`, as the class of the object defines it."""
        if isinstance(changed, handles.OURS):
            raise handles.refuse_change(changed, f"the field `{name}`")
        changed = needed(changed, self.ctx, f"'NoneType' object has no attribute {name!r}", AttributeError)
        if isinstance(changed, (Traced, Closure)) or hasattr(type(changed), "__undertow_read__"):
            what = "a function" if isinstance(changed, Closure) else "a traced value or a variable"
            raise CaptureError(f"the attribute `{name}` of {what} cannot be assigned to", hint="use a variable")
        self.owned.change(changed, called)
        own_rule = getattr(type(changed), "__setattr__", None)
        accessor = inspect.getattr_static(type(changed), name, None)
        if is_user_code(own_rule):
            yield self.call(own_rule, [changed, name, value], {})
        elif isinstance(accessor, property) and is_user_code(accessor.fset):
            yield self.call(accessor.fset, [changed, value], {})
        elif (method := special(self.ctx.session, accessor, "__set__")) is not None:
            yield self.call(method, [accessor, changed, value], {})
        else:
            setattr(changed, name, value)

    def delete_attribute(self, changed: Any, name: str, called: str) -> Work:
        """`del changed.name`, as the class of the object defines it."""
        if isinstance(changed, handles.OURS):
            raise handles.refuse_change(changed, f"the field `{name}`")
        self.owned.change(changed, called)
        accessor = inspect.getattr_static(type(changed), name, None)
        if (own_rule := special(self.ctx.session, changed, "__delattr__")) is not None:
            yield self.call(own_rule, [changed, name], {})
        elif isinstance(accessor, property) and is_user_code(accessor.fdel):
            yield self.call(accessor.fdel, [changed], {})
        elif (method := special(self.ctx.session, accessor, "__delete__")) is not None:
            yield self.call(method, [accessor, changed], {})
        else:
            delattr(changed, name)

    def _unpack(self, target: ast.Tuple | ast.List, value: Any, env: Env) -> Work:
        if isinstance(value, Traced) and not value.type.shape:
            raise CaptureError(
                f"{said(value.type)} is a single number and cannot be unpacked into {len(target.elts)} variables",
                self.span(target, env),
                hint="unpack a tuple, or an array of known length",
            )
        if isinstance(value, Handle):
            value = handles.unpacked(value, target)
        if isinstance(value, GrowingList):
            for part, item in zip(target.elts, unpacked(value, target), strict=True):
                yield self.assign(part.value if isinstance(part, ast.Starred) else part, item, env)
            return
        items = list(self.iterate(value, self.span(target, env)))
        if all(isinstance(part, ast.Subscript) for part in target.elts):  # rows[i], rows[j] = rows[j], rows[i]
            items = [detached(item) if isinstance(item, GrowingList) and item.is_row else item for item in items]
        stars = [n for n, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        wanted = len(target.elts)
        if (len(items) != wanted and not stars) or len(items) < wanted - len(stars):
            named = wanted - len(stars)
            raise CaptureError(
                f"{len(items)} value{'' if len(items) == 1 else 's'} cannot be unpacked into "
                f"{'at least ' if stars else ''}{named} variable{'' if named == 1 else 's'}",
                self.span(target, env),
                hint="name as many variables as there are values, or take the rest with *rest",
            )
        if stars:
            tail = wanted - stars[0] - 1
            split = len(items) - tail
            items = [*items[: stars[0]], items[stars[0] : split], *items[split:]]
        for part, item in zip(target.elts, items, strict=True):
            yield self.assign(part.value if isinstance(part, ast.Starred) else part, item, env)


_LOOKUPS: dict[type, str] = {
    str: "pass the codes of its characters, which can be indexed: np.array([ord(c) for c in text])",
    dict: "index an array instead, as in ut.asarray([10, 20])[i], or choose with `if`/`elif`; a memo can be left out",
}


def _keep_every(node: Any, test: ast.expr) -> str:
    """The hint for a comprehension that would choose items at run time."""
    if isinstance(test, Computed):
        return "make a list of it first, and loop over that: list(filter(f, items))"
    if isinstance(node, ast.DictComp):
        return "the keys of a dict are known at capture time: keep them all, and choose a value for each"
    if isinstance(test, Computed):
        return "make a list of it first, and loop over that: list(filter(f, items))"
    kept = f"{ast.unparse(node.elt)} if {ast.unparse(test)} else 0"
    return f"the number of items is known at capture time: keep them all, as in `{kept}`, or add up in a `for` loop"


def _static(key: Any, what: str, span: Span) -> Any:
    if isinstance(key, Traced):
        raise CaptureError(
            f"{what} must be known at capture time, but this is a traced {key.type}",
            span,
            hint="use strings or numbers as keys, and an array for lookups by traced values",
        )
    if isinstance(key, TracedText):
        raise text_too_early(key, span)
    return key


_UNSEEN = "look it up before the call, and pass the numbers as arguments; or use the forest as a global variable"
_RUN_TIME = "its value is known only at run time: compute with x itself, return it, or print it with print(x)"
_FOREIGN = {  # attributes of arrays in other libraries
    **dict.fromkeys(("numpy", "cpu", "detach"), _RUN_TIME),
    "backward": "write a function that computes x, and differentiate that: ut.grad(f)",
}


def _no_attribute(value: Any, name: str, fault: AttributeError, span: Span) -> CaptureError:
    """The error of a missing attribute, with one that the user may have meant."""
    if isinstance(value, Traced):
        known = [k for k in dir(value) if not k.startswith("_") and k not in ("builder", "is_weak", "port", "type")]
        if hasattr(functions, name):
            hint = f"write ut.{name}(x)"
        else:
            hint = (
                _FOREIGN.get(name, "")
                or instead_of_method(name)
                or ("" if hasattr(np.ndarray, name) else did_you_mean(name, known))
            )
        return CaptureError(
            f"a traced {value.type} has no attribute `{name}`",
            span,
            hint or "use functions of ut, as in ut.sum(x); docs/reference/language.md lists the methods",
            kind=AttributeError,
        )
    if isinstance(fault, UnknownName):
        return CaptureError(fault.what, span, fault.hint, kind=AttributeError)
    if isinstance(value, ModuleType):
        short = "ut" if value.__name__ == "undertow" else value.__name__
        hint = did_you_mean(name, dir(value), f"{short}.")
        return CaptureError(
            f"`{short}` has no `{name}`", span, hint or f"dir({short}) lists what it has", kind=AttributeError
        )
    if isinstance(value, Closure):
        return CaptureError(
            f"the function `{value.name}` has no attribute `{name}`",
            span,
            "check the name before the dot",
            kind=AttributeError,
        )
    hint = did_you_mean(name, dir(value)) or "check the name after the dot"
    if hasattr(type(value), "__undertow_read__"):
        hint = f"write v.read().{name}, or use a function of ut: these read the variable"
    return CaptureError(" ".join(str(fault).split()), span, hint, kind=AttributeError)


HANDLERS.update({
    ast.Tuple: Containers.sequence, ast.List: Containers.sequence, ast.Set: Containers.sequence,
    ast.Dict: Containers.dictionary, ast.Attribute: Containers.attribute, ast.Subscript: Containers.subscript,
    ast.Slice: Containers.slice, ast.ListComp: Containers.comprehension, ast.SetComp: Containers.comprehension,
    ast.DictComp: Containers.comprehension, ast.GeneratorExp: Containers.comprehension,
    ast.NamedExpr: Containers.walrus, ast.JoinedStr: Containers.text,
})  # fmt: skip
