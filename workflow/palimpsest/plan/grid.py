"""The grid that a lock expands into: runs, what each is told, and how their stages are cut into jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from palimpsest.core import code
from palimpsest.core.catalog import Catalog
from palimpsest.core.errors import LockError, StudyError
from palimpsest.core.hashing import canonical_json, hash_json
from palimpsest.core.matrix import read_as
from palimpsest.plan.budgets import limits
from palimpsest.plan.probing import NOTHING, Recording, tables_of
from palimpsest.plan.schedule import stages

METRICS = Catalog("palimpsest.metrics", "metric")
REFERENCES = ("random_init", "isolated", "joint")
RULES_OF_THE_STUDY = (
    *("plan", "data", "manifest", "collect", "metrics", "ledger"),
    *("aggregate", "statistics", "audit", "report"),
)
FILES_OF_A_RUN = (
    "runs/{run}/steps.parquet",
    "runs/{run}/outcome.parquet",
    "telemetry/{run}.parquet",
    "evaluation/{run}/predictions.parquet",
    "evaluation/{run}/matrix.parquet",
    "metrics/{run}.parquet",
)
Spec = dict[str, Any]
LONGEST_ARGUMENT = 100_000


def shared_spec(plan: dict[str, Any], key: str) -> Spec:
    """What all runs of a method are told.

    It is as canonical JSON gives it back, for so a job gets it: 0.0 is 0 then, and a checkpoint stores the two apart.
    """
    study, method = plan["study"], plan["methods"][key]
    told = {
        "benchmark": {
            "name": study["benchmark"]["name"],
            "seed": study["benchmark"]["seed"],
            "options": plan["benchmark"]["options"],
        },
        "tasks": {task: facts["classes"] for task, facts in plan["tasks"].items()},
        "inputs": plan["inputs"],
        "protocol": study["protocol"],
        "training_mask": study["training_mask"],
        "evaluation_mask": study["evaluation_mask"],
        "model": {**study["model"], "options": plan["model"]["options"]},
        "training": {name: value for name, value in study["training"].items() if value is not None},
        "numerics": study["numerics"],
        "method": method["method"],
        "hyperparameters": method["hyperparameters"],
        "schedule": method["schedule"],
        "joint": study["references"]["joint"] if method["schedule"] == "joint" else None,
        # Only where it changes what a run does: other specifications keep their hash.
        **({"budgets": limits(plan, key)} if limits(plan, key) else {}),
        **({"boundaries": "hidden"} if method["role"] == "method" and study["boundaries"] == "hidden" else {}),
    }
    return json.loads(canonical_json(told))


def complete_spec(shared: Spec, unit: dict[str, Any]) -> Spec:
    """All that fixes the bytes of a run, and nothing else: what its method's runs share, its seed, order and stages."""
    order = unit["tasks"]
    return {
        **shared,
        "seed": unit["seed"],
        "order": order,
        "stages": stages(shared["schedule"], order, shared["joint"]),
    }


@dataclass(frozen=True)
class Run:
    """One trajectory: a method on a unit."""

    run: str
    method: str
    unit: str
    spec: Spec
    spec_hash: str

    @property
    def stage_numbers(self) -> list[int]:
        """The stages that it trains, in order."""
        return [stage["stage"] for stage in self.spec["stages"]]


@dataclass(frozen=True)
class Block:
    """Consecutive stages that one job trains, and the stages before them from whose checkpoints they start."""

    stages: tuple[int, ...]
    parents: tuple[int, ...]

    @property
    def name(self) -> str:
        """`stage_3`, or `stage_1_to_5`."""
        first, last = self.stages[0], self.stages[-1]
        return f"stage_{first}" if first == last else f"stage_{first}_to_{last}"


@dataclass(frozen=True)
class Batch:
    """Runs of one method that one job works on, one after the other."""

    method: str
    number: int
    runs: tuple[Run, ...]
    units: str
    """The units in canonical JSON, as the job gets them."""

    @property
    def name(self) -> str:
        """`METHOD_NUMBER`."""
        return f"{self.method}_{self.number}"

    def paths(self, pattern: str, stages: Sequence[int] | None = None) -> list[str]:
        """A path for each run, and for each of some stages: `{run}` and `{stage}` are replaced."""
        wanted = [(run.run, stage) for run in self.runs for stage in (stages if stages is not None else [None])]
        return [pattern.format(run=run, stage=stage) for run, stage in wanted]

    @property
    def stage_numbers(self) -> list[int]:
        """The stages of each run: the same for all runs of a method."""
        return self.runs[0].stage_numbers

    def blocks(self, stages_per_job: int | str) -> list[Block]:
        """How the stages are cut into jobs."""
        stages = self.runs[0].spec["stages"]
        size = len(stages) if stages_per_job == "all" else int(stages_per_job)
        cut = [stages[start : start + size] for start in range(0, len(stages), size)]
        return [
            Block(
                tuple(stage["stage"] for stage in part),
                tuple(sorted({stage["parent"] for stage in part} - {None, *(stage["stage"] for stage in part)})),
            )
            for part in cut
        ]


def _require_short(units: str, n_runs: int) -> None:
    """Linux takes no argument above 128 KiB, and the shell's whole command line is one."""
    if len(units) > LONGEST_ARGUMENT:
        raise StudyError(
            "a job has more runs than its command line can name",
            where="execution.runs_per_job",
            expected=f"units of at most {LONGEST_ARGUMENT} characters as JSON in one job",
            got=f"{len(units)} characters for {n_runs} runs",
            next=f"write at most {n_runs * LONGEST_ARGUMENT // len(units)}",
        )


class Grid:
    """All runs of a locked plan.

    Args:
        plan: the content of the lock.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Runs by id, `METHOD/UNIT`.

        Raises:
            LockError: the program makes another specification of a locked run than the lock records.
        """
        units = {unit["unit"]: unit for unit in self.plan["units"]}
        shared = {key: shared_spec(self.plan, key) for key in self.plan["methods"]}
        specs = {run["run"]: complete_spec(shared[run["method"]], units[run["unit"]]) for run in self.plan["runs"]}
        for run in self.plan["runs"]:
            if hash_json(specs[run["run"]]) != run["spec_hash"]:
                raise LockError(
                    "this version of the program would run something else than was locked",
                    where=f"the lock of {self.plan['study']['study']}, run {run['run']}",
                    expected=f"specification {run['spec_hash']}",
                    got=f"specification {hash_json(specs[run['run']])}",
                    next="use the version of the program with which the study was locked, or lock it anew",
                )
        return {
            run["run"]: Run(run["run"], run["method"], run["unit"], specs[run["run"]], run["spec_hash"])
            for run in self.plan["runs"]
        }

    @property
    def methods(self) -> list[str]:
        """Keys of all methods and references."""
        return list(self.plan["methods"])

    def units(self, method: str) -> list[str]:
        """Units on which a method runs."""
        return [run.unit for run in self.runs.values() if run.method == method]

    def shared(self, method: str) -> str:
        """What all runs of a method are told, in canonical JSON."""
        return canonical_json(shared_spec(self.plan, method)).decode()

    def recording(self, method: str) -> Recording:
        """What runs of a method record beside their steps; a reference records nothing."""
        study = self.plan["study"]
        if self.plan["methods"][method]["role"] == "reference":
            return NOTHING
        return {"probes": study["probes"], "prequential": study["prequential"]}

    def recorded_tables(self, method: str) -> list[str]:
        """Paths of what is collected of a run beside its steps, with `{run}`."""
        return [f"runs/{{run}}/{name}.parquet" for name in tables_of(self.recording(method))]

    def batches(self, runs_per_job: int) -> list[Batch]:
        """How the runs are cut into jobs: those of one method, in the order of the plan, so many at a time."""
        units = {unit["unit"]: unit for unit in self.plan["units"]}
        made = []
        for method in self.methods:
            runs = [run for run in self.runs.values() if run.method == method]
            for number, start in enumerate(range(0, len(runs), runs_per_job)):
                part = tuple(runs[start : start + runs_per_job])
                told = canonical_json([units[run.unit] for run in part]).decode()
                _require_short(told, len(part))
                made.append(Batch(method, number, part, told))
        return made

    def references(self, batch: Batch) -> dict[str, dict[str, str]]:
        """Reference runs of each run of a batch; none of a batch of references."""
        return {run.run: self.references_of(run) for run in batch.runs if run.method not in REFERENCES}

    def reference_runs(self, batch: Batch) -> list[str]:
        """All reference runs of a batch, each once."""
        return sorted({run for references in self.references(batch).values() for run in references.values()})

    def references_of(self, run: Run) -> dict[str, str]:
        """Reference runs of a run, by name: those of its own unit, else of its seed. A reference has none."""
        if run.method in REFERENCES:
            return {}
        candidates = [(name, f"{name}/{u}") for u in (run.unit.split("-")[0], run.unit) for name in REFERENCES]
        return {name: run for name, run in candidates if run in self.runs}

    def schedule(self, method: str) -> str:
        """Which tasks each stage of the method trains on (`plan.schedule`)."""
        return self.plan["methods"][method]["schedule"]

    @property
    def protocols(self) -> list[str]:
        """The protocols by which predictions are read."""
        return sorted(read_as(self.plan["study"]["protocol"]))

    @property
    def boundaries(self) -> str:
        """Whether the boundaries of tasks are `told` to methods, or `hidden` from them."""
        return self.plan["study"]["boundaries"]

    @property
    def benchmark(self) -> str:
        """What the preparation of the data is told, in canonical JSON."""
        benchmark = self.plan["study"]["benchmark"]
        told = {"name": benchmark["name"], "seed": benchmark["seed"], **self.plan["benchmark"]}
        return canonical_json(told).decode()

    @property
    def analysis(self) -> str:
        """The analysis plan in canonical JSON."""
        return canonical_json(self.plan["study"]["analysis"]).decode()

    def run_files(self) -> list[str]:
        """Every declared file of every run."""
        records = [f"runs/{run.run}/stage-{stage}.json" for run in self.runs.values() for stage in run.stage_numbers]
        return records + [
            path.format(run=run.run)
            for run in self.runs.values()
            for path in (*FILES_OF_A_RUN, *self.recorded_tables(run.method))
        ]

    def modules(self, method: str) -> list[str]:
        """What a run of the method finds by name: its parts and the model."""
        parts = self.plan["methods"][method]["method"].split("+")
        return [
            *(f"palimpsest.methods.{part}" for part in parts),
            f"palimpsest.models.{self.plan['study']['model']['name']}",
        ]

    def data_modules(self) -> list[str]:
        """What the preparation of the data finds by name: the benchmark and its sources."""
        return [
            f"palimpsest.benchmarks.{self.plan['study']['benchmark']['name']}",
            *(f"palimpsest.data.sources.{source}" for source in self.plan["benchmark"]["sources"]),
        ]

    def programs(self) -> dict[str, str]:
        """The program of every rule in canonical JSON, by its name below `plan/code/`."""
        found = {}
        for method in self.methods:
            found[method] = code.program("palimpsest.cli.stages.train", self.modules(method))
            found[f"evaluate/{method}"] = code.program("palimpsest.cli.stages.evaluate", self.modules(method))
        found_by_name = {"data": self.data_modules}
        found_by_name |= dict.fromkeys(("metrics", "statistics", "report"), METRICS.modules)
        for rule in RULES_OF_THE_STUDY:
            modules = found_by_name[rule]() if rule in found_by_name else []
            found[f"rules/{rule}"] = code.program(f"palimpsest.cli.stages.{rule}", modules)
        return {name: canonical_json(program).decode() for name, program in found.items()}
