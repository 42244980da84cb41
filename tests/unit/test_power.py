"""Power of a paired t test against published values."""

from __future__ import annotations

import pytest

from palimpsest.plan.power import paired_t_power


@pytest.mark.parametrize(
    ("n", "d", "alternative", "power"),
    [
        (34, 0.5, "two-sided", 0.8077775),  # G*Power 3.1: t test, matched pairs, alpha 0.05, power 0.8
        (27, 0.5, "greater", 0.8118316),
        (10, 1.0, "two-sided", 0.8030968),
    ],
)
def test_power_of_published_examples(n, d, alternative, power):
    """The power is that of G*Power for the sample sizes that it gives for 0.8."""
    assert paired_t_power(n, d, 1.0, 0.05, alternative) == pytest.approx(power, abs=1e-5)


def test_power_depends_on_effect_over_sd_alone():
    """Effect and SD in other units, and the sign of the effect, change nothing."""
    assert paired_t_power(5, 0.02, 0.04, 0.05, "two-sided") == paired_t_power(5, -2, 4, 0.05, "two-sided")


def test_power_without_an_effect_is_the_level():
    """With no effect the test rejects at its level."""
    assert paired_t_power(12, 0.0, 1.0, 0.05, "two-sided") == pytest.approx(0.05)
