"""Logs of training: a row for each epoch, as CSV for spreadsheets and as JSON lines for programs."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from undertow.train.loop import Record


def write_log(folder: Path, history: Sequence[Record]) -> tuple[Path, Path]:
    """Write `log.csv` and `log.jsonl`. They are short and rewritten each time, so resuming loses nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    table, lines = folder / "log.csv", folder / "log.jsonl"
    with open(table, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Record)])
        writer.writeheader()
        writer.writerows(_plain(record) for record in history)  # unknown values are empty cells
    lines.write_text("".join(json.dumps(_plain(record)) + "\n" for record in history), encoding="utf-8")
    return table, lines


def _plain(record: Record) -> dict[str, float | None]:
    """JSON has no nan: unknown values are null."""
    return {name: None if math.isnan(value) else value for name, value in asdict(record).items()}
