"""What a run recorded while it trained, as inputs of metrics: probes of its accuracy, and the stream as it came."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from palimpsest.core.artifact import Job
from palimpsest.core.errors import MatrixError

Rows = list[dict[str, Any]]
# Of several sets of samples that were probed, the first one here is used: values of two sets do not mix.
SPLITS = ("test", "validation", "train")


def read_recorded(job: Job, run: str, name: str) -> Rows | None:
    """Rows of `runs/METHOD/UNIT/NAME.parquet` (`probes` or `prequential`), None where the run recorded none.

    Raises:
        ArtifactError: the table is not the one that was written.
        MatrixError: a count contradicts itself.
    """
    path = f"runs/{run}/{name}.parquet"
    if not (job.study / path).is_file():
        return None
    rows = job.read_table(path, name).to_pylist()
    for row in rows:
        if row["n_total"] < 1 or not 0 <= row["n_correct"] <= row["n_total"]:
            raise _error(path, "0 ≤ n_correct ≤ n_total, n_total ≥ 1", f"{row['n_correct']} of {row['n_total']}")
    return rows


def probe_inputs(
    rows: Rows | None,
    order: Sequence[str],
    protocol: str,
    stage_ends: Mapping[tuple[int, str], tuple[int, int]],
) -> dict[str, np.ndarray]:
    """The inputs `batches`, `after_batches`, `probe_peak` and `probe_end`, or none where nothing was probed.

    Args:
        rows: rows of the table `probes`, of all samples and of parts of them; only those of group `all` count.
        order: the task of each stage.
        protocol: under which the predictions are scored.
        stage_ends: `(n_correct, n_total)` of the evaluation after each stage by stage and task. They are ends of the
            probes too, where the probes were scored on the same samples: all test samples of the task.
    """
    scored = [row for row in rows or [] if row["protocol"] == protocol and row["group"] == "all"]
    split = next((split for split in SPLITS if any(row["split"] == split for row in scored)), None)
    if split is None:
        return {}
    probes = {
        (row["stage"], row["task"], row["batch"]): row["n_correct"] / row["n_total"]
        for row in scored
        if row["split"] == split
    }
    tasks = list(dict.fromkeys(order))
    own = {(stage, batch) for stage, task, batch in probes if task == order[stage - 1]}
    batches = sorted({0, *(batch for _, batch in own)})
    cells = [[probes.get((stage, task, b), np.nan) for b in batches] for stage, task in enumerate(order, start=1)]
    n_probed = {row["task"]: row["n_total"] for row in scored if row["split"] == split}
    ends = {
        (stage, task): n_correct / n_total
        for (stage, task), (n_correct, n_total) in stage_ends.items()
        if split == "test" and n_probed.get(task, n_total) == n_total
    }
    return {
        "batches": np.array(batches),
        "after_batches": np.array(cells, dtype=float),
        "probe_peak": np.array([_peak(probes, ends, task) for task in tasks]),
        "probe_end": np.array([_end(probes, ends, len(order), task) for task in tasks]),
    }


def stream_inputs(rows: Rows | None, n_stages: int) -> dict[str, np.ndarray]:
    """The inputs `stream_correct` and `stream_total` from the table `prequential`, or none where there is none.

    Args:
        rows: one for each mini-batch whose samples were presented for the first time.
        n_stages: stages that the plan foresees; those that the run did not reach are NaN.
    """
    if rows is None:
        return {}
    sums = {name: np.full(n_stages, np.nan) for name in ("n_correct", "n_total")}
    for name, values in sums.items():
        for stage in {row["stage"] for row in rows}:
            values[stage - 1] = sum(row[name] for row in rows if row["stage"] == stage)
    return {"stream_correct": sums["n_correct"], "stream_total": sums["n_total"]}


def _peak(probes: Mapping[tuple[int, str, int], float], ends: Mapping[tuple[int, str], float], task: str) -> float:
    measured = [value for (_, probed, _), value in probes.items() if probed == task]
    measured += [value for (_, evaluated), value in ends.items() if evaluated == task]
    return max(measured, default=np.nan)


def _end(
    probes: Mapping[tuple[int, str, int], float], ends: Mapping[tuple[int, str], float], last: int, task: str
) -> float:
    """The accuracy at the end of the run: of the evaluation, else of the last probe of the last stage."""
    if (last, task) in ends:
        return ends[last, task]
    return _latest(
        {batch: value for (stage, probed, batch), value in probes.items() if (stage, probed) == (last, task)}
    )


def _latest(by_batch: Mapping[int, float]) -> float:
    return by_batch[max(by_batch)] if by_batch else np.nan


def count_probes(rows: Iterable[Mapping[str, Any]] | None) -> int | None:
    """How often a run was probed, None where it was not: a peak over more probes is biased further upward."""
    return None if rows is None else len({(row["stage"], row["batch"]) for row in rows})


def _error(path: str, expected: str, got: str) -> MatrixError:
    return MatrixError(
        "what a run recorded contradicts itself",
        where=path,
        expected=expected,
        got=got,
        next="remove the file and start snakemake: it is collected again",
    )
