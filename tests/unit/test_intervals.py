"""The intervals beside the locked test: bootstrap and mixed model."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import stats

from palimpsest.aggregate.means import indicator
from palimpsest.core.streams import generator
from palimpsest.statistics import bootstrap as resampling
from palimpsest.statistics.bootstrap import BCA, CLUSTER, PERCENTILE, bootstrap
from palimpsest.statistics.mixed import MOST_SEARCHED, _search, fit_grid, mixed_model

GRID = {"order": np.repeat(np.arange(5), 5).tolist(), "seed": np.tile(np.arange(5), 5).tolist()}


def crossed(sd_order: float, sd_seed: float, sd_rest: float, *key: int) -> np.ndarray:
    rng = generator("tests", "crossed", *key)
    grid = rng.normal(0, sd_order, (5, 1)) + rng.normal(0, sd_seed, (1, 5)) + rng.normal(0, sd_rest, (5, 5))
    return 0.02 + grid.ravel()


def test_the_bootstrap_is_scipys_bca_and_a_function_of_its_stream() -> None:
    differences = crossed(0, 0, 0.01)
    found = bootstrap(differences, "two-sided", 0.05, {}, generator("tests", "bca"))
    expected = stats.bootstrap((differences,), np.mean, rng=generator("tests", "bca")).confidence_interval
    assert (found.kind, found.low, found.high) == (BCA, pytest.approx(expected.low), pytest.approx(expected.high))
    assert found == bootstrap(differences, "two-sided", 0.05, {}, generator("tests", "bca"))


def test_a_one_sided_bootstrap_has_one_bound() -> None:
    for clusters in ({}, GRID):
        found = bootstrap(crossed(0, 0, 0.01), "greater", 0.05, clusters, generator("tests", "one"))
        assert found.low is not None
        assert found.high is None


@pytest.mark.parametrize(("n", "reason"), [(1, "fewer than two pairs"), (5, "the differences do not vary")])
def test_too_few_or_constant_differences_have_no_bootstrap(n: int, reason: str) -> None:
    found = bootstrap(np.full(n, 0.3), "two-sided", 0.05, {}, generator("tests", "none"))
    assert (found.kind, found.low, found.reason) == (None, None, reason)


def test_an_undefined_bca_interval_becomes_a_percentile_one_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "bca_interval", lambda *_: (np.array(np.nan), np.array(np.nan)))
    found = bootstrap(np.array([0.0, 0.0, 0.1]), "two-sided", 0.05, {}, generator("tests", "nan"))
    assert (found.kind, found.low, found.high) == (PERCENTILE, 0.0, pytest.approx(0.1))


def test_crossed_pairs_are_resampled_by_whole_orders_and_seeds() -> None:
    """With order effects alone the interval is that of resampled orders, far wider than one of pairs."""
    differences = crossed(0.02, 0, 0.0001)
    found = bootstrap(differences, "two-sided", 0.05, GRID, generator("tests", "cluster"))
    by_order = differences.reshape(5, 5).mean(1)
    drawn = by_order[generator("tests", "alone").integers(5, size=(9999, 5))].mean(1)
    assert found.kind == CLUSTER
    assert (found.low, found.high) == (
        pytest.approx(np.quantile(drawn, 0.025), abs=0.002),
        pytest.approx(np.quantile(drawn, 0.975), abs=0.002),
    )


def test_the_mixed_model_finds_the_components_of_a_balanced_grid() -> None:
    """Inside the parameter space restricted likelihood on a balanced grid is the analysis of variance."""
    differences = crossed(0.03, 0.02, 0.01)
    grid = differences.reshape(5, 5)
    rest = grid - grid.mean(1, keepdims=True) - grid.mean(0) + grid.mean()
    squares = [5 * grid.mean(axis).var(ddof=1) for axis in (1, 0)] + [(rest**2).sum() / 16]
    expected = [np.sqrt((squares[0] - squares[2]) / 5), np.sqrt((squares[1] - squares[2]) / 5), squares[2] ** 0.5]
    found = mixed_model(differences, GRID, 0.05)
    assert [found.sd_order, found.sd_seed, found.sd_rest] == pytest.approx(expected, rel=0.01)
    error = np.sqrt((squares[0] + squares[1] - squares[2]) / 25)
    assert (found.ci_high, found.note) == (pytest.approx(differences.mean() + 1.96 * error, rel=0.01), None)


def test_a_component_on_the_boundary_is_said() -> None:
    grid = crossed(0.03, 0, 0.01).reshape(5, 5)
    found = mixed_model((grid - grid.mean(0)).ravel(), GRID, 0.05)
    assert found.sd_seed < 0.001
    assert "singular: no variance left for seed" in found.note


@pytest.mark.parametrize(
    ("differences", "clusters", "note"),
    [
        (np.arange(3.0), {"order": [0, 1, 2], "seed": [0, 1, 2]}, "no pairs share an order or a seed"),
        (np.ones(25), GRID, "the differences do not vary"),
    ],
)
def test_where_nothing_can_be_fitted_the_note_says_why(differences: np.ndarray, clusters: dict, note: str) -> None:
    found = mixed_model(differences, clusters, 0.05)
    assert (found.ci_low, found.note) == (None, f"not fitted: {note}")


@pytest.mark.parametrize("sds", [(0.03, 0.02, 0.01), (0.03, 0.0, 0.01), (0.0, 0.0, 0.01)])
def test_on_a_complete_grid_no_variances_are_likelier_than_those_of_the_closed_form(sds: tuple[float, ...]) -> None:
    """Neither those that statsmodels searches, inside and on the boundary, nor any in the neighbourhood."""
    for key in range(4):
        differences = crossed(*sds, key) / 0.03
        fit = fit_grid(differences.reshape(5, 5)).variances
        found = np.array([fit["order"], fit["seed"], fit["rest"]])
        searched, _ = _search(differences, {name: indicator(levels) for name, levels in GRID.items()})
        others = [np.array([*searched.vcomp, searched.scale]), found + 0.01, *(found + 0.01 * np.eye(3))]
        others += [np.maximum(found - 0.01 * step, [0, 0, 0.01]) for step in np.eye(3)]
        best = restricted_likelihood(differences, found)
        assert best >= max(restricted_likelihood(differences, other) for other in others) - 1e-9


def restricted_likelihood(differences: np.ndarray, variances: np.ndarray) -> float:
    """Its logarithm up to a constant, as it is defined."""
    order, seed = (indicator(GRID[name]) for name in ("order", "seed"))
    covariance = variances[0] * order @ order.T + variances[1] * seed @ seed.T + variances[2] * np.eye(25)
    precision = np.linalg.inv(covariance)
    rest = differences - precision.sum(0) @ differences / precision.sum()
    return -(np.linalg.slogdet(covariance)[1] + np.log(precision.sum()) + rest @ precision @ rest) / 2


def test_the_standard_error_of_the_closed_form_is_that_of_the_search_inside_the_parameter_space() -> None:
    differences = crossed(0.03, 0.02, 0.01) / 0.03
    searched, _ = _search(differences, {name: indicator(levels) for name, levels in GRID.items()})
    assert fit_grid(differences.reshape(5, 5)).standard_error == pytest.approx(searched.bse_fe[0], rel=0.001)


def test_an_incomplete_grid_is_searched_unless_it_is_so_large_that_this_would_take_minutes() -> None:
    differences, clusters = crossed(0.03, 0.02, 0.01)[1:], {name: levels[1:] for name, levels in GRID.items()}
    assert mixed_model(differences, clusters, 0.05).ci_low < 0.02
    n = MOST_SEARCHED + 1
    large = {"order": [at // 100 for at in range(n)], "seed": [at % 100 for at in range(n)]}
    found = mixed_model(generator("tests", "large").normal(size=n), large, 0.05)
    assert (found.ci_low, found.note) == (None, "not fitted: more than 2,500 pairs on an incomplete grid")


def test_a_bootstrap_of_ten_thousand_crossed_pairs_needs_no_more_than_some_tens_of_mebibytes() -> None:
    differences = generator("tests", "many").normal(size=10_000)
    clusters = {"order": [at // 100 for at in range(10_000)], "seed": [at % 100 for at in range(10_000)]}
    tracemalloc.start()
    resampling.cluster_interval(differences, clusters, "two-sided", 0.05, generator("tests", "drawn"), 1200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 150 * 2**20
