"""Pictures of trees: as SVG, with colours for labels, and as text for terminals.

>>> from undertow.data.parse import parse_brackets
>>> print(text(parse_brackets("(3 (2 a) (4 (4 good) (2 film)))")))
3
├─ 2 a
└─ 4
   ├─ 4 good
   └─ 2 film
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.sax import saxutils

from undertow.data.forest import Forest
from undertow.data.nested import name_of
from undertow.errors import DataError

_SIZE, _SMALL = 12, 10  # font sizes
_ADVANCE = 0.602  # width of a letter of a monospaced font, in font sizes
_HIGH, _LEVEL, _GAP, _EDGE = 24.0, 52.0, 10.0, 16.0
_LONGEST = 24  # letters of a word; the rest is cut
_DEEPEST = 60  # levels drawn as text: every line is indented by its depth
_MOST_NODES = 2000  # in a picture; more cannot be read

# From the lowest label to the highest; colours in between are interpolated.
_SCALE = ((0xF4, 0xB4, 0xA6), (0xF3, 0xF1, 0xEC), (0xA9, 0xD6, 0xA5))
_PALETTE = ("#d9e9fb", "#ffedbd", "#e6dcfb", "#d2efea", "#f8dcf0", "#fde3d3", "#e3edc8", "#d7dce3")
_PLAIN = "#ffffff"
_NOT_XML = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")

_CSS = f"""
text{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328;text-anchor:middle}}
.w{{font-size:{_SIZE}px;font-weight:600}}
.l{{font-size:{_SMALL}px;fill:#5a616b}}
.e{{stroke:#9aa1ab;stroke-width:1.3}}
rect{{stroke:#8d949e}}
"""  # noqa: E501


def text(forest: Forest, most: int = 10) -> str:
    """Trees drawn as text: one node per line, its label before its word. Deep branches are cut off."""
    if most < 0:
        raise DataError(f"most must not be {most}", hint="use an integer from 0 on")
    lines: list[str] = []
    ends, roots = forest.ends.tolist(), forest.roots.tolist()
    for root, end in zip(roots[:most], ends[:most], strict=True):
        lines += [line for _, line in lines_of(forest, root, end)]
    if len(forest) > most:
        lines.append(f"... and {len(forest) - most} more trees")
    return "\n".join(lines)


def lines_of(forest: Forest, root: int, end: int) -> Iterator[tuple[int | None, str]]:
    """The lines of one tree, each with its node; nodes below a cut branch share one line, whose node is None."""
    depths = forest.depths[root:end].tolist()
    # Does a node have a next sibling? Scanning backwards: yes if one of its depth came after the last shallower one.
    has_next = [False] * len(depths)
    seen: list[bool] = []
    for at in range(len(depths) - 1, -1, -1):
        depth = depths[at]
        has_next[at] = len(seen) > depth and seen[depth]
        del seen[depth + 1 :]
        seen += [False] * (depth + 1 - len(seen))
        seen[depth] = True
    before: list[str] = []  # the indentation below each ancestor
    for at, depth in enumerate(depths):
        if depth > _DEEPEST:
            if depths[at - 1] == _DEEPEST:
                count = next((k for k in range(at, len(depths)) if depths[k] <= _DEEPEST), len(depths)) - at
                yield None, f"{''.join(before)}└─ ... and {count} more node{'s' * (count != 1)} below"
            continue
        del before[max(depth - 1, 0) :]
        branch = "" if depth == 0 else "├─ " if has_next[at] else "└─ "
        word, label = _names(forest, root + at)
        caption = " ".join(str(part) for part in (label, word) if part is not None) or "·"
        yield root + at, f"{''.join(before)}{branch}{caption}".rstrip()
        if depth > 0:
            before.append("│  " if has_next[at] else "   ")


def escape(shown: str) -> str:
    """Text escaped for XML; characters that XML forbids become U+FFFD."""
    return saxutils.escape(_NOT_XML.sub("\N{REPLACEMENT CHARACTER}", shown))


class _Box(NamedTuple):
    x: float
    y: float
    width: float


def svg(forest: Forest, most: int = 6) -> str:
    """Trees as one SVG picture, one below the other; a note says how many are left out."""
    parts: list[str] = []
    top, widest, shown = _EDGE, 0.0, 0
    highest = int(forest.label.max()) if forest.size else 0
    for root, end in zip(forest.roots.tolist()[:most], forest.ends.tolist()[:most], strict=True):
        if shown and end > _MOST_NODES:
            break
        boxes, width = _placed(forest, root, min(end, root + _MOST_NODES), top)
        parts += _drawn(forest, root, boxes, highest)
        widest = max(widest, width)
        top = max(box.y for box in boxes) + _LEVEL
        shown += 1
    if shown < len(forest):
        parts.append(f'<text class="l" style="text-anchor:start" x="{_EDGE}" y="{top:.0f}">')
        parts.append(f"and {len(forest) - shown} more trees</text>")
        top += _EDGE
        widest = max(widest, 160.0)
    width, height = widest + 2 * _EDGE, top
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img"><title>{escape(repr(forest))}</title>'
        f'<style>{_CSS}</style><rect width="100%" height="100%" style="fill:#fbfbfa;stroke:none"/>'
        + "".join(parts)
        + "</svg>"
    )


def _placed(forest: Forest, root: int, end: int, top: float) -> tuple[list[_Box], float]:
    """Positions of the nodes of a tree: leaves side by side, inner nodes centred over their children."""
    depths = forest.depths[root:end].tolist()
    letters = [len(_clip(*_names(forest, root + at))) for at in range(len(depths))]
    own = [max(_HIGH, count * _SIZE * _ADVANCE + 14) for count in letters]
    offsets, child = forest.offsets, forest.child
    below = [
        [c - root for c in child[offsets[root + at] : offsets[root + at + 1]].tolist() if c < end]
        for at in range(len(depths))
    ]
    room = list(own)  # the width of a subtree
    for at in range(len(depths) - 1, -1, -1):
        if below[at]:
            room[at] = max(own[at], sum(room[c] for c in below[at]) + _GAP * (len(below[at]) - 1))
    left = [_EDGE] * len(depths)
    for at in range(len(depths)):
        x = left[at] + (room[at] - sum(room[c] for c in below[at]) - _GAP * (len(below[at]) - 1)) / 2
        for c in below[at]:
            left[c] = x
            x += room[c] + _GAP
    middles = [left[at] + room[at] / 2 for at in range(len(depths))]
    for at in range(len(depths) - 1, -1, -1):
        if below[at]:
            middles[at] = (middles[below[at][0]] + middles[below[at][-1]]) / 2
    return [_Box(middles[at], top + _LEVEL * depths[at], own[at]) for at in range(len(depths))], room[0]


def _drawn(forest: Forest, root: int, boxes: list[_Box], highest: int) -> Iterator[str]:
    offsets, child = forest.offsets, forest.child
    for at, box in enumerate(boxes):
        for c in child[offsets[root + at] : offsets[root + at + 1]].tolist():
            if c - root < len(boxes):
                to = boxes[c - root]
                yield (f'<line class="e" x1="{box.x:.1f}" y1="{box.y + _HIGH:.1f}" x2="{to.x:.1f}" y2="{to.y:.1f}"/>')
    for at, box in enumerate(boxes):
        node = root + at
        word, label = _names(forest, node)
        fill = _fill(int(forest.label[node]), highest, forest.labels is not None)
        shown = _clip(word, label)
        x, y = box.x - box.width / 2, box.y
        yield f"<g><title>node {node}{'' if label is None else f', label {escape(str(label))}'}</title>"
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{box.width:.1f}" height="{_HIGH:.0f}" rx="7" style="fill:{fill}"/>'
        yield f'<text class="w" x="{box.x:.1f}" y="{y + 16:.1f}">{escape(shown)}</text>'
        if word is not None and label is not None:
            yield f'<text class="l" x="{box.x:.1f}" y="{y + _HIGH + 11:.1f}">{escape(_clip(label))}</text>'
        yield "</g>"


def _names(forest: Forest, node: int) -> tuple[Any, Any]:
    """The display form of the word and label of a node."""
    return name_of(forest.word[node], forest.vocabulary), name_of(forest.label[node], forest.labels)


def _clip(*names: object) -> str:
    """The first of these that is not None, cut to a maximum length."""
    letters = str(next((name for name in names if name is not None), ""))
    return letters if len(letters) <= _LONGEST else letters[: _LONGEST - 1] + "…"


def _fill(label: int, highest: int, has_names: bool) -> str:
    """The colour of a label: names get one each, numbers lie on a scale."""
    if label < 0:
        return _PLAIN
    if has_names:
        return _PALETTE[label % len(_PALETTE)]
    place = label / highest * (len(_SCALE) - 1) if highest else 0.0
    low = min(int(place), len(_SCALE) - 2)
    mixed = [round(a + (b - a) * (place - low)) for a, b in zip(_SCALE[low], _SCALE[low + 1], strict=True)]
    return "#" + "".join(f"{part:02x}" for part in mixed)
