"""Errors say what, where, expected, got and what to do next."""

from __future__ import annotations

import pytest

from palimpsest.core import errors
from palimpsest.core.errors import PalimpsestError, SeveralErrors, StudyError

ABOUT = {"where": "config/a.yaml:3", "expected": "a number", "got": "'x'", "next": "correct it"}
CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, PalimpsestError) and value is not SeveralErrors
]


@pytest.mark.parametrize("kind", CLASSES)
def test_every_error_prints_its_five_fields(kind):
    """The text holds what is wrong on the first line, and the four other fields by name."""
    assert str(kind("it is wrong", **ABOUT)).splitlines() == [
        "it is wrong",
        "  where:    config/a.yaml:3",
        "  expected: a number",
        "  got:      'x'",
        "  next:     correct it",
    ]


def test_lines_of_a_field_are_indented():
    """A field of several lines stays in its column."""
    text = str(StudyError("w", **ABOUT | {"expected": "one\ntwo"}))
    assert "  expected: one\n            two\n" in text


def test_several_errors_print_all():
    """Several problems are printed one below the other, each whole."""
    problems = [StudyError(what, **ABOUT) for what in ("first", "second")]
    assert str(SeveralErrors(problems)) == f"{problems[0]}\n{problems[1]}"
