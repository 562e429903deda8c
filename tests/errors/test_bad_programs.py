"""Every bad program of `bad_programs/` and the message that its author gets, word for word.

A section of those files is a title, a program, and the text of the error that it ends with; `--update` writes the
texts anew. Read the difference as a user would: is it my line, in my words, and do I know what to write instead?
"""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import undertow as ut
from undertow.api.options import ENGINES

HERE = Path(__file__).parent
SECTION = re.compile(
    r"^## (?P<title>[^\n]*)\n(?P<notes>[^`]*)"
    r"^```python\n(?P<program>.*?)^```\n+^```text\n(?P<message>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)
PRELUDE = "import dataclasses, math\nimport numpy as np\nimport undertow as ut\n"


@dataclass(frozen=True)
class Case:
    file: Path
    title: str
    program: str
    message: str


def cases() -> list[Case]:
    return [
        Case(file, found["title"], found["program"], found["message"])
        for file in sorted(HERE.glob("bad_programs/*.md"))
        for found in SECTION.finditer(file.read_text())
    ]


def message_of(program: str, folder: Path) -> str:
    """Run a program as a module of its own; what the error that it ends with says."""
    path = folder / "program.py"
    path.write_text(program)
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    exec(PRELUDE, vars(module))
    sys.modules["program"] = module
    try:
        spec.loader.exec_module(module)
    except ut.UndertowError as error:
        text = f"{type(error).__name__}: {error}\n".replace(f"{folder}/", "")
        text = re.sub(r"take [\d,]+ bytes", "take ... bytes", text)  # depends on the engine
        return re.sub(r"one of auto, .*", "one of auto, ...", text)  # there will be more engines
    finally:
        del sys.modules["program"]
    return "no error\n"


def test_no_section_is_overlooked() -> None:
    """Every heading has a program and a message, and its own name."""
    for file in HERE.glob("bad_programs/*.md"):
        headings = re.findall(r"^## (.*)$", file.read_text(), re.MULTILINE)
        assert headings == [case.title for case in cases() if case.file == file]
        assert len(headings) == len(set(headings))


_SAY_ENOUGH = ("step of a range", "NoneType", "sorted() of nan", "add=True) adds them")  # exceptions of the run


def test_every_message_says_what_next(request: pytest.FixtureRequest) -> None:
    """There is a hint in all but the failed assertions of the user, and a place in all that happen in a function."""
    if request.config.getoption("--update"):
        pytest.skip("the messages are being written")
    for case in cases():
        is_enough = "assert" in case.program or any(told in case.message for told in _SAY_ENOUGH)
        assert "\nhint: " in case.message or is_enough, case.title
        assert "Traced" not in case.message


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file.stem}-{case.title}")
def test_message(case: Case, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    found = message_of(case.program, tmp_path)
    assert found != "no error\n", "the program ends without an error of Undertow"
    if request.config.getoption("--update") and found != case.message:
        before = f"{case.program}```\n\n```text\n{case.message}```"
        text = case.file.read_text()
        assert text.count(before) == 1
        case.file.write_text(text.replace(before, f"{case.program}```\n\n```text\n{found}```"))
        return
    assert found == case.message


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "reference"])
@pytest.mark.parametrize("case", [c for c in cases() if c.file.stem == "faults"], ids=lambda case: case.title)
def test_engines_report_the_same_faults(case: Case, engine: str, tmp_path: Path) -> None:
    """What, where and what next; the calls on the way there may be told in another order of events."""
    with ut.options(engine=engine):
        found = message_of(case.program, tmp_path)
    for part in (r"\A.*", r"^  --> .*\n.*", r"^hint: .*"):
        assert re.findall(part, found, re.MULTILINE) == re.findall(part, case.message, re.MULTILINE)
