"""What probes and the stream cost: their share of the processor time of a run of each of the demo's methods.

    python tests/benchmarks/probes.py results/demo

needs a demo that was run, for its data. Every run is trained anew in a temporary folder, in this process, one recording
after the other, so often in turn as --times says. The share is of the rest of the time that the same run took.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from palimpsest.cli.numerics import pin_numerics
from palimpsest.core.artifact import Job
from palimpsest.core.attempts import Notes
from palimpsest.plan.grid import Grid, Run
from palimpsest.plan.lock import read_lock
from palimpsest.plan.probing import Recording
from palimpsest.plan.study import Probes
from palimpsest.training.machine import kind_of_machine

RECORDINGS: dict[str, Recording] = {
    "beta = 10, current task": {"probes": Probes().model_dump(), "prequential": False},
    "beta = 10, all tasks": {"probes": Probes(tasks="all").model_dump(), "prequential": False},
    "beta = 10, current task, 50 samples": {"probes": Probes(samples=50).model_dump(), "prequential": False},
    "prequential": {"probes": None, "prequential": True},
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--times", type=int, default=3)
    given = parser.parse_args()
    grid = Grid(read_lock(given.study / "plan/lock.json"))
    first = {
        run.method: run for run in reversed(grid.runs.values()) if grid.plan["methods"][run.method]["role"] == "method"
    }
    pin_numerics(1)
    for method, run in first.items():
        share(given.study, run, RECORDINGS["prequential"])  # torch is imported, files are read
        shares: dict[str, list[float]] = {name: [] for name in RECORDINGS}
        for _ in range(given.times):
            for name, recording in RECORDINGS.items():
                shares[name].append(100 * share(given.study, run, recording))
        for name, found in shares.items():
            spread = f"{min(found):.1f} to {max(found):.1f}"
            print(f"{method:9} {name:36} {statistics.median(found):5.1f} % ({spread})", flush=True)


def share(study: Path, run: Run, recording: Recording) -> float:
    """Processor time of recording, as a share of the rest, in training all stages of a run."""
    from palimpsest.training.stages import train_stages

    spent = 0.0

    @contextmanager
    def aside() -> Iterator[None]:
        nonlocal spent
        began = time.process_time()
        yield
        spent += time.process_time() - began

    with tempfile.TemporaryDirectory() as folder:
        for part in ("data", "audit/records/data"):
            shutil.copytree(study / part, Path(folder) / part)
        job = Job(Path(folder), "train", "", "", run.spec_hash, {"run": run.run})
        numbers = [stage["stage"] for stage in run.spec["stages"]]
        began = time.process_time()
        observe = nullcontext(Notes(aside=aside))
        about = (job, run.run, run.spec, numbers, recording, kind_of_machine(1))
        train_stages(*about, lambda stage: observe, lambda: "go", lambda line: None)
        whole = time.process_time() - began
    return spent / (whole - spent)


if __name__ == "__main__":
    main()
