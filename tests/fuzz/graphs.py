"""Libraries as text with false types, attributes, operators and wiring: what a file may hold.

A case takes the text of a program, changes some of it, and does what loading and running do: parse, check with
`ops.vet`, flatten, and run on every engine, with arrays of the lengths that the types state. Most are refused. What is
not must run to a value or to one of our errors, without harm to memory.
"""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

import numpy as np
from tests.fuzz.case import Case
from tests.programs import PROGRAMS
from tests.support.random_programs import random_program

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.contract import Options
from undertow.ir.graph import Library
from undertow.ir.text import dump, dump_constants, parse
from undertow.ops.op import CATALOGUE
from undertow.ops.vet import vet
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library
from undertow.types import Type

LIMITS = Options(timeout=2.0, memory=1 << 24, frames=2000, max_depth=60)
_SLOW = frozenset(("deep", "lazy", "effects"))
_LINE = re.compile(r"^  (\S+): (.+?) *= (\w+)(.*)$")
_LENGTHS = ("?", "0", "1", "2", "3", "4", "5", "64", "4096", "1000000", "2147483648", "9223372036854775807")
_NUMBERS = ("-1", "0", "1", "2", "3", "7", "31", "32", "63", "64", "-9223372036854775808", "2147483648", "null")

# Maps, loops and reshapes whose lengths meet: few of the programs above have arrays at all.
WRITTEN = (
    """library 1 main=main

main main(v: f64[4], w: f64[?], n: i64) -> (r, t, s)
  y: f64[4]    = map v, w body="b"
  q: f64[2,2]  = reshape y shape=[2, 2]
  r: f64       = sum q axes=[0, 1] keepdims=false
  c: f64[?]    = concat y, w axis=0
  d: f64[?]    = call c, n callee="f"
  t: f64[?]    = map d body="g"
  m: f64[?,4]  = map w, y body="h"
  s: f64[?]    = sum m axes=[1] keepdims=false

map b(x: f64, y: f64) -> (m) carried=2
  m: f64 = multiply x, y

map g(x: f64) -> (m) carried=1
  m: f64 = multiply x, 2.0:f64

map h(x: f64, y: f64[4]) -> (m) carried=1
  m: f64[4] = multiply y, x

function f(x: f64[?], n: i64) -> (merge)
  less: bool           = less n, 1:i64
  branch if1 less
  x.if: f64[?], f64[?] = switch less, x
  n.if: i64, i64       = switch less, n
  if1.then/v: f64[?]   = multiply x.if#0, 2.0:f64
  if1.else/n: i64      = subtract n.if#1, 1:i64
  if1.else/s: f64[?]   = slice x.if#1 starts=[null] stops=[-1] steps=[null]
  if1.else/v: f64[?]   = call if1.else/s, if1.else/n callee="f"
  merge: f64[?]        = merge if1.then/v, if1.else/v
""",
    """library 1 main=main

main main(x: f64[3], t: f64[5,3], k: i64[2], n: i64) -> (last#1, u, p)
  last: i64, f64[3] = loop 0:i64, x, n body="body"
  u: f64[2,3]       = take t, k axis=0
  z: f64[3,2]       = transpose u axes=[1, 0]
  p: f64[3,3]       = matmul z, u

loop body(i: i64, v: f64[3], n: i64) -> (less, if1.then/i, if1.then/v) carried=2
  less: bool             = less i, n
  branch if1 less
  i.if: i64, i64         = switch less, i
  v.if: f64[3], f64[3]   = switch less, v
  if1.then/i: i64        = add i.if#0, 1:i64
  if1.then/s: f64[2]     = slice v.if#0 starts=[1] stops=[null] steps=[null]
  if1.then/a: f64[1]     = slice v.if#0 starts=[null] stops=[1] steps=[null]
  if1.then/v: f64[3]     = concat if1.then/s, if1.then/a axis=0
""",
)


@cache
def _texts() -> list[tuple[str, dict[str, Any]]]:
    """Libraries that are valid, with their constants."""
    found: list[tuple[str, dict[str, Any]]] = [(text, {}) for text in WRITTEN] * 8
    for program in PROGRAMS:
        if program.by == "call" and not program.tags & _SLOW:
            try:
                library = program.function.library(*program.cases[0])
            except ut.UndertowError:
                continue
            found.append((dump(library), dump_constants(library)))
    for seed in range(8):
        library = random_program(Random(seed), effects=False)[0].library(3, 1, 0.5, True)
        found.append((dump(library), dump_constants(library)))
    return [(text, constants) for text, constants in found if text.count("\n") < 120]


def false_graph(chance: Random) -> Case:
    """A library whose text was changed."""
    text, constants = chance.choice(_texts())
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        text = _mutated(text, chance)
    seed = chance.random()
    return Case(lambda: _run(text, constants, Random(seed)), text)


def _mutated(text: str, chance: Random) -> str:
    lines = text.split("\n")
    number = chance.randrange(1, len(lines))
    change = chance.choice(
        (_change_type, _change_type, _change_type, _change_number, _change_operand, _change_operator)
    )
    for offset in range(len(lines)):  # the next line on which there is something to change
        at = (number + offset) % len(lines)
        made = change(lines[at], lines, chance) if at > 0 else lines[at]
        if made != lines[at]:
            lines[at] = made
            break
    return "\n".join(lines)


def _change_type(line: str, lines: list[str], chance: Random) -> str:
    """Another length, dtype or rank of what the line says the type of something is."""
    types = list(re.finditer(r"\b(bool|i32|i64|f32|f64|c64|c128|ctl)(\[[^\]\s]*\])?(?=[,\s)])", line))
    if not types:
        return line
    found = chance.choice(types)
    dtype, shape = found[1], (found[2] or "[]")[1:-1].split(",") if found[2] else []
    kind = chance.random()
    if shape and kind < 0.7:
        shape[chance.randrange(len(shape))] = chance.choice(_LENGTHS)
    elif kind < 0.8:
        dtype = chance.choice(("bool", "i32", "i64", "f32", "f64", "c64", "c128", "ctl"))
    elif shape and kind < 0.9:
        shape.pop(chance.randrange(len(shape)))
    else:
        shape.insert(chance.randint(0, len(shape)), chance.choice(_LENGTHS))
    made = dtype + (f"[{','.join(shape)}]" if shape else "")
    return line[: found.start()] + made + line[found.end() :]


def _change_number(line: str, lines: list[str], chance: Random) -> str:
    """Another number in an attribute or constant."""
    numbers = list(re.finditer(r"(?<=[=\[ ,])-?\d+(?=[\],: \n]|$)|null", line))
    if not numbers:
        return line
    found = chance.choice(numbers)
    return line[: found.start()] + chance.choice(_NUMBERS) + line[found.end() :]


def _change_operand(line: str, lines: list[str], chance: Random) -> str:
    """Another value in the place of one, or one more, or one less."""
    parts = _LINE.match(line)
    names = [other[1] for other in map(_LINE.match, lines) if other]
    names += re.findall(r"(\w+): ", " ".join(other for other in lines if not other.startswith("  ")))
    if parts is None or not names:
        return line
    operands = [word.strip() for word in parts[4].split(",")]
    at = chance.randrange(len(operands))
    _, _, rest = operands[at].partition(" ")
    kind = chance.random()
    if kind < 0.6:
        operands[at] = f"{chance.choice(names)} {rest}"
    elif kind < 0.8:
        operands.insert(at, chance.choice(names))
    elif len(operands) > 1 and not rest:
        operands.pop(at)
    return f"  {parts[1]}: {parts[2]} = {parts[3]} {', '.join(operands)}"


def _change_operator(line: str, lines: list[str], chance: Random) -> str:
    parts = _LINE.match(line)
    if parts is None or parts[3] not in CATALOGUE:
        return line
    return f"  {parts[1]}: {parts[2]} = {chance.choice(sorted(CATALOGUE))}{parts[4]}"


def _run(text: str, constants: dict[str, Any], chance: Random) -> None:
    library = parse(text, constants)
    if not isinstance(library, Library):
        return
    vet(library)
    main = library.functions[library.main]
    if len(main.phases) != 1:
        return
    inputs = [_value(main.nodes[param].types[0], chance) for param in main.params]
    for is_hoisted, is_simple in ((True, True), (False, False)):
        graph = flatten(make_library(library, is_hoisted, is_simple))
        for engine in ENGINES.values():
            if is_hoisted and not engine.takes_hoisted:
                continue
            plan = engine.plan(graph)
            for given in inputs, [_value(main.nodes[param].types[0], chance) for param in main.params]:
                try:
                    plan.run(given, LIMITS)
                except ut.RunError:
                    continue


def _value(type_: Type, chance: Random) -> Any:
    """An argument of a type: lengths that only the run knows are small, and others as they are, if memory allows."""
    shape = [chance.choice((0, 1, 2, 3, 4, 7)) if dim is None else dim for dim in type_.shape]
    if type_.dtype.kind == "ctl" or np.prod([max(int(n), 1) for n in shape], dtype=float) > 2e6:
        raise ut.TypeMismatch("no such argument is tried")
    return np.full(shape, chance.choice((0, 1, 2)), type_.dtype.numpy)
