"""Several studies: whether methods rank alike from one data set to the next. Accuracies are never pooled."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

# Up to so many ways to rank, the distribution is counted; above, it is taken as chi-squared.
MOST_COUNTED = 10**7


@dataclass(frozen=True)
class Friedman:
    """Mean ranks over studies, and the test that all methods rank alike.

    Args:
        ranks: mean rank of each method, 1 the best.
        by_study: its rank in each study.
        n_studies: how many studies.
        statistic: Friedman's chi-squared, corrected for ties; None where all methods tie in every study.
        p: of the test; None where it was not made, with the reason.
        exact: whether p was counted over all ways to rank.
        smallest_p: the smallest p that so many studies and methods can reach, without ties.
        post_hoc: Nemenyi's p for each pair of methods; empty where the test does not reject.
        reason: why there is no p.
    """

    ranks: Mapping[str, float]
    by_study: Mapping[str, Mapping[str, float]]
    n_studies: int
    statistic: float | None = None
    p: float | None = None
    exact: bool = False
    smallest_p: float | None = None
    post_hoc: Mapping[tuple[str, str], float] = field(default_factory=dict)
    reason: str | None = None


def friedman(values: Mapping[str, Mapping[str, float]], higher_is_better: bool, alpha: float) -> Friedman:
    """Friedman's test over studies, with Nemenyi's post-hoc comparison of mean ranks.

    With N studies of k methods no p lies below (k!)^(1−N): where that is above alpha, the ranks are told and nothing is
    tested. p is the share of all rankings, each study's own permuted, whose statistic is at least as large; it is the
    chi-squared approximation where there are too many of them. Nemenyi's p is an approximation for many studies and is
    given only behind a test that rejects.

    Args:
        values: by study and method, each method's mean of one metric.
        higher_is_better: the direction of the metric.
        alpha: level of the test.

    Raises:
        ValueError: fewer than two methods or studies, or studies whose methods differ.

    Reference: Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 2006.

    >>> found = friedman({name: {"a": 0.9, "b": 0.7, "c": 0.5} for name in "wxyz"}, True, 0.05)
    >>> found.ranks, round(found.p, 4), found.exact
    ({'a': 1.0, 'b': 2.0, 'c': 3.0}, 0.0046, True)
    """
    from scipy.stats import friedmanchisquare, rankdata

    methods = sorted(next(iter(values.values()), {}))
    if len(values) < 2 or len(methods) < 2 or any(sorted(study) != methods for study in values.values()):
        raise ValueError("at least two studies of the same two or more methods")
    table = np.array([[study[method] for method in methods] for study in values.values()], dtype=float)
    ranks = rankdata(-table if higher_is_better else table, axis=1)
    by_study = {study: dict(zip(methods, row, strict=True)) for study, row in zip(values, ranks.tolist(), strict=True)}
    smallest = float(math.factorial(len(methods))) ** (1 - len(ranks))
    told = Friedman(dict(zip(methods, ranks.mean(0).tolist(), strict=True)), by_study, len(ranks), smallest_p=smallest)
    if smallest > alpha:
        return replace(
            told, reason=f"{len(ranks)} studies of {len(methods)} methods cannot reach a p below {smallest:.3g}"
        )
    ties = sum(float((count**3 - count).sum()) for count in (np.unique(row, return_counts=True)[1] for row in ranks))
    spread = len(ranks) * (len(methods) ** 3 - len(methods)) - ties
    if spread == 0:
        return replace(told, reason="all methods tie in every study")
    sums = ranks.sum(0)
    statistic = 12 * (len(methods) - 1) * float(((sums - sums.mean()) ** 2).sum()) / spread
    exact = math.factorial(len(methods)) ** (len(ranks) - 1) <= MOST_COUNTED
    p = _counted_p(ranks) if exact else float(friedmanchisquare(*table.T).pvalue) if len(methods) > 2 else None
    reason = None if p is not None else "too many studies of two methods to count; compare them by a sign test"
    post_hoc = _nemenyi(methods, ranks) if p is not None and p <= alpha else {}
    return replace(told, statistic=statistic, p=p, exact=exact, post_hoc=post_hoc, reason=reason)


def _counted_p(ranks: np.ndarray) -> float:
    """Share of rankings whose rank sums spread at least as much, every study's ranks permuted in all ways.

    Sums are counted study by study; only their multiset matters, since the methods are exchangeable.
    """
    doubled = np.rint(2 * ranks).astype(int)
    counts: Counter[tuple[int, ...]] = Counter({tuple(sorted(doubled[0])): 1})
    for row in doubled[1:]:
        permuted = Counter(itertools.permutations(row.tolist()))
        following: Counter[tuple[int, ...]] = Counter()
        for sums, count in counts.items():
            for ways, times in permuted.items():
                following[tuple(sorted(a + b for a, b in zip(sums, ways, strict=True)))] += count * times
        counts = following
    observed = sum(value**2 for value in doubled.sum(0).tolist())
    return sum(c for sums, c in counts.items() if sum(value**2 for value in sums) >= observed) / sum(counts.values())


def _nemenyi(methods: list[str], ranks: np.ndarray) -> dict[tuple[str, str], float]:
    from scipy.stats import studentized_range

    k, error = len(methods), math.sqrt(len(methods) * (len(methods) + 1) / (12 * len(ranks)))
    mean = dict(zip(methods, ranks.mean(0), strict=True))
    return {
        (a, b): float(studentized_range.sf(abs(mean[a] - mean[b]) / error, k, np.inf))
        for a, b in itertools.combinations(methods, 2)
    }
