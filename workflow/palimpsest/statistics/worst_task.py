"""The task that one method ruins although the averages hardly differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from palimpsest.statistics.paired import paired_t


@dataclass(frozen=True)
class WorstTask:
    """The task on which A falls behind B most: its name, the mean of A − B and its bounds; None where undefined."""

    task: str | None = None
    change: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None


def worst_task_change(
    differences: Mapping[str, np.ndarray], alpha: float, clusters: Mapping[str, Sequence[object]] | None = None
) -> WorstTask:
    """min over tasks of the mean over units of (A − B) final accuracy, in [−1, 1].

    The minimum is taken over means of one task, never over each run's own worst task: that would hide a task which
    one method ruins and the other keeps. The bounds are t bounds at α divided by the number of tasks (Bonferroni), so
    that they hold for whichever task turns out worst. Pairs with a NaN do not count; a task without any pair leaves
    the result undefined, for it might have been the worst.

    Args:
        differences: A − B by task, one value per unit, in the same order of units.
        alpha: the bounds of all tasks hold together at 1 − alpha.
        clusters: see `paired_t`.
    """
    if not differences or any(np.isnan(values).all() for values in differences.values()):
        return WorstTask()
    means = {task: float(np.nanmean(values)) for task, values in sorted(differences.items())}
    task = min(means, key=means.__getitem__)
    paired = ~np.isnan(differences[task])
    kept = {
        factor: [level for level, keep in zip(levels, paired, strict=True) if keep]
        for factor, levels in (clusters or {}).items()
    }
    test = paired_t(differences[task][paired], "two-sided", alpha / len(differences), clusters=kept)
    return WorstTask(task, means[task], test.ci_low, test.ci_high)
