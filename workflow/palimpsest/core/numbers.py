"""How numbers are printed: fractions become percent or percentage points, and what is missing is a dash.

Accuracy and everything derived from it is stored as a fraction. An accuracy is printed in percent; a difference of
accuracies in percentage points, with its sign.
"""

from __future__ import annotations

import math
from typing import Any

MISSING = "–"
MINUS = "\N{MINUS SIGN}"
_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def is_missing(value: float | None) -> bool:
    """Whether there is no number to print."""
    return value is None or math.isnan(value)


def hundredfold(value: float | None) -> float | None:
    """A fraction in percent or percentage points, without the digits that binary arithmetic adds.

    >>> hundredfold(0.57)
    57.0
    """
    return None if is_missing(value) else float(f"{100 * value:.12g}")


def percent(value: float | None, digits: int = 1) -> str:
    """A fraction in percent, without the sign of the unit.

    >>> percent(0.9125), percent(None)
    ('91.2', '–')
    """
    return MISSING if is_missing(value) else _typographic(f"{100 * value:.{digits}f}")


def points(value: float | None, digits: int = 1) -> str:
    """A difference of two fractions in percentage points, with its sign.

    >>> points(0.031), points(-0.2), points(0.0), points(None)
    ('+3.1', '−20.0', '0.0', '–')
    """
    if is_missing(value):
        return MISSING
    text = f"{100 * value:+.{digits}f}"
    return text[1:] if float(text) == 0 else _typographic(text)


def p_value(value: float | None) -> str:
    """A p-value with its relation.

    >>> p_value(0.0423), p_value(0.00002), p_value(None)
    ('= 0.042', '< 0.001', '–')
    """
    if is_missing(value):
        return MISSING
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"


def statistic(value: float | None) -> str:
    """A test statistic with two decimals.

    >>> statistic(58.0825), statistic(-6.5e-15), statistic(-1.754)
    ('58.08', '0.00', '−1.75')
    """
    if is_missing(value):
        return MISSING
    text = f"{value:.2f}"
    return text.removeprefix("-") if float(text) == 0 else _typographic(text)


def count(value: float | None) -> str:
    """A count, or a mean of counts, in full below a billion and with three digits from there on.

    >>> count(269322), count(1050.5), count(25427118080.0), count(None)
    ('269,322', '1,050.5', '2.54 × 10¹⁰', '–')
    """
    if is_missing(value):
        return MISSING
    if abs(value) < 1e9:
        return f"{value:,.1f}".removesuffix(".0")
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits} × 10{str(int(exponent)).translate(_SUPERSCRIPTS)}"


def duration(seconds: float | None) -> str:
    """A time span in the unit that suits it.

    >>> duration(5.3), duration(90.0), duration(600.0), duration(90000.0), duration(None)
    ('5.3 s', '90 s', '10 min', '25.0 h', '–')
    """
    if is_missing(seconds):
        return MISSING
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def plain(value: Any) -> str:
    """Content of the plan (a number, a text, a list, a section) as a short text.

    >>> plain({"lr": 0.1, "nesterov": False, "betas": [0.9, 0.999], "clip": None})
    'lr = 0.1; nesterov = no; betas = 0.9, 0.999; clip = none'
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _typographic(f"{value:.6g}")
    if isinstance(value, dict):
        return "; ".join(f"{key} = {plain(content)}" for key, content in value.items())
    if isinstance(value, list):
        return ", ".join(plain(content) for content in value)
    return str(value)


def _typographic(text: str) -> str:
    return text.replace("-", MINUS)
