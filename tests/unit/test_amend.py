"""Amendments add to a plan, redefine nothing, and lead back to the plan that was locked first."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import small_study
from palimpsest.core.errors import LockError
from palimpsest.core.hashing import hash_json
from palimpsest.plan.amend import amend, changes, field_text, first_plan, versions

SECONDARY = {"name": "f", "a": "replay", "b": "finetune", "metric": "forgetting"}
EWC = {"hyperparameters": {"strength": 1.0, "fisher_samples": 5}}


def base(content: dict[str, Any]) -> None:
    content["analysis"]["secondary"] = [SECONDARY]


def amended(folder, change, before=base, reason: str = "asked for") -> tuple[dict, dict]:
    """The plan of the small study with one secondary comparison, and the plan after an amendment."""
    old = small_study.plan_of(folder, before)

    def both(content):
        before(content)
        change(content)

    return old, amend(old, small_study.plan_of(folder, both), reason, "2026-01-01T00:00:00+00:00", False)


def analysis(**more: Any):
    return lambda content: content["analysis"].update(more)


def more_units(content):
    content["design"].update(crossing="full", seeds=[0, 1, 2])


ADDITIONS = {
    "methods.ewc": lambda c: c["methods"].update(ewc=EWC),
    "units.s2": more_units,
    "analysis.secondary.g": lambda c: c["analysis"]["secondary"].append({**SECONDARY, "name": "g"}),
    "analysis.secondary.before": lambda c: c["analysis"]["secondary"].insert(0, {**SECONDARY, "name": "before"}),
    "analysis.exploratory.x": analysis(exploratory=[{**SECONDARY, "name": "x"}]),
    "analysis.gates.p.mean > 0": analysis(gates=["p.mean > 0"]),
    "analysis.claims.reduces_forgetting f": analysis(
        claims=[{"claim": "reduces_forgetting", "comparison": "f", "margin": 0.1}]
    ),
    "analysis.alpha": analysis(alpha=0.1),
    "analysis.equivalence_margin": analysis(equivalence_margin=0.02),
    "title": lambda c: c.update(title="Another title"),
}


@pytest.mark.parametrize("field", ADDITIONS)
def test_what_an_amendment_may_do(tmp_path, field):
    """It is named, finished runs stay what they were, and the first plan can be made out again to the last value."""
    old, plan = amended(tmp_path, ADDITIONS[field])
    assert field in [field_text(change) for change in plan["amendments"][0]["changes"]]
    assert {run["run"]: run for run in plan["runs"]}.items() >= {run["run"]: run for run in old["runs"]}.items()
    assert first_plan(plan) == old
    assert plan["hash"] == hash_json({key: value for key, value in plan.items() if key != "hash"})


def test_a_reference_may_be_added(tmp_path):
    """One that was switched off runs once it is on."""

    def without(content):
        base(content)
        content["references"] = {"isolated": False}

    _, plan = amended(tmp_path, lambda c: c.update(references={"isolated": True}), without)
    assert "isolated/s0" in {run["run"] for run in plan["runs"]}


REDEFINITIONS = {
    "methods.replay.hyperparameters.replayed": lambda c: c["methods"]["replay"]["hyperparameters"].update(replayed=6),
    "methods.replay": lambda c: c["methods"].pop("replay") and c["analysis"].update(exchanged(c)),
    "analysis.primary.metric": lambda c: c["analysis"]["primary"].update(metric="overall_accuracy"),
    "analysis.primary.alternative": lambda c: c["analysis"]["primary"].update(alternative="greater"),
    "analysis.primary.protocol": lambda c: c["analysis"]["primary"].update(protocol="task_incremental"),
    "analysis.primary.name": lambda c: c["analysis"]["primary"].update(name="q"),
    "analysis.secondary.f.a": lambda c: c["analysis"]["secondary"][0].update(a="finetune", b="replay"),
    "analysis.secondary": analysis(secondary=[]),
    "training.learning_rate": lambda c: c["training"].update(learning_rate=0.1),
    "benchmark.seed": lambda c: c["benchmark"].update(seed=1),
    "benchmark.options.samples_per_class.test": lambda c: c["benchmark"]["options"]["samples_per_class"].update(test=5),
    "model.options.hidden": lambda c: c["model"]["options"].update(hidden=[9]),
    "numerics.threads": lambda c: c.update(numerics={"threads": 2}),
    "training_mask": lambda c: c.update(training_mask="seen"),
    "units": lambda c: c["design"].update(seeds=[0, 2]),
    "orders.o0": lambda c: c["design"].update(
        orders={"kind": "explicit", "explicit": [["t3", "t2", "t1"], ["t2", "t1", "t3"]]}
    ),
    "methods.joint.per_unit": lambda c: c.update(references={"joint": "per_stage"}),
}


def exchanged(content: dict[str, Any]) -> dict[str, Any]:
    content["methods"]["other"] = EWC | {"method": "ewc"}
    return {side: {**content["analysis"]["primary"], "a": "other"} for side in ("primary",)} | {
        "secondary": [{**SECONDARY, "a": "other"}]
    }


@pytest.mark.parametrize("field", REDEFINITIONS)
def test_what_has_a_name_stays_what_it_was(tmp_path, field):
    """The field is named with both values: a method's key, a run, a unit, an order, a comparison's name."""
    with pytest.raises(LockError, match="what has a name stays what it was") as error:
        amended(tmp_path, REDEFINITIONS[field])
    refused = error.value
    if field != "methods.replay":
        assert refused.where == field
    assert refused.expected != refused.got


def test_a_removed_comparison_is_named(tmp_path):
    """What was announced is reported."""
    with pytest.raises(LockError) as error:
        amended(tmp_path, REDEFINITIONS["analysis.secondary"])
    assert error.value.got == "without f"


def test_nothing_is_no_amendment(tmp_path):
    """A study that is as it was locked has nothing to amend."""
    with pytest.raises(LockError, match="nothing to amend"):
        amended(tmp_path, lambda content: None)


def test_several_amendments_make_a_chain(tmp_path):
    """Each names the plan before it; all of them lead back to the first."""
    old, once = amended(tmp_path, ADDITIONS["methods.ewc"])

    def all_of_it(content):
        base(content)
        content["methods"]["ewc"] = EWC
        content["analysis"]["alpha"] = 0.01

    twice = amend(once, small_study.plan_of(tmp_path, all_of_it), "again", "2026-01-02T00:00:00+00:00", True)
    assert versions(twice) == [old["hash"], once["hash"], twice["hash"]]
    assert first_plan(twice) == old
    assert [made["reason"] for made in twice["amendments"]] == ["asked for", "again"]


@pytest.mark.parametrize("forge", ["hide a change", "another value before"])
def test_an_amendment_that_does_not_tell_all_is_found(tmp_path, forge):
    """A lock that was edited and hashed again does not lead back to the plan whose hash was published."""
    _, plan = amended(tmp_path, ADDITIONS["analysis.alpha"])
    plan = copy.deepcopy(plan)
    (change,) = plan["amendments"][0]["changes"]
    if forge == "hide a change":
        plan["amendments"][0]["changes"] = [{"field": ["study", "title"], "old": "a", "new": plan["study"]["title"]}]
    else:
        change["old"] = 0.2
    plan["hash"] = hash_json({key: value for key, value in plan.items() if key != "hash"})
    with pytest.raises(LockError, match="does not tell all"):
        first_plan(plan)


def test_a_number_is_not_a_truth_value():
    """1 and true are equal in Python and different in a plan."""
    assert list(changes({"a": 1}, {"a": True})) == [{"field": ["a"], "old": 1, "new": True}]
