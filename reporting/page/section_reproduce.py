"""How to reproduce the results: the commands, and the study file itself.

A study that comes with the package is named; any other is on the page, to be saved.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...studies.study import Study, find_study_file
from ...studies.text.command_line import command_line
from ...studies.text.errors import StudyError
from .inputs import PageInputs


def values(inputs: PageInputs) -> Mapping[str, object]:
    """The commands in their order; the file is part of the page, so that the page is enough."""
    study, packaged = inputs.study, _is_packaged(inputs.study)
    file = study.name if packaged else f"{study.name}.toml"
    lines = [command_line("study", "run", file, set=study.overrides)]
    lines += [command_line("table", "render", study.name, published=True)] if study.tables else []
    lines += [command_line("curve", "render", study.name)] if study.curves else []
    lines += [command_line("claim", "check", study.name)] if study.claims else []
    lines += [command_line("report", "build", study.name)]
    return {"text": study.text, "packaged": packaged, "file": file, "commands": "\n".join(lines)}


def _is_packaged(study: Study) -> bool:
    """Whether the package has this very file under the study's name."""
    try:
        return find_study_file(study.name).read_text(encoding="utf-8") == study.text
    except (StudyError, OSError):
        return False
