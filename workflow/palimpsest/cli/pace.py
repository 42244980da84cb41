"""When training writes its resume file, and when it stops: the clock and the signals of the system."""

from __future__ import annotations

import signal
import time
from types import FrameType
from typing import Literal

STOPPING = (signal.SIGTERM, signal.SIGINT)


class Pace:
    """Answers `training.stage.Ask`: save every so many seconds, stop after SIGTERM (as Slurm sends it) or Ctrl-C.

    A second signal leaves at once.

    Args:
        seconds: least time between two resume files; 0 writes one after every step.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.last, self.signal = seconds, time.monotonic(), 0
        for number in STOPPING:
            signal.signal(number, self._note)

    def __call__(self) -> Literal["go", "save", "stop"]:
        """What training is to do after this step."""
        if self.signal:
            return "stop"
        if time.monotonic() - self.last < self.seconds:
            return "go"
        self.last = time.monotonic()
        return "save"

    @property
    def exit_code(self) -> int:
        """128 + the signal, as a shell reports it: not 0, so the job counts as failed and is tried again."""
        return 128 + self.signal

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal:  # asked twice: it does not train now, or takes too long
            raise SystemExit(self.exit_code)
        self.signal = number
