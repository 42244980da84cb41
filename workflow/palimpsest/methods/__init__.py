"""Continual-learning methods, one file each.

A method's file declares

* `REFERENCE`: the paper,
* `DECLARATION`: what it stores and needs (`methods._declaration`),
* `Hyperparameters`: a pydantic model, each field with description, unit and range,
* and any of the hooks of `methods._hooks`: `init`, `begin_task`, `loss`, `penalty`, `project`, `after_step`,
  `after_task`, `predict`. A hook that is left out does what plain training does.

`a+b` in a study composes two methods (`methods._method`).
"""

from palimpsest.core.catalog import Catalog

METHODS = Catalog("palimpsest.methods", "method")
