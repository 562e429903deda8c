"""Which functions of others captured code may call: those on a list of pure ones, as data.

During capture such a call runs once, and its result becomes part of the graph. That is right for a function that
depends on its arguments alone and changes nothing. Of a clock, a file, a random number or a library that nobody looked
at it would be silently wrong, so these are refused, unless the user says `ut.static(...)`.
"""

from __future__ import annotations

import bisect
import builtins
import collections
import functools
import heapq
import itertools
import operator
import re
import sys
from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.syntax.calling import is_user_class
from undertow.frontend.values.traced import Traced
from undertow.ir.graph import FunctionGraph, Node
from undertow.ir.structure import SOWS
from undertow.ops.op import CATALOGUE

# Modules whose functions, classes and methods are pure, but for the exceptions below. Those with an underscore are the
# parts of these that are written in C.
_PURE_MODULES = frozenset((
    "abc", "base64", "binascii", "bisect", "builtins", "cmath", "collections", "colorsys", "copy", "dataclasses",
    "decimal", "difflib", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "html", "inspect",
    "itertools", "json", "keyword", "math", "numbers", "numpy", "operator", "re", "statistics", "string", "struct",
    "textwrap", "types", "typing", "typing_extensions", "undertow", "unicodedata", "zlib", "_bisect", "_collections",
    "_collections_abc", "_decimal", "_functools", "_hashlib", "_heapq", "_json", "_operator", "_pydecimal", "_sre",
    "_statistics", "_struct", "collections.abc", "datetime", "calendar", "array", "contextlib",
))  # fmt: skip
# What is not pure in them: a module, or a name in it.
_IMPURE = frozenset((
    "builtins.open", "builtins.input", "builtins.breakpoint", "builtins.__import__", "builtins.exec", "builtins.eval",
    "builtins.compile", "builtins.exit", "builtins.quit", "builtins.help", "builtins.memoryview",
    "datetime.now", "datetime.utcnow", "datetime.today", "inspect.currentframe", "inspect.stack",
    "decimal.getcontext", "decimal.setcontext", "decimal.localcontext", "_decimal.getcontext",
    "contextlib.redirect_stdout", "contextlib.redirect_stderr", "contextlib.chdir", "json.dump", "json.load",
    "numpy.random", "numpy.ctypeslib", "numpy.f2py", "numpy.testing", "numpy.distutils",
    *(f"numpy.{name}" for name in (
        "copyto", "fill_diagonal", "fromfile", "genfromtxt", "load", "loadtxt", "memmap", "place", "put",
        "put_along_axis", "putmask", "save", "savetxt", "savez", "savez_compressed", "set_printoptions", "setbufsize",
        "seterr", "seterrcall", "show_config", "show_runtime", "tofile", "dump", "open_memmap", "__enter__",
        "geterr", "geterrcall", "getbufsize", "get_printoptions", "printoptions",
    )),
))  # fmt: skip

_RANDOM = "ut.random draws anew in every run: ut.random.uniform(), ut.random.normal()"
_CLOCK = "take the time outside, and pass it as an argument"
_FILES = "read it before the call, and pass its contents as an argument"
_LOGGING = "print(...) writes a line in every run; or return the value, and log it in the caller"
_ARGUMENT = "compute it before the call, and pass it as an argument"
_DEBUG = 'run the function as plain Python, where it works: f.run(x, engine="python")'
_STATIC = "or keep what it gives at capture: ut.static(...)"
# What to write instead, by module.
_INSTEAD = {
    **dict.fromkeys(("random", "_random", "numpy.random", "secrets", "uuid", "os.urandom"), _RANDOM),
    **dict.fromkeys(("time", "datetime"), _CLOCK),
    **dict.fromkeys(
        ("io", "_io", "os", "posix", "pathlib", "shutil", "socket", "_socket", "subprocess", "urllib", "sqlite3", "csv",
         "_csv", "pickle", "_pickle", "glob", "tempfile", "http", "requests", "builtins.open", "numpy", "json"), _FILES,
    ),
    **dict.fromkeys(("logging", "warnings", "_warnings", "sys"), _LOGGING),
    "os.getenv": "os.environ[...] and os.environ.get(...) are read at each call",
    "builtins.breakpoint": _DEBUG,
    "builtins.input": "ask before the call, and pass the answer as an argument",
}  # fmt: skip

# Methods that change what they belong to, for the containers of Python.
MUTATORS = frozenset((
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert",
    "intersection_update", "move_to_end", "pop", "popitem", "popleft", "remove", "reverse", "rotate", "setdefault",
    "sort", "subtract", "symmetric_difference_update", "update", "__delitem__", "__iadd__", "__iand__", "__imul__",
    "__init__", "__ior__", "__isub__", "__ixor__", "__next__", "__setitem__", "__setstate__",
    # of arrays
    "byteswap", "fill", "itemset", "partition", "put", "resize", "setfield", "setflags",
    # of any object
    "__delattr__", "__setattr__", "send", "throw", "close",
))  # fmt: skip
# Functions that change their first argument.
_CHANGES_FIRST: frozenset[Any] = frozenset((
    builtins.next, builtins.setattr, builtins.delattr, operator.setitem, operator.delitem, operator.iadd, operator.iand,
    operator.iconcat, operator.ifloordiv, operator.ilshift, operator.imod, operator.imul, operator.imatmul,
    operator.ior, operator.ipow, operator.irshift, operator.isub, operator.itruediv, operator.ixor, heapq.heapify,
    heapq.heappush, heapq.heappop, heapq.heappushpop, heapq.heapreplace,
    bisect.insort, bisect.insort_left, bisect.insort_right,
))  # fmt: skip


# Functions that call a function that they are passed.
_CALLS_BACK: frozenset[Any] = frozenset((
    builtins.map, builtins.filter, builtins.sorted, builtins.min, builtins.max, builtins.iter, functools.reduce,
    functools.cmp_to_key, itertools.accumulate, itertools.dropwhile, itertools.filterfalse, itertools.groupby,
    itertools.starmap, itertools.takewhile, collections.defaultdict, heapq.merge, heapq.nlargest, heapq.nsmallest,
    bisect.bisect, bisect.bisect_left, bisect.bisect_right, bisect.insort, bisect.insort_left, bisect.insort_right,
    re.sub, re.subn, np.apply_along_axis, np.apply_over_axes, np.fromfunction, np.frompyfunc, np.piecewise,
    np.vectorize,
))  # fmt: skip


# Functions and methods, of NumPy and of ours, that give views of their arrays, or these arrays themselves.
_VIEWS = frozenset((
    "array_split", "asanyarray", "asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d",
    "broadcast_arrays", "broadcast_to", "diagonal", "dsplit", "expand_dims", "flip", "fliplr", "flipud", "hsplit",
    "matrix_transpose", "moveaxis", "permute_dims", "ravel", "real", "reshape", "rollaxis", "rot90", "slice_at",
    "slice_between", "split", "squeeze", "stop_gradient", "swapaxes", "transpose", "unstack", "view", "vsplit",
    "__getitem__", "getitem", "list", "tuple", "dict", "set", "sorted", "next",
))  # fmt: skip


_ITERATES: frozenset[Any] = frozenset((
    builtins.list, builtins.tuple, builtins.set, builtins.frozenset, builtins.sum, builtins.min, builtins.max,
    builtins.sorted, builtins.enumerate, builtins.zip, builtins.map, builtins.filter, builtins.any, builtins.all,
    collections.deque, functools.reduce, itertools.chain, itertools.islice, itertools.accumulate, itertools.product,
    itertools.combinations, itertools.permutations, itertools.pairwise, itertools.cycle, itertools.zip_longest,
))  # fmt: skip


def _is_among(function: Any, functions: frozenset[Any]) -> bool:
    try:
        return function in functions
    except TypeError:  # not hashable
        return False


def iterates(function: Any) -> bool:
    """Does it loop over its arguments?"""
    return _is_among(function, _ITERATES)


def gives_views(function: Any, arrays: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Does it return views of the arrays that it is passed?"""
    name = getattr(function, "__name__", "")
    if name in ("array", "astype"):
        return not kwargs.get("copy", True)
    return name in _VIEWS or (name == "diag" and arrays[0].ndim == 2)


def calls_back(function: Any) -> bool:
    """Does it call functions that it is passed?"""
    return _is_among(function, _CALLS_BACK) or getattr(function, "__name__", "") == "sort"


# Functions of NumPy that change an array.
_IN_PLACE = frozenset(("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask"))


# Functions of `operator` that do what `x += y` does; `inv` is no update of `nv`.
_UPDATES = frozenset(name for name in dir(operator) if name[0] == "i" and f"__{name[1:]}__" in dir(operator))


def _is_array(values: Sequence[Any]) -> bool:
    return any(isinstance(value, (Traced, np.ndarray)) and value.ndim for value in values)


def refuse_in_place(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse functions of NumPy that write into one of their arguments."""
    ufunc = function if isinstance(function, np.ufunc) else getattr(function, "__self__", None)
    what = ""
    if isinstance(ufunc, np.ufunc):
        if function is ufunc and len(args) > ufunc.nin:
            what = f"np.{ufunc.__name__} with an array for its result"
        elif function is not ufunc and function.__name__ == "at":
            what = f"np.{ufunc.__name__}.at"
    module, name = place_of(function)
    if kwargs.get("out") is not None and module.partition(".")[0] in ("numpy", "undertow"):
        what = f"{'np' if module.startswith('numpy') else 'ut'}.{name} with out="
    elif name in _IN_PLACE and module.partition(".")[0] == "numpy":
        what = f"np.{name}"
    elif (
        module == "_operator"
        and name in _UPDATES
        and args
        and isinstance(args[0], (Traced, np.ndarray))
        and args[0].ndim
    ):
        what = f"operator.{name}"
    if what:
        raise CaptureError(
            f"{what} changes an array in place, which cannot be captured",
            hint="assign the result to a variable: x = np.add(x, y); ut.where(mask, v, x) replaces elements",
        )


def changed_by(function: Any, args: Sequence[Any]) -> tuple[Any, str] | None:
    """What a call changes, and the name of the method that does; None if it changes nothing."""
    name = getattr(function, "__name__", "")
    if name in MUTATORS:
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (type, ModuleType)):
            return owner, name
        if (hasattr(function, "__objclass__") or is_generated(function)) and args:  # list.append(items, x)
            return args[0], name
    return (args[0], name) if args and _is_among(function, _CHANGES_FIRST) else None


def place_of(function: Any) -> tuple[str, str]:
    """The module that a function or class comes from, and its name there; of a method, those of its class."""
    name = getattr(function, "__name__", type(function).__name__)
    if isinstance(function, type):
        return function.__module__, name
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        owner = getattr(function, "__objclass__", None)
    if owner is not None and not isinstance(owner, type) and not isinstance(function, MethodType):
        kind = next((base for base in type(owner).__mro__ if name in vars(base)), type(owner))
        return kind.__module__, name
    if owner is not None:
        return (owner if isinstance(owner, type) else type(owner)).__module__, name
    return getattr(function, "__module__", None) or type(function).__module__, name


def is_pure(function: Any) -> bool:
    """May captured code call it? It is not the user's own Python."""
    module, name = place_of(function)
    return _is_pure(module, name) or is_generated(function) or (isinstance(function, type) and is_user_class(function))


@functools.lru_cache(maxsize=4096)
def _is_pure(module: str, name: str) -> bool:
    root = module.partition(".")[0]
    if root not in _PURE_MODULES and module not in _PURE_MODULES:
        return False
    if root == "datetime":
        module = root
    parts = module.split(".")
    inside = {".".join(parts[: k + 1]) for k in range(len(parts))}
    return not (inside & _IMPURE or f"{module}.{name}" in _IMPURE or f"{root}.{name}" in _IMPURE)


def is_generated(function: Any) -> bool:
    """Was it written by the standard library, as methods of dataclasses and named tuples are?"""
    if not isinstance(function, FunctionType) or not function.__code__.co_filename.startswith("<"):
        return False
    if str(function.__globals__.get("__name__")).startswith("namedtuple_"):
        return True
    written_in: str | None = getattr(function.__code__, "co_qualname", None)  # since 3.11
    is_special = function.__name__.startswith("__")
    return is_special if written_in is None else written_in.startswith("__create_fn__.")


# These iterate over what they are given, and hand objects in it on, unread.
_MOVERS = (
    enumerate, zip, list, tuple, reversed, len, iter, next, dict, map, filter, collections.deque,
)  # fmt: skip
_UNREAD = (isinstance, issubclass, type, callable, functools.partial)  # these look at no more than a class
_COMPARING = frozenset(("index", "count", "remove", "sort"))


def seen_by(function: Any, values: Sequence[Any]) -> list[Any]:
    """The objects that a function which is not captured looks into: among its arguments, and in lists of these."""
    if any(function is unread for unread in _UNREAD):
        return []
    holder = type(getattr(function, "__self__", None))
    is_method = holder in (list, dict, tuple, collections.deque) and function.__name__ not in _COMPARING
    is_mover = any(function is mover for mover in _MOVERS) or getattr(function, "__module__", None) == "itertools"
    if is_method:
        return list(values) if function.__name__ in ("extend", "update") else []
    if is_mover:
        return list(values)
    inside = [item for value in values if type(value) in (list, tuple) for item in value]
    return [*values, *inside]


_HEAP_TYPE = 1 << 9  # a flag of CPython's type objects: made by a class statement


def is_users(value: Any) -> bool:
    """Is it an object of a class of the user's?"""
    kind = type(value)
    return kind is not Traced and bool(kind.__flags__ & _HEAP_TYPE) and is_user_class(kind)


def is_foreign(value: Any) -> bool:
    """Is it a value of another library, such as a tensor?"""
    cls: Any = type(value)
    root = cls.__module__.partition(".")[0]
    return not (root in sys.stdlib_module_names or root in _PURE_MODULES) and not is_user_class(cls)


def refuse_foreign(*values: Any) -> None:
    """Refuse operators on values of other libraries: nobody knows what they do."""
    for value in values:
        if is_foreign(value):
            root = type(value).__module__.partition(".")[0]
            raise CaptureError(
                f"this is a {type(value).__name__} of {root}, which captured code cannot compute with",
                hint="convert it to a NumPy array before the call, and pass that as an argument",
            )


def why_refused(function: Any, written: str, has_traced: bool) -> tuple[str, str]:
    """The message and the hint for a call that captured code must not make, as the user wrote it."""
    module, name = place_of(function)
    root = module.partition(".")[0]
    short = written or f"{module}.{name}"
    hint = _INSTEAD.get(f"{root}.{name}", _INSTEAD.get(".".join(module.split(".")[:2]), _INSTEAD.get(root, "")))
    if name in ("write", "writelines", "flush"):
        hint = _LOGGING
    if has_traced:
        hint = hint or "write it with the functions of ut, or as a Python function of your own, which is captured too"
        return f"`{short}()` cannot be captured: it is not known what it does with values of the graph", hint
    if hint in (_RANDOM, _LOGGING, _DEBUG):
        return f"`{short}()` would run once, when the function is captured, and never when the graph runs", hint
    return (
        f"`{short}()` would run once, when the function is captured, and its result would never change",
        f"{hint or _ARGUMENT}, {_STATIC}",
    )


def has_lasting_effect(nodes: Sequence[Node], graphs: Mapping[str, FunctionGraph]) -> bool:
    """Do these nodes, or the functions that they call, print, assign or sow? A fault would be the same each time."""
    stack, seen = list(nodes), set[str]()
    while stack:
        node = stack.pop()
        row = CATALOGUE.get(node.op)
        if node.op in SOWS or (row is not None and row.effect and node.op not in ("assert", "raise")):
            return True
        callee = node.attrs.get("callee") or node.attrs.get("body")
        if isinstance(callee, str) and callee not in seen and callee in graphs:
            seen.add(callee)
            stack.extend(graphs[callee].nodes)
    return False
