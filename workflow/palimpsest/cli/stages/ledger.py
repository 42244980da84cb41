"""The stage `ledger`: the ledger's shard of one method."""

from __future__ import annotations

from typing import Annotated

import typer

from palimpsest.cli.begin import CodeFile, StudyFolder, begin


def command(
    study: StudyFolder,
    code: CodeFile,
    method: Annotated[str, typer.Option(help="The method's label.")],
) -> None:
    """Hash all artifacts of one method again and list them in the method's shard of the ledger."""
    from palimpsest.audit.ledger import write_method_shard

    write_method_shard(begin(study, "ledger", code), method)
