"""Validity: every rule is broken once, on purpose, and says so.

Most cases change one piece of a valid text; what text cannot say wrongly is broken by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support.ir_texts import (
    COLLECTED,
    GRADIENT,
    HOISTED,
    LIBRARY,
    LOOPS,
    MAP_PHASES,
    PHASES,
    REAPED,
    STATIC,
    STATIC_COLLECTED,
    STATIC_HOISTED,
    STATIC_LOOPS,
    STATIC_MAP_PHASES,
    STATIC_PHASES,
    STATIC_THREE,
    TANGENT,
    THREE_PHASES,
    nested,
)
from tests.support.validity import parse_library, parse_static

from undertow.errors import GraphError, Span, TypeMismatch
from undertow.ir import spec
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Phase, Port, Region, Site, StaticGraph
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.passes.flatten import flatten
from undertow.types import CTL, Type, f32, f64

VALID = {
    "factorial": LIBRARY,
    "static factorial": STATIC,
    "loops": LOOPS,
    "static loops": STATIC_LOOPS,
    "phases": PHASES,
    "static phases": STATIC_PHASES,
    "three phases": THREE_PHASES,
    "static three phases": STATIC_THREE,
    "map phases": MAP_PHASES,
    "static map phases": STATIC_MAP_PHASES,
    "hoisted": HOISTED,
    "static hoisted": STATIC_HOISTED,
    "gradient": GRADIENT,
    "collected": COLLECTED,
    "static collected": STATIC_COLLECTED,
    "reaped": REAPED,
}


@pytest.mark.parametrize("name", VALID)
def test_valid_graphs_pass(name: str) -> None:
    graph = parse(VALID[name])
    assert dump(graph) == VALID[name]
    check(graph)


# (text, what is replaced, by what, the rule that it breaks). A table: its rows have one shape.
BROKEN = [
    (LIBRARY, "main=main", "main=other", "the library has no main graph other"),
    (LIBRARY, "main=main", "main=fac", "fac is not a main graph"),
    # nodes
    (LIBRARY, "if1.else/fac: i64 ", "if1.else/fac: i64, i64 ", "the number of outputs differs from"),
    (LIBRARY, "switch less_equal, n\n", "switch less_equal, n#7\n", "an input or control edge names"),
    (LIBRARY, "merge if1.then/value, ", "merge ", "an operator has the wrong number of inputs or outputs"),
    (LIBRARY, 'callee="fac"    ', "callee=1 ", "an operator lacks an attribute, or has"),
    (STATIC, "call n index=0", "call n index=true", "an operator lacks an attribute, or has"),
    (PHASES, "resume y, 1.0:f64 phase=1", "resume y, 1.0:f64 phase=0", "a phase is not a positive"),
    (STATIC_PHASES, "call_start phase=1", "call_start phase=true", "a phase is not a positive"),
    (PHASES, 'call x callee="f"', 'call x callee="f" phase=1', "a phase is not a positive"),
    (STATIC, "start: ctl          = start", "start: i64 = start", "a start token is not of type ctl"),
    (STATIC, "input index=0", "input index=0 ^start", "a start, param or input node has a control edge"),
    (LIBRARY, "switch less_equal, n\n", "switch n, n\n", "the predicate of a switch is not the bool scalar"),
    (LIBRARY, "switch less_equal, n\n", "switch true, n\n", "the predicate of a switch is not the bool scalar"),
    (LIBRARY, "n.if: i64, i64 ", "n.if: i64, i32 ", "the outputs of a switch do not have the type of its value"),
    (LIBRARY, "merge if1.then/value", "merge 1:i64", "a merge takes a constant, which is never dead"),
    (STATIC, "merge fac/if1.then/value, fac/if1.else/multiply",
     "merge fac/if1.then/value, fac/if1.else/multiply ^fac/n", "a merge has a control edge"),
    (LIBRARY, "merge: i64 ", "merge: f64 ", "a merge has no inputs, or one that its type does not accept"),
    (LIBRARY, "identity 1:i64 ^start.if#0", "identity 1:i64", "a node has no input that could trigger it"),
    (LIBRARY, "less_equal n, 1:i64", "less_equal merge, 1:i64", "a node comes before one that it depends on"),
    (LIBRARY, "= subtract n.if#1", "= outer n.if#1", "a library holds an operator of static graphs"),
    # regions
    (LIBRARY, "branch if1 less_equal", "branch if1 n", "the predicate of a branch is not a bool scalar"),
    (LIBRARY, "branch if1 less_equal", "branch x less_equal\n branch if1 less_equal",
     "a branch does not have exactly one true and one false side"),
    (LIBRARY, "branch if1 less_equal ^start.if", "branch if1 less_equal ^n.if",
     "the starts of a region are not ports of type ctl"),
    (STATIC, "function fac ^", "main fac ^", "region 0 is not the main graph, or another region is"),
    (STATIC, "function fac ^", "function fac in main ^", "a function has a parent"),
    (STATIC_LOOPS, "map map in main ^", "map map ^", "the parent of a loop or map does not exist"),
    (STATIC, "main main ^start", "main main", "a body has no start"),
    (LIBRARY, "less_equal ^start.if", "less_equal ^start.if in if1.else",
     "a branch does not come after its parent region"),
    (LIBRARY, "switch less_equal, start", "switch less_equal, if1.then/value",
     "the outputs of a switch do not have the type of its value"),
    # sites
    (STATIC, "site 1 call", "site 1 jump", "a site is neither a call nor a loop nor a map"),
    (STATIC, "site 1 call", "site 1 loop", "a site enters a region of the wrong kind"),
    (STATIC_LOOPS, "loop while in main", "loop while in while", "a loop or map body has"),
    # where tokens live
    (LIBRARY, "switch less_equal, n\n", "switch less_equal, n in if1.else\n", "a switch has no branch"),
    (STATIC, "switch fac/less_equal, fac/n\n", "switch fac/less_equal, n\n", "predicate or value of a switch lives"),
    (STATIC, "^fac/start.if\n", "^fac/start.if in main\n", "a switch has no branch"),
    (STATIC, "function fac ^fac/start", "function fac ^start", "a start token of a region lives in another region"),
    (LIBRARY, "multiply n.if#1, if1.else/fac ", "multiply n, if1.else/fac ",
     "an input lives in a different region from its node"),
    (LIBRARY, "^start.if#0 ", "^start ", "a control edge comes from another region"),
    (LIBRARY, "merge if1.then/value, if1.else/multiply", "merge if1.else/multiply, if1.then/value", "a merge does not"),
    (LIBRARY, "merge if1.then/value, if1.else/multiply", "merge n.if#0, n", "a merge does not join the true and the"),
    # functions
    (LIBRARY, "fac(n: i64) -> (merge)", "fac[] -> (merge)\nstart: ctl = start\nn: i64 = param index=0",
     "the parameters of the phases do not match the param nodes"),
    (LIBRARY, "-> (merge) @", "-> (merge) ^ @", "the starts of the body are"),
    (LIBRARY, "-> (merge)", "-> (merge#1)", "a result does not exist"),
    (LIBRARY, "-> (merge)", "-> (if1.else/fac)", "a result lives inside a branch"),
    (LIBRARY, "-> (merge)", "-> (merge) carried=1", "a graph that is neither a loop"),
    (LOOPS, "  less: bool ", "  phase 1() -> ()\n  less: bool ", "a loop has more than one phase"),
    (LOOPS, "(y) carried=1", "(y) carried=3", "a graph carries more parameters than it has"),
    (LOOPS, "(y) carried=1", "(y)", "a map has no mapped parameter"),
    (LOOPS, "if1.then/i) carried=1", "if1.then/i) carried=2", "a loop's results are not its"),
    (LOOPS, "-> (less, ", "-> (i, ", "a loop's first result, its predicate, is not a bool scalar"),
    (LOOPS, "-> (less, if1.then/i)", "-> (less, less)", "a loop variable does not accept its next value"),
    (LOOPS, "-> (less, if1.then/i)", "-> (less, i)", "does not live in the true branch of the loop's predicate"),
    # calls
    (LIBRARY, 'call n callee="fac"', 'call n callee="fib"', "a node enters a graph that is not in the library"),
    (LIBRARY, 'call n callee="fac"', 'call n callee="main"', "a call, loop or map enters a graph of the wrong kind"),
    (LIBRARY, 'call n callee="fac"', 'call n, n callee="fac"', "the number of arguments differs from"),
    (LIBRARY, 'call n callee="fac"', 'call 1.0:f64 callee="fac" ^start', "a parameter does not accept its argument"),
    (LOOPS, "map x, last", "map last, last", "a parameter does not accept its argument"),
    (LOOPS, "squares: f64[?] = map", "squares: f64 = map", "an output does not accept the callee's result"),
    (LOOPS, "squares: f64[?] = map", "squares: ctl = map", "an output does not accept the callee's result"),
    (LIBRARY, "  fac: i64 = call", "  fac: f64 = call", "an output does not accept the callee's result"),
    (PHASES, "resume y, ", "resume x, ", "the first input of a resume is not a call or map of the same region"),
    (PHASES, "resume y, 1.0:f64 phase=1", "resume y, 1.0:f64 phase=2", "the callee has no such later phase"),
    (PHASES, "resume y, 1.0:f64 phase=1", "resume y, 1.0:f64 phase=1\n again: f64 = resume y, 1.0:f64 phase=1",
     "a phase is resumed twice"),
    (THREE_PHASES, "  dx: f64  = resume y, 1.0:f64 phase=1\n", "  dx: f64 = negative x\n",
     "phases are out of order: a resume"),
    (THREE_PHASES, "resume y, dy phase=1\n  phase 2(ddy: f64) -> (ddx)\n  ddx: f64 = resume y, ddy phase=2",
     "resume y, dy phase=2\n  phase 2(ddy: f64) -> (ddx)\n  ddx: f64 = resume y, ddy phase=1",
     "phases are out of order: a resume"),
    (PHASES, "function f(x: f64) -> (y)", "function f(x: f64) -> (dx)", "a result depends on a later"),
    (MAP_PHASES, "resume y, x, start", "resume y, w, start", "a parameter does not accept its argument"),
    (MAP_PHASES, "resume y, x, start phase=1", "resume y, x, x phase=1", "a parameter does not accept its argument"),
    (MAP_PHASES, "resume y, x, start", "resume y, x", "the number of arguments differs from"),
    (MAP_PHASES, "back: f64[?], ctl", "back: f64, ctl", "an output does not accept the callee's result"),
    (MAP_PHASES, "-> (y) carried=1", "-> (dx) carried=1", "a result depends on a later"),
    # static graphs
    (STATIC, "input index=0", "input index=1", "the inputs are not the input nodes, in order"),
    (STATIC, "inputs n\n", "", "the inputs are not the input nodes, in order"),
    (STATIC, "n: i64              = input", "begin: ctl = start\n n: i64 = input",
     "there is not exactly one start node"),
    (STATIC, "fetches fac\n", "fetches fac#1\n", "a fetch does not exist"),
    (STATIC, "fetches fac\n", "fetches fac/merge\n", "a fetch does not live in the main graph"),
    (STATIC, "= subtract ", "= param ", "a static graph holds an operator of libraries"),
    (STATIC, "call n index=0 site=1", "call n index=0 site=3", "a node names a site that"),
    (STATIC, "= call n index=0", "= enter n index=0", "a node names a site that"),
    (STATIC, "  fac/less_equal: bool ", "  fac/in: i64 = input index=1\n fac/less_equal: bool ", "a start or input"),
    (STATIC, "fac.start: ctl, ctl = call_start site=1", "fac.start: ctl, i64 = call_start site=1",
     "the outputs of a call_start or enter_start"),
    (STATIC_LOOPS, "squares.start: ctl, i64", "squares.start: i64, i64",
     "the starts of a region are not ports of type ctl"),
    (STATIC, "  fac: i64            = return", "  fac: f64 = return",
     "a node's output does not accept the value that it carries"),
    (STATIC_LOOPS, "squares: f64[?] ", "squares: f64 ", "a node's output does not accept the value that it carries"),
    (STATIC_LOOPS, "squares.x: f64 ", "squares.x: f64[?] ",
     "a node's output does not accept the value that it carries"),
    (STATIC, "fac/if1.else -> fac", "fac -> fac", "a node is not in its"),
    (STATIC_LOOPS, "outer n site=1 ^while/start", "outer n site=2 ^while/start", "an outer value is read outside"),
    (STATIC_LOOPS, "outer n site=1", "outer while/i site=1", "an outer value does not live"),
    (STATIC_LOOPS, "next while/if1.then/i site=1 in if1.then", "next while/i site=1 in while",
     "a next is not in the true branch of its loop"),
    (STATIC_PHASES, "call_start phase=1 site=1", "call_start site=1", "a site has two start tokens"),
    (STATIC_PHASES, "call_start phase=1 site=1", "call_start phase=2 site=1", "a site has no start token for"),
    (STATIC_PHASES, "call 1.0:f64 index=0 phase=1", "call 1.0:f64 index=0", "two nodes carry the same"),
    (STATIC_PHASES, "return f/dx index=0 phase=1", "return f/dx index=0", "two nodes carry the same argument"),
    (STATIC, "^fac.start#1", "^start", "a return, exit or gather has"),
    (STATIC, "return fac/merge index=0 site=1", "return n index=0 site=1", "a result does not live in"),
    (STATIC_LOOPS, "exit while/i.if#1", "exit while/i.if#0", "an exit does not take its value from the false branch"),
    (STATIC, "less_equal fac/n, 1:i64", "less_equal fac.n, 1:i64", "an argument or start token of a site"),
    (STATIC, "less_equal fac/n, 1:i64", "less_equal fac/n, 1:i64 ^fac.start#0", "an argument or start token of a site"),
    (STATIC, "call n index=0 site=1", "call n index=0 site=1 ^fac.start#1", "the second output of a start"),
    (STATIC, "merge fac/if1.then/value, fac/if1.else/multiply", "merge fac/if1.else/multiply, fac/if1.then/value",
     "a merge joins neither the two"),
    (STATIC_PHASES, "f/dy: f64      = merge dx.dy", "f/dy: f64 = merge dx.dy, y.x", "a merge joins neither"),
    (STATIC_THREE, "call_start phase=2 site=3 ^g/start~2", "call_start phase=2 site=3 ^g/start",
     "phases are out of order: a visit"),
    (STATIC_THREE, "call f/x index=0 site=4 ^f/start~1", "call f/x index=0 site=4", "an argument and the start token"),
    (STATIC_PHASES, "return f/y index=0", "return f/dx index=0",
     "a result returns in an earlier phase than it depends on"),
    (STATIC_MAP_PHASES, "fan_start main/y.start#1 phase=1", "fan_start main/x phase=1",
     "a later phase of a map does not take the number of its lanes from the first"),
    (STATIC_MAP_PHASES, "fan main/x index=0 phase=1 site=1 ^main/y.start#1", "fan main/x index=0 phase=1 site=1",
     "a later phase of a map does not take the number of its lanes from the first"),
    (STATIC_MAP_PHASES, "fan main/x index=0 site=1", "fan main/x index=0 site=1 ^main/y.start#1",
     "the second output of a start"),
    (STATIC_MAP_PHASES, "fan main/start index=1", "fan main/w index=1",
     "a node's output does not accept the value that it carries"),
    (STATIC_MAP_PHASES, "fan_start main/x site=1", "fan_start main/x phase=2 site=1", "a site has no start token for"),
    (STATIC_MAP_PHASES, "gather main/map/y index=0", "gather main/back.dy index=0",
     "a result returns in an earlier phase than it depends on"),
    (STATIC_MAP_PHASES, "gather main/map/y index=0", "gather main/map/dx index=0",
     "a result returns in an earlier phase than it depends on"),
    (STATIC_PHASES, "main -> f\n", "main -> f\nsite 2 call z: main -> f\n", "a site has no start token"),
    # hoisted and shared values
    (HOISTED, "(last#1) group=f hoisted=1", "(last#1) group=f",
     "a graph has hoisted parameters but no group, or a group"),
    (HOISTED, "(last#1) group=f hoisted=1", "(last#1) hoisted=1", "a graph has hoisted parameters but no group, or a"),
    (HOISTED, "(last#1) group=f hoisted=1", "(last#1) group=f hoisted=-1", "a graph has hoisted parameters but no"),
    (HOISTED, "carried=2 group=f hoisted=1", "carried=2 group=f hoisted=2",
     "a graph carries and hoists more parameters than it has"),
    (HOISTED, "(y, z) shared=(c)", "(y, z) group=f hoisted=1 shared=(c)", "main is in a group, but nothing calls it"),
    (HOISTED, "(last#1) group=f hoisted=1", "(last#1) group=f hoisted=1 shared=(n)",
     "a graph other than main shares values"),
    (HOISTED, "shared=(c)", "shared=(c#1)", "a shared value does not exist"),
    (HOISTED, "carried=2 group=f hoisted=1", "carried=2 group=g hoisted=1", "a loop or map enters a group"),
    (HOISTED, "w: f64) -> (p, ", "w: f64, v: i64) -> (p, ", "graphs of one group differ in their hoisted parameters"),
    (HOISTED, "shared index=0", "shared index=1", "a node reads a shared value that main does not share"),
    (HOISTED, "shared=(c)", "shared=(n)", "a node does not accept the shared value that it reads"),
    (HOISTED, "call if1.then/k callee", "call if1.then/k, w.if#0 callee", "the number of arguments differs from"),
    (HOISTED, "call n, a callee", "call n callee", "the number of arguments differs from"),
    (STATIC_HOISTED, "main/z.w ^f/while/start", "main/z.w", "a hoist_read has no control edge that could trigger it"),
    (STATIC_HOISTED, "hoist main/a", "hoist main/n", "a node's output does not accept the value that it carries"),
    (STATIC_HOISTED, "f/c: f64   ", "f/c: i64   ", "a node's output does not accept the value that it carries"),
    (STATIC_HOISTED, "greater f/while/k, 0:i64", "greater main/y.w, 0.0:f64",
     "an input lives in a different region from its node"),
    (STATIC_HOISTED, "f/c: f64               = hoist_read main/c ^f/start", "f/c: f64 = identity main/y.w",
     "a hoist goes elsewhere than into hoist_reads"),
    (STATIC_HOISTED, "hoist_read main/c ^f/start", "hoist_read main/c, main/a ^f/start",
     "the inputs of a hoist_read are"),
    (STATIC_HOISTED, "hoist_read main/c ^f/start", "hoist_read ^f/start",
     "the inputs of a hoist_read are"),
    (STATIC_HOISTED, "hoist_read main/c ^f/start", "hoist_read f/last.1 ^f/start", "the inputs of a hoist_read are"),
    (STATIC_HOISTED, "hoist_read main/y.w, main/z.w", "hoist_read main/y.w",
     "a hoist_read does not read the hoists"),
    (STATIC_HOISTED, "hoist main/b index=0 site=2", "hoist main/b index=1 site=2",
     "the inputs of a hoist_read are"),
    (STATIC_HOISTED, "hoist main/b index=0 site=2", "hoist main/b index=0 site=1", "two nodes carry the same argument"),
    # gradients, and what they collect
    (GRADIENT, "gradient y, 1.0:f64", "gradient w, 1.0:f64", "the first input of a gradient or"),
    (GRADIENT, "given=[0] wanted=[0]\n",
     "given=[0] wanted=[0]\n  e: f64[3] = gradient y, 2.0:f64 given=[0] wanted=[0]\n", "a call has two gradients"),
    (GRADIENT, "given=[0]", "given=[1]", "the operands of a gradient are"),
    (GRADIENT, "wanted=[0]", "wanted=[1]", "the operands of a gradient are"),
    (GRADIENT, "wanted=[0]", "wanted=[0, 0]", "the operands of a gradient are"),
    (GRADIENT, "gradient y, 1.0:f64", "gradient y", "the operands of a gradient are"),
    (GRADIENT, "gradient y, 1.0:f64", "gradient y, w", "the operands of a gradient are"),
    (GRADIENT, "d: f64[3] =", "d: f64[2] =", "the operands of a gradient are"),
    (COLLECTED, "= collect if1.then/d.broadcast_to index=0", "= collect if1.then/d.broadcast_to index=1",
     "a collect does not return an order token,"),
    (COLLECTED, "= collect if1.then/d.broadcast_to", "= collect if1.then/s", "the collected value does not have"),
    (COLLECTED, "collect_rows if1.else/k, if1.else/d.multiply_2", "collect_rows if1.else/k, w.if#1",
     "the operands of a collect_rows are"),
    (COLLECTED, "collect_rows if1.else/k, if1.else/d.multiply_2", "collect_rows if1.else/r, if1.else/d.multiply_2",
     "the operands of a collect_rows are"),
    (COLLECTED, "collected y, w index=0", "collected y, n index=0", "a collected belongs to a call"),
    (COLLECTED, "collected y, w index=0", "collected y, w index=1", "a collected belongs to a call"),
    (COLLECTED, "collected y, w index=0", "collected w, w index=0", "the first input of a gradient or"),
    (STATIC_COLLECTED, "if1.then/d.collect: ctl ", "if1.then/d.collect: f64 ", "a merge has no inputs, or one that"),
    (STATIC_COLLECTED, "collected main/w index=0", "collected main/w index=1",
     "a collected names an index that its site does not hoist"),
    (STATIC_COLLECTED, "main/d.collected: f64[3]", "main/d.collected: f64[2]",
     "a node's output does not accept the value that it carries"),
    (STATIC_COLLECTED, "main/d.collected: f64[3] = collected main/w index=0 site=1 ^main/d.y",
     "main/d.collected: ctl = collect main/w index=0", "a collect can run where no entry is above it"),
    # collectors
    (REAPED, "sow 3:i64, y", "sow 3.0:f64, y", "the operands of a sow are"),
    (REAPED, "sow 3:i64, y", "sow y, 3:i64", "the operands of a sow are"),
    (REAPED, "sow: ctl =", "sow: f64 =", "the operands of a sow are"),
    (REAPED, "reap y, n", "reap x, n", "the first input of a gradient or collected, or of a reap"),
    (REAPED, "reap y, n", "reap y, x", "a reap takes no length"),
    (REAPED, "z: f64[?] =", "z: f64[?,2] =", "a reap takes no length"),
    (REAPED, "z: f64[?] =", "z: f64 =", "a reap takes no length"),
    (REAPED, " add=false", "", "a reap takes no length"),
    (REAPED, "n add=false\n", "n add=false\n  w: f64[?] = reap y, n add=false\n", "a reap takes no length"),
    # tangents
    *(
        (TANGENT, old, new, "`given` and `wanted` of a tangent")
        for old, new in (
            ("given=[0] ", ""), ("given=[0]", "given=0"), ("given=[0]", "given=[1]"), ("given=[0]", "given=[2]"),
            ("given=[0]", "given=[-2]"), ("given=[0]", "given=[true]"), ("wanted=[0]", "wanted=[0, 0]"),
            ("wanted=[0]", "wanted=[1]"), ("wanted=[0]", "wanted=[2]"), (" wanted=[0]", ""),
        )
    ),
    (TANGENT, 'callee="f"', 'callee="g"', "a node enters a graph that is not in the library"),
    (TANGENT, 'callee="f"', 'callee="main"', "a call, loop or map enters a graph of the wrong kind"),
    (TANGENT, "x, n, dx callee", "x, n callee", "the number of arguments differs from"),
    (TANGENT, "x, n, dx callee", "x, n, n callee", "a parameter does not accept its argument"),
    (TANGENT, "given=[0]", "given=[]", "the number of arguments differs from"),
    (TANGENT, "y: f64, i64, f64 =", "y: f64, i64, f32 =", "an output does not accept the callee's result"),
    (TANGENT, "(y, n)", "(y, n) group=f hoisted=1", "a tangent of a graph whose parameters are already hoisted"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "old", "new", "rule"), BROKEN, ids=lambda piece: piece[:30].strip())
def test_broken_text_is_refused(text: str, old: str, new: str, rule: str) -> None:
    assert text.count(old) == 1
    with pytest.raises(GraphError) as error:
        check(parse(text.replace(old, new)))
    assert rule in error.value.what


def _map_of(*lengths: str) -> str:
    """A map over two arrays, and what its result is said to be."""
    x, y, result = lengths
    return f"""
library 1 main=main
main main(x: f64[{x}], y: f64[{y}]) -> (z)
  z: f64[{result}] = map x, y body="body"
map body(x: f64, y: f64) -> (z) carried=2
  z: f64 = add x, y
"""


@pytest.mark.parametrize(
    "lengths", [("3", "3", "3"), ("3", "3", "?"), ("3", "?", "3"), ("?", "4", "4"), ("?", "?", "?")]
)
def test_the_length_of_a_map(lengths: tuple[str, ...]) -> None:
    library = parse_library(_map_of(*lengths))
    check(library)
    check(flatten(library))


FALSE_LENGTHS = [
    (("3", "4", "?"), "arrays of several lengths are mapped together"),
    (("3", "3", "4"), "an output of a map states another length than its arguments do"),
    (("?", "3", "4"), "an output of a map states another length than its arguments do"),
    (("?", "?", "3"), "an output of a map states another length than its arguments do"),
]


@pytest.mark.parametrize(("lengths", "rule"), FALSE_LENGTHS)
def test_the_false_length_of_a_map(lengths: tuple[str, ...], rule: str) -> None:
    """In a static graph the same: what `fan_start` and `fan` take, and what `gather` gives."""
    library = parse_library(_map_of(*lengths))
    for graph in (library, flatten(library)):
        with pytest.raises(GraphError, match=rule):
            check(graph)


def test_the_lengths_of_a_resumed_map() -> None:
    text = MAP_PHASES.replace("(x: f64[?], w: f64)", "(x: f64[3], w: f64, dy: f64[4])").replace(
        "resume y, x,", "resume y, dy,"
    )
    with pytest.raises(GraphError, match="arrays of several lengths are mapped together"):
        check(parse(text))
    with pytest.raises(GraphError, match="an output of a map states another length than its arguments do"):
        check(parse(MAP_PHASES.replace("back: f64[?], ctl", "back: f64[3], ctl")))


def test_what_a_loop_gives_is_its_variable() -> None:
    """Without an iteration it is what the loop was given, whatever the next value would be."""
    text = """
library 1 main=main
main main(x: f64[5], n: i64) -> (last#1)
  last: i64, f64[3] = loop 0:i64, x, n body="body"
loop body(i: i64, v: f64[?], n: i64) -> (less, if1.then/i, if1.then/v) carried=2
  less: bool        = less i, n
  branch if1 less ^start.if
  start.if: ctl, ctl = switch less, start
  i.if: i64, i64     = switch less, i
  if1.then/i: i64    = add i.if#0, 1:i64
  if1.then/v: f64[3] = fill 0.0:f64 shape=[3] ^start.if#0
"""
    check(parse(text.replace("last: i64, f64[3]", "last: i64, f64[?]")))
    with pytest.raises(GraphError, match="an output does not accept the callee's result"):
        check(parse(text))


def library(change: Callable[[FunctionGraph], FunctionGraph]) -> Library:
    found = parse_library(LIBRARY)
    return Library({**found.functions, "fac": change(found.functions["fac"])})


def static(**changes: Any) -> StaticGraph:
    found = parse_static(STATIC)
    return replace(found, **{key: change(getattr(found, key)) for key, change in changes.items()})


def at(number: int, **changes: Any) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Change one item of a tuple."""
    return lambda items: (*items[:number], replace(items[number], **changes), *items[number + 1 :])


def body(**changes: Any) -> Callable[[FunctionGraph], FunctionGraph]:
    return lambda graph: replace(graph, regions=at(0, **changes)(graph.regions))


BY_HAND = {
    "two nodes have the same name": lambda: static(nodes=at(3, name="n")),
    "an input or control edge names": lambda: static(nodes=at(3, inputs=(Port(99),))),
    "a node is in a region that does not exist": lambda: static(nodes=at(3, region=9)),
    "a type has a named dimension:": lambda: static(nodes=at(1, types=(Type(f32, ("n",)),))),
    "a start or param node is inside a branch": lambda: library(
        lambda graph: replace(graph, nodes=at(1, region=1)(graph.nodes))
    ),
    "a body has a predicate": lambda: static(regions=at(0, pred=Port(7))),
    "region 0 is not the body, or another region is not a branch": lambda: library(
        lambda graph: replace(graph, regions=(*graph.regions, Region("loop", "l")))
    ),
    "region 0 does not have the kind": lambda: library(body(kind="map")),
    "a region has an unknown kind": lambda: static(regions=lambda regions: (*regions, Region("x", "x"))),
    "the caller or callee of a site does not exist": lambda: static(sites=at(0, caller=9)),
    "the predicate of a branch does": lambda: library(_inner_predicate),
    "a graph has an unknown kind": lambda: library(lambda graph: replace(body(kind="x")(graph), kind="x")),
    "a graph has no region 0": lambda: library(lambda graph: replace(graph, nodes=(), regions=())),
    "a graph has no phase": lambda: library(lambda graph: replace(graph, phases=())),
    "but its own is f": lambda: library(lambda graph: replace(graph, name="f")),
    "the outputs of a fan_start are not a ctl token and the number of lanes": lambda: _static_loops(
        at(6, types=(Type(f64), Type(f64)))
    ),
    "a static graph has no region 0": lambda: StaticGraph((), ()),
    "the predicate of a loop lives inside a branch": lambda: _loop_predicate(),
    "a shared value lives inside a branch": lambda: _shared_in_a_branch(),
    "a collect does not return an order token": lambda: _collects_a_number(),
}


def _inner_predicate(graph: FunctionGraph) -> FunctionGraph:
    """A branch of the body that a value of another branch decides."""
    inner = Node("less", (Port(6), Const(np.int64(0))), (graph.nodes[2].types[0],), "if1.else/less", 2)
    pred = Port(len(graph.nodes))
    sides = (Region("branch", "if2.then", 0, pred, True), Region("branch", "if2.else", 0, pred, False))
    return replace(graph, nodes=(*graph.nodes, inner), regions=graph.regions + sides)


def _static_loops(change: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> StaticGraph:
    found = parse_static(STATIC_LOOPS)
    map_region = Region("map", "map", 0, starts=(Port(0),))
    return replace(found, nodes=change(found.nodes), regions=(*found.regions[:-1], map_region))


def _loop_predicate() -> Library:
    text = LOOPS.replace("if1.then/i: i64 = add i.if#0, 1:i64", "if1.then/p: bool = less i.if#0, 1:i64")
    return parse_library(text.replace("-> (less, if1.then/i) carried=1", "-> (if1.then/p)"))


def _shared_in_a_branch() -> Library:
    text = HOISTED.replace("shared=(c)", "shared=(c.if#0)")
    branch = "  p: bool = less a, b\n  branch if1 p\n  c.if: f64, f64 = switch p, c\n"
    return parse_library(text.replace("  y: f64 = call", branch + "  y: f64 = call"))


def _collects_a_number() -> StaticGraph:
    """A collect that gives what it collects; nothing takes that."""
    found = parse_static(STATIC_COLLECTED)
    (collect,) = [node for node in found.nodes if node.op == "collect"]
    return replace(found, nodes=(*found.nodes, replace(collect, name="more", types=(Type(f64),))))


@pytest.mark.parametrize("rule", BY_HAND)
def test_broken_graphs_are_refused(rule: str) -> None:
    with pytest.raises(GraphError) as error:
        check(BY_HAND[rule]())
    assert rule in error.value.what


def test_every_rule_has_a_case() -> None:
    tables = [table for name, table in vars(spec).items() if name.isupper() and isinstance(table, list)]
    messages = [message for table in tables for _, _, message in table]
    assert len(messages) > 60
    cases = [*BY_HAND, *(rule for *_, rule in (*BROKEN, *FALSE_LENGTHS))]
    assert [message for message in messages if not any(case in message for case in cases)] == []


def test_message_shows_the_node_and_its_neighbours() -> None:
    text = LIBRARY.replace("multiply n.if#1, if1.else/fac ", "multiply n, if1.else/fac ")
    with pytest.raises(GraphError) as error:
        check(parse(text))
    assert error.value.what == (
        "fac: an input lives in a different region from its node\n"
        "  if1.else/multiply: i64 = multiply n, if1.else/fac\n"
        "  around it:\n"
        "  n: i64 = param index=0 in fac\n"
        '  if1.else/fac: i64 = call if1.else/subtract callee="fac"'
    )
    assert error.value.span == Span("factorial.py", 5, 12, "fac")


def test_types_of_primitives_follow_the_rule() -> None:
    graph = parse(STATIC_PHASES)

    def rule(node: Node, types: Any) -> tuple[Type, ...]:
        assert node.op == "multiply" and len(types) == 2
        return (types[0],)

    check(graph, rule)
    with pytest.raises(GraphError, match="not those of its type rule: f32"):
        check(graph, lambda node, types: (Type(f32),))

    def refuse(node: Node, types: Any) -> tuple[Type, ...]:
        raise TypeMismatch("these do not multiply")

    with pytest.raises(GraphError, match="an operator does not take these operands: these do not multiply"):
        check(graph, refuse)


@pytest.mark.slow
def test_check_is_linear() -> None:
    count = 20_000
    nodes = [Node("start", (), (CTL,), "start")]
    nodes += [Node("identity", (Port(k),), (CTL,), f"x{k}") for k in range(count)]
    chain = FunctionGraph(
        tuple(nodes), (Region("main", "main", starts=(Port(0),)),), "main", "main", (Phase((), (Port(count),)),)
    )
    began = time.process_time()
    check(Library({"main": chain}))
    check(nested(5000))
    assert time.process_time() - began < 30


def test_sites_may_share_a_callee_but_not_a_loop() -> None:
    found = parse_static(STATIC_LOOPS)
    with pytest.raises(GraphError, match="a loop or map body has"):
        check(replace(found, sites=(*found.sites, Site("loop", "again", 0, 1))))
