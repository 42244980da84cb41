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

from palimpsest.core.attempts import LONGEST_OUTCOME, Notes, append_attempt, keep_room
from palimpsest.core.errors import StoppedError


class Attempts:
    """Notes each attempt to train a stage; one without an end was killed."""

    def __init__(self, study: Path, run: str) -> None:
        self.study, self.run = study, run

    @contextmanager
    def __call__(self, stage: int) -> Iterator[Notes]:
        """Note beginning and end of an attempt; an exception passes through, noted with its text.

        Gives what notes the step from which the attempt goes on, and measures the time spent on recording.
        """
        attempt, began, outcome = uuid.uuid4().hex, time.monotonic(), "finished"
        probing = Stopwatch()

        def note(event: str, **more: Any) -> None:
            line = {"event": event, "attempt": attempt, "stage": stage, "time": datetime.now(UTC).isoformat(), **more}
            append_attempt(self.study, self.run, line)

        note("started", host=socket.gethostname(), process=os.getpid())
        try:
            keep_room(self.study, self.run)
            yield Notes(resumed=lambda step: note("resumed", step=step), aside=probing)
        except BaseException as error:
            outcome = _told(error)
            raise
        finally:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            seconds = round(time.monotonic() - began, 3)
            times = {"wall_clock_s": seconds, "probing_s": round(probing.seconds, 3)}
            note("ended", outcome=outcome[:LONGEST_OUTCOME], **times, peak_memory_bytes=peak)


def _told(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"stopped: {text}" if isinstance(error, StoppedError) else f"failed: {type(error).__name__}: {text}"


class Stopwatch:
    """Adds up the seconds spent in its context, which is entered again and again."""

    def __init__(self) -> None:
        self.seconds = 0.0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Measure the time until its end."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - began
