"""`palimpsest stage data`: the samples of the benchmark, hashed one by one."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, RawFolder, StudyFolder, begin


def command(
    study: StudyFolder,
    code: CodeFile,
    benchmark: Annotated[str, typer.Option(help="Name, seed and options of the benchmark, and its sources, as JSON.")],
    raw: RawFolder = Path("data/raw"),
) -> None:
    """Write data/samples.parquet, data/inputs.npy and data/moves.parquet."""
    what = json.loads(benchmark)
    modules = [f"palimpsest.benchmarks.{what['name']}"]
    modules += [f"palimpsest.data.sources.{source}" for source in what.pop("sources")]
    job = begin(study, "data", code, modules, parameters={"benchmark": what})
    from palimpsest.benchmarks import BENCHMARKS
    from palimpsest.core.hashing import canonical_json
    from palimpsest.data.raw import load_source
    from palimpsest.data.write import write_samples

    module = BENCHMARKS.load(what["name"], "--benchmark")
    samples = module.build(
        module.Options.model_validate(what["options"]), what["seed"], partial(load_source, folder=raw)
    )
    duplicates = write_samples(job, samples)
    when = {source: _retrieved(source, raw) for source in samples.sources}
    job.write_apart("telemetry/retrieved.json", canonical_json(when))
    print(
        f"{len(samples.sample)} samples; exact duplicates: {duplicates['within_splits']} within a split, "
        f"{duplicates['across_splits']} across splits"
    )


def _retrieved(source: str, folder: Path) -> dict[str, str]:
    """Since when each raw file of a data set lies where it is read, by the clock of its file system, UTC."""
    from palimpsest.data.raw import path_of
    from palimpsest.data.sources import SOURCES

    files = {file: path_of(source, file, folder) for file in SOURCES.load(source, "--benchmark").RAW_FILES}
    return {file: datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat() for file, path in files.items() if path}
