"""The page: content for the templates, each part of it ready to print."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from palimpsest.report import numbers, wording
from palimpsest.report.results import Results
from palimpsest.report.study import Row, Study

_HERE = Path(__file__).parent


def page(study: Study, results: Results, svgs: Mapping[str, Markup], matrices: Mapping[str, Markup]) -> bytes:
    """The report as one self-contained HTML page.

    Args:
        study: what was read.
        results: the results table.
        svgs: the figures `forest`, `stages` and `scale`, ready to be put in.
        matrices: the accuracy matrix of each method.
    """
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
        plain=numbers.plain,
        protocol=wording.protocol,
        quantity=wording.quantity,
        interval=wording.interval,
        needs=wording.needs,
        sentence_case=lambda text: text[:1].upper() + text[1:],
    )
    content = _content(study, results)
    style = Markup((_HERE / "style.css").read_text())
    template = environment.get_template("page.html.j2")
    return template.render(svgs=svgs, matrices=matrices, style=style, **content).encode()


def _content(study: Study, results: Results) -> dict[str, Any]:
    plan = study.plan
    primary = next((row for row in study.comparisons if row["role"] == "primary"), None)
    return {
        "study": study,
        "plan": plan,
        "lock": study.lock,
        "title": plan.get("title") or plan["study"],
        "is_demonstration": "demonstration" in plan["description"].lower(),
        "opening": wording.opening(study),
        "results": results,
        "primary": _comparison(study, primary, primary) if primary else None,
        "comparisons": [_comparison(study, row, primary) for row in study.comparisons],
        "hypotheses": [("primary", plan["analysis"]["primary"])]
        + [("secondary", secondary) for secondary in plan["analysis"]["secondary"]],
        "power": study.lock.get("power"),
        "amendments": study.lock.get("amendments") or [],
        "sources": study.data["sources"],
        "duplicates": study.data["duplicates"],
        "split_sha256": study.data["split_sha256"],
        "root": study.root["root"],
        "chance": wording.chance(study),
        "glossary": _glossary(study, results),
        "has_in_task": any(column.protocol != study.protocol for column in results.columns),
    }


def _comparison(study: Study, row: Row, primary: Row | None) -> dict[str, Any]:
    margin = study.plan["analysis"]["equivalence_margin"]
    return {
        "row": row,
        "sentence": wording.verdict(row, margin),
        "evidence": wording.evidence(row),
        "standing": wording.standing(row, primary),
        "preference": wording.preference(row),
    }


def _glossary(study: Study, results: Results) -> list[wording.Metric]:
    shown = [column.metric for column in results.columns] + ["average_accuracy_at_k"]
    shown += [row["metric"] for row in study.comparisons]
    return [wording.metric(name) for name in dict.fromkeys(shown)]
