"""The command line: what goes to stdout and to stderr, and the exit code."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import undertow as ut
from undertow.api.options import ENGINES
from undertow.cli import commands as cli
from undertow.cli import programs

PROGRAMS = """
import undertow as ut

print("this is printed while the file is loaded")


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def total(xs: ut.f64["n"], scale: ut.f64 = 1.0) -> ut.f64:
    return scale * ut.sum(xs)


@ut.function
def pair(point: tuple[ut.f64, ut.i64]) -> dict:
    x, n = point
    return {"x": x * n, "both": [x, n]}


@ut.function
def fails(n: ut.i64) -> ut.i64:
    return 1 // n if n == 0 else fails(n - 1)


@ut.function
def refused(n: ut.i64) -> ut.i64:
    return refused(n - 1)


@ut.function
def draw() -> ut.f64:
    return ut.random.uniform()


@ut.function
def untyped(x):
    return x


def plain(n):
    return n


class Box:
    @staticmethod
    @ut.function
    def double(n: ut.i64) -> ut.i64:
        return 2 * n

    @ut.function
    def add(self, n: ut.i64) -> ut.i64:
        return n + 1


box = Box()
"""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def undertow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command in a folder that has my_programs.py."""
    (tmp_path / "my_programs.py").write_text(PROGRAMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")  # messages in one piece
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def call(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["undertow", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[name]
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, *capfd.readouterr())

    return call


# --------------------------------------------------------------------------------------------------------------
# run


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (("my_programs.py:fib", "10"), "89"),
        (("my_programs:fib", "10"), "89"),
        (("./my_programs.py:fib", "-10"), "1"),
        (("my_programs.py:total", "[1, 2.5, 3]"), "6.5"),
        (("my_programs.py:total", "[1, 2]", "-2.0"), "-6.0"),
        (("my_programs.py:pair", "(0.5, 4)"), "{'x': 2.0, 'both': [0.5, 4]}"),
        (("my_programs.py:untyped", "true"), "True"),
        (("my_programs.py:untyped", "[[1, 2], [3, 4]]"), "[[1, 2], [3, 4]]"),
        (("my_programs.py:Box.double", "21"), "42"),
        (("my_programs.py:box.add", "21"), "22"),
        (("my_programs.py:fib", "10", "--engine", "reference", "--scheduler", "random", "--schedule-seed", "3"), "89"),
        (("my_programs.py:fib", "--max-depth=20", "10", "--frames=1000", "--memory", "64M", "--timeout", "60"), "89"),
    ],
)
def test_run(undertow: Callable[..., Done], arguments: tuple[str, ...], printed: str) -> None:
    done = undertow("run", *arguments)
    assert done == Done(0, printed + "\n", "this is printed while the file is loaded\n")


def test_run_seed(undertow: Callable[..., Done]) -> None:
    first, again, other = (undertow("run", "my_programs.py:draw", "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_run_stats(undertow: Callable[..., Done]) -> None:
    lines = undertow("run", "my_programs.py:fib", "3", "--stats").out.splitlines()
    assert lines[0] == "3"
    found = {line[:16].strip(): line[16:].strip() for line in lines[1:]}
    assert found["activations"] == "5"
    assert found["deepest tag"] == "[2, 2, 1]"
    assert found["waves"] == "3, 1.7 lanes wide on average, 2 at most"
    assert found["of these"].startswith("operators 0.0")


def test_run_in_an_order(undertow: Callable[..., Done]) -> None:
    lines = undertow("run", "my_programs.py:fib", "3", "--scheduler", "lifo", "--stats").out.splitlines()
    assert lines[1].split() == ["engine", "reference"] and not any(line.startswith("waves") for line in lines)
    done = undertow("run", "my_programs.py:fib", "3", "--scheduler", "lifo", "--engine", "waves")
    assert done.code == 2 and "scheduler='lifo' applies to the engine reference, not to waves" in " ".join(
        done.err.split()
    )


def test_run_trace(undertow: Callable[..., Done], tmp_path: Path) -> None:
    done = undertow("run", "my_programs.py:fib", "3", "--trace", "run.jsonl")
    assert done.out == "3\n"
    assert "run.jsonl" in done.err
    events = [json.loads(line)["event"] for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert events[0] == "run" and events[-1] == "run_end"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("my_programs.py:fails", "2"), "Fault: integer division by zero\ntag traceback"),
        (("my_programs.py:fib", "10", "--max-depth", "3"), "RecursionLimit: calls nest deeper than max_depth=3"),
        (("my_programs.py:fib", "10", "--frames", "3"), "FrameLimit: "),
        (("my_programs.py:fib", "1.5"), "TypeMismatch: "),
        (("my_programs.py:fib",), "CaptureError: "),
        (("my_programs.py:refused", "3"), "CaptureError: "),
        (("my_programs.py:fib", "3", "--trace", "no/such/folder/x"), "UndertowError: the trace cannot be written"),
    ],
)
def test_run_fails(undertow: Callable[..., Done], arguments: tuple[str, ...], message: str) -> None:
    done = undertow("run", *arguments)
    assert done.code == 1
    assert done.out == ""
    assert f"\n{message}" in done.err
    assert "Traceback (most recent" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Missing argument"),
        (("my_programs.py",), "is not a function"),
        (("my_programs.py:",), "is not a function"),
        (("nothing.py:fib", "1"), "file nothing.py not found"),
        (("nothing:fib", "1"), "module nothing not found"),
        (("my_programs.py:fob", "1"), "it has draw, fails, fib, pair, refused, total, untyped"),
        (("my_programs.py:plain", "1"), "not decorated with @ut.function"),
        (("my_programs.py:Box.add", "1"), "Box.add is a method; name that of an object: my_programs.py:x.add"),
        (("my_programs.py:fib", "ten"), "neither a Python literal nor JSON"),
        (("my_programs.py:fib", "10", "--shceduler", "lifo"), "unknown option --shceduler"),
        (
            ("my_programs.py:fib", "10", "--scheduler", "best"),
            "unknown scheduler 'best'; choose from fifo, lifo, random",
        ),
        (("my_programs.py:fib", "10", "--engine", "steam"), "unknown engine 'steam'"),
        (("my_programs.py:fib", "10", "--frames", "-1"), "negative"),
        (("my_programs.py:fib", "10", "--memory", "lots"), "not a number of bytes"),
    ],
)
def test_wrong_usage(undertow: Callable[..., Done], arguments: tuple[str, ...], message: str) -> None:
    done = undertow("run", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert message in done.err
    assert "Usage: undertow run" in done.err


def test_a_file_that_fails(undertow: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def helper():\n    1 / 0\n\nhelper()\n")
    done = undertow("run", "broken.py:f")
    assert done.code == 1
    assert "broken.py" in done.err and "ZeroDivisionError" in done.err
    assert "cli.py" not in done.err and "importlib" not in done.err


def test_a_file_that_imports_what_is_not_there(undertow: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "lost.py").write_text("import no_such_module\n")
    for place in ("lost.py:f", "lost:f"):
        done = undertow("run", place)
        assert done.code == 1
        assert "No module named 'no_such_module'" in done.err


def test_a_file_named_like_a_module(undertow: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(PROGRAMS)
    assert undertow("run", "json.py:fib", "5").out == "8\n"
    assert sys.modules["json"] is json


# --------------------------------------------------------------------------------------------------------------
# graph


def test_graph(undertow: Callable[..., Done]) -> None:
    with_arguments = undertow("graph", "my_programs.py:fib", "10")
    assert with_arguments.code == 0
    assert with_arguments.out.startswith("static 1 fib\n")
    assert undertow("graph", "my_programs.py:fib").out == with_arguments.out


def test_plan(undertow: Callable[..., Done], tmp_path: Path) -> None:
    done = undertow("graph", "my_programs.py:fib", "--plan")
    assert done.out.startswith("plan 1 fib\n") and "group 0 lockstep" in done.out
    assert undertow("graph", "my_programs.py:fib", "10", "--plan", "-o", "fib.txt").code == 0
    assert (tmp_path / "fib.txt").read_text() == done.out
    assert "a plan has only a text form" in undertow("graph", "my_programs.py:fib", "--plan", "-o", "fib.svg").err


def test_passes(undertow: Callable[..., Done]) -> None:
    lines = undertow("graph", "my_programs.py:fib", "--passes").out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "simplify",
        "delay",
        "unorder",
        "restore",
        "split",
        "reap",
        "extend",
        "hoist",
        "flatten",
    ]
    assert lines[1].split(maxsplit=1)[1] == "nothing changed"
    assert lines[-1].endswith("21 nodes")
    assert "passes have only a text form" in undertow("graph", "my_programs.py:fib", "--passes", "-o", "fib.svg").err


def test_intensional(undertow: Callable[..., Done], tmp_path: Path) -> None:
    done = undertow("graph", "my_programs.py:fib", "--intensional")
    assert (
        done.out.startswith("result = call_0(fib)\nfib = if (") and "\nn = actuals(input_n, n - 1, n - 2)" in done.out
    )
    assert undertow("graph", "my_programs.py:fib", "--intensional", "-o", "fib.txt").code == 0
    assert (tmp_path / "fib.txt").read_text() == done.out
    assert "only a text form" in undertow("graph", "my_programs.py:fib", "--intensional", "--format", "svg").err
    (tmp_path / "loops.py").write_text(LOOP, encoding="utf-8")
    refused = undertow("graph", "loops.py:total", "--intensional")
    assert refused.code == 1 and "`total` has a loop" in refused.err and "loops.py:7" in refused.err


LOOP = """\
import undertow as ut

@ut.function
def total(n: ut.i64) -> ut.i64:
    total = 0

    for i in range(n):
        total += i
    return total
"""


def test_explain(undertow: Callable[..., Done]) -> None:
    lines = undertow("explain", "my_programs.py:fib", "2").out.splitlines()
    assert lines[0] == "EVAL(fib, []) = EVAL(fib, [1])" and lines[-1] == "EVAL(fib, []) = 2"
    assert undertow("explain", "my_programs.py:fib", "9", "--lines", "5").out.splitlines()[5].endswith("lines more")
    assert undertow("explain", "my_programs.py:fib", "a").code == 2


def test_graphdef(undertow: Callable[..., Done], tmp_path: Path) -> None:
    done = undertow("graph", "my_programs.py:fib", "--graphdef", "graphs/fib.pb")
    assert (done.code, done.out) == (0, "") and done.err.endswith("Wrote graphs/fib.pb: 1 function\n")
    assert b"fib" in (tmp_path / "graphs" / "fib.pb").read_bytes()
    assert undertow("graph", "my_programs.py:fib", "--graphdef", "fib.pbtxt").code == 0
    assert 'name: "fib"' in (tmp_path / "fib.pbtxt").read_text()
    assert "of the whole graph" in undertow("graph", "my_programs.py:fib", "--placed", "--graphdef", "x.pb").err


def test_placed(undertow: Callable[..., Done], tmp_path: Path) -> None:
    (tmp_path / "placed.py").write_text(PLACED, encoding="utf-8")
    done = undertow("graph", "placed.py:fac", "--placed")
    assert done.out.startswith("placed 1 parts=2 edges=2\n") and "\nedge 1 fac/less_equal: 0 -> 1\n" in done.out, (
        done.err
    )
    assert undertow("graph", "placed.py:fac", "--placed", "--workers", "3").out.startswith("placed 1 parts=4")
    assert undertow("graph", "placed.py:fac", "5", "--placed", "-o", "fac.svg").code == 0
    assert "worker:0" in (tmp_path / "fac.svg").read_text()
    assert "bold,dashed" in undertow("graph", "placed.py:fac", "--placed", "--format", "dot").out
    assert "no such worker" in undertow("graph", "placed.py:fac", "--placed", "--workers", "0").err
    assert "is for --placed" in undertow("graph", "placed.py:fac", "--workers", "2").err
    assert "% part 1, worker:0" in undertow("graph", "placed.py:fac", "--placed").out
    assert undertow("graph", "placed.py:fac", "--placed", "--placement", "auto").out.startswith("placed 1 parts=2")
    assert "is for --placed" in undertow("graph", "placed.py:fac", "--placement", "auto").err
    assert "neither a plan" in undertow("graph", "placed.py:fac", "--placed", "--plan").err


PLACED = """\
import undertow as ut


@ut.function
def fac(n: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    with ut.device("worker:0"):
        less = n - 1
    return n * fac(less)
"""


@pytest.mark.parametrize("function", ["total", "pair", "draw"])
def test_graph_without_arguments(undertow: Callable[..., Done], function: str) -> None:
    done = undertow("graph", f"my_programs.py:{function}")
    assert done.out.startswith(f"static 1 {function}\n"), done.err


def test_graph_needs_types(undertow: Callable[..., Done]) -> None:
    done = undertow("graph", "my_programs.py:untyped")
    assert done.code == 2
    assert "x has no complete type annotation" in done.err


@pytest.mark.parametrize(
    ("options", "beginning"),
    [
        (("--format", "svg", "-o", "picture"), "<svg"),
        (("--output", "new/picture.svg"), "<svg"),
        (("-o", "picture.dot"), "digraph"),
        (("-o", "picture.GV"), "digraph"),
        (("-o", "picture.md", "--format", "text"), "static 1 fib"),
        (("-o", "picture.txt"), "static 1 fib"),
        (("-o", "picture.svg", "--format", "text"), "static 1 fib"),
    ],
)
def test_graph_to_file(undertow: Callable[..., Done], tmp_path: Path, options: tuple[str, ...], beginning: str) -> None:
    done = undertow("graph", "my_programs.py:fib", *options)
    assert (done.code, done.out) == (0, "")
    file = next(o for o in options if "picture" in o)
    assert f"Wrote {file}: {len(programs._find('my_programs.py:fib').graph(0))} nodes" in done.err
    assert (tmp_path / file).read_text(encoding="utf-8").startswith(beginning)


def test_graph_refuses_other_suffixes(undertow: Callable[..., Done], tmp_path: Path) -> None:
    done = undertow("graph", "my_programs.py:fib", "-o", "fib.png")
    assert (done.code, done.out) == (2, "")
    assert "fib.png has an unknown suffix; use one of .txt, .svg, .dot, .gv" in done.err
    assert not (tmp_path / "fib.png").exists()


def test_graph_names_files_from_here(undertow: Callable[..., Done], tmp_path: Path) -> None:
    picture = undertow("graph", "my_programs.py:fib", "--format", "svg").out
    assert "my_programs.py:" in picture
    assert str(tmp_path) not in picture


def test_graph_that_cannot_be_written(undertow: Callable[..., Done]) -> None:
    done = undertow("graph", "my_programs.py:fib", "--output", "my_programs.py/fib.svg")
    assert (done.code, done.out) == (1, "")
    assert "Error: " in done.err and "my_programs.py" in done.err
    assert "Traceback" not in done.err


def test_graph_format(undertow: Callable[..., Done]) -> None:
    assert undertow("graph", "my_programs.py:fib", "--format", "dot").out.startswith("digraph")
    assert undertow("graph", "my_programs.py:fib", "--format", "png").code == 2


# --------------------------------------------------------------------------------------------------------------
# The others


def test_version(undertow: Callable[..., Done]) -> None:
    assert undertow("--version") == Done(0, f"undertow {ut.__version__}\n", "")


def test_help(undertow: Callable[..., Done]) -> None:
    for command in ("demo", "run", "graph", "train", "predict", "doctor"):
        assert command in undertow("--help").out
        assert undertow(command, "-h").code == 0


def test_no_command(undertow: Callable[..., Done]) -> None:
    done = undertow()
    assert "doctor" in done.out + done.err
    assert undertow("nonsense").code == 2


@pytest.mark.parametrize(("name", "summary"), [(name, summary) for name, _, summary in cli.COMMANDS])
def test_the_help_says_what_commands_say_of_themselves(name: str, summary: str) -> None:
    command = cli.loaded(name)
    written = inspect.getdoc(command) if callable(command) and inspect.isfunction(command) else command.info.help
    assert " ".join(written.split("\n\n")[0].split()) == summary


def test_help_and_doctor_load_little() -> None:
    """They take a fraction of a second, as most of it is the loading of modules."""
    script = "import sys; from undertow.cli import main; sys.argv = ['undertow', {!r}]\n"
    script += "try: main()\nexcept SystemExit: pass\n"
    script += "print(*(name for name in sys.modules if name.startswith('undertow')), file=sys.stderr)"
    env = {**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    for word, absent in (
        ("--help", ("undertow.api", "undertow.ir")),
        ("doctor", ("undertow.train", "undertow.models")),
    ):
        command = [sys.executable, "-c", script.format(word)]
        done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
        assert not set(absent) & set(done.stderr.split())


def test_doctor(undertow: Callable[..., Done]) -> None:
    done = undertow("doctor")
    assert done.code == 0
    found = {line[:20].strip(): line[20:].strip() for line in done.out.splitlines()}
    assert found["undertow"] == ut.__version__
    assert found["engines"].replace(" (auto)", "") == ", ".join(ENGINES) and "waves (auto)" in found["engines"]
    assert {"Python", "numpy", "igraph", "cores", "memory", "torch (extra)", "dot (Graphviz)", "C++ compiler"} <= set(
        found
    )
    assert "\x1b" not in done.out


@pytest.mark.slow
def test_demo(undertow: Callable[..., Done], tmp_path: Path) -> None:
    done = undertow("demo", "--lesson", "100")
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert "Fault: integer division by zero" in done.out
    assert "calls nested 200,001 deep" in done.out
    gradients = [line.split() for line in done.out.partition("Gradients")[2].splitlines() if line.startswith("1,000 ")]
    assert gradients == [["1,000", "20959.16", "2.075164e+07", "2.075164e+07", "1,001", "1,002", "45"]]
    assert (tmp_path / "build/demo/fib.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "build/demo/fib.jsonl").exists()
    has_picture = (tmp_path / "build/demo/listops.png").exists()
    assert has_picture == (importlib.util.find_spec("matplotlib") is not None)
    assert has_picture or "pip install 'undertow[plots]'" in " ".join(done.out.split())
    rows = [line.split() for line in done.out.splitlines() if line.startswith(("fifo ", "lifo ", "random "))]
    assert {row[1] for row in rows} == {"21"} and {row[4] for row in rows} == {"41"}


@pytest.mark.slow
def test_without_unicode(tmp_path: Path) -> None:
    """A terminal that knows ASCII only shows the rest."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(cli.__file__).parents[2])}
    command = [sys.executable, "-m", "undertow", "demo", "--lesson", "0"]
    done = subprocess.run(command, capture_output=True, env=env, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
