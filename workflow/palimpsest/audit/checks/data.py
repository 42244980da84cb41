"""The inputs are those whose hashes the table of samples holds, and every task has its samples as planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import Finding, guarded
from palimpsest.core.hashing import hash_bytes
from palimpsest.core.inputs import Inputs
from palimpsest.core.progress import Track

SAMPLES, INPUTS, MOVES = "data/samples.parquet", "data/inputs.npy", "data/moves.parquet"
ROWS_AT_ONCE = 4096
_SPLITS = {"train": "n_train", "validation": "n_validation", "test": "n_test"}


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Hash every input, and count the samples."""
    if not chain.is_sound(SAMPLES):
        return
    samples = pq.ParquetFile(chain.study / SAMPLES).read()
    if chain.is_sound(INPUTS) and chain.is_sound(MOVES):
        yield from guarded(INPUTS, "the inputs cannot be read", lambda: _inputs(chain, samples, track))
    if chain.plan is not None:
        yield from guarded(SAMPLES, "the samples cannot be counted", lambda: _counts(chain, samples))


def _inputs(chain: Chain, samples: pa.Table, track: Track) -> Iterator[Finding]:
    stored = np.load(chain.study / INPUTS, mmap_mode="r", allow_pickle=False)
    if set(samples["input"].to_pylist()) != set(range(len(stored))):
        named = f"{pc.count_distinct(samples['input'])}, up to number {pc.max(samples['input'])}"
        yield Finding(INPUTS, "it does not hold the inputs that the samples have", named, str(len(stored)))
        return
    inputs = Inputs.of_tables(stored, samples, pq.ParquetFile(chain.study / MOVES).read())
    stated = samples["sha256"].to_pylist()
    for start in track(range(0, len(inputs), ROWS_AT_ONCE), "hashing samples"):
        rows = np.arange(start, min(start + ROWS_AT_ONCE, len(inputs)))
        for number, input in zip(rows, inputs[rows], strict=True):
            digest = hash_bytes(input.tobytes())
            if digest != stated[number]:
                reason = f"the input of sample {samples['sample'][number]} is not the one that {SAMPLES} states"
                yield Finding(INPUTS, reason, stated[number], digest)
                return


def _counts(chain: Chain, samples: pa.Table) -> Iterator[Finding]:
    found = Counter(zip(samples["task"].to_pylist(), samples["split"].to_pylist(), strict=True))
    for task, facts in chain.plan["tasks"].items():
        for split, name in _SPLITS.items():
            n = found.pop((task, split), 0)
            if n != facts[name]:
                yield Finding(SAMPLES, f"task {task} has another number of {split} samples", str(facts[name]), str(n))
    if found:
        yield Finding(SAMPLES, "it has samples of other tasks or splits than the plan", got=str(dict(found)))
    classes = {task: set(facts["classes"]) for task, facts in chain.plan["tasks"].items()}
    for task, label in zip(samples["task"].to_pylist(), samples["label"].to_pylist(), strict=True):
        if task in classes and label not in classes[task]:
            yield Finding(
                SAMPLES, f"a sample of task {task} has a label of another task", str(classes[task]), str(label)
            )
            return
