"""Simulated error rates and coverages: what is promised holds, and what falls short is said by how much."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import simulate
from palimpsest.metrics._evaluate import declaration
from palimpsest.statistics.bootstrap import BCA_COVERAGE, CLUSTER_COVERAGE
from palimpsest.statistics.comparisons import compare
from palimpsest.statistics.intervals import NAIVE_COVERAGE
from palimpsest.statistics.mixed import MIXED_COVERAGE
from palimpsest.statistics.order_bootstrap import QUANTILE_COVERAGE
from palimpsest.statistics.paired import SKEWED_COVERAGE
from palimpsest.statistics.pairs import Pairs
from palimpsest.statistics.plan import Analysis, Comparison
from simulate import ALPHA, CROSSED, FIVE_BY_FIVE, SHARES, binomial_error

Table = dict[str, dict[str, float]]
DOCUMENT = Path(__file__).parents[2] / "docs" / "statistics.md"
VERDICTS = ("better or worse", "better, one-sided", "equivalent", "any secondary", "with a failed run")
PROMISED = ("locked test", "simultaneous", "worst task")


@pytest.fixture(scope="module")
def errors() -> Table:
    return simulate.error_table()


@pytest.fixture(scope="module")
def coverages() -> Table:
    return simulate.coverage_table()


def test_no_confirmatory_verdict_is_false_more_often_than_announced(errors: Table) -> None:
    """In every design whose differences are symmetric, as those of two equal methods are."""
    limit = ALPHA + binomial_error(ALPHA)
    high = {
        (studies, verdict): rates[verdict]
        for studies, rates in errors.items()
        for verdict in VERDICTS
        if "skewed" not in studies and rates[verdict] > limit
    }
    assert not high


def test_the_naive_t_on_a_crossed_design_is_wrong_far_more_often_and_ours_is_not(errors: Table) -> None:
    """On 5 × 5 with order effects the t test of all pairs is known to reject in 23 to 37 % of studies."""
    rates = errors[f"{FIVE_BY_FIVE.name}, normal, orders matter"]
    assert 0.23 < rates["naive t"] < 0.37
    assert rates["better or worse"] <= ALPHA + binomial_error(ALPHA)


def test_the_wider_of_two_one_way_tests_would_not_do(errors: Table) -> None:
    """Why there is a third estimate: on 10 × 10, where seeds and orders both matter, they reject too often."""
    rates = errors[f"{CROSSED[2].name}, normal, both matter"]
    assert rates["wider of two"] > ALPHA + binomial_error(ALPHA)
    assert rates["better or worse"] <= ALPHA + binomial_error(ALPHA)


def test_the_intervals_that_promise_95_percent_cover_it(coverages: Table) -> None:
    low = {
        (studies, interval): rates[interval]
        for studies, rates in coverages.items()
        for interval in PROMISED
        if "skewed" not in studies and rates[interval] < 0.95 - binomial_error(0.95)
    }
    assert not low


def agrees(stated: float, found: float) -> bool:
    return abs(stated - found) <= binomial_error(found)


@pytest.mark.parametrize(
    ("constant", "column", "kind"), [(BCA_COVERAGE, "BCa", "normal"), (SKEWED_COVERAGE, "locked test", "skewed")]
)
def test_the_footnotes_on_independent_pairs_state_what_is_simulated(
    coverages: Table, constant: dict, column: str, kind: str
) -> None:
    assert all(agrees(share, coverages[f"{n} pairs, {kind}"][column]) for n, share in constant.items())
    assert all(share < 0.95 for share in constant.values())


@pytest.mark.parametrize(
    ("constant", "column"),
    [(NAIVE_COVERAGE, "naive"), (CLUSTER_COVERAGE, "cluster bootstrap"), (MIXED_COVERAGE, "mixed model")],
)
def test_the_footnotes_on_crossed_pairs_state_the_worst_of_what_is_simulated(
    coverages: Table, constant: dict, column: str
) -> None:
    assert set(constant) == {design.n_orders for design in CROSSED}
    for design in CROSSED:
        worst = min(coverages[f"{design.name}, normal, {shares}"][column] for shares in SHARES)
        assert agrees(constant[design.n_orders], worst)


def test_the_footnote_on_the_worst_quantile_states_what_is_simulated() -> None:
    found = simulate.quantile_table()
    sizes = {5: "5 seeds × 1 orders", 10: "2 seeds × 5 orders", 25: "5 seeds × 5 orders", 100: "10 seeds × 10 orders"}
    assert set(sizes) == set(QUANTILE_COVERAGE)
    for n_runs, studies in sizes.items():
        assert agrees(QUANTILE_COVERAGE[n_runs], found[studies]["worst quantile"])


def test_the_simulated_verdicts_are_those_of_a_whole_analysis() -> None:
    """Holm, the gate and the verdicts of `compare`, study by study, against the arrays."""
    design, shares = FIVE_BY_FIVE, SHARES["orders matter"]
    shared = simulate.draw(design, "normal", shares, "shared")
    secondary = [(shared + simulate.draw(design, "normal", shares, f"own{k}")) / np.sqrt(2) for k in range(3)]
    rejected = simulate.secondary_rejections(design, "normal", shares)
    studies = [int(study) for study in np.argsort(~rejected.any(0), kind="stable")[:3]] + [0, 1]
    for study in studies:
        values = [100 + shared[study], *(each[study] for each in secondary)]
        rows = compare(analysis(), [pairs(differences / 1000, design) for differences in values])
        verdicts = [row["verdict"] in ("better", "worse") and row["confirmatory"] for row in rows]
        assert verdicts == [True, *rejected[:, study]]


def analysis() -> Analysis:
    quantity = {"a": "a", "b": "b", "metric": "average_accuracy", "index": None, "protocol": "p"}
    roles = ("primary", "secondary", "secondary", "secondary")
    comparisons = [
        Comparison(f"c{at}", role, alternative="two-sided", **quantity)  # type: ignore[arg-type]
        for at, role in enumerate(roles)
    ]
    return Analysis(ALPHA, None, tuple(comparisons))


def pairs(differences: np.ndarray, design: simulate.Design) -> Pairs:
    metric = declaration("average_accuracy")
    failed, n = np.isnan(differences), len(differences)
    return Pairs(metric, 0.5 + differences, np.full(n, 0.5), failed, np.zeros(n, bool), design.clusters, {}, None)


def test_the_document_holds_the_tables_of_the_simulation(errors: Table, coverages: Table) -> None:
    """docs/statistics.md has every row; its figures lie within half a percentage point of those made now."""
    text = DOCUMENT.read_text()
    for table in (errors, coverages, simulate.quantile_table()):
        for line in simulate.markdown(table).splitlines()[2:]:
            name, figures = line.split("|")[1], numbers(line)
            stated = [numbers(row) for row in text.splitlines() if row.startswith(f"|{name}|")]
            assert any(len(row) == len(figures) and np.allclose(row, figures, rtol=0, atol=0.5) for row in stated), line


def numbers(line: str) -> list[float]:
    return [float(cell) for cell in line.split("|")[2:] if re.fullmatch(r" *\d+\.\d *", cell)]
