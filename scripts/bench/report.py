"""Results: tables on the terminal while they come, and one JSON file with all of them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.machine import describe_machine, load_average

Cell = float | int | str | None
Row = Mapping[str, Cell]


@dataclass(frozen=True, slots=True)
class Table:
    """Some results.

    Args:
        name: short, for the JSON file.
        note: what was done, and how to read it.
        rows: cells by column; columns are in the order in which they first occur.
    """

    name: str
    note: str
    rows: Sequence[Row]


class Report:
    """All results of one run, with the machine they are from.

    Args:
        bench: name of the script.
        load: what was asked for, so that the run can be repeated.
    """

    def __init__(self, bench: str, load: Mapping[str, Any]) -> None:
        self._content: dict[str, Any] = {
            "bench": bench,
            "machine": describe_machine(),
            "load": dict(load),
            "load_average_before": load_average(),
            "tables": [],
        }
        for name in ("machine", "load"):
            print(f"{name}:")
            print("\n".join(f"  {key}: {value}" for key, value in self._content[name].items()))
        print(f"load average before: {self._content['load_average_before']}", flush=True)

    def add(self, table: Table) -> None:
        """Take a table and print it."""
        entry = {"name": table.name, "note": table.note, "rows": [dict(row) for row in table.rows]}
        self._content["tables"].append(entry)
        print(f"\n{render(table)}", flush=True)

    def finish(self, file: Path | None) -> None:
        """Close the report, and write it down where a file is named."""
        self._content["load_average_after"] = load_average()
        print(f"\nload average after: {self._content['load_average_after']}", flush=True)
        if file is not None:
            file.write_text(json.dumps(self._content, indent=2) + "\n")


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """The option of every bench for where its results go."""
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")


def render(table: Table) -> str:
    """A table as text: title, note, aligned columns."""
    columns = list(dict.fromkeys(column for row in table.rows for column in row))
    cells = [columns, *([shown(row.get(column)) for column in columns] for row in table.rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    ]
    return "\n".join([f"{table.name}: {table.note}", *lines])


def shown(cell: Cell) -> str:
    """A cell as text: numbers with four digits that matter, nothing as a dash."""
    if cell is None:
        return "-"
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:.0f}" if abs(cell) >= 100 else f"{cell:.4g}"
