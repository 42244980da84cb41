"""The table `decisions` in words: gates with their values, the verdict, claims, the Pareto front, evidence levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from palimpsest.core.numbers import MISSING, count, is_missing, p_value, percent, points, statistic
from palimpsest.metrics._describe import describe
from palimpsest.plan.gates import QUANTITIES, Kind
from palimpsest.report.study import Row, Study

_PRINTED: dict[Kind, tuple[Callable[[float | None], str], str]] = {
    "difference": (points, "percentage points"),
    "probability": (lambda value: p_value(value).removeprefix("= "), ""),
    "count": (count, ""),
    "statistic": (statistic, ""),
    "ratio": (statistic, "times"),
    "bytes": (count, "bytes"),
}
_SIGNS = {">=": "≥", "<=": "≤"}
CLAIMS = {"reduces_forgetting": "{a} reduces forgetting against {b}"}
OBJECTIVES: dict[str, tuple[str, str, Callable[[float | None], str]]] = {
    "average_accuracy": ("average accuracy", "%", percent),
    "forgetting": ("forgetting", "pp", points),
    "training_flops": ("training", "FLOPs per run", count),
    "bytes": ("model and method's state", "bytes", count),
}


def decisions(study: Study) -> dict[str, Any] | None:
    """Content of the section; None where the plan has neither gates nor claims."""
    analysis = study.plan["analysis"]
    if not (analysis["gates"] or analysis["claims"]):
        return None
    sides = {row["comparison"]: row for row in study.comparisons}
    return {
        "verdict": _verdict(study),
        "gates": [_gate(row) for row in _in_order_of_plan(study, "gate")],
        "claims": _claims(study, sides),
        "objectives": [(heading, unit) for heading, unit, _ in OBJECTIVES.values()],
        "front": _front(study),
        "evidence": [
            {"comparison": name, "level": row["evidence"]}
            for name, row in _by_name(study, "evidence", list(sides)).items()
        ],
    }


def quantity_text(quantity: str, value: float | None) -> str:
    """A quantity of a gate with its unit.

    >>> quantity_text("ci_low", 0.0123), quantity_text("orders_agreeing", 4.0), quantity_text("mean", None)
    ('+1.2 percentage points', '4', '–')
    """
    printed, unit = _PRINTED[QUANTITIES[quantity]]
    return MISSING if is_missing(value) else f"{printed(value)} {unit}".rstrip()


def _verdict(study: Study) -> str:
    verdict = [row for row in study.decisions if row["kind"] == "verdict"]
    if not verdict:
        return ""
    n_hard = sum(row["kind"] == "gate" and row["hard"] for row in study.decisions)
    n_failed = sum(row["kind"] == "gate" and row["hard"] and not row["passed"] for row in study.decisions)
    if not n_hard:
        return "Passed: the plan has no hard gate."
    if verdict[0]["passed"]:
        explored = f"; {verdict[0]['reason']}" if verdict[0]["reason"] else ""
        return f"Passed: {_all(n_hard)}{explored}."
    return f"Not passed: {n_failed} of {n_hard} hard gates {'does' if n_failed == 1 else 'do'} not hold."


def _all(n_hard: int) -> str:
    return "its one hard gate holds" if n_hard == 1 else f"all {n_hard} hard gates hold"


def _in_order_of_plan(study: Study, kind: str) -> list[Row]:
    """Hard gates before soft ones, then by name: what decides stands first."""
    rows = [row for row in study.decisions if row["kind"] == kind]
    return sorted(rows, key=lambda row: (not row["hard"], row["name"]))


def _gate(row: Row) -> dict[str, Any]:
    return {
        "name": f"{row['comparison']}, {row['quantity'].replace('_', ' ')}",
        "threshold": f"{_SIGNS.get(row['operator'], row['operator'])} "
        + quantity_text(row["quantity"], row["threshold"]),
        "value": quantity_text(row["quantity"], row["value"]),
        "kind": "hard" if row["hard"] else "soft",
        "passed": row["passed"],
        "reason": row["reason"],
        "evidence": row["evidence"],
    }


def _claims(study: Study, sides: Mapping[str, Row]) -> list[dict[str, Any]]:
    rows = [row for row in study.decisions if row["kind"] == "claim"]
    made = []
    for name in dict.fromkeys(row["name"] for row in rows):
        of_claim = {row["quantity"]: row for row in rows if row["name"] == name}
        first = next(iter(of_claim.values()))
        compared = sides[first["comparison"]]
        claim = CLAIMS[name.split(" ")[0]].format(a=compared["a"], b=compared["b"])
        bound = of_claim["learning_accuracy ci_low"]
        numbers = (
            f"{describe(compared['metric']).label} {points(compared['mean'])}, learning accuracy "
            f"{points(of_claim['learning_accuracy']['value'])} with the lower bound {points(bound['value'])} "
            f"(margin {points(bound['threshold'])}) percentage points"
        )
        made.append({"text": claim, "comparison": first["comparison"], "numbers": numbers, **_judged(first)})
    return made


def _judged(row: Row) -> dict[str, Any]:
    return {"passed": row["passed"], "reason": row["reason"], "evidence": row["evidence"]}


def _front(study: Study) -> list[dict[str, Any]]:
    rows = [row for row in study.decisions if row["kind"] == "front"]
    made = []
    for method in (name for name in study.names("method") if any(row["name"] == name for row in rows)):
        values = {row["quantity"]: row["value"] for row in rows if row["name"] == method}
        about = next(row for row in rows if row["name"] == method)
        cells = [printed(values[objective]) for objective, (_, _, printed) in OBJECTIVES.items()]
        made.append({"method": method, "cells": cells, **_judged(about)})
    return made


def _by_name(study: Study, kind: str, names: list[str]) -> dict[str, Row]:
    found = {row["name"]: row for row in study.decisions if row["kind"] == kind}
    return {name: found[name] for name in names if name in found}
