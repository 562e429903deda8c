"""Libraries and static graphs as text, with everything that validity speaks of: loops, phases, groups, gradients.

Some are alike: each is to be read alone, beside its static graph.
"""

from __future__ import annotations

from tests.support.validity import parse_library

from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Phase, Port, Region
from undertow.ir.text import dump
from undertow.passes.derive.extend import extend
from undertow.passes.flatten import flatten
from undertow.types import CTL, Type, bool_

LIBRARY = """\
library 1 main=main
file 0 "factorial.py" in fac
file 1 "factorial.py"

function fac(n: i64) -> (merge) @ 0:2:1
  less_equal: bool       = less_equal n, 1:i64                      @ 0:3:8
  branch if1 less_equal ^start.if
  start.if: ctl, ctl     = switch less_equal, start
  if1.then/value: i64    = identity 1:i64 ^start.if#0               @ 0:4:16
  n.if: i64, i64         = switch less_equal, n
  if1.else/subtract: i64 = subtract n.if#1, 1:i64                   @ 0:5:20
  if1.else/fac: i64      = call if1.else/subtract callee="fac"      @ 0:5:16
  if1.else/multiply: i64 = multiply n.if#1, if1.else/fac            @ 0:5:12
  merge: i64             = merge if1.then/value, if1.else/multiply  @ 0:3:5

main main(n: i64) -> (fac)
  fac: i64 = call n callee="fac"  @ 1:8:1
"""

STATIC = """\
static 1 factorial
inputs n
fetches fac
site 1 call fac: main -> fac
site 2 call fac/fac: fac/if1.else -> fac

main main ^start
  start: ctl          = start
  n: i64              = input index=0
  fac.start: ctl, ctl = call_start site=1 ^start
  fac.n: i64          = call n index=0 site=1
  fac: i64            = return fac/merge index=0 site=1 ^fac.start#1

function fac ^fac/start
  fac/start: ctl                   = merge fac.start#0, fac/if1.else/fac.start#0
  fac/n: i64                       = merge fac.n, fac/if1.else/fac.n
  fac/less_equal: bool             = less_equal fac/n, 1:i64
  branch fac/if1 fac/less_equal ^fac/start.if
  fac/start.if: ctl, ctl           = switch fac/less_equal, fac/start
  fac/if1.then/value: i64          = identity 1:i64 ^fac/start.if#0
  fac/n.if: i64, i64               = switch fac/less_equal, fac/n
  fac/if1.else/subtract: i64       = subtract fac/n.if#1, 1:i64
  fac/if1.else/fac.start: ctl, ctl = call_start site=2 ^fac/start.if#1
  fac/if1.else/fac.n: i64          = call fac/if1.else/subtract index=0 site=2
  fac/if1.else/fac: i64            = return fac/merge index=0 site=2 ^fac/if1.else/fac.start#1
  fac/if1.else/multiply: i64       = multiply fac/n.if#1, fac/if1.else/fac
  fac/merge: i64                   = merge fac/if1.then/value, fac/if1.else/multiply
"""

LOOPS = """\
library 1 main=main

main main(x: f64[?], n: i64) -> (last, squares)
  last: i64       = loop 0:i64, n body="main/while"
  squares: f64[?] = map x, last body="main/map"

loop main/while(i: i64, n: i64) -> (less, if1.then/i) carried=1
  less: bool      = less i, n
  branch if1 less
  i.if: i64, i64  = switch less, i
  if1.then/i: i64 = add i.if#0, 1:i64

map main/map(x: f64, n: i64) -> (y) carried=1
  y: f64 = multiply x, x
"""

PHASES = """\
library 1 main=main

main main(x: f64) -> (y, dx)
  y: f64  = call x callee="f"
  dx: f64 = resume y, 1.0:f64 phase=1

function f(x: f64) -> (y)
  y: f64  = multiply x, x
  phase 1(dy: f64) -> (dx)
  dx: f64 = multiply dy, x
"""

# Phases in order, through a caller in between; phase 1 of f makes a call with a value of phase 0.
THREE_PHASES = """\
library 1 main=main

main main(x: f64) -> (y, dx, ddx, z)
  y: f64   = call x callee="g"
  dx: f64  = resume y, 1.0:f64 phase=1
  ddx: f64 = resume y, 2.0:f64 phase=2
  z: f64   = call x callee="g"

function g(x: f64) -> (y)
  y: f64   = call x callee="f"
  phase 1(dy: f64) -> (dx)
  dx: f64  = resume y, dy phase=1
  phase 2(ddy: f64) -> (ddx)
  ddx: f64 = resume y, ddy phase=2

function f(x: f64) -> (y)
  y: f64   = multiply x, x
  phase 1(dy: f64) -> (dx)
  dx: f64  = call x, dy callee="h"
  phase 2(ddy: f64) -> (ddx)
  ddx: f64 = multiply ddy, dx

function h(a: f64, b: f64) -> (c)
  c: f64 = multiply a, b
"""

# Both phases of a map; an order token comes with the second.
MAP_PHASES = """\
library 1 main=main

main main(x: f64[?], w: f64) -> (y, back#0)
  y: f64[?]         = map x, w body="main/map"
  back: f64[?], ctl = resume y, x, start phase=1

map main/map(x: f64, w: f64) -> (y) carried=1
  y: f64    = multiply x, w
  phase 1(dy: f64, after: ctl) -> (dx, done)
  dx: f64   = multiply dy, w
  done: ctl = identity after
"""

STATIC_LOOPS = """\
static 1 main
inputs x, n
fetches last, squares
site 1 loop last: main -> while
site 2 map squares: main -> map

main main ^start
  start: ctl              = start
  x: f64[?]               = input index=0
  n: i64                  = input index=1
  last.start: ctl, ctl    = enter_start site=1 ^start
  last.i: i64             = enter 0:i64 index=0 site=1 ^start
  last: i64               = exit while/i.if#1 index=0 site=1 ^last.start#1
  squares.start: ctl, i64 = fan_start x site=2 ^start
  squares.x: f64          = fan x index=0 site=2
  squares: f64[?]         = gather map/y index=0 site=2 ^squares.start#1

loop while in main ^while/start
  while/start: ctl         = merge last.start#0, while/start.next
  while/i: i64             = merge last.i, while/i.next
  while/n: i64             = outer n site=1 ^while/start
  while/less: bool         = less while/i, while/n
  branch if1 while/less ^while/start.if
  while/i.if: i64, i64     = switch while/less, while/i
  while/if1.then/i: i64    = add while/i.if#0, 1:i64
  while/start.if: ctl, ctl = switch while/less, while/start
  while/start.next: ctl    = next while/start.if#0 site=1 in if1.then
  while/i.next: i64        = next while/if1.then/i site=1 in if1.then

map map in main ^squares.start#0
  map/n: i64 = outer last site=2 ^squares.start#0
  map/y: f64 = multiply squares.x, squares.x
"""

STATIC_PHASES = """\
static 1 main
inputs x
fetches y, dx
site 1 call y: main -> f

main main ^start
  start: ctl         = start
  x: f64             = input index=0
  y.start: ctl, ctl  = call_start site=1 ^start
  y.x: f64           = call x index=0 site=1
  y: f64             = return f/y index=0 site=1 ^y.start#1
  dx.start: ctl, ctl = call_start phase=1 site=1 ^start
  dx.dy: f64         = call 1.0:f64 index=0 phase=1 site=1 ^start
  dx: f64            = return f/dx index=0 phase=1 site=1 ^dx.start#1

function f ^f/start, f/start~1
  f/start: ctl   = merge y.start#0
  f/x: f64       = merge y.x
  f/y: f64       = multiply f/x, f/x
  f/start~1: ctl = merge dx.start#0
  f/dy: f64      = merge dx.dy
  f/dx: f64      = multiply f/dy, f/x
"""


# Two entries into f; the loop in it is of the same group, and reads what they were given.
HOISTED = """\
library 1 main=main

main main(a: f64, b: f64, c: f64, n: i64) -> (y, z) shared=(c)
  y: f64 = call n, a callee="f"
  z: f64 = call n, b callee="f"

function f(n: i64, w: f64) -> (last#1) group=f hoisted=1
  c: f64         = shared index=0 ^start
  last: i64, f64 = loop n, c body="f/while"

loop f/while(k: i64, s: f64, w: f64) -> (p, if1.then/k, if1.then/s) carried=2 group=f hoisted=1
  p: bool         = greater k, 0:i64
  branch if1 p
  k.if: i64, i64  = switch p, k
  s.if: f64, f64  = switch p, s
  w.if: f64, f64  = switch p, w
  if1.then/k: i64 = subtract k.if#0, 1:i64
  if1.then/f: f64 = call if1.then/k callee="f"
  if1.then/t: f64 = add if1.then/f, w.if#0
  if1.then/s: f64 = add s.if#0, if1.then/t
"""

TANGENT = """\
library 1 main=main

main main(x: f64, n: i64, dx: f64) -> (y#0, y#2)
  y: f64, i64, f64 = tangent x, n, dx callee="f" given=[0] wanted=[0]

function f(x: f64, n: i64) -> (y, n)
  y: f64 = multiply x, x
"""

# The gradient of a call; `extend` makes of it what is collected.
GRADIENT = """\
library 1 main=main

main main(w: f64[3], n: i64) -> (d)
  y: f64    = call w, n callee="f"
  d: f64[3] = gradient y, 1.0:f64 given=[0] wanted=[0]

function f(w: f64[3], n: i64) -> (m)
  p: bool              = less_equal n, 0:i64
  branch if1 p
  w.if: f64[3], f64[3] = switch p, w
  n.if: i64, i64       = switch p, n
  if1.then/s: f64      = sum w.if#0 axes=[0] keepdims=false
  if1.else/k: i64      = subtract n.if#1, 1:i64
  if1.else/f: f64      = call w.if#1, if1.else/k callee="f"
  if1.else/t: f64      = take w.if#1, if1.else/k axis=0
  if1.else/r: f64      = multiply if1.else/f, if1.else/t
  m: f64               = merge if1.then/s, if1.else/r
"""


REAPED = """\
library 1 main=main

main main(x: f64, n: i64) -> (y, z)
  y: f64    = call x callee="f"
  z: f64[?] = reap y, n add=false

function f(x: f64) -> (y)
  y: f64   = multiply x, x
  sow: ctl = sow 3:i64, y
"""


STATIC_THREE = dump(flatten(parse_library(THREE_PHASES)))
STATIC_MAP_PHASES = dump(flatten(parse_library(MAP_PHASES)))
STATIC_HOISTED = dump(flatten(parse_library(HOISTED)))
COLLECTED = dump(extend(parse_library(GRADIENT))[0])
STATIC_COLLECTED = dump(flatten(parse_library(COLLECTED)))


def nested(depth: int) -> Library:
    """A function whose branches nest: each `then` holds the next."""
    nodes = [Node("start", (), (CTL,), "start"), Node("param", (), (Type(bool_),), "p", attrs=Attrs(index=0))]
    regions = [Region("main", "main", starts=(Port(0),))]
    pred, region = Port(1), 0
    for level in range(depth):
        nodes.append(Node("switch", (pred, pred), (Type(bool_),) * 2, f"{regions[region].name}/p.if", region))
        regions.append(Region("branch", f"if{level + 1}.then", region, pred, True))
        regions.append(Region("branch", f"if{level + 1}.else", region, pred, False))
        pred, region = Port(len(nodes) - 1, 0), len(regions) - 2
    graph = FunctionGraph(tuple(nodes), tuple(regions), "main", "main", (Phase((1,), (Port(1),)),))
    return Library({"main": graph})
