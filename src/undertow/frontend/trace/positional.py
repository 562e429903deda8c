"""A function whose last arguments have become positional: what `f.map(x, k=y)` maps is `lambda x, k: f(x, k=k)`."""

from __future__ import annotations

from typing import Any

from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.definition import Check, Definition
from undertow.frontend.trace.derivative import Adapted
from undertow.frontend.trace.session import Session


class Positional(Adapted):
    """A function of `count` positional arguments, and then of the keywords."""

    def __init__(self, inner: Definition, count: int, keywords: tuple[str, ...]) -> None:
        super().__init__(inner, inner.name)
        self.parameters = (*(f"x{number}" for number in range(count)), *keywords)
        self.count, self.keywords = count, keywords

    def note(self, name: str) -> Any:
        if name in self.keywords or name == "return":
            return self.inner.note(name)
        known, number = list(self.inner.closure.signature.parameters), self.parameters.index(name)
        return self.inner.note(known[number]) if number < len(known) else None

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        named = dict(zip(self.keywords, args[self.count :], strict=True))
        return (yield session.call(self.inner, args[: self.count], named))
