"""What the study decides: rows of the table `decisions`.

========== ======================== ===============================================================================
`kind`     `name`                   a row says
========== ======================== ===============================================================================
`gate`     the gate                 value, threshold, whether it passes; `hard` or not
`verdict`  `verdict`                whether all hard gates pass; no row without gates
`claim`    claim and comparison     whether it holds; one row for each quantity that it was judged by
`front`    the method               whether it stands on the Pareto front; one row for each objective
`evidence` the comparison           how far its verdict carries (`evidence`)
========== ======================== ===============================================================================

`passed` is of the whole gate, claim or method; `reason` says why it is false, or why it confirms nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from palimpsest.core.tables import TABLES
from palimpsest.plan.gates import Gate, read_gate
from palimpsest.statistics.claims import Claim, JudgedClaim
from palimpsest.statistics.gates import Judged, fails_verdict
from palimpsest.statistics.pareto import Candidate, pareto_front
from palimpsest.statistics.plan import Analysis

Row = dict[str, Any]
# float32, as every model here is.
BYTES_PER_PARAMETER = 4


def read_claims(content: Mapping[str, Any], marks: Mapping[str, Any]) -> list[Claim]:
    """The claims of the analysis plan, as the lock holds it; δ where a claim has no margin of its own.

    Args:
        content: the section of the study.
        marks: what of it is exploratory for good (`plan.marks`).
    """
    margin = content["equivalence_margin"]
    return [
        Claim(
            claim["claim"],
            claim["comparison"],
            margin if claim["margin"] is None else claim["margin"],
            marks["claims"].get(f"{claim['claim']} {claim['comparison']}"),
        )
        for claim in content["claims"]
    ]


def read_gates(content: Mapping[str, Any], marks: Mapping[str, Any]) -> list[Gate]:
    """The gates of the analysis plan, as the lock holds it; one that was added when results existed is a soft one.

    Args:
        content: the section of the study.
        marks: what of it is exploratory for good (`plan.marks`).

    Raises:
        StudyError: one cannot be read.
    """
    late = marks["gates"]
    gates = [
        read_gate(gate["gate"], "analysis.gates", gate["hard"] and gate["gate"] not in late)
        for gate in content["gates"]
    ]
    return [replace(gate, mark=late.get(about["gate"])) for gate, about in zip(gates, content["gates"], strict=True)]


def quantities(comparisons: Sequence[Row], costs: Mapping[str, Row]) -> dict[str, Row]:
    """What gates may ask, by comparison: its row, and what A costs beside B.

    Args:
        comparisons: rows of the table `comparisons`.
        costs: rows of the table `costs` by method.
    """
    return {row["comparison"]: {**row, **_cost_quantities(costs[row["a"]], costs[row["b"]])} for row in comparisons}


def candidates(
    analysis: Analysis, judged: Sequence[Judged], summary: Sequence[Row], costs: Mapping[str, Row]
) -> list[Candidate]:
    """The methods with their objectives, under the protocol of the primary comparison.

    A method is ruled out by a hard gate that does not hold on a comparison of which it is A.

    Args:
        analysis: the plan.
        judged: its gates.
        summary: rows of the table `summary`, of the methods that run for the front.
        costs: rows of the table `costs` by method.
    """
    compared = {comparison.name: comparison.a for comparison in analysis.comparisons}
    out: dict[str, list[str]] = {}
    for gate in filter(fails_verdict, judged):
        out.setdefault(compared[gate.gate.comparison], []).append(gate.gate.text)
    protocol = analysis.comparisons[0].protocol
    means = {(row["method"], row["metric"]): row["mean"] for row in summary if row["protocol"] == protocol}
    return [
        Candidate(
            method,
            {
                "average_accuracy": means.get((method, "average_accuracy")),
                "forgetting": means.get((method, "forgetting")),
                "training_flops": costs[method]["flops_mean"],
                "bytes": _bytes(costs[method]),
            },
            f"ruled out by {', '.join(out[method])}" if method in out else None,
        )
        for method in sorted({row["method"] for row in summary})
    ]


def decision_rows(
    judged: Sequence[Judged],
    claims: Sequence[JudgedClaim],
    running: list[Candidate],
    comparisons: Mapping[str, Row],
    evidence: Mapping[str, str],
) -> list[Row]:
    """Rows of the table `decisions`.

    Args:
        judged, claims: gates and claims of the plan.
        running: methods that run for the front.
        comparisons: rows of the table `comparisons` by name.
        evidence: evidence level by comparison.
    """
    rows = [_gate_row(gate, evidence) for gate in judged]
    rows += [_verdict_row(judged, comparisons)] if judged else []
    rows += [row for claim in claims for row in _claim_rows(claim, comparisons[claim.claim.comparison], evidence)]
    rows += _front_rows(running)
    return rows + [_row("evidence", name, comparison=name, evidence=level) for name, level in evidence.items()]


def _row(kind: str, name: str, **more: Any) -> Row:
    return {**dict.fromkeys(TABLES["decisions"].schema.names), "kind": kind, "name": name, **more}


def _gate_row(judged: Judged, evidence: Mapping[str, str]) -> Row:
    gate = judged.gate
    about = {"comparison": gate.comparison, "quantity": gate.quantity}
    about["evidence"] = _evidence(evidence[gate.comparison], gate.mark)
    asked = {"hard": gate.hard, "operator": gate.operator, "threshold": gate.threshold}
    reason = _joined(judged.reason, gate.mark)
    return _row("gate", gate.text, **about, **asked, value=judged.value, passed=judged.passed, reason=reason)


def _verdict_row(judged: Sequence[Judged], comparisons: Mapping[str, Row]) -> Row:
    failed = [gate.gate.text for gate in judged if fails_verdict(gate)]
    deciding = dict.fromkeys(gate.gate.comparison for gate in judged if gate.gate.hard)
    explored = [name for name in deciding if not comparisons[name]["confirmatory"]]
    rests = "rests on what is exploratory: " + ", ".join(explored) if explored else None
    return _row("verdict", "verdict", passed=not failed, reason="not held: " + "; ".join(failed) if failed else rests)


def _evidence(level: str, mark: str | None) -> str:
    """The level of what was added when results existed: it confirms nothing, whatever its comparison does."""
    return level.replace("confirmed", "exploratory,") if mark else level


def _joined(*reasons: str | None) -> str | None:
    return "; ".join(filter(None, reasons)) or None


def _claim_rows(judged: JudgedClaim, row: Row, evidence: Mapping[str, str]) -> list[Row]:
    claim, plasticity = judged.claim, judged.plasticity
    name = f"{claim.claim} {claim.comparison}"
    shared = {"comparison": claim.comparison, "passed": judged.passed, "reason": _joined(judged.reason, claim.mark)}
    shared["evidence"] = _evidence(evidence[claim.comparison], claim.mark)
    return [
        _row("claim", name, quantity=row["metric"], value=row["mean"], **shared),
        _row("claim", name, quantity="learning_accuracy", value=plasticity.mean, **shared),
        _row(
            "claim",
            name,
            quantity="learning_accuracy ci_low",
            operator=">=",
            threshold=-claim.margin,
            value=plasticity.low,
            **shared,
        ),
    ]


def _front_rows(running: list[Candidate]) -> list[Row]:
    reasons = pareto_front(running)
    return [
        _row("front", candidate.method, quantity=objective, value=value, passed=reason is None, reason=reason)
        for candidate in running
        for reason in [reasons[candidate.method]]
        for objective, value in candidate.values.items()
    ]


def _cost_quantities(a: Row, b: Row) -> dict[str, float | None]:
    known = None not in (a["method_bytes_max"], b["method_bytes_max"])
    return {
        "training_flops_ratio": a["flops_mean"] / b["flops_mean"] if a["flops_mean"] and b["flops_mean"] else None,
        "method_bytes_difference": a["method_bytes_max"] - b["method_bytes_max"] if known else None,
    }


def _bytes(cost: Row) -> float | None:
    """What a run needs at its end: the model, which may have grown, and what the method keeps beside it."""
    if cost["parameters"] is None:
        return None
    return float(BYTES_PER_PARAMETER * cost["parameters"] + cost["method_bytes_max"])
