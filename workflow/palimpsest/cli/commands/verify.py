"""`palimpsest verify`: recompute everything of a study that can be recomputed, and name what does not follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from palimpsest.cli.begin import RawFolder


def command(
    study: Annotated[Path, typer.Argument(help="The results of a study, results/STUDY, or an archive.")],
    root: Annotated[str | None, typer.Option(help="The root as it was published: the report's, an archive's.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Train and evaluate some stages again, too.")] = False,
    sample: Annotated[int, typer.Option(min=1, help="How many stages --deep makes again.")] = 5,
    seed: Annotated[int | None, typer.Option(help="Which stages --deep makes again; drawn if left out.")] = None,
    raw: RawFolder = Path("data/raw"),
) -> None:
    """Recompute every hash, parent, matrix, metric, table and the report; exit with 1 and name what does not follow."""
    with _unpacked(study) as (folder, beside):
        verify_and_tell(study, folder, root, [_deep(folder, sample, seed, raw)] if deep else [], beside)


def verify_and_tell(
    name: Path, study: Path, root: str | None, further: Sequence[Any] = (), beside: Sequence[Any] = ()
) -> None:
    """Verify a study, print what was found, and exit with 1 where something does not follow.

    Args:
        name: what the user calls it.
        study: the folder of its results.
        root: as it was published, if it is known.
        further: more checks.
        beside: findings on what lies beside the results.
    """
    from palimpsest.audit.verify import verify_study
    from palimpsest.cli.progress import bars

    with bars() as track:
        findings = [*verify_study(study, track, root, further), *beside]
    _show(name, findings, root, _stated_root(study))
    if any(not finding.is_remark for finding in findings):
        raise typer.Exit(1)


@contextmanager
def _unpacked(study: Path) -> Iterator[tuple[Path, list[Any]]]:
    """The folder of the results; those of an archive are unpacked for as long as they are looked at."""
    if not study.is_file():
        yield study, []
        return
    from palimpsest.audit.unpack import unpack
    from palimpsest.cli.archiving import around
    from palimpsest.cli.progress import bars

    with TemporaryDirectory(prefix="palimpsest-") as folder:
        with bars() as track:
            results = unpack(study, Path(folder), track)
        yield results, [*around(Path(folder), results, study)]


def _deep(study: Path, sample: int, seed: int | None, raw: Path):
    import json
    import secrets

    from palimpsest.cli.deep import Deep
    from palimpsest.cli.numerics import pin_numerics

    lock = study / "plan" / "lock.json"
    threads = json.loads(lock.read_bytes())["study"]["numerics"]["threads"] if lock.is_file() else 1
    return Deep(sample, secrets.randbits(32) if seed is None else seed, raw, pin_numerics(threads))


def _show(study: Path, findings: list, root: str | None, stated: str) -> None:
    wrong = [finding for finding in findings if not finding.is_remark]
    if wrong:
        print(f"{study}: the first artifact that does not follow from its parents is\n\n{wrong[0]}\n")
        others = len({finding.artifact for finding in wrong}) - 1
        if wrong[1:]:
            print(f"after it in the chain, {others} more artifacts:\n")
        for finding in wrong[1:]:
            print(finding)
    _show_remarks([finding for finding in findings if finding.is_remark])
    if not wrong:
        print(f"{study}: everything follows from its parents")
        print(f"root {stated}" + (", as published" if root else "; compare it with the published one: --root"))


def _show_remarks(remarks: list) -> None:
    """Remarks of one reason together."""
    by_reason: dict[str, list] = {}
    for remark in remarks:
        by_reason.setdefault(remark.reason, []).append(remark)
    for same in by_reason.values():
        more = f"\n  as well as {len(same) - 1} more" if len(same) > 1 else ""
        print(f"remark: {same[0]}{more}")


def _stated_root(study: Path) -> str:
    import json

    from palimpsest.audit.ledger import ROOT

    return json.loads((study / ROOT).read_bytes())["root"]
