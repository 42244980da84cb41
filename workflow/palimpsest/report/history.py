"""When the plan was locked and amended, and whether others can see it, in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from palimpsest.core.numbers import plain
from palimpsest.plan.amend import Change, amendments, field_text, versions
from palimpsest.plan.journal import Line, evaluations, read_journal
from palimpsest.plan.marks import results_before

Row = dict[str, Any]


def read_history(study: Path, lock: Row) -> Row:
    """What the page says of the plan's history: from the lock, and from the copies among the telemetry.

    Without these copies nothing is known but what the lock says.

    Raises:
        LockError: the copy of the journal was edited.
    """
    lines = read_journal(study / "telemetry/journal.jsonl")
    place = study / "telemetry/publication.json"
    publication = json.loads(place.read_bytes()) if place.is_file() else {}
    late = results_before(lock, lines)
    evaluated = evaluations(lines)
    first = evaluated[0]["date"] if evaluated else None
    return {
        "amendments": [
            {**made, "late": late[at], "changes": _readable(made["changes"])}
            for at, made in enumerate(amendments(lock))
        ],
        "first_evaluation": first,
        "versions": [
            {
                "hash": version,
                "locked": _when(lines, version),
                "standing": standing(publication.get(version, {}), None if at and late[at - 1] else first),
            }
            for at, version in enumerate(versions(lock))
        ],
        "others": sorted({line["lock"] for line in lines if line["event"] == "locked"} - set(versions(lock))),
    }


def standing(commit: Row, first_evaluation: str | None) -> str:
    """Whether the date of a version of the plan can be checked by others.

    Args:
        commit: `{commit, committed, branches}`, or `{}` where it was never committed or nothing is known.
        first_evaluation: before which it should have been published; None where it was made later than that.

    >>> standing({}, None)
    'not independently time-stamped: no commit of it is known'
    """
    if not commit:
        return "not independently time-stamped: no commit of it is known"
    named = f"commit {commit['commit'][:12]} of {date(commit['committed'])}"
    if not commit["branches"]:
        return f"not independently time-stamped: {named} was never published"
    published = f"{named} is published in {', '.join(commit['branches'])}"
    if first_evaluation is not None and commit["committed"] > first_evaluation:
        return f"not independently time-stamped before the first evaluation: {published}, but came later"
    return f"{published}, where its date can be checked"


def date(text: str) -> str:
    """A date as it is printed.

    >>> date("2026-09-26T10:05:31+00:00")
    '2026-09-26 10:05 UTC'
    """
    return f"{text[:10]} {text[11:16]} UTC"


def _when(lines: list[Line], version: str) -> str | None:
    made = (line["date"] for line in lines if line["event"] in ("locked", "amended") and line["lock"] == version)
    return next(made, None)


def _readable(changes: list[Change]) -> list[Row]:
    """The changes that the study file shows; what follows from them (runs, units) is counted."""
    written = [change for change in changes if change["field"][0] == "study"]
    rows = [{"field": field_text(c), "old": _value(c, "old"), "new": _value(c, "new")} for c in written]
    counts = {kind: sum(change["field"][0] == kind for change in changes) for kind in ("units", "runs")}
    added = [{"field": kind, "old": None, "new": f"{count} more"} for kind, count in counts.items() if count]
    return rows + added


def _value(change: Change, which: str) -> str | None:
    return plain(change[which]) if which in change else None
