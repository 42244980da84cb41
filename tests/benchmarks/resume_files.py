"""What writing resume files costs of training time: `PYTHONPATH=tests python tests/benchmarks/resume_files.py FOLDER`.

Made-up bytes in the shape of MNIST, one stage, `replay`. At 1 s it is measured as the share of the wall clock that goes
to writing; at the default of 60 s it follows from the mean time of one file. FOLDER decides which disk is written to.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from palimpsest.cli.numerics import pin_numerics
from palimpsest.cli.pace import Pace
from palimpsest.core.artifact import Job
from palimpsest.core.streams import generator
from palimpsest.data.samples import Samples
from palimpsest.data.write import write_samples
from tiny import CODE, spec_of, train

SHAPE, N_TRAIN = (28, 28), 20_000
MODELS = {"demo (784-256-256-6, buffer of 157 kB)": ((256, 256), 157_000)}
MODELS |= {"9.4 M parameters, buffer of 50 MB": ((2700, 2700), 50_000_000)}


class Enough(Exception):
    """Trained as long as it was asked for."""


def new_study(folder: Path) -> Path:
    """Random bytes for one task of two classes, in the shape of MNIST."""
    tasks = {"t1": [0, 1], "t2": [2, 3], "t3": [4, 5]}
    rows = [(task, label) for task, labels in tasks.items() for label in labels for _ in range(N_TRAIN // 2)]
    n = len(rows)
    samples = Samples(
        inputs=generator("benchmark", "resume").integers(0, 256, (n, *SHAPE)).astype(np.uint8),
        input=np.arange(n),
        dataset=["made up"] * n,
        split=["train"] * n,
        sample=np.arange(n, dtype=np.int64),
        label=np.array([label for _, label in rows], dtype=np.int64),
        task=[task for task, _ in rows],
        sources=(),
    )
    write_samples(Job(folder, "data", CODE, "e" * 64), samples)
    return folder


def measure(study: Path, name: str, interval_s: float, seconds: float) -> dict[str, float]:
    """Train for so many seconds, with a resume file every `interval_s`; returns what they took."""
    from palimpsest.training.resume import Resume

    hidden, buffer_bytes = MODELS[name]
    spec = spec_of("replay", {"buffer_bytes": buffer_bytes, "replayed": 10}, hidden=hidden, batch_size=10, epochs=1000)
    spec["inputs"] = {**spec["inputs"], "shape": list(SHAPE), "sample_bytes": 784}
    pace, began, written, steps = Pace(interval_s), time.monotonic(), [], 0
    keep = Resume.keep

    def timed(self, content: dict) -> None:
        start = time.monotonic()
        keep(self, content)
        size = sum(path.stat().st_size for path in self._files())
        written.append((time.monotonic() - start, size))

    def ask() -> str:
        nonlocal steps
        steps += 1
        if time.monotonic() - began > seconds:
            raise Enough
        return pace()

    Resume.keep = timed
    try:
        train(study, spec, f"m/{interval_s:g}", [1], ask=ask)
    except Enough:
        pass
    finally:
        Resume.keep = keep
    spent, total = sum(duration for duration, _ in written), time.monotonic() - began
    return {
        "n": len(written),
        "share": spent / total,
        "of_one_s": spent / len(written),
        "bytes": written[-1][1],
        "steps": steps,
    }


def main() -> None:
    """Print a row of a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    pin_numerics(1)
    study = new_study(arguments.folder)
    print("| model | files | bytes of one | one file, ms | share at 1 s, % | share at 60 s, % | steps |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for number, name in enumerate(MODELS):
        found = measure(study, name, 1.0 + number / 1000, arguments.seconds)
        at_default = found["of_one_s"] / 60
        print(
            f"| {name} | {found['n']} | {found['bytes']:,} | {1000 * found['of_one_s']:.1f} "
            f"| {100 * found['share']:.2f} | {100 * at_default:.3f} | {found['steps']} |"
        )


if __name__ == "__main__":
    main()
