"""A trace as a W3C PROV document, in the JSON serialisation (PROV-JSON, W3C member submission of 2013).

An artifact, or rows of a table, is an entity; the stage that made it is an activity, which used its parents and is
associated with the recorded program; each entity was derived from its parents.
"""

from __future__ import annotations

from typing import Any

from palimpsest.audit.trace.graph import Graph, Node

NAMESPACE = "urn:palimpsest:"
_PLAIN = (str, int, float, bool)


def prov_json(graph: Graph, study: str) -> dict[str, Any]:
    """The document as plain content.

    Args:
        graph: a trace.
        study: name of the study.
    """
    document: dict[str, Any] = {
        "prefix": {"palimpsest": NAMESPACE, "study": f"{NAMESPACE}{study}/"},
        "entity": {_name(node.id): _entity(node) for node in graph.nodes.values()},
        "activity": {},
        "agent": {},
    }
    relations: dict[str, dict[str, Any]] = {
        name: {} for name in ("wasGeneratedBy", "used", "wasDerivedFrom", "wasAssociatedWith")
    }
    for node in graph.nodes.values():
        activity, agent = _name(f"activity/{node.rule}/{node.artifact}"), _name(f"program/{node.code}")
        document["activity"][activity] = {"prov:type": _kind(f"palimpsest:{node.rule}")}
        document["agent"][agent] = {"prov:type": _kind("prov:SoftwareAgent"), "palimpsest:code": node.code}
        _relate(relations, "wasGeneratedBy", {"prov:entity": _name(node.id), "prov:activity": activity})
        _relate(relations, "wasAssociatedWith", {"prov:activity": activity, "prov:agent": agent})
        for parent in node.parents:
            ends = {"prov:generatedEntity": _name(node.id), "prov:usedEntity": _name(parent)}
            _relate(relations, "wasDerivedFrom", ends)
            _relate(relations, "used", {"prov:activity": activity, "prov:entity": _name(parent)})
    return document | relations


def _entity(node: Node) -> dict[str, Any]:
    about = {f"palimpsest:{key}": value for key, value in node.about.items() if isinstance(value, _PLAIN)}
    return {"prov:type": _kind(f"palimpsest:{node.kind.replace(' ', '_')}"), "prov:label": node.label} | about | {
        "palimpsest:artifact": node.artifact,
        "palimpsest:sha256": node.sha256,
    }  # fmt: skip


def _kind(name: str) -> dict[str, str]:
    """A type, as a name of a vocabulary and not as a text."""
    return {"$": name, "type": "prov:QUALIFIED_NAME"}


def _relate(relations: dict[str, dict[str, Any]], name: str, ends: dict[str, str]) -> None:
    """Note a relation once, under a name of its own."""
    if ends not in relations[name].values():
        relations[name][f"_:{name}{len(relations[name]) + 1}"] = ends


def _name(identifier: str) -> str:
    return f"study:{identifier}"
