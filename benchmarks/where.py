"""Where the time of the networks on trees goes, as bars: by kind of step, and below that by operator.

Claim: most of the time is the matrix products and element-wise work that the networks need, not the forming of waves.
Kinds of steps are timed by the engine itself; batches and the optimizer, which are not its own, by the clock. Operators
are sampled with `perf`: this needs Linux with it, and a core with symbols
(pip install --no-build-isolation -C install.strip=false -e .). Without these only the first table is printed.
Usage: python benchmarks/where.py [--quick] [--models A,B] [--batch 1,25] [--repeat SECONDS] [--json FILE]
"""

import itertools
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import common
import numpy as np
from rivals import forests, networks, turns
from rivals.turns import Rival

TREES = 256
WIDTH = 40  # characters of a full bar
SHOWN = 6  # operators of each kind
LEAST = 0.5  # percent that is worth a line
RATE = 1999  # samples a second
# The first kind whose pattern is found in "library function" gets the sample.
KINDS = {
    "matrix products": r"openblas|tile<|pack|dots<|gemm|gemv|matmul|outer<|products|multiply",
    "element-wise": r"each_|fused|Fused|Sigmoid|Tanh|Exp|tanh|expf",
    "sums, softmax": r"reduce|Reduce|fold|Sum\b|softmax|argmax",
    "optimizer": r"update<",
    "look-ups, copies": r"memmove|memcpy|memset|gather|scatter|take_|index|slice|concat|copy",
    "waves, tables": r"undertow",
    "memory": r"malloc|free|unlink_chunk|page|mmap|madvise|kernel|vmlinux",
    "Python, NumPy": r"python|multiarray|umath|numpy",
}
OTHER = "other"
NO_SYMBOLS = "the core has no symbols; pip install --no-build-isolation -C install.strip=false -e ."
# Which operator a function works for; the first group of the pattern, if it has one, is its name.
OPERATORS = [
    (r"each_\w+<(\w+)", ""),
    (r"openblas|tile<|dots<|gemm|gemv|matmul|products|multiply", "matmul"),
    (r"pack", "matmul: packing of weights"),
    (r"outer<", "matmul: of gradients, summed over lanes"),
    (r"[Ff]used", "operators that run together"),
    (r"update<\w+, (\w+)", ""),
    (r"memmove|memcpy|memset|copy", "copies"),
    (r"reduce\w*<(\w+)", ""),
    (r"(scatter|gather|concat|slice|index|argmax|softmax)", ""),
]
Shares = Counter[tuple[str, str]]  # percent, by kind and by what stands below it


def kind_of(library: str, function: str) -> str:
    # The core's own file has "python" in its name: what a function is called says more.
    text = f"undertow {function}" if library.startswith("_core") else f"{library} {function}"
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text)), OTHER)


def operator_of(function: str) -> str:
    """The name of the operator: `each_pair<Multiply, float>` is `multiply`."""
    for pattern, name in OPERATORS:
        if (found := re.search(pattern, function)) is not None:
            return name or re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found[1]).lower()
    return re.sub(r"<.*|\(.*", "", function)[:50]


def timed(rival: Rival, batch: int, work: str) -> Shares:
    """Shares by kind of step, as the engine tells them; of three epochs the quickest."""
    found = [rival.ask("kinds", work=work, batch=batch, trees="train") for _ in range(3)]
    if rival.failed:
        common.fail(f"{work}, batch {batch}: {rival.failed}")
    best: dict[str, float] = min(found, key=lambda steps: sum(steps.values()))
    return Counter({(kind, ""): 100 * seconds / sum(best.values()) for kind, seconds in best.items()})


def sampled(rival: Rival, model: str, batch: int, work: str, seconds: float, folder: Path) -> Shares:
    """Shares by kind and operator, by what `perf` sees while the rival does epochs."""
    rival.ask("epoch", work=work, batch=batch, trees="train")  # captured, planned, warm
    file = folder / "perf.data"
    command = ["perf", "record", "-q", "-F", str(RATE), "-o", str(file), "-p", str(rival.process.pid)]
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)  # until it listens
    end = time.monotonic() + seconds
    while time.monotonic() < end and not rival.failed:
        rival.ask("epoch", work=work, batch=batch, trees="train")
    recorder.send_signal(signal.SIGINT)
    recorder.wait()
    if rival.failed:
        common.fail(f"{model}, {work}, batch {batch}: {rival.failed}")
    report = ["perf", "report", "-i", str(file), "--stdio", "--no-children", "-t", "|", "--sort", "dso,symbol"]
    found = subprocess.run(report, capture_output=True, text=True, check=False).stdout
    shares: Shares = Counter()
    for line in found.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if not line.startswith("#") and len(parts) >= 3 and re.fullmatch(r"[\d.]+%?", parts[0]):
            library, function = (
                parts[1],
                re.sub(r"^\[.\] |\(anonymous namespace\)::|undertow::(avx\d+::)?", "", parts[2]),
            )
            if library.startswith("_core") and function.startswith("0x"):
                return Counter()  # it has no symbols
            shares[kind_of(library, function), operator_of(function)] += float(parts[0].rstrip("%"))
    return shares


def bar(start: float, share: float) -> str:
    """A bar from its start to its end, out of a hundred percent; nested bars lie within their parent."""
    left, right = (round(percent / 100 * WIDTH) for percent in (start, min(start + share, 100.0)))
    return "·" * left + "█" * (right - left) + "·" * (WIDTH - right)


def show(title: str, shares: Shares) -> dict[str, float]:
    """A line for each kind, and below it for each operator, as a flame graph has them."""
    kinds: Counter[str] = Counter()
    for (kind, _), share in shares.items():
        kinds[kind] += share
    rows, start = [], 0.0
    for kind, share in kinds.most_common():
        rows.append([kind, f"{share:.1f} %", bar(start, share)])
        below, inside = start, Counter({key[1]: part for key, part in shares.items() if key[0] == kind})
        for operator, part in inside.most_common(SHOWN):
            if operator and part >= LEAST:
                rows.append([f"  {operator}", f"{part:.1f} %", bar(below, part)])
                below += part
        start += share
    common.table(title, ["", "share", ""], rows)
    return dict(kinds)


def main() -> None:
    parser = common.parser(__doc__, repeat=5)
    parser.add_argument("--models", default=",".join(networks.WIDTHS))
    parser.add_argument("--batch", default="1,25,256")
    options = parser.parse_args()
    missing = "" if shutil.which("perf") else "perf is not installed"
    seconds = min(options.repeat, 2) if options.quick else options.repeat
    rows = []
    rival = Rival("ours", "Undertow", "ours", "undertow")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        forests.save(folder / "trees.npz", {"train": forests.generate(TREES)})
        with turns.started([rival], {}, name):
            for model in options.models.split(","):
                np.savez(folder / f"{model}.npz", **networks.init(model, forests.VOCABULARY))
                rival.ask("start", model=model)
                for batch, work in itertools.product(map(int, options.batch.split(",")), ("train", "infer")):
                    title = f"{model}, {work}, batch {batch}"
                    row: dict[str, Any] = {"model": model, "work": work, "batch": batch}
                    row["steps"] = show(f"{title}: by kind of step", timed(rival, batch, work))
                    samples = Counter() if missing else sampled(rival, model, batch, work, seconds, folder)
                    if samples:
                        row["kinds"] = show(f"{title}: by operator", samples)
                        row["operators"] = {f"{kind}: {name}": part for (kind, name), part in samples.items()}
                    missing = missing or ("" if samples else NO_SYMBOLS)
                    rows.append(row)
                    print(f"{title} done", file=sys.stderr)
    if missing:
        print(f"No samples by operator: {missing}")
    common.write(options.json, {"rows": rows})


if __name__ == "__main__":
    main()
