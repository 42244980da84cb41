"""The report in a browser: it renders, and nothing is wider than a phone."""

from __future__ import annotations

import json
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

import pytest

from fabricated_study import fabricate
from palimpsest.report.build import build, build_costs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
MEASURE = """
<script>
addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument, wide = [];
  const inScroll = element => element.parentElement.closest(".scroll");
  for (const element of page.body.querySelectorAll("*:not(svg *)"))
    if (!inScroll(element) && element.getBoundingClientRect().right > innerWidth + 0.5) wide.push(element.tagName);
  const figures = [...page.querySelectorAll("figure svg")].map(svg => svg.getBoundingClientRect().height);
  document.title = JSON.stringify({
    width: page.documentElement.scrollWidth, wide, figures, heading: page.querySelector("h1").textContent});
});
</script>
"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian package `chromium`)")


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    job = fabricate(tmp_path_factory.mktemp("study"), {"ewc": "a_method_with_quite_a_long_name_to_break"})
    build(job)
    build_costs(job)
    return job.study / "report/index.html"


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_renders_and_nothing_overflows(page, width, tmp_path):
    measured = _measure(page, width, tmp_path)
    assert measured["heading"] == "Does rehearsal keep digits apart?"
    assert measured["wide"] == []
    assert measured["width"] <= width
    assert len(measured["figures"]) == 12
    assert min(measured["figures"]) > 20


def test_the_page_of_costs_does_not_overflow(page, tmp_path):
    measured = _measure(page.with_name("costs.html"), 400, tmp_path)
    assert (measured["heading"], measured["wide"]) == ("Does rehearsal keep digits apart?", [])


def _measure(page: Path, width: int, folder: Path) -> dict:
    # A frame is as narrow as it is told to be, a browser window is not.
    frame = f'<iframe width="{width}" height="900" style="border:0" srcdoc="{escape(page.read_text())}"></iframe>'
    script = MEASURE.replace("innerWidth", str(width))
    harness = folder / "harness.html"
    harness.write_text(f"<!DOCTYPE html><meta charset=utf-8><title>not measured</title>{frame}{script}")
    command = [CHROMIUM, *QUIET, f"--user-data-dir={folder / 'profile'}", "--dump-dom", harness.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = done.stdout.split("<title>")[1].split("</title>")[0]
    return json.loads(unescape(title))
