"""Variables in the text and the picture of a graph: Var nodes, with edges to the operators that read or assign them.

A graph names variables in attributes: `variable`, with `dtype` and `shape` of what it holds, or `targets`, a tuple of
names. So a variable is no node, and nothing fires to make its handle. People look for one, as in the papers: its text
has a line `var x: f64`, and `&x` where an operator uses it.

>>> from undertow.ir.text import parse, dump
>>> text = '''library 1 main=main
... var x: f64
...
... main main(v: f64) -> (x.add#0)
...   x.add: f64, ctl = assign &x, v how="add"
... '''
>>> dict(parse(text).functions["main"].nodes[2].attrs)
{'dtype': 'f64', 'how': 'add', 'shape': (), 'variable': 'x'}
>>> dump(parse(text)) == text
True
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from undertow.ir.graph import Attr, Attrs, Node
from undertow.types import DTYPES, Type

_ONE = ("variable", "dtype", "shape")


def held_by(node: Node) -> dict[str, Type]:
    """The variables that a node names, with what they hold."""
    attrs = node.attrs
    several = attrs.get("targets")
    if isinstance(several, tuple):
        names = [name for name in several if isinstance(name, str)]
        return dict(zip(names, node.types, strict=False)) if 0 < len(names) == len(several) else {}
    name, dtype, shape = map(attrs.get, _ONE)
    if not isinstance(name, str) or dtype not in DTYPES or not isinstance(shape, tuple):
        return {}
    dims = tuple(d for d in shape if d is None or (type(d) is int and d >= 0))
    return {name: Type(DTYPES[str(dtype)], dims)} if len(dims) == len(shape) else {}


def variables_in(nodes: Iterable[Node]) -> dict[str, Type]:
    """The variables that nodes name, in the order in which they come, with what they hold."""
    found: dict[str, Type] = {}
    for node in nodes:
        for name, held in held_by(node).items():
            found.setdefault(name, held)
    return found


def implied(node: Node, known: Mapping[str, Type]) -> Attrs:
    """The attributes that variable edges stand for: none if they would not tell all."""
    held = held_by(node)
    if not held or any(known.get(name) != type_ for name, type_ in held.items()):
        return Attrs()
    keys = ("targets",) if "targets" in node.attrs else _ONE
    said = named(tuple(held), "targets" in node.attrs, known)
    return said if all(node.attrs.get(key) == said[key] for key in keys) else Attrs()


def named(names: tuple[str, ...], is_several: bool, known: Mapping[str, Type]) -> Attrs:
    """The attributes of a node with edges from these variables."""
    if is_several:
        return Attrs(targets=names)
    held = known[names[0]]
    shape: tuple[Attr, ...] = tuple(d if isinstance(d, int) else None for d in held.shape)
    return Attrs(variable=names[0], dtype=held.dtype.name, shape=shape)
