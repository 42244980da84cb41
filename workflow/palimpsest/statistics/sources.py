"""Runs of a study, from wherever they come: a folder of results, or matrices that any program made."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from palimpsest.aggregate.summary import summarise_metrics
from palimpsest.core.artifact import Job
from palimpsest.core.errors import MatrixError
from palimpsest.core.tables import TABLES
from palimpsest.metrics._declaration import UNKNOWN
from palimpsest.metrics._files import NamedMatrix
from palimpsest.metrics._matrices import matrix_rows, read_all

Units = Mapping[str, Mapping[str, Any]]
Source = str | Path | Sequence[str | Path] | Mapping[str, Mapping[str, Any]]
# Units as a study names them: seed 0, order 2.
_UNIT = re.compile(r"(s\d+)-(o\w+)")


@dataclass(frozen=True)
class Runs:
    """The metrics of the runs of one study.

    Args:
        name: of the study.
        metrics: rows of the table `metrics`.
        units: `seed` and `order_id` of each unit.
        failed: runs that failed, METHOD/UNIT; a run that is not there at all counts as failed too.
        methods: what was compared, references left out.
        protocol: under which the study's own predictions were scored.
    """

    name: str
    metrics: pa.Table
    units: Units
    failed: Collection[str]
    methods: tuple[str, ...]
    protocol: str

    def summary(self) -> pa.Table:
        """Rows of the table `summary`."""
        n_failed = {method: sum(run.startswith(f"{method}/") for run in self.failed) for method in self._all_methods()}
        factors = {unit: {"seed": at["seed"], "order": at["order_id"]} for unit, at in self.units.items()}
        return summarise_metrics(self.metrics, n_failed, factors)

    def _all_methods(self) -> set[str]:
        return {run.split("/")[0] for run in self.metrics["run"].unique().to_pylist()}


def open_runs(
    source: Source,
    protocol: str | None = None,
    percent: bool = False,
    references: Mapping[str, np.ndarray] | None = None,
) -> Runs:
    """The runs behind a source.

    Args:
        source: a folder of results, a file, several files of one study, or matrices by method and unit.
        protocol: under which predictions were scored; that of the study, or `unknown`, if left out.
        percent, references: see `from_matrices`; of a folder of results they are known.

    Raises:
        MatrixError, ArtifactError: there is nothing of the kind, or it is not what it should be.
    """
    if isinstance(source, Mapping):
        scale = 100 if percent else 1
        matrices = [
            NamedMatrix(f"{method}/{unit}", accuracy, tuple(str(task + 1) for task in range(accuracy.shape[-1])))
            for method, of_units in source.items()
            for unit, accuracy in ((unit, np.array(m, dtype=float) / scale) for unit, m in of_units.items())
        ]
        return from_matrices("matrices", matrices, protocol or UNKNOWN, references or {})
    paths = [Path(source)] if isinstance(source, str | Path) else [Path(path) for path in source]
    folders = [path for path in paths if (path / "plan").is_dir()]
    if len(folders) == len(paths) == 1:
        if percent or references:
            raise source_error(
                str(paths[0]), "nothing but the folder: its results are fractions with references", "more"
            )
        runs = from_results(paths[0])
        return replace(runs, protocol=protocol or runs.protocol)
    if folders:
        raise source_error(str(folders[0]), "one folder of results alone, or files", f"{len(paths)} of both")
    name = paths[0].stem if paths else "nothing"
    return from_matrices(name, read_all(paths, percent), protocol or UNKNOWN, references or {})


def from_results(folder: Path) -> Runs:
    """The runs of a finished study.

    Raises:
        ArtifactError: a table is missing or not the one that was written.
    """
    job = Job(folder, "statistics of finished studies", code="", environment="")
    plan = job.read_json("plan/lock.json")
    units = job.read_table("plan/units.parquet", "units").to_pylist()
    return Runs(
        name=folder.resolve().name,
        metrics=job.read_table("aggregate/metrics.parquet", "metrics"),
        units={row["unit"]: {"seed": row["seed"], "order_id": row["order_id"]} for row in units},
        failed=set(job.read_table("aggregate/failures.parquet", "failures")["run"].to_pylist()),
        methods=tuple(name for name, about in plan["methods"].items() if about["role"] == "method"),
        protocol=plan["study"]["protocol"],
    )


def from_matrices(
    name: str, matrices: Sequence[NamedMatrix], protocol: str, references: Mapping[str, np.ndarray]
) -> Runs:
    """The runs that matrices are of.

    Args:
        name: what to call the study.
        matrices: each with its method and unit: columns of its file, or the name of its run, METHOD/UNIT.
        protocol: under which the predictions were scored.
        references: accuracies of `random_init`, `isolated`, `joint`, and `n_total`, the same for all runs.

    Raises:
        MatrixError: a matrix has no method or unit, or two have the same ones; references do not fit.
    """
    placed = [(*_method_and_unit(name, matrix), matrix) for matrix in matrices]
    runs = [f"{method}/{unit}" for method, unit, _ in placed]
    doubled = sorted({run for run in runs if runs.count(run) > 1})
    if doubled:
        raise source_error(name, "one run of each method and unit", f"several of {', '.join(doubled)}")
    rows = [
        {**row, "run": run}
        for run, (_, _, matrix) in zip(runs, placed, strict=True)
        for row in matrix_rows(matrix, references, protocol)
    ]
    return Runs(
        name=name,
        metrics=pa.Table.from_pylist(rows, TABLES["metrics"].schema),
        units=_units(name, placed),
        failed=(),
        methods=tuple(dict.fromkeys(method for method, _, _ in placed)),
        protocol=protocol,
    )


def _method_and_unit(where: str, matrix: NamedMatrix) -> tuple[str, str]:
    about = dict(matrix.about)
    method, slash, unit = matrix.name.partition("/")
    if slash and unit and "/" not in unit:
        about = {"method": method, "unit": unit, **about}
    lacking = [name for name in ("method", "unit") if name not in about]
    if lacking:
        got = f"no column {' and no column '.join(lacking)}, and a run named {matrix.name}"
        raise source_error(where, "the columns method and unit, or runs named METHOD/UNIT", got)
    if "/" in about["method"] + about["unit"]:
        raise source_error(where, "names without a slash", f"{about['method']} and {about['unit']}")
    return about["method"], about["unit"]


def _units(where: str, placed: Sequence[tuple[str, str, NamedMatrix]]) -> Units:
    found: dict[str, Mapping[str, str]] = {}
    for method, unit, matrix in placed:
        at = _seed_and_order(unit, matrix)
        if found.setdefault(unit, at) != at:
            told = "; ".join(f"seed {each['seed']}, order {each['order_id']}" for each in (found[unit], at))
            raise source_error(where, f"one seed and order of unit {unit}", f"{told} (of {method})")
    return found


def _seed_and_order(unit: str, matrix: NamedMatrix) -> Mapping[str, str]:
    """What the file says, else what the unit's name says, else its own of each."""
    named = _UNIT.fullmatch(unit)
    seed, order = named.groups() if named else (unit, unit)
    return {"seed": matrix.about.get("seed", seed), "order_id": matrix.about.get("order", order)}


def source_error(where: str, expected: str, got: str) -> MatrixError:
    """Runs that cannot be compared."""
    return MatrixError(
        "runs that cannot be compared",
        where=where,
        expected=expected,
        got=got,
        next="give rows with the columns method, unit, stage, task, value",
    )
