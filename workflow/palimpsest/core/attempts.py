"""The log of a run's attempts: one line of JSON as each training of a stage begins and as it ends. Telemetry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def attempts_log(study: Path, run: str) -> Path:
    """Where the attempts of a run are noted."""
    return study / "telemetry" / f"{run}.attempts.jsonl"


def read_attempts(study: Path, run: str) -> list[dict[str, Any]]:
    """The lines of a run's log, oldest first; a line that was torn by a kill is left out."""
    path = attempts_log(study, run)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return [parsed for line in lines if (parsed := _parse(line)) is not None]


def append_attempt(study: Path, run: str, line: dict[str, Any]) -> None:
    """Add a line, on a line of its own even after a torn one."""
    path = attempts_log(study, run)
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.is_file() and not path.read_bytes().endswith(b"\n")
    with open(path, "a", encoding="utf-8") as file:
        file.write(("\n" if torn else "") + json.dumps(line) + "\n")


def _parse(line: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) and {"event", "attempt", "stage"} <= parsed.keys() else None
