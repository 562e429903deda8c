"""`tf.errors`: the classes of TensorFlow's errors. What a session or a graph raises is of one of them, and of ours.

try:
    sess.run(v)
except tf.errors.FailedPreconditionError:  # the variable has no value yet
    sess.run(tf.global_variables_initializer())
"""

from __future__ import annotations

import re
from typing import Any

import undertow.errors as ours

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED = range(8)
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS = range(
    8, 16
)
UNAUTHENTICATED = 16


class OpError(Exception):
    """The base of all errors of runs. `message` is what happened."""

    error_code = UNKNOWN

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "", error_code: int | None = None) -> None:
        super().__init__(message)
        self._said = message
        self._op = op
        self._node_def = node_def
        if error_code is not None:
            self.error_code = error_code

    @property
    def message(self) -> str:
        """What happened."""
        return str(getattr(self, "_said", None) or self)

    @property
    def op(self) -> Any:
        """The operation that failed, if it is known."""
        return getattr(self, "_op", None)

    @property
    def node_def(self) -> Any:
        """Its definition, if it is known."""
        return getattr(self, "_node_def", None)


def _row(name: str, code: int, doc: str) -> type[OpError]:
    def init(self: Any, node_def: Any = None, op: Any = None, message: str = "") -> None:
        OpError.__init__(self, node_def, op, message)

    return type(name, (OpError,), {"error_code": code, "__doc__": doc, "__module__": __name__, "__init__": init})


CancelledError = _row("CancelledError", CANCELLED, "The run was cancelled.")
UnknownError = _row("UnknownError", UNKNOWN, "Nobody knows.")
InvalidArgumentError = _row("InvalidArgumentError", INVALID_ARGUMENT, "An operation cannot handle its operands.")
DeadlineExceededError = _row("DeadlineExceededError", DEADLINE_EXCEEDED, "A run took longer than its `timeout`.")
NotFoundError = _row("NotFoundError", NOT_FOUND, "A file, or a function, is not there.")
AlreadyExistsError = _row("AlreadyExistsError", ALREADY_EXISTS, "It is there already.")
PermissionDeniedError = _row("PermissionDeniedError", PERMISSION_DENIED, "Access is denied.")
ResourceExhaustedError = _row("ResourceExhaustedError", RESOURCE_EXHAUSTED, "Calls too deep, or too much memory.")
FailedPreconditionError = _row("FailedPreconditionError", FAILED_PRECONDITION, "A variable has no value yet.")
AbortedError = _row("AbortedError", ABORTED, "The run was aborted.")
OutOfRangeError = _row("OutOfRangeError", OUT_OF_RANGE, "The input has come to its end.")
UnimplementedError = _row("UnimplementedError", UNIMPLEMENTED, "It is not implemented.")
InternalError = _row("InternalError", INTERNAL, "A fault of ours.")
UnavailableError = _row("UnavailableError", UNAVAILABLE, "A worker is lost.")
DataLossError = _row("DataLossError", DATA_LOSS, "A file is damaged.")
UnauthenticatedError = _row("UnauthenticatedError", UNAUTHENTICATED, "Whoever asks is not known.")

_CLASSES: tuple[type[OpError], ...] = (
    CancelledError, UnknownError, InvalidArgumentError, DeadlineExceededError, NotFoundError, AlreadyExistsError,
    PermissionDeniedError, ResourceExhaustedError, FailedPreconditionError, AbortedError, OutOfRangeError,
    UnimplementedError, InternalError, UnavailableError, DataLossError, UnauthenticatedError,
)  # fmt: skip
_BY_CODE = {kind.error_code: kind for kind in _CLASSES}

# What a run raises, the first row that fits.
_OF_RUNS: tuple[tuple[type[ours.UndertowError], type[OpError]], ...] = (
    (ours.Timeout, DeadlineExceededError),
    (ours.RecursionLimit, ResourceExhaustedError),
    (ours.FrameLimit, ResourceExhaustedError),
    (ours.WorkerLost, UnavailableError),
    (ours.InternalError, InternalError),
    (ours.RunError, InvalidArgumentError),
)


_NO_VALUE = re.compile(r"variable `(.*)` has no value yet")


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """The class of an error code."""
    return _BY_CODE[error_code]


def error_code_from_exception_type(cls: type[OpError]) -> int:
    """The error code of a class."""
    return cls.error_code


def of_kind(fault: Any, kind: type[Exception]) -> Any:
    """The same error, which is of this class, too."""
    if not isinstance(fault, kind):
        fault.__class__ = _joined(type(fault), kind)
    return fault


def of_run(fault: ours.UndertowError) -> None:
    """Make an error of a run one of TensorFlow's."""
    if not isinstance(fault, OpError):
        known = _NO_VALUE.match(fault.what)
        if known is not None:
            fault.what = f"Attempting to use uninitialized value {known[1]}: {fault.what}"
            of_kind(fault, FailedPreconditionError)
            return
        kind = next((theirs for own, theirs in _OF_RUNS if isinstance(fault, own)), None)
        if kind is not None:
            of_kind(fault, kind)


def of_graph(fault: ours.UndertowError) -> None:
    """Make an error of writing a graph a ValueError, as in TensorFlow."""
    if isinstance(fault, (ours.GraphError, ours.CaptureError)) and not isinstance(fault, (KeyError, OpError)):
        of_kind(fault, ValueError)


_JOINED: dict[tuple[type[Exception], type[Exception]], type[Exception]] = {}


def _joined(own: type[Exception], kind: type[Exception]) -> type[Exception]:
    if (own, kind) in _JOINED:
        return _JOINED[own, kind]

    def reduce(self: Exception) -> tuple[Any, ...]:
        known: Any = own.__reduce__(self)
        make, args = known[:2]
        return _again, (own if make is type(self) else make, args, kind), self.__dict__

    body = {"__doc__": own.__doc__, "__module__": own.__module__, "__reduce__": reduce}
    return _JOINED.setdefault((own, kind), type(own.__name__, (own, kind), body))


def _again(make: Any, args: tuple[Any, ...], kind: type[Exception]) -> Any:
    return of_kind(make(*args), kind)


__all__ = sorted([
    *(n for n, v in globals().items() if n[0] != "_" and n.isupper()),
    "OpError", *(kind.__name__ for kind in _CLASSES),
    "error_code_from_exception_type", "exception_type_from_error_code",
])  # fmt: skip
