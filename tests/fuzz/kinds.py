"""The kinds of cases, by name. A kind makes the same case of the same random numbers, in whatever process."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz.agreement import gradient_run, python_run, vectors_run, ways_run
from tests.fuzz.case import Case
from tests.fuzz.files import spoiled_file
from tests.fuzz.frames import spoiled_conversation
from tests.fuzz.graphs import false_graph
from tests.fuzz.interrupts import interrupted_runs
from tests.fuzz.plans import spoiled_plan, spoiled_templates
from tests.fuzz.programs import concurrent_run, exact_run, limited_run

KINDS: dict[str, Callable[[Random], Case]] = {
    "files": spoiled_file,
    "graphs": false_graph,
    "plans": spoiled_plan,
    "templates": spoiled_templates,
    "programs": exact_run,
    "limits": limited_run,
    "threads": concurrent_run,
    "python": python_run,
    "ways": ways_run,
    "vectors": vectors_run,
    "gradients": gradient_run,
    "interrupts": interrupted_runs,
    "frames": spoiled_conversation,
}


def make(name: str) -> Case:
    """The case of a name: `kind:seed:number`."""
    return KINDS[name.split(":")[0]](Random(name))
