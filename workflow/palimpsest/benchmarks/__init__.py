"""From data sets to tasks, one file for each way.

A benchmark declares `REFERENCE` and `Options` (pydantic), and has two functions. `describe(options, seed, where)`
tells, without touching the data, `{sources, tasks: {id: {classes, n_train, n_validation, n_test}}, inputs: {shape,
n_outputs, sample_bytes, label_bytes, label_tells_task}}`. `build(options, seed, load)` makes the samples; `load(name)`
gives inputs and labels of a data set.
"""

from palimpsest.core.catalog import Catalog

BENCHMARKS = Catalog("palimpsest.benchmarks", "benchmark")
