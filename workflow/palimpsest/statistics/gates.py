"""Gates: announced conditions, each of which holds or does not; what is unknown does not hold."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass

from palimpsest.plan.gates import Gate

OPERATORS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
Quantities = Mapping[str, float | None]


@dataclass(frozen=True)
class Judged:
    """What became of a gate: the value found, whether it passes, and why not where there is no value."""

    gate: Gate
    value: float | None
    passed: bool
    reason: str | None


def judge_gate(gate: Gate, found: Mapping[str, Quantities]) -> Judged:
    """Whether a gate holds; a quantity that is null or was not found does not pass.

    Args:
        gate: of the plan.
        found: by comparison, its quantities (`mean`, `ci_low`, `ci_high` …), in the unit of the gate's number; under
            `reason` a text may say why some of them are null.

    >>> judge_gate(Gate("accuracy", "ci_low", ">", 0.0), {"accuracy": {"ci_low": 0.006}}).passed
    True
    """
    quantities = found.get(gate.comparison, {})
    value = quantities.get(gate.quantity)
    if value is None:
        because = quantities.get("reason")
        reason = f"{gate.quantity} is null" + (f": {because}" if because else "")
        return Judged(gate, None, False, reason)
    return Judged(gate, float(value), bool(OPERATORS[gate.operator](value, gate.threshold)), None)


def fails_verdict(judged: Judged) -> bool:
    """Whether a gate keeps the verdict from being passed."""
    return judged.gate.hard and not judged.passed
