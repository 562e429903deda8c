"""The commands `undertow demo | run | graph | explain`: programs of the user's, and our own."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import json
import os
import sys
import traceback
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import typer

import undertow as ut
from undertow.api.options import ENGINES, settings
from undertow.api.program import GraphView
from undertow.cli.console import check_options, make_console, table, telling_errors
from undertow.engines.contract import rows_of
from undertow.engines.demand import explain as log_of_demands
from undertow.errors import UndertowError
from undertow.frontend.values import tree
from undertow.ir.graph import Node
from undertow.ir.trace import show_tag
from undertow.passes.pipeline import library_steps
from undertow.passes.report import size

Target = Annotated[str, typer.Argument(metavar="FILE:FUNCTION", help="A .py file or module, and a function in it.")]
Values = Annotated[
    list[str] | None, typer.Argument(metavar="ARGS", help="The function's arguments, as Python literals or JSON.")
]


class Format(str, Enum):
    """What `undertow graph` writes."""

    text = "text"
    svg = "svg"
    dot = "dot"


class Placement(str, Enum):
    """How `undertow graph --placed` finds the part of what has no device."""

    devices = "devices"
    auto = "auto"


def demo(
    output: Annotated[Path, typer.Option(help="Folder for the picture and the trace.")] = Path("build/demo"),
    lesson: Annotated[int, typer.Option(help="Number of trees for the final training step; 0 skips it.")] = 3000,
) -> None:
    """See recursion run in a static graph: a short tour."""
    from undertow.cli.demo import show  # it captures its programs when imported

    with telling_errors():
        show(make_console(), output, lesson)


def run(
    context: typer.Context,
    target: Target,
    values: Values = None,
    engine: Annotated[str, typer.Option(help=f"One of auto, {', '.join(ENGINES)}.")] = "auto",
    scheduler: Annotated[str | None, typer.Option(help="Which ready node fires next: fifo, lifo or random.")] = None,
    schedule_seed: Annotated[int | None, typer.Option(help="Seed of the random scheduler.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the program's random numbers.")] = None,
    max_depth: Annotated[int | None, typer.Option(help="Maximum depth of nested calls.")] = None,
    frames: Annotated[int | None, typer.Option(help="Maximum number of live frames.")] = None,
    memory: Annotated[str | None, typer.Option(help="Maximum bytes in frames, e.g. 500K, 64M or 1.5G.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Maximum run time in seconds.")] = None,
    trace: Annotated[
        Path | None, typer.Option(help="Write every event of the run to this file: JSON lines; .json: Chrome's format.")
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print statistics of the run.")] = False,
) -> None:
    """Run a function and print its result."""
    arguments = [_literal(value) for value in values or []]
    options = {name: value for name, value in context.params.items() if name not in ("target", "values", "stats")}
    for name in ("memory", "max_depth"):
        if options[name] is None:
            del options[name]  # None would be no limit
    check_options(options)
    with telling_errors():
        result, counted = _find(target).run(*arguments, stats=True, **options)
        typer.echo(_show(result))
        if stats:
            *rows, seconds = rows_of(counted)
            steps = ", ".join(f"{name} {took:.3f}" for name, took in counted.step_seconds.items())
            tag = ("deepest tag", show_tag(counted.deepest_tag))
            make_console().print(table([*rows, tag, seconds, *[("of these", steps)] * bool(steps)]))
        if trace is not None:
            typer.echo(f"Wrote {trace}", err=True)


def graph(
    target: Target,
    values: Values = None,
    format: Annotated[
        Format | None, typer.Option(help="By default that of the output's suffix: .svg, .dot, .gv or .txt.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Print the plan that the engine executes.")] = False,
    passes: Annotated[bool, typer.Option("--passes", help="Print what each pass does.")] = False,
    intensional: Annotated[
        bool, typer.Option("--intensional", help="Print the zero-order program with call_i and actuals.")
    ] = False,
    graphdef: Annotated[
        Path | None, typer.Option(help="Write the functions as TensorFlow's GraphDef, as text if it ends in .pbtxt.")
    ] = None,
    placed: Annotated[bool, typer.Option("--placed", help="Cut it into the parts that its devices name.")] = False,
    workers: Annotated[int | None, typer.Option(min=0, help="With --placed: how many workers there are.")] = None,
    placement: Annotated[
        Placement | None, typer.Option(help="With --placed: where devices say, or where it pays by an estimate.")
    ] = None,
) -> None:
    """Print or draw the static graph of a function. Arguments may be omitted if all have annotated types."""
    arguments = [_literal(value) for value in values or []]
    format = format or _format_of(output)
    with telling_errors():
        function = _find(target)
        arguments = arguments or _zeros(function)
        asked = [(f"--{name}", has) for name, is_wanted, has in (
            ("plan", plan, "a plan has"),
            ("passes", passes, "passes have"),
            ("intensional", intensional, "an intensional program has"),
        ) if is_wanted]  # fmt: skip
        if asked and format is not Format.text:
            raise _usage(f"{asked[0][1]} only a text form", asked[0][0])
        if workers is not None and not placed:
            raise _usage("the number of workers is for --placed", "--workers")
        if placement is not None and not placed:
            raise _usage("a placement is for --placed", "--placement")
        if placed and asked:
            raise _usage("a placed graph is neither a plan nor a list of passes nor an intensional program", "--placed")
        if placed and graphdef is not None:
            raise _usage("a GraphDef is of the whole graph", "--placed")
        view = _from_here(function.graph(*arguments))
        if graphdef is not None:
            message = view.graph_def()
            graphdef.parent.mkdir(parents=True, exist_ok=True)
            is_text = graphdef.suffix == ".pbtxt"
            graphdef.write_bytes(str(message).encode() if is_text else message.SerializeToString())
            functions = len(message.library.function)
            typer.echo(f"Wrote {graphdef}: {functions} function{'s' * (functions != 1)}", err=True)
            return
        if passes:
            chosen = settings()
            engine = chosen.find_engine()
            is_hoisted = engine.takes_hoisted and chosen.simplify
            wanted = is_hoisted, chosen.simplify, chosen.is_checked, engine.forms_waves, chosen.reorder
            steps = library_steps(function.library(*arguments), *wanted)
            text = "\n".join([*map(str, steps), f"{'flatten':9} {size(view.library):5} -> {len(view):5} nodes"])
        elif plan:
            text = str(function.plan(*arguments)).rstrip("\n")
        elif intensional:
            text = view.intensional().rstrip("\n")
        else:
            shown = view.placed(workers, (placement or Placement.devices).value) if placed else view
            text = {Format.text: shown.__str__, Format.svg: shown.svg, Format.dot: shown.dot}[format]().rstrip("\n")
        if output is None:
            typer.echo(text)
        else:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(text + "\n", encoding="utf-8")
            typer.echo(f"Wrote {output}" if asked else f"Wrote {output}: {len(view)} nodes", err=True)


def explain(
    target: Target,
    values: Values = None,
    lines: Annotated[int, typer.Option(min=1, help="How many lines there may be.")] = 400,
) -> None:
    """Show how a call is evaluated on demand: which value asks for which, under which tag."""
    arguments = [_literal(value) for value in values or []]
    with telling_errors():
        function = _find(target)
        program, leaves = function.__undertow_program__(function.__undertow_arguments__(arguments, {}))
        typer.echo(log_of_demands(program.view(), program.inputs(leaves, settings()), lines))


# --------------------------------------------------------------------------------------------------------------
# Shared by the commands


def _usage(message: str, name: str = "") -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=f"'{name}'" if name else None)


def _literal(text: str) -> Any:
    """An argument as a Python literal, or else as JSON."""
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        return ast.literal_eval(text)
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    if text.startswith("-"):
        raise _usage(f"unknown option {text.split('=')[0]}; --help lists the options")
    raise _usage(f"{text} is neither a Python literal nor JSON; a string needs its own quotes", "ARGS")


def _find(target: str) -> ut.Function:
    """The function that FILE:FUNCTION names."""
    place, colon, name = target.rpartition(":")
    if not (place and colon and name):
        raise _usage(f"{target} is not a function; write file.py:function", "FILE:FUNCTION")
    module = _load(place)
    try:
        function: Any = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        there = sorted(key for key, value in vars(module).items() if isinstance(value, ut.Function))
        hint = f"it has {', '.join(there)}" if there else "no function there is decorated with @ut.function"
        raise _usage(f"there is no {name} in {place}; {hint}", "FILE:FUNCTION") from None
    if not isinstance(function, ut.Function):
        raise _usage(f"{name} in {place} is not decorated with @ut.function", "FILE:FUNCTION")
    *outer, short = name.split(".")
    owner: Any = functools.reduce(getattr, outer, module)
    if isinstance(owner, type) and isinstance(inspect.getattr_static(owner, short), ut.Function):
        raise _usage(
            f"{name} is a method; name that of an object: {place}:x.{short}, where x = {owner.__name__}(...)",
            "FILE:FUNCTION",
        )
    return function


def _load(place: str) -> ModuleType:
    """A module, by path or by name. What it prints goes to stderr; if it fails, its own traceback is shown."""
    path = Path(place)
    is_path = path.suffix == ".py" or path.exists()
    if is_path and not path.is_file():
        raise _usage(f"file {place} not found", "FILE:FUNCTION")
    sys.path.insert(0, str(path.resolve().parent) if is_path else os.getcwd())
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return _load_file(path) if is_path else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if not is_path and error.name is not None and (place + ".").startswith(error.name + "."):
            raise _usage(f"module {place} not found; a file name ends in .py", "FILE:FUNCTION") from None
        _show_theirs(error)
    except Exception as error:
        _show_theirs(error)
    raise typer.Exit(1)


def _load_file(path: Path) -> ModuleType:
    name = path.stem if path.stem not in sys.modules else f"{path.stem} as a file"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _usage(f"{path} is not a Python file", "FILE:FUNCTION")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _show_theirs(error: Exception) -> None:
    """Print the user's traceback, without our frames and those of the import system."""
    at = error.__traceback__
    while at is not None and (at.tb_frame.f_code.co_filename == __file__ or "importlib" in str(at.tb_frame.f_code)):
        at = at.tb_next
    if isinstance(error, UndertowError):
        typer.echo(f"{type(error).__name__}: {error}", err=True)
    else:
        traceback.print_exception(type(error), error, at)


_SUFFIXES = {"": Format.text, ".txt": Format.text, ".svg": Format.svg, ".dot": Format.dot, ".gv": Format.dot}


def _format_of(output: Path | None) -> Format:
    """The format that the suffix of a file stands for."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix not in _SUFFIXES:
        known = ", ".join(filter(None, _SUFFIXES))
        raise _usage(f"{output} has an unknown suffix; use one of {known}, or choose a --format", "--output")
    return _SUFFIXES[suffix]


def _from_here(view: GraphView) -> GraphView:
    """The same graph with file names relative to the working directory, as in compiler output."""
    here = os.getcwd() + os.sep

    def shorten(node: Node) -> Node:
        if node.span is None or not node.span.file.startswith(here):
            return node
        return replace(node, span=replace(node.span, file=node.span.file[len(here) :]))

    static = replace(view.static, nodes=tuple(map(shorten, view.static.nodes)))
    return GraphView(static, view.library, captured=view.captured)


def _zeros(function: ut.Function) -> list[Any]:
    """A value of its annotated type for each parameter without a default; only types matter to a graph."""
    definition = function.__undertow_definition__
    values: list[Any] = []
    for name, parameter in list(definition.closure.signature.parameters.items())[len(function.__undertow_bound__) :]:
        if parameter.default is not inspect.Parameter.empty or parameter.kind != parameter.POSITIONAL_OR_KEYWORD:
            continue
        note = definition.note(name)
        if note is None:
            raise _usage(f"{name} has no complete type annotation: pass the arguments", "ARGS")
        leaves = [np.zeros([d if isinstance(d, int) else 1 for d in t.shape], t.dtype.numpy)[()] for t in note.types]
        values.append(tree.unflatten(note.structure, leaves))
    return values


# --------------------------------------------------------------------------------------------------------------
# Output


def _show(result: Any) -> str:
    """A result as Python would write it, NumPy's scalars as plain numbers."""
    leaves, structure = tree.flatten(result)
    if structure == (tree.LEAF,):
        return str(result)
    plain = [leaf.item() if isinstance(leaf, np.generic) else leaf for leaf in leaves]
    return str(tree.unflatten(structure, plain))
