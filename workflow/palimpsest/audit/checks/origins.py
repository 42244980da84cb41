"""Every artifact was made by the rule, the program and the run of its place, from parents that are there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from palimpsest.audit.chain import Chain, Row
from palimpsest.audit.finding import Finding, guarded
from palimpsest.audit.layout import place, program_of, rule_of, run_of, stage_of
from palimpsest.core.artifact import read_lineage
from palimpsest.core.progress import Track
from palimpsest.core.tables import TABLES

# Rules whose jobs belong to one run and know its specification, and those that are told the run alone.
OF_A_SPECIFICATION = ("train", "rewind", "collect", "evaluate")
OF_A_RUN = (*OF_A_SPECIFICATION, "metrics")
_LARGEST_HEADER = 100 * 2**20


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Compare parents, programs and lineages."""
    for path in track(chain.artifacts(), "following origins"):
        row = chain.rows[path]
        yield from guarded(path, "its parents cannot be read", lambda row=row: _stated(chain, row))
        if chain.is_sound(path):
            yield from guarded(path, "its lineage cannot be read", lambda row=row: _lineage(chain, row))


def _stated(chain: Chain, row: Row) -> Iterator[Finding]:
    if row.rule != rule_of(row.path):
        yield Finding(row.path, "another rule made it than makes what lies there", str(rule_of(row.path)), row.rule)
    parents = row.parents
    for parent, digest in parents.items():
        if parent not in chain.rows:
            yield Finding(row.path, "a parent is not in the ledger", "each parent listed", parent)
        elif chain.rows[parent].sha256 != digest:
            stated = chain.rows[parent].sha256
            yield Finding(row.path, f"it was made from another {parent}", f"sha256 {stated}", f"sha256 {digest}")
        elif place(parent) >= place(row.path):
            yield Finding(row.path, "a parent comes after it in the chain", "parents that come before", parent)
    yield from _program(chain, row, parents)


def _program(chain: Chain, row: Row, parents: Mapping[str, str]) -> Iterator[Finding]:
    expected = program_of(row.path)
    if expected is None:
        return
    named = [parent for parent in parents if rule_of(parent) == "plan_code"]
    if named != [expected]:
        yield Finding(row.path, "its parents name another program", expected, ", ".join(named) or "none")
    elif chain.is_sound(expected):
        program = chain.read_json(expected)
        if (row.code, row.environment) != (program["code"], program["environment"]):
            recorded = f"code {program['code']}, environment {program['environment']}"
            got = f"code {row.code}, environment {row.environment}"
            yield Finding(row.path, f"it was made by another program than {expected} records", recorded, got)


def _lineage(chain: Chain, row: Row) -> Iterator[Finding]:
    lineage = lineage_of(chain.study / row.path, row)
    if lineage is None:
        return
    stated = {"rule": row.rule, "code": row.code, "environment": row.environment, "parents": row.parents}
    for name, value in stated.items():
        if lineage[name] != value:
            yield Finding(
                row.path, f"its own lineage and the ledger differ: {name}", _short(value), _short(lineage[name])
            )
    yield from _of_its_run(chain, row, lineage)


def _of_its_run(chain: Chain, row: Row, lineage: Mapping[str, Any]) -> Iterator[Finding]:
    run, rule = run_of(row.path), rule_of(row.path)
    if run is None or rule not in OF_A_RUN:
        return
    told = lineage["parameters"]
    if told.get("run") != run:
        yield Finding(row.path, "it was made for another run", run, str(told.get("run")))
    if rule in ("train", "rewind") and told.get("stage") != stage_of(row.path):
        yield Finding(row.path, "it was made for another stage", str(stage_of(row.path)), str(told.get("stage")))
    if rule in OF_A_SPECIFICATION and run in chain.runs and lineage["spec"] != chain.runs[run].spec_hash:
        planned = chain.runs[run].spec_hash
        yield Finding(row.path, "it was made under another specification than the plan's", planned, lineage["spec"])
    for name, proof in lineage.get("proof", {}).items():
        there = chain.rows.get(f"runs/{run}/{name}")
        if there is None or {*proof.values()} != {there.sha256}:
            stated = there.sha256 if there else "no such row"
            yield Finding(row.path, f"its proof is not about runs/{run}/{name}", stated, _short(proof))


def lineage_of(place: Path, row: Row) -> dict[str, Any] | None:
    """What an artifact says of its own origin; none where its kind says nothing.

    Raises:
        ValueError, KeyError: it should, and cannot be read.
    """
    if row.kind in TABLES:
        return read_lineage(place)
    if row.kind == "stage":
        return json.loads(place.read_bytes())["lineage"]
    if row.kind == "checkpoint":
        return json.loads(read_header(place)["__metadata__"]["lineage"])
    return None


def read_header(checkpoint: Path) -> dict[str, Any]:
    """The header of a safetensors file, read without the library: 8 bytes of length, then JSON.

    Raises:
        ValueError: there is none, the tensors do not fill the rest of the file, or they overlap.
    """
    with open(checkpoint, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > _LARGEST_HEADER:
            raise ValueError(f"a header of {length} bytes")
        header = json.loads(file.read(length))
    spans = sorted(tuple(entry["data_offsets"]) for name, entry in header.items() if name != "__metadata__")
    ends = [0, *(end for _, end in spans)]
    if [start for start, _ in spans] != ends[:-1] or 8 + length + ends[-1] != checkpoint.stat().st_size:
        raise ValueError("its tensors do not fill the file one after the other")
    return header


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 300 else text[:297] + "…"
