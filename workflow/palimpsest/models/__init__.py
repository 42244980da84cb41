"""What learns, one file for each architecture.

A model declares `REFERENCE` and `Options` (pydantic) and has a function `build(options, input_shape, n_outputs)` that
gives a module from inputs `[batch, *input_shape]` (float32) to outputs `[batch, n_outputs]`. Its initial weights are
set afterwards by `models._initial`, from streams named by the parameters.
"""

from palimpsest.core.catalog import Catalog

MODELS = Catalog("palimpsest.models", "model")
