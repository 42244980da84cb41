"""What the order of the tasks changes: the disparity of each task over orders, and accuracy by position."""

from __future__ import annotations

from typing import Any

from palimpsest.core.numbers import MISSING, is_missing, percent
from palimpsest.report.figures import Drawing, by_position
from palimpsest.report.study import ROW, Row, Study
from palimpsest.statistics.variance import SOURCES


def orders(study: Study) -> dict[str, Any] | None:
    """Content of the section: a block for each method with a row for each task, and notes; None without any row."""
    blocks = [_block(study.orders_of(name), name) for name in study.names("method") if study.orders_of(name)]
    if not blocks:
        return None
    notes = [(name, text) for block in blocks for name, text in block["notes"]]
    methods_of: dict[str, list[str]] = {}
    for name, text in dict.fromkeys(notes):
        methods_of.setdefault(text, []).append(name)
    return {
        "blocks": blocks,
        "sources": SOURCES,
        "notes": [f"{', '.join(names)}: {text}" for text, names in methods_of.items()],
    }


def drawing(study: Study) -> Drawing | None:
    """The position curve of every method; none where there is no row."""
    curves = {name: _curve(study.orders_of(name)) for name in study.names("method")}
    return by_position(study, curves) if any(curves.values()) else None


def _block(rows: list[Row], method: str) -> dict[str, Any]:
    of_tasks = [row for row in rows if row["by"] == "all"]
    texts = [text for row in of_tasks for text in (row["note"], row["missing"]) if text]
    texts += [row["missing"] for row in rows if row["by"] == "variance" and row["missing"]]
    whole = {row["by"]: row for row in rows if row["by"] in ("maximum", "mean")}
    return {
        "method": method,
        "n_orders": of_tasks[0]["n_orders"],
        "n_seeds": of_tasks[0]["n_seeds"],
        "maximum": percent(whole["maximum"]["order_disparity"]),
        "mean": percent(whole["mean"]["order_disparity"]),
        "tasks": [_task(row, rows) for row in of_tasks],
        "notes": [(method, text) for text in dict.fromkeys(texts)],
    }


def _task(row: Row, rows: list[Row]) -> dict[str, Any]:
    shares = {r["level"]: r["variance_share"] for r in rows if (r["by"], r["task"]) == ("variance", row["task"])}
    spread = "" if is_missing(row["sd"]) else f" ± {percent(row['sd'])}"
    return {
        ROW: row[ROW],
        "task": row["task"],
        "n": row["n"],
        "cells": [
            percent(row["mean"]) + spread,
            _range(row["quantile_low"], row["quantile_high"]),
            percent(row["worst"]),
            _range(row["worst_quantile_low"], row["worst_quantile_high"]),
            percent(row["order_disparity"]),
            *(percent(shares.get(source), 0) for source in SOURCES),
        ],
    }


def _range(low: float | None, high: float | None) -> str:
    return MISSING if is_missing(low) or is_missing(high) else f"{percent(low)} to {percent(high)}"


def _curve(rows: list[Row]) -> list[Row]:
    placed = [{**row, "position": int(row["level"])} for row in rows if row["by"] == "any task by position"]
    return sorted((row for row in placed if not is_missing(row["mean"])), key=lambda row: row["position"])
