"""Cases worked by hand: every file in `tests/cases`, and in `shared/cases` beside the repository where there is one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palimpsest.metrics._declaration import Inputs
from palimpsest.metrics._evaluate import missing, values
from palimpsest.plan.gates import read_gate
from palimpsest.statistics.gates import judge_gate
from palimpsest.statistics.order_disparity import order_disparity
from palimpsest.statistics.paired import paired_t
from palimpsest.statistics.verdict import reach_verdict
from palimpsest.statistics.wilcoxon import wilcoxon_p
from palimpsest.statistics.worst_task import worst_task_change

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = [REPOSITORY / "tests" / "cases", REPOSITORY.parent / "shared" / "cases"]
CASES = [path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.glob("*.json"))]
# Values are given to four digits after the point, in their own unit.
TOLERANCE = 0.5e-4


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_case_worked_by_hand_is_met_to_the_digits_shown(path: Path) -> None:
    case = json.loads(path.read_text())
    CHECKS[case["kind"]](case)


def check_metrics(case: dict[str, Any]) -> None:
    scale = _scale(case)
    inputs = _inputs(case["inputs"], case.get("protocol", "task_incremental"), scale)
    for name, expected in case["expect"].items():
        _compare(values(name, inputs), expected, scale)
        nulls = [value is None for value in np.atleast_1d(np.array(expected, dtype=object))]
        assert [reason is not None for reason in missing(name, inputs)] == nulls


def check_aggregate(case: dict[str, Any]) -> None:
    inputs = Inputs(accuracy=np.array(case["inputs"]["matrices"]) / _scale(case), protocol="task_incremental")
    for name, expected in case["expect"].items():
        _compare(values(name, inputs).mean(axis=0), expected, _scale(case))


def check_learning_curve(case: dict[str, Any]) -> None:
    beta, scale = case["inputs"]["beta"], _scale(case)
    for run, expected in case["expect"].items():
        shots = np.array([case["inputs"][run]]) / scale
        inputs = Inputs(np.array([[0.5]]), "unknown", batches=np.arange(beta + 1), after_batches=shots)
        _compare(values("b_shot", inputs)[0], expected["zero_shot"], scale)
        for name in ("learning_curve_area", "learning_curve_gain"):
            _compare(values(name, inputs)[beta], expected[name], scale)


def check_paired(case: dict[str, Any]) -> None:
    expected, alpha = case["expect"], case["inputs"]["alpha"]
    test = paired_t(np.array(case["inputs"]["differences"], dtype=float), "two-sided", alpha)
    for name in ("mean", "sd", "standard_error", "t", "df", "ci_low", "ci_high"):
        _compare(getattr(test, name), expected[name], scale=1.0)
    _compare(test.p, expected["p_two_sided"], scale=1.0)
    rules: dict[str, Any] = {"alternative": "two-sided", "direction": "higher", "alpha": alpha, "margin": None}
    assert reach_verdict(test, test.p, None, **rules) == expected["verdict"]


def check_wilcoxon(case: dict[str, Any]) -> None:
    assert wilcoxon_p(np.array(case["inputs"]["differences"])) == case["expect"]["p_two_sided"]


def check_worst_task(case: dict[str, Any]) -> None:
    final_a, final_b = case["inputs"]["final_a"], case["inputs"]["final_b"]
    worst = worst_task_change({task: np.subtract(final_a[task], final_b[task]) for task in final_a}, alpha=0.05)
    assert (worst.task, worst.change) == (case["expect"]["task"], case["expect"]["worst_task_change"])


def check_orders(case: dict[str, Any]) -> None:
    found, expected = order_disparity(case["inputs"]["final"]), case["expect"]
    assert found.by_task == expected["order_disparity"]
    assert found.maximum == expected.get("max_order_disparity")
    assert found.mean == expected.get("mean_order_disparity")


def check_decision(case: dict[str, Any]) -> None:
    judged = {gate: judge_gate(read_gate(gate, "the case"), case["inputs"]) for gate in case["inputs"]["gates"]}
    failed = [gate for gate, found in judged.items() if not found.passed]
    assert failed == case["expect"]["failed_gates"]
    assert (not failed) == case["expect"]["pass"]


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    "metrics": check_metrics,
    "aggregate": check_aggregate,
    "learning_curve": check_learning_curve,
    "paired": check_paired,
    "wilcoxon": check_wilcoxon,
    "worst_task": check_worst_task,
    "orders": check_orders,
    "decision": check_decision,
}


def _inputs(given: dict[str, Any], protocol: str, scale: float) -> Inputs:
    matrix = np.array(given["matrix"], dtype=float)
    references = {name: np.array(given[name], dtype=float) for name in ("random_init", "isolated") if name in given}
    if "joint_at" in given:
        at_k = [given["joint_at"].get(str(k), np.nan) for k in range(1, len(matrix) + 1)]
        references["joint_at_k"] = np.array(at_k, dtype=float)
    return Inputs(matrix / scale, protocol, **{name: array / scale for name, array in references.items()})


def _scale(case: dict[str, Any]) -> float:
    return 1.0 if case["unit"] == "fraction" else 100.0


def _compare(got: Any, expected: Any, scale: float) -> None:
    expected = np.array(expected, dtype=float)
    np.testing.assert_allclose(np.asarray(got) * scale, expected, rtol=0, atol=TOLERANCE)
