"""One file that holds a study: its plan, its past, its program, its results, and what describes them.

The same study gives the same bytes: names in a fixed order, one date for all, nothing compressed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from palimpsest.audit.contents import (
    FIRST_BYTES,
    LEFT_OUT,
    MAY_BE_LEFT_OUT,
    METADATA,
    PROGRAM,
    is_of_results,
    part_of,
    why_not_a_name,
    why_not_of_its_kind,
)
from palimpsest.audit.layout import RECORDS, is_alongside, rule_of
from palimpsest.core import code
from palimpsest.core.artifact import read_record, record_path, recorded_paths
from palimpsest.core.errors import ArchiveError, ArtifactError
from palimpsest.core.hashing import canonical_json
from palimpsest.core.progress import Track

# The first date that a zip file knows: an archive says nothing of when it was made.
DATE = (1980, 1, 1, 0, 0, 0)
PLAIN_FILE, FOLDER = 0o100644 << 16, 0o040755 << 16 | 0x10
PROJECT = code.PACKAGE.parents[1]
PROGRAM_FILES = ("Snakefile", "LICENSE", "pyproject.toml", "envs/run", "envs/*.in", "envs/*.lock")
PROGRAM_TREE, PROGRAM_SUFFIXES = "workflow", {".py", ".smk", ".j2", ".css", ".yaml"}
CONFIGURATION = ("{}.yaml", "{}.lock.json", "{}.journal.jsonl")
_CHUNK = 2**20


@dataclass(frozen=True)
class Member:
    """One file of an archive.

    Args:
        name: in the archive.
        part: of the archive, by which sizes are told.
        source: the file, or its content.
        sha256: of its record, where it has one.
    """

    name: str
    part: str
    source: Path | bytes
    sha256: str | None = None

    @property
    def bytes(self) -> int:
        """Its size."""
        return len(self.source) if isinstance(self.source, bytes) else self.source.stat().st_size

    def open(self) -> IO[bytes]:
        """Its content."""
        return io.BytesIO(self.source) if isinstance(self.source, bytes) else open(self.source, "rb")


def members(study: Path, config: Path, without: Sequence[str] = ()) -> list[Member]:
    """All that an archive of a study holds but its description, in the order of the names.

    Args:
        study: the folder `results/NAME`.
        config: the folder of the study file, its lock and its journal.
        without: parts that are left out, of `MAY_BE_LEFT_OUT`.

    Raises:
        ArchiveError: the study is not finished, or something in it has no place in an archive.
        ArtifactError: an artifact is missing.
    """
    unknown = sorted(set(without) - set(MAY_BE_LEFT_OUT))
    if unknown:
        raise _error(", ".join(unknown), "--without", f"some of {', '.join(MAY_BE_LEFT_OUT)}", "no such part")
    found = [*_configuration(study, config), *_program(), *_results(study, set(without))]
    for member in found:
        reason = why_not_a_name(member.name) or _why_not_of_its_kind(member)
        if reason:
            raise _error(f"{member.name}: {reason}", str(study), "files that an archive may hold", member.name)
    return sorted(found, key=lambda member: member.name)


def sizes(found: Iterable[Member]) -> dict[str, tuple[int, int]]:
    """Number of files and bytes of each part, the largest first."""
    totals: dict[str, tuple[int, int]] = {}
    for member in found:
        files, size = totals.get(member.part, (0, 0))
        totals[member.part] = (files + 1, size + member.bytes)
    return dict(sorted(totals.items(), key=lambda item: (-item[1][1], item[0])))


def folders(found: Iterable[Member]) -> list[str]:
    """The folders that an archive names: that of the program, and those of the results."""
    depth = {"results": 3, PROGRAM: 1}
    parts = [member.name.split("/") for member in found]
    named = {"/".join(part[: depth[part[0]]]) for part in parts if part[0] in depth and len(part) > depth[part[0]]}
    return sorted(f"{name}/" for name in named)


def left_out(found: Iterable[Member]) -> list[str]:
    """Parts that the study itself, or this archive, is without."""
    declared = [member for member in found if member.name.endswith(f"/{LEFT_OUT}")]
    return [part for member in declared for part in json.loads(member.open().read())["parts"]]


def archive_name(study: str, root: str, without: Sequence[str] = ()) -> str:
    """Name of the file: the study, the first twelve digits of its root, and what is left out.

    >>> archive_name("demo", "0123456789abcdef", ["checkpoints"])
    'demo-0123456789ab-without-checkpoints.crate.zip'
    """
    lacking = f"-without-{'-'.join(without)}" if without else ""
    return f"{study}-{root[:12]}{lacking}.crate.zip"


def write_archive(target: Path, description: bytes, found: Sequence[Member], track: Track) -> None:
    """Write an archive under a temporary name, and rename it when it is whole.

    Args:
        target: the file.
        description: content of `ro-crate-metadata.json`.
        found: its members.
        track: shows how far the work is.

    Raises:
        ArtifactError: a file is not the one that was recorded.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    try:
        with open(partial, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, strict_timestamps=True) as archive:
                for name in folders(found):
                    archive.writestr(_entry(name, FOLDER), b"")
                for member in track([Member(METADATA, "description", description), *found], "archiving"):
                    _add(archive, member)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _entry(name: str, attributes: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, DATE)
    entry.create_system, entry.external_attr = 3, attributes
    return entry


def _add(archive: zipfile.ZipFile, member: Member) -> None:
    entry = _entry(member.name, PLAIN_FILE)
    entry.file_size = member.bytes
    digest = hashlib.sha256()
    with member.open() as source, archive.open(entry, "w") as sink:
        while piece := source.read(_CHUNK):
            digest.update(piece)
            sink.write(piece)
    if member.sha256 is not None and digest.hexdigest() != member.sha256:
        raise ArtifactError(
            "an artifact is not the one that was written",
            where=str(member.source),
            expected=f"sha256 {member.sha256}, as its record says",
            got=f"sha256 {digest.hexdigest()}",
            next="palimpsest verify tells more; nothing was archived",
        )


def _configuration(study: Path, config: Path) -> Iterator[Member]:
    for pattern in CONFIGURATION:
        place = config / pattern.format(study.name)
        if not place.is_file():
            raise _error("a file of the study is missing", str(place), "study file, lock and journal", "no such file")
        yield Member(f"config/{place.name}", "plan", place)
    lock = config / f"{study.name}.lock.json"
    if lock.read_bytes() != (study / "plan/lock.json").read_bytes():
        got = "another plan"
        raise _error("the lock is not the one of the results", str(lock), f"the plan of {study}/plan/lock.json", got)


def _program() -> Iterator[Member]:
    named = {path for pattern in PROGRAM_FILES for path in PROJECT.glob(pattern)}
    paths = {path for path in named if not path.name.startswith(".")}  # an environment has its lock of that kind there
    tree = (PROJECT / PROGRAM_TREE).rglob("*")
    paths |= {path for path in tree if path.suffix in PROGRAM_SUFFIXES and path.is_file()}
    return (Member(f"{PROGRAM}/{path.relative_to(PROJECT)}.txt", "program", path) for path in paths)


def _results(study: Path, without: set[str]) -> Iterator[Member]:
    before = f"results/{study.name}"
    absent = without | _absent_already(study)
    recorded = set(recorded_paths(study, "."))
    for path in sorted(recorded):
        yield Member(f"{before}/{RECORDS}{path}.json", "ledger", record_path(study, path))
        if part_of(path) in absent:
            continue
        if not (study / path).is_file():
            raise ArtifactError(
                "an artifact is missing",
                where=str(study / path),
                expected="a file, as its record says",
                got="no such file",
                next="palimpsest rebuild makes a stage again; start snakemake for what it declares",
            )
        yield Member(f"{before}/{path}", part_of(path), study / path, read_record(study, path)["sha256"])
    for path in _beside(study, recorded):
        if part_of(path) not in absent:
            yield Member(f"{before}/{path}", part_of(path), study / path)
    if absent:
        declared = canonical_json({"parts": sorted(absent)})
        yield Member(f"{before}/{LEFT_OUT}", "ledger", declared)


def _absent_already(study: Path) -> set[str]:
    """What a partial archive from which the study was restored was without."""
    place = study / LEFT_OUT
    return set(json.loads(place.read_bytes())["parts"]) if place.is_file() else set()


def _beside(study: Path, recorded: set[str]) -> Iterator[str]:
    """What is archived without a record: telemetry. An artifact without one is refused."""
    for folder, _, names in sorted(os.walk(study)):
        for name in sorted(names):
            path = str(Path(folder, name).relative_to(study))
            if path in recorded or path.startswith(RECORDS) or path == LEFT_OUT:
                continue
            if not is_alongside(path):
                raise _error("a file has no record", str(study / path), "artifacts of the study alone", "a stray file")
            if is_of_results(path) and rule_of(path) is None:
                yield path


def _why_not_of_its_kind(member: Member) -> str | None:
    with member.open() as file:
        return why_not_of_its_kind(member.name, file.read(FIRST_BYTES))


def _error(what: str, where: str, expected: str, got: str) -> ArchiveError:
    return ArchiveError(
        f"the study cannot be archived: {what}",
        where=where,
        expected=expected,
        got=got,
        next="mend it, or have it made again by snakemake; palimpsest verify tells what is no part of a study",
    )
