"""The command line: `python -m tests.fuzz --seconds 60 --seed 1 [--kind KIND ...]`, or `--case NAME` for one case."""

from __future__ import annotations

import argparse
import os

from tests.support.core import use_core

if "UNDERTOW_CORE" in os.environ:
    use_core(os.environ["UNDERTOW_CORE"])

# After the core has been chosen: these import undertow.
from tests.fuzz.kinds import KINDS, make
from tests.fuzz.runner import run, run_one


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Run hostile input.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only cases of this kind")
    parser.add_argument("--case", metavar="KIND:SEED:NUMBER", help="print one case and run it in this process")
    chosen = parser.parse_args()
    if chosen.case:
        print(make(chosen.case).text, flush=True)
        end, problem = run_one(chosen.case)
        print(problem or end)
        return int(bool(problem))
    report = run(chosen.kind or list(KINDS), chosen.seed, chosen.seconds, chosen.workers)
    for (kind, end), count in sorted(report.ends.items()):
        print(f"{kind:12} {end:24} {count:8}")
    for name, problem in report.failures.items():
        print(f"\n== {name}: python -m tests.fuzz --case {name}\n{make(name).text}\n{problem}")
    return int(bool(report.failures))


if __name__ == "__main__":
    raise SystemExit(main())
