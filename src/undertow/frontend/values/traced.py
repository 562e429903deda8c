"""Traced values: what a captured function computes with while its graph is being written.

A `Traced` stands for a token that will exist at run time. Its operators write nodes. `emit` is the only
way to the builder; with no traced operand it computes at once, with the reference kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Fault, InternalError, Span, TypeMismatch, kind_of, with_article
from undertow.frontend.syntax.calling import is_user_class
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.session import Session
from undertow.ir.graph import EMPTY, Attrs, Const, Operand, Port
from undertow.ops.op import CATALOGUE, Op, find
from undertow.tracebacks import boundary
from undertow.types import DType, Type, bool_, dtype_of, said, type_of


class Context:
    """The current state of a capture: the builder that is being written to, and the user's line."""

    __slots__ = ("builder", "session", "span")

    is_plain_python = False  # does the user's Python run as it is, in the block of a SubGraph?
    # Hints for where Python needs the truth of a traced value, a list needs a number, NumPy needs an array.
    hints: Mapping[str, str] = {
        "truth": "test it directly in an @ut.function, with `if`, `while`, `and`, `or`, `not` or ut.where: "
        "built-in and library functions cannot test it",
        "index": "use functions of ut, such as ut.zeros(n); index arrays with it, not lists",
        "array": "use functions of ut, such as ut.stack or ut.asarray, instead of np.array",
    }

    def __init__(self, session: Session) -> None:
        self.session = session
        self.builder: Builder | None = None
        self.span: Span | None = None

    def give(self, value: Any) -> Any:
        """The result of a call, in the form in which the current API shows values."""
        return value

    @property
    def open_builder(self) -> Builder:
        if self.builder is None:
            raise InternalError("nothing is being captured")
        return self.builder


_CONTEXT: ContextVar[Context | None] = ContextVar("undertow_capture", default=None)


def context(operands: Sequence[Any] = ()) -> Context | None:
    """The current capture of this thread, or the one that an operand belongs to, if any."""
    current = _CONTEXT.get()
    if current is not None and current.builder is not None:
        return current
    for value in operands:
        if isinstance(value, Traced) and value.builder.context is not None:
            own: Context = value.builder.context
            return own
    return current


@contextlib.contextmanager
def capturing(new: Context | None) -> Iterator[None]:
    """Make a capture the current one."""
    token = _CONTEXT.set(new)
    try:
        yield
    finally:
        _CONTEXT.reset(token)


# The public functions, by name, that operators and methods of traced values call; filled by functions/public.py.
FUNCTIONS: dict[str, Callable[..., Any]] = {}
# NumPy's functions -> what computes them on traced values; filled by functions/as_numpy.py.
NUMPY: dict[Any, Callable[..., Any]] = {}
_NUMPY_HINT = "use functions of ut, which follow the array API standard, or compute it outside of the function"


class Traced:
    """A value that exists at run time: a port of a graph in the making.

    It `is_weak` where it is one of several Python numbers, or computed from such by Python's operators alone: beside
    another value it takes that one's dtype, as they do.
    """

    # `view` and `views` are set where there are any: see views.py.
    __slots__ = ("__weakref__", "base", "builder", "is_weak", "port", "type", "view", "views")

    view: Any
    views: list[Any]

    def __init__(self, builder: Builder, port: Port, is_weak: bool = False) -> None:
        self.builder = builder
        self.port = port
        self.type = builder.type_of(port)
        self.is_weak = is_weak
        self.base: tuple[Any, ...] = ()  # the arrays that it may be, or be a view of; none: an array of its own

    # -- what it is ----------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.rank

    @property
    def shape(self) -> tuple[Any, ...]:
        """The dimensions; one that is known only at run time is a traced i64."""
        return tuple(d if isinstance(d, int) else length(self, axis) for axis, d in enumerate(self.type.shape))

    @property
    def size(self) -> Any:
        return FUNCTIONS["size"](self)

    @property
    def T(self) -> Any:
        return FUNCTIONS["permute_dims"](self, tuple(reversed(range(self.ndim))))

    @property
    def at(self) -> Any:
        """`x.at[i].set(v)`, as in JAX: a new array."""
        return FUNCTIONS["at"](self)

    def __undertow_repr__(self) -> str:
        """For our own messages."""
        return f"<traced {self.type}>"

    def __repr__(self) -> str:
        current = _CONTEXT.get()
        if current is not None and current.builder is not None and not current.is_plain_python:
            raise self._unknown(
                f"the text of a traced {self.type} is known only at run time",
                'print it with print(x), or with an f-string: print(f"x is {x}")',
            )
        return self.__undertow_repr__()

    # -- what Python cannot do with it ---------------------------------------------------------------------

    def _unknown(self, what: str, hint: str) -> CaptureError:
        """The error of Python code that needs a value now which is known only at run time."""
        if not self.builder.is_open:
            return used_too_late(self)
        if (current := context([self])) is not None:
            current.session.needs_now(self)
        return CaptureError(what, hint=hint)

    def __bool__(self) -> bool:
        hints = (context([self]) or Context).hints
        raise self._unknown(f"the truth of a traced {self.type} is known only at run time", hints["truth"])

    def __index__(self) -> int:
        hints = (context([self]) or Context).hints
        raise self._unknown(f"a traced {self.type} is used where Python needs a number now", hints["index"])

    def __int__(self) -> int:
        raise self._unknown(f"int() of a traced {self.type} is known only at run time", "use ut.astype(x, ut.i64)")

    def __float__(self) -> float:
        raise self._unknown(
            f"float() of a traced {self.type} is known only at run time",
            "use ut.astype(x, ut.f64), and functions of ut instead of other libraries",
        )

    def __complex__(self) -> complex:
        raise self._unknown(f"complex() of a traced {self.type} is known only at run time", "use ut.astype(x, ut.c128)")

    def __copy__(self) -> Traced:
        return Traced(self.builder, self.port, self.is_weak)

    def __deepcopy__(self, _: Any) -> Traced:
        return self.__copy__()

    def __hash__(self) -> int:
        raise self._unknown(
            f"a traced {self.type} cannot be a set element or a dict key: its value is known only at run time",
            "keep a flag or a value for each number in an array: seen = np.zeros(size, bool), seen[n] = True, "
            "if seen[n]; or keep a list: n in items",
        )

    def __array__(self, *_: Any, **__: Any) -> Any:
        hints = (context([self]) or Context).hints
        raise self._unknown(f"a traced {self.type} has no NumPy value: it is known only at run time", hints["array"])

    def __len__(self) -> int:
        if not self.type.shape:
            raise self._unknown(f"{said(self.type)} is a single number and has no length", "len() takes an array")
        if not isinstance(self.type.shape[0], int):
            raise self._unknown("this length is known only at run time", "use x.shape[0], a traced i64")
        return self.type.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.type.shape:
            raise self._unknown(
                f"{said(self.type)} is a single number and cannot be iterated over",
                "write `for i in range(n)` to count up to it",
            )
        if not isinstance(self.type.shape[0], int):
            raise self._unknown(
                f"{said(self.type)} cannot be iterated over or unpacked: its length is known only at run time",
                "loop with `for i in range(x.shape[0])` and use x[i], or use ut.map",
            )
        return (self[i] for i in range(self.type.shape[0]))

    def __contains__(self, item: Any) -> bool:
        raise self._unknown(
            f"`in` cannot search {said(self.type)}: its elements are known only at run time",
            "write ut.any(x == value) instead of `in`",
        )

    def __setitem__(self, key: Any, value: Any) -> None:
        raise self._unknown(
            "code that is not captured changes a traced array",
            "write the assignment in the captured function: x[i] = v",
        )

    def __delitem__(self, key: Any) -> None:
        raise self._unknown("a traced array cannot be changed in place", "create a new one, e.g. with a slice")

    # -- operators -----------------------------------------------------------------------------------------

    def _apply(self, name: str, *operands: Any) -> Any:
        """Apply the public function behind a Python operator."""
        type_ = self.type
        for other in operands:
            if other.__class__ is not Traced and isinstance(other, (list, tuple, range)) and not type_.shape:
                _refuse_list(name, other, self)
        if type_.dtype.kind == "bool":
            if not type_.shape and name == "bitwise_invert":
                raise CaptureError(
                    "`~` of a single bool is -1 or -2 in Python", hint="write `not x`, or ut.logical_not(x)"
                )
            if _are_boolean_arrays(operands) and name in _ufuncs():
                return NUMPY[_ufuncs()[name]](*operands)
        result = FUNCTIONS[name](*operands)
        if isinstance(result, Traced) and result.dtype.kind != "bool" and all(map(stays_weak, operands)):
            return Traced(result.builder, result.port, is_weak=True)
        return result

    def __getitem__(self, key: Any) -> Any:
        return FUNCTIONS["__getitem__"](self, key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            return FUNCTIONS["ufunc_method"](ufunc, method, inputs, kwargs)
        return call_numpy(ufunc, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return call_numpy(func, args, kwargs)

    def __pos__(self) -> Any:
        return self._apply("positive", self)


def stays_weak(value: object) -> bool:
    """Is it a Python number, or one that is chosen at run time?"""
    if isinstance(value, Traced):
        return value.is_weak
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def _refuse_list(name: str, other: Any, scalar: Traced) -> None:
    """A list beside a single number: an error in Python, except that `==` is False and `*` repeats the list."""
    kind = type(other).__name__
    raise CaptureError(
        f"Python does not {name.replace('_', ' ')} a {kind} and a single number by element, here {said(scalar.type)}",
        hint=f"make an array of the {kind} first: ut.asarray([1, 2])",
    )


def _are_boolean_arrays(operands: Sequence[Any]) -> bool:
    """Are all operands booleans, and is one an array? Then operators are NumPy's; on single ones they are Python's."""
    types = [type_of(v) if isinstance(v, np.ndarray) else getattr(v, "type", None) for v in operands]
    are_booleans = (
        isinstance(v, (bool, np.bool_)) if t is None else t.dtype == bool_ for v, t in zip(operands, types, strict=True)
    )
    return all(are_booleans) and any(t is not None and t.shape for t in types)


@cache
def _ufuncs() -> dict[str, Any]:
    """Our public function -> NumPy's ufunc."""
    return {name: function for function, name in numpy_names().items() if isinstance(function, np.ufunc)}


@cache
def numpy_names() -> dict[Any, str]:
    """NumPy function -> our public function: the one of the same name, or the one that a row gives."""
    same = {getattr(np, name): name for name in FUNCTIONS if hasattr(np, name)}
    return same | {getattr(np, name): row.public for row in CATALOGUE.values() for name in row.names("np.")}


# What to write instead of functions of NumPy's that have no counterpart.
_INSTEAD: Mapping[str, str] = {
    **dict.fromkeys(("partition", "nanpartition"), "np.sort(x) is a partition too, of which every element is known"),
    "argpartition": "np.argsort(x) is a partition too, of which every element is known",
    "unique_values": "np.unique(x) gives the same values in order; NumPy leaves open in which order these are",
    "roots": "the roots may be complex, and how many there are depends on the values: search for one in a loop",
    **dict.fromkeys(("polymul", "polydiv"), "np.convolve(p, q) multiplies, and keeps zeros in front"),
    **dict.fromkeys(("nanquantile", "nanpercentile"), "take them of what is known: np.quantile(x[~np.isnan(x)], q)"),
    **dict.fromkeys(("frompyfunc", "vectorize"), "captured functions have a map: f.map(xs), or ut.map(f, xs) in one"),
    "bitwise_count": "count in a loop, `while n: n &= n - 1; count += 1`, or map such a function over the array",
    "packbits": "bits weigh powers of two: np.sum(x * 2 ** np.arange(8)[::-1])",
    "histogram2d": "number the cells, and count: np.bincount(row * columns + column)",
    "apply_over_axes": "apply the function to several axes: np.sum(x, axis=(0, 1))",
}  # fmt: skip


def call_numpy(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of NumPy's with traced values somewhere in its arguments."""
    row = NUMPY.get(function) if isinstance(function, Hashable) else None
    if row is None:
        name = "vectorize" if isinstance(function, np.vectorize) else getattr(function, "__name__", "")
        hint = _INSTEAD.get(name, _NUMPY_HINT)
        raise CaptureError(f"{numpy_name(function)} cannot be captured", hint=hint)
    return row(*args, **kwargs)


def numpy_name(function: Any) -> str:
    """A function of NumPy's as users write it.

    >>> numpy_name(np.linalg.norm)
    'np.linalg.norm'
    """
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1)}.{getattr(function, '__name__', type(function).__name__)}"


_COMPARISONS = frozenset(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"))


def _install() -> None:
    """Add the operators and methods that rows declare."""

    def forward(name: str) -> Any:
        return lambda self, *others: self._apply(name, self, *others)

    def backward(name: str) -> Any:
        return lambda self, other: self._apply(name, other, self)

    def method(name: str) -> Any:
        return lambda self, *args, **kwargs: FUNCTIONS[name](self, *args, **kwargs)

    for row in CATALOGUE.values():
        for dunder in row.names("__"):
            setattr(Traced, f"__{dunder}", boundary(forward(row.public)))
            if row.arity == 2 and f"__{dunder}" not in _COMPARISONS:
                setattr(Traced, f"__r{dunder}", boundary(backward(row.public)))
        for name in row.names("."):
            made = boundary(method(row.public))
            made.__name__ = name
            setattr(Traced, name, made)


_install()


# -- writing nodes -----------------------------------------------------------------------------------------


def is_basic(key: Any) -> bool:
    """Does an index with this key give a view? (An array of integers gives a copy.)"""
    parts = key if isinstance(key, tuple) else (key,)
    return not any(isinstance(p, (list, np.ndarray)) or (isinstance(p, Traced) and p.type.rank) for p in parts)


def roots_of(value: Any) -> tuple[Any, ...]:
    """The arrays that a value may be, or be a view of, by identity."""
    if isinstance(value, Traced):
        return value.base or (value,)
    while isinstance(value, np.ndarray) and isinstance(value.base, np.ndarray):
        value = value.base
    return (value,)


def is_traced(value: object) -> bool:
    return isinstance(value, Traced)


def used_too_late(value: Traced) -> CaptureError:
    """The error of a value that outlived the capture that it belongs to."""
    if value.builder.is_block:
        return CaptureError(
            f"a traced {value.type} of the SubGraph `{value.builder.name}` is used outside its block",
            hint=f"pass it to `output` in the block, and call `{value.builder.name}` outside",
        )
    name = value.builder.nodes[value.port.node].short_name
    return CaptureError(
        f"the traced {value.type} `{name}` of `{value.builder.name}` is used after its function was captured",
        hint="do not keep traced values in globals, attributes or caches: return them",
    )


def read(value: Any) -> Any:
    """The current value of a variable; anything else as it is."""
    return value.__undertow_read__() if hasattr(type(value), "__undertow_read__") else value


def operand(value: Any) -> Operand:
    """A traced or NumPy value as an operand of the current graph."""
    if isinstance(value, Traced):
        current = context([value])
        if current is None or current.builder is None or not value.builder.is_open:
            raise used_too_late(value)
        return current.session.resolve(value)
    if isinstance(value, np.generic):
        kind: Any = type(value)
        return _scalar_constant(kind, value.tobytes())
    return Const(value)


@lru_cache(1024)
def _scalar_constant(kind: Any, bits: bytes) -> Const:
    """A constant that many nodes may share: making one takes longer than all else about a node."""
    return Const(np.frombuffer(bits, kind)[0])


def emit(op: str, operands: Sequence[Any], **attrs: Any) -> tuple[Any, ...]:
    """Apply an operator: write a node if an operand is traced, else compute at once."""
    row = find(op)
    packed = Attrs(**attrs) if attrs else EMPTY
    current = context(operands)
    in_capture = current is not None and current.builder is not None
    # The first test is the quick one, and nearly always enough; there are subclasses.
    is_traced = Traced in map(type, operands) or any(isinstance(x, Traced) for x in operands)
    if not is_traced and not (in_capture and row.effect):
        values = [np.asarray(x)[()] for x in operands]
        types = row.type([Type(dtype_of(v.dtype), v.shape) for v in values], packed)
        try:
            with np.errstate(all="ignore"):
                results = row.eval(values, packed)
            return tuple(np.asarray(r, t.dtype.numpy)[()] for r, t in zip(results, types, strict=True))
        except Fault:
            if not in_capture:
                raise  # else it is a fault of the run, if the run comes here at all
    if current is None or current.builder is None:
        raise used_too_late(next(x for x in operands if isinstance(x, Traced)))
    return write(current, row, operands, packed)


def length(value: Any, axis: int) -> Traced:
    """The length of an axis that is known only at run time: an integer of Python's."""
    found: Traced = emit("dim", [value], axis=axis)[0]
    found.is_weak = True
    return found


def write(
    current: Context, row: Op, operands: Sequence[Any], attrs: Attrs, name: str = "", controls: tuple[Port, ...] = ()
) -> tuple[Traced, ...]:
    """Write the node of an operator, and return its results."""
    builder = current.open_builder
    resolve = current.session.resolve
    ports = [resolve(x) if isinstance(x, Traced) and x.builder.is_open else operand(x) for x in operands]
    types = row.type([builder.type_of(p) for p in ports], attrs)
    number = builder.add(row.name, ports, types, attrs, current.span, name, controls)
    return tuple([Traced(builder, Port(number, k)) for k in range(len(types))])


def effect(op: str, operands: Sequence[Any], **attrs: Any) -> None:
    """Apply an operator that acts on the world, in program order."""
    current = context(operands)
    if current is None or current.builder is None:
        emit(op, operands, **attrs)
        return
    before = current.session.effect_token()
    (token,) = write(current, find(op), operands, Attrs(**attrs), controls=(before,))
    current.builder.effect = token.port


def has_traced(key: Any) -> bool:
    """Is there a traced value in this key?"""
    stack = [key]
    while stack:
        item = stack.pop()
        if isinstance(item, Traced):
            return True
        if isinstance(item, (tuple, list)):
            stack.extend(item)
        elif isinstance(item, slice):
            stack.extend((item.start, item.stop, item.step))
    return False


class IndexedArray(np.ndarray[Any, Any]):
    """A NumPy array that plain Python may index by traced values, as in the block of a SubGraph.

    NumPy's own arrays need the number now.
    """

    def __getitem__(self, key: Any) -> Any:
        return FUNCTIONS["__getitem__"](np.asarray(self), key) if has_traced(key) else super().__getitem__(key)


def not_a_value(value: Any, array: Any = None) -> TypeMismatch:
    """The error of a value that no operator takes."""
    shown = "a function" if callable(value) and not isinstance(value, type) else kind_of(value)
    if isinstance(value, str) and len(repr(value)) < 40:
        shown = f"{value!r}, {shown},"
    elif value is None:
        shown = "None"
    elif isinstance(array, np.ndarray) and array.ndim:
        holds = "things that are not numbers" if array.dtype.kind == "O" else array.dtype.name
        shown = f"{'an array' if isinstance(value, np.ndarray) else shown} of {holds}"
    return TypeMismatch(
        f"{shown} is not a value that Undertow can compute with",
        hint="use numbers, arrays of bool, i32, i64, f32, f64, c64 or c128, and lists of them",
    )


_SAYS_NOTHING = frozenset((
    "__module__", "__doc__", "__dict__", "__weakref__", "__slots__", "__qualname__", "__annotations__", "__annotate__",
    "__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotations_cache__", "__orig_bases__",
    "__new__", "__array_finalize__", "__parameters__",
))  # fmt: skip


@lru_cache(1024)
def has_own_methods(kind: type) -> bool:
    """Does a class of the user's that extends numbers or arrays define anything of its own?"""
    return any(is_user_class(base) and not _SAYS_NOTHING.issuperset(vars(base)) for base in kind.__mro__)


def refuse_subclass(array: Any) -> None:
    """Refuse arrays of a class whose arithmetic is its own: masks and units would be lost, `*` mean something else."""
    kind = type(array)
    is_own = kind.__array_ufunc__ is not np.ndarray.__array_ufunc__ or kind.__mul__ is not np.ndarray.__mul__
    is_own |= has_own_methods(kind)  # type: ignore[arg-type]
    if is_own or isinstance(array, np.ma.MaskedArray):
        filled = "x.filled(0), and the mask x.mask" if isinstance(array, np.ma.MaskedArray) else "np.asarray(x)"
        raise TypeMismatch(
            f"{with_article(kind.__name__)} computes in its own way, which graphs do not know",
            hint=f"pass a plain array: {filled}",
        )


def cast(value: Any, dtype: DType) -> Any:
    """A NumPy array of a dtype. 1e300 is inf as f32, silently, as in arithmetic."""
    with np.errstate(all="ignore"):
        return np.asarray(value, dtype.numpy)


def constant(value: Any, dtype: DType | None = None) -> Any:
    """A Python number, list or array as a NumPy value of one of our dtypes."""
    if isinstance(value, (np.ndarray, np.generic)):
        if type(value) is not np.ndarray and isinstance(value, np.ndarray):
            refuse_subclass(value)
        array = np.asarray(value)
    elif isinstance(value, float):
        array = np.float64(value)  # type: ignore[assignment]
    else:
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, OverflowError):
            raise TypeMismatch(
                f"{kind_of(value)} cannot be converted to an array",
                hint="rows must have the same length and contain only numbers",
            ) from None
    if dtype is not None:
        return cast(array, dtype)[()]
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8):
        raise not_a_value(value, array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "iu" and array.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        if array.dtype == np.dtype(np.uint64):  # beside other integers NumPy makes it a float: widening would differ
            raise TypeMismatch(
                f"{'an array of uint64' if array.ndim else 'a uint64'} is not a value that Undertow can compute with",
                hint="convert it with x.astype(np.int64), which holds numbers below 2**63",
            )
        return np.asarray(array, np.int64 if array.dtype.itemsize > 2 else np.int32)[()]
    if array.dtype == np.dtype(np.float16):
        return np.asarray(array, np.float32)[()]
    return array[()]
