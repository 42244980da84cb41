"""The paired t test, Holm's adjustment and the exact signed-rank test, against other programs."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from palimpsest.core.streams import generator
from palimpsest.statistics.comparisons import adjust
from palimpsest.statistics.paired import paired_t, t_tests
from palimpsest.statistics.wilcoxon import wilcoxon_p


def test_the_paired_test_is_that_of_scipy() -> None:
    a, b = generator("tests", 1).random((2, 8))
    test, expected = paired_t(a - b, "greater", 0.05), stats.ttest_rel(a, b, alternative="greater")
    assert (test.t, test.p, test.df) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue), 7)
    assert test.ci_low == pytest.approx(expected.confidence_interval(0.95).low)
    assert test.ci_high is None


def test_equivalence_is_the_test_of_statsmodels() -> None:
    from statsmodels.stats.weightstats import ttost_paired

    a, b = generator("tests", 2).random((2, 8)) * 0.1
    expected = ttost_paired(a, b, -0.05, 0.05)[0]
    assert paired_t(a - b, "two-sided", 0.05, margin=0.05).p_equivalence == pytest.approx(expected)


def test_fewer_than_two_pairs_have_no_test() -> None:
    for differences in ([], [0.1]):
        test = paired_t(np.array(differences), "two-sided", 0.05)
        assert (test.p, test.reason) == (None, "fewer than two pairs")


def test_differences_that_vary_by_rounding_alone_have_no_p() -> None:
    test = paired_t(np.array([0.3 - 0.2, 0.4 - 0.3, 0.1]), "two-sided", 0.05)
    assert (test.sd, test.p, test.reason) == (0.0, None, "the differences do not vary")


CROSSED = {"order": list("aabb"), "seed": [0, 1, 0, 1]}


def test_pairs_that_share_an_order_are_tested_by_order_where_its_interval_is_wider() -> None:
    test = paired_t(np.array([0.10, 0.11, 0.31, 0.30]), "two-sided", 0.05, clusters=CROSSED)
    expected = stats.ttest_1samp([0.105, 0.305], 0.0)
    assert (test.clustered_by, test.df, test.p) == ("order", 1, pytest.approx(expected.pvalue))


def test_pairs_that_share_a_seed_are_tested_by_seed_where_its_interval_is_wider() -> None:
    test = paired_t(np.array([0.10, 0.31, 0.11, 0.30]), "two-sided", 0.05, clusters=CROSSED)
    assert (test.clustered_by, test.df, test.n) == ("seed", 1, 4)


def test_orders_and_seeds_that_both_matter_are_tested_by_both() -> None:
    """On a balanced grid the variance of the mean is (MS_order + MS_seed − MS_rest) / n, as the textbooks have it."""
    grid = generator("tests", 4).random((4, 5)) + np.arange(4)[:, None] + 2 * np.arange(5)
    clusters = {"order": np.repeat(np.arange(4), 5).tolist(), "seed": np.tile(np.arange(5), 4).tolist()}
    test = paired_t(grid.ravel(), "two-sided", 0.05, clusters=clusters)
    rest = grid - grid.mean(1, keepdims=True) - grid.mean(0) + grid.mean()
    squares = 5 * grid.mean(1).var(ddof=1), 4 * grid.mean(0).var(ddof=1), (rest**2).sum() / 12
    variance = (squares[0] + squares[1] - squares[2]) / 20
    df = (20 * variance) ** 2 // (squares[0] ** 2 / 3 + squares[1] ** 2 / 4 + squares[2] ** 2 / 12)
    assert (test.clustered_by, test.df) == ("order and seed", df)
    assert test.standard_error == pytest.approx(variance**0.5)
    assert test.p == pytest.approx(2 * stats.t.sf(grid.mean() / variance**0.5, df))


def test_many_studies_at_once_give_what_each_gives_alone() -> None:
    """The simulations run the code that analyses a study."""
    clusters = {"order": [0, 0, 0, 1, 1, 1], "seed": [0, 1, 2] * 2}
    studies = generator("tests", 5).normal(0.3, 1, (20, 6))
    found = t_tests(studies, "two-sided", 0.05, 0.5, clusters)
    for at, study in enumerate(studies):
        alone = paired_t(study, "two-sided", 0.05, 0.5, clusters)
        assert (alone.clustered_by, alone.df) == (found.by[at], found.df[at])
        several = (found.p[at], found.ci_low[at], found.ci_high[at], found.p_equivalence[at])
        assert several == pytest.approx((alone.p, alone.ci_low, alone.ci_high, alone.p_equivalence))


def test_pairs_of_one_order_with_a_seed_each_are_independent() -> None:
    clusters = {"order": ["a"] * 3, "seed": [0, 1, 2]}
    test = paired_t(np.array([0.1, 0.2, 0.4]), "two-sided", 0.05, clusters=clusters)
    assert (test.clustered_by, test.df) == (None, 2)


def test_holm_keeps_the_size_of_the_family_when_a_test_is_undefined() -> None:
    assert adjust([0.01, None, 0.02]) == pytest.approx([0.03, None, 0.04])


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_wilcoxon_equals_the_enumeration_of_all_sign_flips(alternative: Any) -> None:
    differences = np.array([3.0, -1.0, 1.0, 0.0, 2.0, 2.0, -5.0, 0.0])
    ranks = stats.rankdata(np.abs(differences))
    flipped = np.array([np.sum(np.sign(differences) * ranks * flips) for flips in product((-1, 1), repeat=8)])
    observed = np.sum(np.sign(differences) * ranks)
    extreme = {"two-sided": abs(flipped) >= abs(observed), "greater": flipped >= observed, "less": flipped <= observed}
    assert wilcoxon_p(differences, alternative) == pytest.approx(extreme[alternative].mean(), abs=1e-15)


def test_wilcoxon_without_ties_is_the_exact_one_of_scipy() -> None:
    differences = generator("tests", 3).random(12) - 0.3
    assert wilcoxon_p(differences) == pytest.approx(stats.wilcoxon(differences, method="exact").pvalue)


def test_wilcoxon_of_differences_that_are_all_zero_is_one() -> None:
    assert wilcoxon_p(np.zeros(4)) == 1.0
