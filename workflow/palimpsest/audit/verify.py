"""`palimpsest verify`: does everything follow from its parents, from the plan to the report?

A reviewer who distrusts everything starts from the files alone. The ledger states every artifact with its hashes and
parents; the root stands for the ledger. Each check below asks one thing of all artifacts, reads files in pieces, and
knows nothing of the other checks but which artifacts are damaged. To ask one thing more, add a file to `audit/checks/`
and name it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from palimpsest.audit.chain import Chain, open_chain
from palimpsest.audit.checks import (
    data,
    derived,
    duplicates,
    files,
    matrices,
    origins,
    plan,
    programs,
    root,
    stages,
    tables,
)
from palimpsest.audit.finding import Finding
from palimpsest.audit.layout import place, rule_of
from palimpsest.core.progress import Track, silently

Check = Callable[[Chain, Track], Iterator[Finding]]
MODULES = (files, tables, root, plan, origins, data, stages, matrices, duplicates, derived, programs)
CHECKS: tuple[Check, ...] = tuple(module.check for module in MODULES)


def verify_study(
    study: Path, track: Track = silently, published_root: str | None = None, further: Sequence[Check] = ()
) -> list[Finding]:
    """Everything that does not follow from its parents, in the order of the chain, and then remarks.

    The first finding that is no remark names the first artifact at which the chain breaks. A study without such a
    finding is what its root stands for.

    Args:
        study: the folder `results/STUDY`, or what was unpacked of an archive.
        track: shows how far the work is.
        published_root: a root that was published elsewhere, to be compared.
        further: more checks than `CHECKS`.

    Raises:
        ArtifactError: there is no ledger in that folder.
    """
    chain, opening = open_chain(study, published_root)
    found: list[Finding] = []
    for check in (*CHECKS, *further):
        found.extend(check(chain, track))

    def order(finding: Finding) -> tuple[Any, ...]:
        # Where the ledger itself is damaged, what it says of the others is worth nothing.
        is_ledger = finding.artifact in chain.damaged and rule_of(finding.artifact) in ("ledger", "audit")
        return (finding.is_remark, not is_ledger, place(finding.artifact))

    return sorted([*found, *opening], key=order)
