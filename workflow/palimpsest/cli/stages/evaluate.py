"""`palimpsest stage evaluate`: every checkpoint of one run on every task."""

from __future__ import annotations

from palimpsest.cli.begin import CodeFile, StudyFolder, begin
from palimpsest.cli.run_spec import RunId, SpecText, read_spec


def command(study: StudyFolder, code: CodeFile, run: RunId, spec: SpecText) -> None:
    """Write evaluation/METHOD/UNIT/predictions.parquet and matrix.parquet."""
    from palimpsest.cli.numerics import pin_numerics
    from palimpsest.core.hashing import hash_json

    told, modules = read_spec(spec)
    job = begin(study, "evaluate", code, modules, spec_hash=hash_json(told), parameters={"run": run})
    pin_numerics(told["numerics"]["threads"])
    from palimpsest.evaluation.evaluate import evaluate_run

    evaluate_run(job, run, told)
