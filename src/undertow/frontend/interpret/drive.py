"""A trampoline: runs generators that yield work, with the waiting ones on a list instead of the host's stack.

A handler yields another generator and is sent its result, or yields a value and is sent that value back. So neither
nested expressions nor nested helpers nor functions that call functions recurse in the host: depth is user data.
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any

from undertow.ir.budget import check

_BATCH = 256  # steps between looks at the clock
Work = Generator[Any, Any, Any]


def drive(work: Any) -> Any:
    """Run a generator that yields work, to the end, with the waiting ones on a list instead of the stack."""
    if type(work) is not GeneratorType:
        return work
    stack: list[Work] = [work]
    value: Any = None
    fault: BaseException | None = None
    steps = 0
    while stack:
        try:
            steps += 1
            if steps == _BATCH:
                steps = 0
                check()  # a Python loop may be endless, and write nothing
            if fault is None:
                request = stack[-1].send(value)
            else:
                raised, fault = fault, None
                request = stack[-1].throw(raised)
        except StopIteration as done:
            stack.pop()
            value = done.value
        except BaseException as raised:
            stack.pop()
            fault = raised
        else:
            if type(request) is GeneratorType:
                stack.append(request)
                value = None
            else:
                value = request
    if fault is not None:
        raise fault
    return value
