"""A study as its ledger states it: every artifact with its hashes and parents, and the plan that they belong to."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from palimpsest.audit.contents import LEFT_OUT, MAY_BE_LEFT_OUT
from palimpsest.audit.finding import UNREADABLE, Finding, guarded
from palimpsest.audit.layout import RECORDS, place, rule_of, run_of
from palimpsest.audit.ledger import ROOT, shard_path
from palimpsest.core.artifact import read_record
from palimpsest.core.errors import ArtifactError
from palimpsest.core.hashing import hash_json
from palimpsest.core.tables import TABLES
from palimpsest.plan.grid import Grid, Run, complete_spec, shared_spec

Plan = dict[str, Any]
_PLAN = "plan/lock.json"
# What comes after the root, or was looked at more closely whenever somebody wished to.
NOT_LISTED = ("ledger", "audit", "report", "rewind")


class Row(NamedTuple):
    """What is stated of an artifact: a row of the ledger, or the record of one that no shard lists."""

    path: str
    sha256: str
    content_sha256: str
    kind: str
    bytes: int
    rule: str
    parents_text: str
    code: str
    environment: str

    @property
    def parents(self) -> dict[str, str]:
        """SHA-256 of each parent by its path."""
        return dict(json.loads(self.parents_text))


@dataclass
class Chain:
    """What a verification works on.

    Args:
        study: the folder `results/STUDY`, or what was unpacked of an archive.
        files: every file in it, links left out.
        rows: what is stated of every artifact, by path.
        listed: paths that a shard of the ledger lists, with the shard.
        plan: the content of the lock, as far as it can be read.
        published_root: the root that was published elsewhere, if one is known.
        damaged: artifacts that are missing, unreadable or not the stated ones: nothing is made again from them.
    """

    study: Path
    files: frozenset[str]
    rows: dict[str, Row]
    listed: dict[str, str]
    plan: Plan | None
    published_root: str | None = None
    damaged: set[str] = field(default_factory=set)

    def artifacts(self, *rules: str) -> list[str]:
        """Paths of the stated artifacts that some rules (all, if none is named) write, in the order of the chain."""
        return sorted((path for path in self.rows if not rules or rule_of(path) in rules), key=place)

    def is_sound(self, path: str) -> bool:
        """Whether an artifact is there as it is stated."""
        return path in self.rows and path in self.files and path not in self.damaged

    def damaged_parents(self, path: str) -> list[str]:
        """Those parents of an artifact that are not there as stated, in the order of the chain."""
        return sorted((parent for parent in self.rows[path].parents if not self.is_sound(parent)), key=place)

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Parts that are absent by declaration, since the study was restored from a partial archive."""
        try:
            declared = self.read_json(LEFT_OUT)["parts"] if LEFT_OUT in self.files else []
            return frozenset(MAY_BE_LEFT_OUT).intersection(declared)
        except UNREADABLE:
            return frozenset()

    @cached_property
    def runs(self) -> dict[str, Run]:
        """The runs of the plan, each with the specification and the hash that this program makes of it."""
        if self.plan is None:
            return {}
        units = {unit["unit"]: unit for unit in self.plan["units"]}
        shared = {key: shared_spec(self.plan, key) for key in self.plan["methods"]}
        found = {}
        for run in self.plan["runs"]:
            spec = complete_spec(shared[run["method"]], units[run["unit"]])
            found[run["run"]] = Run(run["run"], run["method"], run["unit"], spec, hash_json(spec))
        return found

    @cached_property
    def installed(self) -> dict[str, dict[str, Any]]:
        """The installed program by the path at which the study records its own; empty where there is no plan."""
        if self.plan is None:
            return {}
        return {f"plan/code/{name}.json": json.loads(text) for name, text in self.grid.programs().items()}

    def is_installed(self, program: str) -> bool:
        """Whether the installed program is the recorded one: the same files, packages and Python."""
        here = self.installed.get(program)
        recorded = self.read_json(program) if here is not None and self.is_sound(program) else None
        return recorded is not None and all(recorded.get(key) == here[key] for key in ("code", "environment"))

    @property
    def grid(self) -> Grid:
        """The grid of the plan."""
        assert self.plan is not None, "what needs the plan asks for it first"
        return Grid(self.plan)

    def of_runs(self, *rules: str) -> Iterator[tuple[str, Run]]:
        """Sound artifacts that rules made of planned runs, in the order of the chain, with the run."""
        for path in self.artifacts(*rules):
            run = self.runs.get(run_of(path) or "")
            if run is not None and self.is_sound(path):
                yield path, run

    def read_json(self, path: str) -> Any:
        """Content of a JSON file of the study, whose hash was compared before."""
        return json.loads((self.study / path).read_bytes())


def open_chain(study: Path, published_root: str | None = None) -> tuple[Chain, list[Finding]]:
    """A study's ledger and plan, and what is wrong with them already.

    Raises:
        ArtifactError: there is no ledger, so that there is nothing to verify.
    """
    if not (study / ROOT).is_file():
        raise ArtifactError(
            "there is nothing to verify",
            where=str(study),
            expected=f"the results of a study, with {ROOT}",
            got="no such file" if study.is_dir() else "no such folder",
            next="name the folder results/STUDY; a study that is not finished yet has no root",
        )
    files, findings = _files(study)
    chain = Chain(study, frozenset(files), {}, {}, None, published_root)
    findings += _read_plan(chain)
    for path in sorted(path for path in files if path.startswith("audit/ledger/")):
        findings += guarded(path, "the shard of the ledger cannot be read", lambda path=path: _read_shard(chain, path))
    findings += _require_shards(chain)
    for path in files:
        if rule_of(path) in NOT_LISTED:
            findings += guarded(path, "it has no record that can be read", lambda path=path: _read_record(chain, path))
    return chain, findings


def _files(study: Path) -> tuple[list[str], list[Finding]]:
    """Every file of a study by its path; a link leads outside, or to where something lies already."""
    files, findings = [], []
    for folder, folders, names in os.walk(study):
        for name in [*names, *folders]:
            path = Path(folder) / name
            relative = str(path.relative_to(study))
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                findings.append(Finding(relative, "it is a link or no plain file: nothing is read through it"))
            elif name in names:
                files.append(relative)
    return files, findings


def _read_plan(chain: Chain) -> list[Finding]:
    def read() -> list[Finding]:
        chain.plan = chain.read_json(_PLAN)
        _ = chain.runs
        return []

    found = guarded(_PLAN, "the locked plan cannot be read, so that no run can be compared with it", read)
    chain.plan = None if found else chain.plan
    return found


def _read_shard(chain: Chain, path: str) -> Iterator[Finding]:
    """Take in the rows of a shard; a path that two shards list is stated twice."""
    table = pq.ParquetFile(chain.study / path).read(columns=TABLES["ledger"].schema.names)
    for batch in table.to_batches(max_chunksize=4096):
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            row = Row(*values)
            if row.path in chain.rows:
                yield Finding(row.path, f"two shards list it: {chain.listed[row.path]} and {path}")
            if rule_of(row.path) is None or row.path.startswith(RECORDS) or not _is_plain(row.path):
                yield Finding(path, "it lists what is no artifact of a study", got=repr(row.path))
                continue
            chain.rows[row.path] = row
            chain.listed[row.path] = path


def _is_plain(path: str) -> bool:
    return not path.startswith("/") and not {"", ".", ".."} & set(path.split("/"))


def _require_shards(chain: Chain) -> Iterator[Finding]:
    for name in ["_study", *(chain.plan or {}).get("methods", [])]:
        if shard_path(name) not in chain.files:
            yield Finding(shard_path(name), "the shard of the ledger is missing")


def _read_record(chain: Chain, path: str) -> list[Finding]:
    record = read_record(chain.study, path)
    row = {**record, "parents_text": json.dumps(record["parents"])}
    chain.rows[path] = Row(*(row[name] for name in Row._fields))
    return []
