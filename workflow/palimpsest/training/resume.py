"""The resume file of a stage: where the training stands, so that a killed job repeats at most the last minute.

It lies under `runs/METHOD/UNIT/.resume/`, named by its stage and its own SHA-256, and carries the key of what it
belongs to: specification, program, environment, data, parent and kind of machine. It is written beside its predecessor,
flushed and renamed, before the predecessor is removed. One that is torn, changed, or of something else is never loaded:
it is moved to `telemetry/rejected/` and reported. A finished stage leaves none (`training.stages`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from palimpsest.core.artifact import write_atomically
from palimpsest.core.hashing import hash_bytes, hash_file
from palimpsest.training.checkpoint import decode, encode


@dataclass(frozen=True)
class Resume:
    """The resume file of one stage of one run.

    Args:
        study: the study's folder.
        run: `METHOD/UNIT`.
        stage: the stage.
        key: hash of all that the stage's bytes depend on.
        say: prints one line.
    """

    study: Path
    run: str
    stage: int
    key: str
    say: Callable[[str], None]

    def load(self) -> dict[str, Any] | None:
        """The content of the newest file that is whole and belongs here, or null."""
        for path in sorted(self._files(), key=lambda path: path.stat().st_mtime_ns, reverse=True):
            problem = self._problem(path)
            if problem is None:
                return decode(path)
            self._reject(path, problem)
        return None

    def keep(self, content: dict[str, Any]) -> None:
        """Write where the training stands, and remove the file before."""
        bytes_ = encode(content, {"key": self.key, "run": self.run, "stage": self.stage})
        path = self._folder / f"stage-{self.stage}.{hash_bytes(bytes_)}.safetensors"
        write_atomically(path, bytes_)
        for older in self._files():
            if older != path:
                older.unlink()

    @property
    def _folder(self) -> Path:
        return self.study / "runs" / self.run / ".resume"

    def _files(self) -> list[Path]:
        return list(self._folder.glob(f"stage-{self.stage}.*.safetensors"))

    def _problem(self, path: Path) -> str | None:
        """Why a file cannot be resumed from, or null."""
        if hash_file(path) != path.name.split(".")[1]:
            return "it is torn or was changed: its SHA-256 is not the one in its name"
        try:
            with safe_open(path, framework="pt") as file:
                lineage = json.loads(file.metadata()["lineage"])
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            return f"it is no resume file ({type(error).__name__})"
        if lineage.get("key") != self.key:
            return "it belongs to another specification, program, data, parent or kind of machine, or to other probes"
        return None

    def _reject(self, path: Path, problem: str) -> None:
        place = self.study / "telemetry" / "rejected" / self.run / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        path.replace(place)
        self.say(f"stage {self.stage}: a resume file was set aside as {place}, since {problem}")
