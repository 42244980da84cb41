"""What the report says of the data: samples per class, duplicates, and the contamination of the test samples."""

from __future__ import annotations

from collections import Counter
from typing import Any

from palimpsest.core.artifact import Job
from palimpsest.core.manifest import CLASSES, DUPLICATES, SPLITS, TIERS, TIERS_TABLE


def read_manifest(job: Job) -> dict[str, Any]:
    """Samples per class by task (a text for each split), the duplicates that there are, test samples by tier."""
    per_class: dict[str, dict[str, list[int]]] = {}
    for row in job.read_table(CLASSES, "classes").to_pylist():
        per_class.setdefault(row["task"], {split: [] for split in SPLITS})[row["split"]].append(row["n"])
    duplicates = job.read_table(DUPLICATES, "duplicates").to_pylist()
    tiers = Counter(job.read_table(TIERS_TABLE, "tiers")["tier"].to_pylist())
    return {
        "per_class": {task: [_range(of_task[split]) for split in SPLITS] for task, of_task in per_class.items()},
        "duplicates": [row for row in duplicates if row["n"]],
        "tiers": [{"tier": tier, "rule": rule, "n": tiers[tier]} for tier, rule in TIERS.items()],
    }


def _range(counts: list[int]) -> str:
    """The same number of each class, or the fewest and the most.

    >>> _range([90, 90]), _range([3, 9]), _range([])
    ('90', '3–9', 'none')
    """
    if not counts:
        return "none"
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"
