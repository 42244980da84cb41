"""`palimpsest lock`: freeze the plan of a study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def command(
    study: Annotated[Path, typer.Argument(help="The study file, config/NAME.yaml.")],
    results: Annotated[Path, typer.Option(help="Folder of all results.")] = Path("results"),
) -> None:
    """Write config/NAME.lock.json: the whole plan with its hash, to be committed before the first run."""
    from palimpsest.cli.describe import Catalogs
    from palimpsest.core.artifact import write_atomically
    from palimpsest.plan.lock import lock_path, make_lock, open_lock, refuse_second_plan
    from palimpsest.plan.study import read_study

    read, file = read_study(study)
    plan = make_lock(read, file, Catalogs())
    path = lock_path(study)
    if path.exists():
        open_lock(read, study)
        same = json.loads(path.read_bytes())["hash"] == plan["hash"]
        print(f"{path} is there already and fits" if same else f"{path} is there already and was left as it is")
        if not same:
            print("the study is as it was locked, but defaults or files of methods now resolve it otherwise")
        return
    refuse_second_plan(results / read.study, plan)
    write_atomically(path, (json.dumps(plan, indent=1, ensure_ascii=False) + "\n").encode())
    print(f"{path} written; commit it before the first run")
    print(plan["balance"])
    print(f"{len(plan['runs'])} runs of {len(plan['methods'])} methods and references; plan {plan['hash'][:12]}")
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
