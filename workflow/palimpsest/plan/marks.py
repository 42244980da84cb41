"""Which comparisons, gates and claims are exploratory for good: what touched them after results existed.

From the first evaluation on test data on, whoever changes the plan or the program may have seen what comes of it. So
every later change marks what it touches, and no later one takes a mark away: the journal and the amendments remember.

Marks are plain content: `{comparisons: {name: reason}, late: [names], gates: {text: reason}, claims: {name: reason}}`.
`late` are the comparisons that were added: they belong to no family. Gates and claims are marked where they were added
themselves; else it is their comparison that is. Reasons hold no dates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from palimpsest.core.hashing import hash_json
from palimpsest.plan import amend
from palimpsest.plan.journal import Line, evaluations, of_workflows

Marks = dict[str, Any]
Programs = dict[str, str]
FOR_GOOD = "exploratory for good"
METRIC_MODULES = "palimpsest.metrics."
ANALYSES = ("metrics", "aggregate", "statistics")
ADDED = {"secondary": "comparisons", "exploratory": "comparisons", "gates": "gates", "claims": "claims"}


def analysing_programs(recorded: Mapping[str, Mapping[str, Any]]) -> Programs:
    """Hashes of what computes metrics and statistics, one for each metric and one for all that they share.

    An added metric changes no other one, so the hash of the whole program would say too much. Packages are left out:
    metrics may be computed again elsewhere.

    Args:
        recorded: of the rules in `ANALYSES`, `{code, files: {module: hash}, environment}`.
    """
    files = {module: code for rule in ANALYSES for module, code in recorded[rule]["files"].items()}
    metrics = {module: code for module, code in files.items() if _is_metric(module)}
    shared = hash_json({module: code for module, code in files.items() if module not in metrics})
    return {"analysis": shared, **{f"metric/{module.rsplit('.', 1)[1]}": code for module, code in metrics.items()}}


def workflow_programs(plan: amend.Plan, programs: Mapping[str, str]) -> Programs:
    """Hashes of all that decides the numbers of a study, by what it is for.

    Args:
        plan: the locked plan.
        programs: canonical JSON of every rule's program, by its name below `plan/code/` (`plan.grid`).
    """
    read = {name: json.loads(text) for name, text in programs.items()}
    found = {"data": read["rules/data"]}
    for method in plan["methods"]:
        found |= {f"train/{method}": read[method], f"evaluate/{method}": read[f"evaluate/{method}"]}
    compared = {f"metric/{comparison['metric']}" for comparison in _comparisons(plan)}
    analysing = analysing_programs({rule: read[f"rules/{rule}"] for rule in ANALYSES})
    return {
        **{name: hash_json([program["code"], program["environment"]]) for name, program in found.items()},
        **{name: code for name, code in analysing.items() if name == "analysis" or name in compared},
    }


def marks(plan: amend.Plan, lines: Sequence[Line], now: Programs, found: bool) -> Marks:
    """What of a plan is exploratory for good.

    Args:
        plan: the locked plan, with its amendments.
        lines: of the journal.
        now: hashes of the present programs, all or some of them.
        found: there are evaluated runs of which the journal does not know.
    """
    made = no_marks()
    for kind, name, reason in _by_amendments(plan, lines):
        made[kind].setdefault(name, []).append(reason)
    late = sorted(made["comparisons"])
    for name, reason in (*_by_history(plan, lines, found), *_by_rules(plan, lines), *_by_code(plan, lines, now)):
        if name not in late:
            made["comparisons"].setdefault(name, []).append(reason)
    reasons = {
        kind: {name: f"{FOR_GOOD}: {'; '.join(why)}" for name, why in made[kind].items()}
        for kind in ("comparisons", "gates", "claims")
    }
    return {**reasons, "late": late}


def no_marks() -> Marks:
    """Marks of a plan that nothing touched."""
    return {"comparisons": {}, "late": [], "gates": {}, "claims": {}}


def results_before(plan: amend.Plan, lines: Sequence[Line]) -> list[bool]:
    """For each amendment whether results existed when it was made, as the journal or the amendment itself says."""
    known = amend.versions(plan)
    evaluated = [known.index(line["lock"]) for line in evaluations(lines) if line["lock"] in known]
    first = min(evaluated, default=len(known))
    return [made["after_results"] or number >= first for number, made in enumerate(amend.amendments(plan))]


def touches_all(change: amend.Change) -> bool:
    """Whether a change concerns every comparison: one of the units or of the rules of the analysis."""
    section, *field = change["field"]
    place = tuple(field)
    texts = place in amend.TEXTS | amend.EXPECTED or place[:1] in (("methods",), ("references",))
    return section == "study" and not texts and _added(change) is None


def _added(change: amend.Change) -> tuple[str, str] | None:
    """Kind and name of an added comparison, gate or claim."""
    match change["field"]:
        case ["study", "analysis", section, name] if section in ADDED and "old" not in change:
            return ADDED[section], name
    return None


def _after_results(plan: amend.Plan, lines: Sequence[Line]) -> Iterator[tuple[int, list[amend.Change]]]:
    """Number and changes of each amendment that was made after results existed."""
    late = results_before(plan, lines)
    for number, made in enumerate(amend.amendments(plan), start=1):
        if late[number - 1]:
            yield number, made["changes"]


def _by_amendments(plan: amend.Plan, lines: Sequence[Line]) -> Iterator[tuple[str, str, str]]:
    for number, changes in _after_results(plan, lines):
        for kind, name in filter(None, map(_added, changes)):
            yield kind, name, f"added by amendment {number}, after results existed"


def _by_rules(plan: amend.Plan, lines: Sequence[Line]) -> Iterator[tuple[str, str]]:
    for number, changes in _after_results(plan, lines):
        fields = ", ".join(amend.field_text(change) for change in changes if touches_all(change))
        if fields:
            reason = f"amendment {number} changed {fields} after results existed"
            yield from ((comparison["name"], reason) for comparison in _comparisons(plan))


def _by_history(plan: amend.Plan, lines: Sequence[Line], found: bool) -> Iterator[tuple[str, str]]:
    others = sorted({line["lock"] for line in of_workflows(lines)} - set(amend.versions(plan)))
    reasons = [f"results existed under another plan, {', '.join(lock[:12] for lock in others)}"] if others else []
    if found or any(line["event"] == "found" for line in lines):
        reasons.append("results existed of which the journal does not know")
    return ((comparison["name"], reason) for reason in reasons for comparison in _comparisons(plan))


def _by_code(plan: amend.Plan, lines: Sequence[Line], now: Programs) -> Iterator[tuple[str, str]]:
    noted = [line["programs"] for line in of_workflows(lines)]
    names = {name for programs in noted for name in programs}
    changed = {n for n in names if len({programs[n] for programs in (*noted, now) if n in programs}) > 1}
    references = [key for key, method in plan["methods"].items() if method["role"] == "reference"]
    for comparison in _comparisons(plan):
        runs = [comparison["a"], comparison["b"], *references]
        relevant = {"data", "analysis", f"metric/{comparison['metric']}"}
        relevant |= {f"{rule}/{method}" for rule in ("train", "evaluate") for method in runs}
        if relevant & changed:
            about = ", ".join(sorted(relevant & changed))
            yield comparison["name"], f"the program was changed after results existed ({about})"


def _comparisons(plan: amend.Plan) -> list[dict[str, Any]]:
    analysis = plan["study"]["analysis"]
    return [analysis["primary"], *analysis["secondary"], *analysis["exploratory"]]


def _is_metric(module: str) -> bool:
    name = module.removeprefix(METRIC_MODULES)
    return module.startswith(METRIC_MODULES) and not name.startswith("_") and "." not in name
