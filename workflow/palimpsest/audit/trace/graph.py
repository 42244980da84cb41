"""What a trace found: rows of tables and other artifacts, each with those that it came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Node:
    """An artifact, or some rows of a table.

    Args:
        id: the artifact's path, with `#row` or `#first-last` where it is rows; rows are counted from 0.
        kind: what it is, in a word or two.
        label: what it says, in a line.
        artifact: path in the study.
        sha256: of the file, as its record has it.
        rule, code: which stage made it, and the hash of the program.
        about: plain content: values, names, hashes of samples.
        parents: ids of what it came from.
    """

    id: str
    kind: str
    label: str
    artifact: str
    sha256: str
    rule: str
    code: str
    about: dict[str, Any] = field(default_factory=dict)
    parents: list[str] = field(default_factory=list)


@dataclass
class Graph:
    """A trace: its nodes by id, from the one that was asked for on.

    Args:
        root: id of that node.
        nodes: every node.
    """

    root: str
    nodes: dict[str, Node] = field(default_factory=dict)

    def content(self) -> dict[str, Any]:
        """Plain content, for JSON."""
        return {"root": self.root, "nodes": {key: asdict(node) for key, node in self.nodes.items()}}

    def of_kind(self, kind: str) -> list[Node]:
        """All nodes of a kind, in the order in which they were found."""
        return [node for node in self.nodes.values() if node.kind == kind]
