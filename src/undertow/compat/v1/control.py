"""Control flow: `tf.cond`, `tf.while_loop`, `tf.map_fn`; control dependencies and devices."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.devices import merged_device
from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.graphs.hosted import Text, is_text
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.repetition.tensor_array import Written, check_written, in_arrays, with_tensors
from undertow.compat.v1.tensor import (
    Operation,
    Tensor,
    add_node,
    as_constant,
    as_tensor,
    graph_of,
    is_tensor_like,
    named,
    with_reads,
    wrap,
    write_constant,
    writing,
)
from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.control.body import graph_loop, graph_map
from undertow.frontend.control.merge import merge
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import drive
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.traced import Traced, emit
from undertow.ir.graph import Attrs, Const, Port
from undertow.types import i32

__all__ = [
    "Assert", "Print", "case", "cond", "control_dependencies", "device", "group", "identity", "map_fn", "name_scope",
    "no_op", "while_loop",
]  # fmt: skip


# -- choice ------------------------------------------------------------------------------------------------


def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """The result of one of the functions; only its operations run."""
    then, other = true_fn or fn1, false_fn or fn2
    for function in (then, other):
        if not callable(function):
            raise TypeMismatch(
                f"tf.cond chooses between two functions, not {brief(function)}",
                here(),
                hint="write tf.cond(x > 0, lambda: a, lambda: b)",
            )
    assert then is not None and other is not None
    if isinstance(pred, (bool, np.bool_)):
        raise TypeMismatch("pred must not be a Python bool", here(), hint="write `if`, or tf.constant(True)")
    with writing(pred) as graph:
        truth = graph.writer.interpreter.truth(with_reads(pred))
        if not isinstance(truth, Traced):
            return _unpacked((then if truth else other)(), strict)
        builder = graph.ctx.open_builder
        outside, span = builder.region, here()
        regions = builder.branch(graph.writer.resolve(truth))
        sides: list[Any] = []
        try:
            for region, function in zip(regions, (then, other), strict=True):
                builder.region = region
                sides.append(_side(_unpacked(function(), strict)))
        finally:
            builder.region = outside
        values = _same_defaults([side for side, _ in sides])
        differ = lambda a, b: (  # noqa: E731
            f"this tf.cond returns {a} where the condition is true, but {b} where it is false",
            span,
        )
        merged = merge(values[0], values[1], regions, graph.ctx, name or "", span, differ)
        leaves, structure = tree.flatten(merged, is_tensor_like)
        is_operation = sides[0][1] if len(leaves) == 1 else frozenset[int]()  # of several, each says that it is done
        tensors = [Operation(wrap(x)) if k in is_operation else wrap(x) for k, x in enumerate(leaves)]
        return tree.unflatten(structure, tensors)


def _unpacked(value: Any, strict: bool) -> Any:
    """A list of one element is that element, as in TensorFlow 1."""
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 and not strict else value


def _side(value: Any) -> tuple[Any, frozenset[int]]:
    """The results of a branch, variables read; and which of them are operations, now replaced by tokens."""
    if value is None:
        raise CaptureError(
            "a function of tf.cond returns nothing", here(), hint="return a tensor, or tf.no_op(), from both"
        )
    leaves, structure = tree.flatten(value, is_tensor_like)
    operations = frozenset(k for k, leaf in enumerate(leaves) if isinstance(leaf, Operation))
    values = [group(leaf).token if isinstance(leaf, Operation) else with_reads(leaf) for leaf in leaves]
    return tree.unflatten(structure, values), operations


def _same_defaults(sides: list[Any]) -> list[Any]:
    """Python numbers on both sides get the default dtypes of this API: int32, float32."""
    flat = [tree.flatten(side, is_tensor_like) for side in sides]
    if flat[0][1] != flat[1][1]:
        return sides
    leaves: list[list[Any]] = [[], []]
    for a, b in zip(flat[0][0], flat[1][0], strict=True):
        pair = [a, b]
        if not any(isinstance(x, Traced) for x in pair):
            floats = any(np.asarray(x).dtype.kind == "f" for x in pair)
            pair = [as_constant(float(x) if floats and is_weak(x) else x)[()] for x in pair]
            pair = pair if pair[0] is not pair[1] else [pair[0], pair[0]]
        for side, leaf in zip(leaves, pair, strict=True):
            side.append(leaf)
    return [tree.unflatten(structure, found) for (_, structure), found in zip(flat, leaves, strict=True)]


_EXCLUSIVE = "More than one condition evaluated as True but exclusive=True."


def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """The result of the first function whose condition is true; else of `default`."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        raise TypeMismatch("tf.case needs at least one case", here(), hint="pass pairs: [(x > 0, lambda: a)]")
    if default is None:
        _, default = pairs.pop()  # as in TensorFlow, one of the conditions must be true
    chosen = default
    for pred, function in reversed(pairs):
        chosen = functools.partial(cond, pred, function, chosen, strict)
    if not exclusive:
        return chosen()
    preds = functions.stack([functions.astype(as_tensor(pred), i32) for pred, _ in pairs])
    with control_dependencies([Assert(functions.less(functions.sum(preds), 2), [_EXCLUSIVE, wrap(preds)])]):
        return chosen()


# -- repetition --------------------------------------------------------------------------------------------


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Apply `body` to the loop variables while `cond` of them is true."""
    if isinstance(loop_vars, (list, tuple, dict)) and not loop_vars:
        raise TypeMismatch(
            "tf.while_loop needs at least one loop variable", here(), hint="write tf.while_loop(c, b, [i])"
        )
    variables = list(loop_vars) if isinstance(loop_vars, (list, tuple)) else [loop_vars]
    while True:
        try:
            tensors, packed = _looped(
                cond, body, variables, shape_invariants is None, maximum_iterations, back_prop, name
            )
            if len(tensors) == 1 and tensors[0] is packed[0] and not return_same_structure:
                return tensors[0]
            return type(loop_vars)(packed) if type(loop_vars) in (list, tuple) else packed
        except Written as written:  # arrays of which only the size was known
            variables = with_tensors(variables, written)


def _looped(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    variables: list[Any],
    keeps_shapes: bool,
    maximum_iterations: Any,
    back_prop: bool,
    name: str | None,
) -> tuple[list[Any], list[Any]]:
    """The results of a loop, one by one and in the structure of its variables."""
    with writing(*variables) as graph:
        leaves, structure = tree.flatten(variables, is_tensor_like)
        start = [_initial(with_reads(leaf)) for leaf in leaves]
        names = _variable_names(cond, variables)
        interp, counter = graph.writer.interpreter, 0
        if maximum_iterations is not None:
            counter, start, names = 1, [np.int32(0), *start], ["iteration", *names]

        def values_of(params: list[Any]) -> Any:
            return tree.unflatten(structure, [wrap(p) for p in params[counter:]])

        def header(params: list[Any]) -> Any:
            truth = interp.truth(with_reads(cond(*values_of(params))))
            if not isinstance(truth, Traced):
                truth = write_constant(truth)
            if counter:
                going = wrap(params[0]) < as_tensor(maximum_iterations)
                truth = emit("logical_and", [truth, going])[0]
            return truth

        def step(params: list[Any]) -> list[Any]:
            after = body(*values_of(params))
            after = list(after) if isinstance(after, (list, tuple)) else [after]
            check_written(variables, after)
            found, shape = tree.flatten(after, is_tensor_like)
            if shape != structure:
                raise TypeMismatch(
                    "The two structures don't have the same number of elements or the same nested structure: "
                    f"the body of tf.while_loop takes {describe(variables)}, but returns {describe(after)}",
                    here(),
                    hint="return as many values as there are loop variables, in the same structure",
                )
            later = [  # numbers and arrays take the dtype of their loop variable
                value if isinstance(value, Traced) or is_weak(value) else as_constant(value, param.dtype)[()]
                for value, param in zip(map(with_reads, found), params[counter:], strict=True)
            ]
            return [emit("add", [params[0], np.int32(1)])[0], *later] if counter else later

        results = drive(graph_loop(graph.ctx, start, names, header, step))[counter:]
        if keeps_shapes:
            rows = zip(names[counter:], start[counter:], results, in_arrays(structure), strict=True)
            for called, before, after, may_grow in rows:
                if not may_grow:
                    _check_invariant(called, before, after)
        tensors = [wrap(result if back_prop else functions.stop_gradient(result)) for result in results]
        named(tensors[0], name)
        packed: list[Any] = tree.unflatten(structure, tensors)
        return tensors, packed


def _check_invariant(called: str, before: Any, after: Traced) -> None:
    """A shape that changes must be told, as in TensorFlow."""
    known = before.type.shape if isinstance(before, Traced) else np.shape(before)
    if all(not isinstance(a, int) or isinstance(b, int) for a, b in zip(known, after.type.shape, strict=True)):
        return
    shown = [[d if isinstance(d, int) else None for d in shape] for shape in (known, after.type.shape)]
    raise TypeMismatch(
        f"The shape for {called} is not an invariant for the loop. It enters the loop with shape {shown[0]}, but has "
        f"shape {shown[1]} after one iteration",
        here(),
        hint=f"say so: shape_invariants=[..., tf.TensorShape({shown[1]})]",
    )


def _initial(value: Any) -> Any:
    return value if isinstance(value, Traced) else as_constant(value)[()]


def _variable_names(function: Callable[..., Any], variables: Sequence[Any]) -> list[str]:
    """The loop variables by the names that the condition gives them."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for number, variable in enumerate(variables):
        stem = parameters[number] if len(parameters) == len(variables) else f"x{number}"
        names += tree.paths(variable, stem, is_tensor_like)
    return names


def map_fn(fn: Callable[..., Any], elems: Any, dtype: Any = None, name: str | None = None, **_: Any) -> Any:
    """`fn` applied to every element along the leading axis, in parallel; the results are stacked."""
    with writing(elems) as graph:
        elements = with_reads(elems)
        is_list = isinstance(elements, list) and not any(
            is_tensor_like(e) or isinstance(e, np.ndarray) for e in elements
        )
        is_nested = isinstance(elements, (list, tuple, dict, Traced)) and not is_list
        whole = elements if is_nested else as_constant(elements)

        def body(values: list[Any]) -> Any:
            leaves, structure = tree.flatten(values[0], is_tensor_like)
            value = fn(tree.unflatten(structure, [wrap(leaf) for leaf in leaves]))
            results, after = tree.flatten(value, is_tensor_like)
            return tree.unflatten(after, [_initial(with_reads(leaf)) for leaf in results])

        result = drive(graph_map(graph.ctx, [whole], body))
        leaves, structure = tree.flatten(result, is_tensor_like)
        return tree.unflatten(structure, [wrap(leaf) for leaf in leaves])


# -- order -------------------------------------------------------------------------------------------------


def _tokens(values: Sequence[Any]) -> list[Traced]:
    """Tokens that arrive when these values are computed, or these operations done."""
    tokens: list[Traced] = []
    for value in values:
        if isinstance(value, Operation):
            tokens.append(value.token)
        elif is_tensor_like(value):
            tokens.append(with_reads(value))
        else:
            raise TypeMismatch(
                f"{brief(value)} is neither a tensor nor an operation", here(), hint="pass tensors and operations"
            )
    return tokens


def _check_inside(builder: Builder, token: Traced) -> None:
    """A function captures values, but no order between what is inside and outside of it."""
    inner: Builder | None = builder
    while inner is not None and inner is not token.builder:
        if inner.kind == "function" and token.builder.context is inner.context:
            raise TypeMismatch(
                f"{token!r} is not an element of this graph. A control dependency cannot lead into `{inner.name}`",
                here(),
                hint="put the call of the function below tf.control_dependencies, or use the value",
            )
        inner = inner.parent


class control_dependencies:
    """Operations created in the block run after these; None clears the enclosing blocks."""

    def __init__(self, control_inputs: Sequence[Any] | None) -> None:
        if control_inputs is not None and not isinstance(control_inputs, (list, tuple)):
            raise TypeMismatch(
                f"tf.control_dependencies takes a list, not {brief(control_inputs)}",
                here(),
                hint="write tf.control_dependencies([x])",
            )
        self._inputs = control_inputs
        self._before: list[tuple[Builder, tuple[Port, ...]]] = []

    def __enter__(self) -> None:
        inputs = [x.token if isinstance(x, Operation) else x for x in self._inputs or ()]
        with writing(*inputs) as graph:
            builder = graph.ctx.open_builder
            self._before.append((builder, builder.controls))
            if self._inputs is None:
                builder.controls = ()
                return
            tokens = _tokens(self._inputs)
            for token in tokens:
                _check_inside(builder, token)
            controls = map(graph.writer.resolve, tokens)
            builder.controls = tuple(dict.fromkeys((*builder.controls, *controls)))

    def __exit__(self, *_: object) -> None:
        builder, controls = self._before.pop()
        builder.controls = controls


def identity(input: Any, name: str | None = None) -> Any:
    """The same value, after the current control dependencies."""
    with writing(input):
        return named(wrap(emit("identity", [as_tensor(input)])[0]), name)


def group(*inputs: Any, name: str = "group", **_: Any) -> Operation:
    """One operation that finishes when all of these have."""
    flat = [item for value in inputs for item in (value if isinstance(value, (list, tuple)) else [value])]
    with writing(*(x.token if isinstance(x, Operation) else x for x in flat)) as graph:
        builder = graph.ctx.open_builder
        controls = tuple(dict.fromkeys(map(graph.writer.resolve, _tokens(flat))))
        done = Const(np.asarray(True))
        number = builder.add("identity", (done,), (done.type,), span=here(), name=name or "group", controls=controls)
        return Group(Tensor(builder, Port(number)))


class Group(Operation):
    """What `tf.group` makes."""

    @property
    def type(self) -> str:
        """As in TensorFlow."""
        return "NoOp"


def no_op(name: str = "no_op") -> Operation:
    """Does nothing, after the current control dependencies."""
    return group(name=name)


def Print(
    input_: Any, data: Sequence[Any], message: str = "", first_n: Any = None, summarize: Any = None, name: Any = None
) -> Any:
    """The same value; computing it prints the message and the data."""
    with writing(input_, *(value for value in data if not _is_text(value))):
        shown = [as_tensor(value) for value in data if not _is_text(value)]
        parts = (f"[{_text(value)}]" if _is_text(value) else "[{}]" for value in data)
        template = _plain(message or "") + "".join(parts)
        with control_dependencies([add_node("print", shown, Attrs(template=template))]):
            return identity(input_, name)


def Assert(condition: Any, data: Sequence[Any], summarize: Any = None, name: Any = None) -> Operation:
    """An operation that fails if the condition is false, showing the data."""
    with writing(condition, *(value for value in data if not _is_text(value))):
        template = "assertion failed: " + " ".join(_text(v) if _is_text(v) else "[{}]" for v in data)
        shown = [as_tensor(value) for value in data if not _is_text(value)]
        return Operation(add_node("assert", [as_tensor(condition), *shown], Attrs(template=template)))


def _is_text(value: Any) -> bool:
    return isinstance(value, Text) or is_text(value)


def _text(value: Any) -> str:
    return _plain(value.shown() if isinstance(value, Text) else Text(value).shown())


def _plain(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


# -- places and names --------------------------------------------------------------------------------------


class device:
    """Operations created in the block are placed there, if a session runs on a cluster. None clears the others."""

    def __init__(self, device_name_or_function: Any) -> None:
        name = device_name_or_function
        if name is not None and not isinstance(name, str):
            hint = 'write tf.device("/job:local/task:1")'
            if callable(name):
                hint += "; of functions, what tf.train.replica_device_setter returns is taken, which is a name here"
            raise TypeMismatch(f"a device must be a name, not {brief(name)}", here(), hint=hint)
        self._name = name
        self._before: list[tuple[Builder, str | None]] = []

    def __enter__(self) -> None:
        builder = get_default_graph().ctx.open_builder
        self._before.append((builder, builder.device))
        builder.device = None if self._name is None else merged_device(builder.device or "", self._name)

    def __exit__(self, *_: object) -> None:
        builder, before = self._before.pop()
        builder.device = before


@contextlib.contextmanager
def graph_name_scope(graph: Graph, name: str | None) -> Iterator[str]:
    """`graph.name_scope`: the block's operations are named `name/...`; gives that beginning."""
    builder = graph.ctx.open_builder
    with graph.lock:
        scope = graph.scope_named(builder, name)
    with graph.scoped(builder, scope):
        yield scope


@contextlib.contextmanager
def name_scope(name: str | None, default_name: str | None = None, values: Any = None) -> Iterator[str]:
    """Names of operations made in the block begin with `name/`; without a name, with the default one."""
    if name is None and default_name is None and values is not None:
        raise TypeMismatch("name and default_name are both None", here(), hint="give one of them")
    graph = graph_of([value for value in values or () if is_tensor_like(value)])
    with graph.as_default(), graph_name_scope(graph, default_name if name is None else name) as scope:
        yield scope


boundaries(globals(), __all__, besides=("name_scope",))
