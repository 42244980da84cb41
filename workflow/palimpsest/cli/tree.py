"""A trace as a tree on the terminal: each node once, and where it comes up again a reference to it."""

from __future__ import annotations

from palimpsest.audit.trace.graph import Graph, Node

MOST_ALIKE = 6


def tree(graph: Graph, everything: bool):
    """The tree as `rich` draws it.

    Args:
        graph: a trace.
        everything: all nodes; else of many of one kind beside each other only the first few.
    """
    from rich.text import Text
    from rich.tree import Tree

    seen: set[str] = set()

    def grow(branch: Tree, node: Node) -> None:
        shown = node.parents if everything else _few(graph, node.parents)
        for key in shown:
            parent = graph.nodes[key]
            if key in seen:
                branch.add(Text.assemble((key, "cyan"), (" — above", "dim")))
                continue
            seen.add(key)
            grow(branch.add(_line(Text, parent)), parent)
        if len(shown) < len(node.parents):
            branch.add(Text(f"… and {len(node.parents) - len(shown)} more (--all)", style="dim"))

    root = graph.nodes[graph.root]
    seen.add(graph.root)
    trunk = Tree(_line(Text, root))
    grow(trunk, root)
    return trunk


def _line(text, node: Node):
    about = f"  {node.rule}, sha256 {node.sha256[:12]}"
    commit = f", commit {node.about['commit'][:12]}" if node.about.get("commit") else ""
    return text.assemble((node.id, "cyan"), f"  {node.label}", (about + commit, "dim"))


def _few(graph: Graph, keys: list[str]) -> list[str]:
    """The first few of each kind, in their order."""
    counts: dict[str, int] = {}
    shown = []
    for key in keys:
        kind = graph.nodes[key].kind
        counts[kind] = counts.get(kind, 0) + 1
        if counts[kind] <= MOST_ALIKE:
            shown.append(key)
    return shown
