"""`palimpsest verify`: does everything follow from its parents, from the plan to the report?

A reviewer who distrusts everything starts from the files alone. The ledger states every artifact with its hashes and
parents; the root stands for the ledger. Each check below asks one thing of all artifacts, reads files in pieces, and
knows nothing of the other checks but which artifacts are damaged. To ask one thing more, add a file to `audit/checks/`
and name it here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from palimpsest.audit.chain import Chain, open_chain
from palimpsest.audit.checks import data, derived, files, matrices, origins, plan, programs, root, stages, tables
from palimpsest.audit.finding import Finding
from palimpsest.audit.layout import place
from palimpsest.core.progress import Track, silently

Check = Callable[[Chain, Track], Iterator[Finding]]
CHECKS: tuple[Check, ...] = tuple(
    module.check for module in (files, tables, root, plan, origins, data, stages, matrices, derived, programs)
)


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
    chain, findings = open_chain(study, published_root)
    for check in (*CHECKS, *further):
        findings.extend(check(chain, track))
    return sorted(findings, key=lambda finding: (finding.is_remark, place(finding.artifact)))
