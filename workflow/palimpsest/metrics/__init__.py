"""Metrics of one run: one pure function per file, found by its name.

Axes are always `[..., stage, task]`: `a[k, j]` is the accuracy, a fraction in [0, 1], after stage k on the task at
position j of the run's order. Leading dimensions are runs. A cell that was not measured is NaN, and NaN passes through
every formula: a divisor is never shrunk.

A file holds the function under the file's name, whose parameters name the inputs that it needs (fields of `Inputs`),
its declaration `METRIC` and its `REFERENCE`. The functions take for granted what their declaration demands;
`_evaluate` checks that first, and says why a value is null.
"""

from palimpsest.core.catalog import Catalog

METRICS = Catalog("palimpsest.metrics", "metric")
