"""Graphs as text: `dump` prints a library or a static graph, `parse` reads it back; docs/reference/ir_grammar.md.

One node a line, never indented by nesting, so the text of a graph is linear in its size. What can be derived is
left out: numbers that follow from the order, regions that a node's name tells, the nodes that a signature stands
for. Big arrays are named by their digest only.

>>> print(dump(parse('''
... library 1 main=double
... main double(x: f32) -> (y)
...   y: f32 = multiply x, 2.0:f32
... ''')), end="")
library 1 main=double
<BLANKLINE>
main double(x: f32) -> (y)
  y: f32 = multiply x, 2.0:f32
"""

from undertow.ir.dump import dump as dump
from undertow.ir.dump import dump_node as dump_node
from undertow.ir.dump import dump_nodes as dump_nodes
from undertow.ir.literal import INFIX as INFIX
from undertow.ir.literal import dump_constants as dump_constants
from undertow.ir.literal import show_const as show_const
from undertow.ir.parse import parse as parse
from undertow.ir.placed_text import dump_placed as dump_placed
from undertow.ir.placed_text import parse_placed as parse_placed
from undertow.ir.placed_text import placed_constants as placed_constants
