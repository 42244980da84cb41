"""What a plan knows of budgets: which hold for a method, who would exceed them, which tasks are too small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palimpsest.core.errors import StudyError
from palimpsest.plan.schedule import stages
from palimpsest.plan.yaml_file import YamlFile

Plan = dict[str, Any]
BYTES = ("memory_bytes", "method_bytes")


def limits(plan: Plan, key: str) -> dict[str, int]:
    """Budgets of a method's runs, by name; none for a reference, which shows what could be reached without."""
    if plan["methods"][key]["role"] == "reference":
        return {}
    of_study, own = plan["study"]["budgets"], plan["study"]["methods"][key]["budgets"] or {}
    merged = {name: value if own.get(name) is None else own[name] for name, value in of_study.items()}
    return {name: value for name, value in merged.items() if value is not None}


def require_within_budgets(plan: Plan, file: YamlFile) -> None:
    """Refuse, by name, a method that declares to store more than its budget.

    Raises:
        StudyError: it does.
    """
    for key in plan["methods"]:
        need = _need(plan, key)
        for name, limit in limits(plan, key).items():
            if name in BYTES and need > limit:
                raise StudyError(
                    f"the method {key} would exceed its budget",
                    where=file.where(("methods", key)),
                    expected=f"at most {limit} bytes, as the budget {name} says",
                    got=f"{need} bytes of stored samples, as {plan['methods'][key]['method']} declares",
                    next="make its memory smaller, raise the budget, or leave the method out",
                )


def _need(plan: Plan, key: str) -> int:
    """Bytes of stored samples that a method declares; one that trains on earlier tasks again stores all of them."""
    method, inputs = plan["methods"][key], plan["inputs"]
    if method["schedule"] != "cumulative":
        return method["memory_bytes"]
    n_train = {task: facts["n_train"] for task, facts in plan["tasks"].items()}
    most = max(sum(n_train[task] for task in order[:-1]) for order in plan["orders"].values())
    return method["memory_bytes"] + most * (inputs["sample_bytes"] + inputs["label_bytes"])


def too_small(plan: Plan) -> Iterator[str]:
    """A line for each method and kind of stage whose data cannot give the steps that the plan asks for."""
    training = plan["study"]["training"]
    if training["steps"] is None:
        return
    for key, method in plan["methods"].items():
        found = {}
        for order in plan["orders"].values():
            for stage in stages(method["schedule"], order, plan["study"]["references"]["joint"] or "final"):
                n = sum(plan["tasks"][task]["n_train"] for task in stage["tasks"])
                steps = training["epochs"] * -(-n // training["batch_size"])
                if stage["tasks"] and steps < training["steps"]:
                    found[stage["task"]] = steps
        for task, steps in found.items():
            yield (
                f"{key}: {task} gives {steps} steps in {training['epochs']} epochs, and training.steps is "
                f"{training['steps']}: its runs will end there as `data`"
            )
