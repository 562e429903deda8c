"""Tracebacks of programs that end with an error: the user's lines, and none of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

import undertow as ut
from undertow.tracebacks import ANEW, boundary, guarded, inside

HEAD = "import functools\nimport numpy as np\nimport undertow as ut\n"
# Each ends with an error of ours. The lines, in order, that its traceback and its message must show.
PROGRAMS = {
    "helpers": (
        """
        def h(x):
            return x.foo
        def g(x):
            return h(x) + 1
        @ut.function
        def f(x):
            return g(x)
        def main():
            f(1.0)
        main()
        """,
        ["main()", "f(1.0)", "return g(x)", "return h(x) + 1", "return x.foo"],
    ),
    "name": ("ut.vmap", ["ut.vmap"]),
    "name in a module": ("ut.random.nomral", ["ut.random.nomral"]),
    "name of a method": ("ut.function(lambda x: x).vmap", [".vmap"]),
    "argument": ("ut.function(lambda x: x)('text', 1)", ["ut.function(lambda x: x)('text', 1)"]),
    "annotation": (
        """
        @ut.function
        def f(x: ut.f32[3]):
            return x
        f(np.ones(4, np.float32))
        """,
        ["f(np.ones(4, np.float32))", "def f(x: ut.f32[3]):"],
    ),
    "fault": (
        """
        @ut.function
        def f(n: ut.i64) -> ut.i64:
            return 1 // n if n < 1 else f(n - 1)
        f(3)
        """,
        ["f(3)", "return 1 // n if n < 1 else f(n - 1)"],
    ),
    "fault in a helper": (
        """
        def h(x):
            return 1 // x
        def g(x):
            return h(x) + 1
        @ut.function
        def f(n: ut.i64) -> ut.i64:
            return g(n) if n < 1 else f(n - 1)
        f(3)
        """,
        ["f(3)", "tag traceback", "return g(n) if n < 1 else f(n - 1)", "return h(x) + 1", "return 1 // x"],
    ),
    "fault in a run": ("ut.function(lambda x, i: x[i]).run(np.ones(3), 5)", [".run(np.ones(3), 5)"]),
    "fault in a map": ("ut.function(lambda i: np.ones(3)[i]).map([1, 5])", [".map([1, 5])"]),
    "constructor": (
        """
        class P:
            def __init__(self, x):
                self.check()
            def check(self):
                raise ValueError("bad")
        def g(x):
            return P(x)
        @ut.function
        def f(x):
            return g(x)
        f(3)
        """,
        ["f(3)", "return g(x)", "return P(x)", "self.check()", 'raise ValueError("bad")'],
    ),
    "constructor with a traced value": (
        """
        class P:
            def __init__(self, x):
                self.x = x.foo
        @ut.function
        def f(x):
            return P(x).x
        f(3)
        """,
        ["f(3)", "return P(x).x", "self.x = x.foo"],
    ),
    "method": (
        """
        class P:
            def size(self, x):
                return x.reshape(7)
        @ut.function
        def f(x):
            return P().size(x)
        f(np.ones(3))
        """,
        ["f(np.ones(3))", "return P().size(x)", "return x.reshape(7)"],
    ),
    "gradient": (
        """
        def loss(x):
            return x * 1.0
        ut.grad(loss)(np.ones(3))
        """,
        ["ut.grad(loss)(np.ones(3))", "def loss(x):"],
    ),
    "pullback": ("value, back = ut.vjp(lambda x: x * x, 3.0)\nback((1.0, 2.0))", ["back((1.0, 2.0))"]),
    "map": (
        """
        @ut.function
        def f(x):
            def body(v):
                return v + np.ones(4)
            return ut.map(body, x)
        f(np.ones((3, 3)))
        """,
        ["f(np.ones((3, 3)))", "return ut.map(body, x)", "return v + np.ones(4)"],
    ),
    "loop": (
        """
        def step(x):
            return x @ np.ones((7, 7))
        @ut.function
        def f(x):
            while x.sum() > 0:
                x = step(x)
            return x
        f(np.ones(3))
        """,
        ["f(np.ones(3))", "x = step(x)", "return x @ np.ones((7, 7))"],
    ),
    "native code calls back": (
        """
        def h(a, x):
            return a + x.foo
        @ut.function
        def f(x):
            return functools.reduce(h, [1, 2], x)
        f(1.0)
        """,
        ["f(1.0)", "return functools.reduce(h, [1, 2], x)", "return a + x.foo"],
    ),
    "options": ("with ut.options(max_dept=3): pass", ["with ut.options(max_dept=3): pass"]),
    "graph": ("ut.function(lambda x: x.foo).graph(1.0)", [".graph(1.0)"]),
    "plain function": ("ut.sum(np.ones(3), axis=7)", ["ut.sum(np.ones(3), axis=7)"]),
    "variable": ("ut.Variable(np.ones(3)).assign(np.ones(4))", [".assign(np.ones(4))"]),
    "block": ("with ut.SubGraph() as f:\n    f.input('text')", ["f.input('text')"]),
    "load": ("ut.load(__file__)", ["ut.load(__file__)"]),
    "optimizer": ("ut.optim.SGD(-1.0)", ["ut.optim.SGD(-1.0)"]),
    "trees": ("ut.data.parse_brackets('(((')", ["ut.data.parse_brackets('(((')"]),
    "session": (
        """
        import undertow.compat.v1 as tf
        with tf.Session() as sess:
            sess.run(tf.constant(1) // tf.constant(0))
        """,
        ["sess.run(tf.constant(1) // tf.constant(0))"],
    ),
}


def run(program: str, folder: Path, *options: str, **environment: str) -> str:
    """What a program of its own writes to stderr."""
    file = folder / "program.py"
    file.write_text(HEAD + textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, *options, str(file)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    return done.stderr


@pytest.mark.slow
def test_tracebacks_are_the_users(tmp_path: Path) -> None:
    """All programs in one process: each is a file of its own, and prints the traceback of what it raises."""
    for number, (name, (program, _)) in enumerate(PROGRAMS.items()):
        (tmp_path / f"p{number}.py").write_text(f"# {name}\n{HEAD}{textwrap.dedent(program)}")
    main = f"""
    import runpy, sys, traceback
    for number in range({len(PROGRAMS)}):
        try:
            runpy.run_path(r"{tmp_path}/p%d.py" % number)
        except ut.UndertowError as error:
            trace = error.__traceback__
            while not trace.tb_frame.f_code.co_filename.endswith("p%d.py" % number):
                trace = trace.tb_next
            sys.stderr.write("".join(traceback.format_exception(type(error), error, trace)))
        sys.stderr.write("=====")
    """
    texts = run(main, tmp_path).split("=====")
    for (name, (_, lines)), text in zip(PROGRAMS.items(), texts, strict=False):
        assert text.count(f'File "{os.path.dirname(ut.__file__)}') == ANEW, (name, text)
        assert re.search(r"^undertow\.", text, flags=re.M), (name, text)
        above = re.split(r"^undertow\.", text, flags=re.M)[0]
        frames = above.count('  File "')
        assert above.count("\n") <= 1 + 3 * frames <= 10, (name, text)  # a frame is its place, its line, perhaps carets
        rest = text
        for line in lines:
            assert line in rest, (name, line, text)
            rest = rest.split(line, 1)[1]


@pytest.mark.slow
def test_our_frames_on_request(tmp_path: Path) -> None:
    text = run("ut.function(lambda x: x.foo)(1.0)", tmp_path, UNDERTOW_TRACEBACK="full")
    assert "interpret" in text and text.count('  File "') > 5


def wrong() -> None:
    raise ut.CaptureError("no")


def frames(error: BaseException) -> list[str]:
    found, at = [], error.__traceback__
    while at is not None:
        found.append(at.tb_frame.f_code.co_name)
        at = at.tb_next
    return found[:-1] if ANEW and found[-1] in ("__call__", "call") else found


def test_what_the_user_was_handling_stays() -> None:
    f = ut.function(lambda x: x.foo)

    def handle() -> None:
        try:
            {}["a"]
        except KeyError:
            f(1.0)

    with pytest.raises(ut.CaptureError) as caught:
        handle()
    assert isinstance(caught.value.__context__, KeyError)
    assert not caught.value.__suppress_context__
    assert frames(caught.value) == ["test_what_the_user_was_handling_stays", "handle"]


def test_what_we_caught_does_not_show() -> None:
    def outer() -> None:
        try:
            ut.ones("text")
        except ut.UndertowError:
            wrong()

    with pytest.raises(ut.CaptureError) as caught:
        outer()
    assert isinstance(caught.value.__context__, ut.UndertowError)  # the user caught that one
    with pytest.raises(ut.CaptureError) as caught:
        ut.function(lambda x: int("seven"))(1.0)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_exceptions_of_the_users_own_code_keep_its_frames() -> None:
    @dataclass
    class Odd:
        x: int = 0

        def __getattribute__(self, name: str) -> object:
            if name == "x":
                raise LookupError("odd")
            return super().__getattribute__(name)

    with pytest.raises(ut.CaptureError) as caught:
        ut.function(lambda x: x)(Odd())
    assert frames(caught.value) == ["test_exceptions_of_the_users_own_code_keep_its_frames"]
    assert isinstance(caught.value.__cause__, LookupError)
    assert frames(caught.value.__cause__) == ["__getattribute__"]


def test_bugs_of_ours_show_our_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise LookupError("oh")

    monkeypatch.setattr("undertow.api.function.take_arguments", broken)
    monkeypatch.setattr("undertow.api.function.settings", broken)
    broken.__globals__["__name__"], name = "undertow.broken", __name__
    try:
        with pytest.raises(LookupError) as caught:
            ut.function(lambda x: x)(1.0)
    finally:
        broken.__globals__["__name__"] = name
    assert frames(caught.value)[-2:] == ["__call__", "broken"]


def test_a_boundary_is_the_function_to_all_who_ask() -> None:
    assert ut.sum.__module__ == inside(ut.sum).__module__ and ut.sum.__doc__ == inside(ut.sum).__doc__
    assert boundary(wrong).__globals__ is wrong.__globals__  # type: ignore[attr-defined]

    @guarded
    class Thing:
        def public(self) -> int:
            return 1

        def _private(self) -> int:
            return 2

    assert Thing().public() == 1
    assert inside(Thing.public) is not Thing.public
    assert inside(Thing._private) is Thing._private
