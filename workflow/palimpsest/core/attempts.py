"""The log of a run's attempts: lines of JSON as each training of a stage begins, resumes and ends. Telemetry.

The file is filled up with blanks to whole blocks of the disk, and lines are written over them: so the end of an
attempt, and why, can be noted even when the disk is full.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK, ROOM = 4096, 2048
"""Bytes of a block, and how many are kept free behind the line with which an attempt begins."""
LONGEST_OUTCOME = 200
"""Characters of an outcome, of at most twelve bytes each as JSON."""
MEASURED = ("wall_clock_s", "probing_s", "peak_memory_bytes")
Attempt = dict[str, Any]


@dataclass(frozen=True)
class Notes:
    """What training tells of an attempt while it lasts; nothing is noted, unless it is said how.

    Args:
        resumed: told the step from which it goes on.
        aside: gives a context; the time in it was spent on recording, and not on training.
    """

    resumed: Callable[[int], None] = lambda step: None
    aside: Callable[[], AbstractContextManager[None]] = nullcontext


def attempts_log(study: Path, run: str) -> Path:
    """Where the attempts of a run are noted."""
    return study / "telemetry" / f"{run}.attempts.jsonl"


def read_attempts(study: Path, run: str) -> list[Attempt]:
    """The attempts of a run, oldest first: what their lines say, put together.

    `{attempt, stage, started, host, resumed_at, outcome, ended, wall_clock_s, probing_s, peak_memory_bytes}`; the
    outcome of one that never ended is `killed`, and null is what is not known of it. A line that was torn by a kill is
    left out.
    """
    path = attempts_log(study, run)
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    found: dict[str, Attempt] = {}
    for line in filter(None, map(_parse, lines)):
        event = line["event"]
        if event == "started":
            keys = ("resumed_at", "ended", *MEASURED)
            about = {"started": line.get("time"), "host": line.get("host"), "outcome": "killed"}
            found[line["attempt"]] = {key: line[key] for key in ("attempt", "stage")} | about | dict.fromkeys(keys)
        elif line["attempt"] in found:
            keys = ("step",) if event == "resumed" else ("time", "outcome", *MEASURED)
            names = {"step": "resumed_at", "time": "ended"}
            found[line["attempt"]].update({names.get(key, key): line[key] for key in keys if key in line})
    return list(found.values())


def append_attempt(study: Path, run: str, line: dict[str, Any]) -> None:
    """Add a line, on a line of its own even after a torn one.

    Raises:
        OSError: it does not fit into the room that is left, and the disk is full.
    """
    path = attempts_log(study, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.read_bytes().rstrip(b" ") if path.is_file() else b""
    content = json.dumps(line).encode() + b"\n"
    with open(path, "r+b" if path.is_file() else "wb") as file:
        file.seek(len(written))
        file.write(content if not written or written.endswith(b"\n") else b"\n" + content)


def keep_room(study: Path, run: str) -> None:
    """Fill the log up with blanks, so that what follows can be noted.

    Raises:
        OSError: the disk is full.
    """
    path = attempts_log(study, run)
    size, used = path.stat().st_size, len(path.read_bytes().rstrip(b" "))
    if size - used < ROOM:
        with open(path, "ab") as file:
            file.write(b" " * (-(-(used + ROOM) // BLOCK) * BLOCK - size))


def _parse(line: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) and {"event", "attempt", "stage"} <= parsed.keys() else None
