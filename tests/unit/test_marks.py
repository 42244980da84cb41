"""Exploratory for good: whatever touches a comparison after the first evaluation, and whatever is done afterwards."""

from __future__ import annotations

from typing import Any

import pytest

import small_study
from palimpsest.plan.amend import amend
from palimpsest.plan.grid import Grid
from palimpsest.plan.marks import analysing_programs, marks, no_marks, results_before, workflow_programs

FORGETTING = {"name": "f", "a": "replay", "b": "finetune", "metric": "forgetting"}
LATE = {"name": "late", "a": "replay", "b": "finetune", "metric": "learning_accuracy"}
PROGRAMS = {
    "data": "d",
    "analysis": "a",
    **{f"metric/{name}": "m" for name in ("average_accuracy", "forgetting")},
    **{f"{rule}/{m}": "p" for rule in ("train", "evaluate") for m in ("replay", "finetune", "joint")},
}


def secondary(*more: dict[str, Any], **rules: Any):
    return lambda c: c["analysis"].update(secondary=[FORGETTING, *more], **rules)


@pytest.fixture
def plan(tmp_path) -> dict[str, Any]:
    return small_study.plan_of(tmp_path, secondary())


def amended(plan, folder, change, after_results: bool = False) -> dict[str, Any]:
    return amend(plan, small_study.plan_of(folder, change), "why", "2026-01-01", after_results)


def evaluation(plan, programs=PROGRAMS, event: str = "evaluation") -> dict[str, Any]:
    return {"date": "2026-01-01", "event": event, "lock": plan["hash"], "programs": programs}


def test_nothing_is_marked_without_results(plan, tmp_path):
    """An amendment before the first evaluation leaves everything as it is."""
    after = amended(plan, tmp_path, secondary(LATE, alpha=0.1))
    assert marks(after, [], PROGRAMS, found=False) == no_marks()
    assert marks(after, [evaluation(after)], PROGRAMS, found=False) == no_marks()


def test_nothing_is_marked_while_nothing_changes(plan):
    """Evaluating again and again under one plan by one program is what a preemption does."""
    assert marks(plan, [evaluation(plan)] * 3, PROGRAMS, found=False) == no_marks()


def test_an_added_comparison_is_late_and_marks_no_other(plan, tmp_path):
    """Those that were announced keep what they have."""
    found = marks(amended(plan, tmp_path, secondary(LATE)), [evaluation(plan)], PROGRAMS, found=False)
    assert found["late"] == ["late"]
    assert found["comparisons"] == {"late": "exploratory for good: added by amendment 1, after results existed"}


CHANGES = {
    "analysis.alpha": secondary(alpha=0.1),
    "analysis.equivalence_margin": secondary(equivalence_margin=0.02),
    "design.seeds": lambda c: (secondary()(c), c["design"].update(seeds=[0, 1, 2], crossing="full")),
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_rule_or_the_units_touch_every_comparison(plan, tmp_path, field):
    """The reason names field and amendment; none of them is late, so that no family shrinks."""
    found = marks(amended(plan, tmp_path, CHANGES[field]), [evaluation(plan)], PROGRAMS, found=False)
    assert found["comparisons"].keys() == {"p", "f"}
    assert all(field in why and "amendment 1" in why for why in found["comparisons"].values())
    assert found["late"] == []


@pytest.mark.parametrize(
    "change",
    [
        lambda c: (
            secondary()(c),
            c["methods"].update(ewc={"hyperparameters": {"strength": 1.0, "fisher_samples": 5}}),
        ),
        lambda c: (secondary()(c), c.update(title="Another title")),
        secondary(expected_effect=0.1, expected_sd=0.1, expected_sd_source="a guess"),
    ],
)
def test_what_touches_no_comparison_marks_none(plan, tmp_path, change):
    """Another method, another title, an expectation."""
    assert marks(amended(plan, tmp_path, change), [evaluation(plan)], PROGRAMS, found=False) == no_marks()


def test_added_gates_and_claims_are_marked_themselves(plan, tmp_path):
    """Their thresholds may have been chosen with the results in view."""
    claim = {"claim": "reduces_forgetting", "comparison": "f", "margin": 0.1}
    after = amended(plan, tmp_path, secondary(gates=["p.mean > 0"], claims=[claim]))
    found = marks(after, [evaluation(plan)], PROGRAMS, found=False)
    assert (found["gates"].keys(), found["claims"].keys()) == ({"p.mean > 0"}, {"reduces_forgetting f"})
    assert found["comparisons"] == {}


def test_a_comparison_that_was_evaluated_after_its_amendment_stays_exploratory(plan, tmp_path):
    """Further runs under the amended plan change nothing."""
    after = amended(plan, tmp_path, secondary(LATE))
    assert marks(after, [evaluation(plan), evaluation(after)], PROGRAMS, found=False)["late"] == ["late"]


def test_the_lock_remembers_what_a_lost_journal_does_not(plan, tmp_path):
    """The amendment itself says that results existed."""
    after = amended(plan, tmp_path, secondary(LATE), after_results=True)
    assert results_before(after, []) == [True]
    assert marks(after, [], PROGRAMS, found=False)["late"] == ["late"]


def test_a_new_lock_does_not_launder(plan, tmp_path):
    """The late comparison announced in a new lock, as if it had been there: the journal knows another plan."""
    new = small_study.plan_of(tmp_path, secondary(LATE))
    found = marks(new, [evaluation(plan)], PROGRAMS, found=False)
    assert found["comparisons"].keys() == {"p", "f", "late"}
    assert all(f"another plan, {plan['hash'][:12]}" in why for why in found["comparisons"].values())


def test_going_back_to_the_old_lock_does_not_launder(plan, tmp_path):
    """A comparison that was looked at and dropped: the analysis of it stands in the journal."""
    after = amended(plan, tmp_path, secondary(LATE))
    lines = [evaluation(plan), evaluation(after, event="analysis")]
    assert marks(plan, lines, PROGRAMS, found=False)["comparisons"].keys() == {"p", "f"}


@pytest.mark.parametrize("lines", [[], [{"event": "found", "lock": "x", "date": "2026"}]])
def test_results_without_a_journal_mark_everything(plan, lines):
    """Found now, or found once: nobody knows under which plan they were seen."""
    lines = [*lines, evaluation(plan)] if lines else []
    found = marks(plan, lines, PROGRAMS, found=not lines)
    assert set(found["comparisons"].values()) == {
        "exploratory for good: results existed of which the journal does not know"
    }


@pytest.mark.parametrize(
    ("program", "touched"),
    [
        ("train/replay", {"p", "f"}),
        ("evaluate/finetune", {"p", "f"}),
        ("train/joint", {"p", "f"}),
        ("data", {"p", "f"}),
        ("analysis", {"p", "f"}),
        ("metric/forgetting", {"f"}),
        ("train/ewc", set()),
    ],
)
def test_an_edited_program_touches_the_comparisons_that_it_made(plan, program, touched):
    """A metric touches the comparisons on it, a method those of it; a method of no comparison touches none."""
    lines = [evaluation(plan, PROGRAMS | {"train/ewc": "p"})]
    found = marks(plan, lines, PROGRAMS | {program: "edited"}, found=False)["comparisons"]
    assert found.keys() == touched
    assert all(program in why for why in found.values())


def test_an_edit_that_was_taken_back_stays_known(plan):
    """The results of the edited program were seen."""
    lines = [evaluation(plan), evaluation(plan, PROGRAMS | {"train/replay": "edited"}), evaluation(plan)]
    assert marks(plan, lines, PROGRAMS, found=False)["comparisons"].keys() == {"p", "f"}


def test_an_added_metric_is_no_edit(tmp_path, plan):
    """One more file among the metrics leaves the programs of the others, and what they share, as they were."""
    recorded = {
        rule: {
            "files": {"palimpsest.core.matrix": "1", "palimpsest.metrics.forgetting": "2", "palimpsest.metrics": "3"}
        }
        for rule in ("metrics", "aggregate", "statistics")
    }
    before = analysing_programs(recorded)
    recorded["metrics"]["files"]["palimpsest.metrics.another"] = "4"
    assert analysing_programs(recorded).items() - before.items() == {("metric/another", "4")}
    recorded["statistics"]["files"]["palimpsest.metrics._cells"] = "5"
    assert analysing_programs(recorded)["analysis"] != before["analysis"]


def test_the_programs_of_a_workflow_are_those_that_decide_numbers(plan):
    """Data, training and evaluation of every method, what analyses share, the metrics of the comparisons."""
    methods = ("finetune", "replay", "random_init", "isolated", "joint")
    assert workflow_programs(plan, Grid(plan).programs()).keys() == {
        *("data", "analysis", "metric/average_accuracy", "metric/forgetting"),
        *(f"{rule}/{method}" for rule in ("train", "evaluate") for method in methods),
    }
