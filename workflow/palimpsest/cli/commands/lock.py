"""`palimpsest lock`: freeze a study's plan, or amend it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer


def command(
    study: Annotated[Path, typer.Argument(help="The study file, config/NAME.yaml.")],
    amend: Annotated[
        str | None,
        typer.Option(help="Add to a locked plan what the study file has now, for this reason; the report shows it."),
    ] = None,
    results: Annotated[Path, typer.Option(help="Folder of all results.")] = Path("results"),
) -> None:
    """Write config/NAME.lock.json: the whole plan with its hash, to be committed before the first run."""
    from palimpsest.cli.describe import Catalogs
    from palimpsest.cli.history import append
    from palimpsest.plan.budgets import too_small
    from palimpsest.plan.journal import journal_path
    from palimpsest.plan.lock import lock_path, make_lock, refuse_second_plan
    from palimpsest.plan.study import read_study

    read, file = read_study(study)
    path, journal = lock_path(study), journal_path(study)
    plan = make_lock(read, file, Catalogs())
    if amend is not None:
        _amend(path, journal, results / read.study, plan, amend)
        return
    if path.exists():
        _compare(read, study, plan)
        return
    refuse_second_plan(results / read.study, journal, plan)
    _write(path, plan)
    append(journal, "locked", plan["hash"])
    print(f"{path} written; commit it, and {journal.name} beside it, before the first run")
    print(plan["balance"])
    for line in too_small(plan):
        print(line)
    print(f"{len(plan['runs'])} runs of {len(plan['methods'])} methods and references; plan {plan['hash'][:12]}")
    _tell_power(study, read, plan)


def _amend(path: Path, journal: Path, folder: Path, new: dict[str, Any], reason: str) -> None:
    from palimpsest.cli.history import JOURNAL, append, evaluated_runs, now
    from palimpsest.plan.amend import amend, field_text, first_plan
    from palimpsest.plan.journal import evaluations, read_journal, require_continued
    from palimpsest.plan.lock import read_lock
    from palimpsest.plan.marks import marks

    _require_reason(reason)
    _require_nobody_at_work(folder)
    lines = read_journal(journal)
    require_continued(journal, lines, folder / JOURNAL)
    old = read_lock(path)
    first_plan(old)
    unknown = not evaluations(lines) and bool(evaluated_runs(folder))
    plan = amend(old, new, reason.strip(), now(), after_results=bool(evaluations(lines)) or unknown)
    _write(path, plan)
    append(journal, "amended", plan["hash"], before=old["hash"])
    made = plan["amendments"][-1]
    print(f"{path}: amendment {len(plan['amendments'])}; plan {plan['hash'][:12]} after {old['hash'][:12]}; commit it")
    for change in made["changes"]:
        print(f"  {field_text(change)}{'' if 'old' in change else ' (added)'}")
    found = marks(plan, lines, {}, unknown)
    for kind in ("comparisons", "gates", "claims"):
        for name, why in found[kind].items():
            print(f"{name}: {why}")


def _require_reason(reason: str) -> None:
    from palimpsest.core.errors import LockError

    if not reason.strip():
        raise LockError(
            "an amendment needs a reason",
            where="--amend",
            expected="why the plan is amended, in a sentence",
            got="nothing",
            next='palimpsest lock config/NAME.yaml --amend "a reviewer asked for forgetting"',
        )


def _require_nobody_at_work(folder: Path) -> None:
    from palimpsest.core.errors import ArtifactError
    from palimpsest.core.exclusive import is_held

    if is_held(folder / ".lock"):
        raise ArtifactError(
            "a workflow is working on this study",
            where=str(folder),
            expected="nobody at work while its plan is amended",
            got=f"the lock {folder / '.lock'} is held",
            next="wait for it, or stop it",
        )


def _compare(read: Any, study: Path, plan: dict[str, Any]) -> None:
    from palimpsest.plan.amend import changes
    from palimpsest.plan.lock import lock_path, open_lock

    path = lock_path(study)
    locked = {key: value for key, value in open_lock(read, study).plan.items() if key != "amendments"}
    same = all(change["field"] == ["hash"] for change in changes(locked, plan))
    print(f"{path} is there already and fits" if same else f"{path} is there already and was left as it is")
    if not same:
        print("the study is as it was locked, but defaults or files of methods now resolve it otherwise")


def _write(path: Path, plan: dict[str, Any]) -> None:
    from palimpsest.core.artifact import write_atomically

    write_atomically(path, (json.dumps(plan, indent=1, ensure_ascii=False) + "\n").encode())


def _tell_power(study: Path, read: Any, plan: dict[str, Any]) -> None:
    if read.design.crossing == "full":
        clusters = min(len(read.design.seeds), len(plan["orders"]))
        print(
            f"crossed units are tested by means of clusters: {clusters} at the least, {clusters - 1} degrees of freedom"
        )
    if plan["power"]:
        power = plan["power"]
        least = f", which may count as only {power['n_independent']}" if power["n_independent"] < power["n"] else ""
        print(
            f"power of the primary comparison: {power['power']:.2f} for an effect of {power['effect']} at an SD of "
            f"{power['sd']} over {power['n']} units{least}"
            + (" — UNDERPOWERED (below 0.8)" if power["underpowered"] else "")
        )
        print(f"palimpsest power {study} tells how many units an effect needs")
