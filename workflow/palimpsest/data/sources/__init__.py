"""Data sets, one file each.

A source declares `SOURCE` (whence), `LICENCE`, `REFERENCE`, `INPUT_SHAPE`, `N_CLASSES`, `N_PER_CLASS` (the fewest
samples that a class has) and `RAW_FILES` (SHA-256 of each raw file), and has two functions: `find()` gives the path of
each raw file, `load(paths)` gives `(inputs, labels)` as arrays of uint8 and int64.
"""

from palimpsest.core.catalog import Catalog

SOURCES = Catalog("palimpsest.data.sources", "data source")
