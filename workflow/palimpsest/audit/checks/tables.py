"""Every table has the columns of its name, its rows in the order of the key, each once, and the stated content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain, Row
from palimpsest.audit.finding import Finding, guarded
from palimpsest.core.artifact import ContentHash, read_lineage
from palimpsest.core.progress import Track
from palimpsest.core.tables import TABLES, Table


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Read every table, one row group at a time."""
    paths = [path for path in chain.artifacts() if chain.rows[path].kind in TABLES and chain.is_sound(path)]
    for path in track(paths, "reading tables"):
        for finding in guarded(path, "the table cannot be read", lambda path=path: _table(chain, chain.rows[path])):
            chain.damaged.add(path)
            yield finding
    for path in chain.artifacts():
        row = chain.rows[path]
        if row.kind not in TABLES and row.content_sha256 != row.sha256:
            yield Finding(path, "its content hash is not the file's", row.sha256, row.content_sha256)
        if path.endswith(".parquet") and row.kind not in TABLES:
            chain.damaged.add(path)
            yield Finding(path, "no table has that name", ", ".join(TABLES), row.kind)


def _table(chain: Chain, row: Row) -> Iterator[Finding]:
    place, declared = chain.study / row.path, TABLES[row.kind]
    lineage = read_lineage(place)
    if (lineage["schema"], lineage["schema_version"]) != (declared.name, declared.version):
        expected = f"{declared.name}, version {declared.version}, the one that this program knows"
        yield Finding(
            row.path, "its schema is another one", expected, f"{lineage['schema']}, {lineage['schema_version']}"
        )
        return
    file = pq.ParquetFile(place)
    found = file.schema_arrow.remove_metadata()
    if not found.equals(declared.schema):
        yield Finding(row.path, "its columns are not those of its schema", _columns(declared.schema), _columns(found))
        return
    yield from _rows(row, declared, file)


def _rows(row: Row, declared: Table, file: pq.ParquetFile) -> Iterator[Finding]:
    content, before, n_rows = ContentHash(declared.schema), declared.schema.empty_table(), 0
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number).replace_schema_metadata(None)
        at = out_of_order(pa.concat_tables([before, rows]), declared.key)
        if at is not None:
            key = rows.select(declared.key).slice(max(0, at - len(before)), 1).to_pylist()
            yield Finding(
                row.path,
                "a row does not come after the one before it, or stands twice",
                ", ".join(declared.key),
                str(key),
            )
            return
        content.add(rows)
        n_rows += len(rows)
        before = rows.slice(max(0, len(rows) - 1))
    if n_rows != file.metadata.num_rows:
        yield Finding(row.path, "it has another number of rows than it says", str(file.metadata.num_rows), str(n_rows))
    digest = content.hexdigest()
    if digest != row.content_sha256:
        yield Finding(row.path, "its rows are not those of the stated content hash", row.content_sha256, digest)


def out_of_order(rows: pa.Table, key: Sequence[str]) -> int | None:
    """Number of the first row that does not come after the one before it; nulls come last.

    >>> out_of_order(pa.table({"a": [1, 1, 2], "b": ["x", None, None]}), ["a", "b"]) is None
    True
    >>> out_of_order(pa.table({"a": [1, 1, 1], "b": ["x", "y", "y"]}), ["a", "b"])
    2
    """
    n = max(0, len(rows) - 1)
    ascends, ties = np.zeros(n, bool), np.ones(n, bool)
    for name in key:
        first, second = (rows[name].slice(start, n).combine_chunks() for start in (0, 1))
        less, equal = (_numpy(pc.fill_null(is_so(first, second), False)) for is_so in (pc.less, pc.equal))
        nulls = _numpy(first.is_null()), _numpy(second.is_null())
        ascends |= ties & (less | (~nulls[0] & nulls[1]))
        ties &= equal | (nulls[0] & nulls[1])
    (wrong,) = np.nonzero(~ascends)
    return int(wrong[0]) + 1 if len(wrong) else None


def _numpy(values: pa.Array) -> np.ndarray:
    return values.to_numpy(zero_copy_only=False)


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
