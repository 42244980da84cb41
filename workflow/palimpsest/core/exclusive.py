"""File locks: one writer of a run, one workflow of a study. The system gives them back when the process ends."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

ATTEMPTS, PAUSE_S = 5, 0.02


def hold(path: Path, when_taken: Callable[[], None]) -> IO[str]:
    """Take the lock file and keep it as long as the returned file is open.

    Args:
        path: the lock file; made with its folder where it is not there.
        when_taken: called where another process holds it; it may raise, else the lock is waited for.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = open(path, "a")  # noqa: SIM115 - closing it would give the lock back
    if not _take(file):
        try:
            when_taken()
        except BaseException:
            file.close()
            raise
        fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _take(file: IO[str]) -> bool:
    """Whether the lock could be taken now; somebody who only looks whether it is held lets it go in a moment."""
    for _ in range(ATTEMPTS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE_S)
        else:
            return True
    return False


def is_held(path: Path) -> bool:
    """Whether some process holds the lock file now."""
    if not path.is_file():
        return False
    with open(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
