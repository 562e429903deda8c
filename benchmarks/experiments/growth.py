"""Networks whose structure depends on what they compute: Table 3 of Jeong et al., and those that its section names."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import common
import numpy as np
from rivals import top_down, turns

import undertow as ut

from .book import Book, Exhibit, Plot, shown
from .printed import JEONG, JEONG_3

SAME = 0.99  # of the trees that grow must get the same size: a decision may hang on a last bit


def by_growth(book: Book) -> None:
    """A tree that grows from computed values, by recursion, by iteration and by folding."""
    params = top_down.init()
    np.savez(book.folder / f"{top_down.MODEL}.npz", **params)
    wanted = top_down.grown(params)
    fit = []
    for rival in [rival for key, rival in book.here.items() if key.startswith("grow")]:
        rival.ask("start", model=top_down.MODEL)
        found = rival.ask("answers", batch=64, trees="roots").get("answers")
        if rival.failed or np.mean(np.array(found) == wanted) < SAME:
            common.fail(f"{rival.name}: {rival.failed or 'its trees have other sizes'}")
        fit.append(rival)
    cases = {batch: (top_down.MODEL, batch, "infer", "roots") for batch in JEONG_3}
    for case in cases.values():
        turns.race(fit, [case], book.options.repeat, book.options.budget, on_clock=False)
    rows = [[rival.name, *(shown(rival.speed(case)) for case in cases.values())] for rival in fit]
    for number, name in ((1, "recursion"), (0, "iteration")):
        rows.append([f"paper: {name}", *(shown(JEONG_3[batch][number]) for batch in cases)])
    rows.append(["paper: folding", *("not supported" for _ in cases)])
    book.about["growth"] = {"trees": ""}
    book.show(
        "growth",
        Exhibit(
            f"A top-down TreeLSTM, {wanted.mean():.1f} nodes a tree, inference: trees per second",
            f"{JEONG}, Table 3",
            ["", *(f"batch {batch}" for batch in cases)],
            rows,
            ["No library can fold beforehand: the nodes of a level are known when the one above is done."],
            [
                Plot(
                    "growth",
                    "batch",
                    "trees per second",
                    {
                        "inference": {
                            rival.name: [(batch, rival.speed(case)) for batch, case in cases.items()] for rival in fit
                        }
                    },
                    is_bar=True,
                )
            ],
        ),
    )


def by_decision(book: Book) -> None:
    """Hierarchical multiscale RNN and hierarchical mixture of experts: what is computed depends on values."""
    count = 32 if book.options.quick else 128
    rows = []
    for name, model, arguments in [multiscale(count), experts(count)]:
        loss, params = model.loss(), model.init(seed=0)
        slopes = ut.value_and_grad(loss)
        results: dict[str, Any] = {}
        for engine in ("waves", "expand"):
            value, stats = loss.run(params, *arguments, engine=engine, stats=True, threads=1)
            for work, function in (("inference", loss), ("training", slopes)):
                taken = least(partial(function.run, params, *arguments, engine=engine, threads=1), book.options.repeat)
                results[f"{engine}, {work}"] = count / taken
            results.setdefault("value", value)
            results.setdefault("activations", stats.activations)
            if not np.isclose(value, results["value"], rtol=1e-4) or stats.activations != results["activations"]:
                common.fail(f"{name}: {value} and {stats.activations} activations on {engine}, not {results}")
        speeds = [
            shown(results[f"{engine}, {work}"]) for work in ("inference", "training") for engine in ("waves", "expand")
        ]
        rows.append([name, f"{results['activations']:,}", *speeds])
    book.about["decision"] = {"trees": ""}
    book.show(
        "decision",
        Exhibit(
            "Networks that decide what they compute: inputs per second, all in one batch",
            f"{JEONG}, section 6.4.2",
            ["", "activations", "static, inference", "expand", "static, training", "expand"],
            rows,
            ["The paper names both networks and measures neither. Made-up data; inference is the loss."],
        ),
    )


def multiscale(count: int) -> tuple[str, Any, tuple[Any, ...]]:
    model = ut.models.MultiscaleRNN(symbols=27, width=64, embedding=32, layers=3)
    texts = np.random.default_rng(0).integers(0, 27, (count, 40)).astype(np.int32)
    return "multiscale RNN, 3 layers, 40 symbols", model, (texts,)


def experts(count: int) -> tuple[str, Any, tuple[Any, ...]]:
    model = ut.models.Experts(inputs=16, classes=10, levels=6, floor=0.05)
    random = np.random.default_rng(0)
    x, label = random.normal(size=(count, 16)).astype(np.float32), random.integers(0, 10, count).astype(np.int32)
    return "mixture of 64 experts, shares from 5 % on", model, (x, label)


def least(work: Callable[[], Any], repeat: int) -> float:
    """Processor seconds of the best of several, after one that plans."""
    work()
    times = []
    for _ in range(max(repeat, 3)):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times) if min(times) > 0 else statistics.mean(times)
