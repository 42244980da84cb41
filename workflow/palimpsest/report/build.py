"""The report of a study: read, drawn and written."""

from __future__ import annotations

from palimpsest.core.artifact import Job
from palimpsest.report import figures, orders, recorded, tables
from palimpsest.report.costs import read_telemetry
from palimpsest.report.escape import file_stems
from palimpsest.report.figures import Drawing
from palimpsest.report.inline import inline
from palimpsest.report.page import costs_page, page
from palimpsest.report.results import Results, results
from palimpsest.report.study import Study, read


def build(job: Job) -> None:
    """Write `report/index.html`, `report/figures/` and `report/tables/` of the job's study.

    Raises:
        ArtifactError: a table is missing, or is not the one that was written.
    """
    study = read(job)
    table = results(study)
    drawings, matrices = _drawings(study), _matrices(study)
    svgs = {name: inline(drawing, name) for name, drawing in drawings.items()}
    stems = file_stems(list(matrices))
    inlined = {name: inline(drawing, f"matrix-{stems[name]}") for name, drawing in matrices.items()}
    for name, drawing in {**drawings, **{f"matrix-{stems[name]}": d for name, d in matrices.items()}}.items():
        for kind in ("svg", "pdf"):
            job.write_bytes(f"report/figures/{name}.{kind}", drawing.render(kind), "report")
    for name, content in _tables(study, table).items():
        job.write_bytes(f"report/tables/{name}", content, "report")
    job.write_bytes("report/index.html", page(study, table, svgs, inlined), "report")


def build_costs(job: Job) -> None:
    """Write `report/costs.html`, which is made of telemetry and so no artifact."""
    lock = job.read_json("plan/lock.json")
    attempts = read_telemetry(job.study, (run["run"] for run in lock["runs"]))
    job.write_apart("report/costs.html", costs_page(lock, attempts))


def _drawings(study: Study) -> dict[str, Drawing]:
    shown = {"forest": figures.forest(study), "stages": figures.stages(study), "scale": figures.scale()}
    positions = orders.drawing(study)
    shown |= {} if positions is None else {"positions": positions}
    return shown | recorded.drawings(study)


def _matrices(study: Study) -> dict[str, Drawing]:
    return {name: figures.matrix(study, name) for name in study.names("method")}


def _tables(study: Study, table: Results) -> dict[str, bytes]:
    return {
        "results.csv": tables.results_csv(table),
        "results.tex": tables.results_tex(table),
        "comparisons.csv": tables.comparisons_csv(study),
        "comparisons.tex": tables.comparisons_tex(study.comparisons),
        "matrices.csv": tables.matrices_csv(study),
        "stages.csv": tables.stages_csv(study),
        "decisions.csv": tables.decisions_csv(study),
        "costs.csv": tables.costs_csv(study),
        "curves.csv": tables.curves_csv(study),
        "orders.csv": tables.orders_csv(study),
    }
