"""The description of an archive: a Workflow Run RO-Crate, so that other programs know what lies where.

Reference: S. Leo et al., Recording provenance of workflow runs with RO-Crate, PLOS ONE 19 (2024) e0309210; profile
Workflow Run Crate 0.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from palimpsest import __version__
from palimpsest.audit.archive import Member, sizes
from palimpsest.audit.contents import README, suffix_of
from palimpsest.core.hashing import hash_bytes, hash_file
from palimpsest.plan.journal import Line, of_workflows

VERSION = "1.1"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"
WORKFLOW, ENVIRONMENT = "program/Snakefile.txt", "program/envs/requirements.lock.txt"
NO_LICENCE = "No licence was stated for these results; ask their authors. The program has its own: program/LICENSE.txt."
FORMATS = {
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".parquet": "application/vnd.apache.parquet",
    ".html": "text/html",
    ".yaml": "application/yaml",
    ".txt": "text/plain",
    ".md": "text/markdown",
}
FOLDERS = {
    "plan": "the locked plan, units, runs, and the program of every rule by its hashes",
    "data": "every sample with its split, task and hash",
    "runs": "trajectories: records, optimizer steps, outcomes and checkpoints of every run, failed ones included",
    "rewinds": "stages that were looked at more closely",
    "evaluation": "predictions for every test sample after every stage, and the accuracy matrices",
    "metrics": "every metric of every run",
    "aggregate": "tables over all runs, with the failed ones",
    "statistics": "the comparisons, order effects and decisions",
    "audit": "the ledger of all artifacts, and the Merkle root over it",
    "report": "the report with its figures and tables",
    "telemetry": "times, attempts, logs, and the journal: what may differ between two runs of the plan",
}
KEY_FILES = ("plan/lock.json", "audit/root.json", "report/index.html", "statistics/comparisons.parquet")


def describe(
    plan: Mapping[str, Any],
    lines: Sequence[Line],
    root: str,
    found: Sequence[Member],
    absent: Sequence[str],
    licence: str,
) -> bytes:
    """Content of `ro-crate-metadata.json`.

    Args:
        plan: the locked plan.
        lines: of the journal; the dates of the archive are theirs, so that it does not tell when it was made.
        root: the Merkle root.
        found: members of the archive.
        absent: parts that are left out.
        licence: address of the licence of the results, or a sentence.
    """
    from rocrate.rocrate import ROCrate

    study, made = plan["study"], of_workflows(lines) or list(lines)
    results = f"results/{study['study']}"
    crate = ROCrate(version=VERSION)
    crate.metadata.extra_terms = {"sha256": SHA256}
    crate.name, crate.datePublished = study["title"], made[-1]["date"]
    crate.description = _about(study, root, absent)
    crate.root_dataset["identifier"] = root
    is_address = licence.startswith("https://")
    crate.license = _add(crate, licence, "CreativeWork", name=licence) if is_address else licence
    crate.root_dataset["conformsTo"] = [
        _add(crate, address, "CreativeWork", name=name, version=address.rpartition("/")[2])
        for address, name in PROFILES.items()
    ]
    program = {"name": "Palimpsest", "version": __version__}
    workflow = crate.add_workflow(None, WORKFLOW, main=True, lang="snakemake", properties=program)
    inputs = [_add_file(crate, member) for member in found if member.name.startswith("config/")]
    outputs = _add_results(crate, results, found)
    crate.add_dataset(None, "program", properties={"name": "the program, as texts that nothing runs"})
    for member in found:
        if member.name in (ENVIRONMENT, README, WORKFLOW):
            _add_file(crate, member)
    crate.get(README)["about"] = crate.root_dataset
    crate.root_dataset["mentions"] = _add(
        crate,
        "#run",
        "CreateAction",
        name=f"the study {study['study']}",
        instrument=workflow,
        object=inputs,
        result=outputs,
        startTime=made[0]["date"],
        endTime=made[-1]["date"],
        actionStatus="http://schema.org/CompletedActionStatus",
        description="Every workflow run from the first evaluation on test data to the last analysis.",
    )
    return json.dumps(_in_order(crate.metadata.generate()), indent=1, ensure_ascii=False, sort_keys=True).encode()


def _about(study: Mapping[str, Any], root: str, absent: Sequence[str]) -> str:
    about = study["description"] or "A preregistered continual-learning study."
    lacking = f" Left out, by declaration: {', '.join(absent)}." if absent else ""
    return f"{about} Root of its ledger: {root}.{lacking} {README} says how to check it."


def _add(crate: Any, identifier: str, kind: str, **properties: Any) -> Any:
    from rocrate.model import ContextEntity

    return crate.add(ContextEntity(crate, identifier, properties={"@type": kind, **properties}))


def _add_results(crate: Any, results: str, found: Sequence[Member]) -> list[Any]:
    added = []
    for folder, about in FOLDERS.items():
        inside = [member for member in found if member.name.startswith(f"{results}/{folder}/")]
        if inside:
            size = sum(size for _, size in sizes(inside).values())
            properties = {"name": folder, "description": f"{about} ({len(inside)} files, {size} bytes)"}
            added.append(crate.add_dataset(None, f"{results}/{folder}", properties=properties))
    key = {f"{results}/{path}" for path in KEY_FILES}
    ledger = f"{results}/audit/ledger/"
    return added + [_add_file(crate, m) for m in found if m.name in key or m.name.startswith(ledger)]


def _add_file(crate: Any, member: Member) -> Any:
    digest = hash_bytes(member.source) if isinstance(member.source, bytes) else hash_file(member.source)
    about = {"contentSize": str(member.bytes), "sha256": digest, "encodingFormat": FORMATS[suffix_of(member.name)]}
    known = crate.get(member.name)
    if known is not None:
        for name, value in about.items():
            known[name] = value
        return known
    return crate.add_file(None, member.name, properties={"name": member.name.rpartition("/")[2], **about})


def _in_order(content: dict[str, Any]) -> dict[str, Any]:
    """The entities in the order of their identifiers; the library's is that of a set in some places."""
    return {**content, "@graph": sorted(content["@graph"], key=lambda entity: entity["@id"])}
