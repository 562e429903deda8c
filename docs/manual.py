"""The reference manual of the public names, written from their docstrings.

`python docs/manual.py > docs/reference/api.md` brings the file up to date; with `compat`, that of compat.v1; with
`plain`, what type checkers know of the functions that are made from rows, src/undertow/frontend/functions/plain.pyi;
with `public`, `random` and `options`, what they know of the public names: __init__.pyi, _random.pyi and _options.pyi.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import undertow
from undertow.api.options import Settings
from undertow.api.placed import PlacedView
from undertow.api.program import GraphView
from undertow.engines.contract import Options, Stats
from undertow.frontend.functions import plain
from undertow.ops import FAMILIES
from undertow.types import DType, Type

_HEAD = """\
# API

<!-- Written by `python docs/manual.py > docs/reference/api.md`; do not edit. -->

After `import undertow as ut`, these are all the public names: `ut.function`, `ut.sum` and so on. These modules may
also be imported: `undertow.ir.trace` reads traces, `undertow.ir.text` prints and parses graphs, `undertow.compat.v1` is
the TensorFlow 1 API, which has [its own page](compat_v1.md). Everything else is private, and may change without
notice.
"""

# The heading of what each module defines, in the order of the page.
_TITLES = {
    "undertow.api.function": "Functions and their runs",
    "undertow.api.custom": "Derivatives of your own",
    "undertow.api.grad": "Gradients",
    "undertow.api.jvp": "Tangents",
    "undertow.api.check_grads": "Checking derivatives",
    "undertow.api.reap": "A result for each activation",
    "undertow.frontend.functions.sowing": "What activations give",
    "undertow.subgraph": "SubGraphs",
    "undertow.api.options": "Options",
    "undertow.viz.event_file": "Event files",
    "undertow.api.save": "Saving",
    "undertow.api.load": "Loading",
    "undertow.types": "Types",
    "undertow.frontend.control.forms": "Control",
    "undertow.frontend.values.static": "Constants of a capture",
    "undertow.frontend.functions.elementwise": "Arithmetic",
    "undertow.frontend.functions.parts": "Complex numbers",
    "undertow.ops.logic": "Logic",
    "undertow.frontend.functions.reduction": "Reductions",
    "undertow.ops.nn": "Neural networks",
    "undertow.frontend.functions.linalg": "Products",
    "undertow.frontend.functions.matrices": "Linear algebra",
    "undertow.frontend.functions.array": "Arranging and picking",
    "undertow.frontend.functions.selecting": "Choosing by masks",
    "undertow.frontend.functions.standard": "Grids, sets and dtypes",
    "undertow.frontend.functions.creation": "Creation",
    "undertow.frontend.values.random": "Random numbers",
    "undertow.frontend.values.state": "State",
    "undertow.frontend.values.rows": "Sparse rows",
    "undertow.api.optim": "Optimizers",
    "undertow.data.forest": "Trees",
    "undertow.data.vocabulary": "Vocabularies of trees",
    "undertow.data.parse": "Trees from text",
    "undertow.data.unparse": "Trees as text",
    "undertow.data.nested": "Trees from nested values",
    "undertow.data.files": "Files of trees",
    "undertow.data.generate": "Trees made by rule",
    "undertow.data.film_grammar": "A treebank made by a grammar",
    "undertow.models.classifier": "Models that label trees",
    "undertow.models.tree_rnn": "TreeRNN",
    "undertow.models.rntn": "RNTN",
    "undertow.models.tree_lstm": "Binary TreeLSTM",
    "undertow.models.child_sum": "Child-sum TreeLSTM",
    "undertow.models.mv_rnn": "MV-RNN",
    "undertow.models.generator": "Models that grow trees",
    "undertow.models.top_down": "Top-down TreeLSTM",
    "undertow.models.doubly_recurrent": "Doubly recurrent network",
    "undertow.models.experts": "Mixtures of experts",
    "undertow.models.multiscale": "Multiscale RNN",
    "undertow.train.recipe": "Recipes of training",
    "undertow.train.source": "Trees to train on",
    "undertow.train.loop": "The training loop",
    "undertow.train.score": "How good a model is",
    "undertow.train.checkpoint": "Checkpoints",
    "undertow.train.log": "Logs of training",
    "undertow.train.curve": "Learning curves",
    "undertow.train.report": "Reports on trained models",
    "undertow.train.growth": "Reports on models that grow trees",
    "undertow.ray.clusters": "Workers on several machines",
    "undertow.parallel.trainer": "Training on workers",
    "undertow.frontend.values.scopes": "Order",
    "undertow.frontend.values.device": "Placement",
    "undertow.api.behaviors": "Behaviors",
    "undertow.frontend.control.updated": "Critical sections",
    "undertow.api.traces": "States, firings and schedules",
    "undertow.frontend.functions.debug": "Effects",
    "undertow.errors": "Errors",
}
# Families of rows whose functions are listed with those of a module.
_FAMILIES = {
    "undertow.ops.arith": "undertow.frontend.functions.elementwise",
    "undertow.ops.parts": "undertow.frontend.functions.parts",
    "undertow.ops.special": "undertow.frontend.functions.elementwise",
    "undertow.ops.reduce": "undertow.frontend.functions.reduction",
    "undertow.ops.linalg": "undertow.frontend.functions.linalg",
}
_STUB_HEAD = """\
\"\"\"Written by `python docs/manual.py plain`; do not edit.\"\"\"

from typing import Any
"""
_OPTIONS = """\
Besides `engine`, these are the options of a run. None means no limit; by default, `memory` is
a quarter of what is free when Undertow is imported"""
# Classes whose methods, or fields, follow the names of a module.
_OWNERS: dict[str, list[tuple[type, str]]] = {
    "undertow.api.function": [
        (undertow.Function, "A decorated function has these methods"),
        (GraphView, "A graph prints as text and renders as a picture in a notebook. It has these methods"),
        (PlacedView, "`placed` gives a view of the parts of a graph, with these methods"),
        (Stats, "`Stats`, the second of the pair that `stats=True` gives"),
    ],
    "undertow.frontend.values.state": [(undertow.Variable, "A variable has these methods")],
    "undertow.frontend.values.rows": [(undertow.IndexedRows, "Sparse rows have these methods")],
    "undertow.data.forest": [(undertow.data.Forest, "A forest has these methods")],
    "undertow.data.vocabulary": [(undertow.data.Vocabulary, "A vocabulary has these methods")],
    "undertow.models.classifier": [(undertow.models.TreeClassifier, "All of these models have these methods")],
    "undertow.models.generator": [(undertow.models.TreeGenerator, "All of these models have these methods")],
    "undertow.train.recipe": [(undertow.train.Recipe, "What a recipe says")],
    "undertow.api.optim": [
        (undertow.optim.Optimizer, "An optimizer has these methods"),
        (undertow.optim.Updater, "An updater has these methods"),
    ],
    "undertow.ray.clusters": [(undertow.ray.Cluster, "A cluster has these methods")],
    "undertow.parallel.trainer": [(undertow.ray.DataParallel, "A trainer has these methods")],
    "undertow.subgraph": [(undertow.SubGraph, "Besides the methods of functions it has")],
    "undertow.api.options": [(Options, _OPTIONS)],
}
_FIELD = re.compile(r"    (\w+): [^=#]+?(?: = (.+?))?(?:  # (.+))?")


def public_names() -> dict[str, Any]:
    """What `undertow` offers, by name; `random.normal` is the function in the public module `random`."""
    found: dict[str, Any] = {}
    for name in undertow.__all__:
        value = getattr(undertow, name)
        if isinstance(value, ModuleType):
            found |= {f"{name}.{inner}": getattr(value, inner) for inner in value.__all__}
        else:
            found[name] = value
    return dict(sorted(found.items(), key=lambda item: (item[0].lower(), item[0])))


def signature(value: Any) -> str:
    """The parameters and their defaults; `self` and annotations are left out."""
    parameters = inspect.signature(value).parameters.values()
    bare = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name != "self"]
    return str(inspect.Signature(bare))


def plain_stub() -> str:
    """The text of frontend/functions/plain.pyi."""
    functions = ((name, inspect.signature(getattr(plain, name))) for name in sorted(vars(plain)["__all__"]))
    lines = [f"def {name}{shown}: ...".replace("'", "") for name, shown in functions]
    return "\n".join((_STUB_HEAD, *lines, ""))


_TYPED = """\
\"\"\"Written by `python docs/manual.py {page}`; do not edit.\"\"\"
"""
_STUB_IMPORTS = ("import builtins", "from collections.abc import Callable, Sequence", "from typing import Any\n")
_OPTION_TYPES = {"memory": "int | str | None"}  # where users may write more than the engines see


def options_stub() -> str:
    """The text of _options.pyi: the keywords of `ut.options` and `f.run`, with their types."""
    lines = [_TYPED.format(page="options"), "import os", "from typing import TypedDict\n"]
    lines += ["from undertow.ir.trace import Event, Record\n", "class RunOptions(TypedDict, total=False):"]
    typed = {f.name: f.type for f in (*fields(Settings), *fields(Options))} | _OPTION_TYPES
    known = inspect.signature(undertow.options).parameters
    return "\n".join([*lines, *(f"    {name}: {typed[name]}" for name in known), ""])


def public_stub() -> str:
    """The text of __init__.pyi: what type checkers and editors know of the public names."""
    special = re.findall(r"^(?:class|def) ([a-z]\w*|[A-Z]\w*)", _read_stub("_annotations"), re.MULTILINE)
    imports: list[str] = []
    functions: list[str] = []
    for name in undertow.__all__:
        value = getattr(undertow, name)
        if isinstance(value, ModuleType):
            folder, _, inner = value.__name__.rpartition(".")
            imports.append(
                _imported("undertow", "_random", name) if name == "random" else _imported(folder, inner, name)
            )
        elif name in special:
            imports.append(_imported("undertow._annotations", name, name))
        elif inspect.isfunction(value) and "Any" in str(inspect.signature(value).return_annotation):
            functions.append(_declared(name, value))
        else:
            imports.append(_imported(value.__module__, value.__name__, name))
    listed = ",\n    ".join(f'"{name}"' for name in undertow.__all__) + ","
    heads = [*_STUB_IMPORTS, *sorted(imports, key=_natural), f"\n__all__ = [\n    {listed}\n]", "__version__: str\n"]
    return "\n".join([_TYPED.format(page="public"), *heads, *functions])


def _natural(line: str) -> list[Any]:
    """By this key, c64 comes before c128, as our formatter has it."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", line)]


def random_stub() -> str:
    """The text of _random.pyi."""
    module = undertow.random
    heads = [*_STUB_IMPORTS, _imported("undertow._annotations", "Array", "Array"), "\n__all__: list[str]\n"]
    functions = [_declared(name, getattr(module, name)) for name in sorted(module.__all__)]
    return "\n".join([_TYPED.format(page="random"), *heads, *functions])


def _imported(module: str, inner: str, name: str) -> str:
    return f"from {module} import {inner} as {name}"


def _declared(name: str, function: Any) -> str:
    """A function of arrays, for a stub: what is Any where it is defined is an array to its users."""
    shown = inspect.signature(function)
    shown = shown.replace(parameters=[
        p.replace(default=...) if isinstance(p.default, (str, DType)) else p for p in shown.parameters.values()
    ])  # fmt: skip
    result = str(shown.return_annotation).strip("'").replace("typing.", "")
    bare = str(shown.replace(return_annotation=inspect.Signature.empty)).replace("'", "").replace("typing.", "")
    bare = bare.replace("Ellipsis", "...")
    text = re.sub(r"\bbool\b", "builtins.bool", f"{bare} -> {result.replace('Any', 'Array')}")
    return f'def {name}{text}:\n    """{_summary(function)}"""\n'


def _read_stub(name: str) -> str:
    return (Path(undertow.__file__).parent / f"{name}.pyi").read_text(encoding="utf-8")


def _home(name: str, value: Any) -> str:
    """The module that a public name is listed with; a function that is made from a row, with its family."""
    if isinstance(value, (DType, Type)) or value is undertow.Array:
        return Type.__module__
    if value.__module__ != plain.__name__:
        return str(value.__module__)
    short = name.rpartition(".")[2]
    family = next(f.__name__ for f in FAMILIES for row in f.ROWS if row.takes and row.public == short)
    return _FAMILIES.get(family, family)


def manual() -> str:
    """The text of docs/reference/api.md."""
    groups: dict[str, dict[str, Any]] = {module: {} for module in _TITLES}
    for name, value in public_names().items():
        home = _home(name, value)
        assert home in groups, f"{name}: {home} has no heading in _TITLES of docs/manual.py"
        groups[home][name] = value
    return _HEAD + "".join("\n".join(_section(module, names)) + "\n" for module, names in groups.items())


def _section(module: str, names: Mapping[str, Any]) -> Iterator[str]:
    yield f"\n## {_TITLES[module]}\n"
    yield _summary(sys.modules[module]) + "\n"
    yield "| name | meaning |\n|---|---|"
    for name, value in names.items():
        if isinstance(value, DType):
            yield f"| `{name}` | the dtype {value.name}: {value.size} byte{'s' * (value.size > 1)} an element |"
        elif value is undertow.Array:
            yield f"| `{name}` | NumPy's arrays; type checkers take `Annotated[ut.Array, ut.f32[3]]` for `ut.f32[3]` |"
        elif inspect.isclass(value):
            yield f"| `{name}` | {_cell(value)} |"
        elif not callable(value):
            yield f"| `{name}` | `{value!r}` |"
        else:
            yield f"| `{name}{signature(value)}` | {_cell(value)} |"
    for owner, what in _OWNERS.get(module, ()):
        yield from (_fields if owner in (Options, Stats, undertow.train.Recipe) else _methods)(owner, what)


_COMPAT_HEAD = """\
# Names of compat.v1

<!-- Written by `python docs/manual.py compat > docs/reference/compat_v1.md`; do not edit. -->

After `import undertow.compat.v1 as tf`: what there is of TensorFlow 1. `tf.compat.v1` is `tf` itself.
[Coming from TensorFlow 1](../guides/coming_from_tensorflow_1.md) says what differs.
"""
_COMPAT = {
    "function": "Functions", "graph": "Graphs", "graphs.collection": "Names of collections", "session": "Sessions",
    "mirrored.config": "Configuration", "errors": "Errors", "tensor": "Tensors and operations",
    "graphs.shapes": "Shapes", "state": "Variables", "graphs.scopes": "Scopes of variables",
    "graphs.seeds": "Seeds", "control": "Control, order and places", "raw": "Control flow by itself",
    "repetition.tensor_array": "Arrays of tensors", "repetition.folds": "Folds",
    "array": "Tensors made, arranged and picked from", "arrays.arranging": "Shapes, parts and diagonals",
    "arrays.indices": "Indices, masks and sets", "arrays.segments": "Segments", "math": "Arithmetic",
    "arrays.numbers": "More arithmetic, and counts", "arrays.matrices": "Matrices", "arrays.checks": "Checks",
    "values.random": "Random numbers", "values.initializers": "Initial values", "nn": "Neural networks",
    "neural.rnn_cell": "Cells of recurrent networks", "layers": "Layers", "losses": "Losses",
    "gradients": "Gradients", "derivatives.curvature": "Second derivatives",
    "derivatives.slices": "Rows that stand for tables", "graphs.overrides": "Gradients of single operations",
    "train": "Training", "training.decay": "Rates that change", "training.averages": "Moving averages",
    "training.saver": "Checkpoints", "data": "Datasets", "layers.template": "Functions with variables",
    "mirrored.flags": "Flags", "clusters": "Clusters", "summary": "Summaries",
    "mirrored.run_options": "Options and metadata of runs", "mirrored.timeline": "Timelines",
    "mirrored.testing": "Test cases",
}  # fmt: skip
_COMPAT_PREFIXES = {
    "function": "tf.function.", "nn": "tf.nn.", "train": "tf.train.", "clusters": "tf.train.", "errors": "tf.errors.",
    "mirrored.testing": "tf.test.", "raw": "control_flow_ops.", "neural.rnn_cell": "tf.nn.rnn_cell.",
    "layers": "tf.layers.", "losses": "tf.losses.", "training.decay": "tf.train.", "training.averages": "tf.train.",
    "training.saver": "tf.train.", "data": "tf.data.", "mirrored.flags": "tf.app.flags.",
    "summary": "tf.summary.", "mirrored.timeline": "timeline.",
}  # fmt: skip
_COMPAT_TESTS = """
## Tests of TensorFlow 1.4 that do not pass

Of TensorFlow's tests of functions (`python/framework/function_test.py`) and of control flow
(`python/kernel_tests/control_flow_ops_py_test.py`), those that look at values and not at GraphDefs run here after their
imports are changed. These do not pass:

| test | why |
|---|---|"""
_COMPAT_REASONS = {
    "FunctionTest.testDeclareTypeMistake": "A call finds a function that was not added to the graph; 2 is 2.0.",
    "FunctionTest.testCustomGradient": "It compares exponentials up to the last bit of a float32.",
    "VariableHoistingTest.testBasic, VariableHoistingTest.testBasicResource": "Random numbers are not TensorFlow's.",
    "testCondGrad_Gather": "Gradients are dense.",
    "testWhileGradGradFail": "It asks for an error; here there are second derivatives of loops.",
    "testCond_6, testMergeShapes, testRefSelect": "Both sides of a choice have the same number of dimensions.",
    "testRefSwitch, testCondRef, testUninitializedRefIdentity": "There are no references to a variable's memory.",
    "testWhileWithRefsWithGradients_1": "Integers have no derivatives.",
    "testLoop_false, testLoop_1, testLoop_2, testDifferentFrame": "A loop is written as a whole, by `tf.while_loop`.",
    "testCallGradInLoop": "A gradient in a loop is one with respect to what the body itself uses.",
    "testWhilePyFuncBasic": "Python cannot be called from a graph.",
    "testWhileQueue_1, testWhileStack_1": "There are no queues and no stacks.",
    "testWhileShapeInferenceSparseTensor": "`shape_invariants` say nothing of sparse tensors.",
    "testDependenciesDevice, testWhileGrad_ColocateGradients": "Variables and gradients are placed nowhere.",
}
# Methods that other files of compat.v1 use, and no program.
_COMPAT_INTERNAL = frozenset((
    "body_of", "callee", "callees_of", "extract", "fed_param", "fetched", "function_of", "initialized", "is_defined",
    "last_id", "main_key", "name_of", "node_named", "outside", "param", "run_value", "scope_named", "scoped", "tasks",
    "trace", "types_of", "updated", "writing_to",
))  # fmt: skip


def compat_manual() -> str:
    """The text of docs/reference/compat_v1.md."""
    import undertow.compat.v1 as tf  # nobody who wants the other page needs it

    lines = [_COMPAT_HEAD]
    short = "Functions of this page under their short names."
    for module, title in _COMPAT.items():
        held = sys.modules[f"undertow.compat.v1.{module}"]
        names = getattr(
            held, "__all__", [n for n, v in vars(tf).items() if getattr(v, "__module__", "") == held.__name__]
        )
        if module == "train":  # its clusters have a heading of their own
            names = [name for name in names if getattr(held, name).__module__ == held.__name__]
        before = _COMPAT_PREFIXES.get(module, "tf.")
        lines += [f"\n## {title}\n", _summary(held) + "\n", "| name | meaning |", "|---|---|"]
        for name in names:
            value = getattr(held, name)
            shown = signature(value) if inspect.isroutine(value) else ""
            plain = short if isinstance(value, SimpleNamespace) else f"`{value!r}`"
            lines.append(f"| `{before}{name}{shown}` | {_cell(value) if callable(value) else plain} |")
        for owner in (
            "Tensor", "TensorShape", "Operation", "Variable", "VariableScope", "Session", "Graph", "Optimizer",
            "ClusterSpec", "Server", "TestCase", "TensorArray", "Layer", "RNNCell", "ExponentialMovingAverage", "Saver",
            "Dataset", "Iterator", "IndexedSlices", "FileWriter", "Timeline",
        ):  # fmt: skip
            if owner in names:
                lines += _methods(getattr(held, owner), f"`{before}{owner}` has these methods", _COMPAT_INTERNAL)
                for base in getattr(held, owner).__mro__[1:]:
                    if base.__module__.startswith("undertow.compat"):
                        lines += list(_methods(base, "", _COMPAT_INTERNAL))[2:]
    reasons = [
        f"| {', '.join(f'`{t}`' for t in tests.split(', '))} | {why} |" for tests, why in _COMPAT_REASONS.items()
    ]
    dtypes = ", ".join(f"`tf.{n}`" for n, v in vars(tf).items() if isinstance(v, DType) and n in tf.__all__)
    return (
        "\n".join(
            [
                *lines,
                "\n## Dtypes\n",
                f"{dtypes}. Indexed they are types of arrays: `tf.float32[2, None]`.",
                _COMPAT_TESTS,
                *reasons,
            ]
        )
        + "\n"
    )


def _methods(owner: type, what: str, hidden: frozenset[str] = frozenset()) -> Iterator[str]:
    yield f"\n{what}:\n"
    yield "| method | meaning |\n|---|---|"
    for name, value in vars(owner).items():
        if isinstance(value, property) and value.__doc__ and name not in hidden:
            yield f"| `.{name}` | {_cell(value)} |"
        elif inspect.isfunction(value) and name not in hidden and (not name.startswith("_") or name == "__call__"):
            called = "f" if name == "__call__" else f".{name}"
            yield f"| `{called}{signature(value)}` | {_cell(value)} |"


def _fields(owner: type, what: str) -> Iterator[str]:
    """The fields of a dataclass, explained by the comments beside them."""
    yield f"\n{what}:\n"
    yield "| field | default | meaning |\n|---|---|---|"
    for line in inspect.getsource(owner).splitlines():
        if match := _FIELD.fullmatch(line):
            name, default, comment = match.groups()
            shown = "" if default is None or "field(" in default else f"`{default}`"
            yield f"| `{name}` | {shown} | {comment or ''} |"


def _summary(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def _cell(value: Any) -> str:
    return _summary(value).replace("|", "\\|")


if __name__ == "__main__":
    stubs = {"plain": plain_stub, "options": options_stub, "public": public_stub, "random": random_stub}
    pages = {"compat": compat_manual, **stubs}
    print(pages.get("".join(sys.argv[1:]), manual)(), end="")
