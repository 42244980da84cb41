"""Metrics of one run: one pure function per file, found by its name.

Axes are always `[..., stage, task]`: `a[k, j]` is the accuracy, a fraction in [0, 1], after stage k on the task at
position j of the run's order. Leading dimensions are runs. A cell that was not measured is NaN, and NaN passes through
every formula: a divisor is never shrunk.

A file holds the function under the file's name, whose parameters name the inputs that it needs (fields of `Inputs`),
its declaration `METRIC`, its `REFERENCE` and, where published programs compute something under that name, `ELSEWHERE`.
The functions take for granted what their declaration demands; `_evaluate` checks that first, and says why a value is
null.

For matrices from anywhere:

>>> from palimpsest.metrics import compute, explain, reasons
>>> matrix = [[0.90, None], [0.70, 0.80]]
>>> compute(matrix, ["average_accuracy", "backward_transfer", "average_accuracy_at_k"])
{'average_accuracy': 0.75, 'backward_transfer': -0.2, 'average_accuracy_at_k': [0.9, 0.75]}
>>> compute(matrix, ["forgetting", "forgetting_since_learned"])
{'forgetting': 0.2, 'forgetting_since_learned': 0.2}
>>> compute(matrix, ["intransigence_isolated"], isolated=[0.95, 0.85])
{'intransigence_isolated': 0.05}
>>> compute(matrix, ["clear_forward"]), reasons(matrix, ["clear_forward"])
({'clear_forward': None}, {'clear_forward': 'a[1,2]'})
>>> explain("backward_transfer").direction
'higher'

Matrices out of files, whatever the command `palimpsest metrics` reads:

>>> from pathlib import Path
>>> from tempfile import TemporaryDirectory
>>> from palimpsest.metrics import read
>>> with TemporaryDirectory() as folder:
...     file = Path(folder) / "runs.csv"
...     _ = file.write_text("run,stage,task,value\\nx,1,t1,90\\nx,2,t1,70\\nx,2,t2,80\\n")
...     (run,) = read(file, percent=True)
>>> run.name, run.tasks, compute(run.accuracy, "average_accuracy")
('x', ('t1', 't2'), {'average_accuracy': 0.75})
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from palimpsest.core.catalog import Catalog

if TYPE_CHECKING:
    from pathlib import Path

    from palimpsest.metrics._describe import Description
    from palimpsest.metrics._files import NamedMatrix

METRICS = Catalog("palimpsest.metrics", "metric")


def compute(
    accuracy: Any, names: str | Iterable[str] = (), **inputs: Any
) -> dict[str, float | list[float | None] | None]:
    """Values of metrics of one run, None where one is undefined.

    Args:
        accuracy: a[stage, task], fractions in [0, 1]; None or NaN where nothing was measured.
        names: of the metrics, or of one; all of them if left out.
        inputs: `protocol`, and what else metrics are computed from: `n_total`, `random_init`, `isolated`, `joint`,
            `joint_at_k`, … (see `_declaration.Inputs`). Of `joint` alone only the last `joint_at_k` follows.

    Returns:
        By name a number, or a list of numbers over stages, tasks or mini-batches. Rounded to 12 decimals, since what
        lies beyond is an accident of binary arithmetic.

    Raises:
        MatrixError: an input has the wrong shape, or a value that is no fraction.
        StudyError: there is no such metric.
    """
    found = {name: [_rounded(row["value"]) for row in rows] for name, rows in _rows(accuracy, names, inputs).items()}
    return {name: values if _has_index(name) else values[0] for name, values in found.items()}


def reasons(accuracy: Any, names: str | Iterable[str] = (), **inputs: Any) -> dict[str, str]:
    """Why metrics are undefined, by name: those that `compute` gives None for, wholly or at some places.

    Arguments and errors are those of `compute`.
    """
    texts = {
        name: dict.fromkeys(row["missing"] for row in rows if row["missing"])
        for name, rows in _rows(accuracy, names, inputs).items()
    }
    return {name: "; ".join(found) for name, found in texts.items() if found}


def read(*files: str | Path, percent: bool = False) -> list[NamedMatrix]:
    """The matrices of CSV, JSON, Parquet or NumPy files, each with the names of its run and its tasks.

    Args:
        files: a square table each (rows: stages, columns: tasks), or rows with the columns stage, task, value and, for
            several runs, run, or method and unit.
        percent: whether values are percent instead of fractions.

    Raises:
        MatrixError: a file is not what it should be; names row and column where there is one.
    """
    from pathlib import Path

    from palimpsest.metrics._matrices import read_all

    return read_all([Path(file) for file in files], percent)


def explain(name: str) -> Description:
    """Definition, range, direction and reference of a metric, and how published programs differ.

    Raises:
        StudyError: there is no such metric.
    """
    from palimpsest.metrics._describe import describe

    return describe(name)


def _rows(accuracy: Any, names: str | Iterable[str], inputs: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    import numpy as np

    from palimpsest.metrics._declaration import UNKNOWN, Inputs, at_last_stage, require_protocol
    from palimpsest.metrics._evaluate import rows

    require_protocol(inputs.get("protocol", UNKNOWN))
    arrays = {name: np.array(value, dtype=float) for name, value in inputs.items() if name != "protocol"}
    if "joint" in arrays:
        arrays.setdefault("joint_at_k", at_last_stage(arrays["joint"]))
    names = [names] if isinstance(names, str) else list(names)
    given = Inputs(np.array(accuracy, dtype=float), inputs.get("protocol", UNKNOWN), **arrays)
    return {name: rows(name, given) for name in names or METRICS.names()}


def _has_index(name: str) -> bool:
    return METRICS.load(name, "metrics").METRIC.index is not None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 12)
