"""What probes and the stream cost: processor time of a run of each of the demo's methods, with and without them.

    python tests/benchmarks/probes.py results/demo

needs a demo that was run, for its data. Every run is trained anew in a temporary folder, in this process, one
recording after the other, so often in turn as --times says.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from palimpsest.cli.numerics import pin_numerics
from palimpsest.core.artifact import Job
from palimpsest.core.attempts import Notes
from palimpsest.plan.grid import Grid, Run
from palimpsest.plan.lock import read_lock
from palimpsest.plan.probing import NOTHING, Recording
from palimpsest.plan.study import Probes

RECORDINGS: dict[str, Recording] = {
    "nothing": NOTHING,
    "beta = 10, current task": {"probes": Probes().model_dump(), "prequential": False},
    "beta = 10, all tasks": {"probes": Probes(tasks="all").model_dump(), "prequential": False},
    "beta = 10, current task, 50 samples": {"probes": Probes(samples=50).model_dump(), "prequential": False},
    "prequential": {"probes": None, "prequential": True},
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("study", type=Path)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    grid = Grid(read_lock(given.study / "plan/lock.json"))
    first = {
        run.method: run for run in reversed(grid.runs.values()) if grid.plan["methods"][run.method]["role"] == "method"
    }
    pin_numerics(1)
    for method, run in first.items():
        seconds(given.study, run, NOTHING)  # torch is imported, files are read
        taken: dict[str, list[float]] = {name: [] for name in RECORDINGS}
        for _ in range(given.times):
            for name, recording in RECORDINGS.items():
                taken[name].append(seconds(given.study, run, recording))
        plain = statistics.median(taken["nothing"])
        for name, times in taken.items():
            spread = f"{min(times):.2f} to {max(times):.2f}"
            median = statistics.median(times)
            print(f"{method:9} {name:36} {median:6.2f} s ({spread}) {100 * (median / plain - 1):+6.1f} %", flush=True)


def seconds(study: Path, run: Run, recording: Recording) -> float:
    """Processor time of training all stages of a run."""
    from palimpsest.training.stages import train_stages

    with tempfile.TemporaryDirectory() as folder:
        for part in ("data", "audit/records/data"):
            shutil.copytree(study / part, Path(folder) / part)
        job = Job(Path(folder), "train", "", "", run.spec_hash, {"run": run.run})
        numbers = [stage["stage"] for stage in run.spec["stages"]]
        began = time.process_time()
        train_stages(
            job,
            run.run,
            run.spec,
            numbers,
            recording,
            lambda stage: nullcontext(Notes()),
            lambda: "go",
            lambda line: None,
        )
        return time.process_time() - began


if __name__ == "__main__":
    main()
