"""Time and peak memory of every stage of the analysis, each in a process of its own, on a made-up study.

    python tests/benchmarks/analysis.py FOLDER --seeds 100 --orders 25 --tasks 20

makes 4 methods × seeds × orders runs and 3 × seeds references below FOLDER, unless they are there, and analyses them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from made_up_runs import METHODS, PROTOCOLS, REFERENCES, Size, write_programs, write_study

from palimpsest.plan.marks import no_marks

SCHEDULES = {"random_init": "untrained", "isolated": "isolated", "joint": "joint"}
RUNS_PER_JOB = 100


def main() -> None:
    """Make the study and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--orders", type=int, default=25)
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--again", action="store_true", help="take the metrics that are there, all of them")
    given = parser.parse_args()
    study, size = given.folder / "study", Size(given.seeds, given.orders, given.tasks)
    print(f"{len(size.runs())} runs of {size.tasks} tasks")
    if not study.exists():
        measure("made up", write_study, study, size)
    write_programs(study)
    if not (given.again and (study / "metrics").exists()):
        shutil.rmtree(study / "metrics", ignore_errors=True)
        measure_metrics(study, size)
    for method in (*METHODS, *REFERENCES):
        measure(f"ledger {method}", stage, study, "ledger", method=method)
    measure("aggregate", stage, study, "aggregate", methods=[*METHODS, *REFERENCES])
    measure("statistics", stage, study, "statistics", analysis=analysis(), marks=no_marks())
    measure("audit", stage, study, "audit", methods=[*METHODS, *REFERENCES])
    measure("report", report, study, size)


def measure_metrics(study: Path, size: Size) -> None:
    """All batches of the stage `metrics`: the sum of their times, and the largest memory of one."""
    spent, worked, peak, batches = 0.0, 0.0, 0.0, 0
    for method in (*METHODS, *REFERENCES):
        runs = [f"{m}/{unit}" for m, unit in size.runs() if m == method]
        for start in range(0, len(runs), RUNS_PER_JOB):
            part = runs[start : start + RUNS_PER_JOB]
            seconds, processor, mebibytes = in_a_process(metrics, study, method, part)
            spent, worked, peak, batches = spent + seconds, worked + processor, max(peak, mebibytes), batches + 1
    show(f"metrics, {batches} jobs", spent, worked, peak)


def metrics(study: Path, method: str, runs: list[str]) -> None:
    """One job of the stage `metrics`."""
    references = {} if method in REFERENCES else {run: references_of(run) for run in runs}
    schedule = SCHEDULES.get(method, "sequential")
    stage(study, "metrics", schedule=schedule, runs=runs, references=references, protocols=list(PROTOCOLS))


def references_of(run: str) -> dict[str, str]:
    """The references of a run, those of its seed."""
    seed = run.split("/")[1].split("-")[0]
    return {name: f"{name}/{seed}" for name in REFERENCES}


def analysis() -> dict[str, Any]:
    """A plan with three comparisons, gates and a claim."""
    usual = {"index": None, "protocol": PROTOCOLS[0], "alternative": "two-sided", "b": "finetune"}
    return {
        "test": "paired_t",
        "correction": "holm",
        "failed_runs": "bounds",
        "alpha": 0.05,
        "equivalence_margin": 0.02,
        "expected_effect": None,
        "expected_sd": None,
        "expected_sd_source": None,
        "primary": {"name": "replay", "a": "replay", "metric": "average_accuracy", **usual},
        "secondary": [
            {"name": "ewc", "a": "ewc", "metric": "average_accuracy", **usual},
            {"name": "forgetting", "a": "replay", "metric": "forgetting", **usual},
        ],
        "gates": [{"gate": "replay.ci_low > 0", "hard": True}],
        "claims": [{"claim": "reduces_forgetting", "comparison": "forgetting", "margin": 0.02}],
    }


def report(study: Path, size: Size) -> None:
    """The report, with what of the plan it shows."""
    from fabricated_study import fabricate, lock
    from palimpsest.core.artifact import Job

    job = Job(study, "plan", code="c" * 64, environment="e" * 64)
    units = size.units()
    orders = {order: tasks for _, order, tasks in units.values() if order != "canonical"}
    content = lock({name: name for name in (*METHODS, *REFERENCES) if name != "agem"})
    content["methods"]["agem"] = content["methods"]["finetune"]
    content["study"]["analysis"] = analysis()
    content |= {
        "orders": orders,
        "units": [
            {"unit": unit, "seed": seed, "order_id": order, "tasks": tasks}
            for unit, (seed, order, tasks) in units.items()
        ],
        "runs": [{"run": f"{m}/{u}", "method": m, "unit": u, "spec_hash": "0" * 64} for m, u in size.runs()],
        "power": None,
    }
    job.write_json("plan/lock.json", content, "lock")
    fabricate(study.parent / "fabricated")
    for path in ("data/samples.parquet", "audit/records/data/samples.parquet.json"):
        (study / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(study.parent / "fabricated" / path, study / path)
    stage(study, "report")


def stage(study: Path, name: str, **options: Any) -> None:
    """Run a stage as its rule does; options that are not texts are passed as JSON."""
    from palimpsest.cli.main import STAGES

    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}
    STAGES.load(name, "benchmark").command(study=study, code=f"plan/code/rules/{name}.json", **texts)


def measure(name: str, work: Callable[..., None], *arguments: Any, **options: Any) -> None:
    """Do something in a process of its own, and print its time and peak memory."""
    show(name, *in_a_process(work, *arguments, **options))


def show(name: str, seconds: float, processor: float, mebibytes: float) -> None:
    """One line of the result."""
    print(f"{name:24} {seconds:8.1f} s {processor:8.1f} s of CPU {mebibytes:8.0f} MiB", flush=True)


def in_a_process(work: Callable[..., None], *arguments: Any, **options: Any) -> tuple[float, float, float]:
    """Seconds on the clock and of the processor, and peak resident memory in MiB, the interpreter's start included.

    Raises:
        RuntimeError: the work failed.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    began = time.monotonic()
    process = context.Process(target=_measured, args=(sender, work, arguments, options))
    process.start()
    sender.close()
    try:
        processor, peak = receiver.recv()
    except EOFError:
        raise RuntimeError("the work failed; its message stands above") from None
    process.join()
    return time.monotonic() - began, processor, peak


def _measured(sender: Any, work: Callable[..., None], arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    work(*arguments, **options)
    used = resource.getrusage(resource.RUSAGE_SELF)
    sender.send((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))


if __name__ == "__main__":
    main()
