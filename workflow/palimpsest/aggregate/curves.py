"""Accuracy over the samples that runs have seen: of the stream as it came, and on held-out samples of all tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_POINTS = 200
GROUPS = ("all", "old", "new")


@dataclass(frozen=True)
class Curve:
    """One run's accuracy; between two points it is that of the earlier one.

    Args:
        seen: samples seen, ascending, `[point]`.
        accuracy: a fraction, `[point]`.
    """

    seen: np.ndarray
    accuracy: np.ndarray

    def at(self, seen: np.ndarray) -> np.ndarray:
        """Accuracy at other numbers of samples; NaN before the first point and after the last."""
        inside = (seen >= self.seen[0]) & (seen <= self.seen[-1])
        return np.where(inside, self.accuracy[np.searchsorted(self.seen, seen, side="right") - 1], np.nan)


def stream_curve(prequential: pa.Table) -> Curve | None:
    """Accuracy over the stream so far, Σ n_correct / Σ n_total up to each mini-batch; none for a run without one."""
    rows = prequential.sort_by("samples_seen")
    if not len(rows):
        return None
    correct, total = (rows[name].to_numpy().cumsum() for name in ("n_correct", "n_total"))
    return Curve(rows["samples_seen"].to_numpy(), correct / total)


def held_out_curves(probes: pa.Table) -> Iterator[tuple[str, str, Curve]]:
    """Protocol, group and curve: at each probe Σ n_correct / Σ n_total over the tasks; none where one task was probed.

    The group `old` are classes of earlier stages, `new` those that come with the stage. At the end of a stage and the
    start of the next one, the later probe counts.
    """
    keys = ["protocol", "group", "stage", "batch", "samples_seen"]
    sums = [("n_correct", "sum"), ("n_total", "sum"), ("task", "count")]
    at_once = probes.group_by(keys, use_threads=False).aggregate(sums).sort_by([(key, "ascending") for key in keys])
    if not len(at_once) or pc.max(at_once["task_count"]).as_py() < 2:
        return
    for protocol in sorted(set(at_once["protocol"].to_pylist())):
        for group in GROUPS:
            chosen = pc.and_(pc.equal(at_once["protocol"], protocol), pc.equal(at_once["group"], group))
            rows = at_once.filter(chosen)
            if len(rows):
                accuracy = rows["n_correct_sum"].to_numpy() / rows["n_total_sum"].to_numpy()
                seen = rows["samples_seen"].to_numpy()
                last = np.append(np.diff(seen) > 0, True)
                yield protocol, group, Curve(seen[last], accuracy[last])


def summarise_curves(curves: Mapping[tuple[str, str | None, str], Sequence[Curve]]) -> dict[str, list[Any]]:
    """Columns of the table `curves`: mean and sample SD (divisor n − 1) over the runs of a method that came so far.

    Args:
        curves: of the runs, by method, protocol (null for the stream) and name: `stream`, or a group of `GROUPS`.
    """
    rows = [
        (*key, int(seen), len(values), float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None)
        for key, of_runs in curves.items()
        for seen, values in _over_runs(of_runs)
    ]
    names = ("method", "protocol", "curve", "samples_seen", "n", "mean", "sd")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _over_runs(curves: Sequence[Curve]) -> Iterator[tuple[int, np.ndarray]]:
    """Numbers of samples, at most `MOST_POINTS` of those at which some run was measured, and the values there."""
    points = np.unique(np.concatenate([curve.seen for curve in curves]))
    chosen = np.unique(np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).round().astype(int))
    values = np.array([curve.at(points[chosen]) for curve in curves])
    for at, seen in enumerate(points[chosen]):
        known = np.sort(values[~np.isnan(values[:, at]), at])
        if len(known):
            yield seen, known
