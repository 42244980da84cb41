"""Curves over the samples that runs have seen."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from palimpsest.aggregate.curves import MOST_POINTS, Curve, held_out_curves, stream_curve, summarise_curves
from palimpsest.core.tables import TABLES


def test_the_stream_adds_up() -> None:
    """1 of 2, then 3 of 4: 50 % and then 4 of 6."""
    rows = {"stage": [1, 1], "batch": [1, 2], "samples_seen": [2, 6], "n_correct": [1, 3], "n_total": [2, 4]}
    curve = stream_curve(pa.table({**rows, "loss_sum": [1.0, 1.0]}, TABLES["prequential"].schema))
    assert (curve.seen.tolist(), curve.accuracy.tolist()) == ([2, 6], [0.5, pytest.approx(4 / 6)])


def probes(*rows: tuple) -> pa.Table:
    names = ("stage", "batch", "samples_seen", "task", "group", "n_correct", "n_total")
    found = [dict(zip(names, row, strict=True)) for row in rows]
    shared = {"split": "test", "protocol": "class_incremental", "loss_sum": 1.0}
    return pa.Table.from_pylist([{**row, **shared} for row in found], TABLES["probes"].schema)


def test_tasks_are_pooled_at_each_probe_and_the_later_of_two_counts() -> None:
    """Two tasks at 0 and 10 samples; at 10 a stage ends and the next begins, and its own probe counts."""
    table = probes(
        (1, 0, 0, "a", "all", 1, 4),
        (1, 0, 0, "b", "all", 2, 2),
        (1, 5, 10, "a", "all", 4, 4),
        (1, 5, 10, "b", "all", 0, 2),
        (2, 0, 10, "a", "all", 2, 4),
        (2, 0, 10, "b", "all", 1, 2),
        (2, 0, 10, "a", "old", 2, 4),
        (2, 0, 10, "b", "new", 1, 2),
    )
    found = {group: curve for _, group, curve in held_out_curves(table)}
    assert (found["all"].seen.tolist(), found["all"].accuracy.tolist()) == ([0, 10], [0.5, 0.5])
    assert (found["old"].seen.tolist(), found["new"].accuracy.tolist()) == ([10], [0.5])


def test_probes_of_one_task_make_no_curve() -> None:
    """What was measured on the current task alone says nothing of all."""
    assert list(held_out_curves(probes((1, 0, 0, "a", "all", 1, 4), (2, 0, 9, "b", "all", 1, 4)))) == []


def test_runs_are_averaged_as_far_as_they_came() -> None:
    """Between its points a curve stays; beyond its last one the run is not counted."""
    runs = [Curve(np.array([0, 10]), np.array([0.2, 0.4])), Curve(np.array([0, 5, 20]), np.array([0.4, 0.6, 0.8]))]
    columns = summarise_curves({("m", "p", "all"): runs})
    assert columns["samples_seen"] == [0, 5, 10, 20]
    assert columns["n"] == [2, 2, 2, 1]
    assert columns["mean"] == pytest.approx([0.3, 0.4, 0.5, 0.8])
    assert columns["sd"][:3] == pytest.approx([np.std([0.2, 0.4], ddof=1), np.std([0.2, 0.6], ddof=1), 0.1 * 2**0.5])
    assert columns["sd"][3] is None


def test_a_long_stream_is_thinned_and_keeps_its_ends() -> None:
    """No more points than a figure can show."""
    seen = np.arange(1, 5001)
    columns = summarise_curves({("m", None, "stream"): [Curve(seen, np.full(5000, 0.5))]})
    assert len(columns["n"]) == MOST_POINTS
    assert (columns["samples_seen"][0], columns["samples_seen"][-1]) == (1, 5000)
