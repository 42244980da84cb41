"""A drawn SVG made part of a page: own identifiers, described, in the page's colours."""

from __future__ import annotations

import re
from html import escape

from markupsafe import Markup

from palimpsest.report.figures import FAINT, INK, MUTED, Drawing

_PAGE_COLOURS = {INK: "currentColor", MUTED: "var(--muted)", FAINT: "var(--faint)"}


def inline(drawing: Drawing, name: str) -> Markup:
    """The drawing as an `svg` element whose identifiers begin with `name`, so that several fit on one page."""
    svg = drawing.render("svg", transparent=True).decode()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'xlink:href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-")
    for colour, variable in _PAGE_COLOURS.items():
        svg = svg.replace(colour, variable)
    viewbox = re.search(r'viewBox="([^"]*)"', svg).group(1)
    # The markup is matplotlib's own: names from the study are in it as outlines only, and escaped in the description.
    head = (
        f'<svg viewBox="{viewbox}" role="img" aria-labelledby="{name}-title {name}-text" '
        f'style="max-width: {1.2 * drawing.width:.2f}in">'
        f'<title id="{name}-title">{escape(drawing.title)}</title>'
        f'<desc id="{name}-text">{escape(drawing.description)}</desc>'
    )
    return Markup(head + svg[svg.index(">") + 1 :])
