"""The stage `audit`: the ledger's last shard and the root over all of them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin


def command(
    study: StudyFolder,
    code: CodeFile,
    methods: Annotated[str, typer.Option(help="Labels of all methods and references, a JSON list.")],
) -> None:
    """List the artifacts that belong to no method, and compute the Merkle root over all shards of the ledger."""
    from palimpsest.audit.ledger import write_root

    write_root(begin(study, "audit", code), json.loads(methods))
