"""The deep part of a verification: what needs PyTorch and the raw data. Some stages are trained and evaluated again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import UNREADABLE, Finding, describe
from palimpsest.audit.rehearsal import Rehearsal
from palimpsest.audit.same import first_difference
from palimpsest.core.artifact import Job
from palimpsest.core.progress import Track
from palimpsest.core.streams import generator
from palimpsest.core.tables import TABLES
from palimpsest.plan.grid import Run
from palimpsest.training.machine import Kind


@dataclass(frozen=True)
class Deep:
    """A check that makes the data again, and a sample of stages with their predictions.

    Args:
        sample: how many stages, of all that were completed and whose parent's checkpoint is there.
        seed: which ones: nobody who prepares a study may know it beforehand.
        raw: the folder of raw files.
        machine: the kind of this machine.
    """

    sample: int
    seed: int
    raw: Path
    machine: Kind

    def __call__(self, chain: Chain, track: Track) -> Iterator[Finding]:
        """See `audit.verify.CHECKS`."""
        if chain.plan is None:
            return
        yield from _data(chain, self.raw)
        stages = list(self._chosen(chain))
        for run, record in track(stages, "training stages again"):
            yield from _stage(chain, run, record, self.machine)
        more = f"{len(stages)} of {len(list(_candidates(chain)))} stages were trained and evaluated again"
        yield Finding("runs", f"{more}; chosen by the seed {self.seed}", is_remark=True)

    def _chosen(self, chain: Chain) -> Iterator[tuple[Run, dict[str, Any]]]:
        candidates = list(_candidates(chain))
        draw = generator("verify", self.seed)
        for place in sorted(draw.permutation(len(candidates))[: self.sample]):
            yield candidates[place]


def _candidates(chain: Chain) -> Iterator[tuple[Run, dict[str, Any]]]:
    """Complete stages, by the run and the stage's record, that can be trained again from what is there."""
    for run in chain.runs.values():
        for stage in run.spec["stages"]:
            path = f"runs/{run.run}/stage-{stage['stage']}"
            parent = f"runs/{run.run}/stage-{stage['parent']}"
            needed = [f"{path}.json", *([] if stage["parent"] is None else [f"{parent}.json", f"{parent}.safetensors"])]
            if all(map(chain.is_sound, needed)) and chain.read_json(f"{path}.json")["status"] == "complete":
                yield run, chain.read_json(f"{path}.json")


def _stage(chain: Chain, run: Run, record: dict[str, Any], machine: Kind) -> Iterator[Finding]:
    from palimpsest.training.rebuild import stage_made_again

    path = f"runs/{run.run}/stage-{record['stage']}.json"
    if record["machine"] != machine:
        reason = "its stage was trained on another kind of machine, which gives other bits: it was not trained again"
        yield Finding(path, reason, str(record["machine"]), str(machine), is_remark=True)
        return
    try:
        job = _job(chain, run, "train", f"plan/code/{run.method}.json")
        about = (run.run, run.spec, record["stage"], record["recording"], machine)
        with stage_made_again(job, *about, lambda line: None) as (scratch, made):
            yield from _files(chain, run, record, made["files"])
            yield from _predictions(chain, run, record["stage"], scratch)
    except UNREADABLE as error:
        yield Finding(path, "its stage cannot be trained again", got=describe(error))


def _job(chain: Chain, run: Run, rule: str, program: str) -> Job:
    """A job of a rule on a run, by the name of the recorded program: only then can the bytes be the same."""
    job = Job(chain.study, rule, code="", environment="", spec_hash=run.spec_hash, parameters={"run": run.run})
    recorded = job.read_json(program)
    job.code, job.environment = recorded["code"], recorded["environment"]
    return job


def _files(chain: Chain, run: Run, record: dict[str, Any], made: dict[str, str]) -> Iterator[Finding]:
    for name in sorted(made.keys() | record["files"].keys()):
        recorded, again = record["files"].get(name, "no such file"), made.get(name, "no such file")
        if recorded != again:
            other = "" if chain.is_installed(f"plan/code/{run.method}.json") else ", by another version of the program"
            reason = f"its stage, trained again from its parents{other}, leaves other bytes"
            yield Finding(f"runs/{run.run}/{name}", reason, f"sha256 {again}", f"sha256 {recorded}")


def _predictions(chain: Chain, run: Run, stage: int, scratch: Job) -> Iterator[Finding]:
    from palimpsest.evaluation.evaluate import predict

    path = f"evaluation/{run.run}/predictions.parquet"
    if not chain.is_sound(path):
        return
    key = [(name, "ascending") for name in TABLES["predictions"].key]
    job = Job(scratch.study, "evaluate", code="", environment="", spec_hash=run.spec_hash)
    again = predict(job, run.run, run.spec, [stage])[0].sort_by(key)
    recorded = pq.ParquetFile(chain.study / path).read().replace_schema_metadata(None)
    first = pc.index(recorded["stage"], pa.scalar(stage, pa.int32())).as_py()
    found = recorded.filter(pc.equal(recorded["stage"], stage))
    if not found.equals(again):
        reason = f"the checkpoint of stage {stage}, evaluated again, predicts something else"
        yield Finding(path, reason, *first_difference(again, found, max(0, first)))


def _data(chain: Chain, raw: Path) -> Iterator[Finding]:
    """Make samples and inputs again from the raw files of their source."""
    from palimpsest.benchmarks import BENCHMARKS
    from palimpsest.data.raw import load_source
    from palimpsest.data.write import write_samples

    told = json.loads(chain.grid.benchmark)

    def work(job: Job) -> None:
        module = BENCHMARKS.load(told["name"], "plan/lock.json")
        sources = told.pop("sources")
        assert sources, "a benchmark has a source"
        job = job.fork(benchmark=told)
        options = module.Options.model_validate(told["options"])
        write_samples(job, module.build(options, told["seed"], partial(load_source, folder=raw)))

    yield from Rehearsal(chain, "data").compare(chain.artifacts("data"), [], work)
