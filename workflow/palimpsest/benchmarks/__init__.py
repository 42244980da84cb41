"""From data sets to tasks, one file for each way.

A benchmark declares `REFERENCE` and `Options` (pydantic), and has two functions: `describe(options, where)` tells the
tasks and the shape of the inputs without touching the data, `build(options, seed)` makes the samples.
"""

from palimpsest.core.catalog import Catalog

BENCHMARKS = Catalog("palimpsest.benchmarks", "benchmark")
