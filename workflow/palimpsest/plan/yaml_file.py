"""YAML that refuses duplicated keys, reads `1e-3` as a number, and knows the line of every field."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from palimpsest.core.errors import StudyError

Place = tuple[str | int, ...]

_FLOAT = re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as PyYAML reads it, but for the numbers of YAML 1.2."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:float"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


@dataclass(frozen=True)
class YamlFile:
    """Content of a YAML file, and the line (from 1) on which each field stands."""

    path: Path
    content: Any
    lines: dict[Place, int]

    def where(self, place: Place) -> str:
        """Position of a field for an error message: file, line, dotted name."""
        known = next((place[:n] for n in range(len(place), -1, -1) if place[:n] in self.lines), ())
        dotted = ".".join(str(part) for part in place)
        return f"{self.path}:{self.lines.get(known, 1)}" + (f" {dotted}" if dotted else "")


def read_yaml(path: Path) -> YamlFile:
    """Read a YAML file.

    Raises:
        StudyError: there is no such file, it is not plain YAML, or a key stands twice in one mapping.
    """
    try:
        loader = _Loader(path.read_text(encoding="utf-8"))
        node = loader.get_single_node()
        lines: dict[Place, int] = {}
        if node is not None:
            _walk(node, (), lines, path)
        return YamlFile(path, loader.construct_document(node) if node is not None else None, lines)
    except StudyError:
        raise
    except OSError as error:
        raise StudyError(
            "the study file cannot be read",
            where=str(path),
            expected="a YAML file",
            got=error.strerror or str(error),
            next="give the path of a study, such as config/demo.yaml",
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # ValueError: text that is not UTF-8, or a date that does not exist; RecursionError: an alias of itself.
        mark = getattr(error, "problem_mark", None)
        raise StudyError(
            "the study file is not YAML",
            where=f"{path}:{mark.line + 1}" if mark else str(path),
            expected="YAML in UTF-8",
            got=getattr(error, "problem", None) or str(error),
            next="correct the line; mind the indentation",
        ) from None


def _walk(node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> None:
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _walk(child, (*place, index), lines, path)
    if isinstance(node, yaml.MappingNode):
        for key, child in node.value:
            here = (*place, str(key.value))
            if here in lines:
                raise StudyError(
                    f"the key {key.value!r} stands twice",
                    where=f"{path}:{key.start_mark.line + 1} {'.'.join(map(str, here))}",
                    expected="each key once in its mapping",
                    got=f"a first one in line {lines[here]}",
                    next="remove one of the two",
                )
            lines[here] = key.start_mark.line + 1
            _walk(child, here, lines, path)
