"""The log of attempts: when a stage's training began and how it ended, on which host. Telemetry, never hashed."""

from __future__ import annotations

import os
import resource
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from palimpsest.core.attempts import append_attempt


class Attempts:
    """Notes each attempt to train a stage; one without an end was killed."""

    def __init__(self, study: Path, run: str) -> None:
        self.study, self.run = study, run

    @contextmanager
    def __call__(self, stage: int) -> Iterator[None]:
        """Note beginning and end of an attempt; an exception passes through, noted with its text."""
        attempt, began = uuid.uuid4().hex, time.monotonic()
        self._note("started", attempt, stage, host=socket.gethostname(), process=os.getpid())
        outcome = "finished"
        try:
            yield
        except BaseException as error:
            outcome = f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            raise
        finally:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            seconds = round(time.monotonic() - began, 3)
            self._note("ended", attempt, stage, outcome=outcome, wall_clock_s=seconds, peak_memory_bytes=peak)

    def _note(self, event: str, attempt: str, stage: int, **more: Any) -> None:
        line = {"event": event, "attempt": attempt, "stage": stage, "time": datetime.now(UTC).isoformat(), **more}
        append_attempt(self.study, self.run, line)
