"""The stage `manifest`: class balance, duplicates and contamination of the samples."""

from __future__ import annotations

from palimpsest.cli.begin import CodeFile, StudyFolder, begin


def command(study: StudyFolder, code: CodeFile) -> None:
    """Write the tables of data/manifest/."""
    from palimpsest.core.manifest import write_manifest

    counts = write_manifest(begin(study, "manifest", code))
    print("test samples by tier of contamination: " + ", ".join(f"{tier} {n}" for tier, n in counts.items()))
