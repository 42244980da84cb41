"""What learns, one file for each architecture.

A model declares `REFERENCE`, `LAYERED` (whether its backbone is an `nn.Sequential` in which each linear or
convolutional layer is followed by its own ReLU), `Options` (pydantic), and has a function `build(options, input_shape)`
that gives a backbone, from inputs `[batch, *input_shape]` (float32) to features `[batch, n_features]`, and n_features.
The head follows (`models._network`); initial weights are set afterwards by `models._initial`, from streams named by the
parameters.
"""

from palimpsest.core.catalog import Catalog

MODELS = Catalog("palimpsest.models", "model")
