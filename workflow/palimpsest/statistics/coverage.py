"""What simulations found of an interval, for the footnote under it."""

from __future__ import annotations

from collections.abc import Mapping


def measured(coverage: Mapping[int, float], size: int, unit: str) -> str:
    """How often a 95 % interval covered in simulations of studies of the nearest smaller size that was simulated.

    Args:
        coverage: share of studies by size.
        size: of this study; one below all sizes is described by the smallest.
        unit: what is counted.

    >>> measured({5: 0.84, 10: 0.91}, 7, "pairs")
    'in simulations with 5 pairs the 95 % interval covered the true value in 84 % of studies'
    """
    known = max((simulated for simulated in coverage if simulated <= size), default=min(coverage))
    return (
        f"in simulations with {known} {unit} the 95 % interval covered the true value in "
        f"{100 * coverage[known]:.0f} % of studies"
    )
