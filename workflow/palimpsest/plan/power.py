"""What a paired t test can find before it is run."""

from __future__ import annotations

import math


def paired_t_power(n: int, effect: float, sd: float, alpha: float, alternative: str) -> float:
    """Probability that a paired t test over n units rejects at level alpha.

    With the noncentral t distribution: df = n − 1, noncentrality √n · effect / sd. Range [0, 1]. A one-sided
    alternative is taken to point in the direction of the effect.

    Args:
        n: number of pairs, at least 2.
        effect: true mean difference.
        sd: SD of the differences, in the unit of the effect.
        alpha: level of the test.
        alternative: "two-sided", "greater" or "less".

    Reference: J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 2nd ed. (1988), chapter 2.

    >>> round(paired_t_power(10, 1.0, 1.0, 0.05, "two-sided"), 3)
    0.803
    """
    from scipy import stats

    assert n >= 2, "a paired t test needs two pairs"
    df, noncentrality = n - 1, math.sqrt(n) * abs(effect) / sd
    if alternative != "two-sided":
        return _or_certain(stats.nct.sf(stats.t.ppf(1 - alpha, df), df, noncentrality))
    critical = stats.t.ppf(1 - alpha / 2, df)
    return _or_certain(stats.nct.sf(critical, df, noncentrality) + stats.nct.cdf(-critical, df, noncentrality))


def _or_certain(power: float) -> float:
    """scipy gives NaN where the noncentrality is too large for its series: there every test rejects."""
    return 1.0 if math.isnan(power) else float(power)
