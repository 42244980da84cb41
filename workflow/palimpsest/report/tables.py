"""The report's tables as files: CSV for programs and spreadsheets, LaTeX (booktabs) for papers."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from palimpsest.core.numbers import MISSING, hundredfold, is_missing, p_value, points
from palimpsest.core.tables import TABLES
from palimpsest.report import wording
from palimpsest.report.escape import csv_cell, latex
from palimpsest.report.results import Estimate, Result, Results
from palimpsest.report.study import Row, Study
from palimpsest.statistics.wording import bounds, quantity

Cell = str | float | None


def csv_bytes(headings: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """A CSV file; texts that a spreadsheet would run are neutralised, what is missing is an empty cell."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([csv_cell(heading) for heading in headings])
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return file.getvalue().encode()


def latex_table(
    headings: Sequence[str], blocks: Sequence[Sequence[Sequence[str]]], caption: str, n_text_columns: int
) -> bytes:
    """A `table` with booktabs rules (`\\usepackage{booktabs}`): the first columns are text, the others numbers.

    Args:
        headings: one per column.
        blocks: groups of rows, a rule between them.
        caption: the table's caption.
        n_text_columns: how many columns are set flush left.
    """
    columns = "l" * n_text_columns + "r" * (len(headings) - n_text_columns)
    body = "\n  \\midrule\n".join("\n".join(_latex_line(row) for row in block) for block in blocks if block)
    return (
        "% needs \\usepackage{booktabs}\n"
        f"\\begin{{table}}\n  \\centering\n  \\caption{{{latex(caption)}}}\n"
        f"  \\begin{{tabular}}{{{columns}}}\n  \\toprule\n{_latex_line(headings)}\n  \\midrule\n{body}\n"
        "  \\bottomrule\n  \\end{tabular}\n\\end{table}\n"
    ).encode()


def results_csv(results: Results) -> bytes:
    """The results table with mean, SD, interval, worst value and counts in columns of their own."""
    parts = ("mean", "sd", "ci_low", "ci_high", "worst", "n")
    headings = ["method", "role", "n", "n_failed", *wording.NEEDS]
    for column in results.columns:
        units = {**dict.fromkeys(parts, f" ({column.unit})"), "sd": " (pp)", "n": ""}
        headings += [f"{column.key} {part}{units[part]}" for part in parts]
    return csv_bytes(headings, [_result_cells(result) for result in results.rows])


def results_tex(results: Results) -> bytes:
    """The results table as printed: mean ± SD, references under the methods."""
    headings = ["method", *(f"{column.heading}, {column.unit}" for column in results.columns), "n", "failed"]
    blocks = [[_result_texts(result) for result in block] for block in (results.methods, results.references)]
    return latex_table(headings, blocks, results.caption, n_text_columns=1)


def comparisons_csv(study: Study) -> bytes:
    """Every comparison with its numbers."""
    texts = ("comparison", "role", "a", "b", "protocol", "metric", "alternative", "verdict", "reason")
    texts += ("clustered_by", "worst_task", "bootstrap", "diagnostics")
    counts = ("index", "n", "n_failed_a", "n_failed_b", "df", "orders_agreeing", "n_orders")
    statistics = ("alpha", "t", "p", "p_adjusted", "p_equivalence", "p_equivalence_adjusted", "p_wilcoxon")
    differences = ("mean", "sd", "standard_error", "ci_low", "ci_high", "equivalence_margin")
    differences += ("ci_simultaneous_low", "ci_simultaneous_high", "ci_naive_low", "ci_naive_high")
    differences += ("bootstrap_low", "bootstrap_high", "mixed_low", "mixed_high")
    differences += ("mixed_sd_order", "mixed_sd_seed", "mixed_sd_rest")
    differences += ("mean_bound_low", "mean_bound_high", "worst_task_change", "worst_task_ci_low", "worst_task_ci_high")
    headings = [*texts, *counts, *statistics, *(f"{name} (percentage points)" for name in differences)]
    rows = (
        [
            *(_number(row[name]) for name in (*texts, *counts, *statistics)),
            *(hundredfold(row[d]) for d in differences),
            _yes_or_no(row["confirmatory"]),
        ]
        for row in study.comparisons
    )
    return csv_bytes([*headings, "confirmatory"], rows)


def comparisons_tex(comparisons: Sequence[Row]) -> bytes:
    """Comparisons as printed, the primary one first."""
    headings = ["comparison", "A", "B", "quantity", "verdict", "A − B, pp", "interval, pp", "p", "adjusted p", "n"]
    rows = [_comparison_texts(row) for row in comparisons]
    roles = ("primary", "secondary", "exploratory")
    blocks = [[text for row, text in rows if row["role"] == role] for role in roles]
    caption = "Paired comparisons: mean difference A − B in percentage points with its interval."
    if blocks[2]:
        caption += " The last block is exploratory: its p are not adjusted, and it confirms nothing."
    return latex_table(headings, blocks, caption, n_text_columns=5)


def matrices_csv(study: Study) -> bytes:
    """The mean accuracy matrices, one row per cell."""
    rows = [
        [
            *(row[name] for name in ("method", "protocol", "stage", "position", "n")),
            hundredfold(row["mean"]),
            hundredfold(row["sd"]),
        ]
        for row in study.matrix
    ]
    return csv_bytes(["method", "protocol", "stage", "position", "n", "mean (%)", "sd (percentage points)"], rows)


def stages_csv(study: Study) -> bytes:
    """Average accuracy on the tasks seen so far, one row per method and stage."""
    rows = [
        [name, study.protocol, row["index"], row["n"], *(hundredfold(row[c]) for c in ("mean", "sd"))]
        for name in study.lock["methods"]
        for row in study.curve(name, study.protocol, "average_accuracy_at_k")
    ]
    return csv_bytes(["method", "protocol", "stage", "n", "mean (%)", "sd (percentage points)"], rows)


def costs_csv(study: Study) -> bytes:
    """What training cost, counted, one row per method."""
    columns = TABLES["costs"].schema.names
    return csv_bytes(columns, [[row[column] for column in columns] for row in study.costs])


def curves_csv(study: Study) -> bytes:
    """What was recorded during training: learning curves over mini-batches, and curves over samples seen."""
    learning = [
        [name, study.protocol, metric, row["index"], None, *_point(row)]
        for name in study.names("method")
        for metric in ("b_shot", "learning_curve_area", "learning_curve_gain")
        for row in study.curve(name, study.protocol, metric)
    ]
    over_samples = [
        [row["method"], row["protocol"] or study.protocol, row["curve"], None, row["samples_seen"], *_point(row)]
        for row in study.curves
    ]
    headings = ["method", "protocol", "curve", "batch", "samples_seen", "n", "mean (%)", "sd (percentage points)"]
    return csv_bytes(headings, [*learning, *over_samples])


def orders_csv(study: Study) -> bytes:
    """Final accuracy by task, order and position, under every protocol: see `statistics.orders`."""
    about = ("method", "protocol", "by", "task", "level", "n", "n_orders", "n_seeds", "df")
    percents = ("mean", "quantile_low", "quantile_high", "worst", "worst_quantile_low", "worst_quantile_high")
    percents += ("variance_share",)
    differences = ("sd", "order_disparity")
    headings = [*about, *(f"{name} (%)" for name in percents)]
    headings += [f"{name} (percentage points)" for name in differences]
    rows = (
        [
            *(_number(row[name]) for name in about),
            *(hundredfold(row[name]) for name in (*percents, *differences)),
            *(_number(row[name]) for name in ("variance", "note", "missing")),
        ]
        for row in study.orders
    )
    return csv_bytes([*headings, "variance (of fractions)", "note", "missing"], rows)


def _point(row: Row) -> list[Cell]:
    return [row["n"], hundredfold(row["mean"]), hundredfold(row["sd"])]


def decisions_csv(study: Study) -> bytes:
    """Gates, claims, verdict, Pareto front and evidence levels as they are stored: differences are fractions."""
    columns = TABLES["decisions"].schema.names
    return csv_bytes(columns, [[_number(_yes_or_no(row[column])) for column in columns] for row in study.decisions])


def _yes_or_no(value: Cell) -> Cell:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _latex_line(cells: Sequence[str]) -> str:
    return "  " + " & ".join(latex(cell) for cell in cells) + r" \\"


def _result_cells(result: Result) -> list[Cell]:
    declared = ["yes" if result.about[key] else "no" for key in wording.NEEDS]
    cells: list[Cell] = [result.name, result.about["role"], result.n, result.n_failed, *declared]
    for estimate in result.estimates:
        row = estimate.row or {}
        cells += [hundredfold(row.get(part)) for part in ("mean", "sd", "ci_low", "ci_high", "worst")] + [row.get("n")]
    return cells


def _result_texts(result: Result) -> list[str]:
    return [result.name, *(_estimate_text(e) for e in result.estimates), _count(result.n), _count(result.n_failed)]


def _estimate_text(estimate: Estimate) -> str:
    return estimate.mean if estimate.sd == MISSING else f"{estimate.mean} ± {estimate.sd}"


def _comparison_texts(row: Row) -> tuple[Row, list[str]]:
    texts = [row["comparison"], row["a"], row["b"], quantity(row), row["verdict"] or MISSING]
    probabilities = [p_value(row[name]).removeprefix("= ") for name in ("p", "p_adjusted")]
    numbers = [points(row["mean"]), bounds(row["ci_low"], row["ci_high"]), *probabilities, _count(row["n"])]
    return row, [*texts, *numbers]


def _number(value: Cell) -> Cell:
    return None if isinstance(value, float) and is_missing(value) else value


def _count(value: int | None) -> str:
    return MISSING if value is None else str(value)
