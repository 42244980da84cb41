"""The report on a study with fabricated numbers (see `fabricated_study`)."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
import xml.etree.ElementTree as ET
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import typer
from markupsafe import Markup

from fabricated_study import FAILURE, NULL_REASON, fabricate, lock
from palimpsest.cli.stages import report as stage
from palimpsest.core import code, numbers
from palimpsest.core.artifact import Job, read_record, record_path
from palimpsest.core.errors import ArtifactError
from palimpsest.metrics import METRICS
from palimpsest.metrics._describe import describe
from palimpsest.plan.journal import append_to_journal
from palimpsest.report import escape, figures, orders, tables, wording
from palimpsest.report.build import build, build_costs
from palimpsest.report.page import page
from palimpsest.report.results import results
from palimpsest.report.study import read

HOSTILE = {"ewc": "<script>alert(1)</script>", "finetune": "=cmd()", "replay": "a_b%$x^2$"}
VOID = {"meta", "br", "hr", "img", "input", "link", "use", "path"}


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    opened = fabricate(tmp_path_factory.mktemp("study"))
    build(opened)
    build_costs(opened)
    return opened


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    opened = fabricate(tmp_path_factory.mktemp("hostile"), HOSTILE)
    build(opened)
    return opened.study / "report"


@pytest.fixture(scope="module")
def html(job) -> str:
    return (job.study / "report/index.html").read_text()


class Balance(HTMLParser):
    """Every element that opens closes, in order; collects identifiers, references to them, and scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: set[str] = set()
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        about = dict(attrs)
        self.scripts += tag == "script"
        self.ids += [about["id"]] if "id" in about else []
        self.targets |= {value[1:] for key, value in attrs if key == "href" and value.startswith("#")}
        self.targets |= set((about.get("aria-labelledby") or "").split())
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def parsed(page: str) -> Balance:
    parser = Balance()
    parser.feed(page)
    parser.close()
    return parser


def rows(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def files(report: Path) -> dict[str, bytes]:
    return {str(path.relative_to(report)): path.read_bytes() for path in sorted(report.rglob("*")) if path.is_file()}


def visible(page: str) -> str:
    body = re.sub(r"<(style|svg).*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", "", body).split())


def test_two_builds_give_the_same_bytes(job, tmp_path):
    build(fabricate(tmp_path / "elsewhere"))
    made = files(job.study / "report")
    assert files(tmp_path / "elsewhere/report") == {name: made[name] for name in made if name != "costs.html"}


def test_the_page_is_well_formed_and_its_identifiers_are_unique(html):
    page = parsed(html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.targets <= set(page.ids)


def test_the_page_fetches_nothing_and_runs_nothing(html):
    assert not re.search(r"\b(src|srcset|action)=", html)
    assert set(re.findall(r'href="([^#"]*)', html)) <= {"", "costs.html"}
    assert not re.search(r"@import|url\((?!#)", html)
    assert parsed(html).scripts == 0


def test_no_date_and_no_place_of_this_machine_is_in_any_file(job):
    for name, content in files(job.study / "report").items():
        assert str(job.study).encode() not in content, name
        assert b"CreationDate" not in content, name
        assert b"<dc:date>" not in content, name


def test_the_sampling_error_of_probes_is_stated(html):
    """Probes of 50 samples: 7.1 points of standard error at an accuracy of one half, 13.9 for a 95 % interval."""
    section = visible(html[html.index('<section id="recorded"') :].split("</section>")[0])
    assert "Each probe is on 50 samples of a task, drawn once" in section
    assert "a standard error of 7.1 percentage points, a 95% interval of ± 13.9" in section


def test_learning_curves_stream_and_what_they_cost_are_shown(html, job):
    """Z_0, Z_10, LCA_10 and the gain of each method, its prequential accuracy, and the FLOPs of looking."""
    section = html[html.index('<section id="recorded"') :].split("</section>")[0]
    assert "LCA<sub>10</sub>" in section
    for figure in ("learning", "stream", "held-out-new", "held-out-old", "held-out-all"):
        assert f'id="{figure}-title"' in section
    assert "5.0" in re.search(r"Cost of looking.*", section, re.DOTALL).group()
    found = rows((job.study / "report/tables/curves.csv").read_bytes())
    assert {row["curve"] for row in found} >= {"b_shot", "learning_curve_area", "stream", "old", "new", "all"}


def test_a_study_that_records_nothing_has_no_such_section(tmp_path):
    """Neither the section nor a link to it, and no empty figure."""
    opened = fabricate(tmp_path / "study")
    plan = lock({name: name for name in ("replay", "ewc", "finetune", "joint", "isolated", "random_init")})
    plan["study"].update(probes=None, prequential=False)
    opened.write_json("plan/lock.json", plan, "lock")
    build(opened)
    page = (opened.study / "report/index.html").read_text()
    assert "While they trained" not in page
    assert 'id="learning' not in page


def test_figures_exist_in_both_kinds(job):
    folder = job.study / "report/figures"
    names = {path.stem for path in folder.iterdir()}
    recorded = {"learning", "stream", "held-out-new", "held-out-old", "held-out-all"}
    matrices = {"matrix-ewc", "matrix-finetune", "matrix-replay"}
    assert names == {"forest", "stages", "positions", "scale", *matrices, *recorded}
    for name in names:
        ET.fromstring((folder / f"{name}.svg").read_bytes())
        assert (folder / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_the_page_of_costs_tells_what_was_interrupted(job):
    page = (job.study / "report/costs.html").read_text()
    text = visible(page.replace("<td", " <td"))
    assert (parsed(page).open, parsed(page).scripts) == ([], 0)
    expected = "replay 1 3 min 3 min 5.0 400 1 0 1 0 1"
    assert expected in text, "1 run, two attempts of 90 s, 5 % probes, 400 MiB, one failed, one resumed"
    assert "failed: OSError: [Errno 28] &lt;b&gt;No space&lt;/b&gt; left" in text
    assert "finetune 0 0.0 s – – – 0 0 0 0 0" in text


def test_the_page_of_costs_is_outside_the_ledger(job):
    """It comes from telemetry: no record, so no shard of the ledger and no root depends on it."""
    assert (job.study / "report/costs.html").is_file()
    assert not record_path(job.study, "report/costs.html").exists()


def test_every_file_has_a_record_with_the_tables_as_parents(job):
    for name in files(job.study / "report").keys() - {"costs.html"}:
        parents = read_record(job.study, f"report/{name}")["parents"]
        assert {"plan/lock.json", "aggregate/summary.parquet", "audit/root.json"} <= parents.keys()


def test_names_that_are_html_are_shown_and_not_run(hostile):
    page = (hostile / "index.html").read_text()
    assert parsed(page).scripts == 0
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_names_are_escaped_in_latex(hostile):
    tex = (hostile / "tables/results.tex").read_text()
    assert r"a\_b\%\$x\textasciicircum{}2\$" in tex
    assert r"\textless{}script\textgreater{}" in tex
    body = [line for line in tex.splitlines() if line.endswith(r"\\")]
    assert len({line.replace(r"\&", "").count("&") for line in body}) == 1


def test_names_that_are_formulas_are_neutralised_in_csv_and_numbers_are_not(hostile):
    table = rows((hostile / "tables/results.csv").read_bytes())
    assert "'=cmd()" in {row["method"] for row in table}
    transfer = [row["backward_transfer class_incremental mean (pp)"] for row in table[:3]]
    assert all(float(value) < 0 for value in transfer)


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\t=1", "  =1"])
def test_every_start_of_a_formula_is_neutralised(text):
    assert escape.csv_cell(text) == "'" + text


def test_names_of_figures_are_harmless_and_distinct():
    stems = escape.file_stems(["../x", "a/b", "a?b"])
    assert len(set(stems.values())) == 3
    assert not any("/" in stem or "." in stem for stem in stems.values())


def test_failed_runs_are_counted(job, html):
    assert '<td class="number failed">1</td>' in html
    assert {row["method"]: row["n_failed"] for row in rows((job.study / "report/tables/results.csv").read_bytes())}[
        "ewc"
    ] == "1"


def test_null_is_a_dash_with_its_reason_and_never_zero(job, html):
    assert NULL_REASON in html
    joint = re.search(r'<th scope="row">joint.*?</tr>', html, re.DOTALL).group()
    assert re.findall(r'<td class="number"[^>]*>([^<]*)', joint)[2] == "–"
    table = {row["method"]: row for row in rows((job.study / "report/tables/results.csv").read_bytes())}
    assert table["joint"]["forgetting class_incremental mean (pp)"] == ""


def test_a_cell_that_was_not_measured_is_a_dash_in_the_matrix(job):
    study = read(job)
    study.matrix[:] = [row for row in study.matrix if (row["stage"], row["position"]) != (1, 5)]
    drawing = figures.matrix(study, "replay")
    assert drawing.description.split(".  ")[0].split(". After")[0].endswith("–")
    assert drawing.render("svg")


def test_percent_and_percentage_points_are_told_apart(html):
    head = re.search(r"<thead>.*?</thead>", html, re.DOTALL).group()
    units = dict(re.findall(r'class="number">([^<]*)<span class="unit">([^<]*)', head))
    assert units["average accuracy"] == units["learning accuracy"] == "%"
    assert {units[name] for name in ("forgetting", "backward transfer", "intransigence (isolated)")} == {"pp"}
    assert "percentage points" in html


def test_the_limits_and_the_root_are_stated(html):
    text = visible(html)
    assert "conditional on the study's benchmark seed (7)" in text.replace("&#39;", "'")
    assert "not independently time-stamped: no commit of it is known" in text
    assert "ef" * 32 in text
    assert "Underpowered" in text


def test_the_data_is_described_by_the_footer_of_its_table(html):
    text = visible(html)
    assert f"mnist_5k.csv.gz, SHA-256 {'ab' * 32}" in text
    assert "Exact duplicates: 3 within a split, 0 across splits." in text
    assert "CC BY-SA 3.0" in text


def test_the_stage_writes_the_report_from_the_command_line(tmp_path):
    job = fabricate(tmp_path)
    job.write_json(
        "plan/code/rules/report.json", code.program("palimpsest.cli.stages.report", METRICS.modules()), "code"
    )
    app = typer.Typer()
    app.command("report")(stage.command)
    app(["--study", str(tmp_path), "--code", "plan/code/rules/report.json"], standalone_mode=False)
    assert (tmp_path / "report/index.html").is_file()


def test_templates_and_style_are_part_of_the_program():
    names = code.program("palimpsest.cli.stages.report")["files"]
    assert {"palimpsest/report/page.html.j2", "palimpsest/report/style.css"} <= names.keys()
    assert not any(name.startswith("palimpsest.training") for name in names)


def test_a_demonstration_says_so_before_anything_else(html):
    assert html.index("A demonstration with fabricated numbers") < html.index('id="verdict"')


def test_optional_parts_of_the_lock_may_be_absent(tmp_path):
    job = fabricate(tmp_path)
    content = lock({name: name for name in ("replay", "ewc", "finetune", "joint", "isolated", "random_init")})
    del content["power"], content["amendments"], content["study"]["title"]
    job.write_json("plan/lock.json", content, "lock")
    build(job)
    page = (tmp_path / "report/index.html").read_text()
    assert "<h1>fabricated</h1>" in page
    assert "Underpowered" not in page


def amended(folder: Path) -> str:
    """The page of a study that was amended once before and once after its first evaluation."""
    job = fabricate(folder)
    content = lock({name: name for name in ("replay", "ewc", "finetune", "joint", "isolated", "random_init")})
    alpha = {"field": ["study", "analysis", "alpha"], "old": 0.1, "new": 0.05}
    added = {"field": ["study", "analysis", "secondary", "late"], "new": {"name": "late", "a": "<b>", "b": "y"}}
    runs = [{"field": ["runs", f"ewc/s{n}"], "new": {"run": f"ewc/s{n}"}} for n in range(3)]
    early = {"date": "2026-01-02T10:00:00+00:00", "reason": "a slip", "before": "a" * 64, "after_results": False}
    late = {"date": "2026-01-04T10:00:00+00:00", "reason": "<i>asked", "before": "b" * 64, "after_results": True}
    content["amendments"] = [{**early, "changes": [alpha]}, {**late, "changes": [added, *runs]}]
    job.write_json("plan/lock.json", content, "lock")
    journal = folder / "telemetry/journal.jsonl"
    journal.parent.mkdir(exist_ok=True)
    for day, event, version in ((1, "locked", "0"), (1, "locked", "a"), (3, "evaluation", "b")):
        line = {"date": f"2026-01-0{day}T09:30:00+00:00", "event": event, "lock": version * 64}
        append_to_journal(journal, {**line, "programs": {}, "runs": []})
    commit = {"commit": "c" * 40, "committed": "2026-01-01T10:00:00+00:00", "branches": ["origin/main"]}
    publication = {"a" * 64: commit, "b" * 64: {**commit, "branches": []}, content["hash"]: {}}
    (folder / "telemetry/publication.json").write_text(json.dumps(publication))
    build(job)
    return visible((folder / "report/index.html").read_text())


def test_the_history_of_the_plan_is_told(tmp_path):
    """When it was locked and first used, each amendment with date, reason, changes, and whether results existed."""
    text = amended(tmp_path)
    assert "amended 2 times" in text
    assert "Locked on 2026-01-01 09:30 UTC; first evaluated on test data on 2026-01-03 09:30 UTC" in text
    assert "The journal knows 1 other plan that was locked under this name." in text
    assert "2026-01-02 10:00 UTC, before any result. a slip analysis.alpha0.1 → 0.05" in text
    assert (
        "2026-01-04 10:00 UTC, after results existed. &lt;i&gt;asked analysis.secondary.lateadded: a = &lt;b&gt;; b = y"
        in text
    )
    assert "runsadded: 3 more" in text


def test_whether_the_lock_is_independently_time_stamped_is_told(tmp_path):
    """For the plan as it was locked and after each amendment: only a published commit is evidence."""
    text = amended(tmp_path)
    named = "commit cccccccccccc of 2026-01-01 10:00 UTC"
    assert f"plan as it was lockedaaaaaaaaaaaa, {named} is published in origin/main" in text
    assert f"after amendment 1bbbbbbbbbbbb, not independently time-stamped: {named} was never published" in text
    assert "after amendment 21a2b1a2b1a2b, not independently time-stamped: no commit of it is known" in text


def test_what_is_exploratory_for_good_says_why(job):
    """In the verdict, in the table of comparisons, and for spreadsheets."""
    study = read(job)
    mark = "exploratory for good: amendment 1 changed analysis.alpha after results existed"
    study.comparisons[0].update(confirmatory=False, reason=mark)
    text = visible(page(study, results(study), {name: Markup() for name in ("forest", "stages", "scale")}, {}).decode())
    assert text.count(mark) == 2
    assert f"primary, exploratory; {mark}" in text
    (primary, *_) = rows(tables.comparisons_csv(study))
    assert (primary["confirmatory"], primary["reason"]) == ("no", mark)


def test_a_table_that_was_changed_is_refused(tmp_path):
    job = fabricate(tmp_path)
    (tmp_path / "audit/root.json").write_text('{"root": "00", "shards": {}}')
    with pytest.raises(ArtifactError, match="not the one that was written"):
        build(job)


def test_sensitivity_checks_and_bounds_of_failed_runs_are_shown_and_said_to_be_no_verdict(html):
    text = visible(html)
    assert "none of these checks changes one" in text
    assert "5 of 5" in text
    assert "t2: +59.7 (+53.4 to +66.0) percentage points" in text
    assert "mean −8.7 to +6.3 percentage points" in text


def test_costs_are_counted_per_method_in_the_order_of_the_plan(job, html):
    page = html[html.index('<section id="costs"') :]
    order = list(read(job).lock["methods"])
    shown = re.findall(r'<th scope="row">(\w+)</th><td class="number"[^>]*>([^<]*)</td>', page)[: len(order)]
    assert [name for name, _ in shown] == order
    assert dict(shown)["replay"] == "2.54 × 10¹⁰"
    assert dict(shown)["random_init"] == "0"
    table = rows((job.study / "report/tables/costs.csv").read_bytes())
    assert [row["method"] for row in table] == order


def test_every_metric_on_the_page_is_defined_with_its_reference(html):
    glossary = html[html.index('id="metrics"') :]
    for name in ("average_accuracy", "forgetting", "backward_transfer", "intransigence_isolated"):
        described = describe(name)
        assert f"<code>{name}</code>" in glossary
        assert unescape(glossary).count(described.definition) == 1
        assert described.reference in unescape(glossary)


def test_a_comparison_without_interval_is_still_drawn(job):
    study = read(job)
    study.comparisons[0].update(ci_low=None, ci_high=None, p=None, t=None)
    assert figures.forest(study).render("svg")
    assert b"no interval" in figures.forest(study).description.encode()
    assert tables.comparisons_csv(study)


@pytest.mark.parametrize(("mask", "expected"), [("all", 0.1), ("current", 0.5), ("seen", None)])
def test_chance_is_given_only_where_the_number_of_outputs_is_fixed(job, mask, expected):
    study = read(job)
    study.plan["evaluation_mask"] = mask
    found = wording.chance(study)
    assert (found and found[0]) == expected


def test_labels_at_the_ends_of_curves_keep_apart():
    heights = figures._spread([99.0, 98.0, 97.0, 10.0])
    assert heights == sorted(heights)
    assert all(b - a >= 6 for a, b in itertools.pairwise(heights))
    assert heights[-1] <= 100


def test_nan_is_missing_too():
    assert numbers.percent(float("nan")) == numbers.points(float("nan")) == "–"


def test_a_failed_run_is_named_with_stage_step_and_reason(html):
    """Nobody has to look for why a run is missing from the means."""
    table = html[html.index("<h3>Failed runs</h3>") : html.index('<section id="comparisons"')]
    assert "s4-o4" in table
    assert FAILURE in table
    assert ">141<" in table


def test_exploratory_comparisons_stand_in_a_list_of_their_own(html):
    """Not in the table of confirmatory ones, and without an adjusted p; and without any there is no such list."""
    second, third = (html.index(f"<b>{name}.</b>") for name in ("Table 2", "Table 3"))
    apart = html.index("<h3>Exploratory comparisons</h3>")
    assert second < html.index('<th scope="row">forgetting<') < apart < html.index('<th scope="row">curious<') < third
    assert html[apart:third].count('<th scope="row">') == 1
    assert ("adjusted p" in html[second:apart], "adjusted p" in html[apart:third]) == (True, False)


def test_a_study_without_exploratory_comparisons_and_orders_has_no_empty_parts(job):
    study = read(job)
    study.comparisons[:] = [row for row in study.comparisons if row["role"] != "exploratory"]
    study.orders.clear()
    names = ("forest", "stages", "scale")
    text = page(study, results(study), {name: Markup() for name in names}, {}).decode()
    assert "Exploratory" not in text
    assert 'id="orders"' not in text
    assert orders.drawing(study) is None


def test_the_orders_of_a_method_are_shown_task_by_task_and_as_a_file(job, html):
    """Disparity, its maximum and mean, the shares of variance, and how often the bootstrap covers."""
    study = read(job)
    section = html[html.index('<section id="orders"') : html.index('<section id="costs"')]
    stored = {(row["by"], row["task"], row["level"]): row for row in study.orders_of("replay")}
    (shown,) = re.findall(rf'id="orders-{stored["all", "t1", None]["row_number"]}".*?</tr>', section, re.DOTALL)
    cells = re.findall(r'<td class="number">([^<]*)', shown)
    assert cells[4] == numbers.percent(stored["all", "t1", None]["order_disparity"])
    shares = [stored["variance", "t1", source]["variance_share"] for source in ("order", "seed", "rest")]
    assert cells[5:] == [*(numbers.percent(share, 0) for share in shares), "10"]
    highest, average = (numbers.percent(stored[by, None, None]["order_disparity"]) for by in ("maximum", "mean"))
    text = visible(section)
    assert f"replay: 5 orders of 2 seeds; disparity at most {highest}, on average {average} pp" in text
    assert "the 95 % interval covered the true value in 39 % of studies" in text
    table = rows((job.study / "report/tables/orders.csv").read_bytes())
    assert len(table) == len(study.orders)
    assert float(table[0]["mean (%)"]) == numbers.hundredfold(study.orders[0]["mean"])


def test_the_position_curve_has_every_position(job):
    """The mean over all tasks at each, in words too."""
    study = read(job)
    by_level = {row["level"]: row["mean"] for row in study.orders_of("ewc") if row["by"] == "any task by position"}
    means = ", ".join(numbers.percent(by_level[str(position)]) for position in range(1, 6))
    assert f"ewc: {means} percent." in orders.drawing(study).description
