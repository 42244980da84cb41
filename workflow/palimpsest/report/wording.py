"""What is said in words: names and formulas of metrics, verdicts, and what a method needs."""

from __future__ import annotations

from dataclasses import dataclass

from palimpsest.report.numbers import is_missing, p_value, percent, points
from palimpsest.report.study import Row, Study

PROTOCOLS = {
    "class_incremental": "class-incremental",
    "task_incremental": "task-incremental",
    "domain_incremental": "domain-incremental",
}
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


@dataclass(frozen=True)
class Metric:
    """How a metric is named and printed.

    Args:
        label: its name in words.
        formula: its definition in one line.
        accuracy: whether it is an accuracy (percent) or a difference of accuracies (percentage points).
        lower_is_better: its direction.
        reference: who defined it so, if the name is used for several formulas.
    """

    label: str
    formula: str
    accuracy: bool = False
    lower_is_better: bool = False
    reference: str = ""

    @property
    def unit(self) -> str:
        """The unit in a table's heading."""
        return "%" if self.accuracy else "pp"

    def text(self, value: float | None) -> str:
        """A value of the metric in its unit."""
        return percent(value) if self.accuracy else points(value)


METRICS = {
    "average_accuracy": Metric("average accuracy", "mean over j of a[T, j]", accuracy=True),
    "average_accuracy_at_k": Metric(
        "average accuracy after stage k", "mean over j ≤ k of a[k, j]; only tasks seen so far", accuracy=True
    ),
    "forgetting": Metric(
        "forgetting",
        "mean over j < T of (max over l < T of a[l, j] − a[T, j]); signed, all earlier stages",
        lower_is_better=True,
        reference="Chaudhry et al. 2018",
    ),
    "backward_transfer": Metric(
        "backward transfer",
        "mean over i < T of (a[T, i] − a[i, i]); divisor T − 1",
        reference="Lopez-Paz and Ranzato 2017",
    ),
    "learning_accuracy": Metric(
        "learning accuracy", "mean over j of a[j, j]: each task just after it was trained", accuracy=True
    ),
    "forward_transfer_isolated": Metric(
        "forward transfer (isolated)", "mean over i ≥ 2 of (a[i, i] − b_i); b_i: trained on task i alone"
    ),
    "intransigence_isolated": Metric(
        "intransigence (isolated)",
        "mean over j of (b_j − a[j, j]); negative values can come from recency in class-incremental studies and "
        "are not plasticity",
        lower_is_better=True,
    ),
    "intransigence_joint": Metric(
        "intransigence (joint)",
        "mean over k of (a*_k − a[k, k]); a*_k: trained jointly on tasks 1…k, tested on task k",
        lower_is_better=True,
        reference="Chaudhry et al. 2018",
    ),
}


def metric(name: str) -> Metric:
    """How a metric is printed; one that the report does not define is named as in the tables."""
    known = METRICS.get(name)
    return known or Metric(name.replace("_", " "), "see the metric's docstring", accuracy=name.endswith("accuracy"))


def protocol(name: str) -> str:
    """A protocol in words."""
    return PROTOCOLS.get(name, name.replace("_", " "))


def needs(method: Row) -> str:
    """What a method stores and needs, as it declares it; of a reference, how it is trained."""
    declared = ", ".join(text for key, text in NEEDS.items() if method[key])
    return SCHEDULES.get(method["schedule"]) or declared or "stores no data, needs no task information"


def is_rejection(comparison: Row) -> bool:
    """Whether the comparison's null hypothesis was rejected: only then is there a difference to speak of."""
    return (comparison["verdict"] or "").startswith(("better", "worse"))


def standing(comparison: Row, primary: Row | None) -> str:
    """Role of a comparison and what it may be used for.

    A secondary comparison confirms something only where the primary one rejects; any other than the two is
    exploratory.
    """
    role = comparison["role"]
    if role == "primary":
        return "primary, confirmatory"
    if role != "secondary":
        return "exploratory"
    if primary is not None and is_rejection(primary):
        return "secondary, confirmatory"
    return "secondary, exploratory: the primary comparison does not reject"


def quantity(comparison: Row) -> str:
    """The metric and protocol of a comparison in words."""
    index = "" if is_missing(comparison["index"]) else f" (k = {comparison['index']})"
    return f"{metric(comparison['metric']).label}{index}, {protocol(comparison['protocol'])}"


def verdict(comparison: Row, margin: float | None) -> str:
    """The verdict of a comparison as one sentence; what is not significant is never said to be equal."""
    a, b, reason = comparison["a"], comparison["b"], comparison["reason"]
    delta = "" if margin is None else f" of {percent(margin)} percentage points"
    undecided = "That is no evidence that they are equal."
    sentences = {
        "better": f"{a} is better than {b}.",
        "worse": f"{a} is worse than {b}.",
        "better, within δ": f"{a} is better than {b}, and by less than the margin δ{delta}.",
        "worse, within δ": f"{a} is worse than {b}, and by less than the margin δ{delta}.",
        "equivalent": f"{a} and {b} are equivalent within the margin δ{delta}.",
        "inconclusive": f"Inconclusive: whether {a} or {b} is better was not decided. {undecided}",
        "not shown better": f"{a} was not shown to be better than {b}. {undecided}",
    }
    if comparison["verdict"] is None:
        return f"No verdict on {a} and {b}" + (f": {reason}." if reason else ".")
    return sentences.get(comparison["verdict"], f"{a} against {b}: {comparison['verdict']}.")


def evidence(comparison: Row) -> str:
    """The numbers behind a verdict: difference, interval, p and the number of pairs."""
    parts = [
        f"mean difference {comparison['a']} minus {comparison['b']}: {points(comparison['mean'])} percentage points",
        interval(comparison),
        f"n = {comparison['n']} pairs",
    ]
    if not is_missing(comparison["p"]):
        test = f"{comparison['alternative'].replace('_', '-')} p {p_value(comparison['p'])}"
        statistic = (
            ""
            if is_missing(comparison["t"])
            else f", t({comparison['df']})\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{comparison['t']:.2f}"
        )
        parts.append(test + statistic)
    if not is_missing(comparison["p_adjusted"]):
        parts.append(f"adjusted p {p_value(comparison['p_adjusted'])}")
    if comparison["n_failed_a"] or comparison["n_failed_b"]:
        a, b = comparison["a"], comparison["b"]
        parts.append(f"failed runs: {comparison['n_failed_a']} of {a}, {comparison['n_failed_b']} of {b}")
    return "; ".join(parts)


def interval(comparison: Row) -> str:
    """The interval of the mean difference; a one-sided one has one bound."""
    low, high = comparison["ci_low"], comparison["ci_high"]
    level = f"{100 * (1 - comparison['alpha']):g}%"
    if is_missing(low) and is_missing(high):
        return "no interval"
    if is_missing(high):
        return f"{level} lower bound {points(low)}"
    if is_missing(low):
        return f"{level} upper bound {points(high)}"
    return f"{level} CI {points(low)} to {points(high)}"


def preference(comparison: Row) -> str:
    """Which sign of the difference speaks for the first method."""
    lower = comparison["metric_direction"] == "lower" or metric(comparison["metric"]).lower_is_better
    return f"{'negative' if lower else 'positive'}: {comparison['a']} better"


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
