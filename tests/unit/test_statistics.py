"""The stage `statistics`: from the metrics of all runs to verdicts on the announced comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from made_up_study import PROTOCOL, MadeUpStudy
from palimpsest.aggregate.costs import EVALUATION, LARGEST, SEVERAL, SUMS, summarise_costs
from palimpsest.aggregate.summary import summarise_metrics
from palimpsest.core.errors import StudyError
from palimpsest.core.tables import TABLES
from palimpsest.metrics._evaluate import declaration
from palimpsest.metrics._run import write_metrics
from palimpsest.plan.marks import no_marks
from palimpsest.statistics.comparisons import compare
from palimpsest.statistics.pairs import Pairs
from palimpsest.statistics.plan import Analysis, Comparison

ORDER = ("a", "b")
UNITS = [f"s{seed}-o0" for seed in range(5)]
ENDED = {"status": "ended", "stage": 2, "reason": "numerical: the loss is nan at step 3"}


@pytest.fixture
def study(tmp_path: Path) -> MadeUpStudy:
    """Replay ends 20, 25, 19, 24 and 20 points above finetune in average accuracy, and as much below in forgetting."""
    study = MadeUpStudy(tmp_path)
    study.plan(dict.fromkeys(UNITS, ORDER))
    for unit, gain in zip(UNITS, (40, 50, 38, 48, 40), strict=True):
        study.run(f"finetune/{unit}", ORDER, [[90, 10], [30, 80]])
        study.run(f"replay/{unit}", ORDER, [[90, 10], [30 + gain, 80]])
    return study


def analyse(
    study: MadeUpStudy, primary: dict[str, Any] | None = None, secondary: Any = (), marks: Any = None, **rules: Any
) -> list:
    for method in ("finetune", "replay"):
        for unit in UNITS:
            write_metrics(study.job("metrics"), f"{method}/{unit}", "sequential", {}, [PROTOCOL], "told")
        study.stage("ledger", method=method)
    study.stage("aggregate", methods=["finetune", "replay"])
    study.stage("statistics", analysis=plan(primary, secondary, **rules), marks={**no_marks(), **(marks or {})})
    return study.rows("statistics/comparisons.parquet", "comparisons")


def plan(primary: dict[str, Any] | None = None, secondary: Any = (), **rules: Any) -> dict[str, Any]:
    announced = {"alpha": 0.05, "correction": "holm", "test": "paired_t", "failed_runs": "bounds"}
    comparisons = {
        "primary": comparison("accuracy", **(primary or {})),
        "secondary": [comparison(**more) for more in secondary],
    }
    return {**announced, "equivalence_margin": None, "gates": [], "claims": [], **comparisons, **rules}


def comparison(name: str, **more: Any) -> dict[str, Any]:
    usual = {"a": "replay", "b": "finetune", "metric": "average_accuracy", "index": None, "protocol": PROTOCOL}
    return {"name": name, **usual, "alternative": "two-sided", **more}


FORGETTING = {"name": "forgetting", "metric": "forgetting"}
REVERSED = {"name": "reversed", "a": "finetune", "b": "replay"}
CURIOUS = {"name": "curious", "metric": "backward_transfer"}
AT_2 = {"name": "at_2", "metric": "average_accuracy_at_k", "index": 2}


def test_the_comparisons_stand_in_the_table_with_their_verdicts(study: MadeUpStudy) -> None:
    rows = {row["comparison"]: row for row in analyse(study, secondary=[FORGETTING, REVERSED, AT_2])}
    verdicts = {name: (row["verdict"], row["confirmatory"]) for name, row in rows.items()}
    assert verdicts == {
        "accuracy": ("better", True),
        "forgetting": ("better", True),
        "reversed": ("worse", True),
        "at_2": ("better", True),
    }
    primary = rows["accuracy"]
    expected = stats.ttest_1samp([0.20, 0.25, 0.19, 0.24, 0.20], 0.0)
    assert (primary["n"], primary["mean"], primary["p"]) == (5, pytest.approx(0.216), pytest.approx(expected.pvalue))
    assert primary["p_adjusted"] == primary["p"]
    assert rows["at_2"]["p_adjusted"] == pytest.approx(3 * expected.pvalue)
    assert (primary["orders_agreeing"], primary["n_orders"], primary["p_wilcoxon"]) == (1, 1, 0.0625)
    assert (primary["worst_task"], primary["worst_task_change"]) == ("b", 0.0)


def test_the_results_are_described_by_order_too(study: MadeUpStudy) -> None:
    analyse(study)
    rows = study.rows("statistics/orders.parquet", "orders", method="replay", by="order", level="o0", task="a")
    assert (rows[0]["n"], rows[0]["worst"]) == (5, 0.68)


def test_exploratory_comparisons_are_in_no_family_and_confirm_nothing(study: MadeUpStudy) -> None:
    """Announced as exploratory: p as it is, no simultaneous interval, and Holm's family keeps its size."""
    with_it = analyse(study, secondary=[FORGETTING], exploratory=[comparison(**CURIOUS)])
    rows = {row["comparison"]: row for row in with_it}
    curious, forgetting = rows["curious"], rows["forgetting"]
    assert (curious["role"], curious["verdict"], curious["confirmatory"]) == ("exploratory", "better", False)
    assert (curious["reason"], curious["p_adjusted"]) == ("announced as exploratory", curious["p"])
    assert (curious["ci_simultaneous_low"], forgetting["p_adjusted"]) == (None, forgetting["p"])


def test_simultaneous_intervals_are_those_of_bonferroni_over_the_secondary_family(study: MadeUpStudy) -> None:
    rows = {row["comparison"]: row for row in analyse(study, secondary=[FORGETTING, REVERSED, AT_2])}
    expected = stats.ttest_1samp([0.20, 0.25, 0.19, 0.24, 0.20], 0.0).confidence_interval(1 - 0.05 / 3)
    found = [rows["at_2"][f"ci_simultaneous_{side}"] for side in ("low", "high")]
    assert found == [pytest.approx(expected.low), pytest.approx(expected.high)]
    assert rows["accuracy"]["ci_simultaneous_low"] == rows["accuracy"]["ci_low"]


def test_no_interval_reaches_beyond_what_a_difference_can_be(study: MadeUpStudy) -> None:
    """Two pairs: the t interval of the mean would be more than 100 points wide."""
    for unit in UNITS[2:]:
        study.run(f"replay/{unit}", ORDER, [[90, 10]], outcome=ENDED)
    study.run(f"replay/{UNITS[0]}", ORDER, [[90, 10], [10, 80]])
    row = analyse(study)[0]
    assert (row["n"], row["ci_low"], row["ci_high"]) == (2, -1.0, 1.0)
    assert (row["worst_task"], row["worst_task_ci_low"], row["worst_task_ci_high"]) == ("b", None, None)
    study.run(f"replay/{UNITS[1]}", ORDER, [[90, 10], [40, 10]])
    row = analyse(study)[0]
    assert (row["worst_task"], row["worst_task_ci_low"], row["worst_task_ci_high"]) == ("b", -1.0, 1.0)


def test_independent_pairs_have_a_bca_interval_and_nothing_that_crossed_ones_need(study: MadeUpStudy) -> None:
    row = analyse(study)[0]
    assert row["bootstrap"] == "BCa"
    assert 0.19 < row["bootstrap_low"] < row["mean"] < row["bootstrap_high"] < 0.25
    assert (row["ci_naive_low"], row["mixed_low"]) == (None, None)
    assert "bootstrap: descriptive; in simulations with 5 pairs" in row["diagnostics"]
    assert "mixed model: not fitted: no pairs share an order or a seed" in row["diagnostics"]


def test_secondary_comparisons_are_exploratory_when_the_primary_one_does_not_reject(study: MadeUpStudy) -> None:
    primary, secondary = analyse(study, {"metric": "learning_accuracy"}, [FORGETTING])
    assert (primary["comparison"], primary["verdict"]) == ("accuracy", "inconclusive")
    assert (secondary["verdict"], secondary["confirmatory"]) == ("better", False)
    assert secondary["reason"] == "the primary comparison does not reject"


def test_methods_that_do_not_differ_are_equivalent_where_a_margin_was_announced(study: MadeUpStudy) -> None:
    row = analyse(study, {"metric": "learning_accuracy"}, equivalence_margin=0.02)[0]
    assert (row["verdict"], row["p"], row["reason"]) == ("equivalent", None, "the differences do not vary")


def test_a_failed_run_takes_the_verdict_away_where_its_bounds_disagree(study: MadeUpStudy) -> None:
    study.run("replay/s4-o0", ORDER, [], outcome=ENDED)
    row = analyse(study)[0]
    assert (row["n"], row["n_failed_a"], row["n_failed_b"]) == (4, 1, 0)
    assert row["verdict"] == "inconclusive"
    assert "complete: better, worst for A: inconclusive" in row["reason"]
    # failed A at 0 against finetune's 0.55, and at 1
    low, high = ((0.20 + 0.25 + 0.19 + 0.24 + end - 0.55) / 5 for end in (0.0, 1.0))
    assert (row["mean_bound_low"], row["mean_bound_high"]) == (pytest.approx(low), pytest.approx(high))


def test_secondary_comparisons_are_exploratory_when_failed_runs_could_turn_the_primary_one(study: MadeUpStudy) -> None:
    study.run("replay/s4-o0", ORDER, [], outcome=ENDED)
    secondary = analyse(study, secondary=[{"name": "bwt", "metric": "backward_transfer"}])[1]
    assert not secondary["confirmatory"]


def test_a_primary_one_that_failed_runs_could_turn_round_lets_no_secondary_one_confirm() -> None:
    """Of 60 pairs, in 40 A failed: significant on the others and at best, and significant the other way at worst."""
    wiggle = np.linspace(-0.01, 0.01, 60)
    a, b = np.where(np.arange(60) < 20, 0.8, np.nan) + wiggle, np.full(60, 0.5)
    failed, clusters = np.isnan(a), {"seed": range(60), "order": range(60)}
    metric = declaration("average_accuracy")
    turned = Pairs(metric, a, b, failed, failed & False, clusters, {}, None)
    clear = Pairs(metric, 0.8 + wiggle, b, failed & False, failed & False, clusters, {}, None)
    announced = [
        Comparison(role, role, "a", "b", "average_accuracy", None, PROTOCOL, "two-sided")
        for role in ("primary", "secondary")
    ]
    primary, secondary = compare(Analysis(0.05, None, tuple(announced)), [turned, clear])
    assert "complete: better, worst for A: worse, best for A: better" in primary["reason"]
    assert (secondary["verdict"], secondary["confirmatory"]) == ("better", False)


def test_a_one_sided_verdict_that_failed_runs_could_turn_is_not_shown(study: MadeUpStudy) -> None:
    study.run("finetune/s4-o0", ORDER, [[90, 10]], outcome=ENDED)
    assert analyse(study, {"alternative": "greater"})[0]["verdict"] == "not shown better"


def test_a_run_without_a_value_that_did_not_fail_is_no_failed_run(study: MadeUpStudy) -> None:
    """A reference that failed leaves both methods of its unit without a value: no bound is filled in for them."""
    runs = [f"{method}/{unit}" for method in ("finetune", "replay") for unit in UNITS]
    write_average_accuracy(study, runs, null={"finetune/s4-o0": "joint/s4", "replay/s4-o0": "joint/s4"})
    study.stage("statistics", analysis=plan(), marks=no_marks())
    row = study.rows("statistics/comparisons.parquet", "comparisons")[0]
    assert (row["n"], row["n_failed_a"], row["n_failed_b"]) == (4, 0, 0)
    assert (row["mean_bound_low"], row["mean_bound_high"]) == (0.0, 0.0)
    assert "1 of 5 pairs left out, though no run failed: joint/s4" in row["reason"]


def test_a_verdict_that_holds_under_both_bounds_stays(study: MadeUpStudy) -> None:
    study.run("replay/s4-o0", ORDER, [[90, 10]], outcome=ENDED)
    rows = analyse(study, {"metric": "forgetting", "alternative": "greater"})
    assert (rows[0]["verdict"], rows[0]["n"]) == ("not shown worse", 4)


def test_fewer_than_two_pairs_give_neither_verdict_nor_p(study: MadeUpStudy) -> None:
    for unit in UNITS[1:]:
        study.run(f"replay/{unit}", ORDER, [], outcome=ENDED)
    row = analyse(study)[0]
    assert (row["n"], row["p"], row["verdict"], row["confirmatory"]) == (1, None, None, False)
    assert row["reason"] == "fewer than two pairs"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": "wilcoxon"}, "paired_t"),
        ({"correction": "none"}, "holm"),
        ({"failed_runs": "drop"}, "bounds"),
        ({"alpha": 5}, "between 0 and 1"),
        ({"equivalence_margin": 2}, "fraction above 0"),
        ({"primary": comparison("x", alternative="larger")}, "two-sided or greater or less"),
        ({"secondary": [comparison("accuracy")]}, "another name"),
        ({"primary": comparison("x", metric="accuracy")}, "no metric named"),
        ({"primary": comparison("x", index=2)}, "no index"),
        ({"primary": comparison("x", metric="average_accuracy_at_k")}, "the stage k"),
        ({"primary": comparison("x", a="ewc")}, "runs of ewc"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(study: MadeUpStudy, change: dict, message: str) -> None:
    write_average_accuracy(study, ["finetune/s0-o0", "replay/s0-o0"])
    analysis = plan(**change) if "primary" not in change else {**plan(), **change}
    with pytest.raises(StudyError) as error:
        study.stage("statistics", analysis=analysis, marks=no_marks())
    assert message in str(error.value)


def marked(*late: str, **comparisons: str) -> dict[str, Any]:
    reasons = {name: f"exploratory for good: {why}" for name, why in comparisons.items()}
    return {"comparisons": reasons, "late": list(late)}


def test_a_comparison_added_after_results_is_in_no_family(study: MadeUpStudy) -> None:
    """Announced as secondary by an amendment: exploratory, p as it is, and Holm's family keeps its size."""
    late = marked("at_2", at_2="added by amendment 1, after results existed")
    rows = {row["comparison"]: row for row in analyse(study, secondary=[AT_2, FORGETTING], marks=late)}
    at_2, forgetting = rows["at_2"], rows["forgetting"]
    assert (at_2["role"], at_2["confirmatory"], at_2["verdict"]) == ("exploratory", False, "better")
    assert at_2["reason"] == "exploratory for good: added by amendment 1, after results existed"
    assert (at_2["p_adjusted"], at_2["ci_simultaneous_low"]) == (at_2["p"], None)
    assert (forgetting["p_adjusted"], forgetting["confirmatory"]) == (forgetting["p"], True)


def test_a_touched_comparison_keeps_its_place_in_its_family(study: MadeUpStudy) -> None:
    """Nobody makes the family smaller, and the others easier to confirm, by touching one of them."""
    rows = {
        row["comparison"]: row
        for row in analyse(study, secondary=[AT_2, FORGETTING], marks=marked(at_2="the program was changed"))
    }
    assert (rows["at_2"]["role"], rows["at_2"]["confirmatory"]) == ("secondary", False)
    assert rows["forgetting"]["p_adjusted"] == pytest.approx(2 * rows["forgetting"]["p"])
    assert rows["forgetting"]["confirmatory"]


def test_no_secondary_comparison_is_confirmatory_behind_a_touched_primary_one(study: MadeUpStudy) -> None:
    primary, secondary = analyse(study, secondary=[FORGETTING], marks=marked(accuracy="the units were changed"))
    assert (primary["verdict"], primary["confirmatory"]) == ("better", False)
    assert primary["reason"] == "exploratory for good: the units were changed"
    assert (secondary["confirmatory"], secondary["reason"]) == (False, "the primary comparison is exploratory")


def write_average_accuracy(study: MadeUpStudy, runs: list[str], null: Mapping[str, str] = MappingProxyType({})) -> None:
    texts = {"protocol": PROTOCOL, "metric": "average_accuracy", "unit": "fraction", "direction": "higher"}
    columns: dict[str, list] = {name: [text] * len(runs) for name, text in texts.items()}
    columns |= {name: [None] * len(runs) for name in ("index", "task")}
    values = {"value": [None if run in null else 0.5 for run in runs], "missing": [null.get(run) for run in runs]}
    rows = {**columns, "run": runs, **values}
    job = study.job("aggregate")
    job.write_table("aggregate/metrics.parquet", "metrics", rows)
    failures = TABLES["failures"].schema.empty_table()
    job.write_table("aggregate/failures.parquet", "failures", failures)
    factors = {run.split("/")[1]: {"seed": run, "order": "o0"} for run in runs}
    metrics, methods = job.read_table("aggregate/metrics.parquet", "metrics"), ("finetune", "replay")
    job.write_table(
        "aggregate/summary.parquet", "summary", summarise_metrics(metrics, dict.fromkeys(methods, 0), factors)
    )
    cost = dict.fromkeys((*SUMS, EVALUATION, *LARGEST, SEVERAL), 8)
    job.write_table(
        "aggregate/costs.parquet",
        "costs",
        summarise_costs({method: [cost] for method in methods}, dict.fromkeys(methods, 0)),
    )


def test_methods_that_share_no_unit_are_not_compared(study: MadeUpStudy) -> None:
    write_average_accuracy(study, ["finetune/s0-o0", "finetune/s1-o0", "replay/s2-o0", "replay/s3-o0"])
    study.stage("statistics", analysis=plan(), marks=no_marks())
    row = study.rows("statistics/comparisons.parquet", "comparisons")[0]
    assert (row["n"], row["verdict"]) == (0, None)
    assert row["reason"] == "the methods share no unit; fewer than two pairs"


def test_a_unit_that_one_method_lacks_counts_as_a_failed_run(study: MadeUpStudy) -> None:
    runs = ["finetune/s0-o0", "finetune/s1-o0", "finetune/s2-o0", "replay/s0-o0", "replay/s1-o0"]
    write_average_accuracy(study, runs)
    study.stage("statistics", analysis=plan(), marks=no_marks())
    row = study.rows("statistics/comparisons.parquet", "comparisons")[0]
    assert (row["n"], row["n_failed_a"], row["n_failed_b"]) == (2, 1, 0)


def test_crossed_units_have_the_diagnostics_that_crossing_needs(tmp_path: Path) -> None:
    """Three seeds × three orders, in which orders matter: every other interval, and what is to be said of it."""
    study = MadeUpStudy(tmp_path)
    orders = {"o0": ("a", "b"), "o1": ("b", "a"), "o2": ("a", "b")}
    units = {f"s{seed}-{order}": tasks for order, tasks in orders.items() for seed in range(3)}
    study.plan(units)
    for at, (unit, tasks) in enumerate(units.items()):
        gain = 20 + 8 * (at // 3) + at % 3 + (at == 4)
        study.run(f"finetune/{unit}", tasks, [[90, 10], [30, 80]])
        study.run(f"replay/{unit}", tasks, [[90, 10], [30 + gain, 80]])
        for method in ("finetune", "replay"):
            write_metrics(study.job("metrics"), f"{method}/{unit}", "sequential", {}, [PROTOCOL], "told")
    for method in ("finetune", "replay"):
        study.stage("ledger", method=method)
    study.stage("aggregate", methods=["finetune", "replay"])
    study.stage("statistics", analysis=plan(), marks=no_marks())
    row = study.rows("statistics/comparisons.parquet", "comparisons")[0]
    assert row["clustered_by"] in ("order", "order and seed")
    assert row["ci_low"] < row["ci_naive_low"] < row["mean"] < row["ci_naive_high"] < row["ci_high"]
    assert row["bootstrap"] == "percentile over orders and seeds"
    assert row["mixed_sd_order"] > row["mixed_sd_rest"]
    assert "naive: in simulations with 2 orders or seeds" in row["diagnostics"]
    found = study.rows("statistics/orders.parquet", "orders", method="replay", by="variance", task="a")
    assert {part["level"]: part["variance"] is None for part in found} == dict.fromkeys(
        ("order", "seed", "rest"), False
    )
