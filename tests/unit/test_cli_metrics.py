"""`palimpsest metrics` and `palimpsest compare`, as a user calls them."""

from __future__ import annotations

import builtins
import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from palimpsest.cli import main as cli
from palimpsest.core.errors import MatrixError
from palimpsest.core.streams import generator
from palimpsest.metrics import METRICS, compute

MATRIX = "0.9,0.5\n0.7,0.8\n"


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command in a folder of its own; gives exit code, output and errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["palimpsest", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def lines(text: str, metric: str) -> list[str]:
    """What a printed table says in the row of a metric."""
    found = [line.replace("│", " ").split() for line in text.splitlines() if f"│ {metric} " in line]
    return [" ".join(words[1:]) for words in found]


def test_a_matrix_gives_its_metrics_in_percent_and_points(call) -> None:
    Path("m.csv").write_text(MATRIX)
    code, out, _ = call("metrics", "m.csv")
    assert code == 0
    assert lines(out, "average_accuracy") == ["75.00"]
    assert lines(out, "backward_transfer") == ["−20.00"]
    assert lines(out, "average_accuracy_at_k") == ["k = 1 90.00", "k = 2 75.00"]
    assert "overall_accuracy: no numbers of test samples" in out


def test_references_are_numbers_or_files(call) -> None:
    Path("m.csv").write_text(MATRIX)
    Path("isolated.json").write_text("[95, 85]")
    Path("joint.csv").write_text("90,0\n95,85\n")
    options = ("--random-init", "50", "--isolated", "isolated.json", "--joint", "joint.csv", "--n-total", "100,300")
    Path("m.csv").write_text("90,50\n70,80\n")
    code, out, err = call("metrics", "m.csv", "--percent", "--protocol", "task_incremental", *options)
    assert (code, err) == (0, "")
    assert lines(out, "intransigence_isolated") == ["+5.00"]
    assert lines(out, "forward_transfer_random_init") == ["0.00"]
    assert lines(out, "intransigence_joint") == ["+2.50"]
    assert lines(out, "overall_accuracy") == ["77.50"]
    assert lines(out, "normalized_accuracy") == ["0.651"]


def test_forward_transfer_asks_for_the_protocol(call) -> None:
    Path("m.csv").write_text(MATRIX)
    _, out, _ = call("metrics", "m.csv", "--random-init", "0.5")
    assert "forward_transfer_random_init: the protocol is not known" in out
    _, out, _ = call("metrics", "m.csv", "--random-init", "0.5", "--protocol", "class_incremental")
    assert "equals −b̄ by construction" in out


def test_every_kind_of_output_holds_the_same_values(call) -> None:
    Path("m.csv").write_text(MATRIX)
    for kind in ("csv", "json", "parquet", "tex"):
        assert call("metrics", "m.csv", "--output", f"out.{kind}")[0] == 0
    rows = json.loads(Path("out.json").read_text())
    assert {row["metric"] for row in rows} == set(METRICS.names())
    with Path("out.csv").open() as file:
        as_csv = list(csv.DictReader(file))
    assert [row["value"] for row in as_csv] == ["" if row["value"] is None else str(row["value"]) for row in rows]
    as_parquet = pq.read_table("out.parquet").to_pylist()
    key = lambda row: (row["metric"], row["index"] or 0, row["task"] or "")  # noqa: E731
    assert sorted(as_parquet, key=key) == sorted(rows, key=key)
    assert r"m & average accuracy &  & 75.00 \\" in Path("out.tex").read_text()


def test_names_from_a_file_stay_texts_in_every_output(call) -> None:
    Path("m.csv").write_text("run,stage,task,value\n=cmd(),1,a_b&c,0.5\n")
    for kind in ("csv", "tex"):
        call("metrics", "m.csv", "--output", f"out.{kind}")
    assert "'=cmd()" in Path("out.csv").read_text()
    assert r"a\_b\&c" in Path("out.tex").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("metrics",), "no matrix was given"),
        (("metrics", "m.csv", "m.csv"), "several matrices of one name"),
        (("metrics", "none.csv"), "no such file"),
        (("metrics", "m.csv", "--isolated", "0.5,0.6,0.7"), "--isolated"),
        (("metrics", "m.csv", "--joint", "50"), "accuracy matrix"),
        (("metrics", "m.csv", "--n-total", "many"), "--n-total"),
        (("metrics", "m.csv", "--output", "out.xlsx"), ".csv, .json"),
        (("metrics", "--explain", "forgeting"), "'forgetting'"),
        (("metrics", "m.csv", "--protocol", "class-incremental"), "class_incremental"),
        (("metrics", "m.csv", "--percent"), "leave out --percent"),
        (("metrics", "deep.json"), "no JSON"),
        (("metrics", "folder.csv"), "a folder"),
        (("compare", "m.csv", "--a", "x", "--b", "y"), "method and unit"),
        (("compare", "two.csv", "--a", "er", "--b", "er"), "another method than a"),
        (("compare", "two.csv", "--a", "er", "--b", "ft", "--alpha", "5"), "between 0 and 1"),
        (("compare", "two.csv", "--a", "er", "--b", "ft", "--margin", "0"), "a fraction above 0"),
        (("compare", "two.csv", "--a", "er", "--b", "ft", "--metric", "final_accuracy"), "one value per run"),
        (("compare", "two.csv", "--a", "er", "--b", "ft", "--output", "out.doc"), ".csv, .json"),
        (("compare", "two.csv", "two.csv", "--a", "er", "--b", "ft"), "several matrices of one name"),
        (("compare", "odd.csv", "--a", "er", "--b", "ft"), "one seed and order of unit u"),
        (("compare-studies", "two.csv"), "two or more studies"),
        (("compare-studies", "two.csv", "two.csv"), "two or more studies"),
        (("compare-studies", "two.csv", "again.csv", "--metric", "final_accuracy"), "one value per run"),
        (("compare", "two.csv", "--a", "er", "--b", "y"), "one of er, ft"),
        (("compare", "two.csv", "--a", "er", "--b", "ft", "--metric", "average_accuracy_at_k"), "one of 1, 2"),
        (("compare", "two.csv", "--a", "er", "--b", "ft", "--alternative", "better"), "two-sided or greater or less"),
    ],
)
def test_a_wrong_call_is_told_and_not_traced(call, arguments, said) -> None:
    Path("m.csv").write_text(MATRIX)
    Path("deep.json").write_text("[" * 100_000)
    Path("folder.csv").mkdir()
    Path("odd.csv").write_text("method,unit,seed,stage,task,value\ner,u,1,1,1,0.5\nft,u,2,1,1,0.5\n")
    write_two_methods()
    code, _, err = call(*arguments)
    assert code == 1
    assert err.startswith("palimpsest: ")
    assert said in err
    assert "Traceback" not in err


def write_two_methods(difference: float = 0.1) -> None:
    draw = generator("tests", "two methods")
    rows = ["method,unit,stage,task,value"]
    for unit in range(5):
        for method, gain in (("er", difference), ("ft", 0.0)):
            noise = 0.02 * draw.random()
            rows += [f"{method},s{unit}-o{unit},{k},{j},{0.6 + gain + noise:.4f}" for k in (1, 2) for j in (1, 2)]
    for name in ("two.csv", "again.csv"):
        Path(name).write_text("\n".join(rows) + "\n")


def test_two_methods_are_compared_over_their_units(call) -> None:
    write_two_methods()
    code, out, _ = call("compare", "two.csv", "--a", "er", "--b", "ft")
    assert code == 0
    assert out.startswith("er is better than ft.\n")
    assert "n = 5 pairs" in out
    assert "Exploratory" in out


def test_a_comparison_is_written_with_all_digits_and_as_a_table(call) -> None:
    write_two_methods()
    for kind in ("csv", "json", "parquet", "tex"):
        assert call("compare", "two.csv", "--a", "er", "--b", "ft", "--output", f"out.{kind}")[0] == 0
    (row,) = json.loads(Path("out.json").read_text())
    assert (row["role"], row["confirmatory"], row["verdict"], row["n"]) == ("exploratory", False, "better", 5)
    assert pq.read_table("out.parquet").to_pylist() == [row]
    with Path("out.csv").open() as file:
        assert [each["mean"] for each in csv.DictReader(file)] == [str(row["mean"])]
    assert "er $-$ ft & er & ft & average accuracy" in Path("out.tex").read_text()


def test_runs_may_be_named_by_method_and_unit_and_lie_in_several_files(call) -> None:
    write_two_methods()
    lines = [line.split(",", 2) for line in Path("two.csv").read_text().splitlines()[1:]]
    for method in ("er", "ft"):
        rows = [f"{method}/{unit},{rest}" for name, unit, rest in lines if name == method]
        Path(f"{method}.csv").write_text("\n".join(["run,stage,task,value", *rows]))
    whole = call("compare", "two.csv", "--a", "er", "--b", "ft")
    assert call("compare", "er.csv", "ft.csv", "--a", "er", "--b", "ft") == whole


def test_a_metric_that_needs_references_is_compared_with_them(call) -> None:
    write_two_methods()
    asked = ("compare", "two.csv", "--a", "er", "--b", "ft", "--metric", "intransigence_isolated")
    assert "no reference run isolated" in call(*asked)[1]
    assert call(*asked, "--isolated", "0.9")[1].startswith("er is better than ft.")


def test_no_difference_is_not_worded_as_equality(call) -> None:
    write_two_methods(0.005)
    out = call("compare", "two.csv", "--a", "er", "--b", "ft")[1]
    assert "no evidence that they are equal" in out


def test_a_comparison_is_that_of_the_statistics_on_the_same_numbers(call) -> None:
    from scipy.stats import ttest_rel

    write_two_methods()
    with Path("two.csv").open() as file:
        finals = [row for row in csv.DictReader(file) if row["stage"] == "2"]
    of = {m: np.array([float(r["value"]) for r in finals if r["method"] == m]).reshape(5, 2) for m in ("er", "ft")}
    t = ttest_rel(of["er"].mean(axis=1), of["ft"].mean(axis=1)).statistic
    assert f"t(4) = {t:.2f}" in call("compare", "two.csv", "--a", "er", "--b", "ft")[1]


def test_many_runs_are_summarised_by_method(call) -> None:
    write_two_methods()
    out = call("metrics", "two.csv")[1]
    (row,) = lines(out, "average_accuracy")
    assert row.count("(5)") == 2


@pytest.mark.parametrize("name", METRICS.names())
def test_every_metric_is_explained(call, name: str) -> None:
    code, out, _ = call("metrics", "--explain", name)
    assert code == 0
    assert out.startswith(f"{name}: ")
    for field in ("definition", "range", "direction", "undefined", "reference", "divisor"):
        assert field in out


def test_names_from_a_file_are_no_markup_on_the_screen(call) -> None:
    Path("m.csv").write_text("run,stage,task,value\n[red]r,1,[/red]x,0.5\n")
    code, out, _ = call("metrics", "m.csv")
    assert code == 0
    assert "[red]r" in out
    assert "[/red]x" in out


def test_generated_pages_are_written_where_they_are_wanted(call) -> None:
    assert call("schema", "--folder", "config", "--docs", "pages")[0] == 0
    assert {str(path) for path in Path().rglob("*.*")} == {
        "config/README.md",
        "config/study.schema.json",
        "pages/definitions.md",
    }


def test_compute_takes_one_name_and_a_joint_model_of_all_tasks() -> None:
    matrix = [[0.9, 0.5], [0.7, 0.8]]
    assert compute(matrix, "intransigence_joint_at_k", joint=[0.9, 0.85]) == {"intransigence_joint_at_k": [None, 0.05]}
    assert set(compute(matrix)) == set(METRICS.names())
    with pytest.raises(MatrixError):
        compute([[90, 50], [70, 80]])


ALONE = """
import importlib.abc, sys

class OnlyTheAnalysis(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {"torch", "safetensors", "mlxtend", "snakemake"}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, OnlyTheAnalysis())
from palimpsest.cli.main import main
main()
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("metrics", "two.csv"),
        ("metrics", "--explain", "forgetting"),
        ("compare", "two.csv", "--a", "er", "--b", "ft"),
        ("compare-studies", "two.csv", "again.csv"),
    ],
)
def test_matrices_are_analysed_without_the_packages_of_training_and_workflow(call, arguments) -> None:
    write_two_methods()
    done = subprocess.run([sys.executable, "-c", ALONE, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_needs_the_whole_environment_says_so_in_that_of_the_analysis(monkeypatch, call) -> None:
    real = builtins.__import__

    def without_torch(name, *arguments, **more):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name, *arguments, **more)

    for name in [name for name in sys.modules if name.startswith(("palimpsest.methods", "palimpsest.cli.describe"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without_torch)
    study = Path(cli.__file__).parents[3] / "config" / "demo.yaml"
    code, _, err = call("lock", study)
    assert code == 1
    assert "the package torch" in err
    assert "envs/run" in err
