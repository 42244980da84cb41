"""Several studies: ranks, Friedman's test, and what so few studies can show."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from scipy import stats

from fabricated_study import fabricate
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


def test_the_command_ranks_finished_studies(monkeypatch, capsys, tmp_path) -> None:
    """Four fabricated studies, in which replay is ahead of ewc and ewc of finetune; references are left out."""
    for name in "wxyz":
        fabricate(tmp_path / name)
    code, out, _ = command(monkeypatch, capsys, *"wxyz", "--results", tmp_path)
    assert code == 0
    assert "replay: 1.00" in out
    assert "finetune: 3.00" in out
    assert "p = 0.0046 (counted over all rankings" in out
    assert "joint" not in out


def test_one_study_cannot_be_ranked(monkeypatch, capsys, tmp_path) -> None:
    fabricate(tmp_path / "w")
    code, _, err = command(monkeypatch, capsys, "w", "w", "--results", tmp_path)
    assert code == 1
    assert "two or more studies" in err
