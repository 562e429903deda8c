"""Files of trees: text in any format, and arrays of a forest."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from undertow.data.checks import check_text
from undertow.data.forest import Forest
from undertow.data.nested import from_nested
from undertow.data.parse import parse_brackets, parse_listops, parse_sexpressions
from undertow.data.scan import refuse
from undertow.data.unparse import to_brackets, to_jsonl, to_listops, to_sexpressions
from undertow.data.vocabulary import Vocabulary
from undertow.errors import DataError, brief
from undertow.tracebacks import boundaries

# What an .npz file may unpack to: zeros take a thousandth of their size.
_MOST_BYTES = 1 << 28
_MOST_TIMES = 100  # the size of the file


class MissingFile(DataError, FileNotFoundError):
    """A file of trees does not exist. Also a FileNotFoundError."""


def read(path: str | os.PathLike[str], format: str | None = None, **options: Any) -> Forest:
    """The trees in a file: `brackets`, `sexpressions`, `listops`, `jsonl` (a tree on each line) or `npz`.

    Without `format`, the suffix decides: .txt, .mrg, .ptb and .bracket are brackets, .sexp and .lisp
    S-expressions, .tsv ListOps. Options go to the reader of that format, as in `read("train.txt", min_count=2)`.
    """
    check_file(path)
    format = format_of(path, format)
    if format == "npz":
        return load(path)
    text = text_of(path)
    try:
        return FORMATS[format](text, **options)
    except DataError as fault:
        fault.what = f"{os.fspath(path)}: {fault.what}"
        raise


def text_of(path: str | os.PathLike[str]) -> str:
    """The text of a file."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as fault:
        raise DataError(f"{os.fspath(path)!r} is not UTF-8 text: {fault}", hint="convert the file first") from None


def write(forest: Forest, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write trees to a file, in the format given by `format` or its name, as in `read`.

    Missing folders are created.
    """
    format = format_of(path, format)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if format == "npz":
        save(forest, path)
    else:
        Path(path).write_text(WRITERS[format](forest), encoding="utf-8")


def check_file(path: str | os.PathLike[str]) -> None:
    """Reject missing files and folders before looking at formats."""
    if Path(path).is_dir():
        raise DataError(f"{os.fspath(path)!r} is a folder, not a file of trees", hint="choose a file in it")
    if not Path(path).exists():
        raise MissingFile(f"there is no file {os.fspath(path)!r}", hint="check the name and the folder")


def format_of(path: str | os.PathLike[str], format: str | None) -> str:
    """The requested format, or that of the file's suffix."""
    known_format = format or ENDINGS.get(Path(path).suffix.removeprefix(".").lower())
    if known_format not in FORMATS:
        known = ", ".join(FORMATS)
        if format:
            raise DataError(f"unknown tree format {brief(format)}", hint=f"the formats are {known}")
        raise DataError(
            f"cannot tell the format from the name {brief(Path(path).name)}",
            hint=f"set format=, or --from or --to on the command line; the formats are {known}",
        )
    return known_format


def parse_jsonl(text: str, **options: Any) -> Forest:
    """One JSON tree per line: strings, lists, and objects with `word`, `label`, `children` and other fields."""
    check_text(text)
    problems: dict[int, str] = {}
    trees: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            trees.append(json.loads(line, object_pairs_hook=_once))
            from_nested(trees[-1:])
        except DataError as fault:
            what = fault.what.replace(" in tree 0", "").replace(" of tree 0", "")
            problems[number] = f"{what} ({fault.hint})" if fault.hint else what
        except (ValueError, RecursionError) as fault:
            problems[number] = f"this is not JSON ({fault})" if isinstance(fault, ValueError) else "it is too deep"
    refuse(problems, text, "each should be a tree")
    return from_nested(trees, **options)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON. Python would take the last of two values for one key."""
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(key for number, (key, _) in enumerate(pairs) if key in dict(pairs[:number]))
        raise ValueError(f"{brief(twice)} occurs twice in one object")
    return made


def save(forest: Forest, path: str | os.PathLike[str]) -> None:
    """Write a forest as a file of arrays (`.npz`), with its vocabulary and label names."""
    arrays: dict[str, Any] = {"depths": forest.depths, "word": forest.word, "label": forest.label}
    arrays["binary"] = np.array(forest.is_binary)
    arrays |= {f"field.{name}": values for name, values in forest.fields.items()}
    for name, names in (("vocabulary", forest.vocabulary), ("labels", forest.labels)):
        if names is not None:
            arrays[name] = np.array(names.words, np.str_)
            arrays[f"{name}.unknown"] = np.array([] if names.unknown is None else [names.unknown], np.str_)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def load(path: str | os.PathLike[str]) -> Forest:
    """Read a file written by `save`. Nothing in it is executed."""
    arrays = _arrays(path)
    if missing := [name for name in ("depths", "word", "label", "binary") if name not in arrays]:
        raise _no_forest(path, f"it has no {' and no '.join(map(repr, missing))}")
    try:
        names: dict[str, Any] = {}
        for name in {"vocabulary", "labels"} & arrays.keys():
            for part in (name, f"{name}.unknown"):
                if arrays[part].ndim != 1 or arrays[part].dtype.kind != "U":
                    raise ValueError(f"{part!r} must be a row of strings")
            unknown = arrays[f"{name}.unknown"].tolist()
            names[name] = Vocabulary(tuple(arrays[name].tolist()), unknown[0] if unknown else None)
        fields = {name.removeprefix("field."): a for name, a in arrays.items() if name.startswith("field.")}
        for name, values in fields.items():
            if values.dtype.kind not in "biuf":
                raise ValueError(f"the field {name!r} must contain numbers, not {values.dtype}")
        if arrays["binary"].dtype.kind != "b" or arrays["binary"].size != 1:
            raise ValueError("'binary' must be True or False")
        forest = Forest.from_depths(
            arrays["depths"], arrays["word"], arrays["label"], fields, bool(arrays["binary"]), **names
        )
        for numbers, known in ((forest.word, forest.vocabulary), (forest.label, forest.labels)):
            if known is not None and numbers.max(initial=-1) >= len(known):
                raise ValueError(f"{numbers.max()} is out of range: it has names for {len(known)}")
        return forest
    except DataError:
        raise
    except (ValueError, KeyError, SystemError) as fault:  # the last one for characters beyond those that there are
        raise _no_forest(path, str(fault)) from None


def _arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The arrays of an .npz file, if they are not absurdly larger than the file."""
    with open(path, "rb") as file:  # NumPy would leave a broken one open
        try:
            with zipfile.ZipFile(file) as entries:
                size = sum(info.file_size for info in entries.infolist())
            most = max(_MOST_BYTES, _MOST_TIMES * os.fstat(file.fileno()).st_size)
            if size > most:
                raise _no_forest(path, f"its arrays would take {size:,} bytes, more than {most:,}")
            file.seek(0)
            held = np.load(file, allow_pickle=False)
            arrays = {name: held[name] for name in held.files}
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):  # NumPy gives what is none as bytes
                raise ValueError("an entry is not an array")
            return arrays
        except DataError:
            raise
        except Exception:  # NumPy and zipfile have a dozen ways to say that a file is broken
            raise _no_forest(path, "it is damaged, or not an .npz file") from None


def _no_forest(path: str | os.PathLike[str], why: str) -> DataError:
    return DataError(f"{os.fspath(path)!r} does not hold a forest: {why}", hint="ut.data.save writes such files")


FORMATS: dict[str, Callable[..., Forest]] = {
    "brackets": parse_brackets,
    "sexpressions": parse_sexpressions,
    "listops": parse_listops,
    "jsonl": parse_jsonl,
    "npz": load,
}
WRITERS: dict[str, Callable[[Forest], str]] = {
    "brackets": to_brackets,
    "sexpressions": to_sexpressions,
    "listops": to_listops,
    "jsonl": to_jsonl,
}
ENDINGS = {
    "txt": "brackets", "mrg": "brackets", "ptb": "brackets", "bracket": "brackets", "brackets": "brackets",
    "sexp": "sexpressions", "lisp": "sexpressions", "sexpressions": "sexpressions",
    "tsv": "listops", "json": "jsonl", "jsonl": "jsonl", "npz": "npz",
}  # fmt: skip


boundaries(globals(), ("load", "parse_jsonl", "read", "save", "write"))
