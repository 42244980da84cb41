"""A tiny benchmark and the training of runs on it: six classes of 4 × 4 pixels, two for each of three tasks."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.core.artifact import Job
from palimpsest.core.attempts import Notes
from palimpsest.core.hashing import hash_json
from palimpsest.core.streams import generator
from palimpsest.data.samples import Samples
from palimpsest.data.write import write_samples
from palimpsest.plan.probing import NOTHING, Recording
from palimpsest.plan.schedule import stages
from palimpsest.plan.study import Probes
from palimpsest.training.machine import kind_of_machine

TASKS = {"t1": [0, 1], "t2": [2, 3], "t3": [4, 5]}
SHAPE, N_OUTPUTS = (4, 4), 6
FACTS = {"shape": list(SHAPE), "n_outputs": N_OUTPUTS, "sample_bytes": 16, "label_bytes": 1, "label_tells_task": True}
CODE = "c" * 64
HERE = kind_of_machine(1)


def new_study(folder: Path, per_class: dict[str, int] | None = None, n_test: int = 5, n_validation: int = 0) -> Path:
    """Write the samples of the tiny benchmark.

    Args:
        folder: the study's folder.
        per_class: training samples of each class of a task; 11 where it is left out.
        n_test, n_validation: test and validation samples of each class.
    """
    draws = generator("tests", "tiny")
    counts = {"validation": n_validation, "test": n_test}
    rows = [
        (task, label, split)
        for task, labels in TASKS.items()
        for label in labels
        for split, count in {"train": (per_class or {}).get(task, 11), **counts}.items()
        for _ in range(count)
    ]
    patterns = draws.integers(0, 200, (N_OUTPUTS, *SHAPE))
    labels = np.array([label for _, label, _ in rows], dtype=np.int64)
    inputs = (patterns[labels] + draws.integers(0, 56, (len(rows), *SHAPE))).astype(np.uint8)
    samples = Samples(
        inputs=inputs,
        input=np.arange(len(rows)),
        dataset=["tiny"] * len(rows),
        split=[split for _, _, split in rows],
        sample=np.arange(len(rows), dtype=np.int64),
        label=labels,
        task=[task for task, _, _ in rows],
        sources=(),
    )
    write_samples(Job(folder, "data", CODE, "e" * 64), samples)
    return folder


def spec_of(
    method: str = "finetune",
    hyperparameters: dict[str, Any] | None = None,
    *,
    order: Sequence[str] = ("t1", "t2", "t3"),
    seed: int = 0,
    stage_schedule: str = "sequential",
    hidden: Sequence[int] = (8,),
    mask: str = "all",
    protocol: str = "class_incremental",
    head: str = "shared",
    **training: Any,
) -> dict[str, Any]:
    """The specification of a run on the tiny benchmark, with `training` over the usual section."""
    section = {
        "optimizer": "sgd",
        "learning_rate": 0.1,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "schedule": "constant",
        "reset_optimizer": True,
        "batch_size": 7,
        "epochs": 2,
    }
    return {
        "benchmark": {"name": "tiny", "seed": 0, "options": {}},
        "tasks": TASKS,
        "inputs": FACTS,
        "protocol": protocol,
        "training_mask": mask,
        "evaluation_mask": mask,
        "model": {"name": "mlp", "options": {"hidden": list(hidden)}, "head": head, "reset_new_outputs": False},
        "training": section | training,
        "numerics": {"threads": 1, "other_machines": "refuse", "evaluation_batch_size": 8},
        "method": method,
        "hyperparameters": hyperparameters or {},
        "seed": seed,
        "order": list(order),
        "stages": stages(stage_schedule, order, "per_stage"),
    }


def fresh_model(spec: dict[str, Any], stage: int = -1) -> Any:
    """The network with which a stage of a run would begin, were it the first."""
    from palimpsest.methods._method import load_method
    from palimpsest.training.learner import network_of

    return network_of(spec, spec["stages"][stage], load_method(spec["method"], spec["hyperparameters"], ""))


def recording_of(prequential: bool = False, **section: Any) -> Recording:
    """What a study records whose section `probes` has these fields; no probes where it has none."""
    return {"probes": Probes(**section).model_dump() if section else None, "prequential": prequential}


class Script:
    """Answers by the number of the step: what is to be done after some of them."""

    def __init__(self, **answers: int) -> None:
        self.steps = {number: answer for answer, number in answers.items()}
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        answer = self.steps.get(self.asked, "go")
        if answer == "die":
            raise KeyboardInterrupt
        return answer


class Observed:
    """Notes which stages were trained, as `train_stages` tells its observer."""

    def __init__(self) -> None:
        self.stages: list[int] = []

    @contextmanager
    def __call__(self, stage: int) -> Iterator[Notes]:
        self.stages.append(stage)
        yield Notes()


def train(
    study: Path,
    spec: dict[str, Any],
    run: str = "m/s0-o0",
    numbers: Sequence[int] | None = None,
    code: str = CODE,
    ask: Callable[[], str] = lambda: "go",
    say: Callable[[str], None] = lambda line: None,
    recording: Recording = NOTHING,
    machine: dict[str, Any] = HERE,
) -> list[int]:
    """Bring stages of a run to their records, all at once; returns those that were really trained."""
    from palimpsest.training.stages import train_stages

    job = Job(study, "train", code, "e" * 64, spec_hash=hash_json(spec), parameters={"run": run})
    observed = Observed()
    wanted = list(numbers) if numbers is not None else [stage["stage"] for stage in spec["stages"]]
    train_stages(job, run, spec, wanted, recording, machine, observed, ask, say)
    return observed.stages


def evaluate(study: Path, spec: dict[str, Any], run: str = "m/s0-o0") -> None:
    """Evaluate every checkpoint of a run."""
    from palimpsest.evaluation.evaluate import evaluate_run

    evaluate_run(Job(study, "evaluate", CODE, "e" * 64, spec_hash=hash_json(spec)), run, spec)


def collect(study: Path, spec: dict[str, Any], run: str = "m/s0-o0", recording: Recording = NOTHING) -> None:
    """Put together what the stages of a run recorded."""
    from palimpsest.training.collect import collect_run

    job = Job(study, "collect", CODE, "e" * 64, spec_hash=hash_json(spec))
    collect_run(job, run, [stage["stage"] for stage in spec["stages"]], recording)


def checkpoint(study: Path, stage: int, run: str = "m/s0-o0") -> dict[str, Any]:
    """Content of a stage's checkpoint."""
    from palimpsest.training.checkpoint import decode

    return decode(study / "runs" / run / f"stage-{stage}.safetensors")


def record(study: Path, stage: int, run: str = "m/s0-o0") -> dict[str, Any]:
    """The record of a stage."""
    return Job(study, "test", CODE, "e" * 64).read_json(f"runs/{run}/stage-{stage}.json")


def step_rows(study: Path, stage: int, run: str = "m/s0-o0") -> list[dict[str, Any]]:
    """Rows of the steps that a stage recorded."""
    return Job(study, "test", CODE, "e" * 64).read_table(f"runs/{run}/stage-{stage}.steps.parquet", "steps").to_pylist()


def files_of(study: Path, run: str = "m/s0-o0") -> dict[str, bytes]:
    """Every file of a run but its lock, by path."""
    folder = study / "runs" / run
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def leaves(state: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a nested state, with its path."""
    if isinstance(state, dict | list):
        for key, value in state.items() if isinstance(state, dict) else enumerate(state):
            yield from leaves(value, f"{path}/{key}")
    else:
        yield path, state


def same_tensors(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two mappings hold the same tensors under the same names, bit for bit."""
    if first.keys() != second.keys():
        return False
    return all(first[name].numpy().tobytes() == second[name].numpy().tobytes() for name in first)


def override(monkeypatch: Any, name: str, **hooks: Callable[..., Any]) -> None:
    """Give training a method whose hooks are replaced; `hooks` get the original hook as their first argument."""
    from palimpsest.methods import METHODS
    from palimpsest.methods._hooks import Hooks
    from palimpsest.methods._method import Method, load_method

    original = METHODS.load(name, "")
    changed = types.ModuleType(f"changed_{name}")
    changed.__dict__.update({key: value for key, value in vars(original).items() if not key.startswith("__")})
    for hook, function in hooks.items():
        before = getattr(original, hook, getattr(Hooks, hook))
        setattr(changed, hook, lambda *a, function=function, before=before: function(before, *a))

    def load(wanted: str, hyperparameters: dict[str, Any], where: str) -> Method:
        method = load_method(wanted, hyperparameters, where)
        parts = {part: changed if part == name else module for part, module in method.parts.items()}
        return Method(parts, method.hyperparameters)

    monkeypatch.setattr("palimpsest.training.stage.load_method", load)


def context_of(
    hyperparameters: Any = None,
    *,
    method: str = "finetune",
    hidden: Sequence[int] = (5,),
    stage: int = 1,
    samples: Any = None,
    order: Sequence[str] = ("t1", "t2", "t3"),
    head: str = "shared",
    **about: Any,
) -> Any:
    """A context on the tiny benchmark, with an untrained network; `about` replaces what it says.

    Args:
        hyperparameters: the method's own.
        method: name of the method, part of the key of its streams.
        hidden: widths of the network's layers.
        stage: position in the run.
        samples: training samples of the stage, a `Batch`; none if the hook asks for none.
        order: of the tasks.
        head: of the network.
    """
    from dataclasses import replace

    from palimpsest.methods._declaration import facts_of
    from palimpsest.methods._hooks import Context
    from palimpsest.models._network import new_network, task_positions
    from palimpsest.training.outputs import task_of_output

    spec = spec_of(method, hidden=hidden, order=order, head=head)
    positions = [task_positions(TASKS)[task] for task in order]
    n_samples = 0 if samples is None else len(samples)
    made = Context(
        model=new_network(spec, order[:stage]),
        hyperparameters=hyperparameters,
        facts=facts_of(FACTS, TASKS),
        stage=stage,
        task=order[stage - 1],
        tasks=(positions[stage - 1],),
        seen=tuple(positions[: stage - 1]),
        visit=1,
        key=(0, ",".join(order), method, method),
        mask=None,
        task_of_output=task_of_output(spec),
        n_samples=n_samples,
        samples=lambda indices: samples[torch_indices(indices)],
        initial=lambda: new_network(spec, order[:stage]).state_dict(),
        n_steps=24,
        epoch_steps=24,
        step=24 * stage,
        stage_step=24,
    )
    return replace(made, **about)


def torch_indices(indices: Any) -> Any:
    """Indices as torch takes them."""
    import torch

    return torch.as_tensor(np.asarray(indices))


def batch_of(inputs: Any, labels: Any, tasks: Any = None, first: bool = True) -> Any:
    """A batch of arrays or tensors; tasks are those of the labels on the tiny benchmark, unless they are given."""
    import torch

    from palimpsest.methods._hooks import Batch

    labels = torch.as_tensor(np.asarray(labels), dtype=torch.int64)
    tasks = labels // 2 if tasks is None else torch.as_tensor(np.asarray(tasks), dtype=torch.int64)
    inputs = torch.as_tensor(np.asarray(inputs), dtype=torch.uint8)
    return Batch(inputs, labels, tasks, torch.full((len(labels),), first))


class Recorder:
    """What a run of a method met: the weights before its first step, and each mini-batch."""

    def __init__(self, monkeypatch: Any, name: str) -> None:
        self.weights: dict[str, Any] = {}
        self.batches: list[tuple[str, int, bytes, bytes]] = []
        override(monkeypatch, name, init=self._init, after_step=self._after_step)

    def _init(self, before: Callable, context: Any) -> Any:
        self.weights = {key: value.clone() for key, value in context.model.state_dict().items()}
        return before(context)

    def _after_step(self, before: Callable, context: Any, state: Any, batch: Any, loss: Any) -> Any:
        inputs, labels = batch.inputs.numpy().tobytes(), batch.labels.numpy().tobytes()
        self.batches.append((context.task, context.visit, inputs, labels))
        return before(context, state, batch, loss)

    def of_task(self, task: str) -> list[tuple[str, int, bytes, bytes]]:
        """The mini-batches of one task."""
        return [batch for batch in self.batches if batch[0] == task]


def example(model: Any) -> dict[str, Any]:
    """Values for the required fields of options or hyperparameters: the first example that each declares."""
    values = {}
    for name, field in model.model_fields.items():
        inner = getattr(field.annotation, "model_fields", None)
        if field.is_required():
            assert inner is not None or field.examples, f"{model.__module__}: {name} declares no example"
            values[name] = example(field.annotation) if inner is not None else field.examples[0]
    return values


def run_of(method: str, **about: Any) -> dict[str, Any]:
    """The specification of a run of a method, or of a composition, with the hyperparameters that its file gives."""
    from palimpsest.methods import METHODS

    modules = {part: METHODS.load(part, "") for part in method.split("+")}
    parts = {part: example(module.Hyperparameters) for part, module in modules.items()}
    declared = next(iter(modules.values())).DECLARATION
    about.setdefault("stage_schedule", declared.schedule)
    if declared.needs_task_identity:
        about |= {"protocol": "task_incremental", "mask": "current", "head": "multi"}
    return spec_of(method, parts if len(parts) > 1 else parts[method], **about)
