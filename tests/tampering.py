"""What a forger may do to a finished study, and how verification names it; `docs/verify.md` is made from this list.

python tests/tampering.py            # writes the table of docs/verify.md again
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import finished_study
from palimpsest.audit.merkle import merkle_root
from palimpsest.core.artifact import encode_table, hash_content, read_lineage, record_path
from palimpsest.core.hashing import canonical_json, hash_bytes, hash_json
from palimpsest.core.tables import TABLES
from palimpsest.plan.grid import Grid
from palimpsest.plan.matrix import matrix_of_run

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "verify.md"
HEAD = "| what was changed | what was done to hide it | found by | the first artifact named | and why |\n"
RUN, OTHER = "replay/s0-o0", "replay/s1-o1"


@dataclass(frozen=True)
class Tampering:
    """One forgery.

    Args:
        what: what was changed.
        hidden: what the forger did to hide it.
        forge: does it.
        artifact: the first artifact that verification names.
        reason: how its reason begins.
        by: the option that finds it; plain verification if empty.
    """

    what: str
    hidden: str
    forge: Callable[[Path], None]
    artifact: str
    reason: str
    by: str = ""


def write(study: Path, path: str, content: bytes, content_sha256: str | None = None, **record: Any) -> None:
    """Write an artifact with a record that fits, as a forger who knows the format does."""
    digest = hash_bytes(content)
    (study / path).write_bytes(content)
    known = json.loads(record_path(study, path).read_bytes())
    known |= {"sha256": digest, "content_sha256": content_sha256 or digest, "bytes": len(content), **record}
    record_path(study, path).write_bytes(canonical_json(known))


def write_table(study: Path, path: str, rows: pa.Table, lineage: dict[str, Any] | None = None, **record: Any) -> None:
    """Write a table with its lineage, or another one."""
    lineage = lineage or read_lineage(study / path)
    content, content_sha256 = encode_table(lineage["schema"], rows, lineage)
    write(study, path, content, content_sha256, **record)


def table(study: Path, path: str) -> pa.Table:
    return pq.ParquetFile(study / path).read().replace_schema_metadata(None)


def edit(study: Path, path: str, row: int, **values: Any) -> None:
    """Give some cells of a table's row other values."""
    rows = table(study, path)
    content = rows.to_pylist()
    content[row] |= values
    write_table(study, path, pa.Table.from_pylist(content, rows.schema))


def edit_json(study: Path, path: str, change: Callable[[Any], Any]) -> None:
    """Change the content of a JSON artifact."""
    content = json.loads((study / path).read_bytes())
    change(content)
    write(
        study, path, json.dumps(content, indent=1).encode() if path.endswith("lock.json") else canonical_json(content)
    )


def grid_of(study: Path) -> Grid:
    plan = json.loads((study / "plan/lock.json").read_bytes())
    return Grid(plan)


def relist(study: Path) -> None:
    """Write ledger and root anew from the records, without any of the program's checks."""
    shards = {}
    for place in sorted((study / "audit/ledger").iterdir()):
        path = str(place.relative_to(study))
        listed = [
            known for name in table(study, path)["path"].to_pylist() if (known := record_path(study, name)).is_file()
        ]
        records = [json.loads(known.read_bytes()) for known in listed]
        rows = [{**record, "parents": canonical_json(record["parents"]).decode()} for record in records]
        rows = pa.Table.from_pylist(rows, TABLES["ledger"].schema)
        write_table(study, path, rows)
        shards[path] = hash_content("ledger", rows)
    write(study, "audit/root.json", canonical_json({"root": merkle_root(shards), "shards": shards}))


def flip(study: Path, path: str) -> None:
    """Flip one bit in the middle of a file."""
    content = bytearray((study / path).read_bytes())
    content[len(content) // 2] ^= 1
    (study / path).write_bytes(content)


def flip_prediction(study: Path, run: str = RUN) -> None:
    """Make one wrong prediction right, and count the matrix anew, as the evaluation would."""
    path = f"evaluation/{run}/predictions.parquet"
    rows = table(study, path).to_pylist()
    wrong = next(at for at, row in enumerate(rows) if row["predicted"] != row["label"])
    edit(study, path, wrong, predicted=rows[wrong]["label"])
    count(study, run)


def count(study: Path, run: str) -> None:
    """Write a run's matrix anew from its predictions."""
    spec = grid_of(study).runs[run].spec
    columns = matrix_of_run(table(study, f"evaluation/{run}/predictions.parquet").to_batches(), spec)
    write_table(study, f"evaluation/{run}/matrix.parquet", pa.table(columns, schema=TABLES["matrix"].schema))


def analyse(study: Path, report: bool = False) -> None:
    """Let the program itself make everything after the matrices anew; of the report only where it would be missed."""
    finished_study.analyse(study, grid_of(study), report)


def raise_a_metric(study: Path) -> None:
    path = f"metrics/{RUN}.parquet"
    rows = table(study, path).to_pylist()
    at = next(at for at, row in enumerate(rows) if row["metric"] == "average_accuracy")
    edit(study, path, at, value=0.99)


def conclude(study: Path) -> None:
    """Let the program make everything from the metrics to the root anew."""
    finished_study.conclude(study, grid_of(study), report=False)


def of_run(study: Path, run: str) -> list[Path]:
    """Files of a run, with their records."""
    unit = [study / "runs" / run, study / "evaluation" / run, study / "audit/records/runs" / run]
    unit += [study / "audit/records/evaluation" / run]
    files = [place for folder in unit for place in sorted(folder.rglob("*")) if place.is_file()]
    return [*files, study / f"metrics/{run}.parquet", record_path(study, f"metrics/{run}.parquet")]


def remove_run(study: Path) -> None:
    for place in of_run(study, RUN):
        place.unlink()


def remove_run_from_plan(study: Path) -> None:
    """The run disappears from the lock, from the plan's tables and from the ledger."""

    def change(plan: dict[str, Any]) -> None:
        plan["runs"] = [run for run in plan["runs"] if run["run"] != RUN]
        plan["hash"] = hash_json({key: value for key, value in plan.items() if key != "hash"})

    remove_run(study)
    edit_json(study, "plan/lock.json", change)
    runs = table(study, "plan/runs.parquet")
    write_table(study, "plan/runs.parquet", runs.filter(pa.compute.not_equal(runs["run"], RUN)))
    relist(study)


def copy_run(study: Path, unit: str) -> None:
    """A run once more, under the name of another unit."""
    for place in of_run(study, RUN):
        target = Path(str(place).replace(RUN.split("/")[1], unit))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(place, target)
    for place in of_run(study, f"replay/{unit}"):
        if place.is_relative_to(study / "audit/records"):
            place.write_text(place.read_text().replace(RUN, f"replay/{unit}"))


def copy_predictions(study: Path) -> None:
    """Predictions and matrix of another run, with the lineage of its own."""
    for name in ("predictions", "matrix"):
        rows = table(study, f"evaluation/{RUN}/{name}.parquet")
        write_table(study, f"evaluation/{OTHER}/{name}.parquet", rows)
    count(study, OTHER)


def swap_checkpoints(study: Path) -> None:
    places = [study / f"runs/{run}/stage-2.safetensors" for run in (RUN, OTHER)]
    contents = [place.read_bytes() for place in places]
    for place, content in zip(places, reversed(contents), strict=True):
        place.write_bytes(content)


def swap_checkpoints_and_records(study: Path) -> None:
    """Swap two checkpoints, and let the records of the stages name them."""
    swap_checkpoints(study)
    for run in (RUN, OTHER):
        content = (study / f"runs/{run}/stage-2.safetensors").read_bytes()
        write(study, f"runs/{run}/stage-2.safetensors", content)
        digest = {"stage-2.safetensors": hash_bytes(content)}
        edit_json(study, f"runs/{run}/stage-2.json", lambda record, digest=digest: record["files"].update(digest))
    relist(study)


def reorder_units(study: Path) -> None:
    """Swap two tasks of a unit in the table of units."""
    rows = table(study, "plan/units.parquet").to_pylist()
    first, second = [at for at, row in enumerate(rows) if row["unit"] == "s0-o0"][:2]
    tasks = rows[first]["task"], rows[second]["task"]
    edit(study, "plan/units.parquet", first, task=tasks[1])
    edit(study, "plan/units.parquet", second, task=tasks[0])


def edit_lock(study: Path, change: Callable[[dict[str, Any]], Any], rehash: bool) -> None:
    """Change the lock, and its own hash with it or not, and list it anew."""

    def changed(plan: dict[str, Any]) -> None:
        change(plan)
        if rehash:
            plan["hash"] = hash_json({key: value for key, value in plan.items() if key != "hash"})

    edit_json(study, "plan/lock.json", changed)
    relist(study)


def swap_tasks(plan: dict[str, Any]) -> None:
    unit = next(unit for unit in plan["units"] if unit["unit"] == "s0-o0")
    unit["tasks"][:2] = reversed(unit["tasks"][:2])


def raise_alpha(plan: dict[str, Any]) -> None:
    plan["study"]["analysis"]["alpha"] = 0.5


def train_longer(plan: dict[str, Any]) -> None:
    plan["study"]["training"]["epochs"] = 7


def forge_lineage(study: Path, path: str, in_record: bool, **values: Any) -> None:
    """Write other things of an artifact's origin into its footer, and into the record too or not."""
    lineage = {**read_lineage(study / path), **values}
    write_table(study, path, table(study, path), lineage, **(values if in_record else {}))
    relist(study)


def other_parent(study: Path) -> dict[str, str]:
    path = f"metrics/{RUN}.parquet"
    return {**read_lineage(study / path)["parents"], f"evaluation/{RUN}/matrix.parquet": "0" * 64}


def drop_prediction(study: Path) -> None:
    """Leave out one wrong prediction, and count anew."""
    path = f"evaluation/{RUN}/predictions.parquet"
    rows = table(study, path)
    wrong = pa.compute.index(pa.compute.equal(rows["predicted"], rows["label"]), False).as_py()
    write_table(study, path, pa.concat_tables([rows.slice(0, wrong), rows.slice(wrong + 1)]))
    count(study, RUN)


def relabel(study: Path) -> None:
    """Call a wrong prediction's sample what was predicted, and count anew."""
    path = f"evaluation/{RUN}/predictions.parquet"
    rows = table(study, path).to_pylist()
    wrong = next(at for at, row in enumerate(rows) if row["predicted"] != row["label"])
    edit(study, path, wrong, label=rows[wrong]["predicted"])
    count(study, RUN)


def shorten_steps(study: Path) -> None:
    path = f"runs/{RUN}/steps.parquet"
    write_table(study, path, table(study, path).slice(1))
    relist(study)


def edit_outcome(study: Path) -> None:
    edit(study, f"runs/{RUN}/outcome.parquet", 0, step=7)
    relist(study)


def edit_pixel(study: Path) -> None:
    """Change one pixel of one input."""
    content = bytearray((study / "data/inputs.npy").read_bytes())
    content[-1] ^= 1
    write(study, "data/inputs.npy", bytes(content))
    relist(study)


def raise_a_tier(study: Path) -> None:
    """Call a clean test sample contaminated by the first training sample."""
    edit(study, "data/manifest/tiers.parquet", 0, tier="confirmed", because_of=0)
    relist(study)


def edit_comparison(study: Path) -> None:
    edit(study, "statistics/comparisons.parquet", 0, p=0.001)
    relist(study)


def edit_page(study: Path, path: str, old: str, new: str) -> None:
    content = (study / path).read_bytes()
    assert old.encode() in content
    write(study, path, content.replace(old.encode(), new.encode()))


def edit_results(study: Path) -> None:
    content = (study / "report/tables/results.csv").read_text().splitlines()
    row = next(at for at, line in enumerate(content) if line.startswith("replay,"))
    cells = content[row].split(",")
    cells[-6] = "99.9"
    content[row] = ",".join(cells)
    write(study, "report/tables/results.csv", ("\n".join(content) + "\n").encode())


def list_outside(study: Path) -> None:
    """Let the ledger name a file outside of the study."""
    shard = "audit/ledger/replay.parquet"
    rows = table(study, shard).to_pylist()
    rows.append({**rows[0], "path": "../../outside.json"})
    rows = pa.Table.from_pylist(rows, TABLES["ledger"].schema)
    write_table(study, shard, rows)
    shards = json.loads((study / "audit/root.json").read_bytes())["shards"] | {shard: hash_content("ledger", rows)}
    write(study, "audit/root.json", canonical_json({"root": merkle_root(shards), "shards": shards}))


KINDS = {
    "the lock": "plan/lock.json",
    "the recorded program": "plan/code/replay.json",
    "the units": "plan/units.parquet",
    "the runs": "plan/runs.parquet",
    "the samples": "data/samples.parquet",
    "the inputs": "data/inputs.npy",
    "the tiers of contamination": "data/manifest/tiers.parquet",
    "a stage's record": f"runs/{RUN}/stage-2.json",
    "a checkpoint": f"runs/{RUN}/stage-2.safetensors",
    "a stage's steps": f"runs/{RUN}/stage-2.steps.parquet",
    "the collected steps": f"runs/{RUN}/steps.parquet",
    "an outcome": f"runs/{RUN}/outcome.parquet",
    "predictions": f"evaluation/{RUN}/predictions.parquet",
    "a matrix": f"evaluation/{RUN}/matrix.parquet",
    "metrics": f"metrics/{RUN}.parquet",
    "a shard of the ledger": "audit/ledger/replay.parquet",
    "an aggregate": "aggregate/summary.parquet",
    "statistics": "statistics/comparisons.parquet",
    "the root": "audit/root.json",
    "the report": "report/index.html",
    "a figure": "report/figures/stages.svg",
    "a table of the report": "report/tables/results.csv",
}
"""A file of every kind."""
UNLISTED = ("audit/", "report/")

ALL_ANEW = "file, record, and everything after it made anew by the program itself"
LISTED = "file, record, ledger and root written anew"

TAMPERINGS = [
    *(
        Tampering(
            f"a bit of {kind}",
            "nothing",
            lambda study, path=path: flip(study, path),
            path,
            f"its bytes are not those that {'its record' if path.startswith(UNLISTED) else 'the ledger'} states",
        )
        for kind, path in KINDS.items()
    ),
    Tampering(
        "a bit of a record of hashes",
        "nothing",
        lambda study: flip(study, f"audit/records/metrics/{RUN}.parquet.json"),
        f"audit/records/metrics/{RUN}.parquet.json",
        "the record of an artifact is not what the ledger says",
    ),
    Tampering(
        "a metric's value",
        "the file's hash in its record",
        raise_a_metric,
        f"metrics/{RUN}.parquet",
        "its bytes are not those that the ledger states",
    ),
    Tampering(
        "a metric's value",
        ALL_ANEW,
        lambda study: (raise_a_metric(study), conclude(study)),
        f"metrics/{RUN}.parquet",
        "its rows do not follow from its parents",
    ),
    Tampering("a run, removed", "nothing", remove_run, f"runs/{RUN}/stage-1.json", "it is missing"),
    Tampering(
        "a run, removed",
        "from ledger and root, too",
        lambda study: (remove_run(study), relist(study)),
        f"runs/{RUN}",
        "a run of the plan is not in the ledger",
    ),
    Tampering(
        "a run, removed",
        "from lock (with its hash), plan, ledger and root, too",
        remove_run_from_plan,
        "plan/lock.json",
        "its runs are not its methods on its units",
    ),
    Tampering(
        "a run, duplicated under a new name",
        "its records, too",
        lambda study: copy_run(study, "s9-o9"),
        "runs/replay/s9-o9",
        "a run that is not in the plan",
    ),
    Tampering(
        "a run, duplicated over another one",
        LISTED,
        lambda study: (copy_run(study, "s1-o1"), relist(study)),
        f"runs/{OTHER}/stage-1.json",
        "it was made for another run",
    ),
    Tampering(
        "predictions and matrix of a run, duplicated over another one, each with a lineage that fits",
        ALL_ANEW,
        lambda study: (copy_predictions(study), analyse(study)),
        f"evaluation/{OTHER}/predictions.parquet",
        "its predictions are those of another run to the last bit",
    ),
    Tampering(
        "the checkpoints of two units, swapped",
        "nothing",
        swap_checkpoints,
        f"runs/{RUN}/stage-2.safetensors",
        "its bytes are not those that the ledger states",
    ),
    Tampering(
        "the checkpoints of two units, swapped",
        "named in the records of their stages; " + LISTED,
        swap_checkpoints_and_records,
        f"runs/{RUN}/stage-2.safetensors",
        "its own lineage and the ledger differ: parents",
    ),
    Tampering(
        "the order of a unit's tasks in plan/units.parquet",
        LISTED,
        lambda study: (reorder_units(study), relist(study)),
        "plan/units.parquet",
        "its rows do not follow from its parents",
    ),
    Tampering(
        "the order of a unit's tasks in the lock",
        "the lock's own hash; " + LISTED,
        lambda study: edit_lock(study, swap_tasks, rehash=True),
        "plan/lock.json",
        "unit s0-o0 goes through its tasks in another order than o0 says",
    ),
    Tampering(
        "α in the lock",
        LISTED,
        lambda study: edit_lock(study, raise_alpha, rehash=False),
        "plan/lock.json",
        "the plan was edited after it was locked",
    ),
    Tampering(
        "the epochs in the lock",
        "the lock's own hash; " + LISTED,
        lambda study: edit_lock(study, train_longer, rehash=True),
        "plan/lock.json",
        "the specification of finetune/s0-o0 that follows from the plan is not the locked one",
    ),
    Tampering(
        "α in the lock",
        "the lock's own hash; file, record, and everything after it made anew by the program itself",
        lambda study: (edit_lock(study, raise_alpha, rehash=True), finished_study.replan(study)),
        "statistics/comparisons.parquet",
        "its rows do not follow from its parents",
    ),
    Tampering(
        "the hash of a parent in a footer",
        LISTED,
        lambda study: forge_lineage(study, f"metrics/{RUN}.parquet", False, parents=other_parent(study)),
        f"metrics/{RUN}.parquet",
        "its own lineage and the ledger differ: parents",
    ),
    Tampering(
        "the hash of a parent in a footer and in the record",
        LISTED,
        lambda study: forge_lineage(study, f"metrics/{RUN}.parquet", True, parents=other_parent(study)),
        f"metrics/{RUN}.parquet",
        f"it was made from another evaluation/{RUN}/matrix.parquet",
    ),
    Tampering(
        "the hash of the program in a footer and in the record",
        LISTED,
        lambda study: forge_lineage(study, f"metrics/{RUN}.parquet", True, code="0" * 64),
        f"metrics/{RUN}.parquet",
        "it was made by another program than plan/code/rules/metrics.json records",
    ),
    Tampering(
        "the parameters in a footer",
        LISTED,
        lambda study: forge_lineage(study, "aggregate/summary.parquet", False, parameters={"methods": []}),
        "aggregate/summary.parquet",
        "its lineage is not the one that it was made with: parameters",
    ),
    Tampering(
        "a prediction",
        LISTED,
        lambda study: (edit(study, f"evaluation/{RUN}/predictions.parquet", 0, predicted=0), relist(study)),
        f"evaluation/{RUN}/matrix.parquet",
        f"it is not what evaluation/{RUN}/predictions.parquet counts up to",
    ),
    Tampering(
        "a prediction and its matrix",
        ALL_ANEW,
        lambda study: (flip_prediction(study), analyse(study, report=True)),
        "audit/root.json",
        "the root of the ledger is not the published one",
        by="--root",
    ),
    Tampering(
        "a prediction and its matrix",
        ALL_ANEW,
        lambda study: (flip_prediction(study), analyse(study, report=True)),
        f"evaluation/{RUN}/predictions.parquet",
        "the checkpoint of stage 1, evaluated again, predicts something else",
        by="--deep",
    ),
    Tampering(
        "a wrong prediction, left out",
        "its matrix counted anew; " + LISTED,
        lambda study: (drop_prediction(study), relist(study)),
        f"evaluation/{RUN}/predictions.parquet",
        "it has not one row for each stage and test sample",
    ),
    Tampering(
        "the label of a wrong prediction",
        ALL_ANEW,
        lambda study: (relabel(study), analyse(study)),
        f"evaluation/{RUN}/predictions.parquet",
        "its rows are not the test samples with their labels, after every complete stage",
    ),
    Tampering(
        "an optimizer step, left out",
        LISTED,
        shorten_steps,
        f"runs/{RUN}/steps.parquet",
        "its rows are not those of the stages together",
    ),
    Tampering(
        "the outcome of a run",
        LISTED,
        edit_outcome,
        f"runs/{RUN}/outcome.parquet",
        "it does not follow from the records of the stages",
    ),
    Tampering(
        "a pixel",
        LISTED,
        edit_pixel,
        "data/inputs.npy",
        "the input of sample 2948 is not the one that data/samples.parquet states",
    ),
    Tampering(
        "the tier of contamination of a test sample",
        LISTED,
        raise_a_tier,
        "data/manifest/tiers.parquet",
        "its rows do not follow from its parents",
    ),
    Tampering(
        "a count of duplicates",
        LISTED,
        lambda study: (edit(study, "data/manifest/duplicates.parquet", 0, n=7), relist(study)),
        "data/manifest/duplicates.parquet",
        "its rows do not follow from its parents",
    ),
    Tampering(
        "a p value",
        LISTED,
        edit_comparison,
        "statistics/comparisons.parquet",
        "its rows do not follow from its parents",
    ),
    Tampering(
        "a number in the report's table",
        "the file's hash in its record",
        edit_results,
        "report/tables/results.csv",
        "line 3 does not follow from its parents",
    ),
    Tampering(
        "the root in the report",
        "the file's hash in its record",
        lambda study: edit_page(study, "report/index.html", 'id="audit-root">', 'id="audit-root">0'),
        "report/index.html",
        "it shows another root than that of the ledger",
    ),
    Tampering(
        "a file, added",
        "nothing",
        lambda study: (study / f"evaluation/{RUN}/notes.txt").write_text("better"),
        f"evaluation/{RUN}/notes.txt",
        "it is no part of the study",
    ),
    Tampering(
        "a checkpoint, replaced by a link to it",
        "nothing",
        lambda study: link(study, f"runs/{RUN}/stage-2.safetensors"),
        f"runs/{RUN}/stage-2.safetensors",
        "it is a link or no plain file",
    ),
    Tampering(
        "a row of the ledger that names a file outside",
        "file, record and root written anew",
        list_outside,
        "audit/ledger/replay.parquet",
        "it lists what is no artifact of a study",
    ),
]


def link(study: Path, path: str) -> None:
    place = study / path
    place.rename(place.with_name("elsewhere"))
    place.symlink_to(place.with_name("elsewhere"))


def rows_of_the_table() -> str:
    """The table of `docs/verify.md`."""
    lines = [HEAD, "| --- | --- | --- | --- | --- |\n"]
    for one in TAMPERINGS:
        by = f"`verify {one.by}`" if one.by else "`verify`"
        lines.append(f"| {one.what} | {one.hidden} | {by} | `{one.artifact}` | {one.reason} |\n")
    return "".join(lines)


def document_with_the_table() -> str:
    """The document with the table as this list has it."""
    text = DOCUMENT.read_text()
    start = text.index(HEAD)
    end = text.find("\n\n", start)
    return text[:start] + rows_of_the_table() + (text[end + 1 :] if end >= 0 else "")


if __name__ == "__main__":
    DOCUMENT.write_text(document_with_the_table())
