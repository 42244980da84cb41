"""A small study file, to be changed by a test: three tasks, two seeds, two orders."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from palimpsest.cli.describe import Catalogs
from palimpsest.plan.lock import make_lock
from palimpsest.plan.study import read_study

CONTENT: dict[str, Any] = {
    "study": "small",
    "title": "A small study",
    "benchmark": {
        "name": "split",
        "seed": 0,
        "options": {
            "dataset": "mnist5k",
            "n_tasks": 3,
            "classes_per_task": 2,
            "samples_per_class": {"train": 10, "validation": 2, "test": 4},
        },
    },
    "protocol": "class_incremental",
    "training_mask": "all",
    "evaluation_mask": "all",
    "model": {"name": "mlp", "options": {"hidden": [8]}},
    "training": {"optimizer": "sgd", "learning_rate": 0.05, "batch_size": 10, "epochs": 1},
    "design": {"crossing": "paired", "seeds": [0, 1], "orders": {"kind": "balanced", "count": 2}},
    "methods": {
        "finetune": {},
        "replay": {"hyperparameters": {"buffer_bytes": 7850, "replayed": 5}},
    },
    "analysis": {"primary": {"name": "p", "a": "replay", "b": "finetune", "metric": "average_accuracy"}},
}

Change = Callable[[dict[str, Any]], Any]


def write(folder: Path, change: Change | None = None) -> Path:
    """Write the study, after `change` edited its content, as `small.yaml`."""
    content = copy.deepcopy(CONTENT)
    if change is not None:
        change(content)
    path = folder / "small.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def plan_of(folder: Path, change: Change | None = None) -> dict[str, Any]:
    """The plan that the study resolves to."""
    study, file = read_study(write(folder, change))
    return make_lock(study, file, Catalogs())
