"""What runs recorded while they trained: learning curves, the stream, and what it cost to look."""

from __future__ import annotations

import math
from typing import Any

from palimpsest.core.numbers import MISSING, count, is_missing, percent, points
from palimpsest.metrics._describe import describe
from palimpsest.report import figures
from palimpsest.report.figures import Drawing
from palimpsest.report.study import Row, Study

CURVE_METRICS = ("learning_curve_area", "learning_curve_gain")
FIGURES = (
    ("learning", "Learning curves", "accuracy on the newest task after b of its mini-batches, mean over the tasks"),
    ("stream", "The stream", "accuracy so far on samples at their first presentation, each predicted before training"),
    ("held-out-new", "New classes", "accuracy on held-out samples of the classes that are being learned"),
    ("held-out-old", "Old classes", "accuracy on held-out samples of the classes of earlier stages"),
    ("held-out-all", "All classes", "accuracy on held-out samples of all tasks, those to come included"),
)
# Of a normal distribution: the half width of a 95 % interval in standard errors.
TWO_SIDED_95 = 1.96


def recorded(study: Study) -> dict[str, Any] | None:
    """Content of the section; None where the plan records nothing beside the steps."""
    probes, prequential = study.plan.get("probes"), study.plan.get("prequential")
    if not (probes or prequential):
        return None
    beta = _beta(study) if probes else None
    return {
        "beta": beta,
        "figures": FIGURES,
        "learning": [] if beta is None else [_learning(study, name, beta) for name in study.names("method")],
        "sampling": sampling_error(_n_probed(study, probes)) if probes else None,
        "probes": probes,
        "prequential": [_prequential(study, name) for name in study.names("method")] if prequential else [],
        "costs": [_cost(row) for row in study.costs if row["method"] in study.names("method")],
    }


def drawings(study: Study) -> dict[str, Drawing]:
    """The figures of the section, by name: those for which something was recorded."""
    curves = {"stream": "stream", **{f"held-out-{group}": group for group in ("new", "old", "all")}}
    drawn = {
        name: figures.over_samples(study, curves[name], f"{title}: {caption}")
        if name in curves
        else figures.learning(study)
        for name, title, caption in FIGURES
    }
    return {name: drawing for name, drawing in drawn.items() if drawing is not None}


def sampling_error(n_samples: int) -> dict[str, str]:
    """How far an accuracy on n samples may be off by their choice alone, at an accuracy of one half, the worst case.

    The binomial standard error √(p (1 − p) / n), and 1.96 times it, the half width of a 95 % interval.

    >>> sampling_error(100)
    {'n': '100', 'standard_error': '5.0', 'half_width': '9.8'}
    """
    standard_error = math.sqrt(0.25 / n_samples)
    half_width = TWO_SIDED_95 * standard_error
    return {"n": count(n_samples), "standard_error": percent(standard_error), "half_width": percent(half_width)}


def _n_probed(study: Study, probes: Row) -> int:
    """Samples of a task that a probe is on; of the smallest task."""
    smallest = min(task[f"n_{probes['split']}"] for task in study.lock["tasks"].values())
    return min(probes["samples"] or smallest, smallest)


def _beta(study: Study) -> int | None:
    """The largest β up to which the plan probes each mini-batch and some method has a learning curve area."""
    rows = [row for name in study.names("method") for row in study.curve(name, study.protocol, CURVE_METRICS[0])]
    return max((row["index"] for row in rows), default=None)


def _learning(study: Study, method: str, beta: int) -> dict[str, Any]:
    """Z_0, Z_β, LCA_β and G_β of a method, as printed."""
    wanted = [("b_shot", 0), ("b_shot", beta), *((metric, beta) for metric in CURVE_METRICS)]
    rows = [_at(study, method, metric, index) for metric, index in wanted]
    return {"method": method, "cells": [_text(row) for row in rows], "n": rows[0]["n"] if rows[0] else 0}


def _at(study: Study, method: str, metric: str, index: int) -> Row | None:
    return next((row for row in study.curve(method, study.protocol, metric) if row["index"] == index), None)


def _prequential(study: Study, method: str) -> dict[str, Any]:
    row = study.scalar(method, study.protocol, "prequential_accuracy")
    return {"method": method, "cell": _text(row), "n": row["n"] if row else 0}


def _text(row: Row | None) -> str:
    """Mean ± SD of a summary in percent, or in percentage points for a difference."""
    if row is None or is_missing(row["mean"]):
        return MISSING
    mean = percent(row["mean"]) if describe(row["metric"]).is_accuracy else points(row["mean"])
    return mean if is_missing(row["sd"]) else f"{mean} ± {percent(row['sd'])}"


def _cost(row: Row) -> dict[str, str]:
    share = row["flops_probing_mean"] / row["flops_mean"] if row["flops_mean"] else None
    return {"method": row["method"], "flops": count(row["flops_probing_mean"]), "share": percent(share)}
