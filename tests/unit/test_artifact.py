"""Artifacts: lineage, hashes on writing and on reading, the same bytes for the same rows."""

from __future__ import annotations

import io
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palimpsest.core import artifact
from palimpsest.core.artifact import Job, encode_table, read_lineage, read_record, record_path
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import hash_bytes
from palimpsest.core.tables import TABLES

ROWS = {
    "run": ["a/s0", "a/s0", "a/s1"],
    "protocol": ["class_incremental"] * 3,
    "metric": ["m", "m", "m"],
    "index": [None, 1, None],
    "task": [None, "t1", None],
    "value": [0.5, None, 0.25],
    "unit": ["fraction"] * 3,
    "direction": ["higher"] * 3,
    "missing": [None, "t2", None],
}


@pytest.fixture
def job(tmp_path) -> Job:
    return Job(tmp_path / "study", "test", code="c" * 64, environment="e" * 64, spec_hash="5" * 64)


def test_what_was_read_becomes_a_parent_of_what_is_written(job):
    """The record and the footer name the hash of every artifact that the job had read before."""
    digest = job.write_json("plan/a.json", {"x": 1}, kind="test")
    job.write_json("plan/unread.json", {"x": 2}, kind="test")
    reader = Job(job.study, "next", job.code, job.environment)
    reader.read_json("plan/a.json")
    reader.write_table("metrics/m.parquet", "metrics", ROWS)
    assert read_record(job.study, "metrics/m.parquet")["parents"] == {"plan/a.json": digest}
    assert read_lineage(job.study / "metrics/m.parquet")["parents"] == {"plan/a.json": digest}


@pytest.mark.parametrize("read", ["read_bytes", "read_json", "locate"])
def test_a_flipped_bit_is_found_on_reading(job, read):
    """An artifact that changed after it was written is refused, with both hashes."""
    digest = job.write_json("plan/a.json", {"x": 1}, kind="test")
    path = job.study / "plan/a.json"
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    with pytest.raises(ArtifactError) as error:
        getattr(job, read)("plan/a.json")
    assert digest in error.value.expected
    assert hash_bytes(bytes(content)) in error.value.got


def test_a_refused_artifact_is_no_parent(job):
    """What could not be read does not stand in the lineage."""
    job.write_json("a.json", 1, kind="test")
    (job.study / "a.json").write_bytes(b"2")
    with pytest.raises(ArtifactError):
        job.read_json("a.json")
    assert job.parents == {}


def test_an_artifact_without_a_record_is_refused(job):
    """A file that some other program laid there is not read."""
    job.study.mkdir()
    (job.study / "a.json").write_text("{}")
    with pytest.raises(ArtifactError, match="no record"):
        job.read_json("a.json")


def test_a_missing_artifact_is_named(job):
    """Reading what is not there names the path."""
    with pytest.raises(ArtifactError, match="missing") as error:
        job.read_json("a.json")
    assert error.value.where == str(job.study / "a.json")


def test_a_fork_reads_for_itself(job):
    """What a fork reads becomes no parent of what the original writes; its parameters are added."""
    job.write_json("a.json", 1, kind="test")
    fork = job.fork(stage=2)
    fork.read_json("a.json")
    assert job.parents == {}
    assert fork.parents.keys() == {"a.json"}
    assert fork.lineage()["parameters"] == {"stage": 2}


def test_order_and_chunks_of_the_rows_do_not_matter():
    """The same rows, shuffled, cut into chunks or sliced from more, give the same bytes and content hash."""
    schema = TABLES["metrics"].schema
    table = pa.table({field.name: pa.array(ROWS[field.name], field.type) for field in schema}, schema=schema)
    chunked = pa.concat_tables([table.slice(2, 1), table.slice(0, 1), table.slice(1, 1)])
    filtered = pa.concat_tables([table, table]).slice(3, 3).take([1, 2, 0])
    forms = [ROWS, table, chunked, filtered, table.select(schema.names[::-1])]
    assert len({encode_table("metrics", form, {"parents": {}}) for form in forms}) == 1


def test_content_hash_ignores_lineage():
    """Other parents change the file's bytes and not the hash of its content."""
    (first, content), (second, same) = (encode_table("metrics", ROWS, {"parents": {"a": d}}) for d in "12")
    assert first != second
    assert content == same


def test_a_changed_value_changes_the_content_hash():
    """One other value gives another content hash."""
    changed = ROWS | {"value": [0.5, None, 0.26]}
    assert encode_table("metrics", ROWS, {})[1] != encode_table("metrics", changed, {})[1]


def test_null_is_not_zero():
    """A null and a 0 give different contents."""
    changed = ROWS | {"value": [0.5, 0.0, 0.25]}
    assert encode_table("metrics", ROWS, {})[1] != encode_table("metrics", changed, {})[1]


def test_a_long_table_can_be_hashed_in_pieces(monkeypatch):
    """The hash of a table of several row groups is that of its row groups, one after the other."""
    monkeypatch.setattr(artifact, "ROW_GROUP", 8)
    n = 8 * 3 + 5
    values = pa.array(np.linspace(0, 1, n), mask=np.arange(n) % 7 == 0)
    rows = {key: [ROWS[key][1]] * n for key in ROWS} | {"index": np.arange(n), "value": values}
    content, digest = encode_table("metrics", rows, {})
    file = pq.ParquetFile(pa.BufferReader(content))
    assert file.num_row_groups == 4
    pieces = artifact.ContentHash(TABLES["metrics"].schema)
    for group in range(4):
        pieces.add(file.read_row_group(group).replace_schema_metadata(None))
    assert pieces.hexdigest() == digest


def test_columns_are_stored_by_their_type():
    """Floats by byte-stream-split, long whole numbers as differences, texts by dictionary; the lineage stands once."""
    n = 3000
    values = np.sin(np.arange(n))
    rows = {key: [ROWS[key][1]] * n for key in ROWS} | {"index": np.arange(n), "value": values}
    content, _ = encode_table("metrics", rows, {"parents": {"a": "b"}})
    file = pq.ParquetFile(pa.BufferReader(content))
    encodings = {file.metadata.row_group(0).column(i).path_in_schema: i for i in range(file.metadata.num_columns)}
    encodings = {name: file.metadata.row_group(0).column(i).encodings for name, i in encodings.items()}
    assert "BYTE_STREAM_SPLIT" in encodings["value"]
    assert "RLE_DICTIONARY" in encodings["task"]
    assert "RLE_DICTIONARY" in encodings["index"]
    assert file.metadata.metadata.keys() == {b"lineage"}
    steps, _ = encode_table("outcome", {"status": ["x"], "stage": [1], "step": [2], "reason": [None]}, {})
    assert "DELTA_BINARY_PACKED" in pq.ParquetFile(pa.BufferReader(steps)).metadata.row_group(0).column(2).encodings


def test_rows_come_back_as_they_were(job):
    """What is read is what was written, sorted by the key."""
    job.write_table("m.parquet", "metrics", ROWS)
    rows = job.read_table("m.parquet", "metrics").to_pylist()
    expected = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    assert sorted(rows, key=str) == sorted(expected, key=str)


def test_a_missing_column_is_refused(job):
    """A table with a column too few or too many is never written."""
    for rows in ({k: v for k, v in ROWS.items() if k != "value"}, {**ROWS, "more": [1, 2, 3]}):
        with pytest.raises(AssertionError, match=r"value|more"):
            job.write_table("m.parquet", "metrics", rows)
    assert not (job.study / "m.parquet").exists()


def test_another_schema_is_found_on_reading(job):
    """A table that was written under another schema is refused, with both lists of columns."""
    buffer = io.BytesIO()
    pq.write_table(pa.table({"run": ["a"], "value": np.array([1.0])}), buffer)
    job.write_bytes("m.parquet", buffer.getvalue(), kind="metrics")
    with pytest.raises(ArtifactError, match="columns") as error:
        job.read_table("m.parquet", "metrics")
    assert "direction string" in error.value.expected
    assert error.value.got == "run string, value double"


def test_nothing_half_written_is_left(job, monkeypatch):
    """A write that breaks off leaves the old content and no temporary file."""
    job.write_bytes("a.json", b"old", kind="test")

    def break_off(source, target):
        raise OSError("the disk is gone")

    monkeypatch.setattr(os, "replace", break_off)
    with pytest.raises(OSError, match="the disk is gone"):
        job.write_bytes("a.json", b"new", kind="test")
    assert (job.study / "a.json").read_bytes() == b"old"
    assert [path.name for path in job.study.iterdir() if path.is_file()] == ["a.json"]


def test_a_file_gets_its_name_only_when_it_is_whole(job, monkeypatch):
    """The rename comes after all bytes were flushed to disk."""
    flushed = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "fsync", lambda d: (flushed.append(os.fstat(d).st_size), fsync(d)))
    monkeypatch.setattr(os, "replace", lambda s, t: (flushed.append(str(t)), replace(s, t)))
    artifact.write_atomically(job.study / "a", b"12345")
    assert flushed == [5, str(job.study / "a")]


def test_telemetry_has_no_record(job):
    """A table that may differ between two runs is written without a record, and cannot be read as an artifact."""
    rows = {name: [None] for name in TABLES["telemetry"].schema.names} | {"run": ["a"], "stage": [1], "attempt": [1]}
    job.write_telemetry("telemetry/a.parquet", "telemetry", rows)
    assert not record_path(job.study, "telemetry/a.parquet").exists()
    with pytest.raises(ArtifactError, match="no record"):
        job.read_table("telemetry/a.parquet", "telemetry")


@pytest.mark.parametrize("name", TABLES)
def test_the_key_of_a_table_is_among_its_columns(name):
    """Every table is sorted by columns that it has, and is known by its own name."""
    table = TABLES[name]
    assert set(table.key) <= set(table.schema.names)
    assert table.name == name


def test_what_a_killed_writer_left_is_overwritten(tmp_path):
    """Half a temporary file from a kill is gone after the next write of the same path."""
    place = tmp_path / "x.json"
    place.with_name(".x.json.partial").write_bytes(b"hal")
    artifact.write_atomically(place, b"whole")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x.json": b"whole"}
