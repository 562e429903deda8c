"""`ut.load`: reads a function that `ut.save` wrote. The file is not trusted, and contains no code.

The manifest must be consistent, and the graphs must pass every rule (ops/vet.py), before a function is built.
"""

from __future__ import annotations

import inspect
import json
import os
from dataclasses import replace
from typing import Any, NoReturn

from undertow.api import archive
from undertow.api.function import Function
from undertow.api.manifest import Decoder, Json, check_leaves, entry, flags, want
from undertow.api.program import GraphView, Program, Programs
from undertow.api.save import FORMAT, version
from undertow.errors import GraphError, InternalError, LoadError, SavedSpan, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.syntax.annotations import Annotation
from undertow.frontend.syntax.source import NoSource
from undertow.frontend.trace.graft import make_ready
from undertow.frontend.trace.library import Captured
from undertow.frontend.trace.loaded import LOST, ReadyDefinition, show_arguments
from undertow.frontend.values import tree
from undertow.ir import text
from undertow.ir.graph import Array, FunctionGraph, Library
from undertow.ops.vet import vet
from undertow.tracebacks import boundary
from undertow.types import CTL, Type, i64

# What a pass may make of a file: some lines of text can ask for the twelfth derivative of a function.
_FEWEST_NODES = 100_000
_GROWTH = 1000  # nodes for each node of the file


class LoadedFunction(Function):
    """A function from a file. It accepts only the argument types that it was saved with."""

    __undertow_definition__: ReadyDefinition

    def __init__(self, definition: ReadyDefinition, bound: tuple[Any, ...], programs: Programs, doc: str) -> None:
        super().__init__(definition, bound, programs)
        del self.__wrapped__  # type: ignore[attr-defined]  # there is none: a stand-in without source
        self.__name__ = definition.name.rpartition(".")[2]
        self.__qualname__ = definition.name
        self.__module__ = __name__
        self.__doc__ = doc or None
        parameters = list(definition.closure.signature.parameters.values())
        self.__signature__ = inspect.Signature(parameters[len(bound) :])

    def __repr__(self) -> str:
        return f"<undertow function {self.__qualname__}, loaded: {'; '.join(self.signatures[:4])}>"

    @property
    def signatures(self) -> tuple[str, ...]:
        """The signatures that it can be called with."""
        definition, first = self.__undertow_definition__, len(self.__undertow_bound__)
        names = list(definition.closure.signature.parameters)[first:]
        shown: list[str] = []
        for ready in definition.signatures:
            hidden = sum(structure.count(tree.LEAF) for structure in ready.structures[:first])
            shown.append(show_arguments(ready.structures[first:], ready.types[hidden:], names))
        return tuple(shown)

    def graph(self, *args: Any, simplify: bool | None = None, **kwargs: Any) -> GraphView:
        """The static graph for arguments like these; without arguments, that of the only signature."""
        only = self._only(args, kwargs)
        return super().graph(*args, simplify=simplify, **kwargs) if only is None else only.view(simplify)

    def library(self, *args: Any, **kwargs: Any) -> Library:
        """The function graphs that the static graph is made from."""
        only = self._only(args, kwargs)
        return super().library(*args, **kwargs) if only is None else only.captured.library

    def _only(self, args: Any, kwargs: Any) -> Program | None:
        calls = [program for (_, mapped), program in self.__undertow_programs__.items() if mapped is None]
        return calls[0] if len(calls) == 1 and not args and not kwargs else None


@boundary
def load(path: str | os.PathLike[str]) -> LoadedFunction:
    """The function that was saved to a file. It can be called, run, mapped and captured like the original."""
    if not isinstance(path, (str, os.PathLike)):  # a number would be an open file, which would be closed
        raise LoadError(f"{brief(path)} is not the name of a file", hint='write ut.load("model.ut")')
    try:
        return _Loader(*archive.read(path)).function()
    except LoadError as fault:
        fault.what = f"{os.fspath(path)} cannot be loaded: {fault.what}"
        fault.args = (fault.what,)
        raise
    except UndertowError:  # some of ours are Python's too
        raise
    except MemoryError as fault:
        raise LoadError(f"{os.fspath(path)} cannot be loaded: it does not fit in memory") from fault
    except OSError:
        raise
    except Exception as fault:
        raise InternalError(f"{os.fspath(path)} cannot be loaded: {type(fault).__name__}: {fault}") from fault


class _Loader:
    """One load: turns the entries of the file into a function."""

    def __init__(self, texts: dict[str, str], constants: dict[str, Array]) -> None:
        self.texts = texts
        self.constants = constants
        self.manifest = self._manifest()
        self.decoder = Decoder(entry(self.manifest, "classes", list, archive.MANIFEST), constants)

    def _manifest(self) -> dict[str, Json]:
        try:
            found = json.loads(self.texts.pop(archive.MANIFEST), parse_constant=_no_number)
        except (ValueError, RecursionError) as fault:
            raise LoadError(f"{archive.MANIFEST} is damaged: {fault}") from None
        manifest = want(found, dict, archive.MANIFEST)
        number, writer = entry(manifest, "format", int, archive.MANIFEST), str(manifest.get("undertow"))
        if number != FORMAT:
            newer = number > FORMAT
            raise LoadError(
                f"it has format {number}, written by Undertow {writer:.40}; this is Undertow {version()}, "
                f"which reads format {FORMAT}",
                hint="update Undertow (pip install --upgrade undertow), or save the function again with this version"
                if newer
                else "save the function again with this version of Undertow",
            )
        return manifest

    def function(self) -> LoadedFunction:
        name = entry(self.manifest, "name", str, archive.MANIFEST)
        rows = entry(self.manifest, "signatures", list, archive.MANIFEST)
        wanted = {archive.graph_entry(number) for number in range(len(rows))}
        if not rows or wanted != self.texts.keys():
            raise LoadError(f"its {len(rows)} signatures do not match its {len(self.texts)} graphs")
        signature, notes = self.parameters()
        bound = self.bound(signature)
        signatures = [self.signature(row, number, signature) for number, row in enumerate(rows)]
        programs = Programs()
        for mapped, captured in signatures:
            programs.add((captured.structures, mapped), Program(captured, name))
        ready = [make_ready(captured) for mapped, captured in signatures if mapped is None]
        source = NoSource(name, signature, self.span(name))
        definition = ReadyDefinition(source, notes, self.decoder.classes, ready)
        return LoadedFunction(definition, bound, programs, entry(self.manifest, "doc", str, archive.MANIFEST))

    def span(self, name: str) -> SavedSpan:
        row = self.manifest.get("span")
        if row is None:
            return SavedSpan("<saved>", 1, 1, name)
        file, line, column = (*want(row, list, "`span`"), None, None, None)[:3]
        return SavedSpan(want(file, str, "`span`"), want(line, int, "`span`"), want(column, int, "`span`"), name)

    def parameters(self) -> tuple[inspect.Signature, dict[str, Annotation]]:
        kinds = {kind.name: kind for kind in inspect._ParameterKind}
        parameters: list[inspect.Parameter] = []
        notes: dict[str, Annotation] = {}
        for number, row in enumerate(entry(self.manifest, "parameters", list, archive.MANIFEST)):
            what = f"parameter {number}"
            name, kind = entry(row, "name", str, what), entry(row, "kind", str, what)
            default: Any = inspect.Parameter.empty
            if "default" in row:
                held = row["default"]
                default = LOST if held is None else self.decoder.value(held, f"the default of {what}")
            if "annotation" in row:
                notes[name] = self.decoder.annotation(row["annotation"], f"the annotation of {what}")
            if kind not in kinds or not name.isidentifier():
                raise LoadError(f"{what} has the invalid name {name!r:.40} or kind {kind!r:.40}")
            try:
                parameters.append(inspect.Parameter(name, kinds[kind], default=default))
            except ValueError as fault:
                raise LoadError(f"{what} is invalid: {fault}") from None
        try:
            return inspect.Signature(parameters), notes
        except ValueError as fault:
            raise LoadError(f"the parameters are invalid: {fault}") from None

    def bound(self, signature: inspect.Signature) -> tuple[Any, ...]:
        rows = entry(self.manifest, "bound", list, archive.MANIFEST)
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        takes = [parameter.kind in positional for parameter in signature.parameters.values()]
        if not all(takes[: len(rows)]) or len(rows) > len(takes):
            raise LoadError(f"its parameters cannot take the {len(rows)} bound objects")
        return tuple(self.decoder.value(row, "a bound object") for row in rows)

    def signature(
        self, row: Json, number: int, signature: inspect.Signature
    ) -> tuple[tuple[bool, ...] | None, Captured]:
        """Which arguments are mapped, if any is, and the graphs."""
        what = f"signature {number}"
        rows = entry(row, "structures", list, what)
        structures = tuple(self.decoder.structure(tokens, f"an argument of {what}") for tokens in rows)
        types = self.decoder.types(entry(row, "types", list, what), what)
        result = self.decoder.structure(entry(row, "result", list, what), f"the result of {what}")
        needs_seed = entry(row, "seed", bool, what)
        mapped: tuple[bool, ...] | None = None
        if row.get("mapped") is not None:
            mapped = tuple(want(flag, bool, f"`mapped` of {what}") for flag in entry(row, "mapped", list, what))
        if len(structures) != len(signature.parameters if mapped is None else mapped):
            raise LoadError(f"{what} has {len(structures)} arguments, which do not fit the function's parameters")
        check_leaves([token for structure in structures for token in structure], len(types), what)
        library = self.library(number)
        count = result.count(tree.LEAF)
        _check_main(library.functions[library.main], types, count, needs_seed, what)
        weak, weak_results = flags(row, "weak", len(types), what), flags(row, "weak_results", count, what)
        most = max(_FEWEST_NODES, _GROWTH * sum(len(graph.nodes) for graph in library.functions.values()))
        return mapped, Captured(
            library, types, structures, result, count, needs_seed, most_nodes=most, weak=weak,
            weak_results=weak_results or (),
        )  # fmt: skip

    def library(self, number: int) -> Library:
        name = archive.graph_entry(number)
        try:
            found = text.parse(self.texts[name], self.constants)
            if not isinstance(found, Library):
                raise LoadError(f"{name} is a static graph, not a library")
            vet(found)
        except (GraphError, TypeMismatch) as fault:
            writer = str(self.manifest.get("undertow"))
            told = "" if writer == version() else f"it was written by Undertow {writer:.40}, and this is {version()}"
            raise LoadError(f"{name}: {fault.what}", hint=fault.hint or told) from fault
        return Library({key: _distant(graph) for key, graph in found.functions.items()}, found.main)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def _check_main(main: FunctionGraph, types: tuple[Type, ...], count: int, needs_seed: bool, what: str) -> None:
    """Check that the declared arguments and results are those of the graph."""
    takes = [main.nodes[param].types[0] for param in main.params]
    gives = [main.type_of(port) for port in main.results]
    if len(main.phases) != 1 or takes != [*types, *([Type(i64)] if needs_seed else [])]:
        raise LoadError(f"{what} declares arguments {list(types)!r:.200}, but its graph takes {takes!r:.200}")
    if len(gives) < count or CTL in gives[:count] or gives[count:] not in ([], [CTL]):
        raise LoadError(f"{what} declares {count} results, but its graph gives {gives!r:.200}")


def _distant(graph: FunctionGraph) -> FunctionGraph:
    """The graph with spans whose source lines are never read."""

    def far(span: Span | None) -> Span | None:
        return None if span is None else SavedSpan(span.file, span.line, span.column, span.function)

    nodes = tuple(replace(node, span=far(node.span)) if node.span is not None else node for node in graph.nodes)
    return replace(graph, nodes=nodes, span=far(graph.span))
