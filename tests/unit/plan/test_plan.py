"""The plan is all there is to know: it prints, parses, and runs as printed; what is edited runs otherwise."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program
from tests.support.graphs import inputs_of
from tests.support.recursions import fib
from tests.support.written import load_file

import undertow as ut
from undertow.engines.native import traits_of
from undertow.engines.waves import WavesPlan
from undertow.engines.waves.header import header
from undertow.errors import GraphError
from undertow.ops.op import CATALOGUE
from undertow.plan.dump import dump, dump_constants
from undertow.plan.parse import parse
from undertow.plan.pipeline import make_plan, steps
from undertow.plan.plan import Plan
from undertow.plan.walk import items_of, singly

ROOT = Path(__file__).parents[3]


def runs(program: Program) -> bool:
    return not {"lazy", "deep", "fault", "effects"} & program.tags


def acts(plan: Plan) -> bool:
    return any(kernel.is_effect for kernel in plan.kernels)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_plans_print_and_parse_after_every_pass(program: Program) -> None:
    """And what is parsed gives the same bits."""
    _, graph = program.capture(0)
    for name, plan in steps(graph, traits_of):
        text = dump(plan)
        read = parse(text, dump_constants(plan))
        assert dump(read) == text, name
        for mine, theirs in zip(read.regions, plan.regions, strict=True):
            assert mine.slots == theirs.slots, f"{name}: plan/dump.py and plan/parse.py know all that a slot says"
    if runs(program) and not acts(plan):
        inputs = inputs_of(program.function, program.cases[0], program.by, program.seed or 7)
        wanted, _ = WavesPlan(graph).run(inputs)
        found, _ = WavesPlan(graph, plan=read).run(inputs)
        for a, b in zip(found, wanted, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


@pytest.mark.parametrize("program", [program for program in PROGRAMS if runs(program)], ids=str)
def test_a_toy_engine_runs_plans(program: Program) -> None:
    """It knows nothing but the plan."""
    _, graph = program.capture(0)
    plan = make_plan(graph, traits_of)
    if any(CATALOGUE[kernel.op].state is not None for kernel in plan.kernels):
        pytest.skip("it has no variables")
    inputs = inputs_of(program.function, program.cases[0], program.by, program.seed or 7)
    wanted, _ = WavesPlan(graph).run(inputs)
    with np.errstate(all="ignore"):
        found = load_file(ROOT / "docs" / "toy_engine.py").Toy(plan).run(*inputs)
    for a, b in zip(found, wanted, strict=True):
        if a is not None:  # an order token
            np.testing.assert_allclose(np.asarray(a), b, rtol=2e-5, atol=1e-6)


def test_the_records_of_the_core_are_those_of_the_plan() -> None:
    written = (ROOT / "core" / "include" / "undertow" / "fields.h").read_text(encoding="utf-8")
    assert written == header(), "run `python -m undertow.engines.waves.header`, then `make core`"


# -- edited plans --------------------------------------------------------------------------------------------------


@ut.function
def tree(w: ut.f64[20, 10], x: ut.f64[10], n: ut.i64) -> ut.f64[10]:
    if n <= 1:
        return ut.tanh(x * 0.5 + 1.0) * x - 0.25
    both = ut.concat([tree(w, x + 1.0, n - 1), tree(w, ut.flip(x), n - 2)])
    return ut.tanh(both @ w) * 0.5 + 0.125


ARGUMENTS = (np.linspace(-1, 1, 200).reshape(20, 10), np.linspace(0, 1, 10), 5)


def edited(plan: Any, old: str, new: str) -> Any:
    text = str(plan)
    assert old in text
    return plan.parse(text.replace(old, new, 1))


def test_what_is_printed_is_what_runs() -> None:
    plan = fib.plan(10)
    assert plan.parse(str(plan)).run(10) == plan.run(10) == fib(10) == 55
    assert "fib.n" not in repr(plan) and "regions" in repr(plan)


def test_an_edited_line_changes_the_run() -> None:
    assert edited(fib.plan(10), "add fib, fib_2", "multiply fib, fib_2").run(10) == 0
    text = str(fib.plan(10)).replace("subtract n, 2:i64", "subtract n, 3:i64").replace("2:i64 count 1", "3:i64 count 1")
    assert fib.plan(10).parse(text).run(10) != 55


def test_an_edited_instruction_changes_the_run() -> None:
    plan = tree.plan(*ARGUMENTS)
    with pytest.raises(GraphError, match="does not compute what its operator says"):
        edited(plan, "each tanh", "each sinh")
    text = str(plan).replace("each tanh", "each sinh").replace("= tanh ", "= sinh ")
    assert np.abs(plan.parse(text).run(*ARGUMENTS) - tree(*ARGUMENTS)).max() > 1e-8


def test_another_schedule_gives_the_same() -> None:
    plan = tree.plan(*ARGUMENTS)
    _, before = plan.run(*ARGUMENTS, stats=True)
    found, stats = edited(plan, "group 0 lockstep", "group 0 agenda").run(*ARGUMENTS, stats=True)
    np.testing.assert_allclose(found, tree(*ARGUMENTS), rtol=1e-12)
    assert stats.waves != before.waves


def test_calls_in_two_stages_are_two_waves() -> None:
    plan = tree.plan(*ARGUMENTS)
    text = str(plan)
    lines = [line for line in text.splitlines() if line.lstrip().startswith(("call#0 @2", "call#1 @3"))]
    first, second = lines
    for part in (" sibling 0 of 2 with @2", " sibling 1 of 2 with @2"):
        text = text.replace(part, "")
    first, second = (line.partition(" sibling ")[0] + line.partition(" with @2")[2] for line in (first, second))
    apart = text.replace(f"{first}\n{second}\n", f"{first}\n    stage\n      enter\n{second}\n")
    assert apart != text
    found, stats = plan.parse(apart).run(*ARGUMENTS, stats=True)
    np.testing.assert_allclose(found, tree(*ARGUMENTS), rtol=1e-12)
    assert stats.waves > plan.run(*ARGUMENTS, stats=True)[1].waves


def test_without_drops_nothing_but_memory_changes() -> None:
    plan = tree.plan(*ARGUMENTS)
    lines = [line.partition(" drop ")[0] for line in str(plan).splitlines() if not line.lstrip().startswith("drop ")]
    np.testing.assert_array_equal(plan.parse("\n".join(lines)).run(*ARGUMENTS), tree(*ARGUMENTS))


def test_reading_a_dropped_column_is_a_checked_stop() -> None:
    plan = tree.plan(*ARGUMENTS)
    (line,) = [line for line in str(plan).splitlines() if " = flip" in line]
    gone = edited(plan, line, f"{line}\n      drop x\n    stage")
    with pytest.raises(GraphError, match="a column that was dropped"):
        gone.run(*ARGUMENTS)


def test_what_is_lent_is_not_dropped() -> None:
    plan = ut.grad(lambda w, x, n: ut.sum(tree(w, x, n))).plan(*ARGUMENTS)
    text = str(plan)
    (line,) = [line for line in text.splitlines() if " entry (w)" in line]
    with pytest.raises(GraphError, match="a column is dropped that is hoisted"):
        str(plan.parse(text.replace(line, line.partition(" drop ")[0] + " drop w")))


def test_a_node_that_is_not_there() -> None:
    plan = fib.plan(5)
    (line,) = [line for line in str(plan).splitlines() if " = add fib, fib_2" in line]
    with pytest.raises(GraphError, match="no node 'fib/plus'"):
        str(edited(plan, line, line + " ; node=fib/plus"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "the text is empty"),
        ("plan 2 f", "expected a plan of version 1"),
        ("plan 1 f\n", "no regions"),
        ("plan 1 f\ngroup 0 sideways: main", "expected `lockstep` or `agenda`"),
        ("plan 1 f\nmain main\n  phase 0() -> ()\n", "in no group"),
        ("plan 1 f\ngroup 0 lockstep: main\nmain main\n  phase 0() -> ()\n    stage\n      x = add", "no column x"),
    ],
)
def test_bad_texts(text: str, what: str) -> None:
    with pytest.raises(GraphError, match=what):
        parse(text)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("both = concat(axis=0) tree", "concat returns f64"),
        ("both = matmul tree, n", "matmul"),
        ("both = tanh tree, tree_2", "takes 1 operands"),
        ("both = concat(axes=0) tree, tree_2", "takes `axis`"),
        ("both = add tree, tree_2", "add returns f64"),
        ("both = plus tree, tree_2", "unknown operator 'plus'"),
    ],
)
def test_operators_on_what_they_do_not_take(line: str, what: str) -> None:
    plan = tree.plan(*ARGUMENTS)
    with pytest.raises(GraphError, match=what):
        edited(plan, "both = concat(axis=0) tree, tree_2", line)


def test_main_stays_what_it_is() -> None:
    with pytest.raises(GraphError, match="arguments or results of main have changed"):
        edited(fib.plan(5), "phase 0(n) -> (fib)", "phase 0(n) -> ()")


def test_what_the_host_runs_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    @ut.function
    def speaks(n: ut.i64) -> ut.i64:
        print("at", n)
        return n + 1

    plan = speaks.plan(3)
    assert "at {}" in str(plan)
    plan = plan.parse(str(plan).replace("at {}", "now {}"))
    assert plan.run(3) == 4 and "now 3" in capsys.readouterr().out


def test_arguments_of_other_types_are_refused() -> None:
    @ut.function
    def double(x):
        return x + x

    plan = double.plan(1.0)
    with pytest.raises(ut.UndertowError, match="of other types"):
        plan.run(np.ones(3))


def test_what_the_core_compiles_prints_too() -> None:
    @ut.function
    def power(x: ut.f64, n: ut.i64) -> ut.f64:
        return 1.0 if n == 0 else x * power(x, n - 1)

    text = str(power.plan(2.0, 3))
    assert "narrow" in text and "# narrow code" in text and "multiply f64" in text and "call @2" in text

    @ut.function
    def fold(x: ut.f64[10], n: ut.i64) -> ut.f64[10]:
        return x if n <= 1 else fold(fold(x * 0.5, n - 1) + x, n - 2)

    assert "agenda" in str(fold.plan(np.ones(10), 3)) and "# frame of region" in str(fold.plan(np.ones(10), 3))


def test_names_that_are_words_of_the_text() -> None:
    @ut.function
    def f(stage: ut.i64, drop: ut.i64) -> ut.i64:
        deferred = stage + drop
        r0 = deferred * drop
        enter = r0 + deferred
        return enter - stage if enter > drop else f(r0, enter)

    plan = f.plan(3, 4)
    assert plan.parse(str(plan)).run(3, 4) == f(3, 4)


def test_both_calls_of_fib_are_one_wave() -> None:
    """What the text promises: calls of one stage into one group."""
    plan = fib.plan(5)
    calls = [
        [item for item in stage.entered if hasattr(item, "callees")]
        for region in plan.data.regions
        for program in region.programs
        for stage in program.stages
    ]
    assert max(map(len, calls)) == 2
    assert sum(1 for region in plan.data.regions for p in region.programs for _ in singly(items_of(p))) > 5


@ut.function
def down(w: ut.f64[10], n: ut.i64) -> ut.f64[10]:
    return w * 2.0 if n <= 0 else down(w, n - 1) + w


@ut.function
def outer(ws: ut.f64[None, 10], ns: ut.i64[None]) -> ut.f64[None, 10]:
    return ut.map(lambda w, n: down(w, n), ws, ns)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_other_threads_collect_is_added_in_order(threads: int) -> None:
    """Tasks hand back what they have collected."""
    ws, ns = np.random.default_rng(3).normal(size=(9000, 10)), np.arange(9000) % 3
    plan = outer.plan(ws, ns)
    text = str(plan)
    (call,) = [line for line in text.splitlines() if " entry (map.x0)" in line]
    result = call.partition("-> (")[2].partition(")")[0]
    text = text.replace(
        call, call.replace(f"-> ({result})", "-> (_)") + f"\n    stage\n      {result} = collected call#0 0 like map.x0"
    )
    (leaf,) = [line for line in text.splitlines() if "multiply = multiply w, 2.0:f64" in line]
    text = text.replace(leaf, f"{leaf}\n      collect 0 whole multiply ; node=down/if1.then/multiply")
    assert re.search(r"grain=\d+: down", text)
    with ut.options(threads=threads):
        np.testing.assert_array_equal(plan.parse(text).run(ws, ns), ws * 2.0)
