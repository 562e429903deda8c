"""What other scripts have measured: `table1.py` and `depth.py` leave JSON in build/bench, which becomes exhibits."""

from __future__ import annotations

import datetime
import json
from typing import Any

import common

from .book import Book, Exhibit, Plot
from .printed import KOSTOPOULOU, VASILAKOPOULOS


def recorded(script: str) -> dict[str, Any] | None:
    file = common.ROOT / "build" / "bench" / f"{script}.json"
    if not file.exists():
        print(f"Run benchmarks/{script}.py first: there is no {file.name} as yet.\n")
        return None
    return json.loads(file.read_text())


def about(found: dict[str, Any], command: str) -> dict[str, Any]:
    """Where and when that was, as `page.record` has it."""
    date = datetime.date.fromtimestamp((common.ROOT / "build" / "bench" / f"{found['benchmark']}.json").stat().st_mtime)
    return {"commit": found["commit"], "machine": found["machine"], "date": f"{date}", "command": command, "trees": ""}


def calls(book: Book) -> None:
    """fib, ack, tak and primes: Table 1 of the paper, Tables 1 to 4 of the thesis before it."""
    found = recorded("table1")
    if found is None:
        return
    book.about["calls"] = about(found, "benchmarks/table1.py")
    names = list(dict.fromkeys(name for row in found["rows"] for name in row["seconds"] if "threads" not in name))
    rows = []
    lines: dict[str, list[Any]] = {name: [] for name in (*names, "paper: static", "paper: dynamic")}
    for row in found["rows"]:
        label = f"{row['program']}({', '.join(map(str, row['args']))})"
        static, dynamic = row["printed"] or (None, None)
        rows.append(
            [
                label,
                *(common.seconds(row["seconds"].get(name)) for name in names),
                common.seconds(static),
                common.seconds(dynamic),
            ]
        )
        if row["program"] == "fib":
            for name in names:
                lines[name].append((row["args"][0], row["seconds"].get(name)))
            lines["paper: static"].append((row["args"][0], static))
            lines["paper: dynamic"].append((row["args"][0], dynamic))
    book.show(
        "calls",
        Exhibit(
            "Time of one run, one thread",
            f"{KOSTOPOULOU}, Table 1; Kostopoulou's thesis, Tables 1 to 4",
            ["", *names, "paper: static", "paper: dynamic"],
            rows,
            [
                "By benchmarks/table1.py. Where the thesis repeats fib(26) for dynamic fib(27), the paper has 4.178 s.",
                "A dash: not there, or longer than the limit of the script.",
            ],
            [Plot("calls", "n", "seconds", {"fib(n)": lines}, log="y")],
        ),
    )


def depth(book: Book) -> None:
    """Recursion depth: figure 6.1 of Vasilakopoulos' thesis."""
    found = recorded("depth")
    if found is None:
        return
    book.about["depth"] = about(found, "benchmarks/depth.py")
    rows = found["descent"]
    names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
    lines = {name: [(row["n"], row["seconds"][name]) for row in rows if name in row["seconds"]] for name in names}
    book.show(
        "depth",
        Exhibit(
            "100 steps of gradient descent on x^n, by the depth n of the recursion",
            f"{VASILAKOPOULOS}, figure 6.1",
            ["n", *names],
            [[f"{row['n']:,}", *(common.seconds(row["seconds"].get(name)) for name in names)] for row in rows],
            [
                "benchmarks/depth.py measures it. Figure 6.1 is a plot, of which the text has no numbers.",
                "A dash: longer than the limit, or failed. What JAX and tf.function trace for each n is included.",
            ],
            [Plot("depth", "n", "seconds", {"x^n": lines}, log="xy")],
        ),
    )
