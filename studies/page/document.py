"""The page: head, contents, sections and foot, around what each section has to say.

No date of writing is on it: two pages of one store are equal, and a difference between two pages is one of
their stores or of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path

from ... import __version__
from ...storage import Store
from ..labels import one_line
from ..study import Study
from . import asking, failing, findings, judging, modelling, origins, repeating, standing, values
from .markup import Section
from .material import Draw, Material, gather

SECTIONS: tuple[Callable[[Material], Section | None], ...] = (
    asking.section,
    standing.section,
    modelling.section,
    findings.tables,
    findings.figures,
    judging.section,
    failing.section,
    values.section,
    origins.section,
    repeating.section,
)
"""In the order of the page; one that has nothing to say is left out."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Nothing is loaded and nothing runs, whatever stands in a title or a reason."""


def report(study: Study, store: Store, draw: Draw | None = None) -> str:
    """The page of a study, whole from its doctype on; `draw` makes a diagram of each model.

    Raises StoreError, and TableError or CurveError for what does not fit the study.
    """
    material = gather(study, store, draw)
    sections = [found for section in SECTIONS if (found := section(material)) is not None]
    title = escape(one_line(study.title))
    contents = " ".join(f'<a href="#{each.name}">{escape(each.title)}</a>' for each in sections)
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title>",
        f"<style>\n{style()}</style>",
        "</head>",
        "<body>",
        f'<header>\n<h1>{title}</h1>\n<p class="faint">{escape(study.name)}</p>\n</header>',
        f'<nav aria-label="Contents">{contents}</nav>',
        "<main>",
        *map(_section, sections),
        "</main>",
        f'<footer class="faint">Written by activemem {escape(__version__)}.</footer>',
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(lines)


def style() -> str:
    """The style of the page."""
    return Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def _section(section: Section) -> str:
    """A section under its heading, which names it to readers that jump from landmark to landmark."""
    head = f'<h2 id="{section.name}">{escape(section.title)}</h2>'
    return f'<section aria-labelledby="{section.name}">\n{head}\n{section.body}\n</section>'
