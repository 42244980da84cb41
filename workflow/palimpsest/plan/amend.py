"""Amendments: what was added to a locked plan, when and why, so that the plan before can be made out again.

An amendment adds (units, methods, references, comparisons, gates, claims) or changes a rule of the analysis. It never
redefines what has a name: what stands under a method's key, a unit, an order or a comparison's name stays what it was,
and so does every run. The plan before it follows from the plan after it, and its hash is recorded, so that a chain of
amendments leads back to the plan that was locked first.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from palimpsest.core.errors import LockError
from palimpsest.core.hashing import canonical_json, hash_json

Plan = dict[str, Any]
Change = dict[str, Any]
"""`{field: [names that lead to it], old, new}`; a value that is not there has no key. Items of a list go by name."""

# Under these an amendment may add names; what it may change elsewhere in the study says nothing of a run or comparison.
ADDED_TO = {("methods",), *(("analysis", kind) for kind in ("secondary", "exploratory", "gates", "claims"))}
RULES = {("analysis", rule) for rule in ("alpha", "equivalence_margin", "test", "correction", "failed_runs")}
EXPECTED = {("analysis", name) for name in ("expected_effect", "expected_sd", "expected_sd_source")}
TEXTS = {("title",), ("description",), ("demonstration",)}
GROWS = {"design", "references"}
# What follows from the study: these may differ, those may gain names.
SECTIONS = {"study": 0, "orders": 1, "units": 2}
DERIVED, DERIVED_NAMES = {"balance", "power"}, {"methods", "orders", "units", "runs"}
_ABSENT = object()


def changes(old: Any, new: Any, place: tuple[str, ...] = ()) -> Iterator[Change]:
    """Each field that differs between two plans, or parts of plans.

    >>> list(changes({"a": 1, "b": [{"name": "x"}]}, {"a": 2, "b": [{"name": "x"}, {"name": "y"}]}))
    [{'field': ['a'], 'old': 1, 'new': 2}, {'field': ['b', 'y'], 'new': {'name': 'y'}}]
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from changes(old.get(key, _ABSENT), new.get(key, _ABSENT), (*place, key))
    elif _only_grew(old, new):
        before = {_name(item): item for item in old}
        for item in new:
            yield from changes(before.get(_name(item), _ABSENT), item, (*place, _name(item)))
    elif old is _ABSENT or new is _ABSENT or canonical_json(old) != canonical_json(new):
        values = {"old": old, "new": new}
        yield {"field": list(place), **{key: value for key, value in values.items() if value is not _ABSENT}}


def amend(old: Plan, new: Plan, reason: str, date: str, after_results: bool) -> Plan:
    """The new plan with an amendment that says what it changes.

    Args:
        old: the locked plan, with its amendments.
        new: what the study resolves to now.
        reason: why, in the words of the researcher.
        date: when, in ISO 8601.
        after_results: whether something was evaluated on test data already.

    Raises:
        LockError: nothing differs, or something that has a name would become something else.
    """
    found = list(changes(_content(old), _content(new)))
    if not any(change["field"][0] == "study" for change in found):
        raise LockError(
            "there is nothing to amend",
            where="the study and its lock",
            expected="a field that differs",
            got="a study that is as it was locked",
            next="edit the study file first",
        )
    # What the study says comes before what follows from it: that is where it can be corrected.
    for change in sorted(found, key=lambda change: SECTIONS.get(change["field"][0], len(SECTIONS))):
        _require_addition(change)
    amendment = {
        "date": date,
        "reason": reason,
        "before": old["hash"],
        "after_results": after_results,
        "changes": found,
    }
    plan = {**_content(new), "amendments": [*amendments(old), amendment]}
    return {**plan, "hash": hash_json(plan)}


def amendments(plan: Plan) -> list[dict[str, Any]]:
    """The amendments of a plan, oldest first."""
    return plan.get("amendments", [])


def versions(plan: Plan) -> list[str]:
    """Hashes of the plan as it was locked first and after each amendment; the last one is its own."""
    return [*(amendment["before"] for amendment in amendments(plan)), plan["hash"]]


def first_plan(plan: Plan) -> Plan:
    """The plan as it was locked before all amendments, made out from the present one.

    Raises:
        LockError: an amendment does not lead back to the plan whose hash it records.
    """
    while amendments(plan):
        *earlier, last = amendments(plan)
        before = _undone(_content(plan), last["changes"]) | ({"amendments": earlier} if earlier else {})
        if hash_json(before) != last["before"]:
            raise LockError(
                "an amendment does not tell all that it changed",
                where=f"amendment {len(earlier) + 1} of the lock",
                expected=f"changes that lead back to the plan {last['before'][:12]}",
                got=f"the plan {hash_json(before)[:12]}",
                next="restore the lock from version control",
            )
        plan = {**before, "hash": last["before"]}
    return plan


def field_text(change: Change) -> str:
    """The field as it is written in messages and tables, without the section that all of the study's have.

    >>> field_text({"field": ["study", "analysis", "alpha"]})
    'analysis.alpha'
    """
    return ".".join(change["field"][change["field"][0] == "study" :])


def _content(plan: Plan) -> Plan:
    return {key: value for key, value in plan.items() if key not in ("hash", "amendments")}


def _name(item: Any) -> str | None:
    """The name of an item of a list: of a run, a unit, a comparison, a gate or a claim; None for what has no name."""
    if not isinstance(item, Mapping):
        return None
    if "claim" in item:
        return f"{item['claim']} {item['comparison']}"
    return next((item[key] for key in ("run", "unit", "name", "gate") if key in item), None)


def _only_grew(old: Any, new: Any) -> bool:
    """Whether two lists of named items hold the old names in their old order, with others added."""
    if not isinstance(old, list) or not isinstance(new, list):
        return False
    before, after = [_name(item) for item in old], [_name(item) for item in new]
    named = None not in before + after and len(set(after)) == len(after)
    return named and [name for name in after if name in set(before)] == before


def _require_addition(change: Change) -> None:
    section, *field = change["field"]
    if section == "study":
        allowed = (tuple(field[:-1]) in ADDED_TO and "old" not in change) or field[0] in GROWS
        allowed = allowed or tuple(field) in RULES | EXPECTED | TEXTS
    else:
        allowed = section in DERIVED or (section in DERIVED_NAMES and len(field) == 1 and "old" not in change)
    if not allowed:
        raise LockError(
            "an amendment adds, and what has a name stays what it was",
            where=field_text(change),
            expected=_text(change, "old"),
            got=_text(change, "new"),
            next="give what is new a name of its own (another key of a method, another name of a comparison) and "
            "leave the rest as it was locked; a plan with other runs is a new study",
        )


def _text(change: Change, which: str) -> str:
    if which not in change:
        return "(absent)"
    old, new = change.get("old"), change.get("new")
    if isinstance(old, list) and isinstance(new, list) and all(map(_name, [*old, *new])):
        missing = [name for name in map(_name, old) if name not in map(_name, new)]
        lacking = f"without {', '.join(map(str, missing))}" if missing else "another order"
        return "all that was locked, in that order" if which == "old" else lacking
    text = canonical_json(change[which]).decode()
    return text if len(text) <= 200 else f"{text[:197]}…"


def _undone(plan: Plan, made: Iterable[Change]) -> Plan:
    plan = copy.deepcopy(plan)
    for change in made:
        *way, last = change["field"]
        holder: Any = plan
        for name in way:
            holder = holder[_place(holder, name)]
        if "old" in change:
            holder[_place(holder, last)] = change["old"]
        else:
            del holder[_place(holder, last)]
    return plan


def _place(holder: Mapping[str, Any] | Sequence[Any], name: str) -> Any:
    return name if isinstance(holder, Mapping) else [_name(item) for item in holder].index(name)
