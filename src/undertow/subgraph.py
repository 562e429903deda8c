"""`ut.SubGraph`: recursive functions as in Jeong et al., "Improving the Expressiveness of Deep Learning Frameworks with
Recursion" (EuroSys 2018), on the same library, passes and engines as `@ut.function`.

>>> import undertow as ut
>>> with ut.SubGraph() as fac:
...     n = fac.input(ut.i64)
...     fac.output(ut.cond(n == 0, lambda: 1, lambda: n * fac(n - 1)))
>>> int(fac(10))
3628800
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from undertow.api.function import Function
from undertow.errors import CaptureError, Span
from undertow.frontend.trace.block import Block
from undertow.frontend.trace.block_session import user_frame
from undertow.tracebacks import guarded


@guarded
class SubGraph(Function):
    """A function that a `with` block writes: plain Python that runs once, and may call the SubGraph itself.

    A call outside any block runs it; in a block or in an @ut.function, it becomes part of that. `run`, `map`,
    `graph` and `library` work as for functions. `returns=` says what it returns; it is needed only where the SubGraph
    is called before any branch of a `ut.cond` has said that: by the block of another one, or outside of branches.
    """

    __undertow_definition__: Block

    def __init__(self, *, returns: Any = None, name: str = "") -> None:
        frame = user_frame()
        span = Span("<unknown>", 1) if frame is None else Span(frame.f_code.co_filename, frame.f_lineno)
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".") if name):
            raise CaptureError(f"{name!r} cannot name a SubGraph", span, hint="use a Python identifier")
        super().__init__(Block(self, name, returns, span))
        del self.__wrapped__  # type: ignore[attr-defined]  # there is none: a stand-in without source
        self.__module__, self.__doc__ = __name__, None

    def __repr__(self) -> str:
        return f"<undertow subgraph {self.__undertow_definition__.name}>"

    def __get__(self, instance: Any, owner: Any = None) -> SubGraph:
        """Not a method: accessed through an instance, it is unchanged."""
        return self

    def __enter__(self) -> SubGraph:
        self.__undertow_definition__.enter()
        return self

    def __exit__(self, kind: object, fault: BaseException | None, trace: TracebackType | None) -> None:
        definition = self.__undertow_definition__
        definition.leave(fault, trace)
        self.__name__ = definition.name.rpartition(".")[2]
        self.__qualname__ = definition.name
        self.__signature__ = definition.closure.signature

    def input(self, type: Any, name: str = "") -> Any:
        """Declare a parameter and return its traced value. Its name is `name`, or that of its variable."""
        return self.__undertow_definition__.input(type, name)

    def output(self, *values: Any) -> None:
        """Set the results: one value or several; each a traced value, a number, or a container of them."""
        self.__undertow_definition__.output(values[0] if len(values) == 1 else values)
