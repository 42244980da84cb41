"""The samples of a trace as files: images where inputs are images, and a table of all of them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from palimpsest.audit.trace.graph import Graph
from palimpsest.core.artifact import Job, write_atomically
from palimpsest.core.errors import ArtifactError
from palimpsest.core.inputs import Inputs

HEADINGS = ("sample", "task", "label", "sha256", "file", "n_predictions", "n_right")


def write_images(study: Path, graph: Graph, folder: Path) -> int:
    """Write every sample of a trace as PNG, as a model gets it, and `samples.csv`; returns how many.

    `n_predictions` counts the predictions of the sample that the traced number was computed from.

    Raises:
        ArtifactError: inputs are no images, or the data are missing or not the ones that were written.
    """
    job = Job(study, "trace", code="", environment="")
    samples = job.read_table("data/samples.parquet", "samples")
    stored = np.load(job.locate("data/inputs.npy"), mmap_mode="r", allow_pickle=False)
    inputs = Inputs.of_tables(stored, samples, job.read_table("data/moves.parquet", "moves"))
    predicted, right = _predictions(graph)
    rows = [(at, row) for at, row in enumerate(samples.to_pylist()) if row["sample"] in predicted]
    table = io.StringIO()
    lines = csv.writer(table, lineterminator="\n")
    lines.writerow(HEADINGS)
    for at, row in rows:
        name = f"{row['sample']:06d}-{row['task']}-label-{row['label']}.png"
        write_atomically(folder / name, png(inputs[np.array([at])][0]))
        counts = (predicted[row["sample"]], right[row["sample"]])
        lines.writerow([row["sample"], row["task"], row["label"], row["sha256"], name, *counts])
    write_atomically(folder / "samples.csv", table.getvalue().encode())
    return len(rows)


def _predictions(graph: Graph) -> tuple[Counter[int], Counter[int]]:
    """Number of predictions, and of right ones, by sample; a sample that was traced alone has none."""
    predicted: Counter[int] = Counter()
    right: Counter[int] = Counter()
    for node in graph.of_kind("predictions"):
        columns: dict[str, Any] = {name: node.about[name] for name in ("sample", "label", "predicted")}
        alone = not isinstance(columns["sample"], list)
        rows = [tuple(columns.values())] if alone else list(zip(*columns.values(), strict=True))
        predicted.update(sample for sample, _, _ in rows)
        right.update(sample for sample, label, chosen in rows if chosen == label)
    for node in graph.of_kind("samples"):
        if not isinstance(node.about["sample"], list):
            predicted.setdefault(node.about["sample"], 0)
    return predicted, right


def png(image: np.ndarray) -> bytes:
    """A grey `[height, width]` or coloured `[height, width, 3]` uint8 image as a PNG file."""
    from PIL import Image

    if image.dtype != np.uint8 or image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
        raise ArtifactError(
            "inputs of this study cannot be drawn",
            where="data/inputs.npy",
            expected="grey or coloured images of 8 bits",
            got=f"{image.dtype} of shape {image.shape}",
            next="leave --samples out: the trace names every sample with its SHA-256",
        )
    picture, file = Image.fromarray(image.squeeze(2) if image.shape[2:] == (1,) else image), io.BytesIO()
    picture.save(file, format="PNG")
    return file.getvalue()
