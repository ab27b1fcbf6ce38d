"""The report of a study, as one HTML page, whose sections are templates filled with values.

The page has no date of writing. So two pages of one store are equal, and two pages differ only if their
stores or the program differ.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ... import __version__
from ...errors import replace_unprintable
from ...storage import Store
from ...studies.schema.factors import level_name, one_line
from ...studies.study import Study
from ...studies.text.units import format_duration, plural
from ..snapshot import Snapshot
from . import section_results, section_study

SECTIONS: tuple[tuple[str, str, Callable[[Snapshot], Mapping[str, object] | None]], ...] = (
    ("question", "Question", section_study.question),
    ("claims", "Claims", section_results.claims),
    ("tables", "Tables", section_results.tables),
    ("figures", "Figures", section_results.figures),
    ("design", "Design", section_study.design),
    ("status", "Status", section_results.status),
    ("failures", "Failures", section_results.failures),
    ("recipes", "Recipes", section_study.models),
    ("provenance", "Provenance", section_results.provenance),
    ("reproduce", "How to reproduce", section_study.reproduce),
    ("settings", "Settings", section_study.settings),
)
"""Name, title and values of each section, in page order: the answer first, the settings last.

A section without values is left out.

Its template and its anchor have the same name. Names must not change, since anchors are part of shared links.
"""


def _finalize(value: object) -> object:
    return replace_unprintable(value) if type(value) is str else value


def make_environment(*folders: Path) -> Environment:
    """Return a Jinja environment that reads each page template from the first of `folders` that has it."""
    environment = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,  # escape markup in texts of study files and stores,
        finalize=_finalize,  # and remove their control characters
        keep_trailing_newline=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "base64": lambda text: b64encode(text.encode()).decode("ascii"),
        "duration": format_duration,
        "level_name": level_name,
        "one_line": one_line,
        "plural": plural,
    }
    return environment


_TEMPLATES = make_environment(Path(__file__).with_name("templates"))


Section = tuple[str, str, str]
"""The name, the title and the HTML of a section."""


def report(study: Study, store: Store) -> str:
    """Return the whole HTML page of a study.

    Raises StoreError; raises TableError or CurveError if a table or a figure does not fit the study.
    """
    sections = report_sections(Snapshot.of(study, store))
    page = _TEMPLATES.get_template("page.html")
    return page.render(study=study, sections=sections, version=__version__)


def report_sections(inputs: Snapshot) -> list[Section]:
    """Return the sections of a study's page, without empty ones. Raises what `report` raises."""
    return [
        (name, title, _TEMPLATES.get_template(f"{name}.html").render(values))
        for name, title, find in SECTIONS
        if (values := find(inputs)) is not None
    ]
