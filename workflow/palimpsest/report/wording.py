"""What the report says of the study and its methods in words. (`statistics.wording` words the comparisons.)"""

from __future__ import annotations

from palimpsest.report.study import Row, Study
from palimpsest.statistics.wording import protocol

NEEDS = {
    "stores_raw_data": "stores raw data",
    "needs_task_identity": "needs task identity at test time",
    "needs_task_boundaries": "needs task boundaries",
    "grows": "grows with the tasks",
}
SCHEDULES = {
    "joint": "trained on the data of all tasks together",
    "isolated": "each task alone, from fresh weights",
    "untrained": "not trained",
}


def needs(method: Row) -> str:
    """What a method stores and needs, as it declares it; of a reference, how it is trained."""
    declared = ", ".join(text for key, text in NEEDS.items() if method[key])
    return SCHEDULES.get(method["schedule"]) or declared or "stores no data, needs no task information"


def opening(study: Study) -> str:
    """Two sentences: what the study is, and by which plan it was analysed."""
    methods = study.names("method")
    named = ", ".join(methods[:-1]) + " and " + methods[-1] if len(methods) > 1 else "".join(methods)
    units = [unit for unit in study.lock["units"] if unit["order_id"] in study.lock["orders"]]
    n_seeds, n_orders = len({unit["seed"] for unit in units}), len({unit["order_id"] for unit in units})
    verb = "compares" if len(methods) > 1 else "runs"
    amendments = len(study.lock.get("amendments") or [])
    amended = f", amended {amendments} times," if amendments > 1 else ", amended once," if amendments else ""
    benchmark = study.plan["benchmark"]["name"]
    return (
        f"This study {verb} {named} on {benchmark} under the {protocol(study.protocol)} protocol: "
        f"{study.n_tasks} tasks in sequence, {len(units)} units ({n_seeds} seeds and {n_orders} task orders). "
        f"Its comparisons, tests and rules are those of the locked plan{amended} whose hash begins with "
        f"{study.lock['hash'][:12]}."
    )


def chance(study: Study) -> tuple[float, str] | None:
    """Accuracy of guessing among the outputs, where their number is the same for every sample; None elsewhere."""
    mask = study.plan["evaluation_mask"]
    tasks = study.lock["tasks"].values()
    if mask == "all":
        n_outputs = {len({label for task in tasks for label in task["classes"]})}
    elif mask == "current":
        n_outputs = {len(task["classes"]) for task in tasks}
    else:
        return None
    if len(n_outputs) != 1:
        return None
    (n,) = n_outputs
    return (1 / n, f"chance, 1/{n}") if n else None
