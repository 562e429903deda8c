"""The command line: `python -m tests.fuzz [--seconds 60] [--seed 1] [--kind KIND ...]`, or `--case NAME`."""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path

from tests.support.core import use_core

if "UNDERTOW_CORE" in os.environ:
    use_core(os.environ["UNDERTOW_CORE"])

# After the core has been chosen: these import undertow.
from tests.fuzz.kinds import KINDS, make
from tests.fuzz.runner import Report, run, run_one

PROGRESS = 10.0  # seconds between lines
MOST_SHOWN = 5  # failures that are printed in full; all of them are in the folder


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description="Run hostile input and random programs.",
        epilog="\n".join(f"{kind:12} {(made.__doc__ or '').splitlines()[0]}" for kind, made in KINDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=float, default=math.inf, help="without it, until Ctrl-C")
    parser.add_argument("--seed", type=int, help="1 if there is an end, else another one each time")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only cases of this kind")
    parser.add_argument("--case", metavar="KIND:SEED:NUMBER", help="print one case and run it in this process")
    parser.add_argument("--failures", type=Path, default=Path("build/failures"), help="the folder for cases that fail")
    parser.add_argument("--again", default="python -m tests.fuzz --case ", help="what to say in front of a case's name")
    chosen = parser.parse_args()
    if chosen.case:
        print(make(chosen.case).text, flush=True)
        end, problem = run_one(chosen.case)
        print(problem or end)
        return int(bool(problem))
    kinds = chosen.kind or list(KINDS)
    seed = chosen.seed or (1 if math.isfinite(chosen.seconds) else int(time.time()))
    print(f"seed {seed}: {', '.join(kinds)}", flush=True)

    def write(name: str, problem: str) -> None:
        chosen.failures.mkdir(parents=True, exist_ok=True)
        path = chosen.failures / f"{name.replace(':', '-')}.txt"
        path.write_text(f"{chosen.again}{name}\n\n{make(name).text}\n\n{problem}\n", encoding="utf-8")
        print(f"== {name} failed: {path}", flush=True)

    said = 0.0

    def say(report: Report, elapsed: float) -> None:
        nonlocal said
        if elapsed - said >= PROGRESS:
            said = elapsed
            rates = ", ".join(f"{kind} {report.cases(kind)} ({report.cases(kind) / elapsed:.1f}/s)" for kind in kinds)
            print(f"{elapsed:6.0f} s: {rates}; {len(report.failures)} failures", flush=True)

    report = run(kinds, seed, chosen.seconds, chosen.workers, write, say)
    for (kind, end), count in sorted(report.ends.items()):
        print(f"{kind:12} {end:24} {count:8}")
    for name, problem in list(report.failures.items())[:MOST_SHOWN]:
        print(f"\n== {name}\n{make(name).text}\n{problem}")
    if report.failures:
        print(f"\n{len(report.failures)} failed, seed {seed}; they are in {chosen.failures}. One of them again:")
        for name in list(report.failures)[:MOST_SHOWN]:
            print(f"  {chosen.again}{name}")
    return int(bool(report.failures))


if __name__ == "__main__":
    raise SystemExit(main())
