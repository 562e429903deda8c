"""Functions with their own derivative: a call of the function, and of the user's rule beside it (ir/custom.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.errors import CaptureError, Span, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.syntax.annotations import Annotation
from undertow.frontend.trace.definition import Check, Definition
from undertow.frontend.trace.derivative import Wrapped, definition_of
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.traced import Traced, emit, is_traced, operand
from undertow.ir.graph import Attrs, Port
from undertow.types import Type, said


class Custom(Wrapped):
    """A function and a rule that derivatives take instead of what follows from its operators."""

    hands_key_on = True

    def __init__(self, inner: Definition, what: str) -> None:
        super().__init__(inner, inner.name)
        self.what = what  # "custom_vjp" or "custom_jvp"
        self.rule: tuple[Any, ...] = ()

    def note(self, name: str) -> Any:
        return self.inner.note(name)

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        how = "defvjp(fwd, bwd)" if self.what == "custom_vjp" else "defjvp(rule)"
        if not self.rule:
            raise CaptureError(
                f"`{self.name}` is a ut.{self.what} without a rule",
                self.closure.span,
                hint=f"write {self.short_name}.{how}",
            )
        if kwargs:
            raise CaptureError(
                f"`{self.name}` has keyword-only parameters, which a ut.{self.what} cannot have",
                self.closure.span,
                hint="make them positional",
            )
        value = yield session.call(self.inner, args, {})
        leaves, structure = tree.flatten(value, is_traced)
        effect = session.ctx.open_builder.effect
        # The rule may call the function.
        session.know_results(Annotation(tuple(leaf.type for leaf in leaves), structure))
        write = self._write_reverse if self.what == "custom_vjp" else self._write_forward
        inputs, attrs = yield write(session, args, value, leaves, structure)
        builder = session.ctx.open_builder
        if builder.effect != effect:
            raise CaptureError(
                f"the rule of `{self.name}` acts on the world (print, assert or assign)",
                _span(self.rule[0]),
                hint="leave that to the function itself",
            )
        types = tuple(leaf.type for leaf in leaves)
        if not types:
            return value
        ports = list(map(operand, inputs))
        number = builder.add("custom", ports, types, attrs, session.ctx.span, self.short_name)
        return tree.unflatten(structure, [Traced(builder, Port(number, k)) for k in range(len(types))])

    def _write_reverse(
        self, session: Session, args: list[Any], value: Any, leaves: list[Traced], structure: tree.Structure
    ) -> Work:
        forward, backward = self.rule
        ruled = yield _call(session, forward, [_primal(session, arg) for arg in args])
        if not isinstance(ruled, tuple) or len(ruled) != 2:
            raise TypeMismatch(
                f"the rule `fwd` of `{self.name}` returns {describe(ruled)}, but must return a pair",
                _span(forward),
                hint="return what the function returns, and what bwd needs: return y, (x, y)",
            )
        again = self._alike(ruled[0], value, forward)
        cotangents = [
            _node(session, "cotangent", leaf, index=k) if leaf.type.dtype.is_inexact else None
            for k, leaf in enumerate(leaves)
        ]
        slopes = yield _call(session, backward, [ruled[1], tree.unflatten(structure, cotangents)])
        held, own = tree.flatten(tuple(args), is_traced)
        found = tree.along(own, slopes) if isinstance(slopes, (tuple, list)) else None
        if found is None and isinstance(slopes, list):
            found = tree.along(own, tuple(slopes))
        if found is None:
            raise TypeMismatch(
                f"the rule `bwd` of `{self.name}` returns {describe(slopes)}, but must return a cotangent for each "
                f"argument: {describe(tuple(args))}",
                _span(backward),
                hint="return a tuple, with None for what is no float: return (dx, None)",
            )
        floats = [k for k, leaf in enumerate(held) if leaf_type(leaf).dtype.is_inexact]
        given = [_fit(found[k], held[k], f"the cotangent from `bwd` of `{self.name}`", backward) for k in floats]
        inputs = [*leaves, *again, *(held[k] for k in floats), *given]
        return inputs, Attrs(mode="reverse", arguments=len(floats))

    def _write_forward(
        self, session: Session, args: list[Any], value: Any, leaves: list[Traced], structure: tree.Structure
    ) -> Work:
        (rule,) = self.rule
        held, own = tree.flatten(tuple(args), is_traced)
        tangents = [_node(session, "direction", leaf) if leaf_type(leaf).dtype.is_inexact else None for leaf in held]
        primals = tuple(_primal(session, arg) for arg in args)
        bare = tuple(("static", tree.Identity(None)) if token[0] == "static" else token for token in own)
        ruled = yield _call(session, rule, [primals, tree.unflatten(bare, tangents)])
        if not isinstance(ruled, tuple) or len(ruled) != 2:
            raise TypeMismatch(
                f"the rule of `{self.name}` returns {describe(ruled)}, but must return a pair",
                _span(rule),
                hint="return what the function returns, and its tangent: return y, dy",
            )
        again = self._alike(ruled[0], value, rule)
        moved = tree.along(structure, ruled[1])
        if moved is None:
            raise TypeMismatch(
                f"the rule of `{self.name}` returns the tangent {describe(ruled[1])} for {describe(value)}",
                _span(rule),
                hint="return a tangent of the same structure; None means zero",
            )
        what = f"the tangent from the rule of `{self.name}`"
        floats = [k for k, leaf in enumerate(leaves) if leaf.type.dtype.is_inexact]
        slopes = [_fit(moved[k], leaves[k], what, rule) for k in floats]
        return [*leaves, *again, *slopes], Attrs(mode="forward", arguments=0)

    def _alike(self, ruled: Any, value: Any, rule: Any) -> list[Any]:
        """The results of the rule, which must be like those of the function."""
        expected, structure = tree.flatten(value, is_traced)
        leaves, own = tree.flatten(ruled, is_traced)
        types = [leaf_type(leaf) for leaf in leaves]
        if own != structure or any(
            a.dtype != leaf.type.dtype or a.rank != leaf.type.rank for a, leaf in zip(types, expected, strict=True)
        ):
            raise TypeMismatch(
                f"the rule of `{self.name}` returns {describe(ruled)}, the function {describe(value)}",
                _span(rule),
                hint="return the same from both",
            )
        return [_of_type(_traced(leaf), known.type) for leaf, known in zip(leaves, expected, strict=True)]


def _call(session: Session, function: Any, args: Sequence[Any]) -> Work:
    definition, bound = definition_of(function, "a rule")
    return session.call(definition, [*bound, *args], {})


def _span(function: Any) -> Span | None:
    span: Span | None = definition_of(function, "a rule")[0].closure.span
    return span


def _primal(session: Session, arg: Any) -> Any:
    leaves, structure = tree.flatten(arg, is_traced)
    return tree.unflatten(structure, [_node(session, "primal", leaf) for leaf in leaves])


def _node(session: Session, op: str, value: Any, **attrs: int) -> Traced:
    builder = session.ctx.open_builder
    held = _traced(value)
    number = builder.add(op, [operand(held)], (held.type,), Attrs(**attrs), session.ctx.span, op)
    return Traced(builder, Port(number))


def _traced(value: Any) -> Traced:
    made: Traced = value if isinstance(value, Traced) else emit("identity", [value])[0]
    return made


def _of_type(value: Traced, type_: Type) -> Any:
    """The value, of a type that takes its place: lengths that are known of the one are known of the other."""
    if type_.accepts(value.type):
        return value
    lengths = [b if isinstance(b, int) else a for a, b in zip(functions.shape(value), type_.shape, strict=True)]
    return functions.reshape(value, lengths)


def _fit(slope: Any, value: Any, what: str, rule: Any) -> Any:
    """A cotangent or tangent that is like its value; None is zero."""
    type_ = leaf_type(value)
    if slope is None:
        return functions.zeros_like(value)
    found = leaf_type(slope)
    if not found.dtype.is_inexact or found.rank > type_.rank or (found.dtype != type_.dtype and not _is_weak(slope)):
        raise TypeMismatch(
            f"{what} is {said(found)}, for {said(type_)}", _span(rule), hint="return one of the same dtype and shape"
        )
    same = functions.astype(slope, type_.dtype)
    return same if found == type_ else functions.broadcast_to(same, functions.shape(value))


def _is_weak(value: Any) -> bool:
    return isinstance(value, (int, float)) or (isinstance(value, Traced) and value.is_weak)
