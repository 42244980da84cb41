"""The only writer of results, and their reader: all that a job reads becomes a parent of all that it writes.

Every artifact has a record under `audit/records/`, at the artifact's own path plus `.json`: the hashes of the file
and of its content, its size, and where it came from. The record is written with the artifact and compared when the
next job reads it, so a file that changed in between is found there. Telemetry has no record: it may differ between
two runs of the same plan.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import canonical_json, hash_bytes, hash_file
from palimpsest.core.tables import TABLES

RECORDS = Path("audit/records")
# Of a long table: what a reader decodes together, and what one reads at a time. A change of the first changes bytes.
ROW_GROUP = 2**20
ROWS_AT_ONCE = 2**18


Record = dict[str, Any]
Sink = Callable[[Path, str, bytes, Record], None]
"""Takes an artifact and its record: the study's folder, the path in it, the bytes, the record."""


def to_disk(study: Path, path: str, content: bytes, record: Record) -> None:
    """Write an artifact and its record, each by an atomic rename."""
    write_atomically(study / path, content)
    write_atomically(record_path(study, path), canonical_json(record))


@dataclass
class Job:
    """One job of the workflow, as the origin of what it writes.

    Args:
        study: the folder `results/STUDY`; every path below is relative to it.
        rule: the stage that works ("train"), never the name of a scheduler's job.
        code: hash of the program (see `core.code`).
        environment: hash of the locked environment.
        spec_hash: hash of the run's specification, where the job belongs to one run.
        parameters: plain content that the job was given besides.
        sink: where artifacts go: to disk, or to one who only compares them with what is there.
    """

    study: Path
    rule: str
    code: str
    environment: str
    spec_hash: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    sink: Sink = to_disk

    def fork(self, spec_hash: str | None = None, **parameters: Any) -> Job:
        """A job with the same origin and the parents so far, whose further reading is its own."""
        return replace(
            self,
            spec_hash=spec_hash or self.spec_hash,
            parameters={**self.parameters, **parameters},
            parents=dict(self.parents),
        )

    def lineage(self, **more: Any) -> dict[str, Any]:
        """What is known of the origin of the next artifact, as plain content."""
        return {
            "rule": self.rule,
            "code": self.code,
            "environment": self.environment,
            "spec": self.spec_hash,
            "parameters": dict(self.parameters),
            "parents": dict(sorted(self.parents.items())),
            **more,
        }

    def read_bytes(self, path: str | Path) -> bytes:
        """Content of an artifact, after its hash was compared with its record.

        Raises:
            ArtifactError: the artifact or its record is missing, or they differ.
        """
        content = _existing(self.study, path).read_bytes()
        self._adopt(path, hash_bytes(content))
        return content

    def read_json(self, path: str | Path) -> Any:
        """Content of a JSON artifact; raises as `read_bytes`."""
        return json.loads(self.read_bytes(path))

    def read_table(self, path: str | Path, name: str) -> pa.Table:
        """Rows of a Parquet artifact; raises as `read_bytes`, and where its schema is not `name`'s."""
        return _decode(self.read_bytes(path), name, path)

    def read_batches(
        self, path: str | Path, name: str, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Rows of a Parquet artifact, some at a time, for one that memory need not hold; raises as `read_table`.

        The hash of the whole file is compared before the first rows are given. Texts come encoded by a dictionary.

        Args:
            path: where, relative to the study.
            name: the schema in `core.tables`.
            columns: which columns; all if left out.
        """
        place = self.locate(path)
        _require_schema(pq.read_schema(place), name, path)
        texts = [field.name for field in TABLES[name].schema if pa.types.is_string(field.type)]
        with pq.ParquetFile(place, read_dictionary=texts, memory_map=False, pre_buffer=False) as file:
            yield from file.iter_batches(ROWS_AT_ONCE, columns=columns)

    def read_footer(self, path: str | Path) -> dict[str, Any]:
        """Lineage of a Parquet artifact, with what was written beside it; raises as `read_bytes`."""
        return _footer(self.read_bytes(path))

    def read_listed_bytes(self, path: str | Path, listed: Mapping[str, str]) -> bytes:
        """Content of an artifact that a ledger shard lists; the shard is the parent, and not each of its artifacts.

        Args:
            path: relative to the study.
            listed: SHA-256 by path, out of a shard that this job has read.

        Raises:
            ArtifactError: the shard does not list the artifact, the artifact is missing, or its hash differs.
        """
        if str(path) not in listed:
            raise ArtifactError(
                "an artifact is not in the ledger",
                where=str(self.study / path),
                expected="a row in its method's shard, audit/ledger/METHOD.parquet",
                got="no such row",
                next="remove the shard to have it made again; if the row stays away, the run is not part of the plan",
            )
        content = _existing(self.study, path).read_bytes()
        _require_hash(self.study / path, hash_bytes(content), listed[str(path)], "the ledger", _remedy(path))
        return content

    def read_listed(self, path: str | Path, name: str, listed: Mapping[str, str]) -> pa.Table:
        """Rows of a listed table; raises as `read_listed_bytes`, and where its schema is not `name`'s."""
        return _decode(self.read_listed_bytes(path, listed), name, path)

    def read_listed_json(self, path: str | Path, listed: Mapping[str, str]) -> Any:
        """Content of a listed JSON artifact; raises as `read_listed_bytes`."""
        return json.loads(self.read_listed_bytes(path, listed))

    def read_listed_footer(self, path: str | Path, listed: Mapping[str, str]) -> dict[str, Any]:
        """Lineage of a listed table, with what was written beside it; raises as `read_listed_bytes`."""
        return _footer(self.read_listed_bytes(path, listed))

    def locate(self, path: str | Path) -> Path:
        """Place of an artifact that is mapped rather than read (arrays, checkpoints), after its hash was compared."""
        place = _existing(self.study, path)
        self._adopt(path, hash_file(place))
        return place

    def write_bytes(self, path: str | Path, content: bytes, kind: str, content_sha256: str | None = None) -> str:
        """Give an artifact and its record to the sink; returns the SHA-256 of the file."""
        digest = hash_bytes(content)
        record = {
            "path": str(path),
            "sha256": digest,
            "content_sha256": content_sha256 or digest,
            "kind": kind,
            "bytes": len(content),
            **{key: self.lineage()[key] for key in ("rule", "code", "environment", "parents")},
        }
        self.sink(self.study, str(path), content, record)
        return digest

    def write_json(self, path: str | Path, content: Any, kind: str) -> str:
        """Write plain content as canonical JSON; returns the SHA-256 of the file."""
        return self.write_bytes(path, canonical_json(content), kind)

    def write_table(
        self, path: str | Path, name: str, rows: pa.Table | Mapping[str, Iterable[Any]], **about: Any
    ) -> str:
        """Write rows in the order of the schema's key, with lineage in the footer; returns the SHA-256 of the file.

        Args:
            path: where, relative to the study.
            name: the schema in `core.tables`.
            rows: a table or columns; every column of the schema and no other.
            about: plain content that belongs into the footer beside the lineage.
        """
        content, content_sha256 = encode_table(name, rows, self.lineage(**about))
        return self.write_bytes(path, content, name, content_sha256)

    def write_telemetry(self, path: str | Path, name: str, rows: pa.Table | Mapping[str, Iterable[Any]]) -> None:
        """Write a table that may differ between two runs of one plan: it gets no record and is nobody's parent."""
        self.write_apart(path, encode_table(name, rows, {"rule": self.rule})[0])

    def write_apart(self, path: str | Path, content: bytes) -> None:
        """Write what is made of telemetry: the same holds."""
        write_atomically(self.study / path, content)

    def _adopt(self, path: str | Path, digest: str) -> None:
        recorded = read_record(self.study, path)["sha256"]
        _require_hash(self.study / path, digest, recorded, str(record_path(self.study, path)), _remedy(path))
        self.parents[str(path)] = digest


def encode_table(
    name: str, rows: pa.Table | Mapping[str, Iterable[Any]], lineage: Mapping[str, Any]
) -> tuple[bytes, str]:
    """Parquet bytes of a table and the SHA-256 of its content."""
    declared = TABLES[name]
    table = _in_key_order(name, rows)
    content_sha256 = _hash_stream(table)
    footer = {"schema": declared.name, "schema_version": declared.version, **lineage}
    file = io.BytesIO()
    with open_writer(file, declared.schema) as writer:
        writer.write_table(table, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata({"lineage": canonical_json(footer).decode()})
    return file.getvalue(), content_sha256


def open_writer(file: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of Parquet with zstd, each column encoded by its type (measured in docs/storage.md).

    The bytes of floats are stored apart by their place (sign and exponent compress, the rest hardly does), whole
    numbers of 64 bits as differences of neighbours, texts and numbers of 32 bits by dictionary. The Arrow schema is
    not stored beside Parquet's own: it would repeat the lineage, and the types of all tables come back without it.
    """
    encodings = {field.name: _ENCODINGS[field.type] for field in schema if field.type in _ENCODINGS}
    by_dictionary = [field.name for field in schema if field.name not in encodings and field.type != pa.bool_()]
    return pq.ParquetWriter(
        file,
        schema,
        compression="zstd",
        version="2.6",
        use_dictionary=by_dictionary or False,
        column_encoding=encodings or None,
        store_schema=False,
    )


_ENCODINGS = {
    pa.float32(): "BYTE_STREAM_SPLIT",
    pa.float64(): "BYTE_STREAM_SPLIT",
    pa.int64(): "DELTA_BINARY_PACKED",
}


def hash_content(name: str, rows: pa.Table | Mapping[str, Iterable[Any]]) -> str:
    """SHA-256 of a table's content: of the Arrow IPC stream of the rows in key order, without metadata.

    Other versions of pyarrow write that stream alike while their Parquet files differ.
    """
    return _hash_stream(_in_key_order(name, rows))


def _hash_stream(table: pa.Table) -> str:
    content = ContentHash(table.schema)
    content.add(table)
    return content.hexdigest()


class ContentHash:
    """The hash of a table's content, of rows that come in key order and in pieces of whole row groups.

    Args:
        schema: the table's, without metadata.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._stream = _Hash()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._stream, "w"), schema)

    def add(self, rows: pa.Table) -> None:
        """Take in the next rows: `ROW_GROUP` of them, or several times as many, or the last ones."""
        for start in range(0, len(rows), ROW_GROUP):
            piece = rows.slice(start, ROW_GROUP)
            # Taken anew: what lies in the place of a null, or behind a slice, is not content.
            self._writer.write_table(piece.take(np.arange(len(piece))).combine_chunks())

    def hexdigest(self) -> str:
        """The hash (hex) of all rows; nothing can be added after it."""
        self._writer.close()
        return self._stream.sha256.hexdigest()


class _Hash(io.RawIOBase):
    """A file that keeps nothing of what is written to it but its hash."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self.sha256.update(content)
        return memoryview(content).nbytes


def _footer(content: bytes) -> dict[str, Any]:
    return json.loads(pq.read_schema(pa.BufferReader(content)).metadata[b"lineage"])


def read_lineage(path: Path) -> dict[str, Any]:
    """Lineage in the footer of a Parquet file."""
    return json.loads(pq.read_schema(path).metadata[b"lineage"])


def read_plain_table(path: Path, name: str) -> pa.Table:
    """Rows of a telemetry table, or of an artifact where only a look is wanted: no hash is compared."""
    return _decode(path.read_bytes(), name, path)


def record_path(study: Path, path: str | Path) -> Path:
    """Place of an artifact's record."""
    return study / RECORDS / f"{path}.json"


def read_record(study: Path, path: str | Path) -> dict[str, Any]:
    """The record of an artifact.

    Raises:
        ArtifactError: there is none.
    """
    place = record_path(study, path)
    if not place.is_file():
        raise ArtifactError(
            "an artifact has no record of how it was written",
            where=str(study / path),
            expected=f"its hash in {place}",
            got="no such file",
            next=_remedy(path),
        )
    try:
        record = json.loads(place.read_bytes())
        return {**record, "sha256": record["sha256"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(
            "the record of an artifact is damaged",
            where=str(place),
            expected="JSON with the hashes of the artifact",
            got=f"{type(error).__name__}: {error}",
            next=_remedy(path),
        ) from None


def check_artifact(study: Path, path: str | Path) -> dict[str, Any]:
    """The record of an artifact, after the file was hashed and compared with it; nobody's parent by that.

    Raises:
        ArtifactError: the artifact or its record is missing, or they differ.
    """
    place = _existing(study, path)
    record = read_record(study, path)
    _require_hash(place, hash_file(place), record["sha256"], str(record_path(study, path)), _remedy(path))
    return record


def recorded_paths(study: Path, folder: str | Path) -> list[str]:
    """Paths of all artifacts below a folder that have a record, sorted; whether the files are there is not asked."""
    records = study / RECORDS
    return sorted(str(place.relative_to(records))[: -len(".json")] for place in (records / folder).rglob("*.json"))


def remove_artifact(study: Path, path: str | Path) -> None:
    """Remove an artifact and its record, if they are there."""
    (study / path).unlink(missing_ok=True)
    record_path(study, path).unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write bytes under a temporary name, flush them to disk and rename: the path never holds half of them.

    The temporary name is the path's own with `.partial`: what a killed writer left is overwritten by the next one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _remedy(path: str | Path) -> str:
    """How an artifact is made again: Snakemake does it where a declared file is missing, so that is to be removed."""
    name = Path(path)
    if name.parts[0] == "runs" and name.name.startswith("stage-"):
        return f"remove {name.parent / name.name.split('.')[0]}.json, the stage's record, and start snakemake"
    if name.parts[0] == "report":
        return "remove report/index.html and start snakemake"
    return f"remove {name}, if it is there, and start snakemake: it is made again from its parents"


def _existing(study: Path, path: str | Path) -> Path:
    place = study / path
    if not place.is_file():
        raise ArtifactError(
            "an artifact is missing",
            where=str(place),
            expected="a file written by an earlier stage",
            got="no such file",
            next=_remedy(path),
        )
    return place


def _in_key_order(name: str, rows: pa.Table | Mapping[str, Iterable[Any]]) -> pa.Table:
    declared = TABLES[name]
    table = _to_table(rows, declared.schema, name)
    return table.sort_by([(column, "ascending") for column in declared.key]).combine_chunks()


def _require_hash(place: Path, digest: str, recorded: str, source: str, remedy: str) -> None:
    if digest != recorded:
        raise ArtifactError(
            "an artifact is not the one that was written",
            where=str(place),
            expected=f"sha256 {recorded}, as {source} says",
            got=f"sha256 {digest}",
            next=f"find out who changed it; then {remedy}",
        )


def _to_table(rows: pa.Table | Mapping[str, Iterable[Any]], schema: pa.Schema, name: str) -> pa.Table:
    columns = set(rows.column_names if isinstance(rows, pa.Table) else rows)
    assert columns == set(schema.names), f"table {name}: columns {sorted(columns ^ set(schema.names))} do not match"
    if isinstance(rows, pa.Table):
        return rows.select(schema.names).cast(schema)
    return pa.table({field.name: pa.array(rows[field.name], field.type) for field in schema}, schema=schema)


def _decode(content: bytes, name: str, path: str | Path) -> pa.Table:
    # Not `read_table`: it loads the data set machinery, and pandas with it, which takes longer than a small file.
    table = pq.ParquetFile(pa.BufferReader(content)).read()
    _require_schema(table.schema, name, path)
    return table.replace_schema_metadata(None)


def _require_schema(schema: pa.Schema, name: str, path: str | Path) -> None:
    expected = TABLES[name].schema
    if not schema.remove_metadata().equals(expected):
        raise ArtifactError(
            "a table does not have the columns that its name promises",
            where=str(path),
            expected=", ".join(f"{field.name} {field.type}" for field in expected),
            got=", ".join(f"{field.name} {field.type}" for field in schema),
            next=_remedy(path),
        )
