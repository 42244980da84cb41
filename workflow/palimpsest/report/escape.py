"""Names that come from a study are text, in LaTeX and in a spreadsheet too. (In HTML the templates see to it.)"""

from __future__ import annotations

import re

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "–": "--",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "δ": r"$\delta$",
    "α": r"$\alpha$",
    "\n": " ",
    "\r": " ",
    "\t": " ",
}
_LATEX_PATTERN = re.compile("|".join(re.escape(character) for character in _LATEX))
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def latex(text: str) -> str:
    r"""Text that LaTeX prints as it stands, whatever it holds.

    >>> print(latex("a_b% ~ \\input{x}"))
    a\_b\% \textasciitilde{} \textbackslash{}input\{x\}
    """
    return _LATEX_PATTERN.sub(lambda match: _LATEX[match.group()], text)


def csv_cell(value: str | float | None) -> str | float:
    """A cell that no spreadsheet runs as a formula: such a text gets a leading apostrophe, a number stays a number.

    >>> csv_cell("=cmd()"), csv_cell(-1.5), csv_cell(None)
    ("'=cmd()", -1.5, '')
    """
    if value is None:
        return ""
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS):
        return "'" + value
    return value


def file_stems(names: list[str]) -> dict[str, str]:
    """A file name for each name, of harmless characters and all different.

    >>> file_stems(["ewc", "a/b", "a?b"])
    {'ewc': 'ewc', 'a/b': 'a_b', 'a?b': 'a_b-2'}
    """
    stems: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        taken = set(stems.values())
        candidates = (stem if n == 1 else f"{stem}-{n}" for n in range(1, len(names) + 1))
        stems[name] = next(candidate for candidate in candidates if candidate not in taken)
    return stems
