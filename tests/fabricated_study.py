"""A small study whose numbers are FABRICATED: plausible values from a seeded stream, for tests of the report alone."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.core.artifact import Job
from palimpsest.core.streams import generator
from palimpsest.core.tables import TABLES
from palimpsest.plan.marks import no_marks
from palimpsest.statistics.claims import Plasticity, judge_claim
from palimpsest.statistics.decisions import candidates, decision_rows, quantities, read_claims, read_gates
from palimpsest.statistics.evidence import evidence_level
from palimpsest.statistics.gates import judge_gate
from palimpsest.statistics.orders import FinalAccuracy, order_rows
from palimpsest.statistics.plan import read_analysis

N_TASKS, N_UNITS = 5, 5
TASKS = [f"t{task}" for task in range(1, N_TASKS + 1)]
PROTOCOLS = ("class_incremental", "task_incremental")
FAILURE = "numerical: the loss is nan at step 141"
NULL_REASON = "needs cells that a joint run does not have"
FINAL = {"replay": 0.81, "ewc": 0.33, "finetune": 0.19, "joint": 0.94, "isolated": 0.98, "random_init": 0.1}

PROBES = {"first_batches": 10, "log": False, "every": None, "held_out_every": 100, "split": "test"}

Rows = list[dict[str, Any]]


def fabricate(study: Path, names: dict[str, str] | None = None) -> Job:
    """Write everything that the report reads, and return a job that may read it.

    Args:
        study: the folder to write to.
        names: other names for some of the methods (`{"ewc": "<script>"}`).
    """
    naming = {name: (names or {}).get(name, name) for name in FINAL}
    job = Job(study, "fabricated", code="c" * 64, environment="e" * 64)
    job.write_json("plan/lock.json", lock(naming), "lock")
    summary = [row for name in FINAL for protocol in PROTOCOLS for row in summaries(name, naming[name], protocol)]
    _write(job, "aggregate/summary.parquet", "summary", summary)
    _write(job, "aggregate/matrix.parquet", "matrix_summary", [r for name in FINAL for r in matrix(name, naming[name])])
    _write(job, "aggregate/metrics.parquet", "metrics", [null_metric(naming["joint"], unit) for unit in range(N_UNITS)])
    ewc = naming["ewc"]
    failure = {"run": f"{ewc}/s4-o4", "method": ewc, "unit": "s4-o4", "stage": 2, "step": 141, "reason": FAILURE}
    _write(job, "aggregate/failures.parquet", "failures", [failure])
    _write(job, "aggregate/costs.parquet", "costs", [costs(name, naming[name]) for name in sorted(FINAL)])
    _write(job, "aggregate/curves.parquet", "curves", [row for name in FINAL for row in curves(name, naming[name])])
    _write(job, "statistics/comparisons.parquet", "comparisons", comparisons(naming))
    _write(job, "statistics/orders.parquet", "orders", orders(naming))
    _write(job, "statistics/decisions.parquet", "decisions", decisions(naming))
    sample = {"dataset": "d", "split": "test", "sample": 0, "label": 0, "task": "t1", "input": 0}
    sample |= {"sha256": "0", "duplicate_of": 0}
    about = {
        "sources": {
            "mnist5k": {
                "source": "fabricated, no data",
                "licence": "CC BY-SA 3.0",
                "reference": "LeCun et al. 1998",
                "raw_files": {"mnist_5k.csv.gz": "ab" * 32},
            }
        },
        "duplicates": {"within_splits": 3, "across_splits": 0},
        "split_sha256": "cd" * 32,
    }
    job.write_table("data/samples.parquet", "samples", {key: [value] for key, value in sample.items()}, **about)
    job.write_table("data/manifest/classes.parquet", "classes", _columns("classes", class_counts()))
    leak = {"kind": "near", "split": "test", "other_split": "train", "tasks": "same", "n": 2}
    job.write_table("data/manifest/duplicates.parquet", "duplicates", _columns("duplicates", [leak]))
    tiers = [{"sample": n, "task": "t1", "tier": t, "because_of": 9} for n, t in enumerate(["strong", "weak"])]
    job.write_table("data/manifest/tiers.parquet", "tiers", _columns("tiers", tiers))
    job.write_json("audit/root.json", {"root": "ef" * 32, "shards": {}}, "root")
    for name in ("replay", "ewc"):
        job.write_telemetry(
            f"telemetry/{naming[name]}/s0-o0.parquet", "telemetry", _columns("telemetry", telemetry(naming[name]))
        )
    return Job(study, "report", code="c" * 64, environment="e" * 64)


def class_counts() -> Rows:
    """Of each of two classes a task's training samples differ by one; of test samples there are as many."""
    return [
        {"task": task, "split": split, "label": label, "n": n + label * (split == "train")}
        for task in TASKS
        for split, n in (("train", 90), ("test", 50))
        for label in (0, 1)
    ]


def telemetry(method: str) -> Rows:
    """Two attempts to train one stage: the first one ran out of disk, the second one went on from step 40."""
    about = {"run": f"{method}/s0-o0", "stage": 1, "peak_memory_bytes": 400 * 2**20, "host": "a-host"}
    times = {"started": "2026-01-01T10:00:00+00:00", "ended": "2026-01-01T10:01:30+00:00", "wall_clock_s": 90.0}
    times["probing_s"] = 4.5
    full = {"attempt": 1, "outcome": "failed: OSError: [Errno 28] <b>No space</b> left", "resumed_at": None}
    return [{**about, **times, **full}, {**about, **times, "attempt": 2, "outcome": "finished", "resumed_at": 40}]


def lock(naming: dict[str, str]) -> dict[str, Any]:
    replay, ewc, finetune = (naming[name] for name in ("replay", "ewc", "finetune"))
    orders = {f"o{o}": TASKS[o:] + TASKS[:o] for o in range(N_UNITS)}
    units = [{"unit": f"s{u}-o{u}", "seed": u, "order_id": f"o{u}", "tasks": orders[f"o{u}"]} for u in range(N_UNITS)]
    return {
        "format": 1,
        "study": {
            "study": "fabricated",
            "title": "Does rehearsal keep digits apart?",
            "demonstration": True,
            "description": "A demonstration with fabricated numbers: nothing here was measured.",
            "benchmark": {"name": "split_mnist5k", "seed": 7, "options": {"classes_per_task": 2}},
            "protocol": "class_incremental",
            "training_mask": "all",
            "probes": {**PROBES, "tasks": "all", "samples": 50},
            "prequential": True,
            "boundaries": "told",
            "evaluation_mask": "all",
            "model": {"name": "mlp", "options": {"hidden": [100, 100]}},
            "training": {"optimizer": "sgd", "learning_rate": 0.05, "momentum": 0.0, "batch_size": 32, "epochs": 3},
            "numerics": {"threads": 1, "dtype": "float32", "cpu_capability": "avx2"},
            "design": {"crossing": "paired", "seeds": [0, 1, 2, 3, 4], "orders": {"kind": "balanced", "count": 5}},
            "methods": {},
            "references": {},
            "analysis": {
                "alpha": 0.05,
                "correction": "holm",
                "test": "paired_t",
                "equivalence_margin": 0.02,
                "failed_runs": "complete_pairs_with_bounds",
                "primary": hypothesis("rehearsal", replay, finetune, "average_accuracy"),
                "secondary": [
                    hypothesis("regularisation", ewc, finetune, "average_accuracy"),
                    hypothesis("forgetting", replay, ewc, "forgetting"),
                ],
                "exploratory": [hypothesis("curious", replay, ewc, "average_accuracy")],
                "gates": [
                    {"gate": "rehearsal.ci_low > 0", "hard": True},
                    {"gate": "rehearsal.worst_task_change >= -0.02", "hard": False},
                ],
                "claims": [{"claim": "reduces_forgetting", "comparison": "forgetting", "margin": None}],
                "expected_sd": 0.03,
                "expected_sd_source": "pilot with other seeds",
                "expected_effect": 0.05,
            },
        },
        "tasks": {
            task: {"classes": [2 * t, 2 * t + 1], "n_train": 700, "n_validation": 100, "n_test": 200}
            for t, task in enumerate(TASKS)
        },
        "orders": orders,
        "methods": {new: method(name) for name, new in naming.items()},
        "units": units,
        "runs": [
            {"run": f"{new}/{unit['unit']}", "method": new, "unit": unit["unit"], "spec_hash": "0" * 64}
            for new in naming.values()
            for unit in units
        ],
        "power": {"power": 0.74, "effect": 0.05, "sd": 0.03, "n": 5, "underpowered": True},
        "amendments": [],
        "hash": "1a2b" * 16,
    }


def hypothesis(name: str, a: str, b: str, metric: str) -> dict[str, Any]:
    return {
        "name": name,
        "a": a,
        "b": b,
        "metric": metric,
        "index": None,
        "protocol": "class_incremental",
        "alternative": "two-sided",
    }


def method(name: str) -> dict[str, Any]:
    schedules = {"joint": "joint", "isolated": "isolated", "random_init": "untrained"}
    return {
        "method": name,
        "role": "reference" if name in schedules else "method",
        "hyperparameters": {"replay": {"buffer_bytes": 160000}, "ewc": {"strength": 40.0}}.get(name, {}),
        "pairing": "init" if name == "joint" else "init+batches",
        "stores_raw_data": name == "replay",
        "needs_task_boundaries": name == "ewc",
        "needs_task_identity": False,
        "grows": False,
        "reference": {"replay": "Ratcliff 1990", "ewc": "Kirkpatrick et al. 2017"}.get(name, ""),
        "schedule": schedules.get(name, "sequential"),
    }


def summaries(name: str, shown: str, protocol: str) -> Rows:
    draw = generator("fabricated", name, protocol)
    final = FINAL[name] if protocol == "class_incremental" else 0.5 + FINAL[name] / 2
    known = name in ("replay", "ewc", "finetune")
    values = {
        "average_accuracy": final,
        "forgetting": 0.96 - final if known else None,
        "backward_transfer": final - 0.97 if known else None,
        "learning_accuracy": 0.97 if known else None,
        "forward_transfer_isolated": -0.012 if known else None,
        "intransigence_isolated": 0.011 if known else None,
    }
    rows = [_summary(shown, protocol, metric, None, value, draw) for metric, value in values.items()]
    if known:
        rows += [_summary(shown, protocol, "prequential_accuracy", None, 0.6, draw)]
        for metric, last in (("b_shot", 0.9), ("learning_curve_area", 0.55), ("learning_curve_gain", 0.45)):
            rows += [_summary(shown, protocol, metric, b, v, draw) for b, v in enumerate(np.linspace(0.1, last, 11))]
        curve = np.linspace(0.985, final, N_TASKS)
        rows += [_summary(shown, protocol, "average_accuracy_at_k", k + 1, v, draw) for k, v in enumerate(curve)]
    return rows


def _summary(
    method: str, protocol: str, metric: str, index: int | None, value: float | None, draw: np.random.Generator
) -> dict[str, Any]:
    known = value is not None
    mean = value + draw.normal(0, 0.01) if known else None
    sd = abs(draw.normal(0.02, 0.008)) if known else None
    failed = 1 if "ewc" in method else 0
    return {
        "method": method,
        "protocol": protocol,
        "metric": metric,
        "index": index,
        "task": None,
        "unit": "fraction",
        "direction": "lower" if metric in ("forgetting", "intransigence_isolated") else "higher",
        "n": N_UNITS - failed if known or metric == "average_accuracy" else 0,
        "n_failed": failed,
        "mean": mean,
        "sd": sd,
        "ci_low": mean - 1.24 * sd if known else None,
        "ci_high": mean + 1.24 * sd if known else None,
        "worst": mean - 1.5 * sd if known else None,
    }


def matrix(name: str, shown: str) -> Rows:
    if name not in ("replay", "ewc", "finetune"):
        return []
    draw, rows = generator("fabricated", "matrix", name), []
    for stage in range(1, N_TASKS + 1):
        for position in range(1, N_TASKS + 1):
            kept = (FINAL[name] - 0.19) / 0.79 * 0.85
            mean = 0.0 if position > stage else 0.98 if position == stage else kept * 0.95 ** (stage - position)
            mean = min(1.0, max(0.0, mean + (draw.normal(0, 0.015) if position <= stage else 0.0)))
            cell = {"method": shown, "protocol": "class_incremental", "stage": stage, "position": position}
            rows.append({**cell, "n": N_UNITS, "mean": mean, "sd": 0.02})
    return rows


def costs(name: str, shown: str) -> dict[str, Any]:
    flops = {"replay": 25427118080.0, "ewc": 14468608000.0, "random_init": 0.0}.get(name, 12719616000.0)
    state = {"replay": 157000, "ewc": 10772880}.get(name, 0)
    steps = 0.0 if name == "random_init" else 1050.0
    shares = {"flops": 1.0, "flops_forward": 0.35, "flops_backward": 0.65, "flops_probing": 0.05}
    means = {f"{name}_mean": flops * share for name, share in shares.items()}
    means |= {f"flops_{name}_mean": 0.0 for name in ("method", "replayed", "validation", "evaluation")}
    stored = {"memory_bytes_max": state, "copies_bytes_max": 0, "method_bytes_max": state}
    left = {
        "parameters": 269322,
        "parameters_added": 0,
        "n_early_stopped": 0,
        "n_several_machines": 0,
        "steps_mean": steps,
    }
    return {"method": shown, "n": N_UNITS, **means, **left, **stored}


def curves(name: str, shown: str) -> Rows:
    """Over the samples that a run sees: old classes fall as new ones are learned."""
    if name not in ("replay", "ewc", "finetune"):
        return []
    ends = {"stream": (0.1, 0.7), "new": (0.0, 0.97), "old": (0.98, FINAL[name]), "all": (0.1, FINAL[name])}
    points = np.linspace(0, 1, 40)
    return [
        {
            "method": shown,
            "protocol": None if curve == "stream" else "class_incremental",
            "curve": curve,
            "samples_seen": int(350 * point),
            "n": N_UNITS,
            "mean": float(first + (last - first) * point**0.5),
            "sd": 0.02,
        }
        for curve, (first, last) in ends.items()
        for point in points
    ]


def null_metric(method: str, unit: int) -> dict[str, Any]:
    return {
        "run": f"{method}/s{unit}",
        "protocol": "class_incremental",
        "metric": "forgetting",
        "index": None,
        "task": None,
        "value": None,
        "unit": "fraction",
        "direction": "lower",
        "missing": NULL_REASON,
    }


def comparisons(naming: dict[str, str]) -> Rows:
    replay, ewc, finetune = (naming[name] for name in ("replay", "ewc", "finetune"))
    return [
        _comparison("rehearsal", "primary", replay, finetune, "average_accuracy", 0.618, 0.021, "better", 2e-5),
        _comparison(
            "regularisation", "secondary", ewc, finetune, "average_accuracy", 0.013, 0.028, "inconclusive", 0.4
        ),
        _comparison("forgetting", "secondary", replay, ewc, "forgetting", -0.47, 0.05, "better", 0.0004),
        {
            **_comparison("curious", "exploratory", replay, ewc, "average_accuracy", 0.48, 0.05, "better", 0.0004),
            **{"p_adjusted": 0.0004, "ci_simultaneous_low": None, "ci_simultaneous_high": None},
            **{"confirmatory": False, "reason": "announced as exploratory"},
        },
    ]


def orders(naming: dict[str, str]) -> Rows:
    """Made by the same function as a study's, of fabricated final accuracies: five orders with two seeds each."""
    finals = []
    for name in ("replay", "ewc", "finetune"):
        draw = generator("fabricated", "orders", name)
        for seed, order, task in itertools.product(range(2), range(N_UNITS), range(N_TASKS)):
            position = (task - order) % N_TASKS + 1
            value = min(1.0, max(0.0, FINAL[name] + 0.02 * (position - 3) + draw.normal(0, 0.02)))
            finals.append(
                FinalAccuracy(naming[name], "class_incremental", TASKS[task], seed, f"o{order}", position, value)
            )
    return order_rows(finals)


def decisions(naming: dict[str, str]) -> Rows:
    """Made by the same functions as a study's, of the fabricated comparisons and costs."""
    content = lock(naming)["study"]["analysis"]
    rows = comparisons(naming)
    cost_of = {naming[name]: costs(name, naming[name]) for name in FINAL}
    judged = [judge_gate(gate, quantities(rows, cost_of)) for gate in read_gates(content, no_marks())]
    by_name = {row["comparison"]: row for row in rows}
    plasticity = Plasticity(-0.05, -0.08, -0.02)
    claims = [judge_claim(c, by_name[c.comparison], plasticity) for c in read_claims(content, no_marks())]
    methods = ("replay", "ewc", "finetune")
    summary = [row for name in methods for row in summaries(name, naming[name], "class_incremental")]
    plan = read_analysis({**content, "failed_runs": "bounds"}, no_marks())
    running = candidates(plan, judged, [row for row in summary if row["index"] is None], cost_of)
    levels = {row["comparison"]: evidence_level(row, row["n_orders"], row["n"]) for row in rows}
    return decision_rows(judged, claims, running, by_name, levels)


def _comparison(
    name: str, role: str, a: str, b: str, metric: str, mean: float, sd: float, verdict: str, p: float
) -> dict[str, Any]:
    failed = [1 if "ewc" in method else 0 for method in (a, b)]
    n = N_UNITS - sum(failed)
    error = sd / n**0.5
    return {
        "comparison": name,
        "role": role,
        "a": a,
        "b": b,
        "protocol": "class_incremental",
        "metric": metric,
        "index": None,
        "unit": "fraction",
        "metric_direction": "lower" if metric == "forgetting" else "higher",
        "alternative": "two-sided",
        "alpha": 0.05,
        "equivalence_margin": 0.02,
        "n": n,
        "n_failed_a": failed[0],
        "n_failed_b": failed[1],
        "mean": mean,
        "sd": sd,
        "standard_error": error,
        "clustered_by": None,
        "t": mean / error,
        "df": n - 1,
        "p": p,
        "p_adjusted": p if role == "primary" else min(1.0, 2 * p),
        "ci_low": mean - 2.9 * error,
        "ci_high": mean + 2.9 * error,
        "ci_simultaneous_low": mean - 3.5 * error,
        "ci_simultaneous_high": mean + 3.5 * error,
        "bootstrap": "BCa",
        "bootstrap_low": mean - 1.8 * error,
        "bootstrap_high": mean + 1.8 * error,
        "diagnostics": "bootstrap: descriptive",
        "p_equivalence": 0.99,
        "p_equivalence_adjusted": 0.99,
        "mean_bound_low": mean - 0.1 * sum(failed),
        "mean_bound_high": mean + 0.05 * sum(failed),
        "p_wilcoxon": 0.0625 if p < 0.05 else 0.4375,
        "orders_agreeing": n if p < 0.05 else n - 1,
        "n_orders": n,
        "worst_task": "t2",
        "worst_task_change": mean - sd,
        "worst_task_ci_low": mean - 4 * sd,
        "worst_task_ci_high": mean + 2 * sd,
        "confirmatory": True,
        "verdict": verdict,
        "reason": None,
    }


def _write(job: Job, path: str, name: str, rows: Rows) -> None:
    job.write_table(path, name, _columns(name, rows))


def _columns(name: str, rows: Rows) -> dict[str, list[Any]]:
    return {column: [row.get(column) for row in rows] for column in TABLES[name].schema.names}
