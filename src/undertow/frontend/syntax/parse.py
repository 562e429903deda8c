"""From text to syntax trees, and from these to code: Python's parser and compiler, whatever the depth of the source.

Both recurse. For deep sources the recursion limit is raised while they run, on a thread with a large enough stack.
Everything else here is loops.
"""

from __future__ import annotations
import __future__

import ast
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import TypeVar, cast

_Result = TypeVar("_Result")
_PARSER_STACK = 512 << 20  # bytes of address space, committed only where used
_PARSER_DEPTH = 200_000
# Notebooks and the prompt of `python -m asyncio` allow it; elsewhere it changes nothing that parses.
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_FUTURES = 0
for _name in __future__.all_feature_names:
    _FUTURES |= getattr(__future__, _name).compiler_flag


def parse(source: str, filename: str) -> ast.Module:
    """`ast.parse`, whatever the depth of the source."""
    flags = ast.PyCF_ONLY_AST | _TOP_LEVEL_AWAIT
    tree = _at_any_depth(lambda: compile(source, filename, "exec", flags, dont_inherit=True))
    return cast(ast.Module, tree)


def compile_statements(statements: list[ast.stmt], filename: str, like: CodeType) -> CodeType:
    """The code of some statements of a module, with the `from __future__` flags of other code."""
    flags = like.co_flags & _FUTURES | _TOP_LEVEL_AWAIT
    module = ast.Module(statements, [])
    return cast(CodeType, _at_any_depth(lambda: compile(module, filename, "exec", flags, dont_inherit=True)))


def _at_any_depth(work: Callable[[], _Result]) -> _Result:
    try:
        return work()
    except RecursionError:
        return _on_large_stack(work)


def _on_large_stack(work: Callable[[], _Result]) -> _Result:
    results: list[_Result] = []
    faults: list[BaseException] = []

    def target() -> None:
        try:
            results.append(work())
        except BaseException as fault:
            faults.append(fault)

    def helper() -> None:
        limit, size = sys.getrecursionlimit(), threading.stack_size()
        try:
            threading.stack_size(_PARSER_STACK)
            sys.setrecursionlimit(_PARSER_DEPTH)
            thread = threading.Thread(target=target)
            thread.start()
            thread.join()
        except (RuntimeError, ValueError):  # no room for such a stack
            faults.append(RecursionError("the source is nested too deeply"))
        finally:
            sys.setrecursionlimit(limit)
            threading.stack_size(size)

    # Ctrl-C stops only the main thread: wait until the helper has restored the recursion limit.
    outer = threading.Thread(target=helper)
    outer.start()
    try:
        outer.join()
    finally:
        outer.join()
    if faults:
        raise faults[0]
    return results[0]


def walk(tree: ast.AST) -> Iterator[ast.AST]:
    """This node and every node below it, in source order; a loop, unlike recursive visitors."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(list(ast.iter_child_nodes(node))))
