"""Generates the records of a plan in C++, core/include/undertow/fields.h, from the table of fields.

`python -m undertow.engines.waves.header` writes it; a test checks that it is up to date.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from undertow.plan.fields import FRAMES, INTEGERS, KINDS, PARTS, WORDS, fields_hash, fields_of, members_of
from undertow.plan.shapes import SMALL

_OWN_NAMES = ("Operand",)
_RENAMED = {"source": "from"}  # a keyword of Python
_HEAD = """\
// clang-format off
// Generated from src/undertow/plan/plan.py by `python -m undertow.engines.waves.header`: do not edit.
//
// The records of a plan. Fields are in the order in which they are encoded; `each_field` visits them in that order.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "undertow/memory.h"
#include "undertow/value_type.h"

namespace undertow {

struct Slot;
struct Program;
struct Stage;

/// A slot of the item's region or, if negative, constant number ~operand.
using Operand = int32_t;
"""


def header() -> str:
    """The text of the file."""
    parts = [_HEAD, f"constexpr int64_t kFieldsHash = {fields_hash()};  // of all records, fields and enums below"]
    parts.append(f"constexpr int64_t kSmall = {SMALL};  // bytes up to which a value shares the memory of its table\n")
    for name, words in WORDS.items():
        written = ", ".join(_camel(word) for word in words)
        if name != "Home":  # defined in memory.h
            parts.append(f"enum class {name} : uint8_t {{ {written} }};")
        parts.append(f"constexpr int64_t count_of({name}) {{ return {len(words)}; }}\n")
    kinds = ", ".join(kind.__name__ for kind in KINDS)
    parts.append(f"/// An item of a plan.\nstruct Item {{\n  enum class Kind : uint8_t {{ {kinds} }};\n  Kind kind;")
    parts.append("  int32_t number;  ///< in the table of its kind\n};\n")
    parts.append(f"constexpr int64_t count_of(Item::Kind) {{ return {len(KINDS)}; }}\n")
    parts += [_struct(cls, "") for cls in PARTS]
    parts += [_struct(cls, "Fields") for cls in (*KINDS, *FRAMES)]
    parts.append("}  // namespace undertow\n")
    return "\n".join(parts)


def _struct(cls: type, suffix: str) -> str:
    comments = _comments(cls)
    own = [field for field in fields_of(cls) if field.type != "Type"]
    base = " : ValueType" if len(own) < len(fields_of(cls)) else ""
    name = cls.__name__ + suffix
    lines = [f"/// {(cls.__doc__ or '').strip()}", f"struct {name}{base} {{"]
    for field in own:
        comment = f"  ///< {comments[field.name]}" if field.name in comments else ""
        lines.append(f"  {_type(field.type)} {_RENAMED.get(field.name, field.name)}{{}};{comment}")
    seen = ["static_cast<ValueType&>(x)"] if base else []
    seen += [f"x.{_RENAMED.get(field.name, field.name)}" for field in own]
    each = " ".join(f"see({field});" for field in seen)
    lines += ["};", f"void each_field(auto&& see, {name}& x) {{ {each} }}", ""]
    return "\n".join(lines)


def _type(type_: str) -> str:
    if (members := members_of(type_)) is not None:
        inside, count = members
        return f"std::vector<{_type(inside)}>" if count is None else f"std::array<{_type(inside)}, {count}>"
    if type_ in _OWN_NAMES or type_ in WORDS or type_ == "bool":
        return type_
    if type_ in INTEGERS:
        return "int32_t"
    if type_ in ("Straight", "Entered"):
        return "Item"
    return "OpFields" if type_ == "Op" else type_


def _comments(cls: type) -> dict[str, str]:
    """The trailing comment of each field that has one."""
    return dict(re.findall(r"^    (\w+): .*?  # (.*)$", inspect.getsource(cls), re.MULTILINE))


def _camel(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))


def main() -> None:
    path = Path(__file__).parents[4] / "core" / "include" / "undertow" / "fields.h"
    path.write_text(header(), encoding="utf-8")


if __name__ == "__main__":
    main()
