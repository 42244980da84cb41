"""Cells out of files that anyone may have written: CSV, JSON, Parquet, NumPy."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.core.errors import MatrixError

NEEDED = ("stage", "task", "value")
ABOUT = ("run", "method", "unit", "seed", "order")
COLUMNS = (*ABOUT, *NEEDED, "trained_task")
ABSENT = ("", "nan", "na", "null", "none", "-", "–")
FORMATS = (".csv", ".json", ".parquet", ".npy")


def read_content(path: Path) -> np.ndarray | list[Any]:
    """Content of a file: an array, a list of rows, or mappings of named cells; raises `MatrixError`."""
    readers = {".csv": _read_csv, ".json": _read_json, ".parquet": _read_parquet, ".npy": _read_npy}
    if path.suffix.lower() not in readers:
        raise file_error(
            "a file of another kind", path, f"a name that ends in {', '.join(FORMATS)}", path.suffix or "none"
        )
    if not path.is_file():
        raise file_error("there is no such file", path, "a file", "a folder" if path.is_dir() else "nothing")
    content = readers[path.suffix.lower()](path)
    if len(content) == 0:
        raise file_error("a file without any value", path, "at least one row", "none")
    return content


def _read_csv(path: Path) -> list[Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise file_error("a file that is no text", path, "CSV in UTF-8", str(error)) from None
    separator = max(",;\t", key=text.partition("\n")[0].count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(cell.strip() for cell in row)]
    if not rows or not set(NEEDED) & {cell.strip() for cell in rows[0]}:
        return rows
    header = [cell.strip() for cell in rows[0]]
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise file_error("a ragged row", f"{path}, row {number}", f"{len(header)} cells", f"{len(row)} cells")
    _require_columns(path, header)
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


def _read_json(path: Path) -> list[Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise file_error("a file that is no JSON", path, "JSON in UTF-8", str(error)) from None
    if isinstance(content, dict):
        lengths = {key: len(column) if isinstance(column, list) else None for key, column in content.items()}
        if None in lengths.values() or len(set(lengths.values())) > 1:
            expected = "a list of rows, or an object of columns of one length"
            raise file_error("an object that is no table", path, expected, str(lengths)[:200])
        content = [dict(zip(content, row, strict=True)) for row in zip(*content.values(), strict=True)]
    if not isinstance(content, list):
        raise file_error(
            "a value that is no table", path, "a list of rows, or an object of columns", repr(content)[:80]
        )
    if any(isinstance(row, dict) for row in content):
        for number, row in enumerate(content, start=1):
            if not isinstance(row, dict):
                raise file_error("rows of two kinds", f"{path}, row {number}", "named columns", repr(row)[:80])
            _require_columns(f"{path}, row {number}", list(row))
    return content


def _read_parquet(path: Path) -> list[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise file_error("a file that is no Parquet", path, "a table", str(error)) from None
    if not set(NEEDED) & set(table.column_names):
        return [list(row.values()) for row in table.to_pylist()]
    _require_columns(path, table.column_names)
    return table.to_pylist()


def _read_npy(path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise file_error("a file that is no array of numbers", path, "an array of numbers", str(error)) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.ndim not in (1, 2, 3):
        got = f"{getattr(array, 'dtype', type(array).__name__)} with shape {getattr(array, 'shape', '?')}"
        raise file_error(
            "an array of another kind", path, "numbers along [task], [stage, task] or [run, stage, task]", got
        )
    return array.astype(float)


def _require_columns(where: Path | str, names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in COLUMNS]
    missing = [name for name in NEEDED if name not in names]
    doubled = sorted({name for name in names if list(names).count(name) > 1})
    if unknown or missing or doubled:
        faults = [*(f"{name!r} is unknown" for name in unknown), *(f"{name!r} is missing" for name in missing)]
        faults += [f"{name!r} stands there twice" for name in doubled]
        raise file_error(
            "columns of other names",
            where,
            f"{', '.join(NEEDED)}; also {', '.join(ABOUT)}, trained_task",
            "; ".join(faults),
        )


def without_header(path: Path, rows: Sequence[Any]) -> tuple[tuple[str, ...], Sequence[Any]]:
    """Names of the tasks, where the first row holds texts, and the rows of numbers."""
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, list | tuple | np.ndarray):
            raise file_error("a row that is no row", f"{path}, row {number}", "a list of numbers", repr(row)[:80])
    header = [str(cell).strip() for cell in rows[0]]
    is_header = len(rows) > 1 and all(isinstance(cell, str) and parsed(cell) is None for cell in rows[0])
    if not is_header:
        return (), rows
    if len(set(header)) < len(header):
        raise file_error("a task named twice", f"{path}, row 1", "another name for each task", ", ".join(header))
    return tuple(header), rows[1:]


def require_square(path: Path, rows: Sequence[Sequence[float]], first: int = 1) -> None:
    """Raise where a row has not as many cells as there are rows; `first` is the number of the first one."""
    for number, row in enumerate(rows, start=first):
        if len(row) != len(rows):
            expected = f"{len(rows)} cells, as many as there are rows: a row for each stage, a column for each task"
            raise file_error("a ragged table", f"{path}, row {number}", expected, f"{len(row)} cells")


def number_in(value: Any, where: str, scale: float) -> float:
    """A cell as a fraction, NaN where it is empty; raises where it is text or no fraction of `scale`."""
    number = parsed(value)
    if number is None:
        if value is None or (isinstance(value, str) and value.strip().lower() in ABSENT):
            return math.nan
        raise file_error("text in the place of a number", where, "a number, or nothing", repr(value)[:80])
    if math.isnan(number):
        return math.nan
    if not 0 <= number <= scale:
        next_step = "correct the value" if scale == 100 or not 1 < number <= 100 else "say --percent if it is percent"
        expected = "a percentage from 0 to 100" if scale == 100 else "a fraction from 0 to 1"
        raise file_error("a value out of range", where, expected, f"{number:g}", next_step)
    return number / scale


def parsed(value: Any) -> float | None:
    """The number that a cell holds, None where it holds none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def text_in(value: Any, where: str) -> str:
    """A cell as a name; raises where it is empty."""
    text = "" if value is None else str(value).strip()
    if not text:
        raise file_error("a name is missing", where, "a name", "nothing")
    return text


def file_error(what: str, where: Path | str, expected: str, got: str, next: str = "correct the file") -> MatrixError:
    """A file that is not what it should be."""
    return MatrixError(what, where=str(where), expected=expected, got=got, next=next)
