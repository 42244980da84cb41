"""From a number back to what it was computed from."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from palimpsest.audit.trace.find import TABLE_OF, find
from palimpsest.audit.trace.follow import trace
from palimpsest.audit.trace.graph import Graph, Node
from palimpsest.audit.trace.images import write_images
from palimpsest.audit.trace.provenance import prov_json
from palimpsest.core.errors import ArtifactError
from palimpsest.core.numbers import hundredfold, percent, points

RUN = "metrics/replay/s0-o0.parquet"
EVERYTHING = {
    *("comparisons", "metrics", "matrix", "predictions", "samples", "checkpoint", "stage"),
    *("runs", "lock", "program", "data", "inputs"),
}


def rows(study: Path, path: str) -> list[dict[str, Any]]:
    return pq.read_table(study / path).to_pylist()


def traced(study: Path, path: str, row: int | None = None, column: str | None = None) -> Graph:
    return trace(find(f"{study / path}", row, column))


def row_of(study: Path, path: str, **where: Any) -> int:
    """Number of the one row with some values."""
    (found,) = [n for n, row in enumerate(rows(study, path)) if all(row[key] == value for key, value in where.items())]
    return found


def metric(study: Path, name: str) -> Graph:
    """The trace of a metric of one run."""
    about = {"protocol": "class_incremental", "metric": name, "index": None, "task": None}
    return traced(study, RUN, row_of(study, RUN, **about))


def cells(graph: Graph) -> set[tuple[str, int, str]]:
    """Run, stage and task of the cells that the traced row comes from directly."""
    nodes = [graph.nodes[key] for key in graph.nodes[graph.root].parents if graph.nodes[key].kind == "matrix"]
    return {("/".join(n.artifact.split("/")[1:3]), n.about["stage"], n.about["task"]) for n in nodes}


def order(study: Path) -> list[str]:
    """The tasks of the unit in the sequence of its stages."""
    return [row["task"] for row in rows(study, "plan/units.parquet") if row["unit"] == "s0-o0"]


def test_a_comparison_leads_down_to_samples_code_and_data(finished: Path) -> None:
    """Through runs of both methods, cells, predictions, checkpoints, stages, plan, programs to the source."""
    graph = traced(finished, "statistics/comparisons.parquet", 1)
    assert {node.kind for node in graph.nodes.values()} >= EVERYTHING
    runs = {"/".join(node.artifact.split("/")[1:3]) for node in graph.of_kind("checkpoint")}
    assert runs == {"replay/s0-o0", "replay/s1-o1", "finetune/s0-o0", "finetune/s1-o1"}
    (data,) = graph.of_kind("data")
    assert data.about["sources"]["mnist5k"]["licence"].startswith("MNIST: CC BY-SA")


def test_every_parent_is_a_node(finished: Path) -> None:
    """Nothing is named that the trace does not hold."""
    graph = traced(finished, "statistics/comparisons.parquet", 0)
    assert {parent for node in graph.nodes.values() for parent in node.parents} <= graph.nodes.keys()


def test_a_metric_can_be_computed_from_the_predictions_that_it_is_traced_to(finished: Path) -> None:
    """Average accuracy is the mean over the traced cells of the share of right predictions among the traced ones."""
    graph = metric(finished, "average_accuracy")
    shares = []
    for node in graph.of_kind("predictions"):
        right = [a == b for a, b in zip(node.about["label"], node.about["predicted"], strict=True)]
        shares.append(np.mean(right))
    assert len(shares) == 3
    assert graph.nodes[graph.root].about["value"] == pytest.approx(np.mean(shares))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("average_accuracy", lambda t: {("replay/s0-o0", 3, task) for task in t}),
        ("learning_accuracy", lambda t: {("replay/s0-o0", k, task) for k, task in enumerate(t, 1)}),
        ("forgetting", lambda t: {("replay/s0-o0", k, task) for k in (1, 2, 3) for task in t[:2]}),
        (
            "intransigence_isolated",
            lambda t: (
                {("replay/s0-o0", k, task) for k, task in enumerate(t, 1)}
                | {("isolated/s0", int(task[1:]), task) for task in t}
            ),
        ),
        ("gap_to_joint", lambda t: {(r, 3, task) for r in ("replay/s0-o0", "joint/s0") for task in t}),
    ],
)
def test_a_metric_is_traced_to_the_cells_of_its_formula(finished: Path, name: str, expected: Any) -> None:
    """Those, of the run and its references, and no others."""
    assert cells(metric(finished, name)) == expected(order(finished))


def test_what_comes_from_probes_and_the_stream_is_traced_to_them(finished: Path) -> None:
    """Rows of the run's own tables, and the stages that wrote them."""
    about = {"protocol": "class_incremental", "metric": "b_shot", "index": 1}
    graph = traced(finished, RUN, row_of(finished, RUN, **about))
    assert {node.artifact for node in graph.of_kind("probes")} == {"runs/replay/s0-o0/probes.parquet"}
    graph = metric(finished, "prequential_accuracy")
    assert graph.of_kind("prequential")
    assert graph.of_kind("stage")


def test_a_stage_is_traced_through_all_stages_before_it(finished: Path) -> None:
    """Checkpoint by checkpoint, to the specification, the program and the data."""
    graph = traced(finished, "runs/replay/s0-o0/stage-3.safetensors")
    assert [node.id[-13:-12] for node in graph.of_kind("checkpoint")] == ["3", "2", "1"]
    assert {"runs", "program", "data", "lock"} <= {node.kind for node in graph.nodes.values()}


@pytest.mark.parametrize("table", TABLE_OF.values())
def test_every_row_that_the_report_shows_can_be_traced(finished: Path, table: str) -> None:
    """First and last of every table behind the report, as far as it has rows."""
    n = pq.read_metadata(finished / table).num_rows
    for row in {0, n - 1} if n else ():
        graph = traced(finished, table, row)
        assert graph.nodes[graph.root].parents
        assert graph.of_kind("program")


def test_every_named_element_of_the_page_is_the_row_that_it_prints(finished: Path) -> None:
    """The id of a cell leads to the summary whose mean the cell shows."""
    page = (finished / "report/index.html").read_text()
    shown = re.findall(r'<td class="number" id="(summary-\d+)"[^>]*>([^<]*)', page)
    assert len(shown) > 10
    summary = rows(finished, "aggregate/summary.parquet")
    for name, text in shown:
        asked = find(f"{finished}/report/index.html#{name}", None, None)
        assert asked.artifact == "aggregate/summary.parquet"
        assert text in (percent(summary[asked.row]["mean"]), points(summary[asked.row]["mean"]))
    names = re.findall(r'\bid="([^"]*)"', page)
    assert len(names) == len(set(names))
    assert [name for name in names if name.endswith("matrix_summary-0")]


@pytest.mark.parametrize("name", ["comparisons", "matrices", "stages", "costs", "curves", "orders"])
def test_a_row_of_a_table_of_the_report_is_traced_to_the_row_that_it_prints(finished: Path, name: str) -> None:
    """Whose mean it shows."""
    path = f"report/tables/{name}.csv"
    with open(finished / path, newline="") as file:
        lines = list(csv.DictReader(file))
    column = next(key for key in lines[0] if key.startswith(("mean", "flops_mean")))
    for number in (0, len(lines) - 1):
        graph = traced(finished, path, number)
        (source,) = [graph.nodes[key] for key in graph.nodes[graph.root].parents if graph.nodes[key].kind != "program"]
        value = source.about[column.split(" ")[0]]
        shown = value if column == "flops_mean" else hundredfold(value)
        assert lines[number][column] == ("" if shown is None else str(shown))


def test_a_column_of_the_results_is_traced_alone(finished: Path) -> None:
    """One summary, and without a column all of the row."""
    path, column = "report/tables/results.csv", "forgetting class_incremental mean (pp)"
    (source,) = summaries(traced(finished, path, 1, column))
    assert (source.about["method"], source.about["metric"]) == ("replay", "forgetting")
    assert len(summaries(traced(finished, path, 1))) > 3


def summaries(graph: Graph) -> list[Node]:
    return [graph.nodes[key] for key in graph.nodes[graph.root].parents if graph.nodes[key].kind == "summary"]


def test_the_samples_are_written_as_the_model_got_them(finished: Path, tmp_path: Path) -> None:
    """One image for each sample, pixel by pixel, with the numbers of predictions in a table."""
    graph = metric(finished, "average_accuracy")
    assert write_images(finished, graph, tmp_path) == 24
    with open(tmp_path / "samples.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    inputs = np.load(finished / "data/inputs.npy")
    samples = {row["sample"]: row for row in rows(finished, "data/samples.parquet")}
    for line in lines:
        with Image.open(tmp_path / line["file"]) as image:
            assert (np.asarray(image) == inputs[samples[int(line["sample"])]["input"]]).all()
        assert line["sha256"] == samples[int(line["sample"])]["sha256"]
    assert sum(int(line["n_right"]) for line in lines) == sum(
        n.about["n_correct"] for n in graph.of_kind("predictions")
    )


def test_one_prediction_is_traced_to_its_sample(finished: Path, tmp_path: Path) -> None:
    """And to the checkpoint that made it."""
    path = "evaluation/replay/s0-o0/predictions.parquet"
    graph = traced(finished, path, 5)
    row = rows(finished, path)[5]
    (sample,) = graph.of_kind("samples")
    assert (sample.about["sample"], sample.about["label"]) == (row["sample"], row["label"])
    assert write_images(finished, graph, tmp_path) == 1


def test_the_graph_is_a_prov_document(finished: Path) -> None:
    """Every relation joins what is declared, and every artifact with parents was derived from them."""
    document = prov_json(metric(finished, "average_accuracy"), "small")
    declared = {"entity": document["entity"], "activity": document["activity"], "agent": document["agent"]}
    ends = {
        "wasGeneratedBy": {"prov:entity": "entity", "prov:activity": "activity"},
        "used": {"prov:activity": "activity", "prov:entity": "entity"},
        "wasDerivedFrom": {"prov:generatedEntity": "entity", "prov:usedEntity": "entity"},
        "wasAssociatedWith": {"prov:activity": "activity", "prov:agent": "agent"},
    }
    for relation, kinds in ends.items():
        assert document[relation]
        for joined in document[relation].values():
            assert joined.keys() == kinds.keys()
            assert all(joined[end] in declared[kind] for end, kind in kinds.items())
    prefixes = {name.split(":")[0] for kind in declared.values() for name in kind}
    assert prefixes <= document["prefix"].keys()


def test_a_changed_file_on_the_way_is_refused(finished: Path, tmp_path: Path) -> None:
    """The trace compares the hash of every table that it reads."""
    study = Path(shutil.copytree(finished, tmp_path / "small"))
    place = study / "evaluation/replay/s0-o0/predictions.parquet"
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)
    with pytest.raises(ArtifactError, match="not the one that was written"):
        metric(study, "average_accuracy")


@pytest.mark.parametrize(
    ("artifact", "row", "got"),
    [
        ("aggregate/summary.parquet", 10**6, "1000000"),
        ("aggregate/nothing.parquet", 0, "no such file"),
        ("report/index.html#nothing-1", None, "'nothing-1'"),
        ("report/tables/results.csv", None, "None"),
        ("report/tables/results.tex", 0, "results.tex"),
        ("plan/lock.json", 0, "a file of the kind lock"),
    ],
)
def test_what_is_not_there_is_named(finished: Path, artifact: str, row: int | None, got: str) -> None:
    """With what would have been found."""
    with pytest.raises(ArtifactError) as error:
        trace(find(f"{finished}/{artifact}", row, None))
    assert error.value.got == got


def test_the_command_needs_no_torch_and_writes_all_that_is_asked_for(finished: Path, tmp_path: Path) -> None:
    """A tree, JSON, PROV and images; torch is not imported."""
    program = (
        "import sys; from pathlib import Path; from palimpsest.cli.commands.trace import command;"
        "command(sys.argv[1], row=0, as_json=sys.argv[3] == 'json', prov=Path(sys.argv[2]) / 'p.json',"
        " samples=Path(sys.argv[2]) / 'images'); print('torch' in sys.modules, file=sys.stderr)"
    )
    texts = []
    for form in ("tree", "json"):
        done = subprocess.run(
            [sys.executable, "-c", program, f"{finished}/statistics/comparisons.parquet", str(tmp_path), form],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr.splitlines()[-1:] == ["False"], done.stderr
        texts.append(done.stdout)
    assert "└──" in texts[0]
    content = json.loads(texts[1])
    assert content["nodes"][content["root"]]["kind"] == "comparisons"
    programs = [node for node in content["nodes"].values() if node["kind"] == "program"]
    assert all(set(node["about"]["states"].values()) == {"as recorded"} for node in programs)
    assert len(list((tmp_path / "images").glob("*.png"))) == 24
    assert json.loads((tmp_path / "p.json").read_text())["entity"]
