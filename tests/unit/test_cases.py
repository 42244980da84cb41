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

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = [REPOSITORY / "tests" / "cases", REPOSITORY.parent / "shared" / "cases"]
CASES = [path for folder in FOLDERS if folder.is_dir() for path in sorted(folder.glob("*.json"))]
# Values are given to four digits after the point, in their own unit.
TOLERANCE = 0.5e-4


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_a_case_worked_by_hand_is_met_to_the_digits_shown(path: Path) -> None:
    case = json.loads(path.read_text())
    if case["kind"] not in CHECKS:
        pytest.skip(f"nothing here computes cases of kind {case['kind']!r} yet")
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


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {"metrics": check_metrics, "aggregate": check_aggregate}


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
