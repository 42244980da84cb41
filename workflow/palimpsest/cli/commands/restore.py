"""`palimpsest restore`: unpack an archive from anywhere, and verify what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    archive: Annotated[Path, typer.Argument(help="The archive, NAME-ROOT.crate.zip.")],
    into: Annotated[Path, typer.Option(help="Folder to unpack to; empty, or not there.")],
    root: Annotated[str | None, typer.Option(help="The root as it was published elsewhere.")] = None,
) -> None:
    """Look at every entry, refuse what is not safe, unpack, and verify; nothing of the archive is executed."""
    from palimpsest.audit.unpack import unpack
    from palimpsest.cli.archiving import around
    from palimpsest.cli.commands.verify import verify_and_tell
    from palimpsest.cli.progress import bars

    with bars() as track:
        study = unpack(archive, into, track)
    print(f"{archive} unpacked into {into}")
    verify_and_tell(study, study, root, beside=[*around(into, study, archive)])
