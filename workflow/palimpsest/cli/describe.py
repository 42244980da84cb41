"""What the files of the axes say of themselves, for the lock: the plan itself imports none of them."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

from pydantic import ValidationError

from palimpsest.benchmarks import BENCHMARKS
from palimpsest.core.errors import SeveralErrors, StudyError
from palimpsest.methods._declaration import HyperparameterError, ModelError, facts_of
from palimpsest.methods._method import (
    check_benchmark,
    declaration,
    load_method,
    memory_bytes,
    resolved_hyperparameters,
)
from palimpsest.metrics import METRICS
from palimpsest.metrics._declaration import NO_BOUNDARIES
from palimpsest.models import MODELS
from palimpsest.plan.grid import REFERENCES
from palimpsest.plan.study import Study, problems
from palimpsest.plan.yaml_file import YamlFile


class Catalogs:
    """Implements `plan.lock.Describe` on the catalogs of benchmarks, models and methods."""

    def benchmark(self, study: Study, file: YamlFile) -> dict[str, Any]:
        """Tasks, inputs and full options of the study's benchmark."""
        module = BENCHMARKS.load(study.benchmark.name, file.where(("benchmark", "name")))
        options = _options(module.Options, study.benchmark.options, file, ("benchmark", "options"))
        described = module.describe(options, study.benchmark.seed, file.where(("benchmark", "options")))
        return {"options": options.model_dump(mode="json"), **described}

    def model(self, study: Study, file: YamlFile, benchmark: dict[str, Any]) -> dict[str, Any]:
        """Full options of the study's model."""
        module = MODELS.load(study.model.name, file.where(("model", "name")))
        options = _options(module.Options, study.model.options, file, ("model", "options"))
        try:
            module.build(options, tuple(benchmark["inputs"]["shape"]))
        except ValueError as error:
            raise StudyError(
                "the model cannot take the benchmark's inputs",
                where=file.where(("model", "options")),
                expected="options that fit inputs of shape " + str(benchmark["inputs"]["shape"]),
                got=str(error),
                next="correct the options, or choose another model",
            ) from None
        return options.model_dump(mode="json")

    def method(self, study: Study, file: YamlFile, benchmark: dict[str, Any], key: str) -> dict[str, Any]:
        """Full hyperparameters and declaration of one method or reference."""
        reference = key in REFERENCES
        entry = None if reference else study.methods[key]
        name = (entry.method if entry else None) or key
        place = ("references", key) if reference else ("methods", key)
        try:
            method = load_method(name, entry.hyperparameters if entry else {}, file.where(place))
            tasks = {task: about["classes"] for task, about in benchmark["tasks"].items()}
            check_benchmark(method, {**facts_of(benchmark["inputs"], tasks), "model": _facts_of_model(study)})
        except ValidationError as error:
            raise SeveralErrors(list(problems(error, file, (*place, "hyperparameters")))) from None
        except HyperparameterError as error:
            raise StudyError(
                "a hyperparameter cannot work on this benchmark",
                where=file.where((*place, "hyperparameters", error.field)),
                expected=error.expected,
                got=repr(entry.hyperparameters.get(error.field) if entry else None),
                next="correct the value in the study file",
            ) from None
        except ModelError as error:
            raise StudyError(
                f"{name} cannot work with the study's model",
                where=file.where(place),
                expected=error.expected,
                got=error.got,
                next="choose another model or head, or leave the method out",
            ) from None
        declared = declaration(method)
        if declared.needs_task_identity and study.protocol != "task_incremental":
            raise StudyError(
                f"{name} must be told the task of a test sample",
                where=file.where(place),
                expected="the protocol task_incremental",
                got=f"the protocol {study.protocol}, under which the task is unknown",
                next=f"remove {name}, or make it a study of the protocol task_incremental",
            )
        if not reference and declared.schedule not in ("sequential", "cumulative"):
            raise StudyError(
                f"{name} is a reference, not a method to compare",
                where=file.where(place),
                expected="a method that learns the tasks in sequence",
                got=name,
                next=f"remove it here and set references.{name}",
            )
        return {
            "method": name,
            "role": "reference" if reference else "method",
            "hyperparameters": resolved_hyperparameters(method),
            **asdict(declared),
            "memory_bytes": memory_bytes(method, benchmark["inputs"]),
            "per_unit": not reference or (key == "joint" and study.references.joint == "per_stage"),
            "reference": "; ".join(module.REFERENCE for module in method.parts.values()),
        }

    def metric(self, name: str, where: str) -> dict[str, Any]:
        """Over what the values of a metric run, where it is undefined, and what it needs."""
        module = METRICS.load(name, where)
        inputs = list(inspect.signature(getattr(module, name)).parameters)
        return {
            "index": module.METRIC.index,
            "undefined_in": module.METRIC.undefined_in,
            "without_boundaries": NO_BOUNDARIES if module.METRIC.needs_boundaries else None,
            "needs": [reference for reference in REFERENCES if any(key.startswith(reference) for key in inputs)],
            "inputs": inputs,
        }


def _facts_of_model(study: Study) -> dict[str, Any]:
    module = MODELS.load(study.model.name, "model.name")
    return {**study.model.model_dump(mode="json"), "layered": module.LAYERED}


def _options(schema: Any, values: dict[str, Any], file: YamlFile, place: tuple[str, ...]) -> Any:
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        raise SeveralErrors(list(problems(error, file, place))) from None
