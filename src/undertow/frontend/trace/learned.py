"""What a SubGraph returns, where nothing declares it: learned from the branches of its block that do not call it.

A block runs once, so a call of the SubGraph in it comes before its `output`. But such a call stands in a branch of a
`ut.cond`, whose other branch ends the recursion. The `cond` is written with that branch alone; what it gives is taken
for what the SubGraph returns; and it is written again, until that fits. `output` must then be given the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.control.restart import Halted
from undertow.frontend.interpret.drive import Work
from undertow.frontend.syntax.annotations import Annotation, as_written
from undertow.frontend.syntax.source import Env
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import leaf_type
from undertow.frontend.values.operands import is_number
from undertow.frontend.values.traced import is_traced

if TYPE_CHECKING:
    from undertow.frontend.trace.block import Block
    from undertow.frontend.trace.block_session import BlockSession

_MOST_GUESSES = 8  # each may widen a type: an i64, an f64, a vector of any length


def until_known(session: BlockSession, attempt: Callable[[], Any]) -> Work:
    """The value of a `cond` in the block itself; written again while what it gives is news about the SubGraph."""
    block, builder = session.blocks[-1], session.ctx.open_builder
    is_in_block = builder is block.builder and builder.region == 0
    if not is_in_block or session.learner is not None or block.knows_results:
        return (yield attempt())
    interpreter, scratch = session.interpreter, Env(block.closure, frozenset(), None)
    checkpoint, before = builder.checkpoint(), interpreter.save(scratch)
    draws, count = builder.draws, len(session.specializations)
    session.learner = block
    try:
        for _ in range(_MOST_GUESSES):
            block.asked_at = None
            try:
                value = yield attempt()
            except Halted:
                if block.asked_at is not None:
                    raise must_be_declared(block) from None
                raise
            except (CaptureError, TypeMismatch) as fault:
                if block.learned is not None:
                    fault.hint = (
                        f"{fault.hint}; if `{block.name}` does not return {block.learned}, declare what it returns"
                    )
                raise
            given = _annotation_of(value)
            if given == block.learned or (block.asked_at is None and block.learned is None):
                return value
            block.learn(given)
            interpreter.go_back(checkpoint, before, scratch)
            builder.draws = draws
            del session.specializations[count:]
        raise must_be_declared(block)
    finally:
        session.learner = None


def must_be_declared(block: Block, is_own: bool = True) -> CaptureError:
    """The error of a call of a SubGraph, in its own block or another one, before it is known what it returns."""
    declare = "declare the results: ut.SubGraph(returns=ut.i64), or ut.f32[3], or a tuple of types"
    if not is_own:
        before = "has run" if block.state == "declared" else "ends"
        what = f"`{block.name}` is called in another block before its own one {before}, so its results must be declared"
        return CaptureError(what, block.asked_at, hint=declare)
    return CaptureError(
        f"`{block.name}` calls itself, and no branch of a `ut.cond` around that call says what it returns",
        block.asked_at,
        hint=f"call it in one branch of ut.cond, and give a result without it in the other; or {declare}",
    )


def refuse_other_output(block: Block, given: Annotation) -> None:
    """Raise an error if a block's output is not what was learned: its calls were written for that."""
    learned = block.learned
    if learned is None or (learned.types == given.types and learned.structure == given.structure):
        return
    wanted = tree.show(given.structure, [as_written(type) for type in given.types])
    raise CaptureError(
        f"the output of `{block.name}` is {given}, but its own calls have been taken to return {learned}, "
        "which is what the `ut.cond` around them gives",
        hint=f"declare what it returns: ut.SubGraph(returns={wanted})",
    )


def _annotation_of(value: Any) -> Annotation:
    leaves, structure = tree.flatten(value, is_traced)
    weak = tuple(map(is_number, leaves))
    return Annotation(tuple(map(leaf_type, leaves)), structure, weak if True in weak else ())
