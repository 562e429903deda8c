"""`ut.save`: writes a captured function to one file, which `ut.load` can read without the Python source.

The file is a zip (archive.py): `undertow.json` describes the signatures of the function (manifest.py),
`graphs/0.txt`, `graphs/1.txt`, ... are the libraries of its signatures, and `constants.safetensors` has the big arrays
that these refer to.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from undertow.api import archive
from undertow.api.function import Function
from undertow.api.manifest import Encoder, Json
from undertow.api.program import Program
from undertow.errors import GraphError, SaveError, with_article
from undertow.frontend.trace.by_class import by_class, is_guarded_by_class, static_objects
from undertow.frontend.trace.definition import Arguments, Definition
from undertow.frontend.trace.loaded import LOST
from undertow.frontend.values import tree
from undertow.ir import text
from undertow.ir.graph import EMPTY, Array, Const, Library, Port
from undertow.ops.op import CATALOGUE
from undertow.ops.vet import vet
from undertow.tracebacks import boundary
from undertow.types import DType, Type, as_type, join

FORMAT = 1
# The structures of arguments, which of them are mapped, the program, and its library without hidden arguments.
_Signature = tuple[tuple[tree.Structure, ...], tuple[bool, ...] | None, Program, Library]
_NOTHING: tree.Token = ("static", tree.Identity(None))


@boundary
def save(
    function: Function, path: str | os.PathLike[str], *, examples: Iterable[Sequence[Any]] = (), spans: bool = True
) -> None:
    """Save a function as captured so far: a graph for each signature that it was called with.

    `examples` are captured first, each a tuple of arguments by position; a type such as `ut.f32[None]` may stand in
    place of a number or array. `spans=False` leaves out the names of your source files, which errors of the loaded
    function would show.
    """
    if not isinstance(function, Function):
        is_code = callable(function)
        raise SaveError(
            "ut.save takes an @ut.function, not "
            + ("plain Python" if is_code else with_article(type(function).__name__)),
            hint="decorate it with @ut.function, and call it once"
            if is_code
            else "write ut.save(f, path); arrays are saved with np.savez(path, **params)",
        )
    for example in examples:
        _capture(function, example)
    name = function.__undertow_definition__.name
    signatures = _signatures(function)
    if not signatures:
        raise SaveError(
            f"`{name}` has not been captured yet: there is nothing to save",
            hint="call it once, or pass examples: ut.save(f, path, examples=[(x, y)])",
        )
    # Twice: the numbering of classes must not depend on the order of capture.
    draft = Encoder()
    _describe(function, signatures, draft, spans)
    encoder = Encoder(sorted(draft.classes, key=lambda cls: (cls.__module__, cls.__qualname__)))
    manifest, libraries = _describe(function, signatures, encoder, spans)
    lines = (f"  {json.dumps(key)}: {_dump(value)}" for key, value in manifest.items())
    texts = {archive.MANIFEST: "{\n" + ",\n".join(lines) + "\n}\n"}
    constants: dict[str, Array] = {}
    for number, library in enumerate(libraries):
        _check(library, name)
        texts[archive.graph_entry(number)] = text.dump(library, spans)
        constants |= text.dump_constants(library)
    archive.write(path, texts, constants | encoder.arrays)


def version() -> str:
    """The version of Undertow. Not imported: `undertow` imports this file."""
    return str(vars(sys.modules[__name__.partition(".")[0]])["__version__"])


def _dump(value: Json) -> str:
    return json.dumps(value, sort_keys=True, allow_nan=False)


def _check(library: Library, name: str) -> None:
    """Check that the file can be loaded."""
    for graph in library.functions.values():
        for node in graph.nodes:
            if node.op in CATALOGUE and CATALOGUE[node.op].state is not None:
                raise SaveError(
                    f"`{name}` uses variables, which cannot be saved with a function",
                    node.span,
                    hint="pass the values of the variables as arguments, and return them",
                )
    try:
        vet(library)
    except GraphError as fault:
        raise SaveError(f"a graph of `{name}` could not be loaded again: {fault.what}", fault.span) from fault


# --------------------------------------------------------------------------------------------------------------
# The manifest


def _signatures(function: Function) -> list[_Signature]:
    """What was captured and still holds. Hidden arguments become constants, of the values that they have now."""
    bound = function.__undertow_bound__
    flat = tuple(tree.flatten(value)[1] for value in bound)
    objects, shapes = static_objects(flat), by_class(flat)
    found: list[_Signature] = []
    for (structures, mapped), program in function.__undertow_programs__.items():
        if structures[: len(bound)] != shapes:
            continue
        if any(token[0] == "instance" for structure in structures[len(bound) :] for token in structure):
            name = function.__undertow_definition__.name
            raise SaveError(
                f"`{name}` takes an object, which cannot be saved with a function",
                hint="save a method of the object, as in ut.save(model.predict, path), or pass a dict or a dataclass",
            )
        inputs = program.leaves([], objects)
        if inputs is not None:
            library = program.captured.library
            bare = tuple(map(_without_objects, structures[: len(bound)])) + structures[len(bound) :]
            found.append((bare, mapped, program, _with_constants(library, inputs) if inputs else library))
    return found


def _without_objects(structure: tree.Structure) -> tree.Structure:
    """Objects that a function is bound to have been read: there is nothing of them in the file."""
    return tuple(_NOTHING if token[0] == "instance" else token for token in structure)


def _with_constants(library: Library, values: Sequence[Any]) -> Library:
    """A library whose main graph has constants in place of its hidden arguments."""
    main = library.functions[library.main]
    (phase,) = main.phases
    has_seed = bool(phase.params) and main.nodes[phase.params[-1]].short_name == "seed"
    first = len(phase.params) - len(values) - has_seed
    hidden = phase.params[first : first + len(values)]
    nodes = list(main.nodes)
    for number, value in zip(hidden, values, strict=True):
        constant = Const(np.array(value))
        nodes[number] = replace(nodes[number], op="identity", inputs=(constant,), attrs=EMPTY, controls=(Port(0),))
    params = tuple(number for number in phase.params if number not in hidden)
    for index, number in enumerate(params):
        nodes[number] = replace(nodes[number], attrs=nodes[number].attrs | {"index": index})
    graph = replace(main, nodes=tuple(nodes), phases=(replace(phase, params=params),))
    return replace(library, functions={**library.functions, library.main: graph})


def _describe(
    function: Function, signatures: Sequence[_Signature], encoder: Encoder, spans: bool
) -> tuple[dict[str, Json], list[Library]]:
    """The manifest of the function, and the library of each signature."""
    definition = function.__undertow_definition__
    span = definition.closure.span
    rows: dict[str, tuple[Json, Library]] = {}
    for structures, mapped, program, library in signatures:
        row = _signature(definition, structures, mapped, program, encoder)
        # Sorted, and without duplicates, which two threads may have captured at the same time.
        rows.setdefault(_dump([mapped is not None, row]), (row, library))
    ordered = [rows[key] for key in sorted(rows)]
    manifest = {
        "format": FORMAT,
        "undertow": version(),
        "name": definition.name,
        "doc": inspect.cleandoc(function.__doc__ or ""),
        "span": [span.file, span.line, span.column] if spans else None,
        "parameters": [
            _parameter(definition, parameter, encoder) for parameter in definition.closure.signature.parameters.values()
        ],
        "bound": [
            encoder.value(_bare(value), f"what `{definition.name}` is bound to")
            for value in function.__undertow_bound__
        ],
        "signatures": [row for row, _ in ordered],
        "classes": encoder.class_table(),
    }
    return manifest, [library for _, library in ordered]


def _bare(value: Any) -> Any:
    """A bound value with None in place of the objects in it."""
    leaves, structure = tree.flatten(value)
    return tree.unflatten(structure, leaves, static=lambda held: None if is_guarded_by_class(held) else held)


def _parameter(definition: Definition, parameter: inspect.Parameter, encoder: Encoder) -> Json:
    what = f"parameter `{parameter.name}` of `{definition.name}`"
    row: dict[str, Json] = {"name": parameter.name, "kind": parameter.kind.name}
    if parameter.default is not inspect.Parameter.empty:
        row["default"] = _default(parameter.default, what, encoder)
    note = definition.note(parameter.name)
    if note is not None:
        row["annotation"] = encoder.annotation(note, what)
    return row


def _default(value: Any, what: str, encoder: Encoder) -> Json:
    """A default as data, or null if it cannot be saved: then the loaded function requires the argument."""
    if value is LOST:
        return None
    try:
        return encoder.value(value, what)
    except SaveError:
        return None


def _signature(
    definition: Definition,
    structures: tuple[tree.Structure, ...],
    mapped: tuple[bool, ...] | None,
    program: Program,
    encoder: Encoder,
) -> Json:
    captured = program.captured
    names = list(definition.closure.signature.parameters) if mapped is None else []
    return {
        "mapped": None if mapped is None else list(mapped),
        "structures": [
            encoder.structure(structure, f"argument `{names[k] if names else k}` of `{definition.name}`")
            for k, structure in enumerate(structures)
        ],
        "types": [encoder.type(type) for type in captured.types],
        "result": encoder.structure(captured.result, f"the result of `{definition.name}`"),
        "seed": captured.needs_seed,
        "weak": None if captured.weak is None else list(captured.weak),
        "weak_results": list(captured.weak_results),
    }


# --------------------------------------------------------------------------------------------------------------
# Examples


def _is_type(value: object) -> bool:
    return isinstance(value, (DType, Type))


def _placeholder(spec: DType | Type, size: int) -> Any:
    """An array of that type that takes no memory; run-time dimensions have the size given."""
    type_ = as_type(spec)
    shape = tuple(dim if isinstance(dim, int) else size for dim in type_.shape)
    return np.broadcast_to(np.zeros((), type_.dtype.numpy), shape)[()]


def _capture(function: Function, example: Sequence[Any]) -> None:
    """Capture a function for arguments like these."""
    if not isinstance(example, (tuple, list)):
        raise SaveError(
            f"an example must be the arguments of a call, not {example!r:.80}",
            hint="write a tuple, even for one argument: examples=[(x,)]",
        )
    leaves, structure = tree.flatten(tuple(example), _is_type)

    def arguments(size: int) -> Arguments:
        filled = [_placeholder(leaf, size) if _is_type(leaf) else leaf for leaf in leaves]
        return function.__undertow_arguments__(tree.unflatten(structure, filled), {})

    # Dimensions that change with the size of the placeholders are the run-time ones.
    given, other = arguments(1), arguments(2)
    types = tuple(join(a, b) or a for a, b in zip(given.types, other.types, strict=True))
    function.__undertow_program__(replace(given, types=types))
