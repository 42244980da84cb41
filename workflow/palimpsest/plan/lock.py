"""The lock: the whole plan, every default spelled out, every seed and order listed, and its hash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from palimpsest.core.errors import LockError, StudyError
from palimpsest.core.hashing import hash_json
from palimpsest.core.matrix import read_as
from palimpsest.plan import orders as task_orders
from palimpsest.plan.budgets import require_within_budgets
from palimpsest.plan.gates import read_gate, require_gate
from palimpsest.plan.grid import REFERENCES, Grid, complete_spec, shared_spec
from palimpsest.plan.journal import of_workflows, read_journal
from palimpsest.plan.needs import why_not_recorded
from palimpsest.plan.power import paired_t_power
from palimpsest.plan.study import Comparison, Study
from palimpsest.plan.yaml_file import YamlFile

Plan = dict[str, Any]
FORMAT = 1
ENOUGH_POWER = 0.8


class Describe(Protocol):
    """What the files of the axes say of themselves; the command line connects it, so that the plan imports none."""

    def benchmark(self, study: Study, file: YamlFile) -> dict[str, Any]:
        """`{options, sources, tasks: {id: {classes, n_train, n_validation, n_test}}, inputs}`, and `temporal_order`, a
        list of all task ids, where the data came about in one."""
        ...

    def model(self, study: Study, file: YamlFile, benchmark: dict[str, Any]) -> dict[str, Any]:
        """Options of the model with every default."""
        ...

    def method(self, study: Study, file: YamlFile, benchmark: dict[str, Any], key: str) -> dict[str, Any]:
        """Hyperparameters with every default, and the method's declaration; `key` may name a reference."""
        ...

    def metric(self, name: str, where: str) -> dict[str, Any]:
        """`{index, undefined_in, without_boundaries, needs, inputs}` of a metric: over what its values run (null: one
        for a run, `k`: one for each stage, or `task`), protocols in which it says nothing, with the reason, why it is
        undefined where nobody is told of boundaries (or null), references that it needs, all it is computed from."""
        ...


def lock_path(study_file: Path) -> Path:
    """`config/NAME.lock.json` for `config/NAME.yaml`."""
    return study_file.with_name(f"{study_file.stem}.lock.json")


def make_lock(study: Study, file: YamlFile, describe: Describe) -> Plan:
    """Resolve a study to its plan.

    Raises:
        StudyError: a name, option, order or comparison does not exist or cannot be run.
    """
    benchmark = describe.benchmark(study, file)
    _check_protocol(study, file, benchmark["inputs"]["label_tells_task"])
    orders = task_orders.task_orders(
        study.design.orders,
        list(benchmark["tasks"]),
        file.where(("design", "orders")),
        benchmark.get("temporal_order"),
    )
    plan: Plan = {
        "format": FORMAT,
        "study": locked_part(study),
        "benchmark": {"options": benchmark["options"], "sources": benchmark["sources"]},
        "tasks": benchmark["tasks"],
        "inputs": benchmark["inputs"],
        "model": {"options": describe.model(study, file, benchmark)},
        "orders": orders,
        "balance": task_orders.describe_balance(list(orders.values()), study.design.orders.similarity),
        "methods": {key: describe.method(study, file, benchmark, key) for key in _keys(study, file)},
    }
    plan["units"] = _units(study, file, orders, list(benchmark["tasks"]))
    plan["runs"] = list(_runs(plan))
    _check_validation(study, file, benchmark["tasks"])
    require_within_budgets(plan, file)
    _check_boundaries(study, file, plan["methods"])
    _check_comparisons(study, file, describe, benchmark["tasks"])
    _check_gates(study, file)
    _check_claims(study, file)
    plan["power"] = _power(study, file, plan)
    return {**plan, "hash": hash_json(plan)}


def open_lock(study: Study, study_file: Path) -> Grid:
    """The grid of a study that agrees with its lock.

    Raises:
        LockError: there is no lock, it was edited by hand, or the study differs from it; the error names each field
            with both values.
    """
    path = lock_path(study_file)
    plan = read_lock(path)
    changes = list(differences(plan["study"], locked_part(study)))
    if changes:
        raise LockError(
            f"the study differs from its lock in {len(changes)} field{'s' if len(changes) > 1 else ''}",
            where=f"{study_file} and {path}",
            expected="\n".join(f"{field} = {_text(locked)}" for field, locked, _ in changes),
            got="\n".join(f"{field} = {_text(now)}" for field, _, now in changes),
            next=f"restore the study file; or amend the plan: envs/run palimpsest lock {study_file} --amend REASON; "
            "or, as long as nothing has run, remove the lock and make it anew",
        )
    return Grid(plan)


def refuse_second_plan(folder: Path, journal: Path, plan: Plan) -> None:
    """Refuse to lock another plan over results: what was preregistered would be replaced without a trace.

    Args:
        folder: the study's results.
        journal: of the study; it knows of results that are gone, too.
        plan: the new one.

    Raises:
        LockError: there are or were results of a plan with another hash.
    """
    earlier = folder / "plan" / "lock.json"
    found = {str(folder): read_lock(earlier)["hash"]} if earlier.is_file() else {}
    found |= {f"{journal}, {line['date']}": line["lock"] for line in of_workflows(read_journal(journal))}
    for where, evaluated in found.items():
        if evaluated != plan["hash"]:
            raise LockError(
                "the study has results of another plan already",
                where=where,
                expected=f"the plan {evaluated[:12]}, under which they were made",
                got=f"the plan {plan['hash'][:12]}",
                next="restore the lock from version control and amend it (palimpsest lock --amend REASON); or give the "
                "changed plan, which is a new study, a name and a file of its own",
            )


def read_lock(path: Path) -> Plan:
    """A lock whose hash was checked.

    Raises:
        LockError: there is none, or it is not as `palimpsest lock` wrote it.
    """
    command = f"envs/run palimpsest lock {path.with_name(path.name.removesuffix('.lock.json') + '.yaml')}"
    if not path.is_file():
        raise LockError(
            "the study has no lock",
            where=str(path),
            expected="the plan, frozen before the first run",
            got="no such file",
            next=f"{command}, and commit the file that it writes",
        )
    try:
        plan = json.loads(path.read_bytes())
        recorded = plan.pop("hash")
        computed = hash_json(plan)
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise LockError(
            "the lock cannot be read",
            where=str(path),
            expected="JSON as palimpsest lock writes it",
            got=f"{type(error).__name__}: {error}",
            next="restore the file from version control",
        ) from None
    if recorded != computed or plan.get("format") != FORMAT:
        raise LockError(
            "the lock is not as it was written",
            where=str(path),
            expected=f"format {FORMAT}, hash {recorded}",
            got=f"format {plan.get('format')}, hash {computed}",
            next=f"restore the file from version control; a plan is changed in the study file: {command}",
        )
    return {**plan, "hash": recorded}


def locked_part(study: Study) -> dict[str, Any]:
    """What of a study the lock covers, with defaults spelled out: all but how the work is cut into jobs."""
    covered = study.model_dump(mode="json", exclude={"execution"})
    analysis = covered["analysis"]
    for comparison in (analysis["primary"], *analysis["secondary"], *analysis["exploratory"]):
        comparison["protocol"] = comparison["protocol"] or study.protocol
    return covered


def differences(locked: Any, now: Any, field: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Each field that differs: dotted name, locked value, new value; `None` stands for an absent one."""
    if isinstance(locked, dict) and isinstance(now, dict):
        for key in sorted(locked.keys() | now.keys()):
            yield from differences(locked.get(key), now.get(key), f"{field}.{key}" if field else key)
    elif locked != now:
        yield field, locked, now


def _check_protocol(study: Study, file: YamlFile, label_tells_task: bool) -> None:
    other, have = ("class", "have outputs of their own") if label_tells_task else ("domain", "share their outputs")
    if study.protocol not in (f"{other}_incremental", "task_incremental"):
        raise StudyError(
            "the protocol does not fit the outputs of the tasks",
            where=file.where(("protocol",)),
            expected=f"{other}_incremental or task_incremental, since the tasks of this benchmark {have}",
            got=study.protocol,
            next="change the protocol, or the benchmark's option `outputs`",
        )


def _keys(study: Study, file: YamlFile) -> list[str]:
    """Methods and references of the study; a method must not be called as a reference is."""
    taken = sorted(set(study.methods) & set(REFERENCES))
    if taken:
        raise StudyError(
            "a method is called as a reference is",
            where=file.where(("methods", taken[0])),
            expected=f"a key other than {', '.join(REFERENCES)}",
            got=taken[0],
            next="rename it, and switch the reference on under `references`",
        )
    return [*study.methods, *(name for name in REFERENCES if getattr(study.references, name))]


def _units(study: Study, file: YamlFile, orders: dict[str, list[str]], canonical: list[str]) -> list[dict[str, Any]]:
    seeds = study.design.seeds
    if study.design.crossing == "paired" and len(seeds) != len(orders):
        raise StudyError(
            "paired units need as many seeds as orders",
            where=file.where(("design",)),
            expected=f"{len(orders)} seeds for {len(orders)} orders",
            got=f"{len(seeds)} seeds",
            next="add or remove seeds, or write crossing: full",
        )
    pairs = (
        list(zip(seeds, orders, strict=True))
        if study.design.crossing == "paired"
        else [(seed, order) for seed in seeds for order in orders]
    )
    units = [
        {"unit": f"s{seed}-{order}", "seed": seed, "order_id": order, "tasks": orders[order]} for seed, order in pairs
    ]
    shared = [
        {"unit": f"s{seed}", "seed": seed, "order_id": task_orders.CANONICAL, "tasks": canonical} for seed in seeds
    ]
    return units + shared


def _runs(plan: Plan) -> Iterator[dict[str, Any]]:
    per_unit = [unit for unit in plan["units"] if unit["order_id"] != task_orders.CANONICAL]
    per_seed = [unit for unit in plan["units"] if unit["order_id"] == task_orders.CANONICAL]
    for key, method in plan["methods"].items():
        shared = shared_spec(plan, key)
        for unit in per_unit if method["per_unit"] else per_seed:
            spec = complete_spec(shared, unit)
            yield {"run": f"{key}/{unit['unit']}", "method": key, "unit": unit["unit"], "spec_hash": hash_json(spec)}


# By what a metric's values run over: the index that a comparison of it names.
INDEX_OF_ONE_VALUE = {
    None: "no index",
    "k": "the stage, 1 to {n_stages}",
    "b": "a number of mini-batches that is probed, from 0 on",
    "beta": "a number of mini-batches up to which each one is probed, from 0 on",
}


def _is_one_value(index: str | None, given: int | None, n_stages: int) -> bool:
    if index is None or given is None or index not in INDEX_OF_ONE_VALUE:
        return index is None and given is None
    return given >= 0 if index != "k" else 1 <= given <= n_stages


def _check_validation(study: Study, file: YamlFile, tasks: dict[str, dict[str, Any]]) -> None:
    """Refuse to look at validation samples that there are not."""
    without = [task for task, facts in tasks.items() if not facts["n_validation"]]
    places = [("probes", "split")] if study.probes is not None and study.probes.split == "validation" else []
    places += [("training", "early_stop")] if study.training.early_stop is not None else []
    if places and without:
        raise StudyError(
            f"{places[0][0]} on validation samples of a task that has none",
            where=file.where(places[0]),
            expected="validation samples of every task",
            got=f"none of {', '.join(without)}",
            next="set samples for validation aside, or do without",
        )


def _check_boundaries(study: Study, file: YamlFile, methods: dict[str, dict[str, Any]]) -> None:
    """Refuse methods that must be told where a task ends, where nothing tells them."""
    for key, method in methods.items():
        if study.boundaries == "hidden" and method["role"] == "method" and method["needs_task_boundaries"]:
            raise StudyError(
                "a method needs task boundaries, and this study hides them",
                where=file.where(("methods", key)),
                expected="methods that declare needs_task_boundaries=False",
                got=method["method"],
                next="leave the method out, or write boundaries: told",
            )


def _check_comparisons(study: Study, file: YamlFile, describe: Describe, tasks: dict[str, dict[str, Any]]) -> None:
    n_stages, n_train = len(tasks), {task: facts["n_train"] for task, facts in tasks.items()}
    comparisons = [(("analysis", "primary"), study.analysis.primary)]
    comparisons += [(("analysis", "secondary", i), c) for i, c in enumerate(study.analysis.secondary)]
    comparisons += [(("analysis", "exploratory", i), c) for i, c in enumerate(study.analysis.exploratory)]
    for place, comparison in comparisons:
        _check_sides(study, file, place, comparison)
        metric = describe.metric(comparison.metric, file.where((*place, "metric")))
        _check_metric(study, file, (*place, "metric"), comparison, metric, n_train)
        if not _is_one_value(metric["index"], comparison.index, n_stages):
            raise StudyError(
                "a comparison needs one value of its metric for each run",
                where=file.where((*place, "index")),
                expected=INDEX_OF_ONE_VALUE.get(metric["index"], "a metric without task index").format(
                    n_stages=n_stages
                ),
                got=f"{comparison.metric} with index {comparison.index}",
                next="correct the index or choose another metric",
            )
        if comparison.protocol not in (None, *read_as(study.protocol)):
            raise StudyError(
                "a comparison under a protocol in which the study makes no predictions",
                where=file.where((*place, "protocol")),
                expected=" or ".join(sorted(read_as(study.protocol))),
                got=comparison.protocol,
                next="correct the protocol, or leave it out",
            )


def _check_metric(
    study: Study,
    file: YamlFile,
    place: tuple[str | int, ...],
    comparison: Comparison,
    metric: dict[str, Any],
    n_train: dict[str, int],
) -> None:
    """Refuse a metric that would be null in every run."""
    lacking = [name for name in metric["needs"] if not getattr(study.references, name)]
    if comparison.metric == "intransigence_joint" and study.references.joint != "per_stage":
        lacking = ["joint: per_stage"]
    reasons = [
        metric["undefined_in"].get(comparison.protocol or study.protocol),
        metric["without_boundaries"] if study.boundaries == "hidden" else None,
        f"needs {', '.join(lacking)}: switch it on under `references`" if lacking else None,
        why_not_recorded(study, n_train, comparison, metric),
    ]
    reason = next((reason for reason in reasons if reason), None)
    if reason:
        raise StudyError(
            "a comparison on a metric that this study leaves undefined",
            where=file.where(place),
            expected="a metric that is defined for every complete run",
            got=f"{comparison.metric}{'' if comparison.index is None else f', index {comparison.index}'}: {reason}",
            next="choose another metric, or have the study run and record what it needs",
        )


def _check_gates(study: Study, file: YamlFile) -> None:
    names = [comparison.name for comparison in study.analysis.deciding]
    seen: set[str] = set()
    for at, announced in enumerate(study.analysis.gates):
        where = file.where(("analysis", "gates", at))
        gate = read_gate(announced.gate, where)
        require_gate(gate, names, where)
        if gate.text in seen:
            raise StudyError(
                "a gate stands twice in the plan",
                where=where,
                expected="each gate once, hard or soft",
                got=gate.text,
                next="remove one of the two",
            )
        seen.add(gate.text)


def _check_claims(study: Study, file: YamlFile) -> None:
    metric_of = {comparison.name: comparison.metric for comparison in study.analysis.deciding}
    seen: set[str] = set()
    for at, claim in enumerate(study.analysis.claims):
        if not metric_of.get(claim.comparison, "").startswith("forgetting") or claim.comparison in seen:
            about_forgetting = [name for name, metric in metric_of.items() if metric.startswith("forgetting")]
            raise StudyError(
                "a claim about forgetting needs a comparison of forgetting, and each comparison has one claim",
                where=file.where(("analysis", "claims", at, "comparison")),
                expected="one of " + ", ".join(about_forgetting)
                if about_forgetting
                else "a primary or secondary comparison of forgetting",
                got=repr(claim.comparison),
                next="correct the name, or announce the comparison",
            )
        seen.add(claim.comparison)
        if claim.margin is None and study.analysis.equivalence_margin is None:
            raise StudyError(
                "a claim at matched plasticity needs a margin",
                where=file.where(("analysis", "claims", at)),
                expected="`margin`, or `equivalence_margin` of the analysis: how much lower learning accuracy may be",
                got="neither",
                next="declare one, as a fraction",
            )


def _check_sides(study: Study, file: YamlFile, place: tuple[str | int, ...], comparison: Comparison) -> None:
    for side in ("a", "b"):
        if getattr(comparison, side) not in study.methods:
            raise StudyError(
                "a comparison names a method that the study does not run",
                where=file.where((*place, side)),
                expected="one of " + ", ".join(study.methods),
                got=repr(getattr(comparison, side)),
                next="correct the name, or add the method",
            )
    if comparison.a == comparison.b:
        raise StudyError(
            "a comparison of a method with itself",
            where=file.where(place),
            expected="two methods",
            got=f"a = b = {comparison.a!r}",
            next="correct one of the names",
        )


def _power(study: Study, file: YamlFile, plan: Plan) -> dict[str, Any] | None:
    n, analysis = sum(unit["order_id"] != task_orders.CANONICAL for unit in plan["units"]), study.analysis
    if n < 2:
        raise StudyError(
            "the test cannot reach its level",
            where=file.where(("design",)),
            expected="at least two units: a paired t test of one pair has no p",
            got=f"{n} unit",
            next="add seeds or orders",
        )
    if analysis.expected_sd is None or analysis.expected_effect is None:
        return None
    independent = _independent_units(n, study.design.crossing == "full", len(study.design.seeds), len(plan["orders"]))
    power = paired_t_power(
        independent, analysis.expected_effect, analysis.expected_sd, analysis.alpha, analysis.primary.alternative
    )
    return {
        "n": n,
        "n_independent": independent,
        "effect": analysis.expected_effect,
        "sd": analysis.expected_sd,
        "power": round(power, 4),
        "underpowered": power < ENOUGH_POWER,
    }


def _independent_units(n: int, crossed: bool, n_seeds: int, n_orders: int) -> int:
    """As how many units a design counts at least: crossed ones may differ by seed, or by order, alone."""
    return min(n_seeds, n_orders) if crossed and min(n_seeds, n_orders) > 1 else n


def _text(value: Any) -> str:
    return "(absent)" if value is None else json.dumps(value, ensure_ascii=False)
