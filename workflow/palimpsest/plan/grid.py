"""The grid that a lock expands into: runs, what each is told, and how their stages are cut into jobs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from palimpsest.core import code
from palimpsest.core.catalog import Catalog
from palimpsest.core.hashing import canonical_json, hash_json
from palimpsest.plan.schedule import stages

METRICS = Catalog("palimpsest.metrics", "metric")
REFERENCES = ("random_init", "isolated", "joint")
RULES_OF_THE_STUDY = ("plan", "data", "collect", "metrics", "ledger", "aggregate", "statistics", "audit", "report")
Spec = dict[str, Any]


def spec_of(plan: dict[str, Any], key: str, unit: dict[str, Any]) -> Spec:
    """All that fixes the bytes of a run, and nothing else: training and evaluation are told only this."""
    study, method = plan["study"], plan["methods"][key]
    return {
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
        "model": {"name": study["model"]["name"], "options": plan["model"]["options"]},
        "training": study["training"],
        "numerics": study["numerics"],
        "method": method["method"],
        "hyperparameters": method["hyperparameters"],
        "seed": unit["seed"],
        "order": unit["tasks"],
        "stages": stages(method["schedule"], unit["tasks"], study["references"]["joint"]),
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
    """Consecutive stages that one job trains."""

    stages: tuple[int, ...]

    @property
    def name(self) -> str:
        """`stage_3`, or `stage_1_to_5`."""
        first, last = self.stages[0], self.stages[-1]
        return f"stage_{first}" if first == last else f"stage_{first}_to_{last}"


class Grid:
    """All runs of a locked plan.

    Args:
        plan: the content of the lock.
    """

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan

    @cached_property
    def runs(self) -> dict[str, Run]:
        """Runs by id, `METHOD/UNIT`."""
        units = {unit["unit"]: unit for unit in self.plan["units"]}
        specs = {run["run"]: spec_of(self.plan, run["method"], units[run["unit"]]) for run in self.plan["runs"]}
        return {
            run["run"]: Run(run["run"], run["method"], run["unit"], specs[run["run"]], hash_json(specs[run["run"]]))
            for run in self.plan["runs"]
        }

    @property
    def methods(self) -> list[str]:
        """Keys of all methods and references."""
        return list(self.plan["methods"])

    def units(self, method: str) -> list[str]:
        """Units on which a method runs."""
        return [run.unit for run in self.runs.values() if run.method == method]

    def run(self, wildcards: Any) -> Run:
        """The run that the wildcards `method` and `unit` name."""
        return self.runs[f"{wildcards.method}/{wildcards.unit}"]

    def spec(self, wildcards: Any) -> str:
        """The run's specification in canonical JSON, as its jobs get it."""
        return canonical_json(self.run(wildcards).spec).decode()

    def references(self, wildcards: Any) -> dict[str, str]:
        """Reference runs by name: those of the run's own unit, else of its seed. A reference itself has none."""
        if wildcards.method in REFERENCES:
            return {}
        units = (wildcards.unit, wildcards.unit.split("-")[0])
        candidates = [(name, f"{name}/{unit}") for unit in reversed(units) for name in REFERENCES]
        return {name: run for name, run in candidates if run in self.runs}

    def schedule(self, method: str) -> str:
        """Which tasks each stage of the method trains on (`plan.schedule`)."""
        return self.plan["methods"][method]["schedule"]

    @property
    def protocols(self) -> list[str]:
        """The protocols by which predictions are read: the study's own, and the choice within the task."""
        return sorted({self.plan["study"]["protocol"], "task_incremental"})

    def blocks(self, stages_per_job: int | str) -> dict[Block, list[str]]:
        """How the stages are cut into jobs: each block with the methods that have it."""
        found: dict[Block, list[str]] = {}
        for method in self.methods:
            numbers = next(run.stage_numbers for run in self.runs.values() if run.method == method)
            size = len(numbers) if stages_per_job == "all" else int(stages_per_job)
            for start in range(0, len(numbers), size):
                found.setdefault(Block(tuple(numbers[start : start + size])), []).append(method)
        return found

    def parents(self, wildcards: Any, block: Block) -> list[int]:
        """The stages outside of a block from whose checkpoints its stages start."""
        found = {stage["parent"] for stage in self.run(wildcards).spec["stages"] if stage["stage"] in block.stages}
        return sorted(found - {None, *block.stages})

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

    def modules(self, method: str) -> list[str]:
        """What a run of the method finds by name: its parts, the model and the benchmark."""
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
        found_by_name = {"data": self.data_modules, "metrics": METRICS.modules, "statistics": METRICS.modules}
        for rule in RULES_OF_THE_STUDY:
            modules = found_by_name[rule]() if rule in found_by_name else []
            found[f"rules/{rule}"] = code.program(f"palimpsest.cli.stages.{rule}", modules)
        return {name: canonical_json(program).decode() for name, program in found.items()}
