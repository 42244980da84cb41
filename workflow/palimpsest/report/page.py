"""The page: content for the templates, each part of it ready to print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from palimpsest.core import numbers
from palimpsest.metrics._describe import Description, describe
from palimpsest.report import wording
from palimpsest.report.costs import costs
from palimpsest.report.decisions import decisions
from palimpsest.report.history import date
from palimpsest.report.orders import orders
from palimpsest.report.recorded import CURVE_METRICS, recorded
from palimpsest.report.results import Results
from palimpsest.report.study import COSTS, Row, Study
from palimpsest.statistics import wording as comparing

_HERE = Path(__file__).parent


def page(study: Study, results: Results, svgs: Mapping[str, Markup], matrices: Mapping[str, Markup]) -> bytes:
    """The report as one self-contained HTML page.

    Args:
        study: what was read.
        results: the results table.
        svgs: the figures by name, ready to be put in.
        matrices: the accuracy matrix of each method.
    """
    content = _content(study, results)
    return _render("page.html.j2", svgs=svgs, matrices=matrices, **content)


def costs_page(lock: Row, attempts: Sequence[Row]) -> bytes:
    """The page of measured costs (see `report.costs`)."""
    plan = lock["study"]
    return _render("costs.html.j2", title=_title(plan), plan=plan, **costs(list(lock["methods"]), attempts))


def _title(plan: Row) -> str:
    return plan.get("title") or plan["study"]


def _render(name: str, **content: Any) -> bytes:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=numbers.percent,
        points=numbers.points,
        p=numbers.p_value,
        count=numbers.count,
        date=date,
        plain=numbers.plain,
        protocol=comparing.protocol,
        quantity=comparing.quantity,
        needs=wording.needs,
        sentence_case=lambda text: text[:1].upper() + text[1:],
    )
    style = Markup((_HERE / "style.css").read_text())
    return environment.get_template(name).render(style=style, **content).encode()


def _content(study: Study, results: Results) -> dict[str, Any]:
    plan = study.plan
    compared = [_comparison(row) for row in study.comparisons]
    primary = next((row for row in study.comparisons if row["role"] == "primary"), None)
    return {
        "study": study,
        "plan": plan,
        "lock": study.lock,
        "title": _title(plan),
        "is_demonstration": plan["demonstration"],
        "opening": wording.opening(study),
        "results": results,
        "primary": _comparison(primary) if primary else None,
        "comparisons": compared,
        "confirmatory": [each for each in compared if each["row"]["role"] != "exploratory"],
        "exploratory": [each for each in compared if each["row"]["role"] == "exploratory"],
        "hypotheses": [("primary", plan["analysis"]["primary"])]
        + [("secondary", secondary) for secondary in plan["analysis"]["secondary"]]
        + [("exploratory", exploratory) for exploratory in plan["analysis"].get("exploratory", [])],
        "decisions": decisions(study),
        "recorded": recorded(study),
        "orders": orders(study),
        "power": study.lock.get("power"),
        "history": study.history,
        "sources": study.data["sources"],
        "duplicates": study.data["duplicates"],
        "manifest": study.manifest,
        "split_sha256": study.data["split_sha256"],
        "root": study.root["root"],
        "chance": wording.chance(study),
        "cost_columns": COSTS,
        "any_several_machines": any(row["n_several_machines"] for row in study.costs),
        "any_stopped_early": any(row["n_early_stopped"] for row in study.costs),
        "any_failed": any(row["n_failed_a"] or row["n_failed_b"] for row in study.comparisons),
        "glossary": _glossary(study, results),
        "has_in_task": any(column.protocol != study.protocol for column in results.columns),
    }


def _comparison(row: Row) -> dict[str, Any]:
    return {
        "row": row,
        "bounds": comparing.bounds(row["ci_low"], row["ci_high"]),
        **{
            part.__name__: part(row)
            for part in (
                comparing.sentence,
                comparing.evidence,
                comparing.equivalence,
                comparing.standing,
                comparing.preference,
                comparing.worst_task,
                comparing.other_intervals,
                comparing.failed_runs,
            )
        },
    }


def _glossary(study: Study, results: Results) -> list[Description]:
    shown = [column.metric for column in results.columns] + ["average_accuracy_at_k"]
    shown += [row["metric"] for row in study.comparisons]
    shown += ["b_shot", *CURVE_METRICS] if study.plan.get("probes") else []
    shown += ["prequential_accuracy"] if study.plan.get("prequential") else []
    return [describe(name) for name in dict.fromkeys(shown)]
