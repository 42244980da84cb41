"""Gates in the plan, the verdict over them, claims at matched plasticity, the Pareto front, evidence levels."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import small_study
from palimpsest.core.errors import PalimpsestError
from palimpsest.core.tables import TABLES
from palimpsest.metrics._evaluate import declaration
from palimpsest.plan.gates import QUANTITIES, Gate, read_gate
from palimpsest.plan.lock import locked_part
from palimpsest.plan.study import read_study
from palimpsest.statistics.claims import Claim, Plasticity, compare_plasticity, judge_claim
from palimpsest.statistics.decisions import candidates, decision_rows, quantities, read_claims, read_gates
from palimpsest.statistics.evidence import evidence_level
from palimpsest.statistics.gates import judge_gate
from palimpsest.statistics.pairs import Pairs
from palimpsest.statistics.pareto import OBJECTIVES, Candidate, pareto_front
from palimpsest.statistics.plan import Analysis, Comparison

FORGETTING = {"name": "f", "a": "replay", "b": "finetune", "metric": "forgetting"}


def lock(folder: Path, **analysis: Any) -> dict[str, Any]:
    plan = small_study.plan_of(folder, lambda content: content["analysis"].update(analysis))
    return plan["study"]["analysis"]


def refuse(folder: Path, **analysis: Any) -> PalimpsestError:
    with pytest.raises(PalimpsestError) as error:
        lock(folder, **analysis)
    return error.value


def line_of(folder: Path, text: str) -> int:
    lines = (folder / "small.yaml").read_text().splitlines()
    return next(number for number, line in enumerate(lines, start=1) if text in line)


def test_a_gate_as_text_is_a_hard_one_in_the_lock(tmp_path):
    found = lock(tmp_path, gates=["p.mean >= 0.02", {"gate": "p.n_failed_a <= 0", "hard": False}])["gates"]
    assert found == [{"gate": "p.mean >= 0.02", "hard": True}, {"gate": "p.n_failed_a <= 0", "hard": False}]


def test_without_gates_and_claims_the_lock_has_empty_lists(tmp_path):
    content = locked_part(read_study(small_study.write(tmp_path))[0])["analysis"]
    assert (content["gates"], content["claims"]) == ([], [])


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("p.mean = 0", "cannot be read"),
        ("q.mean > 0", "a comparison that the plan does not have"),
        ("p.median > 0", "a quantity that comparisons do not have"),
        ("p.mean > 2", "cannot reach"),
        ("p.p_adjusted < 5", "cannot reach"),
        ("p.mean >   0.00", "twice"),
    ],
)
def test_a_gate_that_cannot_be_decided_is_refused_with_its_line(tmp_path, gate, message):
    error = refuse(tmp_path, gates=["p.mean > 0", gate])
    assert message in error.what
    assert f"small.yaml:{line_of(tmp_path, f'- {gate}')} analysis.gates.1" in error.where


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        ({"gates": ["f.mean < 0"]}, "has as exploratory"),
        ({"claims": [{"claim": "reduces_forgetting", "comparison": "f", "margin": 0.01}]}, "needs a comparison"),
    ],
)
def test_an_exploratory_comparison_decides_nothing(tmp_path, decided, message):
    assert message in refuse(tmp_path, exploratory=[FORGETTING], **decided).what


def test_every_quantity_of_a_gate_exists(tmp_path):
    """All but those that costs give are columns of the table of comparisons."""
    assert set(QUANTITIES) - {"training_flops_ratio", "method_bytes_difference"} <= {
        *TABLES["comparisons"].schema.names
    }


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"comparison": "p", "margin": 0.01}, "needs a comparison of forgetting"),
        ({"comparison": "g", "margin": 0.01}, "needs a comparison of forgetting"),
        ({"comparison": "f"}, "needs a margin"),
        ({"comparison": "f", "margin": -0.01}, "a value does not fit"),
        ({"comparison": "f", "claim": "is_good"}, "a value does not fit"),
    ],
)
def test_a_claim_that_cannot_be_judged_is_refused_with_its_place(tmp_path, claim, message):
    error = refuse(tmp_path, secondary=[FORGETTING], claims=[{"claim": "reduces_forgetting", **claim}])
    assert message in error.what
    assert "analysis.claims.0" in error.where


def test_a_claim_takes_the_margin_of_the_plan_where_it_has_none(tmp_path):
    claims = [{"claim": "reduces_forgetting", "comparison": "f"}]
    assert lock(tmp_path, secondary=[FORGETTING], claims=claims, equivalence_margin=0.02)["claims"][0]["margin"] is None


CLAIM = Claim("reduces_forgetting", "f", margin=0.02)


def row_of(verdict: str | None = "better", mean: float | None = -0.2) -> dict[str, Any]:
    return {"comparison": "f", "a": "ours", "b": "theirs", "metric": "forgetting", "verdict": verdict, "mean": mean}


def test_less_forgetting_at_matched_plasticity_holds():
    judged = judge_claim(CLAIM, row_of(), Plasticity(0.0, -0.02, 0.02))
    assert (judged.passed, judged.reason) == (True, None)


@pytest.mark.parametrize(
    ("row", "plasticity", "reason"),
    [
        (row_of(), Plasticity(-0.3, -0.4, -0.2), "the diagonal is lower: ours learns less than theirs"),
        (row_of(), Plasticity(-0.01, -0.021, 0.001), "not shown to be matched"),
        (row_of(), Plasticity(None, None, None), "not known to be matched"),
        (row_of("inconclusive"), Plasticity(0.0, 0.0, 0.0), "less forgetting was not shown (verdict: inconclusive)"),
        (row_of("worse", 0.2), Plasticity(0.0, 0.0, 0.0), "less forgetting was not shown"),
        (row_of(None, None), Plasticity(0.0, 0.0, 0.0), "less forgetting was not shown (verdict: none)"),
        (row_of(mean=-0.01), Plasticity(-0.012, -0.015, -0.009), "a lower diagonal alone can account for it"),
    ],
)
def test_a_claim_fails_with_the_reason(row, plasticity, reason):
    judged = judge_claim(CLAIM, row, plasticity)
    assert not judged.passed
    assert reason in judged.reason


def diagonal(a: list[float], b: list[float]) -> Pairs:
    units = range(len(a))
    clusters = {"seed": list(units), "order": [f"o{unit}" for unit in units]}
    failed = np.isnan(np.array([a, b]))
    return Pairs(declaration("learning_accuracy"), np.array(a), np.array(b), *failed, clusters, {}, None)


def test_the_diagonal_of_a_failed_run_counts_as_the_worst_it_can_be():
    """One of five runs of A failed: the interval reaches to where that run had learned nothing."""
    whole = compare_plasticity(diagonal([0.9, 0.91, 0.9, 0.92, 0.9], [0.9] * 5), 0.05)
    failed = compare_plasticity(diagonal([0.9, 0.91, 0.9, 0.92, np.nan], [0.9] * 5), 0.05)
    assert whole.low > -0.01
    assert failed.low < -0.5


def test_a_diagonal_that_does_not_differ_has_the_interval_of_its_mean():
    assert compare_plasticity(diagonal([0.75] * 3, [0.5] * 3), 0.05) == Plasticity(0.25, 0.25, 0.25)


def test_a_single_pair_leaves_plasticity_unknown():
    assert compare_plasticity(diagonal([0.75], [0.5]), 0.05).low is None


def candidate(name: str, *values: float | None, ruled_out: str | None = None) -> Candidate:
    return Candidate(name, dict(zip(OBJECTIVES, values, strict=True)), ruled_out)


def test_what_is_better_in_something_stays_on_the_front():
    front = pareto_front(
        [candidate("a", 0.9, 0.1, 5, 5), candidate("b", 0.2, 0.9, 1, 0), candidate("c", 0.2, 0.9, 2, 0)]
    )
    assert front == {"a": None, "b": None, "c": "dominated by b"}


def test_equals_stand_on_the_front_together():
    assert pareto_front([candidate("a", 0.5, 0.1, 1, 1), candidate("b", 0.5, 0.1, 1, 1)]) == {"a": None, "b": None}


def test_what_a_gate_rules_out_dominates_nobody():
    front = pareto_front([candidate("a", 0.9, 0, 0, 0, ruled_out="ruled out by g"), candidate("b", 0.1, 1, 1, 1)])
    assert front == {"a": "ruled out by g", "b": None}


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 4), min_size=1, max_size=6),
)
def test_a_front_is_never_empty_and_nobody_on_it_beats_another(values):
    running = [candidate(str(at), *four) for at, four in enumerate(values)]
    front = pareto_front(running)
    on_it = [one for one in running if front[one.method] is None]
    assert on_it
    for one, other in itertools.permutations(on_it, 2):
        gains = [sign * (one.values[name] - other.values[name]) for name, sign in OBJECTIVES.items()]
        assert min(gains) < 0 or max(gains) == 0


@pytest.mark.parametrize(
    ("verdict", "confirmatory", "orders", "seeds", "level"),
    [
        ("better", True, 5, 5, "confirmed on several orders and seeds"),
        ("equivalent", True, 2, 1, "confirmed on a single seed"),
        ("worse", True, 1, 1, "confirmed on a single order and seed"),
        ("better", False, 5, 5, "exploratory, on several orders and seeds"),
        ("inconclusive", True, 5, 5, "open"),
        (None, False, 0, 0, "open"),
    ],
)
def test_the_evidence_level_says_how_far_a_verdict_carries(verdict, confirmatory, orders, seeds, level):
    assert evidence_level({"verdict": verdict, "confirmatory": confirmatory}, orders, seeds) == level


COSTS = {
    "ours": {"flops_mean": 300.0, "method_bytes_max": 50, "parameters": 10},
    "theirs": {"flops_mean": 200.0, "method_bytes_max": 0, "parameters": 10},
}
ANALYSIS = Analysis(0.05, 0.02, (Comparison("f", "primary", "ours", "theirs", "forgetting", None, "p", "two-sided"),))


def summary(method: str, **means: float) -> list[dict[str, Any]]:
    return [{"method": method, "protocol": "p", "metric": name, "mean": mean} for name, mean in means.items()]


def decide(*gates: tuple[str, bool]) -> list[dict[str, Any]]:
    return decide_by([read_gate(text, "", hard) for text, hard in gates])


def decide_by(gates: list[Gate], confirmatory: bool = False) -> list[dict[str, Any]]:
    row = {**dict.fromkeys(TABLES["comparisons"].schema.names), **row_of(), "confirmatory": confirmatory}
    judged = [judge_gate(gate, quantities([row], COSTS)) for gate in gates]
    means = summary("ours", average_accuracy=0.8, forgetting=0.1) + summary("theirs", average_accuracy=0.2)
    running = candidates(ANALYSIS, judged, means, COSTS)
    return decision_rows(judged, [], running, {"f": row}, {"f": "confirmed on a single order"})


def of_kind(rows: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind]


def test_costs_are_quantities_of_gates():
    gates = [("f.training_flops_ratio <= 1.5", True), ("f.method_bytes_difference <= 49", True)]
    assert [(row["value"], row["passed"]) for row in of_kind(decide(*gates), "gate")] == [(1.5, True), (50.0, False)]


def test_the_verdict_needs_all_hard_gates_and_no_soft_one():
    held, failed = "f.mean < 0", "f.mean > 0"
    assert of_kind(decide((held, True), (failed, False)), "verdict")[0]["passed"]
    (verdict,) = of_kind(decide((held, True), (failed, True)), "verdict")
    assert (verdict["passed"], verdict["reason"]) == (False, "not held: f.mean > 0")


def test_a_verdict_on_what_is_exploratory_says_so():
    (verdict,) = of_kind(decide_by([read_gate("f.mean < 0", "")], confirmatory=False), "verdict")
    assert (verdict["passed"], verdict["reason"]) == (True, "rests on what is exploratory: f")
    (verdict,) = of_kind(decide_by([read_gate("f.mean < 0", "")], confirmatory=True), "verdict")
    assert (verdict["passed"], verdict["reason"]) == (True, None)


LATE = {"comparisons": {}, "late": [], "gates": {"f.mean>0": "added late"}, "claims": {"reduces_forgetting f": "added"}}


def test_a_gate_added_after_results_decides_nothing():
    """It was hard in the amendment; its threshold may have been chosen with the results in view."""
    gates = read_gates({"gates": [{"gate": "f.mean>0", "hard": True}, {"gate": "f.mean < 0", "hard": True}]}, LATE)
    rows = decide_by(gates, confirmatory=True)
    assert of_kind(rows, "verdict")[0]["passed"]
    late = next(row for row in of_kind(rows, "gate") if row["name"] == "f.mean > 0")
    assert (late["hard"], late["passed"], late["reason"]) == (False, False, "added late")
    assert late["evidence"] == "exploratory, on a single order"


def test_a_claim_added_after_results_confirms_nothing():
    content = {
        "equivalence_margin": None,
        "claims": [{"claim": "reduces_forgetting", "comparison": "f", "margin": 0.02}],
    }
    (claim,) = read_claims(content, LATE)
    judged = judge_claim(claim, row_of(), Plasticity(0.0, -0.02, 0.02))
    rows = decision_rows([], [judged], [], {"f": row_of()}, {"f": "confirmed on a single order"})
    found = {(row["passed"], row["reason"], row["evidence"]) for row in of_kind(rows, "claim")}
    assert found == {(True, "added", "exploratory, on a single order")}


def test_a_null_value_does_not_pass():
    (gate,) = of_kind(decide(("f.ci_low > 0", True)), "gate")
    assert (gate["value"], gate["passed"], gate["reason"]) == (None, False, "ci_low is null")


def test_without_gates_there_is_no_verdict():
    assert of_kind(decide(), "verdict") == []


def test_the_front_is_one_of_survivors_and_names_what_is_not_known():
    reasons = {row["name"]: row["reason"] for row in of_kind(decide(("f.mean > 0", True)), "front")}
    assert reasons == {"ours": "ruled out by f.mean > 0", "theirs": "no value of forgetting"}
    assert {row["passed"] for row in of_kind(decide(("f.mean > 0", False)), "front") if row["name"] == "ours"} == {True}


def test_bytes_of_the_front_are_those_of_the_model_and_of_what_the_method_keeps():
    values = {(row["name"], row["quantity"]): row["value"] for row in of_kind(decide(), "front")}
    assert (values["ours", "bytes"], values["theirs", "bytes"]) == (90.0, 40.0)
