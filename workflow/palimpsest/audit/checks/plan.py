"""The plan is the locked one, follows from itself, and all of it was run and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from palimpsest.audit.chain import Chain
from palimpsest.audit.finding import Finding, guarded
from palimpsest.audit.layout import rule_of
from palimpsest.core.hashing import hash_json
from palimpsest.core.progress import Track
from palimpsest.plan.amend import first_plan
from palimpsest.plan.grid import FILES_OF_A_RUN
from palimpsest.plan.orders import CANONICAL

_LOCK = "plan/lock.json"


def check(chain: Chain, track: Track) -> Iterator[Finding]:
    """Derive the plan's hash, units, runs and specifications again, and ask after every run."""
    if chain.plan is None:
        return
    yield from guarded(_LOCK, "the plan cannot be followed", lambda: _lock(chain.plan))
    yield from guarded(_LOCK, "its amendments do not lead back to the plan before", lambda: _amendments(chain.plan))
    yield from guarded(_LOCK, "the specifications cannot be made again", lambda: _specifications(chain))
    for path in track(chain.artifacts("plan_code"), "reading programs"):
        if chain.is_sound(path):
            yield from guarded(path, "the program cannot be read", lambda path=path: _program(chain, path))
    for run in track(list(chain.runs), "asking after runs"):
        yield from _complete(chain, run)


def _lock(plan: dict[str, Any]) -> Iterator[Finding]:
    computed = hash_json({key: value for key, value in plan.items() if key != "hash"})
    if computed != plan["hash"]:
        yield Finding(_LOCK, "the plan was edited after it was locked: its hash is another one", plan["hash"], computed)
    for unit in plan["units"]:
        canonical = unit["order_id"] == CANONICAL
        tasks = list(plan["tasks"]) if canonical else plan["orders"].get(unit["order_id"])
        if unit["tasks"] != tasks:
            reason = f"unit {unit['unit']} goes through its tasks in another order than {unit['order_id']} says"
            yield Finding(_LOCK, reason, str(tasks), str(unit["tasks"]))
    per_unit = [unit["unit"] for unit in plan["units"] if unit["order_id"] != CANONICAL]
    per_seed = [unit["unit"] for unit in plan["units"] if unit["order_id"] == CANONICAL]
    due = [
        f"{key}/{unit}"
        for key, about in plan["methods"].items()
        for unit in (per_unit if about["per_unit"] else per_seed)
    ]
    got = [run["run"] for run in plan["runs"]]
    if got != due:
        differing = ", ".join(sorted(set(got) ^ set(due))) or "their order"
        yield Finding(_LOCK, "its runs are not its methods on its units", f"{len(due)} runs", f"differing: {differing}")


def _amendments(plan: dict[str, Any]) -> list[Finding]:
    first_plan(plan)
    return []


def _specifications(chain: Chain) -> Iterator[Finding]:
    for run in chain.plan["runs"]:
        computed = chain.runs[run["run"]].spec_hash
        if computed != run["spec_hash"]:
            reason = f"the specification of {run['run']} that follows from the plan is not the locked one"
            yield Finding(_LOCK, reason, run["spec_hash"], computed)


def _program(chain: Chain, path: str) -> Iterator[Finding]:
    program = chain.read_json(path)
    computed = hash_json(program["files"])
    if computed != program["code"]:
        yield Finding(path, "the hash of the program is not that of its files", computed, program["code"])
    if (chain.rows[path].code, chain.rows[path].environment) != (program["code"], program["environment"]):
        yield Finding(path, "the ledger says another program than the file", program["code"], chain.rows[path].code)


def _complete(chain: Chain, run: str) -> Iterator[Finding]:
    due = [path.format(run=run) for path in FILES_OF_A_RUN]
    due += [f"runs/{run}/stage-{stage}.json" for stage in chain.runs[run].stage_numbers]
    due = [path for path in due if rule_of(path) is not None]
    absent = [path for path in due if path not in chain.rows]
    if len(absent) == len(due):
        yield Finding(f"runs/{run}", "a run of the plan is not in the ledger", f"{len(due)} artifacts", "none")
        return
    for path in absent:
        yield Finding(path, "it belongs to a run of the plan and is not in the ledger")
