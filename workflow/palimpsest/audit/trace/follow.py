"""Follows rows and artifacts back to the samples, checkpoints, programs and raw files that they came from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palimpsest.audit.layout import program_of, rule_of, run_of, stage_of
from palimpsest.audit.trace.find import Asked
from palimpsest.audit.trace.graph import Graph, Node
from palimpsest.audit.trace.rows import FOLLOWED, LABELS, Wanted
from palimpsest.core.artifact import Job, read_record
from palimpsest.core.errors import ArtifactError
from palimpsest.core.tables import TABLES

SAMPLES, INPUTS, LOCK = "data/samples.parquet", "data/inputs.npy", "plan/lock.json"


def trace(asked: Asked) -> Graph:
    """Everything that a row or an artifact came from.

    The hash of every table and JSON file that is read on the way is compared with its record; checkpoints and inputs
    are named by theirs.

    Raises:
        ArtifactError: a row does not exist, or an artifact is missing or not the one that was written.
    """
    follow = Follow(asked.study)
    if asked.row is None:
        root = follow.artifact(asked.artifact)
    elif asked.rows:
        root = follow.printed(asked.artifact, asked.row, asked.rows)
    else:
        root = follow.row(asked.artifact, asked.row)
    return Graph(root, follow.nodes)


@dataclass
class Follow:
    """One trace, under way.

    Args:
        study: the study's folder.
        nodes: what was found so far, by id.
    """

    study: Path
    nodes: dict[str, Node] = field(default_factory=dict)
    _tables: dict[str, pa.Table] = field(default_factory=dict)

    @cached_property
    def job(self) -> Job:
        """Reads, and compares hashes."""
        return Job(self.study, "trace", code="", environment="")

    @cached_property
    def reader(self) -> Any:
        """Orders and matrices, each read once."""
        from palimpsest.metrics._run import Reader

        return Reader(self.job)

    def table(self, path: str) -> pa.Table:
        """Rows of a table, read once."""
        if path not in self._tables:
            self._tables[path] = self.job.read_table(path, read_record(self.study, path)["kind"])
        return self._tables[path]

    def footer(self, path: str) -> dict[str, Any]:
        """What stands in the footer of a table, beside its rows."""
        return json.loads(pq.read_schema(self.study / path).metadata[b"lineage"])

    def row(self, path: str, number: int) -> str:
        """A row of a table; returns the node's id."""
        kind = read_record(self.study, path)["kind"]
        if kind not in TABLES:
            raise _error(f"{self.study / path}", "a table, of which --row names a row", f"a file of the kind {kind}")
        rows = self.table(path)
        if not 0 <= number < len(rows):
            raise _error(str(self.study / path), f"a row from 0 to {len(rows) - 1}", str(number))
        content = rows.slice(number, 1).to_pylist()[0]
        label = LABELS.get(kind, _listed)(content)
        return self._add(f"{path}#{number}", kind, label, path, content, lambda: self._of_row(kind, path, content))

    def rows(self, path: str, where: Mapping[str, Any]) -> list[str]:
        """Rows of a table whose columns have the given values: each a node, or together where they stand together."""
        table, kind = self.table(path), read_record(self.study, path)["kind"]
        chosen = np.ones(len(table), bool)
        for name, value in where.items():
            same = table[name].is_null() if value is None else pc.equal(table[name], pa.scalar(value, table[name].type))
            chosen &= pc.fill_null(same, False).to_numpy(zero_copy_only=False)
        (numbers,) = np.nonzero(chosen)
        if kind in GROUPED and len(numbers) > 1:
            return [self._group(kind, path, where, numbers)]
        return [self.row(path, int(number)) for number in numbers]

    def _of_row(self, kind: str, path: str, row: dict[str, Any]) -> Iterable[str]:
        if kind == "predictions":
            return [*self.rows(SAMPLES, {"sample": row["sample"]}), *self._evaluated(path, row["stage"])]
        if kind in ("steps", "probes", "prequential", "outcome"):
            return [self.artifact(f"runs/{run_of(path)}/stage-{row['stage']}.json")]
        if kind == "ledger":
            return [self.artifact(row["path"])]
        if kind not in FOLLOWED:
            return self._by_record(path)
        return self._wanted(path, FOLLOWED[kind](self, path, row))

    def _wanted(self, path: str, wanted: Iterable[Wanted]) -> Iterable[str]:
        found = [node for one in wanted for node in self._one(one)]
        return [*found, *self._program(path)]

    def _one(self, wanted: Wanted) -> list[str]:
        return [self.artifact(wanted.path)] if wanted.where is None else self.rows(wanted.path, wanted.where)

    def _group(self, kind: str, path: str, where: Mapping[str, Any], numbers: np.ndarray) -> str:
        """Rows that belong together: the predictions of a cell, the samples of a task, the probes of a stage."""
        first, last = int(numbers[0]), int(numbers[-1])
        rows = self.table(path).take(pa.array(numbers))
        about = GROUPED[kind](rows)
        together = last - first == len(numbers) - 1
        key = f"{path}#{first}-{last}" if together else f"{path}#" + ",".join(f"{k}={v}" for k, v in where.items())
        listed = ", ".join(f"{name} {value}" for name, value in where.items())
        counted = (
            f", {about['n_correct']} right, {about['n_correct_in_task']} within the task"
            if "n_correct" in about
            else ""
        )
        label = f"{len(numbers)} rows: {listed}{counted}"
        return self._add(key, kind, label, path, about, lambda: self._of_group(kind, path, where, rows))

    def _of_group(self, kind: str, path: str, where: Mapping[str, Any], rows: pa.Table) -> Iterable[str]:
        if kind == "predictions":
            return [
                *self.rows(SAMPLES, {"task": where["task"], "split": "test"}),
                *self._evaluated(path, where["stage"]),
            ]
        if kind == "samples":
            return [self.artifact(SAMPLES)]
        stages = sorted(set(rows["stage"].to_pylist()))
        return [*(self.artifact(f"runs/{run_of(path)}/stage-{stage}.json") for stage in stages), *self._program(path)]

    def _evaluated(self, path: str, stage: int) -> list[str]:
        return [self.artifact(f"runs/{run_of(path)}/stage-{stage}.safetensors"), *self._program(path)]

    def printed(self, path: str, number: int, rows: Iterable[tuple[str, int]]) -> str:
        """A row of one of the report's tables, and the rows that it was printed from."""
        return self._add(f"{path}#{number}", "printed", f"row {number} of {path}", path, {}, lambda: [
            *(self.row(*row) for row in rows), *self._program(path)
        ])  # fmt: skip

    def artifact(self, path: str) -> str:
        """A whole artifact, followed by what its kind knows, else by its recorded parents; returns the node's id."""
        if path in self.nodes:
            return path
        record = read_record(self.study, path)
        kind = record["kind"]
        if kind == "program":
            program = self.job.read_json(path)
            about = {name: program[name] for name in ("code", "environment", "files")}
            return self._add(path, "program", f"{len(about['files'])} files, code {_short(about['code'])}", path, about)
        if kind == "lock":
            return self._add(
                path, kind, f"the locked plan {_short(self.lock['hash'])}", path, {"hash": self.lock["hash"]}
            )
        if kind == "checkpoint":
            stage = f"runs/{run_of(path)}/stage-{stage_of(path)}.json"
            label = f"{record['bytes']:,} bytes, after stage {stage_of(path)} of {run_of(path)}"
            return self._add(path, kind, label, path, {"bytes": record["bytes"]}, lambda: [self.artifact(stage)])
        if kind == "stage":
            return self._stage(path)
        if path == SAMPLES:
            return self._data(path)
        return self._add(path, kind, f"{record['bytes']:,} bytes", path, {}, lambda: self._by_record(path))

    def _stage(self, path: str) -> str:
        record = self.job.read_json(path)
        about = {key: record[key] for key in ("stage", "status", "step", "reason", "counted", "machine", "files")}
        task = next((s["task"] for s in self._stages(run_of(path)) if s["stage"] == record["stage"]), None)
        label = f"{run_of(path)}, stage {record['stage']}: {_trained(task)}, {record['status']}"

        def parents() -> Iterable[str]:
            checkpoints = [parent for parent in record["lineage"]["parents"] if parent.endswith(".safetensors")]
            data = [SAMPLES, INPUTS] if SAMPLES in record["lineage"]["parents"] else []
            runs = self.rows("plan/runs.parquet", {"run": run_of(path)})
            return [*map(self.artifact, [*checkpoints, *data]), *runs, *self._program(path)]

        return self._add(path, "stage", label, path, about | {"task": task}, parents)

    def _data(self, path: str) -> str:
        footer = self.footer(path)
        sources = footer.get("sources", {})
        about = {key: value for key, value in footer.items() if key not in ("parents", "rule", "schema", "parameters")}
        label = "; ".join(_source(name, source) for name, source in sources.items())
        return self._add(path, "data", label or "samples", path, about, lambda: self._program(path))

    @cached_property
    def lock(self) -> dict[str, Any]:
        """The locked plan."""
        return self.job.read_json(LOCK)

    def _stages(self, run: str | None) -> list[dict[str, Any]]:
        from palimpsest.plan.grid import complete_spec, shared_spec

        method, unit = str(run).split("/")
        shared = shared_spec(self.lock, method)
        (found,) = (one for one in self.lock["units"] if one["unit"] == unit)
        return complete_spec(shared, found)["stages"]

    def _by_record(self, path: str) -> list[str]:
        return [self.artifact(parent) for parent in read_record(self.study, path)["parents"] if parent != path]

    def _program(self, path: str) -> list[str]:
        program = program_of(path)
        return [self.artifact(program)] if program is not None and (self.study / program).is_file() else []

    def _add(self, key: str, kind: str, label: str, path: str, about: dict[str, Any], parents: Any = lambda: ()) -> str:
        """Note a node, once, and then what it came from."""
        if key not in self.nodes:
            record = read_record(self.study, path)
            rule = rule_of(path) or record["rule"]
            self.nodes[key] = Node(key, kind, label, path, record["sha256"], rule, record["code"], about)
            self.nodes[key].parents = list(dict.fromkeys(parents()))
        return key


def _predictions(rows: pa.Table) -> dict[str, Any]:
    right = pc.fill_null(pc.equal(rows["predicted"], rows["label"]), False)
    in_task = pc.fill_null(pc.equal(rows["predicted_in_task"], rows["label"]), False)
    counts = {"n_total": len(rows), "n_correct": pc.sum(right).as_py(), "n_correct_in_task": pc.sum(in_task).as_py()}
    columns = {name: rows[name].to_pylist() for name in ("sample", "label", "predicted", "predicted_in_task")}
    return {**counts, **columns}


def _samples(rows: pa.Table) -> dict[str, Any]:
    return {name: rows[name].to_pylist() for name in ("sample", "label", "sha256")}


def _counted(rows: pa.Table) -> dict[str, Any]:
    return {"rows": rows.to_pylist()}


GROUPED = {"predictions": _predictions, "samples": _samples, "probes": _counted, "prequential": _counted}
"""Tables of which many rows make up one number, and what is said of them together."""


def _listed(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in row.items() if value is not None)


def _trained(task: str | None) -> str:
    return "nothing trained" if task is None else f"trained on {task}"


def _source(name: str, source: Mapping[str, Any]) -> str:
    files = ", ".join(f"{file} sha256 {_short(digest)}" for file, digest in source["raw_files"].items())
    return f"{name}: {source['source']}, {source['licence']} ({files})"


def _short(digest: str) -> str:
    return digest[:12]


def _error(where: str, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        "there is no such row to trace",
        where=where,
        expected=expected,
        got=got,
        next="rows are counted from 0, as pandas.read_parquet shows them",
    )
