"""Which rows a user means: of a table, of a table of the report, or of an element of the report's page."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from palimpsest.audit.ledger import ROOT
from palimpsest.core.artifact import Job, read_record
from palimpsest.core.errors import ArtifactError
from palimpsest.core.tables import TABLES

TABLE_OF = {
    "summary": "aggregate/summary.parquet",
    "matrix_summary": "aggregate/matrix.parquet",
    "costs": "aggregate/costs.parquet",
    "curves": "aggregate/curves.parquet",
    "failures": "aggregate/failures.parquet",
    "comparisons": "statistics/comparisons.parquet",
    "orders": "statistics/orders.parquet",
    "decisions": "statistics/decisions.parquet",
}
"""Where the tables lie whose rows the report shows; its elements have the ids `NAME-ROW`."""

# The table behind each CSV file of the report, and other names of its key columns there.
TABLE_OF_CSV = {
    "comparisons.csv": "comparisons",
    "matrices.csv": "matrix_summary",
    "stages.csv": "summary",
    "decisions.csv": "decisions",
    "costs.csv": "costs",
    "curves.csv": "curves",
    "orders.csv": "orders",
}
_RESULTS = "results.csv"
_ELEMENT = re.compile(r"(?:.*-)?(" + "|".join(TABLE_OF) + r")-(\d+)")
_MEASURES = (" mean", " sd", " ci_low", " ci_high", " worst", " n")


@dataclass(frozen=True)
class Asked:
    """What is to be traced.

    Args:
        study: the study's folder.
        artifact: path in it.
        row: of the table, from 0; none for the artifact as a whole.
        rows: the rows behind a row of the report's tables, by the path of their table; none for others.
    """

    study: Path
    artifact: str
    row: int | None
    rows: tuple[tuple[str, int], ...] = ()


def find(artifact: str, row: int | None, column: str | None) -> Asked:
    """Look up what a user names.

    Args:
        artifact: path of a file of a study; of the report's page with `#ID`.
        row: of a table, from 0.
        column: of `report/tables/results.csv`, which has several values in a row.

    Raises:
        ArtifactError: there is no such file, row, column or element.
    """
    name, _, element = artifact.partition("#")
    place = Path(name)
    study = _study(place)
    path = str(place.absolute().relative_to(study.absolute()))
    if element or path.endswith(".html"):
        return Asked(study, *_of_element(place, element))
    if path.startswith("report/tables/"):
        return _of_csv(study, path, row, column)
    return Asked(study, path, row)


def _study(place: Path) -> Path:
    found = next((folder for folder in place.parents if (folder / ROOT).is_file()), None)
    if found is None or not place.is_file():
        raise _error(
            str(place), "a file of a finished study, such as results/demo/aggregate/summary.parquet", "no such file"
        )
    return found


def _of_element(place: Path, element: str) -> tuple[str, int]:
    match = _ELEMENT.fullmatch(element)
    if match is None:
        raise _error(
            f"{place}#{element}",
            "the id of a cell or a row, such as report/index.html#summary-12: it is shown where the mouse rests",
            repr(element),
        )
    return TABLE_OF[match[1]], int(match[2])


def _of_csv(study: Path, path: str, number: int | None, column: str | None) -> Asked:
    file = Path(path).name
    if file != _RESULTS and file not in TABLE_OF_CSV:
        raise _error(str(study / path), f"one of {', '.join([_RESULTS, *TABLE_OF_CSV])}", file)
    with open(study / path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    if number is None or not 0 <= number < len(rows):
        raise _error(str(study / path), f"--row, from 0 to {len(rows) - 1}", str(number))
    row = {key: cell.removeprefix("'") for key, cell in rows[number].items()}
    wanted = _of_results(row, column, str(study / path)) if file == _RESULTS else [_of_row(TABLE_OF_CSV[file], row)]
    return Asked(study, path, number, tuple(found for name, keys in wanted for found in _matching(study, name, keys)))


def _of_row(name: str, row: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The table behind a row, and the values of its key."""
    if name == "curves" and row["batch"]:
        return "summary", {
            **_key(row, ("method", "protocol")),
            "metric": row["curve"],
            "index": row["batch"],
            "task": "",
        }
    if name == "summary":
        about = {"metric": "average_accuracy_at_k", "index": row["stage"], "task": ""}
        return name, {**_key(row, ("method", "protocol")), **about}
    if name == "curves" and row["curve"] == "stream":  # it has no protocol; the page prints that of the study
        return name, {**_key(row, TABLES[name].key), "protocol": ""}
    return name, _key(row, TABLES[name].key)


def _key(row: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    return {name: row[name] for name in names}


def _of_results(row: Mapping[str, str], column: str | None, where: str) -> list[tuple[str, dict[str, str]]]:
    """One summary for each value in a row of the results, or that of one column."""
    headings = [name for name in row if any(f"{part} (" in name or name.endswith(part) for part in _MEASURES)]
    headings = [name for name in headings if len(name.split(" ")) > 2 and (column is None or name == column)]
    if not headings:
        raise _error(where, "--column, a heading of the table such as " + list(row)[8], str(column))
    named = dict.fromkeys(tuple(heading.split(" ")[:2]) for heading in headings)
    about = {"method": row["method"], "index": "", "task": ""}
    return [("summary", {**about, "metric": metric, "protocol": protocol}) for metric, protocol in named]


def _matching(study: Path, name: str, keys: Mapping[str, str]) -> list[tuple[str, int]]:
    rows = Job(study, "trace", "", "").read_table(TABLE_OF[name], name).to_pylist()
    return [
        (TABLE_OF[name], number)
        for number, row in enumerate(rows)
        if all(_text(row[key]) == value for key, value in keys.items())
    ]


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def kind_of(study: Path, path: str) -> str:
    """The kind of an artifact, as its record has it; `telemetry` for what has none."""
    return "telemetry" if path.startswith("telemetry/") else read_record(study, path)["kind"]


def _error(where: str, expected: str, got: str) -> ArtifactError:
    return ArtifactError(
        "there is nothing there to trace",
        where=where,
        expected=expected,
        got=got,
        next="palimpsest trace results/STUDY/aggregate/summary.parquet --row 0",
    )
