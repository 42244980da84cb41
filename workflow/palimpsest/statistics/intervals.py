"""The intervals that stand beside the one of the locked test. None of them takes part in a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palimpsest.aggregate.means import Clusters, fewest_levels, is_cluster
from palimpsest.core.streams import generator
from palimpsest.statistics.bootstrap import bootstrap, footnote
from palimpsest.statistics.coverage import measured
from palimpsest.statistics.mixed import MIXED_COVERAGE, mixed_model
from palimpsest.statistics.paired import SKEWED_COVERAGE, paired_t
from palimpsest.statistics.plan import Analysis, Comparison

# Share of 2,000 simulated studies whose naive 95 % interval covers, by the levels of the factor that has fewer, where
# seeds and orders make up nine tenths of the variance; tests/simulation compares.
NAIVE_COVERAGE = {2: 0.648, 5: 0.609, 10: 0.459}


def other_intervals(
    analysis: Analysis, comparison: Comparison, differences: np.ndarray, clusters: Clusters
) -> dict[str, Any]:
    """Columns of the table `comparisons`.

    `ci_simultaneous`: Bonferroni, at 1 − α/m for the m secondary comparisons, so that all of them hold together. Where
    one excludes 0, Holm's adjusted p is at most α; not the other way round, for Holm rejects more. Of the primary
    comparison, a family of one, it is the interval itself; the exploratory ones have none.

    `ci_naive`: t over all pairs as if they were independent; null where they are, for it would be the interval itself.

    `bootstrap`: see `bootstrap.bootstrap`; its resamples are drawn from the stream `bootstrap` of the comparison's
    name. `mixed`: see `mixed.mixed_model`. `diagnostics` is the footnote: how often such
    intervals cover in simulations, singular fits, and why one is missing.
    """
    simultaneous = _simultaneous(analysis, comparison, differences, clusters)
    crossed = any(is_cluster(levels) for levels in clusters.values())
    naive = paired_t(differences, comparison.alternative, analysis.alpha) if crossed else None
    resampled = bootstrap(
        differences, comparison.alternative, analysis.alpha, clusters, generator("bootstrap", comparison.name)
    )
    mixed = mixed_model(differences, clusters, analysis.alpha)
    levels, n = fewest_levels(clusters), len(differences)
    skewed = f"were the differences exponential and not normal, {measured(SKEWED_COVERAGE, n, 'pairs')}"
    notes = [
        ("locked test", skewed if n > 1 and not crossed else None),
        ("naive", measured(NAIVE_COVERAGE, levels, "orders or seeds") if crossed else None),
        ("bootstrap", resampled.reason),
        ("bootstrap", footnote(resampled.kind, clusters, n) if resampled.kind else None),
        ("mixed model", mixed.note),
        ("mixed model", None if mixed.ci_low is None else measured(MIXED_COVERAGE, levels, "orders or seeds")),
    ]
    return {
        "ci_simultaneous_low": simultaneous[0],
        "ci_simultaneous_high": simultaneous[1],
        "ci_naive_low": naive.ci_low if naive else None,
        "ci_naive_high": naive.ci_high if naive else None,
        "bootstrap": resampled.kind,
        "bootstrap_low": resampled.low,
        "bootstrap_high": resampled.high,
        "mixed_low": mixed.ci_low,
        "mixed_high": mixed.ci_high,
        "mixed_sd_order": mixed.sd_order,
        "mixed_sd_seed": mixed.sd_seed,
        "mixed_sd_rest": mixed.sd_rest,
        "diagnostics": _joined(notes),
    }


def _simultaneous(
    analysis: Analysis, comparison: Comparison, differences: np.ndarray, clusters: Clusters
) -> tuple[float | None, float | None]:
    if comparison.role == "exploratory":
        return None, None
    family = analysis.n_secondary if comparison.role == "secondary" else 1
    test = paired_t(differences, comparison.alternative, analysis.alpha / family, clusters=clusters)
    return test.ci_low, test.ci_high


def _joined(notes: Sequence[tuple[str, str | None]]) -> str | None:
    return "; ".join(f"{name}: {note}" for name, note in notes if note) or None
