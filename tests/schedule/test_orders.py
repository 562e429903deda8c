"""The order of firings is free: every schedule gives the same result, and a seed names one schedule exactly."""

from __future__ import annotations

from typing import Any

import pytest
from tests.programs import PROGRAMS, Program, assert_same, find

from undertow.engines.contract import SCHEDULERS
from undertow.ir.graph import Port, StaticGraph
from undertow.ir.trace import Event, Fired, FrameEnded, FrameStarted, RunEnded, RunStarted, Tags, from_json, to_json

# Small programs that between them have every operator: calls, loops, maps, effects, random numbers, arrays.
SMALL = [
    find(name)
    for name in (
        "factorial", "fibonacci", "ackermann", "takeuchi", "male", "hanoi", "returns_after_returns", "short_circuit",
        "catalan", "find_pair", "left_in_every_way", "call_in_condition", "lifted_closure", "closure_in_loop",
        "tree_sum", "merge_sort", "squares", "tree_weight", "nested_recursion", "map_in_loop", "both_children",
        "in_loops", "gamble", "noisy_loop", "summarise",
    )
]  # fmt: skip


def small_case(program: Program) -> int:
    """A case that makes some calls, but not very many."""
    calls = [program.expected(case).calls for case in range(len(program.cases))]
    return next((case for case, count in enumerate(calls) if count is not None and 4 < count < 40), len(calls) - 1)


def events_of(program: Program, **options: Any) -> tuple[Any, list[Event]]:
    """The result of a run on the reference engine, and what happened in it, the time that it took left out."""
    events: list[Event] = []
    result, _ = program.run(small_case(program), engine="reference", trace=events, **options)
    last = events[-1]
    assert isinstance(last, RunEnded)
    return result, [*events[:-1], RunEnded(last.firings, 0.0, last.error)]


@pytest.mark.parametrize("program", SMALL, ids=str)
def test_a_seed_names_a_schedule(program: Program) -> None:
    for options in ({"scheduler": "fifo"}, {"scheduler": "lifo"}, {"scheduler": "random", "schedule_seed": 77}):
        assert events_of(program, **options)[1] == events_of(program, **options)[1]


@pytest.mark.parametrize("program", SMALL, ids=str)
def test_other_seeds_other_orders_same_result(program: Program) -> None:
    runs = [events_of(program, scheduler="random", schedule_seed=seed) for seed in range(8)]
    expected = program.expected(small_case(program)).value
    for result, _ in runs:
        assert_same(result, expected)
    orders = {tuple((e.frame, e.node) for e in events if isinstance(e, Fired)) for _, events in runs}
    assert len(orders) > 4, "the seeds hardly change the order"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("program", SMALL, ids=str)
def test_events_make_sense(program: Program, scheduler: str) -> None:
    """Frames begin before anything fires in them and end after; nothing fires twice under one tag, or too early."""
    _, static = program.capture(small_case(program))
    _, events = events_of(program, scheduler=scheduler, schedule_seed=5)
    assert isinstance(events[0], RunStarted) and events[0].engine == "reference"
    assert isinstance(events[-1], RunEnded) and not events[-1].error
    began: dict[int, FrameStarted] = {}
    ended: set[int] = set()
    fired: set[tuple[int, int]] = set()
    for event in events[1:-1]:
        if isinstance(event, FrameStarted):
            assert event.frame == len(began), "frames are numbered as they begin"
            assert (event.parent is None) == (event.frame == 0) and (event.frame == 0 or event.parent in began)
            began[event.frame] = event
        elif isinstance(event, Fired):
            assert event.frame in began and event.frame not in ended
            assert (event.frame, event.node) not in fired, "a node fires twice under one tag"
            assert event.name == static.nodes[event.node].name
            assert event.live or set(event.outputs) <= {"*"}
            check_inputs(static, event, fired)
            fired.add((event.frame, event.node))
        elif isinstance(event, FrameEnded):
            assert event.frame in began and event.frame not in ended
            ended.add(event.frame)
    live = sum(1 for e in events if isinstance(e, Fired) and e.live)
    assert live == events[-1].firings
    check_tags(static, began)


def check_inputs(static: StaticGraph, event: Fired, fired: set[tuple[int, int]]) -> None:
    """What stands in the same frame has fired before."""
    node = static.nodes[event.node]
    crossing = {"call", "hoist", "call_start", "enter", "enter_start", "next", "fan", "fan_start"}
    if node.op in (
        "merge",
        "return",
        "exit",
        "gather",
        "outer",
        "hoist_read",
    ):  # these wait for other frames, or for one of several
        return
    for operand in (*node.inputs, *node.controls):
        if isinstance(operand, Port) and static.nodes[operand.node].op not in crossing:
            assert (event.frame, operand.node) in fired, f"{node.name} fires before {static.nodes[operand.node].name}"


def check_tags(static: StaticGraph, began: dict[int, FrameStarted]) -> None:
    """Each frame has a tag of its own, made by a site that enters its region."""
    tags = Tags(began.values())
    assert len({tags[frame] for frame in began}) == len(began)
    for event in began.values():
        if event.site is not None:
            assert static.sites[event.site - 1].callee == event.region
            assert tags[event.frame][1:] == tags[event.parent or 0]


def test_events_survive_json(tmp_path: Any) -> None:
    program = find("catalan")
    events: list[Event] = []
    program.run(1, engine="reference", trace=events)
    assert [from_json(to_json(event)) for event in events] == events


def test_every_program_prints_in_one_order(capsys: pytest.CaptureFixture[str]) -> None:
    """Effects are ordered by the program, whatever the schedule."""
    for program in PROGRAMS:
        if "effects" not in program.tags or "fault" in program.tags:
            continue
        for seed in range(10):
            program.run(len(program.cases) - 1, scheduler="random", schedule_seed=seed)
            assert capsys.readouterr().out == program.expected(len(program.cases) - 1).printed
