"""What a plan can find: power, units needed, detectable effect; `palimpsest power`."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import small_study
from palimpsest.cli import main as cli
from palimpsest.statistics.power import (
    SCENARIOS,
    Design,
    Question,
    detectable_effect,
    power_of,
    standard_differences,
    units_needed,
)

QUESTION = Question(1.0, 0.05, "two-sided")
PAIRED, CROSSED = Design(5, 5, False), Design(5, 5, True)


def test_the_units_that_an_effect_needs_are_those_of_published_tables() -> None:
    """G*Power 3.1: d = 0.5, matched pairs, two-sided 0.05: 34 pairs for 80 %, 44 for 90 %; one-sided 27."""
    assert units_needed(PAIRED, QUESTION, 0.5, 0.8).n == 34
    assert units_needed(PAIRED, QUESTION, 0.5, 0.9).n == 44
    assert units_needed(PAIRED, Question(1.0, 0.05, "greater"), 0.5, 0.8).n == 27


def test_the_detectable_effect_has_the_power_and_a_smaller_one_has_not() -> None:
    found = detectable_effect(PAIRED, QUESTION, 0.8)
    assert power_of(PAIRED, QUESTION, found) >= 0.8 > power_of(PAIRED, QUESTION, found - 0.01)


def test_a_crossed_design_with_clustering_finds_less_than_as_many_independent_pairs() -> None:
    """25 independent pairs find an effect of 0.7 SD with 92 %; 5 × 5 where orders matter with far less."""
    independent = power_of(Design(25, 25, False), QUESTION, 0.7)
    crossed = power_of(CROSSED, QUESTION, 0.7, SCENARIOS["orders make up half of the variance"])
    assert independent > 0.9
    assert crossed < 0.5


def test_the_power_without_an_effect_is_at_most_the_level() -> None:
    for shares in SCENARIOS.values():
        assert power_of(CROSSED, QUESTION, 0.0, shares) <= 0.05 + 2.5 * np.sqrt(0.05 * 0.95 / 2000)


def test_simulated_differences_have_the_stated_shares_of_the_variance() -> None:
    values = standard_differences(CROSSED, (0.5, 0.2)).reshape(-1, 5, 5)
    assert values.var() == pytest.approx(1.0, abs=0.05)
    between_orders = np.mean(values[:, 0, 0] * values[:, 0, 1])
    between_seeds = np.mean(values[:, 0, 0] * values[:, 1, 0])
    assert (between_orders, between_seeds) == (pytest.approx(0.5, abs=0.06), pytest.approx(0.2, abs=0.06))


def test_the_crossed_units_that_an_effect_needs_have_the_power() -> None:
    shares = SCENARIOS["orders and seeds make up a quarter each"]
    needed = units_needed(CROSSED, QUESTION, 0.7, 0.8, shares)
    assert needed.n_seeds == needed.n_orders
    assert power_of(needed, QUESTION, 0.7, shares) >= 0.8


def test_an_effect_that_no_number_of_units_finds_is_said() -> None:
    assert units_needed(PAIRED, QUESTION, 0.001, 0.8) is None


def run(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, in this process."""
    monkeypatch.setattr(sys, "argv", ["palimpsest", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    return int(end.value.code or 0), out, err


@pytest.fixture
def study(monkeypatch, capsys, tmp_path):
    path = small_study.write(tmp_path)
    run(monkeypatch, capsys, "lock", path)
    return path


def test_the_command_tells_power_units_and_effect(monkeypatch, capsys, study) -> None:
    """Two paired units, 2 percentage points at an SD of 3."""
    code, out, _ = run(monkeypatch, capsys, "power", study, "--effect", "2", "--sd", "3")
    assert code == 0
    assert out.startswith("2 units; ")
    assert f"power: {100 * power_of(Design(2, 2, False), QUESTION, 2 / 3):.0f} %" in out
    assert f"for 80 %: {units_needed(PAIRED, QUESTION, 2 / 3, 0.8).n} units" in out


def test_a_crossed_plan_is_told_under_every_division_of_the_variance(monkeypatch, capsys, tmp_path) -> None:
    path = small_study.write(tmp_path, lambda c: c["design"].update(crossing="full"))
    run(monkeypatch, capsys, "lock", path)
    code, out, _ = run(monkeypatch, capsys, "power", path, "--effect", "9", "--sd", "3")
    assert code == 0
    assert "4 units (2 seeds × 2 orders)" in out
    assert all(f"{name}:" in out for name in SCENARIOS)


@pytest.mark.parametrize("options", [(), ("--effect", "2"), ("--effect", "2", "--sd", "-3"), ("--effect", "0")])
def test_a_power_without_effect_or_sd_is_refused(monkeypatch, capsys, study, options) -> None:
    code, _, err = run(monkeypatch, capsys, "power", study, *options)
    assert code == 1
    assert "palimpsest power" in err
