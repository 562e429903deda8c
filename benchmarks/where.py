"""Where the time of the networks on trees goes: samples of `perf`, by kind of work and by function, as bars.

Claim: most of the time is the matrix products and element-wise work that the networks need, not the forming of waves.
Needs Linux with `perf`, and a core with symbols: pip install --no-build-isolation -C install.strip=false -e .
Usage: python benchmarks/where.py [--quick] [--models A,B] [--batch 1,25] [--repeat SECONDS] [--json FILE]
"""

import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import common
import numpy as np
from rivals import forests, networks, turns
from rivals.turns import Rival

TREES = 256
WIDTH = 40  # characters of a full bar
SHOWN = 3  # functions of each kind
RATE = 1999  # samples a second
# The first kind whose pattern is found in "library function" gets the sample.
KINDS = {
    "matrix products": r"openblas|tile<|pack<|dots<|gemm|gemv|matmul|outer<",
    "element-wise": r"each_|fused|Fused|Sigmoid|Tanh|Exp|tanh|expf",
    "sums, softmax": r"reduce|Reduce|fold|Sum\b|softmax|argmax",
    "look-ups, copies": r"memmove|memcpy|memset|gather|scatter|take_|index|slice|concat|copy",
    "waves, tables": r"undertow",
    "memory": r"malloc|free|unlink_chunk|page|mmap|madvise|kernel|vmlinux",
    "Python, NumPy": r"python|multiarray|umath|numpy",
}
OTHER = "other"


def kind_of(library: str, function: str) -> str:
    # The core's own file has "python" in its name: what a function is called says more.
    text = f"undertow {function}" if library.startswith("_core") else f"{library} {function}"
    return next((kind for kind, pattern in KINDS.items() if re.search(pattern, text)), OTHER)


def sample(rival: Rival, model: str, batch: int, work: str, seconds: float, folder: Path) -> Counter[tuple[str, str]]:
    """Shares by library and function, while the rival does epochs."""
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
    shares: Counter[tuple[str, str]] = Counter()
    for line in found.splitlines():
        parts = [part.strip() for part in line.split("|")]
        if not line.startswith("#") and len(parts) >= 3 and re.fullmatch(r"[\d.]+%?", parts[0]):
            function = re.sub(r"^\[.\] |\(anonymous namespace\)::|undertow::(avx\d+::)?", "", parts[2])
            shares[parts[1], function] += float(parts[0].rstrip("%"))
    return shares


def bars(title: str, shares: Counter[tuple[str, str]]) -> dict[str, float]:
    kinds: Counter[str] = Counter()
    if any(re.match("0x", function) for library, function in shares if library.startswith("_core")):
        common.fail("the core has no symbols: pip install --no-build-isolation -C install.strip=false -e .")
    for (library, function), share in shares.items():
        kinds[kind_of(library, function)] += share
    rows = []
    for kind, share in kinds.most_common():
        full = round(share / 100 * WIDTH)
        rows.append([kind, f"{share:.0f} %", "█" * full + "░" * (WIDTH - full)])
        inside = Counter({key: part for key, part in shares.items() if kind_of(*key) == kind})
        for (_, function), part in inside.most_common(SHOWN):
            if part >= 1:
                rows.append([f"  {function[:60]}", f"{part:.0f} %", ""])
    common.table(title, ["", "share", ""], rows)
    return dict(kinds)


def main() -> None:
    parser = common.parser(__doc__, repeat=5)
    parser.add_argument("--models", default=",".join(networks.WIDTHS))
    parser.add_argument("--batch", default="1,25,256")
    options = parser.parse_args()
    if shutil.which("perf") is None:
        print("perf is not installed: nothing to show")
        return
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
                for batch in map(int, options.batch.split(",")):
                    for work in ("train", "infer"):
                        shares = sample(rival, model, batch, work, seconds, folder)
                        found = bars(f"{model}, {work}, batch {batch}", shares)
                        rows.append({"model": model, "work": work, "batch": batch, "kinds": found})
                        print(f"{model}, {work}, batch {batch} done", file=sys.stderr)
    common.write(options.json, {"rows": rows})


if __name__ == "__main__":
    main()
