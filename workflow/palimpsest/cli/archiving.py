"""A study that is to be archived, or was unpacked: what must be true of it, and what is said of it to a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from palimpsest.audit.archive import Member
from palimpsest.audit.contents import PROGRAM, README
from palimpsest.audit.finding import UNREADABLE, Finding, guarded
from palimpsest.core.code import hash_source
from palimpsest.core.errors import ArchiveError, ArtifactError
from palimpsest.core.exclusive import is_held
from palimpsest.core.hashing import hash_bytes
from palimpsest.plan.grid import Grid
from palimpsest.plan.journal import Line, read_journal, require_continued
from palimpsest.plan.lock import read_lock

TEXT = """# {study}

An archive of a preregistered continual-learning study, made by Palimpsest. It is a Workflow Run RO-Crate: what lies
where is described in `ro-crate-metadata.json`.

Root of the ledger: `{root}`
{absent}
Check it, and go on from it, with Palimpsest installed:

    palimpsest restore ARCHIVE --into FOLDER              # nothing in it is executed; then everything is verified
    palimpsest analyse FOLDER/results/{study} --into NEW    # metrics, statistics and report again, without training

`config/` holds the study, its lock with all amendments, and the journal of what was evaluated when; `program/` the
source files as texts; `results/{study}/` the results, `results/{study}/report/index.html` first of all.
"""
LONGEST_SOURCE = 2**20
_NAMED = re.compile(r".+-([0-9a-f]{12})(-without-[a-z-]+)?\.crate\.zip")


def open_finished(study: Path, config: Path) -> tuple[dict[str, Any], list[Line], str]:
    """Plan, lines of the journal and root of a finished study.

    Raises:
        ArchiveError: it is not finished, or somebody works on it.
        LockError: lock or journal are not as they were written.
    """
    if not (study / "audit/root.json").is_file() or is_held(study / ".lock"):
        raise ArchiveError(
            "a study is archived when it is finished",
            where=str(study),
            expected="results with audit/root.json, and no workflow at work",
            got="a workflow at work" if is_held(study / ".lock") else "no audit/root.json",
            next="wait until it is finished, or finish it by snakemake",
        )
    journal = config / f"{study.name}.journal.jsonl"
    lines = read_journal(journal)
    require_continued(journal, lines, study / "telemetry/journal.jsonl")
    root = json.loads((study / "audit/root.json").read_bytes())["root"]
    return read_lock(study / "plan/lock.json"), lines, root


def require_own_program(study: Path, plan: dict[str, Any]) -> None:
    """Refuse to archive the installed program with results of another one.

    Raises:
        ArtifactError: names the modules that differ.
    """
    differing = set()
    for name, text in Grid(plan).programs().items():
        place = study / f"plan/code/{name}.json"
        files, recorded = json.loads(text)["files"], json.loads(place.read_bytes())["files"] if place.is_file() else {}
        differing |= {module for module in files.keys() | recorded.keys() if files.get(module) != recorded.get(module)}
    if differing:
        raise ArtifactError(
            "the installed program is not the one that made these results",
            where=str(study),
            expected="the recorded program, which the archive is to hold",
            got=f"another version of {', '.join(sorted(differing))}",
            next="check out the version that made them, or have them made again by snakemake",
        )


def readme(study: str, root: str, absent: Sequence[str]) -> Member:
    """The page of an archive for its reader."""
    lacking = f"\nLeft out, by declaration: {', '.join(absent)}.\n" if absent else ""
    return Member(README, "description", TEXT.format(study=study, root=root, absent=lacking).encode())


def around(folder: Path, study: Path, archive: Path) -> Iterator[Finding]:
    """What does not fit together between the parts of an unpacked archive; `audit.verify` looks at the results alone.

    Args:
        folder: to which it was unpacked.
        study: the results in it.
        archive: the file, whose name shows the head of the root.
    """
    named, root = _NAMED.fullmatch(archive.name), json.loads((study / "audit/root.json").read_bytes())["root"]
    if named is None:
        yield Finding(archive.name, "the name of the archive shows no root to compare with", got=root, is_remark=True)
    elif not root.startswith(named[1]):
        yield Finding(archive.name, "the name of the archive shows another root than its ledger has", named[1], root)
    lock, journal = (folder / f"config/{study.name}.{suffix}" for suffix in ("lock.json", "journal.jsonl"))
    if lock.read_bytes() != (study / "plan/lock.json").read_bytes():
        yield Finding(str(lock.relative_to(folder)), "it is not the plan of the results")
    copy = study / "telemetry/journal.jsonl"
    yield from guarded(
        str(journal.relative_to(folder)),
        "the journal is not as it was written",
        lambda: require_continued(journal, read_journal(journal), copy) or [],
    )
    yield from guarded("plan/code", "the programs cannot be compared", lambda: list(_program(folder, study)))


def _program(folder: Path, study: Path) -> Iterator[Finding]:
    """Archived sources without the recorded hash: a remark, for another Python may write their trees otherwise."""
    recorded: dict[str, str] = {}
    for path in sorted((study / "plan/code").rglob("*.json")):
        recorded |= json.loads(path.read_bytes())["files"]
    differing = [module for module, digest in recorded.items() if _hash_of(folder, module) != digest]
    if differing:
        reason = "the archived program is not the recorded one, or another Python reads it otherwise"
        yield Finding(PROGRAM, reason, got=", ".join(sorted(differing)), is_remark=True)


def _hash_of(folder: Path, module: str) -> str | None:
    package = folder / PROGRAM / "workflow"
    place = package / f"{module}.txt" if "/" in module else None
    candidates = (
        [place] if place else [package / f"{module.replace('.', '/')}{end}.txt" for end in ("/__init__.py", ".py")]
    )
    found = next((candidate for candidate in candidates if candidate.is_file()), None)
    if found is None or found.stat().st_size > LONGEST_SOURCE:
        return None
    try:
        return hash_bytes(found.read_bytes()) if place else hash_source(found.read_bytes())
    except (*UNREADABLE, SyntaxError, MemoryError):
        return None
