"""The journal and the publication of a lock, as the main process of a workflow keeps them: it sees clock and git."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from palimpsest.core.artifact import write_atomically
from palimpsest.core.errors import StudyError
from palimpsest.core.hashing import canonical_json
from palimpsest.plan import journal
from palimpsest.plan.amend import Plan, versions
from palimpsest.plan.lock import lock_path
from palimpsest.plan.marks import marks, workflow_programs

JOURNAL, PUBLICATION = Path("telemetry/journal.jsonl"), Path("telemetry/publication.json")


def now() -> str:
    """The time in ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class History:
    """What happened to a study before, and what is noted of what happens now.

    Args:
        study_file: `config/NAME.yaml`; lock and journal lie beside it.
        folder: `results/NAME`.
        plan: the locked plan.
        programs: canonical JSON of every rule's program (`plan.grid`).

    Raises:
        LockError: the journal was edited, cut or removed.
    """

    def __init__(self, study_file: Path, folder: Path, plan: Plan, programs: Mapping[str, str]) -> None:
        self.lock, self.journal = lock_path(study_file), journal.journal_path(study_file)
        self.folder, self.plan = folder, plan
        self.lines = journal.read_journal(self.journal)
        journal.require_continued(self.journal, self.lines, folder / JOURNAL)
        self.programs = workflow_programs(plan, programs)

    @cached_property
    def unknown_runs(self) -> list[str]:
        """Evaluated runs that lie there although the journal says nothing of results."""
        known = any(line["event"] in ("evaluation", "found") for line in self.lines)
        return [] if known else evaluated_runs(self.folder)

    def keep(self) -> None:
        """Leave copies for the report among the results; no artifacts, for they hold dates."""
        content = {JOURNAL: self.journal.read_bytes() if self.journal.is_file() else b"", PUBLICATION: self.publication}
        for path, text in content.items():
            place = self.folder / path
            if not place.is_file() or place.read_bytes() != text:
                write_atomically(place, text)

    def marks(self) -> str:
        """What is exploratory for good, in canonical JSON."""
        return canonical_json(marks(self.plan, self.lines, self.programs, bool(self.unknown_runs))).decode()

    @cached_property
    def publication(self) -> bytes:
        """Of each version of the plan the commit of its lock and the branches that publish it, in canonical JSON."""
        return canonical_json(publication(self.lock, versions(self.plan)))

    def note(self, files: Iterable[str]) -> None:
        """Write into the journal what is about to be made; nothing where nothing new can be learned from it.

        Args:
            files: those that the workflow is going to write.
        """
        runs = sorted("/".join(Path(f).parts[-3:-1]) for f in files if f.endswith("/predictions.parquet"))
        if self.unknown_runs:
            self._append("found", runs=self.unknown_runs)
        about = {"programs": self.programs}
        noted = journal.of_workflows(self.lines)
        if runs:
            self._append("evaluation", runs=runs, **about)
        elif self.unknown_runs or (noted and self._differs(noted[-1])):
            self._append("analysis", **about)
        self.keep()

    def _differs(self, line: journal.Line) -> bool:
        return (line["lock"], line["programs"]) != (self.plan["hash"], self.programs)

    def _append(self, event: str, **more: Any) -> None:
        append(self.journal, event, self.plan["hash"], **more)


def require_hooks(arguments: Sequence[str]) -> None:
    """Refuse to run a workflow that could not tell the journal what it evaluates.

    Raises:
        StudyError: Snakemake is asked to call no hooks.
    """
    if "--no-hooks" in arguments:
        raise StudyError(
            "the journal of the study would be passed over",
            where="--no-hooks",
            expected="a workflow that notes what it evaluates on test data",
            got="one that calls no hook when it starts",
            next="leave the option out",
        )


def append(path: Path, event: str, lock: str, **more: Any) -> None:
    """Add a line to a journal, with the present time."""
    journal.append_to_journal(path, {"date": now(), "event": event, "lock": lock, **more})


def evaluated_runs(folder: Path) -> list[str]:
    """Runs of which results on test data lie there."""
    return sorted("/".join(path.parts[-3:-1]) for path in folder.glob("evaluation/*/*/predictions.parquet"))


def publication(lock: Path, hashes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Of each version of a plan `{commit, committed, branches}`: where git first has it, and who else can see it.

    Without a repository, or where a version was never committed, `{}`. `branches` are the remote-tracking ones that
    hold the commit.

    Args:
        lock: the file of the lock.
        hashes: of the versions of its plan.
    """
    wanted, found = set(hashes), {}
    for line in _git(lock, "log", "--reverse", "--format=%H %cI", "--", lock.name).splitlines():
        commit, committed = line.split()
        version = _hash_in(_git(lock, "show", f"{commit}:./{lock.name}"))
        if version in wanted and version not in found:
            branches = _git(lock, "branch", "--remotes", "--contains", commit, "--format=%(refname:short)")
            when = datetime.fromisoformat(committed).astimezone(UTC).isoformat()
            found[version] = {"commit": commit, "committed": when, "branches": branches.split()}
    return {version: found.get(version, {}) for version in sorted(wanted)}


def _hash_in(text: str) -> str | None:
    try:
        return json.loads(text)["hash"]
    except (ValueError, KeyError, TypeError):
        return None


def _git(lock: Path, *arguments: str) -> str:
    """What git says in the folder of the lock; nothing where there is no git, no repository or no such thing."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=lock.parent, capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""
