"""Data sets, one file each.

A source declares `SOURCE` (whence), `GET` (how its raw files are had), `LICENCE`, `REFERENCE`, `INPUT_SHAPE` (height
and width, and 3 for colours), `N_CLASSES`, `N_PER_CLASS` (samples of each class under `train`, and under `test` where
the data set has test samples of its own) and `RAW_FILES` (SHA-256 of each raw file, without compression by gzip unless
its name says so). It has two functions: `places()` gives the folders where a package puts the raw files, `load(raw)`
makes `(inputs, labels)` of their contents by name: uint8 `[sample, *INPUT_SHAPE]` and int64 `[sample]`, the data set's
own test samples last.
"""

from palimpsest.core.catalog import Catalog

SOURCES = Catalog("palimpsest.data.sources", "data source")
