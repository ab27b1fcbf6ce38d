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
from ...studies.schema.level_names import one_line
from ...studies.study import Study
from . import (
    section_claims,
    section_failures,
    section_models,
    section_provenance,
    section_question,
    section_reproduce,
    section_results,
    section_settings,
    section_status,
)
from .html import PageSection
from .inputs import DrawModel, PageInputs, load_inputs

SECTIONS: tuple[Callable[[PageInputs], PageSection | None], ...] = (
    section_question.section,
    section_status.section,
    section_models.section,
    section_results.tables,
    section_results.figures,
    section_claims.section,
    section_failures.section,
    section_settings.section,
    section_provenance.section,
    section_reproduce.section,
)
"""In the order of the page; one that has nothing to say is left out."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Nothing is loaded and nothing runs, whatever stands in a title or a reason."""


def report(study: Study, store: Store, draw: DrawModel | None = None) -> str:
    """The page of a study, whole from its doctype on; `draw` makes a diagram of each model.

    Raises StoreError, and TableError or CurveError for what does not fit the study.
    """
    material = load_inputs(study, store, draw)
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


def _section(section: PageSection) -> str:
    """A section under its heading, which names it to readers that jump from landmark to landmark."""
    head = f'<h2 id="{section.name}">{escape(section.title)}</h2>'
    return f'<section aria-labelledby="{section.name}">\n{head}\n{section.body}\n</section>'
