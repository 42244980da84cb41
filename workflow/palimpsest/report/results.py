"""The results table: one row per method, mean ± SD over its units, with a note wherever a number is missing."""

from __future__ import annotations

from dataclasses import dataclass, field

from palimpsest.core.matrix import read_as
from palimpsest.core.numbers import is_missing, percent, points
from palimpsest.metrics._describe import describe
from palimpsest.report.study import Row, Study

IN_TASK = "task_incremental"
SHOWN = (
    "average_accuracy",
    "forgetting",
    "backward_transfer",
    "learning_accuracy",
    "forward_transfer_isolated",
    "intransigence_isolated",
    "intransigence_joint",
)
WHERE_KNOWN = {"intransigence_joint"}


@dataclass(frozen=True)
class Column:
    """One column: a metric under a protocol."""

    metric: str
    protocol: str
    heading: str
    remark: str = ""

    @property
    def key(self) -> str:
        """Name of the column in files."""
        return f"{self.metric} {self.protocol}"

    @property
    def unit(self) -> str:
        """`%` or `pp`."""
        return "%" if describe(self.metric).is_accuracy else "pp"

    def text(self, value: float | None) -> str:
        """A value of the metric in its unit."""
        return percent(value) if describe(self.metric).is_accuracy else points(value)


@dataclass(frozen=True)
class Estimate:
    """One cell: a mean and an SD as printed, the summary they come from, and the mark of a footnote."""

    mean: str
    sd: str
    row: Row | None
    note: str = ""


@dataclass(frozen=True)
class Result:
    """One row: a method or a reference."""

    name: str
    about: Row
    n: int
    n_failed: int
    estimates: list[Estimate]


@dataclass
class Notes:
    """Footnotes, each text once, marked a, b, c, … in the order of their first use."""

    texts: list[str] = field(default_factory=list)

    def mark(self, text: str) -> str:
        """The mark of a footnote, which is added if it is new."""
        if text not in self.texts:
            self.texts.append(text)
        return _letters(self.texts.index(text))

    @property
    def marked(self) -> list[tuple[str, str]]:
        """Every mark with its text."""
        return [(_letters(place), text) for place, text in enumerate(self.texts)]


@dataclass(frozen=True)
class Results:
    """The table: methods, and under them the references they are measured against."""

    columns: list[Column]
    methods: list[Result]
    references: list[Result]
    notes: Notes
    caption: str

    @property
    def rows(self) -> list[Result]:
        """All rows in the order of the page."""
        return [*self.methods, *self.references]


def results(study: Study) -> Results:
    """The results table of a study."""
    columns, notes = _columns(study), Notes()
    methods = [_result(study, name, columns, notes) for name in study.names("method")]
    references = [_result(study, name, columns, notes) for name in study.names("reference")]
    caption = (
        "Mean ± standard deviation over units. Accuracies in percent (%); differences of accuracies, and the "
        "standard deviations of both, in percentage points (pp)."
    )
    return Results(columns, methods, references, notes, caption)


def _columns(study: Study) -> list[Column]:
    columns = []
    for name in SHOWN:
        known = any(_is_known(study.scalar(method, study.protocol, name)) for method in study.lock["methods"])
        if name in WHERE_KNOWN and not known:
            continue
        columns.append(Column(name, study.protocol, describe(name).label))
        if name == "average_accuracy" and IN_TASK in read_as(study.protocol) and study.protocol != IN_TASK:
            columns.append(
                Column(name, IN_TASK, "average accuracy, in-task", "same predictions, choice within the task")
            )
    return columns


def _result(study: Study, name: str, columns: list[Column], notes: Notes) -> Result:
    whole = study.scalar(name, study.protocol, "average_accuracy")
    estimates = [_estimate(study, name, column, whole, notes) for column in columns]
    n_failed = next((estimate.row["n_failed"] for estimate in estimates if estimate.row), 0)
    n_runs = sum(run["method"] == name for run in study.lock["runs"])
    return Result(name, study.lock["methods"][name], n_runs - n_failed, n_failed, estimates)


def _estimate(study: Study, name: str, column: Column, whole: Row | None, notes: Notes) -> Estimate:
    row = study.scalar(name, column.protocol, column.metric)
    reasons = study.reasons.get((name, column.protocol, column.metric), ())
    if not _is_known(row):
        reference = study.lock["methods"][name]["role"] == "reference"
        note = notes.mark("; ".join(reasons) or ("not defined for this reference" if reference else "not measured"))
        return Estimate(column.text(None), percent(None), row, note)
    is_partial = whole is not None and row["n"] < whole["n"]
    note = notes.mark(f"over {row['n']} units only: {'; '.join(reasons) or 'not measured'}") if is_partial else ""
    return Estimate(column.text(row["mean"]), percent(row["sd"]), row, note)


def _is_known(row: Row | None) -> bool:
    return row is not None and not is_missing(row["mean"])


def _letters(place: int) -> str:
    letter = "abcdefghijklmnopqrstuvwxyz"[place % 26]
    return letter if place < 26 else _letters(place // 26 - 1) + letter
