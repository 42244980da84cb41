"""Where what was made again differs from what lies there: one row or line, in words."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.core.tables import TABLES

_LONGEST = 300
_DRAWING = re.compile(r"<svg.*?</svg>", flags=re.DOTALL)


def first_difference(expected: pa.Table, found: pa.Table, first_row: int = 0) -> tuple[str, str]:
    """The first row that differs, as it should be and as it is: the columns that differ, after those of both alike.

    >>> first_difference(pa.table({"a": ["x"], "b": [1]}), pa.table({"a": ["x"], "b": [2]}))
    ('row 0 (a x): b 1', 'row 0 (a x): b 2')
    """
    for number in range(max(len(expected), len(found))):
        rows = [table.slice(number, 1).to_pylist() for table in (expected, found)]
        if repr(rows[0]) != repr(rows[1]):
            at = f"row {first_row + number}"
            return (f"{at}{_text(*rows)}", f"{at}{_text(*reversed(rows))}")
    return (f"{len(expected)} rows", "the same rows in other types")


def _text(own: list[dict[str, Any]], other: list[dict[str, Any]]) -> str:
    if not own:
        return ": no such row"
    if not other:
        return f": {_listed(own[0], list(own[0]))}"
    differing = [name for name in own[0] if repr(own[0][name]) != repr(other[0].get(name))]
    alike = [name for name in own[0] if name not in differing and own[0][name] is not None]
    about = f" ({_listed(own[0], alike)})" if alike else ""
    return f"{about}: {_listed(own[0], differing)}"


def _listed(row: dict[str, Any], names: list[str]) -> str:
    return _cut(", ".join(f"{name} {row[name]}" for name in names))


@dataclass(frozen=True)
class Difference:
    """Between an artifact that was made again and the one that lies there.

    Args:
        reason: one line.
        expected, got: as it was made again, and as it is.
        is_of_form: it is one of encoding or drawing alone, as another version of a library makes it.
    """

    reason: str
    expected: str
    got: str
    is_of_form: bool = False


def difference_of_bytes(path: str, kind: str, expected: bytes, found: bytes) -> Difference:
    """Why an artifact is not the one that was made again."""
    if kind in TABLES:
        return _of_tables(expected, found)
    if path.endswith((".svg", ".pdf")):
        return Difference("another drawing follows from its parents", *_sizes(expected, found), is_of_form=True)
    try:
        own, other = expected.decode(), found.decode()
    except UnicodeDecodeError:
        return Difference("other bytes follow from its parents", *_sizes(expected, found))
    if path.endswith(".html") and _DRAWING.sub("", own) == _DRAWING.sub("", other):
        return Difference("other drawings follow from its parents", *_sizes(expected, found), is_of_form=True)
    return _of_lines(own.splitlines(), other.splitlines())


def _of_lines(expected: list[str], found: list[str]) -> Difference:
    for number, (own, other) in enumerate(zip(expected, found, strict=False), start=1):
        if own != other:
            return Difference(f"line {number} does not follow from its parents", *_around(own, other))
    return Difference("more or fewer lines follow from its parents", f"{len(expected)} lines", f"{len(found)} lines")


def _of_tables(expected: bytes, found: bytes) -> Difference:
    made, lies = (pq.ParquetFile(pa.BufferReader(content)) for content in (expected, found))
    tables = [file.read().replace_schema_metadata(None) for file in (made, lies)]
    if not tables[0].equals(tables[1]) and repr(tables[0].to_pylist()) != repr(tables[1].to_pylist()):
        return Difference("its rows do not follow from its parents", *first_difference(*tables))
    own, other = (json.loads(file.metadata.metadata[b"lineage"]) for file in (made, lies))
    for name in sorted(own.keys() | other.keys()):
        if own.get(name) != other.get(name):
            reason = f"its lineage is not the one that it was made with: {name}"
            return Difference(reason, _cut(str(own.get(name))), _cut(str(other.get(name))))
    writers = (f"{file.metadata.created_by}, {file.metadata.serialized_size} bytes of footer" for file in (made, lies))
    return Difference("the same rows and lineage in other bytes", *writers, is_of_form=True)


def _sizes(expected: bytes, found: bytes) -> tuple[str, str]:
    return f"{len(expected)} bytes", f"{len(found)} bytes"


def _around(own: str, other: str) -> tuple[str, str]:
    """What differs of two lines, with a little before it: a page can be one line."""
    at = next((at for at, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), min(len(own), len(other)))
    start = max(0, at - 60)
    return _cut(own[start : start + 160]), _cut(other[start : start + 160])


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
