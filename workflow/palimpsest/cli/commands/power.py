"""`palimpsest power`: what a locked plan can find."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    study: Annotated[Path, typer.Argument(help="The study file, config/NAME.yaml; it must be locked.")],
    effect: Annotated[
        float | None, typer.Option(help="True mean difference in percentage points; the plan's own if left out.")
    ] = None,
    sd: Annotated[
        float | None,
        typer.Option(help="SD of the paired differences in percentage points; the plan's own if left out."),
    ] = None,
) -> None:
    """Power of the primary comparison, the units that the effect needs, and the effect that the units can find."""
    from palimpsest.plan.lock import open_lock
    from palimpsest.plan.study import read_study
    from palimpsest.statistics.power import SCENARIOS, Question, is_simulated

    plan = open_lock(read_study(study)[0], study).plan
    analysis = plan["study"]["analysis"]
    points = {
        "effect": _points(effect, analysis["expected_effect"], "effect", study),
        "sd": _points(sd, analysis["expected_sd"], "sd", study),
    }
    design = _design(plan)
    question = Question(points["sd"], analysis["alpha"], analysis["primary"]["alternative"])
    print(
        f"{_units(design)}; {analysis['primary']['name']}, {question.alternative}, alpha {question.alpha:g}\n"
        f"effect {points['effect']:g} at an SD of the paired differences of {points['sd']:g} (percentage points)"
    )
    if not is_simulated(design):
        _tell(design, question, points["effect"], (0.0, 0.0))
        return
    for name, shares in SCENARIOS.items():
        print(f"\n{name}:")
        _tell(design, question, points["effect"], shares)
    print("\nsimulated, 2,000 studies each, by the test that will decide; standard error at most 1.1 percentage points")


def _tell(design, question, effect: float, shares: tuple[float, float]) -> None:
    from palimpsest.statistics.power import detectable_effect, power_of, units_needed

    print(f"  power: {100 * power_of(design, question, effect, shares):.0f} %")
    for power in (0.8, 0.9):
        needed = units_needed(design, question, effect, power, shares)
        found = detectable_effect(design, question, power, shares)
        least = "more than 100 SDs" if found is None else f"{found:.3g} percentage points"
        print(
            f"  for {100 * power:.0f} %: {_units(needed) if needed else 'more units than can be asked for'}; "
            f"the planned ones find {least}"
        )


def _units(design) -> str:
    if not design.crossed:
        return f"{design.n} units"
    return f"{design.n} units ({design.n_seeds} seeds × {design.n_orders} orders)"


def _design(plan: dict):
    from palimpsest.statistics.power import Design

    n_seeds, n_orders = len(plan["study"]["design"]["seeds"]), len(plan["orders"])
    return Design(n_seeds, n_orders, plan["study"]["design"]["crossing"] == "full")


def _points(given: float | None, planned: float | None, name: str, study: Path) -> float:
    from palimpsest.core.errors import StudyError

    found = given if given is not None else None if planned is None else 100 * planned
    if found is None or not 0 < abs(found) <= 100 or (name == "sd" and found < 0):
        raise StudyError(
            f"the power needs the {'effect' if name == 'effect' else 'SD of the paired differences'}",
            where=f"--{name}, or analysis.expected_{name} in {study}",
            expected="percentage points, above 0 and up to 100",
            got="nothing" if found is None else f"{found:g}",
            next=f"palimpsest power {study} --effect 2 --sd 3",
        )
    return found
