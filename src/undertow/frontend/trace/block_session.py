"""The session of SubGraphs: everything that the outermost block writes, with the blocks and functions inside it.

The user's Python runs as it is, so Python knows the current line.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from undertow.errors import Span
from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.capture import CaptureSession
from undertow.frontend.trace.learned import until_known
from undertow.frontend.values.traced import Context, Traced, context, used_too_late
from undertow.ir.graph import Port
from undertow.tracebacks import is_library_file

if TYPE_CHECKING:
    from undertow.frontend.trace.block import Block

# Names of blocks' graphs are unique across sessions; the part after the ~ is not shown.
numbers = itertools.count(1)

_HOW_TO_INDEX = (
    "in the block of a SubGraph write ut.asarray(x)[i], and use the functions of ut; "
    "a `def` passed to ut.cond may index arrays and lists directly"
)
_HINTS = {
    "truth": "the block of a SubGraph runs once, as plain Python: branch with ut.cond(test, then, other) or ut.where, "
    "loop with ut.while_loop",
    "index": _HOW_TO_INDEX,
    "array": _HOW_TO_INDEX,
}


def user_frame() -> FrameType | None:
    """The innermost frame of the user's code; if all code is installed, the innermost that is not ours."""
    frame: FrameType | None = sys._getframe(1)
    installed: FrameType | None = None
    while frame is not None and is_library_file(frame.f_code.co_filename):
        if installed is None and not str(frame.f_globals.get("__name__")).startswith("undertow."):
            installed = frame
        frame = frame.f_back
    return frame or installed


class BlockContext(Context):
    """A context whose current line comes from Python, unless a function is being captured."""

    session: BlockSession

    def __init__(self, session: BlockSession) -> None:
        self.captured: Span | None = None  # the line of the captured function, or the one that failed
        super().__init__(session)

    @property
    def is_plain_python(self) -> bool:  # type: ignore[override]
        return not self.session.interpreter.depth

    @property
    def span(self) -> Span | None:
        if not self.is_plain_python:
            return self.captured
        frame = user_frame()
        if frame is None:
            return None
        names = [block.name for block in self.session.blocks[-1:]]
        return Span(frame.f_code.co_filename, frame.f_lineno, function="".join(names))

    @span.setter
    def span(self, span: Span | None) -> None:
        self.captured = span

    @property
    def hints(self) -> Mapping[str, str]:  # type: ignore[override]
        return _HINTS if self.is_plain_python else Context.hints


class BlockSession(CaptureSession):
    """What the outermost block of a SubGraph writes, with the blocks and functions inside it."""

    ctx: BlockContext

    def __init__(self) -> None:
        self.blocks: list[Block] = []  # open ones, the innermost last
        self.unfinished: dict[str, Block] = {}  # called before they were finished
        self.learner: Block | None = None  # the SubGraph whose results are being learned: see learned.py
        super().__init__(context=BlockContext)

    def fresh_name(self, name: str) -> str:
        return f"{name}~b{next(numbers)}"

    def variable_name(self, variable: Any) -> str:
        """A name unique across sessions; a graph that the block is added to chooses a better one."""
        return self.variables.setdefault(variable, f"{variable.name}~v{next(numbers)}")

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """The block runs once, so all operations on a variable are in program order."""
        if writes:
            self.main.assigned |= {variable}
        return True

    @property
    def is_guessing(self) -> bool:
        return super().is_guessing or (self.learner is not None and self.learner.asked_at is not None)

    def until_known(self, attempt: Callable[[], Work]) -> Work:
        return until_known(self, attempt)

    def resolve(self, value: Traced) -> Port:
        if not value.builder.is_open:
            raise used_too_late(value)
        builder = self.ctx.open_builder
        owner = next((block for block in self.blocks if block.builder is value.builder), None)
        if owner is not None:
            if value.builder is not builder and (value.builder, value.port) not in builder.lifted:
                owner.name_values()  # the parameter takes the name of the user's variable
            elif owner.has_unnamed:
                owner.learn_names()
        return super().resolve(value)


def here() -> Span | None:
    """The current line of the user's code."""
    current = context()
    if current is not None:
        return current.span
    frame = user_frame()
    return None if frame is None else Span(frame.f_code.co_filename, frame.f_lineno)
