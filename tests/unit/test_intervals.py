"""The intervals beside the locked test: bootstrap and mixed model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from palimpsest.core.streams import generator
from palimpsest.statistics import bootstrap as resampling
from palimpsest.statistics.bootstrap import BCA, CLUSTER, PERCENTILE, bootstrap
from palimpsest.statistics.mixed import mixed_model

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
