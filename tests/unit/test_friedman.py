"""Several studies: ranks, Friedman's test, and what so few studies can show."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from made_up_study import PROTOCOL, MadeUpStudy
from palimpsest.cli import main as cli
from palimpsest.core.streams import generator
from palimpsest.statistics.friedman import friedman


def studies(table: np.ndarray) -> dict[str, dict[str, float]]:
    return {f"s{n}": dict(zip("abcdefg", row, strict=False)) for n, row in enumerate(table.tolist())}


@pytest.mark.parametrize("ties", [False, True])
def test_the_statistic_is_scipys(ties: bool) -> None:
    table = generator("tests", "friedman").random((8, 4))
    table = np.round(table, 1) if ties else table
    expected = stats.friedmanchisquare(*table.T)
    assert friedman(studies(table), True, 0.05).statistic == pytest.approx(expected.statistic)


def test_p_is_the_share_of_all_rankings() -> None:
    """Three studies of three methods: 216 rankings, counted one by one."""
    table = np.array([[3.0, 2, 1], [3, 2, 1], [3, 1, 2]])
    spread = [np.var(np.sum(ranks, 0)) for ranks in itertools.product(itertools.permutations((1, 2, 3)), repeat=3)]
    expected = np.mean(np.array(spread) >= np.var(table.sum(0)) - 1e-9)
    found = friedman(studies(table), True, 0.05)
    assert (found.p, found.exact) == (pytest.approx(expected), True)


def test_the_published_table_of_exact_p_is_met() -> None:
    """Friedman 1937, k = 3, N = 4: chi-squared 6.5 has P = 0.042."""
    found = friedman(studies(np.array([[3.0, 2, 1], [3, 2, 1], [3, 2, 1], [2, 3, 1]])), True, 0.05)
    assert (found.statistic, round(found.p, 3)) == (6.5, 0.042)


def test_too_few_studies_are_ranked_and_not_tested() -> None:
    found = friedman(studies(np.array([[0.9, 0.5, 0.1], [0.8, 0.4, 0.2]])), True, 0.05)
    assert (found.ranks, found.p, found.post_hoc) == ({"a": 1.0, "b": 2.0, "c": 3.0}, None, {})
    assert found.reason == "2 studies of 3 methods cannot reach a p below 0.167"


def test_post_hoc_ranks_are_nemenyis_and_stand_behind_a_test_that_rejects() -> None:
    """Demšar 2006: with four methods and 14 data sets the critical difference at 0.05 is 1.25 (q = 2.569)."""
    table = np.tile([0.4, 0.3, 0.2, 0.1], (14, 1))
    found = friedman(studies(table), True, 0.05)
    at_critical = 2.569 * np.sqrt(2)
    error = np.sqrt(4 * 5 / (12 * 14))
    assert stats.studentized_range.sf(at_critical, 4, np.inf) == pytest.approx(0.05, abs=0.001)
    assert found.post_hoc["a", "b"] == pytest.approx(stats.studentized_range.sf(1 / error, 4, np.inf))
    assert found.post_hoc["a", "b"] > 0.05 > found.post_hoc["a", "c"]
    assert friedman(studies(generator("tests", "none").random((5, 3))), True, 0.05).post_hoc == {}


def test_fewer_is_better_turns_the_ranks() -> None:
    table = studies(np.array([[0.9, 0.5], [0.8, 0.4]]))
    assert friedman(table, False, 0.05).ranks == {"a": 2.0, "b": 1.0}


def test_studies_in_which_everything_ties_have_a_reason() -> None:
    assert friedman(studies(np.ones((6, 3))), True, 0.05).reason == "all methods tie in every study"


def test_studies_of_other_methods_are_not_compared() -> None:
    with pytest.raises(ValueError, match="the same two or more methods"):
        friedman({"x": {"a": 1.0, "b": 2.0}, "y": {"a": 1.0, "c": 2.0}}, True, 0.05)


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, *arguments: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["palimpsest", "compare-studies", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


def finished(folder: Path, lift: int) -> None:
    """A made-up study in which replay is ahead of ewc and ewc of finetune; a reference stands beside them."""
    study, units = MadeUpStudy(folder), {f"s{at}-o0": ("a", "b") for at in range(3)}
    study.plan(units)
    final = {"replay": 70, "ewc": 50, "finetune": 40, "joint": 90}
    for unit in units:
        for method, percent in final.items():
            study.run(f"{method}/{unit}", ("a", "b"), [[90, 10], [percent + lift, 80]])
            study.metrics(f"{method}/{unit}")
    for method in final:
        study.stage("ledger", method=method)
    study.stage("aggregate", methods=list(final))
    roles = {method: {"role": "reference" if method == "joint" else "method"} for method in final}
    study.job("plan").write_json("plan/lock.json", {"methods": roles, "study": {"protocol": PROTOCOL}}, "lock")


def test_the_command_ranks_finished_studies_by_name_and_by_folder(monkeypatch, capsys, tmp_path) -> None:
    """References are left out; each study has its own results beside the ranks."""
    for lift, name in enumerate("wxyz"):
        finished(tmp_path / name, lift)
    given = ("w", "x", "y", tmp_path / "z", "--results", tmp_path, "--output", tmp_path / "out.json")
    code, out, _ = command(monkeypatch, capsys, *given)
    assert code == 0
    assert "  replay: 1.00" in out
    assert "  finetune: 3.00" in out
    assert "p = 0.005 (counted over all rankings" in out
    assert "joint" not in out
    rows = json.loads((tmp_path / "out.json").read_text())
    of_z = {row["method"]: (row["n"], round(row["mean"], 3), row["rank"]) for row in rows if row["study"] == "z"}
    assert of_z == {"replay": (3, 0.765, 1.0), "ewc": (3, 0.665, 2.0), "finetune": (3, 0.615, 3.0)}
    assert [round(row["p"], 4) for row in rows if row["kind"] == "test"] == [0.0046]


def test_a_finished_study_is_compared_like_a_file(monkeypatch, capsys, tmp_path) -> None:
    finished(tmp_path / "w", 0)
    monkeypatch.setattr(sys, "argv", ["palimpsest", "compare", str(tmp_path / "w"), "--a", "replay", "--b", "ewc"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert "replay minus ewc: +10.0 percentage points" in capsys.readouterr().out


def test_one_study_cannot_be_ranked(monkeypatch, capsys, tmp_path) -> None:
    finished(tmp_path / "w", 0)
    code, _, err = command(monkeypatch, capsys, "w", "w", "--results", tmp_path)
    assert code == 1
    assert "two or more studies" in err


@pytest.mark.parametrize("kind", ["csv", "json", "parquet", "tex"])
def test_ranks_over_files_are_written_in_every_kind(monkeypatch, capsys, tmp_path, kind) -> None:
    for name in "xyzuvw":
        rows = [f"{m},s{s},1,t,{v + s}" for m, v in (("a", 50), ("b", 60)) for s in range(3)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["method,unit,stage,task,value", *rows]))
    files = [tmp_path / f"{name}.csv" for name in "xyzuvw"]
    code, out, _ = command(monkeypatch, capsys, *files, "--percent", "--output", tmp_path / f"out.{kind}")
    assert code == 0
    assert "b: 61.0 ± 1.0" in out
    written = (tmp_path / f"out.{kind}").read_bytes()
    marks = {"csv": b"mean rank,,b", "json": b'"mean rank"', "parquet": b"PAR1", "tex": b"61.0 $\\pm$ 1.0 (1)"}
    assert marks[kind] in written
