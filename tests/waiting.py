"""Waiting for what a running workflow makes."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

PATIENCE_S = 180


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a file is there; fail when the workflow ends or time runs out before."""
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert process.poll() is None, f"the workflow ended before it made {path}: {process.communicate()[0]}"
        assert time.monotonic() < deadline, f"{path} was not made within {PATIENCE_S} s"
        time.sleep(0.01)
