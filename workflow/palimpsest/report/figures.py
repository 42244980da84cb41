"""Figures: drawn by matplotlib without its global state, the same bytes each time.

Each drawing is a function that fills axes; `render` gives it a figure and returns the files' bytes. Text in a figure is
set as it stands (no mathematics mode), since names come from the study.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from palimpsest.core.numbers import hundredfold, is_missing, percent, points
from palimpsest.metrics._describe import describe
from palimpsest.report import wording
from palimpsest.report.study import ROW, Row, Study
from palimpsest.statistics.wording import interval

INK, MUTED, FAINT, PAPER = "#1c1b19", "#6b675f", "#cfcabf", "#ffffff"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P")
SCALE = "cividis"
_STYLE: dict[str, Any] = {
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "palimpsest",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}


@dataclass(frozen=True)
class Drawing:
    """One figure: what fills its axes, its size in inches, and what it shows, in words for those who cannot see it."""

    draw: Callable[[Axes], None]
    width: float
    height: float
    title: str
    description: str

    def render(self, kind: str, transparent: bool = False) -> bytes:
        """Bytes of the figure as `svg` or `pdf`; no date, no name of a host in them."""
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        with style.context(["default", _STYLE]):
            figure = Figure(figsize=(self.width, self.height), layout="constrained", facecolor=PAPER)
            self.draw(figure.add_subplot())
            file = io.BytesIO()
            figure.savefig(file, format=kind, transparent=transparent, metadata=metadata)
        return file.getvalue()


def forest(study: Study) -> Drawing:
    """Mean differences with their intervals, one row per comparison."""
    rows = [row for row in study.comparisons if not is_missing(row["mean"])]
    margin = hundredfold(study.plan["analysis"]["equivalence_margin"])
    return Drawing(
        lambda axes: _draw_forest(axes, rows, margin),
        width=4.6,
        height=0.8 + 0.55 * max(len(rows), 1),
        title="Mean difference with interval, for each comparison",
        description=" ".join(
            f"{row['comparison']}, {row['a']} minus {row['b']}: "
            f"{points(row['mean'])} percentage points, {interval(row)}."
            for row in rows
        ),
    )


def stages(study: Study) -> Drawing:
    """Average accuracy on the tasks seen so far, after each stage, with a band of one standard deviation."""
    metric = "average_accuracy_at_k"
    curves = {name: study.curve(name, study.protocol, metric) for name in study.lock["methods"]}
    curves = {name: rows for name, rows in curves.items() if len(rows) > 1}
    return _lines(study, curves, "index", "stage k", "Average accuracy on the tasks seen so far, after each stage")


def learning(study: Study) -> Drawing | None:
    """Accuracy on the newest task over its first mini-batches; none where nothing was probed."""
    curves = {name: study.curve(name, study.protocol, "b_shot") for name in study.names("method")}
    title = "Accuracy on the newest task after its first mini-batches, mean over the tasks"
    return _lines(study, curves, "index", "mini-batches b of the task", title) if any(curves.values()) else None


def over_samples(study: Study, curve: str, title: str) -> Drawing | None:
    """A curve over the samples that the runs have seen; none where it was not recorded."""
    curves = {name: study.recorded(name, curve) for name in study.names("method")}
    return _lines(study, curves, "samples_seen", "samples seen", title) if any(curves.values()) else None


def by_position(study: Study, curves: dict[str, list[Row]]) -> Drawing:
    """Final accuracy on the task at each position."""
    return _lines(study, curves, "position", "position of the task", "Final accuracy by the position of the task")


def _lines(study: Study, curves: dict[str, list[Row]], x: str, x_label: str, title: str) -> Drawing:
    """A line for each method and reference, with a band of one standard deviation; in words the first and last point.

    Args:
        study: says which are references, and what chance is.
        curves: rows of a summary, ascending.
        x: the column along the axis.
        x_label: what it is called.
        title: of the figure.
    """
    curves = {name: rows for name, rows in curves.items() if rows}
    return Drawing(
        lambda axes: _draw_lines(axes, curves, x, x_label, set(study.names("reference")), wording.chance(study)),
        width=4.6,
        height=3.2,
        title=title,
        description=" ".join(f"{name}: {_in_words(rows)} percent." for name, rows in curves.items()),
    )


def _in_words(rows: list[Row]) -> str:
    """All means of a short line, of a long one its first and its last."""
    shown = [percent(row["mean"]) for row in rows]
    return ", ".join(shown) if len(shown) <= 12 else f"from {shown[0]} to {shown[-1]}"


def matrix(study: Study, method: str) -> Drawing:
    """Mean accuracy after each stage (rows) on the task at each position (columns), the diagonal outlined."""
    cells, n = study.cells(method, study.protocol), study.n_tasks
    side = min(6.0, max(2.6, 0.44 * n))
    lines = (
        f"After stage {k}: " + ", ".join(percent(cells[k, j]["mean"]) if (k, j) in cells else "–" for j in _places(n))
        for k in _places(n)
    )
    return Drawing(
        lambda axes: _draw_matrix(axes, cells, n),
        width=side + 0.55,
        height=side + 0.3,
        title=f"Accuracy matrix of {method}, percent",
        description=". ".join(lines) + ".",
    )


def scale() -> Drawing:
    """The colour scale that all accuracy matrices share."""
    return Drawing(
        _draw_scale, width=3.2, height=0.55, title="Colour scale", description="Dark is 0 percent, light 100 percent."
    )


def _draw_forest(axes: Axes, rows: list[Row], margin: float | None) -> None:
    for place, row in enumerate(rows):
        if margin is not None:
            axes.add_patch(Rectangle((-margin, -place - 0.2), 2 * margin, 0.4, facecolor=FAINT, linewidth=0, zorder=0))
        axes.plot([0, 0], [-place - 0.2, -place + 0.2], color=MUTED, linewidth=0.8)
        _draw_interval(axes, -place, row)
        label = f"{row['comparison']}: {row['a']} − {row['b']}, {describe(row['metric']).label}"
        axes.annotate(
            _short(label, 66),
            (0.0, -place + 0.28),
            xycoords=("axes fraction", "data"),
            fontsize=8,
            color=INK,
            va="bottom",
        )
    axes.set_ylim(-len(rows) + 0.45, 0.75)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.margins(x=0.08)
    axes.set_xlabel("mean difference, percentage points")


def _draw_interval(axes: Axes, height: float, row: Row) -> None:
    mean, low, high = (hundredfold(row[column]) for column in ("mean", "ci_low", "ci_high"))
    primary = row["role"] == "primary"
    colour = COLOURS[0] if primary else MUTED
    ends = [mean if end is None else end for end in (low, high)]
    axes.plot(ends, [height, height], color=colour, linewidth=2.2 if primary else 1.4, solid_capstyle="butt")
    for end, arrow in ((low, "<"), (high, ">")):
        marker = "|" if end is not None else arrow
        place = mean if end is None else end
        if not (low is None and high is None):
            axes.plot([place], [height], marker=marker, color=colour, markersize=6)
    marker = {"marker": "s" if primary else "o", "markersize": 6 if primary else 5, "gid": f"comparisons-{row[ROW]}"}
    axes.plot([mean], [height], color=colour, **marker, **({"mfc": PAPER} if row["role"] == "exploratory" else {}))


def _draw_lines(
    axes: Axes,
    curves: dict[str, list[Row]],
    x: str,
    x_label: str,
    references: set[str],
    chance: tuple[float, str] | None,
) -> None:
    first = min((rows[0][x] for rows in curves.values()), default=0)
    last = max((rows[-1][x] for rows in curves.values()), default=1)
    ends = []
    for place, (name, rows) in enumerate(curves.items()):
        colour = MUTED if name in references else COLOURS[place % len(COLOURS)]
        _draw_line(axes, rows, x, colour, "" if name in references else MARKERS[place % len(MARKERS)])
        ends.append((hundredfold(rows[-1]["mean"]), name, colour))
    if chance is not None:
        axes.axhline(100 * chance[0], color=MUTED, linewidth=0.8, linestyle=(0, (1, 2)))
        ends.append((100 * chance[0], chance[1], MUTED))
    for height, (_, name, colour) in zip(_spread([end[0] for end in ends]), sorted(ends), strict=True):
        axes.annotate(
            _short(name), (1.015, height), xycoords=("axes fraction", "data"), color=colour, va="center", fontsize=8.5
        )
    margin = 0.025 * max(last - first, 1)
    axes.set(xlim=(first - margin, last + margin), ylim=(0, 102), xlabel=x_label, ylabel="accuracy, %")
    if last - first <= 20:
        axes.set_xticks(range(first, last + 1))
    axes.grid(axis="y", color=FAINT, linewidth=0.5)
    axes.set_axisbelow(True)


def _draw_line(axes: Axes, rows: list[Row], x: str, colour: str, marker: str) -> None:
    places = [row[x] for row in rows]
    means = [hundredfold(row["mean"]) for row in rows]
    spreads = [hundredfold(row["sd"]) or 0.0 for row in rows]
    axes.plot(
        places,
        means,
        color=colour,
        marker=marker if len(rows) <= 30 else "",
        markersize=4.5,
        linewidth=1.5,
        linestyle="-" if marker else (0, (5, 2)),
        clip_on=False,
    )
    low = [mean - spread for mean, spread in zip(means, spreads, strict=True)]
    high = [mean + spread for mean, spread in zip(means, spreads, strict=True)]
    axes.fill_between(places, low, high, color=colour, alpha=0.16, linewidth=0)


def _draw_matrix(axes: Axes, cells: dict[tuple[int, int], Row], n: int) -> None:
    colours = mpl.colormaps[SCALE]
    for k in _places(n):
        for j in _places(n):
            mean = cells[k, j]["mean"] if (k, j) in cells else None
            face = "none" if mean is None else colours(mean)
            edge, width = (INK, 1.8) if j == k else (FAINT if mean is None else "none", 0.6)
            name = f"matrix_summary-{cells[k, j][ROW]}" if (k, j) in cells else None
            square = Rectangle((j - 0.44, k - 0.44), 0.88, 0.88, facecolor=face, edgecolor=edge, linewidth=width)
            axes.add_patch(square).set_gid(name)
            if n <= 12:
                colour = MUTED if mean is None else ("#fdfdfd" if mean < 0.55 else "#111111")
                axes.annotate(percent(mean), (j, k), color=colour, ha="center", va="center", fontsize=8.5)
    axes.set(xlim=(0.4, n + 0.6), ylim=(n + 0.6, 0.4), aspect="equal", xlabel="task at position j")
    axes.set_ylabel("after stage k")
    ticks = range(1, n + 1) if n <= 12 else range(1, n + 1, -(-n // 10))
    axes.set_xticks(ticks)
    axes.set_yticks(ticks)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_scale(axes: Axes) -> None:
    colours = mpl.colormaps[SCALE]
    for step in range(50):
        axes.add_patch(Rectangle((2 * step, 0), 2.05, 1, facecolor=colours((step + 0.5) / 50), linewidth=0))
    axes.set(xlim=(0, 100), ylim=(0, 1), xlabel="accuracy, %")
    axes.set_yticks([])
    axes.spines[:].set_visible(False)


def _places(n: int) -> range:
    return range(1, n + 1)


def _spread(heights: list[float], gap: float = 6.0) -> list[float]:
    """Heights of labels, in ascending order, moved apart to at least `gap`, and down again below the top."""
    placed: list[float] = []
    for height in sorted(heights):
        placed.append(max(height, placed[-1] + gap) if placed else height)
    ceiling = 100.0
    for place in reversed(range(len(placed))):
        placed[place] = min(placed[place], ceiling)
        ceiling = placed[place] - gap
    return placed


def _short(name: str, length: int = 26) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"
