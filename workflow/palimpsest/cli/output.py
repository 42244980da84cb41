"""Rows of a table as a file of the user's choice: CSV, JSON, Parquet, LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from palimpsest.core.artifact import encode_table, write_atomically
from palimpsest.core.errors import MatrixError
from palimpsest.core.tables import TABLES
from palimpsest.report.escape import csv_cell

Rows = Sequence[Mapping[str, Any]]
KINDS = (".csv", ".json", ".parquet", ".tex")
HELP = f"Write it to a file, too: {', '.join(KINDS)}."


def require_kind(path: Path | None) -> None:
    """Raise `MatrixError` where no file of this kind is written; before the work, not after it."""
    if path is not None and path.suffix.lower() not in KINDS:
        raise MatrixError(
            "a file of a kind that is not written",
            where="--output",
            expected=f"a name that ends in {', '.join(KINDS)}",
            got=path.name,
            next="choose another name",
        )


def write(path: Path, name: str, rows: Rows, latex: Callable[[], bytes]) -> None:
    """Write rows of the table `name` to a file of the kind that its own name says, `require_kind` taken for granted.

    CSV, JSON and Parquet hold every column and digit, fractions as they are; LaTeX what stands on the screen.
    """
    columns = TABLES[name].schema.names
    cells = {column: [row[column] for row in rows] for column in columns}
    encoders: dict[str, Callable[[], bytes]] = {
        ".csv": lambda: _csv(columns, rows),
        ".json": lambda: _json(columns, rows),
        ".parquet": lambda: encode_table(name, cells, {"rule": f"{name} of files"})[0],
        ".tex": latex,
    }
    write_atomically(path, encoders[path.suffix.lower()]())


def _csv(columns: Sequence[str], rows: Rows) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([columns, *([csv_cell(row[column]) for column in columns] for row in rows)])
    return text.getvalue().encode()


def _json(columns: Sequence[str], rows: Rows) -> bytes:
    plain = [{column: row[column] for column in columns} for row in rows]
    return (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode()
