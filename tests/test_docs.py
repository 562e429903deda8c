"""The documentation tells the truth: its Python blocks run, what it says they print is what they print, links lead
somewhere, generated pages and pictures are up to date.

The blocks of a page run in order, in one namespace. A page is written to a .py file with all lines where they are on
the page, so that functions can be captured, and errors give the line of the page. A block marked `python no-run` is
left out. A `text` block below the comment `<!-- output -->` must be what the Python block before it prints; `--update`
writes it.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from docs import commands, manual
from tests.fuzz.kinds import KINDS
from tests.support.blocks import OUTPUT, Block, blocks_of, source_of

import undertow as ut
from undertow import errors, ops
from undertow.ops import manual as ops_manual

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHER_PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for folder in ("tests", "examples", "benchmarks") for page in ROOT.glob(f"{folder}/*.md")),
    ]
)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def run_page(text: str, file: Path) -> dict[Block, str]:
    """Run the Python blocks of a page; what each block that is followed by its output prints, by output block."""
    blocks = [block for block in blocks_of(text) if block.is_run or block.is_output]
    file.write_text(source_of(blocks), encoding="utf-8")

    module = ModuleType(file.stem)
    module.__file__ = str(file)
    printed: dict[Block, str] = {}
    output = ""
    sys.modules[file.stem] = module
    try:
        for block in blocks:
            if block.is_run:
                code = compile("\n" * block.first + "\n".join(block.lines), str(file), "exec")
                with contextlib.redirect_stdout(io.StringIO()) as stdout:
                    exec(code, module.__dict__)
                output = stdout.getvalue().replace(str(file), file.name)
            else:
                printed[block] = "\n".join(line.rstrip() for line in output.rstrip().splitlines())
    finally:
        del sys.modules[file.stem]
    return printed


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    text = page.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)  # what a page writes goes there
    printed = run_page(text, tmp_path / f"{page.stem}.py")
    if request.config.getoption("--update"):
        lines = text.splitlines()
        for block, output in reversed(printed.items()):
            lines[block.first : block.first + len(block.lines)] = output.splitlines()
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    for block, output in printed.items():
        assert "\n".join(block.lines) == output, f"{name_of(page)}:{block.first + 1} is not what the block above prints"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_marked(page: Path) -> None:
    """A block says what it is, and `<!-- output -->` stands between a Python block and a text block."""
    last = None
    for block in blocks_of(page.read_text(encoding="utf-8")):
        place = f"{name_of(page)}:{block.first}"
        assert block.language, f"{place} has no language"
        assert not block.is_python or block.language in ("python", "python no-run"), place
        if block.is_output:
            assert block.language == "text" and last is not None and last.is_run, place
        last = block


def test_output_is_compared(tmp_path: Path) -> None:
    page = f"# A page\n\n```python\nprint(6 * 7)\n```\n\n{OUTPUT}\n```text\n42\n```\n\n```text\nnot output\n```\n"
    [(block, output)] = run_page(page, tmp_path / "a_page.py").items()
    assert block.lines == ("42",)
    assert output == "42"


def test_lines_of_errors_are_lines_of_the_page(tmp_path: Path) -> None:
    page = "# A page\n\n```python\nx = 1\n```\n\n```python no-run\nboom\n```\n\n```python\nx / 0\n```\n"
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(page, tmp_path / "a_page.py")
    assert caught.traceback[-1].lineno + 1 == page.splitlines().index("x / 0") + 1


@pytest.mark.parametrize("page", sorted({*PAGES, *OTHER_PAGES}), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), f"{name_of(page)} links to {link}, which is not there"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", found.read_text(encoding="utf-8"), flags=re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{name_of(page)} links to {link}, which has no such heading"


def test_index_links_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        if page.parent != ROOT / "docs" / "design" and page.name not in ("index.md", "README.md"):
            assert f"]({page.relative_to(ROOT / 'docs').as_posix()})" in index, f"docs/index.md leaves out {page.name}"


# --------------------------------------------------------------------------------------------------------------
# What is written by programs


@pytest.mark.parametrize(
    ("file", "made"),
    [
        ("docs/reference/api.md", manual.manual),
        ("docs/reference/compat_v1.md", manual.compat_manual),
        ("docs/reference/ops.md", ops_manual.manual),
        ("docs/reference/command_line.md", commands.page),
        ("src/undertow/frontend/functions/plain.pyi", manual.plain_stub),
        ("src/undertow/__init__.pyi", manual.public_stub),
        ("src/undertow/_options.pyi", manual.options_stub),
        ("src/undertow/_random.pyi", manual.random_stub),
    ],
)
def test_generated_files_are_current(file: str, made: Callable[[], str], golden: Callable[..., None]) -> None:
    golden(ROOT / file, made())


@pytest.mark.slow
@pytest.mark.parametrize("page", ["README.md", "docs/concepts/hybrid.md"])
def test_picture_is_current(page: str, golden: Callable[..., None], tmp_path: Path) -> None:
    """Drawn by the command that the page gives."""
    pattern = r"`undertow graph (\S+)((?: --\S+)*) -o (\S+)`"
    [(target, options, file)] = re.findall(pattern, (ROOT / page).read_text(encoding="utf-8"))
    picture = tmp_path / "picture.svg"
    command = [sys.executable, "-m", "undertow", "graph", target, *options.split(), "-o", str(picture)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=env)
    text = picture.read_text(encoding="utf-8")
    assert str(ROOT) not in text
    golden(ROOT / file, text)


def test_every_op_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "ops.md").read_text(encoding="utf-8")
    for family in ops.FAMILIES:
        for row in family.ROWS:
            assert f"| `{row.name}` |" in text


@pytest.mark.parametrize(
    "kind",
    [c for n, c in vars(errors).items() if n[0] != "_" and isinstance(c, type) and issubclass(c, Exception)],
)
def test_every_error_is_in_the_reference(kind: type) -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert f"`{kind.__name__}`" in text or f"`ut.{kind.__name__}`" in text, "docs/reference/errors.md leaves it out"


def test_promises_name_real_tests() -> None:
    """And every row names at least one; kinds of fuzzing are those of `tests/fuzz/kinds.py`."""
    page = (ROOT / "docs" / "reference" / "promises.md").read_text(encoding="utf-8")
    rows = [
        line
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(("| promise ", "| difference "))
    ]
    assert len(rows) > 30
    for row in rows:
        promise, _, held = (cell.strip() for cell in row.strip("|").split(" | "))
        tests = re.findall(r"`([\w/]+\.py)::(\w+)`", held)
        assert tests, f"no test holds: {promise}"
        for path, name in tests:
            assert re.search(rf"^ *def {name}\(", (ROOT / "tests" / path).read_text(encoding="utf-8"), re.MULTILINE), (
                name
            )
        for kinds in re.findall(r'`make fuzz KIND="?([\w ]+)"?`', held):
            assert set(kinds.split()) <= set(KINDS), kinds


# --------------------------------------------------------------------------------------------------------------
# Files and names in the glossary and in CONTRIBUTING.md


def glossary_file(path: str) -> Path:
    """Files are in src/undertow, unless they are of the core or the docs."""
    return ROOT / path if path.startswith(("core/", "docs/")) else ROOT / "src" / "undertow" / path


def test_glossary_names_real_files() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    paths = re.findall(r"`([\w/]+(?:\.(?:py|h|cpp|md)|/))`", text)
    assert len(paths) > 150
    for path in paths:
        assert glossary_file(path).exists(), f"docs/glossary.md: {path} does not exist"


@pytest.mark.parametrize("page", ["docs/glossary.md", "CONTRIBUTING.md"])
def test_names_behind_files_are_defined_there(page: str) -> None:
    """For example Site: `ir/graph.py` (`Site`)."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for path, names in re.findall(r"`([\w/]+\.(?:py|h|cpp))` \(((?:`[\w.]+`(?:, )?)+)\)", text):
        source = glossary_file(path).read_text(encoding="utf-8")
        for name in re.findall(r"[\w.]+", names):
            first, *inner = name.split(".")
            defined = rf"^\s*(class|struct|def|using) {first}\b|^{first}\b"
            assert re.search(defined, source, re.MULTILINE), f"{path} has no {name}"
            assert all(re.search(rf"\b{part}\b", source) for part in inner), f"{path} has no {name}"


def test_contributing_names_real_files_and_tests() -> None:
    """A file may be named by the end of its path; NAME stands for what the reader adds."""
    text = re.sub(r"```.*?```", "", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    folders = ("src", "core", "tests", "docs", "benchmarks")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.*")] + list(ROOT.glob("*.*"))
    named = re.findall(r"`(?:python |pytest )?([\w/.]+\.(?:py|h|cpp|md|txt|cmake))\b(?:::(\w+))?[^`]*`", text)
    assert len(named) > 80
    for path, test in named:
        if "NAME" not in path:
            ends = [file for file in files if f"/{name_of(file)}".endswith(f"/{path}")]
            assert ends, f"CONTRIBUTING.md: there is no {path}"
            sources = [file.read_text(encoding="utf-8") for file in ends if test]
            assert not test or any(f"def {test}(" in source for source in sources), f"{path} has no {test}"


# The sections of the papers that have anything to be here, by the heading of their table.
SECTIONS = {
    "Kostopoulou, Charalambidis and Rondogiannis": (
        "1.1 1.2 2.1 2.2 2.3 2.4 3 4 5.1 5.2 5.2.1 5.2.2 6.1 6.2 7.1 7.2 7.3 8"
    ),
    "Kostopoulou's thesis": (
        "1.1 1.2 2.1 2.2.1 2.2.2 2.2.3 3.1 3.2 3.3 4.1 4.2 4.3 4.3.1 5.1 5.2 5.2.1 5.2.2 5.3 5.3.1 5.4 5.4.1 5.4.2 "
        "5.4.3 5.4.4 5.4.5 5.4.6 5.4.7 6 7 8.1 8.2"
    ),
    "Vasilakopoulos' thesis": (
        "1 2.1.1 2.1.2 2.1.3 2.1.4 2.1.5 2.2.1 2.2.2 2.2.3 3.1 3.2 3.3 3.4 4.1 4.2 4.3 5.1 5.2 5.3 6.1 6.2 7.1 7.2 7.3"
    ),
    "Jeong et al.": "2.1 2.2 2.3 3.1 3.2 3.3 4.1.1 4.1.2 4.2.1 4.2.2 5 6.1 6.2 6.3 6.4.1 6.4.2 7",
    "Abadi, Isard and Murray": "1 2 3.1.1 3.1.2 3.2 3.2.1 3.2.2 4",
}


def paper_rows() -> dict[str, list[list[str]]]:
    """The cells of the rows of docs/papers.md, by heading."""
    tables: dict[str, list[list[str]]] = {}
    heading = ""
    for line in (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| ") and not line.startswith(("| section ", "|---")):
            tables.setdefault(heading, []).append([cell.strip() for cell in line.strip("|").split(" | ")])
    return tables


def test_papers_have_a_row_for_each_section() -> None:
    tables = paper_rows()
    assert tables.keys() == SECTIONS.keys()
    for heading, rows in tables.items():
        assert all(len(row) == 3 and row[0] and row[1] for row in rows), [row for row in rows if len(row) != 3]
        numbers = {number for row in rows for number in re.match(r"[\d., ]*", row[0])[0].replace(",", " ").split()}
        assert numbers == set(SECTIONS[heading].split()), numbers ^ set(SECTIONS[heading].split())


def test_papers_name_real_files_tests_and_symbols() -> None:
    """For example `engines/reference/run.py` (`Run`), `fact` of `tests/programs/papers.py`, `tests/x.py::test_y`."""
    text = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")

    def source(path: str) -> str:
        inside = (ROOT / "src" / "undertow" / path, ROOT / path)
        [file] = [file for file in inside if file.exists()] or pytest.fail(path)
        return file.read_text(encoding="utf-8")

    named = re.findall(r"`([\w/.]+\.(?:py|h|cpp|txt|md))(?:::(\w+))?`", text)
    assert len(named) > 150 and sum(bool(test) for _, test in named) > 40
    for path, test in named:
        found = source(path)
        assert not test or re.search(rf"^ *def {test}\(", found, re.MULTILINE), f"{path} has no {test}"
    of = [(path, names) for names, path in re.findall(r"((?:`\w+`(?:, | and ))*`\w+`) of `([\w/]+\.py)`", text)]
    behind = re.findall(r"`([\w/]+\.(?:py|h|cpp))` \(((?:`[\w.]+`(?:, )?)+)[^)]*\)", text)
    assert len(of) > 10 and len(behind) >= 10
    for path, names in of + behind:
        for name in re.findall(r"`([\w.]+)`", names):
            first, *inner = name.split(".")
            found = source(path)
            assert re.search(rf"^\s*(?:class|struct|def|using) {first}\b|^{first}\b", found, re.MULTILINE), (path, name)
            assert all(re.search(rf"\b{part}\b", found) for part in inner), (path, name)
    assert set(re.findall(r'`engine="(\w+)"`', text)) <= {*ut.api.options.ENGINES, "python"}
    options = {name for name in re.findall(r"`(\w+)=\w*`", text) if name != "engine"}
    assert options <= set(inspect.signature(ut.options).parameters), options
    commands_page = (ROOT / "docs" / "reference" / "command_line.md").read_text(encoding="utf-8")
    for flag in re.findall(r"`(?:undertow \w+ )?(--[\w-]+)", text):
        assert flag in commands_page, flag


def test_glossary_has_a_row_for_each_term_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## Where the papers are")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| term ")]
    assert all(line.count(" | ") == 3 or " | | " in line for line in rows)
    terms = [line.split("|")[1].strip() for line in rows]
    assert len(terms) == len(set(terms)), sorted(term for term in terms if terms.count(term) > 1)


def test_versions_agree() -> None:
    assert f'version = "{ut.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f"version: {ut.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
