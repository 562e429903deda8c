"""Runs Python syntax during capture: functions and calls.

A call of an @ut.function becomes a call node, the user's own Python is captured inline, the rest simply runs.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import operator
from collections import Counter, deque
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from undertow.errors import CaptureError, with_article
from undertow.frontend.control.aliasing import is_array
from undertow.frontend.control.helpers import recurs_at_run_time, region_of
from undertow.frontend.interpret import handles
from undertow.frontend.interpret.builtins import PRINT, PYTHON, method_of_text, refuse_text
from undertow.frontend.interpret.collecting import collected, folded, repeat
from undertow.frontend.interpret.containers import Containers
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.interpret.expressions import HANDLERS
from undertow.frontend.interpret.generators import CapturedGenerator, Yielded, has_yield
from undertow.frontend.interpret.growing import ListMethod, call_method
from undertow.frontend.interpret.in_place import written_by
from undertow.frontend.interpret.instead import instead_of_math
from undertow.frontend.interpret.list_calls import COMPARING, ON_LISTS, compare_items, with_arrays
from undertow.frontend.interpret.numpy_calls import holds_traced, on_traced, refuse_comparing, refuse_traced
from undertow.frontend.interpret.operators import of_ufunc
from undertow.frontend.interpret.options import call as call_with_option
from undertow.frontend.interpret.options import needed
from undertow.frontend.interpret.purity import (
    calls_back,
    changed_by,
    gives_views,
    has_lasting_effect,
    is_generated,
    is_pure,
    iterates,
    refuse_in_place,
    seen_by,
    why_refused,
)
from undertow.frontend.interpret.special import behind, is_user_generator, special
from undertow.frontend.interpret.standins import is_run_time
from undertow.frontend.objects.handle import Handle, as_number
from undertow.frontend.syntax.calling import (
    bind_arguments,
    decorated,
    is_user_class,
    is_user_code,
    refuse_unsupported,
    refuse_wrong_arguments,
    signature_of,
)
from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.values import tree
from undertow.frontend.values.assignment import shaped_view
from undertow.frontend.values.device import device_of, refuse_generator, refuse_replicas
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.option import is_option
from undertow.frontend.values.static import static
from undertow.frontend.values.traced import Context, Traced, capturing, emit, is_traced, roots_of
from undertow.tracebacks import is_library_file, note_caller
from undertow.types import DType

# These inspect the calling frame, which is ours.
_FRAME_FUNCTIONS = (locals, globals, eval, exec)
_INLINE_DEPTH = 500
_SHOWN_DEPTH = 50  # of helpers in helpers that a place in the source remembers
_CACHED = type(functools.cache(abs))
# These do not take the next item of an iterator that they get.
_LOOKS_ONLY = (isinstance, type, id, callable, hasattr, getattr, repr, iter)


# Methods of dicts that look up their first argument.
_LOOKS_UP = frozenset(("get", "pop", "setdefault", "__getitem__", "__contains__"))


class Interpreter(Containers):
    """Evaluates every expression. `statements.py` and `branches.py` add statements."""

    def __init__(self, ctx: Context) -> None:
        super().__init__(ctx)
        self.call_site: ast.Call | None = None  # the call that was written last, for messages
        self.cached: dict[Any, Any] = {}  # results of functions under functools.cache

    def make_closure(self, node: Any, env: Env) -> Work:
        """A function defined inside a captured one."""
        arguments = node.args
        defaults: dict[str, Any] = {}
        positional = [*arguments.posonlyargs, *arguments.args]
        for arg, default in zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        ):
            defaults[arg.arg] = yield self.expr(default, env)
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[arg.arg] = yield self.expr(default, env)
        annotations: dict[str, Any] = {}
        if isinstance(node, ast.FunctionDef):
            every = [*positional, *arguments.kwonlyargs]
            for name, note in [*((a.arg, a.annotation) for a in every), ("return", node.returns)]:
                if note is not None:
                    annotations[name] = yield self.expr(note, env)
        short = node.name if isinstance(node, ast.FunctionDef) else "lambda"
        return Closure(
            node, f"{env.closure.name}.{short}", env.closure.file, env.closure.globals, env.closure.cells, env,
            signature_of(arguments, defaults), None, annotations, self.ctx.session.call_closure,
        )  # fmt: skip

    def call_node(self, node: ast.Call, env: Env) -> Work:
        function = yield self.expr(node.func, env)
        if function is static:
            return (yield self.static(node, env))
        args: list[Any] = yield self.each(node.args, env)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = yield self.expr(keyword.value, env)
            more = {keyword.arg: value} if keyword.arg is not None else dict(value)
            if twice := kwargs.keys() & more.keys():
                self.at(node, env)
                raise TypeError(f"got multiple values for keyword argument {min(twice)!r}")
            kwargs |= more
        self.at(node, env)
        if function is super and not args:
            return self.parent_class(env)
        if any(function is f for f in _FRAME_FUNCTIONS) or (any(function is f for f in (vars, dir)) and not args):
            raise CaptureError(f"{function.__name__}() cannot be captured", hint="name the variables directly")
        span = self.ctx.span
        self.call_site = node
        result = yield self.call(function, args, kwargs, env)
        self.ctx.span = span
        return result

    def static(self, node: ast.Call, env: Env) -> Work:
        """`ut.static(...)`: what is inside runs now, as plain Python, and its value is a constant."""
        self.at(node, env)
        if len(node.args) != 1 or node.keywords or isinstance(node.args[0], ast.Starred):
            raise CaptureError("ut.static takes one expression", hint="write ut.static(f(x))")
        self.statics += 1
        try:
            value = yield self.expr(node.args[0], env)
        finally:
            self.statics -= 1
        self.at(node, env)
        _refuse_traced_inside([value])
        return value

    def parent_class(self, env: Env) -> Any:
        """`super()` in a method: its class is in a cell that Python makes for it, its object the first argument."""
        for around in env.outwards():
            cell, names = around.closure.cells.get("__class__"), list(around.closure.signature.parameters)
            if cell is not None and names and names[0] in around.vars:
                return super(cell.cell_contents, around.vars[names[0]])
        raise CaptureError("super() outside of a method cannot be captured", hint="name the class: Base.method(self)")

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None = None) -> Work:
        """Call anything: an @ut.function becomes a call node, the user's Python is captured inline, the rest runs."""
        if self.statics:
            return self.call_now(function, args, kwargs)
        if isinstance(function, CalledBack):
            function = function.function
        if self.depth and (changes := written_by(function, args)) is not None:
            self.write_array(*changes, kwargs, self.written_at(function))
            return None
        function = needed(function, self.ctx, "'NoneType' object is not callable")
        if isinstance(function, handles.Dispatch):
            return (yield handles.dispatch(self, function, args, kwargs, env))
        if isinstance(function, ListMethod):
            return (yield call_method(self, function.items, function.name, args, kwargs))
        if isinstance(function, functools.partial):
            args, kwargs, function = [*function.args, *args], {**function.keywords, **kwargs}, function.func
        if isinstance(function, operator.methodcaller) and args:
            written: Any = function.__reduce__()[1]
            args, function = [*written[1:], *args[1:]], getattr(args[0], written[0])
        if not isinstance(function, (Closure, FunctionType, MethodType)) and any(map(_is_ours, args)):
            if function is getattr and isinstance(args[0], Handle):
                return (yield handles.get_attribute(self, args, env))
            is_done, found = handles.of_native(self, function, args) if _is_ours(args[0]) else (False, None)
            if is_done:
                return found
            if decorated(function) is None:
                args = [as_number(arg) for arg in args]
        if not isinstance(function, Traced):
            if (
                args
                and type(args[0]) is not Traced
                and (method := behind(self.ctx.session, function, args[0])) is not None
            ):
                return (yield self.call(method, args, kwargs))
            if iterates(function) and (len(args) == 1 or (function is not min and function is not max)):
                args = [self.iterated(a) for a in args]
        if function is builtins.print:  # others, Ray for one, put their own in its place while a program runs
            function = PRINT
        known = decorated(function)
        if known is not None:
            definition, bound = known
            return (yield self.ctx.session.call(definition, [*bound, *args], kwargs))
        has_options = any(map(is_option, args)) or (kwargs and any(map(is_option, kwargs.values())))
        if has_options and not self._is_users(function):
            return (yield call_with_option(self, function, args, kwargs, env))
        try:
            form = None if isinstance(function, Traced) else SPECIAL.get(function)
            on_lists = None if isinstance(function, Traced) else ON_LISTS.get(function)
        except TypeError:  # not hashable
            form = on_lists = None
        if on_lists is not None and any(map(is_run_time, args)):
            value = yield on_lists(self, args, kwargs, env)
            if value is not NotImplemented:
                return value
        if getattr(function, "__name__", "") in COMPARING:
            value = yield compare_items(self, function, args, kwargs)
            if value is not NotImplemented:
                return value
        if form is not None:
            return (yield form(self, args, kwargs, env))
        if isinstance(function, MethodType) and isinstance(function.__func__, (FunctionType, Closure)):
            args, function = [function.__self__, *args], function.__func__
        elif not isinstance(function, (type, FunctionType, Closure)):
            method = special(self.ctx.session, function, "__call__")
            if (known := decorated(method)) is not None:
                return (yield self.ctx.session.call(known[0], [function, *args], kwargs))
            if method is not None:
                args, function = [function, *args], method
        if _has_source(function) or is_user_generator(function):
            function = self.ctx.session.closure(function)
        if isinstance(function, Closure):
            if has_yield(function.node):
                refuse_generator(function)
                return self.owned.own(self.generate(function, args, kwargs))
            outlined = self.ctx.session.outlined(function, args, kwargs)
            if outlined is not None:
                return (yield self.ctx.session.call(outlined, args, kwargs))
            return (yield self.invoke(function, args, kwargs))
        if _is_users_class(function):
            return (yield self.construct(function, args, kwargs))
        if isinstance(function, _CACHED) and (is_user_code(function.__wrapped__) or decorated(function.__wrapped__)):
            return (yield self.call_cached(function, args, kwargs))
        if not callable(function):
            kind = f"traced {function.type}" if isinstance(function, Traced) else type(function).__name__
            raise CaptureError(
                f"{with_article(kind)} is not a function and cannot be called",
                hint=f"write ut.astype(x, ut.{function}), or float(x), int(x)"
                if isinstance(function, DType)
                else "check the name before the parentheses",
            )
        owner = getattr(function, "__self__", None)
        if isinstance(owner, (list, deque)) and function.__name__ == "extend" and any(map(is_run_time, args)):
            self.owned.let_fit(owner, (yield self.collected(args[0])))
        if any(isinstance(a, GrowingList) for a in (*args, *kwargs.values())):
            args, kwargs = with_arrays(function, args, kwargs)
        return self.call_native(function, args, kwargs)

    def _is_users(self, function: Any) -> bool:
        """Is what it calls the user's own Python?"""
        return (
            isinstance(function, (Closure, MethodType, _CACHED))
            or _is_users_class(function)
            or _has_source(function)
            or is_user_generator(function)
            or special(self.ctx.session, function, "__call__") is not None
        )

    def collected(self, over: Any, function: Any = None) -> Work:
        """The items of something whose length is known only at run time as a list: growing.py."""
        return collected(self, over, function)

    def folded(self, function: Any, over: Any, start: Any) -> Work:
        """`functools.reduce` over something whose length is known only at run time."""
        return folded(self, function, over, start)

    def repeat(self, count: Any, work: Callable[[Any], Any]) -> Work:
        """A loop of the graph that does something for each number below a count."""
        return repeat(self, count, work)

    def call_now(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function as plain Python does, outside the capture."""
        _refuse_traced_inside([*args, *kwargs.values()])
        with capturing(None):
            return function(*args, **kwargs)

    def call_cached(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """A function under functools.cache: captured inline, once for the same arguments."""
        try:
            key = (function, tuple(args), tuple(sorted(kwargs.items())))
            is_known = key in self.cached
        except (TypeError, CaptureError):  # an argument without a hash: a traced one, perhaps
            return (yield self._call_once(function.__wrapped__, args, kwargs))
        if not is_known:
            value = yield self._call_once(function.__wrapped__, args, kwargs)
            if any(map(is_traced, tree.flatten(value, is_traced)[0])):
                return value
            self.cached[key] = value
            self.owned.disown(value)  # the cache keeps it for later calls
        return self.cached[key]

    def _call_once(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """A call that Python may leave out, if it has made the same one before: that must not show."""
        builder, span = self.ctx.open_builder, self.ctx.span
        written = len(builder.nodes)
        value = yield self.call(function, args, kwargs)
        if has_lasting_effect(builder.nodes[written:], self.ctx.session.graphs):
            raise CaptureError(
                "functools.cache leaves out calls that were made before, but a graph makes them all: "
                "this one prints, or changes a variable",
                span,
                hint="remove the cache",
            )
        return value

    def construct(self, cls: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """An object of a class of the user's: its `__new__`, `__init__` and `__post_init__` are captured inline."""
        new, init = cls.__new__, cls.__init__
        has_fields = is_generated(init) and dataclasses.is_dataclass(cls)
        make: Any = type(cls).__call__
        if is_user_code(make):
            raise CaptureError(
                f"`{cls.__name__}` is made by `{type(cls).__name__}.__call__`, a metaclass, which cannot be captured",
                hint="make the object outside of the function, and pass it as an argument",
            )
        if make is not type.__call__ or not (_has_source(new) or _has_source(init) or has_fields):
            return self.call_native(cls, args, kwargs)
        if _has_source(new):
            made = yield self.call(new, [cls, *args], kwargs)
        else:
            made = new(cls) if new is object.__new__ else new(cls, *args, **kwargs)
            self.owned.own(made)
        if isinstance(made, cls):
            if has_fields:
                yield self._fill(made, cls, args, kwargs)
            elif init is not object.__init__:
                yield self.call(init, [made, *args], kwargs)
        return made

    def _fill(self, made: Any, cls: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """What the `__init__` of a dataclass does."""
        bound = inspect.signature(cls.__init__).bind(made, *args, **kwargs)
        bound.apply_defaults()
        stored = {field.name for field in dataclasses.fields(cls)}
        only_for_init: list[Any] = []
        for field in cls.__dataclass_fields__.values():
            if field.name not in stored and field.name not in bound.arguments:
                continue  # a ClassVar
            value = bound.arguments.get(field.name, field.default) if field.init else field.default
            if field.default_factory is not dataclasses.MISSING and (
                not field.init or type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
            ):
                value = yield self.call(field.default_factory, [], {})
            if field.name not in stored:
                only_for_init.append(value)
            elif value is not dataclasses.MISSING and _has_source(cls.__setattr__):
                yield self.call(cls.__setattr__, [made, field.name, value], {})
            elif value is not dataclasses.MISSING:
                object.__setattr__(made, field.name, value)
        if hasattr(cls, "__post_init__"):
            yield self.call(cls.__post_init__, [made, *only_for_init], {})

    def call_native(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function that is not the user's own Python: ours, Python's or a library's."""
        if (text := method_of_text(function, args, kwargs)) is not None:
            return text
        refuse_text(function, args, kwargs)
        for value in (*args, *kwargs.values()):
            if _is_ours(value):
                handles.refuse_native(function, value)
        self._check_native(function, args, kwargs)
        if calls_back(function):
            args = [CalledBack(self, a) if callable(a) and not isinstance(a, Traced) else a for a in args]
            kwargs = {name: CalledBack(self, a) if callable(a) else a for name, a in kwargs.items()}
        session = self.ctx.session
        args = [session.seen_inside(value) for value in args]
        kwargs = {name: session.seen_inside(value) for name, value in kwargs.items()}
        session.hold(seen_by(function, (*args, *kwargs.values())))
        if args and getattr(function, "__name__", "") in _LOOKS_UP:
            self.hold_key(getattr(function, "__self__", None), args[0])
        if isinstance(function, type) and is_user_class(function):
            for name in ("__new__", "__init__", "__post_init__"):
                session.hold_code(getattr(function, name, None))
        elif isinstance(function, FunctionType) and not is_library_file(function.__code__.co_filename):
            session.hold_code(function)
        if (compute := on_traced(function, args, kwargs)) is not None:
            computed = compute(*args, **kwargs)
            computed = self.owned.adopt(computed)
            return self._with_views(function, args, kwargs, computed)
        module = getattr(function, "__module__", None)
        if module == "math" and any(map(holds_traced, args)):
            raise CaptureError(
                f"math.{function.__name__} cannot be captured for traced values",
                hint=instead_of_math(function.__name__),
            )
        function = of_ufunc(function, args, kwargs)
        try:
            result = function(*args, **kwargs)
            result = self.owned.adopt(result)
            return self._with_views(function, args, kwargs, result)
        except TypeError as fault:
            if isinstance(function, FunctionType) and str(module).startswith("undertow.frontend."):
                refuse_wrong_arguments(f"ut.{function.__name__}", inspect.signature(function), args, kwargs, None)
            self._let_through(function, args, kwargs, fault)
        except (AttributeError, ValueError, OverflowError) as fault:
            self._let_through(function, args, kwargs, fault)
        except CaptureError as fault:
            refuse_comparing(function, fault)
            raise
        except StopIteration:
            # It must not end the generator that we are in.
            raise CaptureError(
                "Python raised StopIteration: there is no next item", hint="pass a default, as in next(items, None)"
            ) from None

    def _let_through(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], fault: Exception) -> NoReturn:
        """Raise what plain Python raised for values that capture knows: an `except` of the user's may catch it."""
        refuse_traced(function, args, kwargs, fault)
        if not str(getattr(function, "__module__", "")).startswith("undertow."):
            self.thrown = fault
        raise fault

    def _with_views(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> Any:
        """The arrays that a function returns, as views of those that it got, or as arrays of their own."""
        owner = getattr(function, "__self__", None)
        arrays = [array for array in (owner, *args) if is_array(array)]
        if not arrays:
            return result
        are_views = gives_views(function, arrays, kwargs)
        if isinstance(result, Traced):
            if are_views and len(arrays) == 1 and isinstance(arrays[0], Traced):
                array = arrays[0]
                read = functools.partial(_again, function, args, kwargs, array)
                return shaped_view(result, array, getattr(function, "__name__", ""), read)
            return _as_view(result, arrays) if are_views else _as_array(result, arrays)
        if isinstance(result, (list, tuple)) and type(result) in (list, tuple):
            for part in result:
                if are_views:
                    _as_view(part, arrays)
        elif hasattr(type(result), "__next__"):
            self.aliases.iterates(result, arrays)
        return result

    def _check_native(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Refuse a call whose effect or result would be frozen in the graph."""
        if not self.depth:
            return  # the block of a SubGraph, which is plain Python
        refuse_in_place(function, args, kwargs)
        changes = changed_by(function, args)
        if changes is not None and not isinstance(changes[0], Traced):
            more = args[-1:] if changes[1] in ("append", "insert") else ()
            self.owned.change(changes[0], self.written_at(function), more=more)
            if isinstance(changes[0], np.ndarray):
                raise CaptureError(
                    f"`{changes[1]}` changes an array in place, which cannot be captured",
                    hint="create a new one, as np.sort(x), np.full(n, value) and ut.where do",
                )
        elif not is_pure(function) and not hasattr(type(function), "__undertow_capture__"):
            written = "" if self.call_site is None else ast.unparse(self.call_site.func)
            has_traced = any(map(holds_traced, (*args, *kwargs.values())))
            what, hint = why_refused(function, written, has_traced)
            raise CaptureError(what, hint=hint)
        if not any(function is f for f in _LOOKS_ONLY):
            for value in (*args, *kwargs.values()):
                if hasattr(type(value), "__next__") and (changes is None or value is not changes[0]):
                    self.owned.change(value, "")

    def written_at(self, function: Any) -> str:
        """How the user wrote the thing that a call changes."""
        node = self.call_site
        if node is None:
            return ""
        owner = getattr(function, "__self__", None)
        if owner is None or isinstance(owner, ModuleType):
            return ast.unparse(node.args[0]) if node.args else ""
        return ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""

    def invoke(
        self,
        closure: Closure,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        result: Callable[[Any], Any] | None = None,
        is_inline: bool = True,
    ) -> Work:
        """Capture a plain Python function inline, or as a graph of its own; `result` checks what it returns."""
        refuse_unsupported(closure)
        caller = self.ctx.span
        values = bind_arguments(closure, args, kwargs, caller, self.ctx.session.default)
        called_at = caller if is_inline and self.depth < _SHOWN_DEPTH else None
        made = self.owned.count()
        env = Env(closure, closure.local, closure.env, values, result=result, called_at=called_at, made=made)
        if is_inline and self.depth:
            if recurs_at_run_time(self.aliases.envs, closure, values, self.ctx):
                self.ctx.session.outline_recursion(closure)
            env.region, env.given = region_of(self.ctx), dict(values)
        builder = self.ctx.open_builder
        around = builder.device
        if is_inline and (device := device_of(closure)) is not None:
            refuse_replicas(closure, device)
            builder.device = device
        self.depth += 1
        self.aliases.envs.append(env)
        if self.depth > _INLINE_DEPTH:
            raise _too_deep([open_.closure for open_ in self.aliases.envs])
        try:
            if isinstance(closure.node, ast.Lambda):
                return (yield self.expr(closure.node.body, env))
            return (yield self.run_body(closure.node, env))
        except Exception as fault:
            if caller is not None and caller.place != closure.span.place:  # else Python's own traceback shows the call
                note_caller(fault, self.ctx.span, caller)
            raise
        finally:
            builder.device = around
            self.depth -= 1
            self.aliases.envs.remove(env)

    def generate(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> CapturedGenerator:
        """Capture a generator inline: it runs when it is asked for items."""
        values = bind_arguments(closure, args, kwargs, self.ctx.span)
        env = Env(closure, closure.local, closure.env, values)

        def work() -> Work:
            self.aliases.envs.append(env)
            try:
                return (yield self.run_body(closure.node, env))  # type: ignore[arg-type]
            finally:
                self.aliases.envs.remove(env)

        return CapturedGenerator(self.ctx, work(), closure.name)

    def hand_over(self, node: ast.Yield | ast.YieldFrom, env: Env) -> Work:
        """`yield` in a captured generator."""
        value = None if node.value is None else (yield self.expr(node.value, env))
        self.at(node, env)
        if isinstance(node, ast.Yield):
            yield Yielded(value)
            return None
        items = self.iterate(value, self.span(node, env))
        while True:
            try:
                item = next(items)
            except StopIteration as end:
                return end.value
            yield Yielded(item)

    def run_body(self, node: ast.FunctionDef, env: Env) -> Work:
        raise NotImplementedError  # branches.py

    def run(self, cell: Any, stop: Any, env: Env) -> Work:
        raise NotImplementedError  # branches.py


class CalledBack:
    """A function that code other than the user's calls, as `map` and `sorted` do: its calls are captured, too."""

    __slots__ = ("function", "interp")

    def __init__(self, interp: Interpreter, function: Any) -> None:
        self.interp, self.function = interp, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.interp.call_site = None
        return drive(self.interp.call(self.function, args, kwargs))


def _again(function: Any, args: Sequence[Any], kwargs: dict[str, Any], before: Traced, array: Traced) -> Any:
    """The same call for another array."""
    if getattr(function, "__self__", None) is before:
        return getattr(array, function.__name__)(*args, **kwargs)
    return function(*(array if value is before else value for value in args), **kwargs)


def _as_view(value: Any, arrays: list[Any]) -> Any:
    if isinstance(value, Traced) and value.type.rank and not any(value is array for array in arrays):
        value.base = tuple(root for array in arrays for root in roots_of(array))
    return value


def _as_array(value: Traced, arrays: list[Any]) -> Traced:
    """A copy, for those who change it in place."""
    is_held = value.base or any(value is array for array in arrays)
    copy: Traced = emit("identity", [value])[0] if is_held else value
    return copy


def _is_ours(value: Any) -> bool:
    return isinstance(value, handles.OURS)


def _decorating(name: str) -> str:
    short = name.rpartition(".")[2]
    return f"write it above `{name}`, or `{short} = ut.function({short})`, and annotate the result"


def _too_deep(open_: Sequence[Closure]) -> CaptureError:
    """Plain Python that goes on and on. Who is blamed is a `def`: lambdas that call each other were made by one."""
    last, times = open_[-1], _INLINE_DEPTH
    name = last.name
    hint = _decorating(name)
    if isinstance(last.node, ast.Lambda):
        hint = "write the lambda as a `def`, and decorate that"
        defined = Counter(closure.name for closure in open_ if not isinstance(closure.node, ast.Lambda))
        made_by, often = max(defined.items(), key=operator.itemgetter(1), default=(name, 0))
        if often > _SHOWN_DEPTH:
            name, times, hint = made_by, often, _decorating(made_by)
    return CaptureError(
        f"`{name}` calls itself, directly or through others, more than {times} times",
        hint=f"end it with a base case; if it is as deep as that, it needs @ut.function: {hint}",
    )


def _is_users_class(function: Any) -> bool:
    return isinstance(function, type) and is_user_class(function)


def _has_source(function: Any) -> bool:
    return is_user_code(function) and not is_generated(function)


def _refuse_traced_inside(values: Sequence[Any]) -> None:
    for leaf in tree.flatten(list(values), is_traced)[0]:
        if isinstance(leaf, Traced):
            raise CaptureError(
                f"ut.static(...) runs when the function is captured, where a traced {leaf.type} has no value yet",
                hint="only what does not depend on the function's arguments can be static",
            )


HANDLERS.update({
    ast.Lambda: Interpreter.make_closure, ast.Call: Interpreter.call_node, ast.Yield: Interpreter.hand_over,
    ast.YieldFrom: Interpreter.hand_over,
})  # fmt: skip
# Functions that behave differently in a capture: Python's, and those that forms.py adds.
SPECIAL = dict(PYTHON)
