"""The study file explained: `config/README.md` and the JSON Schema, both generated from the pydantic models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from palimpsest.plan.study import Study

HEAD = """# The study file

A study is one file `config/NAME.yaml`; `demo.yaml` is one to start from. Freeze it before the first run by
`envs/run palimpsest lock config/NAME.yaml`, commit the lock that this writes, and run it by
`envs/run snakemake --configfile config/NAME.yaml`. A study that differs from its lock does not start. Unknown keys and
wrong types are errors; `execution` is outside the lock.

This page is generated from the program by `envs/run palimpsest schema`; `study.schema.json` beside it is for editors.
"""


def json_schema() -> str:
    """JSON Schema of the study file."""
    return json.dumps(Study.model_json_schema(), indent=1, ensure_ascii=False) + "\n"


DATA_SETS = """
## Data sets

Raw files are looked for in `data/raw/NAME/` below the folder in which the workflow runs, or in the folder NAME of the
one that the environment variable `PALIMPSEST_DATA` names, and then where a package puts them. Nothing is downloaded
while a study runs, and a file with another hash than the declared one stops it.

| name | what it is | how its raw files are had | licence |
| --- | --- | --- | --- |
"""


def markdown(axes: Mapping[str, Mapping[str, type[BaseModel]]], data_sets: Mapping[str, tuple[str, str, str]]) -> str:
    """The page that explains every field.

    Args:
        axes: for each heading ("Methods"), the options of each entry by name.
        data_sets: what each data set is, how its raw files are had, and its licence, by name.
    """
    parts = [HEAD, "\n## Fields\n\n", _table(Study, "")]
    for heading, entries in axes.items():
        parts.append(f"\n## {heading}\n")
        for name, options in entries.items():
            parts.append(f"\n### `{name}`\n\n" + (_table(options, "") if options.model_fields else "No options.\n"))
    parts.append(DATA_SETS)
    parts += [f"| `{name}` | {' | '.join(about)} |\n" for name, about in data_sets.items()]
    return "".join(parts)


def _table(model: type[BaseModel], prefix: str) -> str:
    return "| field | type | default | meaning |\n| --- | --- | --- | --- |\n" + "".join(_rows(model, prefix))


def _rows(model: type[BaseModel], prefix: str) -> list[str]:
    schema = model.model_json_schema()
    rows = []
    for name, field in model.model_fields.items():
        place = f"{prefix}{name}"
        inner = _inner(field)
        if inner is None:
            kind = _kind(schema["properties"][name])
            default = "required" if field.is_required() else f"`{json.dumps(_default(field), ensure_ascii=False)}`"
            rows.append(f"| `{place}` | {kind} | {default} | {_meaning(field)} |\n")
        else:
            several = {"dict": "NAME.", "list": "[]."}
            key = next((key for kind, key in several.items() if kind in str(field.annotation)), "")
            rows += [f"| `{place}` | section | | {_meaning(field) or (inner.__doc__ or '').splitlines()[0]} |\n"]
            rows += _rows(inner, f"{place}.{key}")
    return rows


def _inner(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a field holds: itself, or as items of a list or mapping."""
    arguments = getattr(field.annotation, "__args__", ())
    candidates = [field.annotation, *(getattr(argument, "__origin__", argument) for argument in arguments)]
    return next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)


def _kind(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    limits = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    bounds = [f"{sign} {schema[key]:g}" for key, sign in limits.items() if key in schema]
    return " ".join([schema.get("type", "any"), *bounds]).replace("object", "mapping")


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True)
    return value.model_dump() if isinstance(value, BaseModel) else value


def _meaning(field: FieldInfo) -> str:
    text = (field.description or "").replace("|", "\\|")
    examples = ", ".join(f"`{json.dumps(example, ensure_ascii=False)}`" for example in field.examples or [])
    return f"{text} Example: {examples}." if examples else text
