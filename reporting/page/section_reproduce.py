"""How to have the same again: the commands, and the study file itself.

A study that comes with the package is named; any other is on the page, to be saved.
"""

from __future__ import annotations

import shlex

from ...studies.study import Study, find_study_file
from ...studies.text.errors import StudyError
from .html import PageSection, code_block, collapsible, escape_html, join_html, paragraph
from .inputs import PageInputs


def section(inputs: PageInputs) -> PageSection:
    """The commands in their order; the file is part of the page, so that the page is enough."""
    study = inputs.study
    known = _is_packaged(study)
    what = study.name if known else f"{study.name}.toml"
    told = "These commands train what a store lacks of the study, and make this page and what is on it."
    if not known:
        told = f"Save the study file below as {what}. {told}"
    overrides = [word for override in study.overrides for word in ("--set", override)]
    commands = [["study", "run", what, *overrides]]
    commands += [["table", "render", study.name, "--published"]] if study.tables else []
    commands += [["curve", "render", study.name]] if study.curves else []
    commands += [["claim", "check", study.name]] if study.claims else []
    commands += [["report", "build", study.name]]
    lines = "\n".join(shlex.join(["activemem", *each]) for each in commands)
    file = collapsible(escape_html("The study file"), code_block(study.text))
    body = [paragraph(escape_html(told)), code_block(lines), file]
    return PageSection(name="reproduce", title="How to reproduce", body=join_html(body))


def _is_packaged(study: Study) -> bool:
    """Whether the package has this very file under the study's name."""
    try:
        return find_study_file(study.name).read_text(encoding="utf-8") == study.text
    except (StudyError, OSError):
        return False
