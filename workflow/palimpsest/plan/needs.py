"""Whether a study records what its comparisons are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palimpsest.plan.probing import probed_batches
from palimpsest.plan.study import Comparison, Probes, Study


def why_not_recorded(study: Study, n_train: Mapping[str, int], comparison: Comparison, metric: dict[str, Any]) -> str:
    """Why a metric of what runs record would be null in every run; empty where it would not.

    Args:
        study: the study.
        n_train: training samples of each task.
        comparison: its protocol and index say which value of the metric is compared.
        metric: what the metric says of itself (`plan.lock.Describe`).
    """
    inputs = set(metric["inputs"])
    if inputs & {"stream_correct", "stream_total"}:
        if not study.prequential:
            return "needs the stream: write `prequential: true`"
        if comparison.protocol not in (None, study.protocol):
            return f"the stream is scored under the study's own protocol, {study.protocol}, alone"
    if not inputs & {"batches", "after_batches", "probe_peak", "probe_end"}:
        return ""
    probes = study.probes
    if probes is None:
        return "needs probes: write a section `probes`"
    own_end = probes.split != "test" or probes.samples is not None
    if "probe_end" in inputs and own_end and probes.tasks == "current":
        return "the evaluation at the end is on all test samples: write `probes.tasks: all` for an end on those probed"
    if comparison.index is None:
        return ""
    return _why_not_probed(probes, _shortest(study, n_train), comparison.index, metric["index"], "batches" in inputs)


def _shortest(study: Study, n_train: Mapping[str, int]) -> tuple[int, str]:
    """Mini-batches of the task that has the fewest, and the task."""
    training = study.training
    return min((training.epochs * -(-n // training.batch_size), task) for task, n in n_train.items())


def _why_not_probed(probes: Probes, shortest: tuple[int, str], index: int, kind: str, whole_grid: bool) -> str:
    n_batches, task = shortest
    if index > n_batches:
        return f"task {task} has only {n_batches} mini-batches, all epochs together"
    needed = range(index + 1) if kind == "beta" else [index]
    lacking = sorted(set(needed) - set(probed_batches(probes.model_dump(), n_batches)))
    if lacking:
        return f"no probe after {lacking[0]} mini-batches: probes.first_batches is {probes.first_batches}"
    if whole_grid and kind == "b" and probes.held_out_every:
        return "probes.held_out_every probes each stage at other mini-batches: the curve would have gaps"
    return ""
